"""Several processes do what one does. They are real ones, under torch's launcher, and talk through gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState, GradientState
from torch import Tensor

from pytorch_transformers import BertForSequenceClassification, BertForTokenClassification
from pytorch_transformers.training.processes import make_accelerator, note_local_rank, start_all
from saved_bert import environment, save_tiny_bert
from training import small
from training.classify_files import arguments, dev_file

TESTS = Path(__file__).parents[1]


def launched(*command: object, launcher: str = "run --standalone") -> subprocess.CompletedProcess[str]:
    """Run a command in two processes."""
    module, *options = launcher.split()
    line = [sys.executable, "-m", f"torch.distributed.{module}", *options, "--nproc-per-node=2", *map(str, command)]
    return subprocess.run(
        line, capture_output=True, text=True, timeout=300, env=environment(PYTHONPATH=str(TESTS)), check=False
    )


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what two processes found; see `two.py`."""
    folder = tmp_path_factory.mktemp("two")
    done = launched(Path(__file__).with_name("two.py"), folder)
    assert done.returncode == 0, done.stderr
    return folder


def told(two: Path, process: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((two / f"process-{process}.json").read_text())
    return found


def kept(two: Path, process: int = 0) -> Any:
    return torch.load(two / f"process-{process}.pt", weights_only=True)


def test_they_are_two(two: Path) -> None:
    assert [told(two, process)["processes"] for process in (0, 1)] == [2, 2]
    assert told(two)["backend"] == "gloo"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rows", {"evaluate": small.accuracy(small.some_rows(7, seed=1)), "metric": "accuracy"}),
        ("parts", {"rows": 17}),
        ("tags", {"kind": BertForTokenClassification}),
        ("float16", {"precision": "float16", "loss_scale": 2.0**32}),
    ],
)
def test_the_training_is_that_of_one_process(two: Path, tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    one = small.training(tmp_path, save_every=0, **options)
    one.run()
    found = told(two)[name]
    # float16 sums other parts, which it rounds.
    loss, weight = (1e-5, 1e-4) if name != "float16" else (5e-3, 5e-3)
    assert [list(point) for point in found["history"]] == [list(point) for point in one.progress.history]
    for ours, theirs in zip(found["history"], one.progress.history, strict=True):
        assert ours == pytest.approx(theirs, abs=loss)
    assert found["tokens"] == one.progress.tokens
    assert found["skipped"] == one.progress.skipped
    assert (one.progress.skipped > 0) == (name == "float16")
    assert small.difference(kept(two)[name], small.weights(one.model)) < weight
    for process in (0, 1):
        assert small.same(kept(two, process)[name], kept(two)[name])  # they never part
        assert told(two, process)[name]["history"] == found["history"]


@pytest.mark.parametrize("count", [0, 1, 7, 8])
def test_each_row_is_predicted_once_and_in_order(two: Path, count: int) -> None:
    """Known fault H6."""
    alone = small.predictions(small.tiny_model(), small.some_rows(count), tokens_per_batch=16)
    for process in (0, 1):
        found = told(two, process)[f"predictions {count}"]
        assert len(found) == count
        if count:
            np.testing.assert_allclose(found, np.stack(alone), atol=1e-6)


def test_only_the_first_writes(two: Path) -> None:
    """Each process was told another folder."""
    assert not any(path.is_file() for path in (two / "process-1").rglob("*"))


def test_the_first_fills_a_cache_before_the_others(two: Path) -> None:
    first, second = (told(two, process)["cache"] for process in (0, 1))
    assert (first["was_there"], second["was_there"]) == (False, True)
    assert second["made_by"] == "0"
    assert first["whole"]
    assert second["whole"]


def test_a_stopped_training_goes_on_to_the_same_weights(two: Path) -> None:
    """With dropout, each process having its own random states."""
    for process in (0, 1):
        weights: dict[str, dict[str, Tensor]] = kept(two, process)
        assert small.same(weights["whole"], weights["again"])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("model"), **small.NO_DROPOUT)


