"""`generate` end to end on a tiny GPT-2 in a folder, against the library."""

import io
import json
import select
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from generation.saved_gpt2 import POSITIONS, save_tiny_gpt2
from pytorch_transformers.cli.generate import load
from pytorch_transformers.generation import TextGenerator
from saved_bert import COMMAND, environment

from .conftest import Run


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_gpt2(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="module")
def generator(gpt2: Path) -> TextGenerator:
    return load(str(gpt2), "float32", "cpu")


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts bytes on standard input."""

    def typed(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))

    return typed


def test_one_text(run: Run, gpt2: Path, generator: TextGenerator) -> None:
    status, printed, _ = run("generate", "--model", gpt2, "the cat", "--max_new_tokens", 12)
    assert status == 0
    assert printed == f"the cat{generator.generate('the cat', max_new_tokens=12).text}\n"
    status, printed, _ = run("generate", "--model", gpt2, "the cat", "--max_new_tokens", 12, "--no_echo")
    assert printed == f"{generator.generate('the cat', max_new_tokens=12).text}\n"


def test_every_option_reaches_the_library(run: Run, gpt2: Path, generator: TextGenerator) -> None:
    options: dict[str, Any] = {
        "max_new_tokens": 20,
        "min_new_tokens": 3,
        "min_length": 2,
        "temperature": 1.2,
        "top_k": 50,
        "top_p": 0.95,
        "repetition_penalty": 1.2,
        "no_repeat_ngram_size": 3,
        "seed": 5,
        "window": 10,
        "prefill_chunk": 2,
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    more = ["--no_top_p_crossing", "--stop", "zz", "--stop", "qq", "--do_sample"]
    status, printed, _ = run("generate", "--model", gpt2, "hello", *flags, *more, "--no_echo")
    assert status == 0
    wanted = generator.generate("hello", **options, top_p_crossing=False, stop_strings=["zz", "qq"], do_sample=True)
    assert printed == f"{wanted.text}\n"


def test_samples_streamed_and_as_json_are_the_same(run: Run, gpt2: Path, generator: TextGenerator) -> None:
    flags = ["--model", gpt2, "the cat", "hello", "--num_samples", 3, "--seed", 2, "--max_new_tokens", 8]
    wanted = generator.generate(["the cat", "hello"], num_samples=3, seed=2, max_new_tokens=8)
    for batch_size in (1, 2, 8):
        status, printed, _ = run("generate", *flags, "--json", "--batch_size", batch_size)
        assert status == 0
        found = [json.loads(line) for line in printed.splitlines()]
        assert [(each["prompt"], each["sample"]) for each in found] == [(w.prompt, w.sample) for w in wanted]
        for ours, text in zip(found, wanted, strict=True):
            assert list(ours) == ["prompt", "sample", "text", "tokens", "finish_reason"]
            assert (ours["text"], ours["tokens"], ours["finish_reason"]) == (text.text, text.tokens, text.finish_reason)
    status, printed, _ = run("generate", *flags)
    lines = [
        f"{'=' * 20} prompt {1 + number // 3}, sample {text.sample + 1} {'=' * 20}\n{text.prompt}{text.text}\n"
        for number, text in enumerate(wanted)
    ]
    assert printed == "".join(lines)


def test_prompts_of_a_file(run: Run, gpt2: Path, generator: TextGenerator, tmp_path: Path, typed: Any) -> None:
    """A byte order mark and CR LF are no text; ` ||| ` means nothing here, and white space is part of the prompt."""
    content = b"\xef\xbb\xbfthe cat\r\na ||| b\r\n  hello  \r\n"
    (tmp_path / "in.txt").write_bytes(content)
    wanted = [(p, generator.generate(p, max_new_tokens=4).text) for p in ("the cat", "a ||| b", "  hello  ")]
    for file in (tmp_path / "in.txt", "-"):
        typed(content)
        status, printed, _ = run(
            "generate", "--model", gpt2, "--input_file", file, "--json", "--max_new_tokens", 4, "--batch_size", 2
        )
        assert status == 0
        assert [(o["prompt"], o["text"]) for o in map(json.loads, printed.splitlines())] == wanted


def test_interactive(run: Run, gpt2: Path, generator: TextGenerator, typed: Any) -> None:
    """A prompt that can't be used ends nothing."""
    typed(f"the cat\n\n{'x' * (POSITIONS + 1)}\nhello\n".encode())
    status, printed, errors = run("generate", "--model", gpt2, "--interactive", "--max_new_tokens", 5)
    assert status == 0
    texts = [f"{p}{generator.generate(p, max_new_tokens=5).text}\n" for p in ("the cat", "hello")]
    assert printed == "".join(texts)
    assert errors.count("prompt> ") == 5
    assert "should not be empty" in errors
    assert f"this model has {POSITIONS} positions" in errors


