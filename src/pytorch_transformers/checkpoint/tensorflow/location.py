"""The TensorFlow checkpoint of a place: a folder, a named file, or a repository on the hub."""

from pathlib import Path
from typing import Final

from ...hub import Location
from .bundle import Bundle
from .entries import read_index
from .find import INDEX_SUFFIX, find_prefix, is_v1

#: Usual names of a checkpoint, for places that can't be listed: what published PyTorch packages look for, and what
#: google-research/bert calls its own.
_USUAL_PREFIXES: Final = ("model.ckpt", "bert_model.ckpt")


def find_bundle(location: Location) -> Bundle | None:
    """The TensorFlow checkpoint of a place: the one that was named, or the only or latest one of a folder.

    Raises:
        OSError: There are several and nothing says which, or it is damaged, or of the old format V1.
    """
    prefix = _prefix(location)
    return None if prefix is None else Bundle(prefix)


def required_bundle(location: Location) -> Bundle:
    """The same, where there must be one; its data files need not be there.

    Raises:
        OSError: There is none, or as `find_bundle`.
    """
    prefix = _prefix(location)
    if prefix is None:
        if location.chosen is not None:
            raise OSError(f"{location.chosen} is no TensorFlow checkpoint; that is a PREFIX with a file PREFIX.index.")
        raise OSError(f"No TensorFlow checkpoint in {location.description}: looked for PREFIX.index.")
    return Bundle(prefix, check_data=False)


def _prefix(location: Location) -> Path | None:
    chosen, folder = location.chosen, location.folder
    if chosen is not None:
        prefix = chosen if is_v1(chosen) else find_prefix(chosen)
        if prefix is not None:
            return prefix
    if folder is not None:  # also for a configuration that was named: weights are looked for beside it
        return find_prefix(folder)
    for name in _USUAL_PREFIXES:
        index = location.file(f"{name}{INDEX_SUFFIX}")
        if index is not None:
            shards, _ = read_index(index)
            for shard in range(shards):  # which fetches them, beside the index
                location.file(f"{name}.data-{shard:05d}-of-{shards:05d}")
            return index.with_name(name)
    return None
