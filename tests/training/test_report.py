"""What a run leaves beside the model: a record, a page with its curves, and files for TensorBoard."""

import base64
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

from pytorch_transformers import __version__
from pytorch_transformers.training.finetune import run_task
from pytorch_transformers.training.options import TrainingOptions
from pytorch_transformers.training.report import curves, page, write_report
from pytorch_transformers.training.task import Source
from pytorch_transformers.training.tasks.classify import ClassifyTask
from saved_bert import save_tiny_bert
from training.classify_files import DEV, TRAIN, dev_file, train_file

PNG = b"\x89PNG\r\n\x1a\n"
HISTORY = [
    {"step": 1, "epoch": 0.5, "loss": 2.0, "learning_rate": 0.1},
    {"step": 2, "epoch": 1.0, "loss": 1.0, "learning_rate": 0.0},
    {"step": 2, "epoch": 1.0, "accuracy": 0.5, "loss": 3.0},
]


def pictures(html: str) -> list[bytes]:
    return [base64.b64decode(each) for each in re.findall(r'src="data:image/png;base64,([^"]+)"', html)]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A whole run, and what it gave back."""
    folder = tmp_path_factory.mktemp("run")
    task = ClassifyTask(train_file=train_file(folder).path, dev_file=dev_file(folder).path)
    options = TrainingOptions(
        output_dir=folder / "out", num_train_epochs=2, train_batch_size=16, tensorboard=True, no_cuda=True, seed=5
    )
    source = Source(model=str(save_tiny_bert(folder / "model")))
    return folder / "out", run_task(task, source, options, do_train=True, do_eval=True)


def test_the_record(done: tuple[Path, dict[str, Any]]) -> None:
    folder, given_back = done
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert record == json.loads(json.dumps(given_back))
    assert record["task"] == f"classify {folder.parent / 'train.tsv'}"
    assert record["seed"] == record["arguments"]["seed"] == 5
    assert record["arguments"]["train_batch_size"] == 16
    assert record["arguments"]["model"] == str(folder.parent / "model")
    assert record["versions"]["pytorch-transformers"] == __version__
    assert set(record["versions"]) >= {"python", "torch", "accelerate", "tokenizers"}
    assert (record["device"], record["processes"]) == ("cpu", 1)
    assert record["started"] <= record["finished"]
    updates = 2 * math.ceil(TRAIN / 16)
    assert record["training"]["updates"] == updates
    assert record["training"]["skipped_updates"] == 0
    assert record["training"]["tokens"] > 0
    assert set(record["metrics"]) == {"accuracy", "loss"}
    assert record["metrics"].items() <= record["history"][-1].items()
    assert [point["step"] for point in record["history"] if "accuracy" in point] == [updates // 2, updates]
    assert record["training"]["best"] == max(point.get("accuracy", 0.0) for point in record["history"])
    results = (folder / "eval_results.txt").read_text(encoding="utf-8")
    assert results == "".join(f"{name} = {record['metrics'][name]}\n" for name in ("accuracy", "loss"))
    assert len((folder / "dev_predictions.tsv").read_text(encoding="utf-8").splitlines()) == DEV + 1


def test_the_page(done: tuple[Path, dict[str, Any]]) -> None:
    folder, record = done
    html = (folder / "report.html").read_text(encoding="utf-8")
    (picture,) = pictures(html)
    assert picture == (folder / "report.png").read_bytes()
    assert picture.startswith(PNG)
    assert "<script" not in html
    assert "http" not in html.replace(str(folder), "")  # it needs no other file
    for name, value in (*record["metrics"].items(), ("train_batch_size", 16)):
        assert f"<th>{name}</th><td>{value}</td>" in html


def test_tensorboard(done: tuple[Path, dict[str, Any]]) -> None:
    folder, record = done
    found = EventAccumulator(str(folder / "tensorboard"))
    found.Reload()
    assert set(found.Tags()["scalars"]) >= {"loss", "learning_rate", "accuracy"}
    for name in ("learning_rate", "accuracy"):
        points = [(point["step"], point[name]) for point in record["history"] if name in point]
        shown = found.Scalars(name)
        assert [event.step for event in shown] == [step for step, _ in points]
        assert [event.value for event in shown] == pytest.approx([value for _, value in points])


def test_curves_are_a_picture_of_some_size() -> None:
    for history in (HISTORY, HISTORY[:2], []):
        image = curves(history, "a title")
        assert image is not None
        assert image.startswith(PNG)
        width, height = (int.from_bytes(image[at : at + 4], "big") for at in (16, 20))
        assert width == 1200
        assert height == (720 if len(history) == 3 else 384)
    assert curves(HISTORY, "a title") != curves([{**HISTORY[0], "loss": 9.0}, *HISTORY[1:]], "a title")


def test_values_that_are_no_numbers() -> None:
    history = [{**point, "loss": math.nan} for point in HISTORY]
    assert curves(history, "odd") is not None


def test_text_is_no_markup() -> None:
    html = page({"task": "<b>&", "arguments": {"file": "<i>é"}, "metrics": {}, "training": None}, b"x")
    assert "&lt;b&gt;&amp;" in html
    assert "&lt;i&gt;é" in html
    assert "<b>" not in html
    assert "<h2>Metrics" not in html


def test_what_is_written(tmp_path: Path) -> None:
    paths = write_report(tmp_path, {"task": "a", "history": HISTORY})
    assert sorted(path.name for path in paths) == sorted(path.name for path in tmp_path.iterdir())
