"""`convert` as a function: there and back for every model, what it writes, what it refuses, and the published names."""

import json
import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from original_bert import (
    CONFIG,
    KINDS,
    PREFIX,
    assert_same_weights,
    changed,
    contents,
    own_weights,
    random_model,
    read_variables,
    save_checkpoint,
)
from published import published
from pytorch_transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    BertTokenizer,
    convert_pytorch_checkpoint_to_tf,
    convert_tf_checkpoint_to_pytorch,
)
from pytorch_transformers.models import bert
from pytorch_transformers.models.bert.convert import original_config
from pytorch_transformers.models.conversion import Conversion
from pytorch_transformers.models.conversion import convert as convert_family
from shared_data import shared

from .bert.tiny import HIDDEN, LABELS, MODELS, tiny_config, tiny_inputs

LOG = "pytorch_transformers.models.bert.convert"


def convert(source: Path | str, out: Path, **options: Any) -> Conversion:
    return convert_family(bert.FAMILY, source, out, **options)


@pytest.fixture(scope="module")
def model() -> BertForPreTraining:
    found: BertForPreTraining = random_model()
    return found


@pytest.fixture(scope="module")
def prefix(model: BertForPreTraining, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its checkpoint, with a vocabulary; nothing changes it."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nonion\n", encoding="utf-8")
    return save_checkpoint(model, folder)


# --- there and back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("model_class", MODELS)
def test_there_and_back_is_bit_exact(model_class: type[Any], dtype: torch.dtype, tmp_path: Path) -> None:
    """PyTorch -> TensorFlow -> PyTorch, for every model; the head need not be named on the way out."""
    saved = random_model(model_class).to(dtype)
    saved.save_pretrained(tmp_path / "ours")
    there = convert(tmp_path / "ours", tmp_path / "theirs" / PREFIX)
    kind = KINDS[model_class.__name__]
    back = convert(tmp_path / "theirs", tmp_path / "again", head=kind)
    assert there.model_class == back.model_class == model_class.__name__
    weights = own_weights(saved)
    assert there.parameters == back.parameters == sum(value.numel() for value in weights.values())
    assert {step.source for step in there.plan.steps} == {step.target for step in back.plan.steps} == set(weights)
    assert back.plan.ignored == back.plan.left_out == back.plan.fresh == []
    loaded, info = model_class.from_pretrained(tmp_path / "again", dtype="auto", output_loading_info=True)
    assert not any(info.values())
    assert {weight.dtype for weight in loaded.parameters()} == {torch.float32}, "the original has no other type"
    assert_same_weights(loaded, saved.float())
    assert loaded.config.architectures == [model_class.__name__]
    if model_class is not BertForMultipleChoice:  # which has one score, whatever the number of labels
        assert loaded.config == saved.config


def test_the_second_writing_is_the_first_byte_for_byte(prefix: Path, tmp_path: Path) -> None:
    convert(prefix, tmp_path / "ours")
    convert(tmp_path / "ours", tmp_path / "theirs" / PREFIX)
    for ending in ("index", "data-00000-of-00001"):
        assert (tmp_path / "theirs" / f"{PREFIX}.{ending}").read_bytes() == Path(f"{prefix}.{ending}").read_bytes()
    convert(tmp_path / "theirs", tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "ours")


@pytest.mark.parametrize("name", ["out.bin", "pytorch_model.bin", "out.pt", "out.pth"])
def test_a_single_file_has_all_names_of_the_state_dict(
    name: str, prefix: Path, model: BertForPreTraining, tmp_path: Path
) -> None:
    """Tied names included, and still tied: other programs load it strictly."""
    done = convert(prefix, tmp_path / name)
    assert done.written == (tmp_path / name,)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    state = torch.load(tmp_path / name, weights_only=True)
    assert list(state) == list(state | model.state_dict())
    words, decoder = state["bert.embeddings.word_embeddings.weight"], state["cls.predictions.decoder.weight"]
    assert words.data_ptr() == decoder.data_ptr()
    other = random_model(seed=3)
    other.load_state_dict(state)
    assert_same_weights(other, model)


