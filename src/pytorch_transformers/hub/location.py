"""From what the user typed to a place that holds files: a folder on disk, or a repository on the hub.

`locate` decides once, by one order, which of the two it is; everything after it asks the place for files by name and
does not care. Nothing is downloaded before a file is asked for, except an address (`https://…`), which is a file.
"""

import logging
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .cache import cache_folder
from .download import ask_hub, hub_cache, hub_url, is_url, url_file
from .names import expanded, hub_address, is_archive, may_be_path, may_be_repository
from .shipped import SHIPPED, shipped_folder

logger = logging.getLogger(__name__)

# The files TensorFlow writes for one checkpoint: PREFIX.index, PREFIX.meta, PREFIX.data-00000-of-00001.
_TF_PART = re.compile(r"(.+)\.(index|meta|data-\d{5}-of-\d{5})", re.DOTALL)


class Location(ABC):
    """A place that holds the files of one model.

    Attributes:
        chosen: The one file the user named, if they named a file and not a place: weights, a configuration, a
            vocabulary, or the prefix of a TensorFlow checkpoint (then `PREFIX.index` exists, the prefix does not).
        folder: The folder on disk, None for a repository.
    """

    chosen: Path | None = None
    folder: Path | None = None

    @property
    @abstractmethod
    def description(self) -> str:
        """What this place is, for messages: one noun phrase with the full path or address."""

    @abstractmethod
    def file(self, filename: str) -> Path | None:
        """The path of one file, downloaded if need be; None when the place has no such file.

        Args:
            filename: Name relative to the place, with `/` between folders.

        Raises:
            OSError: The place cannot be reached or does not exist, or `filename` points out of it.
        """

    def first(self, filenames: Sequence[str]) -> Path | None:
        """The path of the first of `filenames` that is there, or None.

        Raises:
            OSError: As `file`.
        """
        for filename in filenames:
            if (path := self.file(filename)) is not None:
                return path
        return None


@dataclass(frozen=True)
class Folder(Location):
    """A folder on disk, given as such, as the parent of a named file, or unpacked from an archive.

    Attributes:
        origin: What the user gave, where that is not the folder itself (an archive, an address).
    """

    folder: Path
    chosen: Path | None = None
    origin: str | None = None

    @property
    def description(self) -> str:
        """See `Location.description`."""
        if self.origin is not None:
            return f"{self.origin} (kept in {self.folder})"
        return f"the folder {self.folder}"

    def file(self, filename: str) -> Path | None:
        """See `Location.file`."""
        path = self.folder / _inside(filename, self.description)
        return path if path.is_file() else None


@dataclass
class Repository(Location):
    """A repository on the hub. All its files come from one commit, the one that answered first.

    Attributes:
        repo: `owner/name`.
        revision: Branch, tag or commit; None for the main branch.
        cache_dir: Cache in the hub library's layout; None for that library's own.
        local_files_only: Never open a connection.
        hint: What else the name could have meant, added to the message when there is no such repository.
    """

    repo: str
    revision: str | None = None
    cache_dir: Path | None = None
    local_files_only: bool = False
    hint: str = ""
    chosen: Path | None = None
    _commit: str | None = None
    _unreachable: str | None = None

    @property
    def description(self) -> str:
        """See `Location.description`."""
        at = f" at revision {self.revision}" if self.revision else ""
        away = f"; only the cache was looked at, because {self._unreachable}" if self._unreachable else ""
        return f"the repository {hub_url(self.repo)}{at} (cached in {hub_cache(self.cache_dir)}{away})"

    def file(self, filename: str) -> Path | None:
        """See `Location.file`."""
        answer = ask_hub(
            self.repo,
            _inside(filename, self.description),
            cache_dir=self.cache_dir,
            revision=self._commit or self.revision,
            # A server that was away is not waited for again.
            local_files_only=self.local_files_only or self._unreachable is not None,
            hint=self.hint,
        )
        self._unreachable = self._unreachable or answer.unreachable
        if answer.path is not None:
            # The cache keeps each file under its commit: .../snapshots/<commit>/<filename>. The next file comes from
            # the same one, even if somebody pushes in between.
            self._commit = answer.path.parents[filename.count("/")].name
        return answer.path


