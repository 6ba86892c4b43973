"""Whole runs of a task, on tiny models and tiny data."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from pytorch_transformers.training.finetune import run_task
from pytorch_transformers.training.options import TrainingOptions
from pytorch_transformers.training.task import Source, Task


def run(task: Task, model: Path, output_dir: Path, *, max_seq_length: int = 40, **what: Any) -> dict[str, Any]:
    """The record; `what` are `do_train`, `do_eval`, `do_predict`, and options of the training."""
    do = {name: what.pop(name) for name in ("do_train", "do_eval", "do_predict") if name in what}
    given = {"train_batch_size": 8, "learning_rate": 3e-3, "no_cuda": True, "save_every": 0, "evaluate_every": 0}
    options = TrainingOptions(output_dir=output_dir, **{**given, **what})
    return run_task(task, Source(model=str(model), max_seq_length=max_seq_length), options, **do)


def refused(task: Task, model: Path, folder: Path, **what: Any) -> None:
    """A run that must raise an error before its first update; a checkpoint of it would be there otherwise."""
    try:
        run(task, model, folder, do_train=True, max_steps=3, save_every=1, **what)
    finally:
        assert not list(folder.glob("*"))


def learn(make: Callable[[], Task], model: Path, folder: Path, **options: Any) -> dict[str, Any]:
    """Train and evaluate; then a new task and the saved model give the same metrics (H1). Returns the first record."""
    trained = run(make(), model, folder, do_train=True, do_eval=True, **options)
    metrics = trained["metrics"]
    alone = run(make(), model, folder, do_eval=True, max_seq_length=options.get("max_seq_length", 40))
    assert alone["metrics"] == metrics
    assert "training" not in alone
    assert json.loads((folder / "run.json").read_text(encoding="utf-8"))["metrics"] == metrics
    losses = [point["loss"] for point in trained["history"] if "learning_rate" in point]
    assert sum(losses[-3:]) < 0.5 * sum(losses[:3])
    return trained


def parts_make_no_difference(make: Callable[[], Task], model: Path, folder: Path) -> None:
    """Batches of 8, and of 4 x 2, give the same weights.

    With this epsilon a step is proportional to the gradient. Adam makes a whole step of any gradient else, also of the
    rounding errors that are all there is where the loss does not depend on a weight, such as the bias of keys.
    """
    options: dict[str, Any] = {"do_train": True, "max_steps": 5, "adam_epsilon": 1.0, "learning_rate": 1.0}
    weights = []
    for parts in (1, 4):
        run(make(), model, folder / str(parts), gradient_accumulation_steps=parts, **options)
        weights.append(load_file(folder / str(parts) / "model.safetensors"))
    before = load_file(model / "model.safetensors")
    shared = [name for name, tensor in weights[0].items() if name in before and before[name].shape == tensor.shape]
    assert max((before[name] - weights[0][name]).abs().max().item() for name in shared) > 0.01
    for name, tensor in weights[0].items():
        torch.testing.assert_close(tensor, weights[1][name], rtol=0, atol=1e-6)


def rows_of(path: Path) -> list[list[str]]:
    """Lines and columns of a file that a task wrote."""
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [line.split("\t") for line in text.splitlines()]
