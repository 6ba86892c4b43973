"""Filling rows to one length, and turning them into tensors."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .options import Side

#: The rows of one field of an encoding, one list for each text.
Rows = list[list[Any]]
#: The fields that a tokenizer makes: a value for each token.
TOKEN_FIELDS: Final = ("input_ids", "token_type_ids", "attention_mask", "special_tokens_mask", "offset_mapping")
#: The label of padding, an index below 0, which the models ignore; -100 is also what `cross_entropy` ignores.
IGNORED_LABEL: Final = -100


def target_length(longest: int, strategy: str, max_length: int | None, multiple: int | None) -> int | None:
    """Computes the length that rows are filled to; None when they stay as they are.

    Args:
        longest: length of the longest row.
        strategy: "longest", "max_length" or "do_not_pad".
        max_length: the length for "max_length".
        multiple: if given, the length is rounded up to a multiple of it.

    Raises:
        ValueError: the strategy is "max_length" and there is no such length.
    """
    if strategy == "do_not_pad":
        return None
    length = longest
    if strategy == "max_length":
        if max_length is None:
            raise ValueError("padding='max_length' needs max_length, or a tokenizer with a model_max_length")
        length = max_length
    return math.ceil(length / multiple) * multiple if multiple else length


def pad_rows(rows: Rows, length: int, fill: Any, side: Side) -> Rows:
    """Fills each row to a length; a longer row stays as it is.

    Args:
        rows: the rows.
        length: the length to fill to.
        fill: what to fill with.
        side: which side to fill.
    """
    if side == "right":
        return [row + [fill] * (length - len(row)) for row in rows]
    return [[fill] * (length - len(row)) + row for row in rows]


def to_tensor(name: str, rows: Sequence[Any], kind: str, *, ours: bool = True) -> Any:
    """Makes one tensor of rows.

    Args:
        name: the field, for messages.
        rows: the rows, all of one length; an offset that is None becomes (0, 0).
        kind: "pt" for torch, "np" for NumPy.
        ours: whether the field is the tokenizer's, and so int64. Others stay what they are: integers int64, floats
            float32 in torch.

    Raises:
        ValueError: the rows differ in length, or there are none, or they hold no numbers.
    """
    if name == "offset_mapping":
        rows = [[(0, 0) if span is None else span for span in row] for row in rows]
    if not rows:
        raise ValueError(f"an empty batch has no {name} to make a tensor of; leave out return_tensors or give a text")
    lengths = {len(row) for row in rows if isinstance(row, list)}
    if len(lengths) > 1:
        way_out = (
            "pass padding=True, and truncation=True if a row may be longer than max_length"
            if ours
            else "make them equally long, or take the field out first; only the fields of the tokenizer and labels of "
            "tokens are filled"
        )
        raise ValueError(
            f"rows of {name} have {min(lengths)} to {max(lengths)} values and do not fit one tensor; {way_out}"
        )
    import numpy as np

    array = np.asarray(rows, dtype=np.int64) if ours else _numbers(name, rows)
    if name == "offset_mapping" and array.size == 0:
        array = array.reshape(len(rows), 0, 2)
    if kind == "np":
        return array
    import torch

    return torch.from_numpy(array.astype(np.float32) if array.dtype == np.float64 else array)


def _numbers(name: str, rows: Sequence[Any]) -> Any:
    """Makes an array of a field that is not the tokenizer's."""
    import numpy as np

    try:
        array = np.asarray(rows)
    except ValueError:  # lists inside the rows differ in length
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} is no number, or row of as many numbers, for each text ({rows[0]!r:.60}), so it makes no tensor; "
            "take it out first, or leave out return_tensors"
        )
    return array


def columns_of(encodings: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> tuple[dict[str, list[Any]], bool]:
    """Turns encodings of single texts into columns: for each field a list with a row or a value for each text.

    Args:
        encodings: a list of encodings of one text each, one encoding of a batch, or one of a single text.

    Returns:
        The columns, and whether it was a single text.

    Raises:
        TypeError: an encoding is no mapping.
        ValueError: the encodings have different fields, or no `input_ids`; or a field has not one value for each text,
            or one of the tokenizer's not one for each token.
    """
    single = False
    if isinstance(encodings, Mapping):
        columns = {name: _plain_field(name, value) for name, value in encodings.items()}
        ids = columns.get("input_ids")
        single = isinstance(ids, list) and bool(ids) and not isinstance(ids[0], list)
        columns = {name: [value] for name, value in columns.items()} if single else columns
    else:
        names = _names_of(encodings)
        columns = {name: [_plain_field(name, encoding[name]) for encoding in encodings] for name in names}
    if "input_ids" not in columns:
        raise ValueError(f"an encoding to pad needs input_ids; there are {sorted(columns)}")
    ids = columns["input_ids"]
    if not isinstance(ids, list) or not all(isinstance(row, list) for row in ids):
        raise ValueError(f"input_ids must be a list of ids for each text, not {ids!r:.60}")
    for name, column in columns.items():
        _check_column(name, column, ids)
    return columns, single


def _names_of(encodings: Sequence[Mapping[str, Any]]) -> list[str]:
    names = ["input_ids"]
    for number, encoding in enumerate(encodings):
        if not isinstance(encoding, Mapping):
            raise TypeError(f"encoding {number} must be a mapping from field to value, not {type(encoding).__name__}")
        names = names if number else list(encoding)
        if set(encoding) != set(names):
            raise ValueError(f"encoding {number} has the fields {sorted(encoding)}, encoding 0 {sorted(names)}")
    return names


def _plain_field(name: str, value: Any) -> Any:
    # Spans are tuples in lists, and stay so.
    return value if name == "offset_mapping" and isinstance(value, list) else _plain(value)


def _plain(value: Any) -> Any:
    """Gives a value without tensors, arrays and tuples: lists of lists, a list, or a single value."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [item if type(item) is int else _plain(item) for item in value]
    return value


def _check_column(name: str, column: Any, ids: Rows) -> None:
    if not isinstance(column, list) or len(column) != len(ids):
        raise ValueError(f"{name} must have one value for each of the {len(ids)} texts; it is {column!r:.60}")
    if name not in TOKEN_FIELDS:
        return
    for number, (row, tokens) in enumerate(zip(column, ids, strict=True)):
        if not isinstance(row, list) or len(row) != len(tokens):
            raise ValueError(f"{name}[{number}] must have one value for each of the {len(tokens)} ids, not {row!r:.60}")
        if name != "offset_mapping" and not all(isinstance(value, int) for value in row):
            raise ValueError(f"{name}[{number}] must be a list of int, not {row!r:.60}")


def are_token_labels(rows: Sequence[Any], ids: Rows) -> bool:
    """Tells whether labels are those of tokens: for each text as many integers as it has ids.

    Args:
        rows: the labels of each text.
        ids: the ids of each text.
    """
    return all(
        isinstance(row, list) and len(row) == len(tokens) and all(isinstance(label, int) for label in row)
        for row, tokens in zip(rows, ids, strict=True)
    )
