"""A memory of what texts came to: most words were met before, and finding out costs far more than a look-up."""

from collections.abc import Callable
from typing import Final

#: How many texts one memory holds; text repeats itself. An entry takes about 200 bytes.
REMEMBERED: Final = 100_000

Ids = tuple[int, ...]


class Memory(dict[str, Ids]):
    """Text -> ids, found out when they are first asked for. Threads may share it: at worst two find out the same.

    Args:
        find: what finds the ids of a text.
        longest: longest text in characters that is remembered; longer ones hardly ever come again.
    """

    def __init__(self, find: Callable[[str], Ids], longest: int) -> None:
        super().__init__()
        self._find = find
        self._longest = longest

    def __missing__(self, text: str) -> Ids:
        ids = self._find(text)
        if len(self) < REMEMBERED and len(text) <= self._longest:
            self[text] = ids
        return ids
