"""The optimizer and the schedules under the module name of the published package."""

from .optim.adam import AdamW
from .optim.schedules import (
    ConstantLRSchedule,
    WarmupConstantSchedule,
    WarmupCosineSchedule,
    WarmupCosineWithHardRestartsSchedule,
    WarmupLinearSchedule,
)

__all__ = [
    "AdamW",
    "ConstantLRSchedule",
    "WarmupConstantSchedule",
    "WarmupCosineSchedule",
    "WarmupCosineWithHardRestartsSchedule",
    "WarmupLinearSchedule",
]
