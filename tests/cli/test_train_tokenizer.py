"""`train-tokenizer`: files that `from_pretrained` loads with the options they were made with."""

from pathlib import Path

import pytest

from pytorch_transformers import BertTokenizer, GPT2Tokenizer

from .conftest import Run

TEXT = "Low lower lowest towers. Lower towers show.\n" * 5


@pytest.fixture
def text(tmp_path: Path) -> Path:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text(TEXT, encoding="utf-8")
    return tmp_path / "one.txt"


@pytest.mark.parametrize("lower", [True, False])
def test_wordpiece(run: Run, text: Path, lower: bool) -> None:
    out = text.parent / "new" / "bert"
    flags = [] if lower else ["--no_do_lower_case"]
    status, printed, errors = run(
        *("train-tokenizer", "--input_file", text.parent / "*.txt", "--output_dir", out, "--vocab_size", 60), *flags
    )
    assert (status, printed) == (0, "")
    tokenizer = BertTokenizer.from_pretrained(out)
    assert f"{out}: {len(tokenizer)} tokens" in errors
    assert tokenizer.do_lower_case is lower
    assert tokenizer.tokenize("Lower") == (["lower"] if lower else ["Lower"])
    assert (out / "vocab.txt").read_text().startswith("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")


def test_byte_bpe(run: Run, text: Path) -> None:
    out = text.parent / "gpt2"
    status, _, errors = run(
        *("train-tokenizer", "--kind", "byte-bpe", "--input_file", text, text.parent / "two.txt"),
        *("--output_dir", out, "--vocab_size", 5000),
    )
    assert status == 0
    assert "(the text has no more)" in errors
    tokenizer = GPT2Tokenizer.from_pretrained(out)
    assert tokenizer.tokenize("Low towers") == ["Low", "Ġtowers"]
    assert tokenizer.eos_token_id == len(tokenizer) - 1
    assert (out / "merges.txt").read_text().startswith("#version: 0.2\n")


def test_what_cannot_be_used(run: Run, text: Path) -> None:
    flags = ["train-tokenizer", "--output_dir", text.parent / "out", "--input_file"]
    status, _, errors = run(*flags, text.parent / "none")
    assert status == 1
    assert "there is no such text file" in errors
    status, _, errors = run(*flags, text, "--kind", "byte-bpe", "--limit_alphabet", 5)
    assert status == 1
    assert "--limit_alphabet is for --kind wordpiece" in errors
    assert not (text.parent / "out").exists()
