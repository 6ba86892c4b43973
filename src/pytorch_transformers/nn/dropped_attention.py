"""Attention with dropout on a CPU, for which torch has no kernel: some heads at a time, computed again for gradients.

Scores, probabilities, draws and what is left after them are each as large as [B, A, Tq, Tk]; passed over one after the
other in main memory they take most of the time of a small model's training, and kept for the backward pass most of its
memory. Here a piece that fits into the processor's cache goes through all steps. For the gradients the draws are kept,
2 bytes a probability, and of short sequences the probabilities too; the rest is computed again (tiles as in Dao et al.
2022, arXiv:2205.14135, but without running sums).
"""

from collections.abc import Iterator
from typing import Any, Final

import torch
from torch import Tensor

from .checks import many_at_once
from .dropout import draw, kept, scale_of
from .masks import causal_mask

#: Scores of a piece: 2^18 of float32 are 1 MiB, which the second cache of a core holds.
_PIECE: Final = 1 << 18
#: Keys up to which the probabilities are kept: there computing them again takes longer than reading them.
_KEYS_KEPT: Final = 128


def attend_dropped(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, dropped: int
) -> Tensor:
    """Attention of which `dropped` of 65536 probabilities are dropped, in float32 at least.

    Args:
        query: [B, A, Tq, D].
        key: [B, A, Tk, D].
        value: [B, A, Tk, D].
        mask: Added to the scores, broadcastable to [B, A, Tq, Tk]; gets no gradient.
        causal: Whether each query sees the keys up to its own place only; then Tq is Tk.
        dropped: See `dropout.levels_dropped`.

    Returns:
        [B, A, Tq, D], in the type of `query`.
    """
    result: Tensor = _Dropped.apply(query, key, value, mask, causal, dropped)  # type: ignore[no-untyped-call]
    return result


class _Dropped(torch.autograd.Function):
    """The pieces of a batch, one after the other."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, dropped: int
    ) -> Tensor:
        """See `attend_dropped`."""
        levels = draw(torch.Size((*query.shape[:3], key.shape[2])))
        exact = torch.promote_types(query.dtype, torch.float32)
        keeps = key.shape[2] <= _KEYS_KEPT and any(ctx.needs_input_grad)
        probs = torch.empty(levels.shape, dtype=exact) if keeps else None
        ctx.save_for_backward(query, key, value, mask, levels, probs)
        ctx.causal, ctx.dropped = causal, dropped
        result = _like(query, value.shape[3])
        with torch.autocast("cpu", enabled=False):
            for piece in _pieces(query, key):
                part = _Part(piece, query, key, value, mask, levels, None, causal, dropped)
                if probs is not None:
                    probs[piece] = part.probs
                result[piece] = part.mixed()
        return result

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of query, key and value."""
        query, key, value, mask, levels, probs = ctx.saved_tensors
        with torch.autocast("cpu", enabled=False):
            # For second derivatives, and for many slopes at once, all in one piece that is not written into.
            if torch.is_grad_enabled() or many_at_once(slope):
                part = _Part(..., query, key, value, mask, levels, None, ctx.causal, ctx.dropped)
                return *part.gradients(slope), None, None, None
            results = [_like(x, x.shape[3]) for x in (query, key, value)]
            for piece in _pieces(query, key):
                part = _Part(piece, query, key, value, mask, levels, probs, ctx.causal, ctx.dropped)
                for result, gradient in zip(results, part.gradients(slope[piece]), strict=True):
                    result[piece] = gradient
        return *results, None, None, None


class _Part:
    """A piece of the batch and of the heads, in float32 at least."""

    def __init__(
        self,
        piece: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        levels: Tensor,
        probs: Tensor | None,
        causal: bool,
        dropped: int,
    ) -> None:
        self.dtype = query.dtype
        exact = torch.promote_types(query.dtype, torch.float32)
        self.scale = query.shape[3] ** -0.5
        self.query, self.key, self.value = (x[piece].to(exact) for x in (query, key, value))
        self.kept = kept(levels[piece], dropped, exact)
        self.factor = scale_of(dropped)
        if probs is not None:
            self.probs = probs[piece]
            return
        scores = (self.query * self.scale) @ self.key.transpose(-1, -2)
        if mask is not None:
            added = mask[(None,) * (4 - mask.ndim)]
            scores = scores + added.expand(*levels.shape[:2], *added.shape[2:])[piece].to(exact)
        if causal:
            scores = scores + causal_mask(query.shape[2], key.shape[2], scores)
        self.probs = torch.softmax(scores, dim=-1)

    def mixed(self) -> Tensor:
        """The values of the kept probabilities."""
        return self.probs.mul_(self.kept) @ self.value * self.factor

    def gradients(self, slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of query, key and value, given that of the result."""
        slope = slope.to(self.probs.dtype) * self.factor
        of_value = (self.probs * self.kept).transpose(-1, -2) @ slope
        of_probs = (slope @ self.value.transpose(-1, -2)).mul_(self.kept)
        of_scores = torch._softmax_backward_data(of_probs, self.probs, -1, self.probs.dtype)
        of_query = of_scores @ self.key * self.scale
        of_key = of_scores.transpose(-1, -2) @ (self.query * self.scale)
        return of_query.to(self.dtype), of_key.to(self.dtype), of_value.to(self.dtype)


def _pieces(query: Tensor, key: Tensor) -> Iterator[tuple[slice, slice]]:
    """Sequences and heads to take at a time: some whole sequences, or some heads of one."""
    batch, heads, of_head = query.shape[0], query.shape[1], max(1, query.shape[2] * key.shape[2])
    some = max(1, min(heads, _PIECE // of_head))
    sequences = max(1, _PIECE // (of_head * heads))
    for start in range(0, batch, sequences):
        for head in range(0, heads, some):
            yield slice(start, start + sequences), slice(head, head + some)


def _like(x: Tensor, width: int) -> Tensor:
    """An empty [B, A, T, width] whose heads lie side by side, as the matrices before and after attention want it."""
    batch, heads, length = x.shape[:3]
    return x.new_empty(batch, length, heads, width).transpose(1, 2)