def test_a_folder_is_what_reading_the_original_gives(prefix: Path, tmp_path: Path) -> None:
    """The same outputs, bit for bit, and a tokenizer."""
    done = convert(prefix, tmp_path / "out")
    assert sorted(path.name for path in done.written) == ["config.json", "model.safetensors", "vocab.txt"]
    assert sorted(done.written) == sorted((tmp_path / "out").iterdir())
    inputs = tiny_inputs(BertForPreTraining)
    with torch.no_grad():
        direct = BertForPreTraining.from_pretrained(prefix)(**inputs)
        converted = BertForPreTraining.from_pretrained(tmp_path / "out")(**inputs)
    assert torch.equal(direct.prediction_logits, converted.prediction_logits)
    assert torch.equal(direct.seq_relationship_logits, converted.seq_relationship_logits)
    assert BertTokenizer.from_pretrained(tmp_path / "out", do_lower_case=True).tokenize("Onion") == ["onion"]


@pytest.mark.parametrize("folder", ["pretraining", "classifier", "squad", "sharded"])
def test_recorded_checkpoints_there_and_back(folder: str, tmp_path: Path) -> None:
    """Of the original program's own checkpoints everything comes back but what belongs to training."""
    source = shared("goldens", "bert", folder)
    config = shared("goldens", "bert", "bert_config.json")
    first = convert(source, tmp_path / "ours", config=config)
    convert(tmp_path / "ours", tmp_path / "theirs" / PREFIX)
    theirs, original = read_variables(tmp_path / "theirs" / PREFIX), read_variables(first.source)
    assert original.keys() - theirs.keys() == {*first.plan.ignored, *first.plan.left_out}
    assert all(torch.equal(value, original[name]) for name, value in theirs.items())
    pooler = {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}
    assert set(first.plan.left_out) == (pooler if folder == "squad" else set())


# --- heads, scopes, patterns, configuration ---------------------------------------------------------------------------


@pytest.mark.parametrize("model_class", MODELS)
def test_the_head_is_what_the_names_say(model_class: type[Any], tmp_path: Path) -> None:
    """Multiple choice and tokens have the names of the classifier, and are asked for by name."""
    prefix = save_checkpoint(random_model(model_class), tmp_path)
    if model_class is BertForTokenClassification:  # it has no pooler
        with pytest.raises(ValueError, match=r"into BertForSequenceClassification: .*bert\.pooler\.dense\.weight"):
            convert(prefix, tmp_path / "out")
        return
    expected = BertForSequenceClassification if model_class is BertForMultipleChoice else model_class
    assert convert(prefix, tmp_path / "out").model_class == expected.__name__


@pytest.mark.parametrize("head", ["model", "token_classification", "sequence_classification"])
def test_a1_the_head_of_a_classifier_can_be_chosen(head: str, tmp_path: Path) -> None:
    saved = random_model(BertForSequenceClassification)
    prefix = save_checkpoint(saved, tmp_path / "theirs")
    done = convert(prefix, tmp_path / "out", head=head)
    assert KINDS[done.model_class] == head
    loaded, info = bert.FAMILY.load(head).from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(info.values())
    for name, value in own_weights(loaded).items():
        assert torch.equal(value, saved.state_dict()[name]), name
    assert loaded.config.num_labels == LABELS


def test_a1_multiple_choice_by_name(tmp_path: Path) -> None:
    saved = random_model(BertForMultipleChoice)
    prefix = save_checkpoint(saved, tmp_path / "theirs")
    convert(prefix, tmp_path / "out", head="multiple_choice")
    assert_same_weights(BertForMultipleChoice.from_pretrained(tmp_path / "out"), saved)


def test_a_new_head_is_left_to_be_trained(prefix: Path, tmp_path: Path) -> None:
    done = convert(prefix, tmp_path / "out", head="question_answering")
    assert sorted(done.plan.fresh) == ["qa_outputs.bias", "qa_outputs.weight"]
    assert len(done.plan.left_out) == 9  # the two heads and the pooler
    _, info = BertForQuestionAnswering.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert sorted(info["missing_keys"]) == ["qa_outputs.bias", "qa_outputs.weight"]


