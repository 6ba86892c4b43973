"""A linear layer after an activation: the same gradients, and the activation's result is not kept for them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.checkpoint import checkpoint

from pytorch_transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel
from pytorch_transformers.nn.activations import ACTIVATIONS, gelu
from pytorch_transformers.nn.layers import Conv1D
from pytorch_transformers.nn.recompute import after_activation

ROWS, WIDTH, OUT = (2, 3), 5, 4
#: Those whose slope autograd computes from what went in.
RECOMPUTED = ("gelu", "gelu_new", "gelu_tanh", "silu", "swish")


@pytest.fixture
def states() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(*ROWS, WIDTH, requires_grad=True)


def layer(kind: str) -> nn.Module:
    torch.manual_seed(1)
    return nn.Linear(WIDTH, OUT) if kind == "linear" else Conv1D(OUT, WIDTH)


def gradients(
    linear: nn.Module, states: Tensor, project: Callable[[nn.Module, Tensor], Tensor], name: str
) -> list[Tensor]:
    result = project(linear, ACTIVATIONS[name](states * 1.5))
    return list(torch.autograd.grad(result.square().sum(), [states, *linear.parameters()]))


@pytest.mark.parametrize("kind", ["linear", "conv1d"])
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_gradients_are_the_same_to_the_last_bit(kind: str, name: str, states: Tensor) -> None:
    ours = gradients(layer(kind), states, after_activation, name)
    plain = gradients(layer(kind), states, lambda linear, x: linear(x), name)
    assert all(map(torch.equal, ours, plain))


@pytest.mark.parametrize("kind", ["linear", "conv1d"])
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_result_is_freed_where_it_can_be_computed_again(kind: str, name: str, states: Tensor) -> None:
    activated = ACTIVATIONS[name](states * 1.5)
    memory = StorageWeakRef(activated.untyped_storage())
    result = after_activation(layer(kind), activated)
    del activated
    assert memory.expired() == (name in RECOMPUTED)
    result.sum().backward()


def test_half_precision(states: Tensor) -> None:
    linear = layer("linear")
    with torch.autocast("cpu", torch.bfloat16):
        hidden = F.linear(states, torch.eye(WIDTH))
        activated = gelu(hidden)
        memory = StorageWeakRef(activated.untyped_storage())
        result = after_activation(linear, activated)
        plain = linear(gelu(hidden))
    del activated
    assert memory.expired()
    ours, theirs = (
        torch.autograd.grad(x.sum(), linear.get_parameter("weight"), retain_graph=True) for x in (result, plain)
    )
    assert torch.equal(ours[0], theirs[0])


def test_cast_copy_is_kept_as_it_is(states: Tensor) -> None:
    """Under autocast a float32 activation reaches the product as a copy, which is another tensor."""
    linear = layer("linear")
    with torch.autocast("cpu", torch.bfloat16):
        result, plain = after_activation(linear, gelu(states * 1.5)), linear(gelu(states * 1.5))
    for ours, theirs in zip(
        torch.autograd.grad(result.sum(), [states, linear.get_parameter("weight")]),
        torch.autograd.grad(plain.sum(), [states, linear.get_parameter("weight")]),
        strict=True,
    ):
        assert torch.equal(ours, theirs)


def test_second_derivatives() -> None:
    torch.manual_seed(0)
    states, weight = (torch.randn(3, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def function(states: Tensor, weight: Tensor) -> Tensor:
        linear = nn.Linear(3, 3, bias=False, dtype=torch.float64)
        del linear.weight
        linear.weight = weight
        return after_activation(linear, gelu(states))

    assert torch.autograd.gradcheck(function, (states, weight))
    assert torch.autograd.gradgradcheck(function, (states, weight))


def test_backward_twice(states: Tensor) -> None:
    result = after_activation(layer("linear"), gelu(states)).sum()
    first = torch.autograd.grad(result, states, retain_graph=True)
    assert torch.equal(first[0], torch.autograd.grad(result, states)[0])
    with pytest.raises(RuntimeError, match="second time"):
        result.backward()


def test_inside_gradient_checkpointing(states: Tensor) -> None:
    linear, plain = layer("linear"), layer("linear")
    result = checkpoint(lambda x: after_activation(linear, gelu(x)).tanh(), states, use_reentrant=False)
    expected = plain(gelu(states)).tanh()
    ours = torch.autograd.grad(result.sum(), [states, linear.get_parameter("weight")])
    theirs = torch.autograd.grad(expected.sum(), [states, plain.get_parameter("weight")])
    assert all(map(torch.equal, ours, theirs))


def test_with_other_hooks_on_kept_tensors(states: Tensor) -> None:
    linear = layer("linear")
    with torch.autograd.graph.save_on_cpu():
        result = after_activation(linear, gelu(states))
    ours = torch.autograd.grad(result.sum(), [states, linear.get_parameter("weight")])
    theirs = torch.autograd.grad(linear(gelu(states)).sum(), [states, linear.get_parameter("weight")])
    assert all(map(torch.equal, ours, theirs))


def test_activation_changed_in_place_is_not_computed_again(states: Tensor) -> None:
    """What is computed again would be the result as it was before."""
    linear, plain = layer("linear"), layer("linear")
    ours = after_activation(linear, gelu(states).mul_(2.0))
    theirs = plain(gelu(states).mul_(2.0))
    ours.sum().backward()
    theirs.sum().backward()
    assert torch.equal(linear.get_parameter("weight").grad, plain.get_parameter("weight").grad)  # type: ignore[arg-type]


CHANGES: dict[str, Callable[[Tensor], Any]] = {
    "without gradient": lambda x: x.detach()[:, :1].zero_(),
    "all of it": lambda x: x.detach().mul_(2.0),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["before", "by a hook", "by a module"])
def test_what_others_change_in_place_is_kept(when: str, change: str, states: Tensor) -> None:
    """What is computed again would be the result as it was before; torch's gradient is of what it became."""

    def gradient(project: Callable[[nn.Module, Tensor], Tensor]) -> Tensor:
        linear = layer("linear")
        weight = linear.get_parameter("weight")
        activated = gelu(states)
        if when == "before":
            CHANGES[change](activated)
        elif when == "by a hook":
            linear.register_forward_pre_hook(lambda _, given: (CHANGES[change](given[0]), None)[1])
        else:
            linear = nn.Sequential(Changed(CHANGES[change]), linear)
        (result,) = torch.autograd.grad(project(linear, activated).square().sum(), weight)
        return result

    assert torch.equal(gradient(after_activation), gradient(lambda linear, x: linear(x)))


