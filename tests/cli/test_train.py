"""`pytorch_transformers train`, its arguments, and all switches of all commands."""

import argparse
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Run
from pytorch_transformers.cli.main import build_parser
from pytorch_transformers.cli.train.arguments import TrainCommand, add_all
from pytorch_transformers.cli.train.verb import COMMANDS
from training.classify_files import DEV, TRAIN, arguments

EXAMPLES = Path(__file__).parents[2] / "examples"


def parsers_below(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its verbs and tasks."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in {id(each): each for each in action.choices.values()}.values():
                yield from parsers_below(below)


def parsers_of_examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[argparse.ArgumentParser]:
    """Those that each example script makes when it is asked for its help."""
    made: list[argparse.ArgumentParser] = []
    original = argparse.ArgumentParser.__init__

    def noted(self: argparse.ArgumentParser, *given: Any, **options: Any) -> None:
        original(self, *given, **options)
        made.append(self)

    monkeypatch.setattr(argparse.ArgumentParser, "__init__", noted)
    for path in sorted(EXAMPLES.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if not hasattr(module, "main"):  # another name of one of the others
            continue
        before = len(made)
        with pytest.raises(SystemExit) as stopped:
            module.main(["--help"])
        assert stopped.value.code == 0
        assert len(made) > before, path
    yield from made


def reachable(parser: argparse.ArgumentParser, dest: str) -> set[Any]:
    """The values that the options of this name, each given alone, leave; and the one without any."""
    values = {parser.get_default(dest)}
    for action in parser._actions:
        if action.dest == dest and action.nargs == 0:
            for name in action.option_strings:
                namespace = argparse.Namespace(**{dest: "nothing"})
                action(parser, namespace, [], name)
                values.add(getattr(namespace, dest))
    return values


def switches(parser: argparse.ArgumentParser) -> set[str]:
    """Options without a value, besides those that print something and end."""
    ends = (argparse._HelpAction, argparse._VersionAction)
    return {action.dest for action in parser._actions if action.nargs == 0 and not isinstance(action, ends)}


def test_every_switch_reaches_both_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known fault H2: a flag that stores true and is true without it."""
    checked = 0
    for parser in (*parsers_below(build_parser()), *parsers_of_examples(monkeypatch)):
        for dest in switches(parser):
            assert {True, False} <= reachable(parser, dest), f"{parser.prog}: {dest}"
            checked += 1
    assert checked > 100


def test_the_check_finds_a_bad_switch() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--good", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--bad", action="store_true", default=True)
    assert switches(parser) == {"good", "bad"}
    assert reachable(parser, "good") == {True, False}
    assert reachable(parser, "bad") == {True}


PUBLISHED = """
    --bert_model m --output_dir o --do_train --do_eval --do_lower_case --train_batch_size 8 --eval_batch_size 4
    --learning_rate 2e-5 --num_train_epochs 2 --max_seq_length 64 --warmup_proportion 0.2 --no_cuda --local_rank -1
    --seed 7 --gradient_accumulation_steps 2 --fp16 --loss_scale 128 --optimize_on_cpu --overwrite_output_dir
    --save_checkpoints_steps 1000 --server_ip= --server_port=
"""


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.name != "pretrain"], ids=lambda each: each.name)
def test_published_flags(command: TrainCommand) -> None:
    parser = argparse.ArgumentParser()
    add_all(command, parser)
    needed = [
        word
        for action in parser._actions
        if action.required and action.dest not in ("model", "output_dir")
        for word in (action.option_strings[0], "x")
    ]
    options = parser.parse_args([*PUBLISHED.split(), *needed])
    assert (options.model, options.seed, options.train_batch_size, options.learning_rate) == ("m", 7, 8, 2e-5)
    assert options.fp16
    assert options.optimize_on_cpu
    assert options.loss_scale == 128.0


def test_train_then_evaluate_alone(run: Run, tiny: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Known fault H1: evaluation alone takes the trained model, and gives the same numbers to the last digit."""
    given = arguments(tiny, tmp_path)
    status, out, err = run(*given)
    assert status == 0, err
    trained = json.loads((tmp_path / "out" / "run.json").read_text())
    assert {line.split(" = ")[0] for line in out.splitlines()} == {"accuracy", "loss"}
    assert "report.html" in err
    predicted = (tmp_path / "out" / "dev_predictions.tsv").read_text()
    assert len(predicted.splitlines()) == DEV + 1

    status, again, err = run(*given, "--do_eval")
    assert status == 0, err
    assert again == out
    assert f"{tmp_path / 'out'}: this is the model that is used, and not {tiny}" in caplog.text
    alone = json.loads((tmp_path / "out" / "run_without_training.json").read_text())
    assert alone["metrics"] == trained["metrics"]
    assert (tmp_path / "out" / "dev_predictions.tsv").read_text() == predicted
    # The record of the training is still there, so the folder is still that of a finished one.
    assert json.loads((tmp_path / "out" / "run.json").read_text()) == trained
    status, _, err = run(*given)
    assert status == 1
    assert "holds a model of an earlier run" in err


def test_a_new_head_is_not_evaluated(run: Run, tiny: Path, tmp_path: Path) -> None:
    status, out, err = run(*arguments(tiny, tmp_path), "--do_eval")
    assert (status, out) == (1, "")
    assert "has no head for this task (classifier.weight, classifier.bias would be new and random)" in err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--fp16", "--bf16"], "--fp16 and --bf16: give one of them"),
        (["--local_rank", "1"], "--local_rank 1: no launcher started this process"),
        (["--train_batch_size", "0"], "train_batch_size: 0, must be a whole number of at least 1"),
        (["--server_ip", "127.0.0.1"], "no debugger is waited for here; start the command with python -m debugpy"),
        (["--schedule", "none"], "schedule: 'none', must be one of"),
        (["--do_train", "--load_best"], "load_best: needs an evaluation"),
        (["--do_train", "--learning_rate", "1000", "--max_grad_norm", "0", "--num_train_epochs", "30"], "the loss is "),
        (["--train_file", "none.tsv"], "none.tsv"),
    ],
)
def test_what_is_wrong_is_said(run: Run, tiny: Path, tmp_path: Path, more: list[str], message: str) -> None:
    status, out, err = run(*arguments(tiny, tmp_path, *more))
    assert (status, out) == (1, "")
    assert message in err


