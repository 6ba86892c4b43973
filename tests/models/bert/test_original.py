"""Original checkpoints into models: every kind of place, every kind of fault, and the older ways to call it.

The names a1, a2, a3 are those of the project's list of known faults. All checkpoints are tiny ones made here.
"""

import json
import logging
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import pytorch_transformers
from hub.conftest import cache, hub_server  # noqa: F401  # fixtures
from hub.server import HubServer
from original_bert import (
    CONFIG,
    PREFIX,
    assert_same_weights,
    changed,
    contents,
    own_weights,
    random_model,
    read_variables,
    save_checkpoint,
)
from pytorch_transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelWithLMHead,
    BertConfig,
    BertForMultipleChoice,
    BertForPreTraining,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    BertPreTrainedModel,
    load_tf_weights_in_bert,
    modeling_bert,
)
from pytorch_transformers.checkpoint.tensorflow.bundle import Bundle
from pytorch_transformers.checkpoint.tensorflow.table import MAGIC
from pytorch_transformers.models.original import load_original, original_state, save_original
from saved_bert import environment

from .tiny import HIDDEN, LABELS, LAYERS, MODELS, VOCAB, tiny_config, tiny_inputs

#: What a checkpoint with pre-training heads has and the encoder alone has not.
HEADS_OF_PRETRAINING = {
    *("cls/predictions/output_bias", "cls/predictions/transform/dense/kernel", "cls/predictions/transform/dense/bias"),
    *("cls/predictions/transform/LayerNorm/gamma", "cls/predictions/transform/LayerNorm/beta"),
    *("cls/seq_relationship/output_weights", "cls/seq_relationship/output_bias"),
}


@pytest.fixture(scope="module")
def model() -> BertForPreTraining:
    found: BertForPreTraining = random_model()
    return found


