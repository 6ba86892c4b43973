"""The tokens that a task adds: their vectors stand behind those of the vocabulary, in the one table of tokens.

Source: openai/finetune-transformer-lm, train.py, which draws three of them; `num_special_tokens` is the published name.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pytorch_transformers import OpenAIGPTConfig, OpenAIGPTDoubleHeadsModel, OpenAIGPTLMHeadModel, OpenAIGPTModel

from ..battery import build, gradients
from ..compare import assert_same
from ..gpt2.reference import next_token_loss
from ..gpt2.tiny import HIDDEN, VOCAB
from .tiny import CASE, MODELS

WITH_VOCABULARY = (OpenAIGPTLMHeadModel, OpenAIGPTDoubleHeadsModel)


def table(model: Any) -> Tensor:
    weight: Tensor = model.get_input_embeddings().weight
    return weight


def assert_tied(model: Any) -> None:
    """One parameter, whatever was done to it; and the head says its size."""
    if hasattr(model, "lm_head"):
        assert model.lm_head.weight is model.transformer.tokens_embed.weight
        assert model.lm_head.out_features == len(table(model)) == model.get_output_embeddings().out_features


@pytest.mark.parametrize("model_class", MODELS)
def test_their_number_changes(model_class: type[Any]) -> None:
    """Old rows stay, new ones are drawn by the rule of the family, and the limit for ids is the new one."""
    torch.manual_seed(1)
    model = build(CASE, model_class, noise=1.0)
    before = table(model).detach().clone()
    special: Tensor | None = None
    for count in (3, 3, 200, 5, 0, 2):
        model.set_num_special_tokens(count)
        assert (model.config.vocab_size, model.config.n_special) == (VOCAB, count)
        assert model.config.total_tokens_embeddings == VOCAB + count == len(table(model))
        assert torch.equal(table(model)[:VOCAB], before)
        assert table(model).requires_grad
        if special is not None:
            kept = min(count, len(special))
            assert torch.equal(table(model)[VOCAB : VOCAB + kept], special[:kept])
        special = table(model)[VOCAB:].detach().clone()
        if count == 200:
            assert abs(float(special[3:].std()) - 0.02) < 0.001
        assert_tied(model)
        if count:
            assert model(torch.tensor([[0, VOCAB + count - 1]]))[0].isfinite().all()
        with pytest.raises(ValueError, match=rf"input_ids: found {VOCAB + count}, allowed is 0 to {VOCAB + count - 1}"):
            model(torch.tensor([[0, VOCAB + count]]))


@pytest.mark.parametrize("model_class", MODELS)
def test_they_are_saved_and_loaded(model_class: type[Any], tmp_path: Path) -> None:
    model = build(CASE, model_class)
    model.set_num_special_tokens(3)
    model.save_pretrained(tmp_path)
    config = OpenAIGPTConfig.from_pretrained(tmp_path)
    assert (config.vocab_size, config.n_special) == (VOCAB, 3)
    for count, new in ((None, 3), (3, 3), (5, 5), (1, 1), (0, 0)):
        loaded, info = model_class.from_pretrained(tmp_path, num_special_tokens=count, output_loading_info=True)
        assert info["missing_keys"] == info["unexpected_keys"] == info["mismatched_keys"] == []
        assert loaded.config.n_special == new
        kept = VOCAB + min(3, new)
        assert torch.equal(table(loaded)[:kept], table(model)[:kept])
        assert table(loaded).isfinite().all()
        assert not loaded.training
        assert_tied(loaded)
    plain = model_class.from_pretrained(tmp_path, num_special_tokens=4)
    assert type(plain) is model_class


@pytest.mark.parametrize("count", [-1, 1.5, "3", True])
def test_a_number_that_is_none(count: Any, tmp_path: Path) -> None:
    """The model is as it was."""
    model = build(CASE, OpenAIGPTLMHeadModel, n_special=2)
    with pytest.raises(ValueError, match=rf"num_special_tokens: {count!r}, must be a whole number of at least 0"):
        model.set_num_special_tokens(count)
    assert (model.config.n_special, len(table(model))) == (2, VOCAB + 2)
    model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="num_special_tokens"):
        OpenAIGPTLMHeadModel.from_pretrained(tmp_path, num_special_tokens=count)


@pytest.mark.parametrize("model_class", MODELS)
def test_resizing_with_them(model_class: type[Any], tmp_path: Path) -> None:
    """`resize_token_embeddings` counts all rows; what is saved then can be loaded."""
    model = build(CASE, model_class, n_special=3)
    before = table(model).detach().clone()
    for size in (VOCAB + 10, VOCAB + 1, 2):
        model.resize_token_embeddings(size)
        assert len(table(model)) == model.config.total_tokens_embeddings == size
        assert torch.equal(table(model)[: min(size, VOCAB + 1)], before[: min(size, VOCAB + 1)])
        assert model.config.vocab_size >= 1
        assert_tied(model)
        model.save_pretrained(tmp_path)
        loaded = model_class.from_pretrained(tmp_path)
        assert torch.equal(table(loaded), table(model))


@pytest.mark.parametrize("model_class", WITH_VOCABULARY)
def test_the_head_stays_tied(model_class: type[Any], tmp_path: Path) -> None:
    """After everything that replaces a table or moves values."""
    model = build(CASE, model_class)
    changes: list[Callable[[], Any]] = [
        lambda: model.set_num_special_tokens(3),
        lambda: model.resize_token_embeddings(VOCAB + 7),
        lambda: model.set_num_special_tokens(0),
        lambda: model.prune_heads({0: [1]}),
        lambda: model.bfloat16(),
        lambda: model.float(),
        lambda: model.load_state_dict(model.state_dict()),
        lambda: model.tie_weights(),
        lambda: model.set_input_embeddings(torch.nn.Embedding(len(table(model)), HIDDEN)),
    ]
    for change in changes[:-1]:
        change()
        assert_tied(model)
    changes[-1]()
    model.tie_weights()
    assert_tied(model)
    for safe in (True, False):
        model.save_pretrained(tmp_path / str(safe), safe_serialization=safe)
        assert_tied(model_class.from_pretrained(tmp_path / str(safe)))


@pytest.mark.parametrize("output_logits", [True, False])
def test_special_tokens_that_are_not_predicted(output_logits: bool) -> None:
    """`predict_special_tokens=False` (0.6.2: OpenAIGPTLMHead): scores and softmax run over the vocabulary alone."""
    plain = build(CASE, OpenAIGPTLMHeadModel, n_special=4)
    model = build(CASE, OpenAIGPTLMHeadModel, n_special=4, predict_special_tokens=False)
    model.load_state_dict(plain.state_dict())
    ids = torch.randint(0, VOCAB + 4, (3, 7), generator=torch.Generator().manual_seed(0))
    labels = ids.masked_fill(ids >= VOCAB, -1)
    expected = plain(ids).logits[..., :VOCAB]
    if output_logits:
        output = model(ids, labels=labels)
        assert output.logits.shape == (3, 7, VOCAB)
        assert_same(output.logits, expected, "scores")
        loss = output.loss
    else:
        loss = model(ids, labels=labels, output_logits=False).loss
    assert_same(loss, next_token_loss(expected.detach().double().numpy(), labels.numpy()), "loss")
    rows = gradients(model, loss)["transformer.tokens_embed.weight"]
    used = torch.zeros(VOCAB + 4, dtype=torch.bool).index_fill(0, ids.flatten(), value=True)
    assert not rows[VOCAB:][~used[VOCAB:]].any(), "a special token that was neither read nor predicted learns nothing"


def test_special_tokens_that_are_not_generated() -> None:
    """The step of text generation leaves them out as well; choices are scored as ever."""
    model = build(CASE, OpenAIGPTDoubleHeadsModel, n_special=4, predict_special_tokens=False)
    ids = torch.randint(0, VOCAB + 4, (2, 5), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        output = model(ids[:, None])
        logits = model.next_token_logits(ids, model.new_cache(2, 5), None)
    assert output.lm_logits.shape == (2, 1, 5, VOCAB)
    assert output.mc_logits.shape == (2, 1)
    assert_same(logits, output.lm_logits[:, 0, -1], "the step")


def test_a_checkpoint_of_other_numbers_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A configuration with special tokens beside weights without: an error with both sizes, never a shifted table."""
    build(CASE, OpenAIGPTModel).save_pretrained(tmp_path)
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(ValueError, match=rf"tokens_embed\.weight.*{VOCAB}.*{VOCAB + 3}"),
    ):
        OpenAIGPTModel.from_pretrained(tmp_path, n_special=3)


