"""Reading and writing `vocab.txt`: one token a line, the id of a token is the number of its line, from 0.

A line ends at a newline and nowhere else. Published vocabularies hold U+2028, U+0085 and other characters that
`str.splitlines` would take for line ends, and lines with nothing on them; each of them is an entry with its own id.
"""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..files import write_text

logger = logging.getLogger(__name__)


def read_tokens(path: str | Path) -> list[str]:
    """Reads the tokens of a vocabulary file, so that `tokens[i]` is the token with id `i`.

    A byte-order mark before the first token and one carriage return before a newline are removed; nothing else is.

    Args:
        path: the vocabulary file, UTF-8.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not UTF-8 text, or is empty.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"the vocabulary {str(path)!r} is not UTF-8 text: {error}") from error
    if not text:
        raise ValueError(f"the vocabulary {str(path)!r} is empty; it should hold one token a line")
    lines = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines]


def index_tokens(tokens: Sequence[str], description: str = "the vocabulary") -> dict[str, int]:
    """Maps each token to its id, the place in the list.

    A token that occurs twice keeps the later id, as in the original program; it is reported in the log.

    Args:
        tokens: the tokens in order of their ids.
        description: what to call the vocabulary in the log.
    """
    vocab = {token: index for index, token in enumerate(tokens)}
    if len(vocab) != len(tokens):
        repeated = sorted({token for index, token in enumerate(tokens) if vocab[token] != index})
        logger.warning(
            "%s holds %d token(s) more than once, the last id of each is used: %s",
            description,
            len(repeated),
            ", ".join(map(repr, repeated[:10])) + (", ..." if len(repeated) > 10 else ""),
        )
    return vocab


def load_vocab(vocab_file: str | Path) -> dict[str, int]:
    """Reads a vocabulary file into a mapping from token to id, in order of the lines.

    Args:
        vocab_file: the vocabulary file, UTF-8, one token a line.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not UTF-8 text, or is empty.
    """
    return index_tokens(read_tokens(vocab_file), f"the vocabulary {str(vocab_file)!r}")


def save_tokens(tokens: Iterable[str], path: str | Path) -> Path:
    """Writes tokens one a line, in order of their ids; the file appears whole or not at all.

    Args:
        tokens: the tokens in order of their ids.
        path: the file to write.

    Raises:
        ValueError: a token holds a newline and would take two lines.
    """
    tokens = list(tokens)
    broken = [token for token in tokens if "\n" in token]
    if broken:
        raise ValueError(f"a token with a newline cannot be saved one a line: {broken[0]!r}")
    path = Path(path)
    write_text(path, "".join(token + "\n" for token in tokens))
    return path
