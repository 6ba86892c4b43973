"""TFRecord files of `tf.train.Example`, as the original program writes them, without TensorFlow.

Sources: tensorflow/core/lib/io/record_writer.h (a record is its length in eight bytes, the checksum of these, the
content, its checksum) and core/example/feature.proto. The features stand in the order in which the original program
with TensorFlow 2.15 writes them, so that the same instances make the same bytes.
"""

import functools
import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from ...checkpoint.tensorflow.table import masked_crc32c
from ...files import atomic_write
from .instances import Instance
from .options import InstanceOptions
from .rows import Row, row_of

Values = Sequence[int] | Sequence[float]

#: The features of an instance in the order of the original's files; True for those of real numbers.
_FEATURES: Final = {
    "masked_lm_ids": False,
    "input_ids": False,
    "masked_lm_positions": False,
    "next_sentence_labels": False,
    "input_mask": False,
    "masked_lm_weights": True,
    "segment_ids": False,
}
#: How many packed `_common` features are kept, of some hundred bytes each; most inputs are full and need few.
_KEPT: Final = 1 << 12
_PACKAGE: Final = "pytorch_transformers.example"
#: No record of the original is near this long; a damaged length may be anything.
_LONGEST: Final = 1 << 30


def write_tfrecords(paths: Sequence[Path], instances: Iterable[Instance], options: InstanceOptions) -> int:
    """Writes instances to one file or to several in turn; all appear whole or none does.

    Args:
        paths: The files.
        instances: Masked instances with a second text.
        options: How they were made: the arrays are filled with zeros to its lengths.

    Returns:
        How many there were.

    Raises:
        OSError: The disk refused a file.
    """
    count = 0
    with ExitStack() as written:
        temporary = [written.enter_context(atomic_write(path)) for path in paths]
        with ExitStack() as opened:
            streams = [opened.enter_context(path.open("wb")) for path in temporary]
            for instance in instances:
                write_record(streams[count % len(streams)], pack_instance(instance, options))
                count += 1
    return count


def features_of(instance: Instance, options: InstanceOptions) -> dict[str, Values]:
    """The arrays of an instance as the original's files have them: T and P long, zeros behind.

    Args:
        instance: A masked instance with a second text.
        options: Gives T, `max_seq_length`, and P, `max_predictions_per_seq`.
    """
    return {**_own(instance, options), **_common(*_sizes(instance, options))}


def _own(instance: Instance, options: InstanceOptions) -> dict[str, Values]:
    """The first of the features: those that each instance has for itself."""
    most = options.max_predictions_per_seq
    return {
        "masked_lm_ids": _filled(instance.labels or [], most),
        "input_ids": _filled(instance.input_ids, options.max_seq_length),
        "masked_lm_positions": _filled(instance.positions or [], most),
    }


def _sizes(instance: Instance, options: InstanceOptions) -> tuple[int, int, int, bool, int, int]:
    """All that the others depend on, the arguments of `_common`."""
    length, masked = len(instance.input_ids), len(instance.labels or [])
    is_random = bool(instance.is_random_next)
    return length, instance.second, masked, is_random, options.max_seq_length, options.max_predictions_per_seq


def _common(length: int, second: int, masked: int, is_random: bool, longest: int, most: int) -> dict[str, Values]:
    """The last of the features, which are the same in many instances."""
    return {
        "next_sentence_labels": [int(is_random)],
        "input_mask": _filled([1] * length, longest),
        "masked_lm_weights": [1.0] * masked + [0.0] * (most - masked),
        "segment_ids": _filled([0] * second + [1] * (length - second), longest),
    }


def _filled(values: Sequence[int], length: int) -> list[int]:
    return [*values, *[0] * (length - len(values))]


def write_record(stream: BinaryIO, content: bytes) -> None:
    """Writes one record.

    Args:
        stream: Where to.
        content: What it holds.
    """
    length = struct.pack("<Q", len(content))
    stream.write(b"".join((length, _checksum(length), content, _checksum(content))))


def _checksum(content: bytes) -> bytes:
    return struct.pack("<I", masked_crc32c(content))


def read_records(path: Path) -> Iterator[bytes]:
    """Gives the contents of the records of a file.

    Raises:
        OSError: It cannot be read, or is damaged or no TFRecord file; the message says where.
    """
    with path.open("rb") as stream:
        for place, length in _places(path, stream):
            yield _content(path, stream, place, length)


def _places(path: Path, stream: BinaryIO) -> Iterator[tuple[int, int]]:
    """Where each content begins, and its length. The stream may be moved in between."""
    size = os.fstat(stream.fileno()).st_size
    at = 0
    while at < size:
        stream.seek(at)
        head = stream.read(12)
        if len(head) < 12 or masked_crc32c(head[:8]) != struct.unpack("<I", head[8:])[0]:
            raise _damaged(path, at, "the length of a record does not match its checksum")
        (length,) = struct.unpack("<Q", head[:8])
        if length > _LONGEST or at + 16 + length > size:
            raise _damaged(path, at, "the file ends within a record")
        yield at + 12, length
        at += 16 + length


