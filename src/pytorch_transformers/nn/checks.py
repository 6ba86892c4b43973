"""Checks of tensors that come from outside, so that bad input is an error with a name and never reaches a kernel.

A check that reads values makes the host wait for an accelerator, so there it runs only when the environment variable
PYTORCH_TRANSFORMERS_CHECK is 1. While a graph is recorded (`torch.compile`, `torch.export`, `torch.jit.trace`, ONNX)
there are no values to look at, and no check runs.
"""

import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

#: What a table can be indexed with; labels may be of any integer type.
INDEX_TYPES = (torch.int64, torch.int32)
INTEGER_TYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def recording() -> bool:
    """Whether the code runs to record a graph rather than to compute."""
    return torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None


def transforming() -> bool:
    """Whether the code runs inside `torch.func.grad`, `vmap`, forward mode and the like.

    They take no custom gradients.
    """
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def many_at_once(x: Tensor) -> bool:
    """Whether `x` stands for many tensors, as slopes do in `torch.autograd.grad(is_grads_batched=True)`."""
    return transforming() or bool(torch._C._functorch.is_legacy_batchedtensor(x))


def values_readable(x: Tensor) -> bool:
    """Whether looking at the values of `x` is allowed here (see the module's text)."""
    if recording() or x.is_meta:
        return False
    return x.device.type == "cpu" or os.environ.get("PYTORCH_TRANSFORMERS_CHECK") == "1"


def check_tensor(name: str, x: Any) -> None:
    """Raise `TypeError` unless `x` is a tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, found {type(x).__name__}; make one with torch.tensor(...)")


def check_device(name: str, x: Tensor, other_name: str, other: Tensor) -> None:
    """Raise `ValueError` unless both tensors are on one device."""
    if not recording() and x.device != other.device:
        raise ValueError(
            f"{name} is on {x.device}, {other_name} on {other.device}; move it with .to({str(other.device)!r})"
        )


def check_float_type(name: str, x: Tensor, dtype: torch.dtype) -> None:
    """Raise `ValueError` unless `x` has the type that the model computes in; under autocast any may come."""
    if not recording() and x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
        raise ValueError(f"{name}: found {x.dtype}, the model computes in {dtype}; convert it with .to({dtype})")


def check_shape(name: str, x: Tensor, shape: tuple[int, ...], meaning: str) -> None:
    """Raise `ValueError` unless `x` has that shape; `meaning` names its axes, for the message."""
    if not recording() and tuple(x.shape) != shape:
        raise ValueError(f"{name}: expected shape {list(shape)} ({meaning}), found {list(x.shape)}")


def check_indices(name: str, x: Tensor, limit: int, remedy: str) -> None:
    """Raise `ValueError` unless `x` holds whole numbers from 0 to `limit` - 1; `remedy` says what to do about it."""
    if x.dtype not in INDEX_TYPES:
        raise ValueError(f"{name}: expected integers (torch.long), found {x.dtype}; convert it with .long()")
    if not values_readable(x):
        return
    low, high = (value.item() for value in x.aminmax())
    if low < 0 or high >= limit:
        raise ValueError(f"{name}: found {low if low < 0 else high}, allowed is 0 to {limit - 1}; {remedy}")


def check_mask(name: str, mask: Tensor) -> None:
    """Raise `ValueError` unless the mask [B, T] holds 0 and 1 only, and a 1 in each row."""
    if not values_readable(mask):
        return
    if bool((mask == 1).all()):  # the usual mask of a single text, answered at once
        return
    other = mask[(mask != 0) & (mask != 1)]
    if other.numel():
        raise ValueError(f"{name}: found {other[0].item()}, allowed is 1 (real token) and 0 (padding)")
    empty = (mask == 0).all(dim=1).nonzero()
    if empty.numel():
        raise ValueError(f"{name}: row {empty[0].item()} is all 0; each sequence needs at least one real token")


def check_label_shape(name: str, labels: Any, shape: Sequence[int]) -> None:
    """Raise unless there is a label for each item of that shape: in it, flattened, or [B, 1] for [B]."""
    check_tensor(name, labels)
    if recording():
        return
    expected = torch.Size(shape)
    column = (*expected, 1) if len(expected) == 1 else expected
    if labels.shape not in (expected, (expected.numel(),), column):
        raise ValueError(f"{name}: found shape {list(labels.shape)}, expected {list(expected)}")


def check_classes(name: str, labels: Any, shape: Sequence[int], classes: int) -> None:
    """Raise unless `labels` are class indices below `classes` (below 0: no label), one for each item of that shape."""
    check_label_shape(name, labels, shape)
    if recording():
        return
    if labels.dtype not in INTEGER_TYPES:
        raise ValueError(f"{name}: expected class indices (torch.long), found {labels.dtype}")
    if values_readable(labels) and labels.numel() and (high := labels.max().item()) >= classes:
        raise ValueError(f"{name}: found {high}, allowed is 0 to {classes - 1}, or below 0 to ignore")
