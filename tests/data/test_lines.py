"""Lines of files and pipes: where they end, what they are, and what is said about bad ones."""

import io
import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers.data.lines import BadLineError, LineReader


def read(data: bytes, replace: bool = False, live: bool = False) -> list[object]:
    return list(LineReader(io.BytesIO(data), "in.txt", replace=replace, live=live))


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\n\ntwo\n", ["one", "", "two"]),
        (b"\n", [""]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"  one \t\n", ["one"]),
        ("one\u2028still one\u0085and\x0bon\nfe\rw\n".encode(), ["one\u2028still one\u0085and\x0bon", "fe\rw"]),
        ("\ufeffone\n\ufefftwo\n".encode(), ["one", "\ufefftwo"]),  # a byte order mark stands at the beginning only
        (b"a ||| b\n", [("a", "b")]),
        (b"a ||| b ||| c\n", [("a ||| b", "c")]),
        (b"a|||b\n", ["a|||b"]),
        (b"a ||| \n", ["a |||"]),
        (b"x" * 100_000 + b"\ny", ["x" * 100_000, "y"]),
    ],
)
def test_lines_of_a_file(data: bytes, lines: list[object]) -> None:
    assert read(data) == lines


def test_bad_bytes_stop_with_file_and_line() -> None:
    with pytest.raises(BadLineError, match=r"in\.txt, line 3: not UTF-8 .*--on_bad_line replace"):
        read(b"one\ntwo\n\xff\nfour\n")


def test_bad_bytes_are_replaced_and_listed_on_request() -> None:
    reader = LineReader(io.BytesIO(b"\xef\xbb\xbfa\xff\nb\n\xc3\n"), "in.txt", replace=True)
    assert list(reader) == ["a\ufffd", "b", "\ufffd"]
    assert reader.replaced == [1, 3]


def test_utf16_is_refused() -> None:
    with pytest.raises(BadLineError, match="line 1"):
        read("one\n".encode("utf-16"))


def test_skipped_lines_are_counted_and_bad_ones_noted() -> None:
    reader = LineReader(io.BytesIO(b"a\n\xff\nc\n\xff\ne"), "in.txt", replace=True)
    reader.skip(3)
    assert reader.lines == 3
    assert list(reader) == ["\ufffd", "e"]
    assert reader.replaced == [2, 4]


@pytest.fixture
def pipe() -> Iterator[tuple[io.BufferedReader, int]]:
    """A reader and the descriptor that writes to it."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream:
        yield stream, writing


def test_live_reader_says_when_there_is_no_more_for_now(pipe: tuple[io.BufferedReader, int]) -> None:
    stream, writing = pipe
    lines = iter(LineReader(stream, "standard input", live=True))
    os.write(writing, b"one\ntwo\nthr")
    assert [next(lines) for _ in range(3)] == ["one", "two", None]
    os.write(writing, b"ee ||| 3\n")
    assert next(lines) == ("three", "3")
    assert next(lines) is None
    os.write(writing, b"last")
    os.close(writing)
    assert [line for line in lines if line is not None] == ["last"]


@given(parts=st.lists(st.binary(max_size=8), max_size=8))
def test_live_lines_equal_those_of_a_file(parts: list[bytes]) -> None:
    reading, writing = os.pipe()

    def write() -> None:
        for part in parts:
            os.write(writing, part)
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(reading, "rb") as stream:
        found = [line for line in LineReader(stream, "", replace=True, live=True) if line is not None]
    writer.join()
    assert found == read(b"".join(parts), replace=True)


def test_live_lines_longer_than_a_pipe(pipe: tuple[io.BufferedReader, int]) -> None:
    stream, writing = pipe
    data = b"x" * 300_000 + b"\n" + b"y" * 200_000

    def write() -> None:
        with os.fdopen(writing, "wb") as out:
            out.write(data)

    writer = threading.Thread(target=write)
    writer.start()
    found = [line for line in LineReader(stream, "", live=True) if line is not None]
    writer.join()
    assert found == read(data)


def test_live_reader_of_what_is_no_pipe() -> None:
    assert read(b"one\ntwo", live=True) == ["one", "two"]
