"""`perplexity` end to end on a tiny GPT-2 in a folder."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from generation.saved_gpt2 import POSITIONS, save_tiny_gpt2
from pytorch_transformers.cli.generate import load
from pytorch_transformers.generation.perplexity import Perplexity, perplexity

from .conftest import Run

TEXT = "The cat sat on the mat.\n\nhello, hello: é \u2028the end ||| of it\n" * 4


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_gpt2(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT.encode())
    return path


def expected(folder: Path, text: str, *, start: bool = False, **options: Any) -> Perplexity:
    generator = load(str(folder), "float32", "cpu")
    ids = list(generator.tokenizer.encode(text, add_special_tokens=False))
    return perplexity(generator.model, [generator.tokenizer.bos_token_id or 0] * start + ids, **options)


def test_number_and_json(run: Run, gpt2: Path, file: Path) -> None:
    wanted = expected(gpt2, TEXT)
    status, printed, _ = run("perplexity", "--model", gpt2, "--input_file", file)
    assert (status, printed) == (0, f"perplexity {wanted.value:.4f}  ({wanted.tokens} tokens)\n")
    status, printed, _ = run("perplexity", "--model", gpt2, "--input_file", file, "--json")
    assert json.loads(printed) == pytest.approx(
        {"perplexity": wanted.value, "loss": wanted.loss / wanted.tokens, "tokens": wanted.tokens}
    )


@pytest.mark.parametrize("batch_size", [1, 3, 50])
def test_windows(run: Run, gpt2: Path, file: Path, batch_size: int) -> None:
    wanted = expected(gpt2, TEXT, window=20, stride=7)
    flags = ["--window", 20, "--stride", 7, "--batch_size", batch_size, "--json"]
    status, printed, _ = run("perplexity", "--model", gpt2, "--input_file", file, *flags)
    assert status == 0
    assert json.loads(printed)["perplexity"] == pytest.approx(wanted.value, rel=1e-6)


def test_byte_order_mark_and_line_ends(run: Run, gpt2: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = run("perplexity", "--model", gpt2, "--input_file", file)
    content = b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()
    file.write_bytes(content)
    assert run("perplexity", "--model", gpt2, "--input_file", file) == wanted
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert run("perplexity", "--model", gpt2, "--input_file", "-") == wanted


def test_start_token_scores_the_first_word_too(run: Run, gpt2: Path, file: Path) -> None:
    wanted = expected(gpt2, TEXT, start=True)
    status, printed, _ = run("perplexity", "--model", gpt2, "--input_file", file, "--json", "--start_token")
    assert status == 0
    assert json.loads(printed)["tokens"] == wanted.tokens == expected(gpt2, TEXT).tokens + 1
    assert json.loads(printed)["perplexity"] == pytest.approx(wanted.value)


@pytest.mark.parametrize(
    ("content", "flags", "message"),
    [
        (b"", [], "the text has 0 tokens"),
        (b"a", [], "the text has 1 tokens"),
        (b"ab\n\xff", [], "line 2: not UTF-8"),
        (b"ab", ["--window", str(POSITIONS + 1)], f"this model has {POSITIONS} positions"),
        (b"ab", ["--window", "4", "--stride", "4"], "must be below the window"),
    ],
)
def test_what_cannot_be_used(run: Run, gpt2: Path, file: Path, content: bytes, flags: list[str], message: str) -> None:
    file.write_bytes(content)
    status, printed, errors = run("perplexity", "--model", gpt2, "--input_file", file, *flags)
    assert (status, printed) == (1, "")
    assert message in errors


def test_missing_file(run: Run, gpt2: Path) -> None:
    status, _, errors = run("perplexity", "--model", gpt2, "--input_file", "nowhere.txt")
    assert status == 1
    assert "nowhere.txt" in errors


def test_infinite_is_null_and_not_a_number_an_error(run: Run, gpt2: Path, file: Path, tmp_path: Path) -> None:
    generator = load(str(gpt2), "float32", "cpu")
    generator.tokenizer.save_pretrained(tmp_path)  # type: ignore[attr-defined]
    model: Any = generator.model
    for scale, wanted in ((1e5, None), (float("nan"), "the model's loss is not a number")):
        with torch.no_grad():
            model.transformer.ln_f.bias.mul_(0).add_(1.0)
            model.transformer.ln_f.weight.fill_(scale)
        model.save_pretrained(tmp_path)
        status, printed, errors = run("perplexity", "--model", tmp_path, "--input_file", file, "--json")
        if wanted is None:
            assert status == 0
            found = json.loads(printed)
            assert found["perplexity"] is None
            assert found["loss"] > 1000
        else:
            assert (status, printed) == (1, "")
            assert wanted in errors
