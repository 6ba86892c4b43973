"""Schedules of both releases: values, limits, warnings, properties."""

import copy
import logging
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from published import published
from pytorch_transformers import AdamW, optimization
from pytorch_transformers.optim import classic_schedules as classic
from pytorch_transformers.optim import schedules

#: Warm-up of 1 step of 10, from step 0 to past the end.
LINEAR = [0, 1, 0.8889, 0.7778, 0.6667, 0.5556, 0.4444, 0.3333, 0.2222, 0.1111, 0, 0]
COSINE = [0, 1, 0.9698, 0.8830, 0.75, 0.5868, 0.4132, 0.25, 0.1170, 0.0302, 0, 0]
CONSTANT = [0.0, *[1.0] * 11]
#: Two cycles: each falls for 4.5 steps; and, with a warm-up each, parts of 5 steps.
RESTARTS = [0, 1, 0.8830, 0.5868, 0.25, 0.0302, 0.9698, 0.75, 0.4132, 0.1170, 0, 0]
WARM_RESTARTS = [0, 1, 0.8536, 0.5, 0.1464, 0, 1, 0.8536, 0.5, 0.1464, 0, 0]
Function = Callable[..., float]
FUNCTIONS: dict[str, tuple[Function, list[float]]] = {
    "linear": (lambda step: schedules.warmup_linear(step, 1, 10), LINEAR),
    "cosine": (lambda step: schedules.warmup_cosine(step, 1, 10), COSINE),
    "constant": (lambda step: schedules.warmup_constant(step, 1), CONSTANT),
    "no warm-up": (lambda step: schedules.constant(step), [1.0] * 12),
    "restarts": (lambda step: schedules.warmup_cosine_with_hard_restarts(step, 1, 10, 2), RESTARTS),
    "warm restarts": (lambda step: schedules.warmup_cosine_with_warmup_restarts(step, 1, 10, 2), WARM_RESTARTS),
}
CLASSIC: dict[str, tuple[classic.LRSchedule, list[float]]] = {
    "linear": (classic.WarmupLinearSchedule(0.1, 10), LINEAR),
    "cosine": (classic.WarmupCosineSchedule(0.1, 10), COSINE),
    "constant": (classic.WarmupConstantSchedule(0.1, 10), CONSTANT),
    "no warm-up": (classic.ConstantLR(0.1, 10), [1.0] * 12),
    "restarts": (classic.WarmupCosineWithHardRestartsSchedule(0.1, 10, cycles=2), RESTARTS),
    "warm restarts": (classic.WarmupCosineWithWarmupRestartsSchedule(0.1, 10, cycles=2), WARM_RESTARTS),
}
LAMBDAS: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "linear": (lambda optimizer: optimization.WarmupLinearSchedule(optimizer, 1, 10), LINEAR),
    "cosine": (lambda optimizer: optimization.WarmupCosineSchedule(optimizer, 1, 10), COSINE),
    "constant": (lambda optimizer: optimization.WarmupConstantSchedule(optimizer, 1), CONSTANT),
    "no warm-up": (optimization.ConstantLRSchedule, [1.0] * 12),
    "restarts": (
        lambda optimizer: optimization.WarmupCosineWithHardRestartsSchedule(optimizer, 1, 10, cycles=2),
        RESTARTS,
    ),
}


def optimizer(lr: float = 1.0) -> AdamW:
    return AdamW([nn.Parameter(torch.ones(1))], lr=lr)


def rates(make: Callable[[Any], Any], steps: int = 12) -> list[float]:
    """The rate of each update of a training."""
    made = optimizer()
    scheduler = make(made)
    found = []
    for _ in range(steps):
        found.append(made.param_groups[0]["lr"])
        made.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_step(name: str) -> None:
    function, expected = FUNCTIONS[name]
    assert [function(step) for step in range(12)] == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("name", CLASSIC)
