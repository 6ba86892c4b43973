"""`convert` and its older spelling on the command line: from a checkpoint to files, and what is said of it."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hub.conftest import cache, hub_server  # noqa: F401  # fixtures
from hub.server import HubServer
from models.bert.tiny import HIDDEN, tiny_inputs
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
from pytorch_transformers import (
    BertConfig,
    BertForMultipleChoice,
    BertForPreTraining,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
)
from saved_bert import COMMAND, VOCABULARY, environment

from .conftest import Run

FAMILY = ("--family", "bert")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prefix of a checkpoint in a folder as Google's archives have it, with the slots of training."""
    folder = tmp_path_factory.mktemp("original")
    first = save_checkpoint(random_model(), folder / "first")
    slots = {f"bert/pooler/dense/bias/{slot}": torch.full((HIDDEN,), 7.0) for slot in ("adam_m", "adam_v")}
    prefix = changed(first, folder / "uncased", {**slots, "global_step": torch.tensor(3)})
    (prefix.parent / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return prefix


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(random_model(BertForSequenceClassification, seed=1), tmp_path_factory.mktemp("classifier"))


def test_into_a_folder(run: Run, original: Path, tmp_path: Path) -> None:
    status, printed, errors = run("convert", *FAMILY, original, tmp_path / "out")
    assert (status, errors) == (0, "")
    weights = own_weights(random_model())
    count = sum(value.numel() for value in weights.values())
    assert printed.splitlines() == [
        f"BertForPreTraining from {original}",
        f"used      {len(weights)} tensors, {count:,} values",
        "ignored   3 variables that are not part of the model",
        *(f"written   {tmp_path / 'out' / name}" for name in ("model.safetensors", "config.json", "vocab.txt")),
    ]
    assert_same_weights(BertForPreTraining.from_pretrained(tmp_path / "out"), random_model())
    assert (tmp_path / "out" / "vocab.txt").read_bytes() == (original.parent / "vocab.txt").read_bytes()
    status, printed, _ = run("info", tmp_path / "out", "--json")
    assert (status, json.loads(printed)["parameters"]) == (0, count)


@pytest.mark.parametrize("source", ["prefix", "index", "folder"])
def test_the_source_may_be_named_in_any_way(run: Run, original: Path, tmp_path: Path, source: str) -> None:
    names = {"prefix": original, "index": original.with_name(f"{PREFIX}.index"), "folder": original.parent}
    status, printed, _ = run("convert", *FAMILY, names[source], tmp_path / "out")
    assert status == 0
    assert printed.startswith(f"BertForPreTraining from {original}\n")


def test_into_one_file(run: Run, original: Path, tmp_path: Path) -> None:
    status, printed, _ = run("convert", *FAMILY, original, tmp_path / "pytorch_model.bin")
    assert status == 0
    assert f"written   {tmp_path / 'pytorch_model.bin'}\n" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["pytorch_model.bin"]
    loaded = BertForPreTraining(random_model().config)
    loaded.load_state_dict(torch.load(tmp_path / "pytorch_model.bin", weights_only=True))
    assert_same_weights(loaded, random_model())


def test_into_a_checkpoint_of_the_original_and_back(run: Run, tiny: Path, tmp_path: Path) -> None:
    status, printed, _ = run("convert", *FAMILY, tiny, tmp_path / "theirs" / PREFIX)
    assert status == 0
    for name in (f"{PREFIX}.index", f"{PREFIX}.data-00000-of-00001", CONFIG, "vocab.txt", "tokenizer_config.json"):
        assert f"written   {tmp_path / 'theirs' / name}\n" in printed
    assert run("convert", *FAMILY, tmp_path / "theirs", tmp_path / "again")[0] == 0
    expected = BertForPreTraining.from_pretrained(tiny)
    assert_same_weights(BertForPreTraining.from_pretrained(tmp_path / "again"), expected)
    assert (tmp_path / "again" / "vocab.txt").read_bytes() == (tiny / "vocab.txt").read_bytes()


def test_the_converted_folder_gives_what_the_original_gives(run: Run, original: Path, tmp_path: Path) -> None:
    assert run("convert", *FAMILY, original, tmp_path / "out")[0] == 0
    inputs = tiny_inputs(BertForPreTraining)
    with torch.no_grad():
        direct = BertForPreTraining.from_pretrained(original)(**inputs)
        ours = BertForPreTraining.from_pretrained(tmp_path / "out")(**inputs)
    assert torch.equal(direct.prediction_logits, ours.prediction_logits)
    assert torch.equal(direct.seq_relationship_logits, ours.seq_relationship_logits)


def test_verbs_that_load_a_model_take_the_original_itself(run: Run, tmp_path: Path) -> None:
    model = random_model(vocab_size=len(VOCABULARY))
    prefix = save_checkpoint(model, tmp_path / "theirs")
    (tmp_path / "theirs" / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    assert run("convert", *FAMILY, prefix, tmp_path / "ours")[0] == 0
    printed = [run("fill-mask", "--model", place, "the [MASK]") for place in (tmp_path / "ours", prefix, prefix.parent)]
    assert {(status, text) for status, text, _ in printed} == {(0, printed[0][1])}
    assert printed[0][1]


def test_report_in_json(run: Run, original: Path, tmp_path: Path) -> None:
    status, printed, errors = run("convert", *FAMILY, original, tmp_path / "out", "--head", "model", "--json")
    assert (status, errors) == (0, "")
    found = json.loads(printed)
    assert found.keys() == {
        *("source", "written", "model_class", "parameters", "used", "ignored", "left_out", "fresh"),
    }
    assert found["source"] == str(original)
    assert found["model_class"] == "BertModel"
    assert sorted(found["ignored"]) == sorted(
        ["bert/pooler/dense/bias/adam_m", "bert/pooler/dense/bias/adam_v", "global_step"]
    )
    assert len(found["left_out"]) == 7
    assert found["fresh"] == []
    names = [*(step["source"] for step in found["used"]), *found["ignored"], *found["left_out"]]
    assert sorted(names) == sorted(read_variables(original))
    assert [Path(path).name for path in found["written"]] == ["model.safetensors", "config.json", "vocab.txt"]


def test_what_is_left_out_and_what_is_new_is_said(run: Run, original: Path, tmp_path: Path) -> None:
    status, printed, _ = run("convert", *FAMILY, original, tmp_path / "out", "--head", "sequence_classification")
    assert status == 0
    assert "left out  7, which BertForSequenceClassification doesn't have: cls/predictions/output_bias, " in printed
    assert "fresh     2, to be trained: classifier.weight, classifier.bias\n" in printed


@pytest.mark.parametrize(
    ("head", "model_class"),
    [
        (None, BertForSequenceClassification),
        ("sequence_classification", BertForSequenceClassification),
        ("token_classification", BertForTokenClassification),
        ("model", BertModel),
    ],
)
def test_a1_heads_of_a_classifier(
    run: Run, classifier: Path, tmp_path: Path, head: str | None, model_class: type[Any]
) -> None:
    flags = () if head is None else ("--head", head)
    status, printed, _ = run("convert", *FAMILY, classifier, tmp_path / "out", *flags)
    assert status == 0
    assert printed.startswith(f"{model_class.__name__} from ")
    expected = random_model(BertForSequenceClassification, seed=1).state_dict()
    loaded, info = model_class.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(info.values())
    assert all(torch.equal(value, expected[name]) for name, value in own_weights(loaded).items())
    assert loaded.config.num_labels == 3


def test_a1_multiple_choice(run: Run, tmp_path: Path) -> None:
    prefix = save_checkpoint(random_model(BertForMultipleChoice), tmp_path / "theirs")
    assert run("convert", *FAMILY, prefix, tmp_path / "out", "--head", "multiple_choice")[0] == 0
    assert_same_weights(BertForMultipleChoice.from_pretrained(tmp_path / "out"), random_model(BertForMultipleChoice))


@pytest.mark.parametrize("scope", ["model", "model/"])
def test_a3_scope(run: Run, original: Path, tmp_path: Path, scope: str) -> None:
    wrapped = changed(original, tmp_path / "wrapped", {}, scope="model/")
    status, printed, errors = run("convert", *FAMILY, wrapped, tmp_path / "out")
    assert (status, printed) == (1, "")
    assert "--scope model" in errors
    assert not (tmp_path / "out").exists()
    status, printed, _ = run("convert", *FAMILY, wrapped, tmp_path / "out", "--scope", scope)
    assert status == 0
    assert "BertForPreTraining from" in printed
    assert_same_weights(BertForPreTraining.from_pretrained(tmp_path / "out"), random_model())


def test_a3_ignore(run: Run, original: Path, tmp_path: Path) -> None:
    shadows = {f"{scope}/bert/pooler/dense/bias": torch.full((HIDDEN,), 7.0) for scope in ("zz_ema", "zz_avg")}
    shadowed = changed(original, tmp_path / "shadowed", shadows)
    flags = ("--ignore", "zz_ema/.*")
    status, _, errors = run("convert", *FAMILY, shadowed, tmp_path / "out", *flags)
    assert status == 1
    assert "zz_avg/bert/pooler/dense/bias" in errors
    assert "zz_ema/" not in errors.replace("'zz_ema/.*'", "")
    status, printed, _ = run("convert", *FAMILY, shadowed, tmp_path / "out", *flags, "--ignore", "zz_avg/.*")
    assert status == 0
    assert "ignored   5 variables" in printed
    assert_same_weights(BertForPreTraining.from_pretrained(tmp_path / "out"), random_model())


def test_set_changes_the_configuration(run: Run, original: Path, tmp_path: Path) -> None:
    settings = ("hidden_act=gelu_tanh", "hidden_dropout_prob=0.25", 'id2label={"0": "a=b", "1": "c"}')
    flags = [flag for setting in settings for flag in ("--set", setting)]
    assert run("convert", *FAMILY, original, tmp_path / "out", *flags)[0] == 0
    config = BertConfig.from_pretrained(tmp_path / "out")
    assert (config.hidden_act, config.hidden_dropout_prob) == ("gelu_tanh", 0.25)
    assert config.id2label == {0: "a=b", 1: "c"}


def test_configuration_elsewhere(run: Run, original: Path, tmp_path: Path) -> None:
    bare = Path(shutil.copytree(original.parent, tmp_path / "bare"))
    (bare / CONFIG).rename(tmp_path / "sizes.json")
    status, _, errors = run("convert", *FAMILY, bare, tmp_path / "out")
    assert status == 1
    assert "looked for config.json and bert_config.json" in errors
    assert "--config FILE" in errors
    assert not (tmp_path / "out").exists()
    assert run("convert", *FAMILY, bare, tmp_path / "out", "--config", tmp_path / "sizes.json")[0] == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--head", "nonsense"), "head: bert has no 'nonsense'; use one of model, pre_training, masked_lm"),
        (("--ignore", "("), "ignore: '(' is no regular expression"),
        (("--set", "hiden_act=gelu"), "did you mean 'hidden_act'"),
        (("--set", "nonsense=1"), "unknown option 'nonsense'"),
        (("--set", "num_hidden_layers=4"), "no variable has the values of bert.encoder.layer.3."),
        (("--set", "num_hidden_layers=2"), "bert/encoder/layer_2/"),
        (("--set", 'hidden_size="wide"'), "hidden_size"),
        (("--config", "gone.json"), "gone.json"),
    ],
)
def test_what_cannot_be_used(run: Run, original: Path, tmp_path: Path, flags: tuple[str, ...], message: str) -> None:
    status, printed, errors = run("convert", *FAMILY, original, tmp_path / "out", *flags)
    assert (status, printed) == (1, "")
    assert errors.startswith("pytorch_transformers convert: ")
    assert message in errors
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("flags", [("--set", "hidden_act"), ("--set", "=gelu"), ("--family", "llama")])
def test_wrong_usage(run: Run, original: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as raised:
        run("convert", *FAMILY, original, tmp_path / "out", *flags)
    assert raised.value.code == 2


def test_ends_that_do_not_go_together(run: Run, original: Path, tiny: Path, tmp_path: Path) -> None:
    for source, out, message in (
        (tiny, "out", "holds PyTorch weights already; an OUT that ends in .ckpt"),
        (tiny / "model.safetensors", "out", "holds PyTorch weights already"),
        (tiny / "model.safetensors", "out.bin", "an OUT that ends in .ckpt makes a TensorFlow checkpoint"),
        (original, "out.ckpt", "no PyTorch weights; an OUT that ends in .ckpt is made of them"),
        (tmp_path / "gone", "out", str(tmp_path / "gone")),
    ):
        status, printed, errors = run("convert", *FAMILY, source, tmp_path / out)
        assert (status, printed) == (1, "")
        assert message in errors
    assert list(tmp_path.iterdir()) == []


def test_from_the_hub(
    run: Run,
    original: Path,
    hub_server: HubServer,  # noqa: F811
    cache: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    for path in original.parent.iterdir():
        hub_server.add("someone/original", path.name, path.read_bytes())
    flags = ("--cache_dir", cache)
    status, printed, _ = run("convert", *FAMILY, "someone/original", tmp_path / "out", *flags)
    assert status == 0
    assert printed.count("written") == 3
    hub_server.stop()
    assert run("convert", *FAMILY, "someone/original", tmp_path / "out2", *flags, "--local_files_only")[0] == 0
    assert contents(tmp_path / "out2") == contents(tmp_path / "out")


# --- whole or not at all ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["out", "out.bin"])
def test_damage_leaves_the_result_before(run: Run, original: Path, tmp_path: Path, out: str) -> None:
    target = tmp_path / "results" / out
    assert run("convert", *FAMILY, original, target)[0] == 0
    before = {path: path.read_bytes() for path in target.parent.rglob("*") if path.is_file()}
    damaged = Path(shutil.copytree(original.parent, tmp_path / "damaged"))
    data = damaged / f"{PREFIX}.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-5])
    status, printed, errors = run("convert", *FAMILY, damaged, target)
    assert (status, printed) == (1, "")
    assert str(data) in errors
    assert {path: path.read_bytes() for path in target.parent.rglob("*") if path.is_file()} == before


# The process may write no file beyond its limit (`RLIMIT_FSIZE`): the system refuses the write that crosses it.
_LIMITED = r"""
import resource, signal, sys
from pytorch_transformers.cli.main import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
original, tiny, results = sys.argv[1:]
for source, out in ((original, "out"), (original, "out.bin"), (tiny, "out.ckpt")):
    print(main(["convert", "--family", "bert", source, f"{results}/{out}"]))
"""


def test_a_disk_that_fills_up_leaves_the_results_before(run: Run, original: Path, tiny: Path, tmp_path: Path) -> None:
    for source, out in ((original, "out"), (original, "out.bin"), (tiny, "out.ckpt")):
        assert run("convert", *FAMILY, source, tmp_path / out)[0] == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(before) > 6
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(original), str(tiny), str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert (done.returncode, done.stdout) == (0, "1\n1\n1\n"), done.stderr
    assert done.stderr.count("pytorch_transformers convert: ") == 3
    assert "Traceback" not in done.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


# --- progress ---------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_shown_on_a_terminal_only(
    run: Run, original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, _, errors = run("convert", *FAMILY, original, tmp_path / "out")
    assert (status, errors) == (0, "")
    terminal = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        assert run("convert", *FAMILY, original, tmp_path / "out")[0] == 0
    used = len(own_weights(random_model()))
    assert "reading" in terminal.getvalue()
    assert f"{used}/{used}" in terminal.getvalue()


# --- the older spelling -----------------------------------------------------------------------------------------------


def test_classic_command(run: Run, original: Path, tmp_path: Path) -> None:
    """Three arguments, as published; the file has the name of the tied decoder too, and loads strictly."""
    config = original.with_name(CONFIG)
    out = tmp_path / "pytorch_model.bin"
    status, printed, errors = run("convert_tf_checkpoint_to_pytorch", original, config, out)
    assert (status, errors) == (0, "")
    assert printed.startswith(f"BertForPreTraining from {original}\n")
    state = torch.load(out, weights_only=True)
    assert "cls.predictions.decoder.weight" in state
    loaded = BertForPreTraining(BertConfig.from_json_file(config))
    loaded.load_state_dict(state, strict=True)
    assert_same_weights(loaded, random_model())
    (tmp_path / "folder").mkdir()
    assert run("convert_tf_checkpoint_to_pytorch", original, config, tmp_path / "folder")[0] == 0
    assert_same_weights(BertForPreTraining.from_pretrained(tmp_path / "folder"), random_model())


def test_classic_command_with_a_wrong_configuration(run: Run, original: Path, tmp_path: Path) -> None:
    config = tmp_path / "sizes.json"
    values = json.loads(original.with_name(CONFIG).read_text(encoding="utf-8"))
    config.write_text(json.dumps({**values, "vocab_size": 98}), encoding="utf-8")
    status, printed, errors = run("convert_tf_checkpoint_to_pytorch", original, config, tmp_path / "out.bin")
    assert (status, printed) == (1, "")
    assert errors.startswith("pytorch_transformers convert_tf_checkpoint_to_pytorch: ")
    assert re.search(r"word_embeddings \[99, 40\] for \S+ \[98, 40\], .*output_bias \[99\]", errors)
    assert not (tmp_path / "out.bin").exists()


def test_help_names_every_head(capsys: pytest.CaptureFixture[str], run: Run) -> None:
    with pytest.raises(SystemExit):
        run("convert", "--help")
    text = " ".join(capsys.readouterr().out.split())
    assert [kind for kind in KINDS.values() if kind not in text] == []


def test_as_a_process(original: Path, tmp_path: Path) -> None:
    """With nothing but the command, in a folder where the names are relative."""
    done = subprocess.run(
        [*COMMAND, "convert", "--family", "bert", PREFIX, str(tmp_path / "out")],
        check=False,
        capture_output=True,
        text=True,
        cwd=original.parent,
        env=environment(PYTHONWARNINGS="error", COLUMNS="80"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"written   {os.path.join(tmp_path, 'out', 'config.json')}\n" in done.stdout  # noqa: PTH118
