"""`pytorch_transformers train pretrain`; `examples/run_pretraining.py` is the same job."""

import argparse
from typing import TYPE_CHECKING

from ..common import Switch, positive
from .arguments import TrainCommand

if TYPE_CHECKING:
    from ...training.task import Task

_DESCRIPTION = """\
Pre-train a model on text, from nothing (--config and --tokenizer) or from a checkpoint (--model).

  --family bert         masked words and next sentences; --data is what create-pretraining-data made, a folder or
                        TFRecord files of the original program
  --family gpt2         the next token; --data is the folder of a token stream, which create-token-stream made
  --family openai_gpt   the same
  --family transfo_xl   the same, in segments of --max_seq_length tokens with memory; --train_batch_size streams

The result is evaluated on --dev_data: loss, accuracy or perplexity. A run that was stopped goes on when it is given
again. --do_train alone trains without evaluation."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments that only this task has."""
    add = parser.add_argument_group("data").add_argument
    add("--family", default="bert", choices=("bert", "gpt2", "openai_gpt", "transfo_xl"), help="(%(default)s)")
    add("--data", "--input_file", dest="data", metavar="PLACE", help="data to train with")
    add("--dev_data", "--eval_file", dest="dev_data", metavar="PLACE", help="data held out, to evaluate on")
    add("--most_dev_rows", type=positive, metavar="N", help="evaluate on the first N rows (default: all)")
    add(
        "--whole_documents",
        action=Switch,
        default=False,
        help="GPT and GPT-2: a row is a document or a part of one, so nothing is predicted from another document "
        "(default: no, blocks go on from one document to the next)",
    )


def make(options: argparse.Namespace) -> "Task":
    """The task.

    Raises:
        ValueError: There is nothing to evaluate on, or the family has no such choice.
    """
    evaluates = options.do_eval or not (options.do_train or options.do_predict)
    if evaluates and options.dev_data is None:  # said now, and not after the first epoch
        raise ValueError("dev_data: missing (--dev_data); --do_train alone trains without evaluation")
    if options.whole_documents and options.family not in ("gpt2", "openai_gpt"):
        raise ValueError(f"whole_documents: is for gpt2 and openai_gpt; the family here is {options.family}")
    from ...training.tasks.pretrain import MaskedWords, NextTokens, NextWords

    given = {"data": options.data, "dev_data": options.dev_data, "most_dev_rows": options.most_dev_rows}
    if options.family == "bert":
        return MaskedWords(**given)
    if options.family == "transfo_xl":
        return NextWords(streams=options.train_batch_size, **given)
    return NextTokens(options.family, whole_documents=options.whole_documents, **given)


COMMAND = TrainCommand(
    name="pretrain",
    summary="pre-training from text: BERT, GPT, GPT-2, Transformer-XL",
    description=_DESCRIPTION,
    example="--data data --dev_data held_out --config config.json --tokenizer vocab.txt \\\n    --output_dir bert-mini",
    add_arguments=add_arguments,
    make=make,
    defaults={"learning_rate": 1e-4, "num_train_epochs": 1.0, "model": None},
    predicts="nothing here",
)
