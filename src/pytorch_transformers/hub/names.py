"""What a text can mean by its form alone: a path, an archive, the name of a repository, an address on the hub."""

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from .download import HUB, endpoint

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
# A file on the hub is /REPO/resolve/REVISION/FILE, or blob or raw in place of resolve; REPO has one or two parts.
_FILE_PAGE = re.compile(r"/([^/]+(?:/[^/]+)?)/(?:resolve|blob|raw)/([^/]+)/(.+)")
_REPOSITORY_PAGE = re.compile(r"/([^/]+/[^/]+?)(?:/tree/([^/]+))?/?")
_OTHER_PAGES = ("/datasets/", "/spaces/", "/api/", "/docs/", "/models/", "/papers/", "/collections/", "/blog/")
_LONGEST = 255  # characters in one name on every common file system; asking for more is an error of its own there

_ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar")
# What training programs of torch's early years called their pickles; they are no archives.
_PICKLE_SUFFIXES = (".pth.tar", ".pt.tar")


class HubAddress(NamedTuple):
    """A repository, and perhaps one file of it, read from an address a browser shows."""

    repo: str
    revision: str | None
    filename: str | None


def hub_address(url: str) -> HubAddress | None:
    """The repository an address stands for; None when it is an address of something else.

    Only the hub itself has repository pages for certain; another endpoint may serve plain files beside them.
    """
    root = next((root for root in (endpoint(), HUB) if url.startswith(f"{root}/")), None)
    if root is None:
        return None
    path = urlsplit(url[len(root) :]).path
    if path.startswith(_OTHER_PAGES):
        return None
    if page := _FILE_PAGE.fullmatch(path):
        return HubAddress(page[1], unquote(page[2]), unquote(page[3]))
    page = _REPOSITORY_PAGE.fullmatch(path) if url.startswith(f"{HUB}/") else None
    return HubAddress(page[1], unquote(page[2]) if page[2] else None, None) if page else None


def is_archive(filename: str) -> bool:
    """Whether a file name is that of a tar archive, compressed or not."""
    name = filename.lower()
    return name.endswith(_ARCHIVE_SUFFIXES) and not name.endswith(_PICKLE_SUFFIXES)


def may_be_path(name: str) -> bool:
    """Whether a file system can be asked for `name` at all."""
    return bool(name.strip()) and "\0" not in name and all(len(part) <= _LONGEST for part in name.split("/"))


def may_be_repository(name: str) -> bool:
    """Whether `name` is of the form `owner/name`.

    What can only be meant as a path is not: asking the hub for it would tell a stranger the user's folders.
    """
    return not name.startswith((".", "~", "/")) and _REPOSITORY.fullmatch(name) is not None


def expanded(name: str) -> Path:
    """The path with `~` and `~user` replaced; as it is when there is no such user."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)
