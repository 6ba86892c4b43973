"""The table file of an index: sorted pairs of bytes, in checksummed blocks.

Source: doc/table_format.md of LevelDB; TensorFlow's index tables (tensorflow/core/lib/io/) hold no filter blocks and
are not compressed. From the first byte to the last:

    data block ...   pairs
    metaindex block  pairs about the table itself: none
    index block      per data block: a key from its last key up to before the next block's first, and its place
    footer           the places of the last two blocks, zeros up to 40 bytes, 8 bytes that mark the format

Surprising: reading is strict, so that no byte can change unseen. Blocks have to follow each other without a gap,
numbers have to be written in their shortest form, and what no checksum covers (the footer) can have one form only.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import google_crc32c
import numpy as np
import numpy.typing as npt

from ..refused import broken
from .block import BlockWriter, common, pack_varint, read_block, unpack_varint

MAGIC: Final = (0xDB4775248B80FB57).to_bytes(8, "little")
BLOCK_SIZE: Final = 262144  # bytes from which on a data block is closed (TensorFlow's table options)

_FOOTER: Final = 48  # bytes
_TRAILER: Final = 5  # bytes after a block: compression, then the checksum of block and compression
_PLAIN, _SNAPPY = 0, 1  # compression
_RESTART: Final = 16  # keys; in the index block every key is a restart


class _CompressedError(ValueError):
    """A block is compressed."""


class _Handle(NamedTuple):
    """The place of a block in the file, in bytes, without its trailer."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size + _TRAILER

    def pack(self) -> bytes:
        return pack_varint(self.offset) + pack_varint(self.size)


def masked_crc32c(data: bytes | npt.NDArray[np.uint8]) -> int:
    """The checksum of index and data: CRC-32C, rotated and shifted, as a checksum of bytes with checksums is weak."""
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_table(path: Path) -> dict[bytes, bytes]:
    """All pairs of a table, in the order of their keys.

    Raises:
        OSError: There is no such file, it is no table, or one of its bytes is not as it was written. Also where blocks
            are compressed, which TensorFlow does not do in an index.
    """
    with path.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - len(MAGIC)))
        if stream.read() != MAGIC:  # before anything larger is read: it may be any file
            raise broken(path, "its end is missing, or it is no index of a TensorFlow checkpoint")
        stream.seek(0)
        data = stream.read()
    try:
        return _parse(data)
    except _CompressedError as error:
        raise OSError(
            f"{path} cannot be read: {error}. Load it with TensorFlow, which writes the indexes of its checkpoints "
            "without compression, and save it again."
        ) from error
    except ValueError as error:
        raise broken(path, str(error)) from error


def write_table(stream: BinaryIO, items: Iterable[tuple[bytes, bytes]]) -> None:
    """Write pairs as a table, byte for byte as TensorFlow does.

    Args:
        stream: Where to.
        items: Keys, strictly ascending, and values.

    Raises:
        ValueError: A key does not come after the one before it.
    """
    offset = 0

    def put(writer: BlockWriter) -> _Handle:
        nonlocal offset
        block = writer.finish()
        checked = block + bytes([_PLAIN])
        stream.write(checked + masked_crc32c(checked).to_bytes(4, "little"))
        handle = _Handle(offset, len(block))
        offset = handle.end
        return handle

    index, block = BlockWriter(restart=1), BlockWriter(_RESTART)
    last: bytes | None = None
    for key, value in items:
        if last is not None and key <= last:
            raise ValueError(f"The key {key!r} comes after {last!r}: keys have to ascend.")
        if last is not None and block.size >= BLOCK_SIZE:
            index.add(_separator(last, key), put(block).pack())
            block = BlockWriter(_RESTART)
        block.add(key, value)
        last = key
    if last is not None:
        index.add(_separator(last, None), put(block).pack())
    footer = put(BlockWriter(_RESTART)).pack() + put(index).pack()
    stream.write(footer.ljust(_FOOTER - len(MAGIC), b"\0") + MAGIC)


def _separator(key: bytes, following: bytes | None) -> bytes:
    """A short key from `key` up to before `following`, or up to anything at the end of the table."""
    at = len(key) - len(key.lstrip(b"\xff")) if following is None else common(key, following)
    if at < len(key) and key[at] + 1 < (256 if following is None else following[at]):
        return key[:at] + bytes([key[at] + 1])
    return key


def _parse(data: bytes) -> dict[bytes, bytes]:
    """All pairs, every byte accounted for.

    Raises:
        ValueError: A byte is not as it was written.
    """
    end = len(data) - _FOOTER
    if end < 0:
        raise ValueError("its beginning is missing")
    meta, at = _handle(data, end)
    index, at = _handle(data, at)
    if at > len(data) - len(MAGIC) or any(data[at : -len(MAGIC)]):
        raise ValueError("its footer is damaged")
    if meta.end != index.offset or index.end != end:
        raise ValueError("its footer is damaged, or bytes are missing or were added before it")
    if any(True for _ in read_block(_block(data, meta))):
        raise ValueError("it holds a kind of blocks that TensorFlow does not write")

    table: dict[bytes, bytes] = {}
    offset = 0
    last: bytes | None = None
    for separator, place in read_block(_block(data, index)):
        handle, used = _handle(place, 0)
        if used != len(place) or handle.offset != offset or handle.end > meta.offset:
            raise ValueError("its blocks do not follow each other")
        for key, value in read_block(_block(data, handle)):
            if last is not None and key <= last:
                raise ValueError(f"its keys are not in order at {key!r}")
            table[key] = value
            last = key
        if last is None or separator < last:
            raise ValueError(f"its index is out of order at {separator!r}")
        last = separator
        offset = handle.end
    if offset != meta.offset:
        raise ValueError("bytes are missing or were added after its last block")
    return table


def _block(data: bytes, handle: _Handle) -> bytes:
    """The content of a block, its checksum compared."""
    checked, crc = data[handle.offset : handle.end - 4], data[handle.end - 4 : handle.end]
    if masked_crc32c(checked).to_bytes(4, "little") != crc:
        raise ValueError(f"its bytes {handle.offset} to {handle.end} do not match their checksum")
    if checked[-1] != _PLAIN:
        raise _CompressedError("it is compressed" + (" with Snappy" if checked[-1] == _SNAPPY else ""))
    return checked[:-1]


def _handle(data: bytes, at: int) -> tuple[_Handle, int]:
    offset, at = unpack_varint(data, at)
    size, at = unpack_varint(data, at)
    return _Handle(offset, size), at
