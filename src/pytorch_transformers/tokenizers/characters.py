"""What the characters of Unicode are to BERT: white space, control, punctuation, ideograph, accent.

Source: google-research/bert, tokenization.py (`_is_whitespace`, `_is_control`, `_is_punctuation`, `_is_chinese_char`,
`_run_strip_accents`). Each table below maps the code point of a character to what takes its place and is filled as
characters are met, so `str.translate` runs at the speed of C on all but the first text.
"""

import unicodedata
from typing import Final

#: Ranges of the CJK ideographs, first and last code point; Hangul, Hiragana and Katakana are words like any other.
IDEOGRAPHS: Final = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


def is_whitespace(char: str) -> bool:
    """Tells whether a character becomes a space: space, tab, newline, carriage return and every separator `Zs`.

    Args:
        char: one character.
    """
    return char in " \t\n\r" or unicodedata.category(char) == "Zs"


def is_control(char: str) -> bool:
    """Tells whether a character is dropped as a control or format character; zero-width ones are among them.

    Args:
        char: one character.
    """
    return char not in "\t\n\r" and unicodedata.category(char) in ("Cc", "Cf")


def is_punctuation(char: str) -> bool:
    """Tells whether a character stands alone: category `P*`, and every ASCII sign that is no letter, digit or space.

    Args:
        char: one character.
    """
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char).startswith("P")


def is_ideograph(char: str) -> bool:
    """Tells whether a character is a CJK ideograph, which is a word of its own.

    Args:
        char: one character.
    """
    code = ord(char)
    return any(first <= code <= last for first, last in IDEOGRAPHS)


def is_accent(char: str) -> bool:
    """Tells whether a character is a mark without width of its own (`Mn`).

    Args:
        char: one character.
    """
    return unicodedata.category(char) == "Mn"


class CleanTable(dict[int, str]):
    """Drops what is no text, makes every white space a space and, if asked, sets ideographs apart.

    Args:
        ideographs: whether to put a space on each side of CJK ideographs.
    """

    def __init__(self, *, ideographs: bool) -> None:
        super().__init__()
        self._ideographs = ideographs

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char in "\0\ufffd" or is_control(char):
            value = ""
        elif is_whitespace(char):
            value = " "
        else:
            value = f" {char} " if self._ideographs and is_ideograph(char) else char
        self[code] = value
        return value


class AccentTable(dict[int, str]):
    """Drops the accents of decomposed text."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = value = "" if is_accent(char) else char
        return value


class PunctuationTable(dict[int, str]):
    """Sets punctuation apart by a space on each side."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = value = f" {char} " if is_punctuation(char) else char
        return value


#: The tables, shared by all tokenizers of a process; the first is for `tokenize_chinese_chars=True`.
CLEAN_AND_SPACE: Final = CleanTable(ideographs=True)
CLEAN: Final = CleanTable(ideographs=False)
WITHOUT_ACCENTS: Final = AccentTable()
SPACED_PUNCTUATION: Final = PunctuationTable()
