"""GPT-2's way from text to symbols: pieces by a pattern, pieces to UTF-8, each byte a character that can be seen.

Source: openai/gpt-2, src/encoder.py (`bytes_to_unicode`, the pattern of `Encoder`). With bytes for symbols no text is
unknown; that each byte is written as a printable character lets vocabularies be text files.

Surprising: a space belongs to the word behind it, so "can" and " can" are different words; of several spaces the last
one does. Contractions are found in lower case only. A lone surrogate, which is no character and has no UTF-8, is
written in the three bytes that UTF-8 would give it; the original fails there.
"""

import re
from typing import Any, Final


def _byte_characters() -> list[str]:
    """Gives the character that stands for each byte.

    A byte that Latin-1 shows as a visible character is that character. The others (control characters, spaces, the soft
    hyphen) are the characters from U+0100 on, in order.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(0x100, 0x200))
    return [chr(byte if byte in visible else next(hidden)) for byte in range(256)]


#: Byte -> the character that stands for it.
BYTE_TO_CHAR: Final[tuple[str, ...]] = tuple(_byte_characters())
#: The other way round.
CHAR_TO_BYTE: Final = {char: byte for byte, char in enumerate(BYTE_TO_CHAR)}

#: What a piece is, in the syntax of the `regex` module: a contraction's end; letters, digits or other signs with the
#: space before them; white space up to the last one before a word; white space.
PIECE: Final = r"'(?:[stmd]|re|ve|ll)| ?(?:\p{L}+|\p{N}+|[^\s\p{L}\p{N}]+)|\s+(?!\S)|\s+"
#: The bytes of a lone surrogate. Nothing else has them: in UTF-8 a byte ED is followed by one below A0.
_SURROGATE: Final = re.compile(rb"(\xed[\xa0-\xbf][\x80-\xbf])")
_LATIN: Final = dict(enumerate(BYTE_TO_CHAR))

_pattern: Any = None


def piece_pattern() -> Any:
    """Gives `PIECE`, compiled."""
    global _pattern
    if _pattern is None:
        import regex  # it takes 30 ms, and only GPT-2 needs it

        _pattern = regex.compile(PIECE)
    return _pattern


def to_symbols(text: str) -> str:
    """Gives the characters that stand for the bytes of a text.

    Args:
        text: any text, lone surrogates included.
    """
    # Latin-1 gives byte n the character n, so one look-up for each character does the rest.
    return text.encode("utf-8", "surrogatepass").decode("latin-1").translate(_LATIN)


def byte_counts(text: str) -> list[int]:
    """Counts the bytes of each character of a text.

    Args:
        text: any text.
    """
    return [1 if char < "\x80" else 2 if char < "\u0800" else 3 if char < "\U00010000" else 4 for char in text]


def to_bytes(symbols: str) -> bytes:
    """Gives the bytes that characters stand for; one that stands for none is its own UTF-8.

    Args:
        symbols: the characters, such as those of a token.
    """
    return b"".join(
        bytes((CHAR_TO_BYTE[char],)) if char in CHAR_TO_BYTE else char.encode("utf-8", "surrogatepass")
        for char in symbols
    )


def to_text(content: bytes, errors: str = "replace") -> str:
    """Decodes UTF-8, in which lone surrogates come back.

    Args:
        content: the bytes.
        errors: what to do with bytes that are no text, as for `bytes.decode`; "replace" puts U+FFFD for them.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        parts = _SURROGATE.split(content)
        return "".join(
            part.decode("utf-8", "surrogatepass" if number % 2 else errors) for number, part in enumerate(parts)
        )
