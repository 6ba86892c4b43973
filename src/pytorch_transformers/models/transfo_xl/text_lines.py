"""Reading text files line by line: UTF-8 only, and an error names the file and the line."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: What ends a line for Python and the original program.
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")


def lines_of(path: str | os.PathLike[str]) -> Iterator[str]:
    r"""Gives the lines of a text file, their ends included as `\n`.

    Args:
        path: the file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not UTF-8.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8") as stream:
            yield from stream
    except UnicodeDecodeError:
        raise ValueError(_where(path)) from None


def _where(path: Path) -> str:
    """Says which line is at fault; the stream that failed knows only the place in its buffer."""
    content = path.read_bytes()
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = len(_LINE_END.findall(content, 0, error.start)) + 1
        return (
            f"{path}, line {line}, is not UTF-8: byte 0x{content[error.start]:02x} ({error.reason}); convert the file, "
            "as in `iconv -f latin1 -t utf-8`"
        )
    return f"{path} changed while it was read"
