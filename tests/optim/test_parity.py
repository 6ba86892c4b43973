"""Trajectories of 200 steps against the published packages and torch, and each path against the plain one."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from published import published
from pytorch_transformers import AdamW
from pytorch_transformers.optim import step as step_module
from pytorch_transformers.optim.adam import BertAdam, OpenAIAdam
from pytorch_transformers.optim.step import Row, Update, fused_step, list_step, pieces_step, plain_step

from .runs import advance, flat, give_gradients, trained, weights

#: Of the fused kernel over 200 steps: each rounds the weights, of size up to 4, to 2.4e-7, and the decay by itself.
FUSED = 2e-5
CLASSIC: dict[str, tuple[type[BertAdam | OpenAIAdam], str, dict[str, Any]]] = {
    "bert, linear": (BertAdam, "optimization", {"warmup": 0.1, "t_total": 250}),
    "bert, cosine": (BertAdam, "optimization", {"warmup": 0.2, "t_total": 201, "schedule": "warmup_cosine"}),
    "bert, constant": (BertAdam, "optimization", {"warmup": 0.1, "t_total": 250, "schedule": "warmup_constant"}),
    "bert, no schedule": (BertAdam, "optimization", {"max_grad_norm": -1, "weight_decay": 0.0}),
    "openai": (OpenAIAdam, "optimization_openai", {"warmup": 0.1, "t_total": 250, "weight_decay": 0.01}),
    "openai, clipped": (OpenAIAdam, "optimization_openai", {"warmup": 0.1, "t_total": 201, "max_grad_norm": 1.0}),
    "openai, vectors": (OpenAIAdam, "optimization_openai", {"weight_decay": 0.1, "vector_l2": True}),
}


@pytest.mark.filterwarnings("ignore")  # of calls that torch calls deprecated
@pytest.mark.parametrize("case", CLASSIC)
def test_equal_to_0_6_2_to_the_last_bit(case: str) -> None:
    ours, module, options = CLASSIC[case]
    theirs = getattr(published("pytorch_pretrained_bert", module), ours.__name__)
    theirs_made, expected = trained(lambda parameters: theirs(parameters, lr=0.01, **options))
    ours_made, found = trained(lambda parameters: ours(parameters, lr=0.01, **options))
    assert torch.equal(found, expected)
    assert ours_made.get_lr() == theirs_made.get_lr()
    assert len(ours_made.get_lr()) == 4


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("correct_bias", [True, False])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_equal_to_1_2_0_to_the_last_bit(correct_bias: bool, weight_decay: float) -> None:
    theirs = published("pytorch_transformers", "optimization").AdamW
    options: dict[str, Any] = {"lr": 0.01, "correct_bias": correct_bias, "weight_decay": weight_decay}
    _, expected = trained(lambda parameters: theirs(parameters, **options))
    _, found = trained(lambda parameters: AdamW(parameters, **options))
    assert torch.equal(found, expected)


@pytest.mark.parametrize("fused", [False, True])
def test_equal_to_torch_where_the_rules_coincide(fused: bool) -> None:
    """They do without decay and epsilon, which both have elsewhere."""
    options: dict[str, Any] = {"lr": 0.01, "eps": 0.0, "weight_decay": 0.0}
    _, expected = trained(lambda parameters: torch.optim.AdamW(parameters, **options))
    _, found = trained(lambda parameters: AdamW(parameters, **options, fused=fused))
    torch.testing.assert_close(found, expected, rtol=0, atol=FUSED)


MAKERS: dict[str, Callable[..., Any]] = {
    "AdamW": lambda parameters, **more: AdamW(parameters, lr=0.01, weight_decay=0.01, **more),
    "AdamW, no correction": lambda parameters, **more: AdamW(
        parameters, lr=0.01, weight_decay=0.01, correct_bias=False, **more
    ),
    "BertAdam": lambda parameters, **more: BertAdam(parameters, lr=0.01, warmup=0.1, t_total=250, **more),
    "OpenAIAdam": lambda parameters, **more: OpenAIAdam(
        parameters, lr=0.01, warmup=0.1, t_total=250, weight_decay=0.01, max_grad_norm=1.0, **more
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_fused_within_rounding(name: str) -> None:
    _, expected = trained(MAKERS[name])
    _, found = trained(lambda parameters: MAKERS[name](parameters, fused=True))
    assert not torch.equal(found, weights_flat())
    torch.testing.assert_close(found, expected, rtol=0, atol=FUSED)


def weights_flat() -> Tensor:
    return flat(weights())


UPDATE = Update(0.01, 0.02, 0.1, 0.9, 0.999, 1e-6, decay_after=True, max_grad_norm=1.0)
UPDATES = [UPDATE, Update(0.01, 0.01, 0.1, 0.9, 0.999, 1e-6, decay_after=False)]


def rows(shapes: tuple[tuple[int, ...], ...]) -> list[Row]:
    draw = torch.Generator().manual_seed(0)
    return [Row(*(torch.rand(shape, generator=draw) for _ in range(4))) for shape in shapes]


@pytest.mark.parametrize("update", UPDATES)
def test_lists_and_pieces_equal_the_plain_step_to_the_last_bit(update: Update, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_module, "_PIECE", 64)
    shapes = ((65, 7), (1000,), (), (3,))
    plain, pieces, lists = rows(shapes), rows(shapes), rows(shapes)
    for row in plain:
        plain_step(row, update)
    for row in pieces:
        pieces_step(row, update)
    list_step(lists, update)
    for expected, piece, listed in zip(plain, pieces, lists, strict=True):
        for name in Row._fields:
            assert torch.equal(getattr(piece, name), getattr(expected, name)), name
            assert torch.equal(getattr(listed, name), getattr(expected, name)), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("update", UPDATES)
def test_lists_equal_the_plain_step_in_half_precision(update: Update, dtype: torch.dtype) -> None:
    plain, lists = ([Row(*(tensor.to(dtype) for tensor in row)) for row in rows(((9, 4), (5,)))] for _ in range(2))
    for row in plain:
        plain_step(row, update)
    list_step(lists, update)
    for expected, listed in zip(plain, lists, strict=True):
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(listed, expected, strict=True))


@pytest.mark.parametrize("update", UPDATES)
def test_one_fused_step_in_double_precision(update: Update) -> None:
    plain, fused = ([Row(*(tensor.double() for tensor in row)) for row in rows(((9, 4), (5,)))] for _ in range(2))
    for row in plain:
        plain_step(row, update)
    fused_step(fused, update)
    for expected, found in zip(plain, fused, strict=True):
        torch.testing.assert_close(found.weight, expected.weight, rtol=0, atol=1e-14)


def test_a_large_parameter_in_pieces() -> None:
    """More elements than a piece has, an uneven number of them, through the optimizer."""
    whole, turned = (nn.Parameter(torch.linspace(-1, 1, 300_007)) for _ in range(2))
    turned.data = torch.stack([turned.detach()] * 2, 1)[:, 0]  # same values, but every second place of memory
    for parameter in (whole, turned):
        advance(BertAdam([parameter], lr=0.01), [parameter], range(3))
    assert whole.is_contiguous()
    assert not turned.is_contiguous()
    torch.testing.assert_close(whole.detach(), turned.detach(), rtol=0, atol=3e-7)


@pytest.mark.parametrize("fused", [False, True])
def test_memory_order_does_not_matter(fused: bool) -> None:
    straight = nn.Parameter(torch.arange(12.0).view(3, 4))
    turned = nn.Parameter(torch.arange(12.0).view(3, 4).t().contiguous().t())
    for parameter in (straight, turned):
        optimizer = AdamW([parameter], lr=0.1, weight_decay=0.1, fused=fused)
        for step in range(5):
            give_gradients([parameter], step)
            assert parameter.grad is not None
            if step == 3:
                parameter.grad = torch.ones(()).expand(3, 4)
            optimizer.step()
    torch.testing.assert_close(straight.detach(), turned.detach(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("fused", [False, True])
def test_half_precision_parameters(name: str, dtype: torch.dtype, fused: bool) -> None:
    """Weights and averages keep their type; five steps are those of float32 within its coarse rounding."""
    _, expected = trained(MAKERS[name], 5)
    made, found = trained(lambda parameters: MAKERS[name](parameters, fused=fused), 5, dtype)
    assert found.dtype == dtype
    for state in made.state.values():
        assert state[made.first_name].dtype == state[made.second_name].dtype == dtype
    torch.testing.assert_close(found.float(), expected, rtol=0, atol=5 * 4 * torch.finfo(dtype).eps)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("fused", [False, True])
def test_a_cuda_device_gives_the_same(name: str, fused: bool) -> None:
    _, expected = trained(MAKERS[name])
    parameters = [nn.Parameter(parameter.detach().cuda()) for parameter in weights()]
    advance(MAKERS[name](parameters, fused=fused), parameters, range(200))
    torch.testing.assert_close(flat(parameters).cpu(), expected, rtol=0, atol=FUSED)


@pytest.mark.parametrize("fused", [False, True])
def test_long_gradients_in_half_precision_are_clipped(fused: bool) -> None:
    """Their length is above 65,504, the largest number of the type."""
    parameter = nn.Parameter(torch.zeros(16, dtype=torch.float16))
    parameter.grad = torch.full((16,), 30_000.0, dtype=torch.float16)
    BertAdam([parameter], lr=1.0, fused=fused).step()
    assert parameter.grad.tolist() == pytest.approx([0.25] * 16, abs=1e-3)
    assert torch.isfinite(parameter).all()
    assert (parameter < 0).all()
