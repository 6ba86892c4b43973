"""`pytorch_transformers train swag`; `examples/run_swag.py` is the same job."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import TrainCommand

if TYPE_CHECKING:
    from ...training.tasks.swag import SwagTask

_DESCRIPTION = """\
Fine-tune BERT to tell which of four endings goes on from a sentence, evaluate it, and predict.

Data is SWAG, with its files train.csv, val.csv and test.csv in --data_dir, or files of your own with the same columns:
sent1, sent2, ending0 to ending3 and label, from 0 to 3."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments that only this task has."""
    add = parser.add_argument_group("data").add_argument
    add("--data_dir", type=Path, metavar="FOLDER", help="has train.csv, val.csv and test.csv")
    add("--train_file", type=Path, metavar="FILE", help="examples to train with, in place of the folder's")
    add("--dev_file", type=Path, metavar="FILE", help="examples to evaluate on")
    add("--test_file", type=Path, metavar="FILE", help="examples to predict; the label may be missing")


def make(options: argparse.Namespace) -> "SwagTask":
    """The task."""
    from ...training.tasks.swag import SwagTask

    return SwagTask(
        data_dir=options.data_dir,
        train_file=options.train_file,
        dev_file=options.dev_file,
        test_file=options.test_file,
    )


COMMAND = TrainCommand(
    name="swag",
    summary="which of four endings goes on from a sentence: SWAG, or your own files",
    description=_DESCRIPTION,
    example="--data_dir swag --model bert-base-uncased --train_batch_size 16 --output_dir swag_model",
    add_arguments=add_arguments,
    make=make,
    defaults={"max_seq_length": 80},
    predicts="write predictions for the test file",
)
