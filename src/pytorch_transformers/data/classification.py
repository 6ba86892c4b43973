"""Texts and pairs with a label: reading your own file of them, and turning them into rows for a model."""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ..tokenizers.assemble import id_rows
from .tables import Table, TableKind, open_table

if TYPE_CHECKING:
    from ..tokenizers.base import PreTrainedTokenizer
    from .batches import InputRow

#: What columns are called where nobody says it, in lower case.
FIRST_TEXT_COLUMNS: Final = ("text", "sentence", "text_a", "sentence1")
SECOND_TEXT_COLUMNS: Final = ("text_b", "sentence2")
LABEL_COLUMNS: Final = ("label",)


@dataclass(frozen=True, slots=True)
class TextExample:
    """A text, or a pair of texts, with its label.

    Attributes:
        guid: Its number among the rows of its file, from 0, or what the file has in its column of such numbers.
        text_a: The text, or the first of the pair.
        text_b: The second of the pair; None where there is one text.
        label: The label or the score as the file has it; None where there is none.
        place: FILE:LINE, for messages.
    """

    guid: str
    text_a: str
    text_b: str | None = None
    label: str | None = None
    place: str = ""

    def error(self, problem: str) -> ValueError:
        """The error to raise for this example, with its place."""
        return ValueError(f"{self.place or f'example {self.guid}'}: {problem}")


@dataclass(frozen=True)
class EncodedTexts:
    """Examples as a model takes them.

    Attributes:
        rows: A row for each example, with `input_ids`, `token_type_ids` where the model takes them, and `labels` where
            the example has one: the number of the label, or the score.
        truncated: How many examples were too long and were cut.
    """

    rows: "list[InputRow]"
    truncated: int


def read_texts(
    path: str | os.PathLike[str],
    *,
    text_a: str | None = None,
    text_b: str | None = None,
    label: str | None = None,
    kind: TableKind | None = None,
    labelled: bool = True,
) -> list[TextExample]:
    """Read your own file: TSV, CSV or JSON lines, see `open_table`, with the names of the columns.

    Without names the columns are found by what they are called, whatever the case: the text by "text", "sentence",
    "text_a" or "sentence1", the second text by "text_b" or "sentence2", the label by "label".

    Args:
        path: The file.
        text_a: Column of the text. Where it is given, there is a second text only if `text_b` is given too.
        text_b: Column of the second text.
        label: Column of the label or score.
        kind: How to read the file; by default as its ending says.
        labelled: Whether every row must have a label; otherwise no label is read, and the column need not be there.

    Raises:
        OSError: The file cannot be read.
        ValueError: A column is not there, or could be one of several; a row is malformed or has no label; there is no
            row. The message has the file and the line.
    """
    table = open_table(path, kind=kind)
    second = text_b or (_guess(table, "text_b", SECOND_TEXT_COLUMNS) if text_a is None else None)
    first = text_a or _guess(table, "text_a", FIRST_TEXT_COLUMNS)
    if first is None:
        raise table.error(1, f"no column of the text; name it (text_a), or call it one of {_names(FIRST_TEXT_COLUMNS)}")
    target = None
    if labelled:
        target = label or _guess(table, "label", LABEL_COLUMNS)
        if target is None:
            raise table.error(1, f"no column of the label; name it (label), or call it {_names(LABEL_COLUMNS)}")
    return examples_of(table, text_a=first, text_b=second, label=target)


def _guess(table: Table, option: str, known: Sequence[str]) -> str | None:
    found = [name for name in table.columns if name.lower() in known]
    if len(found) > 1:
        raise table.error(1, f"{option} could be any of the columns {_names(found)}; say which one")
    return found[0] if found else None


def examples_of(
    table: Table,
    *,
    text_a: str,
    text_b: str | None = None,
    label: str | None = None,
    guid: str | None = None,
    strip: bool = False,
    skipped: list[int] | None = None,
) -> list[TextExample]:
    """The rows of a table as examples. White space around labels is dropped.

    Args:
        table: The table.
        text_a: Column of the text.
        text_b: Column of the second text; None where there is one text.
        label: Column of the label; None where there is none.
        guid: Column of the numbers of the rows; None counts them.
        strip: Whether to drop white space around texts too.
        skipped: As for `Table.rows`.

    Raises:
        OSError: The file cannot be read.
        ValueError: A column is not there, a row is malformed, a label is empty, or there is no row.
    """
    needed = [name for name in (guid, text_a, text_b, label) if name is not None]
    table.require(needed, "a file of texts")
    examples = []
    for number, row in enumerate(table.rows(skipped)):
        first = table.value(row, text_a)
        second = None if text_b is None else table.value(row, text_b)
        if strip:
            first, second = first.strip(), None if second is None else second.strip()
        target = None if label is None else table.value(row, label).strip()
        if target == "":
            raise table.error(row.line, f"the label is empty; expected one under {label!r}")
        name = str(number) if guid is None else table.value(row, guid)
        examples.append(TextExample(name, first, second, target, f"{table.path}:{row.line}"))
    if not examples:
        raise table.error(1, "the file has no rows")
    return examples


