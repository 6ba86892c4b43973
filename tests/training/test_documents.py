"""Rows that are documents: nothing in one is predicted from another."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers import GPT2LMHeadModel, OpenAIGPTLMHeadModel
from pytorch_transformers.data.batches import collate
from pytorch_transformers.training.documents import DocumentRows

from .corpora import Corpora


def stream_of(sizes: list[int]) -> Any:
    """A stream whose ids are their places."""
    documents = np.array([0, *np.cumsum(sizes)], np.int64)
    return SimpleNamespace(ids=np.arange(documents[-1]), documents=documents, folder=Path("stream"))


@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=12), length=st.integers(2, 9))
def test_each_token_is_predicted_once_from_its_document(sizes: list[int], length: int) -> None:
    stream = stream_of(sizes)
    if max(sizes) < 2:
        with pytest.raises(ValueError, match="stream: no document has two tokens"):
            DocumentRows(stream, length)
        return
    rows = DocumentRows(stream, length)
    document_of = np.repeat(np.arange(len(sizes)), sizes)
    predicted: list[int] = []
    for number in range(len(rows)):
        row = rows[number]
        assert row["labels"] == row["input_ids"]
        assert 2 <= len(row["input_ids"]) <= length
        assert len({document_of[place] for place in row["input_ids"]}) == 1
        predicted += row["labels"][1:]
    firsts = set(stream.documents[:-1].tolist())
    assert predicted == [place for place in range(sum(sizes)) if place not in firsts]
    with pytest.raises(IndexError):
        rows[len(rows)]


def test_a_row_of_one_token() -> None:
    with pytest.raises(ValueError, match="length is 1; a row needs 2 tokens"):
        DocumentRows(stream_of([5]), 1)


@pytest.mark.parametrize(("family", "kind"), [("gpt2", GPT2LMHeadModel), ("openai_gpt", OpenAIGPTLMHeadModel)])
def test_scores_do_not_depend_on_the_neighbours(family: str, kind: Any, tmp_path: Path) -> None:
    """A document alone, and in a batch with longer ones that are changed meanwhile."""
    model = kind.from_pretrained(Corpora(tmp_path).model(family)).eval()
    rows = DocumentRows(stream_of([7, 20, 3, 12]), 16)
    some = [rows[number] for number in range(len(rows))]
    assert [len(row["input_ids"]) for row in some] == [7, 16, 5, 3, 12]
    others = [{"input_ids": [(i * 5 + 1) % 50 for i in row["input_ids"]], "labels": row["labels"]} for row in some]
    with torch.inference_mode():
        for number, row in enumerate(some):
            alone = model(torch.tensor([row["input_ids"]])).logits[0]
            batch = collate([*others[:number], row, *others[number + 1 :]])
            logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[number]
            torch.testing.assert_close(logits[: len(alone)], alone, atol=1e-5, rtol=0)
