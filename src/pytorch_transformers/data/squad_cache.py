"""The tokens of paragraphs in a file, for later runs on the same data.

Surprising: it is not the rows that are kept. Making tokens takes five sixths of the time that rows need, and cutting
them into windows the rest; rows would take three times the place. So neither the length of rows, nor the stride, nor
the questions change a file. What does is in its name: the paragraphs, the tokenizer with its vocabulary and options,
and the versions of the programs that make the tokens. A file is never out of date.
"""

import hashlib
import logging
import os
import tempfile
import unicodedata
import zipfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..files import atomic_write

if TYPE_CHECKING:
    from ..tokenizers.base import PreTrainedTokenizer

logger = logging.getLogger(__name__)

_FORMAT: Final = 1  # of the file: counted up when it changes

#: ids, first characters and ends of the tokens of a text: [3, tokens].
Tokens = NDArray[np.int32]


def token_file(folder: str | os.PathLike[str], texts: Sequence[str], tokenizer: "PreTrainedTokenizer") -> Path:
    """Name the file for the tokens that a tokenizer makes of some texts; whatever changes them changes the name."""
    digest = hashlib.sha256()

    def add(part: bytes) -> None:
        digest.update(len(part).to_bytes(8, "little") + part)

    kind = type(tokenizer)
    for fact in (_FORMAT, __version__, metadata.version("tokenizers"), unicodedata.unidata_version, kind.__module__):
        add(str(fact).encode())
    with tempfile.TemporaryDirectory() as saved:
        for path in sorted(tokenizer.save_pretrained(saved)):
            add(Path(path).name.encode())
            add(Path(path).read_bytes())
    for text in texts:
        add(text.encode("utf-8", "surrogatepass"))
    return Path(folder) / f"paragraphs-{digest.hexdigest()[:32]}.npz"


def load_tokens(path: Path, count: int) -> list[Tokens] | None:
    """Read the tokens of `count` texts.

    Returns:
        Those of each text, or None where there is no such file. One that is damaged is named in a warning, and is none.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if (damaged := archive.testzip()) is not None:  # before NumPy believes what it says of its size
                raise ValueError(f"{damaged} does not fit its checksum")
        with np.load(path, allow_pickle=False) as arrays:
            lengths, tokens = arrays["lengths"], arrays["tokens"]
        if lengths.shape != (count,) or tokens.shape != (3, lengths.sum()):
            raise ValueError(f"arrays of {lengths.shape} and {tokens.shape} are not those of {count} paragraphs")
    except FileNotFoundError:
        return None
    except Exception as error:  # as many kinds as there are ways to damage a zip file
        logger.warning("%s: can't be read (%s); the tokens are made again", path, error)
        return None
    ends = np.cumsum(lengths)
    return [tokens[:, start:end] for start, end in zip(ends - lengths, ends, strict=True)]


def save_tokens(path: Path, tokens: Sequence[Tokens]) -> None:
    """Write the tokens of each text, whole or not at all: processes that write one file at once do no harm.

    A folder that can't be written to is named in a warning. It is no error: the tokens are there, and training goes on.
    """
    lengths = np.array([row.shape[1] for row in tokens], dtype=np.int64)
    try:
        with atomic_write(path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, lengths=lengths, tokens=np.concatenate([np.zeros((3, 0), np.int32), *tokens], axis=1))
    except OSError as error:
        logger.warning("%s: can't be written (%s); the tokens are not kept", path, error)
