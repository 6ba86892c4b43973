"""A block of a table: sorted pairs of bytes, close together.

Source: doc/table_format.md of LevelDB. Neighbours in a sorted list of names begin alike, so a key leaves out what it
shares with the key before it; every 16th is whole, a "restart", whose place is listed at the end of the block.
"""

import itertools
from collections.abc import Iterator
from typing import Final

import numpy as np

# A key can repeat the one before it for a few bytes of file. As TensorFlow restarts, keys are at most 16 times as long
# as the block; a block far beyond that was made to fill the memory.
_EXPANSION: Final = 64


def read_block(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The pairs of a block, keys whole.

    Raises:
        ValueError: It is no block.
    """
    words = np.frombuffer(block, "<u4", offset=len(block) % 4)  # restarts stand at the end, whatever is before them
    count = int(words[-1]) if len(words) else 0
    if not 1 <= count < len(words):
        raise ValueError("a block has no restarts")
    end = len(block) - 4 * (count + 1)
    restarts = set(words[-count - 1 : -1].tolist())
    seen = {0}
    at, expanded = 0, 0
    key = b""
    while at < end:
        start = at
        shared, at = unpack_varint(block, at)
        fresh, at = unpack_varint(block, at)
        length, at = unpack_varint(block, at)
        if shared > (0 if start in restarts else len(key)) or at + fresh + length > end:
            raise ValueError("the lengths in a block are wrong")
        if start in restarts:
            seen.add(start)
        expanded += shared + fresh
        if expanded > _EXPANSION * len(block):
            raise ValueError("its keys are made to be far longer than the file")
        key = key[:shared] + block[at : at + fresh]
        at += fresh + length
        yield key, block[at - length : at]
    if seen != restarts or len(restarts) != count:
        raise ValueError("the restarts of a block are wrong")


class BlockWriter:
    """Collects the pairs of one block.

    Args:
        restart: Every how many keys one is written whole.
    """

    def __init__(self, restart: int) -> None:
        self.count = 0
        self._restart = restart
        self._data = bytearray()
        self._restarts = [0]
        self._last = b""

    @property
    def size(self) -> int:
        """Bytes of the block, were it finished now."""
        return len(self._data) + 4 * len(self._restarts) + 4

    def add(self, key: bytes, value: bytes) -> None:
        """Append a pair, whose key comes after those before it."""
        shared = 0
        if self.count % self._restart:
            shared = common(self._last, key)
        elif self.count:
            self._restarts.append(len(self._data))
        for number in (shared, len(key) - shared, len(value)):
            self._data += pack_varint(number)
        self._data += key[shared:] + value
        self._last = key
        self.count += 1

    def finish(self) -> bytes:
        """The bytes of the block."""
        numbers = (*self._restarts, len(self._restarts))
        return bytes(self._data) + b"".join(number.to_bytes(4, "little") for number in numbers)


def common(first: bytes, second: bytes) -> int:
    """How many bytes two keys have in common at their beginnings."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def unpack_varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits, seven to a byte, low ones first; and where it ends.

    Raises:
        ValueError: There is none, or it is not written in its shortest form.
    """
    number = 0
    for count, byte in enumerate(data[at : at + 10]):
        number |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            if (byte == 0 and count) or number >= 1 << 64:
                break
            return number, at + count + 1
    raise ValueError("a number in it is damaged")


def pack_varint(number: int) -> bytes:
    """The bytes of such a number."""
    packed = bytearray()
    while number >= 0x80:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)
    return bytes(packed)
