"""Wrong input: an error that names the argument and says what to do, before anything is computed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pytorch_transformers import TransfoXLConfig, TransfoXLLMHeadModel

from ..battery import build
from ..compare import assert_same
from .tiny import CASE, HEADS, HIDDEN, LAYERS, MEMORY, MODELS, VOCAB, words

MODEL = {model_class: build(CASE, model_class) for model_class in MODELS}

both = pytest.mark.parametrize("model_class", MODELS)

IDS = words(2, 5)
VECTORS = torch.zeros(2, 5, HIDDEN)


def memories() -> tuple[Tensor, ...]:
    """Good ones for two rows."""
    with torch.no_grad():
        mems: tuple[Tensor, ...] = MODEL[MODELS[0]](words(2, 3)).mems
    return mems


#: What is wrong -> the arguments, and what the message says. The battery tries ids as well.
WRONG_INPUTS: dict[str, tuple[dict[str, Any], str]] = {
    "one axis": ({"input_ids": IDS[0]}, r"input_ids: expected a shape \[batch, tokens\].*found \[5\]"),
    "three axes": ({"input_ids": IDS[None]}, r"input_ids: expected a shape \[batch, tokens\].*found \[1, 2, 5\]"),
    "no tokens": ({"input_ids": IDS[:, :0]}, r"input_ids: .*without empty axes, found \[2, 0\]"),
    "no rows": ({"input_ids": IDS[:0]}, r"input_ids: .*without empty axes, found \[0, 5\]"),
    "id beyond the words": ({"input_ids": IDS + VOCAB}, rf"input_ids: found \d+, allowed is 0 to {VOCAB - 1}"),
    "negative id": ({"input_ids": IDS - VOCAB}, r"input_ids: found -\d+, allowed is 0"),
    "floats": ({"input_ids": IDS.float()}, r"input_ids: expected integers \(torch.long\), found torch.float32"),
    "on another device": ({"input_ids": IDS.to("meta")}, r"input_ids is on meta"),
    "nothing": ({}, "input_ids.*inputs_embeds"),
    "ids and vectors": ({"input_ids": IDS, "inputs_embeds": VECTORS}, "input_ids.*inputs_embeds"),
    "narrow vectors": (
        {"inputs_embeds": VECTORS[..., :-1]},
        r"inputs_embeds: expected shape \[2, 5, 40\].*\[2, 5, 39\]",
    ),
    "vectors of one row": ({"inputs_embeds": VECTORS[0]}, r"inputs_embeds: expected a shape.*found \[5, 40\]"),
    "vectors of another type": (
        {"inputs_embeds": VECTORS.double()},
        r"inputs_embeds: found torch\.float64.*torch\.float32.*\.to",
    ),
    "fewer heads": ({"input_ids": IDS, "head_mask": torch.ones(HEADS - 1)}, "head_mask: expected shape"),
    "more layers": ({"input_ids": IDS, "head_mask": torch.ones(LAYERS + 1, HEADS)}, "head_mask: expected"),
    "a number as head mask": ({"input_ids": IDS, "head_mask": torch.tensor(1.0)}, "head_mask: expected shape"),
    "head mask elsewhere": ({"input_ids": IDS, "head_mask": torch.ones(HEADS).to("meta")}, "head_mask is on meta"),
}


@both
@pytest.mark.parametrize("what", WRONG_INPUTS)
def test_wrong_input(what: str, model_class: type[Any]) -> None:
    arguments, message = WRONG_INPUTS[what]
    with pytest.raises(ValueError, match=message):
        MODEL[model_class](**arguments)


#: What is wrong -> what is made of a good memory (L times [9, 2, 40]), and what the message says.
WRONG_MEMORIES: dict[str, tuple[Callable[[tuple[Tensor, ...]], Any], str]] = {
    "one row": (lambda mems: [x[:, :1] for x in mems], r"mems: expected shape \[9, 2, 40\].*found \[9, 1, 40\]"),
    "more rows": (lambda mems: [x.repeat(1, 2, 1) for x in mems], r"mems: .*found \[9, 4, 40\]"),
    "batch first": (lambda mems: [x.transpose(0, 1) for x in mems], r"mems: .*found \[2, 9, 40\]"),
    "fewer layers": (lambda mems: mems[:2], r"mems: expected one tensor for each layer, 3, found 2"),
    "more layers": (lambda mems: (*mems, mems[0]), r"mems: expected one tensor for each layer, 3, found 4"),
    "no layers": (lambda mems: (), r"mems: expected one tensor for each layer, 3, found 0"),
    "another width": (lambda mems: [x[..., :24] for x in mems], r"mems: .*found \[9, 2, 24\]"),
    "fewer axes": (lambda mems: [x[0] for x in mems], r"mems: .*found \[2, 40\]"),
    "hardly an axis": (lambda mems: [x[0, 0, 0] for x in mems], r"mems: .*found \[\]"),
    "layers of two lengths": (lambda mems: [mems[0], mems[1][:4], mems[2]], r"mems: .*found \[4, 2, 40\]"),
    "another type": (lambda mems: [x.double() for x in mems], r"mems: found torch\.float64.*torch\.float32"),
    "another device": (lambda mems: [x.to("meta") for x in mems], r"mems is on meta"),
}
#: What is no memory at all.
NO_MEMORIES: dict[str, Any] = {
    "a number": 3,
    "a text": "mems",
    "numbers": [1, 2, 3],
    "arrays": [np.zeros((9, 2, 40), dtype=np.float32)] * 3,
    "nothing in a layer": [None, None, None],
    "one tensor": torch.zeros(MEMORY, 2, HIDDEN),
}


@both
@pytest.mark.parametrize("what", WRONG_MEMORIES)
def test_a_memory_of_another_shape(what: str, model_class: type[Any]) -> None:
    change, message = WRONG_MEMORIES[what]
    model, mems = MODEL[model_class], memories()
    with pytest.raises(ValueError, match=message):
        model(IDS, change(mems))
    with torch.no_grad():
        assert model(IDS, mems)[0].isfinite().all(), "and the model still works"


@both
@pytest.mark.parametrize("what", NO_MEMORIES)
def test_what_is_no_memory(what: str, model_class: type[Any]) -> None:
    with pytest.raises((TypeError, ValueError), match="mems: expected"):
        MODEL[model_class](IDS, NO_MEMORIES[what])


#: What is wrong with a cache -> its rows, and changes of the model that makes it.
WRONG_CACHES: dict[str, tuple[int, dict[str, Any]]] = {
    "one row too few": (1, {}),
    "one row too many": (3, {}),
    "fewer layers": (2, {"n_layer": LAYERS - 1}),
    "more layers": (2, {"n_layer": LAYERS + 1}),
    "other heads": (2, {"n_head": HEADS - 1}),
    "another head size": (2, {"d_head": 7}),
}


@pytest.mark.parametrize("what", WRONG_CACHES)
def test_a_cache_of_another_shape(what: str) -> None:
    """It is refused before anything is written."""
    rows, change = WRONG_CACHES[what]
    cache = build(CASE, TransfoXLLMHeadModel, **change).new_cache(rows, 9)
    with pytest.raises(ValueError, match=r"mems: .*cache"):
        MODEL[TransfoXLLMHeadModel](IDS, cache)
    assert cache.tokens == 0


def test_a_cache_of_another_type() -> None:
    cache = build(CASE, TransfoXLLMHeadModel).double().new_cache(2, 9)
    with pytest.raises(ValueError, match=r"mems: .*float64.*float32"):
        MODEL[TransfoXLLMHeadModel](IDS, cache)


@both
def test_wrong_kinds(model_class: type[Any]) -> None:
    """A `TypeError` that names the argument, for each that is no tensor."""
    good: dict[str, Tensor] = {"input_ids": IDS, "head_mask": torch.ones(LAYERS, HEADS)}
    for name, value in good.items():
        for wrong, kind in ((value.tolist(), "list"), (value.numpy(), "ndarray")):
            with pytest.raises(TypeError, match=f"{name}: expected a torch.Tensor, found {kind}"):
                MODEL[model_class](**{**good, name: wrong})
    with pytest.raises(TypeError, match=r"inputs_embeds: expected a torch\.Tensor"):
        MODEL[model_class](inputs_embeds=VECTORS.numpy())


#: What is wrong with labels of two rows of five -> them, and what the message says.
WRONG_LABELS: dict[str, tuple[Any, str]] = {
    "beyond the words": (IDS + VOCAB, rf"labels: found \d+, allowed is 0 to {VOCAB - 1}, or below 0 to ignore"),
    "the number of words": (IDS.clone().fill_(VOCAB), f"labels: found {VOCAB}, allowed is 0 to {VOCAB - 1}"),
    "floats": (IDS.float(), r"labels: expected class indices \(torch\.long\), found torch\.float32"),
    "booleans": (IDS > 3, r"labels: expected class indices \(torch\.long\), found torch\.bool"),
    "one row": (IDS[:1], r"labels: expected shape \[2, 5\].*found \[1, 5\]"),
    "more tokens": (words(2, 6), r"labels: expected shape \[2, 5\].*found \[2, 6\]"),
    "no tokens": (IDS[:, :0], r"labels: expected shape \[2, 5\].*found \[2, 0\]"),
    "flat": (IDS.flatten(), r"labels: expected shape \[2, 5\].*found \[10\]"),
    "another axis": (IDS[..., None], r"labels: expected shape \[2, 5\].*found \[2, 5, 1\]"),
}


@pytest.mark.parametrize("what", WRONG_LABELS)
def test_wrong_labels(what: str) -> None:
    wrong, message = WRONG_LABELS[what]
    model = MODEL[TransfoXLLMHeadModel]
    for named in ({"input_ids": IDS}, {"inputs_embeds": VECTORS}):
        with pytest.raises(ValueError, match=message):
            model(**named, labels=wrong)
    with pytest.raises(TypeError, match=r"labels: expected a torch\.Tensor, found list"):
        model(IDS, labels=wrong.tolist())


def test_labels_of_any_whole_type() -> None:
    """As ids and labels of other types are understood, they mean the same."""
    model = MODEL[TransfoXLLMHeadModel]
    with torch.no_grad():
        expected = model(IDS, labels=IDS).loss
        for dtype in (torch.int32, torch.int16, torch.uint8):
            assert_same(model(IDS, labels=IDS.to(dtype)).loss, expected, str(dtype))
        assert_same(model(IDS.int(), labels=IDS).loss, expected, "ids of 32 bits")


@both
@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ((0, 0, 4), "tgt_len: 0"),
        ((4, -1, 4), "ext_len: -1"),
        ((4, 0, -2), "mem_len: -2"),
        ((4.5, 0, 1), "tgt_len: 4.5"),
    ],
)
def test_impossible_lengths(lengths: tuple[Any, ...], message: str, model_class: type[Any]) -> None:
    model = build(CASE, model_class)
    with pytest.raises((TypeError, ValueError), match=message):
        model.reset_length(*lengths)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cutoffs": [29, 11, 47]}, r"cutoffs: \[29, 11, 47\] must rise and be below vocab_size, 61"),
        ({"cutoffs": [11, 11]}, r"cutoffs: \[11, 11\] must rise"),
        ({"cutoffs": [11, 61]}, r"cutoffs: \[11, 61\] must rise and be below vocab_size, 61"),
        ({"cutoffs": [11, 200]}, r"cutoffs: \[11, 200\]"),
        ({"cutoffs": [0, 5]}, "cutoffs: 0"),
        ({"cutoffs": [-5]}, "cutoffs: -5"),
        ({"cutoffs": [10.5]}, "cutoffs: 10.5"),
        ({"tie_projs": [True]}, r"tie_projs: 1 values, but .* are 4"),
        ({"tie_projs": [True] * 5}, r"tie_projs: 5 values, but .* are 4"),
        ({"div_val": 3}, r"div_val: 3 leaves no width for the last of 4 clusters.*d_embed is 24"),
        ({"div_val": 0}, "div_val: 0"),
        ({"adaptive": False}, r"adaptive: False, but there are clusters"),
        ({"d_model": 0}, "d_model: 0"),
        ({"d_model": 41}, "d_model: 41"),
        ({"d_embed": 0}, "d_embed: 0"),
        ({"n_head": 0}, "n_head: 0"),
        ({"d_head": 0}, "d_head: 0"),
        ({"d_inner": 0}, "d_inner: 0"),
        ({"n_layer": -1}, "n_layer: -1"),
        ({"vocab_size": 0}, "vocab_size: 0"),
        ({"tgt_len": 0}, "tgt_len: 0"),
        ({"mem_len": -1}, "mem_len: -1"),
        ({"ext_len": -1}, "ext_len: -1"),
        ({"clamp_len": -2}, "clamp_len: -2"),
        ({"dropout": 1.5}, "dropout: 1.5"),
        ({"dropatt": -0.1}, "dropatt: -0.1"),
        ({"layer_norm_epsilon": -1.0}, "layer_norm_epsilon: -1.0"),
        ({"init": "xavier"}, "init: 'xavier', allowed is normal or uniform"),
        ({"init_std": -1.0}, "init_std: -1.0"),
        ({"n_layers": 5}, "unknown key 'n_layers'; did you mean 'n_layer'"),
    ],
    ids=str,
)
def test_configurations_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        CASE.config(**change)


@pytest.mark.parametrize("change", [{"attn_type": 1}, {"attn_type": 2}, {"sample_softmax": 1}], ids=str)
def test_what_was_published_and_never_worked(change: dict[str, Any]) -> None:
    """F2: at construction, by name and value."""
    ((name, value),) = change.items()
    with pytest.raises(NotImplementedError, match=f"{name}: {value}"):
        CASE.config(**change)


def test_names_of_the_vocabulary() -> None:
    """`n_token` of the original and the published packages' first argument are the size, too; twice is an error."""
    assert TransfoXLConfig(n_token=101, cutoffs=[]).vocab_size == 101
    assert TransfoXLConfig(vocab_size_or_config_json_file=101, cutoffs=[]).vocab_size == 101
    assert TransfoXLConfig(101, cutoffs=[]).n_token == 101
    with pytest.raises(ValueError, match=r"vocab_size.* twice"):
        TransfoXLConfig(vocab_size=99, n_token=101, cutoffs=[])


def test_states_of_another_width_for_the_softmax() -> None:
    """The softmax on its own: as many labels as states."""
    crit = MODEL[TransfoXLLMHeadModel].crit
    with pytest.raises((ValueError, RuntimeError), match=r"labels|size|shape"):
        crit(torch.zeros(3, HIDDEN), torch.zeros(2, dtype=torch.long))
