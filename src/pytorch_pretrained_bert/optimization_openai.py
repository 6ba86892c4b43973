"""`OpenAIAdam` and the schedules that it carries, as 0.6.2 had them."""

from typing import Final

from pytorch_transformers.optim import adam

from .optimization import (
    SCHEDULES,
    ConstantLR,
    OptionsAsTensors,
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
from .optimization import logger as _logger
from .optimization import required as _required

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

required: Final = _required
logger: Final = _logger


class OpenAIAdam(OptionsAsTensors, adam.OpenAIAdam):
    """The optimizer of GPT: `pytorch_transformers.optim.adam.OpenAIAdam`, where the options are explained."""