def test_an_output_that_is_a_file(run: Run, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    status, _, err = run(*arguments(tiny, tmp_path))
    assert status == 1
    assert f"output_dir: {tmp_path / 'out'} is a file; give a folder" in err


def test_a_training_file_without_rows(run: Run, tiny: Path, tmp_path: Path) -> None:
    given = arguments(tiny, tmp_path, "--do_train")
    (tmp_path / "train.tsv").write_text("text\tlabel\n")
    status, _, err = run(*given)
    assert status == 1
    assert "train.tsv" in err


def test_options_reach_the_training(run: Run, tiny: Path, tmp_path: Path) -> None:
    more = ["--do_train", "--gradient_accumulation_steps", "2", "--bf16", "--seed", "3", "--max_steps", "2"]
    status, out, err = run(*arguments(tiny, tmp_path, *more, "--eval_batch_size", "3", "--loss_scale", "9"))
    assert status == 0, err
    assert out == ""  # nothing was evaluated
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["training"]["updates"] == 2
    assert (record["seed"], record["arguments"]["bf16"]) == (3, True)
    assert TRAIN > 2 * 16  # so two updates end before the epoch does


def test_without_accelerate(run: Run, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thing that a user without the extra meets says how to get it."""
    monkeypatch.setitem(sys.modules, "accelerate", None)
    status, _, err = run(*arguments(tiny, tmp_path))
    assert status == 1
    assert "pip install 'pytorch-transformers[train]'" in err
