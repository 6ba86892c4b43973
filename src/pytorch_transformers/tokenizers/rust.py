"""The fast engine: the `tokenizers` library, for every text of which it is known to agree with the reference.

The library and Python have different editions of the Unicode tables, and a few rules of the library are its own. So a
text goes to the library only when each of its characters has been tried and found to be treated alike, alone and next
to others; all other texts go to the reference. A character is tried when it is first met; the verdict is kept for the
process. What depends on neighbours further away (`Reference.always_ours`) never goes to the library.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from .engine import Piece, Reference

#: Where a character is tried: alone, twice, at both ends of words, inside them, and beside what joins or separates.
TRIALS: Final = (
    "{0}",
    "{0}{0}",
    "a{0}",
    "{0}a",
    "a{0}b",
    "A{0} B",
    "a {0}B",
    "a {0} b",
    "a{0}{0}b",
    ".{0}.",
    "\u4e2d{0}\u4e2d",
    "a{0}\u0301",
    "\u0301{0}b",
    "a\u200d{0}\u200db",
    "\u00c9{0}\u00e9",
)
#: Fewest texts with newly tried characters that are looked through slowly before the pattern is compiled anew.
RECOMPILE_AFTER: Final = 32

Result = TypeVar("Result")

#: Settings of a reference -> the characters known to be treated alike under these settings; see `agreement_for`.
_AGREEMENTS: dict[tuple[object, ...], "Agreement"] = {}


def agreement_for(reference: Reference) -> "Agreement":
    """Gives the verdicts for the settings of a reference, shared by all tokenizers of the process.

    Args:
        reference: the engine to agree with.
    """
    found = _AGREEMENTS.get(reference.settings)
    if found is None:
        found = _AGREEMENTS[reference.settings] = Agreement(reference)
    return found


class Agreement:
    """Knows of which characters library and reference are sure to make the same.

    Args:
        reference: the engine to agree with; its vocabulary plays no part.
    """

    def __init__(self, reference: Reference) -> None:
        self._spans = reference.spans
        self._always_ours = reference.always_ours
        self._normalizer, self._pre_tokenizer = reference.library_steps()
        self._alike: set[str] = set()
        self._other: set[str] = set()
        self._slow = 0
        self._learn(map(chr, range(128)))
        #: Whether all of ASCII is alike, as it is for every setting of BERT that cleans the text.
        self._ascii = len(self._alike) == 128
        self._stranger = self._compile()

    def covers(self, text: str) -> bool:
        """Tells whether the library treats a text as the reference does.

        Args:
            text: a plain text.
        """
        if (self._ascii and text.isascii()) or self._stranger.search(text) is None:
            return True
        characters = set(text) - self._alike
        self._learn(characters - self._other)
        if not characters <= self._alike:
            return False
        self._slow += 1
        # Compiling takes time in proportion to the characters, so it must become rarer as they become more.
        if self._slow >= max(RECOMPILE_AFTER, len(self._alike) // 4):
            self._stranger = self._compile()
            self._slow = 0
        return True

    def _learn(self, characters: Iterable[str]) -> None:
        for char in characters:
            (self._alike if self._same(char) else self._other).add(char)

    def _same(self, char: str) -> bool:
        # A lone surrogate is no character, and the library cannot be given one.
        if "\ud800" <= char <= "\udfff" or self._always_ours(char):
            return False
        text = "\n".join(trial.format(char) for trial in TRIALS)
        return self._spans(text) == self._library_spans(text)

    def _library_spans(self, text: str) -> list[tuple[str, int, int]]:
        from tokenizers import PreTokenizedString

        splits = PreTokenizedString(text)
        if self._normalizer is not None:
            splits.normalize(self._normalizer.normalize)
        self._pre_tokenizer.pre_tokenize(splits)
        return [(word, *span) for word, span, _ in splits.get_splits("original", "char")]

    def _compile(self) -> re.Pattern[str]:
        return re.compile("[^" + "".join(map(re.escape, sorted(self._alike))) + "]" if self._alike else "(?s:.)")


class RustEngine:
    """The `tokenizers` library where it agrees with the reference, the reference elsewhere.

    Args:
        reference: the readable engine of the family.
    """

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        #: The rules of the reference and the tokenizer of the library that was built by them.
        self._built: tuple[tuple[object, ...], Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # The library's copy of the vocabulary is built again on first use: faster than to pickle it, and smaller.
        return {"_reference": self._reference, "_built": None}

    def normalize(self, text: str) -> str:
        """Gives the text in the form in which added tokens are looked for.

        Args:
            text: a plain text.
        """
        return self._reference.normalize(text)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Gives the ids of each text.

        Args:
            texts: plain texts.
        """
        return self._divide(texts, self._library_ids, self._reference.ids)

    def pieces(self, texts: Sequence[str]) -> list[list[Piece]]:
        """Gives the tokens of each text with their ids, spans and words.

        Args:
            texts: plain texts.
        """
        return self._divide(texts, self._library_pieces, self._reference.pieces)

    def _divide(
        self,
        texts: Sequence[str],
        library: Callable[[Sequence[str]], list[Result]],
        reference: Callable[[Sequence[str]], list[Result]],
    ) -> list[Result]:
        covers = agreement_for(self._reference).covers
        covered = [covers(text) for text in texts]
        if all(covered):
            return library(texts)
        fast = iter(library([text for text, yes in zip(texts, covered, strict=True) if yes]))
        slow = iter(reference([text for text, yes in zip(texts, covered, strict=True) if not yes]))
        return [next(fast if yes else slow) for yes in covered]

    def _library(self) -> Any:
        rules, built = self._reference.rules, self._built
        if built is None or built[0] != rules:
            self._built = built = rules, self._reference.library_tokenizer()
        return built[1]

    def _library_ids(self, texts: Sequence[str]) -> list[list[int]]:
        if len(texts) == 1:  # the library's batches have a cost of their own, more than that of a sentence
            return [self._library().encode(texts[0], add_special_tokens=False).ids]
        return [encoding.ids for encoding in self._library().encode_batch_fast(texts, add_special_tokens=False)]

    def _library_pieces(self, texts: Sequence[str]) -> list[list[Piece]]:
        encodings = self._library().encode_batch(texts, add_special_tokens=False)
        return [
            [
                Piece(number, token, start, end, word)
                for number, token, (start, end), word in zip(
                    encoding.ids, encoding.tokens, encoding.offsets, encoding.word_ids, strict=True
                )
            ]
            for encoding in encodings
        ]


class AutoEngine:
    """For each question the engine that answers it faster; both give the same answer.

    Ids alone come from the reference: it remembers those of what stands between spaces, and on two cores that is about
    twice as fast as the library on 4,000 English sentences that are new to it, and more the more it has met. Spans and
    words come from the library, which is up to twice as fast there. On a machine with many cores
    `engine="tokenizers"` may win for large batches.

    Args:
        reference: the readable engine of the family.
    """

    def __init__(self, reference: Reference) -> None:
        self.ids = reference.ids
        self.normalize = reference.normalize
        self.pieces = RustEngine(reference).pieces
