"""The verb `train` with its tasks."""

import argparse
from functools import partial

from ..common import Verb
from . import arguments, classify, cloze, pretrain, squad, swag, tokens

COMMANDS = (classify.COMMAND, squad.COMMAND, swag.COMMAND, tokens.COMMAND, cloze.COMMAND, pretrain.COMMAND)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the tasks and their arguments."""
    tasks = parser.add_subparsers(dest="task", metavar="TASK", required=True)
    for command in COMMANDS:
        sub = tasks.add_parser(
            command.name,
            help=command.summary,
            description=command.description,
            epilog=f"example:\n  pytorch_transformers train {command.name} {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        arguments.add_all(command, sub)
        sub.set_defaults(run=partial(arguments.run, command))


VERB = Verb(
    name="train",
    summary="fine-tune a model on a task, or pre-train one",
    description="Fine-tune a model on a task, or pre-train one. `pytorch_transformers train TASK --help` lists the "
    "arguments of a task.",
    example="pytorch_transformers train classify --task_name MRPC --data_dir glue/MRPC --model bert-base-uncased "
    "--output_dir mrpc",
    add_arguments=add_arguments,
    run=lambda options: 2,  # each task sets its own
)
