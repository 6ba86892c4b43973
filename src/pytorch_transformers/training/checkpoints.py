"""Checkpoints of a training: all that is needed to go on as if nothing had happened, written whole or not at all.

A checkpoint is the folder `checkpoints/step-N` of the output folder, N being the updates done. `accelerate` writes
weights, optimizer and schedule into it, sharded where the training is; beside them lie the random states of each
process and `progress.json`. It is written under another name and renamed when the disk has all of it, so a folder with
the right name is complete, whenever the process was stopped.
"""

import json
import os
import random
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from ..files import write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from accelerate import Accelerator

_FOLDER: Final = "checkpoints"
_NAME: Final = re.compile(r"step-(\d+)")
_UNFINISHED: Final = ".unfinished"
_PROGRESS: Final = "progress.json"


@dataclass
class Progress:
    """How far a training is.

    Attributes:
        update: Updates done, those passed over for an overflow included.
        skipped: Updates that were passed over.
        tokens: Tokens seen.
        seconds: Time of the training so far, without evaluations, in all runs together.
        history: Points of the curves: `step`, `epoch`, and `loss` and its terms, `learning_rate`, or metrics.
        best: Value of the metric in the best evaluation; None before the first.
        best_step: Updates done at that time.
        worse: Evaluations since then.
        decisive: What the weights depend on, so what must be the same for the run to go on.
    """

    update: int = 0
    skipped: int = 0
    tokens: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    best: float | None = None
    best_step: int | None = None
    worse: int = 0
    decisive: dict[str, Any] = field(default_factory=dict)


def checkpoint_folder(output_dir: Path, update: int) -> Path:
    """Where the checkpoint after so many updates is, or would be."""
    return output_dir / _FOLDER / f"step-{update}"


def checkpoint_folders(output_dir: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    folders = output_dir.joinpath(_FOLDER).glob("step-*")
    return sorted((path for path in folders if _NAME.fullmatch(path.name) and path.is_dir()), key=_step)


def write_checkpoint(
    accelerator: "Accelerator",
    output_dir: Path,
    progress: Progress,
    keep: int,
    also: "Callable[[Path], None]",
    carried: Any = None,
) -> Path:
    """Write a checkpoint and remove those that are old, other than the best one.

    Args:
        accelerator: Has the model and the optimizer; every process calls this.
        output_dir: Folder of the run.
        progress: Where the training is.
        keep: How many of the newest stay.
        also: Writes further files into a folder, in the first process: configuration and tokenizer.
        carried: Tensors in lists and dictionaries that each process carries from update to update.

    Raises:
        OSError: The disk refused it; earlier checkpoints are as they were.
    """
    folder = checkpoint_folder(output_dir, progress.update)
    unfinished = folder.with_name(folder.name + _UNFINISHED)
    try:
        if accelerator.is_main_process:
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True)
        accelerator.wait_for_everyone()
        accelerator.save_state(str(unfinished))
        torch.save({**_random_states(), "carried": carried}, _own_state(unfinished, accelerator))
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            also(unfinished)
            write_json(unfinished / _PROGRESS, asdict(progress))
            _flush([*unfinished.rglob("*"), unfinished])
            unfinished.rename(folder)
            _flush([folder.parent])
    except Exception as error:  # each library has its own class for a full disk
        if accelerator.is_main_process:
            shutil.rmtree(unfinished, ignore_errors=True)
        kept = checkpoint_folders(output_dir)
        stays = f"the last good one is {kept[-1]}" if kept else "there is no earlier one"
        raise OSError(f"{folder}: the checkpoint could not be written ({error}); {stays}") from error
    if accelerator.is_main_process:
        for old in checkpoint_folders(output_dir)[:-keep]:
            if _step(old) != progress.best_step:
                _remove(old)
    return folder


def read_progress(folder: Path) -> Progress:
    """How far the training was.

    Raises:
        ValueError: The file is not one of ours.
    """
    path = folder / _PROGRESS
    try:
        return Progress(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: not the progress of a training ({error}); remove {folder} to use another") from error


def restore(accelerator: "Accelerator", folder: Path) -> Any:
    """Load weights, optimizer, schedule, scale and random states; everything is on its device already.

    Returns:
        What this process carried.

    Raises:
        OSError: A file is missing, or damaged.
    """
    path = _own_state(folder, accelerator)
    try:
        accelerator.load_state(str(folder))
        states = torch.load(path, weights_only=True)
    except Exception as error:  # each library has its own class for a damaged file
        raise OSError(f"{folder}: the checkpoint can't be read ({error}); remove it to go on from another") from error
    _set_random_states(states)
    return states["carried"]


def remove_checkpoints(output_dir: Path) -> None:
    """Remove all of them, the oldest last."""
    for folder in reversed(checkpoint_folders(output_dir)):
        _remove(folder)
    remove_unfinished(output_dir)


def remove_unfinished(output_dir: Path) -> None:
    """Remove what a run that was killed left half written, or half removed."""
    for path in output_dir.joinpath(_FOLDER).glob(f"*{_UNFINISHED}"):
        shutil.rmtree(path)


def _remove(folder: Path) -> None:
    """Remove a checkpoint, if it is there: under another name, since it must not look complete on the way."""
    if folder.exists():
        leaving = folder.with_name(folder.name + _UNFINISHED)
        shutil.rmtree(leaving, ignore_errors=True)
        folder.rename(leaving)
        shutil.rmtree(leaving)


def _step(folder: Path) -> int:
    return int(folder.name.rpartition("-")[2])


def _own_state(folder: Path, accelerator: "Accelerator") -> Path:
    return folder / f"process-{accelerator.process_index}.pt"


def _random_states() -> dict[str, Any]:
    """Those of Python, NumPy and torch, as values that can be read without running code."""
    version, python, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()
    return {
        "python": [version, list(python), gauss],
        "numpy": [name, torch.from_numpy(np.asarray(keys).astype(np.int64)), position, has_gauss, cached],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def _set_random_states(states: dict[str, Any]) -> None:
    version, python, gauss = states["python"]
    random.setstate((version, tuple(python), gauss))
    name, keys, position, has_gauss, cached = states["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])


def _flush(paths: "Iterable[Path]") -> None:
    """Wait until the disk has these files and folders: a rename must not be faster than what it names."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
