"""Arguments that every training takes, under the published names, and what is made of them."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..common import Switch, add_place, join_negative_lists, place, positive
from ..program import guarded, prepare_output

if TYPE_CHECKING:
    from ...training.options import TrainingOptions
    from ...training.task import Source, Task

#: In place of a default: the argument has none and must be given.
REQUIRED: Final = object()
_DEFAULTS: Final[dict[str, Any]] = {
    "train_batch_size": 32,
    "learning_rate": 5e-5,
    "num_train_epochs": 3.0,
    "max_seq_length": 128,
    "warmup_proportion": 0.1,
    "model": REQUIRED,
}
#: Arguments that are fields of `TrainingOptions` under the same name.
_SAME: Final = (
    "output_dir",
    "train_batch_size",
    "num_train_epochs",
    "max_steps",
    "gradient_accumulation_steps",
    "learning_rate",
    "warmup_proportion",
    "schedule",
    "weight_decay",
    "layer_decay",
    "max_grad_norm",
    "adam_epsilon",
    "correct_bias",
    "loss_scale",
    "optimize_on_cpu",
    "gradient_checkpointing",
    "group_by_length",
    "seed",
    "evaluate_every",
    "save_every",
    "keep_checkpoints",
    "patience",
    "load_best",
    "log_every",
    "tensorboard",
    "overwrite_output_dir",
    "no_cuda",
    "num_workers",
)


@dataclass(frozen=True)
class TrainCommand:
    """One task of `train`, which is a script in `examples/` as well.

    Attributes:
        name: Of the task.
        summary: One line.
        description: For its help.
        example: What follows `pytorch_transformers train NAME` or the name of the script.
        add_arguments: Defines the arguments that only this task has.
        make: Makes the task of the parsed arguments.
        defaults: Values of common arguments that are other ones here.
        predicts: What `--do_predict` does, for the help; "" where the task has no such thing.
    """

    name: str
    summary: str
    description: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    make: Callable[[argparse.Namespace], "Task"]
    defaults: dict[str, Any]
    predicts: str


def add_all(command: TrainCommand, parser: argparse.ArgumentParser) -> None:
    """Define all arguments of a task."""
    defaults = {**_DEFAULTS, **command.defaults}
    _add_model(parser, defaults)
    command.add_arguments(parser)
    _add_training(parser, defaults, command.predicts)
    _add_machine(parser)


def run(command: TrainCommand, options: argparse.Namespace) -> int:
    """Run a task on parsed arguments."""
    from ...training.processes import note_local_rank, start_all

    if options.server_ip or options.server_port:
        raise ValueError(
            "--server_ip, --server_port: no debugger is waited for here; start the command with "
            "python -m debugpy --listen IP:PORT --wait-for-client"
        )
    note_local_rank(options.local_rank)
    is_first = os.environ.get("RANK", "0") == "0"
    if not is_first:  # what there is to say is said once
        logging.getLogger("pytorch_transformers").setLevel(logging.ERROR)
    do = {name: getattr(options, name) for name in ("do_train", "do_eval", "do_predict")}
    if not any(do.values()):
        do.update(do_train=True, do_eval=True)
    training, source = _training_options(options), _source(options)
    task = command.make(options)
    # What is wrong with the options was said once; each of the processes would say it again.
    start_all(options.num_processes, _this_command(), no_cuda=options.no_cuda)

    from ...training.finetune import run_task

    hidden = ("run", "verb", "task")
    given = {name: _plain(value) for name, value in vars(options).items() if name not in hidden}
    import torch

    try:
        record = run_task(task, source, training, **do, arguments=given)
    except torch.OutOfMemoryError as error:
        raise MemoryError(
            "the device has too little memory: give more --gradient_accumulation_steps, --gradient_checkpointing, "
            "--bf16, or a smaller --eval_batch_size if it was evaluated"
        ) from error
    except (ArithmeticError, ImportError) as error:  # the loss is no number; a library is missing
        raise ValueError(str(error)) from error
    if is_first:
        for name, value in record["metrics"].items():
            print(f"{name} = {value:.6g}")
        sys.stderr.write(f"{training.output_dir}: {_holds(do)}\n")
    return 0


def run_script(command: TrainCommand, program: str, argv: Sequence[str] | None = None) -> int:
    """Run a task as a script of its own; the result is its exit status."""
    prepare_output()
    parser = argparse.ArgumentParser(
        prog=program,
        description=command.description,
        epilog=f"example:\n  python examples/{program} {command.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_all(command, parser)
    options = parser.parse_args(join_negative_lists(sys.argv[1:] if argv is None else argv))
    return guarded(program, lambda: run(command, options))


def _add_model(parser: argparse.ArgumentParser, defaults: dict[str, Any]) -> None:
    group = parser.add_argument_group("the model to begin with")
    group.add_argument(
        "--model",
        "--bert_model",
        "--model_name",
        "--init_checkpoint",
        dest="model",
        required=defaults["model"] is REQUIRED,
        default=None if defaults["model"] is REQUIRED else defaults["model"],
        metavar="NAME",
        help="name, repository, folder, weights file, TensorFlow prefix or archive",
    )
    group.add_argument("--tokenizer", "--vocab_file", dest="tokenizer", metavar="NAME", help="if not with the model")
    group.add_argument("--config", "--bert_config_file", dest="config", metavar="FILE", help="if not with the weights")
    group.add_argument(
        "--do_lower_case", action=Switch, default=None, help="lower-case the text (default: as the tokenizer was saved)"
    )
    group.add_argument(
        "--max_seq_length",
        type=positive,
        default=defaults["max_seq_length"],
        metavar="N",
        help="most tokens of an input (%(default)s)",
    )
    add_place(parser)


def _add_training(parser: argparse.ArgumentParser, defaults: dict[str, Any], predicts: str) -> None:
    what = parser.add_argument_group("what to do", "without any of these: train and evaluate")
    what.add_argument("--do_train", action=Switch, default=False, help="train the model")
    what.add_argument("--do_eval", action=Switch, default=False, help="evaluate it, in training after each epoch too")
    what.add_argument("--do_predict", action=Switch, default=False, help=predicts)
    what.add_argument("--output_dir", required=True, metavar="FOLDER", help="for the model and all results")
    what.add_argument(
        "--overwrite_output_dir", action=Switch, default=False, help="replace what an earlier run left there"
    )
    group = parser.add_argument_group("training")
    add = group.add_argument
    add(
        "--train_batch_size",
        type=int,
        default=defaults["train_batch_size"],
        metavar="N",
        help="examples of an update, in all processes and accumulation steps together (%(default)s)",
    )
    add("--gradient_accumulation_steps", type=int, default=1, metavar="N", help="compute a batch in N parts (1)")
    add("--learning_rate", type=float, default=defaults["learning_rate"], metavar="X", help="(%(default)s)")
    add("--num_train_epochs", type=float, default=defaults["num_train_epochs"], metavar="X", help="(%(default)s)")
    add("--max_steps", type=int, metavar="N", help="most updates, whatever the epochs say")
    add(
        "--warmup_proportion",
        type=float,
        default=defaults["warmup_proportion"],
        metavar="X",
        help="share of the updates in which the rate rises (%(default)s)",
    )
    add(
        "--schedule",
        "--lr_schedule",
        dest="schedule",
        default="warmup_linear",
        metavar="NAME",
        help="constant, warmup_constant, warmup_linear, warmup_cosine or warmup_cosine_hard_restarts (%(default)s)",
    )
    add("--weight_decay", type=float, default=0.01, metavar="X", help="of matrices and embeddings (%(default)s)")
    add("--layer_decay", type=float, default=1.0, metavar="X", help="rate of a layer as a share of the next one's (1)")
    add("--max_grad_norm", type=float, default=1.0, metavar="X", help="longest gradient; 0: no limit (1)")
    add("--adam_epsilon", type=float, default=1e-8, metavar="X", help="added to the root of the squares (%(default)s)")
    add(
        "--correct_bias",
        action=Switch,
        default=True,
        help="correct Adam's averages for beginning at 0; the original BERT does not (default: yes)",
    )
    add("--group_by_length", action=Switch, default=False, help="batches of similar lengths (default: no)")
    add("--seed", type=int, default=42, metavar="N", help="(%(default)s)")
    add("--evaluate_every", type=int, metavar="N", help="updates between evaluations (default: after each epoch)")
    add(
        "--save_every",
        "--save_checkpoints_steps",
        type=int,
        metavar="N",
        help="updates between checkpoints; 0: none (default: with evaluations)",
    )
    add("--keep_checkpoints", type=int, default=2, metavar="N", help="how many of the newest stay (2)")
    add("--patience", type=int, metavar="N", help="stop after N evaluations that are no better (default: never)")
    add("--load_best", action=Switch, default=False, help="keep the model of the best evaluation, not the last")
    add("--log_every", type=int, metavar="N", help="updates between points of the curves (default: 200 in all)")
    add("--tensorboard", action=Switch, default=False, help="write the curves for TensorBoard too")
    add("--eval_batch_size", type=positive, metavar="N", help="most rows of a batch in evaluation, at full length")


def _add_machine(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("machine").add_argument
    add("--fp16", action=Switch, default=False, help="compute in float16, with a scaled loss")
    add("--bf16", action=Switch, default=False, help="compute in bfloat16")
    add(
        "--loss_scale",
        "--loss_scaling",
        dest="loss_scale",
        type=float,
        default=0.0,
        metavar="X",
        help="with --fp16; 0 finds it (0)",
    )
    add("--optimize_on_cpu", action=Switch, default=False, help="keep the optimizer's averages in main memory")
    add("--gradient_checkpointing", action=Switch, default=False, help="compute layers twice and need less memory")
    add("--no_cuda", action="store_true", help="use no GPU")
    add("--num_processes", type=positive, metavar="N", help="processes to start here (default: one a GPU)")
    add("--local_rank", "--local-rank", type=int, default=-1, help="set by old launchers; nothing to give by hand")
    for name in ("--server_ip", "--server_port"):  # published commands may give them empty
        add(name, default="", help=argparse.SUPPRESS)
    add("--num_workers", type=int, default=0, metavar="N", help="processes that make batches (0: the training does)")


def _training_options(options: argparse.Namespace) -> "TrainingOptions":
    from ...training.options import TrainingOptions

    if options.fp16 and options.bf16:
        raise ValueError("--fp16 and --bf16: give one of them")
    values = {name: getattr(options, name) for name in _SAME}
    if options.eval_batch_size is not None:
        values["eval_batch_tokens"] = options.eval_batch_size * options.max_seq_length
    if not options.fp16:
        values["loss_scale"] = 0.0  # published commands give it in any case
    precision = "float16" if options.fp16 else "bfloat16" if options.bf16 else "float32"
    return TrainingOptions(precision=precision, **values)


def _source(options: argparse.Namespace) -> "Source":
    from ...training.task import Source

    return Source(
        model=options.model,
        tokenizer=options.tokenizer,
        config=options.config,
        do_lower_case=options.do_lower_case,
        max_seq_length=options.max_seq_length,
        **place(options),
    )


def _plain(value: Any) -> Any:
    """A value that JSON has."""
    return str(value) if isinstance(value, Path) else value


def _holds(do: dict[str, bool]) -> str:
    made = ["model, run.json, report.html"] if do["do_train"] else ["the record of the run"]
    return ", ".join(made + ["predictions"] * do["do_predict"])


def _this_command() -> list[str]:
    """What Python was given to run this: `-m` and a module, or a file; and the arguments."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is None:
        return sys.argv
    return ["-m", spec.name.removesuffix(".__main__"), *sys.argv[1:]]
