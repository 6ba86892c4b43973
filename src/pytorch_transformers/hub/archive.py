"""Unpacking model archives (`.tar.gz`, `.tgz`, `.tar`) that come from strangers.

Safety is two layers: rules of our own, stricter than a model needs, and the standard library's `data` filter below
them (PEP 706). Unpacking happens in a temporary folder that is renamed when complete, so that a broken archive leaves
nothing and two processes that unpack the same archive do not meet.
"""

import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 20  # bytes
_BLOCK = 512  # bytes; POSIX ustar. An archive ends with blocks of zeros.


def extract(archive: Path, into_cache: Path) -> Path:
    """Unpack an archive once and return the folder that holds its files.

    The folder is kept under a key of the archive's path, size and time of change: another file under the same name is
    unpacked anew, and the same file never twice.

    Args:
        archive: The archive on disk.
        into_cache: The folder `archives/…` is made in.

    Returns:
        The unpacked folder; where the archive wraps everything in one top folder, that one.

    Raises:
        OSError: The archive is truncated or no archive, or holds a member that could write outside its folder (the
            message names it). Nothing is left on disk.
    """
    target = into_cache / "archives" / _key(archive)
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=target.parent))
        try:
            contents = temporary / "contents"  # mkdtemp's own folder is closed to other users; this one is not
            contents.mkdir()
            _unpack(archive, contents)
            _publish(contents, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return _top(target)


def _key(archive: Path) -> str:
    status = archive.stat()
    identity = f"{archive.resolve()}\0{status.st_size}\0{status.st_mtime_ns}"
    return hashlib.sha256(os.fsencode(identity)).hexdigest()[:32]


def _publish(contents: Path, target: Path) -> None:
    """Rename into place; where another process was first, its folder holds the same files and is kept."""
    try:
        contents.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def _top(folder: Path) -> Path:
    """Step into a single wrapping folder. Names with a leading dot (`._x`, left by macOS) do not count."""
    while True:
        entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
        if len(entries) != 1 or not entries[0].is_dir():
            return folder
        folder = entries[0]


def _unpack(archive: Path, into: Path) -> None:
    """Unpack in one pass: a second pass over a compressed archive would decompress it again."""
    if not hasattr(tarfile, "data_filter"):
        raise OSError(f"{archive} is not unpacked: this Python has no safe tar filter (PEP 706); 3.10.12 or later has.")
    with _reading(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
        for member in tar:
            _check(member, archive)
            tar.extract(member, into, filter="data")
        # `tarfile` takes a cut between two members for the end of the archive. Its `offset` is where it stopped.
        stream.seek(tar.offset)
        if stream.read(_BLOCK) != bytes(_BLOCK):
            raise tarfile.ReadError("the end mark is missing")
        while stream.read(_CHUNK):  # gzip compares its checksum at the very end
            pass


@contextmanager
def _reading(archive: Path) -> Iterator[BinaryIO]:
    """Open the archive, decompressed; turn every way in which it can be broken into an OSError with its name."""
    try:
        with archive.open("rb") as raw:
            packed = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            yield cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
    except tarfile.FilterError as error:
        raise OSError(f"The archive {archive} is refused: {error}") from error
    except UnicodeError as error:
        raise OSError(
            f"The archive {archive} has names this system cannot write ({error}); use a UTF-8 locale."
        ) from error
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise OSError(
            f"The archive {archive} ({archive.stat().st_size} bytes) is truncated or not a tar file: {error}. "
            "Remove it and fetch it again."
        ) from error


def _check(member: tarfile.TarInfo, archive: Path) -> None:
    """Refuse what no model archive needs and what could touch files outside the folder."""
    problem = None
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        problem = "is a device or another special file"
    elif _leaves(member.name):
        problem = "has a path that leaves the folder"
    elif (member.issym() or member.islnk()) and _leaves(member.linkname):
        problem = f"links to {member.linkname!r}, which can leave the folder"
    if problem is not None:
        raise OSError(f"The archive {archive} is refused: its member {member.name!r} {problem}.")


def _leaves(name: str) -> bool:
    path = PurePosixPath(name)
    return (
        path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or (len(name) > 1 and name[1] == ":")
    )
