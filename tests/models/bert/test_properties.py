"""Properties of the BERT models, on inputs that Hypothesis makes up (always the same ones)."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pytorch_transformers import (
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
)

from ..battery import Inputs, assert_equal_outputs, build, gradients, padded, tensors
from ..compare import assert_same
from ..reference import cross_entropy
from .tiny import CASE, HEAD_MODELS, HEADS, LAYERS, MODELS, SEGMENTS, VOCAB, real, tiny_labels

FEW = settings(max_examples=12, derandomize=True, database=None)

MODEL = {model_class: build(CASE, model_class) for model_class in MODELS}
"""Built once: no property changes its model."""


@st.composite
def batches(draw: st.DrawFn, *, holes: bool = False, min_rows: int = 1) -> Inputs:
    """Ids, a mask and segments: 1 to 5 rows of 1 to 9 places, rows of equal and of different length."""
    length = draw(st.integers(1, 9))
    lengths = draw(st.lists(st.integers(1, length), min_size=min_rows, max_size=5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    shape = (len(lengths), length)
    mask = (torch.arange(length) < torch.tensor(lengths)[:, None]).long()
    if holes:
        mask = mask * (torch.rand(shape, generator=generator) < 0.6)
        mask[:, 0] = 1
    return {
        "input_ids": torch.randint(0, VOCAB, shape, generator=generator),
        "attention_mask": mask,
        "token_type_ids": torch.randint(0, SEGMENTS, shape, generator=generator),
    }


def call(model_class: type[Any], inputs: Inputs, **more: Any) -> Any:
    """The output without a graph; choices are made of the rows, one choice each."""
    if model_class is BertForMultipleChoice:
        inputs = {name: value[:, None] for name, value in inputs.items()}
    with torch.no_grad():
        return MODEL[model_class](**inputs, **more)


def rows(inputs: Inputs, index: Any) -> Inputs:
    return {name: value[index] for name, value in inputs.items()}


def at_real_places(tensor: Tensor, mask: Tensor) -> Tensor:
    """[B, T, ...] -> [N, ...]; other tensors as they are."""
    return tensor[mask] if tensor.shape[:2] == mask.shape else tensor


@pytest.mark.parametrize("model_class", MODELS)
@FEW
@given(inputs=batches(holes=True, min_rows=2))
def test_rows_do_not_see_each_other(model_class: type[Any], inputs: Inputs) -> None:
    """Each row alone gives what it gives in the batch."""
    together = tensors(call(model_class, inputs))
    for row in range(len(inputs["input_ids"])):
        alone = tensors(call(model_class, rows(inputs, slice(row, row + 1))))
        for one, other in zip(alone, together, strict=True):
            assert_same(one[0], other[row], f"row {row}")


@pytest.mark.parametrize("model_class", MODELS)
@FEW
@given(inputs=batches(holes=True, min_rows=2), data=st.data())
def test_order_of_rows_is_kept(model_class: type[Any], inputs: Inputs, data: st.DataObject) -> None:
    """Shuffled rows give shuffled results: packing sorts by length, and must put everything back."""
    order = torch.tensor(data.draw(st.permutations(range(len(inputs["input_ids"])))))
    straight, shuffled = tensors(call(model_class, inputs)), tensors(call(model_class, rows(inputs, order)))
    for one, other in zip(shuffled, straight, strict=True):
        assert_same(one, other[order], "shuffled")


@pytest.mark.parametrize("model_class", MODELS)
@FEW
@given(inputs=batches(), extra=st.integers(0, 9), seed=st.integers(0, 99))
def test_padding_is_not_seen(model_class: type[Any], inputs: Inputs, extra: int, seed: int) -> None:
    mask, length = real(inputs), inputs["input_ids"].shape[1]
    short, long = call(model_class, inputs), call(model_class, padded(inputs, extra, seed, VOCAB))
    for one, other in zip(tensors(long), tensors(short), strict=True):
        trimmed = one[:, :length] if other.shape[:2] == mask.shape and model_class is not BertForMultipleChoice else one
        assert_same(at_real_places(trimmed, mask), at_real_places(other, mask), f"{extra} more places")


@pytest.mark.parametrize("model_class", MODELS)
@FEW
@given(inputs=batches(holes=True))
def test_packed_is_padded(model_class: type[Any], inputs: Inputs) -> None:
    """The default path against the explicit one, which never packs; zeros where nothing is defined."""
    mask = real(inputs)
    default = call(model_class, inputs, unpad=True) if model_class is BertModel else call(model_class, inputs)
    explicit = call(model_class, inputs, output_attentions=True)
    for one, other in zip(tensors(default), tensors(explicit), strict=False):
        assert_same(at_real_places(one, mask), at_real_places(other, mask), "packed")
    if model_class in (BertModel, BertForTokenClassification):
        assert not tensors(default)[0][~mask].any()


@pytest.mark.parametrize("model_class", [BertForPreTraining, BertForMaskedLM, BertForTokenClassification])
@FEW
@given(inputs=batches(holes=True))
def test_packed_training_is_padded_training(model_class: type[Any], inputs: Inputs) -> None:
    """Loss and gradients of every parameter, with logits and (for the vocabulary) without."""
    model = MODEL[model_class]
    labels = tiny_labels(model_class, inputs)
    lean = {} if model_class is BertForTokenClassification else {"output_logits": False}
    padded_loss = model(**inputs, **labels, output_hidden_states=True).loss
    packed_loss = model(**inputs, **labels, **lean).loss
    assert_same(packed_loss, padded_loss, "loss")
    ours, expected = gradients(model, packed_loss), gradients(model, padded_loss)
    for name in ours.keys() | expected.keys():
        zeros = torch.zeros_like(model.get_parameter(name))
        assert_same(ours.get(name, zeros), expected.get(name, zeros), name)


@FEW
@given(
    inputs=batches(), heads=st.dictionaries(st.integers(0, LAYERS - 1), st.sets(st.integers(0, HEADS - 1), max_size=4))
)
def test_pruned_is_masked(inputs: Inputs, heads: dict[int, set[int]]) -> None:
    """Heads that are gone, in any order of calls, equal heads that are multiplied by zero."""
    mask = torch.ones(LAYERS, HEADS)
    for layer, gone in heads.items():
        mask[layer, list(gone)] = 0.0
    pruned = build(CASE, BertModel)
    for layer, gone in heads.items():
        for head in sorted(gone, reverse=layer == 1):
            pruned.prune_heads({layer: [head]})
    expected = call(BertModel, inputs, head_mask=mask)
    with torch.no_grad():
        assert_equal_outputs(pruned(**inputs), expected, "padded")
        expected = call(BertModel, inputs, head_mask=mask, unpad=True)
        assert_equal_outputs(pruned(**inputs, unpad=True), expected, "packed")


@pytest.mark.parametrize("model_class", HEAD_MODELS)
@FEW
@given(inputs=batches(min_rows=2), seed=st.integers(0, 99))
def test_ignored_labels_teach_nothing(model_class: type[Any], inputs: Inputs, seed: int) -> None:
    """-1, -100 and any other negative number are the same: the loss is that of the labels that are left."""
    shaped = {name: v[:, None] for name, v in inputs.items()} if model_class is BertForMultipleChoice else inputs
    labels = tiny_labels(model_class, shaped, seed)
    if model_class is BertForMultipleChoice:
        labels = {"labels": torch.zeros(len(inputs["input_ids"]), dtype=torch.long)}
    for label in labels.values():
        label[-1] = -1
    others = {name: torch.where(value < 0, torch.full_like(value, -100), value) for name, value in labels.items()}
    odd = {name: torch.where(value < 0, torch.full_like(value, -7), value) for name, value in labels.items()}
    fewer, fewer_labels = rows(inputs, slice(0, -1)), rows(labels, slice(0, -1))
    expected = call(model_class, fewer, **fewer_labels).loss
    for given_labels in (labels, others, odd):
        assert_same(call(model_class, inputs, **given_labels).loss, expected, "without the last row")


@FEW
@given(inputs=batches(min_rows=2), seed=st.integers(0, 99))
def test_loss_is_the_mean_over_labels(inputs: Inputs, seed: int) -> None:
    """Over labelled rows or tokens, not over rows of tokens: -log p of each, added and divided by their number."""
    for model_class in (BertForSequenceClassification, BertForTokenClassification, BertForMaskedLM):
        labels = tiny_labels(model_class, inputs, seed)["labels"]
        output = call(model_class, inputs, labels=labels)
        assert_same(output.loss, cross_entropy(output.logits.double().numpy(), labels.numpy()), model_class.__name__)
    places = tiny_labels(BertForQuestionAnswering, inputs, seed)
    output = call(BertForQuestionAnswering, inputs, **places)
    start = cross_entropy(output.start_logits.double().numpy(), places["start_positions"].numpy())
    end = cross_entropy(output.end_logits.double().numpy(), places["end_positions"].numpy())
    assert_same(output.loss, (start + end) / 2, "span")


@FEW
@given(inputs=batches(), kind=st.sampled_from([torch.bool, torch.int32, torch.float32, torch.uint8]))
def test_type_of_the_mask_does_not_matter(inputs: Inputs, kind: torch.dtype) -> None:
    other = {**inputs, "attention_mask": inputs["attention_mask"].to(kind)}
    for unpad in (False, True):
        expected = call(BertModel, inputs, unpad=unpad)
        assert_equal_outputs(call(BertModel, other, unpad=unpad), expected, str(kind), exact=True)


@FEW
@given(inputs=batches(holes=True))
def test_a_full_mask_is_no_mask(inputs: Inputs) -> None:
    """No mask, no segments and no positions mean ones, zeros and 0, 1, 2, ..."""
    ids = inputs["input_ids"].clamp(min=1)
    expected = call(BertModel, {"input_ids": ids})
    explicit = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
        "position_ids": torch.arange(ids.shape[1]).expand_as(ids),
    }
    assert_equal_outputs(call(BertModel, explicit), expected, "defaults")
