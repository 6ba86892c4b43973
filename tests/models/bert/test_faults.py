"""Faults that users of earlier BERT libraries reported, and bad input: each must be right, or an error that says how.

The names c3, k1 and so on are those of the project's list of known faults.
"""

import inspect
import json
import logging
import math
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pytorch_transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    BertPreTrainedModel,
)
from pytorch_transformers.models.warn import warn_once

from ..battery import Inputs, assert_equal_outputs, build, fields, gradients
from ..compare import assert_same
from .tiny import CASE, HEAD_MODELS, MODELS, VOCAB, real, tiny_config, tiny_inputs, tiny_labels

Change = Callable[[dict[str, Tensor]], dict[str, Tensor]]


def save_state(folder: Path, state: dict[str, Tensor], config: BertConfig) -> Path:
    """A folder as an older library wrote it: `config.json` and `pytorch_model.bin`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config.to_dict()), encoding="utf-8")
    torch.save({name: value.clone() for name, value in state.items()}, folder / "pytorch_model.bin")
    return folder


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def assert_same_parameters(ours: nn.Module, expected: nn.Module) -> None:
    ours_state, expected_state = ours.state_dict(), expected.state_dict()
    assert ours_state.keys() == expected_state.keys()
    for name, value in expected_state.items():
        assert torch.equal(ours_state[name], value), name


# --- B: loading -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model_class", [BertModel, BertForSequenceClassification, BertForPreTraining])
def test_b1_module_prefix(model_class: type[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Weights of a data-parallel wrapper load whole, and the prefix is mentioned."""
    model = build(CASE, model_class)
    folder = save_state(tmp_path, {f"module.{k}": v for k, v in model.state_dict().items()}, model.config)
    with caplog.at_level(logging.INFO):
        loaded, info = model_class.from_pretrained(folder, output_loading_info=True)
    assert_same_parameters(loaded, model)
    assert not any(info.values())
    assert any("module." in record.getMessage() for record in caplog.records)


def test_b1_no_name_matches(tmp_path: Path) -> None:
    """Not one weight fits: an error with a few names of each side, never a silently random model."""
    model = build(CASE, BertModel)
    folder = save_state(tmp_path, {f"zz.{k}.w": v for k, v in model.state_dict().items()}, model.config)
    with pytest.raises((OSError, ValueError, RuntimeError)) as caught:
        BertModel.from_pretrained(folder)
    for part in ("zz.", "embeddings.word_embeddings.weight", str(folder)):
        assert part in str(caught.value)


def test_b2_missing_weights_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An encoder under a new head: one warning with exactly the two new parameters; no buffer is ever listed."""
    encoder = build(CASE, BertModel)
    state = dict(encoder.state_dict())
    state["embeddings.position_ids"] = torch.arange(20)[None]  # a buffer that older files contain
    folder = save_state(tmp_path, state, encoder.config)
    with caplog.at_level(logging.INFO):
        loaded, info = BertForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert set(info["missing_keys"]) == {"classifier.weight", "classifier.bias"}
    assert list(info["unexpected_keys"]) == []
    assert list(info["mismatched_keys"]) == []
    assert list(info["error_msgs"]) == []
    said = warnings_of(caplog)
    assert len(said) == 1
    assert "classifier.weight" in said[0]
    assert "classifier.bias" in said[0]
    assert "position_ids" not in said[0]
    assert "query" not in said[0]
    assert_same_parameters(loaded.bert, encoder)
    assert 0.0 < float(loaded.classifier.weight.detach().std()) < 0.05, "the family's rule, not that of torch"
    assert not loaded.classifier.bias.any()


def test_b2_unused_weights_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A pre-training file under the bare encoder: the heads are listed as unused, the tied decoder is no surprise."""
    full = build(CASE, BertForPreTraining)
    folder = save_state(tmp_path, full.state_dict(), full.config)
    with caplog.at_level(logging.INFO):
        loaded, info = BertModel.from_pretrained(folder, output_loading_info=True)
    heads = {name for name in full.state_dict() if name.startswith("cls.")}
    assert list(info["missing_keys"]) == []
    assert set(info["unexpected_keys"]) == heads
    assert "cls.seq_relationship.weight" in warnings_of(caplog)[0]
    assert_same_parameters(loaded, full.bert)
    caplog.clear()
    with caplog.at_level(logging.INFO):
        _, info = BertForPreTraining.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values())
    assert not warnings_of(caplog)


