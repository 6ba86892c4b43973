"""Gradients: against finite differences in float64, and of the same loss computed in other ways.

Those of the original program are in `test_goldens.py`.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from pytorch_transformers import TransfoXLLMHeadModel, TransfoXLModel
from pytorch_transformers.models.transfo_xl.adaptive_softmax import ProjectedAdaptiveLogSoftmax

from ..battery import build, gradients, scalar
from ..compare import assert_same
from .tiny import CASE, HEADS, KINDS, LAYERS, VIEWS, segment_labels, words

#: Small enough to move every element of every parameter there and back.
SMALL: dict[str, Any] = {
    "vocab_size": 11,
    "cutoffs": [3, 6],
    "d_model": 4,
    "d_embed": 6,
    "n_head": 2,
    "d_head": 3,
    "d_inner": 5,
    "n_layer": 2,
    "mem_len": 3,
}
IDS = torch.tensor([[0, 4, 10, 2], [7, 1, 5, 3]])
LABELS = torch.tensor([[4, 9, -1, 2], [1, 10, 3, 8]])


def small(model_class: type[Any], **changes: Any) -> Any:
    """Of the sizes above; noise keeps the relu away from its corner."""
    return build(CASE, model_class, noise=0.5, **{**SMALL, **changes}).double()


def memories(model: Any, rows: int = 3) -> list[Tensor]:
    """Random ones."""
    generator = torch.Generator().manual_seed(3)
    shape = (rows, len(IDS), model.config.d_model)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(model.config.n_layer)]


def check_parameters(model: Any, compute: Callable[[Callable[..., Any]], Tensor]) -> None:
    """Finite differences in each element of each parameter of the model."""
    own = dict(model.named_parameters())

    def function(*values: Tensor) -> Tensor:
        given = dict(zip(own, values, strict=True))
        return compute(lambda *arguments, **named: functional_call(model, given, arguments, named))

    assert torch.autograd.gradcheck(function, tuple(own.values()), eps=1e-6, atol=1e-6, rtol=1e-4)


SMALL_KINDS: dict[str, dict[str, Any]] = {
    "projected tails": {},
    "one table": {"div_val": 1},
    "one table, not projected": {"div_val": 1, "d_embed": 4, "untie_r": False},
    "no clusters": {"cutoffs": [], "div_val": 1},
    "normalised before": {"pre_lnorm": True, "tie_projs": [True, False, True]},
}


@pytest.mark.parametrize("kind", SMALL_KINDS)
def test_losses_against_finite_differences(kind: str) -> None:
    """Each token's loss in each element of each parameter; a table that is shared moves in both its places."""
    model = small(TransfoXLLMHeadModel, **SMALL_KINDS[kind])
    mems = memories(model)
    check_parameters(model, lambda run: run(IDS, mems, labels=LABELS).loss)


@pytest.mark.parametrize("view", [{"same_length": True}, {"clamp_len": 2}, {"mem_len": 0}], ids=str)
@pytest.mark.parametrize("explicit", [False, True])
def test_states_against_finite_differences(explicit: bool, view: dict[str, Any]) -> None:
    model = small(TransfoXLModel, cutoffs=[], div_val=1, vocab_size=7, n_layer=1, **view)
    mems = memories(model) if model.config.mem_len else None
    check_parameters(model, lambda run: run(IDS % 7, mems, output_attentions=explicit).last_hidden_state)


def test_inputs_against_finite_differences() -> None:
    """Vectors, memories and the head mask."""
    model = small(TransfoXLLMHeadModel)
    generator = torch.Generator().manual_seed(4)
    vectors = torch.randn(2, 4, 4, generator=generator, dtype=torch.float64).requires_grad_()
    mask = torch.rand(2, 2, generator=generator, dtype=torch.float64).requires_grad_()
    mems = [x.requires_grad_() for x in memories(model)]

    def loss(vectors: Tensor, mask: Tensor, *mems: Tensor) -> Tensor:
        return model(inputs_embeds=vectors, mems=mems, head_mask=mask, labels=LABELS).loss

    assert torch.autograd.gradcheck(loss, (vectors, mask, *mems), eps=1e-6, atol=1e-6, rtol=1e-4)


