"""Half precision: what is computed in it, and the scale of the loss that keeps small gradients of float16 from 0.

Weights, gradients and the optimizer stay in float32. Neither the rate nor the schedule knows the precision.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import torch

_TYPES: Final = {"bfloat16": torch.bfloat16, "float16": torch.float16}
#: Where a scale begins that may grow, and updates without an overflow after which it doubles; the values of torch.
_FIRST_SCALE: Final = 2.0**16
_GROWS_AFTER: Final = 2000
_NEVER: Final = 2**31 - 1


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """A context in which matrix products are computed in `precision`."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, _TYPES[precision])


def loss_scaler(
    precision: str, loss_scale: float, device: torch.device, *, sharded: bool = False
) -> torch.amp.GradScaler | None:
    """What multiplies the loss, and passes over updates that overflowed; None where no scale is needed.

    Args:
        precision: Only float16 needs a scale.
        loss_scale: The scale, halved by each overflow; 0.0 begins high and lets it grow again.
        device: Where the training runs.
        sharded: Whether each process has other gradients: an overflow in one then counts for all.
    """
    if precision != "float16":
        return None
    kind: Any = torch.amp.GradScaler
    if sharded:
        from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler  # takes seconds

        kind = ShardedGradScaler
    scaler: torch.amp.GradScaler = kind(
        device.type,
        init_scale=loss_scale or _FIRST_SCALE,
        growth_interval=_NEVER if loss_scale else _GROWS_AFTER,
    )
    return scaler