@pytest.mark.parametrize("scope", ["model", "model/", "/model"])
@pytest.mark.parametrize("model_class", [BertForPreTraining, BertForSequenceClassification])
def test_a3_a_scope_is_stripped_however_it_is_spelled(scope: str, model_class: type[Any], tmp_path: Path) -> None:
    """The kind of model and the number of labels are found below the scope, too."""
    saved = random_model(model_class)
    plain = save_checkpoint(saved, tmp_path / "plain")
    scoped = changed(plain, tmp_path / "scoped", {"global_step": torch.tensor(1)}, scope="model/")
    done = convert(scoped, tmp_path / "out", scope=scope)
    assert done.model_class == model_class.__name__
    assert done.plan.left_out == []
    assert_same_weights(model_class.from_pretrained(tmp_path / "out"), saved)


def test_a3_a_shadow_variable_stops_it_unless_ignored(prefix: Path, model: BertForPreTraining, tmp_path: Path) -> None:
    shadow = "zz_ema/bert/pooler/dense/bias"
    shadowed = changed(prefix, tmp_path / "shadowed", {shadow: torch.full((HIDDEN,), 7.0)})
    with pytest.raises(ValueError, match=shadow):
        convert(shadowed, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    done = convert(shadowed, tmp_path / "out", ignore=["zz_ema/.+"])
    assert done.plan.ignored == [shadow]
    assert_same_weights(BertForPreTraining.from_pretrained(tmp_path / "out"), model)


def test_fields_of_the_configuration_can_be_changed(prefix: Path, tmp_path: Path) -> None:
    convert(prefix, tmp_path / "out", overrides={"hidden_act": "gelu_tanh", "hidden_dropout_prob": 0.25})
    config = BertConfig.from_pretrained(tmp_path / "out")
    assert (config.hidden_act, config.hidden_dropout_prob) == ("gelu_tanh", 0.25)
    with pytest.raises(ValueError, match="did you mean 'hidden_act'"):
        convert(prefix, tmp_path / "out", overrides={"hiden_act": "gelu"})
    with pytest.raises(TypeError, match="unknown option 'nonsense'"):
        convert(prefix, tmp_path / "out", overrides={"nonsense": 1})


@pytest.mark.parametrize("labels", [2, 4])
def test_another_number_of_labels_is_an_error(labels: int, tmp_path: Path) -> None:
    prefix = save_checkpoint(random_model(BertForSequenceClassification), tmp_path)
    with pytest.raises(ValueError, match=rf"output_weights \[3, 40\] for classifier\.weight \[{labels}, 40\]"):
        convert(prefix, tmp_path / "out", overrides={"num_labels": labels})


@pytest.mark.parametrize("layers", [2, 4])
def test_a_wrong_configuration_writes_nothing(layers: int, prefix: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(str(prefix))):
        convert(prefix, tmp_path / "out", overrides={"num_hidden_layers": layers})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("out", ["out", "out.bin"])
def test_values_of_another_kind_are_not_written(out: str, prefix: Path, tmp_path: Path) -> None:
    """Whole numbers where real ones belong: torch would not load them, or cut what is put into them."""
    strange = changed(prefix, tmp_path / "strange", {"bert/pooler/dense/bias": torch.ones(HIDDEN).long()})
    with pytest.raises(ValueError, match=r"bert[./]pooler[./]dense[./]bias"):
        convert(strange, tmp_path / out)
    assert not (tmp_path / out).exists()


def test_an_unknown_head_lists_those_there_are(prefix: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="head: bert has no 'clasifier'") as caught:
        convert(prefix, tmp_path / "out", head="clasifier")
    assert [kind for kind in KINDS.values() if kind not in str(caught.value)] == []


def test_a_missing_configuration_says_how_to_name_it(prefix: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(prefix.parent, tmp_path / "bare"))
    (folder / CONFIG).rename(tmp_path / "sizes.json")
    with pytest.raises(OSError, match=r"looked for config\.json and bert_config\.json.*--config FILE"):
        convert(folder, tmp_path / "out")
    with pytest.raises(OSError, match=r"gone\.json"):
        convert(folder, tmp_path / "out", config=tmp_path / "gone.json")
    assert not (tmp_path / "out").exists()
    convert(folder, tmp_path / "out", config=tmp_path / "sizes.json")


# --- ends that don't go together --------------------------------------------------------------------------------------


def test_weights_of_pytorch_are_not_converted_to_pytorch(model: BertForPreTraining, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "ours")
    with pytest.raises(ValueError, match=r"the folder .*ours holds PyTorch weights already; an OUT"):
        convert(tmp_path / "ours", tmp_path / "out")
    with pytest.raises(ValueError, match=r"model\.safetensors holds PyTorch weights already; an OUT"):
        convert(tmp_path / "ours" / "model.safetensors", tmp_path / "out.bin")
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


def test_a_tensorflow_checkpoint_is_not_converted_to_one(prefix: Path, tmp_path: Path) -> None:
    for source in (prefix, prefix.parent):
        with pytest.raises(ValueError, match=r"no PyTorch weights; an OUT that ends in \.ckpt is made of them"):
            convert(source, tmp_path / "out.ckpt")
    assert list(tmp_path.iterdir()) == []


def test_where_both_are_the_ending_of_the_result_decides(prefix: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(prefix.parent, tmp_path / "both"))
    other = random_model(seed=8)
    other.save_pretrained(folder)
    convert(folder, tmp_path / "ours")
    convert(folder, tmp_path / "theirs" / PREFIX)
    assert_same_weights(BertForPreTraining.from_pretrained(tmp_path / "ours"), random_model())
    assert_same_weights(BertForPreTraining.from_pretrained(tmp_path / "theirs"), other)


def test_a_name_of_a_weights_file_does_not_become_a_folder(prefix: Path, tmp_path: Path) -> None:
    """Whoever writes `model.safetensors` wants that file; a folder of this name is a surprise."""
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        convert(prefix, tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_in_place_beside_the_original(prefix: Path, model: BertForPreTraining, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(prefix.parent, tmp_path / "in place"))
    before = contents(folder)
    convert(folder, folder)
    after = contents(folder)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {"config.json", "model.safetensors"}
    assert_same_weights(BertForPreTraining.from_pretrained(folder), model)


# --- to the original --------------------------------------------------------------------------------------------------


def test_files_for_the_original_have_its_names(model: BertForPreTraining, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "ours")
    (tmp_path / "ours" / "vocab.txt").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "ours" / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    done = convert(tmp_path / "ours", tmp_path / "theirs" / PREFIX)
    names = {f"{PREFIX}.index", f"{PREFIX}.data-00000-of-00001", CONFIG, "vocab.txt", "tokenizer_config.json"}
    names |= {"checkpoint"}  # where TensorFlow looks for the latest
    assert {path.name for path in done.written} == {path.name for path in (tmp_path / "theirs").iterdir()} == names
    assert (tmp_path / "theirs" / "vocab.txt").read_text(encoding="utf-8") == "a\nb\n"
    values = json.loads((tmp_path / "theirs" / CONFIG).read_text(encoding="utf-8"))
    for field in (
        *("attention_probs_dropout_prob", "hidden_act", "hidden_dropout_prob", "hidden_size", "initializer_range"),
        *("intermediate_size", "max_position_embeddings", "num_attention_heads", "num_hidden_layers"),
        *("type_vocab_size", "vocab_size"),
    ):  # BertConfig.from_dict of modeling.py
        assert values[field] == getattr(model.config, field), field


def test_the_head_to_write_is_what_was_saved_or_named(tmp_path: Path) -> None:
    saved = random_model(BertForMaskedLM)
    saved.save_pretrained(tmp_path / "ours")
    assert convert(tmp_path / "ours", tmp_path / "a.ckpt").model_class == "BertForMaskedLM"
    values = json.loads((tmp_path / "ours" / "config.json").read_text(encoding="utf-8"))
    for architectures in ([], None, ["LlamaModel"]):
        (tmp_path / "ours" / "config.json").write_text(json.dumps({**values, "architectures": architectures}))
        with pytest.raises(ValueError, match="doesn't say what was saved; name the head, one of model, pre_training"):
            convert(tmp_path / "ours", tmp_path / "b" / "b.ckpt")
    assert not (tmp_path / "b").exists()
    assert convert(tmp_path / "ours", tmp_path / "b" / "b.ckpt", head="masked_lm").model_class == "BertForMaskedLM"


def test_a_head_that_was_not_saved_is_refused(tmp_path: Path) -> None:
    random_model(BertModel).save_pretrained(tmp_path / "ours")
    with pytest.raises(ValueError, match=r"no values for .*classifier\.weight.*BertForSequenceClassification; choose"):
        convert(tmp_path / "ours", tmp_path / "b.ckpt", head="sequence_classification")
    assert not list(tmp_path.glob("b.ckpt*"))


def test_names_that_were_not_used_are_reported(tmp_path: Path) -> None:
    random_model().save_pretrained(tmp_path / "ours")
    done = convert(tmp_path / "ours", tmp_path / "b.ckpt", head="model")
    assert all(name.startswith("cls.") for name in done.plan.left_out)
    assert len(done.plan.left_out) == 7
    assert not any(name.startswith("cls/") for name in read_variables(tmp_path / "b.ckpt"))


@pytest.mark.parametrize(
    ("activation", "written", "warned"),
    [
        ("gelu", "gelu", False),
        ("gelu_tanh", "gelu", True),
        ("gelu_new", "gelu", True),
        ("relu", "relu", False),
        ("tanh", "tanh", False),
    ],
)
def test_activations_under_the_names_of_the_original(
    activation: str, written: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, LOG):
        name, values = original_config(tiny_config(hidden_act=activation))
    assert name == CONFIG
    assert values["hidden_act"] == written
    assert bool(caplog.records) == warned
    if warned:
        assert f"ask for hidden_act='{activation}'" in caplog.text


@pytest.mark.parametrize(
    ("field", "value"), [("hidden_act", "silu"), ("hidden_act", "swish"), ("layer_norm_eps", 1e-5)]
)
def test_what_the_original_cannot_compute_is_refused(field: str, value: Any, tmp_path: Path) -> None:
    """And nothing is written: a checkpoint beside an error would be taken for a good one."""
    with pytest.raises(ValueError, match=f"{field}: the original BERT"):
        original_config(tiny_config(**{field: value}))
    random_model(**{field: value}).save_pretrained(tmp_path / "ours")
    with pytest.raises(ValueError, match=f"{field}: the original BERT"):
        convert(tmp_path / "ours", tmp_path / "theirs" / PREFIX)
    assert not (tmp_path / "theirs").exists() or list((tmp_path / "theirs").iterdir()) == []


def test_pruned_heads_are_refused(tmp_path: Path) -> None:
    pruned = random_model()
    pruned.prune_heads({0: [1]})
    pruned.save_pretrained(tmp_path / "ours")
    with pytest.raises(ValueError, match="pruned heads"):
        convert(tmp_path / "ours", tmp_path / "theirs" / PREFIX)
    assert not (tmp_path / "theirs").exists()


# --- whole or not at all ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["out", "out.bin", "out.ckpt"])
def test_a_full_disk_leaves_the_result_before(
    out: str, prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = tmp_path / "ours"
    random_model(seed=4).save_pretrained(ours)
    other = save_checkpoint(random_model(seed=5), tmp_path / "theirs")
    target = tmp_path / "results" / out

    def files() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(target.parent.rglob("*")) if path.is_file()}

    convert(ours if out.endswith(".ckpt") else other, target)
    before = files()
    assert before

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    random_model(seed=6).save_pretrained(tmp_path / "new")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            convert(tmp_path / "new" if out.endswith(".ckpt") else prefix, target)
    assert files() == before


@pytest.mark.parametrize("out", ["out", "out.bin"])
def test_damage_in_the_original_leaves_the_result_before(out: str, prefix: Path, tmp_path: Path) -> None:
    convert(prefix, tmp_path / "results" / out)
    before = {path: path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()}
    folder = Path(shutil.copytree(prefix.parent, tmp_path / "damaged"))
    data = folder / f"{PREFIX}.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-1] + b"\x55")
    with pytest.raises(OSError, match=re.escape(str(data))):
        convert(folder, tmp_path / "results" / out)
    assert {path: path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()} == before


# --- the report, and the published names ------------------------------------------------------------------------------


def test_the_report_has_a_form_for_json(prefix: Path, tmp_path: Path) -> None:
    more = changed(prefix, tmp_path / "more", {"global_step": torch.tensor(3)})
    done = convert(more, tmp_path / "out", head="sequence_classification")
    values = json.loads(json.dumps(done.as_dict()))
    assert values["source"] == str(more)
    assert values["written"] == [str(tmp_path / "out" / "model.safetensors"), str(tmp_path / "out" / "config.json")]
    assert values["model_class"] == "BertForSequenceClassification"
    assert values["ignored"] == ["global_step"]
    assert values["fresh"] == ["classifier.weight", "classifier.bias"]
    assert all(name.startswith("cls/") for name in values["left_out"])
    kernel = {
        "source": "bert/pooler/dense/kernel",
        "target": "bert.pooler.dense.weight",
        "operation": "transpose",
    }
    assert kernel in values["used"]
    weights = own_weights(BertModel.from_pretrained(more))
    assert len(values["used"]) == len(weights)
    assert values["parameters"] == sum(value.numel() for value in weights.values())


def test_published_function_to_pytorch(prefix: Path, model: BertForPreTraining, tmp_path: Path) -> None:
    """`convert_tf_checkpoint_to_pytorch(ckpt, config, out)`: a file that BertForPreTraining takes strictly."""
    config = prefix.with_name(CONFIG)
    out = tmp_path / "pytorch_model.bin"
    convert_tf_checkpoint_to_pytorch.convert_tf_checkpoint_to_pytorch(str(prefix), str(config), str(out))
    state = torch.load(out, weights_only=True)
    assert "cls.predictions.decoder.weight" in state
    loaded = BertForPreTraining(BertConfig.from_json_file(config))
    loaded.load_state_dict(state, strict=True)
    assert_same_weights(loaded, model)


def test_published_function_to_tensorflow(model: BertForPreTraining, prefix: Path, tmp_path: Path) -> None:
    function = convert_pytorch_checkpoint_to_tf.convert_pytorch_checkpoint_to_tf
    function(model, str(tmp_path / "new"), "bert-base-uncased")
    names = {"bert_base_uncased.ckpt.index", "bert_base_uncased.ckpt.data-00000-of-00001"}
    assert {path.name for path in (tmp_path / "new").iterdir()} == names
    ours, expected = read_variables(tmp_path / "new" / "bert_base_uncased.ckpt"), read_variables(prefix)
    assert ours.keys() == expected.keys()
    assert all(torch.equal(ours[name], expected[name]) for name in ours)


@pytest.mark.filterwarnings("ignore")  # of a package from 2019
def test_the_published_package_opens_the_file(prefix: Path, tmp_path: Path) -> None:
    """pytorch-pretrained-bert 0.6.2 itself."""
    original = published("pytorch_pretrained_bert", "modeling")
    convert(prefix, tmp_path / "pytorch_model.bin")
    shutil.copyfile(prefix.with_name(CONFIG), tmp_path / CONFIG)
    theirs = original.BertForPreTraining.from_pretrained(str(tmp_path)).eval()
    inputs = tiny_inputs(BertForPreTraining)
    with torch.no_grad():
        words, follows = theirs(inputs["input_ids"], inputs["token_type_ids"], inputs["attention_mask"])
        ours = BertForPreTraining.from_pretrained(prefix)(**inputs)
    real = inputs["attention_mask"].bool()
    assert torch.allclose(ours.prediction_logits[real], words[real], atol=1e-5, rtol=1e-5)
    assert torch.allclose(ours.seq_relationship_logits, follows, atol=1e-5, rtol=1e-5)
