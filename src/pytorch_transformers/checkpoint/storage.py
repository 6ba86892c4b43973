"""How a family's original program keeps its weights: where a checkpoint is found, read and written."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from torch import Tensor

from ..hub import Location


class Source(Protocol):
    """An open checkpoint: names and shapes at hand, values on demand."""

    @property
    def prefix(self) -> Path:
        """The path of the checkpoint, for messages."""

    def __iter__(self) -> Iterator[str]:
        """The names."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of all weights."""

    def read(self, name: str) -> Tensor:
        """The values of one; a damaged one is an OSError that names file and weight."""


@dataclass(frozen=True)
class Storage:
    """One such way.

    Attributes:
        kind: What it is called in messages.
        find: Opens the checkpoint of a place; None if there is none.
        looked_for: What `find` looks for, for the message that there is none.
        write: Writes tensors under their original names to a path; the files written.
        named: Whether a checkpoint has a name in its folder; otherwise the folder is the checkpoint.
    """

    kind: str
    find: Callable[[Location], Source | None]
    looked_for: str
    write: Callable[[Path, Mapping[str, Tensor]], list[Path]]
    named: bool


def _find_bundle(location: Location) -> Source | None:
    from .tensorflow.location import find_bundle  # protobuf: not for PyTorch weights

    return find_bundle(location)


def _write_bundle(path: Path, tensors: Mapping[str, Tensor]) -> list[Path]:
    from .tensorflow.write import write_bundle

    return write_bundle(path, tensors)


#: TensorFlow checkpoints.
TENSORFLOW: Final = Storage(
    "TensorFlow checkpoint",
    _find_bundle,
    "PREFIX.index; in a repository, for model.ckpt.index and bert_model.ckpt.index",
    _write_bundle,
    named=True,
)


#: File that marks a checkpoint of numbered NumPy files.
SHAPES_FILE: Final = "params_shapes.json"


def flat_arrays(names: Callable[[int], list[str]]) -> Storage:
    """Numbered NumPy files (`flat_arrays.py`); `names` gives the names of that many weights, in order."""

    def find(location: Location) -> Source | None:
        from .flat_arrays import find_flat_arrays

        return find_flat_arrays(location, names)

    def write(path: Path, tensors: Mapping[str, Tensor]) -> list[Path]:
        from .flat_arrays import write_flat_arrays

        return write_flat_arrays(path, tensors, names(len(tensors)))

    return Storage("checkpoint of NumPy files", find, SHAPES_FILE, write, named=False)
