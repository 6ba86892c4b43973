"""Documents and their sentences, streamed from text files.

The layout says how a text file is read:

| layout | a document is | a sentence is |
|---|---|---|
| `sentences` | what stands between blank lines, as in the original program | a line |
| `lines` | a file | a line; blank lines are passed over |
| `paragraphs` | a paragraph of running text: the lines between blank ones | found by its full stop |
| `files` | a file of running text | found by its full stop |

For running text wrapped lines are joined. Full stops are `. ! ?` before white space, and the ideographic ones.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from ...tokenizers.text_files import LONGEST_LINE, read_lines

Layout: TypeAlias = Literal["sentences", "lines", "paragraphs", "files"]
LAYOUTS: Final[tuple[str, ...]] = get_args(Layout)
#: Ends a sentence of running text, with the quotes and brackets that close there.
_FULL_STOP: Final = re.compile(r"""[.!?…]["'”’)\]]*\s+|[。！？]["'”’」』）]*\s*""")


class Sentence(NamedTuple):
    """One sentence: the number of its document, from 0 in order of the files, and its text, which is not blank."""

    document: int
    text: str


@dataclass(frozen=True)
class Block:
    """Consecutive sentences that are worked on together; a long document goes on in the next block.

    In two lists, which go to another process in a fifth of the time of `Sentence` objects.

    Attributes:
        number: Of the block, from 0.
        documents: The number of the document of each sentence.
        texts: The text of each.
    """

    number: int
    documents: list[int]
    texts: list[str]


def read_sentences(
    files: Sequence[Path], layout: Layout = "sentences", *, join_files: bool = False, whole_lines: bool = False
) -> Iterator[Sentence]:
    """Gives the sentences of files in order.

    Args:
        files: Text files, UTF-8.
        layout: See above.
        join_files: Whether a document goes on in the next file when no blank line ends it, as in the original program.
        whole_lines: Whether lines of any length are given whole, as in the original program; otherwise a line of more
            than 256 KiB is given in several sentences, and memory is bounded.

    Raises:
        OSError: A file cannot be read.
        ValueError: A file is no UTF-8 text, or there is no such layout.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; it should be one of {', '.join(LAYOUTS)}")
    running = layout in ("paragraphs", "files")
    at_blank = layout in ("sentences", "paragraphs")
    number, filled = 0, False
    for path in files:
        lines: Iterable[str] = (line.strip() for line in read_lines(path, None if whole_lines else LONGEST_LINE))
        for text in _running(lines) if running else lines:
            if text:
                yield Sentence(number, text)
                filled = True
            elif at_blank and filled:
                number, filled = number + 1, False
        if filled and not join_files:
            number, filled = number + 1, False


def _running(lines: Iterable[str]) -> Iterator[str]:
    """Sentences of running text, and an empty text after each paragraph."""
    paragraph = ""
    for line in lines:
        if not line:
            yield from split_sentences(paragraph)
            yield ""
            paragraph = ""
            continue
        paragraph = f"{paragraph} {line}" if paragraph else line
        if len(paragraph) > LONGEST_LINE:  # what has no blank line in it is not collected for ever
            *done, paragraph = split_sentences(paragraph)
            yield from done
            if len(paragraph) > LONGEST_LINE:
                yield paragraph
                paragraph = ""
    yield from split_sentences(paragraph)
    yield ""


def split_sentences(text: str) -> list[str]:
    """Divides running text at its full stops. Abbreviations are taken for ends: good enough to train on.

    Args:
        text: Any text, its lines joined.
    """
    ends = [0, *(match.end() for match in _FULL_STOP.finditer(text)), len(text)]
    parts = (text[start:end].strip() for start, end in pairwise(ends))
    return [part for part in parts if part]


def blocks_of(sentences: Iterable[Sentence], size: int) -> Iterator[Block]:
    """Groups sentences into blocks.

    Args:
        sentences: Sentences in order.
        size: Characters; a block ends with the sentence that reaches it.
    """
    block, characters = Block(0, [], []), 0
    for document, text in sentences:
        block.documents.append(document)
        block.texts.append(text)
        characters += len(text)
        if characters >= size:
            yield block
            block, characters = Block(block.number + 1, [], []), 0
    if block.texts:
        yield block
