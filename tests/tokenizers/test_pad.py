"""`tokenizer.pad`, the usual collator: encodings made one at a time, with what a data set has beside them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from pytorch_transformers import BertTokenizer

Build = Callable[..., BertTokenizer]
SHORT, LONG = [2, 18, 3], [2, 18, 19, 3]  # `a`, `a b`


def rows(**fields: tuple[Any, Any]) -> list[dict[str, Any]]:
    """Two encodings with further fields."""
    return [
        {"input_ids": ids, **{name: both[place] for name, both in fields.items()}}
        for place, ids in enumerate((SHORT, LONG))
    ]


@pytest.mark.parametrize("wrap", [int, np.int64, torch.tensor, np.array], ids=lambda wrap: wrap.__name__)
def test_one_number_for_each_text(tokenizer: BertTokenizer, wrap: Callable[[int], Any]) -> None:
    encodings = rows(labels=(wrap(1), wrap(0)))
    assert tokenizer.pad(encodings)["labels"] == [1, 0]
    labels = tokenizer.pad(encodings, return_tensors="pt")["labels"]
    assert (labels.tolist(), labels.dtype) == ([1, 0], torch.int64)
    array = tokenizer.pad(encodings, return_tensors="np")["labels"]
    assert (array.tolist(), array.dtype, array.shape) == ([1, 0], np.int64, (2,))


def test_floats_stay_floats(tokenizer: BertTokenizer) -> None:
    for values, shape in ((([1.7], [0.5]), (2, 1)), ((1.7, 0.5), (2,)), ((torch.tensor(1.7), torch.tensor(0.5)), (2,))):
        padded = tokenizer.pad(rows(labels=values), return_tensors="pt")
        assert (padded["labels"].dtype, padded["labels"].shape) == (torch.float32, shape)
        assert padded["labels"].flatten().tolist() == pytest.approx([1.7, 0.5])
        assert padded["input_ids"].dtype == padded["attention_mask"].dtype == torch.int64
    assert tokenizer.pad(rows(weight=(1.7, 0.5)), return_tensors="np")["weight"].tolist() == [1.7, 0.5]
    assert tokenizer.pad(rows(seen=(True, False)), return_tensors="pt")["seen"].dtype == torch.bool


def test_other_fields_stay_as_they_are(tokenizer: BertTokenizer) -> None:
    several = tokenizer.pad(rows(labels=([0, 1], [1, 1])), return_tensors="pt")["labels"]
    assert several.tolist() == [[0, 1], [1, 1]]
    uneven = rows(words=(["a"], ["a", "b"]), tokens=("x", "y"), labels=([1], [1, 2]))
    padded = tokenizer.pad(uneven)
    assert (padded["words"], padded["tokens"], padded["labels"]) == ([["a"], ["a", "b"]], ["x", "y"], [[1], [1, 2]])
    with pytest.raises(ValueError, match=r"rows of extra have 1 to 2 values .*take the field out first"):
        tokenizer.pad(rows(extra=([1], [1, 2])), return_tensors="pt")
    for values in (("x", "y"), (None, 1), ([[1]], [[1, 2]]), (1, [1])):
        with pytest.raises(ValueError, match="extra is no number, or row of as many numbers"):
            tokenizer.pad(rows(extra=values), return_tensors="pt")


def test_labels_of_tokens_are_filled(build: Build) -> None:
    encodings = rows(labels=([-100, 5, -100], np.array([-100, 5, 6, -100])))
    assert build().pad(encodings)["labels"] == [[-100, 5, -100, -100], [-100, 5, 6, -100]]
    left = build(padding_side="left").pad(encodings, return_tensors="pt")["labels"]
    assert (left.tolist()[0], left.dtype) == ([-100, -100, 5, -100], torch.int64)
    with pytest.raises(ValueError, match="rows of labels have 3 to 4 values"):  # floats have no value to ignore
        build().pad(rows(labels=([0.5] * 3, [0.5] * 4)), return_tensors="pt")


def test_one_encoding(tokenizer: BertTokenizer) -> None:
    batch = {"input_ids": [SHORT, LONG], "labels": torch.tensor([1, 0])}
    assert tokenizer.pad(batch)["labels"] == [1, 0]
    single = {"input_ids": SHORT, "labels": 1}
    assert tokenizer.pad(single, padding="max_length", max_length=4) == {
        "input_ids": [*SHORT, 0],
        "labels": 1,
        "attention_mask": [1, 1, 1, 0],
    }
    assert tokenizer.pad(single, return_tensors="pt")["labels"].tolist() == [1]


def test_everything_of_a_call_can_be_padded(tokenizer: BertTokenizer) -> None:
    options: Any = {"return_offsets_mapping": True, "return_special_tokens_mask": True, "return_length": True}
    texts = ["a", "a b"]
    encodings = [tokenizer(text, **options) for text in texts]
    assert tokenizer.pad(encodings) == tokenizer(texts, padding=True, **options)
    expected = tokenizer(texts, padding=True, return_tensors="pt", **options)
    padded = tokenizer.pad(encodings, return_tensors="pt")
    assert all(torch.equal(padded[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    ("encodings", "message"),
    [
        ([{"input_ids": [1.7]}], r"input_ids\[0\] must be a list of int, not \[1\.7\]"),
        ([{"input_ids": [SHORT]}], r"input_ids\[0\] must be a list of int, not \[\[2"),
        ([{"input_ids": 3}], "input_ids must be a list of ids for each text"),
        ({"input_ids": 3}, "input_ids must be a list of ids for each text"),
        ([{"attention_mask": [1], "input_ids": SHORT}], r"attention_mask\[0\] must have one value for each of the 3"),
        (
            {"input_ids": [SHORT, LONG], "labels": [1]},
            r"labels must have one value for each of the 2 texts; it is \[1\]",
        ),
        ([{"input_ids": SHORT}, {"input_ids": LONG, "labels": 1}], "encoding 1 has the fields"),
    ],
)
def test_what_does_not_fit_is_named(tokenizer: BertTokenizer, encodings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tokenizer.pad(encodings)


def test_ids_alone_are_no_encoding(tokenizer: BertTokenizer) -> None:
    with pytest.raises(TypeError, match="encoding 0 must be a mapping from field to value, not list"):
        tokenizer.pad([SHORT, LONG])  # type: ignore[list-item]
