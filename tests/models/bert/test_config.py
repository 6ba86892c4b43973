"""Values of a configuration, from files and from callers: what is accepted, and what an error says.

Each case was once accepted in silence, or failed in another place.
"""

import copy
import json
import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pytorch_transformers import BertConfig, BertModel
from pytorch_transformers.models.warn import warn_once
from pytorch_transformers.nn.activations import ACTIVATIONS
from pytorch_transformers.nn.values import ACTIVATION_NAMES

from .tiny import tiny_config


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def write(folder: Path, **values: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    return path


# --- keys -------------------------------------------------------------------------------------------------------------


def test_number_of_labels_as_transformers_2_wrote_it() -> None:
    names = {str(index): f"name {index}" for index in range(5)}
    assert BertConfig.from_dict({"_num_labels": 5}).num_labels == 5
    assert BertConfig.from_dict({"_num_labels": 2, "id2label": names}).num_labels == 5
    assert BertConfig.from_dict({"_num_labels": 2, "num_labels": 4}).num_labels == 4
    assert BertConfig.from_dict({"_num_labels": 5, "id2label": names}, num_labels=3).num_labels == 3
    assert "_num_labels" not in BertConfig.from_dict({"_num_labels": 5}).to_dict()


def test_keys_of_other_programs_are_kept_but_shadow_nothing(tmp_path: Path) -> None:
    """A key may have the name of a method, of a protocol or of a private attribute."""
    names = ("_name_or_path", "_hidden_size", "to_dict", "aliases", "__deepcopy__", "__getstate__", "__class__")
    foreign = {**dict.fromkeys(names, 1), "_foreign": {"a": [1]}, "model": "m", "use_cache": True}
    config = BertConfig.from_json_file(write(tmp_path, **foreign))
    assert config.model == "m"  # type: ignore[attr-defined]
    assert config.use_cache  # type: ignore[attr-defined]
    for each in (config, copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        values = each.to_dict()
        assert {key: values[key] for key in foreign} == foreign
        assert each == config
    config.save_pretrained(tmp_path / "again")
    assert BertConfig.from_pretrained(tmp_path / "again") == config
    with pytest.raises(AttributeError, match="no_such_field"):
        config.no_such_field  # type: ignore[attr-defined]  # noqa: B018


def test_an_attribute_set_later_replaces_the_key_of_the_file() -> None:
    config = BertConfig.from_dict({"use_cache": True})
    config.use_cache = False  # type: ignore[attr-defined]
    assert config.to_dict()["use_cache"] is False


def test_unknown_keys_of_a_caller_are_mentioned_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, use_cache=True, num_layers=3)
    BertConfig.from_json_file(path)
    BertConfig.from_pretrained(tmp_path, hidden_size=24, num_layers=4)
    BertConfig.from_dict({"transformers_version": "4"})
    assert not warnings_of(caplog)
    BertConfig(num_layers=2, hidden_dropout=0.5)
    (said,) = warnings_of(caplog)
    assert "num_layers, hidden_dropout" in said
    caplog.clear()
    BertConfig.from_pretrained(tmp_path, hidden_dropout=0.5)
    (said,) = warnings_of(caplog)
    assert "hidden_dropout" in said
    assert "use_cache" not in said


@pytest.mark.parametrize("kind", [None, "", "bert"])
def test_family_of_the_file(tmp_path: Path, kind: str | None) -> None:
    assert BertConfig.from_json_file(write(tmp_path, model_type=kind)).model_type == "bert"


def test_another_family_is_refused(tmp_path: Path) -> None:
    """Weights of RoBERTa fit by name and shape, but its positions begin elsewhere."""
    path = write(tmp_path, model_type="roberta")
    for load in (BertConfig.from_pretrained, BertModel.from_pretrained):
        with pytest.raises(ValueError, match=r"model_type: 'roberta'.*'bert'.*config=BertConfig") as caught:
            load(tmp_path)
        assert str(path) in str(caught.value)
    assert BertConfig.from_pretrained(tmp_path, model_type="bert").to_dict()["model_type"] == "bert"


def test_a_family_of_ones_own_reads_that_which_it_derives_from(tmp_path: Path) -> None:
    class OwnConfig(BertConfig):
        model_type = "own"

    write(tmp_path, model_type="bert", hidden_size=24)
    OwnConfig.from_pretrained(tmp_path).save_pretrained(tmp_path)
    assert OwnConfig.from_pretrained(tmp_path).hidden_size == 24
    with pytest.raises(ValueError, match="model_type: 'own'"):
        BertConfig.from_pretrained(tmp_path)


@pytest.mark.parametrize("value", [torch.bfloat16, torch.tanh, {1, 2}, {"a": [torch.float16]}])
def test_a_value_without_json_form_is_named(value: Any) -> None:
    config = tiny_config()
    config.torch_dtype = value  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"torch_dtype.*JSON"):
        config.to_json_string()


