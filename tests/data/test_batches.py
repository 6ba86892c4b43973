"""From rows to tensors: nothing is lost, and padding is told from tokens."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers.data.batches import collate, number_of_choices, number_of_tokens

tokens = st.lists(st.integers(0, 30_000), min_size=1, max_size=12)


@given(ids=st.lists(tokens, min_size=1, max_size=6), pad=st.integers(0, 9))
def test_rows_come_back(ids: list[list[int]], pad: int) -> None:
    rows: list[dict[str, Any]] = [
        {"input_ids": row, "token_type_ids": [i % 2 for i in range(len(row))], "labels": [i + 1 for i in row], "n": 2.5}
        for row in ids
    ]
    batch = collate(rows, pad)
    longest = max(map(len, ids))
    for name, fill in (("input_ids", pad), ("token_type_ids", 0), ("labels", -100)):
        assert batch[name].shape == (len(ids), longest)
        assert batch[name].dtype == torch.int64
        for found, row in zip(batch[name].tolist(), rows, strict=True):
            length = len(row["input_ids"])
            assert found == [*row[name], *[fill] * (longest - length)]
    assert batch["attention_mask"].sum(dim=1).tolist() == list(map(len, ids))
    assert all(row == sorted(row, reverse=True) for row in batch["attention_mask"].tolist())
    assert batch["n"].dtype == torch.float32
    assert batch["n"].tolist() == [2.5] * len(ids)


@given(choices=st.integers(1, 4), data=st.data())
def test_choices_come_back(choices: int, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.lists(tokens, min_size=choices, max_size=choices), min_size=1, max_size=4))
    rows: list[dict[str, Any]] = [
        {"input_ids": row, "lm_labels": row, "mc_token_ids": [len(c) - 1 for c in row], "mc_labels": choices - 1}
        for row in ids
    ]
    batch = collate(rows, 7)
    longest = max(len(choice) for row in ids for choice in row)
    for name, fill in (("input_ids", 7), ("lm_labels", -100)):
        assert batch[name].shape == (len(ids), choices, longest)
        assert batch[name].tolist() == [[[*c, *[fill] * (longest - len(c))] for c in row] for row in ids]
    assert batch["attention_mask"].sum(dim=2).tolist() == [[len(c) for c in row] for row in ids]
    assert batch["mc_token_ids"].tolist() == [[len(c) - 1 for c in row] for row in ids]
    assert batch["mc_labels"].tolist() == [choices - 1] * len(ids)
    for row in rows:
        assert number_of_choices(row) == choices
        assert number_of_tokens(row) == max(len(choice) for choice in row["input_ids"])


def test_numbers_of_a_row() -> None:
    row = {"input_ids": [1, 2, 3]}
    assert (number_of_tokens(row), number_of_choices(row)) == (3, 0)
    batch = collate([{"input_ids": [1], "start_positions": 0, "labels": 1.5}])
    assert batch["start_positions"].tolist() == [0]
    assert batch["labels"].dtype == torch.float32


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows: there is none"),
        ([{"input_ids": [1]}, {"input_ids": [1], "labels": 1}], r"rows\[1\] has input_ids, labels, and rows\[0\]"),
        ([{"input_ids": [[1], [2]]}, {"input_ids": [[1]]}], r"\[1, 2\] choices in one batch"),
        ([{"input_ids": [1, 2], "labels": [1]}], r"rows\[0\] has 1 values of labels for 2 tokens; each token has one"),
        ([{"input_ids": [1, 2], "labels": [1]}, {"input_ids": [1], "labels": [1, 2]}], r"rows\[0\] has 1 values"),
        (
            [{"input_ids": [1], "labels": [1]}, {"input_ids": [1], "labels": [1, 2]}],
            r"rows\[1\] has 2 values of labels",
        ),
        ([{"input_ids": [[1], [2, 3]], "lm_labels": [[1, 2], [3]]}], r"rows\[0\] has 3 values of lm_labels"),
    ],
)
def test_what_does_not_fit(rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        collate(rows)
