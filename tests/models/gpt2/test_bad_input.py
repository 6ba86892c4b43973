"""Wrong input: an error that names the argument and says what to do, before anything is computed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from pytorch_transformers import GPT2Config, GPT2LMHeadModel

from ..battery import Case, build
from ..compare import assert_same
from .bad_input import CHECKS
from .tiny import CASE, LAYERS, MODELS, decoder_inputs


@pytest.mark.parametrize("model_class", MODELS)
@pytest.mark.parametrize("check", CHECKS)
def test_wrong_input(check: Callable[[Case, type[Any]], None], model_class: type[Any]) -> None:
    check(CASE, model_class)


#: What is wrong -> what is made of a good past (L times [2, 2, 5, 4, 8]), and what the message says.
WRONG_PASTS: dict[str, tuple[Callable[[tuple[Tensor, ...]], Any], str]] = {
    "fewer layers": (lambda past: past[:2], r"past: expected one tensor a layer, 3, found 2"),
    "more layers": (lambda past: (*past, past[0]), r"past: expected one tensor a layer, 3, found 4"),
    "another batch": (lambda past: [x[:, :1] for x in past], r"past: .*\[2, 1, 5, 4, 8\]"),
    "keys alone": (lambda past: [x[:1] for x in past], r"past: .*\[1, 2, 5, 4, 8\]"),
    "fewer axes": (lambda past: [x[0] for x in past], r"past: .*\[2, 5, 4, 8\]"),
    "hardly an axis": (lambda past: [x[0, 0, 0] for x in past], r"past: .*\[4, 8\]"),
    "other heads": (lambda past: [x[:, :, :3] for x in past], r"past: .*\[2, 2, 3, 4, 8\]"),
    "other heads in a layer": (lambda past: [past[0], past[1][:, :, :3], past[2]], r"past: .*\[2, 2, 3, 4, 8\]"),
    "another head size": (lambda past: [x[..., :6] for x in past], r"past: .*\[2, 2, 5, 4, 6\]"),
    "layers of two lengths": (lambda past: [past[0], past[1][:, :, :, :2], past[2]], r"past: .*\[2, 2, 5, 2, 8\]"),
    "another type": (lambda past: [x.double() for x in past], r"past: .*float64.*float32"),
    "another device": (lambda past: [x.to("meta") for x in past], r"past.* on meta"),
}
#: What is no past at all.
NO_PASTS: dict[str, Any] = {"a number": 3, "a text": "past", "numbers": [1, 2, 3]}


@pytest.fixture(scope="module")
def model() -> Any:
    return build(CASE, GPT2LMHeadModel)


@pytest.fixture(scope="module")
def ids() -> Tensor:
    return decoder_inputs(GPT2LMHeadModel, batch=2)["input_ids"]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("what", WRONG_PASTS)
def test_a_past_of_another_shape(what: str, masked: bool, model: Any, ids: Tensor) -> None:
    change, words = WRONG_PASTS[what]
    with torch.no_grad():
        past = change(model(ids[:, :4]).past)
    mask = {"attention_mask": torch.ones(2, 7)} if masked else {}
    with pytest.raises(ValueError, match="past|attention_mask" if masked else words):
        model(ids[:, 4:], past=past, **mask)


@pytest.mark.parametrize("what", NO_PASTS)
def test_what_is_no_past(what: str, model: Any, ids: Tensor) -> None:
    for mask in ({}, {"attention_mask": torch.ones(2, 7)}):
        with pytest.raises((TypeError, ValueError), match="past: expected"):
            model(ids, past=NO_PASTS[what], **mask)


def test_the_whole_text_beside_its_past(model: Any, ids: Tensor) -> None:
    """E2: with a mask that covers the text once it is found out; without, it is a longer text."""
    with torch.no_grad():
        past = model(ids[:, :4]).past
    with pytest.raises(ValueError, match=r"attention_mask: expected shape \[2, 11\] \(cached and new tokens"):
        model(ids, past=past, attention_mask=torch.ones(2, 7))


#: What is wrong -> (rows, room) and changes of the model that makes the cache; its room is right otherwise.
WRONG_CACHES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "one row too few": (1, 9, {}),
    "one row too many": (3, 9, {}),
    "fewer layers": (2, 9, {"n_layer": LAYERS - 1}),
    "more layers": (2, 9, {"n_layer": LAYERS + 1}),
    "other heads": (2, 9, {"n_head": 4}),
    "no room": (2, 6, {}),
}


@pytest.mark.parametrize("what", WRONG_CACHES)
def test_a_cache_of_another_shape(what: str, model: Any, ids: Tensor) -> None:
    rows, room, change = WRONG_CACHES[what]
    cache = build(CASE, GPT2LMHeadModel, **change).new_cache(rows, room)
    with pytest.raises(ValueError, match=r"past: .*cache"):
        model(ids, past=cache)
    assert cache.length == 0


def test_one_row_and_a_cache_of_two(model: Any, ids: Tensor) -> None:
    """It would be written into both rows, and give states of a shape that nothing fits."""
    with pytest.raises(ValueError, match=r"past: .*cache"):
        model(ids[:1], past=model.new_cache(2, 9))


def test_a_cache_of_another_type(model: Any, ids: Tensor) -> None:
    cache = build(CASE, GPT2LMHeadModel).double().new_cache(2, 9)
    with pytest.raises(ValueError, match=r"past: .*float64.*float32"):
        model(ids, past=cache)


def test_a_full_cache(model: Any, ids: Tensor) -> None:
    """It says how much is there and how much is wanted, and is as it was."""
    cache = model.new_cache(2, 9)
    with torch.no_grad():
        expected = model(ids[:, :5], past=model.new_cache(2, 5)).logits
        model(ids[:, :4], past=cache)
        with pytest.raises(ValueError, match="past: the cache has room for 9 tokens, not for 4 and 7 more"):
            model(ids, past=cache)
        assert cache.length == 4
        assert_same(model(ids[:, 4:5], past=cache).logits, expected[:, 4:], "goes on")


def test_too_many_tokens_after_a_cache(model: Any, ids: Tensor) -> None:
    cache = model.new_cache(2, 40)
    with torch.no_grad():
        for _ in range(3):
            model(ids, past=cache)
    with pytest.raises(ValueError, match=r"input_ids: 21 tokens in the cache and 7 new ones, but .* 23 positions"):
        model(ids, past=cache)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_embd": 41}, "n_embd: 41 is not a multiple of n_head, 5"),
        ({"activation_function": "gellu"}, "gellu"),
        ({"vocab_size": 0}, "vocab_size: 0"),
        ({"n_inner": 0}, "n_inner: 0"),
        ({"n_positions": 0}, "n_positions: 0"),
        ({"layer_norm_epsilon": -1.0}, "layer_norm_epsilon: -1.0"),
        ({"resid_pdrop": 1.5}, "resid_pdrop: 1.5"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx: True is not the original gpt2"),
        ({"add_cross_attention": True}, "add_cross_attention: True"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings: False"),
        ({"n_layers": 5}, "unknown key 'n_layers'; did you mean 'n_layer'"),
    ],
)
def test_configurations_that_cannot_be(change: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        CASE.config(**change)


def test_the_originals_name_of_the_vocabulary() -> None:
    """`n_vocab` of hparams.json is the size wherever it is given; two sizes are an error."""
    assert GPT2Config.from_dict({"n_vocab": 101}).vocab_size == 101
    assert GPT2Config(n_vocab=101).vocab_size == 101
    with pytest.raises(ValueError, match=r"vocab_size.* twice"):
        GPT2Config(vocab_size=99, n_vocab=101)
