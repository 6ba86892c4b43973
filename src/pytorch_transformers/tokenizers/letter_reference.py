"""The engines of OpenAI GPT's byte pair encoding: words, their letters, merges, ids."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from .aligned import Aligned
from .engine import Piece
from .joiner import PATIENCE, HasIds, LetterJoiner, LibraryJoiner
from .memory import Ids, Memory
from .standardize import BasicWords, SpacyWords

#: Longest part of a text, and longest word, that is remembered, in characters.
LONGEST_PART: Final = 32
LONGEST_WORD: Final = 100

Words = BasicWords | SpacyWords


class WordMemory:
    """The ids of texts by way of what is remembered: of the parts that texts can be divided into, and of words.

    Args:
        joiner: what gives the ids of a word.
        words: what splits texts.
    """

    def __init__(self, joiner: HasIds, words: Words) -> None:
        self._words = words
        self.words = Memory(joiner.ids, LONGEST_WORD)
        self.parts = Memory(self._find, LONGEST_PART)

    def _find(self, part: str) -> Ids:
        return tuple(chain.from_iterable(map(self.words.__getitem__, self._words.words(part))))

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Gives the ids of each text.

        Args:
            texts: plain texts.
        """
        ids_of, parts = self.parts.__getitem__, self._words.parts
        return [list(chain.from_iterable(map(ids_of, parts(text)))) for text in texts]


class LetterReference:
    """Words, letters, merges, ids, in plain Python: OpenAI GPT.

    Args:
        joiner: what joins the letters of a word.
        words: what splits texts.
    """

    def __init__(self, joiner: LetterJoiner, words: Words) -> None:
        self.joiner = joiner
        self.words = words
        self._memory = WordMemory(joiner, words)
        self.ids = self._memory.ids
        self.normalize = words.normalize
        self.normalize_aligned = words.normalize_aligned

    def __reduce__(self) -> tuple[Any, ...]:
        # What is remembered does not travel: it is soon found out again.
        return type(self), (self.joiner, self.words)

    def pieces(self, texts: Sequence[str]) -> list[list[Piece]]:
        """Gives the tokens of each text with their ids, spans and words.

        Args:
            texts: plain texts.
        """
        return [
            [piece for number, word in enumerate(self.words.aligned_words(text)) for piece in self._of(word, number)]
            for text in texts
        ]

    def _of(self, word: Aligned, number: int) -> list[Piece]:
        length = len(word.text)
        pieces = []
        start = 0
        for token in self.joiner.tokens(word.text):
            # The last token has the end of the word in it, or, with a newline, lacks the space.
            end = length if token.endswith(self.joiner.word_end) else min(start + len(token), length)
            pieces.append(Piece(self.joiner.id_of(token), token, *word.span(start, end), number))
            start = end
        return pieces

    def pieces_between(self, aligned: Aligned, start: int, end: int) -> list[Piece]:
        """Gives the tokens of a part of a normalised text, with spans in the original.

        Args:
            aligned: what `normalize_aligned` gave.
            start: first character of the part.
            end: one past its last character.
        """
        part = Aligned(aligned.text[start:end], aligned.positions[start:end])
        pieces = self.pieces([part.text])[0]
        spans = (part.span(piece.start, piece.end) for piece in pieces)
        return [piece._replace(start=first, end=last) for piece, (first, last) in zip(pieces, spans, strict=True)]

    def spans(self, text: str) -> list[tuple[str, int, int]]:
        """Gives the words of a text, with their spans in it.

        Args:
            text: a plain text.
        """
        return [(word.text, *word.span(0, len(word.text))) for word in self.words.aligned_words(text)]

    @property
    def settings(self) -> tuple[object, ...]:
        """All that decides how characters are treated."""
        return "letters", self.words.name

    @property
    def rules(self) -> tuple[object, ...]:
        """The settings and the unknown token; none can be changed."""
        return (*self.settings, self.joiner.unknown)

    def always_ours(self, char: str) -> bool:
        """Tells that texts are never split by the library, which has neither ftfy nor spaCy.

        Args:
            char: one character.
        """
        return True

    def library_steps(self) -> tuple[Any, Any]:
        """Raises: the library does not do the same."""
        raise NotImplementedError("the tokenizers library has neither ftfy nor spaCy")

    def library_tokenizer(self) -> Any:
        """Raises: the library does not do the same."""
        raise NotImplementedError("the tokenizers library has neither ftfy nor spaCy")


class LibraryLetters:
    """The library's merges for the ids of words; words are split as the readable engine does, and so are spans.

    Args:
        reference: the readable engine; its merges must be orderly.
        patience: see `LibraryJoiner`.
    """

    def __init__(self, reference: LetterReference, patience: int) -> None:
        self._made_of = reference, patience
        self._memory = WordMemory(LibraryJoiner(reference.joiner, patience), reference.words)
        self.ids = self._memory.ids
        self.normalize = reference.normalize
        self.pieces = reference.pieces

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of


def letter_engine(name: str, reference: LetterReference) -> LetterReference | LibraryLetters:
    """Gives the engine that was asked for, or the readable one where the library would not agree with it.

    Args:
        name: "auto", "tokenizers" or "python".
        reference: the readable engine.
    """
    if name == "python" or not reference.joiner.merges.orderly:
        return reference
    return LibraryLetters(reference, PATIENCE if name == "auto" else 0)
