"""Running a model over rows: every row once, in order, whatever the batches are."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pytorch_transformers import (
    BertForMultipleChoice,
    BertForQuestionAnswering,
    BertForTokenClassification,
    OpenAIGPTConfig,
    OpenAIGPTDoubleHeadsModel,
)
from pytorch_transformers.data.batches import collate
from pytorch_transformers.training.evaluation import (
    _batches,
    choice_logits,
    logits_of_rows,
    logits_of_spans,
    logits_of_tokens,
    predict,
)
from training import small


def without_labels(rows: list[small.Row]) -> list[small.Row]:
    return [{name: value for name, value in row.items() if name != "labels"} for row in rows]


@pytest.mark.parametrize("tokens", [1, 20, 100_000])
def test_in_order_and_whatever_the_batches(tokens: int) -> None:
    rows, model = small.some_rows(15), small.tiny_model()
    alone = [small.predictions(model, [row])[0] for row in rows]
    found = small.predictions(model, rows, tokens_per_batch=tokens)
    assert all(logits.dtype == np.float32 and logits.shape == (2,) for logits in found)
    np.testing.assert_allclose(np.stack(found), np.stack(alone), atol=1e-6)


@given(lengths=st.lists(st.integers(1, 40), max_size=60), tokens=st.integers(1, 100))
def test_batches(lengths: list[int], tokens: int) -> None:
    batches = _batches([{"input_ids": [0] * length} for length in lengths], tokens)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert all(batch for batch in batches)
    assert all(len(batch) == 1 or sum(lengths[i] for i in batch) <= tokens for batch in batches)
    flat = [lengths[i] for batch in batches for i in batch]
    assert flat == sorted(flat, reverse=True)  # what does not fit the memory fails at once


def test_choices_count_in_a_batch() -> None:
    rows = [{"input_ids": [[1, 2], [3, 4]]}] * 4
    assert [len(batch) for batch in _batches(rows, 8)] == [2, 2]


def test_labels_make_no_difference() -> None:
    """And the model is not given them: it computes no loss."""

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = small.tiny_model()

        def forward(self, **batch: Any) -> Any:
            assert set(batch) == {"input_ids", "token_type_ids", "attention_mask"}
            assert torch.is_inference_mode_enabled()
            assert not self.training
            return self.inner(**batch)

    rows, model = small.some_rows(5), Watched()
    model.train()
    with_labels = small.predictions(model, rows)
    modes = [model.training]
    without = small.predictions(model.eval(), without_labels(rows))
    assert [*modes, model.training] == [True, False]  # as they were
    np.testing.assert_array_equal(np.stack(with_labels), np.stack(without))


def test_nothing_to_predict() -> None:
    assert small.predictions(small.tiny_model(), []) == []


def test_tokens_and_spans_without_padding() -> None:
    rows = without_labels(small.some_rows(6))
    tags = predict(small.tiny_model(BertForTokenClassification, num_labels=5), rows, logits_of_tokens, collate)
    assert [logits.shape for logits in tags] == [(len(row["input_ids"]), 5) for row in rows]
    spans = predict(small.tiny_model(BertForQuestionAnswering), rows, logits_of_spans, collate)
    for (start, end), row in zip(spans, rows, strict=True):
        assert start.shape == end.shape == (len(row["input_ids"]),)
        assert not np.array_equal(start, end)
    alone = predict(small.tiny_model(BertForQuestionAnswering), rows[2:3], logits_of_spans, collate)
    np.testing.assert_allclose(alone[0], spans[2], atol=1e-6)


def test_choices() -> None:
    rows = [{"input_ids": [[5, 6, 7], [8, 9]]}, {"input_ids": [[1], [2, 3, 4, 5]]}, {"input_ids": [[5, 6, 7], [8, 9]]}]
    found = predict(small.tiny_model(BertForMultipleChoice), rows, logits_of_rows, collate)
    assert [logits.shape for logits in found] == [(2,)] * 3
    np.testing.assert_allclose(found[0], found[2], atol=1e-6)
    config = OpenAIGPTConfig(
        vocab_size_or_config_json_file=40, n_positions=16, n_ctx=16, n_embd=16, n_layer=1, n_head=2
    )
    torch.manual_seed(0)
    gpt = OpenAIGPTDoubleHeadsModel(config)
    stories = [{**row, "mc_token_ids": [len(choice) - 1 for choice in row["input_ids"]]} for row in rows]
    scores = predict(gpt, stories, choice_logits, collate)
    assert [logits.shape for logits in scores] == [(2,)] * 3
    np.testing.assert_allclose(scores[0], scores[2], atol=1e-6)


def test_half_precision() -> None:
    rows, model = small.some_rows(6), small.tiny_model()
    exact, half = (np.stack(small.predictions(model, rows, precision=each)) for each in ("float32", "bfloat16"))
    assert half.dtype == np.float32
    assert 0.0 < np.abs(exact - half).max() < 0.05


def test_an_error_leaves_the_mode() -> None:
    model = small.tiny_model().train()
    with pytest.raises(ValueError, match="found 10000"):
        small.predictions(model, [{"input_ids": [10_000]}])
    assert model.training