def test_without_a_seed_each_run_differs(run: Run, gpt2: Path) -> None:
    torch.manual_seed(0)
    first = run("generate", "--model", gpt2, "hello", "--do_sample")
    torch.manual_seed(0)
    assert run("generate", "--model", gpt2, "hello", "--do_sample") != first


def test_unconditional(run: Run, gpt2: Path, generator: TextGenerator) -> None:
    status, printed, _ = run("generate", "--model", gpt2, "--unconditional", "--max_new_tokens", 5, "--seed", 1)
    assert (status, printed) == (0, f"{generator.generate(None, max_new_tokens=5).text}\n")


def test_text_comes_in_pieces(gpt2: Path) -> None:
    """As a process: what is there before the end can be read before the end, and Ctrl-C ends it."""
    command = [*COMMAND, "generate", "--model", str(gpt2), "the cat", "--max_new_tokens", "100000", "--window", "8"]
    # Unbuffered, as the test reads bytes as they come.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        assert process.stdout.read(30).startswith(b"the cat")
        assert process.poll() is None
        process.terminate()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "give prompts in one of these ways: PROMPT, --input_file, --interactive, --unconditional; found none"),
        (["x", "--interactive"], "found PROMPT and --interactive"),
        (["", "--json"], "prompt 1: empty, but a text follows from a prompt; --unconditional starts from nothing"),
        ([""], "--unconditional starts from nothing"),
        (["\udcff"], "prompt 1: not "),
        (["x", "--top_p", "1.5"], "top_p: 1.5, must be a number from 0.0 to 1.0"),
        (["x", "--temperature", "0"], "temperature: 0, must be above 0; for the likeliest token give --no_do_sample"),
        (["x" * (POSITIONS + 1), "--json"], "or pass --window N to go on"),
        (["x", "--no_do_sample", "--top_k", "3"], "top_k is for draws"),
        (["x" * (POSITIONS + 1)], f"this model has {POSITIONS} positions"),
        (["x", "--max_new_tokens", "900"], "ask for 48 new tokens at most"),
        (["--input_file", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_what_cannot_be_used(run: Run, gpt2: Path, flags: list[str], message: str) -> None:
    status, printed, errors = run("generate", "--model", gpt2, *flags)
    assert (status, printed) == (1, "")
    assert message in errors


def test_bad_file(run: Run, gpt2: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"a\n\nb\n")
    status, _, errors = run("generate", "--model", gpt2, "--input_file", tmp_path / "in.txt")
    assert status == 1
    assert "line 2: empty" in errors
    (tmp_path / "in.txt").write_bytes(b"\xff\n")
    status, _, errors = run("generate", "--model", gpt2, "--input_file", tmp_path / "in.txt")
    assert status == 1
    assert "line 1: not UTF-8" in errors
    assert "on_bad_line" not in errors


@pytest.mark.parametrize("flags", [["--json"], ["--json", "--batch_size", 2], ["--no_echo"]], ids=str)
@pytest.mark.parametrize("given", ["file", "arguments"])
def test_bad_prompts_are_named_and_others_continued(
    run: Run, gpt2: Path, generator: TextGenerator, tmp_path: Path, flags: list[Any], given: str
) -> None:
    long = "x" * (POSITIONS + 1)
    lines = ["the cat", "", long, "hello", "\udcff", "é"]
    (tmp_path / "in.txt").write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    prompts = ["--input_file", tmp_path / "in.txt"] if given == "file" else lines
    status, printed, errors = run("generate", "--model", gpt2, "--max_new_tokens", 4, *flags, *prompts)
    assert status == 1
    name = "in.txt, line" if given == "file" else "prompt"
    said = [line for line in errors.splitlines() if line.startswith("pytorch_transformers generate: ")]
    assert len(said) == 3
    for line, number, message in zip(said, (2, 3, 5), ("empty", f"{POSITIONS} positions", "not "), strict=True):
        assert f"{name} {number}: " in line
        assert message in line
    wanted = [generator.generate(text, max_new_tokens=4).text for text in ("the cat", "hello", "é")]
    if "--json" in flags:
        assert [json.loads(line)["text"] for line in printed.splitlines()] == wanted
    else:
        heading = "=" * 20
        numbers = (1, 4, 6)
        assert printed == "".join(
            f"{heading} prompt {number}, sample 1 {heading}\n{text}\n"
            for number, text in zip(numbers, wanted, strict=True)
        )


@pytest.mark.parametrize("flags", [["--interactive"], ["--input_file", "-"]])
def test_json_answers_each_prompt_as_it_comes(gpt2: Path, flags: list[str]) -> None:
    command = [*COMMAND, "generate", "--model", str(gpt2), "--json", "--max_new_tokens", "3", *flags]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment()) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for prompt in ("hello", " the cat "):
            process.stdin.write(f"{prompt}\n".encode())
            process.stdin.flush()
            # Else nothing would come before the end of the input.
            assert select.select([process.stdout], [], [], 60)[0]
            assert json.loads(process.stdout.readline())["prompt"] == prompt
        process.stdin.close()
        assert process.wait(60) == 0


def test_typed_bytes_that_are_no_text(run: Run, gpt2: Path, generator: TextGenerator, typed: Any) -> None:
    typed(b"a\xff\n hello \r\n")
    status, printed, errors = run("generate", "--model", gpt2, "--interactive", "--max_new_tokens", 5)
    assert (status, printed) == (0, f" hello {generator.generate(' hello ', max_new_tokens=5).text}\n")
    assert "prompt 1: not utf-8 (byte 0xff at character 1)" in errors


def test_model_whose_scores_are_not_finite(run: Run, gpt2: Path, tmp_path: Path) -> None:
    model = load(str(gpt2), "float32", "cpu")
    model.tokenizer.save_pretrained(tmp_path)  # type: ignore[attr-defined]
    with torch.no_grad():
        model.model.transformer.ln_f.bias.fill_(float("nan"))  # type: ignore[attr-defined]
    model.model.save_pretrained(tmp_path)  # type: ignore[attr-defined]
    for flags in (["--json"], []):
        status, _, errors = run("generate", "--model", tmp_path, "x", *flags)
        assert status == 1
        assert "prompt 1: the model's scores are not finite" in errors


def test_model_without_a_language_model(run: Run, tiny: Path) -> None:
    status, _, errors = run("generate", "--model", tiny, "x")
    assert status == 1
    assert "bert has no language model" in errors


def test_model_of_another_size(run: Run, tmp_path: Path) -> None:
    save_tiny_gpt2(tmp_path, vocab_size=100)
    status, _, errors = run("generate", "--model", tmp_path, "x")
    assert status == 1
    assert "the tokenizer has 268 tokens, but the model 100" in errors


def test_decoder_without_a_head_has_the_tied_one(
    run: Run, gpt2: Path, generator: TextGenerator, tmp_path: Path
) -> None:
    """The output layer is the table of tokens, so nothing is missing from a file of the decoder alone."""
    generator.tokenizer.save_pretrained(tmp_path)  # type: ignore[attr-defined]
    generator.model.transformer.save_pretrained(tmp_path)  # type: ignore[attr-defined]
    arguments = ("hello", "--max_new_tokens", 5)
    assert run("generate", "--model", tmp_path, *arguments)[:2] == run("generate", "--model", gpt2, *arguments)[:2]
