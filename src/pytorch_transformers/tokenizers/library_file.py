"""Reading `tokenizer.json`, the one file in which the `tokenizers` library keeps a whole tokenizer.

Recent programs save nothing else, so a vocabulary is taken from it where the family's own files are absent. Only what
this package does in the same way is accepted: a step that it does not have is an error, never left out.
"""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from .loading import read_json
from .wordpiece import CONTINUATION

logger = logging.getLogger(__name__)

#: Step of the normaliser -> option of the constructor.
_NORMALIZER_OPTIONS: Final = {
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "handle_chinese_chars": "tokenize_chinese_chars",
}


class LibraryFile(NamedTuple):
    """What the file holds: the tokens in order of their ids, and options as `tokenizer_config.json` has them."""

    tokens: list[str]
    options: dict[str, Any]


def read_wordpiece(path: Path, owner: str) -> LibraryFile:
    """Reads a tokenizer of word pieces.

    Args:
        path: the file.
        owner: the class that asks, for messages.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no JSON, or holds another kind of tokenizer; the message says what and the way out.
    """
    content = read_json(path)
    model = _part(content, "model", path)
    if model.get("type") != "WordPiece":
        raise ValueError(
            f"{str(path)!r} holds a tokenizer of type {model.get('type')!r}, and {owner} cuts WordPiece; use the class "
            "of its family, or put the vocab.txt of a BERT beside it"
        )
    prefix = model.get("continuing_subword_prefix", CONTINUATION)
    if prefix != CONTINUATION:
        raise _other_step(path, owner, "continuing_subword_prefix", prefix)
    tokens = _in_order(_part(model, "vocab", path), path)
    options = {name: model[name] for name in ("unk_token", "max_input_chars_per_word") if name in model}
    options |= _words(content, path, owner)
    return LibraryFile(tokens, options | {"added_tokens_decoder": _added(content.get("added_tokens"), tokens, path)})


class BytePairFile(NamedTuple):
    """What the file holds: token -> id, the merges, and options as `tokenizer_config.json` has them."""

    vocab: dict[str, int]
    merges: list[Any]
    options: dict[str, Any]


#: Part of the file -> key -> the values that it may have; None is a part or key that is not there.
Accepted = Mapping[str, Mapping[str, tuple[Any, ...]]]
#: What holds for every tokenizer of byte pairs.
_BPE_MODEL: Final[Mapping[str, tuple[Any, ...]]] = {
    "dropout": (None,),
    "continuing_subword_prefix": (None, ""),
    "fuse_unk": (None, False),
    "byte_fallback": (None, False),
    "ignore_merges": (None, False),
}


def read_bpe(path: Path, owner: str, accepted: Accepted) -> BytePairFile:
    """Reads a tokenizer of byte pairs.

    Args:
        path: the file.
        owner: the class that asks, for messages.
        accepted: what the class does.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no JSON, or holds another kind of tokenizer; the message says what and the way out.
    """
    content = read_json(path)
    model = _part(content, "model", path)
    if model.get("type") != "BPE":
        raise ValueError(
            f"{str(path)!r} holds a tokenizer of type {model.get('type')!r}, and {owner} joins byte pairs (BPE); use "
            "the class of its family, or put vocab.json and merges.txt beside it"
        )
    for name, keys in {**accepted, "model": {**_BPE_MODEL, **accepted["model"]}}.items():
        part = content.get(name)
        for key, values in keys.items():
            value = part.get(key) if isinstance(part, Mapping) else None
            if value not in values:
                raise _other_step(path, owner, f"{name}.{key}", value)
    merges = model.get("merges")
    if not isinstance(merges, list):
        # The file is at fault, not the type of an argument.
        raise ValueError(f"{str(path)!r} has no list of merges")  # noqa: TRY004
    tokens = _in_order(_part(model, "vocab", path), path)
    options: dict[str, Any] = {"added_tokens_decoder": _added(content.get("added_tokens"), tokens, path)}
    if model.get("unk_token"):
        options["unk_token"] = model["unk_token"]
    splitter = content.get("pre_tokenizer")
    if isinstance(splitter, Mapping) and "add_prefix_space" in splitter:
        options["add_prefix_space"] = splitter["add_prefix_space"]
    return BytePairFile({token: number for number, token in enumerate(tokens)}, merges, options)


def _part(content: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    part = content.get(name)
    if not isinstance(part, Mapping):
        # The file is at fault, not the type of an argument.
        raise ValueError(  # noqa: TRY004
            f"{str(path)!r} is no tokenizer: {name!r} should be a JSON object, not {type(part).__name__}"
        )
    return part


def _other_step(path: Path, owner: str, step: str, value: object) -> ValueError:
    return ValueError(
        f"{str(path)!r} has {step}={value!r}, which {owner} does not do, so the ids would differ; use the tokenizers "
        "library for this file"
    )


def _in_order(vocab: Mapping[str, Any], path: Path) -> list[str]:
    """Sorts the tokens by their ids, which must be 0, 1, 2 and so on."""
    by_id = {number: token for token, number in vocab.items() if isinstance(number, int)}
    missing = next((number for number in range(len(vocab)) if number not in by_id), None)
    if missing is not None or not vocab:
        raise ValueError(
            f"the vocabulary of {str(path)!r} has {len(vocab)} tokens, and none with the id {missing or 0}; the ids "
            "must go from 0 without a hole"
        )
    return [by_id[number] for number in range(len(vocab))]


def _words(content: Mapping[str, Any], path: Path, owner: str) -> dict[str, Any]:
    """Gives the options that say how text becomes words."""
    normalizer, splitter = content.get("normalizer"), content.get("pre_tokenizer")
    kinds = [step.get("type") if isinstance(step, Mapping) else step for step in (normalizer, splitter)]
    if kinds == [None, "WhitespaceSplit"]:
        return {"do_basic_tokenize": False}
    if kinds != ["BertNormalizer", "BertPreTokenizer"]:
        raise _other_step(path, owner, "normalizer, pre_tokenizer", kinds)
    steps = _part(content, "normalizer", path)
    if not steps.get("clean_text", True):
        raise _other_step(path, owner, "normalizer.clean_text", False)
    return {option: steps[step] for step, option in _NORMALIZER_OPTIONS.items() if step in steps}


def _added(entries: Any, tokens: list[str], path: Path) -> dict[str, Any]:
    """Gives the added tokens as `added_tokens_decoder` has them: id -> content and whether it is special."""
    decoder: dict[str, Any] = {}
    for entry in entries if isinstance(entries, list) else [entries] if entries else ():
        whole = isinstance(entry, Mapping) and isinstance(entry.get("id"), int)
        if not whole or not isinstance(entry.get("content"), str):
            raise ValueError(f"{str(path)!r}: an added token should have an id and a content; there is {entry!r:.80}")
        decoder[str(entry["id"])] = dict(entry)
    _report_plain(decoder.values(), tokens, path)
    return decoder


def _report_plain(entries: Iterable[Mapping[str, Any]], tokens: list[str], path: Path) -> None:
    known = set(tokens)
    plain = [entry["content"] for entry in entries if entry["content"] in known and not entry.get("special")]
    if plain:
        logger.warning(
            "%s lists tokens of the vocabulary as added ones (%s); here they are ordinary tokens of the vocabulary, "
            "found where a word is cut into pieces. Make them special to have them found as a whole anywhere.",
            path,
            ", ".join(map(repr, plain[:5])),
        )
