"""SWAG: which of four endings goes on from a sentence (Zellers et al. 2018); also other data in its columns."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..tokenizers.truncation import kept, lengths_kept
from .choices import choice_in
from .tables import open_table

if TYPE_CHECKING:
    from ..tokenizers.base import PreTrainedTokenizer
    from .batches import InputRow

NUMBER_OF_ENDINGS: Final = 4
_ENDINGS: Final = tuple(f"ending{number}" for number in range(NUMBER_OF_ENDINGS))


@dataclass(frozen=True)
class SwagExample:
    """One question.

    Attributes:
        guid: The field `video-id`, empty where the file has none; several questions may have the same.
        context: The sentence before, `sent1`.
        start: How the sentence begins that the endings complete, `sent2`; may be empty.
        endings: The four of them.
        label: Number of the right one, from 0; None where the file does not say.
    """

    guid: str
    context: str
    start: str
    endings: tuple[str, ...]
    label: int | None


def read_swag(path: str | os.PathLike[str]) -> list[SwagExample]:
    """Read `train.csv`, `val.csv` or, without the column `label`, `test.csv`.

    Args:
        path: The file: CSV in UTF-8 with the columns `sent1`, `sent2`, `ending0` to `ending3`; others are passed over.

    Raises:
        OSError: The file cannot be read.
        ValueError: A row is not as it should be; the message begins with FILE:LINE. Or there is none.
    """
    table = open_table(path, kind="csv")
    table.require(("sent1", "sent2", *_ENDINGS), "a file of SWAG")
    examples = [
        SwagExample(
            guid=row.values.get("video-id", ""),
            context=row.values["sent1"],
            start=row.values["sent2"],
            endings=tuple(row.values[ending] for ending in _ENDINGS),
            label=choice_in(table, row, "label", first=0, count=NUMBER_OF_ENDINGS),
        )
        for row in table.rows()
    ]
    if not examples:
        raise ValueError(f"{table.path}: no row below the header; expected one for each question")
    return examples


def encode_swag(
    examples: Sequence[SwagExample], tokenizer: "PreTrainedTokenizer", max_seq_length: int
) -> "list[InputRow]":
    """Rows of four choices: the context is the first text of each, the beginning and one ending the second.

    Args:
        examples: The questions.
        tokenizer: Its special tokens stand around the two texts.
        max_seq_length: Most tokens of a choice, special ones included. What is too much is cut from the longer text,
            one token at a time.

    Returns:
        For each question `input_ids`, `token_type_ids` if models of the family take them, and `labels` if it is known.

    Raises:
        ValueError: `max_seq_length` has no room for a token of each text.
    """
    special = tokenizer.num_special_tokens_to_add(pair=True)
    if max_seq_length < special + 2:
        raise ValueError(
            f"max_seq_length={max_seq_length} has no room for two texts: {special} special tokens and at least one of "
            f"each; pass {special + 2} or more"
        )
    texts = [text for example in examples for text in (example.context, example.start, *example.endings)]
    ids = iter(tokenizer._encode_ids(texts))
    rows: list[InputRow] = []
    for example in examples:
        context, start, *endings = (next(ids) for _ in range(2 + len(example.endings)))
        pairs = [_cut(context, start + ending, max_seq_length - special, tokenizer) for ending in endings]
        row: dict[str, Any] = {"input_ids": [tokenizer.build_inputs_with_special_tokens(*pair) for pair in pairs]}
        if "token_type_ids" in tokenizer.model_input_names:
            row["token_type_ids"] = [tokenizer.create_token_type_ids_from_sequences(*pair) for pair in pairs]
        rows.append(row if example.label is None else {**row, "labels": example.label})
    return rows


def _cut(
    first: list[int], second: list[int], room: int, tokenizer: "PreTrainedTokenizer"
) -> tuple[list[int], list[int]]:
    lengths = lengths_kept(len(first), len(second), room, "longest_first")
    side = tokenizer.truncation_side
    return first[kept(lengths[0], len(first), side)], second[kept(lengths[1], len(second), side)]
