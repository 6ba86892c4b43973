"""Arguments of a wrong kind, and labels of a wrong shape: an error that names the argument and says what to do.

What the battery of all families checks (ids out of range, masks of another shape, …) is in `battery.py`.
"""

from typing import Any

import numpy as np
import pytest
import torch

from pytorch_transformers import (
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
)
from pytorch_transformers.nn.checks import check_classes, check_device, check_label_shape, check_tensor
from pytorch_transformers.nn.losses import classification_loss, regression_loss, span_loss
from pytorch_transformers.nn.values import layers_and_heads, real_number, whole_number

from ..battery import build
from ..compare import assert_same
from .tiny import CASE, HEAD_MODELS, HEADS, LAYERS, MODELS, tiny_inputs, tiny_labels

# --- the checks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [[1, 2], np.ones(2), 3, "x", None])
def test_what_is_no_tensor(value: Any) -> None:
    with pytest.raises(TypeError, match=rf"ids: expected a torch.Tensor, found {type(value).__name__}.*torch.tensor"):
        check_tensor("ids", value)


def test_tensors_on_two_devices() -> None:
    with pytest.raises(ValueError, match=r"mask is on meta, ids on cpu; move it with \.to\('cpu'\)"):
        check_device("mask", torch.ones(2, device="meta"), "ids", torch.ones(2))


@pytest.mark.parametrize("value", [1.0, "1", None, True, [1], float("nan"), 0])
def test_what_is_no_whole_number_of_at_least_1(value: Any) -> None:
    with pytest.raises(ValueError, match=r"size: .* must be a whole number of at least 1"):
        whole_number("size", value, 1)
    assert type(whole_number("size", np.int32(3), 1)) is int


@pytest.mark.parametrize("value", ["1", None, True, float("nan"), float("-inf"), 1j, 1.01])
def test_what_is_no_number_from_0_to_1(value: Any) -> None:
    with pytest.raises(ValueError, match=r"share: .* must be a number from 0\.0 to 1\.0"):
        real_number("share", value, 0.0, 1.0)


