"""How the tokens of a batch lie in memory: padded to a rectangle, or packed without the padding.

Everything in a Transformer layer but attention works on single tokens, so it runs on any layout; attention asks the
layout which tokens belong together. Packing saves the work on padding (in MRPC padded to 128 tokens, more than half).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import attend, merge_heads
from .masks import additive_key_mask

_KEYS_AT_A_TIME: Final = 16
#: Tokens up to which the wider rows cost less than they save, as measured.
_LONGEST_WIDENED: Final = 64


@dataclass(frozen=True)
class Padded:
    """The usual rectangle [B, T, ...]; `mask` [B, 1, 1, T] is added to the scores, None when nothing is padded."""

    mask: Tensor | None

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        dropout: float = 0.0,
        head_mask: Tensor | None = None,
        need_probs: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attention of [B, Tq, A, D] over [B, T, A, D].

        Returns:
            [B, Tq, A * D] and, on request, the probabilities [B, A, Tq, T].
        """
        q, k, v = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)  # [B, A, T, D]
        context, probs = attend(q, k, v, mask=self.mask, dropout=dropout, head_mask=head_mask, need_probs=need_probs)
        return merge_heads(context), probs

    def first(self, x: Tensor) -> Tensor:
        """The first token of each sequence, still as a sequence: [B, T, H] -> [B, 1, H]."""
        return x[:, :1]

    def first_in_batch_order(self, x: Tensor) -> Tensor:
        """What a layer made of `first`, one row a sequence: [B, 1, H] -> [B, H]."""
        return x[:, 0]

    def restore(self, x: Tensor) -> Tensor:
        """Back to the rectangle: nothing to do."""
        return x


