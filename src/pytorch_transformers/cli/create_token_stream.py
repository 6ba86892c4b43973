"""`pytorch_transformers create-token-stream`: text as one long row of ids, to pre-train causal models with."""

import argparse
import sys

from .common import Verb, add_place, place, positive

_DESCRIPTION = """\
Encode text files to a token stream: the ids of all documents one after the other, memory-mapped in training.

  --layout files       a file is a document
  --layout blank_line  blank lines divide documents
  --layout lines       a line is a document; Transformer-XL learned WikiText-103 so

The tokenizer's end token stands behind each document. Memory is bounded, and any number of processes gives the same
files."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument(
        "--input_file", required=True, metavar="FILES", help="text, UTF-8: paths and patterns divided by commas"
    )
    parser.add_argument("--output_dir", required=True, metavar="FOLDER", help="for the stream")
    parser.add_argument("--tokenizer", required=True, metavar="NAME", help="name, repository or folder")
    parser.add_argument(
        "--layout", default="files", choices=("files", "blank_line", "lines"), help="see above (%(default)s)"
    )
    parser.add_argument("--end_token", default="default", metavar="TOKEN", help="put behind documents; none: nothing")
    parser.add_argument("--processes", type=positive, default=1, metavar="N", help="(%(default)s)")
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Write the stream."""
    from ..data.pretraining import write_stream
    from ..models.auto import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(options.tokenizer, **place(options))
    index = write_stream(
        options.input_file,
        tokenizer,
        options.output_dir,
        layout=options.layout,
        end_token=None if options.end_token == "none" else options.end_token,
        processes=options.processes,
    )
    sys.stderr.write(f"{options.output_dir}: {index.tokens:,} tokens of {index.documents:,} documents\n")
    return 0


VERB = Verb(
    name="create-token-stream",
    summary="text as ids for pre-training GPT, GPT-2 and Transformer-XL",
    description=_DESCRIPTION,
    example="pytorch_transformers create-token-stream --input_file 'books/*.txt' --tokenizer gpt2 --output_dir stream",
    add_arguments=add_arguments,
    run=run,
)
