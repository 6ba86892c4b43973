"""Writing files whole or not at all. Needs only the standard library, so every other part may use it.

A file written in place is half-written while the program runs, and stays so when the disk fills up, the process is
killed or the machine stops. Everything the library writes goes to a temporary file in the same folder first and is
renamed over the final name, which POSIX does in one step.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

#: Names of the files of a saved model, as published.
WEIGHTS_NAME: Final = "pytorch_model.bin"
SAFE_WEIGHTS_NAME: Final = "model.safetensors"
CONFIG_NAME: Final = "config.json"


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path to write to; rename it to `path` when the block ends well.

    Args:
        path: Where the file shall be. Its folder is created. A file already there is replaced only on success.

    Yields:
        A path that does not exist yet, in the same folder (a rename across disks would be a copy).

    Raises:
        OSError: The block did not write the file, or the disk refused it. Nothing is left behind in either case.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Not `tempfile`: that creates the file readable by its owner only, and the rename would keep that mode.
    temporary = target.with_name(f".{target.name[:100]}.{os.urandom(6).hex()}.tmp")
    mode = _usual_mode(temporary)
    try:
        yield temporary
        temporary.chmod(mode)  # some writers (safetensors) make files that only their owner can read
        _flush(temporary)
        temporary.replace(target)
    finally:
        # After the rename there is nothing to remove; after a failure, Ctrl-C included, the half-written file.
        temporary.unlink(missing_ok=True)
    _flush_folder(target.parent)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8 with Unix line ends on every platform, whole or not at all.

    Raises:
        OSError: The disk refused the file.
    """
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | os.PathLike[str], value: Any, *, sort_keys: bool = False) -> None:
    """Write `value` as readable JSON in UTF-8, whole or not at all.

    Raises:
        OSError: The disk refused the file.
        TypeError: `value` holds something JSON has no form for; the file is not touched.
    """
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, sort_keys=sort_keys) + "\n")


def _usual_mode(path: Path) -> int:
    """The mode of a new file there: the process's mask can be learned only by making one, or by changing it."""
    path.touch()
    try:
        return path.stat().st_mode & 0o777
    finally:
        path.unlink()


def _flush(path: Path) -> None:
    """Wait until the disk has the bytes: some file systems report a full disk only now."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def _flush_folder(folder: Path) -> None:
    """Make the rename itself durable, where folders can be opened for that (not on Windows or some network disks)."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