def locate(
    name_or_path: str | os.PathLike[str],
    *,
    shortcuts: Mapping[str, str],
    cache_dir: str | os.PathLike[str] | None = None,
    revision: str | None = None,
    local_files_only: bool = False,
) -> Location:
    """Find the place a name or path means.

    The first of these that fits: a folder; a file (an archive is unpacked, any other file is `chosen` and its folder
    the place); the prefix of a TensorFlow checkpoint; a small model of the repository's folder `assets`; an
    `http(s)://` address of a file or archive, or of a page of the hub; a shortcut name; a repository `owner/name`. What
    looks like a path is never sent to the hub.

    Args:
        name_or_path: What the user gave; `~` is expanded.
        shortcuts: Short name -> repository `owner/name`, or address.
        cache_dir: Where downloads go, instead of the default caches.
        revision: Branch, tag or commit of a repository.
        local_files_only: Use only what is on disk or in the cache.

    Raises:
        OSError: Nothing fits, an archive is unsafe or broken, or an address cannot be fetched. The message has the
            shortcut names, the path tried, and what was looked for.
    """
    name = os.fspath(name_or_path)
    cache = None if cache_dir is None else cache_folder(cache_dir)
    target = shortcuts.get(name, name)
    if (place := _on_disk(name, cache)) is not None:
        if name in shortcuts:
            logger.info("%r is also the name of a published model; %s is used.", name, place.description)
        return place
    if (folder := shipped_folder(name)) is not None:
        return Folder(folder)
    if (place := _at_address(target, cache, revision, local_files_only)) is not None:
        return place
    hint = _looked_for(name, shortcuts)
    if name not in shortcuts and not may_be_repository(name):
        raise OSError(f"{name!r} leads to no model. {hint}")
    return Repository(target, revision, cache, local_files_only, hint)


def _on_disk(name: str, cache_dir: Path | None) -> Location | None:
    """The folder, file, archive or TensorFlow checkpoint at `name`, if there is one."""
    if not may_be_path(name):
        return None
    path = expanded(name)
    if path.is_dir():
        return Folder(path)
    if path.is_file() and is_archive(path.name):
        return _unpacked(path, cache_dir, f"the archive {path}")
    if (part := _TF_PART.fullmatch(path.name)) and path.with_name(part[1] + ".index").is_file():
        path = path.with_name(part[1])
    if path.is_file() or path.with_name(path.name + ".index").is_file():
        return Folder(path.parent, chosen=path)
    return None


def _at_address(url: str, cache_dir: Path | None, revision: str | None, local_files_only: bool) -> Location | None:
    """What an `http(s)://` address stands for, fetched unless cached; None when `url` is no address."""
    if not is_url(url):
        return None
    place: Repository | None = None
    if (page := hub_address(url)) is not None:
        place = Repository(page.repo, revision or page.revision, cache_dir, local_files_only)
        if page.filename is None:
            return place
        path = place.chosen = place.file(page.filename)
        if path is None:
            raise OSError(f"There is no file {page.filename} in {place.description}.")
    else:
        path = url_file(url, cache_folder(cache_dir), local_files_only=local_files_only)
    if is_archive(path.name):
        return _unpacked(path, cache_dir, f"the archive {url}")
    return place or Folder(path.parent, chosen=path, origin=url)


def _unpacked(archive: Path, cache_dir: Path | None, origin: str) -> Folder:
    from .archive import extract  # the modules that unpack are slow to import, and few need them

    return Folder(extract(archive, cache_folder(cache_dir)), origin=origin)


def _looked_for(name: str, shortcuts: Mapping[str, str]) -> str:
    """What a name could have meant, for the messages when it meant nothing."""
    path = expanded(name).absolute() if "\0" not in name else name
    known = ", ".join(sorted([*shortcuts, *SHIPPED]))
    return (
        f"Looked for a folder, a file or an archive (.tar.gz, .tgz, .tar) at {path}, a TensorFlow checkpoint "
        f"{path}.index, and a repository owner/name on the hub. Known names: {known}."
    )


def _inside(filename: str, where: str) -> str:
    """Return `filename`; refuse one that leaves its place (names also come from index files others wrote)."""
    parts = PurePosixPath(filename)
    if not filename or parts.is_absolute() or ".." in parts.parts or "\\" in filename or "\0" in filename:
        raise OSError(f"The file name {filename!r} points out of {where}; it is refused.")
    return filename