@pytest.fixture(scope="module")
def by_itself(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The command with `--num_processes 2`, and its output folder."""
    folder = tmp_path_factory.mktemp("by_itself")
    command = [sys.executable, "-m", "pytorch_transformers", *arguments(model, folder), "--num_processes", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment(), check=False)
    return done, folder / "out"


def test_the_command_starts_its_processes(by_itself: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    done, output = by_itself
    assert done.returncode == 0, done.stderr
    assert "starting 2 processes" in done.stderr
    assert done.stdout.count("accuracy = ") == 1  # one of them talks
    record = json.loads((output / "run.json").read_text())
    assert record["processes"] == 2
    lines = (output / "dev_predictions.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines[1:]] == [str(i) for i in range(dev_file(output.parent).examples)]


@pytest.mark.slow
def test_the_old_launcher(
    by_itself: tuple[subprocess.CompletedProcess[str], Path], model: Path, tmp_path: Path
) -> None:
    """It gives `--local-rank N` to each process, as the first argument: so it starts scripts, not verbs."""
    script = TESTS.parent / "examples" / "run_classifier.py"
    done = launched(script, *arguments(model, tmp_path)[2:], launcher="launch --master-port=29534")
    assert done.returncode == 0, done.stderr
    old, new = (json.loads((out / "run.json").read_text()) for out in (tmp_path / "out", by_itself[1]))
    assert old["processes"] == 2
    assert old["metrics"] == new["metrics"]
    assert old["history"] == new["history"]


def test_a_rank_without_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    note_local_rank(-1)
    with pytest.raises(ValueError, match=r"--local_rank 1: no launcher .* torchrun --nproc-per-node=N"):
        note_local_rank(1)
    assert "LOCAL_RANK" not in os.environ


def test_a_rank_as_an_argument_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "x")  # so that it is put back afterwards
    monkeypatch.delenv("LOCAL_RANK")
    note_local_rank(1)
    assert os.environ["LOCAL_RANK"] == "1"
    start_all(2, ["never", "run"])  # these are launched already


def test_one_process_is_not_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    start_all(1, ["never", "run"])
    start_all(None, ["never", "run"], no_cuda=True)


SHARDED = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_TRANSFORMER_CLS_TO_WRAP": "BertLayer",
    "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT",
}


@pytest.mark.slow
def test_sharded_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FSDP, switched on as `accelerate launch` does it: through the environment."""
    one = small.training(tmp_path / "one", save_every=0, evaluate=small.accuracy(small.some_rows(7, seed=1)))
    one.run()
    for name, value in SHARDED.items():
        monkeypatch.setenv(name, value)
    done = launched(Path(__file__).with_name("sharded.py"), tmp_path)
    assert done.returncode == 0, done.stderr
    for process in (0, 1):
        facts = kept(tmp_path, process)
        for found in (facts["history"], facts["again"]):
            for ours, theirs in zip(found, one.progress.history, strict=True):
                assert ours == pytest.approx(theirs, abs=1e-5)
        assert facts["held"] < 0.6 * sum(parameter.numel() for parameter in one.model.parameters())
    for name in ("model", "again"):
        model = BertForSequenceClassification.from_pretrained(tmp_path / name)
        assert small.difference(small.weights(model), small.weights(one.model)) < 1e-4


def test_only_the_options_say_the_precision(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """What `accelerate launch` sets would compute in half precision, or divide the gradient, a second time."""
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "4")
    accelerator = make_accelerator(no_cuda=True)
    assert (accelerator.mixed_precision, accelerator.gradient_accumulation_steps) == ("no", 1)
    assert "accelerate's mixed_precision, bf16, counts for nothing here" in caplog.text


def test_sharding_that_does_not_happen_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_accelerator(no_cuda=True)
    assert not caplog.text
    AcceleratorState._reset_state(reset_partial_state=True)
    for name, value in SHARDED.items():
        monkeypatch.setenv(name, value)
    make_accelerator(no_cuda=True)
    assert "each process has the whole model" in caplog.text
