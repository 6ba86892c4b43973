"""Weights as OpenAI published its first GPT: all flattened, joined, and cut into numbered NumPy files.

Source: openai/finetune-transformer-lm, train.py: `params_0.npy` to `params_9.npy` hold the values in one row, and
`params_shapes.json` the shapes in their order. There are no names; a family knows what stands where.
"""

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..files import atomic_write, write_json
from ..hub import Location
from .refused import broken
from .storage import SHAPES_FILE

_PARTS: Final = 10  # files that the original writes (numpy.array_split)


def find_flat_arrays(location: Location, names: Callable[[int], list[str]]) -> "FlatArrays | None":
    """The checkpoint of a place; None if there is none.

    Args:
        location: The place.
        names: Gives the names of that many weights, in order.

    Raises:
        OSError: A file is missing or damaged.
        ValueError: There can't be that many weights.
    """
    shapes = location.file(SHAPES_FILE)
    if shapes is None:
        return None
    parts = []
    for number in itertools.count():
        part = location.file(f"params_{number}.npy")
        if part is None:
            break
        parts.append(part)
    return FlatArrays(shapes, parts, names)


class FlatArrays:
    """An open checkpoint; the values stay in the files until they are read.

    Args:
        shapes_file: The list of shapes.
        parts: The files with the values, in order.
        names: Gives the names of that many weights, in order.

    Raises:
        OSError: A file is missing or damaged; the message names it.
        ValueError: There can't be that many weights.
    """

    def __init__(self, shapes_file: Path, parts: Sequence[Path], names: Callable[[int], list[str]]) -> None:
        self.prefix = shapes_file.parent
        shapes = _read_shapes(shapes_file)
        try:
            self._shapes = dict(zip(names(len(shapes)), shapes, strict=True))
        except ValueError as error:
            raise ValueError(f"{shapes_file}: {error}") from error
        self._parts = [(part, _mapped(part)) for part in parts]
        found, needed = sum(len(values) for _, values in self._parts), sum(map(math.prod, shapes))
        if found != needed:
            raise OSError(
                f"{self.prefix}: {SHAPES_FILE} asks for {needed:,} values, but the {len(parts)} files params_0.npy, "
                f"params_1.npy, … hold {found:,}. There should be {_PARTS}; "
                + (f"params_{len(parts)}.npy is missing." if len(parts) < _PARTS else "one is of another checkpoint.")
            )
        ends = itertools.accumulate(map(math.prod, shapes), initial=0)
        self._starts = dict(zip(self._shapes, ends, strict=False))

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of all weights."""
        return dict(self._shapes)

    def read(self, name: str) -> Tensor:
        """The values of one weight: mapped from its file where it lies in one, joined where it goes on in the next.

        Raises:
            OSError: It holds values that are no numbers, as no trained weight does.
        """
        start, shape = self._starts[name], self._shapes[name]
        end = start + math.prod(shape)
        pieces, offset = [], 0
        for path, values in self._parts:
            if offset < end and start < offset + len(values):
                pieces.append(values[max(0, start - offset) : end - offset])
                if not np.isfinite(pieces[-1]).all():
                    raise broken(path, f"{name} holds values that are not finite")
            offset += len(values)
        joined = pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else np.empty(0, np.float32)
        return torch.from_numpy(joined).reshape(shape)


def write_flat_arrays(folder: Path, tensors: Mapping[str, Tensor], names: Sequence[str]) -> list[Path]:
    """Write a checkpoint in this form.

    Args:
        folder: Where to.
        tensors: The weights.
        names: Their order.

    Raises:
        ValueError: A weight is missing, or none of the names.
        OSError: The disk refused a file. An earlier checkpoint may then be replaced in part.
    """
    if wrong := sorted(set(names) ^ tensors.keys()):
        raise ValueError(f"{folder}: expected the weights of one whole model; missing, or too many: {', '.join(wrong)}")
    arrays = [tensors[name].detach().float().cpu().numpy() for name in names]
    written = []
    for number, part in enumerate(np.array_split(np.concatenate([array.reshape(-1) for array in arrays]), _PARTS)):
        written.append(folder / f"params_{number}.npy")
        with atomic_write(written[-1]) as temporary, temporary.open("wb") as stream:
            np.save(stream, part)
    write_json(folder / SHAPES_FILE, [list(array.shape) for array in arrays])
    return [*written, folder / SHAPES_FILE]


def _read_shapes(path: Path) -> list[tuple[int, ...]]:
    """The list of shapes.

    Raises:
        OSError: It is none.
    """
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise broken(path, f"it is no JSON ({error})") from error
    fits = isinstance(found, list) and all(
        isinstance(shape, list) and all(type(size) is int and size > 0 for size in shape) for shape in found
    )
    if not fits:
        raise broken(path, "it is no list of shapes")
    return [tuple(shape) for shape in found]


def _mapped(path: Path) -> NDArray[np.float32]:
    """The values of one file, without reading them yet; a change to them stays in memory.

    Raises:
        OSError: It is no row of float32.
    """
    try:
        values = np.lib.format.open_memmap(path, mode="c")  # no pickle, no archive
    except (ValueError, EOFError, OSError) as error:
        raise broken(path, str(error) or "it is empty") from error
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype != np.float32:
        raise broken(path, "it does not hold one row of float32")
    return values
