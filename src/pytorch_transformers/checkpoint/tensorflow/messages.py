"""The messages of a checkpoint, as protocol buffers, and the numbers TensorFlow gives to types.

Source: the field numbers of tensorflow/core/protobuf/tensor_bundle.proto, core/framework/tensor_shape.proto,
tensor_slice.proto, versions.proto and types.proto, and python/training/checkpoint_state.proto.

The messages are built at run time in a pool of their own: in the pool that all programs share, a TensorFlow in the same
process would find its own names taken.
"""

import functools
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

#: Number -> name and bytes of a value, of the types that have the same form here. The names are those of torch.
DTYPES: Final = {
    1: ("float32", 4),
    2: ("float64", 8),
    3: ("int32", 4),
    4: ("uint8", 1),
    5: ("int16", 2),
    6: ("int8", 1),
    8: ("complex64", 8),
    9: ("int64", 8),
    10: ("bool", 1),
    14: ("bfloat16", 2),
    17: ("uint16", 2),
    18: ("complex128", 16),
    19: ("float16", 2),
    22: ("uint32", 4),
    23: ("uint64", 8),
}
STRING: Final = 7  # values of any length

#: Byte order -> its number in the header.
ENDIANNESS: Final = {"little": 0, "big": 1}

# Message -> field, number, type: a number type, another message here, or a list of them. Enumerations are int32: on the
# wire they are the same. `/` marks a field whose absence means something else than zero.
_MESSAGES: Final = {
    "VersionDef": (("producer", 1, "int32"), ("min_consumer", 2, "int32"), ("bad_consumers", 3, "int32*")),
    "BundleHeaderProto": (("num_shards", 1, "int32"), ("endianness", 2, "int32"), ("version", 3, "VersionDef")),
    "Dim": (("size", 1, "int64"), ("name", 2, "string")),
    "TensorShapeProto": (("dim", 2, "Dim*"), ("unknown_rank", 3, "bool")),
    "Extent": (("start", 1, "int64"), ("length", 2, "int64/")),
    "TensorSliceProto": (("extent", 1, "Extent*"),),
    "BundleEntryProto": (
        ("dtype", 1, "int32"),
        ("shape", 2, "TensorShapeProto"),
        ("shard_id", 3, "int32"),
        ("offset", 4, "int64"),
        ("size", 5, "int64"),
        ("crc32c", 6, "fixed32"),
        ("slices", 7, "TensorSliceProto*"),
    ),
    "CheckpointState": (("model_checkpoint_path", 1, "string"), ("all_model_checkpoint_paths", 2, "string*")),
}
_PACKAGE: Final = "pytorch_transformers.tensorflow"

#: Start and length of a slice along one axis; the length is None for the whole axis.
Extent = tuple[int, int | None]


@dataclass(frozen=True)
class Header:
    """What an index says of its checkpoint (BundleHeaderProto)."""

    shards: int
    endianness: int
    producer: int
    min_consumer: int
    bad_consumers: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """What an index says of one variable, or of one slice of a variable (BundleEntryProto). Nothing of it is checked.

    Attributes:
        dtype: Number of the type.
        shape: Sizes of the axes; None if the number of axes is said to be unknown.
        shard: Number of the data file.
        offset: Place of the values in the data file, in bytes.
        nbytes: Their size in bytes.
        crc: Their masked checksum.
        slices: For a variable saved in parts: one tuple of extents, one per axis, for each part.
    """

    dtype: int
    shape: tuple[int, ...] | None
    shard: int
    offset: int
    nbytes: int
    crc: int
    slices: tuple[tuple[Extent, ...], ...] = ()


def parse_header(data: bytes) -> Header:
    """Read a header.

    Raises:
        ValueError: It is no message of this kind.
    """
    message = _parse("BundleHeaderProto", data)
    version = message.version
    return Header(
        message.num_shards,
        message.endianness,
        version.producer,
        version.min_consumer,
        tuple(version.bad_consumers),
    )


def parse_entry(data: bytes) -> Entry:
    """Read an entry.

    Raises:
        ValueError: It is no message of this kind.
    """
    message = _parse("BundleEntryProto", data)
    return Entry(
        dtype=message.dtype,
        shape=None if message.shape.unknown_rank else tuple(dim.size for dim in message.shape.dim),
        shard=message.shard_id,
        offset=message.offset,
        nbytes=message.size,
        crc=message.crc32c,
        slices=tuple(
            tuple(
                (extent.start, extent.length if extent.HasField("length") else None) for extent in tensor_slice.extent
            )
            for tensor_slice in message.slices
        ),
    )


def pack_header(header: Header) -> bytes:
    """The bytes of a header, as TensorFlow writes them: zeros left out."""
    message = _new("BundleHeaderProto")
    message.num_shards = header.shards
    message.endianness = header.endianness
    message.version.producer = header.producer
    message.version.min_consumer = header.min_consumer
    message.version.bad_consumers.extend(header.bad_consumers)
    return message.SerializeToString(deterministic=True)


def pack_entry(entry: Entry) -> bytes:
    """The bytes of an entry, as TensorFlow writes them: zeros left out."""
    message = _new("BundleEntryProto")
    message.dtype = entry.dtype
    message.shape.SetInParent()  # TensorFlow writes the shape of a scalar too, though it is empty
    if entry.shape is None:
        message.shape.unknown_rank = True
    for size in entry.shape or ():
        message.shape.dim.add().size = size
    message.shard_id = entry.shard
    message.offset = entry.offset
    message.size = entry.nbytes
    message.crc32c = entry.crc
    for extents in entry.slices:
        tensor_slice = message.slices.add()
        for start, length in extents:
            extent = tensor_slice.extent.add()
            extent.start = start
            if length is not None:
                extent.length = length
    return message.SerializeToString(deterministic=True)


def parse_state(text: str) -> str:
    """The checkpoint that a folder's state file names, empty if it names none.

    Raises:
        ValueError: It is no such file.
    """
    message = _new("CheckpointState")
    try:
        text_format.Parse(text, message, allow_unknown_field=True)  # newer ones hold the times of the checkpoints
    except text_format.ParseError as error:
        raise ValueError(str(error)) from error
    return message.model_checkpoint_path


def _parse(name: str, data: bytes) -> Any:
    message = _new(name)
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise ValueError(f"it is no {name} ({error})") from error
    return message


def _new(name: str) -> Any:
    """An empty message. Its fields are known at run time only, hence no type."""
    return _classes()[name]()


@functools.cache
def _classes() -> dict[str, Any]:
    """The classes of all messages."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind in fields:
            _add_field(message, field_name, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES
    }


def _add_field(message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str) -> None:
    kinds = descriptor_pb2.FieldDescriptorProto
    base = kind.rstrip("*/")
    field = message.field.add(name=name, number=number)
    field.label = kinds.LABEL_REPEATED if kind.endswith("*") else kinds.LABEL_OPTIONAL
    if base in _MESSAGES:
        field.type = kinds.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{base}"
    else:
        field.type = kinds.Type.Value(f"TYPE_{base.upper()}")
    if kind.endswith("/"):
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"has_{name}")
