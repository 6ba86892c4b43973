"""`pytorch_transformers train cloze`; `examples/run_openai_gpt.py` is the same job."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import TrainCommand

if TYPE_CHECKING:
    from ...training.tasks.cloze import ClozeTask

_DESCRIPTION = """\
Fine-tune OpenAI GPT to tell which of two sentences ends a story, evaluate it, and predict.

Data is the Story Cloze Test (RocStories) of 2016 or 2018 as CSV. The model has two heads: it learns the choice, and
goes on learning to predict the next word."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments that only this task has."""
    add = parser.add_argument_group("data").add_argument
    for split, other, use in (
        ("train", "train", "train with"),
        ("dev", "eval", "evaluate on"),
        ("test", "test", "predict; the answer may be missing"),
    ):
        names = (f"--{other}_dataset", f"--{split}_file")
        add(*names, dest=f"{split}_file", type=Path, metavar="FILE", help=f"stories to {use}")
    add(
        "--n_valid",
        type=int,
        default=374,
        metavar="N",
        help="without --eval_dataset, hold N stories of --train_dataset out to evaluate on (%(default)s)",
    )
    add(
        "--lm_coef",
        type=float,
        default=0.9,
        metavar="X",
        help="weight of the language model's loss beside that of the choice (%(default)s)",
    )


def make(options: argparse.Namespace) -> "ClozeTask":
    """The task."""
    from ...training.tasks.cloze import ClozeTask

    return ClozeTask(
        train_file=options.train_file,
        dev_file=options.dev_file,
        test_file=options.test_file,
        n_valid=options.n_valid,
        lm_coef=options.lm_coef,
    )


COMMAND = TrainCommand(
    name="cloze",
    summary="which of two sentences ends a story: RocStories, with OpenAI GPT",
    description=_DESCRIPTION,
    example="--train_dataset val2016.csv --eval_dataset test2016.csv --model_name openai-gpt --output_dir cloze_model",
    add_arguments=add_arguments,
    make=make,
    defaults={
        "model": "openai-gpt",
        "train_batch_size": 8,
        "learning_rate": 6.25e-5,
        "max_seq_length": 512,
        "warmup_proportion": 0.002,
    },
    predicts="write predictions for the test file",
)
