"""Text files to train on, line by line in bounded memory. A line ends at a line feed and nowhere else."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

#: A line of more bytes than this is given in parts where the reader asks for bounded memory.
LONGEST_LINE: Final = 1 << 18

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def find_text_files(files: Files) -> list[Path]:
    """Gives the files that are meant, in the order named; those of one pattern in the order of their names.

    Args:
        files: a path or several; a str may hold several divided by commas, each of them a path or a pattern such as
            `texts/*.txt`.

    Raises:
        OSError: nothing is there, or a folder is.
        ValueError: no file is named, or one is named twice.
    """
    named = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    found: list[Path] = []
    for name in named:
        if not isinstance(name, str) or Path(name).exists():
            found.append(Path(name))
            continue
        for pattern in filter(None, (part.strip() for part in name.split(","))):
            matches = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern))  # noqa: PTH207 - any root
            if not matches:
                raise FileNotFoundError(f"{pattern}: there is no such text file")
            found += map(Path, matches)
    for path in found:
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; name its files, as in '{path}/*.txt'")
        if not path.exists():
            raise FileNotFoundError(f"{path}: there is no such text file")
    if not found:
        raise ValueError("no text file is named")
    if len(set(found)) != len(found):
        twice = next(path for path in found if found.count(path) > 1)
        raise ValueError(f"{twice} is named more than once, and its text would count more than once")
    return found


def read_lines(path: Path, longest: int | None = None, *, keep_ends: bool = False) -> Iterator[str]:
    r"""Gives the lines of a UTF-8 file without the line feed and without one carriage return before it.

    Args:
        path: the file; a byte order mark is no part of its text.
        longest: bytes from which a line is given in parts, cut before a space where there is one; None to give all
            lines whole, which needs as much memory as the longest.
        keep_ends: whether a line that has an end is given with `\n`.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not UTF-8 text; the message says in which line.
    """
    with path.open("rb") as stream:
        for number, raw, ended in _raw_lines(stream, longest):
            if b"\0" in raw:
                raise ValueError(
                    f"{path}:{number}: a byte of zero; this looks like a binary file, and text is expected"
                )
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                hint = (
                    "unpack it first" if raw.startswith(b"\x1f\x8b") else "convert it, as in iconv -f latin1 -t utf-8"
                )
                raise ValueError(
                    f"{path}:{number}: this is not UTF-8 text: byte 0x{raw[error.start]:02x} ({error.reason}); {hint}"
                ) from None
            yield line + "\n" if ended and keep_ends else line


def _raw_lines(stream: BinaryIO, longest: int | None) -> Iterator[tuple[int, bytes, bool]]:
    """Lines or parts of lines as bytes, with the number of the line from 1 and whether it ends there."""
    number, rest = 1, b""
    while raw := stream.readline(-1 if longest is None else longest):
        whole = longest is None or len(raw) < longest
        raw = rest + raw
        rest = b""
        if raw.endswith(b"\n"):
            yield number, raw.removesuffix(b"\n").removesuffix(b"\r"), True
            number += 1
        elif whole:  # the last line of a file that has no line feed at its end
            rest = raw
        else:
            cut = _cut(raw)
            yield number, raw[:cut], False
            rest = raw[cut:]
    if rest:
        yield number, rest.removesuffix(b"\r"), False


def _cut(raw: bytes) -> int:
    """Where a long line may be cut: before its last space, or else between two characters."""
    # A carriage return at the end may belong to the end of the line.
    end = len(raw) - raw.endswith(b"\r")
    space = raw.rfind(b" ", 1, end)
    if space > 0:
        return space
    while end > 1 and raw[end - 1] & 0xC0 == 0x80:  # the bytes of a character after its first
        end -= 1
    return max(end - 1, 1)
