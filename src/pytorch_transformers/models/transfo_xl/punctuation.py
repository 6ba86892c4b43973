"""Splitting punctuation from words, and joining it again, as WikiText-103 was made.

Source: Merity, Xiong, Bradbury and Socher 2016, "Pointer Sentinel Mixture Models", section 4.3: the Moses tokenizer for
English, then numbers, in which commas and full stops are set apart. A sign that stood inside a word is written between
two `@`: `well @-@ known`, `1 @,@ 000 @.@ 5`. The Moses rules are those of the library sacremoses.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final

LANGUAGE: Final = "en"
#: Sign inside a word or number, as WikiText-103 has it -> as it stood in the text.
INNER_SIGNS: Final = {"@-@": "-", "@,@": ",", "@.@": "."}
#: What Moses leaves of contractions; alone between white space, it stands in text that has been split already.
_ENDINGS: Final = frozenset({"'s", "'t", "'m", "'d", "'re", "'ve", "'ll", "'S", "'T", "'M", "'D", "'RE", "'VE", "'LL"})
_NUMBER_SIGN: Final = re.compile(r"(?<=\d)([,.])(?=\d)")
#: What Moses drops (ASCII_JUNK) and is no white space.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1b]")


class MosesWords:
    """Words and signs of a text, by the rules of WikiText-103.

    Raises:
        ImportError: sacremoses is not installed.
    """

    def __init__(self) -> None:
        _moses()  # to fail now and not in the middle of a corpus

    def words(self, text: str, kept: Collection[str]) -> list[tuple[str, int, int]]:
        """Gives words and signs with their spans in the text.

        Most texts that have been split already stay as they are.

        Args:
            text: any text.
            kept: words that stay whole where they stand between white space.
        """
        found: list[tuple[str, int, int]] = []
        chunks = [(match[0], *match.span()) for match in re.finditer(r"\S+", text)]
        for whole, run in groupby(
            chunks, lambda chunk: any(chunk[0] in words for words in (kept, INNER_SIGNS, _ENDINGS))
        ):
            parts = list(run)
            # Moses looks at the words around a full stop, so a run between two kept words is split at once.
            found += parts if whole else self._split(text, parts[0][1], parts[-1][2])
        return found

    def _split(self, text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        tokenizer, _ = _moses()
        place = start
        for token in tokenizer.tokenize(text[start:end], aggressive_dash_splits=True, escape=False):
            for word in self._parts(token):
                sign = INNER_SIGNS.get(word, word)
                first = place = self._next(text, place, sign[0])
                for char in sign:
                    place = self._next(text, place, char) + 1
                yield word, first, place

    @staticmethod
    def _parts(token: str) -> list[str]:
        parts = _NUMBER_SIGN.split(token)
        # Every other part is a sign: the pattern has one group.
        return [f"@{part}@" if number % 2 else part for number, part in enumerate(parts)]

    @staticmethod
    def _next(text: str, place: int, char: str) -> int:
        """Gives the place of a character of which nothing but white space and control characters stands in front."""
        while text[place] != char:
            if not (text[place].isspace() or _CONTROL.match(text[place])):
                raise AssertionError(f"sacremoses changed {text[place : place + 20]!r}")
            place += 1
        return place

    def join(self, words: Sequence[str], kept: Collection[str]) -> str:
        """Gives the text that words and signs were made of, with one space between words.

        Args:
            words: words and signs.
            kept: words that stay whole.
        """
        _, detokenizer = _moses()
        parts = []
        for whole, run in groupby(words, lambda word: word in kept):
            part = list(run)
            parts.append(" ".join(part) if whole else detokenizer.detokenize(_without_signs(part), unescape=False))
        return " ".join(part for part in parts if part)


def _without_signs(words: Sequence[str]) -> list[str]:
    """Joins what stands on both sides of each inner sign."""
    joined: list[str] = []
    glue = False
    for number, word in enumerate(words):
        inner = word in INNER_SIGNS and 0 < number < len(words) - 1
        if (inner or glue) and joined:
            joined[-1] += INNER_SIGNS[word] if inner else word
        else:
            joined.append(word)
        glue = inner
    return joined


@cache
def _moses() -> tuple[Any, Any]:
    try:
        from sacremoses import MosesDetokenizer, MosesTokenizer
    except ImportError as error:
        raise ImportError(
            "punctuation=True splits text with the Moses rules of sacremoses, which is not installed: "
            "pip install 'pytorch-transformers[transfo-xl]'"
        ) from error
    return MosesTokenizer(lang=LANGUAGE), MosesDetokenizer(lang=LANGUAGE)
