"""The folder in which 0.6.2 kept its downloads, which are still good: the addresses that they came from are dead.

A file there is named after the hash of its address and of the server's tag; beside it lies a `.json` with both.
"""

import atexit
import functools
import json
import os
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pytorch_transformers.files import CONFIG_NAME, WEIGHTS_NAME
from pytorch_transformers.hub import Location, locate
from pytorch_transformers.hub.archive import extract
from pytorch_transformers.hub.cache import cache_folder
from pytorch_transformers.hub.download import is_url
from pytorch_transformers.tokenizers.loading import find_files

from .archives import EARLY_MODELS, EARLY_NAMES, EARLY_VOCABULARIES

#: Where 0.6.2 kept them.
PYTORCH_PRETRAINED_BERT_CACHE: Final = Path(
    os.getenv("PYTORCH_PRETRAINED_BERT_CACHE") or Path.home() / ".pytorch_pretrained_bert"
)
#: How the addresses of weights end, and those of the configurations that go with them.
_WEIGHTS_END, _CONFIG_END = "-pytorch_model.bin", "-config.json"

Folder = str | os.PathLike[str]


def url_to_filename(url: str, etag: str | None = None) -> str:
    """The name of a file in the cache.

    Args:
        url: Its address.
        etag: What the server calls this version of it; without one the name is of the address alone.
    """
    hashed = sha256(url.encode()).hexdigest()
    return f"{hashed}.{sha256(etag.encode()).hexdigest()}" if etag else hashed


def read_record(path: Path) -> tuple[str, str | None]:
    """Address and tag of a file in the cache, out of the `.json` beside it.

    Raises:
        OSError: The file or its record is not there, or the record is damaged.
    """
    record = path.with_name(path.name + ".json")
    for each in (path, record):
        if not each.is_file():
            raise FileNotFoundError(f"{each}: no such file in the cache")
    try:
        said = json.loads(record.read_text(encoding="utf-8"))
        return said["url"], said["etag"]
    except (ValueError, KeyError, TypeError) as error:
        raise OSError(f"{record} is damaged: it should have url and etag, but {error!r}") from error


def classic_folder(cache_dir: Folder | None) -> Path:
    """The cache that a caller named, or the one of 0.6.2."""
    return PYTORCH_PRETRAINED_BERT_CACHE if cache_dir is None else Path(cache_dir).expanduser()


def classic_file(url: str, cache_dir: Folder | None = None) -> Path | None:
    """The newest file that 0.6.2 downloaded from an address; None where there is none.

    A file without its record is passed over: 0.6.2 wrote the record last, so the file may be cut off.

    Args:
        url: The address.
        cache_dir: The cache; that of 0.6.2 by default.
    """
    name = url_to_filename(url)
    found = (path for path in classic_folder(cache_dir).glob(f"{name}*") if path.suffix != ".json")
    whole = [path for path in found if _is_of(url, path)]
    return max(whole, key=lambda path: path.stat().st_mtime_ns, default=None)


def _shortcut_file(url: str, cache_dir: Folder | None) -> tuple[Path, Folder | None] | None:
    """`classic_file`, also from the folder of 0.6.2 where the one that was given has none: scripts name one inside it.

    Returns:
        The file, and the folder that has it, None for that of 0.6.2; or None.
    """
    for folder in dict.fromkeys((cache_dir, None)):
        file = classic_file(url, folder)
        if file is not None:
            return file, folder
    return None


def _is_of(url: str, path: Path) -> bool:
    try:
        return read_record(path)[0] == url
    except OSError:
        return False


def classic_place(name: str, archives: Mapping[str, str], options: Mapping[str, Any]) -> str:
    """Where a model is loaded from: the cache of 0.6.2 where that has it, else the name itself.

    Args:
        name: What the user gave: a shortcut name, or anything else that names a model.
        archives: Shortcut name -> the address of its weights, an archive or a file beside a configuration.
        options: Those of the call; `cache_dir` is the folder to look into before that of 0.6.2.

    Returns:
        A folder, or a name or address that `pytorch_transformers` knows.

    Raises:
        OSError: The archive in the cache is damaged.
    """
    cache_dir = options.get("cache_dir")
    current = EARLY_NAMES.get(name, name)
    addresses = [EARLY_MODELS.get(name), archives.get(current), name if is_url(name) else None]
    for address in addresses:
        found = _shortcut_file(address, cache_dir) if address else None
        if address is None or found is None:
            continue
        file, folder = found
        if not address.endswith(_WEIGHTS_END):
            return str(extract(file, cache_folder(folder)))
        config = _shortcut_file(address.removesuffix(_WEIGHTS_END) + _CONFIG_END, cache_dir)
        if config is not None:
            return str(linked({WEIGHTS_NAME: file, CONFIG_NAME: config[0]}))
    return current


def classic_vocabulary(
    name: str,
    addresses: Mapping[str, Mapping[str, str]],
    names: Mapping[str, str],
    repositories: Mapping[str, str],
    cache_dir: Folder | None,
) -> tuple[dict[str, Path], Location | None]:
    """The vocabulary files of a tokenizer: from the cache of 0.6.2 where that has them, else from where the name says.

    Args:
        name: What the user gave: a shortcut name, a folder, a repository on the hub, a file or an address.
        addresses: Argument of the constructor -> shortcut name -> address of its file.
        names: Argument of the constructor -> name of its file in a folder.
        repositories: Shortcut name -> repository on the hub.
        cache_dir: Folder for downloads, which is looked into before the cache of 0.6.2.

    Returns:
        Argument -> file; and the place they are in, None if that is the cache of 0.6.2.

    Raises:
        OSError: There is no such place, or a file is missing.
    """
    current = EARLY_NAMES.get(name, name)
    early = {"vocab_file": EARLY_VOCABULARIES.get(name), "merges_file": None}
    cached: dict[str, Path] = {}
    for argument, table in addresses.items():
        for address in (early.get(argument), table.get(current), name if is_url(name) and len(names) == 1 else None):
            if address and argument not in cached and (file := _shortcut_file(address, cache_dir)) is not None:
                cached[argument] = file[0]
    if len(cached) == len(addresses):
        return cached, None
    location = locate(current, shortcuts=repositories, cache_dir=cache_dir)
    found = find_files(location, names)
    if isinstance(found, Path):
        raise OSError(
            f"no {' and '.join(names.values())} in {location.description}, only {found.name}, which the classic "
            "tokenizers don't read; load it with pytorch_transformers and save its vocabulary"
        )
    return found, location


def linked(files: Mapping[str, Path]) -> Path:
    """A folder in which files have the names they should have, which lasts as long as the process.

    Args:
        files: Name in the folder -> file.
    """
    folder = Path(tempfile.mkdtemp(dir=_links()))
    for name, path in files.items():
        (folder / name).symlink_to(path.resolve())
    return folder


@functools.cache
def _links() -> str:
    folder = tempfile.TemporaryDirectory(prefix="pytorch-pretrained-bert-")
    atexit.register(folder.cleanup)
    return folder.name
