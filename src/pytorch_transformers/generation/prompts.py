"""What callers pass as prompts: ids in lists, an array or a tensor, padded on either side. Lists of ids come out."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..nn.checks import INDEX_TYPES, check_shape
from ..nn.values import whole_number

#: One prompt, several of equal length or with a mask, or lists of ids.
Prompts: TypeAlias = Tensor | npt.NDArray[Any] | Sequence[int] | Sequence[Sequence[int]]


def prompt_rows(input_ids: Prompts, attention_mask: Prompts | None, vocabulary: int) -> list[list[int]]:
    """The ids of each prompt without padding.

    Args:
        input_ids: Ids [B, T], of one prompt [T], or lists of ids, which may differ in length.
        attention_mask: Of the shape of the ids, 1 for tokens and 0 for padding, on the left or the right.
        vocabulary: Number of ids that the model has, V.

    Raises:
        ValueError: There is no prompt, one is empty, an id or the mask is wrong, or padding stands between tokens.
        TypeError: An argument is of no such type.
    """
    rows = _rows(input_ids) if attention_mask is None else _unpadded(input_ids, attention_mask)
    if not rows:
        raise ValueError("input_ids: no prompts; give at least one")
    for number, row in enumerate(rows):
        if not row:
            raise ValueError(
                f"input_ids: prompt {number} is empty, but a text follows from at least one token; give the id that "
                "starts a text (<|endoftext|> for GPT-2)"
            )
        low, high = min(row), max(row)
        if low < 0 or high >= vocabulary:
            raise ValueError(
                f"input_ids: found {low if low < 0 else high} in prompt {number}, allowed is 0 to {vocabulary - 1}; "
                "is this the tokenizer of the model?"
            )
    return rows


def padded_left(rows: Sequence[Sequence[int]]) -> tuple[Tensor, list[int]]:
    """Rows as one tensor [B, T], zeros on the left of the shorter ones, and how many of them for each row."""
    longest = max(map(len, rows))
    padding = [longest - len(row) for row in rows]
    return torch.tensor([[*[0] * pad, *row] for pad, row in zip(padding, rows, strict=True)]), padding


def _rows(input_ids: Prompts) -> list[list[int]]:
    if isinstance(input_ids, np.ndarray):
        input_ids = _tensor("input_ids", input_ids)
    if isinstance(input_ids, Tensor):
        if input_ids.dtype not in INDEX_TYPES:
            raise ValueError(
                f"input_ids: expected integers (torch.long), found {input_ids.dtype}; convert with .long()"
            )
        if input_ids.ndim not in (1, 2):
            raise ValueError(f"input_ids: expected a shape [batch, tokens], found {list(input_ids.shape)}")
        rows: list[list[int]] = (input_ids[None] if input_ids.ndim == 1 else input_ids).tolist()
        return rows
    if not isinstance(input_ids, list | tuple):
        raise TypeError(f"input_ids: expected a tensor or lists of ids, found {type(input_ids).__name__}")
    nested = bool(input_ids) and isinstance(input_ids[0], Sequence | Tensor | np.ndarray)
    several = input_ids if nested else [input_ids]
    return [[whole_number("input_ids: id", token) for token in row] for row in several]


def _tensor(name: str, values: Any) -> Tensor:
    """Lists or an array as a tensor.

    Raises:
        ValueError: The lists differ in length, or what they hold are no numbers.
        TypeError: It is neither.
    """
    if isinstance(values, Tensor):
        return values
    if not isinstance(values, list | tuple | np.ndarray):
        raise TypeError(f"{name}: expected a tensor, an array or lists, found {type(values).__name__}")
    try:
        array = np.array([row.tolist() if isinstance(row, Tensor) else row for row in values])
    except ValueError as error:
        raise ValueError(f"{name}: with an attention_mask all rows must be of one length") from error
    if array.dtype.kind not in "iufb":
        raise ValueError(f"{name}: expected integers, found {array.dtype}")
    return torch.from_numpy(array.astype(np.int64) if array.dtype.kind in "iu" or not array.size else array)


def _unpadded(input_ids: Prompts, attention_mask: Prompts) -> list[list[int]]:
    tensor, mask = _tensor("input_ids", input_ids), _tensor("attention_mask", attention_mask)
    check_shape("attention_mask", mask, tuple(tensor.shape), "as the ids")
    rows = []
    marks = (mask[None] if mask.ndim == 1 else mask).tolist()
    for number, (ids, marked) in enumerate(zip(_rows(tensor), marks, strict=True)):
        if bad := [mark for mark in marked if mark not in (0, 1)]:
            raise ValueError(f"attention_mask: found {bad[0]}, allowed is 1 (token) and 0 (padding)")
        places = [place for place, mark in enumerate(marked) if mark]
        if places and places[-1] - places[0] >= len(places):
            raise ValueError(f"attention_mask: row {number} has padding between tokens; pad on one side only")
        rows.append([ids[place] for place in places])
    return rows
