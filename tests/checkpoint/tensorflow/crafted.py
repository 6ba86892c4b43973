"""Checkpoints made for tests: tensors of all types, and indexes that say anything with valid checksums."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shutil import copyfile

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from pytorch_transformers.checkpoint.tensorflow.bundle import Bundle
from pytorch_transformers.checkpoint.tensorflow.entries import HEADER_KEY
from pytorch_transformers.checkpoint.tensorflow.messages import (
    DTYPES,
    Entry,
    Extent,
    pack_entry,
    pack_header,
    parse_entry,
    parse_header,
)
from pytorch_transformers.checkpoint.tensorflow.slices import slice_key
from pytorch_transformers.checkpoint.tensorflow.table import read_table, write_table
from pytorch_transformers.checkpoint.tensorflow.write import write_bundle

#: All types a checkpoint can hold.
TYPES = [getattr(torch, name) for name, _ in DTYPES.values()]

#: All of a tensor that has to be equal: type, shape and bytes, so that each NaN counts as itself.
Bits = tuple[torch.dtype, tuple[int, ...], bytes]

names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def bits(tensor: Tensor) -> Bits:
    """Type, shape and bytes of a tensor."""
    flat = tensor.contiguous().reshape(-1).view(torch.uint8)
    return tensor.dtype, tuple(tensor.shape), flat.numpy().tobytes()


def random_tensor(dtype: torch.dtype, shape: tuple[int, ...], seed: int = 0) -> Tensor:
    """Any bytes, NaN and infinities included."""
    draw = np.random.default_rng(seed)
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == torch.bool:
        return torch.from_numpy(draw.integers(0, 2, count).astype(bool)).reshape(shape)
    content = draw.integers(0, 256, count * dtype.itemsize, np.uint8)
    return torch.from_numpy(content).view(dtype).reshape(shape) if count else torch.empty(shape, dtype=dtype)


tensors = st.builds(random_tensor, st.sampled_from(TYPES), shapes, st.integers(0, 1 << 30))


def contents(prefix: Path) -> dict[str, Bits]:
    """All of a checkpoint."""
    bundle = Bundle(prefix)
    return {name: bits(bundle.read(name)) for name in bundle}


STATE = {
    "a": torch.arange(24.0).reshape(4, 6),
    "b": torch.tensor([True, False, True]),
    "c": torch.arange(20_000, dtype=torch.int64),
    "d": torch.tensor(7, dtype=torch.bfloat16),
}
EXPECTED = {name: bits(tensor) for name, tensor in STATE.items()}


def index(prefix: Path) -> Path:
    return Path(f"{prefix}.index")


def data(prefix: Path, shard: int = 0, shards: int = 1) -> Path:
    return Path(f"{prefix}.data-{shard:05d}-of-{shards:05d}")


def write_index(prefix: Path, table: Mapping[bytes, bytes]) -> None:
    """Replace an index by a table whose form and checksums are right, whatever it claims."""
    with index(prefix).open("wb") as stream:
        write_table(stream, sorted(table.items()))


def claim(prefix: Path, name: str, **changes: object) -> None:
    """Change what an index says of a variable, or of the checkpoint where the name is empty."""
    table = read_table(index(prefix))
    key = name.encode()
    if key == HEADER_KEY:
        table[key] = pack_header(replace(parse_header(table[key]), **changes))  # type: ignore[arg-type]
    else:
        table[key] = pack_entry(replace(parse_entry(table[key]), **changes))  # type: ignore[arg-type]
    write_index(prefix, table)


def write_parts(
    prefix: Path, name: str, whole: Tensor, places: list[tuple[Extent, ...]], other: Mapping[str, Tensor] | None = None
) -> None:
    """Write a checkpoint that holds one variable in parts, beside others; the parts may be wrong in any way."""
    pieces = []
    for place in places:
        lengths = [size if length is None else length for (_, length), size in zip(place, whole.shape, strict=False)]
        ends = [(start, start + length) for (start, _), length in zip(place, lengths, strict=False)]
        pieces.append(whole[tuple(slice(max(0, start), end) for start, end in ends)].contiguous())
    # The parts are written under names of their own, and their entries then moved to where a reader looks.
    plain = {f"part {number:04d}": piece for number, piece in enumerate(pieces)}
    write_bundle(prefix, {**(other or {}), **plain})
    table = read_table(index(prefix))
    for number, place in enumerate(places):
        table[slice_key(name.encode(), place)] = table.pop(f"part {number:04d}".encode())
    table[name.encode()] = pack_entry(
        Entry(dtype=1, shape=tuple(whole.shape), shard=0, offset=0, nbytes=0, crc=0, slices=tuple(places))
    )
    write_index(prefix, table)


def attempt(prefix: Path, name: str) -> Bits | str:
    """A variable, or the error of opening the checkpoint or reading the variable."""
    try:
        return bits(Bundle(prefix).read(name))
    except (OSError, TypeError) as error:
        return str(error)


def copied(original: Path, folder: Path) -> Path:
    for path in (index(original), data(original)):
        copyfile(path, folder / path.name)
    return folder / original.name
