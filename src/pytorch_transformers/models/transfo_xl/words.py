"""From text to the words of Transformer-XL: split, put into lower case, look up.

Source: kimiyoung/transformer-xl, tf/vocabulary.py, `Vocab.tokenize`. There is nothing below the word: what is not in
the vocabulary as a whole is unknown. Special and added tokens are words like the others and found only where they stand
between delimiters; so the readable way through a text and the quick one differ in nothing but the spans.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from ...tokenizers.aligned import Aligned, lower, unchanged
from ...tokenizers.engine import Engine, Piece
from ...tokenizers.pipeline import Pipeline
from ...tokenizers.reference import words_in_plain
from .punctuation import MosesWords

#: With more words to be kept than this every text is looked at word by word.
FEW: Final = 8
NOTHING: Final[frozenset[str]] = frozenset()


class Word(NamedTuple):
    """A word of a text: the symbol that is looked up, and its span in the text in code points."""

    symbol: str
    start: int
    end: int


class WordReference:
    """Words and their ids in plain Python.

    Args:
        vocab: symbol -> id; may grow, and is looked at as it is.
        unknown: the symbol that stands for unknown words; None if there is none.
        unknown_id: its id; it may be an added token, which `vocab` does not hold.
        lower_case: whether texts are put into lower case.
        delimiter: what stands between words; None for any white space, "" where each character is a word.
        moses: what splits punctuation from words; None to split at delimiters alone.
    """

    def __init__(
        self,
        vocab: Mapping[str, int],
        unknown: str | None,
        unknown_id: int | None,
        *,
        lower_case: bool = False,
        delimiter: str | None = None,
        moses: MosesWords | None = None,
    ) -> None:
        self.vocab = vocab
        self.unknown = unknown
        self.unknown_id = unknown_id
        self.lower_case = lower_case
        self.delimiter = delimiter
        self.moses = moses

    # Text to words.

    def normalize(self, text: str) -> str:
        """Gives the text as the words will be cut from it.

        Args:
            text: any text.
        """
        return text.lower() if self.lower_case else text

    def normalize_aligned(self, text: str) -> Aligned:
        """Does the same as `normalize` and keeps the places of the characters.

        Args:
            text: any text.
        """
        return lower(unchanged(text)) if self.lower_case else unchanged(text)

    def symbols(self, text: str, kept: Collection[str] = NOTHING) -> list[str]:
        """Gives the symbols of a text in order.

        Args:
            text: any text.
            kept: words that stay as they are.
        """
        if self.moses is not None or (kept and self.lower_case):
            return [word.symbol for word in self.words(text, kept)]
        line = self.normalize(text.strip())
        return list(line) if self.delimiter == "" else line.split(self.delimiter)

    def words(self, text: str, kept: Collection[str] = NOTHING) -> list[Word]:
        """Gives the symbols of a text with their spans.

        Args:
            text: any text.
            kept: words that stay as they are.
        """
        if self.moses is not None:
            found = self.moses.words(text, kept)
            return [Word(word if word in kept else self.normalize(word), *span) for word, *span in found]
        aligned = self.normalize_aligned(text)
        words = []
        for first, last in self._divide(aligned.text):
            # A delimiter may stand next to another one: then there is an empty word between them.
            start, end = aligned.span(first, last) if first < last else (0, 0)
            raw = text[start:end]
            words.append(Word(raw if raw in kept else aligned.text[first:last], start, end))
        return words

    def _divide(self, line: str) -> list[tuple[int, int]]:
        """Gives first and one past the last character of each word."""
        if self.delimiter is None:
            return words_in_plain(line)
        start = len(line) - len(line.lstrip())
        line = line.strip()
        if self.delimiter == "":
            return [(place, place + 1) for place in range(start, start + len(line))]
        words = []
        for word in line.split(self.delimiter):
            words.append((start, start + len(word)))
            start += len(word) + len(self.delimiter)
        return words

    # Words to ids.

    def lookup(self, symbols: Sequence[str]) -> list[int]:
        """Gives the id of each symbol, that of the unknown one where it has none.

        Args:
            symbols: the symbols.

        Raises:
            ValueError: a symbol is unknown and nothing stands for it.
        """
        unknown = self.unknown_id
        if unknown is not None:
            get = self.vocab.get
            return [get(symbol, unknown) for symbol in symbols]
        try:
            return [self.vocab[symbol] for symbol in symbols]
        except KeyError as error:
            raise ValueError(
                f"{error.args[0]!r} is not in the vocabulary of {len(self.vocab)} symbols, and there is no unknown "
                "token to stand for it; build the vocabulary with one, as in special=['<unk>']"
            ) from None

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Gives the ids of each text.

        Args:
            texts: plain texts.
        """
        return [self.lookup(self.symbols(text)) for text in texts]

    def pieces(self, texts: Sequence[str]) -> list[list[Piece]]:
        """Gives the tokens of each text with their ids, spans and words.

        Args:
            texts: plain texts.
        """
        return [self._pieces(self.words(text)) for text in texts]

    def _pieces(self, words: Sequence[Word]) -> list[Piece]:
        ids = self.lookup([word.symbol for word in words])
        return [
            Piece(found, symbol if symbol in self.vocab else str(self.unknown), start, end, number)
            for number, (found, (symbol, start, end)) in enumerate(zip(ids, words, strict=True))
        ]

    def piece(self, word: Word, number: int) -> Piece:
        """Gives a word as a token.

        Args:
            word: the word.
            number: its place in the text.

        Raises:
            ValueError: it is unknown and nothing stands for it.
        """
        return self._pieces([word])[0]._replace(word=number)

    def pieces_between(self, aligned: Aligned, start: int, end: int) -> list[Piece]:
        """Gives the tokens of a part of a normalised text, with spans in the original.

        Args:
            aligned: what `normalize_aligned` gave.
            start: first character of the part.
            end: one past its last character.
        """
        part = Aligned(aligned.text[start:end], aligned.positions[start:end])
        return self._pieces([Word(symbol, *part.span(first, last)) for symbol, first, last in self.words(part.text)])

    # For the `tokenizers` library.

    def spans(self, text: str) -> list[tuple[str, int, int]]:
        """Gives the words of a text, with their spans in it.

        Args:
            text: a plain text.
        """
        return [(word.symbol, word.start, word.end) for word in self.words(text)]

    @property
    def settings(self) -> tuple[object, ...]:
        """All that decides how characters are treated, where the library is used at all."""
        return "words", self.lower_case

    @property
    def rules(self) -> tuple[object, ...]:
        """The settings, the unknown symbol, and how far the vocabulary has grown: it never changes otherwise."""
        return (*self.settings, self.unknown, len(self.vocab))

    def always_ours(self, char: str) -> bool:
        """Tells which characters depend on their neighbours: a capital sigma is lowered by what stands around it.

        Args:
            char: one character.
        """
        return char == "\u03a3"

    @property
    def suits_library(self) -> bool:
        """Whether the library can do the same: it splits at white space, and cannot refuse unknown words as we do."""
        return self.delimiter is None and self.moses is None and self.unknown is not None and self.unknown in self.vocab

    def library_steps(self) -> tuple[Any, Any]:
        """Builds the normaliser (or None) and the pre-tokenizer of the `tokenizers` library that do the same."""
        from tokenizers import normalizers, pre_tokenizers

        return normalizers.Lowercase() if self.lower_case else None, pre_tokenizers.WhitespaceSplit()

    def library_tokenizer(self) -> Any:
        """Builds the tokenizer of the `tokenizers` library that does the same."""
        from tokenizers import Tokenizer, models

        tokenizer = Tokenizer(models.WordLevel(dict(self.vocab), unk_token=str(self.unknown)))
        normalizer, tokenizer.pre_tokenizer = self.library_steps()
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        return tokenizer


