"""One step of Adam: `plain_step`, which is to be read, and three faster ways to compute the same.

The rules of this package differ in a few scalars only, which `Update` holds. With gradient g, averages m and v and
weight w,

    m = beta1 m + (1 - beta1) g
    v = beta2 v + (1 - beta2) g^2
    w = w - step_size m / (sqrt(v) + eps)

and the decay, `rate * weight_decay` times the weight: of the weight as it was before the step, or after it. The epsilon
is added to the root of v as it is, with and without correction of the bias (Kingma and Ba 2014, end of section 2);
`torch.optim.AdamW` adds it to the corrected root, so its epsilon is another number.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import torch
from torch import Tensor
from torch.optim.adamw import adamw

#: Elements of a piece, for each thread: it lies in a core's own cache with its averages and what is computed from them.
_PIECE: Final = 1 << 16
#: Where the fused kernel exists, and for which types.
_FUSED_DEVICES: Final = ("cpu", "cuda")
_FUSED_TYPES: Final = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_HALF: Final = (torch.float16, torch.bfloat16)
#: Added to a norm before it divides: the constant of `torch.nn.utils.clip_grad_norm_`.
_NORM_EPSILON: Final = 1e-6


class Row(NamedTuple):
    """A weight and what belongs to it, all of one shape.

    Attributes:
        weight: The parameter, changed in place.
        gradient: Its gradient; clipping changes it in place, as in the published packages.
        first: Running average of the gradient, changed in place.
        second: Running average of its square, changed in place.
    """

    weight: Tensor
    gradient: Tensor
    first: Tensor
    second: Tensor


@dataclass(frozen=True)
class Update:
    """The scalars of one step.

    Attributes:
        rate: Learning rate of this step, the schedule's factor included.
        step_size: `rate`, times the correction of the bias where the rule has one.
        weight_decay: The decay takes `rate * weight_decay` of each weight.
        beta1: Share of the first average that stays.
        beta2: Share of the second.
        eps: Added to the root of the second average.
        decay_after: Whether the weight decays after the step, or by its value before.
        max_grad_norm: Each gradient by itself is scaled down to this length; 0 or less: not at all.
    """

    rate: float
    step_size: float
    weight_decay: float
    beta1: float
    beta2: float
    eps: float
    decay_after: bool
    max_grad_norm: float = -1.0


def take_step(rows: Iterable[Row], update: Update, fused: bool = False) -> None:
    """Apply `update` to every row.

    Args:
        rows: Weights with gradients and averages, of any devices and types.
        update: The scalars.
        fused: Use the fused kernel of torch where it fits: one pass over memory, and other rounding.
    """
    kernels: dict[tuple[torch.device, torch.dtype], list[Row]] = {}
    lists: dict[tuple[torch.device, torch.dtype], list[Row]] = {}
    for row in rows:
        kind = row.weight.device, row.weight.dtype
        # A decay that leaves nothing of a weight has no form that the kernel knows.
        if fused and update.rate * update.weight_decay < 1.0 and _fusable(row):
            kernels.setdefault(kind, []).append(row)
        elif row.weight.device.type != "cpu":
            lists.setdefault(kind, []).append(row)
        else:
            pieces_step(row, update)
    for alike in kernels.values():
        fused_step(alike, update)
    for alike in lists.values():
        list_step(alike, update)


def plain_step(row: Row, update: Update) -> None:
    """One weight, operation by operation in the order of the published packages, so with their very bits.

    In half precision all is computed in float32 and rounded at the end, where they ended in NaN: epsilon is 0 there.
    """
    if row.weight.dtype in _HALF:
        exact = Row(*(tensor.float() for tensor in row))
        plain_step(exact, update)
        for tensor, value in zip(row, exact, strict=True):
            tensor.copy_(value)
        return
    weight, gradient, first, second = row
    if update.max_grad_norm > 0:
        _clip_each([gradient], update.max_grad_norm)
    first.mul_(update.beta1).add_(gradient, alpha=1.0 - update.beta1)
    second.mul_(update.beta2).addcmul_(gradient, gradient, value=1.0 - update.beta2)
    root = second.sqrt().add_(update.eps)
    if update.decay_after:
        weight.addcdiv_(first, root, value=-update.step_size)
        if update.weight_decay > 0:
            weight.add_(weight, alpha=-update.rate * update.weight_decay)
    else:
        change = first / root
        if update.weight_decay > 0:
            change += update.weight_decay * weight
        weight.sub_(change.mul_(update.step_size))


def pieces_step(row: Row, update: Update) -> None:
    """The same piece by piece: what an operation has written is still in the cache when the next one reads it."""
    size = _PIECE * torch.get_num_threads()
    if row.weight.numel() <= size or not all(tensor.is_contiguous() for tensor in row):
        plain_step(row, update)
        return
    if update.max_grad_norm > 0:  # by the length of the whole
        _clip_each([row.gradient], update.max_grad_norm)
        update = replace(update, max_grad_norm=-1.0)
    for piece in zip(*(tensor.view(-1).split(size) for tensor in row), strict=True):
        plain_step(Row(*piece), update)


def list_step(rows: Sequence[Row], update: Update) -> None:
    """The same for all weights of one device and type at once: on accelerators a call costs more than its work."""
    if rows[0].weight.dtype in _HALF:
        exact = [Row(*(tensor.float() for tensor in row)) for row in rows]
        list_step(exact, update)
        for column, values in zip(zip(*rows, strict=True), zip(*exact, strict=True), strict=True):
            torch._foreach_copy_(list(column), list(values))
        return
    weights, gradients, firsts, seconds = (list(column) for column in zip(*rows, strict=True))
    if update.max_grad_norm > 0:
        _clip_each(gradients, update.max_grad_norm)
    torch._foreach_mul_(firsts, update.beta1)
    torch._foreach_add_(firsts, gradients, alpha=1.0 - update.beta1)
    torch._foreach_mul_(seconds, update.beta2)
    torch._foreach_addcmul_(seconds, gradients, gradients, 1.0 - update.beta2)
    roots = torch._foreach_sqrt(seconds)
    torch._foreach_add_(roots, update.eps)
    if update.decay_after:
        torch._foreach_addcdiv_(weights, firsts, roots, -update.step_size)
        if update.weight_decay > 0:
            torch._foreach_add_(weights, weights, alpha=-update.rate * update.weight_decay)
    else:
        changes = torch._foreach_div(firsts, roots)
        if update.weight_decay > 0:
            torch._foreach_add_(changes, torch._foreach_mul(weights, update.weight_decay))
        torch._foreach_mul_(changes, update.step_size)
        torch._foreach_sub_(weights, changes)


def fused_step(rows: Sequence[Row], update: Update) -> None:
    """All weights of one device and type in one pass over memory, rounded otherwise than `plain_step`.

    The decay of a step is often less than the last bit of a weight. `plain_step` adds it to the step before it rounds,
    where the rule is so; here it is a factor, rounded by itself: in float32 a decay below 3e-8 of the weight is none.

    The kernel computes w = w (1 - lr d) - lr m / (sqrt(v) + eps) when it has no bias to correct, and it has none after
    infinitely many steps. With decay = rate * weight_decay, what is asked for is

        w (1 - decay) - step_size m / (...)                  for a decay of the weight before the step
        (w - step_size m / (...)) (1 - decay)                for a decay after it
    """
    weights, gradients, firsts, seconds = (list(column) for column in zip(*rows, strict=True))
    if update.max_grad_norm > 0:
        _clip_each(gradients, update.max_grad_norm)
    decay = update.rate * update.weight_decay
    size = update.step_size * (1.0 - decay) if update.decay_after else update.step_size
    steps = torch.full((), math.inf, device=weights[0].device)
    adamw(
        weights,
        gradients,
        firsts,
        seconds,
        [],
        [steps] * len(weights),
        fused=True,
        amsgrad=False,
        beta1=update.beta1,
        beta2=update.beta2,
        lr=size,
        weight_decay=decay / size if decay else 0.0,
        eps=update.eps,
        maximize=False,
    )


def _fusable(row: Row) -> bool:
    """Whether the kernel, which walks through plain memory, fits."""
    weight = row.weight
    return (
        weight.device.type in _FUSED_DEVICES
        and weight.dtype in _FUSED_TYPES
        and all(
            tensor.is_contiguous() and tensor.dtype == weight.dtype and tensor.device == weight.device for tensor in row
        )
    )


def _clip_each(gradients: list[Tensor], limit: float) -> None:
    """Scale gradients of one device down to the length `limit`, each by itself, in place."""
    exact = torch.promote_types(gradients[0].dtype, torch.float32)  # half precision would end at 65,504
    norms = torch.stack(torch._foreach_norm(gradients, dtype=exact))
    factors = (limit / (norms + _NORM_EPSILON)).clamp_(max=1.0)
    if factors.device.type == "cpu":  # reading them costs nothing here, and most need no pass over memory
        for gradient, factor in zip(gradients, factors.tolist(), strict=True):
            if factor != 1.0:
                gradient.mul_(factor)
    else:
        torch._foreach_mul_(gradients, list(factors.to(gradients[0].dtype).unbind()))