def test_b2_a_missing_tied_decoder_is_not_missing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Files may hold the shared matrix once, or twice; both are complete."""
    full = build(CASE, BertForMaskedLM)
    state = {name: value for name, value in full.state_dict().items() if name != "cls.predictions.decoder.weight"}
    with caplog.at_level(logging.INFO):
        loaded, info = BertForMaskedLM.from_pretrained(
            save_state(tmp_path, state, full.config), output_loading_info=True
        )
    assert not any(info.values())
    assert not warnings_of(caplog)
    assert loaded.cls.predictions.decoder.weight is loaded.bert.embeddings.word_embeddings.weight
    assert_same_parameters(loaded, full)


@pytest.mark.parametrize("model_class", [*MODELS, BertConfig])
def test_b3_nothing_there(model_class: type[Any], tmp_path: Path) -> None:
    """A wrong path raises an OSError with the path and the names that would work."""
    place = tmp_path / "no" / "such" / "place"
    with pytest.raises(OSError, match=r"bert-base-uncased") as caught:
        model_class.from_pretrained(str(place))
    assert str(place) in str(caught.value)


def test_b3_folder_without_weights(tmp_path: Path) -> None:
    """A folder with only a configuration: the files that were looked for are named."""
    tiny_config().save_pretrained(tmp_path)
    with pytest.raises(OSError, match=r"model\.safetensors") as caught:
        BertModel.from_pretrained(tmp_path)
    assert "pytorch_model.bin" in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_b3_folder_without_configuration(tmp_path: Path) -> None:
    build(CASE, BertModel).save_pretrained(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(OSError, match=r"config\.json"):
        BertModel.from_pretrained(tmp_path)


# --- loading: names, prefixes, shapes, files --------------------------------------------------------------------------


def _old_norm_names(state: dict[str, Tensor]) -> dict[str, Tensor]:
    def rename(name: str) -> str:
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")

    return {rename(name): value for name, value in state.items()}


def _without_prefix(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix("bert."): value for name, value in state.items()}


def _with_prefix(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"bert.{name}": value for name, value in state.items()}


@pytest.mark.parametrize(
    ("model_class", "change"),
    [
        (BertModel, _old_norm_names),
        (BertForPreTraining, _old_norm_names),
        (BertModel, _with_prefix),
        (BertForTokenClassification, _without_prefix),
        (BertForPreTraining, lambda state: _old_norm_names({f"module.{k}": v for k, v in state.items()})),
    ],
    ids=["gamma-encoder", "gamma-heads", "extra-prefix", "missing-prefix", "module-and-gamma"],
)
def test_old_names(model_class: type[Any], change: Change, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Gamma and beta, `module.`, a `bert.` too many or too few: nothing is missing, nothing left over."""
    model = build(CASE, model_class)
    folder = save_state(tmp_path, change(model.state_dict()), model.config)
    loaded, info = model_class.from_pretrained(folder, output_loading_info=True)
    assert_same_parameters(loaded, model)
    assert not any(info.values())
    assert all("module." in message for message in warnings_of(caplog)), "nothing but the prefix is worth a warning"
    direct = model_class.from_pretrained(folder, state_dict=change(model.state_dict()))
    assert_same_parameters(direct, model)


def test_shape_mismatch_names_key_and_file(tmp_path: Path) -> None:
    model = build(CASE, BertForSequenceClassification)
    model.save_pretrained(tmp_path)
    with pytest.raises((ValueError, RuntimeError)) as caught:
        BertForSequenceClassification.from_pretrained(tmp_path, num_labels=5)
    message = str(caught.value)
    for part in ("classifier.weight", "classifier.bias", "[3, 40]", "[5, 40]", str(tmp_path), "model.safetensors"):
        assert part in message


def test_shape_mismatch_in_the_encoder(tmp_path: Path) -> None:
    build(CASE, BertModel).save_pretrained(tmp_path)
    with pytest.raises((ValueError, RuntimeError), match=r"word_embeddings\.weight"):
        BertModel.from_pretrained(tmp_path, vocab_size=98)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("kept", [0, 7, 0.5])
def test_truncated_file_is_named(name: str, kept: float, tmp_path: Path) -> None:
    build(CASE, BertModel).save_pretrained(tmp_path, safe_serialization=name.endswith(".safetensors"))
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
    with pytest.raises(OSError, match=name.replace(".", r"\.")) as caught:
        BertModel.from_pretrained(tmp_path)
    assert str(tmp_path) in str(caught.value)


class _Runs:
    """A pickle that runs code when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_pickle_with_code_is_refused(tmp_path: Path) -> None:
    build(CASE, BertModel).save_pretrained(tmp_path, safe_serialization=False)
    mark = tmp_path / "was_run"
    torch.save({"embeddings.word_embeddings.weight": _Runs(mark)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(OSError, match=r"pytorch_model\.bin"):
        BertModel.from_pretrained(tmp_path)
    assert not mark.exists()


def test_single_file_and_state_dict(tmp_path: Path) -> None:
    """One weights file beside its configuration; or weights from memory."""
    model = build(CASE, BertForMaskedLM)
    model.save_pretrained(tmp_path)
    assert_same_parameters(BertForMaskedLM.from_pretrained(tmp_path / "model.safetensors"), model)
    other = build(CASE, BertForMaskedLM, seed=4)
    assert_same_parameters(BertForMaskedLM.from_pretrained(tmp_path, state_dict=other.state_dict()), other)


def test_config_argument_and_overrides(tmp_path: Path) -> None:
    """`config=` replaces the file; keywords change single fields; neither changes the caller's object."""
    build(CASE, BertModel).save_pretrained(tmp_path)
    config = tiny_config(output_hidden_states=True)
    given = BertModel.from_pretrained(tmp_path, config=config)
    assert given.config.output_hidden_states is True
    changed = BertModel.from_pretrained(tmp_path, config=config, output_hidden_states=False, hidden_dropout_prob=0.4)
    assert changed.config.output_hidden_states is False
    assert changed.config.hidden_dropout_prob == 0.4
    assert config.output_hidden_states is True
    with pytest.raises((TypeError, ValueError), match="hiden_size"):
        BertModel.from_pretrained(tmp_path, hiden_size=3)


