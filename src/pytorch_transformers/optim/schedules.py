"""Learning rate schedules of the published package 1.2.0, counted in STEPS, for `AdamW` and any optimizer of torch.

Each is a plain function of the step, and a `LambdaLR` class that puts it on an optimizer: call `scheduler.step()` after
each `optimizer.step()`. A step is an update of the weights, not a batch and not an epoch. The factor of update k, the
first being 0, is that of `step=k`: with a warm-up the first update has the factor 0, as in the original BERT program.

`pytorch_pretrained_bert` 0.6.2 counts the warm-up as a FRACTION of the training: `classic_schedules`. Its
`warmup=0.1, t_total=1000` is `warmup_steps=100, t_total=1000` here.

From `t_total` on, the factor of every schedule that ends is 0. The cosines of the published packages rose again there,
and training went on; a longer training is said once as a warning.
"""

import logging
import math
from typing import Final

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ..nn.values import real_number

logger = logging.getLogger(__name__)

_PAST_THE_END: Final = "%s: step %s is past t_total, %s steps: the learning rate is 0, and nothing more is learned"


def constant(step: float) -> float:
    """1, whatever the step."""
    del step
    return 1.0


def warmup_constant(step: float, warmup_steps: float) -> float:
    """Rises from 0 to 1 in `warmup_steps` steps and stays there."""
    return step / warmup_steps if step < warmup_steps else 1.0


def warmup_linear(step: float, warmup_steps: float, t_total: float) -> float:
    """Rises from 0 to 1 in `warmup_steps` steps, then falls in a straight line to 0 at step `t_total`."""
    if step >= t_total:
        return 0.0
    if step < warmup_steps:
        return step / warmup_steps
    return (t_total - step) / (t_total - warmup_steps)


def warmup_cosine(step: float, warmup_steps: float, t_total: float, cycles: float = 0.5) -> float:
    """Rises from 0 to 1 in `warmup_steps` steps, then follows `cycles` full waves of a cosine between 1 and 0.

    Half a wave ends at 0 by itself; with whole waves the factor is back at 1 when training ends. 0 from `t_total` on.
    """
    if step >= t_total:
        return 0.0
    if step < warmup_steps:
        return step / warmup_steps
    progress = (step - warmup_steps) / (t_total - warmup_steps)
    return 0.5 * (1.0 + math.cos(2.0 * math.pi * cycles * progress))


def warmup_cosine_with_hard_restarts(step: float, warmup_steps: float, t_total: float, cycles: float = 1.0) -> float:
    """Rises from 0 to 1 in `warmup_steps` steps, then falls `cycles` times from 1 to 0 as half a wave of a cosine."""
    if step >= t_total:
        return 0.0
    if step < warmup_steps:
        return step / warmup_steps
    progress = (step - warmup_steps) / (t_total - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * (cycles * progress % 1.0)))


def warmup_cosine_with_warmup_restarts(step: float, warmup_steps: float, t_total: float, cycles: float = 1.0) -> float:
    """Goes `cycles` times through `warmup_cosine` of `t_total / cycles` steps, `warmup_steps` of them warm-up."""
    if step >= t_total:
        return 0.0
    share = step / t_total * cycles % 1.0
    return warmup_cosine(share, warmup_steps / t_total * cycles, 1.0)


