"""Learning rate schedules of `pytorch_pretrained_bert` 0.6.2, counted in FRACTIONS of the training.

`BertAdam` and `OpenAIAdam` carry one with them. `warmup` is the share of `t_total` in which the rate rises, and
`t_total` a number of steps (updates). In 1.2.0 (`schedules`) the warm-up is a number of steps: `warmup * t_total`.

What differs from 0.6.2: the factor of every schedule that ends is 0 from `t_total` on, where cosines rose again;
going past the end is said once, where it was said at each step; and wrong numbers are errors that name them.
"""

import copy
import logging
from typing import Any, ClassVar, Final, Protocol, TypeVar

from ..nn.values import real_number
from .schedules import (
    constant,
    warmup_constant,
    warmup_cosine,
    warmup_cosine_with_hard_restarts,
    warmup_cosine_with_warmup_restarts,
    warmup_linear,
)

logger = logging.getLogger(__name__)

_S = TypeVar("_S", bound="LRSchedule")


class Schedule(Protocol):
    """What the optimizers ask of a schedule."""

    def get_lr(self, step: int, nowarn: bool = False) -> float:
        """The factor at `step`."""


class LRSchedule:
    """Base of the schedules: subclasses define `get_lr_`.

    Args:
        warmup: Share of `t_total` in which the factor rises from 0 to 1, from 0 to below 1; -1 is 0.
        t_total: Length of the training in steps (updates); -1 means that the factor is always 1, also in the warm-up.

    Attributes:
        warn_t_total: Whether training past `t_total` makes no sense.

    Raises:
        ValueError: A number is out of its limits.
    """

    warn_t_total: ClassVar[bool] = False
    warmup: float
    t_total: float
    #: Progress at which the end was found to be passed, -1 before. The name is that in files of 0.6.2.
    warned_for_t_total_at_progress: float

    def __init__(self, warmup: float = 0.002, t_total: float = -1) -> None:
        self._set(warmup, t_total)

    def _set(self, warmup: float, t_total: float) -> None:
        self.warmup = checked_warmup(warmup)
        self.t_total = _checked_total(t_total)
        self.warned_for_t_total_at_progress = -1.0
        if self.t_total < 0 and not isinstance(self, ConstantLR):
            logger.warning("t_total is -1: the schedule %s does nothing, the rate is constant", type(self).__name__)

    def changed(self: _S, warmup: float, t_total: float) -> _S:
        """The same schedule with another warm-up and length, and a warning of its own."""
        other = copy.copy(self)
        other._set(warmup, t_total)
        return other

    @property
    def given_warmup(self) -> float:
        """The warm-up as a share of the whole training."""
        return self.warmup

    def get_lr(self, step: int, nowarn: bool = False) -> float:
        """The factor of the learning rate.

        Args:
            step: Updates done.
            nowarn: Say nothing when that is more than `t_total`.

        Returns:
            A number from 0 to 1.
        """
        if self.t_total < 0:
            return 1.0
        progress = step / self.t_total
        factor = self.get_lr_(progress)
        if not nowarn and self.warn_t_total and progress > 1.0 and self.warned_for_t_total_at_progress < 0:
            self.warned_for_t_total_at_progress = progress
            logger.warning(
                "%s: step %d is past t_total, %g steps: the factor of the learning rate is %g. "
                "Set t_total to the number of updates that the training makes",
                *(type(self).__name__, step, self.t_total, factor),
            )
        return factor

    def get_lr_(self, progress: float) -> float:
        """The factor where `progress` is the share of the training that is done, from 0; above 1 past its end."""
        raise NotImplementedError


class ConstantLR(LRSchedule):
    """The factor is 1 throughout, without a warm-up."""

    def get_lr_(self, progress: float) -> float:
        """1."""
        return constant(progress)


class WarmupConstantSchedule(LRSchedule):
    """The factor rises from 0 to 1 in the share `warmup` of `t_total` steps and stays there."""

    def get_lr_(self, progress: float) -> float:
        """From 0 to 1."""
        return warmup_constant(progress, self.warmup)


class WarmupLinearSchedule(LRSchedule):
    """The factor rises from 0 to 1 in the share `warmup` of `t_total` steps, then falls in a straight line to 0."""

    warn_t_total = True

    def get_lr_(self, progress: float) -> float:
        """From 0 to 1; 0 from the end on."""
        return warmup_linear(progress, self.warmup, 1.0)


class WarmupCosineSchedule(LRSchedule):
    """The factor rises from 0 to 1 in the share `warmup` of `t_total` steps, then follows a cosine.

    Args:
        warmup: Share of `t_total`, from 0 to below 1; -1 is 0.
        t_total: Length of the training in steps (updates); -1: the factor is always 1.
        cycles: Full waves after the warm-up; half a wave falls to 0.

    Raises:
        ValueError: A number is out of its limits.
    """

    warn_t_total = True
    _fewest_cycles: ClassVar[float] = 0.0

    def __init__(self, warmup: float = 0.002, t_total: float = -1, cycles: float = 0.5) -> None:
        self.cycles = real_number("cycles", cycles, self._fewest_cycles)
        super().__init__(warmup, t_total)

    def get_lr_(self, progress: float) -> float:
        """From 0 to 1; 0 from the end on."""
        return warmup_cosine(progress, self.warmup, 1.0, self.cycles)


