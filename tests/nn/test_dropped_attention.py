"""Attention with dropout, a piece at a time: what the plain steps compute from the same draws."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from pytorch_transformers.nn import dropped_attention
from pytorch_transformers.nn.attention import attend
from pytorch_transformers.nn.dropout import draw, kept, levels_dropped, scale_of
from pytorch_transformers.nn.masks import additive_key_mask, causal_mask

BATCH, HEADS, QUERIES, KEYS, WIDTH = 3, 4, 5, 7, 2


def qkv(dtype: torch.dtype = torch.float32, queries: int = QUERIES) -> list[Tensor]:
    """As models have them: heads lie side by side."""
    torch.manual_seed(0)
    lengths = (queries, KEYS, KEYS)
    return [
        torch.randn(BATCH, length, HEADS, WIDTH, dtype=dtype).transpose(1, 2).requires_grad_() for length in lengths
    ]


def by_steps(inputs: Sequence[Tensor], mask: Tensor | None, causal: bool, p: float) -> Tensor:
    query, key, value = inputs
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    scores = scores if mask is None else scores + mask
    scores = scores + causal_mask(query.shape[2], key.shape[2], scores) if causal else scores
    probs = torch.softmax(scores, -1)
    dropped = levels_dropped(probs, p)
    assert dropped is not None
    return probs * kept(draw(probs.shape), dropped, probs.dtype) * scale_of(dropped) @ value


def masks() -> dict[str, Tensor | None]:
    padding = torch.ones(BATCH, KEYS)
    padding[1, 4:] = 0
    return {
        "none": None,
        "padding": additive_key_mask(padding, torch.float32),
        "of queries": torch.randn(BATCH, 1, QUERIES, KEYS),
        "of heads": torch.randn(1, HEADS, 1, KEYS),
        "of all": torch.randn(QUERIES, KEYS),
    }


@pytest.mark.parametrize("keys_kept", [0, KEYS], ids=["again", "kept"])
@pytest.mark.parametrize("piece", [1, 40, 80, 1 << 18], ids=["a head", "a head again", "two heads", "all"])
@pytest.mark.parametrize("mask", masks())
def test_results_and_gradients(mask: str, piece: int, keys_kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropped_attention, "_KEYS_KEPT", keys_kept)
    monkeypatch.setattr(dropped_attention, "_PIECE", piece)
    inputs, slope = qkv(), torch.randn(BATCH, HEADS, QUERIES, WIDTH)
    torch.manual_seed(1)
    ours, probs = attend(*inputs, mask=masks()[mask], dropout=0.3)
    torch.manual_seed(1)
    theirs = by_steps(inputs, masks()[mask], False, 0.3)
    assert probs is None
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=2e-6)
    gradients = [torch.autograd.grad(result, inputs, slope) for result in (ours, theirs)]
    for mine, other in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=2e-6)


def test_causal() -> None:
    inputs = qkv(queries=KEYS)
    torch.manual_seed(1)
    ours, _ = attend(*inputs, causal=True, dropout=0.3)
    torch.manual_seed(1)
    theirs = by_steps(inputs, None, True, 0.3)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=2e-6)


def test_pieces_cover_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, _ = qkv()
    for piece in (1, 36, 71, 150, 300, 10_000):
        monkeypatch.setattr(dropped_attention, "_PIECE", piece)
        seen = torch.zeros(BATCH, HEADS)
        for part in dropped_attention._pieces(query, key):
            seen[part] += 1
        assert (seen == 1).all()


def test_derivatives() -> None:
    inputs = [x[:2, :2] for x in qkv(torch.float64)]

    def seeded(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        torch.manual_seed(0)
        return attend(query, key, value, dropout=0.4)[0]

    leaves = [x.detach().requires_grad_() for x in inputs]
    assert torch.autograd.gradcheck(seeded, leaves)
    assert torch.autograd.gradgradcheck(seeded, leaves)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision(dtype: torch.dtype, autocast: bool) -> None:
    """Computed in float32, and given back in the type that came."""
    half = [x.detach().to(dtype).requires_grad_() for x in qkv()]
    whole = [x.detach().float().requires_grad_() for x in half]
    slope = torch.randn(BATCH, HEADS, QUERIES, WIDTH)
    results: list[Any] = []
    for inputs in (half, whole):
        torch.manual_seed(1)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            result, _ = attend(*inputs, dropout=0.3)
        assert result.dtype == inputs[0].dtype
        results.append((result, *torch.autograd.grad(result, inputs, slope.to(result.dtype))))
    for ours, exact in zip(*results, strict=True):
        torch.testing.assert_close(ours.float(), exact, rtol=2e-2, atol=2e-2)  # 8 bits


def test_mask_that_learns() -> None:
    mask = torch.randn(BATCH, 1, QUERIES, KEYS, requires_grad=True)
    attend(*qkv(), mask=mask, dropout=0.3)[0].square().sum().backward()
    assert mask.grad is not None
    assert mask.grad.any()


@pytest.mark.parametrize(("keys", "of_probs"), [(128, 4), (129, 0)])
def test_what_is_kept(keys: int, of_probs: int) -> None:
    """Of tensors as large as the scores: 2 bytes a probability, and of short sequences the probabilities."""
    large = torch.randn(1, 2, keys, 4, requires_grad=True)
    found: dict[int, int] = {}

    def note(x: Tensor) -> Tensor:
        found[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        attend(large, large, large, dropout=0.5)
    assert abs(sum(found.values()) - large.nbytes - (2 + of_probs) * 2 * keys * keys) < 8  # draws are of 8 bytes


def test_many_slopes_at_once() -> None:
    inputs = qkv()
    torch.manual_seed(1)
    result = attend(*inputs, dropout=0.3)[0].flatten()[:3]
    batched = torch.autograd.grad(result, inputs, torch.eye(3), is_grads_batched=True, retain_graph=True)
    for row in range(3):
        alone = torch.autograd.grad(result[row], inputs, retain_graph=True)
        for several, one in zip(batched, alone, strict=True):
            torch.testing.assert_close(several[row], one)