def test_classic_schedules(name: str) -> None:
    schedule, expected = CLASSIC[name]
    assert [schedule.get_lr(step, nowarn=True) for step in range(12)] == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("name", LAMBDAS)
def test_schedulers_set_the_rate_of_an_optimizer(name: str) -> None:
    make, expected = LAMBDAS[name]
    assert rates(make) == pytest.approx(expected, abs=5e-5)


def test_half_of_a_training_of_a_thousand_steps() -> None:
    """The published scripts divided by the length twice in half precision, which gave 0.005."""
    assert classic.WarmupLinearSchedule(0.1, 1000).get_lr(500) == pytest.approx(0.5556, abs=5e-5)
    assert schedules.warmup_linear(500, 100, 1000) == pytest.approx(0.5556, abs=5e-5)


@pytest.mark.parametrize("warmup", [-1, 0.0, 0.002, 0.1, 0.3])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ConstantLR", {}),
        ("WarmupConstantSchedule", {}),
        ("WarmupLinearSchedule", {}),
        ("WarmupCosineSchedule", {}),
        ("WarmupCosineSchedule", {"cycles": 1.5}),
        ("WarmupCosineWithHardRestartsSchedule", {"cycles": 3}),
        ("WarmupCosineWithWarmupRestartsSchedule", {"cycles": 3}),
    ],
)
def test_classic_values_are_those_of_0_6_2_before_the_end(name: str, options: dict[str, Any], warmup: float) -> None:
    theirs = getattr(published("pytorch_pretrained_bert", "optimization"), name)(warmup, 1000, **options)
    ours = getattr(classic, name)(warmup, 1000, **options)
    assert [ours.get_lr(step) for step in range(1000)] == pytest.approx(
        [theirs.get_lr(step) for step in range(1000)], rel=0, abs=1e-12
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("warmup", [0, 1, 37])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("WarmupLinearSchedule", {}),
        ("WarmupCosineSchedule", {}),
        ("WarmupCosineSchedule", {"cycles": 1.5}),
        ("WarmupCosineWithHardRestartsSchedule", {"cycles": 3}),
    ],
)
def test_values_are_those_of_1_2_0_before_the_end(name: str, options: dict[str, Any], warmup: int) -> None:
    theirs = getattr(published("pytorch_transformers", "optimization"), name)(optimizer(), warmup, 100, **options)
    ours = getattr(optimization, name)(optimizer(), warmup, 100, **options)
    steps = range(100)
    assert list(map(ours.lr_lambda, steps)) == pytest.approx(list(map(theirs.lr_lambda, steps)), rel=0, abs=1e-12)


ENDING = [name for name in FUNCTIONS if name not in ("constant", "no warm-up")]
_totals = st.integers(1, 10_000)
_shares = st.just(0.0) | st.floats(1e-6, 0.99)


def ending(name: str, warmup: float, total: int, cycles: int) -> Callable[[float], float]:
    """A schedule that ends, with a warm-up of a share of its length."""
    steps = warmup * total
    return {
        "linear": lambda step: schedules.warmup_linear(step, steps, total),
        "cosine": lambda step: schedules.warmup_cosine(step, steps, total, cycles - 0.5),
        "restarts": lambda step: schedules.warmup_cosine_with_hard_restarts(step, steps, total, cycles),
        "warm restarts": lambda step: schedules.warmup_cosine_with_warmup_restarts(step, steps / cycles, total, cycles),
    }[name]


@given(st.sampled_from(ENDING), _shares, _totals, st.integers(1, 5), st.floats(0.0, 2.0))
def test_factors_are_from_0_to_1_and_0_from_the_end_on(
    name: str, warmup: float, total: int, cycles: int, progress: float
) -> None:
    factor = ending(name, warmup, total, cycles)
    assert 0.0 <= factor(progress * total) <= 1.0
    assert factor(total) == 0.0
    assert factor(total * 3) == 0.0
    assert factor(total * (1 - 1e-9)) < 1e-5  # the last piece arrives there by itself


