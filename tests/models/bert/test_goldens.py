"""Recorded outputs of the original program, google-research/bert on TensorFlow 1 operations, float32.

The checkpoint's values are read from the `.npz` beside it and renamed by the small table below, which is written here a
second time on purpose: it shares nothing with the library's converter. The recorded classifier and question answering
runs, whose weights exist only as TensorFlow checkpoints, are in `test_original_goldens.py`.
"""

import json
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from pytorch_transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertModel,
)
from shared_data import shared

from ..battery import Inputs
from ..compare import MAX_ABS, assert_same
from ..reference import NumpyBert, cross_entropy

# Which file was computed with which formula: the original changed from the exact gelu to the tanh form in 2019.
FILES = {"gelu": "pretraining_reference_erf.npz", "gelu_tanh": "pretraining_reference.npz"}

# The bounds are those of `compare`. Another float32 implementation adds in another order: sums of 64 products of values
# up to 6, over three layers, then differ by a few 1e-7; the recorded logits stay below 2 and are no worse.

RENAME = (
    ("encoder/layer_", "encoder/layer/"),
    ("/kernel", "/weight"),
    ("/gamma", "/weight"),
    ("/beta", "/bias"),
    ("_embeddings", "_embeddings/weight"),
    ("output_weights", "weight"),
    ("output_bias", "bias"),
)


