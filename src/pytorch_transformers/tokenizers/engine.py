"""What an engine is: the way from plain text, without special or added tokens, to pieces with ids.

There are two: the readable one (`reference.py`) and the `tokenizers` library (`rust.py`), which gives the same result
faster. Special tokens, added tokens, truncation and padding are not theirs, so that both share them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from .aligned import Aligned


class Piece(NamedTuple):
    """One token of a text.

    Fields: `id`; `token`; `start` and `end`, its span in the text in code points; `word`, the number of its word.
    """

    id: int
    token: str
    start: int
    end: int
    word: int


class Engine(Protocol):
    """Turns plain texts into ids."""

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Gives the ids of each text.

        Args:
            texts: plain texts.
        """

    def pieces(self, texts: Sequence[str]) -> list[list[Piece]]:
        """Gives the tokens of each text with their ids, spans and words.

        Args:
            texts: plain texts.
        """

    def normalize(self, text: str) -> str:
        """Gives the text in the form in which added tokens are looked for.

        Args:
            text: a plain text.
        """


class Reference(Engine, Protocol):
    """The readable engine of a family; it can also continue from text that is normalised and aligned already."""

    def normalize_aligned(self, text: str) -> Aligned:
        """Does the same as `normalize` and keeps the places of the characters.

        Args:
            text: a plain text.
        """

    def pieces_between(self, aligned: Aligned, start: int, end: int) -> list[Piece]:
        """Gives the tokens of a part of a normalised text, with spans in the original.

        Args:
            aligned: what `normalize_aligned` gave.
            start: first character of the part.
            end: one past its last character.
        """

    def spans(self, text: str) -> list[tuple[str, int, int]]:
        """Gives the words of a text as the model of the engine sees them, with their spans in the text.

        Args:
            text: a plain text.
        """

    def library_steps(self) -> tuple[Any, Any]:
        """Builds the normaliser (or None) and the pre-tokenizer of the `tokenizers` library that do the same."""

    def library_tokenizer(self) -> Any:
        """Builds the tokenizer of the `tokenizers` library that does the same."""

    def always_ours(self, char: str) -> bool:
        """Tells whether texts with this character must not go to the library, whatever trials of it alone say.

        Args:
            char: one character.
        """

    @property
    def settings(self) -> tuple[object, ...]:
        """All that decides how characters are treated: references with equal settings treat them alike."""

    @property
    def rules(self) -> tuple[object, ...]:
        """All that decides which ids a text has, beside the vocabulary: what was made by other rules is out of date."""