def test_table_of_the_configuration() -> None:
    config = CASE.config(n_special=3)
    assert config.total_tokens_embeddings == VOCAB + 3
    for model_class in MODELS:
        assert len(table(model_class(config))) == VOCAB + 3
        assert_tied(model_class(config))
    types = torch.full((1, 2), VOCAB + 2)
    model = build(CASE, OpenAIGPTModel, n_special=3)
    assert model(torch.zeros_like(types), token_type_ids=types)[0].isfinite().all()


def test_rows_that_are_added_later_stand_behind_the_special_ones() -> None:
    """As after `tokenizer.add_tokens`: the vocabulary and the first special tokens keep their places."""
    model = OpenAIGPTLMHeadModel(OpenAIGPTConfig(vocab_size=20, n_positions=8, n_embd=8, n_layer=1, n_head=2))
    model.set_num_special_tokens(3)
    before = model.transformer.tokens_embed.weight.detach().clone()
    model.resize_token_embeddings(25)
    assert (model.config.vocab_size, model.config.n_special) == (20, 5)
    assert torch.equal(model.transformer.tokens_embed.weight[:23], before)
    model.set_num_special_tokens(0)
    assert (model.config.vocab_size, model.config.n_special) == (20, 0)
    assert torch.equal(model.transformer.tokens_embed.weight, before[:20])
