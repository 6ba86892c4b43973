"""The classic optimizers under their names of 0.6.2, as its scripts use them: groups, warm-up, decay, clipping.

`tests/optim` has the arithmetic.
"""

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pytorch_pretrained_bert
from published import folder, published
from pytorch_pretrained_bert import optimization, optimization_openai

pytestmark = pytest.mark.filterwarnings("ignore")  # of calls that torch calls deprecated

KINDS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "BertAdam": ("optimization", optimization, {"warmup": 0.1, "t_total": 210}),
    "OpenAIAdam": ("optimization_openai", optimization_openai, {"warmup": 0.1, "t_total": 210, "max_grad_norm": 1.0}),
}


def groups(model: nn.Module) -> list[dict[str, Any]]:
    """As the examples divide them: no decay of biases."""
    named = list(model.named_parameters())
    return [
        {"params": [weight for name, weight in named if "bias" not in name], "weight_decay": 0.01},
        {"params": [weight for name, weight in named if "bias" in name], "weight_decay": 0.0},
    ]


def start() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, 3))


def train(model: nn.Module, optimizer: Any, steps: range) -> list[list[float]]:
    """Steps on gradients of length above and below 1; the rates before each."""
    rates = []
    for step in steps:
        draw = torch.Generator().manual_seed(step)
        optimizer.zero_grad()
        loss = model(torch.randn(6, 7, generator=draw)).square().sum() * (3.0 if step % 2 else 0.01)
        loss.backward()
        rates.append(optimizer.get_lr())
        optimizer.step()
    return rates


def weights(model: nn.Module) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("schedule", ["warmup_linear", "warmup_cosine", "warmup_constant", "none", None])
def test_training_of_200_steps(name: str, schedule: str | None) -> None:
    module, mine, options = KINDS[name]
    theirs = published("pytorch_pretrained_bert", module)
    found, expected = start(), start()
    kinds = getattr(mine, name), getattr(theirs, name)
    optimizer, other = (
        kind(groups(model), lr=0.01, schedule=schedule, **options)
        for kind, model in zip(kinds, (found, expected), strict=True)
    )
    assert train(found, optimizer, range(200)) == train(expected, other, range(200))
    torch.testing.assert_close(weights(found), weights(expected), rtol=0, atol=1e-6)
    assert not torch.equal(weights(found), weights(start()))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("schedule", ["WarmupCosineWithHardRestartsSchedule", "WarmupCosineWithWarmupRestartsSchedule"])
