"""The corpus as ids on disk: one file for each block of sentences, and a table of all documents.

This is what lets a corpus be larger than memory while a random next sentence may come from anywhere in it.
Files: `part-00000.safetensors` ... with `ids` [tokens], `offsets` [sentences + 1] of the sentences in `ids`, and
`documents` [sentences]; `table.safetensors` with `parts` [parts + 1] and `documents` [documents + 1], the first
sentence of each in the corpus and the number of all.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .arrays import map_arrays, write_arrays
from .documents import Block

if TYPE_CHECKING:
    from ...tokenizers.base import PreTrainedTokenizer

TABLE: Final = "table.safetensors"
#: Files that are kept open at a time.
_OPEN: Final = 64


def part_name(number: int) -> str:
    """The name of the file of a block."""
    return f"part-{number:05d}.safetensors"


def encode_plain(tokenizer: "PreTrainedTokenizer", texts: Sequence[str]) -> list[list[int]]:
    """The ids of texts in which `[SEP]` or `[MASK]` is text as any other, as in the original program.

    Args:
        tokenizer: Encodes them.
        texts: The texts.
    """
    return tokenizer._pipeline.ids(texts, split_special=True)


def write_part(
    path: Path,
    block: Block,
    tokenizer: "PreTrainedTokenizer",
    id_type: "np.dtype[Any]",
    longest: int,
) -> None:
    """Encodes the sentences of a block and writes them. Sentences without tokens are left out.

    Args:
        path: The file.
        block: The sentences.
        tokenizer: Encodes them.
        id_type: A type that holds all its ids.
        longest: Tokens; longer sentences become several, as an input could not hold the whole.

    Raises:
        OSError: The disk refused the file.
    """
    rows: list[Sequence[int]] = []
    documents: list[int] = []
    for document, row in zip(block.documents, encode_plain(tokenizer, block.texts), strict=True):
        pieces = [row] if 0 < len(row) <= longest else [row[i : i + longest] for i in range(0, len(row), longest)]
        rows += pieces
        documents += [document] * len(pieces)
    offsets = [0, *accumulate(map(len, rows))]
    write_arrays(
        path,
        {
            "ids": np.fromiter(chain.from_iterable(rows), id_type, offsets[-1]),
            "offsets": np.array(offsets, np.int64),
            "documents": np.array(documents, np.int64),
        },
    )


def write_table(folder: Path, parts: int) -> None:
    """Writes the table of all documents, once all parts are there.

    Args:
        folder: Where the parts are.
        parts: How many.

    Raises:
        OSError: A part is missing or damaged, or the disk refused the file.
    """
    starts, documents = [0], [np.zeros(0, np.int64)]
    last = -1  # number of the document that the part before ended with
    for number in range(parts):
        of_sentences = map_arrays(folder / part_name(number))["documents"]
        begins = np.flatnonzero(np.diff(of_sentences, prepend=last))
        documents.append(begins + starts[-1])
        starts.append(starts[-1] + len(of_sentences))
        last = int(of_sentences[-1]) if len(of_sentences) else last
    write_arrays(
        folder / TABLE,
        {"parts": np.array(starts, np.int64), "documents": np.concatenate([*documents, np.array(starts[-1:])])},
    )


class Part(NamedTuple):
    """One file. Fields: `ids` [tokens] and `offsets` [sentences + 1] of its sentences in them."""

    ids: npt.NDArray[Any]
    offsets: "memoryview[int]"


class Tokens:
    """The corpus as ids, memory-mapped.

    Args:
        folder: Where `write_part` and `write_table` have written.

    Raises:
        OSError: A file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        table = map_arrays(folder / TABLE)
        #: [parts + 1] first sentence of each part in the corpus, and the number of all sentences.
        self.parts = _view(table["parts"])
        #: [documents + 1] the same for the documents.
        self.documents = _view(table["documents"])

        @lru_cache(maxsize=_OPEN)
        def part(number: int) -> Part:
            arrays = map_arrays(folder / part_name(number))
            return Part(arrays["ids"], _view(arrays["offsets"]))

        self.part = part

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.documents) - 1


def _view(values: npt.NDArray[np.int64]) -> "memoryview[int]":
    """The same values where single ones are looked up: an array would make an object of its own for each."""
    return values.data.cast("B").cast("q")