def test_dtype_of_loaded_weights(tmp_path: Path) -> None:
    build(CASE, BertForMaskedLM).save_pretrained(tmp_path)
    loaded = BertForMaskedLM.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.bfloat16}
    assert loaded.cls.predictions.decoder.weight is loaded.bert.embeddings.word_embeddings.weight
    kept = BertForMaskedLM.from_pretrained(tmp_path)
    assert {parameter.dtype for parameter in kept.parameters()} == {torch.float32}


def test_loaded_weights_are_independent_of_the_file(tmp_path: Path) -> None:
    """Training a loaded model does not write into a mapped file, nor does removing the file break the model."""
    model = build(CASE, BertModel)
    model.save_pretrained(tmp_path)
    content = (tmp_path / "model.safetensors").read_bytes()
    first, second = BertModel.from_pretrained(tmp_path), BertModel.from_pretrained(tmp_path)
    with torch.no_grad():
        for parameter in first.parameters():
            parameter.add_(1.0)
    assert_same_parameters(second, model)
    assert (tmp_path / "model.safetensors").read_bytes() == content
    shutil.rmtree(tmp_path)
    inputs = tiny_inputs(BertModel)
    assert_equal_outputs(second(**inputs), model(**inputs), "file removed", exact=True)


# --- configuration ----------------------------------------------------------------------------------------------------


def test_typo_in_config_is_an_error_with_a_suggestion() -> None:
    with pytest.raises((TypeError, ValueError), match=r"hiden_size.*hidden_size"):
        BertConfig(hiden_size=3)
    with pytest.raises((TypeError, ValueError), match=r"num_hiden_layers.*num_hidden_layers"):
        BertConfig.from_dict({"num_hiden_layers": 3})


def test_foreign_config_keys_are_kept(tmp_path: Path) -> None:
    values = {
        **tiny_config().to_dict(),
        "use_cache": True,
        "position_embedding_type": "absolute",
        "my_own": [1, {"a": 2}],
    }
    (tmp_path / "config.json").write_text(json.dumps(values), encoding="utf-8")
    config = BertConfig.from_pretrained(tmp_path)
    config.save_pretrained(tmp_path / "again")
    saved = json.loads((tmp_path / "again" / "config.json").read_text(encoding="utf-8"))
    for name in ("use_cache", "position_embedding_type", "my_own"):
        assert saved[name] == values[name]


def test_configurations_of_other_programs_are_read() -> None:
    """No key of the current transformers package looks like a typing error, and its values arrive."""
    transformers = pytest.importorskip("transformers", reason="its configuration is what is read here")
    theirs = transformers.BertConfig(hidden_size=40, num_attention_heads=5, num_labels=4).to_dict()
    config = BertConfig.from_dict(theirs)
    assert (config.hidden_size, config.num_attention_heads, config.num_labels) == (40, 5, 4)
    assert config.to_dict()["use_cache"] == theirs["use_cache"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"hidden_size": 41}, ("hidden_size", "41", "num_attention_heads", "5")),
        ({"hidden_act": "gellu"}, ("hidden_act", "gellu", "gelu_tanh")),
        ({"vocab_size": 0}, ("vocab_size", "0")),
        ({"num_hidden_layers": -1}, ("num_hidden_layers", "-1")),
        ({"hidden_dropout_prob": 1.5}, ("hidden_dropout_prob", "1.5")),
    ],
)
def test_impossible_config(values: dict[str, Any], words: tuple[str, ...]) -> None:
    """Sizes that do not fit are an error where the configuration (at the latest, the model) is built."""
    with pytest.raises(ValueError, match=words[0]) as caught:
        BertModel(tiny_config(**values))
    for word in words:
        assert word in str(caught.value)


def test_a_model_wants_a_configuration() -> None:
    """`BertModel("bert-base-uncased")` looks like loading; the error says what loads."""
    with pytest.raises((TypeError, ValueError), match="from_pretrained"):
        BertModel("bert-base-uncased")  # type: ignore[arg-type]


