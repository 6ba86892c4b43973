"""What a training needs of the machine: operations against formulas, and the share that a run reports."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pytorch_transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel
from pytorch_transformers.training.throughput import count_operations, matrix_product_rate

from .corpora import Corpora

B, T, H, A, INNER, LAYERS, WORDS = 3, 8, 16, 4, 40, 2, 50


def backward(loss: torch.Tensor) -> None:
    loss.backward()


def test_products() -> None:
    x, weight = torch.randn(7, 5, requires_grad=True), nn.Linear(5, 3)
    forward = 2 * 7 * 5 * 3
    assert count_operations(lambda: weight(x.detach())) == forward
    assert count_operations(lambda: backward(weight(x).sum())) == 3 * forward
    total = torch.zeros(7, 3)
    assert count_operations(lambda: total.addmm_(x.detach(), torch.randn(5, 3))) == forward


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    """Two products forward; with gradients five more, since the scores are computed again."""
    q, k, v = (torch.randn(B, A, T, H, requires_grad=True) for _ in range(3))
    product = 2 * B * A * T * T * H // (2 if causal else 1)
    attend = F.scaled_dot_product_attention
    assert count_operations(lambda: attend(q.detach(), k.detach(), v.detach(), is_causal=causal)) == 2 * product
    assert count_operations(lambda: backward(attend(q, k, v, is_causal=causal).sum())) == 7 * product


def of_layers(tokens: int, pairs: int, *, causal: bool) -> int:
    """Forward and backward of all layers, on that many tokens, of which so many pairs look at each other."""
    linear = 2 * tokens * (4 * H * H + 2 * H * INNER)
    product = 2 * pairs * H // (2 if causal else 1)
    return LAYERS * (3 * linear + 7 * product)


def test_masked_words_of_bert() -> None:
    """The vocabulary is projected on at masked words only, and padding is not computed."""
    sizes: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=H,
        num_hidden_layers=LAYERS,
        num_attention_heads=A,
        intermediate_size=INNER,
        **sizes,
    )
    model = BertForMaskedLM(config).train()
    lengths = torch.tensor([8, 5, 2])
    mask = (torch.arange(T) < lengths[:, None]).long()
    ids = torch.randint(WORDS, (B, T))
    labels = torch.full_like(ids, -100)
    labels[:, 1] = 4

    def step() -> None:
        backward(model(ids, mask, masked_lm_labels=labels, output_logits=False).loss)

    head = 3 * 2 * B * (H * H + H * WORDS)
    assert count_operations(step) == of_layers(int(lengths.sum()), int((lengths**2).sum()), causal=False) + head


def test_next_tokens_of_gpt2() -> None:
    """Documents in one batch: no padding, and no token before which there is nothing."""
    config = GPT2Config(
        vocab_size=WORDS,
        n_positions=T,
        n_embd=H,
        n_layer=LAYERS,
        n_head=A,
        n_inner=INNER,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    model = GPT2LMHeadModel(config).train()
    lengths = torch.tensor([8, 5, 2])
    mask = (torch.arange(T) < lengths[:, None]).long()
    ids = torch.randint(WORDS, (B, T))
    labels = ids.masked_fill(mask == 0, -100)

    def step() -> None:
        backward(model(ids, attention_mask=mask, labels=labels, use_cache=False, output_logits=False).loss)

    predicted = int(lengths.sum()) - B
    head = 3 * 2 * predicted * H * WORDS
    assert count_operations(step) == of_layers(int(lengths.sum()), int((lengths**2).sum()), causal=True) + head


def test_rate_of_products() -> None:
    """A figure that a processor can have: above a million and below 10^17 operations a second."""
    assert 1e6 < matrix_product_rate(torch.float32, seconds=0.01) < 1e17


@pytest.mark.parametrize("kind", ["bert", "gpt2", "transfo_xl"])
def test_run_says_what_it_used(kind: str, tmp_path: Path) -> None:
    training = Corpora(tmp_path).run(kind, tmp_path / "out", new=True, do_train=True, max_steps=3)["training"]
    assert training["operations_per_token"] > 100
    assert 0 < training["share_of_peak"] < 1
    used = training["operations_per_token"] * training["tokens_per_second"] / training["matrix_products_per_second"]
    assert training["share_of_peak"] == pytest.approx(used, rel=0.01, abs=1e-4)
