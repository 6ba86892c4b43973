"""What stays of a training that is stopped, and that it goes on as if nothing had happened."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pytorch_transformers import BertForSequenceClassification
from pytorch_transformers.training.checkpoints import checkpoint_folders
from saved_bert import environment
from training import small
from training.stopped import OPTIONS, UPDATES
from training.test_processes import TESTS


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with trainings that were killed and went on; see `stopped.py`."""
    folder = tmp_path_factory.mktemp("stopped")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("stopped.py")), str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(PYTHONPATH=str(TESTS)),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def told(stopped: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((stopped / "told.json").read_text())
    return found


def assert_as_if_never_stopped(stopped: Path, name: str) -> None:
    whole, other = (torch.load(stopped / each / "weights.pt") for each in ("whole", name))
    assert small.same(whole, other)
    assert (stopped / "whole" / "history.json").read_text() == (stopped / name / "history.json").read_text()
    assert not list((stopped / name / "checkpoints").glob("*.unfinished"))


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_killed_at_any_moment(stopped: Path, seed: str) -> None:
    """With dropout, in float32 on the CPU: the weights are equal to the last bit."""
    facts = told(stopped)["random"][seed]
    assert facts["status"] == 0, facts
    assert len(facts["moments"]) > 1, facts
    assert_as_if_never_stopped(stopped, f"random-{seed}")


def test_killed_while_a_checkpoint_is_written(stopped: Path) -> None:
    facts = told(stopped)["writing"]
    half = UPDATES // 2
    assert facts["killed"] == -9
    assert facts["left"] == [f"step-{half - 2}", f"step-{half - 1}", f"step-{half}.unfinished"]
    assert facts["status"] == 0
    assert facts["after"] == [f"step-{UPDATES - 2}", f"step-{UPDATES - 1}"]  # of the older run neither
    assert_as_if_never_stopped(stopped, "writing")


def test_a_full_disk(stopped: Path) -> None:
    facts = told(stopped)["full"]
    assert facts["refused"] == 1
    last = facts["message"].strip().splitlines()[-1]
    folder = stopped / "full" / "checkpoints"
    assert last.startswith(f"{folder / 'step-3'}: the checkpoint could not be written")
    assert "File too large" in last
    assert last.endswith(f"the last good one is {folder / 'step-2'}")
    assert facts["left"] == ["step-1", "step-2"]
    assert facts["status"] == 0
    whole, other = (torch.load(stopped / each / "weights.pt") for each in ("whole", "full"))
    assert small.same(whole, other)


def test_a_folder_that_cant_be_written(tmp_path: Path) -> None:
    """A file stands where the checkpoints go: root may write to any folder."""
    (tmp_path / "checkpoints").write_text("")
    training = small.training(tmp_path, save_every=1)
    with pytest.raises(OSError, match=r"step-1: the checkpoint could not be written .*there is no earlier one"):
        training.run()


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A training with checkpoints after 1, 2 ... 5 of its 6 updates, of which 4 and 5 stay."""
    small.training(tmp_path, save_every=1).run()
    assert [folder.name for folder in checkpoint_folders(tmp_path)] == ["step-4", "step-5"]
    return tmp_path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"learning_rate": 0.02, "seed": 3},
            r"with learning_rate 0.01 \(now 0.02\), seed 42 \(now 3\)\. Give the same",
        ),
        ({"num_train_epochs": 3}, r"num_train_epochs 2 \(now 3\)"),
        ({"precision": "bfloat16"}, r"precision 'float32' \(now 'bfloat16'\)"),
        ({"rows": 23}, r"examples 22 \(now 23\)"),
        ({"data": small.some_rows(22, seed=5)}, r"data '\w+' \(now '\w+'\)"),
        ({"data": [*small.some_rows(20), *small.some_rows(1, seed=5), *small.some_rows(22)[-1:]]}, r"data '\w+' \(now"),
        ({"model": small.tiny_model(num_hidden_layers=1)}, r"weights '\w+' \(now '\w+'\)"),
    ],
)
def test_other_options_than_before(broken: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"step-5: a checkpoint of another training.*{message}"):
        small.training(broken, save_every=1, **options).run()
    assert [folder.name for folder in checkpoint_folders(broken)] == ["step-4", "step-5"]


def test_options_of_no_effect_may_change(broken: Path) -> None:
    again = small.training(broken, save_every=0, keep_checkpoints=1, log_every=3, num_workers=0, eval_batch_tokens=9)
    again.run()
    assert small.same(small.weights(again.model), whole_weights(broken / "other"))


def whole_weights(folder: Path) -> dict[str, torch.Tensor]:
    training = small.training(folder, save_every=0)
    training.run()
    return small.weights(training.model)


def test_beginning_anew(broken: Path) -> None:
    training = small.training(broken, save_every=1, learning_rate=0.02, overwrite_output_dir=True)
    (broken / "checkpoints" / "step-7.unfinished").mkdir()
    training.run()
    assert len(small.losses(training)) == 6
    assert [folder.name for folder in checkpoint_folders(broken)] == ["step-4", "step-5"]
    assert not list((broken / "checkpoints").glob("*.unfinished"))


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.bin", "process-0.pt", "custom_checkpoint_0.pkl"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_checkpoint(broken: Path, name: str, damage: str) -> None:
    path = broken / "checkpoints" / "step-5" / name
    content = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    with pytest.raises(OSError, match=r"(?s)checkpoints/step-5: the checkpoint can't be read.*remove it to go on"):
        small.training(broken, save_every=1).run()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"update": 1, "odd": 2}'])
def test_a_damaged_progress(broken: Path, content: str) -> None:
    (broken / "checkpoints" / "step-5" / "progress.json").write_text(content)
    with pytest.raises(ValueError, match=r"step-5/progress.json: not the progress of a training .*remove "):
        small.training(broken, save_every=1).run()


def test_going_on_from_the_one_before(broken: Path) -> None:
    """What the message about a damaged one advises."""
    folder = broken / "checkpoints" / "step-5"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    again = small.training(broken, save_every=1)
    again.run()
    assert small.same(small.weights(again.model), whole_weights(broken / "other"))


def test_a_checkpoint_is_a_model(tmp_path: Path) -> None:
    """It can be loaded as one: the model of a stopped training is not lost."""
    training = small.training(tmp_path, num_train_epochs=1, save_every=2)
    training.run()
    model = BertForSequenceClassification.from_pretrained(tmp_path / "checkpoints" / "step-2")
    assert model.config.num_labels == 2
    assert small.difference(small.weights(model), small.weights(training.model)) < 0.05


@pytest.mark.parametrize(("keep", "names"), [(1, ["step-5"]), (3, ["step-3", "step-4", "step-5"])])
def test_rotation(tmp_path: Path, keep: int, names: list[str]) -> None:
    small.training(tmp_path, save_every=1, keep_checkpoints=keep).run()
    assert [folder.name for folder in checkpoint_folders(tmp_path)] == names


def test_the_best_stays(tmp_path: Path) -> None:
    values = iter([0.1, 0.9, 0.2, 0.3, 0.4, 0.5])
    training = small.training(
        tmp_path, evaluate=lambda model: {"f1": next(values)}, metric="f1", evaluate_every=1, keep_checkpoints=1
    )
    training.run()
    assert [folder.name for folder in checkpoint_folders(tmp_path)] == ["step-2", "step-5"]


def test_names_of_checkpoints(tmp_path: Path) -> None:
    """By number, and nothing else in that folder."""
    for name in ("step-2", "step-10", "step-1.unfinished", "step-", "other", "step-3x"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    (tmp_path / "checkpoints" / "step-20").write_text("a file")
    assert [folder.name for folder in checkpoint_folders(tmp_path)] == ["step-2", "step-10"]
    assert checkpoint_folders(tmp_path / "none") == []
    assert OPTIONS["keep_checkpoints"] == 2
