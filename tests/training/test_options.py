"""What can be chosen, and what can't."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pytorch_transformers.training.options import PRECISIONS, SCHEDULES, TrainingOptions


def options(**given: Any) -> TrainingOptions:
    return TrainingOptions(output_dir=Path("out"), **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"train_batch_size": 0}, "train_batch_size: 0, must be a whole number of at least 1"),
        ({"train_batch_size": 2.0}, "train_batch_size: 2.0, must be a whole number"),
        ({"train_batch_size": None}, "train_batch_size: None"),
        ({"num_train_epochs": -1.0}, "num_train_epochs: -1.0, must be a number from 0.0"),
        ({"num_train_epochs": 0}, "num_train_epochs: 0, must be more"),
        ({"num_train_epochs": float("inf")}, "num_train_epochs: inf"),
        ({"max_steps": 0}, "max_steps: 0, must be a whole number of at least 1"),
        ({"gradient_accumulation_steps": 33}, "33, is more than the 32 examples of a batch"),
        ({"learning_rate": -1e-3}, "learning_rate: -0.001"),
        ({"learning_rate": float("nan")}, "learning_rate: nan"),
        ({"learning_rate": "1e-3"}, "learning_rate: '1e-3'"),
        ({"warmup_proportion": 1.5}, "warmup_proportion: 1.5, must be a number from 0.0 to 1.0"),
        ({"schedule": "linear"}, "schedule: 'linear', must be one of constant, warmup_constant"),
        ({"precision": "fp16"}, "precision: 'fp16', must be one of float32, bfloat16, float16"),
        ({"loss_scale": 128.0}, "loss_scale: 128.0, is for float16; the precision here is float32"),
        ({"loss_scale": 2.0**33, "precision": "float16"}, "loss_scale: 8589934592.0"),
        ({"layer_decay": 0.0}, "layer_decay: 0.0"),
        ({"seed": -1}, "seed: -1"),
        ({"patience": 0}, "patience: 0"),
        ({"keep_checkpoints": 0}, "keep_checkpoints: 0"),
        ({"log_every": 0}, "log_every: 0"),
        ({"load_best": True, "save_every": 0}, "load_best: needs a checkpoint after each evaluation"),
        ({"load_best": True, "save_every": 5, "evaluate_every": 4}, "save_every is 5, evaluate_every 4"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        options(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"evaluate_every": 0, "save_every": 0, "max_steps": 1, "patience": 1, "log_every": 1},
        {"num_train_epochs": 0.01, "warmup_proportion": 1.0, "max_grad_norm": 0.0, "learning_rate": 0.0},
        {"precision": "float16", "loss_scale": 1.0},
        {"load_best": True, "save_every": 5, "evaluate_every": 5},
        *({"schedule": schedule} for schedule in SCHEDULES),
        *({"precision": precision} for precision in PRECISIONS),
    ],
)
def test_what_is_allowed(given: dict[str, Any]) -> None:
    made = options(**given)
    assert {name: getattr(made, name) for name in given} == given


def test_as_json() -> None:
    values = json.loads(json.dumps(options(max_steps=3).as_dict()))
    assert values["output_dir"] == "out"
    assert values["max_steps"] == 3
    assert TrainingOptions(**values) == options(max_steps=3)
    assert TrainingOptions(output_dir="out").output_dir == Path("out")  # type: ignore[arg-type]


def test_what_weights_depend_on() -> None:
    """Everything but these."""
    free = {field.name for field in fields(TrainingOptions)} - options().decisive().keys()
    assert free == {
        *("output_dir", "eval_batch_tokens", "save_every", "keep_checkpoints", "log_every", "tensorboard"),
        *("overwrite_output_dir", "num_workers"),
    }