def test_callable_activation() -> None:
    """A function in place of a name."""
    by_name, by_function = build(CASE, BertModel, hidden_act="tanh"), build(CASE, BertModel, hidden_act=torch.tanh)
    inputs = tiny_inputs(BertModel)
    assert_equal_outputs(by_function(**inputs), by_name(**inputs), "callable", exact=True)


# --- C: inputs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model_class", MODELS)
def test_c1_sequence_longer_than_the_position_table(model_class: type[Any]) -> None:
    model = build(CASE, model_class)
    shape = (2, 4, 21) if model_class is BertForMultipleChoice else (2, 21)
    with pytest.raises(ValueError, match=r"21.*20|20.*21"):
        model(torch.ones(shape, dtype=torch.long))
    full = torch.ones((*shape[:-1], 20), dtype=torch.long)
    assert model(full)[0].isfinite().all()
    with pytest.raises(ValueError, match=r"21.*20|20.*21"):
        model(inputs_embeds=torch.zeros(*shape, 40))


@pytest.mark.parametrize(("value", "word"), [(20, "20"), (-1, "-1")])
def test_c1_position_ids_outside_the_table(value: int, word: str) -> None:
    model = build(CASE, BertModel)
    positions = torch.arange(7).repeat(2, 1)
    positions[1, 3] = value
    with pytest.raises(ValueError, match=rf"position_ids.*{word}") as caught:
        model(torch.ones(2, 7, dtype=torch.long), position_ids=positions)
    assert "19" in str(caught.value) or "20" in str(caught.value), "the limit"


def test_c2_padding_does_not_change_real_positions() -> None:
    """The check of the list: four ids against the same four with padding of other ids and other lengths."""
    model = build(CASE, BertModel)
    short = model(torch.tensor([[2, 5, 6, 3]]))
    for pads in ([0, 0], [7, 98], [0] * 16, [51, 0, 4]):
        ids = torch.tensor([[2, 5, 6, 3, *pads]])
        mask = torch.tensor([[1] * 4 + [0] * len(pads)])
        for switches in ({}, {"unpad": True}, {"output_attentions": True}):
            output = model(ids, mask, **switches)
            assert_same(output.last_hidden_state[:, :4], short.last_hidden_state, "real positions")
            assert_same(output.pooler_output, short.pooler_output, "pooled")


def test_c2_padding_without_a_mask_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Padding ids at the end and no mask: one warning, not one a call; none with a mask, none without padding."""
    warn_once.cache_clear()
    model = build(CASE, BertModel)
    ids = torch.tensor([[2, 5, 6, 3, 0, 0]])
    with caplog.at_level(logging.WARNING):
        model(ids, (ids != 0).long())
        model(ids[:, :4])
        assert not warnings_of(caplog)
        model(ids)
        model(ids)
    said = warnings_of(caplog)
    assert len(said) == 1
    assert "attention_mask" in said[0]


def test_a_model_without_a_padding_id() -> None:
    """`pad_token_id=None`: there is no padding to look for, and nothing to fail on."""
    ids = torch.tensor([[2, 5, 0]])
    expected = build(CASE, BertModel)(ids, torch.ones_like(ids))
    assert_equal_outputs(build(CASE, BertModel, pad_token_id=None)(ids), expected, "no padding id", exact=True)


@pytest.mark.parametrize("name", ["input_ids", "token_type_ids", "position_ids"])
def test_types_of_indices(name: str) -> None:
    """int32 works; what no table can be indexed with is an error with the argument's name, before any kernel."""
    model = build(CASE, BertModel)
    inputs = {**tiny_inputs(BertModel), "position_ids": torch.arange(7).expand(13, 7).contiguous()}
    expected = model(**inputs)
    assert_equal_outputs(model(**{**inputs, name: inputs[name].int()}), expected, "int32", exact=True)
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.bool, torch.float32):
        with pytest.raises(ValueError, match=rf"{name}.*{str(dtype).removeprefix('torch.')}"):
            model(**{**inputs, name: inputs[name].to(dtype)})


def _all_ignored(model_class: type[Any], inputs: Inputs, value: int) -> Inputs:
    return {name: torch.full_like(label, value) for name, label in tiny_labels(model_class, inputs).items()}


@pytest.mark.parametrize("value", [-1, -100])
@pytest.mark.parametrize("model_class", HEAD_MODELS)
def test_c3_no_label_to_learn_from(model_class: type[Any], value: int) -> None:
    """All labels ignored: a loss of 0.0 in the graph, and gradients of exactly zero."""
    model = build(CASE, model_class).train()
    inputs = tiny_inputs(model_class)
    has_lm = model_class in (BertForPreTraining, BertForMaskedLM)
    for switches in ({}, {"output_logits": False}) if has_lm else ({},):
        output = model(**inputs, **_all_ignored(model_class, inputs, value), **switches)
        assert output.loss.item() == 0.0
        found = gradients(model, output.loss)
        assert found
        assert all(not gradient.any() for gradient in found.values())


