"""Files by path or address, in the cache of 0.6.2 and under its names."""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from pytorch_transformers.files import CONFIG_NAME, WEIGHTS_NAME, atomic_write, write_json
from pytorch_transformers.hub.cache import offline
from pytorch_transformers.hub.download import is_url, url_file
from pytorch_transformers.hub.url import client_errors

from .classic_cache import (
    PYTORCH_PRETRAINED_BERT_CACHE,
    Folder,
    classic_file,
    classic_folder,
    read_record,
    url_to_filename,
)

__all__ = [
    "CONFIG_NAME",
    "PYTORCH_PRETRAINED_BERT_CACHE",
    "WEIGHTS_NAME",
    "cached_path",
    "filename_to_url",
    "get_file_extension",
    "get_from_cache",
    "http_get",
    "read_set_from_file",
    "s3_etag",
    "s3_get",
    "s3_request",
    "split_s3_path",
    "url_to_filename",
]

logger = logging.getLogger(__name__)

_ANSWER_WITHIN = 10.0  # seconds without a byte from the server

_P = ParamSpec("_P")
_R = TypeVar("_R")


def filename_to_url(filename: str, cache_dir: Folder | None = None) -> tuple[str, str | None]:
    """Address and tag of a file in the cache.

    Args:
        filename: Its name there.
        cache_dir: The cache; `PYTORCH_PRETRAINED_BERT_CACHE` by default.

    Raises:
        OSError: There is no such file, or no record of it.
    """
    return read_record(classic_folder(cache_dir) / filename)


def cached_path(url_or_filename: Folder, cache_dir: Folder | None = None) -> str:
    """The path of a file on disk: the file itself, or the cached copy of what an address holds.

    Args:
        url_or_filename: A path, or an address.
        cache_dir: Folder for downloads; `PYTORCH_PRETRAINED_BERT_CACHE` by default.

    Raises:
        OSError: There is no such file; or the address can't be reached and isn't cached.
        ValueError: It is an address of a kind that can't be fetched.
    """
    name = os.fspath(url_or_filename)
    if is_url(name) or name.startswith("s3://"):
        return get_from_cache(name, cache_dir)
    if Path(name).exists():
        return name
    scheme = urlsplit(name).scheme
    if scheme:
        raise ValueError(f"{name!r} is neither a path that exists nor an http(s) address ({scheme!r} is not known)")
    raise FileNotFoundError(f"{name}: no such file")


def get_from_cache(url: str, cache_dir: Folder | None = None) -> str:
    """The path of the cached copy of what an address holds, fetched unless the cache has the server's version.

    The newest copy is used when the server can't be reached or refuses, as those of the published models do.

    Args:
        url: The address.
        cache_dir: The cache; `PYTORCH_PRETRAINED_BERT_CACHE` by default.

    Raises:
        OSError: It isn't cached, and can't be fetched.
    """
    kept = classic_file(url, cache_dir)
    etag = None if url.startswith("s3://") else _etag(url)
    if kept is not None and (etag is None or kept.name == url_to_filename(url, etag)):
        return str(kept)
    path = classic_folder(cache_dir) / url_to_filename(url, etag)
    # The record last: a file without one may be cut off.
    with atomic_write(path) as temporary, temporary.open("wb") as stream:
        (s3_get if url.startswith("s3://") else http_get)(url, stream)
    write_json(path.with_name(path.name + ".json"), {"url": url, "etag": etag})
    return str(path)


def _etag(url: str) -> str | None:
    """What the server calls the version it has; None when it doesn't say or can't be asked."""
    if offline():
        return None
    from huggingface_hub import get_session

    try:
        response = get_session().head(url, follow_redirects=True, timeout=_ANSWER_WITHIN)
    except client_errors() as error:
        logger.info("%s can't be asked for its version: %s", url, error)
        return None
    return response.headers.get("ETag") if response.status_code == 200 else None


def http_get(url: str, temp_file: IO[bytes]) -> None:
    """Fetch what an address holds, and write it to an open file.

    Args:
        url: The address.
        temp_file: The file, open for bytes.

    Raises:
        OSError: The server refused or broke off; nothing is written then.
    """
    with tempfile.TemporaryDirectory() as folder, url_file(url, Path(folder)).open("rb") as stream:
        shutil.copyfileobj(stream, temp_file)


def split_s3_path(url: str) -> tuple[str, str]:
    """Bucket and path of an s3 address.

    Raises:
        ValueError: One of the two is missing.
    """
    parts = urlsplit(url)
    if not parts.netloc or not parts.path:
        raise ValueError(f"{url!r} is no s3 address: it should be s3://BUCKET/PATH")
    return parts.netloc, parts.path.removeprefix("/")


def s3_request(func: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function of an s3 address as it is; 0.6.2 translated the errors of boto3 here.

    Args:
        func: The function.
    """

    @wraps(func)
    def wrapper(*arguments: _P.args, **options: _P.kwargs) -> _R:
        return func(*arguments, **options)

    return wrapper


def _no_s3(url: str) -> OSError:
    bucket, path = split_s3_path(url)
    return OSError(
        f"{url} can't be fetched: s3 addresses are not supported. Give https://{bucket}.s3.amazonaws.com/{path} if the "
        "bucket is public, or fetch the file with a tool of your own and give its path."
    )


@s3_request
def s3_etag(url: str) -> str | None:
    """Always raises: s3 addresses are not supported.

    Raises:
        OSError: Always; it says what to do.
    """
    raise _no_s3(url)


@s3_request
def s3_get(url: str, temp_file: Any) -> None:
    """Always raises: s3 addresses are not supported.

    Raises:
        OSError: Always; it says what to do.
    """
    raise _no_s3(url)


def read_set_from_file(filename: Folder) -> set[str]:
    """The lines of a text file, each once and without white space at its end.

    Args:
        filename: The file, UTF-8.

    Raises:
        OSError: It can't be read.
    """
    with Path(filename).open(encoding="utf-8") as lines:
        return {line.rstrip() for line in lines}


def get_file_extension(path: Folder, dot: bool = True, lower: bool = True) -> str:
    """The ending of a file name.

    Args:
        path: The file.
        dot: Whether with its dot.
        lower: Whether in lower case.
    """
    ending = os.path.splitext(path)[1]  # noqa: PTH122 - Path gives another ending for some names
    ending = ending if dot else ending[1:]
    return ending.lower() if lower else ending
