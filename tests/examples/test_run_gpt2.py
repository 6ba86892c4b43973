"""The script by its original flags: what it prints, and that a seed gives the same texts in any batch."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from generation.saved_gpt2 import POSITIONS, save_tiny_gpt2
from pytorch_transformers.cli.generate import load
from saved_bert import environment

SCRIPT = Path(__file__).parents[2] / "examples" / "run_gpt2.py"


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_gpt2(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_gpt2", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def samples(printed: str) -> list[str]:
    """The texts below their headings."""
    return [part.partition(f" {'=' * 40}\n")[2] for part in printed.split(f"{'=' * 40} SAMPLE ")[1:]]


def test_defaults_are_the_originals(script: ModuleType) -> None:
    assert vars(script._parse([])) == {
        "model_name_or_path": "gpt2",
        "seed": 0,
        "nsamples": 1,
        "batch_size": 1,
        "length": -1,
        "temperature": 1.0,
        "top_k": 0,
        "unconditional": False,
        "no_cuda": False,
    }
    assert script._parse(["--batch_size", "-1"]).batch_size == 1


def test_unconditional(script: ModuleType, gpt2: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--model_name_or_path", str(gpt2), "--unconditional", "--nsamples", "4", "--top_k", "40", "--no_cuda"]
    printed = []
    for batch_size in ("1", "2", "4"):
        assert script.main([*flags, "--batch_size", batch_size]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] == printed[2]
    wanted = load(str(gpt2), "float32", "cpu").generate(
        [None], top_k=40, num_samples=4, seed=0, max_new_tokens=POSITIONS // 2, eos_token_id=None
    )
    assert samples(printed[0]) == [f"{text.text}\n" for text in wanted]
    assert all(len(text.tokens) == POSITIONS // 2 for text in wanted)
    assert script.main([*flags, "--seed", "1"]) == 0
    assert capsys.readouterr().out != printed[0]


def test_asks_for_prompts(
    script: ModuleType, gpt2: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter(["the cat", "", "the cat"])

    def answer(question: str) -> str:
        assert question == "Model prompt >>> "
        try:
            return next(answers)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", answer)
    assert script.main(["--model_name_or_path", str(gpt2), "--length", "7", "--no_cuda"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("Prompt should not be empty!") == 1
    first, second = printed.split("Prompt should not be empty!\n")
    assert len(samples(printed)) == 2
    assert samples(first) != samples(second)  # the draws go on
    assert first.endswith("=" * 80 + "\n")


def test_as_a_process(gpt2: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--model_name_or_path", str(gpt2), "--length", "5", "--no_cuda"]
    done = subprocess.run(
        command, env=environment(), input="hello\n", capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert "SAMPLE 1" in done.stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--length", str(POSITIONS + 1)], f"Can't get samples longer than window size: {POSITIONS}"),
        (["--temperature", "0"], "temperature: 0"),
        (["--model_name_or_path", "./nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_used(
    script: ModuleType, gpt2: Path, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ["--model_name_or_path", str(gpt2), "--unconditional", "--no_cuda"]
    assert script.main([*model, *flags]) == 1
    assert message in capsys.readouterr().err


def test_whole_context(script: ModuleType, gpt2: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--model_name_or_path", str(gpt2), "--unconditional", "--no_cuda", "--length", str(POSITIONS)]
    assert script.main(flags) == 0
    assert len(samples(capsys.readouterr().out)) == 1


def test_help_shows_an_example(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        script.main(["--help"])
    assert raised.value.code == 0
    assert "example: python examples/run_gpt2.py" in capsys.readouterr().out


def test_samples_that_fill_no_batch(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        script.main(["--nsamples", "3", "--batch_size", "2"])
    assert raised.value.code == 2
    assert "--nsamples 3 is no multiple of --batch_size 2" in capsys.readouterr().err


def test_bad_typed_prompts_end_nothing(gpt2: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--model_name_or_path", str(gpt2), "--length", "5", "--no_cuda"]
    lines = b"x" * (POSITIONS + 1) + b"\n" + b"a\xff\nhello\n"
    done = subprocess.run(command, env=environment(), input=lines, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"SAMPLE 1") == 1
    assert f"this model has {POSITIONS} positions".encode() in done.stderr
    assert b"run_gpt2: not utf-8 (byte 0xff at character 1)" in done.stderr


def test_encoding_of_the_terminal_and_closed_pipe(gpt2: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--model_name_or_path", str(gpt2), "--unconditional", "--no_cuda"]
    ascii_only = {**environment(), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*command, "--top_k", "40"], env=ascii_only, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"\\u" in done.stdout
    with subprocess.Popen(
        [*command, "--nsamples", "9"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(60) == 141
    assert b"Traceback" not in said
