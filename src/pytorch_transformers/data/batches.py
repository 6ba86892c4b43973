"""From encoded rows to the tensors of a batch: padding happens here, and the attention mask is made here."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import torch
from torch import Tensor

#: One example as plain values, under the names of the model's forward arguments: `input_ids` is a list of ids, or a
#: list of such lists, one a choice; labels are numbers, or lists with one number a token. Nothing is padded.
InputRow: TypeAlias = Mapping[str, Any]

#: What stands at padding in values that each token has; for all others a label that every model ignores.
_FILL: Final[Mapping[str, int]] = {"token_type_ids": 0, "position_ids": 0}
_IGNORED: Final = -100


def collate(rows: Sequence[InputRow], pad_token_id: int = 0) -> dict[str, Tensor]:
    """Pad rows to the longest of them: B rows, of C choices where they have choices, T tokens.

    Args:
        rows: Rows with the same names.
        pad_token_id: Stands in `input_ids` at padding, where nothing reads it.

    Returns:
        `input_ids` [B, T] or [B, C, T]; `attention_mask` of that shape, 1 at tokens and 0 at padding; values that each
        token has, in that shape too, with labels of -100 at padding; all others as they are, [B] or [B, C]. int64, or
        float32 for real numbers.

    Raises:
        ValueError: There are no rows, or they differ in their names, choices, or numbers of tokens.
    """
    if not rows:
        raise ValueError("rows: there is none, and a batch has at least one")
    names = rows[0].keys()
    for number, row in enumerate(rows):
        if row.keys() != names:
            raise ValueError(f"rows[{number}] has {', '.join(row)}, and rows[0] has {', '.join(names)}")
    choices = number_of_choices(rows[0])
    sizes = [[len(choice) for choice in _choices(row["input_ids"], choices)] for row in rows]
    if any(len(lengths) != len(sizes[0]) for lengths in sizes):
        raise ValueError(f"rows: {sorted({len(lengths) for lengths in sizes})} choices in one batch; all have the same")
    shape = (len(rows), len(sizes[0]), max(map(max, sizes)))
    mask = np.arange(shape[2]) < np.array(sizes)[:, :, None]  # [B, C, T]
    batch = {}
    for name in names:
        values = [row[name] for row in rows]
        if not _each_token_has_one(values[0], choices):
            batch[name] = torch.tensor(values)
            continue
        array = np.full(shape, pad_token_id if name == "input_ids" else _FILL.get(name, _IGNORED), np.int64)
        for number, (value, lengths) in enumerate(zip(values, sizes, strict=True)):
            if [len(choice) for choice in _choices(value, choices)] != lengths:
                count = sum(map(len, _choices(value, choices)))
                raise ValueError(
                    f"rows[{number}] has {count} values of {name} for {sum(lengths)} tokens; each token has one, in "
                    "each choice"
                )
        array[mask] = [each for value in values for choice in _choices(value, choices) for each in choice]
        batch[name] = torch.from_numpy(array if choices else array[:, 0])
    batch["attention_mask"] = torch.from_numpy((mask if choices else mask[:, 0]).astype(np.int64))
    return batch


def number_of_tokens(row: InputRow) -> int:
    """Number of tokens of a row; of its longest choice where it has choices."""
    return max(map(len, _choices(row["input_ids"], number_of_choices(row))))


def number_of_choices(row: InputRow) -> int:
    """Number of choices of a row, 0 where it has no such axis."""
    ids = row["input_ids"]
    return len(ids) if len(ids) and _is_list(ids[0]) else 0


def _choices(value: Any, choices: int) -> Sequence[Any]:
    return value if choices else (value,)


def _each_token_has_one(value: Any, choices: int) -> bool:
    """Whether a value is shaped like `input_ids`, and no number or one number a choice."""
    return _is_list(value) and (not choices or _is_list(value[0]))


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray)
