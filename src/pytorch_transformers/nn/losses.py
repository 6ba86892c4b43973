"""Losses that ignore what carries no label, and stay finite when nothing does.

A label below 0 means "no label": both -1 (google-research/bert, the classic package) and -100 (torch's own default)
are in use. A batch without any label gives a loss of 0.0 that is part of the graph, so `backward()` gives zeros.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from .checks import check_classes, check_label_shape

_IGNORED = -100


def _at_least_float32(x: Tensor) -> Tensor:
    """Half precision is too coarse for sums over a vocabulary."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def classification_loss(logits: Tensor, labels: Tensor, name: str = "labels") -> Tensor:
    """Mean cross-entropy over the labelled items.

    Args:
        logits: [..., C].
        labels: [...] or flat, class indices; below 0 is ignored.
        name: What error messages call the labels.

    Raises:
        ValueError: The shapes do not fit, or a label is C or more.
        TypeError: The labels are no tensor.
    """
    check_classes(name, labels, logits.shape[:-1], logits.shape[-1])
    labels = labels.reshape(-1).long()
    labelled = labels >= 0
    total = F.cross_entropy(
        _at_least_float32(logits.reshape(-1, logits.shape[-1])),
        labels.where(labelled, _IGNORED),
        ignore_index=_IGNORED,
        reduction="sum",
    )
    return total / labelled.sum().clamp(min=1)


def regression_loss(predictions: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error of [B, 1] or [B] predictions.

    Raises:
        ValueError: `targets` has another shape than [B] or [B, 1].
        TypeError: They are no tensor.
    """
    check_label_shape("labels", targets, predictions.shape[:1])
    predictions = _at_least_float32(predictions.reshape(-1))
    return F.mse_loss(predictions, targets.reshape(-1).to(predictions.dtype))


def span_loss(start_logits: Tensor, end_logits: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Mean of the two cross-entropies of a span (Devlin et al. 2018, section 4.2).

    A position below 0, or beyond the sequence, means that the span lies outside this window: it is ignored, as
    published. The logits are [B, T], the positions [B] or [B, 1].
    """
    losses = []
    for name, logits, position in (("start_positions", start_logits, start), ("end_positions", end_logits, end)):
        check_label_shape(name, position, logits.shape[:1])
        position = position.reshape(-1)
        inside = position.where(position < logits.shape[1], torch.full_like(position, _IGNORED))
        losses.append(classification_loss(logits, inside, name))
    return (losses[0] + losses[1]) / 2