def test_log_probabilities_against_finite_differences() -> None:
    model = small(TransfoXLLMHeadModel)
    hidden = torch.randn(3, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(model.crit.log_prob, hidden, eps=1e-6, atol=1e-6)
    assert torch.autograd.gradcheck(
        lambda states: model.crit(states, torch.tensor([0, 4, 10])), hidden, eps=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("kind", KINDS)
def test_loss_teaches_as_the_gathered_log_probabilities(kind: str) -> None:
    """Two ways to one loss, in float32: the same gradient of every parameter."""
    model = build(CASE, TransfoXLLMHeadModel, **KINDS[kind]).train()
    ids = words(3, 6)
    labels = segment_labels(TransfoXLLMHeadModel, {"input_ids": ids})["labels"]
    weights = torch.linspace(-1.0, 2.0, labels.numel()).view_as(labels)
    expected = gradients(
        model,
        -(model(ids).prediction_scores.gather(2, labels.clamp(min=0)[..., None])[..., 0] * weights)[labels >= 0].sum(),
    )
    found = gradients(model, (model(ids, labels=labels).loss * weights).sum())
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        assert_same(gradient, expected[name], name, max_abs=3e-5, max_std=3e-6)


@pytest.mark.parametrize("view", ["all", "same length, clamped", "no memory"])
def test_explicit_attention_teaches_as_the_fast_path(view: str) -> None:
    """`output_attentions` takes another way to the same states, hence the same gradients."""
    model = build(CASE, TransfoXLLMHeadModel, **VIEWS[view]).train()
    ids = words(3, 6)
    expected = gradients(model, model(ids, labels=ids).loss.mean())
    found = gradients(model, model(ids, labels=ids, output_attentions=True).loss.mean())
    for name, gradient in found.items():
        assert_same(gradient, expected[name], name)


def test_memory_has_no_history() -> None:
    """What a segment learns stops at its beginning: memories carry no graph, and the earlier segment gets nothing."""
    model = build(CASE, TransfoXLLMHeadModel).train()
    first = model(words(2, 5, 1))
    assert all(not layer.requires_grad for layer in first.mems)
    ids = words(2, 5, 2)
    alone = gradients(model, model(ids, [x.clone() for x in first.mems], labels=ids).loss.mean())
    after = gradients(model, model(ids, first.mems, labels=ids).loss.mean())
    assert all(torch.equal(after[name], alone[name]) for name in alone)


@pytest.mark.parametrize("div_val", [1, 2])
def test_clusters_without_a_label_learn_nothing(div_val: int) -> None:
    """Their gradients are 0, and not what was in that memory before."""
    torch.manual_seed(0)
    softmax = ProjectedAdaptiveLogSoftmax(3000, 16, 16, [1000, 2000], div_val)
    used = [torch.full((3000, 16), torch.nan) for _ in range(8)]  # most likely given out again below
    del used
    softmax(torch.randn(5, 16), torch.tensor([0, 999, 3, 2500, -1])).sum().backward()
    tables: list[Any] = list(softmax.out_layers)
    gradient = torch.cat([table.weight.grad.flatten() for table in tables])
    start, stop = (1000 * 16, 2000 * 16) if div_val == 1 else (1000 * 16, 1000 * 16 + 1000 * 8)
    assert not gradient[start:stop].any()
    assert gradient[:start].any()
    assert gradient[stop:].any()


def test_nothing_to_learn() -> None:
    """C3: losses of 0 that are finite, part of the graph, and teach nothing."""
    for change in ({}, {"div_val": 1}, {"cutoffs": [], "div_val": 1}):
        model = build(CASE, TransfoXLLMHeadModel, **change).train()
        ids = words(2, 4)
        loss = model(ids, labels=torch.full_like(ids, -100)).loss
        assert torch.equal(loss.detach(), torch.zeros(2, 4))
        found = gradients(model, loss.sum())
        assert all(not gradient.any() for gradient in found.values())


def test_twice_through_one_graph() -> None:
    """`retain_graph`: the second backward pass gives what the first gave."""
    model = build(CASE, TransfoXLLMHeadModel).train()
    ids = words(2, 5)
    loss = model(ids, labels=ids).loss.mean()
    loss.backward(retain_graph=True)
    once = {name: p.grad.clone() for name, p in model.named_parameters()}
    loss.backward()
    for name, p in model.named_parameters():
        assert_same(p.grad, 2 * once[name], name)


def test_head_mask_and_vectors_have_gradients() -> None:
    model = build(CASE, TransfoXLLMHeadModel)
    vectors = torch.randn(2, 5, 40, generator=torch.Generator().manual_seed(6), requires_grad=True)
    mask = torch.full((LAYERS, HEADS), 0.5, requires_grad=True)
    output = model(inputs_embeds=vectors, head_mask=mask)
    found = torch.autograd.grad(scalar([output.prediction_scores]), (vectors, mask))
    assert all((gradient != 0).all() for gradient in found)
