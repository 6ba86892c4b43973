"""Lines of text for models of words, in which a token ends each line.

Transformer-XL learned from text whose lines end with `<eos>`, while its tokenizer takes a line end for a space like
others. That token says nothing about the end of a text: what follows is the next line.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .text import Tokenizer

#: What ends a line, as for Python's files.
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
#: Tokens of a line after which the oldest are looked at no more.
_LONGEST: Final = 512


class Lines:
    r"""A tokenizer whose texts have lines: `\n` is a token in both directions.

    A text starts where a line does, so that token also begins one; none ends a text.

    Args:
        tokenizer: The tokenizer of what stands in a line.
        line_end: The id that ends one.
    """

    def __init__(self, tokenizer: "Tokenizer", line_end: int) -> None:
        self._tokenizer = tokenizer
        self.line_end = line_end
        #: Whether a word may change how those before it are joined: signs (`1 @,@ 000`) and pairs of quotes.
        self.rejoins = bool(getattr(tokenizer, "punctuation", False))

    @property
    def bos_token_id(self) -> int | None:
        """The id that ends the line before a text."""
        return self.line_end

    @property
    def eos_token_id(self) -> int | None:
        """None: a text has no end."""
        return None

    def __len__(self) -> int:
        return len(self._tokenizer)

    def encode(self, text: str, /, *, add_special_tokens: bool) -> list[int]:
        """The ids of a text."""
        ids: list[int] = []
        for number, line in enumerate(_LINE_END.split(text)):
            ids += [self.line_end] if number else []
            ids += self._tokenizer.encode(line, add_special_tokens=add_special_tokens)
        return ids

    def decode(self, token_ids: Sequence[int], /, *, clean_up_tokenization_spaces: bool) -> str:
        """The text of ids."""
        lines: list[list[int]] = [[]]
        for token in token_ids:
            if token == self.line_end:
                lines.append([])
            else:
                lines[-1].append(token)
        clean = clean_up_tokenization_spaces
        return "\n".join(
            self._tokenizer.decode(line, clean_up_tokenization_spaces=clean) if line else "" for line in lines
        )


class LinePieces:
    """Decodes tokens one by one, each with its whole line: for tokenizers that join words anew with each further one.

    What the newest word brought waits for the one after it.

    Args:
        lines: The tokenizer.
        before: Ids that the first token follows; their text is not repeated.
    """

    def __init__(self, lines: Lines, before: Iterable[int]) -> None:
        self._lines = lines
        last = list(takewhile(lambda token: token != lines.line_end, reversed(list(before))))
        self._begin(last[::-1])

    def _begin(self, line: list[int]) -> None:
        self._ids = line
        self._text = self._decode()
        self._given = len(self._text)  # characters that are out already

    def add(self, token: int) -> str:
        """What can be read with one token more; it may be empty."""
        if token == self._lines.line_end or len(self._ids) >= _LONGEST:
            piece = self.rest()
            self._begin([])
            if token == self._lines.line_end:
                return piece + "\n"
            self._begin([token])
            return f"{piece} {self._text}"
        before, self._ids = self._text, [*self._ids, token]
        self._text = self._decode()
        stays = _common(before, self._text)
        self._given = min(self._given, stays)
        piece, self._given = self._text[self._given : stays], stays
        return piece

    def rest(self) -> str:
        """What was held back, at the end."""
        return self._text[self._given :]

    def _decode(self) -> str:
        return self._lines.decode(self._ids, clean_up_tokenization_spaces=False)


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))
