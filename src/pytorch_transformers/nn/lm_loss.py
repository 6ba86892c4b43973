"""The loss of a language model: each token is predicted from those before it.

With a vocabulary of 50,000 the scores of a batch are by far its largest tensor, and a loss needs them once.
`projected_loss` computes them a few rows at a time, together with their gradients, and keeps none.
"""

from typing import Any, Final

import torch
from torch import Tensor

from .checks import check_classes, values_readable
from .losses import classification_loss

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
        """Loss and gradients, piece by piece."""
        exact = torch.promote_types(rows.dtype, torch.float32)
        want_rows, want_weight = ctx.needs_input_grad[:2]
        rows_grad = torch.empty_like(rows) if want_rows else None
        weight_grad = torch.zeros_like(weight, dtype=exact) if want_weight else None
        total = rows.new_zeros((), dtype=exact)
        count = max(1, len(labels))
        step = max(1, _SCORES // weight.shape[0])
        for start in range(0, len(labels), step):
            piece, wanted = rows[start : start + step], labels[start : start + step, None]
            scores = (piece @ weight.t()).to(exact)
            norm = scores.logsumexp(-1, keepdim=True)
            total += (norm - scores.gather(-1, wanted)).sum()
            if rows_grad is None and weight_grad is None:
                continue
            slope = scores.sub_(norm).exp_()  # softmax, less 1 at the label: the slope of the loss
            slope.scatter_add_(-1, wanted, slope.new_full(wanted.shape, -1.0))
            slope = slope.div_(count).to(rows.dtype)
            if rows_grad is not None:
                torch.mm(slope, weight, out=rows_grad[start : start + step])
            if weight_grad is not None:
                if weight_grad.dtype == slope.dtype:
                    weight_grad.addmm_(slope.t(), piece)
                else:  # many small pieces added up in half precision would lose a percent
                    weight_grad += slope.t() @ piece
        ctx.save_for_backward(rows_grad, None if weight_grad is None else weight_grad.to(weight.dtype))
        return total / count

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """The gradients of `forward`, times that of what came after."""
        if torch.is_grad_enabled():  # create_graph=True
            raise RuntimeError("this loss has no second derivatives; ask for the logits too: output_logits=True")
        rows_grad, weight_grad = ctx.saved_tensors
        return _times(rows_grad, slope), _times(weight_grad, slope), None


def _times(gradient: Tensor | None, slope: Tensor) -> Tensor | None:
    """Their product; the gradient itself where the loss is the end of the graph, for the table's is a large one."""
    if gradient is None or (values_readable(slope) and slope.item() == 1.0):
        return gradient
    return gradient * slope.to(gradient.dtype)
