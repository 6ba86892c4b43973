"""The auto classes and `family_of`: which family a place belongs to, and what is said when it does not tell."""

import dataclasses
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

import pytorch_transformers
from hub.conftest import cache, hub_server  # noqa: F401  # fixtures
from hub.server import HubServer
from pytorch_transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelWithLMHead,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertModel,
    BertTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Model,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    OpenAIGPTModel,
    PretrainedConfig,
)
from pytorch_transformers.models import bert
from pytorch_transformers.models import family as family_module
from pytorch_transformers.models.family import FAMILIES, family_of, family_of_config
from saved_bert import HIDDEN, save_tiny_bert

CLASSES: list[tuple[Any, type]] = [
    (AutoConfig, BertConfig),
    (AutoTokenizer, BertTokenizer),
    (AutoModel, BertModel),
    (AutoModelWithLMHead, BertForMaskedLM),
    (AutoModelForSequenceClassification, BertForSequenceClassification),
    (AutoModelForQuestionAnswering, BertForQuestionAnswering),
]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose name says nothing."""
    return save_tiny_bert(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture
def copy(tiny: Path, tmp_path: Path) -> Path:
    """A copy to be changed."""
    return Path(shutil.copytree(tiny, tmp_path / "model"))


def without_type(folder: Path) -> Path:
    """As saved by releases that wrote no `model_type`."""
    values = json.loads((folder / "config.json").read_text("utf-8"))
    del values["model_type"]
    (folder / "config.json").write_text(json.dumps(values), encoding="utf-8")
    return folder


@pytest.mark.parametrize(("auto", "expected"), CLASSES, ids=lambda each: each.__name__)
def test_each_auto_class_gives_the_familys(tiny: Path, auto: Any, expected: type) -> None:
    assert type(auto.from_pretrained(tiny)) is expected


@pytest.mark.parametrize(("auto", "expected"), CLASSES, ids=lambda each: each.__name__)
@pytest.mark.usefixtures("cache")
def test_each_auto_class_takes_names_of_the_hub(
    tiny: Path,
    hub_server: HubServer,  # noqa: F811
    auto: Any,
    expected: type,
) -> None:
    for path in tiny.iterdir():
        hub_server.add("google-bert/bert-base-uncased", path.name, path.read_bytes())
        commit = hub_server.add("somebody/model", path.name, path.read_bytes())
    hub_server.add("somebody/model", "config.json", b'{"model_type": "of a later commit"}')
    assert type(auto.from_pretrained("bert-base-uncased")) is expected
    assert type(auto.from_pretrained("somebody/model", revision=commit)) is expected
    hub_server.stop()
    assert type(auto.from_pretrained("somebody/model", revision=commit, local_files_only=True)) is expected


def test_options_are_passed_on(tiny: Path) -> None:
    model, info = AutoModelForSequenceClassification.from_pretrained(tiny, num_labels=5, output_loading_info=True)
    assert model.config.num_labels == 5
    assert "classifier.weight" in info["missing_keys"]
    assert AutoTokenizer.from_pretrained(tiny, do_lower_case=False).do_lower_case is False
    assert AutoConfig.from_pretrained(tiny, num_labels=4).num_labels == 4


def test_configuration_decides_the_family(copy: Path) -> None:
    config = BertConfig.from_pretrained(copy)
    (copy / "config.json").unlink()
    (copy / "vocab.txt").unlink()
    assert AutoModel.from_pretrained(copy, config=config).config.hidden_size == HIDDEN


def test_configuration_of_another_place_decides_the_family(tiny: Path, copy: Path) -> None:
    (copy / "config.json").unlink()
    (copy / "vocab.txt").unlink()
    assert isinstance(AutoModel.from_pretrained(copy, config=tiny), BertModel)


@pytest.mark.parametrize("name", ["config.json", "other.json"])
def test_configuration_file_by_its_path(copy: Path, name: str) -> None:
    path = (copy / "config.json").rename(copy / name)
    assert AutoConfig.from_pretrained(path).to_dict()["hidden_size"] == HIDDEN


def test_weights_file_by_its_path(tiny: Path) -> None:
    assert isinstance(AutoModel.from_pretrained(tiny / "model.safetensors"), BertModel)


def test_configuration_of_a_family_under_its_own_name(copy: Path) -> None:
    """Archives of 0.6.x have `bert_config.json`, which no other family has."""
    (without_type(copy) / "config.json").rename(copy / "bert_config.json")
    assert isinstance(AutoModel.from_pretrained(copy), BertModel)


@pytest.mark.usefixtures("cache")
def test_archive(copy: Path) -> None:
    (without_type(copy) / "config.json").rename(copy / "bert_config.json")
    archive = copy.with_name("archive.tar.gz")
    with tarfile.open(archive, "w:gz") as stream:
        for path in copy.iterdir():
            stream.add(path, path.name)
    assert isinstance(AutoModel.from_pretrained(archive), BertModel)


@pytest.mark.parametrize("name", ["bert", "bert-base-uncased", "my_BERT_v2", "bert2", "bert-small/checkpoint-500"])
def test_name_says_what_the_configuration_does_not(copy: Path, name: str) -> None:
    folder = copy.with_name("moved") / name
    folder.parent.mkdir(parents=True)
    without_type(copy).rename(folder)
    assert isinstance(AutoModel.from_pretrained(folder), BertModel)


@pytest.mark.parametrize("name", ["roberta-base", "albert", "model", "bert/of/model", "distilbert-base", "herbert"])
def test_name_that_only_contains_a_family_is_no_answer(copy: Path, name: str) -> None:
    folder = copy.with_name("moved") / name
    folder.parent.mkdir(parents=True)
    without_type(copy).rename(folder)
    with pytest.raises(ValueError, match=r"config\.json does not say what it is: add a model_type, one of bert"):
        AutoModel.from_pretrained(folder)


def test_fault_d9_vocabulary_alone_is_enough(copy: Path) -> None:
    for path in copy.iterdir():
        if path.name != "vocab.txt":
            path.unlink()
    assert isinstance(AutoTokenizer.from_pretrained(copy), BertTokenizer)


@pytest.mark.parametrize("name", ["bert-base-uncased-vocab.txt", "my_bert.txt", "bert/words.txt"])
def test_fault_d9_vocabulary_file_whose_name_says_the_family(copy: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "alone" / name
    path.parent.mkdir(parents=True)
    expected = AutoTokenizer.from_pretrained(copy).vocab
    (copy / "vocab.txt").rename(path)
    tokenizer = AutoTokenizer.from_pretrained(path)
    assert isinstance(tokenizer, BertTokenizer)
    assert tokenizer.vocab == expected


def test_vocabulary_file_whose_name_says_nothing(copy: Path, tmp_path: Path) -> None:
    path = tmp_path / "words" / "words.txt"
    path.parent.mkdir()
    (copy / "vocab.txt").rename(path)
    with pytest.raises(
        OSError, match=r"no configuration; .* to which of bert, openai_gpt, gpt2 it belongs; use the class itself"
    ):
        AutoTokenizer.from_pretrained(path)


def test_vocabulary_files_of_more_than_one_family_say_nothing(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in copy.iterdir():
        if path.name != "vocab.txt":
            path.unlink()
    other = dataclasses.replace(bert.FAMILY, name="other", classes={"tokenizer": "tokenizer:OtherTokenizer"})
    monkeypatch.setattr(family_module, "FAMILIES", (bert.FAMILY, other))
    with pytest.raises(OSError, match="to which of bert, other it belongs"):
        AutoTokenizer.from_pretrained(copy)
    (copy / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizerFast"}', encoding="utf-8")
    assert isinstance(AutoTokenizer.from_pretrained(copy), BertTokenizer)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b'{"model_type": "xlnet"}', ValueError, "model_type is 'xlnet'; this library has bert"),
        (b'{"model_type": ["bert"]}', ValueError, "model_type is"),
        (b"[]", ValueError, "does not say what it is"),
        (b"{", OSError, "config.json is no configuration in JSON"),
        (b"\xff", OSError, "config.json is no configuration in JSON"),
    ],
)
def test_other_configurations_are_named(copy: Path, content: bytes, error: type[Exception], message: str) -> None:
    (copy / "config.json").write_bytes(content)
    with pytest.raises(error, match=message) as raised:
        AutoModel.from_pretrained(copy)
    assert str(copy) in str(raised.value)


def test_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"no configuration; looked for config\.json, bert_config\.json"):
        AutoModel.from_pretrained(tmp_path)


def test_missing_place_is_named() -> None:
    with pytest.raises(OSError, match="nowhere"):
        AutoConfig.from_pretrained("./nowhere")


def test_configuration_of_no_family() -> None:
    class Other(PretrainedConfig):
        """Of a user's own."""

    with pytest.raises(ValueError, match="Other belongs to none of bert"):
        family_of_config(Other())


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_record_of_each_family(family: Any) -> None:
    """Every name in it leads somewhere."""
    for kind in family.classes:
        found = family.load(kind)
        assert found is getattr(pytorch_transformers, found.__name__)
    for name in family.repositories:
        assert family_of(name) is family
    with pytest.raises(ValueError, match=f"{family.name} has no time machine; it has model"):
        family.load("time_machine")


def test_bert_is_registered() -> None:
    assert bert.FAMILY in FAMILIES


@pytest.mark.parametrize(
    ("config", "base", "language_model"),
    [
        (GPT2Config(vocab_size=50, n_positions=8, n_embd=8, n_layer=1, n_head=2), GPT2Model, GPT2LMHeadModel),
        (
            OpenAIGPTConfig(vocab_size=50, n_positions=8, n_embd=8, n_layer=1, n_head=2),
            OpenAIGPTModel,
            OpenAIGPTLMHeadModel,
        ),
    ],
    ids=["gpt2", "openai_gpt"],
)
def test_decoders_have_no_masked_head_and_no_classifier(
    config: Any, base: type[Any], language_model: type[Any], tmp_path: Path
) -> None:
    language_model(config).save_pretrained(tmp_path)
    assert type(AutoConfig.from_pretrained(tmp_path)) is type(config)
    assert type(AutoModel.from_pretrained(tmp_path)) is base
    assert type(AutoModelWithLMHead.from_pretrained(tmp_path)) is language_model
    with pytest.raises(ValueError, match="has no sequence classification; it has model, language_model, double_heads"):
        AutoModelForSequenceClassification.from_pretrained(tmp_path)
