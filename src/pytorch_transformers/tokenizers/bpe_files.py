"""Reading and writing the two files of byte pair encoding: a vocabulary in JSON, token -> id, and the merges in order.

Merges stand one a line, the two parts with a space between them, below a line that begins with `#version`. A line ends
at a newline and nowhere else. All that is wrong with a file is said with its name and the line.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..files import write_text
from .bpe import Merges, Pair

#: Begins the first line of merges; a file may lack it.
VERSION_LINE: Final = "#version"

VocabSource = str | os.PathLike[str] | Mapping[str, int]
MergesSource = str | os.PathLike[str] | Sequence[str | Sequence[str]]


def read_vocabulary(source: VocabSource) -> tuple[dict[str, int], list[str], str]:
    """Reads a vocabulary whose ids go from 0 without a hole.

    Args:
        source: the path of a JSON file, or token -> id itself.

    Returns:
        Token -> id, the tokens in order of their ids, and what to call the vocabulary in messages.

    Raises:
        OSError: there is no such file, or it cannot be read.
        TypeError: it is neither a path nor a mapping.
        ValueError: it is no JSON or no vocabulary; the message says where and why.
    """
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        description = f"the vocabulary {path!r}"
        content = _json_object(_text(path, description), description)
    elif isinstance(source, Mapping):
        content, description = source, "the vocabulary"
    else:
        raise TypeError(f"a vocabulary is the path of a JSON file or token -> id, not {source!r:.60}")
    vocab = dict(content)
    return vocab, _in_order(vocab, description), description


def _text(path: str, description: str) -> str:
    if not Path(path).is_file():
        raise OSError(f"there is no file {path!r} for {description}; from_pretrained(...) takes a folder or a name")
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{description}, line {line}: this is not UTF-8 text: {error}") from error


def _json_object(text: str, description: str) -> Mapping[str, Any]:
    try:
        content = json.loads(text, object_pairs_hook=_Entries)
    except json.JSONDecodeError as error:
        cut = "; the file seems to be cut off, so copy or download it again" if error.pos >= len(text.rstrip()) else ""
        raise ValueError(
            f"{description}, line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}{cut}"
        ) from error
    if not isinstance(content, _Entries):
        # The file is at fault, not the type of an argument.
        raise ValueError(  # noqa: TRY004
            f"{description} should hold a JSON object, token -> id, not {type(content).__name__}"
        )
    vocab = dict(content)
    if len(vocab) != len(content):
        twice = Counter(name for name, _ in content).most_common(1)[0][0]
        raise ValueError(f"{description}, line {_line_of(text, twice)}: the token {twice!r} is there more than once")
    for token, number in content:
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise ValueError(
                f"{description}, line {_line_of(text, token)}: the id of {token!r} should be an integer from 0 on, not "
                f"{number!r:.60}"
            )
    return vocab


class _Entries(list[tuple[str, Any]]):
    """The entries of a JSON object in their order, those with one name included."""


def _line_of(text: str, token: str) -> int:
    """Gives the last line that has the token; programs write it in ASCII or as it is."""
    place = max(text.rfind(json.dumps(token)), text.rfind(json.dumps(token, ensure_ascii=False)), 0)
    return text.count("\n", 0, place) + 1


def _in_order(vocab: Mapping[str, int], description: str) -> list[str]:
    by_id: dict[int, str] = {}
    for token, number in vocab.items():
        if number in by_id:
            raise ValueError(f"{description} gives the id {number} to two tokens, {by_id[number]!r} and {token!r}")
        by_id[number] = token
    missing = next((number for number in range(len(vocab)) if number not in by_id), None)
    if missing is not None:
        raise ValueError(
            f"{description} has {len(vocab)} tokens with ids up to {max(by_id)}, and none with the id {missing}; the "
            "ids must go from 0 without a hole"
        )
    if not by_id:
        raise ValueError(f"{description} is empty")
    return [by_id[number] for number in range(len(by_id))]


def read_merges(source: MergesSource, vocab: Mapping[str, int], vocabulary: str) -> Merges:
    """Reads merges, all of which must make tokens of the vocabulary out of tokens of the vocabulary.

    Args:
        source: the path of a file, or the merges themselves, as pairs or as lines.
        vocab: token -> id.
        vocabulary: what to call the vocabulary in messages.

    Raises:
        OSError: there is no such file, or it cannot be read.
        TypeError: it is neither a path nor a sequence.
        ValueError: a line is no pair, or does not fit the vocabulary; the message says which.
    """
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        description = f"the merges {path!r}"
        lines = _text(path, description).removesuffix("\n").split("\n")
        rows: list[str | Sequence[str]] = [line.removesuffix("\r") for line in lines]
    elif isinstance(source, Sequence):
        rows, description = list(source), "the merges"
    else:
        raise TypeError(f"merges are the path of a file or a list of pairs, not {source!r:.60}")
    pairs: list[Pair] = []
    for number, row in enumerate(rows, 1):
        if not row or (number == 1 and isinstance(row, str) and row.startswith(VERSION_LINE)):
            continue
        pair = _pair(row)
        if pair is None:
            raise ValueError(
                f"{description}, line {number}: a merge should be two symbols with one space between, not {row!r:.60}"
            )
        left, right = pair
        if left not in vocab or right not in vocab or left + right not in vocab:
            token = next(token for token in (left, right, left + right) if token not in vocab)
            raise ValueError(
                f"{description}, line {number}: the merge {left!r} {right!r} does not fit {vocabulary}, which has no "
                f"{token!r}; are the two files of one model?"
            )
        pairs.append(pair)
    return Merges(pairs)


def _pair(row: Any) -> Pair | None:
    """Gives the two parts of a merge; None if it has not two."""
    if isinstance(row, str):
        left, _, right = row.partition(" ")
        return (left, right) if left and right and " " not in right else None
    parts = tuple(row) if isinstance(row, Sequence) else ()
    return parts if len(parts) == 2 and all(isinstance(part, str) and part for part in parts) else None


def save_bpe(tokens: Sequence[str], merges: Merges, vocab_path: Path, merges_path: Path) -> tuple[Path, Path]:
    """Writes both files; each appears whole or not at all.

    Args:
        tokens: the tokens in order of their ids.
        merges: the merges.
        vocab_path: the file of the vocabulary.
        merges_path: the file of the merges.

    Raises:
        OSError: the disk refused one.
        ValueError: a merge has a space or a newline in it, and could not be read back.
    """
    broken = next((pair for pair in merges.pairs if any(sign in part for part in pair for sign in " \n")), None)
    if broken is not None:
        raise ValueError(f"a merge with a space or newline in it cannot be saved one a line: {broken!r}")
    lines = [f"{VERSION_LINE}: 0.2", *(f"{left} {right}" for left, right in merges.pairs)]
    write_text(vocab_path, json.dumps({token: number for number, token in enumerate(tokens)}) + "\n")
    write_text(merges_path, "".join(line + "\n" for line in lines))
    return vocab_path, merges_path