def test_schedule_objects(name: str, schedule: str) -> None:
    module, mine, _ = KINDS[name]
    theirs = published("pytorch_pretrained_bert", module)
    results = []
    for place in (mine, theirs):
        model = start()
        objects = [getattr(place, schedule)(warmup=0.05, t_total=210, cycles=3.0)]
        optimizer = getattr(place, name)(groups(model), lr=0.01, schedule=objects[0])
        results.append((train(model, optimizer, range(200)), weights(model)))
    rates, expected = (torch.tensor(result[0][1:], dtype=torch.float64) for result in results)
    torch.testing.assert_close(rates, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_each_goes_on_from_the_state_of_the_other(name: str) -> None:
    """A training saved by one package half way ends in the other where it would have ended."""
    module, mine, options = KINDS[name]
    theirs = published("pytorch_pretrained_bert", module)
    for first, second in ((theirs, mine), (mine, theirs)):
        model = start()
        optimizer = getattr(first, name)(groups(model), lr=0.01, **options)
        train(model, optimizer, range(100))
        resumed = start()
        resumed.load_state_dict(model.state_dict())
        other = getattr(second, name)(groups(resumed), lr=0.01, **options)
        other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        assert train(model, optimizer, range(100, 200)) == train(resumed, other, range(100, 200))
        torch.testing.assert_close(weights(resumed), weights(model), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_rate_before_the_first_step_is_0(name: str) -> None:
    """Kept, though `[0]` for all groups says little."""
    _, mine, options = KINDS[name]
    assert getattr(mine, name)(groups(start()), lr=0.01, **options).get_lr() == [0]


def test_names_of_the_package() -> None:
    assert pytorch_pretrained_bert.BertAdam is optimization.BertAdam
    assert pytorch_pretrained_bert.OpenAIAdam is optimization_openai.OpenAIAdam


def test_options_of_the_first_releases() -> None:
    """`e` and `weight_decay_rate` beside `weight_decay`; the latter is read from groups, too."""
    found, expected = start(), start()
    first = optimization.BertAdam(found.parameters(), lr=0.01, e=1e-5, weight_decay_rate=0.05)
    second = optimization.BertAdam(expected.parameters(), lr=0.01, e=1e-5, weight_decay=0.05)
    train(found, first, range(5))
    train(expected, second, range(5))
    assert torch.equal(weights(found), weights(expected))


@pytest.mark.parametrize("name", KINDS)
def test_options_may_be_tensors_of_one_element(name: str) -> None:
    _, mine, options = KINDS[name]
    plain, first, second = start(), start(), start()
    optimizer = getattr(mine, name)(groups(plain), lr=0.25, **options)
    train(plain, optimizer, range(5))
    for model, lr in ((first, torch.tensor(0.25)), (second, torch.tensor([0.25], dtype=torch.float64))):
        other = getattr(mine, name)(groups(model), lr=lr, **options)
        train(model, other, range(5))
        assert torch.equal(weights(model), weights(plain))
        assert [group["lr"] for group in other.param_groups] == [0.25, 0.25]
    own = [{**group, "lr": torch.tensor(0.5)} for group in groups(start())]
    assert [group["lr"] for group in getattr(mine, name)(own, **options).param_groups] == [0.5, 0.5]
    with pytest.raises(ValueError, match="lr"):
        getattr(mine, name)(start().parameters(), lr=torch.tensor([0.1, 0.2]))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "schedule",
    [None, "warmup_linear", "warmup_cosine", "warmup_constant", "hard restarts", "warm-up in each"],
)
def test_files_of_states_open_as_torch_opens_files(name: str, schedule: str | None, tmp_path: Path) -> None:
    """With `weights_only`, the default of `torch.load`."""
    _, mine, options = KINDS[name]
    objects = {
        "hard restarts": optimization.WarmupCosineWithHardRestartsSchedule(0.05, 210, 3.0),
        "warm-up in each": optimization.WarmupCosineWithWarmupRestartsSchedule(0.05, 210, 3.0),
    }
    if schedule in objects:
        options = {"max_grad_norm": 1.0}
    model, resumed = start(), start()
    optimizer, other = (
        getattr(mine, name)(groups(each), lr=0.01, schedule=objects.get(str(schedule), schedule), **options)
        for each in (model, resumed)
    )
    train(model, optimizer, range(10))
    torch.save(optimizer.state_dict(), tmp_path / "state.bin")
    other.load_state_dict(torch.load(tmp_path / "state.bin"))
    resumed.load_state_dict(model.state_dict())
    assert train(model, optimizer, range(10, 20)) == train(resumed, other, range(10, 20))
    assert torch.equal(weights(resumed), weights(model))


def test_files_of_states_by_0_6_2_open_as_torch_opens_files(tmp_path: Path) -> None:
    """Those name the schedules as 0.6.2 does."""
    published("pytorch_pretrained_bert", "optimization")  # skips where it is not there
    # The package without its own `__init__`, which needs much that is not installed.
    code = f"""
import sys, types, torch
package = types.ModuleType("pytorch_pretrained_bert")
package.__path__ = [{str(folder() / "pytorch_pretrained_bert")!r}]
sys.modules[package.__name__] = package
from pytorch_pretrained_bert.optimization import BertAdam
weight = torch.nn.Parameter(torch.ones(3))
weight.grad = torch.ones(3)
optimizer = BertAdam([weight], lr=0.01, warmup=0.1, t_total=20, schedule="warmup_cosine")
optimizer.step()
torch.save(optimizer.state_dict(), {str(tmp_path / "state.bin")!r})
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
    state = torch.load(tmp_path / "state.bin")
    optimizer = optimization.BertAdam([torch.nn.Parameter(torch.ones(3))], lr=0.5)
    optimizer.load_state_dict(state)
    group = optimizer.param_groups[0]
    assert type(group["schedule"]) is optimization.WarmupCosineSchedule
    assert (group["schedule"].warmup, group["schedule"].t_total, group["lr"]) == (0.1, 20, 0.01)


@pytest.mark.parametrize(
    ("schedule", "theirs_goes_on", "end"),
    [
        ("ConstantLR", True, 1.0),
        ("WarmupConstantSchedule", True, 1.0),
        ("WarmupLinearSchedule", False, 0.0),
        ("WarmupCosineSchedule", True, 0.0),
        ("WarmupCosineWithHardRestartsSchedule", True, 0.0),
        ("WarmupCosineWithWarmupRestartsSchedule", True, 0.0),
    ],
)
def test_at_and_after_the_end_of_a_schedule(schedule: str, theirs_goes_on: bool, end: float) -> None:
    """Where 0.6.2 let a cosine rise again, the rate stays 0."""
    published_module = published("pytorch_pretrained_bert", "optimization")
    mine, theirs = (
        getattr(place, schedule)(**({} if schedule == "ConstantLR" else {"warmup": 0.1, "t_total": 10}))
        for place in (optimization, published_module)
    )
    assert mine.get_lr(9, nowarn=True) == pytest.approx(theirs.get_lr(9, nowarn=True))
    assert [mine.get_lr(step, nowarn=True) for step in (10, 11, 15)] == pytest.approx([end] * 3, abs=1e-15)
    assert any(theirs.get_lr(step, nowarn=True) > 0.5 for step in (10, 11, 15)) is theirs_goes_on


@pytest.mark.parametrize("name", KINDS)
def test_options_that_0_6_2_overlooks_are_errors(name: str) -> None:
    module, mine, _ = KINDS[name]
    getattr(published("pytorch_pretrained_bert", module), name)(start().parameters(), lr=0.1, warmup_steps=3)
    with pytest.raises(TypeError, match="warmup_steps"):
        getattr(mine, name)(start().parameters(), lr=0.1, warmup_steps=3)


@pytest.mark.parametrize("name", KINDS)
def test_a_training_of_0_steps_is_an_error_at_once(name: str) -> None:
    module, mine, _ = KINDS[name]
    model = start()
    optimizer = getattr(published("pytorch_pretrained_bert", module), name)(model.parameters(), lr=0.1, t_total=0)
    model(torch.ones(1, 7)).sum().backward()
    with pytest.raises(ZeroDivisionError):
        optimizer.step()
    with pytest.raises(ValueError, match=r"t_total: 0, .*rounded down to 0"):
        getattr(mine, name)(model.parameters(), lr=0.1, t_total=0)
