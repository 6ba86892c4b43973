"""Half precision learns, and only the scale of the loss knows of it."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

from pytorch_transformers.training.precision import autocast, loss_scaler
from training import small

CPU = torch.device("cpu")


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_it_learns(tmp_path: Path, precision: str) -> None:
    training = small.training(
        tmp_path, rows=64, precision=precision, num_train_epochs=12, save_every=0, train_batch_size=16
    )
    training.run()
    losses = small.losses(training)
    assert sum(losses[:3]) / 3 > 0.5
    assert sum(losses[-3:]) / 3 < 0.2
    assert all(parameter.dtype == torch.float32 for parameter in training.model.parameters())
    assert small.accuracy(small.some_rows(64))(training.for_inference)["accuracy"] > 0.9


def test_the_rates_are_those_of_all_precisions(tmp_path: Path) -> None:
    """Known fault G2."""
    found = []
    for precision in ("float32", "bfloat16", "float16"):
        training = small.training(
            tmp_path / precision, rows=80, precision=precision, num_train_epochs=1, save_every=0, learning_rate=1.0
        )
        training.run()
        found.append(small.rates(training))
    assert found[0] == pytest.approx([1.0, *(i / 9 for i in range(8, -1, -1))])  # after each of the ten updates
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_they_differ_in_what_is_computed(tmp_path: Path) -> None:
    first = {}
    for precision in ("float32", "bfloat16", "float16"):
        training = small.training(tmp_path / precision, precision=precision, num_train_epochs=1, save_every=0)
        training.run()
        first[precision] = small.losses(training)[0]
    assert len(set(first.values())) == 3
    assert first["float16"] == pytest.approx(first["float32"], abs=1e-3)
    assert first["bfloat16"] == pytest.approx(first["float32"], abs=1e-2)


def scale_after(tmp_path: Path, **options: Any) -> tuple[Any, float]:
    training = small.training(tmp_path, precision="float16", save_every=0, **options)
    training.run()
    return training, training.accelerator.scaler.get_scale()


def test_an_overflow_halves_the_scale_and_is_passed_over(tmp_path: Path) -> None:
    """So large a scale is too much for float16: gradients become infinite, and the first updates are skipped."""
    training, scale = scale_after(tmp_path, loss_scale=2.0**32, num_train_epochs=10, warmup_proportion=0.0)
    skipped = training.progress.skipped
    assert 5 < skipped < 25
    assert scale == 2.0**32 / 2**skipped
    assert training.progress.update == training.updates == 30
    rates = small.rates(training)
    assert rates[:skipped] == [0.01] * skipped  # the schedule waits
    assert rates[-1] == pytest.approx(0.01 * skipped / 30)
    assert training.schedule.last_epoch == 30 - skipped
    assert all(math.isfinite(loss) for loss in small.losses(training))


def test_a_skipped_update_changes_nothing(tmp_path: Path) -> None:
    training = small.training(tmp_path, precision="float16", loss_scale=2.0**32, max_steps=3, save_every=0)
    before = small.weights(training.model)
    training.run()
    assert training.progress.skipped == 3
    assert small.same(small.weights(training.model), before)
    assert training.optimizer.optimizer.state_dict()["state"] == {}


def test_a_static_scale_never_grows(tmp_path: Path) -> None:
    training, scale = scale_after(tmp_path, loss_scale=128.0)
    assert (training.progress.skipped, scale) == (0, 128.0)
    assert training.accelerator.scaler.get_growth_interval() > 1_000_000_000


def test_a_dynamic_scale_grows(tmp_path: Path) -> None:
    training = small.training(tmp_path, precision="float16", save_every=0)
    scaler = training.accelerator.scaler
    assert scaler.get_scale() == 65536.0
    scaler.set_growth_interval(3)  # 2000 would take long
    training.run()
    assert scaler.get_scale() == 4 * 65536.0


def test_the_scale_is_in_checkpoints(tmp_path: Path) -> None:
    options: dict[str, Any] = {"precision": "float16", "loss_scale": 2.0**26, "save_every": 1, "dropout": True}
    whole = small.training(tmp_path, num_train_epochs=4, **options)
    whole.run()
    again = small.training(tmp_path, num_train_epochs=4, **options)
    again.run()
    assert whole.progress.skipped > 0
    assert again.progress.skipped == whole.progress.skipped
    assert again.accelerator.scaler.get_scale() == whole.accelerator.scaler.get_scale()
    assert small.same(small.weights(again.model), small.weights(whole.model))


def test_clipping_sees_true_gradients(tmp_path: Path) -> None:
    """Not those that the scale made large: with clipping, the curve is that of float32."""
    curves = []
    variants: dict[str, dict[str, Any]] = {"half": {"precision": "float16", "loss_scale": 1024.0}, "single": {}}
    for name, options in variants.items():
        training = small.training(tmp_path / name, max_grad_norm=0.05, save_every=0, **options)
        training.run()
        curves.append(small.losses(training))
    assert curves[0] == pytest.approx(curves[1], abs=5e-3)


def test_contexts() -> None:
    a = torch.randn(4, 4)
    for precision, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16), ("float16", torch.float16)):
        with autocast(precision, CPU):
            assert (a @ a).dtype == dtype


def test_only_float16_has_a_scale() -> None:
    assert loss_scaler("float32", 0.0, CPU) is None
    assert loss_scaler("bfloat16", 0.0, CPU) is None
    assert type(loss_scaler("float16", 0.0, CPU)) is torch.amp.GradScaler
    assert isinstance(loss_scaler("float16", 0.0, CPU, sharded=True), ShardedGradScaler)
