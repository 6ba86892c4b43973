"""Reading and writing `vocab.txt`: one token a line, the id of a token is the number of its line, from 0.

A line ends at a newline and nowhere else. Published vocabularies hold U+2028, U+0085 and other characters that
`str.splitlines` would take for line ends, and lines with nothing on them; each of them is an entry with its own id.
"""

import logging
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


def tokens_of(vocab: str | os.PathLike[str] | Sequence[str]) -> tuple[list[str], str]:
    """Gives the tokens of a vocabulary in order of their ids, and what to call it in messages.

    Args:
        vocab: the path of a vocabulary file, or the tokens themselves.

    Raises:
        OSError: there is no such file, or it cannot be read.
        TypeError: it is neither a path nor a sequence of str.
        ValueError: the file is not UTF-8 text, or there are no tokens.
    """
    if isinstance(vocab, (str, os.PathLike)):
        path = os.fspath(vocab)
        if not Path(path).is_file():
            raise OSError(f"there is no vocabulary file {path!r}; from_pretrained(...) takes a folder or a name")
        return read_tokens(path), f"the vocabulary {path!r}"
    if not isinstance(vocab, Sequence) or not all(isinstance(token, str) for token in vocab):
        raise TypeError(f"a vocabulary is the path of a file or a list of str, not {vocab!r:.60}")
    if not vocab:
        raise ValueError("the vocabulary is empty")
    return list(vocab), "the vocabulary"


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


class TokensById(Mapping[int, str]):
    """A list of tokens, looked at as a mapping from id to token. It costs nothing to make.

    Args:
        tokens: the tokens in order of their ids.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens

    def __getitem__(self, number: int) -> str:
        try:
            place = operator.index(number)
        except TypeError:
            raise KeyError(number) from None
        if not 0 <= place < len(self._tokens):
            raise KeyError(number)
        return self._tokens[place]

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self._tokens)))

    def __len__(self) -> int:
        return len(self._tokens)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tokens)"
