"""Which TensorFlow checkpoint is meant by a path: a folder, a prefix, or one of the checkpoint's files.

Source: tensorflow/python/training/checkpoint_management.py for the state file `checkpoint`, which names the latest of a
folder's checkpoints. The name is often an absolute path of the machine that trained.
"""

import glob
import os
import re
from pathlib import Path
from typing import Final

from .messages import parse_state
from .table import MAGIC

INDEX_SUFFIX: Final = ".index"

_STATE: Final = "checkpoint"
_STATE_LIMIT: Final = 1 << 20  # bytes; a larger file of this name is something else
# Of one checkpoint's files, what follows the prefix.
_SUFFIX = re.compile(r"(?<=.)\.(index|meta|data-\d{5,}-of-\d{5,})$")
_SEPARATOR = re.compile(r"[/\\]")  # the state file may come from Windows


def find_prefix(path: Path) -> Path | None:
    """The prefix of the checkpoint that a path means.

    Args:
        path: A folder, which means the checkpoint its state file names or else its only one; a prefix; or one of the
            files of a checkpoint.

    Returns:
        The prefix, whose index exists, or the file of an old checkpoint (V1); None if there is none.

    Raises:
        OSError: A folder holds several checkpoints and its state file names none of them.
    """
    if path.is_dir():
        return _of_folder(path)
    if index_of(path).is_file():
        return path
    prefix = path.with_name(_SUFFIX.sub("", path.name))
    return prefix if prefix.name != path.name and index_of(prefix).is_file() else None


def index_of(prefix: Path) -> Path:
    """The index file of a checkpoint."""
    return Path(f"{prefix}{INDEX_SUFFIX}")


def is_v1(path: Path) -> bool:
    """Whether a file is a checkpoint of TensorFlow's older format, V1: one table that holds names and values.

    The index of a V2 checkpoint is such a table too; it is told apart by its name.
    """
    if not path.is_file() or path.suffix == INDEX_SUFFIX:
        return False
    with path.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - len(MAGIC)))
        return stream.read() == MAGIC


def _of_folder(folder: Path) -> Path | None:
    found = sorted(path.with_suffix("") for path in folder.glob(f"*{INDEX_SUFFIX}") if path.is_file())
    # Other programs have files of this ending too; theirs have no data beside them.
    found = [prefix for prefix in found if any(folder.glob(f"{glob.escape(prefix.name)}.data-*"))] or found
    named = _named_by_state(folder)
    if named:
        # First as it stands, if relative; then its last component, for a checkpoint that was moved here.
        inside = [] if _is_absolute(named) else [folder / named]
        for prefix in (*inside, folder / _SEPARATOR.split(named)[-1]):
            if prefix.name and index_of(prefix).is_file():
                return prefix
    if len(found) > 1:
        reason = f"its file {_STATE!r} names {named!r}" if named else f"no file {_STATE!r} names one"
        raise OSError(
            f"{folder} holds several TensorFlow checkpoints, {', '.join(prefix.name for prefix in found)}, "
            f"and {reason}. Give the path of one of them, such as {found[-1]}."
        )
    if found:
        return found[0]
    # None in the format of today: one of the old single-file kind is named, so that its reader can say what it is.
    old = [folder / _SEPARATOR.split(named)[-1]] if named else []
    return next((path for path in (*old, *sorted(folder.glob("*.ckpt*"))) if is_v1(path)), None)


def _is_absolute(named: str) -> bool:
    """Whether a path is absolute on any system."""
    return named.startswith(("/", "\\")) or named[1:2] == ":"


def _named_by_state(folder: Path) -> str:
    """The path the state file names; empty if there is no such file, or another program's file of this name."""
    state = folder / _STATE
    if not state.is_file() or state.stat().st_size > _STATE_LIMIT:
        return ""
    try:
        return parse_state(state.read_text(encoding="utf-8"))
    except ValueError:
        return ""
