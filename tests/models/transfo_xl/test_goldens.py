"""Recorded outputs of the original program, kimiyoung/transformer-xl on TensorFlow 1 operations, float32.

Each folder is a checkpoint of other sizes; each variant runs over consecutive segments and feeds the new memories on.
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from pytorch_transformers import TransfoXLLMHeadModel

from ..compare import assert_same, difference
from .goldens import FOLDERS, VARIANTS, Array, Golden, Variant, tensor
from .reference import NumpyTransfoXL

golden = functools.cache(Golden)

EACH = [(folder, variant) for folder in FOLDERS for variant in VARIANTS]
each = pytest.mark.parametrize(("folder", "variant"), EACH)


def language_model(stored: Golden, **options: Any) -> Any:
    """With the values of the checkpoint."""
    model = TransfoXLLMHeadModel(stored.config(**options)).eval()
    stored.fill(model)
    return model


def assert_segment(
    run: Variant, place: int, what: str, nll: Array, hidden: Array, mems: list[Array], log_probs: Array | None
) -> None:
    """Losses [B, T], last states [B, T, H], memories and log-probabilities [B, T, V] are what was recorded."""
    start = f"seg{place}/"
    recorded = {name.removeprefix(start): value for name, value in run.recorded.items() if name.startswith(start)}
    what = f"{what}, segment {place}"
    assert_same(nll.T, recorded["nll"], f"{what}: losses")
    assert_same(nll.mean(dtype=np.float64), recorded["loss"], f"{what}: mean loss")
    assert_same(hidden.swapaxes(0, 1), recorded["hidden"], f"{what}: last states")
    kept = {int(name[5:]): value for name, value in recorded.items() if name.startswith("mems_")}
    assert kept
    for layer, value in kept.items():
        assert_same(mems[layer], value, f"{what}: memory of layer {layer}")
    if log_probs is not None and "log_probs" in recorded:
        assert_same(log_probs.swapaxes(0, 1), recorded["log_probs"], f"{what}: log-probabilities")


def first_segment(run: Variant, stored: Golden, place: int, length: int) -> dict[str, Any]:
    """The `mem_len` of a segment: the original keeps all rows of a first one without memory."""
    whole = run.starts_empty and place == 0
    return {"mem_len": length if whole else run.options.get("mem_len", stored.settings["mem_len"])}


@each
def test_numpy_reference(folder: str, variant: str) -> None:
    """The NumPy forward that the other tests lean on is itself held to the original."""
    stored = golden(folder)
    run, mems = stored.variant(variant), None
    assert run.segments == (2 if variant == "eval_lengths" else 3)
    for place in range(run.segments):
        ids, targets = stored.segment(run, place)
        memory = first_segment(run, stored, place, ids.shape[1])
        reference = NumpyTransfoXL(stored.parameters(), stored.config(**run.options), **memory)
        if run.starts_empty and mems is None:
            mems = [np.zeros((0, len(ids), reference.width))] * reference.layers
        decoded = reference.decode(ids, mems)
        nll, log_probs = reference.losses(decoded.last, targets), reference.log_probs(decoded.last)
        mems = decoded.mems
        assert_segment(run, place, f"{folder}, {variant}", nll, decoded.last, mems, log_probs)


@pytest.mark.parametrize("explicit", [False, True])
@each
def test_segments(folder: str, variant: str, explicit: bool) -> None:
    """Losses, log-probabilities, last states and memories of every segment; each layer as NumPy has it."""
    stored = golden(folder)
    run, mems = stored.variant(variant), None
    model = language_model(stored, **run.options)
    for place in range(run.segments):
        ids, targets = stored.segment(run, place)
        memory = first_segment(run, stored, place, ids.shape[1])
        model.reset_length(ids.shape[1], 0, memory["mem_len"])
        if run.starts_empty and mems is None:
            mems = tuple(torch.zeros(0, len(ids), model.config.d_model) for _ in range(model.config.n_layer))
        reference = NumpyTransfoXL(stored.parameters(), stored.config(**run.options), **memory)
        expected = reference.decode(ids, None if mems is None else [x.numpy() for x in mems])
        switches: dict[str, bool] = {"output_hidden_states": True, "output_attentions": explicit}
        with torch.no_grad():
            scored = model(tensor(ids), mems, **switches)
            taught = model(tensor(ids), mems, labels=tensor(targets), **switches)
        what = f"{folder}, {variant}"
        for layer, (one, other) in enumerate(zip(scored.hidden_states, expected.hidden_states, strict=True)):
            assert_same(one, other, f"{what}, segment {place}: hidden state {layer}")
        if explicit:
            for layer, (one, other) in enumerate(zip(scored.attentions, expected.attentions, strict=True)):
                assert_same(one, other, f"{what}, segment {place}: attention {layer}")
        hidden = scored.hidden_states[-1].numpy()
        log_probs = scored.prediction_scores.numpy()
        for output in (scored, taught):
            states = [x.numpy() for x in output.mems]
            assert_segment(run, place, what, taught.loss.numpy(), hidden, states, log_probs)
        mems = taught.mems


@pytest.mark.parametrize("folder", FOLDERS)
def test_segments_in_a_cache(folder: str) -> None:
    """Keys and values that are kept, rather than what they are made of."""
    stored = golden(folder)
    for variant in set(VARIANTS) - {"no_initial_mems"}:
        run = stored.variant(variant)
        model = language_model(stored, **run.options)
        ids, _ = stored.segment(run, 0)
        model.reset_length(ids.shape[1], 0, run.options.get("mem_len", stored.settings["mem_len"]))
        cache = model.new_cache(*ids.shape)
        for place in range(run.segments):
            ids, targets = stored.segment(run, place)
            with torch.no_grad():
                loss = model(tensor(ids), cache, labels=tensor(targets)).loss
            assert_same(loss.T, run.recorded[f"seg{place}/nll"], f"{folder}, {variant}, segment {place}")


@pytest.mark.parametrize("folder", FOLDERS)
def test_gradients(folder: str) -> None:
    """Of the mean loss of the first segment after a memory of zeros; a shared parameter has the sum of its uses."""
    stored = golden(folder)
    model = language_model(stored).train()
    ids, targets = stored.segment(stored.variant("base"), 0)
    model(tensor(ids), labels=tensor(targets)).loss.mean().backward()
    expected = stored.parameters(stored.gradients)
    own = dict(model.named_parameters(remove_duplicate=False))
    assert set(own) <= set(expected)
    for name, parameter in own.items():
        assert parameter.grad is not None, name
        assert_same(parameter.grad, expected[name], f"{folder}: gradient of {name}")


def test_formulas_can_be_told_apart() -> None:
    """What other programs do is off by more than the bounds, so these goldens do check it."""
    stored = golden("div2")
    wrong: Mapping[str, Mapping[str, Any]] = {
        "base": {"layer_norm_epsilon": 1e-3},
        "same_length": {"same_length_one_fewer": True},
        "clamp_len": {"clamp_len": 5},
    }
    for variant, change in wrong.items():
        run = stored.variant(variant)
        model = language_model(stored, **{**run.options, **change})
        ids, targets = stored.segment(run, 0)
        with torch.no_grad():
            loss = model(tensor(ids), labels=tensor(targets)).loss
        assert difference(loss.T, run.recorded["seg0/nll"])[0] > 1e-4, variant
    parameters = stored.parameters()
    run = stored.variant("base")
    ids, targets = stored.segment(run, 0)
    weight, bias = parameters["crit.cluster_weight"], parameters["crit.cluster_bias"]
    reversed_tails = {**parameters, "crit.cluster_weight": weight[::-1], "crit.cluster_bias": bias[::-1]}
    reference = NumpyTransfoXL(reversed_tails, stored.config())
    loss = reference.losses(reference.decode(ids).last, targets)
    assert difference(loss.T, run.recorded["seg0/nll"])[0] > 1e-2, "tails in reverse order"