class WarmupCosineWithHardRestartsSchedule(WarmupCosineSchedule):
    """The factor rises from 0 to 1 in the share `warmup` of `t_total` steps, then falls `cycles` times along a cosine.

    Args:
        warmup: Share of `t_total`, from 0 to below 1; -1 is 0. The rise comes once.
        t_total: Length of the training in steps (updates); -1: the factor is always 1.
        cycles: How often the factor falls from 1 to 0, at least 1.

    Raises:
        ValueError: A number is out of its limits.
    """

    _fewest_cycles = 1.0

    def __init__(self, warmup: float = 0.002, t_total: float = -1, cycles: float = 1.0) -> None:
        super().__init__(warmup, t_total, cycles)

    def get_lr_(self, progress: float) -> float:
        """From 0 to 1; 0 from the end on."""
        return warmup_cosine_with_hard_restarts(progress, self.warmup, 1.0, self.cycles)


class WarmupCosineWithWarmupRestartsSchedule(WarmupCosineWithHardRestartsSchedule):
    """The training is divided into `cycles` equal parts; in each the factor rises from 0 to 1 and falls along a cosine.

    Args:
        warmup: Share of `t_total` in which the factor rises, in EACH part; `warmup * cycles` is below 1. -1 is 0.
        t_total: Length of the training in steps (updates); -1: the factor is always 1.
        cycles: Number of parts, at least 1.

    Attributes:
        warmup: `warmup * cycles`, so the share of a part.

    Raises:
        ValueError: A number is out of its limits.
    """

    def _set(self, warmup: float, t_total: float) -> None:
        share = checked_warmup(warmup) * self.cycles
        if share >= 1.0:
            raise ValueError(
                f"warmup: {warmup!r} of the training in each of {self.cycles:g} cycles is all of it; "
                f"it must be below {1 / self.cycles:g}"
            )
        super()._set(share, t_total)

    @property
    def given_warmup(self) -> float:
        """The warm-up as a share of the whole training."""
        return self.warmup / self.cycles

    def get_lr_(self, progress: float) -> float:
        """From 0 to 1; 0 from the end on."""
        return warmup_cosine_with_warmup_restarts(progress, self.warmup / self.cycles, 1.0, self.cycles)


#: Names that the optimizers take for `schedule`.
SCHEDULES: Final[dict[str | None, type[LRSchedule]]] = {
    None: ConstantLR,
    "none": ConstantLR,
    "warmup_cosine": WarmupCosineSchedule,
    "warmup_constant": WarmupConstantSchedule,
    "warmup_linear": WarmupLinearSchedule,
}


def schedule_from(schedule: Any, warmup: float = -1, t_total: float = -1) -> Schedule:
    """The schedule that an optimizer was given: an object as it is, or one by name.

    Args:
        schedule: A key of `SCHEDULES`, or an object with `get_lr(step)`.
        warmup: For a name: share of `t_total`, from 0 to below 1; -1 is 0.
        t_total: For a name: length of the training in steps; -1: the rate is constant.

    Raises:
        ValueError: The name is unknown, or a number is out of its limits.
    """
    if callable(getattr(schedule, "get_lr", None)) and not isinstance(schedule, type):
        if warmup != -1 or t_total != -1:
            logger.warning("warmup and t_total have no effect beside a schedule object: give them to the object")
        found: Schedule = schedule
        return found
    if not (schedule is None or isinstance(schedule, str)) or schedule not in SCHEDULES:
        known = ", ".join(repr(name) for name in SCHEDULES)
        raise ValueError(f"schedule: {schedule!r:.100} is unknown; use one of {known}, or a schedule object")
    return SCHEDULES[schedule](warmup=warmup, t_total=t_total)


def checked_warmup(warmup: float) -> float:
    """The share as a float, -1 as 0.

    Raises:
        ValueError: It is neither -1 nor from 0 to below 1.
    """
    if warmup == -1:
        return 0.0
    share = real_number("warmup", warmup, -1.0)
    if not 0.0 <= share < 1.0:
        raise ValueError(
            f"warmup: {warmup!r}, must be a share of the training from 0.0 to below 1.0, or -1 for none; "
            "for a number of steps divide it by t_total"
        )
    return share


def _checked_total(t_total: float) -> float:
    total = real_number("t_total", t_total, -1.0)
    if not (total == -1.0 or total > 0.0):
        raise ValueError(
            f"t_total: {t_total!r}, must be a positive number of steps (updates), or -1 for a constant rate; "
            "a count that was rounded down to 0 needs rounding up"
        )
    return total