def _attend_run(query: Tensor, key: Tensor, value: Tensor, start: int, length: int) -> Iterator[Tensor]:
    """Attention of one run of equally long sequences on the CPU, without gradients.

    torch's CPU kernel computes the softmax of 16 keys at a time and what is left of a row one by one, which for the
    lengths of sentences takes most of its time. So each sequence is given the keys that follow it up to a multiple of
    16, which cost no copy, and a mask hides them. The last sequences of the batch have too few followers and go plain.

    Args:
        query: [count, A, Tq, D].
        key: [N, A, D], all sequences of the batch; likewise `value`.
        start: Row of the first token of the run.
        length: Tokens of each sequence.

    Yields:
        Contexts of the next sequences, [some, A, Tq, D].
    """
    count = query.shape[0]
    wide = -(-length // _KEYS_AT_A_TIME) * _KEYS_AT_A_TIME
    helped = wide > length and length <= _LONGEST_WIDENED
    widened = min(count, max(0, (key.shape[0] - start - wide) // length + 1)) if helped else 0
    if widened:
        hidden = query.new_zeros(wide)
        hidden[length:] = float("-inf")
        k, v = (_windows(x, start, widened, length, wide) for x in (key, value))
        yield F.scaled_dot_product_attention(query[:widened], k, v, attn_mask=hidden.view(1, 1, 1, wide))
    if widened < count:
        k, v = (_windows(x, start + widened * length, count - widened, length, length) for x in (key, value))
        yield F.scaled_dot_product_attention(query[widened:], k, v)


def _windows(x: Tensor, start: int, count: int, step: int, width: int) -> Tensor:
    """Views [count, A, width, D] of [N, A, D]: windows of `width` rows, the next one `step` rows after the last."""
    (_, A, D), (row, head, place) = x.shape, x.stride()
    return x.as_strided((count, A, width, D), (step * row, head, row, place), x.storage_offset() + start * row)


def rows_to_add(rows: int, like: Tensor) -> int:
    """How many rows to add to that many, so that a training meets the same numbers of rows again.

    On a CPU oneDNN compiles its kernels for each number of rows anew, which takes 5 ms and more for each product of
    each layer; the numbers that are left differ by 2 to 3 %. Elsewhere, and without gradients, none.
    """
    if like.device.type != "cpu" or not torch.is_grad_enabled():
        return 0
    return -rows % max(1, 1 << (rows.bit_length() - 6)) if rows >= 64 else 0


@dataclass(frozen=True)
class Packed:
    """Real tokens only, [N, ...]: the sequences stand one after the other, shorter ones first.

    Sequences of one length form a run, which is a rectangle without padding: attention over it needs no mask and no
    copy. Sorting by length makes the runs long; `restore` and `first_in_batch_order` undo it. In training on a CPU a
    few more rows may follow, see `rows_to_add`: N counts them, attention gives 0 there, `restore` leaves them out.
    """

    rows: (
        Tensor  # [N] index of each packed token in the flattened rectangle, b * T + t; what is added repeats the first
    )
    starts: Tensor  # [B] where each sequence starts among the packed tokens, shortest first
    inverse: Tensor  # [B] place in that order of each sequence of the batch
    runs: tuple[tuple[int, int], ...]  # (sequences, their length)
    shape: tuple[int, int]  # (B, T)
    real: int  # how many of the rows are tokens

    @classmethod
    def from_mask(cls, attention_mask: Tensor) -> "Packed":
        """Read the layout off [B, T] marks (1 real, 0 padding); the real tokens of a row need not be adjacent.

        It looks at the values of the mask, so on an accelerator it waits for the device once.
        """
        B, T = attention_mask.shape
        real = attention_mask.bool()
        lengths, order = real.sum(dim=1).sort(stable=True)
        at = real[order].flatten().nonzero()[:, 0]  # [N], in the sorted rectangle
        rows = order[at // T] * T + at % T
        values, counts = lengths.unique_consecutive(return_counts=True)
        runs = tuple(zip(counts.tolist(), values.tolist(), strict=True))
        tokens = len(rows)
        if added := rows_to_add(tokens, attention_mask):
            rows = torch.cat([rows, rows[:1].expand(added)])
        return cls(rows, lengths.cumsum(0) - lengths, order.argsort(), runs, (B, T), tokens)

    def pack(self, x: Tensor) -> Tensor:
        """[B, T, ...] -> [N, ...]."""
        return x.flatten(0, 1).index_select(0, self.rows)

    def pack_labels(self, labels: Tensor) -> Tensor:
        """[B, T] -> [real]: what is added has no label."""
        return labels.flatten().index_select(0, self.rows[: self.real])

    def restore(self, x: Tensor) -> Tensor:
        """[N, ...] -> [B, T, ...], zeros at padded positions."""
        flat = x.new_zeros(self.shape[0] * self.shape[1], *x.shape[1:])
        return flat.index_copy(0, self.rows[: self.real], x[: self.real]).unflatten(0, self.shape)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        causal: bool = False,
        dropout: float = 0.0,
        head_mask: Tensor | None = None,
        need_probs: bool = False,
    ) -> tuple[Tensor, None]:
        """Attention within each sequence, of [N, A, D], or [B, A, D] for `first` tokens only, over [N, A, D].

        With `causal` a token sees those of its sequence up to itself; all of them ask then.

        Returns:
            [N, A * D], or [B, A * D], and no probabilities.

        Raises:
            ValueError: Probabilities were asked for: sequences of different length have no common rectangle.
        """
        if need_probs:
            raise ValueError("attention probabilities need the padded layout")
        if key.device.type != "cpu":
            return self._attend_padded(query, key, value, dropout, head_mask, causal), None
        firsts_only = query.shape[0] != key.shape[0]
        sizes = [count * length for count, length in self.runs]
        added = len(self.rows) - self.real
        if added:
            key, value = key[: self.real], value[: self.real]
            query = query if firsts_only else query[: self.real]
        queries = query.split([count for count, _ in self.runs] if firsts_only else sizes)
        plain = torch.is_grad_enabled() or head_mask is not None or dropout > 0 or causal
        contexts: list[Tensor] = []
        if plain:
            for (count, _), *qkv in zip(self.runs, queries, key.split(sizes), value.split(sizes), strict=True):
                # [count * length, A, D] -> [count, A, length, D]
                q, k, v = (x.unflatten(0, (count, -1)).transpose(1, 2) for x in qkv)
                context, _ = attend(q, k, v, causal=causal, dropout=dropout, head_mask=head_mask)
                contexts.append(merge_heads(context).flatten(0, 1))
        else:
            start = 0
            for (count, length), q in zip(self.runs, queries, strict=True):
                q = q.unflatten(0, (count, -1)).transpose(1, 2)
                contexts += [merge_heads(x).flatten(0, 1) for x in _attend_run(q, key, value, start, length)]
                start += count * length
        if added and not firsts_only:
            contexts.append(contexts[0].new_zeros(added, contexts[0].shape[1]))
        return (contexts[0] if len(contexts) == 1 else torch.cat(contexts)), None

    def _attend_padded(
        self, query: Tensor, key: Tensor, value: Tensor, dropout: float, head_mask: Tensor | None, causal: bool = False
    ) -> Tensor:
        """One masked call in place of a call a run: an accelerator prefers one large kernel to many small ones."""
        if causal:  # padding is on the right, where no token looks
            q, k, v = (self.restore(x).transpose(1, 2) for x in (query, key, value))
            context, _ = attend(q, k, v, causal=True, dropout=dropout, head_mask=head_mask)
            return self.pack(merge_heads(context))
        flat = key.new_zeros(self.shape[0] * self.shape[1])
        mask = additive_key_mask(flat.index_fill(0, self.rows, 1.0).view(self.shape), key.dtype)
        rectangle = Padded(mask)
        if query.shape[0] != key.shape[0]:
            context, _ = rectangle.attend(
                query.index_select(0, self.inverse)[:, None],
                self.restore(key),
                self.restore(value),
                dropout=dropout,
                head_mask=head_mask,
            )
            return context[:, 0].index_select(0, self.inverse.argsort())
        q, k, v = (self.restore(x) for x in (query, key, value))
        context, _ = rectangle.attend(q, k, v, dropout=dropout, head_mask=head_mask)
        return self.pack(context)

    def first(self, x: Tensor) -> Tensor:
        """The first token of each sequence, shortest sequence first: [N, H] -> [B, H]."""
        return x.index_select(0, self.starts)

    def first_in_batch_order(self, x: Tensor) -> Tensor:
        """What a layer made of `first`, in the order of the batch: [B, H] -> [B, H]."""
        return x.index_select(0, self.inverse)


Layout = Padded | Packed
