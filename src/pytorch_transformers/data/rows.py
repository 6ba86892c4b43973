"""From texts to rows of ids, and from rows to batches: all that happens before the model is asked."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..models.bert.tokenizer import BertTokenizer

Text = str | tuple[str, str]


@dataclass(frozen=True)
class Row:
    """One text as ids: tokens, segments (None: one text), which tokens count (None: all), and whether it was cut."""

    ids: list[int]
    types: list[int] | None
    counted: list[bool] | None
    truncated: bool


def windows_of(
    texts: Iterable[Text | None], most_texts: int, most_characters: int
) -> Iterator[tuple[list[Text], bool]]:
    """Texts in groups that are sorted together, and whether somebody waits for the group, which may be empty then.

    A group ends with the text that reaches one of the two limits, or at None, which says that the source has no more
    for now. So where it ends depends on its own texts alone, whatever came before.

    Raises:
        TypeError: A text is none.
    """
    window: list[Text] = []
    characters = number = 0
    for text in texts:
        if text is None:
            yield window, True
            window, characters = [], 0
            continue
        characters += _characters(text, number)
        number += 1
        window.append(text)
        if len(window) == most_texts or characters >= most_characters:
            yield window, False
            window, characters = [], 0
    if window:
        yield window, False


def _characters(text: Text, number: int) -> int:
    if isinstance(text, str):
        return len(text)
    if isinstance(text, tuple | list) and len(text) == 2 and all(isinstance(part, str) for part in text):
        return len(text[0]) + len(text[1])
    raise TypeError(f"texts[{number}]: expected a text or a pair of texts, found {text!r:.100}")


def rows_of(texts: Sequence[Text], tokenizer: "BertTokenizer", max_length: int, marks: bool) -> list[Row]:
    """Rows of at most `max_length` ids for texts and pairs; with `marks`, also which tokens are not special."""
    parts = [part for text in texts for part in ((text,) if isinstance(text, str) else text)]
    ids = iter(tokenizer._encode_ids(parts))
    return [
        _single(next(ids), tokenizer, max_length, marks)
        if isinstance(text, str)
        else _pair(next(ids), next(ids), tokenizer, max_length, marks)
        for text in texts
    ]


def _single(ids: list[int], tokenizer: "BertTokenizer", max_length: int, marks: bool) -> Row:
    room = max_length - tokenizer.num_special_tokens_to_add()
    truncated = len(ids) > room
    if truncated:
        ids = ids[-room:] if tokenizer.truncation_side == "left" else ids[:room]
    counted = [not special for special in tokenizer.get_special_tokens_mask(ids)] if marks else None
    return Row(tokenizer.build_inputs_with_special_tokens(ids), None, counted, truncated)


def _pair(first: list[int], second: list[int], tokenizer: "BertTokenizer", max_length: int, marks: bool) -> Row:
    whole = tokenizer.prepare_for_model(
        first, second, truncation="longest_first", max_length=max_length, return_special_tokens_mask=marks
    )
    counted = [not special for special in whole["special_tokens_mask"]] if marks else None
    room = max_length - tokenizer.num_special_tokens_to_add(pair=True)
    return Row(whole["input_ids"], whole["token_type_ids"], counted, len(first) + len(second) > room)


def batches_of(rows: Sequence[Row], most_tokens: int, most_rows: int | None) -> Iterator[list[int]]:
    """Places in `rows`, shortest row first, cut into batches by the budget of tokens; a longer row is a batch alone."""
    batch: list[int] = []
    tokens = 0
    for i in sorted(range(len(rows)), key=lambda i: len(rows[i].ids)):
        if batch and (tokens + len(rows[i].ids) > most_tokens or len(batch) == most_rows):
            yield batch
            batch, tokens = [], 0
        batch.append(i)
        tokens += len(rows[i].ids)
    if batch:
        yield batch
