"""Byte pair encoding: neighbouring symbols of a word are joined, the pair that was learned first before all others.

Source: Sennrich, Haddow and Birch 2016, "Neural Machine Translation of Rare Words with Subword Units", algorithm 1; the
order in which OpenAI applies it: openai/finetune-transformer-lm, text_utils.py, and openai/gpt-2, src/encoder.py.

A round joins every occurrence of the one pair that was learned first, from left to right; then the next is looked for.
The originals look through the whole word in each round, which takes a time that grows with the square of its length.
Here the pairs wait in a heap, so that a word of a million letters takes seconds; the rounds are the same.
"""

import heapq
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise

Pair = tuple[str, str]


class Merges:
    """The pairs that are joined, in the order in which they were learned.

    Args:
        pairs: the pairs, first learned first.
    """

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self.pairs = list(pairs)
        #: Pair -> place in the order. A pair that is there twice has the later place, as in the originals.
        self.ranks: dict[Pair, int] = {pair: rank for rank, pair in enumerate(self.pairs)}

    @cached_property
    def orderly(self) -> bool:
        """Whether each pair makes a symbol of its own out of symbols that were there before, as training gives them.

        Then it makes no difference whether a round joins one occurrence or all, and the library, which joins one at a
        time, gives the same.
        """
        products: dict[str, int] = {}
        for rank, (left, right) in enumerate(self.pairs):
            if products.setdefault(left + right, rank) != rank:
                return False
        return all(products.get(part, -1) < rank for rank, pair in enumerate(self.pairs) for part in pair)

    def join(self, symbols: Sequence[str]) -> list[str]:
        """Joins symbols until no pair of neighbours is among the merges.

        Args:
            symbols: the symbols of one word.
        """
        word: list[str | None] = list(symbols)
        count = len(word)
        before, after = list(range(-1, count - 1)), list(range(1, count + 1))
        rank_of = self.ranks.get
        heap = [(rank, place) for place, pair in enumerate(pairwise(symbols)) if (rank := rank_of(pair)) is not None]
        heapq.heapify(heap)
        while heap:
            best = heap[0][0]
            joined = []
            while heap and heap[0][0] == best:
                place = heapq.heappop(heap)[1]
                left, next_place = word[place], after[place]
                right = word[next_place] if left is not None and next_place < count else None
                # One of the two may have been joined to another symbol since.
                if left is None or right is None or rank_of((left, right)) != best:
                    continue
                word[place], word[next_place] = left + right, None
                after[place] = following = after[next_place]
                if following < count:
                    before[following] = place
                joined.append(place)
            # New pairs wait for the next round, even one that was learned before this one.
            for place in joined:
                for first in (before[place], place):
                    self._push(heap, word, first, after)
        return [symbol for symbol in word if symbol is not None]

    def _push(self, heap: list[tuple[int, int]], word: list[str | None], place: int, after: list[int]) -> None:
        """Puts the pair that begins at a place on the heap, if there is one to be joined."""
        if place < 0 or after[place] >= len(word):
            return
        left, right = word[place], word[after[place]]
        if left is not None and right is not None and (rank := self.ranks.get((left, right))) is not None:
            heapq.heappush(heap, (rank, place))