def test_c3_span_positions_beyond_the_sequence() -> None:
    """A span outside this window teaches nothing; beside one that is inside it does not count."""
    model = build(CASE, BertForQuestionAnswering).train()
    inputs = tiny_inputs(BertForQuestionAnswering, batch=2)
    outside = torch.tensor([7, 1000])
    loss = model(**inputs, start_positions=outside, end_positions=outside).loss
    assert loss.item() == 0.0
    assert all(not gradient.any() for gradient in gradients(model, loss).values())
    one = model(**inputs, start_positions=torch.tensor([2, 7]), end_positions=torch.tensor([3, 9])).loss
    first = {name: value[:1] for name, value in inputs.items()}
    alone = model(**first, start_positions=torch.tensor([2]), end_positions=torch.tensor([3])).loss
    assert_same(one, alone, "the other row alone")


EXPECTED_LABELS: dict[type[Any], list[str]] = {
    BertModel: [],
    BertForPreTraining: ["masked_lm_labels", "next_sentence_label"],
    BertForMaskedLM: ["labels"],
    BertForNextSentencePrediction: ["next_sentence_label"],
    BertForSequenceClassification: ["labels"],
    BertForMultipleChoice: ["labels"],
    BertForTokenClassification: ["labels"],
    BertForQuestionAnswering: ["start_positions", "end_positions"],
}


