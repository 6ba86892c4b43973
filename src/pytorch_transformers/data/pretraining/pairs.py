"""Pairs of texts by the original's rules, as places in the corpus: no token is touched until the rows are made.

The rules are those of `instances.py`; the draws are others, each block and duplicate having its own generator, and so
are three details that matter for long documents and full use of the text:

* the short target length is drawn for each pair, not once per document, which may be a whole book;
* the second text of a random pair comes from any other document of the whole corpus, never from its own;
* what is cut off a pair that is too long is drawn as one number of tokens for each end, not token by token.
"""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from .options import InstanceOptions
from .tokens import Tokens


class Pair(NamedTuple):
    """What an input is made of; places are in the ids of a part, and lengths are in tokens.

    Fields: `first` and `first_length`, in the part whose pairs these are; `part`, `second` and `second_length`; and
    `is_random`. Without a second text `second_length` is 0.
    """

    first: int
    first_length: int
    part: int
    second: int
    second_length: int
    is_random: bool


class PairMaker:
    """Makes the pairs of one part of the corpus, for one duplicate.

    Args:
        tokens: The corpus.
        number: Of the part.
        options: What to make.
        draw: The generator of this part and duplicate.
    """

    def __init__(self, tokens: Tokens, number: int, options: InstanceOptions, draw: random.Random) -> None:
        self._tokens = tokens
        self._number = number
        self._first = tokens.parts[number]
        self._offsets: list[int] = tokens.part(number).offsets.tolist()
        self._options = options
        self._most = options.most_tokens
        self._draw = draw

    def __iter__(self) -> Iterator[Pair]:
        documents = self._tokens.documents
        end_of_part = self._first + len(self._offsets) - 1
        start = self._first
        document = bisect_right(documents, start) - 1
        of_document = self._pairs if self._options.next_sentence else self._stretches
        while start < end_of_part:
            end = min(documents[document + 1], end_of_part)
            yield from of_document(document, start - self._first, end - self._first)
            start, document = end, document + 1

    def _pairs(self, document: int, i: int, end: int) -> Iterator[Pair]:
        """The pairs of the sentences `i` to `end` of this part, which are of one document."""
        draw, offsets, most = self._draw.random, self._offsets, self._most
        while i < end:
            target = self._target(2)
            stop = min(bisect_left(offsets, offsets[i] + target, i + 1, end), end)  # one past the last sentence
            middle = i + 1 + (int(draw() * (stop - i - 1)) if stop - i >= 2 else 0)
            first, first_length = offsets[i], offsets[middle] - offsets[i]
            is_random = stop - i == 1 or draw() < 0.5
            if is_random:
                part, second, second_length = self._from_elsewhere(document, i, target - first_length)
            else:
                part, second, second_length = self._number, offsets[middle], offsets[stop] - offsets[middle]
            if first_length + second_length > most:
                from_first, from_second = excess(first_length, second_length, most)
                first += self._at_start(from_first)
                second += self._at_start(from_second)
                first_length -= from_first
                second_length -= from_second
            yield Pair(first, first_length, part, second, second_length, is_random)
            i = middle if is_random else stop

    def _target(self, least: int) -> int:
        """Tokens of text that the next input should have."""
        if self._draw.random() < self._options.short_seq_prob:
            return least + int(self._draw.random() * (self._most - least + 1))
        return self._most

    def _from_elsewhere(self, document: int, sentence: int, target: int) -> tuple[int, int, int]:
        """At least `target` tokens from another document, or all from a sentence to the end of its document or part.

        Returns:
            The part, the place in it and the length.
        """
        draw, tokens = self._draw.random, self._tokens
        if len(tokens) == 1:
            start, end = self._distant(self._first + sentence)
        else:
            other = int(draw() * (len(tokens) - 1))
            other += other >= document
            begin, end = tokens.documents[other], tokens.documents[other + 1]
            start = begin + int(draw() * (end - begin))
        number = bisect_right(tokens.parts, start) - 1
        first = tokens.parts[number]
        offsets = tokens.part(number).offsets
        begin, end = start - first, min(end - first, len(offsets) - 1)
        place = offsets[begin]
        stop = min(bisect_left(offsets, place + target, begin + 1, end), end)
        return number, place, offsets[stop] - place

    def _distant(self, sentence: int) -> tuple[int, int]:
        """A sentence at least a quarter of the only document away, counted round its end, and where to stop."""
        size = self._tokens.documents[1]
        gap = size // 4
        start = (sentence + gap + int(self._draw.random() * (size - 2 * gap))) % size
        return start, min(start + max(gap // 2, 1), size)

    def _at_start(self, count: int) -> int:
        """Of `count` tokens to be cut, how many are at the start of a text: a fair coin for each."""
        return bin(self._draw.getrandbits(count)).count("1") if count else 0

    def _stretches(self, document: int, i: int, end: int) -> Iterator[Pair]:
        """Stretches of full length one after the other; they begin elsewhere in each duplicate."""
        at, stop = self._offsets[i], self._offsets[end]
        length = 1 + int(self._draw.random() * self._most)
        while at < stop:
            length = min(length, stop - at)
            yield Pair(at, length, self._number, 0, 0, False)
            at += length
            length = self._target(1)


def excess(first: int, second: int, most: int) -> tuple[int, int]:
    """How many tokens each text loses, when the longer one, or the second of two equal ones, loses one at a time.

    Args:
        first: Tokens.
        second: Tokens.
        most: Tokens that both may have together, fewer than they have.
    """
    over, ahead = first + second - most, first - second
    alone = min(over, abs(ahead))  # until both are equally long; then in turn, the second one first
    from_first = (alone if ahead > 0 else 0) + (over - alone) // 2
    return from_first, over - from_first