class ConstantLRSchedule(LambdaLR):
    """The learning rate stays what it is.

    Args:
        optimizer: Whose rates are set.
        last_epoch: Steps done before, less one, when training goes on; -1 to begin.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        super().__init__(optimizer, constant, last_epoch=last_epoch)


class _WarmupSchedule(LambdaLR):
    """What those with a warm-up share: its length, checked."""

    def __init__(self, optimizer: Optimizer, warmup_steps: float, last_epoch: int) -> None:
        self.warmup_steps = _steps("warmup_steps", warmup_steps, minimum=0.0)
        super().__init__(optimizer, self.lr_lambda, last_epoch=last_epoch)

    def lr_lambda(self, step: int) -> float:
        """The factor at `step`."""
        raise NotImplementedError


class _EndingSchedule(_WarmupSchedule):
    """What those with an end share: its place, checked, and one warning past it."""

    def __init__(self, optimizer: Optimizer, warmup_steps: float, t_total: float, last_epoch: int) -> None:
        self.t_total = _steps("t_total", t_total, minimum=1.0)
        if _steps("warmup_steps", warmup_steps, minimum=0.0) > t_total:
            raise ValueError(
                f"warmup_steps: {warmup_steps}, is more than t_total, {t_total} steps: the rate would never be full"
            )
        self._warned = False
        super().__init__(optimizer, warmup_steps, last_epoch)

    def _warn_past_end(self, step: int) -> None:
        if step > self.t_total and not self._warned:
            self._warned = True
            logger.warning(_PAST_THE_END, type(self).__name__, step, self.t_total)


class WarmupConstantSchedule(_WarmupSchedule):
    """The rate rises from 0 to its full value in `warmup_steps` steps and stays there.

    Args:
        optimizer: Whose rates are set.
        warmup_steps: Length of the rise, in steps (updates).
        last_epoch: Steps done before, less one, when training goes on; -1 to begin.

    Raises:
        ValueError: `warmup_steps` is negative, or a fraction.
    """

    def __init__(self, optimizer: Optimizer, warmup_steps: float, last_epoch: int = -1) -> None:
        super().__init__(optimizer, warmup_steps, last_epoch)

    def lr_lambda(self, step: int) -> float:
        """The factor at `step`, from 0 to 1."""
        return warmup_constant(step, self.warmup_steps)


class WarmupLinearSchedule(_EndingSchedule):
    """The rate rises from 0 to its full value in `warmup_steps` steps, then falls in a straight line to 0 at `t_total`.

    Args:
        optimizer: Whose rates are set.
        warmup_steps: Length of the rise, in steps (updates).
        t_total: Length of the training, warm-up included, in steps.
        last_epoch: Steps done before, less one, when training goes on; -1 to begin.

    Raises:
        ValueError: A number of steps is negative or a fraction, or the warm-up is longer than the training.
    """

    def __init__(self, optimizer: Optimizer, warmup_steps: float, t_total: float, last_epoch: int = -1) -> None:
        super().__init__(optimizer, warmup_steps, t_total, last_epoch)

    def lr_lambda(self, step: int) -> float:
        """The factor at `step`, from 0 to 1; 0 from `t_total` on."""
        self._warn_past_end(step)
        return warmup_linear(step, self.warmup_steps, self.t_total)


class WarmupCosineSchedule(_EndingSchedule):
    """The rate rises from 0 to its full value in `warmup_steps` steps, then follows a cosine.

    Args:
        optimizer: Whose rates are set.
        warmup_steps: Length of the rise, in steps (updates).
        t_total: Length of the training, warm-up included, in steps.
        cycles: Full waves after the warm-up; half a wave falls to 0 and stays there.
        last_epoch: Steps done before, less one, when training goes on; -1 to begin.

    Raises:
        ValueError: A number of steps is negative or a fraction, the warm-up is longer than the training, or `cycles` is
            negative.
    """

    def __init__(
        self, optimizer: Optimizer, warmup_steps: float, t_total: float, cycles: float = 0.5, last_epoch: int = -1
    ) -> None:
        self.cycles = real_number("cycles", cycles, 0.0)
        super().__init__(optimizer, warmup_steps, t_total, last_epoch)

    def lr_lambda(self, step: int) -> float:
        """The factor at `step`, from 0 to 1; 0 from `t_total` on."""
        self._warn_past_end(step)
        return warmup_cosine(step, self.warmup_steps, self.t_total, self.cycles)


class WarmupCosineWithHardRestartsSchedule(_EndingSchedule):
    """The rate rises from 0 to its full value in `warmup_steps` steps, then falls `cycles` times along a cosine.

    Args:
        optimizer: Whose rates are set.
        warmup_steps: Length of the rise, in steps (updates); it comes once.
        t_total: Length of the training, warm-up included, in steps.
        cycles: How often the rate falls to 0 and begins anew at its full value.
        last_epoch: Steps done before, less one, when training goes on; -1 to begin.

    Raises:
        ValueError: A number of steps is negative or a fraction, the warm-up is longer than the training, or `cycles` is
            below 1.
    """

    def __init__(
        self, optimizer: Optimizer, warmup_steps: float, t_total: float, cycles: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.cycles = real_number("cycles", cycles, 1.0)
        super().__init__(optimizer, warmup_steps, t_total, last_epoch)

    def lr_lambda(self, step: int) -> float:
        """The factor at `step`, from 0 to 1; 0 from `t_total` on."""
        self._warn_past_end(step)
        return warmup_cosine_with_hard_restarts(step, self.warmup_steps, self.t_total, self.cycles)


def _steps(name: str, value: float, minimum: float) -> float:
    """`value` as it came, after a check that it can be a number of steps."""
    number = real_number(name, value, 0.0)
    if 0.0 < number < 1.0:
        raise ValueError(
            f"{name}: {value!r} is a fraction, and here it counts steps (updates): "
            "multiply it by those of the whole training"
        )
    real_number(name, value, minimum)
    return value