# --- labels -----------------------------------------------------------------------------------------------------------


def test_new_names_of_classes_replace_those_of_the_file(tmp_path: Path) -> None:
    tiny_config().save_pretrained(tmp_path)
    config = BertConfig.from_pretrained(tmp_path, id2label={0: "neg", 1: "pos"})
    assert config.label2id == {"neg": 0, "pos": 1}
    config.save_pretrained(tmp_path)
    for other in ({"num_labels": 4}, {"label2id": {"a": 0, "b": 1, "c": 2}}):
        changed = BertConfig.from_pretrained(tmp_path, **other)
        assert changed.label2id == {label: index for index, label in changed.id2label.items()}
        assert changed.num_labels != 2
    same = BertConfig.from_pretrained(tmp_path, num_labels=2)
    assert same.id2label == {0: "neg", 1: "pos"}


@pytest.mark.parametrize("stale", [2, 3])
def test_default_names_beside_real_ones_say_nothing(stale: int) -> None:
    """Many published files have one table set and the other left as it was."""
    defaults = {f"LABEL_{index}": index for index in range(stale)}
    config = BertConfig.from_dict({"id2label": {"0": "neg", "1": "pos"}, "label2id": defaults})
    assert config.label2id == {"neg": 0, "pos": 1}
    config = BertConfig.from_dict(
        {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "label2id": {"neg": 0, "pos": 1}, "num_labels": 2}
    )
    assert config.id2label == {0: "neg", 1: "pos"}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"id2label": {"0": "a", "1": "b"}, "label2id": {"a": 1, "b": 0}}, "contradict"),
        ({"id2label": {"0": "a", "1": "b"}, "label2id": {"a": 0}}, "contradict"),
        ({"label2id": {"a": 0, "b": 1, "c": 2}, "num_labels": 5}, "num_labels: 5, but label2id names 3"),
        ({"id2label": {"0": "a", "1": "b"}, "num_labels": 3}, "num_labels: 3, but id2label names 2"),
        ({"id2label": {"1": "a", "2": "b"}}, "id2label: the numbers must be 0 to 1"),
        ({"id2label": {"0": "a", "00": "b"}}, "id2label: the numbers must be 0 to 1"),
        ({"id2label": {"0": "a", "1": "a"}}, "name of its own"),
        ({"id2label": {"0.5": "a"}}, "id2label: number of a class: '0.5'"),
        ({"label2id": {"a": -1}}, "label2id: number of a class: -1"),
        ({"label2id": {"a": 0.0}}, "label2id: number of a class: 0.0"),
        ({"label2id": {"a": 0, "b": 0}}, "label2id: the numbers must be 0 to 1"),
        ({"id2label": {}}, "id2label: names no class"),
        ({"id2label": ["a"]}, "id2label: expected number -> name"),
        ({"label2id": ["a"]}, "label2id: expected name -> number"),
        ({"num_labels": "3"}, "num_labels: '3'"),
        ({"num_labels": 2.0}, r"num_labels: 2\.0"),
        ({"num_labels": 0}, "num_labels: 0"),
    ],
)
def test_labels_that_make_no_sense(tmp_path: Path, values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BertConfig(**values)
    path = write(tmp_path, **values)
    with pytest.raises(ValueError, match=words) as caught:
        BertConfig.from_pretrained(tmp_path)
    assert str(path) in str(caught.value)


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"hidden_size": 16.0}, r"hidden_size: 16\.0, must be a whole number"),
        ({"hidden_size": True}, "hidden_size: True"),
        ({"vocab_size": None}, "vocab_size: None"),
        ({"num_hidden_layers": "3"}, "num_hidden_layers: '3'"),
        ({"layer_norm_eps": float("nan")}, "layer_norm_eps: nan"),
        ({"initializer_range": float("inf")}, "initializer_range: inf"),
        ({"layer_norm_eps": "1e-12"}, "layer_norm_eps: '1e-12'"),
        ({"hidden_dropout_prob": float("nan")}, r"hidden_dropout_prob: nan, must be a number from 0\.0 to 1\.0"),
        ({"hidden_act": ["a"]}, r"hidden_act: unknown activation \['a'\]"),
        ({"hidden_act": "mish"}, "hidden_act: unknown activation 'mish'; use one of gelu"),
        ({"pad_token_id": "x"}, "pad_token_id: 'x'"),
        ({"pad_token_id": 0.5}, r"pad_token_id: 0\.5"),
        ({"tie_word_embeddings": False}, r"tie_word_embeddings: False.*tie_word_embeddings=None"),
        ({"problem_type": "multi_label_classification"}, r"problem_type: 'multi_label.*problem_type=None"),
        ({"problem_type": "regression", "num_labels": 2}, "problem_type: 'regression'"),
        ({"is_decoder": True}, "is_decoder: True"),
    ],
)
def test_impossible_values_are_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BertConfig(**values)


