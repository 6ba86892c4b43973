"""OpenAI GPT's way from text to words: ftfy mends it, some signs are replaced or set apart, spaCy splits it.

Source: openai/finetune-transformer-lm, text_utils.py (`text_standardize`, `TextEncoder`). The original loads spaCy's
model of English and switches off all of it but the tokenizer; here it is that tokenizer alone.
Surprising: a newline is a word, with the space behind it. The original meant to set the backslash apart too, but what
it wrote for it in its pattern is the plus sign once more.
"""

import difflib
import functools
import re
from collections.abc import Sequence
from typing import Any, Final

from . import aligned as steps
from .aligned import Aligned
from .basic import BasicTokenizer, words_in


class _SignTable(dict[int, str]):
    """Dashes, the ellipsis and the accent that is taken for an apostrophe, in ASCII."""

    def __missing__(self, code: int) -> str:
        self[code] = value = chr(code)
        return value


_SIGNS: Final = _SignTable({0x2014: "-", 0x2013: "-", 0x2015: "-", 0x2026: "...", 0xB4: "'"})
#: Pattern, what is put before its first group, and behind it. In the original the second rule comes last, and the third
#: takes the white space around a newline itself; the result is the same, in linear time.
_RULES: Final = (
    (re.compile(r"""(([-~!";?+,)(/*\[\]}{|_])\2*)"""), " ", " "),
    (re.compile(r"[^\S\n]+()"), " ", ""),
    (re.compile(r" ?(\n)[ \n]*"), " ", " "),
)
#: Most pairs of characters that are compared to find out what became of which.
_MOST_PAIRS: Final = 250_000


def text_standardize(text: str) -> str:
    """Replaces some signs, sets others apart by spaces, and leaves one space or newline where white space is.

    Args:
        text: any text.
    """
    text = text.translate(_SIGNS)
    for pattern, before, behind in _RULES:
        text = pattern.sub(rf"{before}\1{behind}", text)
    return text.strip()


def standardize_aligned(given: Aligned) -> Aligned:
    """Does the same as `text_standardize` and keeps the places of the characters.

    Args:
        given: the text.
    """
    result = steps.translate(given, _SIGNS)
    for pattern, before, behind in _RULES:
        result = _substitute(result, pattern, before, behind)
    start = len(result.text) - len(result.text.lstrip())
    text = result.text.strip()
    return Aligned(text, result.positions[start : start + len(text)])


def _substitute(given: Aligned, pattern: re.Pattern[str], before: str, behind: str) -> Aligned:
    texts: list[str] = []
    places: list[int] = []
    done = 0
    for match in pattern.finditer(given.text):
        start, end = match.span()
        first, last = match.span(1)
        texts += [given.text[done:start], before, match[1], behind]
        places += given.positions[done:start]
        places += [given.positions[start]] * len(before)
        places += given.positions[first:last]
        places += [given.positions[end - 1]] * len(behind)
        done = end
    texts.append(given.text[done:])
    places += given.positions[done:]
    return Aligned("".join(texts), places)


def align(old: str, new: str) -> Aligned:
    """Finds out which character of a text each character of its mended form came from.

    Lines, words and at last characters that are alike are taken to be the same; between them the places are spread.

    Args:
        old: the text as it was.
        new: the text as it is now.
    """
    return Aligned(new, range(len(new)) if old == new else _places(old, new, ("\n", " ")))


def _places(old: str, new: str, separators: Sequence[str]) -> Sequence[int]:
    if len(old) == len(new):
        return range(len(old))
    if not separators:
        return _matched(old, new)
    before, after = old.split(separators[0]), new.split(separators[0])
    if len(before) != len(after) or len(before) == 1:
        return _places(old, new, separators[1:])
    places: list[int] = []
    start = 0
    for one, other in zip(before, after, strict=True):
        # The separator behind each part but the last comes from itself.
        places += [start + place for place in _places(one, other, separators[1:])]
        start += len(one) + 1
        places.append(start - 1)
    return places[:-1]


def _matched(old: str, new: str) -> list[int]:
    if len(old) * len(new) > _MOST_PAIRS:
        return _spread(0, len(old), len(new), len(old))
    places: list[int] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, start, end, first, last in matcher.get_opcodes():
        places += range(start, end) if kind == "equal" else _spread(start, end, last - first, len(old))
    return places


def _spread(start: int, end: int, count: int, length: int) -> list[int]:
    """Gives places for `count` characters that came of those from `start` to `end`."""
    return [min(start + number * (end - start) // count, max(length - 1, 0)) for number in range(count)]


class BasicWords:
    """Splits texts as BERT does, in lower case and without accents: where ftfy or spaCy is missing."""

    name: Final = "basic"

    def __init__(self) -> None:
        self._basic = BasicTokenizer(do_lower_case=True)

    def words(self, text: str) -> list[str]:
        """Gives the words of a text.

        Args:
            text: a plain text.
        """
        return self._basic.split(text)

    def normalize_aligned(self, text: str) -> Aligned:
        """Gives the text as words are looked for in it.

        Args:
            text: a plain text.
        """
        return self._basic.normalize_aligned(text)

    def normalize(self, text: str) -> str:
        """Does the same without the places.

        Args:
            text: a plain text.
        """
        return self._basic.normalize(text)

    def aligned_words(self, text: str) -> list[Aligned]:
        """Gives the words of a text with the places of their characters.

        Args:
            text: a plain text.
        """
        whole = self.normalize_aligned(text)
        return [Aligned(whole.text[start:end], whole.positions[start:end]) for start, end in words_in(whole.text)]

    def parts(self, text: str) -> list[str]:
        """Divides a text into parts that have its words in a row: nothing looks across a space.

        Args:
            text: a plain text.
        """
        return text.split(" ")


@functools.cache
def _word_tools() -> tuple[Any, Any]:
    """Gives `ftfy.fix_text` and spaCy's tokenizer of English, which takes 0.3 s to build and is the same for all."""
    import ftfy
    import spacy

    return ftfy.fix_text, spacy.blank("en").tokenizer


class SpacyWords:
    """Splits texts as OpenAI GPT learned them: ftfy, `text_standardize`, spaCy's rules for English, lower case."""

    name: Final = "spacy"

    def words(self, text: str) -> list[str]:
        """Gives the words of a text.

        Args:
            text: a plain text.
        """
        fix, split = _word_tools()
        return [word.text.lower() for word in split(text_standardize(fix(text)))]

    def normalize_aligned(self, text: str) -> Aligned:
        """Gives the text as added tokens are looked for in it.

        Args:
            text: a plain text.
        """
        return steps.lower(self._standard(text))

    def normalize(self, text: str) -> str:
        """Does the same without the places.

        Args:
            text: a plain text.
        """
        return text_standardize(_word_tools()[0](text)).lower()

    def _standard(self, text: str) -> Aligned:
        return standardize_aligned(align(text, _word_tools()[0](text)))

    def aligned_words(self, text: str) -> list[Aligned]:
        """Gives the words of a text with the places of their characters.

        Args:
            text: a plain text.
        """
        whole = self._standard(text)
        spans = [(word.idx, word.idx + len(word.text)) for word in _word_tools()[1](whole.text)]
        return [steps.lower(Aligned(whole.text[start:end], whole.positions[start:end])) for start, end in spans]

    def parts(self, text: str) -> list[str]:
        """Leaves a text whole: ftfy and spaCy look across spaces.

        Args:
            text: a plain text.
        """
        return [text]