def _content(path: Path, stream: BinaryIO, place: int, length: int) -> bytes:
    stream.seek(place)
    data = stream.read(length + 4)
    if len(data) < length + 4 or masked_crc32c(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
        raise _damaged(path, place, "a record does not match its checksum")
    return data[:-4]


def _damaged(path: Path, place: int, what: str) -> OSError:
    return OSError(f"{path}, byte {place}: {what}; it is no TFRecord file, or damaged")


class TFRecordDataset:
    """The rows of TFRecord files that the original program or this one made; a map-style dataset of torch.

    Args:
        files: The files, read in this order.

    Raises:
        OSError: A file is missing, damaged or no TFRecord file.
        ValueError: No file is named.
    """

    def __init__(self, files: Sequence[str | os.PathLike[str]]) -> None:
        self.files = [Path(file) for file in files]
        if not self.files:
            raise ValueError("files: name at least one TFRecord file")
        places: list[tuple[int, int, int]] = []
        for number, path in enumerate(self.files):
            with path.open("rb") as stream:
                places += [(number, place, length) for place, length in _places(path, stream)]
        self._places = np.array(places, np.int64).reshape(-1, 3)
        self._streams: dict[int, BinaryIO] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Open files can't be sent to another process, which opens its own.
        return {**self.__dict__, "_streams": {}}

    def __len__(self) -> int:
        return len(self._places)

    def instance(self, number: int) -> Instance:
        """Gives one instance.

        Args:
            number: From 0, or back from -1.

        Raises:
            IndexError: There is no such instance.
            OSError: The record is damaged, or is no instance of the original program.
        """
        if not -len(self) <= number < len(self):
            raise IndexError(f"there is no instance {number}; there are {len(self)}")
        file, place, length = self._places[number].tolist()
        path = self.files[file]
        if file not in self._streams:
            self._streams[file] = path.open("rb")
        try:
            return _instance(parse_example(_content(path, self._streams[file], place, length)))
        except (KeyError, ValueError, IndexError) as error:
            raise _damaged(path, place, f"a record is no instance of create_pretraining_data ({error!r})") from error

    def __getitem__(self, number: int) -> Row:
        """One row: `input_ids`, `token_type_ids`, `masked_lm_labels` and `next_sentence_label`, see `row_of`."""
        return row_of(self.instance(number))

    def close(self) -> None:
        """Closes the files; they are opened again when asked for."""
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()

    def __del__(self) -> None:
        if hasattr(self, "_streams"):
            self.close()


def _instance(features: Mapping[str, Sequence[Any]]) -> Instance:
    length = sum(features["input_mask"])
    segments = features["segment_ids"][:length]
    masked = [i for i, weight in enumerate(features["masked_lm_weights"]) if weight]
    return Instance(
        list(features["input_ids"][:length]),
        segments.index(1) if 1 in segments else length,
        bool(features["next_sentence_labels"][0]),
        [features["masked_lm_positions"][i] for i in masked],
        [features["masked_lm_ids"][i] for i in masked],
    )


def pack_instance(instance: Instance, options: InstanceOptions) -> bytes:
    """The bytes of the `tf.train.Example` of an instance: those of `features_of`, in its order.

    Args:
        instance: A masked instance with a second text.
        options: See `features_of`.
    """
    # On the wire a map is its entries one after the other, and so those that come again and again are packed once.
    features = _pack(_own(instance, options)) + _packed_common(*_sizes(instance, options))
    return bytes(_classes()["PackedExample"](features=features).SerializeToString())


def _pack(features: Mapping[str, Values]) -> bytes:
    message = _classes()["Features"]()
    for name, values in features.items():
        entry = message.feature.add(key=name)
        numbers = entry.value.float_list if _FEATURES[name] else entry.value.int64_list
        numbers.value.extend(values)
    return bytes(message.SerializeToString())


@functools.lru_cache(_KEPT)
def _packed_common(length: int, second: int, masked: int, is_random: bool, longest: int, most: int) -> bytes:
    return _pack(_common(length, second, masked, is_random, longest, most))


def parse_example(data: bytes) -> dict[str, list[Any]]:
    """The numbers in a `tf.train.Example`; texts are left out.

    Args:
        data: The bytes.

    Raises:
        ValueError: It is no such message.
    """
    from google.protobuf.message import DecodeError

    message = _classes()["Example"]()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise ValueError(f"it is no tf.train.Example ({error})") from error
    return {
        entry.key: list(entry.value.int64_list.value or entry.value.float_list.value)
        for entry in message.features.feature
    }


# Message -> field, number, type. On the wire a map is a repeated message of key and value, which keeps its order.
_MESSAGES: Final = {
    "FloatList": (("value", 1, "float*"),),
    "Int64List": (("value", 1, "int64*"),),
    "Feature": (("float_list", 2, "FloatList"), ("int64_list", 3, "Int64List")),
    "Entry": (("key", 1, "string"), ("value", 2, "Feature")),
    "Features": (("feature", 1, "Entry*"),),
    "Example": (("features", 1, "Features"),),
    "PackedExample": (("features", 1, "bytes"),),  # the same on the wire
}


@functools.cache
def _classes() -> dict[str, Any]:
    """The classes of all messages, in a pool of their own: that of a TensorFlow in the same process has its own."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # not for those who read shards

    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind in fields:
            entry = message.field.add(name=field_name, number=number)
            entry.label = kinds.LABEL_REPEATED if kind.endswith("*") else kinds.LABEL_OPTIONAL
            base = kind.rstrip("*")
            if base in _MESSAGES:
                entry.type = kinds.TYPE_MESSAGE
                entry.type_name = f".{_PACKAGE}.{base}"
            else:
                entry.type = kinds.Type.Value(f"TYPE_{base.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES
    }
