r"""Prepare public-domain books as text to pre-train small models on.

    python assets/prepare_books.py BOOKS OUT

BOOKS is a folder of Project Gutenberg texts, pg120.txt and so on. OUT gets `sentences/NAME.txt`, one sentence a line,
and `paragraphs/NAME.txt`, one paragraph a line, both with a blank line between chapters.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pytorch_transformers.data.pretraining.documents import split_sentences

_HEADING = re.compile(r"(chapter|part|book|volume|adventure|letter)\b.{0,60}|[IVXLC]+\.?( .{0,60})?", re.IGNORECASE)


def chapters(text: str) -> Iterator[list[str]]:
    """The chapters of a book: their paragraphs, each on one line."""
    chapter: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        paragraph = " ".join(block.split()).replace("_", "")
        if _HEADING.fullmatch(paragraph):
            if len(chapter) > 3:  # not a line of a table of contents
                yield chapter
                chapter = []
        elif paragraph:
            chapter.append(paragraph)
    if chapter:
        yield chapter


def main(books: Path, out: Path) -> None:
    """Write both forms of every book."""
    for form in ("sentences", "paragraphs"):
        (out / form).mkdir(parents=True, exist_ok=True)
    for path in sorted(books.glob("pg*.txt")):
        found = list(chapters(path.read_text(encoding="utf-8")))
        (out / "paragraphs" / path.name).write_text("\n\n".join("\n".join(chapter) for chapter in found) + "\n")
        sentences = [[s for paragraph in chapter for s in split_sentences(paragraph)] for chapter in found]
        (out / "sentences" / path.name).write_text("\n\n".join("\n".join(chapter) for chapter in sentences) + "\n")
        print(f"{path.name}: {len(found)} chapters, {sum(map(len, sentences))} sentences")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
