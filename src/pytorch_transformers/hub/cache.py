"""Where downloads are kept, and whether the network may be used. Both are read from the environment at each call."""

import os
from pathlib import Path

_TRUE = {"1", "true", "yes", "on"}
_OFFLINE_SWITCHES = ("HF_HUB_OFFLINE", "PYTORCH_TRANSFORMERS_OFFLINE")


def default_cache() -> Path:
    """Folder for files from plain addresses and for unpacked archives.

    `$PYTORCH_TRANSFORMERS_CACHE`, or `pytorch_transformers` under `$XDG_CACHE_HOME`, or under `~/.cache`.
    Files of the hub live in the hub library's own cache, which other programs share.
    """
    chosen = os.environ.get("PYTORCH_TRANSFORMERS_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "pytorch_transformers"


def cache_folder(cache_dir: str | os.PathLike[str] | None) -> Path:
    """The folder the caller asked for, with `~` expanded, or `default_cache()`."""
    return default_cache() if cache_dir is None else Path(cache_dir).expanduser()


def offline(local_files_only: bool = False) -> bool:
    """Whether the network is forbidden: by argument, or by one of the switches in the environment."""
    return local_files_only or any(os.environ.get(name, "").strip().lower() in _TRUE for name in _OFFLINE_SWITCHES)
