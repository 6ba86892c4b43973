"""The engines of GPT-2's byte pair encoding: the readable one, and the one that is faster on most texts."""

import re
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any, Final

from .aligned import Aligned, unchanged
from .byte_level import byte_counts, piece_pattern, to_symbols
from .engine import Engine, Piece
from .joiner import HasIds, Joiner, LibraryJoiner
from .memory import Ids, Memory
from .rust import RustEngine

#: Longest chunk that is remembered, in characters: a longer one, such as a line of Chinese, hardly ever comes again.
LONGEST_CHUNK: Final = 32
#: Longest piece that is remembered, in characters.
LONGEST_WORD: Final = 100

#: A space that does not begin a word, at least not for sure.
_LOOSE_SPACE: Final = re.compile(r" (?!\S)")
#: A newline that is neither the first nor the last of the white space around it.
_INNER_LINE: Final = re.compile(r"\n(?!\S)(?<=\s\n)")
#: White space up to the last of several before a word, or up to the end: a piece of its own.
_RUN: Final = re.compile(r"\s+(?!\S)")
#: White space to Python, not to GPT-2.
_SEPARATOR: Final = re.compile("[\x1c-\x1f]")


class ByteMemory:
    """The ids of texts by way of what is remembered: of chunks and of the pieces in them.

    A space before a word belongs to it, and no piece reaches across, so a text has the ids of its chunks, the parts
    between spaces, in a row; most chunks cost one look-up. A newline begins a chunk as well, and stays in it. A chunk
    that begins with a space, as no other does, is the first of a text, which may have no space before it.

    Args:
        joiner: what gives the ids of a piece.
        add_prefix_space: whether a text that begins with no space is taken as if it did.
    """

    def __init__(self, joiner: HasIds, *, add_prefix_space: bool) -> None:
        self._add_prefix_space = add_prefix_space
        self.pieces = Memory(joiner.ids, LONGEST_WORD)
        self.chunks = Memory(self._find, LONGEST_CHUNK)

    def _find(self, chunk: str) -> Ids:
        text = chunk[1:] if chunk[0] == " " else chunk if chunk[0] == "\n" else " " + chunk
        return tuple(chain.from_iterable(map(self.pieces.__getitem__, piece_pattern().findall(text))))

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Gives the ids of each text.

        Args:
            texts: plain texts.
        """
        ids_of = self.chunks.__getitem__
        rows: list[list[int]] = []
        for text in texts:
            chunks = _chunks(text if not self._add_prefix_space or text[:1] in ("", " ") else " " + text)
            rows.append(list(chain.from_iterable(map(ids_of, chunks))))
        return rows


def _chunks(text: str) -> list[str]:
    """Divides a text into chunks; white space up to the last of several before a word is one of its own."""
    if not _LOOSE_SPACE.search(text) and not ("\n" in text and _INNER_LINE.search(text)):
        return _separated(text)
    if _SEPARATOR.search(text):
        return [" " + text]
    chunks: list[str] = []
    done = 0
    for match in _RUN.finditer(text):
        chunks += _separated(text[done : match.start()])
        chunks.append(" " + match[0])
        done = match.end()
    return chunks + _separated(text[done:])


def _separated(text: str) -> list[str]:
    """Divides a text in which no more than one space or newline separates words."""
    chunks = text.replace("\n", " \n").split(" ")
    if chunks[0]:
        chunks[0] = " " + chunks[0]
        return chunks
    return chunks[1:]


class ByteLevelReference:
    """Pieces by a pattern, bytes, merges, ids, in plain Python: GPT-2.

    Args:
        joiner: what joins the bytes of a piece.
        add_prefix_space: whether a text that begins with no space is taken as if it did.
    """

    def __init__(self, joiner: Joiner, *, add_prefix_space: bool = False) -> None:
        self.joiner = joiner
        self.add_prefix_space = add_prefix_space
        self._memory = ByteMemory(joiner, add_prefix_space=add_prefix_space)

    def __getstate__(self) -> dict[str, Any]:
        # What is remembered does not travel: it is soon found out again.
        return {"joiner": self.joiner, "add_prefix_space": self.add_prefix_space}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def normalize(self, text: str) -> str:
        """Gives the text as it is: nothing of it is lost.

        Args:
            text: a plain text.
        """
        return text

    def normalize_aligned(self, text: str) -> Aligned:
        """Aligns the text with itself.

        Args:
            text: a plain text.
        """
        return unchanged(text)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Gives the ids of each text.

        Args:
            texts: plain texts.
        """
        return self._memory.ids(texts)

    def pieces(self, texts: Sequence[str]) -> list[list[Piece]]:
        """Gives the tokens of each text with their ids, spans and words.

        A token that is a part of a character has the span of the character, and a space that was put before the text
        that of the first one.

        Args:
            texts: plain texts.
        """
        return [
            [
                piece
                for number, (word, start) in enumerate(self._words(text))
                for piece in self._tokens_of(word, start, number)
            ]
            for text in texts
        ]

    def pieces_between(self, aligned: Aligned, start: int, end: int) -> list[Piece]:
        """Gives the tokens of a part of a text, with spans in the whole.

        Args:
            aligned: what `normalize_aligned` gave.
            start: first character of the part.
            end: one past its last character.
        """
        pieces = self.pieces([aligned.text[start:end]])[0]
        return [piece._replace(start=piece.start + start, end=piece.end + start) for piece in pieces]

    def _words(self, text: str) -> list[tuple[str, int]]:
        """Gives the words of a text with the places where they begin; a space put before the text is at place -1."""
        added = self.add_prefix_space and text != "" and text[0] != " "
        words = piece_pattern().findall(" " + text if added else text)
        starts = accumulate(map(len, words), initial=-1 if added else 0)
        return list(zip(words, starts, strict=False))

    def _tokens_of(self, word: str, start: int, number: int) -> list[Piece]:
        # The character that each byte belongs to.
        owners = [place for place, count in enumerate(byte_counts(word), start) for _ in range(count)]
        pieces = []
        done = 0
        for token in self.joiner.tokens(word):
            first, last = owners[done], owners[done + len(token) - 1]
            pieces.append(Piece(self.joiner.id_of(token), token, max(first, 0), max(last, 0) + 1, number))
            done += len(token)
        return pieces

    def spans(self, text: str) -> list[tuple[str, int, int]]:
        """Gives the words of a text in the characters that stand for bytes, with their spans in the text.

        Args:
            text: a plain text.
        """
        return [(to_symbols(word), max(start, 0), start + len(word)) for word, start in self._words(text)]

    @property
    def settings(self) -> tuple[object, ...]:
        """All that decides how characters are treated."""
        return "byte level", self.add_prefix_space

    @property
    def rules(self) -> tuple[object, ...]:
        """The settings and the unknown token; none can be changed."""
        return (*self.settings, self.joiner.unknown)

    def always_ours(self, char: str) -> bool:
        """Tells which characters depend on their neighbours in ways that trials do not show: none.

        Args:
            char: one character.
        """
        return False

    def library_steps(self) -> tuple[Any, Any]:
        """Builds the pre-tokenizer of the `tokenizers` library that does the same; there is no normaliser."""
        from tokenizers import pre_tokenizers

        return None, pre_tokenizers.ByteLevel(add_prefix_space=self.add_prefix_space, trim_offsets=False)

    def library_tokenizer(self) -> Any:
        """Builds the tokenizer of the `tokenizers` library that does the same."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer(self.joiner.library_model())
        tokenizer.pre_tokenizer = self.library_steps()[1]
        return tokenizer

    @property
    def suits_library(self) -> bool:
        """Whether the library gives the same: merges as training makes them, and no byte unknown."""
        return self.joiner.merges.orderly and self.joiner.knows_all


class AutoByteLevel:
    """For each question the engine that answers it faster: memory before merges in the library, or the library alone.

    Args:
        reference: the readable engine; its merges must suit the library.
    """

    def __init__(self, reference: ByteLevelReference) -> None:
        self._reference = reference
        self._memory = ByteMemory(LibraryJoiner(reference.joiner), add_prefix_space=reference.add_prefix_space)
        self.ids = self._memory.ids
        self.normalize = reference.normalize
        self.pieces = RustEngine(reference).pieces

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._reference,)


def byte_level_engine(name: str, reference: ByteLevelReference) -> Engine:
    """Gives the engine that was asked for, or the readable one where the others would not agree with it.

    Args:
        name: "auto", "tokenizers" or "python".
        reference: the readable engine.
    """
    if name == "python" or not reference.suits_library:
        return reference
    return RustEngine(reference) if name == "tokenizers" else AutoByteLevel(reference)
