"""The auto classes and `family_of`: which family a place belongs to, and what is said when it does not tell."""

import dataclasses
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

import pytorch_transformers
from generation.saved_transfo_xl import save_published_transfo_xl
from hub.conftest import cache, hub_server  # noqa: F401  # fixtures
from hub.server import HubServer
from published import published
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
    TransfoXLConfig,
    TransfoXLLMHeadModel,
    TransfoXLModel,
    TransfoXLTokenizer,
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


#: Fields that published packages write into `config.json` -> the family; None where no family has them for its own.
FIELDS: list[tuple[str, str | None]] = [
    ("n_token cutoffs d_model d_embed n_head d_head d_inner div_val mem_len same_length", "transfo_xl"),
    ("n_token d_model n_layer n_head d_inner untie_r mem_len reuse_len same_length", None),  # XLNet
    ("n_ctx n_embd n_head n_layer n_positions layer_norm_epsilon initializer_range vocab_size", "gpt2"),
    ("n_ctx n_embd n_head n_layer n_positions layer_norm_epsilon n_special vocab_size", "gpt2"),  # of 0.6.2
    ("n_ctx n_embd n_head n_layer n_positions layer_norm_epsilon dff vocab_size", None),  # CTRL
    ("n_ctx n_embd n_head n_layer n_positions layer_norm_epsilon afn vocab_size", "openai_gpt"),
    ("n_ctx n_embd n_head n_layer n_positions afn n_special vocab_size", "openai_gpt"),
    ("hidden_size num_hidden_layers type_vocab_size layer_norm_eps vocab_size", None),  # BERT and RoBERTa
    ("n_words emb_dim n_layers n_heads vocab_size", None),  # XLM
    ("dim hidden_dim n_layers n_heads sinusoidal_pos_embds vocab_size", None),  # DistilBERT
]


@pytest.mark.parametrize(("fields", "expected"), FIELDS)
def test_fields_of_one_family_alone_say_which_it_is(tmp_path: Path, fields: str, expected: str | None) -> None:
    (tmp_path / "config.json").write_text(json.dumps(dict.fromkeys(fields.split(), 1)), encoding="utf-8")
    if expected:
        assert family_of(tmp_path).name == expected
    else:
        with pytest.raises(ValueError, match="does not say what it is"):
            family_of(tmp_path)


def test_fields_count_for_more_than_the_name(tmp_path: Path) -> None:
    folder = tmp_path / "bert-like"
    folder.mkdir()
    (folder / "config.json").write_text('{"cutoffs": [], "div_val": 1}', encoding="utf-8")
    assert family_of(folder).name == "transfo_xl"


def test_name_of_two_families_is_no_answer(copy: Path) -> None:
    folder = without_type(copy).rename(copy.with_name("bert-to-gpt2"))
    with pytest.raises(ValueError, match="does not say what it is"):
        family_of(folder)


OLD, NEW = "pytorch_pretrained_bert", "pytorch_transformers"


@pytest.mark.parametrize(
    ("package", "module", "kind", "expected"),
    [
        *((package, "modeling_transfo_xl", "TransfoXLConfig", "transfo_xl") for package in (OLD, NEW)),
        *((package, "modeling_gpt2", "GPT2Config", "gpt2") for package in (OLD, NEW)),
        *((package, "modeling_openai", "OpenAIGPTConfig", "openai_gpt") for package in (OLD, NEW)),
        *((package, "modeling_bert" if package == NEW else "modeling", "BertConfig", None) for package in (OLD, NEW)),
        (NEW, "modeling_xlnet", "XLNetConfig", None),
        (NEW, "modeling_xlm", "XLMConfig", None),
    ],
)
@pytest.mark.filterwarnings("ignore")  # of packages from 2019
def test_configurations_of_the_published_packages(
    tmp_path: Path, package: str, module: str, kind: str, expected: str | None
) -> None:
    """What they write themselves."""
    config = getattr(published(package, module), kind)(30)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(config.to_json_string(), encoding="utf-8")
    if expected:
        assert family_of(folder).name == expected
    else:
        with pytest.raises(ValueError, match="does not say what it is"):
            family_of(folder)


def test_published_folder_of_transformer_xl(tmp_path: Path) -> None:
    """Its `config.json` has no `model_type`, and its vocabulary is a pickle."""
    save_published_transfo_xl(tmp_path)
    assert type(AutoConfig.from_pretrained(tmp_path)) is TransfoXLConfig
    assert type(AutoModel.from_pretrained(tmp_path)) is TransfoXLModel
    assert type(AutoModelWithLMHead.from_pretrained(tmp_path)) is TransfoXLLMHeadModel
    assert type(AutoTokenizer.from_pretrained(tmp_path)) is TransfoXLTokenizer
    (tmp_path / "config.json").unlink()
    assert type(AutoTokenizer.from_pretrained(tmp_path)) is TransfoXLTokenizer


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
        OSError,
        match=r"no configuration; .* to which of bert, openai_gpt, gpt2, transfo_xl it belongs; use the class itself",
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
