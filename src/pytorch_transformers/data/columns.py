"""The columns of CoNLL: a word and its tag in each line, as named entities and the like have them.

Source: the files of CoNLL-2003 (Tjong Kim Sang and De Meulder 2003) and WNUT-17 (Derczynski et al. 2017).
Surprising: CoNLL-2003 has IOB1 tags, where `B-` only divides an entity from one of the same type right before it;
WNUT-17 has IOB2, where each entity begins with `B-`. The metrics understand both.
"""

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..files import write_text
from .tables import read_lines

OUTSIDE: Final = "O"
_DOCUMENT: Final = "-DOCSTART-"
_TAG: Final = re.compile(r"O|[BIES]-.+")  # E- and S-, the end of an entity and one of one word, are in some data


@dataclass(frozen=True)
class Sentence:
    """Words and their tags.

    Attributes:
        words: The words.
        tags: A tag for each word; None where they are not known.
    """

    words: Sequence[str]
    tags: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.tags is not None and len(self.tags) != len(self.words):
            raise ValueError(f"{len(self.words)} words and {len(self.tags)} tags; each word has one")


def read_sentences(path: str | os.PathLike[str], *, tagged: bool = True, iob2: bool = False) -> list[Sentence]:
    """Read a file with a word a line.

    Args:
        path: The file; see `parse_sentences` for what it holds.
        tagged: See `parse_sentences`.
        iob2: See `parse_sentences`.

    Raises:
        OSError: The file cannot be read.
        ValueError: A line is not as it should be; the message begins with FILE:LINE. Or there is no sentence.
    """
    sentences = list(parse_sentences(read_lines(Path(path)), os.fspath(path), tagged=tagged, iob2=iob2))
    if not sentences:
        raise ValueError(f"{os.fspath(path)}: no sentence; expected a word{' and its tag' * tagged} a line")
    return sentences


def parse_sentences(
    lines: Iterable[tuple[int, str]], name: str, *, tagged: bool = True, iob2: bool = False
) -> Iterator[Sentence]:
    """Sentences of lines with the columns of a word: the word first, the tag last, what is between is passed over.

    Columns are divided by tabs, in a line without a tab by spaces. A blank line ends a sentence, and so does a line
    of the word `-DOCSTART-`, which is left out.

    Args:
        lines: Lines with their numbers, from 1.
        name: What messages call the file.
        tagged: Whether the last column is a tag. False reads the words only.
        iob2: Whether to turn IOB1 tags into IOB2, see `to_iob2`.

    Raises:
        ValueError: A line is not as it should be; the message begins with NAME:LINE.
    """
    words: list[str] = []
    tags: list[str] = []
    columns = 0
    for number, line in itertools.chain(lines, [(0, "")]):  # the blank line ends the last sentence
        row = _columns(line)
        if not row or row[0] == _DOCUMENT:
            if words:
                yield Sentence(words, (to_iob2(tags) if iob2 else tags) if tagged else None)
            words, tags = [], []
            continue
        columns = columns or len(row)
        if len(row) != columns or not row[0] or len(row) < 1 + tagged:
            expected = f"{max(columns, 1 + tagged)}: the word first{', its tag last' * tagged}"
            raise ValueError(f"{name}:{number}: {len(row)} columns in {line.rstrip()!r:.80}; expected {expected}")
        if tagged and not _TAG.fullmatch(row[-1]):
            raise ValueError(f"{name}:{number}: the tag is {row[-1]!r:.60}; expected O, or B- or I- and a type")
        words.append(row[0])
        tags.append(row[-1])


def _columns(line: str) -> list[str]:
    if not line.strip():
        return []
    line = line.rstrip(" \r")  # other white space may be a word, such as a space that does not break
    return line.split("\t") if "\t" in line else [part for part in line.split(" ") if part]


def to_iob2(tags: Sequence[str]) -> list[str]:
    """Tags with a `B-` at the beginning of each entity; those that are IOB2 already stay as they are.

    Args:
        tags: Of one sentence, IOB1.
    """
    return [
        "B" + tag[1:] if tag[0] == "I" and (before[0] in "OES" or before[1:] != tag[1:]) else tag
        for before, tag in itertools.pairwise((OUTSIDE, *tags))
    ]


def labels_of(*splits: Iterable[Sentence]) -> list[str]:
    """The tags that occur, sorted, with O first; the place of a tag is its class.

    Args:
        *splits: Sentences, such as those for training and those for evaluation.
    """
    tags = {tag for sentences in splits for sentence in sentences for tag in sentence.tags or ()}
    return [OUTSIDE, *sorted(tags - {OUTSIDE})]


def write_tags(path: str | os.PathLike[str], sentences: Sequence[Sentence], tags: Sequence[Sequence[str]]) -> None:
    """Write a line with word, tab and tag for each word, and a blank line after each sentence.

    Args:
        path: Where the file shall be.
        sentences: The words.
        tags: The tags of each sentence.

    Raises:
        OSError: The disk refused the file.
        ValueError: There are not as many tags as words, or a word cannot stand in such a file.
    """
    lines = []
    for sentence, row in zip(sentences, tags, strict=True):
        for word, tag in zip(sentence.words, row, strict=True):
            if not word or "\t" in word or "\n" in word:
                raise ValueError(f"the word {word!r:.60} cannot be written: it is empty, or has a tab or a line break")
            lines.append(f"{word}\t{tag}\n")
        lines.append("\n")
    write_text(path, "".join(lines))
