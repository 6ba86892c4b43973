"""Keys and values of tokens that were computed already, so that each step computes its new tokens only.

Two forms. The published one is a tensor [2, B, A, T, D] a layer, keys then values, to which each step joins its own: a
copy of everything at every step. `KeyValueCache` has room for all steps from the start, and a step writes into it.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class KeyValueCache:
    """Room for the keys and values of all layers, written in place: gradients can't go through it.

    Args:
        heads: Attention heads of each layer, A; fewer in layers that were pruned.
        batch: Number of sequences, B.
        length: Tokens that fit, T.
        head_size: Size of a head, D.
        dtype: Type of the values.
        device: Where they are.

    Attributes:
        length: Tokens that are in it, in every layer.
        room: Tokens that fit.
    """

    def __init__(
        self, heads: list[int], batch: int, length: int, head_size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.length = 0
        self.room = length
        self._layers = [torch.empty(2, batch, A, length, head_size, dtype=dtype, device=device) for A in heads]

    @property
    def layers(self) -> int:
        """Number of layers, L."""
        return len(self._layers)

    def layer(self, number: int) -> "Slot":
        """The part of one layer."""
        return Slot(self._layers[number], self.length)

    def advance(self, tokens: int) -> None:
        """Say that every layer has written that many tokens."""
        self.length += tokens

    def select(self, rows: Tensor) -> None:
        """Keep those rows of the batch, in that order; a row may be taken several times."""
        for number, layer in enumerate(self._layers):  # one at a time, so that no more than one is there twice
            self._layers[number] = layer.index_select(1, rows)

    def clear(self) -> None:
        """Forget all tokens."""
        self.length = 0

    def drop_first(self, tokens: int) -> None:
        """Forget the oldest tokens."""
        kept = self.length - tokens
        for layer in self._layers:
            layer[:, :, :, :kept] = layer[:, :, :, tokens : self.length].clone()
        self.length = kept


class Slot(NamedTuple):
    """One layer of a `KeyValueCache`."""

    values: Tensor
    length: int

    def extend(self, present: Tensor) -> Tensor:
        """Write new keys and values [2, B, A, T, D] behind those that are there; all of them, without a copy."""
        end = self.length + present.shape[3]
        self.values[:, :, :, self.length : end] = present
        return self.values[:, :, :, :end]


#: What a layer continues from: nothing, the published tensor [2, B, A, T, D], or its part of a cache.
Past = Tensor | Slot | None


def extended(present: Tensor, past: Past) -> Tensor:
    """Old and new keys and values together: [2, B, A, T, D] after what `past` holds."""
    if past is None:
        return present
    if isinstance(past, Slot):
        return past.extend(present)
    return torch.cat((past, present), dim=3)