class Changed(nn.Module):
    """Changes what it is given, as a dropout in place does."""

    def __init__(self, change: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.change = change

    def forward(self, x: Tensor) -> Tensor:
        self.change(x)
        return x


def test_another_order_in_memory() -> None:
    """A custom layer may keep a contiguous transpose, at the same place and of the same size."""

    class Transposed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.weight = nn.Parameter(torch.randn(3, 4))

        def forward(self, x: Tensor) -> Tensor:
            return self.weight @ x.t().contiguous()

    states = torch.randn(4, 4, requires_grad=True)
    ours, plain = Transposed(), Transposed()
    after_activation(ours, gelu(states.t())).square().sum().backward()
    plain(gelu(states.t())).square().sum().backward()
    assert ours.weight.grad is not None
    assert plain.weight.grad is not None
    assert torch.equal(ours.weight.grad, plain.weight.grad)


def test_checkpoint_around_the_activation_alone(states: Tensor) -> None:
    """It gives what it kept once only."""
    linear = layer("linear")
    result = after_activation(linear, checkpoint(gelu, states, use_reentrant=False))
    ours = torch.autograd.grad(result.sum(), [states, linear.get_parameter("weight")])
    theirs = torch.autograd.grad(linear(gelu(states)).sum(), [states, linear.get_parameter("weight")])
    assert all(map(torch.equal, ours, theirs))


def test_where_hooks_are_forbidden(states: Tensor) -> None:
    with torch.autograd.graph.disable_saved_tensors_hooks("none here"):
        after_activation(layer("linear"), gelu(states)).sum().backward()


def test_weight_changed_before_backward_is_an_error(states: Tensor) -> None:
    linear = layer("linear")
    result = after_activation(linear, gelu(states))
    with torch.no_grad():
        linear.get_parameter("weight").add_(1.0)
    with pytest.raises(RuntimeError, match="changed in place"):
        result.sum().backward()


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_models_do_not_keep_it(family: str) -> None:
    torch.manual_seed(0)
    model: nn.Module
    if family == "bert":
        sizes: dict[str, Any] = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}
        model = BertForMaskedLM(BertConfig(vocab_size=20, num_hidden_layers=2, **sizes))
        names = [f"bert.encoder.layer.{number}.output.dense" for number in range(2)]
    else:
        model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=8, n_layer=2, n_head=2, n_positions=16))
        names = [f"transformer.h.{number}.mlp.c_proj" for number in range(2)]
    memories: list[StorageWeakRef] = []
    for name in names:
        model.get_submodule(name).register_forward_pre_hook(
            lambda _, given: memories.append(StorageWeakRef(given[0].untyped_storage()))
        )
    result = model.train()(torch.randint(20, (2, 6)))
    assert len(memories) == 2
    assert all(memory.expired() for memory in memories)
    result.logits.sum().backward()
