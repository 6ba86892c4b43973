"""What Transformer-XL remembers of earlier segments, in the form that costs nothing to use again.

The published form is what went into each layer, [M, B, H]; its keys and values are computed anew for every segment.
`TransfoXLCache` keeps the keys and values themselves: for text generation, where a segment is one token, and for
evaluation, where the memory is many times as long as a segment.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

#: Makes the projected distances [A, D, K + 1] of a layer from sinusoids [K + 1, H].
Project = Callable[[Tensor], Tensor]


class TransfoXLCache:
    """Keys and values of a window of tokens that moves along the text, written in place: no gradients go through it.

    It is good for one model, whose weights and clamp_len may not change meanwhile.

    Args:
        empty: [L, 2, A, D], keys and values of a state of zeros in each layer: what the memory holds at the start.
        batch: Number of sequences, B.
        memory: Tokens that are remembered, M.
        room: Tokens that can be added before the window has to be moved back, which is a copy.
        zeros_seen: Whether the zeros of the memory at the start are attended to, as in the original.
        sinusoids: Gives the sinusoids [K + 1, H] of distances K to 0.

    Attributes:
        length: Tokens of the memory, M.
        tokens: Tokens that came so far, those that were forgotten included.
        zeros_seen: See above.
    """

    def __init__(
        self,
        empty: Tensor,
        batch: int,
        memory: int,
        room: int,
        sinusoids: Callable[[int], Tensor],
        *,
        zeros_seen: bool = True,
    ) -> None:
        self.length = memory
        self.tokens = self._end = 0  # `clear` begins
        self.zeros_seen = zeros_seen
        self._empty = empty
        self._sinusoids = sinusoids
        self._layers = [self._allocated(layer, batch, memory + max(1, room)) for layer in empty]
        self.clear()
        self._relative: list[Tensor | None] = [None] * len(self._layers)

    @staticmethod
    def _allocated(like: Tensor, batch: int, columns: int) -> Tensor:
        two, heads, size = like.shape
        return like.new_empty(two, batch, heads, columns, size)

    @property
    def layers(self) -> int:
        """Number of layers, L."""
        return len(self._layers)

    @property
    def batch(self) -> int:
        """Number of sequences, B."""
        return self._layers[0].shape[1] if self._layers else 0

    def make_room(self, tokens: int) -> None:
        """Prepare for that many new tokens: move the window to the front where they don't fit behind it."""
        for number, layer in enumerate(self._layers):
            columns = layer.shape[3]
            if self._end + tokens <= columns:
                return
            kept = layer[:, :, :, self._end - self.length : self._end]
            if self.length + tokens > columns:
                self._layers[number] = self._allocated(self._empty[number], layer.shape[1], self.length + 2 * tokens)
                self._relative[number] = None
            elif self._end < 2 * self.length:  # it overlaps the place where it goes
                kept = kept.clone()
            self._layers[number][:, :, :, : self.length] = kept
        self._end = self.length

    def layer(self, number: int) -> "LayerMemory":
        """The part of one layer."""
        return LayerMemory(self, number)

    def advance(self, tokens: int) -> None:
        """Say that every layer has written that many tokens, and that they are to be remembered."""
        self._end += tokens
        self.tokens += tokens

    def select(self, rows: Tensor) -> None:
        """Keep those rows of the batch, in that order; a row may be taken several times."""
        for number, layer in enumerate(self._layers):  # one at a time, so that no more than one is there twice
            self._layers[number] = layer.index_select(1, rows)

    def clear(self) -> None:
        """Forget all tokens."""
        self.tokens, self._end = 0, self.length
        for layer, values in zip(self._layers, self._empty, strict=True):
            layer[:, :, :, : self.length] = values[:, None, :, None]

    def drop_first(self, tokens: int) -> None:
        """Count that many of the oldest tokens no more: they are padding of all rows, which says nothing anyway."""
        self.tokens -= tokens


class LayerMemory(NamedTuple):
    """One layer of a `TransfoXLCache`."""

    cache: TransfoXLCache
    number: int

    @property
    def values(self) -> Tensor:
        """Keys and values [2, B, A, columns, D]; which columns are the memory changes as it moves."""
        return self.cache._layers[self.number]

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write new keys and values [B, T, A, D] behind the memory; both together, [B, A, M + T, D] each, no copy."""
        cache, layer = self.cache, self.values
        start, end = cache._end - cache.length, cache._end + key.shape[1]
        layer[0, :, :, cache._end : end] = key.detach().transpose(1, 2)
        layer[1, :, :, cache._end : end] = value.detach().transpose(1, 2)
        return layer[0, :, :, start:end], layer[1, :, :, start:end]

    def relative(self, keys: int, project: Project) -> Tensor:
        """The projected distances [A, D, K + 1] of that many keys; computed once, as they are always the same."""
        cache = self.cache
        table = cache._relative[self.number]
        if table is None:
            longest = cache._layers[self.number].shape[3]
            table = cache._relative[self.number] = project(cache._sinusoids(longest)).detach().contiguous()
        return table[:, :, table.shape[2] - keys - 1 :]
