"""What generation needs of a model and of its cache; any class that has these methods can continue text."""

from typing import Any, Protocol

from torch import Tensor


class Cache(Protocol):
    """What was computed of earlier tokens; `nn.cache.KeyValueCache` is one."""

    def select(self, rows: Tensor) -> None:
        """Keep those rows of the batch, in that order; a row may be taken several times."""

    def clear(self) -> None:
        """Forget all tokens; asked for only where a window slides, so never without a `context_length`."""

    def drop_first(self, tokens: int) -> None:
        """Forget the oldest tokens; asked for only where they are padding of all rows, so never without a mask."""


class CausalModel(Protocol):
    """A language model that reads from left to right."""

    training: bool

    @property
    def device(self) -> Any:
        """Where ids must be."""

    def vocabulary_size(self) -> int:
        """Number of ids that it reads; scores may be for fewer, V, where some are never to be written."""

    def context_length(self) -> int | None:
        """Most tokens that one can follow from; None without a limit."""

    def new_cache(self, batch: int, length: int) -> Any:
        """A `Cache` with room for that many sequences of that many tokens."""

    def next_token_logits(self, input_ids: Tensor, cache: Any, attention_mask: Tensor | None) -> Tensor:
        """Scores [B, V] of what follows the last token of each row.

        Args:
            input_ids: [B, T] new tokens only; those before them are in the cache, and these are added to it.
            cache: From `new_cache`.
            attention_mask: [B, cached + T], 1 for tokens, 0 for padding on the left; None where there is no padding.
        """
