"""The model families. A new one is a folder, and an entry in `FAMILIES`."""

import json
import re
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import Any, Final

from ..hub import Location, locate
from ..tokenizers.loading import LIBRARY_FILE, TOKENIZER_CONFIG_FILE
from . import bert, gpt2, openai_gpt, transfo_xl
from .config import PretrainedConfig
from .record import Family

__all__ = ["FAMILIES", "Family", "family_of", "family_of_config"]

FAMILIES: Final[tuple[Family, ...]] = (bert.FAMILY, openai_gpt.FAMILY, gpt2.FAMILY, transfo_xl.FAMILY)
_CONFIG_FILES: Final = tuple(dict.fromkeys(name for family in FAMILIES for name in family.config_class.filenames))


def family_of(name_or_path: str | PathLike[str], **place: Any) -> Family:
    """Find out which family a checkpoint belongs to.

    A shortcut name says it; otherwise `model_type` in the configuration. The published packages wrote none: then the
    fields say it that only one family has, or the name that only one family gives its configuration file, or a family
    whose name is a word in the given name. A place without a configuration may still have a tokenizer that says it: see
    `_family_of_tokenizer`.

    Args:
        name_or_path: As for `from_pretrained`.
        **place: `cache_dir`, `revision`, `local_files_only`, as for `from_pretrained`.

    Raises:
        OSError: There is no such place, no configuration in it, or one that cannot be read.
        ValueError: It belongs to none of the families, or does not say to which.
    """
    name = fspath(name_or_path)
    for family in FAMILIES:
        if name in family.repositories:
            return family
    shortcuts = {key: repository for family in FAMILIES for key, repository in family.repositories.items()}
    location = locate(name, shortcuts=shortcuts, **place)
    chosen = location.chosen
    no_config = (".index.json", LIBRARY_FILE, TOKENIZER_CONFIG_FILE)
    named = chosen is not None and chosen.suffix == ".json" and not chosen.name.endswith(no_config)
    path = chosen if named else location.first(_CONFIG_FILES)
    if path is None:
        return _family_of_tokenizer(location, name)
    values = _values(path)
    kind = values.get("model_type")
    signs: tuple[Callable[[Family], bool], ...] = (
        lambda family: _has_fields(family, values),
        lambda family: location.first(family.config_only) is not None,
        lambda family: _is_word_in(family.name, name),
    )
    if kind is not None:
        signs = (lambda family: kind == family.config_class.model_type,)
    for sign in signs:
        found = [family for family in FAMILIES if sign(family)]
        if len(found) == 1:
            return found[0]
    known = ", ".join(family.config_class.model_type for family in FAMILIES)
    if kind is None:
        raise ValueError(f"{path} does not say what it is: add a model_type, one of {known}, or use the class itself")
    raise ValueError(f"{location.description}: model_type is {kind!r}; this library has {known}")


def family_of_config(config: PretrainedConfig) -> Family:
    """The family that a configuration belongs to.

    Raises:
        ValueError: It is of none.
    """
    for family in FAMILIES:
        if isinstance(config, family.config_class):
            return family
    raise ValueError(f"config: {type(config).__name__} belongs to none of {', '.join(each.name for each in FAMILIES)}")


def _family_of_tokenizer(location: Location, name: str) -> Family:
    """The family that the files of a tokenizer tell of, where there is no configuration.

    The first of these that leaves one family: the name of the one file that was given; the class of tokenizer that was
    saved; the vocabulary files that are there.
    """
    chosen = location.chosen
    saved = location.file(TOKENIZER_CONFIG_FILE)
    kind = "" if saved is None else str(_values(saved).get("tokenizer_class")).removesuffix("Fast")
    for families in (
        [family for family in FAMILIES if chosen is not None and _is_word_in(family.name, name)],
        [family for family in FAMILIES if kind and family.classes["tokenizer"].endswith(f":{kind}")],
        [family for family in FAMILIES if location.file(family.tokenizer_files[0]) is not None],
    ):
        if len(families) == 1:
            return families[0]
    known = ", ".join(family.name for family in FAMILIES)
    raise OSError(
        f"{location.description}: no configuration; looked for {', '.join(_CONFIG_FILES)}. The tokenizer, if there is "
        f"one, does not say either to which of {known} it belongs; use the class itself"
    )


def _has_fields(family: Family, values: Mapping[str, Any]) -> bool:
    """Whether a configuration has the fields that only this family has."""
    fields = family.config_fields
    return bool(fields) and all((name in values) == there for name, there in fields.items())


def _values(path: Path) -> dict[str, Any]:
    """What a file says; {} where it is no JSON object."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OSError(f"{path} is no configuration in JSON: {error}") from error
    return values if isinstance(values, dict) else {}


def _is_word_in(word: str, name: str) -> bool:
    """Whether the last two parts of a path or name hold the word: `bert-base` has `bert`, `roberta` has not."""
    spelling = re.escape(word).replace("_", "[-_]?")
    return bool(re.search(rf"(?<![a-z]){spelling}(?![a-z])", "/".join(PurePath(name).parts[-2:]).lower()))
