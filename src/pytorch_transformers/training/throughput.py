"""How much of the machine a training uses: the matrix products that an update needs, against the rate of plain ones."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch.utils.flop_counter import FlopCounterMode

#: Rows, inner size and columns of the products that stand for what a processor can do: a typical one and a large one.
_SHAPES: Final = ((2048, 384, 1536), (1536, 1536, 1536))
#: An accelerator needs more to be busy.
_LARGE_SHAPES: Final = ((8192, 4096, 4096),)
_Shape = Sequence[int]


def matrix_product_rate(dtype: torch.dtype, seconds: float = 0.15, device: torch.device | None = None) -> float:
    """The rate of matrix products that this process reaches right now, in floating-point operations a second.

    The best of the shapes and of several measurements of each, over plain `torch.mm` into memory that exists already.

    Args:
        dtype: Of the matrices.
        seconds: Time for each shape.
        device: The CPU by default.
    """
    device = device or torch.device("cpu")
    best = 0.0
    with torch.inference_mode():
        for rows, inner, columns in _SHAPES if device.type == "cpu" else _LARGE_SHAPES:
            a, b = (torch.rand(size, device=device).to(dtype) for size in ((rows, inner), (inner, columns)))
            out = torch.empty(rows, columns, dtype=dtype, device=device)
            torch.mm(a, b, out=out)
            _finish(device)
            end = time.perf_counter() + seconds
            while (started := time.perf_counter()) < end:
                for _ in range(4):
                    torch.mm(a, b, out=out)
                _finish(device)
                best = max(best, 8.0 * rows * inner * columns / (time.perf_counter() - started))
    return best


def count_operations(compute: Callable[[], Any]) -> int:
    """The floating-point operations of all matrix products that it runs, also those of its backward passes.

    A product and a sum are two. Causal attention counts the half that is needed.
    """
    with FlopCounterMode(display=False, custom_mapping=_more_operators()) as counter:
        compute()
    return int(counter.get_total_flops())


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _more_operators() -> dict[Any, Any]:
    """What torch's counter passes over: attention on a CPU, and products that are added in place."""
    operators = torch.ops.aten
    return {
        operators._scaled_dot_product_flash_attention_for_cpu: _attention,
        operators._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
        operators.addmm_: lambda _, a, b, **__: 2 * a[0] * a[1] * b[1],
    }


def _attention(query: _Shape, key: _Shape, value: _Shape, dropout: float = 0.0, causal: bool = False, **_: Any) -> int:
    """Two products of [Tq, D] and [Tk, D], for each head of each sequence."""
    del dropout
    (B, A, Tq, D), Tk, width = query, key[2], value[3]
    return 2 * B * A * Tq * Tk * (D + width) // (2 if causal else 1)


def _attention_backward(grad: _Shape, query: _Shape, key: _Shape, value: _Shape, *more: Any, **_: Any) -> int:
    """Scores again, and four products for the gradients."""
    del grad
    causal = bool(more[3])  # after the result, its log-sums and the dropout
    (B, A, Tq, D), Tk, width = query, key[2], value[3]
    return 2 * B * A * Tq * Tk * (3 * D + 2 * width) // (2 if causal else 1)
