"""The command `pytorch_transformers VERB …`."""

import argparse
import io
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from .. import __version__
from . import convert, download, evaluate, features, fill_mask, generate, info, inspect, perplexity
from .common import Verb, join_negative_lists

VERBS: tuple[Verb, ...] = (
    features.VERB,
    fill_mask.VERB,
    generate.VERB,
    perplexity.VERB,
    evaluate.VERB,
    info.VERB,
    download.VERB,
    inspect.VERB,
    convert.VERB,
    *convert.CLASSIC,
)

#: Exit status of a program that the signals SIGINT and SIGPIPE end, as a shell reports it.
INTERRUPTED, NOBODY_READS = 130, 141


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
        The exit status: 0, 1 when something given can't be used (the message says what), 130 when interrupted, 141
        when whoever read the output has gone. Wrong usage exits with 2.
    """
    prepare_output()
    options = build_parser().parse_args(join_negative_lists(sys.argv[1:] if arguments is None else arguments))
    return guarded(f"pytorch_transformers {options.verb}", lambda: options.run(options))


def prepare_output() -> None:
    """Warnings go to stderr, and a word that the terminal's encoding lacks is no reason to stop."""
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def guarded(program: str, job: Callable[[], int]) -> int:
    """Do the job of a program whose users shall see no traceback.

    Args:
        program: What messages begin with.
        job: Gives the exit status.

    Returns:
        The exit status, see `main`.
    """
    try:
        status = job()
        sys.stdout.flush()
    except BrokenPipeError:
        with suppress(OSError):  # else Python complains when it writes out the rest at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except (OSError, ValueError, TypeError, NotImplementedError, MemoryError) as error:
        sys.stderr.write(f"{program}: {str(error) or type(error).__name__}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    return status
