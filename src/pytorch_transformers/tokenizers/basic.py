"""From text to words, as BERT was trained: clean, set ideographs apart, lower, drop accents, split.

Source: google-research/bert, tokenization.py, `BasicTokenizer`. The original splits at white space first and lowers
word by word; here the whole text is lowered at once, which is the same because white space ends every context that
lower-casing looks at. Punctuation is set apart by spaces, so that one final split gives the words.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from . import aligned as steps
from .added import TokenMatcher
from .aligned import Aligned
from .characters import CLEAN, CLEAN_AND_SPACE, SPACED_PUNCTUATION, WITHOUT_ACCENTS
from .options import checked_flag

#: The control characters of ASCII, which are dropped, so that what they stood between grows together.
_DROPPED: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
#: The words of ASCII text that has none of them.
_ASCII_WORD: Final = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9 \t\n\r]")


def whitespace_tokenize(text: str) -> list[str]:
    """Splits a text at white space; an empty text has no words.

    Args:
        text: any text.
    """
    return text.split()


def words_in(text: str) -> Iterator[tuple[int, int]]:
    """Yields start and end of each word of a normalised text: between white space, punctuation characters alone.

    Args:
        text: a text that `BasicTokenizer.normalize` returned, or a piece of one.
    """
    start = -1
    for index, char in enumerate(text):
        space = char.isspace()
        alone = not space and len(SPACED_PUNCTUATION[ord(char)]) > 1
        if (space or alone) and start >= 0:
            yield start, index
            start = -1
        if alone:
            yield index, index + 1
        elif not space and start < 0:
            start = index
    if start >= 0:
        yield start, len(text)


class BasicTokenizer:
    """Splits text into words: white space, punctuation, ideographs; lower-cased and without accents if asked.

    Source: google-research/bert, tokenization.py, `BasicTokenizer`; `never_split` and the alignment are additions.

    Args:
        do_lower_case: whether to lower-case.
        never_split: words that are found in the text as it is, kept whole and kept in their case, also beside
            punctuation; one that begins or ends in a letter or digit must not touch another letter or digit there.
        tokenize_chinese_chars: whether each CJK ideograph is a word of its own.
        strip_accents: whether accents are dropped; None does as `do_lower_case` says.

    Raises:
        TypeError: one of the three is neither True nor False.
    """

    def __init__(
        self,
        do_lower_case: bool = True,
        never_split: Iterable[str] | None = None,
        tokenize_chinese_chars: bool = True,
        *,
        strip_accents: bool | None = None,
    ) -> None:
        self.do_lower_case = checked_flag("do_lower_case", do_lower_case)
        self.never_split = list(never_split or ())
        self.tokenize_chinese_chars = checked_flag("tokenize_chinese_chars", tokenize_chinese_chars)
        self.strip_accents = do_lower_case if strip_accents is None else checked_flag("strip_accents", strip_accents)

    def tokenize(self, text: str, never_split: Iterable[str] | None = None) -> list[str]:
        """Splits a text into words.

        Args:
            text: any text.
            never_split: more words to keep whole, for this call only.
        """
        kept = [*self.never_split, *(never_split or ())]
        if not kept:
            return self.split(text)
        words: list[str] = []
        done = 0
        for start, end in TokenMatcher.of(kept, whole_words=True).find(text):
            words += [*self.split(text[done:start]), text[start:end]]
            done = end
        return words + self.split(text[done:])

    def split(self, text: str) -> list[str]:
        """Splits a text into words, with no regard to `never_split`.

        Args:
            text: any text.
        """
        if text.isascii() and not _DROPPED.search(text):
            # The same as below, five times as fast: there are no accents and no ideographs.
            return _ASCII_WORD.findall(text.lower() if self.do_lower_case else text)
        return self.normalize(text).translate(SPACED_PUNCTUATION).split()

    def normalize(self, text: str) -> str:
        """Does all but the splitting: cleans, sets ideographs apart, lowers, drops accents.

        Args:
            text: any text.
        """
        text = text.translate(CLEAN_AND_SPACE if self.tokenize_chinese_chars else CLEAN)
        if self.do_lower_case:
            text = text.lower()
        if self.strip_accents:
            text = unicodedata.normalize("NFD", text).translate(WITHOUT_ACCENTS)
        return text

    def normalize_aligned(self, text: str) -> Aligned:
        """Does the same as `normalize` and keeps, for each character, its place in the text as given.

        Args:
            text: any text.
        """
        result = steps.translate(steps.unchanged(text), CLEAN_AND_SPACE if self.tokenize_chinese_chars else CLEAN)
        if self.do_lower_case:
            result = steps.lower(result)
        if self.strip_accents:
            result = steps.translate(steps.decompose(result), WITHOUT_ACCENTS)
        return result
