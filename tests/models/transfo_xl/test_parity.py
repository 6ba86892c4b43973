"""The same numbers as two other programs: the NumPy forward of the paper (`reference.py`), and the published package.

Random models of odd sizes, every kind of clusters and of view, over several segments.
"""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from published import published
from pytorch_transformers import TransfoXLLMHeadModel, TransfoXLModel

from ..battery import build
from ..compare import assert_same
from .reference import NumpyTransfoXL
from .tiny import CASE, HEADS, KINDS, LAYERS, VIEWS, VOCAB, words

LENGTHS = (7, 5, 1, 12)
"""Of consecutive segments: as in training, shorter, one token, longer than the memory."""


def reference_of(model: Any) -> NumpyTransfoXL:
    """The same parameters and configuration in NumPy."""
    parameters = {name: value.numpy() for name, value in model.state_dict().items()}
    return NumpyTransfoXL(parameters, model.config)


def check_segments(explicit: bool, **changes: Any) -> None:
    """All states, attentions, memories, losses and log-probabilities of consecutive segments."""
    model = build(CASE, TransfoXLLMHeadModel, **changes)
    reference, mems, expected_mems = reference_of(model), None, None
    switches: dict[str, bool] = {"output_hidden_states": True, "output_attentions": explicit}
    for place, length in enumerate(LENGTHS):
        ids, labels = words(3, length, place), words(3, length, place + 10)
        labels.view(-1)[1] = -1
        with torch.no_grad():
            scored = model(ids, mems, **switches)
            taught = model(ids, mems, labels=labels, **switches)
        expected = reference.decode(ids, expected_mems)
        expected_mems, mems = expected.mems, scored.mems
        what = f"segment {place} of {length}"
        for layer, (one, other) in enumerate(zip(scored.hidden_states, expected.hidden_states, strict=True)):
            assert_same(one, other, f"{what}: hidden state {layer}")
        if explicit:
            for layer, (one, other) in enumerate(zip(scored.attentions, expected.attentions, strict=True)):
                assert_same(one, other, f"{what}: attention {layer}")
        if model.config.mem_len:
            for layer, (one, other) in enumerate(zip(mems, expected_mems, strict=True)):
                assert_same(one, other, f"{what}: memory {layer}")
                assert torch.equal(one, taught.mems[layer])
        else:
            assert mems is None
        assert_same(scored.prediction_scores, reference.log_probs(expected.last), f"{what}: log-probabilities")
        assert_same(taught.loss, reference.losses(expected.last, labels), f"{what}: losses")


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_equal_numpy(kind: str) -> None:
    check_segments(False, **KINDS[kind])


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_views_equal_numpy(view: str, explicit: bool) -> None:
    check_segments(explicit, **VIEWS[view])


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 1e-2])
def test_epsilon_is_that_of_the_configuration(eps: float) -> None:
    """Every normalisation adds what the configuration says."""
    check_segments(False, layer_norm_epsilon=eps)


def test_epsilon_of_the_family() -> None:
    """K1: where the variance is small, the 1e-12 of the original gives 1, the 1e-5 of other programs 0.3."""
    for change, expected in (({}, 1.0), ({"layer_norm_epsilon": 1e-5}, 0.301511)):
        model = TransfoXLModel(CASE.config(d_model=2, d_embed=2, n_layer=1, cutoffs=[], div_val=1, **change))
        norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
        assert len(norms) == 2
        for norm in norms:
            nn.init.ones_(norm.weight)
            assert_same(norm(torch.tensor([1e-3, -1e-3])), [expected, -expected], "normalised")


@pytest.mark.parametrize("mask", [[1.0, 0.0, 0.5, 2.0, 1.0], None])
def test_head_mask_equals_numpy(mask: list[float] | None) -> None:
    """One row for all layers, or one for each."""
    rows = torch.rand(LAYERS, HEADS, generator=torch.Generator().manual_seed(1)) if mask is None else torch.tensor(mask)
    model, ids = build(CASE, TransfoXLLMHeadModel), words(2, 6)
    expected = reference_of(model).decode(ids, head_mask=rows.expand(LAYERS, HEADS).numpy())
    for explicit in (False, True):
        with torch.no_grad():
            output = model(ids, head_mask=rows, output_hidden_states=True, output_attentions=explicit)
        for layer, (one, other) in enumerate(zip(output.hidden_states, expected.hidden_states, strict=True)):
            assert_same(one, other, f"hidden state {layer}")


