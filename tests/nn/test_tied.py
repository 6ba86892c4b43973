"""A table that is looked up and projected onto: one gradient, right however the two are combined."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from pytorch_transformers.nn.lm_loss import next_token_loss, projected_loss
from pytorch_transformers.nn.tied import TiedEmbedding, TiedLinear

WORDS, WIDTH = 11, 4
IDS = torch.tensor([[1, 2, 2, 9], [0, 2, 10, 1]])  # words twice, in a row and across rows


class Model(nn.Module):
    """Looks words up, and projects onto them; `kind` says with whose parts."""

    def __init__(self, kind: str, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        torch.manual_seed(0)
        ours = kind == "ours"
        self.table: nn.Embedding = (TiedEmbedding if ours else nn.Embedding)(WORDS, WIDTH, dtype=dtype)
        self.head = TiedLinear(WIDTH, WORDS) if ours else nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.table.weight

    def states(self) -> Tensor:
        result: Tensor = self.table(IDS).tanh()
        return result

    def scores(self) -> Tensor:
        result: Tensor = self.head(self.states())
        return result


def by_scores(model: Model) -> Tensor:
    return next_token_loss(model.scores(), IDS)


def by_pieces(model: Model) -> Tensor:
    if isinstance(model.head, TiedLinear):
        return projected_loss(model.states(), model.head.weight, IDS)
    return by_scores(model)


def states_alone(model: Model) -> Tensor:
    return model.states().square().sum()


def looked_up_twice(model: Model) -> Tensor:
    return by_scores(model) + states_alone(model)


def projected_twice(model: Model) -> Tensor:
    return by_scores(model) + by_pieces(model) + model.scores().square().mean()


def table_itself(model: Model) -> Tensor:
    return by_pieces(model) + model.table.weight.square().sum()


LOSSES = [by_scores, by_pieces, states_alone, looked_up_twice, projected_twice, table_itself]


def same(ours: Tensor | None, theirs: Tensor | None) -> None:
    assert ours is not None
    assert theirs is not None
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)  # sums in another order


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_gradient_is_that_of_torch(loss: Callable[[Model], Tensor]) -> None:
    ours, theirs = Model("ours"), Model("torch")
    for _ in range(2):  # the second time it is added
        loss(ours).backward()
        loss(theirs).backward()
    same(ours.table.weight.grad, theirs.table.weight.grad)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_gradient_without_backward(loss: Callable[[Model], Tensor]) -> None:
    ours, theirs = Model("ours"), Model("torch")
    same(*(torch.autograd.grad(loss(model), model.table.weight)[0] for model in (ours, theirs)))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_backward_twice_through_one_graph(loss: Callable[[Model], Tensor]) -> None:
    ours = Model("ours")
    value = loss(ours)
    (first,) = torch.autograd.grad(value, ours.table.weight, retain_graph=True)
    (second,) = torch.autograd.grad(value, ours.table.weight)
    assert torch.equal(first, second)
    with pytest.raises(RuntimeError, match="second time"):
        value.backward()


@pytest.mark.parametrize("loss", [by_scores, by_pieces], ids=lambda loss: loss.__name__)
def test_backward_in_two_passes(loss: Callable[[Model], Tensor]) -> None:
    """The gradient of the states first, then on to the table: the second pass has no gradient to add to."""
    gradients = []
    for kind in ("ours", "torch"):
        model = Model(kind)
        states = model.states()
        apart = states.detach().requires_grad_()
        if loss is by_pieces and kind == "ours":
            projected_loss(apart, model.head.weight, IDS).backward()
        else:
            next_token_loss(model.head(apart), IDS).backward()
        states.backward(apart.grad)
        gradients.append(model.table.weight.grad)
    same(*gradients)


@pytest.mark.parametrize("loss", [by_scores, by_pieces], ids=lambda loss: loss.__name__)
def test_frozen_table(loss: Callable[[Model], Tensor]) -> None:
    model = Model("ours")
    model.table.weight.requires_grad_(False)
    assert not model.states().requires_grad
    assert not loss(model).requires_grad


def test_second_derivatives() -> None:
    model = Model("ours", torch.float64)
    loss = model.scores().square().sum()
    (gradient,) = torch.autograd.grad(loss, model.table.weight, create_graph=True)
    (ours,) = torch.autograd.grad(gradient.square().sum(), model.table.weight)
    plain = Model("torch", torch.float64)
    (gradient,) = torch.autograd.grad(plain.scores().square().sum(), plain.table.weight, create_graph=True)
    (theirs,) = torch.autograd.grad(gradient.square().sum(), plain.table.weight)
    same(ours, theirs)


@pytest.mark.parametrize("loss", [by_scores, by_pieces], ids=lambda loss: loss.__name__)
def test_hooks_see_the_whole_gradient(loss: Callable[[Model], Tensor]) -> None:
    ours, theirs = Model("ours"), Model("torch")
    seen: list[Tensor] = []
    for model in (ours, theirs):
        model.table.weight.register_hook(lambda gradient: seen.append(gradient.clone()))
        loss(model).backward()
    same(*seen)


@pytest.mark.parametrize("loss", [by_scores, by_pieces], ids=lambda loss: loss.__name__)
def test_half_precision(loss: Callable[[Model], Tensor]) -> None:
    gradients = []
    for kind in ("ours", "torch"):
        model = Model(kind)
        with torch.autocast("cpu", torch.bfloat16):
            value = loss(model)
        value.backward()
        gradients.append(model.table.weight.grad)
    torch.testing.assert_close(*gradients, rtol=2e-2, atol=2e-3)  # 8 bits


@pytest.mark.parametrize(
    "options", [{"padding_idx": 2}, {"max_norm": 0.5}, {"scale_grad_by_freq": True}, {"sparse": True}], ids=str
)
def test_options_of_embedding(options: dict[str, Any]) -> None:
    gradients = []
    for kind in (TiedEmbedding, nn.Embedding):
        torch.manual_seed(0)
        table = kind(WORDS, WIDTH, **options)
        table(IDS).square().sum().backward()
        assert table.weight.grad is not None
        gradients.append(table.weight.grad.to_dense())
    assert torch.equal(*gradients)


@pytest.mark.parametrize("loss", [by_scores, by_pieces], ids=lambda loss: loss.__name__)
def test_one_gradient_of_the_size_of_the_table(loss: Callable[[Model], Tensor]) -> None:
    model = Model("ours")
    value = loss(model)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as found:
        value.backward()
    size = model.table.weight.numel() * model.table.weight.element_size()
    made = [event for event in found.events() if event.name == "aten::embedding_dense_backward"]
    assert not made
    largest = [event for event in found.events() if event.self_cpu_memory_usage >= size and "add" in event.name]
    assert not largest


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_hooks_that_keep_gradients(loss: Callable[[Model], Tensor]) -> None:
    """A gradient that is kept is not therefore the one that torch adds to."""
    kept: list[Any] = []
    ours, theirs = Model("ours"), Model("torch")

    def keep_all(result: Tensor) -> Tensor:
        steps, seen = [result.grad_fn], set()
        while steps:
            step = steps.pop()
            if step is not None and step not in seen:
                seen.add(step)
                step.register_hook(lambda given, _: kept.append(given))
                steps.extend(following for following, _ in step.next_functions)
        return result

    keep_all(loss(ours)).backward()
    loss(theirs).backward()
    same(ours.table.weight.grad, theirs.table.weight.grad)


def test_table_that_is_computed_for_each_use() -> None:
    """It may have the place in memory that another had before."""
    for _ in range(20):
        gradients = []
        for kind in ("ours", "torch"):
            model = Model(kind)
            base = model.table.weight
            del model.table.weight, model.head.weight
            model.table.weight = base * 1.0
            states = model.states()
            del model.table.weight
            model.head.weight = nn.Parameter(base.detach() * 2.0)
            loss = model.head(states).square().sum()
            gradients.append(torch.autograd.grad(loss, [base, model.head.weight]))
        for ours, theirs in zip(*gradients, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_several_threads() -> None:
    """They train one table; each gets the gradient of its own batch."""
    model = Model("ours")
    expected, _ = torch.autograd.grad(by_scores(model), [model.table.weight, model.head.weight])

    def train(_: int) -> bool:
        gradients = [torch.autograd.grad(by_pieces(model), model.table.weight)[0] for _ in range(50)]
        return all(torch.allclose(gradient, expected, rtol=1e-5, atol=1e-6) for gradient in gradients)

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(train, range(4)))


def test_many_slopes_at_once() -> None:
    model, plain = Model("ours"), Model("torch")
    results = [
        torch.autograd.grad(each.scores().flatten()[:3], each.table.weight, torch.eye(3), is_grads_batched=True)[0]
        for each in (model, plain)
    ]
    same(*results)
