"""From a word to the ids of its tokens: the merges in plain Python, or the same merges in the `tokenizers` library."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol

from .bpe import Merges
from .byte_level import BYTE_TO_CHAR, to_symbols
from .memory import Ids

#: Ends the last token of a word of OpenAI GPT.
WORD_END: Final = "</w>"
#: How many words are joined in Python before the library is given its copy of the vocabulary, which takes 0.1 s.
PATIENCE: Final = 1000


class HasIds(Protocol):
    """What gives the ids of a word."""

    def ids(self, word: str) -> Ids:
        """Gives the ids of a word.

        Args:
            word: the word.
        """


class Joiner(ABC):
    """Joins the symbols of words by merges, and looks up what comes out.

    Args:
        vocab: token -> id.
        merges: the merges.
        unknown: the id of what is not in the vocabulary; None if nothing stands for it.
    """

    #: What the last token of a word ends in.
    word_end: ClassVar[str] = ""

    def __init__(self, vocab: Mapping[str, int], merges: Merges, unknown: int | None) -> None:
        self.vocab = vocab
        self.merges = merges
        self.unknown = unknown

    @abstractmethod
    def symbols(self, word: str) -> Sequence[str]:
        """Gives the symbols that a word begins as.

        Args:
            word: the word.
        """

    @property
    def knows_all(self) -> bool:
        """Whether no symbol can be unknown."""
        return False

    @abstractmethod
    def library_form(self, word: str) -> str:
        """Gives the word as the library's model of byte pairs takes it.

        Args:
            word: the word.
        """

    @abstractmethod
    def library_model(self) -> Any:
        """Builds the library's model of byte pairs; an unknown symbol is left out there."""

    def tokens(self, word: str) -> list[str]:
        """Gives the tokens of a word, known or not.

        Args:
            word: the word.
        """
        return self.merges.join(self.symbols(word))

    def ids(self, word: str) -> Ids:
        """Gives the ids of a word.

        Args:
            word: the word.

        Raises:
            ValueError: there is no unknown token for what is not in the vocabulary.
        """
        return tuple([self.id_of(token) for token in self.tokens(word)])

    def id_of(self, token: str) -> int:
        """Gives the id of a token, or of the unknown token.

        Args:
            token: the token.

        Raises:
            ValueError: it is not in the vocabulary, and there is no unknown token.
        """
        number = self.vocab.get(token, self.unknown)
        if number is None:
            raise ValueError(f"{token!r} is not in the vocabulary, and there is no unknown token to stand for it")
        return number


class ByteJoiner(Joiner):
    """Joins the bytes of a piece: GPT-2."""

    def symbols(self, word: str) -> str:
        """See `Joiner.symbols`."""
        return to_symbols(word)

    @property
    def knows_all(self) -> bool:
        """See `Joiner.knows_all`."""
        return all(char in self.vocab for char in BYTE_TO_CHAR)

    def library_form(self, word: str) -> str:
        """See `Joiner.library_form`."""
        return to_symbols(word)

    def library_model(self) -> Any:
        """See `Joiner.library_model`."""
        from tokenizers import models

        return models.BPE(dict(self.vocab), self.merges.pairs)


class LetterJoiner(Joiner):
    """Joins the letters of a word, the last of which has the end of the word with it: OpenAI GPT."""

    word_end: ClassVar[str] = WORD_END

    def symbols(self, word: str) -> list[str]:
        """See `Joiner.symbols`."""
        return [*word[:-1], word[-1:] + WORD_END]

    def tokens(self, word: str) -> list[str]:
        """Gives the tokens of a word, known or not; a newline and the space behind it are the token of a newline.

        Args:
            word: the word.
        """
        tokens = super().tokens(word)
        return ["\n" + WORD_END] if tokens == ["\n", " " + WORD_END] else tokens

    def library_form(self, word: str) -> str:
        """See `Joiner.library_form`."""
        return word

    def library_model(self) -> Any:
        """See `Joiner.library_model`."""
        from tokenizers import models

        return models.BPE(dict(self.vocab), self.merges.pairs, end_of_word_suffix=WORD_END)


class LibraryJoiner:
    """Gives the ids of words as a joiner does, by way of the library once there are many.

    Only for orderly merges: with others the library would not give the same.

    Args:
        joiner: the joiner to be agreed with.
        patience: how many words are left to it before the library has its first turn.
    """

    def __init__(self, joiner: Joiner, patience: int = PATIENCE) -> None:
        self._joiner = joiner
        self._patience = self._waits = patience
        self._model: Any = None
        self._knows_all = joiner.knows_all
        #: The ids of the vocabulary as they are there: equal numbers are one object, and memory that is shared is near.
        self._numbers = sorted(joiner.vocab.values())

    def __reduce__(self) -> tuple[Any, ...]:
        # The library's copy of the vocabulary is built again when it is needed: faster than to pickle it, and smaller.
        return type(self), (self._joiner, self._patience)

    def ids(self, word: str) -> Ids:
        """Gives the ids of a word.

        Args:
            word: the word.

        Raises:
            ValueError: there is no unknown token for what is not in the vocabulary.
        """
        if self._waits > 0:
            self._waits -= 1
            return self._joiner.ids(word)
        if self._model is None:
            self._model = self._joiner.library_model()
        form = self._joiner.library_form(word)
        try:
            tokens = self._model.tokenize(form)
        except UnicodeEncodeError:  # a lone surrogate, which the library cannot be given
            return self._joiner.ids(word)
        whole = self._knows_all or sum(len(token.value) for token in tokens) == len(form) + len(self._joiner.word_end)
        if not whole:  # the library leaves out what it does not know
            return self._joiner.ids(word)
        return tuple([self._numbers[token.id] for token in tokens])
