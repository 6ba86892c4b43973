"""The model families. A new one is a folder, and an entry in `FAMILIES`."""

import json
from os import PathLike, fspath
from typing import Any, Final

from ..hub import Location, locate
from . import bert
from .record import Family

__all__ = ["FAMILIES", "Family", "family_of"]

FAMILIES: Final[tuple[Family, ...]] = (bert.FAMILY,)


def family_of(name_or_path: str | PathLike[str], **place: Any) -> Family:
    """Find out which family a checkpoint belongs to.

    A shortcut name says it; otherwise `model_type` in the configuration, the name that only one family gives its
    configuration file, or, for files without either, a family whose name is part of the given name.

    Args:
        name_or_path: As for `from_pretrained`.
        **place: `cache_dir`, `revision`, `local_files_only`, as for `from_pretrained`.

    Raises:
        OSError: There is no such place, or no configuration in it.
        ValueError: It belongs to none of the families.
    """
    name = fspath(name_or_path)
    for family in FAMILIES:
        if name in family.repositories:
            return family
    shortcuts = {key: repository for family in FAMILIES for key, repository in family.repositories.items()}
    location = locate(name, shortcuts=shortcuts, **place)
    kind = _model_type(location)
    for family in FAMILIES:
        if kind == family.config_class.model_type:
            return family
        if kind is None and (location.first(family.config_only) or family.name in name):
            return family
    known = ", ".join(family.config_class.model_type for family in FAMILIES)
    raise ValueError(f"{location.description}: model_type is {kind!r}; this library has {known}")


def _model_type(location: Location) -> str | None:
    names = dict.fromkeys(name for family in FAMILIES for name in family.config_class.filenames)
    path = location.first(tuple(names))
    if path is None:
        raise OSError(f"{location.description}: no configuration; looked for {', '.join(names)}")
    values = json.loads(path.read_text(encoding="utf-8"))
    kind: str | None = values.get("model_type") if isinstance(values, dict) else None
    return kind