def renamed(variables: dict[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
    """Names of the original -> published PyTorch names; kernels are [in, out] there, [out, in] here."""
    parameters: dict[str, NDArray[np.float32]] = {}
    for name, value in variables.items():
        if name == "global_step" or name.endswith(("/adam_m", "/adam_v")):
            continue
        target = name
        for old, new in RENAME:
            target = target.replace(old, new)
        parameters[target.replace("/", ".")] = value.T if name.endswith("/kernel") else value
    return parameters


@pytest.fixture(scope="module")
def parameters() -> dict[str, NDArray[np.float32]]:
    with np.load(shared("goldens", "bert", "pretraining_variables.npz")) as stored:
        return renamed(dict(stored))


@pytest.fixture(params=sorted(FILES))
def hidden_act(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def golden(hidden_act: str) -> dict[str, NDArray[Any]]:
    with np.load(shared("goldens", "bert", FILES[hidden_act])) as stored:
        return dict(stored)


def load(model_class: type[Any], parameters: dict[str, NDArray[np.float32]], hidden_act: str) -> Any:
    """A model whose every parameter comes from the checkpoint."""
    fields = json.loads(shared("goldens", "bert", "bert_config.json").read_text(encoding="utf-8"))
    model = model_class(BertConfig(**{**fields, "hidden_act": hidden_act}))
    state = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in parameters.items()}
    if model_class is BertModel:
        state = {name.removeprefix("bert."): value for name, value in state.items() if name.startswith("bert.")}
    if "cls.predictions.transform.dense.weight" in model.state_dict():
        state["cls.predictions.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"]
    own = model.state_dict()
    assert own.keys() <= state.keys()
    if model_class in (BertModel, BertForPreTraining):
        assert own.keys() == state.keys()
    model.load_state_dict({name: state[name] for name in own})
    return model.eval()


def arguments(golden: dict[str, NDArray[Any]]) -> Inputs:
    """Inputs under our names."""
    return {
        "input_ids": torch.from_numpy(golden["input_ids"]).long(),
        "attention_mask": torch.from_numpy(golden["input_mask"]),
        "token_type_ids": torch.from_numpy(golden["segment_ids"]).long(),
    }


def token_labels(golden: dict[str, NDArray[Any]]) -> Tensor:
    """Positions, ids and weights of the masked tokens as one label a token; a weight of 0 is no label."""
    labels = torch.full(golden["input_ids"].shape, -1)
    for row, (places, ids, weights) in enumerate(
        zip(golden["masked_lm_positions"], golden["masked_lm_ids"], golden["masked_lm_weights"], strict=True)
    ):
        for place, token, weight in zip(places, ids, weights, strict=True):
            if weight:
                labels[row, place] = int(token)
    return labels


def at_masked_places(logits: Tensor, golden: dict[str, NDArray[Any]]) -> Tensor:
    """[B, T, V] -> [B * predictions, V], the order of the recorded logits."""
    places = torch.from_numpy(golden["masked_lm_positions"]).long()
    return torch.stack([row[place] for row, place in zip(logits, places, strict=True)]).flatten(0, 1)


def masked_lm_loss(golden: dict[str, NDArray[Any]]) -> float:
    """The recorded loss with a plain mean: the original divides by the sum of weights + 1e-5 (run_pretraining.py)."""
    total = float(golden["masked_lm_weights"].sum())
    return float(golden["masked_lm_loss"]) * (total + 1e-5) / total


@pytest.mark.parametrize("path", ["fused", "explicit"])
def test_encoder(path: str, parameters: dict[str, Any], hidden_act: str, golden: dict[str, Any]) -> None:
    model = load(BertModel, parameters, hidden_act)
    explicit = path == "explicit"
    with torch.no_grad():
        output = model(**arguments(golden), output_hidden_states=True, output_attentions=explicit)
    assert_same(output.hidden_states[0], golden["embedding_output"], "embeddings")
    for layer in range(3):
        assert_same(output.hidden_states[layer + 1], golden[f"encoder_layer_{layer}"], f"layer {layer}")
        if explicit:
            assert_same(output.attentions[layer], golden[f"attention_probs_{layer}"], f"attention {layer}")
    assert_same(output.last_hidden_state, golden["sequence_output"], "sequence")
    assert_same(output.pooler_output, golden["pooled_output"], "pooled")


def test_packed_encoder(parameters: dict[str, Any], hidden_act: str, golden: dict[str, Any]) -> None:
    """The last row of the recorded mask has holes; packing keeps the tokens around them."""
    model = load(BertModel, parameters, hidden_act)
    inputs = arguments(golden)
    kept = inputs["attention_mask"].bool()
    assert not kept[3, 4]
    assert kept[3, 5]
    with torch.no_grad():
        output = model(**inputs, unpad=True)
    assert_same(output.last_hidden_state[kept], golden["sequence_output"][kept.numpy()], "packed")
    assert_same(output.pooler_output, golden["pooled_output"], "packed: pooled")


def test_pretraining_heads(parameters: dict[str, Any], hidden_act: str, golden: dict[str, Any]) -> None:
    model = load(BertForPreTraining, parameters, hidden_act)
    labels = {
        "masked_lm_labels": token_labels(golden),
        "next_sentence_label": torch.from_numpy(golden["next_sentence_labels"]).long(),
    }
    with torch.no_grad():
        output = model(**arguments(golden), **labels)
        sparse = model(**arguments(golden), **labels, output_logits=False)
    logits = at_masked_places(output.prediction_logits, golden)
    assert_same(logits, golden["masked_lm_logits"], "MLM logits")
    assert_same(logits.log_softmax(-1), golden["masked_lm_log_probs"], "MLM log probabilities")
    assert_same(output.seq_relationship_logits, golden["next_sentence_logits"], "NSP logits")
    assert_same(
        output.seq_relationship_logits.log_softmax(-1), golden["next_sentence_log_probs"], "NSP log probabilities"
    )
    for name, result in (("full", output), ("labelled places only", sparse)):
        assert_same(result.masked_lm_loss, masked_lm_loss(golden), f"{name}: MLM loss")
        assert_same(result.next_sentence_loss, golden["next_sentence_loss"], f"{name}: NSP loss")
        total = masked_lm_loss(golden) + float(golden["next_sentence_loss"])
        assert_same(result.loss, total, f"{name}: loss")


def test_single_heads(parameters: dict[str, Any], hidden_act: str, golden: dict[str, Any]) -> None:
    """The two halves of pre-training as models of their own, from the same checkpoint."""
    inputs = arguments(golden)
    with torch.no_grad():
        lm = load(BertForMaskedLM, parameters, hidden_act)(**inputs, labels=token_labels(golden))
        label = torch.from_numpy(golden["next_sentence_labels"]).long()
        pair = load(BertForNextSentencePrediction, parameters, hidden_act)(**inputs, next_sentence_label=label)
    assert_same(at_masked_places(lm.logits, golden), golden["masked_lm_logits"], "MLM logits")
    assert_same(lm.loss, masked_lm_loss(golden), "MLM loss")
    assert_same(pair.logits, golden["next_sentence_logits"], "NSP logits")
    assert_same(pair.loss, golden["next_sentence_loss"], "NSP loss")


def test_formulas_can_be_told_apart(parameters: dict[str, Any]) -> None:
    """The wrong form of gelu is off by far more than the bounds, so these goldens do check the activation."""
    with np.load(shared("goldens", "bert", FILES["gelu"])) as golden:
        model = load(BertModel, parameters, "gelu_tanh")
        with torch.no_grad():
            wrong = model(**arguments(dict(golden))).last_hidden_state
        assert float(np.abs(wrong.numpy() - golden["sequence_output"]).max()) > 10 * MAX_ABS


def test_defaults_and_single_token(parameters: dict[str, Any]) -> None:
    """No mask and no segments given: all ones, all zeros; and a sequence of one token."""
    model = load(BertModel, parameters, "gelu_tanh")
    with np.load(shared("goldens", "bert", "pretraining_reference_edge.npz")) as edge, torch.no_grad():
        for name in ("default", "one"):
            for switches in ({}, {"unpad": True}, {"output_attentions": True}):
                output = model(torch.from_numpy(edge[f"{name}_input_ids"]).long(), **switches)
                assert_same(output.last_hidden_state, edge[f"{name}_sequence_output"], name)
                assert_same(output.pooler_output, edge[f"{name}_pooled_output"], f"{name}: pooled")


def test_fully_masked_row_is_refused(parameters: dict[str, Any]) -> None:
    """The original computes something for a row without tokens; here it is an error with the row's number."""
    model = load(BertModel, parameters, "gelu_tanh")
    with np.load(shared("goldens", "bert", "pretraining_reference_edge.npz")) as edge:
        ids = torch.from_numpy(edge["allmasked_input_ids"]).long()
    with pytest.raises(ValueError, match=r"attention_mask.*row 0"):
        model(ids, torch.zeros_like(ids))


def test_numpy_reference(parameters: dict[str, Any], hidden_act: str, golden: dict[str, Any]) -> None:
    """The NumPy forward that the other tests lean on is itself held to the original, heads included."""
    reference = NumpyBert(parameters, heads=4, hidden_act=hidden_act)
    encoded = reference.encode(golden["input_ids"], golden["input_mask"], golden["segment_ids"])
    for layer in range(3):
        assert_same(encoded.hidden_states[layer + 1], golden[f"encoder_layer_{layer}"], f"layer {layer}")
        assert_same(encoded.attentions[layer], golden[f"attention_probs_{layer}"], f"attention {layer}")
    assert_same(encoded.pooled, golden["pooled_output"], "pooled")
    places = golden["masked_lm_positions"]
    chosen = np.take_along_axis(encoded.last, places[..., None], axis=1).reshape(-1, 32)
    logits = reference.masked_lm(chosen)
    assert_same(logits, golden["masked_lm_logits"], "MLM logits")
    pair = reference.next_sentence(encoded.pooled)
    assert_same(pair, golden["next_sentence_logits"], "NSP logits")
    assert_same(cross_entropy(pair, golden["next_sentence_labels"]), golden["next_sentence_loss"], "NSP loss")


def test_numpy_reference_on_a_fully_masked_row(parameters: dict[str, Any]) -> None:
    """Scores near -10000 keep only three decimals in float32, so the original itself is good to 1e-3 here."""
    reference = NumpyBert(parameters, heads=4, hidden_act="gelu_tanh", dtype=np.float32)
    with np.load(shared("goldens", "bert", "pretraining_reference_edge.npz")) as edge:
        ids, segments = edge["allmasked_input_ids"], edge["allmasked_segment_ids"]
        encoded = reference.encode(ids, np.zeros_like(ids), segments)
        assert_same(encoded.last, edge["allmasked_sequence_output"], "all masked", max_abs=1e-3, max_std=1e-4)
