"""`pytorch_transformers train squad`; `examples/run_squad.py` is the same job."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..common import Switch, positive
from .arguments import TrainCommand

if TYPE_CHECKING:
    from ...data.squad_answers import AnswerOptions
    from ...training.tasks.squad import SquadTask

_DESCRIPTION = """\
Fine-tune BERT to find answers in paragraphs, evaluate it, and answer questions.

Data is SQuAD 1.1 or 2.0, or files of your own in the same form. Questions without an answer need no option: where a
file has 'is_impossible', it is followed.

Answers go to --output_dir: predictions.json, nbest_predictions.json, and null_odds.json where there may be none."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments that only this task has."""
    add = parser.add_argument_group("data").add_argument
    add("--train_file", type=Path, metavar="FILE", help="questions to train with: train-v1.1.json")
    add("--predict_file", type=Path, metavar="FILE", help="questions to evaluate on and to answer: dev-v1.1.json")
    add("--tokenizer_processes", type=positive, default=1, metavar="N", help="to turn paragraphs into tokens (1)")
    add("--token_cache", type=Path, metavar="FOLDER", help="keeps the tokens of paragraphs for later runs")
    add("--predict_batch_size", type=positive, dest="eval_batch_size", metavar="N", help="same as --eval_batch_size")
    add_answer_options(parser)
    add("--verbose_logging", action=Switch, default=False, help="log more, such as what can't be read (default: no)")


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """Define how paragraphs are cut and answers are chosen, under the published names."""
    add = parser.add_argument_group("answers").add_argument
    add("--doc_stride", type=int, default=128, metavar="N", help="tokens between windows on a paragraph (%(default)s)")
    add("--max_query_length", type=int, default=64, metavar="N", help="most tokens of a question (%(default)s)")
    add("--n_best_size", type=int, default=20, metavar="N", help="answers to list for a question (%(default)s)")
    add("--max_answer_length", type=int, default=30, metavar="N", help="longest answer in tokens (%(default)s)")
    add(
        "--version_2_with_negative",
        action=Switch,
        default=None,
        help="whether a question may have no answer (default: as the file says)",
    )
    add(
        "--null_score_diff_threshold",
        type=float,
        default=0.0,
        metavar="X",
        help="no answer where its score is more than X above the best one's (%(default)s)",
    )


def answer_options(options: argparse.Namespace) -> "AnswerOptions":
    """How answers are chosen, from the values of `add_answer_options`."""
    from ...data.squad_answers import AnswerOptions

    return AnswerOptions(
        n_best_size=options.n_best_size,
        max_answer_length=options.max_answer_length,
        null_score_diff_threshold=options.null_score_diff_threshold,
        version_2_with_negative=options.version_2_with_negative,
    )


def make(options: argparse.Namespace) -> "SquadTask":
    """The task."""
    import logging

    from ...training.tasks.squad import SquadTask

    logger = logging.getLogger("pytorch_transformers")
    if options.verbose_logging and logger.isEnabledFor(logging.INFO):  # in the first process
        logger.setLevel(logging.DEBUG)
    train_and_eval = not (options.do_train or options.do_eval or options.do_predict)
    for name, used in (
        ("train_file", options.do_train or train_and_eval),
        ("predict_file", options.do_eval or options.do_predict or train_and_eval),
    ):
        if used and getattr(options, name) is None:
            raise ValueError(f"{name}: missing (--{name})")
    return SquadTask(
        train_file=options.train_file,
        predict_file=options.predict_file,
        doc_stride=options.doc_stride,
        max_query_length=options.max_query_length,
        answers=answer_options(options),
        processes=options.tokenizer_processes,
        token_cache=options.token_cache,
    )


COMMAND = TrainCommand(
    name="squad",
    summary="answers in paragraphs: SQuAD 1.1 and 2.0",
    description=_DESCRIPTION,
    example="--train_file train-v1.1.json --predict_file dev-v1.1.json --model bert-base-uncased --output_dir squad",
    add_arguments=add_arguments,
    make=make,
    defaults={"max_seq_length": 384},
    predicts="answer the questions of --predict_file, and score the answers if the file has them too",
)
