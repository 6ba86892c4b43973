"""Perplexity over windows: each token once, whatever the batch."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers.generation.perplexity import Perplexity, perplexity, windows

from .tiny import POSITIONS, WORDS, make

IDS = [(7 * n * n + n) % WORDS for n in range(157)]


def by_hand(model: Any, ids: list[int], window: int, stride: int) -> tuple[float, int]:
    """A forward for each window, log-softmax in float64, a sum over tokens in Python."""
    loss, done = 0.0, 1
    for start in range(0, len(ids), stride):
        end = min(start + window, len(ids))
        with torch.no_grad():
            logits = model(torch.tensor([ids[start:end]])).logits[0].double().log_softmax(-1)
        for place in range(done, end):
            loss -= float(logits[place - start - 1, ids[place]])
        done = max(done, end)
    return loss, len(ids) - 1


@given(st.integers(2, 300), st.integers(2, 60), st.data())
def test_each_token_is_scored_once(length: int, window: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, window - 1))
    parts = list(windows(length, window, stride))
    assert [token for part in parts for token in range(part.scored, part.end)] == list(range(1, length))
    for part in parts:
        assert part.start < part.scored < part.end <= part.start + window
        assert part.start == 0 or part.scored - part.start >= window - stride


@pytest.mark.parametrize(("window", "stride"), [(None, None), (POSITIONS, 1), (10, 9), (2, 1), (POSITIONS, 39)])
@pytest.mark.parametrize("kind", ["gpt2", "openai-gpt"])
def test_against_a_loop(kind: str, window: int | None, stride: int | None) -> None:
    model = make(kind)
    loss, tokens = by_hand(model, IDS, window or POSITIONS, stride or POSITIONS // 2)
    for batch_size in (1, 3, 100):
        seen: list[int] = []
        found = perplexity(model, IDS, window=window, stride=stride, batch_size=batch_size, progress=seen.append)
        assert found.tokens == tokens == sum(seen)
        assert found.loss == pytest.approx(loss, rel=1e-6)  # sums of float32 losses
        assert found.value == pytest.approx(math.exp(loss / tokens), rel=1e-6)


def test_short_text_and_large_loss() -> None:
    model = make("gpt2")
    assert perplexity(model, [1, 2]).tokens == 1
    assert Perplexity(1e9, 2).value == math.inf


@pytest.mark.parametrize(
    ("ids", "options", "message"),
    [
        ([1], {}, "the text has 1 tokens"),
        ([], {}, "the text has 0 tokens"),
        (IDS, {"window": POSITIONS + 1}, "this model has 40 positions"),
        (IDS, {"window": 1}, "window: 1"),
        (IDS, {"window": 8, "stride": 8}, "stride: 8, must be below the window"),
        (IDS, {"stride": 0}, "stride: 0"),
        (IDS, {"batch_size": 0}, "batch_size: 0"),
    ],
)
def test_bad_input(ids: list[int], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        perplexity(make("gpt2"), ids, **options)


def test_model_in_training_is_refused() -> None:
    with pytest.raises(ValueError, match="training mode"):
        perplexity(make("gpt2").train(), IDS)


def test_loss_that_is_not_a_number() -> None:
    model = make("gpt2")
    with torch.no_grad():
        model.transformer.wte.weight[3] = float("nan")
    with pytest.raises(ValueError, match="the model's loss is not a number in the window of tokens 0 to "):
        perplexity(model, IDS)
