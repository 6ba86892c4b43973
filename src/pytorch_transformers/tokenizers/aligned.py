"""Text that remembers where each of its characters came from."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Aligned(NamedTuple):
    """A changed text, and for each of its characters the place of the character in the original that it came from."""

    text: str
    positions: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Gives the original span of the characters `start` to `end` (not included) of the changed text.

        It reaches from the first to the last character that was kept: a mark or control character that was dropped
        at either end does not belong to it.

        Args:
            start: first character.
            end: one past the last character; more than `start`.
        """
        return self.positions[start], self.positions[end - 1] + 1


def unchanged(text: str) -> Aligned:
    """Aligns a text with itself.

    Args:
        text: any text.
    """
    return Aligned(text, range(len(text)))


def translate(aligned: Aligned, table: Mapping[int, str]) -> Aligned:
    """Does what `str.translate` does, aligned.

    Args:
        aligned: the text to change.
        table: code point -> what takes its place, for every code point.
    """
    values = [table[ord(char)] for char in aligned.text]
    if all(len(value) == 1 for value in values):
        return Aligned("".join(values), aligned.positions)
    positions = [place for value, place in zip(values, aligned.positions, strict=True) for _ in value]
    return Aligned("".join(values), positions)


def lower(aligned: Aligned) -> Aligned:
    """Does what `str.lower` does, aligned.

    The whole text is lowered at once because a capital sigma becomes a final one by what stands around it.

    Args:
        aligned: the text to change.
    """
    lowered = aligned.text.lower()
    if len(lowered) == len(aligned.text):
        return Aligned(lowered, aligned.positions)
    # A few characters, such as U+0130, become two; how many does not depend on what stands around them.
    positions = [place for char, place in zip(aligned.text, aligned.positions, strict=True) for _ in char.lower()]
    return Aligned(lowered, positions)


def decompose(aligned: Aligned) -> Aligned:
    """Does what `unicodedata.normalize("NFD", ...)` does, aligned.

    Each character is taken apart, then each run of combining characters is put in canonical order (The Unicode
    Standard, section 3.11, D108 and D109); a stable sort by combining class is that order.

    Args:
        aligned: the text to change.
    """
    if aligned.text.isascii():
        return aligned
    parts = [
        (part, place)
        for char, place in zip(aligned.text, aligned.positions, strict=True)
        for part in unicodedata.normalize("NFD", char)
    ]
    classes = [unicodedata.combining(part) for part, _ in parts]
    start = 0
    while start < len(parts):
        end = start + 1
        if classes[start]:
            while end < len(parts) and classes[end]:
                end += 1
            parts[start:end] = sorted(parts[start:end], key=lambda item: unicodedata.combining(item[0]))
        start = end
    return Aligned("".join(part for part, _ in parts), [place for _, place in parts])
