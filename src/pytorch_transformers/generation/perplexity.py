"""Perplexity of a text that is longer than the context: windows slide over it, and each token is scored once."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, NamedTuple

import torch

from ..nn.values import whole_number


@dataclass(frozen=True)
class Perplexity:
    """How well a model predicts a text.

    Attributes:
        loss: Sum of the negative log-likelihoods of the scored tokens, in nats.
        tokens: Number of them.
    """

    loss: float
    tokens: int

    @property
    def value(self) -> float:
        """What the exponential of the mean loss of a token is; infinite where that is too large for a number."""
        try:
            return math.exp(self.loss / self.tokens)
        except OverflowError:
            return math.inf


class Window(NamedTuple):
    """Part of a text: tokens `start` to before `end`, of which those from `scored` on are scored."""

    start: int
    scored: int
    end: int


def windows(length: int, window: int, stride: int) -> Iterator[Window]:
    """Windows over a text such that each of its tokens but the first, which nothing predicts, is scored in one.

    Args:
        length: Tokens of the text.
        window: Tokens of a window; the last one may have fewer.
        stride: Tokens between the starts of two; below `window`.
    """
    done = 1
    for start in range(0, length, stride):
        end = min(start + window, length)
        if end > done:
            yield Window(start, done, end)
        done = max(done, end)


def perplexity(
    model: Any,
    ids: Sequence[int],
    *,
    window: int | None = None,
    stride: int | None = None,
    batch_size: int = 1,
    progress: Callable[[int], object] = lambda tokens: None,
) -> Perplexity:
    """Score each token of a text after the first once, from the tokens before it in its window.

    Args:
        model: A language model whose forward takes labels: `GPT2LMHeadModel`, `OpenAIGPTLMHeadModel`.
        ids: The text.
        window: Tokens of a window; as many as the model reads by default. A smaller one is faster and says less.
        stride: Tokens between two windows, each of which thus sees at least window - stride tokens before those that
            it scores. Half a window by default.
        batch_size: Windows at a time; it does not change the result.
        progress: Called with the number of tokens that were scored, each time some were.

    Raises:
        ValueError: The text has no second token, a number is out of range, or the model's loss is not a number.
    """
    limit = model.context_length()
    if limit is None:
        raise ValueError(
            "this model reads texts of any length with a memory, not windows: use `pytorch_transformers evaluate`, or "
            "pytorch_transformers.evaluate"
        )
    window = whole_number("window", limit if window is None else window, 2)
    if window > limit:
        raise ValueError(f"window: {window}, but this model has {limit} positions")
    stride = whole_number("stride", window // 2 if stride is None else stride, 1)
    if stride >= window:
        raise ValueError(
            f"stride: {stride}, must be below the window, {window}: else a token would have nothing before it"
        )
    if len(ids) < 2:
        raise ValueError(f"the text has {len(ids)} tokens; there must be one to predict, and one before it")
    if model.training:
        raise ValueError("the model is in training mode, where dropout changes the loss; call model.eval() first")
    size = whole_number("batch_size", batch_size, 1)
    loss, tokens = 0.0, 0
    for batch in _batches(windows(len(ids), window, stride), size):
        scored = sum(each.end - each.scored for each in batch)
        loss += _mean_loss(model, ids, batch) * scored
        if math.isnan(loss):
            raise ValueError(
                f"the model's loss is not a number in the window of tokens {batch[0].start} to {batch[-1].end - 1}: "
                "its weights are not, or its dtype is too small for them"
            )
        tokens += scored
        progress(scored)
    return Perplexity(loss, tokens)


def _batches(parts: Iterator[Window], size: int) -> Iterator[list[Window]]:
    """Windows of equal length together: the last one is alone if it is shorter, so there is no padding."""
    for _, equal in groupby(parts, lambda part: part.end - part.start):
        while batch := list(islice(equal, size)):
            yield batch


@torch.inference_mode()
def _mean_loss(model: Any, ids: Sequence[int], batch: list[Window]) -> float:
    inputs = torch.tensor([list(ids[part.start : part.end]) for part in batch])
    labels = inputs.clone()
    for row, part in enumerate(batch):
        labels[row, : part.scored - part.start] = -1
    inputs, labels = inputs.to(model.device), labels.to(model.device)
    return float(model(inputs, labels=labels, output_logits=False, return_dict=True).loss)
