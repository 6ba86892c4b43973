"""Dropout (Srivastava et al. 2014), faster on a CPU than torch's: there it takes a fifth of a small model's training.

torch draws a number for each value. Here a draw of 64 bits decides on four values, so the share that is dropped is a
multiple of 1/65536; what is kept is scaled by the share that is, so means are right to the last bit of it.
"""

from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .checks import recording, transforming

_LEVELS: Final = 1 << 16
_DRAWN_TOGETHER: Final = 4


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Set a share `p` of the values to 0 and multiply the others by 1 / (1 - p); unchanged outside training.

    Other draws than those of `torch.nn.functional.dropout`, which it calls on an accelerator, from the same generator.
    """
    if not training or p == 0.0:
        return x
    dropped = levels_dropped(x, p)
    if dropped is None:
        return F.dropout(x, p)
    result: Tensor = _Dropout.apply(x, dropped)  # type: ignore[no-untyped-call]
    return result


class Dropout(nn.Dropout):
    """`torch.nn.Dropout` on that function."""

    def forward(self, input: Tensor) -> Tensor:  # the name there
        """[...] -> [...]."""
        if self.inplace:
            return super().forward(input)
        return dropout(input, self.p, self.training)


def levels_dropped(x: Tensor, p: float) -> int | None:
    """How many of the `_LEVELS` stand for a value that is dropped; None where torch's own dropout must do it."""
    dropped = round(p * _LEVELS)
    plain = x.device.type == "cpu" and x.is_floating_point() and 0 < dropped < _LEVELS
    return dropped if plain and not (recording() or transforming()) else None


def scale_of(dropped: int) -> float:
    """What kept values are multiplied by, so that the mean stays."""
    return _LEVELS / (_LEVELS - dropped)


def draw(shape: torch.Size) -> Tensor:
    """Levels from -32768 to 32767, one for each value."""
    count = shape.numel()
    draws = torch.empty(-(-count // _DRAWN_TOGETHER), dtype=torch.int64).random_(-(1 << 63), None)
    return draws.view(torch.int16)[:count].view(shape)


def kept(levels: Tensor, dropped: int, dtype: torch.dtype) -> Tensor:
    """1 for each value that is kept, 0 for the others."""
    return torch.ge(levels, dropped - _LEVELS // 2, out=torch.empty(levels.shape, dtype=dtype))


class _Dropout(torch.autograd.Function):
    """x times what is 0 with probability dropped / 65536, and else the same number."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int) -> Tensor:
        """[...] -> [...]."""
        factor = kept(draw(x.shape), dropped, x.dtype).mul_(scale_of(dropped))
        ctx.save_for_backward(factor)
        return x * factor

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        """The same factors."""
        (factor,) = ctx.saved_tensors
        return slope * factor, None
