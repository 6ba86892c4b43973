"""The lines of a file or a pipe as texts, with their numbers. Needs no torch to be imported."""

import os
import re
import select
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from .rows import Text

_PAIR: Final = re.compile(r"(.*) \|\|\| (.*)")  # as the original: the last " ||| " divides
_CHUNK: Final = 1 << 16  # bytes; what a pipe holds on Linux
_PATIENCE: Final = 0.02  # seconds without a byte after which whoever writes the pipe is taken to wait for an answer


class BadLineError(ValueError):
    """A line of the input that is no text; the message has its number."""


@dataclass
class LineReader:
    """The lines of a stream as texts and pairs; lines end at a line feed only, white space around them is dropped.

    Attributes:
        stream: Where the bytes come from.
        name: What messages call it.
        replace: Whether bytes that are no UTF-8 are replaced, and the line number kept in `replaced`; otherwise they
            are an error.
        live: Whether to yield None when the stream has no further line for now, so that those so far can be answered.
        replaced: Numbers of the lines with replaced bytes, from 1.
        lines: How many lines were read.
    """

    stream: BinaryIO
    name: str
    replace: bool = False
    live: bool = False
    replaced: list[int] = field(default_factory=list)
    lines: int = 0

    def __iter__(self) -> "Iterator[Text | None]":
        for raw in _live_lines(self.stream) if self.live else self.stream:
            if raw is None:
                yield None
                continue
            self.lines += 1
            yield self._text(raw)

    def skip(self, count: int) -> None:
        """Pass over lines whose results there are already; bad ones among them are noted all the same."""
        for _ in islice(self, count):
            pass

    def _text(self, raw: bytes) -> "Text":
        codec = "utf-8-sig" if self.lines == 1 else "utf-8"  # a byte order mark is no part of the text
        try:
            line = raw.decode(codec)
        except UnicodeDecodeError as error:
            if not self.replace:
                raise BadLineError(
                    f"{self.name}, line {self.lines}: not UTF-8 ({error.reason} at byte {error.start}); "
                    "convert the file, or pass --on_bad_line replace"
                ) from error
            self.replaced.append(self.lines)
            line = raw.decode(codec, errors="replace")
        line = line.strip()
        pair = _PAIR.fullmatch(line)
        return (pair[1], pair[2]) if pair else line


def _live_lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """Lines as they come, None before each wait for more."""
    try:
        descriptor = stream.fileno()
    except OSError:  # no stream of the system, so nothing to wait for
        yield from stream
        return
    begun: list[bytes] = []  # the line so far
    while True:
        if not select.select([descriptor], [], [], _PATIENCE)[0]:
            yield None
        *ends, rest = os.read(descriptor, _CHUNK).split(b"\n")
        for end in ends:
            yield b"".join((*begun, end))
            begun = []
        if not ends and not rest:  # the end of the stream
            break
        begun.append(rest)
    if last := b"".join(begun):
        yield last