@given(st.sampled_from(["linear", "cosine"]), _shares, _totals, st.integers(1, 5), st.floats(0.0, 1.0))
def test_factors_have_no_jump(name: str, warmup: float, total: int, cycles: int, progress: float) -> None:
    """A thousandth of the steepest slope further they differ by no more than that slope allows."""
    factor = ending(name, warmup, total, cycles)
    steepest = max(1 / warmup if warmup else 0.0, math.pi * cycles / (1 - warmup))
    moved = min(1.0, progress + 1e-3 / steepest)
    assert abs(factor(moved * total) - factor(progress * total)) <= 1e-3 + 1e-6


@given(_shares, _totals, st.floats(0.0, 2.0))
def test_a_share_of_the_training_is_so_many_steps(warmup: float, total: int, progress: float) -> None:
    """What `warmup` is in one release, `warmup * t_total` is in the other."""
    step = int(progress * total)
    old = classic.WarmupLinearSchedule(warmup, total).get_lr(step, nowarn=True)
    assert old == pytest.approx(schedules.warmup_linear(step, warmup * total, total), abs=1e-9)


ENDING_CLASSIC = (
    classic.WarmupLinearSchedule,
    classic.WarmupCosineSchedule,
    classic.WarmupCosineWithHardRestartsSchedule,
    classic.WarmupCosineWithWarmupRestartsSchedule,
)


@pytest.mark.parametrize("kind", ENDING_CLASSIC)
def test_one_warning_past_the_end(kind: type[classic.LRSchedule], caplog: Any) -> None:
    schedule = kind(0.1, 10)
    with caplog.at_level(logging.WARNING):
        assert schedule.get_lr(10) == 0.0
        schedule.get_lr(11, nowarn=True)
        assert not caplog.records, "the end itself is not past it"
        assert [schedule.get_lr(step) for step in range(11, 99)] == [0.0] * 88
    assert [kind.__name__ in record.message for record in caplog.records] == [True]


@pytest.mark.parametrize("name", ENDING[:3])
def test_one_warning_past_the_end_of_a_scheduler(name: str, caplog: Any) -> None:
    with caplog.at_level(logging.WARNING):
        rates(LAMBDAS[name][0], 10)
        assert not caplog.records, "a training of t_total updates is no fault"
        rates(LAMBDAS[name][0], 40)
    assert ["past t_total, 10 steps" in record.message for record in caplog.records] == [True]


def test_without_a_length_the_factor_is_1_and_a_warning_says_so(caplog: Any) -> None:
    assert classic.WarmupLinearSchedule(0.1).get_lr(0) == 1.0
    assert ["does nothing" in record.message for record in caplog.records] == [True]
    caplog.clear()
    assert classic.ConstantLR().get_lr(7) == 1.0
    assert not caplog.records, "a constant rate needs no length"


@pytest.mark.parametrize("how", [pickle.dumps, None])
def test_schedules_can_be_copied(how: Any) -> None:
    schedule = classic.WarmupCosineWithWarmupRestartsSchedule(0.1, 100, cycles=2)
    copied = pickle.loads(how(schedule)) if how else copy.deepcopy(schedule)
    assert [copied.get_lr(step) for step in range(100)] == [schedule.get_lr(step) for step in range(100)]
    longer = schedule.changed(schedule.given_warmup, 200)
    assert longer.get_lr(50) == pytest.approx(schedule.get_lr(25))
    assert schedule.t_total == 100


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("whose", ["ours", "1.2.0"])
def test_schedulers_go_on_from_a_saved_state(whose: str) -> None:
    made = optimizer()
    kind: Any = optimization.WarmupCosineSchedule
    first = (kind if whose == "ours" else published("pytorch_transformers", "optimization").WarmupCosineSchedule)(
        made, 2, 10
    )
    for _ in range(4):
        made.step()
        first.step()
    second = kind(made, 5, 50)
    second.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
    made.step()
    second.step()
    assert second.last_epoch == 5
    assert made.param_groups[0]["lr"] == pytest.approx(schedules.warmup_cosine(5, 2, 10))