@pytest.mark.parametrize("kind", KINDS)
def test_float64_equals_numpy_to_the_last_digits(kind: str) -> None:
    """What is left in float32 is rounding."""
    model = build(CASE, TransfoXLLMHeadModel, **KINDS[kind]).double()
    reference, ids = reference_of(model), words(2, 7)
    expected = reference.log_probs(reference.decode(ids).last)
    with torch.no_grad():
        found = model(ids).prediction_scores
    # distances are float32 in the library whatever the model is, as is a table of positions that is loaded
    assert_same(found, expected, "log-probabilities", max_abs=1e-6, max_std=1e-7)


# --- the published package --------------------------------------------------------------------------------------------

PUBLISHED_KINDS: dict[str, dict[str, Any]] = {
    "tails with tied projections": {},
    "one table": {"div_val": 1, "d_embed": 40},
    "one table with a projection": {"div_val": 1},
    "no clusters": {"cutoffs": [], "div_val": 1, "d_embed": 40},
    "one r bias for all layers": {"untie_r": False},
    "normalised before": {"pre_lnorm": True},
    "clamped": {"clamp_len": 4},
    "same length": {"same_length": True},
}


@pytest.mark.parametrize("kind", PUBLISHED_KINDS)
def test_equals_the_published_package(kind: str) -> None:
    """Losses, scores, memories of segments. Its epsilon is 1e-5, and its `same_length` shows one token fewer."""
    changes: dict[str, Any] = {**PUBLISHED_KINDS[kind], "layer_norm_epsilon": 1e-5, "same_length_one_fewer": True}
    model = build(CASE, TransfoXLLMHeadModel, **changes)
    module = published("pytorch_transformers", "modeling_transfo_xl")
    names = ["cutoffs", "d_model", "d_embed", "n_head", "d_head", "d_inner", "div_val", "pre_lnorm", "n_layer"]
    names += ["tgt_len", "ext_len", "mem_len", "clamp_len", "same_length", "untie_r", "dropout", "dropatt"]
    config = module.TransfoXLConfig(VOCAB, **{name: getattr(model.config, name) for name in names})
    config.tie_projs = list(model.config.tie_projs)
    other = module.TransfoXLLMHeadModel(config).eval()
    missing, unexpected = other.load_state_dict(model.state_dict(), strict=False)
    assert [name for name in missing if not name.endswith("inv_freq")] == []
    assert unexpected == []
    mems: Any = None
    their_mems: Any = None
    for place, length in enumerate(LENGTHS):
        ids, labels = words(3, length, place), words(3, length, place + 10)
        with torch.no_grad():
            scores, _ = model(ids, mems).to_tuple()
            loss, mems = model(ids, mems, labels=labels).to_tuple()
            their_scores, _ = other(ids, mems=their_mems)
            their_loss, _, their_mems = other(ids, labels=labels, mems=their_mems)
        assert_same(scores, their_scores, f"{kind}, segment {place}: log-probabilities")
        expected = in_order(their_loss.flatten(), labels.flatten(), model.config.cutoffs)
        assert_same(loss.flatten(), expected, f"{kind}, segment {place}: losses")
        for layer, (one, two) in enumerate(zip(mems, their_mems, strict=True)):
            assert_same(one, two, f"{kind}, segment {place}: memory {layer}")


def in_order(losses: Tensor, labels: Tensor, cutoffs: list[int]) -> Tensor:
    """The published package returns losses sorted by cluster; here they are put back to their tokens."""
    cluster = np.searchsorted(np.asarray(cutoffs), labels.numpy(), side="right")
    order = np.argsort(cluster, kind="stable")
    restored = torch.empty_like(losses)
    restored[torch.from_numpy(order)] = losses
    return restored
