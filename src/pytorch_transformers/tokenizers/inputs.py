"""Sorting out what a tokenizer was called with: one text or many, pairs, words."""

from collections.abc import Sequence
from typing import Any, NamedTuple

#: One text: a string, or its words.
Text = str | list[str]


class Inputs(NamedTuple):
    """The texts of a call: first texts, second texts or None, and whether they came as a batch."""

    first: list[Text]
    second: list[Text] | None
    batched: bool


def sort_inputs(text: Any, text_pair: Any, *, words: bool) -> Inputs:
    """Sorts the arguments of a call into lists of first and second texts.

    Args:
        text: a text, a sequence of texts, or a sequence of pairs of texts.
        text_pair: None, or as many second texts as there are first.
        words: whether each text is given as a sequence of words.

    Raises:
        TypeError: something that should be a text is none; the message says where.
        ValueError: there are not as many second texts as first.
    """
    if _is_text(text, words):
        first = [_text(text, "text", words)]
        return Inputs(first, None if text_pair is None else [_text(text_pair, "text_pair", words)], False)
    if not _is_sequence(text):
        _text(text, "text", words)  # raises
    if text_pair is None:
        return _batch(text, words)
    if isinstance(text_pair, str) or not _is_sequence(text_pair):
        raise TypeError(f"text_pair must be a list of texts as text is, not {type(text_pair).__name__}")
    if len(text) != len(text_pair):
        raise ValueError(f"text has {len(text)} texts and text_pair {len(text_pair)}; each text needs its pair")
    return Inputs(_texts(text, "text", words), _texts(text_pair, "text_pair", words), True)


def _is_sequence(value: Any) -> bool:
    # In this order: asking whether a string is a `Sequence` takes ten times as long, and a batch has many strings.
    return not isinstance(value, (str, bytes)) and isinstance(value, Sequence)


def _is_text(value: Any, words: bool) -> bool:
    if not words:
        return isinstance(value, str)
    # No words at all is one text without words; a batch of no texts cannot be told from it.
    return _is_sequence(value) and all(isinstance(word, str) for word in value)


def _batch(texts: Sequence[Any], words: bool) -> Inputs:
    if not any(_is_pair(item, words) for item in texts):
        return Inputs(_texts(texts, "text", words), None, True)
    for number, item in enumerate(texts):
        if not _is_pair(item, words):
            raise TypeError(f"text[{number}] must be a pair of texts as others are, not {_describe(item)}")
    first = [_text(item[0], f"text[{number}][0]", words) for number, item in enumerate(texts)]
    second = [_text(item[1], f"text[{number}][1]", words) for number, item in enumerate(texts)]
    return Inputs(first, second, True)


def _is_pair(item: Any, words: bool) -> bool:
    return _is_sequence(item) and len(item) == 2 and not (words and any(isinstance(part, str) for part in item))


def _texts(values: Sequence[Any], name: str, words: bool) -> list[Text]:
    if not words and all(type(value) is str for value in values):
        return list(values)
    return [_text(value, f"{name}[{number}]", words) for number, value in enumerate(values)]


def _text(value: Any, name: str, words: bool) -> Text:
    if not words:
        if isinstance(value, str):
            return value
        hint = "; pass is_split_into_words=True for words" if _is_sequence(value) else ""
        raise TypeError(f"{name} must be a string, not {_describe(value)}{hint}")
    if not _is_sequence(value):
        raise TypeError(f"{name} must be a list of words, not {_describe(value)}")
    for number, word in enumerate(value):
        if not isinstance(word, str):
            raise TypeError(f"{name}[{number}] must be a string, not {_describe(word)}")
    return list(value)


def _describe(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} ({value!r:.60})"
