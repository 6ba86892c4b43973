"""`BertAdam` and the schedules that it carries, as 0.6.2 had them.

A state of an optimizer holds its schedule, an object. Importing this module tells torch that those classes are safe, so
that `torch.load` opens files of states as it is, those of 0.6.2 as well.
"""

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor
from torch.optim.optimizer import required as _required

from pytorch_transformers.optim import adam, classic_schedules
from pytorch_transformers.optim.classic_schedules import (
    SCHEDULES,
    ConstantLR,
    LRSchedule,
    WarmupConstantSchedule,
    WarmupCosineSchedule,
    WarmupCosineWithHardRestartsSchedule,
    WarmupCosineWithWarmupRestartsSchedule,
    WarmupLinearSchedule,
)

__all__ = [
    "SCHEDULES",
    "BertAdam",
    "ConstantLR",
    "WarmupConstantSchedule",
    "WarmupCosineSchedule",
    "WarmupCosineWithHardRestartsSchedule",
    "WarmupCosineWithWarmupRestartsSchedule",
    "WarmupLinearSchedule",
    "_LRSchedule",
    "warmup_constant",
    "warmup_cosine",
    "warmup_linear",
]

#: The base of the schedules under its name of 0.6.2, for those of users.
_LRSchedule = LRSchedule

# What else programs import from here: the mark of an option that has to be given, and where warnings come from.

required: Final = _required
logger: Final = classic_schedules.logger

for _kind in (
    *(ConstantLR, WarmupConstantSchedule, WarmupCosineSchedule, WarmupCosineWithHardRestartsSchedule),
    *(WarmupCosineWithWarmupRestartsSchedule, WarmupLinearSchedule),
):
    # Under its name in our files, and under that in files of 0.6.2.
    torch.serialization.add_safe_globals([_kind, (_kind, f"{__name__}.{_kind.__name__}")])


def _with_plain_numbers(options: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the options of a group in which tensors of one element are the numbers they hold."""
    return {
        name: value.item() if name != "params" and isinstance(value, Tensor) and value.numel() == 1 else value
        for name, value in options.items()
    }


class OptionsAsTensors(adam._ClassicAdam):
    """Mixin: options may be tensors of one element, such as `lr=torch.tensor(1e-3)`, which 0.6.2 took."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own, see `pytorch_transformers.optim.adam`."""
        self.defaults = _with_plain_numbers(self.defaults)
        super().add_param_group(param_group)

    def _modernised(self, group: dict[str, Any]) -> dict[str, Any]:
        return super()._modernised(_with_plain_numbers(group))


class BertAdam(OptionsAsTensors, adam.BertAdam):
    """The optimizer of BERT: `pytorch_transformers.optim.adam.BertAdam`, where the options are explained."""


# Functions of the releases before 0.6.2, which the training scripts of that time import.


def warmup_cosine(x: float, warmup: float = 0.002) -> float:
    """The factor of `WarmupCosineSchedule`.

    Args:
        x: Share of the training that is done.
        warmup: Share in which the factor rises.
    """
    return WarmupCosineSchedule(warmup=warmup, t_total=1).get_lr_(x)


def warmup_constant(x: float, warmup: float = 0.002) -> float:
    """The factor of `WarmupConstantSchedule`.

    Args:
        x: Share of the training that is done.
        warmup: Share in which the factor rises.
    """
    return WarmupConstantSchedule(warmup=warmup, t_total=1).get_lr_(x)


def warmup_linear(x: float, warmup: float = 0.002) -> float:
    """The factor of the releases before 0.6.2: rises to 1, then drops to the line from 1 at 0 to 0 at 1.

    That of `WarmupLinearSchedule` falls from 1 at the end of the warm-up, and is 0 past the end; this one is below 0
    there.

    Args:
        x: Share of the training that is done.
        warmup: Share in which the factor rises.
    """
    return x / warmup if x < warmup else 1.0 - x
