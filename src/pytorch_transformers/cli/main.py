"""The command `pytorch_transformers VERB …`."""

import argparse
import sys
from collections.abc import Sequence

from .. import __version__
from . import (
    convert,
    create_pretraining_data,
    create_token_stream,
    download,
    evaluate,
    features,
    fill_mask,
    generate,
    info,
    inspect,
    perplexity,
    predict,
    train_tokenizer,
)
from .common import Verb, join_negative_lists
from .program import guarded, prepare_output
from .train import verb as train

VERBS: tuple[Verb, ...] = (
    features.VERB,
    fill_mask.VERB,
    generate.VERB,
    perplexity.VERB,
    evaluate.VERB,
    train.VERB,
    predict.VERB,
    info.VERB,
    download.VERB,
    inspect.VERB,
    convert.VERB,
    train_tokenizer.VERB,
    create_pretraining_data.VERB,
    create_token_stream.VERB,
    *convert.CLASSIC,
)


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
