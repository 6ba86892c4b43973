"""`pytorch_transformers train classify`; `examples/run_classifier.py` is the same job."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..common import Switch
from .arguments import TrainCommand

if TYPE_CHECKING:
    from ...training.tasks.classify import ClassifyTask

_DESCRIPTION = """\
Fine-tune BERT to tell classes, or scores, of texts and pairs of texts, evaluate it, and predict.

Data is a task of GLUE (--task_name CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE or WNLI, its files in --data_dir), or
your own files: TSV with a header, CSV or JSON lines, with columns 'text' (and 'text_b') and 'label', or those named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments that only this task has."""
    add = parser.add_argument_group("data").add_argument
    add("--task_name", metavar="NAME", help="task of GLUE")
    add("--data_dir", type=Path, metavar="FOLDER", help="its files: train.tsv, dev.tsv, test.tsv")
    add("--train_file", type=Path, metavar="FILE", help="your own examples to train with")
    add("--dev_file", type=Path, metavar="FILE", help="your own examples to evaluate on")
    add("--test_file", type=Path, metavar="FILE", help="your own texts to predict")
    add("--text_column", metavar="NAME", help="column of the text (default: text, sentence, text_a or sentence1)")
    add("--text_pair_column", metavar="NAME", help="column of the second text (default: text_b or sentence2)")
    add("--label_column", metavar="NAME", help="column of the label (default: label)")
    add("--regression", action=Switch, default=False, help="the labels are scores")


def make(options: argparse.Namespace) -> "ClassifyTask":
    """The task."""
    from ...data.glue import glue_task
    from ...training.tasks.classify import ClassifyTask

    return ClassifyTask(
        glue=None if options.task_name is None else glue_task(options.task_name),
        data_dir=options.data_dir,
        train_file=options.train_file,
        dev_file=options.dev_file,
        test_file=options.test_file,
        text_column=options.text_column,
        text_pair_column=options.text_pair_column,
        label_column=options.label_column,
        regression=options.regression,
    )


COMMAND = TrainCommand(
    name="classify",
    summary="classes or scores of texts and pairs: GLUE, or your own files",
    description=_DESCRIPTION,
    example="--task_name MRPC --data_dir glue/MRPC --model bert-base-uncased --output_dir mrpc",
    add_arguments=add_arguments,
    make=make,
    defaults={},
    predicts="write predictions for the test file",
)
