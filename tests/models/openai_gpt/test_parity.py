"""The same numbers as two other programs: `transformers`, and the NumPy forward of the papers (`gpt2/reference.py`).

Random models of odd sizes, every activation, padding on both sides, each path through the attention, forward and
backward.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pytorch_transformers import OpenAIGPTConfig, OpenAIGPTLMHeadModel

from ..compare import assert_same
from ..gpt2.parity import (
    AFNS,
    MASKS,
    check_against_numpy,
    check_against_transformers,
    check_gradients_against_transformers,
    check_state_dicts_interchange,
)
from .tiny import CASE, MODELS


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("model_class", MODELS)
def test_equals_transformers(model_class: type[Any], mask: str) -> None:
    check_against_transformers(CASE, model_class, mask)


@pytest.mark.parametrize("activation", sorted(AFNS))
def test_activations_equal_transformers_and_numpy(activation: str) -> None:
    check_against_transformers(CASE, OpenAIGPTLMHeadModel, "left", afn=activation)
    check_against_numpy(CASE, OpenAIGPTLMHeadModel, "none", afn=activation)


@pytest.mark.parametrize("eps", [1e-5, 1e-2])
def test_epsilon_is_that_of_the_configuration(eps: float) -> None:
    """Every normalisation adds what the configuration says."""
    check_against_transformers(CASE, OpenAIGPTLMHeadModel, "right", layer_norm_epsilon=eps)
    check_against_numpy(CASE, OpenAIGPTLMHeadModel, "right", layer_norm_epsilon=eps)


def test_epsilon_of_the_family() -> None:
    """K1: where the variance is small, the 1e-12 of other families gives plus and minus 1."""
    model = OpenAIGPTLMHeadModel(CASE.config(n_embd=2, n_head=1, n_layer=1))
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    for norm in norms:
        assert_same(norm(torch.tensor([1e-3, -1e-3])), [0.301511, -0.301511], "normalised")
    assert len(norms) == 2


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("model_class", MODELS)
def test_gradients_equal_transformers(model_class: type[Any], mask: str) -> None:
    check_gradients_against_transformers(CASE, model_class, mask)


@pytest.mark.parametrize("mask", MASKS)
def test_gradients_without_scores_equal_transformers(mask: str) -> None:
    check_gradients_against_transformers(CASE, OpenAIGPTLMHeadModel, mask, lean=True)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("model_class", MODELS)
def test_equals_numpy(model_class: type[Any], mask: str) -> None:
    check_against_numpy(CASE, model_class, mask)


@pytest.mark.parametrize("model_class", MODELS)
def test_state_dicts_interchange(model_class: type[Any], tmp_path: Path) -> None:
    check_state_dicts_interchange(CASE, model_class, tmp_path)


def test_published_size_is_that_of_the_paper() -> None:
    """The language model of the original: 116,534,784 values, and three more vectors with the tokens of a task."""
    config = OpenAIGPTConfig()
    assert OpenAIGPTLMHeadModel.without_values(config).num_parameters() == 116_534_784
    special = OpenAIGPTLMHeadModel.without_values(OpenAIGPTConfig(n_special=3))
    assert special.num_parameters() == 116_534_784 + 3 * 768
