"""Batches of a corpus for a language model: inputs, and the same one token later as targets.

Source: kimiyoung/transformer-xl, pytorch/data_utils.py, with the batch first, as the published packages give it:
`data [batch, ext_len so far + bptt]`, `target [batch, bptt]`, and how many targets there are to each row. Each iterator
is a stream: one batch is made at a time.

Order and lengths that are drawn at random come from NumPy's global generator (`numpy.random.seed`), as published.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import torch
from torch import Tensor

from ...tokenizers.options import checked_count

if TYPE_CHECKING:
    from .tokenizer import TransfoXLTokenizer

logger = logging.getLogger(__name__)

#: Inputs, targets, targets in each row.
Batch = tuple[Tensor, Tensor, int]
#: Of what is not filled; no batch that is given has it.
UNFILLED: Final = -1


class LMOrderedIterator:
    """A text in order: it is cut into as many rows as a batch has, and each batch goes on where the last one ended.

    Args:
        data: Ids of the text, [N]. What does not fit the rows is left out at the end.
        bsz: Rows of a batch.
        bptt: Targets of a row.
        device: Where the batches are to be.
        ext_len: Tokens in front of a batch that are given again, where there are so many; None for none.

    Raises:
        TypeError: `data` is no row of integers, or a number is none.
        ValueError: A number is too small, or `data` is too short for two tokens in each row.
    """

    def __init__(
        self, data: Tensor, bsz: int, bptt: int, device: str | torch.device = "cpu", ext_len: int | None = None
    ) -> None:
        self.bsz, self.bptt, self.ext_len = _sizes(bsz, bptt, ext_len)
        self.device = device
        if not isinstance(data, Tensor) or data.dim() != 1 or data.is_floating_point():
            shape = list(data.shape) if isinstance(data, Tensor) else ""
            raise TypeError(f"data must be one row of ids, an integer tensor [N], not {type(data).__name__} {shape}")
        self.n_step = data.size(0) // self.bsz
        if self.n_step < 2:
            raise ValueError(
                f"data: {data.size(0)} tokens are too few for bsz={self.bsz} rows of an input and its target"
            )
        # [batch, steps]: a view; each batch is copied when it is made.
        self._rows = data.narrow(0, 0, self.n_step * self.bsz).view(self.bsz, self.n_step)
        self.n_batch = (self.n_step + self.bptt - 1) // self.bptt

    @property
    def data(self) -> Tensor:
        """The text as the original has it, [steps, batch]."""
        return self._rows.t()

    def get_batch(self, i: int, bptt: int | None = None) -> Batch:
        """Gives the batch that begins at a step.

        Args:
            i: The step of its first input, from 0.
            bptt: Targets of a row; None as the iterator was built. At the end of the text there are fewer.

        Raises:
            TypeError: A number is none.
            ValueError: There is no target behind that step, or `bptt` is below 1.
        """
        first = checked_count("i", i, least=0)
        length = self.bptt if bptt is None else checked_count("bptt", bptt, least=1)
        if first >= self.n_step - 1:
            raise ValueError(
                f"i: {first} has no target; rows have {self.n_step} steps, so the last i is {self.n_step - 2}"
            )
        end = min(first + length, self.n_step - 1)
        data = self._rows[:, max(0, first - self.ext_len) : end]
        target = self._rows[:, first + 1 : end + 1]
        return self._sent(data), self._sent(target), end - first

    def _sent(self, rows: Tensor) -> Tensor:
        return rows.contiguous().to(self.device)

    def get_fixlen_iter(self, start: int = 0) -> Iterator[Batch]:
        """Gives batch after batch with `bptt` targets to a row, fewer in the last one.

        Args:
            start: The step that it begins at.
        """
        for i in range(start, self.n_step - 1, self.bptt):
            yield self.get_batch(i)

    def get_varlen_iter(
        self, start: int = 0, std: float = 5, min_len: int = 5, max_deviation: float = 3
    ) -> Iterator[Batch]:
        """Gives batch after batch of lengths drawn at random: around `bptt`, now and then (1 in 20) around half of it.

        A last target that would be alone is left out, as published.

        Args:
            start: The step that it begins at.
            std: Standard deviation of the lengths, in tokens.
            min_len: Least length, in tokens.
            max_deviation: Greatest length above `bptt`, in standard deviations.

        Raises:
            ValueError: `min_len` is below 1, so that it would not come to an end.
        """
        least = checked_count("min_len", min_len, least=1)
        longest = self.bptt + max_deviation * std
        i = start
        while True:
            around = self.bptt if np.random.random() < 0.95 else self.bptt / 2.0
            length = int(min(longest, max(least, int(np.random.normal(around, std)))))
            data, target, seq_len = self.get_batch(i, length)
            i += seq_len
            yield data, target, seq_len
            if i >= self.n_step - 2:
                break

    def __iter__(self) -> Iterator[Batch]:
        return self.get_fixlen_iter()


class LMShuffledIterator:
    """Sentences without an order: each row goes through sentence after sentence, and takes the next where one ends.

    Targets do not cross from one sentence into the next. When there are no more sentences to fill all rows, the rest is
    left out.

    Args:
        data: Ids of each sentence, [len]; a sentence of fewer than two tokens has no target and is passed over.
        bsz: Rows of a batch.
        bptt: Targets of a row.
        device: Where the batches are to be.
        ext_len: Tokens in front of a batch that are given again; None for none.
        shuffle: Whether the sentences come in another order each time.

    Raises:
        TypeError: A number is none.
        ValueError: A number is too small.
    """

    def __init__(
        self,
        data: Sequence[Tensor],
        bsz: int,
        bptt: int,
        device: str | torch.device = "cpu",
        ext_len: int | None = None,
        shuffle: bool = False,
    ) -> None:
        self.bsz, self.bptt, self.ext_len = _sizes(bsz, bptt, ext_len)
        if isinstance(cast("object", data), Tensor):
            raise TypeError(
                "data must be a list of sentences, a tensor of ids each, not one tensor; see LMOrderedIterator"
            )
        self.data = data
        self.device = device
        self.shuffle = shuffle

    def get_sent_stream(self) -> Iterator[Tensor]:
        """Gives sentence after sentence."""
        return _in_order(self.data, self.shuffle)

    def stream_iterator(self, sent_stream: Iterable[Tensor]) -> Iterator[Batch]:
        """Gives batch after batch of sentences.

        Args:
            sent_stream: The sentences.
        """
        sentences = (sentence for sentence in sent_stream if len(sentence) > 1)
        streams: list[Tensor | None] = [None] * self.bsz
        retained = torch.empty(self.bsz, 0, dtype=torch.long)
        while True:
            data = torch.full((self.bsz, self.bptt), UNFILLED)
            target = torch.full((self.bsz, self.bptt), UNFILLED)
            for row in range(self.bsz):
                rest = self._fill(data[row], target[row], streams[row], sentences)
                if rest is None:
                    return
                streams[row] = rest
            data = torch.cat([retained, data], dim=1)
            yield data.to(self.device), target.to(self.device), self.bptt
            retained = data[:, max(0, data.size(1) - self.ext_len) :]

    def _fill(self, data: Tensor, target: Tensor, rest: Tensor | None, sentences: Iterator[Tensor]) -> Tensor | None:
        """Fills a row, [bptt]; gives what is left of its last sentence, or None where there are no more of them."""
        done = 0
        while done < self.bptt:
            if rest is None or len(rest) <= 1:
                rest = next(sentences, None)
                if rest is None:
                    return None
            new = min(len(rest) - 1, self.bptt - done)
            data[done : done + new] = rest[:new]
            target[done : done + new] = rest[1 : new + 1]
            rest = rest[new:]
            done += new
        return rest

    def __iter__(self) -> Iterator[Batch]:
        return self.stream_iterator(self.get_sent_stream())


class LMMultiFileIterator(LMShuffledIterator):
    """Sentences of many files, one of which is held at a time: the One Billion Word corpus.

    Args:
        paths: The files, a sentence a line.
        vocab: What encodes them, with `<S>` around each sentence.
        bsz: See `LMShuffledIterator`.
        bptt: See `LMShuffledIterator`.
        device: See `LMShuffledIterator`.
        ext_len: See `LMShuffledIterator`.
        shuffle: Whether files, and the sentences of each, come in another order each time.

    Raises:
        TypeError: See `LMShuffledIterator`.
        ValueError: See `LMShuffledIterator`; or there are no files.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        vocab: "TransfoXLTokenizer",
        bsz: int,
        bptt: int,
        device: str | torch.device = "cpu",
        ext_len: int | None = None,
        shuffle: bool = False,
    ) -> None:
        super().__init__((), bsz, bptt, device, ext_len, shuffle)
        if not paths:
            raise ValueError("paths: there are no files")
        self.paths = list(paths)
        self.vocab = vocab

    def get_sent_stream(self, path: str | os.PathLike[str] | None = None) -> Iterator[Tensor]:
        """Gives the sentences of a file.

        Args:
            path: The file; None for all files, one after the other.

        Raises:
            OSError: It cannot be read.
            ValueError: It is not UTF-8.
        """
        if path is None:
            for each in self.paths:
                yield from self.get_sent_stream(each)
        else:
            yield from _in_order(cast("list[Tensor]", self.vocab.encode_file(path, add_double_eos=True)), self.shuffle)

    def __iter__(self) -> Iterator[Batch]:
        if self.shuffle:
            # The order of this time is what the next one shuffles, as in the original.
            self.paths = list(_in_order(self.paths, True))
        for path in self.paths:
            yield from self.stream_iterator(self.get_sent_stream(path))


def _sizes(bsz: int, bptt: int, ext_len: int | None) -> tuple[int, int, int]:
    return (
        checked_count("bsz", bsz, least=1),
        checked_count("bptt", bptt, least=1),
        0 if ext_len is None else checked_count("ext_len", ext_len, least=0),
    )


def _in_order(items: Sequence[object], shuffle: bool) -> Iterator:  # type: ignore[type-arg]
    """Gives the items in order, or in one drawn at random."""
    return (items[place] for place in (np.random.permutation(len(items)) if shuffle else range(len(items))))
