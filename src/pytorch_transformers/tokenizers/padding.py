"""Filling rows to one length, and turning them into tensors."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .options import Side

#: The rows of one field of an encoding, one list for each text.
Rows = list[list[Any]]


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


def to_tensor(name: str, rows: Sequence[Any], kind: str) -> Any:
    """Makes one int64 tensor of rows.

    Args:
        name: the field, for messages.
        rows: the rows, all of one length; an offset that is None becomes (0, 0).
        kind: "pt" for torch, "np" for NumPy.

    Raises:
        ValueError: the rows differ in length, or there are none.
    """
    if name == "offset_mapping":
        rows = [[(0, 0) if span is None else span for span in row] for row in rows]
    if not rows:
        raise ValueError(f"an empty batch has no {name} to make a tensor of; leave out return_tensors or give a text")
    lengths = {len(row) for row in rows if isinstance(row, list)}
    if len(lengths) > 1:
        raise ValueError(
            f"rows of {name} have {min(lengths)} to {max(lengths)} tokens and do not fit one tensor; "
            "pass padding=True, and truncation=True if a row may be longer than max_length"
        )
    import numpy as np

    array = np.asarray(rows, dtype=np.int64)
    if name == "offset_mapping" and array.size == 0:
        array = array.reshape(len(rows), 0, 2)
    if kind == "np":
        return array
    import torch

    return torch.from_numpy(array)


def plain_rows(value: Any) -> list[Any]:
    """Gives a value as nested lists, be it a tensor, an array or a sequence of either.

    Args:
        value: the value.
    """
    if hasattr(value, "tolist"):
        return list(value.tolist())
    return [item.tolist() if hasattr(item, "tolist") else item for item in value]


def columns_of(encodings: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> tuple[dict[str, Rows], bool]:
    """Turns encodings of single texts into columns, one list of rows for each field.

    Args:
        encodings: a list of encodings of one text each, one encoding of a batch, or one of a single text.

    Returns:
        The columns, and whether it was a single text.

    Raises:
        ValueError: the encodings have different fields, or no `input_ids`.
    """
    if isinstance(encodings, Mapping):
        columns = {name: plain_rows(value) for name, value in encodings.items()}
        single = bool(columns.get("input_ids")) and not isinstance(columns["input_ids"][0], list)
        columns = {name: [value] for name, value in columns.items()} if single else columns
    else:
        names = list(encodings[0]) if encodings else ["input_ids"]
        for number, encoding in enumerate(encodings):
            if set(encoding) != set(names):
                raise ValueError(f"encoding {number} has the fields {sorted(encoding)}, encoding 0 {sorted(names)}")
        columns = {name: [plain_rows(encoding[name]) for encoding in encodings] for name in names}
        single = False
    if "input_ids" not in columns:
        raise ValueError(f"an encoding to pad needs input_ids; there are {sorted(columns)}")
    return columns, single
