"""Pooling against a loop over sequences."""

from typing import Literal

import pytest
import torch

from pytorch_transformers.data.pooling import flat_tokens, pool_tokens
from pytorch_transformers.nn.layouts import Packed, Padded

RUNS = ((2, 1), (3, 4), (1, 7))
SIZES = [length for count, length in RUNS for _ in range(count)]
TOKENS = torch.randn(sum(SIZES), 5, generator=torch.Generator().manual_seed(0))
COUNTED = torch.rand(sum(SIZES), generator=torch.Generator().manual_seed(1)) < 0.5


def expected(pooling: str, counted: torch.Tensor | None) -> torch.Tensor:
    marks = torch.ones(sum(SIZES), dtype=torch.bool) if counted is None else counted
    rows = []
    for x, mark in zip(TOKENS.split(SIZES), marks.split(SIZES), strict=True):
        kept = x[mark]
        if pooling == "cls":
            rows.append(x[0])
        elif not len(kept):
            rows.append(torch.zeros(5))
        else:
            rows.append(kept.mean(0) if pooling == "mean" else kept.max(0).values)
    return torch.stack(rows)


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_each_sequence_alone(pooling: Literal["cls", "mean", "max"], marked: bool) -> None:
    counted = COUNTED if marked else None
    assert not marked or any(not part.any() for part in COUNTED.split(SIZES))  # one sequence has nothing that counts
    found = pool_tokens(TOKENS, RUNS, pooling, counted)
    torch.testing.assert_close(found, expected(pooling, counted), rtol=0, atol=1e-6)


@pytest.mark.parametrize("marked", [False, True])
def test_means_of_half_precision_keep_their_digits(marked: bool) -> None:
    tokens = TOKENS.bfloat16() + 100
    counted = torch.ones(len(tokens), dtype=torch.bool) if marked else None
    found = pool_tokens(tokens, RUNS, "mean", counted)
    exact = torch.stack([part.double().mean(0) for part in tokens.split(SIZES)])
    torch.testing.assert_close(found.double(), exact, rtol=1e-6, atol=0)


def test_flat_tokens_of_both_layouts() -> None:
    rectangle = torch.arange(12.0).view(2, 3, 2)
    flat, runs = flat_tokens(rectangle, Padded(None))
    assert runs == ((2, 3),)
    assert flat.tolist() == rectangle.flatten(0, 1).tolist()
    layout = Packed.from_mask(torch.tensor([[1, 0, 0], [1, 1, 1]]))
    packed = layout.pack(rectangle)
    assert flat_tokens(packed, layout) == (packed, ((1, 1), (1, 3)))
