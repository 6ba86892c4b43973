"""Wrong input: an error that names the argument and says what to do, before anything is computed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from ..battery import Case, build
from ..gpt2.bad_input import CHECKS
from .tiny import CASE, MODELS


@pytest.mark.parametrize("model_class", MODELS)
@pytest.mark.parametrize("check", CHECKS)
def test_wrong_input(check: Callable[[Case, type[Any]], None], model_class: type[Any]) -> None:
    check(CASE, model_class)


@pytest.mark.parametrize("name", ["past", "use_cache"])
def test_what_this_family_does_not_take(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        build(CASE, MODELS[0])(torch.ones(1, 2).long(), **{name: None})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_embd": 41}, "n_embd: 41 is not a multiple of n_head, 5"),
        ({"afn": "gellu"}, "gellu"),
        ({"n_special": -1}, "n_special: -1"),
        ({"n_special": 1.5}, "n_special: 1.5"),
        ({"vocab_size": 0}, "vocab_size: 0"),
        ({"n_layer": -1}, "n_layer: -1"),
        ({"embd_pdrop": 1.5}, "embd_pdrop: 1.5"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings: False is not the original openai-gpt"),
        ({"summary_type": "last"}, "summary_type: 'last'"),
        ({"n_heads": 5}, "unknown key 'n_heads'; did you mean 'n_head'"),
    ],
)
def test_configurations_that_cannot_be(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        CASE.config(**change)
