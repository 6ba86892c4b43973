"""The commands that convert, as programs: published argument orders, help, exit codes; and what imports cost."""

import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import torch

import pytorch_pretrained_bert as classic
from models.battery import build
from models.gpt2.tiny import CASE as GPT2_CASE
from models.openai_gpt.tiny import CASE as OPENAI_CASE
from models.transfo_xl.test_conversion import corpus_file
from models.transfo_xl.tiny import CASE as XL_CASE
from original_bert import random_model, save_checkpoint
from published import published
from pytorch_pretrained_bert import commands
from pytorch_transformers import GPT2LMHeadModel, OpenAIGPTLMHeadModel, TransfoXLLMHeadModel
from pytorch_transformers.models.original import save_original

MODULE = "pytorch_pretrained_bert"


def run(*arguments: str | Path, module: str = MODULE, status: int = 0) -> str:
    """Run `python -m MODULE ...`; returns what it prints, on both streams."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", module, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def same_weights(found: Any, model: Any, prefix: str = "") -> None:
    state = model.state_dict()
    assert found.keys() == {name.removeprefix(prefix) for name in state if name.startswith(prefix)}
    for name, value in found.items():
        assert torch.equal(value, state[prefix + name]), name


def test_bert(tmp_path: Path) -> None:
    model = random_model()
    prefix = save_checkpoint(model, tmp_path / "original")
    config = prefix.with_name("bert_config.json")
    out = tmp_path / "pytorch_model.bin"
    assert str(out) in run("convert_tf_checkpoint_to_pytorch", prefix, config, out)
    same_weights(torch.load(out), model)
    arguments = ("--tf_checkpoint_path", prefix, "--bert_config_file", config, "--pytorch_dump_path", tmp_path / "b")
    run(*arguments, module=f"{MODULE}.convert_tf_checkpoint_to_pytorch")
    assert (tmp_path / "b").read_bytes() == out.read_bytes()


@pytest.mark.parametrize("family", ["gpt2", "openai"])
def test_gpt(family: str, tmp_path: Path) -> None:
    openai = family == "openai"
    options: dict[str, Any] = {} if openai else {"n_inner": None}
    model = build(OPENAI_CASE if openai else GPT2_CASE, OpenAIGPTLMHeadModel if openai else GPT2LMHeadModel, **options)
    source = tmp_path / "original" if openai else tmp_path / "original" / "model.ckpt"
    save_original(model, source)
    model.config.save_pretrained(tmp_path)
    run(f"convert_{family}_checkpoint", source, tmp_path / "out", tmp_path / "config.json")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"pytorch_model.bin", "config.json"}
    same_weights(torch.load(tmp_path / "out" / "pytorch_model.bin"), model, "transformer.")
    loaded = (classic.OpenAIGPTModel if openai else classic.GPT2Model).from_pretrained(str(tmp_path / "out"))
    assert loaded.config.n_layer == model.config.n_layer
    what = "folder_path" if openai else "path"
    script = f"{MODULE}.convert_{family}_checkpoint_to_pytorch"
    arguments = (f"--{family}_config_file", tmp_path / "config.json", "--pytorch_dump_folder_path", tmp_path / "again")
    run(f"--{family}_checkpoint_{what}", source, *arguments, module=script)
    again = tmp_path / "again" / "pytorch_model.bin"
    assert again.read_bytes() == (tmp_path / "out" / "pytorch_model.bin").read_bytes()


def test_transfo_xl(tmp_path: Path) -> None:
    model = build(XL_CASE, TransfoXLLMHeadModel)
    source = tmp_path / "original" / "model.ckpt"
    save_original(model, source)
    model.config.save_pretrained(tmp_path)
    run("convert_transfo_xl_checkpoint", source, tmp_path / "out", tmp_path / "config.json")
    loaded = classic.TransfoXLLMHeadModel.from_pretrained(str(tmp_path / "out"))
    # The frequencies of the positions are in files of 0.6.2, and not in ours.
    same_weights({name: value for name, value in loaded.state_dict().items() if "inv_freq" not in name}, model)


def test_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        source = corpus_file(tmp_path / "cache.pkl", patch)
    out = tmp_path / "out"
    run("convert_transfo_xl_checkpoint", source, out)
    assert {path.name for path in out.iterdir()} == {"vocab.bin", "corpus.bin"}
    corpus = classic.TransfoXLCorpus.from_pretrained(out)
    assert corpus.vocab.idx2sym[:2] == ["<eos>", "the"]
    arguments = ("--transfo_xl_dataset_file", source, "--pytorch_dump_folder_path", tmp_path / "again")
    run(*arguments, module=f"{MODULE}.convert_transfo_xl_checkpoint_to_pytorch")
    assert torch.load(tmp_path / "again" / "vocab.bin")["idx2sym"] == corpus.vocab.idx2sym
    theirs = published(MODULE, "tokenization_transfo_xl").TransfoXLCorpus
    with pytest.warns(UserWarning, match="clone"):  # of its own doing
        other = theirs.from_pretrained(str(out))
    assert isinstance(corpus.train, torch.Tensor)
    assert other.train.tolist() == corpus.train.tolist()
    assert other.dataset == corpus.dataset


def test_wrong_usage(tmp_path: Path) -> None:
    assert "VERB" in run(status=2)
    assert "convert_nothing" in run("convert_nothing", status=2)
    assert "PYTORCH_DUMP_OUTPUT" in run("convert_tf_checkpoint_to_pytorch", "a", "b", status=2)
    assert "nowhere" in run("convert_gpt2_checkpoint", tmp_path / "nowhere", tmp_path / "out", status=1)
    assert "--bert_config_file" in run(module=f"{MODULE}.convert_tf_checkpoint_to_pytorch", status=2)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("family", ["gpt2", "openai"])
def test_sizes_that_need_a_configuration(family: str, tmp_path: Path) -> None:
    """The message says how this program takes it, and what it says works."""
    openai = family == "openai"
    options: dict[str, Any] = {} if openai else {"n_inner": None}
    model = build(OPENAI_CASE if openai else GPT2_CASE, OpenAIGPTLMHeadModel if openai else GPT2LMHeadModel, **options)
    source = tmp_path / "original" if openai else tmp_path / "original" / "model.ckpt"
    save_original(model, source)
    for beside in (tmp_path / "original").glob("*config*.json"):
        beside.unlink()
    (tmp_path / "original" / "hparams.json").unlink(missing_ok=True)
    verb, out = f"convert_{family}_checkpoint", tmp_path / "out"
    told = run(verb, source, out, status=1)
    assert f"Name it as the third argument, {'OPENAI_GPT_CONFIG' if openai else 'GPT2_CONFIG'}." in told
    assert "config=FILE" not in told
    script = f"{MODULE}.convert_{family}_checkpoint_to_pytorch"
    given = (f"--{family}_checkpoint_{'folder_path' if openai else 'path'}", source, "--pytorch_dump_folder_path", out)
    told = run(*given, module=script, status=1)
    assert f"Name it: --{family}_config_file FILE." in told
    assert "config=FILE" not in told


@pytest.mark.parametrize("verb", [None, *commands.VERBS])
def test_help(verb: str | None, loads: Callable[[str], set[str]]) -> None:
    text = run(*([verb] if verb else []), "--help")
    assert "example: pytorch_pretrained_bert convert_" in text
    for argument in commands.VERBS[verb].arguments if verb else ():
        assert argument.metavar in text
    loaded = loads(f"from {MODULE}.commands import build_parser; build_parser().format_help()")
    assert not loaded & {"torch", "numpy", "tokenizers"}


def test_the_console_command_is_the_module() -> None:
    found = [each for each in entry_points(group="console_scripts") if each.name == MODULE]
    if not found:
        pytest.skip("the package was installed before it had the command")
    assert found[0].load() is commands.main


def test_the_version_is_that_of_the_interface() -> None:
    assert classic.__version__ == "0.6.2"
    assert run("--version") == "pytorch_pretrained_bert 0.6.2\n"


def test_import_is_light(loads: Callable[[str], set[str]]) -> None:
    loaded = loads(f"import {MODULE}")
    assert MODULE in loaded
    assert not loaded & {"torch", "numpy", "tokenizers", "huggingface_hub", "pytorch_transformers"}


def test_import_adds_at_most_a_tenth_of_a_second_to_that_of_torch() -> None:
    code = f"import time, torch\nstart = time.perf_counter()\nimport {MODULE}\nprint(time.perf_counter() - start)"
    times = []
    for _ in range(5):  # the least of several: the machine may be busy
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
        times.append(float(done.stdout))
        if min(times) < 0.1:
            return
        time.sleep(1)
    raise AssertionError(f"the import takes {min(times):.2f} s")
