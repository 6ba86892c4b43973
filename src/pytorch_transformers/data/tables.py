"""Tables in files, row by row: TSV as GLUE has it, CSV, and JSON lines. Needs no torch to be imported.

Lines end at a line feed only (a carriage return before it goes with it), so characters that other programs take for
line ends stay in their text. Each row knows its line, and whatever is wrong with one is said as `FILE:LINE: ...`.
"""

import csv
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

TableKind = Literal["tsv", "csv", "jsonl"]

#: Ending of a file -> how it is read.
KINDS: Final[dict[str, TableKind]] = {
    ".tsv": "tsv",
    ".txt": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}


def row_error(path: Path, line: int, problem: str) -> ValueError:
    """The error to raise for a row.

    Args:
        path: The file.
        line: The line on which the row begins, from 1.
        problem: What is wrong, and what is expected.
    """
    return ValueError(f"{path}:{line}: {problem}")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers, from 1, without line ends or byte order mark.

    Empty lines at the end of the file are passed over; others are lines.

    Raises:
        OSError: The file cannot be read.
        ValueError: A line is not UTF-8.
    """
    empty = 0
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                problem = f"not UTF-8 ({error.reason} at byte {error.start} of the line); convert the file to UTF-8"
                raise row_error(path, number, problem) from error
            text = text.removesuffix("\n").removesuffix("\r")
            if not text:
                empty += 1
                continue
            yield from ((number - before, "") for before in range(empty, 0, -1))
            empty = 0
            yield number, text


class TableRow(NamedTuple):
    """A row: the line on which it begins, from 1, and its values by column."""

    line: int
    values: dict[str, str]


@dataclass(frozen=True)
class Table:
    """A table in a file; make one with `open_table`.

    Attributes:
        path: The file.
        kind: How it is read.
        columns: The names of the columns, of JSON lines those of the first object.
        has_header: Whether the first line holds the names.
    """

    path: Path
    kind: TableKind
    columns: tuple[str, ...]
    has_header: bool

    def rows(self, skipped: list[int] | None = None) -> Iterator[TableRow]:
        """The rows below the header, read from the file each time.

        In JSON lines numbers and truth values become texts as JSON writes them; null, lists and objects are left out.

        Args:
            skipped: Where given, rows with more or fewer values than there are columns are passed over, and their lines
                added to it; otherwise such a row is an error.

        Raises:
            OSError: The file cannot be read.
            ValueError: A row is malformed.
        """
        if self.kind == "jsonl":
            yield from _objects(self.path)
            return
        records = _records(self.path, self.kind)
        if self.has_header:
            next(records)
        for line, values in records:
            if len(values) == len(self.columns):
                yield TableRow(line, dict(zip(self.columns, values, strict=True)))
            elif skipped is None:
                wanted = f"{_count(len(self.columns))} expected: {', '.join(self.columns)}"
                raise self.error(line, f"{_count(len(values))}, {wanted}")
            else:
                skipped.append(line)

    def require(self, names: Iterable[str], owner: str) -> None:
        """Raise `ValueError` if there is no column of one of these names.

        Args:
            names: The names.
            owner: Who needs them, for the message.
        """
        missing = [name for name in names if name not in self.columns]
        if missing:
            said = f"{owner} needs the {_plural(missing)}, and the columns are {', '.join(map(repr, self.columns))}"
            raise self.error(1, said)

    def value(self, row: TableRow, name: str) -> str:
        """What a row has in a column.

        Raises:
            ValueError: It has nothing there, or no text; only in JSON lines, for other rows have all columns.
        """
        if name not in row.values:
            raise self.error(row.line, f"no text or number under {name!r}; expected one in each object")
        return row.values[name]

    def error(self, line: int, problem: str) -> ValueError:
        """The error to raise for a row; see `row_error`."""
        return row_error(self.path, line, problem)


def open_table(
    path: str | os.PathLike[str], *, kind: TableKind | None = None, columns: Sequence[str] | None = None
) -> Table:
    """Look at a file and read its header.

    TSV has no quoting: quote characters are text, and a value holds no tab and no line end. CSV is divided by commas
    and may quote values, which may then hold commas, line ends and doubled quotes. JSON lines hold an object each.

    Args:
        path: The file, in UTF-8 with or without a byte order mark.
        kind: How to read it; by default as its ending says, see `KINDS`.
        columns: Names of the columns of a file that has no header.

    Raises:
        OSError: The file cannot be read.
        ValueError: The ending says nothing; the file is empty or malformed; two columns have one name.
    """
    path = Path(path)
    kind = kind or KINDS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"{path}: the ending is none of {', '.join(KINDS)}; rename the file, or say which kind it is")
    if columns is not None:
        return Table(path, kind, tuple(columns), has_header=False)
    if kind == "jsonl":
        row = next(_objects(path), None)
        if row is None:
            raise row_error(path, 1, "the file is empty; expected a JSON object in each line")
        return Table(path, kind, tuple(row.values), has_header=False)
    header = next(_records(path, kind), None)
    if header is None:
        raise row_error(path, 1, "the file is empty; expected a line with the names of the columns")
    names = [name.strip() for name in header[1]]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise row_error(path, header[0], f"more than one column has the {_plural(doubled)}; names must differ")
    return Table(path, kind, tuple(names), has_header=True)


def _records(path: Path, kind: TableKind) -> Iterator[tuple[int, list[str]]]:
    """The values of each row of a TSV or CSV file, the header included, and the line on which it begins."""
    if kind == "tsv":
        for line, text in read_lines(path):
            yield line, text.split("\t")
        return
    reader = csv.reader((f"{text}\n" for _, text in read_lines(path)), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            values = next(reader, None)
        except csv.Error as error:
            raise row_error(
                path, line, f"not CSV ({error}); a value with quotes is quoted, and they doubled"
            ) from error
        if values is None:
            return
        yield line, values or [""]


def _objects(path: Path) -> Iterator[TableRow]:
    for line, text in read_lines(path):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise row_error(path, line, f"not JSON ({error}); expected an object in each line") from error
        if not isinstance(found, dict):
            raise row_error(path, line, f"a {type(found).__name__} in JSON; expected an object in each line")
        values = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in found.items()
            if isinstance(value, str | int | float)
        }
        yield TableRow(line, values)


def _count(columns: int) -> str:
    return f"{columns} column{'' if columns == 1 else 's'}"


def _plural(names: Sequence[str]) -> str:
    return f"column{'' if len(names) == 1 else 's'} {', '.join(map(repr, names))}"
