"""The optimizer in main memory: other places, the same numbers."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import LambdaLR

from optim.runs import advance, flat, weights
from pytorch_transformers import AdamW
from pytorch_transformers.training.cpu_optimizer import CpuOptimizer
from training import small


def groups(parameters: list[Any]) -> list[dict[str, Any]]:
    return [
        {"params": parameters[:2], "weight_decay": 0.1, "lr": 0.02},
        {"params": parameters[2:], "weight_decay": 0.0, "lr": 0.01},
    ]


def make(given: list[dict[str, Any]]) -> AdamW:
    return AdamW(given, lr=0.01, fused=True)


def pair(dtype: torch.dtype = torch.float32) -> tuple[Any, list[Any], Any, list[Any]]:
    plain, ours = weights(dtype), weights(dtype)
    return make(groups(plain)), plain, CpuOptimizer(groups(ours), make), ours


def test_the_same_numbers() -> None:
    optimizer, plain, cpu, ours = pair()
    schedules = [LambdaLR(each, lambda step: 1.0 / (1 + step)) for each in (optimizer, cpu)]
    for step in range(20):
        advance(optimizer, plain, range(step, step + 1))
        advance(cpu, ours, range(step, step + 1))
        for schedule in schedules:
            schedule.step()
    assert torch.equal(flat(plain), flat(ours))
    assert not torch.equal(flat(plain), flat(weights()))


def test_what_has_no_gradient_stays() -> None:
    _, _, cpu, ours = pair()
    before = flat(ours[:1])
    advance(cpu, ours[1:], range(3))
    assert torch.equal(flat(ours[:1]), before)
    assert not torch.equal(flat(ours[1:]), flat(weights()[1:]))


def test_its_state_is_that_of_the_plain_one() -> None:
    """Either can go on from the other's, and at the rate that a schedule had set, not that of the beginning."""
    optimizer, plain, cpu, ours = pair()
    for each, parameters in ((optimizer, plain), (cpu, ours)):
        schedule = LambdaLR(each, lambda step: 1.0 / (1 + step))
        for step in range(5):
            advance(each, parameters, range(step, step + 1))
            schedule.step()
    one, other = optimizer.state_dict(), cpu.state_dict()
    assert one["param_groups"] == other["param_groups"]
    assert [group["lr"] for group in other["param_groups"]] == pytest.approx([0.02 / 6, 0.01 / 6])

    again = weights()
    with torch.no_grad():
        for parameter, value in zip(again, ours, strict=True):
            parameter.copy_(value)
    fresh = CpuOptimizer(groups(again), make)
    fresh.load_state_dict(deepcopy(one))
    assert [group["lr"] for group in fresh.param_groups] == pytest.approx([0.02 / 6, 0.01 / 6])
    for each, parameters in ((optimizer, plain), (fresh, again)):
        advance(each, parameters, range(5, 8))
    assert torch.equal(flat(plain), flat(again))


def test_weights_in_half_precision_have_copies_in_it() -> None:
    optimizer, plain, cpu, ours = pair(torch.bfloat16)
    advance(optimizer, plain, range(4))
    advance(cpu, ours, range(4))
    assert torch.equal(flat(plain), flat(ours))


def test_a_closure() -> None:
    _, _, cpu, ours = pair()

    def closure() -> float:
        assert torch.is_grad_enabled()
        sum((parameter**2).sum() for parameter in ours).backward()
        return 5.0

    before = flat(ours)
    assert cpu.step(closure) == 5.0
    assert not torch.equal(flat(ours), before)


def test_a_training_that_is_stopped(tmp_path: Path) -> None:
    """The first update after a checkpoint has the rate it would have had."""
    options: dict[str, Any] = {"optimize_on_cpu": True, "dropout": True, "save_every": 1}
    whole = small.training(tmp_path, **options)
    whole.run()
    again = small.training(tmp_path, **options)
    again.run()
    assert small.same(small.weights(again.model), small.weights(whole.model))