@pytest.fixture(scope="module")
def prefix(model: BertForPreTraining, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its checkpoint; nothing changes it."""
    return save_checkpoint(model, tmp_path_factory.mktemp("original"))


@pytest.fixture(scope="module")
def classifier() -> BertForSequenceClassification:
    found: BertForSequenceClassification = random_model(BertForSequenceClassification, seed=1)
    return found


@pytest.fixture(scope="module")
def classifier_prefix(classifier: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(classifier, tmp_path_factory.mktemp("classifier"), "model.ckpt-3")


# --- places -----------------------------------------------------------------------------------------------------------

Place = Callable[[Path, Path, HubServer], Path | str]


def by_prefix(prefix: Path, folder: Path, server: HubServer) -> Path:
    return prefix


def by_index(prefix: Path, folder: Path, server: HubServer) -> Path:
    return prefix.with_name(f"{PREFIX}.index")


def by_data(prefix: Path, folder: Path, server: HubServer) -> str:
    return f"{prefix}.data-00000-of-00001"


def by_folder(prefix: Path, folder: Path, server: HubServer) -> str:
    return str(prefix.parent)


def by_state_file(prefix: Path, folder: Path, server: HubServer) -> Path:
    """Two checkpoints, as training leaves them; the state file names the latest with the path it had then."""
    save_checkpoint(random_model(seed=9), folder, "model.ckpt-10")
    for name in ("index", "data-00000-of-00001"):
        shutil.copyfile(f"{prefix}.{name}", folder / f"model.ckpt-20.{name}")
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "/home/them/out/model.ckpt-20"\nall_model_checkpoint_paths: "model.ckpt-10"\n',
        encoding="utf-8",
    )
    return folder


def by_archive(prefix: Path, folder: Path, server: HubServer) -> Path:
    """As the original's are published: one folder, packed."""
    with tarfile.open(folder / "uncased.tar.gz", "w:gz") as tar:
        tar.add(prefix.parent, "uncased_L-3_H-40_A-5")
    return folder / "uncased.tar.gz"


def by_address(prefix: Path, folder: Path, server: HubServer) -> str:
    return server.add_plain("bert/uncased.tar.gz", by_archive(prefix, folder, server).read_bytes())


def by_repository(prefix: Path, folder: Path, server: HubServer) -> str:
    for path in prefix.parent.iterdir():
        server.add("someone/original", path.name, path.read_bytes(), linked="data" in path.name)
    return "someone/original"


def by_repository_of_plain_name(prefix: Path, folder: Path, server: HubServer) -> str:
    """`model.ckpt`, the name that published PyTorch packages look for, with a config.json."""
    for path in prefix.parent.iterdir():
        name = "config.json" if path.name == CONFIG else path.name.replace(PREFIX, "model.ckpt")
        server.add("someone/plain", name, path.read_bytes())
    return "someone/plain"


@pytest.mark.parametrize("from_tf", [False, True])
@pytest.mark.parametrize(
    "place",
    [
        by_prefix,
        by_index,
        by_data,
        by_folder,
        by_state_file,
        by_archive,
        by_address,
        by_repository,
        by_repository_of_plain_name,
    ],
)
def test_every_place_gives_the_same_model(
    place: Place,
    from_tf: bool,
    model: BertForPreTraining,
    prefix: Path,
    tmp_path: Path,
    hub_server: HubServer,  # noqa: F811
    cache: Path,  # noqa: F811
) -> None:
    """Without PyTorch weights the flag isn't needed."""
    name = place(prefix, tmp_path, hub_server)
    loaded, info = BertForPreTraining.from_pretrained(name, from_tf=from_tf, cache_dir=cache, output_loading_info=True)
    assert not any(info.values())
    assert not loaded.training
    assert loaded.cls.predictions.decoder.weight is loaded.bert.embeddings.word_embeddings.weight
    assert_same_weights(loaded, model)


def test_a_repository_is_read_again_without_its_server(
    prefix: Path,
    tmp_path: Path,
    hub_server: HubServer,  # noqa: F811
    cache: Path,  # noqa: F811
) -> None:
    name = by_repository(prefix, tmp_path, hub_server)
    first = BertForPreTraining.from_pretrained(name, cache_dir=cache)
    hub_server.stop()
    again = BertForPreTraining.from_pretrained(name, cache_dir=cache, local_files_only=True)
    assert_same_weights(again, first)


def test_a_repository_without_a_data_file_is_an_error(
    prefix: Path,
    hub_server: HubServer,  # noqa: F811
    cache: Path,  # noqa: F811
) -> None:
    for path in prefix.parent.iterdir():
        if "data" not in path.name:
            hub_server.add("someone/half", path.name, path.read_bytes())
    with pytest.raises(OSError, match=r"bert_model\.ckpt\.data-00000-of-00001 is missing"):
        BertModel.from_pretrained("someone/half", cache_dir=cache)


@pytest.fixture
def both(prefix: Path, tmp_path: Path) -> Path:
    """A folder with a TensorFlow checkpoint, and with other weights for PyTorch."""
    folder = Path(shutil.copytree(prefix.parent, tmp_path / "both"))
    random_model(seed=5).save_pretrained(folder)
    return folder


def test_where_both_are_the_flag_decides(both: Path, model: BertForPreTraining) -> None:
    assert_same_weights(BertForPreTraining.from_pretrained(both), random_model(seed=5))
    assert_same_weights(BertForPreTraining.from_pretrained(both, from_tf=True), model)


def test_a_configuration_that_is_named_finds_the_checkpoint_beside_it(prefix: Path, model: nn.Module) -> None:
    """As it finds PyTorch weights; both ways to ask."""
    for from_tf in (True, False):
        loaded = BertForPreTraining.from_pretrained(prefix.with_name(CONFIG), from_tf=from_tf)
        assert_same_weights(loaded, model)


def test_where_both_are_a_prefix_is_read_as_named(both: Path, model: BertForPreTraining) -> None:
    for name in (both / PREFIX, both / f"{PREFIX}.index"):
        assert_same_weights(BertForPreTraining.from_pretrained(name), model)


def test_several_checkpoints_need_a_choice(prefix: Path, tmp_path: Path) -> None:
    by_state_file(prefix, tmp_path, HubServer.__new__(HubServer))
    (tmp_path / "checkpoint").unlink()
    with pytest.raises(OSError, match=r"several TensorFlow checkpoints, model\.ckpt-10, model\.ckpt-20") as caught:
        BertModel.from_pretrained(tmp_path)
    assert str(tmp_path) in str(caught.value)
    BertModel.from_pretrained(tmp_path / "model.ckpt-20")
    random_model(seed=5).save_pretrained(tmp_path)  # PyTorch weights are no choice between the others
    BertModel.from_pretrained(tmp_path)
    with pytest.raises(OSError, match="several TensorFlow checkpoints"):
        BertModel.from_pretrained(tmp_path, from_tf=True)


def test_none_where_one_was_asked_for(
    tmp_path: Path,
    hub_server: HubServer,  # noqa: F811
    cache: Path,  # noqa: F811
) -> None:
    random_model(BertModel).save_pretrained(tmp_path / "saved")
    for name in (tmp_path / "saved", tmp_path / "saved" / "model.safetensors"):
        with pytest.raises(OSError, match=r"No TensorFlow checkpoint in .*looked for PREFIX\.index") as caught:
            BertModel.from_pretrained(name, from_tf=True)
        assert str(tmp_path / "saved") in str(caught.value)
    hub_server.add("someone/torch", "config.json", b"{}")
    with pytest.raises(OSError, match=r"model\.ckpt\.index and bert_model\.ckpt\.index"):
        BertModel.from_pretrained("someone/torch", from_tf=True, cache_dir=cache)


def test_a_checkpoint_without_a_configuration_names_the_file(prefix: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(prefix.parent, tmp_path / "bare"))
    (folder / CONFIG).unlink()
    with pytest.raises(OSError, match=r"no configuration; looked for config\.json and bert_config\.json"):
        BertModel.from_pretrained(folder)
    BertModel.from_pretrained(folder, config=prefix.with_name(CONFIG))


@pytest.mark.parametrize("name", ["bert_model.ckpt", "model.ckpt-1000"])
@pytest.mark.parametrize("from_tf", [False, True])
def test_v1_is_named_in_the_error(name: str, from_tf: bool, tmp_path: Path) -> None:
    """The old format, one file; torch is not asked to read it."""
    (tmp_path / name).write_bytes(b"\0" * 1000 + MAGIC)
    with pytest.raises(OSError, match="older format V1") as caught:
        BertModel.from_pretrained(tmp_path / name, from_tf=from_tf, config=tiny_config())
    assert str(tmp_path / name) in str(caught.value)


def test_a_ckpt_file_of_lightning_is_read_as_pytorch(model: BertForPreTraining, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(model.config.to_json_string(), encoding="utf-8")
    torch.save({"state_dict": model.state_dict(), "epoch": 3}, tmp_path / "epoch=3.ckpt")
    loaded = BertForPreTraining.from_pretrained(tmp_path / "epoch=3.ckpt")
    assert_same_weights(loaded, model)


def test_the_auto_classes_find_the_family(prefix: Path, classifier_prefix: Path) -> None:
    for name in (prefix.parent, prefix, prefix.with_name(f"{PREFIX}.index")):
        assert isinstance(AutoModel.from_pretrained(name), BertModel)
        assert isinstance(AutoModelWithLMHead.from_pretrained(name), pytorch_transformers.BertForMaskedLM)
    loaded = AutoModelForSequenceClassification.from_pretrained(classifier_prefix)
    assert loaded.config.num_labels == LABELS


# --- options of from_pretrained ---------------------------------------------------------------------------------------


def test_loading_info_names_what_is_new_and_what_was_not_used(prefix: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        _, info = BertForSequenceClassification.from_pretrained(prefix, output_loading_info=True)
    assert sorted(info["missing_keys"]) == ["classifier.bias", "classifier.weight"]
    assert set(info["unexpected_keys"]) == HEADS_OF_PRETRAINING
    assert info["mismatched_keys"] == info["error_msgs"] == []
    (record,) = (record for record in caplog.records if record.levelno >= logging.WARNING)
    for name in ("classifier.weight", "classifier.bias", *HEADS_OF_PRETRAINING):
        assert name in record.getMessage()


def test_what_fits_is_read_without_a_word(prefix: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        BertForPreTraining.from_pretrained(prefix)
    assert caplog.records == []


@pytest.mark.parametrize("dtype", [torch.bfloat16, "float16", "auto", None])
def test_dtype(dtype: Any, prefix: Path, model: BertForPreTraining) -> None:
    loaded = BertForPreTraining.from_pretrained(prefix, dtype=dtype)
    kind = {"float16": torch.float16, torch.bfloat16: torch.bfloat16}.get(dtype, torch.float32)
    for name, value in loaded.state_dict().items():
        assert value.dtype == kind, name
        assert torch.equal(value, model.state_dict()[name].to(kind)), name


def test_labels_are_read_from_the_checkpoint(classifier_prefix: Path, classifier: nn.Module, tmp_path: Path) -> None:
    """known_faults A1. A configuration given as a path says what the original's file says: nothing of labels."""
    elsewhere = shutil.copyfile(classifier_prefix.with_name(CONFIG), tmp_path / "sizes.json")
    for options in ({}, {"config": str(elsewhere)}, {"config": elsewhere}):
        loaded = BertForSequenceClassification.from_pretrained(classifier_prefix, **options)
        assert loaded.config.num_labels == LABELS
        assert_same_weights(loaded, classifier)


def test_labels_that_were_asked_for_are_not_replaced(classifier_prefix: Path) -> None:
    """A configuration given as an object, its values, or an option is what the caller wants."""
    two = tiny_config(num_labels=2)
    for options in ({"config": two}, {"config": two.to_dict()}, {"num_labels": 2}):
        with pytest.raises(ValueError, match=r"output_weights \[3, 40\] for classifier\.weight \[2, 40\]") as caught:
            BertForSequenceClassification.from_pretrained(classifier_prefix, **options)
        assert "output_bias [3] for classifier.bias [2]" in str(caught.value)
    three = BertForSequenceClassification.from_pretrained(classifier_prefix, config=tiny_config(num_labels=3))
    assert three.config.num_labels == 3


def test_names_of_labels_stay_where_their_number_is_right(classifier_prefix: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(classifier_prefix.parent, tmp_path / "named"))
    for names in (["no", "maybe", "yes"], ["no", "yes"]):
        values = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        (folder / CONFIG).write_text(json.dumps({**values, "id2label": dict(enumerate(names))}), encoding="utf-8")
        found = BertForSequenceClassification.from_pretrained(folder).config.id2label
        assert list(found.values()) == (names if len(names) == 3 else ["LABEL_0", "LABEL_1", "LABEL_2"])


def test_mismatched_sizes_may_be_ignored(classifier_prefix: Path, classifier: nn.Module) -> None:
    loaded, info = BertForSequenceClassification.from_pretrained(
        classifier_prefix, num_labels=5, ignore_mismatched_sizes=True, output_loading_info=True
    )
    assert sorted(info["mismatched_keys"]) == [
        ("classifier.bias", (3,), (5,)),
        ("classifier.weight", (3, HIDDEN), (5, HIDDEN)),
    ]
    assert loaded.classifier.weight.shape == (5, HIDDEN)
    assert loaded.classifier.weight.std() < 0.03  # new ones have 0.02, those of the checkpoint 0.3
    for name, value in loaded.bert.state_dict().items():
        assert torch.equal(value, classifier.state_dict()[f"bert.{name}"]), name


def test_a_kernel_of_three_axes_is_a_mismatch_like_any_other(prefix: Path, tmp_path: Path) -> None:
    """Later programs keep heads apart, [hidden, heads, size], under the same names."""
    split = changed(prefix, tmp_path, {"bert/pooler/dense/kernel": torch.ones(HIDDEN, 5, 8)})
    with pytest.raises(ValueError, match=r"dense/kernel \[40, 5, 8\] for bert\.pooler\.dense\.weight \[40, 40\]"):
        BertModel.from_pretrained(split)
    _, info = BertModel.from_pretrained(split, ignore_mismatched_sizes=True, output_loading_info=True)
    assert [name for name, _, _ in info["mismatched_keys"]] == ["pooler.dense.weight"]


class Tagger(BertPreTrainedModel):
    """As users write them."""

    def __init__(self, config: BertConfig, tags: int = 4) -> None:
        super().__init__(config)
        self.bert = BertModel(config)
        self.tagger = nn.Linear(config.hidden_size, tags)
        self.scale = nn.Parameter(torch.full((3,), 7.0))
        self.register_buffer("steps", torch.arange(4.0))


def test_modules_of_a_user_are_initialised(prefix: Path, model: BertForPreTraining) -> None:
    tagger, info = Tagger.from_pretrained(prefix, tags=6, output_loading_info=True)
    assert set(info["missing_keys"]) == {"tagger.weight", "tagger.bias", "scale", "steps"}
    assert tagger.tagger.weight.shape == (6, HIDDEN)
    assert 0.01 < tagger.tagger.weight.std() < 0.03
    assert not tagger.tagger.bias.any()
    assert tagger.scale.tolist() == [7.0, 7.0, 7.0]
    assert dict(tagger.named_buffers())["steps"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert_same_weights(tagger.bert, model.bert)
    with pytest.raises(ValueError, match=r"no such weights: scale, steps, tagger\.weight, tagger\.bias"):
        save_original(tagger, prefix.with_name("never"))
    assert not list(prefix.parent.glob("never*"))


def test_what_is_changed_in_memory_is_not_changed_in_the_file(tmp_path: Path) -> None:
    """The table of words is larger than 64 KiB, from which on values are mapped from the file."""
    prefix = save_checkpoint(random_model(vocab_size=1000), tmp_path)
    before = contents(tmp_path)
    loaded = BertForPreTraining.from_pretrained(prefix)
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.fill_(3.0)
    assert contents(tmp_path) == before
    assert_same_weights(BertForPreTraining.from_pretrained(prefix), random_model(vocab_size=1000))


def test_what_is_mapped_can_be_written_over(tmp_path: Path) -> None:
    """The new file takes the name of the old one, which the model still holds."""
    prefix = save_checkpoint(random_model(vocab_size=1000), tmp_path)
    loaded = BertForPreTraining.from_pretrained(prefix)
    with torch.no_grad():
        loaded.cls.seq_relationship.weight.fill_(3.0)
    save_original(loaded, prefix)
    expected = random_model(vocab_size=1000)
    with torch.no_grad():
        expected.cls.seq_relationship.weight.fill_(3.0)
    for found in (loaded, BertForPreTraining.from_pretrained(prefix)):
        assert_same_weights(found, expected)


def test_pytorch_weights_are_read_without_the_reader_of_the_original(tmp_path: Path) -> None:
    """Who has no original checkpoint does not wait for protobuf."""
    random_model(BertModel).save_pretrained(tmp_path)
    program = (
        "import sys\n"
        "from pytorch_transformers import BertModel\n"
        "BertModel.from_pretrained(sys.argv[1])\n"
        "sys.exit('google.protobuf' in sys.modules)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr


def test_what_is_loaded_can_be_trained_and_saved(prefix: Path, tmp_path: Path) -> None:
    loaded = BertForPreTraining.from_pretrained(prefix).train()
    optimizer = torch.optim.SGD(loaded.parameters(), lr=0.1)
    inputs = tiny_inputs(BertForPreTraining)
    loaded(**inputs, masked_lm_labels=inputs["input_ids"]).loss.backward()
    optimizer.step()
    loaded.save_pretrained(tmp_path)
    assert_same_weights(BertForPreTraining.from_pretrained(tmp_path), loaded)


# --- wrong configurations ---------------------------------------------------------------------------------------------

PER_LAYER = [name for name in own_weights(random_model(BertModel)) if ".layer.0." in name]


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("num_hidden_layers", LAYERS - 1, ["bert/encoder/layer_2/attention/self/query/kernel", "layer_2/output/dense"]),
        ("num_hidden_layers", LAYERS + 1, [name.replace(".0.", f".{LAYERS}.") for name in PER_LAYER]),
        ("hidden_size", 50, ["bert/embeddings/word_embeddings [99, 40]", "bert/encoder/layer_2/output/dense/kernel"]),
        ("vocab_size", VOCAB - 1, ["word_embeddings [99, 40]", "[98, 40]", "cls/predictions/output_bias [99]"]),
        ("vocab_size", VOCAB + 1, ["word_embeddings [99, 40]", "[100, 40]", "cls/predictions/output_bias [99]"]),
        ("max_position_embeddings", 19, ["position_embeddings [20, 40]", "[19, 40]"]),
        ("type_vocab_size", 2, ["token_type_embeddings [3, 40]", "[2, 40]"]),
        ("intermediate_size", 41, ["bert/encoder/layer_1/intermediate/dense/kernel [40, 37]", "[41, 40]"]),
    ],
)
def test_a_wrong_configuration_gives_no_model(field: str, value: int, named: list[str], prefix: Path) -> None:
    """One error that names every variable concerned; and a model that exists is left as it was."""
    changes: dict[str, Any] = {field: value}
    config = tiny_config(**changes)
    model = random_model(seed=3, **changes)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    calls: list[Callable[[], object]] = [
        lambda: BertForPreTraining.from_pretrained(prefix, config=config),
        lambda: BertForPreTraining.from_pretrained(prefix, **changes),
        lambda: load_tf_weights_in_bert(model, config, prefix),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=re.escape(str(prefix))) as caught:
            call()
        assert [text for text in named if text not in str(caught.value)] == []
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


# --- known faults -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model_class", [BertForSequenceClassification, BertForTokenClassification, BertModel])
def test_a1_top_level_output_weights(model_class: type[Any], classifier_prefix: Path, classifier: Any) -> None:
    loaded, info = model_class.from_pretrained(classifier_prefix, output_loading_info=True)
    assert info["missing_keys"] == []
    expected = classifier.state_dict()
    for name, value in own_weights(loaded).items():
        assert torch.equal(value, expected[name]), name
    if model_class is BertModel:
        assert sorted(info["unexpected_keys"]) == ["output_bias", "output_weights"]


def test_a1_as_many_labels_as_hidden_units_show_a_transpose(tmp_path: Path) -> None:
    square = random_model(BertForSequenceClassification, num_labels=HIDDEN)
    prefix = save_checkpoint(square, tmp_path)
    assert torch.equal(read_variables(prefix)["output_weights"], square.classifier.weight)
    assert_same_weights(BertForSequenceClassification.from_pretrained(prefix), square)


def test_a1_multiple_choice_has_one_score(tmp_path: Path) -> None:
    choice = random_model(BertForMultipleChoice)
    loaded = BertForMultipleChoice.from_pretrained(save_checkpoint(choice, tmp_path))
    assert_same_weights(loaded, choice)


BOOKKEEPING: dict[str, Tensor] = {
    **{
        f"bert/pooler/dense/kernel/{slot}": torch.full((HIDDEN, HIDDEN), 7.0)
        for slot in (
            *("adam_m", "adam_v", "AdamWeightDecayOptimizer", "AdamWeightDecayOptimizer_1", "Adam", "Adam_1"),
            *("LAMB", "LAMB_1", "LAMBOptimizer", "Momentum"),
        )
    },
    "global_step": torch.tensor(3),
    "beta1_power": torch.tensor(0.9),
    "beta2_power": torch.tensor(0.999),
    "loss_scale": torch.tensor(32768.0),
    "good_steps": torch.tensor(12),
    "signal_early_stopping/STOP": torch.tensor(True),
}


@pytest.mark.parametrize("name", [*BOOKKEEPING, "all"])
def test_a2_bookkeeping_changes_nothing_and_is_counted(
    name: str, prefix: Path, model: BertForPreTraining, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    added = BOOKKEEPING if name == "all" else {name: BOOKKEEPING[name]}
    more = changed(prefix, tmp_path, added)
    with caplog.at_level(logging.WARNING):
        loaded, info = BertForPreTraining.from_pretrained(more, output_loading_info=True)
    assert_same_weights(loaded, model)
    assert not any(info.values())
    assert caplog.records == []
    _, plan = original_state(model, Bundle(more))
    assert sorted(plan.ignored) == sorted(added)
    assert plan.left_out == plan.fresh == []


SHADOW = "zz_ema/bert/pooler/dense/bias"


def test_a3_a_shadow_variable_is_an_error_and_never_a_weight(
    prefix: Path, model: BertForPreTraining, tmp_path: Path
) -> None:
    shadowed = changed(prefix, tmp_path, {SHADOW: torch.full((HIDDEN,), 7.0)})
    for model_class in (BertForPreTraining, BertModel):
        with pytest.raises(ValueError, match=rf"no row of the table knows {SHADOW} \[40\] "):
            model_class.from_pretrained(shadowed)
    other = random_model(seed=4)
    before = random_model(seed=4)
    with pytest.raises(ValueError, match=SHADOW):
        load_tf_weights_in_bert(other, shadowed)
    assert_same_weights(other, before)
    load_tf_weights_in_bert(other, shadowed, ignore=["zz_ema/.*"])
    assert_same_weights(other, model)
    assert not torch.equal(other.bert.pooler.dense.bias, torch.full((HIDDEN,), 7.0))


def test_a3_stripping_the_scope_of_a_shadow_does_not_put_it_in(prefix: Path, tmp_path: Path) -> None:
    shadowed = changed(prefix, tmp_path, {SHADOW: torch.full((HIDDEN,), 7.0)})
    with pytest.raises(ValueError, match=r"no variable has the values of bert\.embeddings"):
        load_tf_weights_in_bert(random_model(), shadowed, scope="zz_ema")


@pytest.mark.parametrize("scope", ["model", "model/", "a/b"])
def test_a3_a_wrapping_scope_is_named_and_can_be_stripped(
    scope: str, prefix: Path, model: BertForPreTraining, tmp_path: Path
) -> None:
    wrapped = changed(prefix, tmp_path, {"global_step": torch.tensor(3)}, scope=f"{scope.strip('/')}/")
    for call in (lambda: BertForPreTraining.from_pretrained(wrapped), lambda: load_original(random_model(), wrapped)):
        with pytest.raises(ValueError, match="no row of the table knows") as caught:
            call()
        assert f"scope={scope.strip('/')!r}" in str(caught.value)
    loaded = load_original(random_model(seed=2), wrapped, scope=scope)
    assert_same_weights(loaded, model)


def test_a3_the_way_out_that_an_error_names_is_there(prefix: Path, tmp_path: Path) -> None:
    """The error of `from_pretrained` speaks of a scope; then one of the calls it names has to take it."""
    wrapped = changed(prefix, tmp_path, {}, scope="model/")
    with pytest.raises(ValueError, match="scope") as caught:
        BertForPreTraining.from_pretrained(wrapped)
    if "load_tf_weights" not in str(caught.value) and "convert" not in str(caught.value):
        BertForPreTraining.from_pretrained(wrapped, scope="model")


# --- the older calls --------------------------------------------------------------------------------------------------

LOADERS: dict[str, Callable[..., Any]] = {
    "pytorch_transformers": pytorch_transformers.load_tf_weights_in_bert,
    "modeling_bert": modeling_bert.load_tf_weights_in_bert,
    "BertModel": BertModel.load_tf_weights,
    "BertForPreTraining": BertForPreTraining.load_tf_weights,
}


@pytest.mark.parametrize("loader", LOADERS)
def test_load_tf_weights_takes_two_or_three_arguments(loader: str, prefix: Path, model: BertForPreTraining) -> None:
    for arguments in ((prefix,), (str(prefix),), (model.config, prefix), (None, str(prefix)), (prefix.parent,)):
        target = random_model(seed=2)
        assert LOADERS[loader](target, *arguments) is target
        assert_same_weights(target, model)
        assert target.cls.predictions.decoder.weight is target.bert.embeddings.word_embeddings.weight


def test_load_tf_weights_into_the_encoder_alone(prefix: Path, model: BertForPreTraining) -> None:
    encoder = BertModel.load_tf_weights(random_model(BertModel, seed=2), model.config, str(prefix))
    assert_same_weights(encoder, model.bert)


def test_load_tf_weights_refuses_other_arguments(prefix: Path, model: BertForPreTraining) -> None:
    with pytest.raises(TypeError, match=r"expected \(model, path\) or \(model, config, path\), found 1 arguments"):
        load_tf_weights_in_bert(model)
    with pytest.raises(TypeError, match="found 4 arguments"):
        load_tf_weights_in_bert(model, model.config, prefix, 1)
    with pytest.raises(TypeError, match="config: expected a configuration, found str"):
        load_tf_weights_in_bert(model, str(prefix), model.config)


def test_new_heads_keep_the_values_they_have(prefix: Path) -> None:
    target = random_model(BertForSequenceClassification, seed=2)
    before = target.classifier.weight.clone()
    load_tf_weights_in_bert(target, prefix)
    assert torch.equal(target.classifier.weight, before)


def test_parameters_stay_the_same_objects_and_the_type_of_the_model(prefix: Path, model: BertForPreTraining) -> None:
    """An optimizer may hold them already."""
    target = random_model(seed=2).to(torch.float64).train()
    parameters = list(target.parameters())
    load_tf_weights_in_bert(target, prefix)
    assert all(now is before for now, before in zip(target.parameters(), parameters, strict=True))
    assert target.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in target.parameters())
    for name, value in target.state_dict().items():
        assert torch.equal(value, model.state_dict()[name].double()), name


def test_copies_for_fast_inference_are_not_used_after_loading(prefix: Path, model: BertForPreTraining) -> None:
    target = random_model(seed=2).fuse_for_inference()
    inputs = tiny_inputs(BertForPreTraining)
    with torch.no_grad():
        target(**inputs)
        load_tf_weights_in_bert(target, prefix)
        ours, expected = target(**inputs), model(**inputs)
    assert torch.allclose(ours.prediction_logits, expected.prediction_logits, atol=1e-5, rtol=0)


def flipped(path: Path, place: int, mask: int = 0x10) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= mask
    path.write_bytes(content)


def test_damage_leaves_the_model_as_it_was(prefix: Path, tmp_path: Path) -> None:
    """The last variable of the file is damaged: all before it had been read."""
    folder = Path(shutil.copytree(prefix.parent, tmp_path / "damaged"))
    data = folder / f"{PREFIX}.data-00000-of-00001"
    flipped(data, -1)
    target = random_model(seed=2)
    with pytest.raises(OSError, match=re.escape(str(data))) as caught:
        load_tf_weights_in_bert(target, folder)
    assert "cls/seq_relationship/output_weights" in str(caught.value)
    assert_same_weights(target, random_model(seed=2))


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64, torch.bool])
def test_values_of_another_kind_are_an_error(dtype: torch.dtype, prefix: Path, tmp_path: Path) -> None:
    """Numbers that are no real ones would be cut or cast in silence."""
    strange = changed(prefix, tmp_path, {"bert/pooler/dense/bias": torch.ones(HIDDEN).to(dtype)})
    with pytest.raises(ValueError, match=r"bert[./]pooler[./]dense[./]bias"):
        BertForPreTraining.from_pretrained(strange)
    target = random_model(seed=2)
    with pytest.raises(ValueError, match=r"bert[./]pooler[./]dense[./]bias"):
        load_tf_weights_in_bert(target, strange)
    assert_same_weights(target, random_model(seed=2))


def test_no_checkpoint_is_an_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=re.escape(str(tmp_path / "gone"))):
        load_tf_weights_in_bert(random_model(), tmp_path / "gone")
    with pytest.raises(OSError, match=r"No TensorFlow checkpoint in .*looked for PREFIX\.index"):
        load_tf_weights_in_bert(random_model(), tmp_path)


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("model_class", MODELS)
def test_written_and_read_again_bit_for_bit(model_class: type[Any], dtype: torch.dtype, tmp_path: Path) -> None:
    saved = random_model(model_class).to(dtype)
    prefix = save_checkpoint(saved, tmp_path)
    loaded, info = model_class.from_pretrained(prefix, dtype="auto", output_loading_info=True)
    assert not any(info.values())
    assert {weight.dtype for weight in loaded.parameters()} == {torch.float32}, "the original has no other type"
    assert_same_weights(loaded, saved.float())


def test_the_original_finds_its_own_names_and_layout(model: BertForPreTraining, prefix: Path) -> None:
    """Spelled out from modeling.py and run_pretraining.py, as no table is to be trusted here."""
    variables = read_variables(prefix)
    state = model.state_dict()
    assert len(variables) == 5 + 16 * LAYERS + 2 + 5 + 2
    assert not any("decoder" in name for name in variables)
    for theirs, ours in (
        ("bert/embeddings/word_embeddings", "bert.embeddings.word_embeddings.weight"),
        ("bert/embeddings/LayerNorm/gamma", "bert.embeddings.LayerNorm.weight"),
        ("bert/embeddings/LayerNorm/beta", "bert.embeddings.LayerNorm.bias"),
        (
            "bert/encoder/layer_2/attention/output/LayerNorm/gamma",
            "bert.encoder.layer.2.attention.output.LayerNorm.weight",
        ),
        ("bert/encoder/layer_1/attention/self/value/bias", "bert.encoder.layer.1.attention.self.value.bias"),
        ("cls/predictions/output_bias", "cls.predictions.bias"),
        ("cls/seq_relationship/output_weights", "cls.seq_relationship.weight"),
    ):
        assert torch.equal(variables[theirs], state[ours]), theirs
    for theirs, ours in (
        ("bert/encoder/layer_0/attention/self/query/kernel", "bert.encoder.layer.0.attention.self.query.weight"),
        ("bert/encoder/layer_2/intermediate/dense/kernel", "bert.encoder.layer.2.intermediate.dense.weight"),
        ("bert/pooler/dense/kernel", "bert.pooler.dense.weight"),
        ("cls/predictions/transform/dense/kernel", "cls.predictions.transform.dense.weight"),
    ):
        assert torch.equal(variables[theirs], state[ours].t()), theirs


def test_pruned_heads_cannot_be_written(tmp_path: Path) -> None:
    pruned = random_model()
    pruned.prune_heads({1: [0, 2]})
    with pytest.raises(ValueError, match="BertForPreTraining has pruned heads"):
        save_original(pruned, tmp_path / PREFIX)
    assert list(tmp_path.iterdir()) == []


def test_an_untied_decoder_cannot_be_written(tmp_path: Path) -> None:
    """The original has no variable for it, so its values would be lost."""
    untied = random_model()
    untied.cls.predictions.decoder.weight = nn.Parameter(torch.ones(VOCAB, HIDDEN))
    with pytest.raises(ValueError, match=r"no such weights: cls\.predictions\.decoder\.weight"):
        save_original(untied, tmp_path / PREFIX)
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_values_cannot_be_written(tmp_path: Path) -> None:
    empty = BertModel.without_values(tiny_config())
    with pytest.raises(ValueError, match="on the meta device"):
        save_original(empty, tmp_path / PREFIX)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_checkpoint_before(
    model: BertForPreTraining, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = save_checkpoint(random_model(seed=6), tmp_path)
    before = contents(tmp_path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            save_original(model, prefix)
    assert contents(tmp_path) == before
    save_original(model, prefix)
    assert_same_weights(BertForPreTraining.from_pretrained(prefix), model)


# --- damage -----------------------------------------------------------------------------------------------------------

FEW: dict[str, Any] = {
    "num_hidden_layers": 1,
    "hidden_size": 10,
    "intermediate_size": 6,
    "vocab_size": 11,
    "max_position_embeddings": 4,
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes], BertForPreTraining]:
    """A checkpoint of a few kilobytes with slots, its files, and the model it is of."""
    folder = tmp_path_factory.mktemp("small")
    model = random_model(**FEW)
    first = save_checkpoint(model, folder / "first")
    slots = {f"bert/pooler/dense/bias/{slot}": torch.zeros(10) for slot in ("adam_m", "adam_v")}
    prefix = changed(first, folder / "second", {**slots, "global_step": torch.tensor(3)})
    return prefix, contents(prefix.parent), model


@settings(max_examples=150, derandomize=True)
@given(part=st.sampled_from(["index", "data-00000-of-00001"]), place=st.integers(0, 1 << 20), mask=st.integers(1, 255))
def test_any_flipped_byte_is_an_error_or_changes_nothing(
    small: tuple[Path, dict[str, bytes], BertForPreTraining], part: str, place: int, mask: int
) -> None:
    """Never a model with other weights, and never another error than one that names the file."""
    prefix, files, model = small
    path = prefix.with_name(f"{PREFIX}.{part}")
    place %= len(files[path.name])
    flipped(path, place, mask)
    message = ""
    try:
        loaded = BertForPreTraining.from_pretrained(prefix)
    except OSError as error:
        message = str(error)
    finally:
        path.write_bytes(files[path.name])
    if message:
        assert str(path) in message
    else:
        assert part != "index"  # every byte of it is under a checksum, or can have one value only
        assert_same_weights(loaded, model)


@settings(max_examples=60, derandomize=True)
@given(part=st.sampled_from(["index", "data-00000-of-00001"]), keep=st.integers(0, 1 << 20))
def test_a_cut_file_is_an_error(small: tuple[Path, dict[str, bytes], BertForPreTraining], part: str, keep: int) -> None:
    prefix, files, _ = small
    path = prefix.with_name(f"{PREFIX}.{part}")
    path.write_bytes(files[path.name][: keep % len(files[path.name])])
    try:
        with pytest.raises(OSError, match=re.escape(str(path))):
            BertForPreTraining.from_pretrained(prefix)
    finally:
        path.write_bytes(files[path.name])
