"""The loss of a language model: each token is predicted from those before it.

With a vocabulary of 50,000 the scores of a batch are by far its largest tensor, and a loss needs them once.
`projected_loss` computes them a few rows at a time, together with their gradients, and keeps none.
"""

from typing import Any, Final

import torch
from torch import Tensor

from .checks import check_classes, values_readable
from .losses import classification_loss
from .tied import note_gradient

#: Scores in memory at a time: 2^24 of float32 are 64 MiB. Fewer make the products too small to be fast.
_SCORES: Final = 1 << 24


def next_token_loss(logits: Tensor, labels: Tensor, name: str = "labels") -> Tensor:
    """Mean cross-entropy of each token against the scores one place before it.

    Args:
        logits: [..., T, V].
        labels: [..., T], usually the ids themselves; below 0 is ignored. They are shifted here.
        name: What error messages call the labels.

    Raises:
        ValueError: The shapes do not fit, or a label is V or more.
        TypeError: The labels are no tensor.
    """
    check_classes(name, labels, logits.shape[:-1], logits.shape[-1])
    labels = labels.reshape(logits.shape[:-1])
    return classification_loss(logits[..., :-1, :], labels[..., 1:], name)


def projected_loss(hidden: Tensor, weight: Tensor, labels: Tensor, name: str = "labels") -> Tensor:
    """The same from the states, without the scores of all tokens at once.

    The gradients are computed with the loss, while a piece of the scores is at hand; there are no second derivatives.

    Args:
        hidden: [..., T, H] states.
        weight: [V, H] projection onto the vocabulary.
        labels: As for `next_token_loss`.
        name: What error messages call the labels.

    Raises:
        ValueError: The shapes do not fit, or a label is V or more.
        TypeError: The labels are no tensor.
    """
    check_classes(name, labels, hidden.shape[:-1], weight.shape[0])
    labels = labels.reshape(hidden.shape[:-1])[..., 1:].reshape(-1).long()
    rows = hidden[..., :-1, :].reshape(-1, hidden.shape[-1])
    labelled = labels >= 0
    loss: Tensor = _Projected.apply(rows[labelled], weight, labels[labelled])  # type: ignore[no-untyped-call]
    return loss


class _Projected(torch.autograd.Function):
    """Mean cross-entropy of rows [N, H] times [V, H] against labels [N]."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        """The loss; the gradients wait for `backward`."""
        device = rows.device.type
        ctx.dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else rows.dtype
        want_rows, want_weight, _ = ctx.needs_input_grad
        loss, *gradients = _pieces(rows, weight, labels, want_rows, want_weight, ctx.dtype)
        # Not among the saved tensors: those stay referred to, and torch would add the gradient of the looked-up words
        # not to this one but into a third tensor of the size of the table.
        ctx.gradients = gradients
        ctx.save_for_backward(rows, weight, labels)
        return loss

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """The gradients of `forward`, times that of what came after."""
        if torch.is_grad_enabled():  # create_graph=True
            raise RuntimeError("this loss has no second derivatives; ask for the logits too: output_logits=True")
        rows, weight, labels = ctx.saved_tensors  # complains of a second time without retain_graph
        if ctx.gradients is None:
            want_rows, want_weight, _ = ctx.needs_input_grad
            _, *ctx.gradients = _pieces(rows, weight, labels, want_rows, want_weight, ctx.dtype)
        rows_grad, weight_grad = ctx.gradients
        ctx.gradients = None
        of_weight = _times(weight_grad, slope)
        if of_weight is not None:
            note_gradient(weight, of_weight)
        return _times(rows_grad, slope), of_weight, None


def _pieces(
    rows: Tensor, weight: Tensor, labels: Tensor, want_rows: bool, want_weight: bool, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Loss and gradients, piece by piece, with matrix products in `dtype`."""
    exact = torch.promote_types(rows.dtype, torch.float32)
    rows_grad = torch.empty_like(rows, dtype=dtype) if want_rows else None
    weight_grad = torch.zeros_like(weight, dtype=exact) if want_weight else None
    total = rows.new_zeros((), dtype=exact)
    count = max(1, len(labels))
    step = max(1, _SCORES // weight.shape[0])
    low_rows, low_weight = rows.to(dtype), weight.to(dtype)
    whole = low_rows.new_empty(min(step, len(labels)), weight.shape[0])  # one piece of scores, for all of them
    for start in range(0, len(labels), step):
        piece, wanted = low_rows[start : start + step], labels[start : start + step, None]
        scores = torch.mm(piece, low_weight.t(), out=whole[: len(piece)]).to(exact)
        # The softmax in place; the sum is divided by the number of rows, since each row is a share of the mean.
        scores = scores.sub_(scores.amax(-1, keepdim=True))
        total -= scores.gather(-1, wanted).sum()
        sums = scores.exp_().sum(-1, keepdim=True)
        total += sums.log().sum()
        if rows_grad is None and weight_grad is None:
            continue
        slope = scores.div_(sums.mul_(count))
        slope = slope.scatter_add_(-1, wanted, slope.new_full(wanted.shape, -1.0 / count)).to(dtype)
        if rows_grad is not None:
            torch.mm(slope, low_weight, out=rows_grad[start : start + step])
        if weight_grad is not None:
            if weight_grad.dtype == dtype:
                weight_grad.addmm_(slope.t(), piece)
            else:  # many small pieces added up in half precision would lose a percent
                weight_grad += slope.t() @ piece
    of_rows = None if rows_grad is None else rows_grad.to(rows.dtype)
    return total / count, of_rows, None if weight_grad is None else weight_grad.to(weight.dtype)


def _times(gradient: Tensor | None, slope: Tensor) -> Tensor | None:
    """Their product; the gradient itself where the loss is the end of the graph, for the table's is a large one."""
    if gradient is None or (values_readable(slope) and slope.item() == 1.0):
        return gradient
    return gradient * slope.to(gradient.dtype)