@pytest.mark.parametrize(
    ("heads", "error", "words"),
    [
        ([1], TypeError, r"layer -> heads.*\[1\]"),
        ({"0": [1]}, ValueError, "layer: '0'"),
        ({0: 1}, TypeError, "layer 0, found 1"),
        ({0: "12"}, TypeError, "layer 0, found '12'"),
        ({0: [1.0]}, ValueError, r"layer 0, head: 1\.0"),
        ({0.0: [1]}, ValueError, r"layer: 0\.0"),
    ],
)
def test_heads_that_are_none(heads: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        layers_and_heads(heads)
    with pytest.raises(error, match=words):
        build(CASE, BertModel).prune_heads(heads)


# --- labels -----------------------------------------------------------------------------------------------------------


def test_shapes_of_labels() -> None:
    good: list[tuple[tuple[int, ...], tuple[int, ...]]]
    good = [((2, 3), (2, 3)), ((2, 3), (6,)), ((4,), (4,)), ((4,), (4, 1)), ((), (1,))]
    for shape, labels in good:
        check_label_shape("labels", torch.zeros(labels), shape)
    bad: list[tuple[tuple[int, ...], tuple[int, ...]]]
    bad = [((2, 3), (3, 2)), ((2, 3), (6, 1)), ((4,), (1, 4)), ((4,), (2, 2)), ((2, 3), (2, 3, 1))]
    for shape, labels in bad:
        with pytest.raises(ValueError, match="labels: found shape"):
            check_label_shape("labels", torch.zeros(labels), shape)
    with pytest.raises(ValueError, match="labels: found 9, allowed is 0 to 8"):
        check_classes("labels", torch.tensor([9]), (1,), 9)


def test_losses_refuse_turned_labels() -> None:
    """Once accepted because the number is right, with every label at a wrong place."""
    logits, labels = torch.randn(2, 3, 5), torch.randint(0, 5, (2, 3))
    with pytest.raises(ValueError, match=r"labels: found shape \[3, 2\], expected \[2, 3\]"):
        classification_loss(logits, labels.T)
    assert_same(classification_loss(logits, labels.flatten()), classification_loss(logits, labels), "flat")
    with pytest.raises(ValueError, match=r"labels: found shape \[1, 4\], expected \[4\]"):
        regression_loss(torch.randn(4, 1), torch.randn(1, 4))
    start = torch.zeros(4, dtype=torch.long)
    with pytest.raises(ValueError, match=r"end_positions: found shape \[1, 4\], expected \[4\]"):
        span_loss(torch.randn(4, 6), torch.randn(4, 6), start[:, None], start[None])


@pytest.mark.parametrize("model_class", HEAD_MODELS)
def test_labels_that_are_no_tensor(model_class: type[Any]) -> None:
    model, inputs = build(CASE, model_class), tiny_inputs(model_class)
    labels = tiny_labels(model_class, inputs)
    has_lm = "output_logits" in model_class.forward.__kwdefaults__
    for switches in ({}, {"output_logits": False}) if has_lm else ({},):
        for name, value in labels.items():
            with pytest.raises(TypeError, match=f"{name}: expected a torch.Tensor, found list"):
                model(**inputs, **{**labels, name: value.tolist()}, **switches)


@pytest.mark.parametrize("output_logits", [True, False])
@pytest.mark.parametrize("mask", ["none", "right"])
def test_turned_labels_of_masked_words(mask: str, output_logits: bool) -> None:
    model, inputs = build(CASE, BertForMaskedLM), tiny_inputs(BertForMaskedLM, mask=mask)
    labels = tiny_labels(BertForMaskedLM, inputs)["labels"]
    with pytest.raises(ValueError, match=r"labels: found shape \[7, 13\], expected \[13, 7\]"):
        model(**inputs, labels=labels.T.contiguous(), output_logits=output_logits)


def test_labels_of_tokens_may_be_flat() -> None:
    """With padding they leave it out as the rectangle does."""
    model, inputs = build(CASE, BertForTokenClassification), tiny_inputs(BertForTokenClassification)
    labels = torch.ones_like(inputs["input_ids"])
    expected = model(**inputs, labels=labels).loss
    assert_same(model(**inputs, labels=labels.flatten()).loss, expected, "flat")
    with pytest.raises(ValueError, match="labels: found shape"):
        model(**inputs, labels=labels.T.contiguous())


@pytest.mark.parametrize("model_class", [BertForSequenceClassification, BertForQuestionAnswering])
def test_labels_may_be_a_column(model_class: type[Any]) -> None:
    model, inputs = build(CASE, model_class), tiny_inputs(model_class)
    labels = tiny_labels(model_class, inputs)
    expected = model(**inputs, **labels).loss
    assert_same(model(**inputs, **{k: v[:, None] for k, v in labels.items()}).loss, expected, "column")


# --- inputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model_class", MODELS)
@pytest.mark.parametrize("name", ["input_ids", "attention_mask", "token_type_ids", "position_ids", "head_mask"])
def test_inputs_that_are_no_tensor(model_class: type[Any], name: str) -> None:
    model, inputs = build(CASE, model_class), tiny_inputs(model_class)
    inputs["position_ids"] = torch.zeros_like(inputs["input_ids"])
    inputs["head_mask"] = torch.ones(LAYERS, HEADS)
    for value, kind in ((inputs[name].tolist(), "list"), (inputs[name].numpy(), "ndarray")):
        with pytest.raises(TypeError, match=f"{name}: expected a torch.Tensor, found {kind}"):
            model(**{**inputs, name: value})


@pytest.mark.parametrize("model_class", [BertModel, BertForMultipleChoice])
def test_vectors_that_are_no_tensor(model_class: type[Any]) -> None:
    with pytest.raises(TypeError, match=r"inputs_embeds: expected a torch\.Tensor"):
        build(CASE, model_class)(inputs_embeds=np.zeros((2, 3, 40), dtype=np.float32))


def test_vectors_of_another_type() -> None:
    model = build(CASE, BertModel)
    vectors = torch.randn(2, 3, 40, generator=torch.Generator().manual_seed(0))
    for dtype in (torch.float64, torch.bfloat16, torch.long):
        with pytest.raises(ValueError, match=rf"inputs_embeds: found {dtype}.*torch\.float32.*\.to"):
            model(inputs_embeds=vectors.to(dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(inputs_embeds=vectors.bfloat16()).last_hidden_state.isfinite().all()


@pytest.mark.parametrize("name", ["attention_mask", "token_type_ids", "position_ids", "head_mask"])
def test_inputs_on_two_devices(name: str) -> None:
    inputs = {
        **tiny_inputs(BertModel),
        "position_ids": torch.zeros(1, 7).long(),
        "head_mask": torch.ones(LAYERS, HEADS),
    }
    with pytest.raises(ValueError, match=f"{name} is on meta, input_ids on cpu"):
        build(CASE, BertModel)(**{**inputs, name: inputs[name].to("meta")})


@pytest.mark.parametrize("size", [61.5, "61", True, 0])
def test_vocabulary_of_an_impossible_size(size: Any) -> None:
    with pytest.raises(ValueError, match=f"new_num_tokens: {size!r}, must be a whole number of at least 1"):
        build(CASE, BertModel).resize_token_embeddings(size)
