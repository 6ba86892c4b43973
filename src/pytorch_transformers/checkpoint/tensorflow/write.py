"""Writing a TensorFlow V2 checkpoint: one data file and its index, as TensorFlow itself lays them out.

One tensor at a time is taken and written, so a mapping that computes its tensors when they are asked for never holds
all of them.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

import torch
from torch import Tensor

from ...files import atomic_write
from .entries import HEADER_KEY, VERSION
from .find import index_of
from .messages import DTYPES, ENDIANNESS, Entry, Header, pack_entry, pack_header
from .slices import SLICE
from .table import masked_crc32c, write_table

_NUMBERS: Final = {getattr(torch, name): number for number, (name, _) in DTYPES.items()}


def write_bundle(prefix: Path, tensors: Mapping[str, Tensor]) -> list[Path]:
    """Write tensors as a checkpoint that TensorFlow can load.

    Both files are complete under temporary names before the first takes its place. The index comes last: should the
    machine stop just between the two, the old index meets new data, and a reader refuses values whose checksums differ.

    Args:
        prefix: Path of the checkpoint, without an ending. Its folder is created.
        tensors: Names and tensors, of any device and layout in memory. Asked for each tensor once, in sorted order.

    Returns:
        The data file and the index.

    Raises:
        ValueError: A name is not possible in a checkpoint, or a tensor has no data (meta device) or is sparse.
        TypeError: A tensor is of a type that TensorFlow does not have.
        OSError: The disk refused a file. An earlier checkpoint of this prefix is as it was.
    """
    names = sorted(tensors)
    for name in names:
        _check_name(name)
    index = index_of(prefix)
    data = prefix.with_name(f"{prefix.name}.data-00000-of-00001")
    header = Header(shards=1, endianness=ENDIANNESS[sys.byteorder], producer=VERSION, min_consumer=0, bad_consumers=())
    items = [(HEADER_KEY, pack_header(header))]
    # The inner block ends first: the data file is renamed before the index.
    with atomic_write(index) as temporary_index, atomic_write(data) as temporary_data:
        with temporary_data.open("wb") as stream:
            items += [(name.encode(), pack_entry(_write_values(stream, name, tensors[name]))) for name in names]
        with temporary_index.open("wb") as stream:
            write_table(stream, items)
    return [data, index]


def _write_values(stream: BinaryIO, name: str, tensor: Tensor) -> Entry:
    """Write the values of one tensor at the end of the data file."""
    if tensor.dtype not in _NUMBERS:
        known = ", ".join(sorted(known for known, _ in DTYPES.values()))
        raise TypeError(f"{name!r} is of type {tensor.dtype}, which a TensorFlow checkpoint cannot hold: {known}.")
    if tensor.is_meta or tensor.layout != torch.strided:
        kind = "on the meta device, without data to save" if tensor.is_meta else f"of layout {tensor.layout}"
        raise ValueError(f"{name!r} is {kind}. Load it first, or make it dense.")
    # Conjugates and negatives are marks on a tensor until they are asked for.
    dense = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    content = dense.reshape(-1).view(torch.uint8).numpy()
    offset = stream.tell()
    stream.write(content.data)
    return Entry(
        dtype=_NUMBERS[tensor.dtype],
        shape=tuple(tensor.shape),
        shard=0,
        offset=offset,
        nbytes=content.nbytes,
        crc=masked_crc32c(content),
    )


def _check_name(name: str) -> None:
    """Refuse names that the format gives another meaning.

    Raises:
        ValueError: It is such a name.
    """
    try:
        key = name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} cannot be the name of a variable: it is no valid Unicode.") from None
    if key == HEADER_KEY or SLICE in key:
        raise ValueError(f"{name!r} cannot be the name of a variable: it has to have characters, none of them '\\0'.")
