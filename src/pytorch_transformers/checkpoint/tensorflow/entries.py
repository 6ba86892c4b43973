"""From the table of an index to variables, with every claim checked that can be checked without the values.

Source: tensorflow/core/protobuf/tensor_bundle.proto. The key "" holds the header, every other key a variable or, if it
begins with a zero byte, a part of a partitioned variable.
"""

import itertools
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ..refused import broken
from .messages import DTYPES, ENDIANNESS, STRING, Entry, Header, parse_entry, parse_header
from .slices import SLICE, Box, box, check_tiling, slice_key
from .table import read_table

#: The version of the format that this reader knows (kTensorBundleVersion).
VERSION: Final = 1
HEADER_KEY: Final = b""

_MAX_AXES: Final = 254  # of any tensor in TensorFlow (TensorShape::MaxDimensions)
_MAX_BYTES: Final = 2**63 - 1


class Part(NamedTuple):
    """Values that lie together: all of a variable, or one of its slices.

    Attributes:
        shard: Number of the data file.
        offset: Place in the data file, in bytes.
        nbytes: Size in bytes.
        crc: Masked checksum of the bytes.
        where: Start and length along each axis of the variable.
    """

    shard: int
    offset: int
    nbytes: int
    crc: int
    where: Box


@dataclass(frozen=True)
class Variable:
    """What a checkpoint says of one variable.

    Attributes:
        name: Its name.
        shape: Sizes of its axes; empty for a scalar.
        dtype: Name of its type as in torch, `string`, or `DT_` and TensorFlow's number for other types.
        nbytes: Bytes it takes in the data files.
        shards: Numbers of the data files that hold it, ascending.
        parts: Where the values lie; more than one for a partitioned variable.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    shards: tuple[int, ...]
    parts: tuple[Part, ...] = field(repr=False)


def read_index(path: Path) -> tuple[int, dict[str, Variable]]:
    """The variables an index lists.

    Returns:
        The number of data files, and the variables under their names, sorted.

    Raises:
        OSError: The index is damaged, of another kind or version, or contradicts itself. The message names the variable
            where it is about one.
    """
    table = read_table(path)
    try:
        header = parse_header(table.pop(HEADER_KEY))
    except KeyError:
        raise broken(path, "it is a table, but no index of a TensorFlow V2 checkpoint: it has no header") from None
    except ValueError as error:
        raise broken(path, str(error)) from error
    _check_header(header, path)
    try:
        variables = _variables(table, header.shards)
        _check_places(variables)
    except ValueError as error:
        raise broken(path, str(error)) from error
    return header.shards, variables


def _check_header(header: Header, path: Path) -> None:
    """Refuse checkpoints of another byte order or version.

    Raises:
        OSError: It is one.
    """
    if header.endianness != ENDIANNESS[sys.byteorder]:
        raise OSError(
            f"{path} cannot be read: its values are not {sys.byteorder}-endian, as this machine is (byte order "
            f"{header.endianness} in its header). Load it on a machine like the one that wrote it, and save the values "
            "there in a format without byte order, such as safetensors."
        )
    if header.producer < 0 or header.min_consumer > VERSION or VERSION in header.bad_consumers:
        raise OSError(
            f"{path} cannot be read: version {header.producer} of the format, for readers from version "
            f"{header.min_consumer} (not {list(header.bad_consumers)}); this reader knows version {VERSION}. "
            "Load it with the TensorFlow that wrote it and save it in the older format."
        )
    if header.shards < 1:
        raise broken(path, f"it claims {header.shards} data files")


def _variables(table: dict[bytes, bytes], shards: int) -> dict[str, Variable]:
    """All variables, their parts put together.

    Raises:
        ValueError: An entry contradicts itself or another one.
    """
    slices = {key: value for key, value in table.items() if key.startswith(SLICE)}
    variables = {}
    for key, value in table.items():
        if key.startswith(SLICE):
            continue
        try:
            name = key.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"the name {key!r} is not UTF-8") from error
        try:
            variables[name] = _variable(name, parse_entry(value), shards, slices)
        except ValueError as error:
            raise ValueError(f"variable {name!r}: {error}") from error
    if slices:
        raise ValueError(f"the part {min(slices)!r} belongs to no variable")
    return variables


def _variable(name: str, entry: Entry, shards: int, slices: dict[bytes, bytes]) -> Variable:
    """One variable. Takes the entries of its parts out of `slices`.

    Raises:
        ValueError: Its entry, or that of one of its parts, contradicts itself or the other.
    """
    shape = _checked_shape(entry)
    if entry.slices:
        boxes = [box(extents, shape) for extents in entry.slices]
        check_tiling(boxes, shape)
        parts = []
        for extents, where in zip(entry.slices, boxes, strict=True):
            value = slices.pop(slice_key(name.encode(), extents), None)
            if value is None:
                raise ValueError(f"the entry of its slice {where} is missing")
            of_slice = parse_entry(value)
            if of_slice.dtype != entry.dtype or of_slice.slices:
                raise ValueError(f"its slice {where} is of another kind")
            if _checked_shape(of_slice) != tuple(length for _, length in where):
                raise ValueError(f"its slice {where} has the shape {of_slice.shape}")
            parts.append(_part(of_slice, where, shards))
    else:
        parts = [_part(entry, tuple((0, size) for size in shape), shards)]
    return Variable(
        name=name,
        shape=shape,
        dtype="string" if entry.dtype == STRING else DTYPES.get(entry.dtype, (f"DT_{entry.dtype}",))[0],
        nbytes=sum(part.nbytes for part in parts),
        shards=tuple(sorted({part.shard for part in parts})),
        parts=tuple(parts),
    )


def _checked_shape(entry: Entry) -> tuple[int, ...]:
    """The shape, if values of this shape can be.

    Raises:
        ValueError: They cannot.
    """
    shape = entry.shape
    if shape is None or len(shape) > _MAX_AXES or any(size < 0 for size in shape):
        raise ValueError(f"the shape {'of unknown rank' if shape is None else shape[:_MAX_AXES]} is impossible")
    # Axes of size 0 left out: torch and NumPy compute strides with the others, which must not overflow either.
    _, itemsize = DTYPES.get(entry.dtype, ("", 1))
    if math.prod(size for size in shape if size) * itemsize > _MAX_BYTES:
        raise ValueError(f"the shape {shape} is impossible")
    return shape


def _part(entry: Entry, where: Box, shards: int) -> Part:
    """The place of values.

    Raises:
        ValueError: There is no such place, or it has not the size for the shape.
    """
    if not 0 <= entry.shard < shards:
        raise ValueError(f"it lies in data file {entry.shard} of {shards}")
    if entry.offset < 0 or entry.nbytes < 0:
        raise ValueError(f"its place is impossible: offset {entry.offset}, size {entry.nbytes}")
    if entry.dtype in DTYPES:
        name, itemsize = DTYPES[entry.dtype]
        shape = tuple(length for _, length in where)
        if entry.nbytes != math.prod(shape) * itemsize:
            raise ValueError(f"{entry.nbytes} bytes are not the size of shape {shape} and type {name}")
    return Part(entry.shard, entry.offset, entry.nbytes, entry.crc, where)


def _check_places(variables: dict[str, Variable]) -> None:
    """Check that no two places overlap.

    TensorFlow never shares bytes between variables; a file that does could claim any amount of memory for few bytes.

    Raises:
        ValueError: Two do.
    """
    places = sorted(
        (part.shard, part.offset, part.offset + part.nbytes, name)
        for name, variable in variables.items()
        for part in variable.parts
        if part.nbytes
    )
    for (shard, _, end, name), (next_shard, start, _, next_name) in itertools.pairwise(places):
        if shard == next_shard and start < end:
            raise ValueError(f"variables {name!r} and {next_name!r} share bytes of data file {shard}")
