"""Recorded outputs of the original program over hostile strings; see the README beside the goldens."""

import json
from typing import Any

import pytest

from pytorch_transformers import BasicTokenizer, BertTokenizer
from shared_data import shared


def _records(name: str) -> list[dict[str, Any]]:
    path = shared("goldens", "tokenizers", "bert", f"{name}.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("name", "lower"), [("uncased", True), ("cased", False)])
def test_basic_tokens(name: str, lower: bool) -> None:
    basic = BasicTokenizer(lower, never_split=[])
    for record in _records(name):
        assert basic.tokenize(record["text"]) == record["basic_tokens"], record["text"]


@pytest.mark.parametrize("engine", ["python", "tokenizers", "auto"])
@pytest.mark.parametrize(("name", "lower"), [("uncased", True), ("cased", False)])
def test_tokens_and_ids(name: str, lower: bool, engine: Any) -> None:
    tokenizer = BertTokenizer(
        shared("goldens", "tokenizers", "bert", "vocab.txt"),
        lower,
        max_input_chars_per_word=200,
        split_special_tokens=True,
        engine=engine,
    )
    records = _records(name)
    assert len(records) == 352
    for record in records:
        assert tokenizer.tokenize(record["text"]) == record["tokens"], record["text"]
        assert tokenizer.encode(record["text"], add_special_tokens=False) == record["ids"], record["text"]
    batch = tokenizer([record["text"] for record in records], add_special_tokens=False)
    assert batch["input_ids"] == [record["ids"] for record in records]