def test_numbers_of_numpy() -> None:
    config = BertConfig(hidden_size=np.int64(24), hidden_dropout_prob=np.float32(0.5), vocab_size=np.int32(7))
    assert (config.hidden_size, config.hidden_dropout_prob, config.vocab_size) == (24, 0.5, 7)
    assert json.loads(config.to_json_string())["hidden_size"] == 24


def test_a_size_and_its_alias(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"vocab_size is given twice.*50.*60"):
        BertConfig(vocab_size=50, vocab_size_or_config_json_file=60)
    with pytest.raises(ValueError, match="vocab_size is given twice"):
        BertConfig.from_dict({"vocab_size": 30522, "vocab_size_or_config_json_file": 60})
    write(tmp_path, vocab_size=50)
    assert BertConfig.from_pretrained(tmp_path, vocab_size_or_config_json_file=60).vocab_size == 60


def test_variants_may_be_read_where_they_do_not_matter(tmp_path: Path) -> None:
    write(tmp_path, tie_word_embeddings=False, problem_type="multi_label_classification")
    config = BertConfig.from_pretrained(tmp_path, tie_word_embeddings=None, problem_type=None)
    assert config.to_dict()["problem_type"] is None
    for kind, number in (("regression", 1), ("single_label_classification", 3)):
        BertConfig(problem_type=kind, num_labels=number)


def test_another_dropout_of_classifiers_is_mentioned_once(caplog: pytest.LogCaptureFixture) -> None:
    warn_once.cache_clear()
    for dropout in (None, 0.1, 0.3, 0.3):
        BertConfig.from_dict({"classifier_dropout": dropout})
    (said,) = warnings_of(caplog)
    assert "classifier_dropout: 0.3" in said


def test_names_of_activations_are_those_of_the_functions() -> None:
    assert tuple(ACTIVATIONS) == ACTIVATION_NAMES
