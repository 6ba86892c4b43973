"""The command `pytorch_transformers VERB …`."""

import argparse
import logging
import sys
from collections.abc import Sequence

from .. import __version__
from . import download, features, fill_mask, info
from .common import Verb

VERBS: tuple[Verb, ...] = (features.VERB, fill_mask.VERB, info.VERB, download.VERB)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all verbs."""
    parser = argparse.ArgumentParser(
        prog="pytorch_transformers",
        description="BERT, OpenAI GPT, GPT-2 and Transformer-XL in PyTorch.",
        epilog="example: pytorch_transformers info bert-base-uncased",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in VERBS:
        sub = verbs.add_parser(
            verb.name,
            help=verb.summary,
            description=verb.description,
            epilog=f"example:\n  {verb.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        verb.add_arguments(sub)
        sub.set_defaults(run=verb.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    Returns:
        The exit status: 0, 1 when something given can't be used (the message says what), 130 when interrupted.
    """
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    options = build_parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except (OSError, ValueError, TypeError, NotImplementedError) as error:
        sys.stderr.write(f"pytorch_transformers {options.verb}: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    return status
