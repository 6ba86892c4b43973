"""From vectors of tokens to one vector for each text. The letters in shapes are defined in `nn/__init__.py`."""

from typing import Final, Literal, get_args

import torch
from torch import Tensor

from ..nn.layouts import Layout, Packed

Pooling = Literal["cls", "mean", "max", "none"]
POOLINGS: Final[tuple[str, ...]] = get_args(Pooling)


def flat_tokens(hidden: Tensor, layout: Layout) -> tuple[Tensor, tuple[tuple[int, int], ...]]:
    """Tokens one after the other [N, H], and the runs (sequences, their length) that they form.

    `hidden` must hold no padding: it is packed, or a rectangle of equally long sequences.
    """
    if isinstance(layout, Packed):
        return hidden, layout.runs
    return hidden.flatten(0, 1), ((hidden.shape[0], hidden.shape[1]),)


def pool_tokens(
    tokens: Tensor, runs: tuple[tuple[int, int], ...], pooling: Literal["cls", "mean", "max"], counted: Tensor | None
) -> Tensor:
    """One vector for each sequence.

    Args:
        tokens: [N, H], the sequences one after the other.
        runs: How many sequences of which length follow each other.
        pooling: The first token, the mean of the tokens, or their largest value in each place.
        counted: [N], whether each token takes part; all by default. A sequence without any gets zeros.

    Returns:
        [B, H]; means are in float32 whatever the type of the tokens, since a sum of bfloat16 numbers loses digits.
    """
    sizes = [count * length for count, length in runs]
    marks = (None,) * len(runs) if counted is None else counted.split(sizes)
    pooled = []
    for (count, length), run, mark in zip(runs, tokens.split(sizes), marks, strict=True):
        x = run.unflatten(0, (count, length))  # [B, T, H]
        if pooling == "cls":
            pooled.append(x[:, 0])
        elif mark is None:
            pooled.append(x.mean(1, dtype=torch.float32) if pooling == "mean" else x.amax(1))
        else:
            pooled.append(_pool_counted(x, mark.unflatten(0, (count, length, 1)), pooling))
    return pooled[0] if len(pooled) == 1 else torch.cat(pooled)


def _pool_counted(x: Tensor, counted: Tensor, pooling: Literal["mean", "max"]) -> Tensor:
    if pooling == "mean":
        return (x * counted).sum(1, dtype=torch.float32) / counted.sum(1).clamp(min=1)
    largest = x.masked_fill(~counted, float("-inf")).amax(1)
    return largest.where(counted.any(1), 0.0)