def labels_of(examples: Iterable[TextExample]) -> tuple[str, ...]:
    """The different labels of examples in order: by value if all are whole numbers, otherwise as texts.

    Args:
        examples: Those to train with; their labels are all that the model will know.

    Raises:
        ValueError: There are fewer than two labels, so that nothing can be learned.
    """
    found = {example.label for example in examples if example.label is not None}
    if len(found) < 2:
        said = f"one label only, {min(found)!r}" if found else "no labels"
        raise ValueError(f"{said} in the examples; a classifier needs at least two different ones")
    try:
        return tuple(sorted(found, key=lambda label: (int(label), label)))
    except ValueError:
        return tuple(sorted(found))


def targets_of(examples: Iterable[TextExample], labels: Sequence[str] | None) -> list[int] | list[float]:
    """What a model should answer.

    Args:
        examples: Examples that all have a label.
        labels: The labels in the order of the model's outputs; None for scores (regression).

    Returns:
        The number of each label in `labels`, or the scores.

    Raises:
        ValueError: A label is missing or none of `labels`, or a score is no finite number. The message has its place.
    """
    if labels is None:
        return [_score(example) for example in examples]
    numbers = {label: number for number, label in enumerate(labels)}
    targets = []
    for example in examples:
        number = None if example.label is None else numbers.get(example.label)
        if number is None:
            said = "no label" if example.label is None else f"unknown label {example.label!r}"
            raise example.error(f"{said}; the labels are {_names(labels)}")
        targets.append(number)
    return targets


def _score(example: TextExample) -> float:
    try:
        score = float(example.label or "")
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise example.error(f"the score is {example.label!r}; expected a number")
    return score


def encode_texts(
    examples: Sequence[TextExample],
    tokenizer: "PreTrainedTokenizer",
    max_seq_length: int,
    *,
    labels: Sequence[str] | None,
) -> EncodedTexts:
    """Turn examples into rows, all texts in one go.

    What is too long is cut at the tokenizer's `truncation_side`. Of a pair, the longer text loses one token at a time,
    the second if both are equally long, as in google-research/bert, run_classifier.py.

    Args:
        examples: The examples; either all have a label or none has. Texts and pairs may be mixed.
        tokenizer: The tokenizer, of any family.
        max_seq_length: Most tokens of a row, special ones included. How many the model takes is not looked at.
        labels: The labels in the order of the model's outputs; None for scores (regression).

    Raises:
        ValueError: `max_seq_length` leaves no room for text, a text has no tokens at all, or as for `targets_of`.
    """
    fields: list[dict[str, Any]] = [{}] * len(examples)
    truncated = 0
    for pair in (False, True):
        places = [place for place, example in enumerate(examples) if (example.text_b is not None) == pair]
        if places:
            truncated += _encode_into(fields, examples, places, tokenizer, max_seq_length, pair=pair)
    if any(example.label is not None for example in examples):
        for row, target in zip(fields, targets_of(examples, labels), strict=True):
            row["labels"] = target
    return EncodedTexts(list(fields), truncated)


def _encode_into(
    fields: list[dict[str, Any]],
    examples: Sequence[TextExample],
    places: Sequence[int],
    tokenizer: "PreTrainedTokenizer",
    max_seq_length: int,
    *,
    pair: bool,
) -> int:
    """Encode the examples at some places, all texts or all pairs, and count those that are cut."""
    special = tokenizer.num_special_tokens_to_add(pair=pair)
    if max_seq_length <= special:
        raise ValueError(
            f"max_seq_length={max_seq_length} leaves no room for text beside the {special} special tokens; "
            f"use {special + 1} or more"
        )
    firsts = tokenizer._encode_ids([examples[place].text_a for place in places])
    seconds = tokenizer._encode_ids([examples[place].text_b or "" for place in places]) if pair else None
    lengths = [len(ids) for ids in firsts]
    if seconds is not None:
        lengths = [length + len(ids) for length, ids in zip(lengths, seconds, strict=True)]
    call = tokenizer._make_call(padding=False, truncation=True, max_length=max_seq_length)
    columns = id_rows(firsts, seconds, tokenizer._recipe(call))
    names = [name for name in columns if name in tokenizer.model_input_names]
    for place, *values in zip(places, *(columns[name] for name in names), strict=True):
        fields[place] = dict(zip(names, values, strict=True))
        if not fields[place]["input_ids"]:
            raise examples[place].error("the text has no tokens; expected at least one, or a tokenizer that adds some")
    return sum(length > max_seq_length - special for length in lengths)


def predictions_of(logits: Iterable[npt.NDArray[np.float32]], labels: Sequence[str] | None) -> list[int] | list[float]:
    """What a model answered, in the form of `targets_of`.

    Args:
        logits: An array of shape [len(labels)] for each example, of shape [1] for scores.
        labels: The labels in the order of the model's outputs; None for scores (regression).

    Raises:
        ValueError: An array has another shape, or holds nan, of which no answer can be made.
    """
    outputs = 1 if labels is None else len(labels)
    rows = list(logits)
    for number, row in enumerate(rows):
        if row.shape != (outputs,):
            raise ValueError(f"logits[{number}] has the shape {row.shape}; expected ({outputs},)")
        if np.isnan(row).any():
            raise ValueError(f"logits[{number}] has nan: the model has diverged; a lower learning rate may help")
    return [float(row[0]) for row in rows] if labels is None else [int(row.argmax()) for row in rows]


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
