"""The index as a table: what is written is read, and no byte of the file can change unseen."""

import tracemalloc
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_transformers.checkpoint.tensorflow import table as module
from pytorch_transformers.checkpoint.tensorflow.block import BlockWriter, pack_varint, unpack_varint
from pytorch_transformers.checkpoint.tensorflow.table import MAGIC, masked_crc32c, read_table, write_table

PAIRS = {b"": b"header", b"bert/a": b"1", b"bert/ab": b"", b"bert/b": b"\xff" * 30, b"\xff\xff": b"2"}


def packed(pairs: dict[bytes, bytes]) -> bytes:
    stream = BytesIO()
    write_table(stream, sorted(pairs.items()))
    return stream.getvalue()


def read(content: bytes, folder: Path) -> dict[bytes, bytes]:
    path = folder / "x.index"
    path.write_bytes(content)
    return read_table(path)


def file_of(
    *blocks: bytes,
    compression: int = 0,
    gap: bytes = b"",
    meta: bytes | None = None,
    late: bytes = b"",
    more: bytes = b"",
) -> bytes:
    """A table of the given data blocks, which may be wrong; separators are 1, 2, ... Checksums are right.

    Args:
        *blocks: The data blocks.
        compression: What they claim.
        gap: Bytes after each.
        meta: The metaindex block.
        late: Bytes after it.
        more: Bytes after the place of each data block.
    """
    content = b""

    def put(block: bytes, kind: int = 0) -> bytes:
        nonlocal content
        place = pack_varint(len(content)) + pack_varint(len(block))
        block += bytes([kind])
        content += block + masked_crc32c(block).to_bytes(4, "little")
        return place

    index = BlockWriter(restart=1)
    for number, block in enumerate(blocks):
        index.add(b"%d" % (number + 1), put(block, compression) + more)
        content += gap
    footer = put(BlockWriter(16).finish() if meta is None else meta)
    content += late
    footer += put(index.finish())
    return content + footer.ljust(40, b"\0") + MAGIC


def block(*pairs: tuple[bytes, bytes], restart: int = 16) -> bytes:
    writer = BlockWriter(restart)
    for key, value in pairs:
        writer.add(key, value)
    return writer.finish()


@settings(max_examples=60)
@given(st.dictionaries(st.binary(max_size=6), st.binary(max_size=300), max_size=60), st.sampled_from([1, 200, 262144]))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, pairs: dict[bytes, bytes], size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_SIZE", size)
        content = packed(pairs)
    found = read(content, tmp_path_factory.mktemp("table"))
    assert found == pairs
    assert list(found) == sorted(pairs)


@given(st.integers(0, (1 << 64) - 1))
def test_numbers(number: int) -> None:
    content = pack_varint(number)
    assert unpack_varint(b"x" + content + b"\xff", 1) == (number, 1 + len(content))


@pytest.mark.parametrize("size", [262144, 40])
def test_any_changed_byte_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Each byte once for each bit in one block, and in several blocks for one bit."""
    monkeypatch.setattr(module, "BLOCK_SIZE", size)
    content = packed(PAIRS)
    assert read(content, tmp_path) == PAIRS
    for position in range(len(content)):
        for bit in range(8) if size == 262144 else [position % 8]:
            changed = bytearray(content)
            changed[position] ^= 1 << bit
            with pytest.raises(OSError, match=r"x\.index \(\d+ bytes\) cannot be read"):
                read(bytes(changed), tmp_path)


def test_any_cut_or_addition_is_an_error(tmp_path: Path) -> None:
    content = packed(PAIRS)
    for cut in range(len(content)):
        with pytest.raises(OSError, match=r"x\.index"):
            read(content[:cut], tmp_path)
        with pytest.raises(OSError, match=r"x\.index"):
            read(content[cut + 1 :], tmp_path)
        with pytest.raises(OSError, match=r"x\.index"):
            read(content[:cut] + b"\0" + content[cut:], tmp_path)


ONE = block((b"0", b"value"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (lambda: file_of(ONE, compression=1), "compressed with Snappy. Load it with TensorFlow"),
        (lambda: file_of(ONE, compression=9), "compressed. Load it"),
        (lambda: file_of(ONE, gap=b"\0"), "bytes are missing or were added"),
        (lambda: file_of(ONE, block((b"2", b"")), gap=b"\0"), "do not follow each other"),
        (lambda: file_of(ONE, more=b"\0"), "do not follow each other"),
        (lambda: file_of(ONE, late=b"\0"), "footer is damaged, or bytes are missing or were added before it"),
        (lambda: file_of(ONE, meta=block((b"filter", b""))), "a kind of blocks"),
        (lambda: file_of(block((b"0", b""), (b"0", b""))), "keys are not in order at b'0'"),
        (lambda: file_of(ONE, block((b"1", b""))), "keys are not in order at b'1'"),
        (lambda: file_of(block((b"2", b""))), "index is out of order at b'1'"),
        (lambda: file_of(BlockWriter(16).finish()), "index is out of order at b'1'"),
        (lambda: file_of(b""), "no restarts"),
        (lambda: file_of(b"\0\0\0\0"), "no restarts"),
        (lambda: file_of(b"\xff\xff\xff\xff"), "no restarts"),
        (lambda: file_of(ONE[:-8] + b"\1\0\0\0" + b"\1\0\0\0"), "restarts of a block are wrong"),
        (lambda: file_of(ONE[:-4] + b"\0\0\0\0" + b"\2\0\0\0"), "restarts of a block are wrong"),
        (lambda: file_of(b"\1" + ONE[1:]), "lengths in a block are wrong"),
        (lambda: file_of(b"\0\x7f" + ONE[2:]), "lengths in a block are wrong"),
        (lambda: file_of(b"\0\1\x85\0" + ONE[3:]), "a number in it is damaged"),
        (lambda: MAGIC, "beginning is missing"),
        (lambda: b"\xff" * 40 + MAGIC, "a number in it is damaged"),
    ],
)
def test_wrong_tables_with_right_checksums(tmp_path: Path, content: Callable[[], bytes], reason: str) -> None:
    with pytest.raises(OSError, match=rf"x\.index.*{reason}"):
        read(content(), tmp_path)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="it is empty"):
        read(b"", tmp_path)
    with pytest.raises(OSError, match="git-lfs pointer"):
        read(b"version https://git-lfs.github.com/spec/v1\n", tmp_path)
    with pytest.raises(OSError, match="no index of a TensorFlow checkpoint"):
        read(b"\x80\x02}q\x00." * 10, tmp_path)


def test_keys_that_would_fill_the_memory(tmp_path: Path) -> None:
    """A few bytes for each repetition of a long key."""
    long, repeats = 100_000, 20_000
    entry = b"\0" + pack_varint(long) + b"\0" + b"a" * long
    entry += b"".join(pack_varint(long + number) + b"\1\0a" for number in range(repeats))
    content = file_of(entry + b"\0\0\0\0" + b"\1\0\0\0")
    tracemalloc.start()
    try:
        with pytest.raises(OSError, match="far longer than the file"):
            read(content, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(content)  # unbounded it were 10000 times
    finally:
        tracemalloc.stop()


def test_keys_have_to_ascend() -> None:
    with pytest.raises(ValueError, match=r"The key b'a' comes after b'b'"):
        write_table(BytesIO(), [(b"b", b""), (b"a", b"")])
