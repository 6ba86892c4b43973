"""Dropout on a CPU: the share, the mean, independence, and that gradients go through what was kept."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from pytorch_transformers.nn.dropout import Dropout, dropout

MANY = 200_000


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 0.001])
def test_share_and_mean(p: float) -> None:
    """Within five standard deviations of a binomial count; what is kept all has one value, which makes the mean 1."""
    torch.manual_seed(0)
    result = dropout(torch.ones(MANY), p)
    kept = int((result != 0).sum())
    exact = round(p * 65536) / 65536
    assert abs(kept - MANY * (1 - exact)) < 5 * math.sqrt(MANY * exact * (1 - exact))
    assert result.unique().tolist() == [0.0, pytest.approx(1 / (1 - exact), rel=1e-7)]


def test_values_are_dropped_independently() -> None:
    """Four of them share a draw of 64 bits: no place in it is dropped more often, and no pair together."""
    torch.manual_seed(1)
    gone = (dropout(torch.ones(4 * MANY), 0.25) == 0).double().view(-1, 4)
    assert (gone.mean(0) - 0.25).abs().max() < 5 * math.sqrt(0.25 * 0.75 / MANY)
    together = torch.corrcoef(gone.t()) - torch.eye(4, dtype=torch.float64)
    assert together.abs().max() < 5 / math.sqrt(MANY)
    one_after_the_other = torch.corrcoef(torch.stack([gone[:-1].flatten(), gone[1:].flatten()]))[0, 1]
    assert one_after_the_other.abs() < 5 / math.sqrt(4 * MANY)


@given(shape=st.lists(st.integers(0, 5), min_size=0, max_size=3), seed=st.integers(0, 99))
def test_gradient_is_that_of_the_factors(shape: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    x, slope = torch.randn(shape, requires_grad=True), torch.randn(shape)
    result = dropout(x, 0.3)
    assert result.shape == x.shape
    (gradient,) = torch.autograd.grad(result, x, slope)
    kept = (result != 0).float() / (1 - round(0.3 * 65536) / 65536)
    assert torch.allclose(result, x * kept)
    assert torch.allclose(gradient, slope * kept)


def test_second_derivative() -> None:
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)

    def seeded(x: Tensor) -> Tensor:
        torch.manual_seed(0)
        return dropout(x, 0.4) ** 3

    assert torch.autograd.gradgradcheck(seeded, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_types_and_layouts(dtype: torch.dtype) -> None:
    x = torch.ones(6, 8, dtype=dtype)
    for each in (x, x.t(), x[:, ::2]):
        result = dropout(each, 0.5)
        assert result.dtype == dtype
        assert result.shape == each.shape
        assert set(result.unique().tolist()) <= {0.0, 2.0}


def test_nothing_is_dropped() -> None:
    x = torch.randn(5)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0) is x
    assert Dropout(0.5).eval()(x) is x
    assert not dropout(x, 1.0).any()


def test_repeats_by_seed() -> None:
    """The state of torch's generator decides, which a checkpoint keeps; a rate below 1/131072 is torch's own."""
    x = torch.randn(1000)
    layer = copy.deepcopy(Dropout(0.2))
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(layer(x))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    torch.manual_seed(1)
    expected = F.dropout(x, 1e-6)
    torch.manual_seed(1)
    assert torch.equal(dropout(x, 1e-6), expected)


def test_in_place_and_transformed() -> None:
    x = torch.ones(100)
    assert Dropout(0.5, inplace=True)(x) is x
    assert set(x.tolist()) <= {0.0, 2.0}
    layer = nn.Sequential(nn.Linear(4, 4), Dropout(0.5))
    rows = torch.randn(3, 4)
    mapped = torch.func.vmap(layer, randomness="different")(rows)
    assert mapped.shape == (3, 4)
