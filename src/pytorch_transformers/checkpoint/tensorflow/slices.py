"""Variables saved in parts: the names of the parts, and whether they fill the variable.

Source: tensorflow/core/util/saved_tensor_slice_util.cc (the names) and core/lib/strings/ordered_code.cc (their bytes).
A part has an entry of its own, whose key is made of the variable's name and the place of the part. All such keys begin
with a zero byte, which no variable's name does.
"""

import math
from collections.abc import Sequence
from typing import Final

from .messages import Extent

SLICE: Final = b"\0"  # what the key of a part begins with
_WHOLE_AXIS: Final = -1  # the length in a key of an axis that is not cut

#: Start and length of a part along each axis.
Box = tuple[tuple[int, int], ...]


def slice_key(name: bytes, extents: Sequence[Extent]) -> bytes:
    """The key of a part.

    Args:
        name: The variable's name in UTF-8. (Bytes 255, which the format escapes too, do not occur in it.)
        extents: The place of the part, as the variable's entry says it.
    """
    places = b"".join(
        _pack_signed(start) + _pack_signed(_WHOLE_AXIS if length is None else length) for start, length in extents
    )
    return SLICE + name.replace(b"\0", b"\0\xff") + b"\0\x01" + _pack_unsigned(len(extents)) + places


def box(extents: Sequence[Extent], shape: tuple[int, ...]) -> Box:
    """Where a part lies in its variable.

    Raises:
        ValueError: It does not lie inside.
    """
    if len(extents) != len(shape):
        raise ValueError(f"a slice has {len(extents)} axes, the variable {len(shape)}")
    found = tuple(
        (start, size if length is None else length) for (start, length), size in zip(extents, shape, strict=True)
    )
    if any(
        start < 0 or length < 0 or start + length > size for (start, length), size in zip(found, shape, strict=True)
    ):
        raise ValueError(f"the slice {_show(found)} lies outside the shape {shape}")
    return found


def check_tiling(boxes: Sequence[Box], shape: tuple[int, ...]) -> None:
    """Check that parts, each inside the shape, fill it and do not overlap.

    Raises:
        ValueError: They do not.
    """
    active: list[Box] = []
    for current in sorted(boxes):
        # In order of their starts on the first axis, a part that ended before this one cannot meet a later one either.
        active = [other for other in active if not shape or sum(other[0]) > current[0][0]]
        for other in active:
            if all(a < b + m and b < a + n for (a, n), (b, m) in zip(current, other, strict=True)):
                raise ValueError(f"the slices {_show(other)} and {_show(current)} overlap")
        active.append(current)
    volume = sum(math.prod(length for _, length in part) for part in boxes)
    if volume != math.prod(shape):
        raise ValueError(f"its slices hold {volume} of {math.prod(shape)} values")


def _show(part: Box) -> str:
    return "[" + ", ".join(f"{start}:{start + length}" for start, length in part) + "]"


def _pack_unsigned(number: int) -> bytes:
    """A number whose bytes sort as the numbers do: how many bytes, then the bytes, high ones first."""
    size = (number.bit_length() + 7) // 8
    return bytes([size]) + number.to_bytes(size, "big")


def _pack_signed(number: int) -> bytes:
    """The same for any sign: in n bytes, 7 n bits of two's complement under n bits that say n.

    Those n bits are ones for numbers from zero up and zeros for those below, opposite to the sign bit that follows.
    """
    size = 1
    while not -(1 << 7 * size - 1) <= number < 1 << 7 * size - 1:
        size += 1
    marks = ((1 << size) - 1) << 7 * size
    return ((number ^ marks) & ((1 << 8 * size) - 1)).to_bytes(size, "big")