def test_subclasses_define_the_factor_from_the_progress() -> None:
    class Root(classic.LRSchedule):
        def get_lr_(self, progress: float) -> float:
            return math.sqrt(progress)

    assert Root(0.1, 16).get_lr(4) == 0.5
    with pytest.raises(NotImplementedError):
        classic.LRSchedule(0.1, 16).get_lr(4)


BAD_CLASSIC: list[tuple[type[classic.LRSchedule], dict[str, Any], str]] = [
    (classic.WarmupLinearSchedule, {"warmup": 1.0, "t_total": 10}, r"warmup: 1\.0, must be a share"),
    (classic.WarmupLinearSchedule, {"warmup": 100, "t_total": 1000}, r"warmup: 100.*divide it by t_total"),
    (classic.WarmupLinearSchedule, {"warmup": -0.1, "t_total": 10}, r"warmup: -0\.1"),
    (classic.WarmupLinearSchedule, {"warmup": float("nan"), "t_total": 10}, r"warmup: nan"),
    (classic.WarmupLinearSchedule, {"warmup": "10%", "t_total": 10}, r"warmup: '10%'"),
    (classic.WarmupLinearSchedule, {"warmup": 0.1, "t_total": 0}, r"t_total: 0.*positive"),
    (classic.WarmupLinearSchedule, {"warmup": 0.1, "t_total": -2}, r"t_total: -2"),
    (classic.WarmupCosineSchedule, {"t_total": 10, "cycles": -1}, r"cycles: -1"),
    (classic.WarmupCosineWithHardRestartsSchedule, {"t_total": 10, "cycles": 0.5}, r"cycles: 0\.5.*at least 1"),
    (classic.WarmupCosineWithWarmupRestartsSchedule, {"t_total": 10, "cycles": 0}, r"cycles: 0"),
    (
        classic.WarmupCosineWithWarmupRestartsSchedule,
        {"warmup": 0.5, "t_total": 10, "cycles": 2},
        r"warmup: 0\.5 of the training in each of 2 cycles.*below 0\.5",
    ),
]


@pytest.mark.parametrize(("kind", "options", "message"), BAD_CLASSIC)
def test_wrong_classic_schedules(kind: type[classic.LRSchedule], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("WarmupLinearSchedule", {"warmup_steps": 0.1, "t_total": 10}, r"warmup_steps: 0\.1 is a fraction"),
        ("WarmupLinearSchedule", {"warmup_steps": -1, "t_total": 10}, r"warmup_steps: -1"),
        ("WarmupLinearSchedule", {"warmup_steps": 11, "t_total": 10}, r"warmup_steps: 11, is more than t_total, 10"),
        ("WarmupLinearSchedule", {"warmup_steps": 0, "t_total": 0}, r"t_total: 0"),
        ("WarmupLinearSchedule", {"warmup_steps": 0, "t_total": None}, r"t_total: None"),
        ("WarmupConstantSchedule", {"warmup_steps": 0.5}, r"warmup_steps: 0\.5 is a fraction"),
        ("WarmupCosineSchedule", {"warmup_steps": 1, "t_total": 10, "cycles": -0.5}, r"cycles: -0\.5"),
        ("WarmupCosineWithHardRestartsSchedule", {"warmup_steps": 1, "t_total": 9, "cycles": 0.9}, r"cycles: 0\.9"),
    ],
)
def test_wrong_schedulers(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(optimization, name)(optimizer(), **options)


def test_all_warm_up_and_whole_waves() -> None:
    rising = optimization.WarmupLinearSchedule(optimizer(), 10, 10)
    assert [rising.lr_lambda(step) for step in (0, 5, 9, 10)] == [0.0, 0.5, 0.9, 0.0]
    assert schedules.warmup_cosine(99.9, 0, 100, cycles=1) > 0.99
    assert schedules.warmup_cosine(100, 0, 100, cycles=1) == 0.0
