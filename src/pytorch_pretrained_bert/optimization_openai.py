"""`OpenAIAdam` and the schedules that it carries, as 0.6.2 had them."""

from pytorch_transformers.optim.adam import OpenAIAdam

from .optimization import (
    SCHEDULES,
    ConstantLR,
    WarmupConstantSchedule,
    WarmupCosineSchedule,
    WarmupCosineWithHardRestartsSchedule,
    WarmupCosineWithWarmupRestartsSchedule,
    WarmupLinearSchedule,
    _LRSchedule,
    warmup_constant,
    warmup_cosine,
    warmup_linear,
)

__all__ = [
    "SCHEDULES",
    "ConstantLR",
    "OpenAIAdam",
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
