"""Removing attention heads for good (Michel et al. 2019, arXiv:1905.10650)."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def kept_columns(heads: int, head_size: int, remove: Iterable[int]) -> Tensor:
    """Indices along an axis of size A * D that belong to heads which stay.

    Args:
        heads: Number of heads now, A.
        head_size: Size of one head, D.
        remove: Heads to remove, counted from 0 among the heads there are now.
    """
    removed = set(remove)
    kept = [head for head in range(heads) if head not in removed]
    return torch.cat([torch.arange(head * head_size, (head + 1) * head_size) for head in kept])


def prune_linear_layer(layer: nn.Linear, index: Tensor, dim: int = 0) -> nn.Linear:
    """Keep the rows (`dim` 0, outputs) or columns (`dim` 1, inputs) of `layer` that `index` lists, in place.

    Returns:
        The same layer.
    """
    index = index.to(layer.weight.device)
    layer.weight = nn.Parameter(layer.weight.detach().index_select(dim, index), layer.weight.requires_grad)
    if layer.bias is not None and dim == 0:
        layer.bias = nn.Parameter(layer.bias.detach().index_select(0, index), layer.bias.requires_grad)
    layer.out_features, layer.in_features = layer.weight.shape
    return layer
