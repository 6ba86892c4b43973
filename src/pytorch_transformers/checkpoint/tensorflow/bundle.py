"""Reading a TensorFlow V2 checkpoint: the variables it lists, and their values as tensors.

Values are mapped from the file and not copied: a page comes from the disk when it is first touched. Every value is
compared with its checksum before it is given out, so reading touches all of its pages once.

Surprising: each `read` maps anew. A change to one tensor is therefore seen neither in the file nor in the next `read`,
and memory goes back when the tensor goes.
"""

import mmap
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from ..refused import broken
from .entries import Part, Variable, read_index
from .find import INDEX_SUFFIX, find_prefix, index_of, is_v1
from .table import masked_crc32c

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["Bundle", "Variable", "find_prefix", "is_v1"]

# Below this size (in bytes) values are copied: a mapping takes whole pages, and a process may have some 65000 of them
# (Linux, vm.max_map_count).
_MAPPED_FROM: Final = 1 << 16


class Bundle(Mapping[str, Variable]):
    """An open checkpoint: a mapping from names, in sorted order, to what is known of the variables.

    Only the index is read and checked at first; `read` gives the values.

    Args:
        prefix: Path of the checkpoint, with or without `.index`.
        check_data: Whether the data files must be there, and whole as far as their sizes tell.

    Attributes:
        prefix: Path of the checkpoint without an ending.
        shards: Number of data files.

    Raises:
        OSError: The index or a data file is missing or damaged, or of a kind that cannot be read. The message names the
            file, the variable where it is about one, and what to do.
    """

    def __init__(self, prefix: str | os.PathLike[str], *, check_data: bool = True) -> None:
        self.prefix = _existing(Path(prefix))
        self._index = index_of(self.prefix)
        self.shards, self._variables = read_index(self._index)
        if check_data:
            self.check_data()

    def __getitem__(self, name: str) -> Variable:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __repr__(self) -> str:
        return f"Bundle({str(self.prefix)!r}): {len(self)} variables in {self.shards} data files"

    @property
    def files(self) -> list[Path]:
        """The index, and the data files that hold variables."""
        shards = sorted({shard for variable in self.values() for shard in variable.shards})
        return [self._index, *map(self._data, shards)]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of all variables."""
        return {name: variable.shape for name, variable in self.items()}

    def read(self, name: str) -> "Tensor":
        """The values of a variable, on the CPU, compared with their checksums.

        A tensor maps the file, unless it is small, was saved in parts, or lies at an odd place in the file. It may be
        changed in place: the file stays as it is.

        Args:
            name: One of the names of this mapping.

        Returns:
            A tensor of the variable's shape and type.

        Raises:
            KeyError: There is no such variable.
            TypeError: It holds strings, or values of a type that torch does not have.
            OSError: Its bytes are damaged, or a file has changed or gone since the checkpoint was opened.
        """
        import torch

        variable = self[name]
        dtype = getattr(torch, variable.dtype, None)
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"{self.prefix}: {name!r} is of type {variable.dtype}, for which torch has none.")
        if len(variable.parts) == 1:
            return self._tensor(name, variable.parts[0], dtype)
        # The parts do not overlap, neither here nor in the files: this is no larger than the files are.
        whole = torch.empty(variable.shape, dtype=dtype)
        for part in variable.parts:
            place = tuple(slice(start, start + length) for start, length in part.where)
            whole[place].copy_(self._tensor(name, part, dtype))
        return whole

    def _tensor(self, name: str, part: Part, dtype: "torch.dtype") -> "Tensor":
        """The values of one part."""
        import torch

        buffer, start = self._bytes(name, part, dtype.itemsize)
        content = np.frombuffer(buffer, np.uint8, part.nbytes, start)
        if masked_crc32c(content) != part.crc:
            raise broken(self._data(part.shard), f"{_said(name, part)}, does not match its checksum")
        if dtype == torch.bool and content.size and content.max() > 1:
            raise broken(self._data(part.shard), f"{_said(name, part)}, is of type bool and not of zeros and ones")
        shape = tuple(length for _, length in part.where)
        if not part.nbytes:  # torch.frombuffer refuses it
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(buffer, dtype=dtype, count=part.nbytes // dtype.itemsize, offset=start).reshape(shape)

    def _bytes(self, name: str, part: Part, itemsize: int) -> tuple[mmap.mmap | bytearray, int]:
        """Memory that holds the bytes of one part, and where they begin in it."""
        path = self._data(part.shard)
        with path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size < part.offset + part.nbytes:
                raise broken(path, f"it ends before the end of {_said(name, part)}")
            # Values that are not aligned are copied: TensorFlow packs them without gaps, so after a string or a bool
            # they may begin anywhere, which processors and compilers do not expect of numbers.
            if part.nbytes < _MAPPED_FROM or part.offset % itemsize:
                copy = bytearray(part.nbytes)
                stream.seek(part.offset)
                stream.readinto(copy)
                return copy, 0
            start = part.offset % mmap.ALLOCATIONGRANULARITY  # a mapping begins at a page
            size, offset = start + part.nbytes, part.offset - start
            mapping = mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_COPY, offset=offset)
        return mapping, start

    def _data(self, shard: int) -> Path:
        """The path of a data file."""
        return self.prefix.with_name(f"{self.prefix.name}.data-{shard:05d}-of-{self.shards:05d}")

    def check_data(self) -> None:
        """Check that every data file that is needed exists and reaches to the end of its last variable.

        Raises:
            OSError: One does not.
        """
        sizes: dict[int, int] = {}
        for name, variable in self.items():
            for part in variable.parts:
                path = self._data(part.shard)
                if part.shard not in sizes:
                    if not path.is_file():
                        raise OSError(
                            f"{path} is missing: it holds {name!r} and others of the checkpoint {self.prefix}. Fetch "
                            "it from where the index came from; all files of a checkpoint belong together."
                        )
                    sizes[part.shard] = path.stat().st_size
                if part.offset + part.nbytes > sizes[part.shard]:
                    raise broken(path, f"it ends before the end of {_said(name, part)}")


def _said(name: str, part: Part) -> str:
    """A variable and the place the index says it has."""
    return f"{name!r}, at bytes {part.offset} to {part.offset + part.nbytes}"


def _existing(path: Path) -> Path:
    """The prefix of the checkpoint at a path.

    Raises:
        OSError: There is none.
    """
    if index_of(path).is_file():
        return path
    if path.name.endswith(INDEX_SUFFIX) and path.is_file():
        return path.with_suffix("")
    if is_v1(path):
        raise OSError(
            f"{path} is a TensorFlow checkpoint in the older format V1 (one file), which is not read here. Load it "
            "with TensorFlow and save it again with "
            "tf.compat.v1.train.Saver(write_version=tf.compat.v1.train.SaverDef.V2)."
        )
    folder = path if path.is_dir() else path.parent
    others = sorted(str(other) for other in folder.glob(f"*{INDEX_SUFFIX}"))
    hint = f" There is {', '.join(others[:5])}." if others else ""
    raise OSError(
        f"{index_of(path)} is missing: a TensorFlow checkpoint is one file PREFIX.index and data files "
        f"PREFIX.data-00000-of-00001, and its path is PREFIX.{hint}"
    )
