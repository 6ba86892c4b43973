"""`BertAdam` and the schedules that it carries, as 0.6.2 had them."""

from pytorch_transformers.optim.adam import BertAdam
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


# Functions of the releases before 0.6, which the training scripts of that time import.


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
    """The factor of `WarmupLinearSchedule`.

    Args:
        x: Share of the training that is done.
        warmup: Share in which the factor rises.
    """
    return WarmupLinearSchedule(warmup=warmup, t_total=1).get_lr_(x)
