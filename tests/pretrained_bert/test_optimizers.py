"""The classic optimizers under their names of 0.6.2, as its scripts use them: groups, warm-up, decay, clipping.

`tests/optim` has the arithmetic.
"""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pytorch_pretrained_bert
from published import published
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