class WordPipeline(Pipeline):
    """Finds special and added tokens where they are whole words.

    Those that a look-up finds anyway need no search; the others make a text go word by word.

    Args:
        reference: the readable engine.
        engine: the engine for texts in which there is nothing to be found.
        token_id: token -> id.
    """

    reference: WordReference

    def __init__(self, reference: WordReference, engine: Engine, token_id: Callable[[str], int]) -> None:
        super().__init__(reference, engine, token_id)
        self.reference = reference
        #: Special tokens that a look-up would miss.
        self.kept: set[str] = set()
        #: Words that are never split, be they in the vocabulary or not.
        self.whole: set[str] = set()
        #: Normalised added token -> the token as it was added.
        self._forms: dict[str, str] = {}

    def add_special(self, token: str, *, whole_word: bool = True) -> None:
        """Makes a token be found in raw text, as a whole word.

        Args:
            token: the token.
            whole_word: has no effect here.
        """
        self.whole.add(token)
        if token not in self.reference.vocab or self.reference.normalize(token) != token:
            self.kept.add(token)

    def add_ordinary(self, token: str) -> None:
        """Makes a token be found in normalised text, as a whole word.

        Args:
            token: the token.
        """
        # Two tokens may have one form; the first one added is the one that is found.
        self._forms.setdefault(self.reference.normalize(token), token)

    def ids(self, texts: Sequence[str], *, split_special: bool = False) -> list[list[int]]:
        """Gives the ids of each text.

        Args:
            texts: any texts.
            split_special: whether special tokens that are not in the vocabulary are treated as any other word.
        """
        slow = [self._may_hold(text, split_special) for text in texts]
        if not any(slow):
            return self.engine.ids(texts)
        plain = iter(self.engine.ids([text for text, found in zip(texts, slow, strict=True) if not found]))
        return [
            [piece.id for piece in self._pieces_of(text, split_special)] if found else next(plain)
            for text, found in zip(texts, slow, strict=True)
        ]

    def pieces(self, texts: Sequence[str], *, split_special: bool = False) -> list[list[Piece]]:
        """Gives the tokens of each text with their ids, spans and words; the ids are those that `ids` gives.

        Args:
            texts: any texts.
            split_special: see `ids`.
        """
        slow = [self._may_hold(text, split_special) for text in texts]
        plain = iter(self.engine.pieces([text for text, found in zip(texts, slow, strict=True) if not found]))
        return [
            self._pieces_of(text, split_special) if found else next(plain)
            for text, found in zip(texts, slow, strict=True)
        ]

    def symbols(self, text: str, *, split_special: bool = False) -> list[str]:
        """Gives the symbols of a text as they will be looked up, unknown ones too.

        Args:
            text: any text.
            split_special: see `ids`.
        """
        return self.reference.symbols(text, self._whole(split_special))

    def _whole(self, split_special: bool) -> Collection[str]:
        if split_special:
            return NOTHING
        # Without rules for punctuation, a look-up finds all others.
        return self.kept if self.reference.moses is None else self.whole

    def lookup(self, symbols: Sequence[str]) -> list[int]:
        """Gives the id of each symbol, added tokens included.

        Args:
            symbols: what `symbols` gave.

        Raises:
            ValueError: a symbol is unknown and nothing stands for it.
        """
        if not self.kept and not self._forms:
            return self.reference.lookup(symbols)
        parts = (self._own_id(symbol) for symbol in symbols)
        pairs = zip(symbols, parts, strict=True)
        return list(chain.from_iterable(self.reference.lookup([s]) if own is None else (own,) for s, own in pairs))

    def _own_id(self, symbol: str) -> int | None:
        token = symbol if symbol in self.kept else self._forms.get(symbol)
        return None if token is None else self._token_id(token)

    def _may_hold(self, text: str, split_special: bool) -> bool:
        special = self._whole(split_special)
        if len(special) + len(self._forms) > FEW:
            return True
        if any(token in text for token in special):
            return True
        return bool(self._forms) and any(form in self.reference.normalize(text) for form in self._forms)

    def _pieces_of(self, text: str, split_special: bool) -> list[Piece]:
        words = self.reference.words(text, self._whole(split_special))
        special = NOTHING if split_special else self.kept
        return [self._piece(word, number, special) for number, word in enumerate(words)]

    def _piece(self, word: Word, number: int, special: Collection[str]) -> Piece:
        token = word.symbol if word.symbol in special else self._forms.get(word.symbol)
        if token is None:
            return self.reference.piece(word, number)
        return Piece(self._token_id(token), token, word.start, word.end, number)
