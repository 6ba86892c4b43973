"""Arrays in a safetensors file: written whole or not at all, and read memory-mapped."""

import hashlib
import json
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

from ...files import atomic_write

Arrays = Mapping[str, npt.NDArray[Any]]

#: Name of a type in the file -> the type; more are not used here.
_TYPES: Final = {"U8": "<u1", "U16": "<u2", "I32": "<i4", "I64": "<i8"}
_LENGTH: Final = 8  # bytes that say how long the header is
_CHUNK: Final = 1 << 20


def write_arrays(path: Path, arrays: Arrays) -> str:
    """Writes arrays of unsigned 8- and 16-bit and signed 32- and 64-bit integers.

    Args:
        path: The file.
        arrays: Name -> array.

    Returns:
        The SHA-256 of the file.

    Raises:
        OSError: The disk refused it; nothing is left behind.
    """
    content = save({name: np.ascontiguousarray(values) for name, values in arrays.items()})
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def map_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Gives the arrays of a file, memory-mapped and read-only; what isn't looked at isn't read.

    Raises:
        OSError: The file is missing, cut off, or no safetensors file of integers.
    """
    try:
        with path.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        (length,) = struct.unpack("<Q", mapped[:_LENGTH])
        header = json.loads(mapped[_LENGTH : _LENGTH + length])
        header.pop("__metadata__", None)
        found = {}
        for name, entry in header.items():
            begin, end = (_LENGTH + length + place for place in entry["data_offsets"])
            kind = np.dtype(_TYPES[entry["dtype"]])
            if end > len(mapped):
                raise ValueError(f"it ends before the end of {name}")
            found[name] = np.frombuffer(mapped, kind, (end - begin) // kind.itemsize, begin).reshape(entry["shape"])
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise OSError(f"{path} is damaged ({error}); remove it and make it again") from error
    return found


def sha256_of(path: Path) -> str:
    """Gives the SHA-256 of a file.

    Raises:
        OSError: It cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
