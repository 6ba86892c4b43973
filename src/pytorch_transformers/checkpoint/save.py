"""Writing weights: whole files or nothing, in the formats every program of the field reads.

A save that fails, because the disk is full or the process is stopped, leaves the earlier save as it was.
"""

import itertools
import logging
import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from ..files import atomic_write, write_json, write_text

__all__ = [
    "atomic_write",
    "save_bin",
    "save_safetensors",
    "save_sharded",
    "write_json",
    "write_safetensors",
    "write_text",
]

logger = logging.getLogger(__name__)

_SINGLE: Final = "model.safetensors"
_INDEX: Final = "model.safetensors.index.json"
_OURS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors|model\.safetensors\.index\.json")
# Readers of the format look at this entry to see whether tensors are torch's (safetensors README, "Format").
_METADATA: Final = {"format": "pt"}


def save_safetensors(state: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors to one safetensors file.

    Raises:
        ValueError: Two names share memory, or a tensor has no data (meta device).
        OSError: The disk refused the file; nothing is left, and an earlier file is as it was.
    """
    with atomic_write(path) as temporary:
        write_safetensors(state, temporary, path)


def write_safetensors(state: Mapping[str, Tensor], temporary: Path, path: Path) -> None:
    """Write tensors to a temporary file, for a caller who gives it its name together with other files.

    Args:
        state: Names and tensors.
        temporary: The file.
        path: What it will be called, for messages.

    Raises:
        ValueError: Two names share memory, or a tensor has no data (meta device).
        OSError: The disk refused the file.
    """
    _write_safetensors(_ready(state), temporary, path)


def save_bin(state: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors to one file of `torch.save`, as a plain dict. Names that share memory still do after reading.

    Raises:
        ValueError: A tensor has no data (meta device).
        OSError: The disk refused the file; nothing is left, and an earlier file is as it was.
    """
    _refuse_meta(state)
    plain = {name: _own_storage(tensor.detach()) for name, tensor in state.items()}
    with atomic_write(path) as temporary:
        try:
            with temporary.open("wb") as stream:
                torch.save(plain, stream)
        except RuntimeError as error:  # torch's archive writer reports a full disk this way
            raise OSError(f"{path} could not be written: {error}") from error


def save_sharded(state: Mapping[str, Tensor], folder: Path, max_shard_size: int | str = "5GB") -> list[Path]:
    """Write tensors to `model.safetensors`, or to shards and an index when they are larger than one shard.

    All shards are complete under temporary names before the first is renamed; the index follows; files of an earlier
    save that no longer belong are removed last. Whatever fails, the folder holds one loadable save.

    Args:
        state: Names and tensors.
        folder: Where the files go; created if it is not there.
        max_shard_size: Bytes, or text such as `"500MB"` (powers of ten). A larger tensor has a shard to itself.

    Returns:
        The weight files, in the order of their names, without the index.

    Raises:
        ValueError: Two names share memory, or a tensor has no data (meta device).
        OSError: The disk refused a file.
    """
    from huggingface_hub import split_torch_state_dict_into_shards

    tensors = _ready(state)
    # Planned on shapes alone: the library puts tensors of one storage into one shard, and everything that was read
    # from one mapped file is of one storage.
    shapes = {name: torch.empty_like(tensor, device="meta") for name, tensor in tensors.items()}
    plan = split_torch_state_dict_into_shards(shapes, max_shard_size=max_shard_size)
    files = plan.filename_to_tensors or {_SINGLE: []}
    with ExitStack() as stack:
        for filename, names in files.items():
            temporary = stack.enter_context(atomic_write(folder / filename))
            _write_safetensors({name: tensors[name] for name in names}, temporary, folder / filename)
    if plan.is_sharded:
        write_json(folder / _INDEX, {"metadata": plan.metadata, "weight_map": plan.tensor_to_filename})
    written = sorted(files)
    _remove_stale(folder, {*written, *([_INDEX] if plan.is_sharded else [])})
    return [folder / filename for filename in written]


def _remove_stale(folder: Path, current: set[str]) -> None:
    """Remove what an earlier `save_sharded` left: a reader would take a single old file before a new index."""
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in current:
            logger.info("Removing %s, of an earlier save.", path)
            path.unlink(missing_ok=True)


def _write_safetensors(tensors: dict[str, Tensor], temporary: Path, path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(tensors, temporary, metadata=dict(_METADATA))
    except SafetensorError as error:
        raise OSError(f"{path} could not be written: {error}") from error


def _ready(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous, detached, and no two over the same bytes."""
    _refuse_meta(state)
    tensors = {name: tensor.detach().contiguous() for name, tensor in state.items()}
    if shared := _sharing(tensors):
        pairs = "; ".join(f"{first} and {second}" for first, second in shared[:5])
        raise ValueError(
            f"These names share memory: {pairs}. safetensors stores each tensor once: leave out the tied name (it is "
            "tied again on loading) or clone it."
        )
    return tensors


def _refuse_meta(state: Mapping[str, Tensor]) -> None:
    if empty := [name for name, tensor in state.items() if tensor.is_meta]:
        raise ValueError(f"{', '.join(empty[:5])}: on the meta device, without data to save. Load the weights first.")


def _sharing(tensors: Mapping[str, Tensor]) -> list[tuple[str, str]]:
    """Pairs of names whose bytes overlap. Parts of one storage beside each other do not."""
    spans = sorted(
        (str(tensor.device), tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes, name)
        for name, tensor in tensors.items()
        if tensor.nbytes
    )
    return [
        (before[3], after[3])
        for before, after in itertools.pairwise(spans)
        if before[0] == after[0] and after[1] < before[2]
    ]


def _own_storage(tensor: Tensor) -> Tensor:
    """A view of a larger storage gets its own: `torch.save` would write the whole."""
    return tensor if tensor.untyped_storage().nbytes() == tensor.nbytes else tensor.clone()
