"""`pytorch_transformers train tokens`; `examples/run_ner.py` is the same job."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..common import Switch
from .arguments import TrainCommand

if TYPE_CHECKING:
    from ...training.tasks.tokens import TokensTask

_DESCRIPTION = """\
Fine-tune BERT to tag words, such as those of named entities, evaluate it, and tag.

Data is text in columns, as CoNLL-2003 and WNUT-17 have them: a word a line, its tag in the last column (O, or B- or I-
and a type), a blank line between sentences. The files are train.txt, dev.txt and test.txt in --data_dir, or those
named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments that only this task has."""
    add = parser.add_argument_group("data").add_argument
    add("--data_dir", type=Path, metavar="FOLDER", help="has train.txt, dev.txt and test.txt")
    add("--train_file", type=Path, metavar="FILE", help="sentences to train with, in place of the folder's")
    add("--dev_file", type=Path, metavar="FILE", help="sentences to evaluate on")
    add("--test_file", type=Path, metavar="FILE", help="sentences to tag; only the first column is read")
    add("--iob2", action=Switch, default=False, help="begin each entity with B-, where the files have IOB1 tags")


def make(options: argparse.Namespace) -> "TokensTask":
    """The task."""
    from ...training.tasks.tokens import TokensTask

    return TokensTask(
        data_dir=options.data_dir,
        train_file=options.train_file,
        dev_file=options.dev_file,
        test_file=options.test_file,
        iob2=options.iob2,
    )


COMMAND = TrainCommand(
    name="tokens",
    summary="a tag for each word, such as named entities: files in columns",
    description=_DESCRIPTION,
    example="--data_dir wnut17 --model bert-base-cased --output_dir wnut17_model",
    add_arguments=add_arguments,
    make=make,
    defaults={},
    predicts="write tags for the test file",
)
