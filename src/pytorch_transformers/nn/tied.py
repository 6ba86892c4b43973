"""A table of words that a model looks up and projects onto: one matrix, whose gradient comes from both.

The projection gives a gradient of all words. torch makes another one for the lookup, zeros but for the few words of the
batch, and adds the two: for 50,000 words of 768 values 150 MB, written, read and added, for a thousand rows. Here the
lookup adds its rows to the gradient of the projection, which the backward pass comes to first and torch holds until all
of its parts are there.
"""

import weakref
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .checks import recording, transforming


class _Given:
    """The gradients of tables, by their ids, that a backward pass has made already: a slot for the latest pass.

    Passes in several threads take it from each other, and then make gradients of zeros as torch does. It is read and
    written as a whole, so that none finds the gradients of another.
    """

    latest: tuple[int, Mapping[int, "weakref.ref[Tensor]"]] = (-1, {})


def note_gradient(table: Tensor, gradient: Tensor) -> None:
    """Say, in the backward pass of a projection, that it returns the `gradient` [V, H] of a `table`."""
    task, key = _running(), _identity(table)
    if task < 0 or key is None:
        return
    latest, of_table = _Given.latest
    _Given.latest = task, {**(of_table if latest == task else {}), key: weakref.ref(gradient)}


def _noted(key: int | None) -> Tensor | None:
    """The gradient of that table, if torch still has it for its sum: another tensor may have taken its place."""
    latest, of_table = _Given.latest
    found = of_table.get(key) if key is not None and latest == _running() and not torch.is_grad_enabled() else None
    gradient = None if found is None else found()
    # Two refer to it: torch, and this function. A hook that keeps gradients would keep it alive for Python alone.
    return gradient if gradient is not None and _references(gradient) == 2 else None


def _identity(table: Tensor) -> int | None:
    """A key for a table that all of its users see as the same tensor: what is computed for each use has another id."""
    return id(table) if isinstance(table, nn.Parameter) and table.is_leaf and table.is_cpu else None


def _references(x: Tensor) -> int:
    """How many hold the tensor, all of Python as one; torch has no public name for it, and without it 0."""
    count = getattr(x, "_use_count", None)
    return 0 if count is None else int(count())


def _running() -> int:
    """The number of the backward pass that this is part of; torch has no public name for it, and without it -1."""
    number = getattr(torch._C, "_current_graph_task_id", None)
    return -1 if number is None else int(number())


class TiedEmbedding(nn.Embedding):
    """`torch.nn.Embedding` for a table that is a projection, too."""

    def forward(self, input: Tensor) -> Tensor:  # the name there
        """Ids [...] -> vectors [..., H]."""
        special = (self.padding_idx, self.max_norm) != (None, None) or self.scale_grad_by_freq or self.sparse
        if special or recording() or transforming() or not torch.is_grad_enabled():
            return super().forward(input)
        vectors: Tensor = _LookUp.apply(input, self.weight)  # type: ignore[no-untyped-call]
        return vectors


class _LookUp(torch.autograd.Function):
    """`F.embedding`, whose gradient is added to that of the projection where there is one."""

    @staticmethod
    def forward(ctx: Any, ids: Tensor, table: Tensor) -> Tensor:
        """[...] and [V, H] -> [..., H]."""
        ctx.save_for_backward(ids)
        ctx.words, ctx.table = len(table), _identity(table)
        return F.embedding(ids, table)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[None, Tensor | None]:
        """The gradient of the table, or None where it has been added."""
        (ids,) = ctx.saved_tensors
        gradient = _noted(ctx.table)
        if gradient is None:
            return None, torch.ops.aten.embedding_dense_backward(slope, ids, ctx.words, -1, False)
        gradient.index_add_(0, ids.reshape(-1), slope.reshape(-1, slope.shape[-1]).to(gradient.dtype))
        return None, None


class TiedLinear(nn.Linear):
    """A projection onto the vocabulary, [..., H] -> [..., V], without a bias, whose matrix is the table of words.

    Args:
        width: Size of the hidden states, H.
        words: Size of the vocabulary, V.
    """

    def __init__(self, width: int, words: int) -> None:
        super().__init__(width, words, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., V]."""
        plain = recording() or transforming() or torch.is_autocast_enabled(hidden.device.type)
        if plain or not torch.is_grad_enabled():
            return super().forward(hidden)
        scores: Tensor = _Projection.apply(hidden, self.weight)  # type: ignore[no-untyped-call]
        return scores


class _Projection(torch.autograd.Function):
    """`F.linear`, except that the gradient of the matrix is no view of another tensor.

    torch adds a second gradient, here that of the looked-up embeddings, in place to what nothing else refers to. That
    of `F.linear` is the transpose of a tensor, so the sum would be a third tensor of the size of the table.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        """[..., in] and [out, in] -> [..., out]."""
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The gradients, given that of the result."""
        x, weight = ctx.saved_tensors
        want_x, want_weight = ctx.needs_input_grad
        rows, x_rows = slope.reshape(-1, slope.shape[-1]), x.reshape(-1, x.shape[-1])
        of_weight = rows.t() @ x_rows if want_weight else None
        if of_weight is not None:
            note_gradient(weight, of_weight)
        return slope @ weight if want_x else None, of_weight
