"""Tables: where rows begin and end, what quotes mean, and how what is wrong is named."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytorch_transformers.data.tables import TableKind, open_table, read_lines

#: Line ends to other programs, to `str.splitlines` for one, and characters that CSV and TSV could trip over.
ODD = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029'\"|\\ \u00a0é中😀"
CELL = st.text(st.sampled_from("ab,;" + ODD), max_size=6)
WIDTH = 3
CELLS = st.lists(st.lists(CELL, min_size=WIDTH, max_size=WIDTH), max_size=5)
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)


def save(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def values(path: Path, kind: TableKind | None = None) -> list[list[str]]:
    return [list(row.values.values()) for row in open_table(path, kind=kind).rows()]


@in_one_folder
@given(rows=CELLS, end=st.sampled_from(["\n", "\r\n"]), mark=st.booleans(), last=st.booleans())
def test_tsv_round_trip(tmp_path: Path, rows: list[list[str]], end: str, mark: bool, last: bool) -> None:
    lines = ["one\ttwo\tthree", *("\t".join(row) for row in rows)]
    data = ("\ufeff" if mark else "") + end.join(lines) + (end if last else "")
    table = open_table(save(tmp_path / "t.tsv", data))
    assert table.columns == ("one", "two", "three")
    assert [list(row.values.values()) for row in table.rows()] == rows
    assert [row.line for row in table.rows()] == list(range(2, len(rows) + 2))


@in_one_folder
@given(rows=st.lists(st.lists(CELL | st.just("a\nb\n\nc"), min_size=2, max_size=2), max_size=5))
def test_csv_round_trip(tmp_path: Path, rows: list[list[str]]) -> None:
    with (tmp_path / "t.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["one", "two"], *rows])
    assert values(tmp_path / "t.csv") == rows


@in_one_folder
@given(rows=st.lists(st.fixed_dictionaries({"one": st.text(), "two": st.text()}), min_size=1, max_size=5))
def test_json_lines_round_trip(tmp_path: Path, rows: list[dict[str, str]]) -> None:
    save(tmp_path / "t.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    table = open_table(tmp_path / "t.jsonl")
    assert table.columns == tuple(rows[0])
    assert [row.values for row in table.rows()] == rows


def test_quotes_of_tsv_are_text(tmp_path: Path) -> None:
    path = save(tmp_path / "t.tsv", 'a\tb\n"open\tnever "closed"\n""\t"\n')
    assert values(path) == [['"open', 'never "closed"'], ['""', '"']]


def test_csv_row_is_named_by_the_line_on_which_it_begins(tmp_path: Path) -> None:
    path = save(tmp_path / "t.csv", 'a,b\n"two\n\nlines",1\nx,2\n"y ""z""",3\n')
    assert [(row.line, row.values["a"]) for row in open_table(path).rows()] == [
        (2, "two\n\nlines"),
        (5, "x"),
        (6, 'y "z"'),
    ]


def test_json_values_that_are_no_texts(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", '{"a": "x", "n": 1, "r": 2.5, "t": true, "z": null, "l": [1], "o": {}}\n{"a": 3}')
    table = open_table(path)
    first, second = table.rows()
    assert first.values == {"a": "x", "n": "1", "r": "2.5", "t": "true"}
    assert table.value(second, "a") == "3"
    with pytest.raises(ValueError, match=r"t\.jsonl:2: no text or number under 'n'"):
        table.value(second, "n")


def test_file_without_header(tmp_path: Path) -> None:
    path = save(tmp_path / "t.tsv", "a\tb\nc\td")
    rows = list(open_table(path, columns=("one", "two")).rows())
    assert [(line, *found.values()) for line, found in rows] == [(1, "a", "b"), (2, "c", "d")]


def test_empty_lines(tmp_path: Path) -> None:
    """At the end nobody means anything by them; elsewhere they are a text, or too few columns."""
    path = save(tmp_path / "t.tsv", "text\na\n\nb\r\n\r\n\n")
    assert list(read_lines(path)) == [(1, "text"), (2, "a"), (3, ""), (4, "b")]
    assert values(path) == [["a"], [""], ["b"]]
    with pytest.raises(ValueError, match=r":3: 1 column, 2 columns expected: a, b"):
        values(save(tmp_path / "two.tsv", "a\tb\nc\td\n\ne\tf\n"))


def test_skipped_rows_are_told(tmp_path: Path) -> None:
    table = open_table(save(tmp_path / "t.tsv", "a\tb\n1\n2\t3\n4\t5\t6\n7\t8\n"))
    skipped: list[int] = []
    assert [row.line for row in table.rows(skipped)] == [3, 5]
    assert skipped == [2, 4]
    with pytest.raises(ValueError, match=r"t\.tsv:2: 1 column, 2 columns expected: a, b"):
        list(table.rows())


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("t.tsv", b"", r"t\.tsv:1: the file is empty; expected a line with the names"),
        ("t.csv", b"\n\n", r"t\.csv:1: the file is empty"),
        ("t.jsonl", b"", r"t\.jsonl:1: the file is empty; expected a JSON object"),
        ("t.tsv", b"a\tb\tb\ta\n", r":1: more than one column has the columns 'a', 'b'"),
        ("t.tsv", b"a\tb\n1\t2\n1\t\xff\n", r":3: not UTF-8 \(invalid start byte at byte 2 of the line\)"),
        ("t.tsv", "a\n1\n".encode("utf-16"), r":1: not UTF-8"),
        ("t.csv", b'a,b\n1,2\n"x"y,2\n', r":3: not CSV"),
        ("t.csv", b'a,b\n1,"2\n3,4\n', r":2: not CSV \(unexpected end of data\)"),
        ("t.csv", b"a,b\n1,2,3\n", r":2: 3 columns, 2 columns expected"),
        ("t.jsonl", b'{"a": 1}\n{"a": \n', r":2: not JSON"),
        ("t.jsonl", b'{"a": 1}\n\n{"a": 1}\n', r":2: not JSON"),
        ("t.json", b'[{"a": 1}]', r"t\.json:1: a list in JSON; expected an object in each line"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    path = save(tmp_path / name, data)
    with pytest.raises(ValueError, match=said):
        values(path)


def test_kind_of_file(tmp_path: Path) -> None:
    path = save(tmp_path / "t.data", 'a,b\n"1,2",3\n')
    with pytest.raises(ValueError, match=r"t\.data: the ending is none of \.tsv, .*say which kind"):
        open_table(path)
    assert values(path, "csv") == [["1,2", "3"]]
    assert values(save(tmp_path / "t.CSV", "a\n1\n")) == [["1"]]


def test_missing_file_and_missing_column(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.tsv"):
        open_table(tmp_path / "none.tsv")
    table = open_table(save(tmp_path / "t.tsv", "a\tb\n"))
    table.require(["b"], "this")
    with pytest.raises(ValueError, match=r":1: this needs the columns 'c', 'd', and the columns are 'a', 'b'"):
        table.require(["c", "a", "d"], "this")
