"""The same numbers as two other programs: `transformers`, and the NumPy forward of the papers (`gpt2/reference.py`).

Random models of odd sizes, every activation, padding on both sides, each path through the attention, forward and
backward.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pytorch_transformers import GPT2Config, GPT2LMHeadModel

from ..battery import build
from ..compare import assert_same
from .parity import (
    ACTIVATIONS,
    MASKS,
    check_against_numpy,
    check_against_transformers,
    check_gradients_against_transformers,
    check_state_dicts_interchange,
    masked_inputs,
    numpy_model,
    other_model,
    with_positions,
)
from .tiny import CASE, MODELS, real


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("model_class", MODELS)
def test_equals_transformers(model_class: type[Any], mask: str) -> None:
    check_against_transformers(CASE, model_class, mask)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_activations_equal_transformers_and_numpy(activation: str) -> None:
    check_against_transformers(CASE, GPT2LMHeadModel, "left", activation_function=activation)
    check_against_numpy(CASE, GPT2LMHeadModel, "none", activation_function=activation)


@pytest.mark.parametrize("eps", [1e-5, 1e-2])
def test_epsilon_is_that_of_the_configuration(eps: float) -> None:
    """Every normalisation adds what the configuration says."""
    check_against_transformers(CASE, GPT2LMHeadModel, "right", layer_norm_epsilon=eps)
    check_against_numpy(CASE, GPT2LMHeadModel, "right", layer_norm_epsilon=eps)


def test_epsilon_of_the_family() -> None:
    """K1: where the variance is small, the 1e-12 of other families gives plus and minus 1."""
    model = GPT2LMHeadModel(CASE.config(n_embd=2, n_head=1, n_layer=1))
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    for norm in norms:
        assert_same(norm(torch.tensor([1e-3, -1e-3])), [0.301511, -0.301511], "normalised")
    assert len(norms) == 3


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("model_class", MODELS)
def test_gradients_equal_transformers(model_class: type[Any], mask: str) -> None:
    check_gradients_against_transformers(CASE, model_class, mask)


@pytest.mark.parametrize("mask", MASKS)
def test_gradients_without_scores_equal_transformers(mask: str) -> None:
    check_gradients_against_transformers(CASE, GPT2LMHeadModel, mask, lean=True)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("model_class", MODELS)
def test_equals_numpy(model_class: type[Any], mask: str) -> None:
    check_against_numpy(CASE, model_class, mask)


@pytest.mark.parametrize("model_class", MODELS)
def test_state_dicts_interchange(model_class: type[Any], tmp_path: Path) -> None:
    check_state_dicts_interchange(CASE, model_class, tmp_path)


@pytest.mark.parametrize("mask", MASKS)
def test_steps_equal_transformers(mask: str) -> None:
    """Keys and values of each layer, and what follows from them, in pieces of 3, 1 and 3 tokens."""
    model = build(CASE, GPT2LMHeadModel)
    other = other_model(model)
    inputs = with_positions(masked_inputs(GPT2LMHeadModel, mask))
    reference, past, theirs, earlier = numpy_model(model), None, None, None
    kept = real(inputs)
    for start, end in ((0, 3), (3, 4), (4, 7)):
        piece = {name: value[:, start:end] for name, value in inputs.items() if name != "attention_mask"}
        if "attention_mask" in inputs:
            piece["attention_mask"] = inputs["attention_mask"][:, :end]
        with torch.no_grad():
            ours = model(**{n: v for n, v in piece.items() if n != "position_ids"}, past=past)
            expected = other(**piece, cache=theirs, use_cache=True)
        decoded = reference.decode(**{name: value.numpy() for name, value in piece.items()}, past=earlier)
        past, theirs, earlier = ours.past, expected.cache, decoded.presents
        places = kept[:, start:end]
        assert_same(ours.logits[places], expected.logits[places], f"scores {start} to {end}")
        scores = reference.scores(decoded.last)
        assert_same(ours.logits[places], scores[places.numpy()], f"scores {start} to {end}, NumPy")
        for index, present in enumerate(past):
            assert present.shape == (2, 5, 5, end, 8)
            seen = kept[:, :end]  # what stands at padding is read by nobody
            layer = theirs.layers[index]
            for one, two, three in zip(present, (layer.keys, layer.values), decoded.presents[index], strict=True):
                one, two = one.transpose(1, 2)[seen], two.transpose(1, 2)[seen]
                assert_same(one, two, f"present {index} up to {end}")
                assert_same(one, three.transpose(0, 2, 1, 3)[seen.numpy()], f"present {index} up to {end}, NumPy")


def test_published_sizes_are_those_of_the_paper() -> None:
    """Parameters, counted on models without values (Radford et al. 2019, table 2, corrected in the code's readme)."""
    for name, count in {
        "gpt2": 124_439_808,
        "gpt2-medium": 354_823_168,
        "gpt2-large": 774_030_080,
        "gpt2-xl": 1_557_611_200,
    }.items():
        config = GPT2Config.named(name)
        model = GPT2LMHeadModel.without_values(config)
        assert model.num_parameters() == count, name
        assert model.device.type == "meta"
        assert config.n_embd // config.n_head == 64
    assert GPT2Config.named("gpt2") == GPT2Config()
    assert GPT2Config.named("gpt2-xl", n_layer=2).n_layer == 2
    with pytest.raises(ValueError, match=r"gpt3.*gpt2, gpt2-medium, gpt2-large, gpt2-xl"):
        GPT2Config.named("gpt3")