@pytest.mark.parametrize("model_class", MODELS)
def test_c4_order_of_positional_arguments(model_class: type[Any]) -> None:
    """Ids, mask, segments, positions, head mask, vectors, then labels; all else by keyword only, nothing swallowed."""
    parameters = list(inspect.signature(model_class.forward).parameters.values())[1:]
    by_place = [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    inputs = ["input_ids", "attention_mask", "token_type_ids", "position_ids", "head_mask", "inputs_embeds"]
    assert by_place == inputs + EXPECTED_LABELS[model_class]
    keyword_only = {p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    assert {"output_hidden_states", "output_attentions", "return_dict"} <= keyword_only
    assert all(p.default is None for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    with pytest.raises(TypeError, match="no_such_argument"):
        build(CASE, model_class)(**tiny_inputs(model_class), no_such_argument=1)


def test_c4_segments_in_place_of_the_mask() -> None:
    """`model(ids, segments)` of the older order: a row of zeros, or a 2, cannot be a mask."""
    model = build(CASE, BertModel)
    ids = torch.ones(2, 6, dtype=torch.long)
    with pytest.raises(ValueError, match="attention_mask"):
        model(ids, torch.zeros_like(ids))
    with pytest.raises(ValueError, match=r"attention_mask.*2"):
        model(ids, torch.full_like(ids, 2))


@pytest.mark.parametrize(("value", "word"), [(2, "2"), (-1, "-1")])
def test_c4_segments_outside_the_table(value: int, word: str) -> None:
    model = build(CASE, BertModel, type_vocab_size=2)
    segments = torch.zeros(2, 6, dtype=torch.long)
    segments[0, 5] = value
    with pytest.raises(ValueError, match=rf"token_type_ids.*{word}") as caught:
        model(torch.ones(2, 6, dtype=torch.long), token_type_ids=segments)
    assert "1" in str(caught.value).replace(word, "", 1), "the limit"


def test_c5_multiple_choice_shapes() -> None:
    model = build(CASE, BertForMultipleChoice)
    with pytest.raises(ValueError, match=r"\[batch, choices, tokens\].*\[1, 4\]"):
        model(torch.ones(1, 4, dtype=torch.long))
    assert model(torch.ones(1, 4, 5, dtype=torch.long)).logits.shape == (1, 4)
    assert model(torch.ones(3, 2, 5, dtype=torch.long)).logits.shape == (3, 2), "the number of choices is the data's"


@pytest.mark.parametrize("model_class", [m for m in MODELS if m is not BertForMultipleChoice])
@pytest.mark.parametrize("shape", [(5,), (2, 3, 4)])
def test_ids_of_another_rank(model_class: type[Any], shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"input_ids") as caught:
        build(CASE, model_class)(torch.ones(shape, dtype=torch.long))
    assert str(list(shape)) in str(caught.value) or str(shape) in str(caught.value)


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model_class", [m for m in HEAD_MODELS if m is not BertForQuestionAnswering])
def test_label_out_of_range_is_named(model_class: type[Any]) -> None:
    model = build(CASE, model_class)
    inputs = tiny_inputs(model_class)
    labels = tiny_labels(model_class, inputs)
    limits = {"masked_lm_labels": VOCAB, "next_sentence_label": 2}
    if model_class is BertForMaskedLM:
        limits["labels"] = VOCAB
    elif model_class is BertForMultipleChoice:
        limits["labels"] = 4
    else:
        limits["labels"] = 3
    for name, value in labels.items():
        wrong = value.clone()
        wrong.view(-1)[0] = limits[name]
        with pytest.raises(ValueError, match=rf"{name}.*{limits[name]}"):
            model(**inputs, **{**labels, name: wrong})


@pytest.mark.parametrize("model_class", HEAD_MODELS)
def test_labels_of_another_shape_or_type(model_class: type[Any]) -> None:
    model = build(CASE, model_class)
    inputs = tiny_inputs(model_class)
    labels = tiny_labels(model_class, inputs)
    for name, value in labels.items():
        with pytest.raises(ValueError, match=name):
            model(**inputs, **{**labels, name: value[:-1]})
        with pytest.raises(ValueError, match=name):
            model(**inputs, **{**labels, name: value.float() + 0.5})


def test_both_spellings_of_masked_lm_labels() -> None:
    model = build(CASE, BertForMaskedLM)
    inputs = tiny_inputs(BertForMaskedLM)
    labels = tiny_labels(BertForMaskedLM, inputs)["labels"]
    assert torch.equal(model(**inputs, labels=labels).loss, model(**inputs, masked_lm_labels=labels).loss)
    with pytest.raises((TypeError, ValueError), match="masked_lm_labels"):
        model(**inputs, labels=labels, masked_lm_labels=labels)
    output = model(**inputs)
    assert output.prediction_scores is output.logits


def test_pretraining_loss_is_the_sum_of_those_given() -> None:
    model = build(CASE, BertForPreTraining)
    inputs = tiny_inputs(BertForPreTraining)
    labels = tiny_labels(BertForPreTraining, inputs)
    both = model(**inputs, **labels)
    parts = {name: model(**inputs, **{name: value}) for name, value in labels.items()}
    assert_same(parts["masked_lm_labels"].loss, both.masked_lm_loss, "MLM alone")
    assert_same(parts["next_sentence_label"].loss, both.next_sentence_loss, "NSP alone")
    assert_same(both.loss, both.masked_lm_loss + both.next_sentence_loss, "sum")
    assert "loss" not in fields(model(**inputs))


@pytest.mark.parametrize("model_class", [BertForPreTraining, BertForMaskedLM])
def test_logits_are_left_out_only_with_labels(model_class: type[Any]) -> None:
    """`output_logits=False`: same loss, no logits of the vocabulary; without labels there is nothing else to return."""
    model = build(CASE, model_class)
    inputs = tiny_inputs(model_class)
    labels = tiny_labels(model_class, inputs)
    name = "logits" if model_class is BertForMaskedLM else "prediction_logits"
    full, lean = model(**inputs, **labels), model(**inputs, **labels, output_logits=False)
    assert name in fields(full)
    assert name not in fields(lean)
    assert getattr(lean, name) is None
    assert_same(lean.loss, full.loss, "loss")
    biggest = max(t.numel() for t in lean.to_tuple())
    assert biggest < full[name].numel()


def test_regression_takes_whole_numbers_and_fractions() -> None:
    model = build(CASE, BertForSequenceClassification, num_labels=1)
    inputs = tiny_inputs(BertForSequenceClassification, batch=3)
    whole = torch.tensor([1, 0, 4])
    for labels in (whole, whole.float(), whole.float()[:, None]):
        output = model(**inputs, labels=labels)
        expected = ((output.logits[:, 0] - whole) ** 2).mean()
        assert_same(output.loss, expected, "mean squared error")


# --- J, K -------------------------------------------------------------------------------------------------------------


def test_j1_constants_baked_into_a_traced_model() -> None:
    """The battery exports and traces each model with a mask; here without one, which must not become a constant."""
    model, script = build(CASE, BertModel), build(CASE, BertModel, torchscript=True)
    ids = tiny_inputs(BertModel, 2, 6)["input_ids"]
    batch, length = torch.export.Dim("batch", max=32), torch.export.Dim("length", max=20)
    program = torch.export.export(model, (ids,), dynamic_shapes=({0: batch, 1: length},)).module()
    with warnings.catch_warnings():  # a warning of the tracer about the model stays an error
        warnings.filterwarnings("ignore", message=r".*torch\.jit\.\w+.*deprecated", category=DeprecationWarning)
        traced = torch.jit.trace(script, (ids,))
        for size in ((3, 9), (7, 2)):
            other = tiny_inputs(BertModel, *size)["input_ids"]
            assert_equal_outputs(program(other), model(other), f"exported, at {size}")
            assert_equal_outputs(traced(other), script(other), f"traced, at {size}")


def test_k1_normalisation_epsilon() -> None:
    """1e-12 is BERT's, and it is a value of the configuration: the check of the list on the first normalisation."""
    assert BertConfig().layer_norm_eps == 1e-12
    small = torch.tensor([1e-3, -1e-3])
    for eps, expected in ((1e-12, 1.0), (1e-5, 0.3015)):
        model = BertModel(tiny_config(hidden_size=2, num_attention_heads=1, layer_norm_eps=eps))
        norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
        assert len(norms) == 7
        assert {norm.eps for norm in norms} == {eps}
        output = norms[0](small)
        assert output.tolist() == pytest.approx([expected, -expected], abs=5e-5)
        heads = BertForMaskedLM(tiny_config(layer_norm_eps=eps))
        assert heads.cls.predictions.transform.LayerNorm.eps == eps


def test_k1_epsilon_is_saved(tmp_path: Path) -> None:
    build(CASE, BertModel, layer_norm_eps=1e-5).save_pretrained(tmp_path)
    assert BertModel.from_pretrained(tmp_path).embeddings.LayerNorm.eps == 1e-5


def test_k2_head_pruning(tmp_path: Path) -> None:
    """The check of the list: prune, save, load, same output; call again, same output."""
    model = build(CASE, BertForSequenceClassification)
    inputs = tiny_inputs(BertForSequenceClassification)
    model.prune_heads({0: [1]})
    pruned = model(**inputs)
    model.save_pretrained(tmp_path)
    loaded, info = BertForSequenceClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values())
    for layer, width in ((0, 32), (1, 40)):
        assert loaded.get_parameter(f"bert.encoder.layer.{layer}.attention.self.query.weight").shape == (width, 40)
    assert_equal_outputs(loaded(**inputs), pruned, "loaded", exact=True)
    for again in (model, loaded):
        again.prune_heads({0: [1]})
        assert_equal_outputs(again(**inputs), pruned, "pruned again", exact=True)
    saved = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert saved["pruned_heads"] == {"0": [1]}


def test_k2_every_head_of_a_layer() -> None:
    """A layer needs a head: pruning the last one is an error, and nothing at all was removed by that call."""
    model = build(CASE, BertModel)
    inputs = tiny_inputs(BertModel)
    whole = model(**inputs)
    with pytest.raises(ValueError, match=r"layer 1"):
        model.prune_heads({0: [2], 1: range(5)})
    assert_equal_outputs(model(**inputs), whole, "left whole", exact=True)
    assert not model.config.pruned_heads
    model.prune_heads({1: range(4)})
    with pytest.raises(ValueError, match=r"layer 1"):
        model.prune_heads({1: [4]})


def test_k2_pruned_heads_and_head_mask() -> None:
    """Heads keep their numbers: a mask has a place for each original head, and those of removed ones say nothing."""
    model, whole = build(CASE, BertModel), build(CASE, BertModel)
    inputs = tiny_inputs(BertModel)
    model.prune_heads({0: [1, 2], 2: [0]})
    mask = torch.rand(3, 5, generator=torch.Generator().manual_seed(0))
    silenced = mask.clone()
    silenced[0, 1] = silenced[0, 2] = silenced[2, 0] = 0.0
    expected = whole(**inputs, head_mask=silenced)
    assert_equal_outputs(model(**inputs, head_mask=mask), expected, "pruned and masked")
    assert_equal_outputs(model(**inputs, head_mask=silenced), expected, "pruned and masked")


# --- subclasses -------------------------------------------------------------------------------------------------------


class SeedExample(BertPreTrainedModel):  # type: ignore[misc,unused-ignore]
    """The example of the documentation: only `super().__init__`, no call that initialises."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config)
        self.dense = nn.Linear(config.hidden_size, 64)
        self.norm = nn.LayerNorm(64)
        self.table = nn.Embedding(64, 64)

    def forward(self, input_ids: Tensor) -> Tensor:
        """[B, T] -> [B, 64]."""
        result: Tensor = self.norm(self.dense(self.bert(input_ids).pooler_output))
        return result


def test_seed_example_is_initialised_without_a_call() -> None:
    torch.manual_seed(0)
    model = SeedExample(BertConfig(**{**tiny_config().to_dict(), "initializer_range": 0.02}))
    for weight in (model.dense.weight, model.table.weight, model.get_parameter("bert.pooler.dense.weight")):
        assert float(weight.detach().std()) == pytest.approx(0.02, rel=0.12)  # five standard errors of 1600 draws: 9 %
    assert not model.dense.bias.any()
    assert torch.equal(model.norm.weight, torch.ones(64))
    assert model(torch.ones(2, 5, dtype=torch.long)).shape == (2, 64)


def test_seed_example_saves_and_loads(tmp_path: Path) -> None:
    model = SeedExample(tiny_config()).eval()
    model.save_pretrained(tmp_path)
    loaded, info = SeedExample.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values())
    assert_same_parameters(loaded, model)
    assert not loaded.training


def test_seed_example_over_a_published_encoder(tmp_path: Path) -> None:
    """The encoder comes from the file, only the new modules are drawn, and they are the missing ones."""
    encoder = build(CASE, BertModel)
    encoder.save_pretrained(tmp_path)
    loaded, info = SeedExample.from_pretrained(tmp_path, output_loading_info=True)
    assert_same_parameters(loaded.bert, encoder)
    assert set(info["missing_keys"]) == {"dense.weight", "dense.bias", "norm.weight", "norm.bias", "table.weight"}
    assert float(loaded.dense.weight.detach().std()) == pytest.approx(0.02, rel=0.12)
    assert torch.equal(loaded.norm.weight, torch.ones(64))


def test_a_model_loaded_in_a_constructor_keeps_its_weights(tmp_path: Path) -> None:
    """Initialisation after construction must not touch a part that came from a file."""
    encoder = build(CASE, BertModel)
    encoder.save_pretrained(tmp_path)

    class Wrapper(BertPreTrainedModel):  # type: ignore[misc,unused-ignore]
        def __init__(self, config: BertConfig) -> None:
            super().__init__(config)
            self.first = nn.Linear(40, 40)
            self.encoder = BertModel.from_pretrained(tmp_path)
            self.last = nn.Linear(40, 40)

    torch.manual_seed(0)
    model = Wrapper(tiny_config())
    assert_same_parameters(model.encoder, encoder)
    for weight in (model.first.weight, model.last.weight):
        assert float(weight.detach().std()) == pytest.approx(0.02, rel=0.1)
    model.save_pretrained(tmp_path / "whole")
    assert_same_parameters(Wrapper.from_pretrained(tmp_path / "whole"), model)


def test_parameters_set_by_a_constructor_stay() -> None:
    """A subclass that initialises a part its own way, after calling the rule, keeps that: the rule runs once."""

    class Own(BertPreTrainedModel):  # type: ignore[misc,unused-ignore]
        def _init_weights(self, module: nn.Module) -> None:
            super()._init_weights(module)
            if isinstance(module, nn.Linear) and module.out_features == 7:
                nn.init.constant_(module.weight, 0.5)

        def __init__(self, config: BertConfig) -> None:
            super().__init__(config)
            self.bert = BertModel(config)
            self.special = nn.Linear(40, 7)

    model = Own(tiny_config())
    assert torch.equal(model.special.weight, torch.full((7, 40), 0.5))
    assert float(model.get_parameter("bert.pooler.dense.weight").detach().std()) == pytest.approx(0.02, rel=0.1)


# --- parameter names --------------------------------------------------------------------------------------------------


def test_parameter_names_are_those_of_published_checkpoints() -> None:
    names = set(BertForPreTraining(tiny_config(num_hidden_layers=1)).state_dict())
    layer = "bert.encoder.layer.0"
    linears = [
        *(f"{layer}.attention.self.{kind}" for kind in ("query", "key", "value")),
        f"{layer}.attention.output.dense",
        f"{layer}.attention.output.LayerNorm",
        f"{layer}.intermediate.dense",
        f"{layer}.output.dense",
        f"{layer}.output.LayerNorm",
        "bert.embeddings.LayerNorm",
        "bert.pooler.dense",
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.seq_relationship",
    ]
    tables = [f"bert.embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")]
    expected = {f"{name}.{part}" for name in linears for part in ("weight", "bias")}
    assert names == expected | set(tables) | {"cls.predictions.bias", "cls.predictions.decoder.weight"}
    heads = {
        BertForSequenceClassification: ("classifier.weight", (3, 40)),
        BertForTokenClassification: ("classifier.weight", (3, 40)),
        BertForMultipleChoice: ("classifier.weight", (1, 40)),
        BertForQuestionAnswering: ("qa_outputs.weight", (2, 40)),
        BertForNextSentencePrediction: ("cls.seq_relationship.weight", (2, 40)),
    }
    for model_class, (name, shape) in heads.items():
        assert model_class(tiny_config()).state_dict()[name].shape == shape


def test_fresh_loss_is_that_of_guessing() -> None:
    """With small random weights each head is undecided: the loss is near log of the number of classes."""
    torch.manual_seed(0)
    for model_class, classes in (
        (BertForMaskedLM, VOCAB),
        (BertForNextSentencePrediction, 2),
        (BertForSequenceClassification, 3),
        (BertForTokenClassification, 3),
        (BertForMultipleChoice, 4),
        (BertForQuestionAnswering, 7),
    ):
        inputs = tiny_inputs(model_class, mask="none")
        loss = model_class(tiny_config()).eval()(**inputs, **tiny_labels(model_class, inputs)).loss
        assert float(loss.detach()) == pytest.approx(math.log(classes), rel=0.2), model_class.__name__


def test_token_labels_at_padding_do_not_count() -> None:
    """There are no logits at padded places, so a label there can teach nothing; -100 is not required."""
    model = build(CASE, BertForTokenClassification)
    inputs = tiny_inputs(BertForTokenClassification)
    labels = tiny_labels(BertForTokenClassification, inputs)["labels"]
    everywhere = torch.where(real(inputs), labels, torch.full_like(labels, 2))
    assert not torch.equal(everywhere, labels)
    for switches in ({}, {"output_hidden_states": True}):
        expected = model(**inputs, labels=labels, **switches).loss
        assert_same(model(**inputs, labels=everywhere, **switches).loss, expected, "loss")
    assert not model(**inputs).logits[~real(inputs)].any()
