"""The script by its published options, as a process on a tiny saved model with its corpus."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from generation.saved_transfo_xl import (
    TEXT,
    save_published_corpus,
    save_published_transfo_xl,
    save_tiny_corpus,
    save_tiny_transfo_xl,
)
from pytorch_transformers import TransfoXLCorpus, TransfoXLLMHeadModel
from pytorch_transformers.models.transfo_xl.evaluation import PAPER, evaluate
from saved_bert import environment

SCRIPT = Path(__file__).parents[2] / "examples" / "run_transfo_xl.py"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model, vocabulary and corpus in one folder, as the published name has them."""
    return save_tiny_corpus(save_tiny_transfo_xl(tmp_path_factory.mktemp("transfo-xl")))


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_transfo_xl", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def started(*flags: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPT), *map(str, flags), "--no_cuda"]
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, encoding="utf-8", check=False, timeout=120
    )


def line(model: Path, splits: tuple[str, ...], **lengths: Any) -> str:
    """What the script says of those splits."""
    loaded, corpus, said = TransfoXLLMHeadModel.from_pretrained(model), TransfoXLCorpus.from_pretrained(model), []
    for split in splits:
        found = evaluate(loaded, getattr(corpus, split), **{**PAPER, **lengths})
        said.append(f"{split} loss {found.loss / found.tokens:5.2f} | {split} ppl {found.value:9.3f}")
    return f"| {' | '.join(said)} |"


def test_defaults_are_those_of_the_paper(script: ModuleType) -> None:
    options = vars(script._parse([]))
    assert {name: options[name] for name in PAPER} == PAPER
    published = {"model_name": "transfo-xl-wt103", "batch_size": 10, "no_cuda": False, "no_log": False}
    assert {name: options[name] for name in published} == published
    assert script._parse(["--same_length"]).same_length
    assert not script._parse(["--no_same_length"]).same_length


def test_as_a_process(model: Path, tmp_path: Path) -> None:
    flags = ["--split", "all", "--batch_size", 2, "--tgt_len", 8, "--mem_len", 12, "--ext_len", 1, "--clamp_len", 5]
    wanted = line(model, ("valid", "test"), batch_size=2, tgt_len=8, mem_len=12, ext_len=1, clamp_len=5)
    folder = tmp_path / "new" / "results"
    for _ in range(2):
        done = started("--model_name", model, *flags, "--same_length", "--work_dir", folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{'=' * 100}\n{wanted}\n{'=' * 100}\n"
    log = (folder / "log.txt").read_text()
    assert log.count(wanted) == 2
    assert "'clamp_len': 5" in log


def test_default_lengths_and_no_log(model: Path, tmp_path: Path) -> None:
    done = started("--model_name", model, "--work_dir", tmp_path, "--no_log")
    assert done.returncode == 0, done.stderr
    assert line(model, ("test",)) in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_text_file_and_max_eval_steps(
    model: Path, script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text is the test part of the corpus."""
    file = tmp_path / "text.txt"
    file.write_text(TEXT, encoding="utf-8")
    lengths = {"mem_len": 12, "tgt_len": 8, "batch_size": 2, "max_eval_steps": 2}
    flags = [
        "--model_name",
        str(model),
        "--no_cuda",
        *(str(part) for n, v in lengths.items() for part in (f"--{n}", v)),
    ]
    wanted = line(model, ("test",), **lengths)
    assert wanted != line(model, ("test",), **{**lengths, "max_eval_steps": None})
    assert script.main(flags) == 0
    assert wanted in capsys.readouterr().out
    assert script.main([*flags, "--input_file", str(file)]) == 0
    assert wanted.replace("test", "text") in capsys.readouterr().out
    for more, message in ((["--split", "test"], "a text has no splits"), (["--corpus", str(model)], "one of the two")):
        assert script.main([*flags, "--input_file", str(file), *more]) == 1
        assert message in capsys.readouterr().err


def test_published_folder(script: ModuleType, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As 1.2.0 saves it: no `model_type`, pickles."""
    save_published_corpus(save_published_transfo_xl(tmp_path))
    assert script.main(["--model_name", str(tmp_path), "--mem_len", "12", "--no_cuda"]) == 0
    assert line(model, ("test",), mem_len=12) in capsys.readouterr().out


def test_corpus_elsewhere(model: Path, script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TransfoXLLMHeadModel.from_pretrained(model).save_pretrained(tmp_path)
    flags = ["--model_name", str(tmp_path), "--mem_len", "12", "--no_cuda"]
    assert script.main(flags) == 1
    assert "no corpus in" in capsys.readouterr().err
    assert script.main([*flags, "--corpus", str(model)]) == 0
    assert line(model, ("test",), mem_len=12) in capsys.readouterr().out


def test_what_cannot_be_used(script: ModuleType, tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--model_name", str(tiny), "--no_cuda"]) == 1
    assert "run_transfo_xl: " in capsys.readouterr().err
    with pytest.raises(SystemExit) as raised:
        script.main(["--split", "train"])
    assert raised.value.code == 2


def test_help_shows_an_example(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        script.main(["--help"])
    assert raised.value.code == 0
    assert "example: python examples/run_transfo_xl.py" in capsys.readouterr().out
