"""From the files saved beside a vocabulary to the options of a tokenizer.

Three files are read, all of them optional: `tokenizer_config.json`, `special_tokens_map.json`, which wins where the two
differ, and `added_tokens.json`. Other programs write the first with many keys of their own; those are passed over, but
the tokens they list under `added_tokens_decoder` are read. Where the vocabulary files are absent, `tokenizer.json`
takes their place (`library_file.py`); the other files win over what it says.
"""

import inspect
import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .options import BaseOptions, text_of
from .special import ROLES

if TYPE_CHECKING:
    from ..hub import Location

logger = logging.getLogger(__name__)

TOKENIZER_CONFIG_FILE: Final = "tokenizer_config.json"
SPECIAL_TOKENS_MAP_FILE: Final = "special_tokens_map.json"
ADDED_TOKENS_FILE: Final = "added_tokens.json"
#: The file of the `tokenizers` library.
LIBRARY_FILE: Final = "tokenizer.json"
#: Endings of files that are no vocabulary: the user named the weights, and the vocabulary lies beside them.
OTHER_ENDINGS: Final = frozenset({".bin", ".safetensors", ".pt", ".pth", ".ckpt", ".npz", ".npy", ".h5", ".index"})


def option_names(tokenizer: type) -> list[str]:
    """Lists the options that a tokenizer class can be built with, its files not among them.

    Args:
        tokenizer: the class.
    """
    parameters = inspect.signature(tokenizer).parameters.values()
    own = [item.name for item in parameters if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)]
    return [
        name for name in dict.fromkeys([*own, *sorted(BaseOptions.__optional_keys__)]) if not name.endswith("_file")
    ]


def find_files(location: "Location", names: Mapping[str, str], *others: Mapping[str, str]) -> dict[str, Path] | Path:
    """Finds the vocabulary files of a tokenizer.

    Args:
        location: where to look.
        names: argument of the constructor -> name of its file.
        *others: the same with the names that other programs use.

    Returns:
        Argument -> file, or the `tokenizer.json` where it was named, or where one of the files is missing.

    Raises:
        OSError: a file is missing; the message has the place and the names that were looked for.
    """
    chosen = location.chosen
    if chosen is not None and chosen.name == LIBRARY_FILE and chosen.is_file():
        return chosen
    if chosen is not None and len(names) == 1 and chosen.is_file() and chosen.suffix not in OTHER_ENDINGS | {".json"}:
        return {next(iter(names)): chosen}
    missing: list[str] = []
    for each in (names, *others):
        found = {argument: path for argument, name in each.items() if (path := location.file(name)) is not None}
        if len(found) == len(each):
            return found
        missing = missing or [name for argument, name in each.items() if argument not in found]
    library = location.file(LIBRARY_FILE)
    if library is None:
        raise OSError(
            f"no tokenizer in {location.description}: looked for {', '.join(names.values())}, "
            + "".join(f"or {', '.join(each.values())}, " for each in others)
            + f"and {', '.join(missing)} is not there; neither is {LIBRARY_FILE}"
        )
    return library


def saved_options(location: "Location", known: Iterable[str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the options that were saved with a tokenizer.

    Args:
        location: where to look.
        known: the options that the tokenizer has.
        defaults: what `tokenizer.json` says, under the names of `tokenizer_config.json`, which wins.

    Returns:
        Option -> value, for a constructor.

    Raises:
        ValueError: a file cannot be read as what it should be.
    """
    config = read_json(location.file(TOKENIZER_CONFIG_FILE))
    special = read_json(location.file(SPECIAL_TOKENS_MAP_FILE))
    merged = {**defaults, **config, **special}
    options = {name: merged[name] for name in known if name in merged and name not in ROLES}
    options |= {role: text_of(merged[role], role) for role in ROLES if role in merged}
    more = merged.get("additional_special_tokens") or merged.get("extra_special_tokens") or []
    more = list(more.values()) if isinstance(more, dict) else more
    additional = [text for token in more if (text := text_of(token, "additional_special_tokens"))]
    added = {token: int(number) for token, number in read_json(location.file(ADDED_TOKENS_FILE)).items()}
    for number, token in (_decoder(defaults) | _decoder(config)).items():
        content = str(token["content"])
        added.setdefault(content, number)
        if token.get("special") and content not in additional and content not in options.values():
            additional.append(content)
    passed_over = sorted(set(config) - set(options) - {"additional_special_tokens", "added_tokens_decoder"})
    logger.debug("keys of %s that say nothing to this tokenizer: %s", TOKENIZER_CONFIG_FILE, ", ".join(passed_over))
    return options | {"additional_special_tokens": additional, "added_tokens": added}


def _decoder(config: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    entries = config.get("added_tokens_decoder") or {}
    return {int(number): token for number, token in entries.items() if isinstance(token, dict) and "content" in token}


def read_json(path: Path | None) -> dict[str, Any]:
    """Reads a JSON object; no file is an empty object.

    Args:
        path: the file, or None when there is none.

    Raises:
        ValueError: the file is not JSON, or holds something other than an object.
    """
    if path is None:
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # covers bad UTF-8 as well as bad JSON
        raise ValueError(f"{str(path)!r} is not a JSON file: {error}") from error
    if not isinstance(value, dict):
        # The file is at fault, not the type of an argument.
        raise ValueError(  # noqa: TRY004
            f"{str(path)!r} should hold a JSON object, not {type(value).__name__}"
        )
    return value
