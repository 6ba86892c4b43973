"""One file from a plain address, cached under the address and the version the server names (ETag).

Layout under the cache folder: `addresses/<hash of the address>/<hash of the version>/<file name>`, and beside the
version folders `current.json`, which says which of them is the latest. Each file has its folder to itself, so that
the files beside it are never taken for its own.
"""

import hashlib
import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from ..files import atomic_write, write_json
from .cache import offline

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger(__name__)

#: Answers that say "later" (request timeout, too many requests: RFC 9110 and 6585), as those of 500 and above do.
BUSY = (408, 429)
_ANSWER_WITHIN = 10.0  # seconds without a byte from the server
_CHUNK = 1 << 20  # bytes


def is_url(text: str) -> bool:
    """Whether `text` is an address to fetch; only `http` and `https` are."""
    return text.lower().startswith(("http://", "https://"))


def client_errors() -> tuple[type[Exception], ...]:
    """What the hub library's HTTP client raises, OSError included.

    The library has changed its client before (requests, httpx, httpx2). Its own error derives from the client's base
    error in each, which saves naming the client here.
    """
    from huggingface_hub.errors import HfHubHTTPError

    return tuple(base for base in HfHubHTTPError.__bases__ if issubclass(base, Exception))


def url_file(url: str, cache_dir: Path, *, local_files_only: bool = False) -> Path:
    """Path of the file at an address, downloaded unless the cache has the version the server offers.

    The cached file is used when the server cannot be reached. Several processes may fetch the same address at once:
    each writes its own temporary file, and the last rename wins with the same bytes.

    Args:
        url: `http(s)://…`
        cache_dir: The folder `addresses/…` is made in.
        local_files_only: Look only into the cache and open no connection.

    Raises:
        OSError: The server refused or broke off, or it cannot be reached and the file is not cached. A transfer that
            was cut leaves nothing behind; the next call downloads again.
    """
    _check(url)
    home = cache_dir / "addresses" / hashlib.sha256(url.encode()).hexdigest()[:32]
    cached = _cached(home)
    if offline(local_files_only):
        return _kept(cached, url, home, "the network is switched off")
    try:
        with _asking(url, cached.version if cached else None) as response:
            version = _version(response.headers)
            if cached and (response.status_code == 304 or (version and version == cached.version)):
                return cached.path
            if response.status_code < 400:
                return _store(response, url, home, version)
            if response.status_code < 500 and response.status_code not in BUSY:
                raise OSError(f"{url} cannot be fetched: the server answered {response.status_code}.")
            problem = f"the server answered {response.status_code}"
    except ServerAwayError as error:
        problem = str(error)
    return _kept(cached, url, home, problem)


def _check(url: str) -> None:
    """Refuse what is no address; the HTTP client's error for it is outside its own hierarchy."""
    try:
        parts = urlsplit(url)
        sound = bool(parts.hostname) and (parts.port is None or parts.port > 0) and url.isprintable()
    except ValueError:
        sound = False
    if not sound:
        raise OSError(f"{url!r} is not a valid address.")


class _Cached(NamedTuple):
    path: Path
    version: str


class ServerAwayError(Exception):
    """No answer from the server. Never leaves this package: it becomes the cached file, or an OSError."""


def _cached(home: Path) -> _Cached | None:
    """The latest complete file, by what `current.json` says of it."""
    try:
        record = json.loads((home / "current.json").read_text(encoding="utf-8"))
        path = home / record["folder"] / record["name"]
        return _Cached(path, record["version"]) if path.stat().st_size == record["size"] else None
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def _kept(cached: _Cached | None, url: str, home: Path, problem: str) -> Path:
    if cached is None:
        raise OSError(
            f"{url} is not in the cache {home.parent.parent}, and {problem}. Connect, or unset HF_HUB_OFFLINE, "
            "PYTORCH_TRANSFORMERS_OFFLINE and local_files_only; or download the file by hand and give its path."
        )
    logger.info("%s for %s: the cached file is used.", problem, url)
    return cached.path


@contextmanager
def _asking(url: str, known: str | None) -> Iterator[Any]:
    """Open the response to a GET, through the hub library's HTTP client (proxies, certificates, redirects)."""
    from huggingface_hub import get_session

    # Compression on the way would make Content-Length the size of something else.
    headers = {"Accept-Encoding": "identity"} | ({"If-None-Match": known} if known and known[-1:] == '"' else {})
    answered = False
    try:
        with get_session().stream("GET", url, headers=headers, timeout=_ANSWER_WITHIN) as response:
            answered = True
            yield response
    except OSError:  # ours, or the disk's: already says what it is about
        if answered:
            raise
        raise ServerAwayError(f"{url} cannot be reached") from None
    except client_errors() as error:
        if answered:
            raise OSError(f"The transfer of {url} broke off: {error}. Nothing was kept; try again.") from error
        raise ServerAwayError(f"the server cannot be reached: {error}") from error


def _version(headers: "Mapping[str, str]") -> str:
    """What tells two versions of a file apart; empty when the server says nothing, and each call then downloads."""
    return headers.get("ETag") or headers.get("Last-Modified") or ""


def _store(response: Any, url: str, home: Path, version: str) -> Path:
    """Write the body under its final name once it is complete, then make it the current version."""
    folder = hashlib.sha256(version.encode()).hexdigest()[:16]
    path = home / folder / _name(url)
    with atomic_write(path) as temporary:
        size = _receive(response, url, temporary)
    write_json(
        home / "current.json", {"url": url, "version": version, "folder": folder, "name": path.name, "size": size}
    )
    return path


def _receive(response: Any, url: str, into: Path) -> int:
    """Stream the body to a file and return its size in bytes; compare with what the server announced."""
    from tqdm import tqdm

    announced = response.headers.get("Content-Length")
    total = int(announced) if announced and announced.isdigit() else None
    with (
        into.open("wb") as stream,
        tqdm(total=total, unit="B", unit_scale=True, desc=_name(url), disable=not sys.stderr.isatty()) as bar,
    ):
        for chunk in response.iter_bytes(_CHUNK):
            stream.write(chunk)
            bar.update(len(chunk))
    if total is not None and response.num_bytes_downloaded != total:
        raise OSError(f"{url} announced {total} bytes and sent {response.num_bytes_downloaded}. Nothing was kept.")
    return into.stat().st_size


def _name(url: str) -> str:
    """The last part of the address's path, as a name that every file system and locale takes."""
    name = re.sub(r"[^\w. -]", "_", PurePosixPath(unquote(urlsplit(url).path)).name, flags=re.ASCII)[-150:]
    return name if name.strip(".") else "download"
