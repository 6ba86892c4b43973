"""`cached_path`, the published way to get a file by path or address."""

from os import PathLike, fspath
from pathlib import Path

from .cache import cache_folder
from .url import is_url, url_file


def cached_path(url_or_filename: str | PathLike[str], cache_dir: str | PathLike[str] | None = None) -> str:
    """The path of a file on disk: the file itself, or the cached copy of what an address holds.

    Args:
        url_or_filename: A path, or an http(s) address.
        cache_dir: Folder for downloads; the library's own cache by default.

    Raises:
        OSError: There is no such file, or the address can't be reached and isn't cached.
    """
    name = fspath(url_or_filename)
    if is_url(name):
        return str(url_file(name, cache_folder(cache_dir)))
    if not Path(name).exists():
        raise FileNotFoundError(f"{name}: no such file")
    return name
