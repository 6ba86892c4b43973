"""`create-token-stream`: text of any family as ids."""

from pathlib import Path

import pytest

from generation.saved_gpt2 import save_tiny_gpt2
from generation.saved_transfo_xl import save_tiny_transfo_xl
from pytorch_transformers import GPT2Tokenizer, TransfoXLTokenizer
from pytorch_transformers.data.pretraining import TokenStream
from saved_gpt import save_tiny_gpt

from .conftest import Run


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Two files of three paragraphs."""
    folder = tmp_path / "text"
    folder.mkdir()
    for name in "ab":
        (folder / f"{name}.txt").write_text(f"the cat {name}\nsat\n\nhello the mat\n\n\nthe cat\n", encoding="utf-8")
    return folder


def words(text: Path, output: Path, tokenizer: Path, *more: object) -> list[object]:
    return [
        "create-token-stream",
        "--input_file",
        text / "*.txt",
        "--output_dir",
        output,
        "--tokenizer",
        tokenizer,
        *more,
    ]


@pytest.mark.parametrize(("layout", "documents"), [("files", 2), ("blank_line", 6), ("lines", 8)])
def test_gpt2(run: Run, text: Path, tmp_path: Path, layout: str, documents: int) -> None:
    model, out = save_tiny_gpt2(tmp_path / "gpt2"), tmp_path / "out"
    status, printed, errors = run(*words(text, out, model, "--layout", layout))
    assert (status, printed) == (0, "")
    stream, tokenizer = TokenStream(out, verify=True), GPT2Tokenizer.from_pretrained(model)
    assert stream.index.documents == documents
    assert f"{out}: {len(stream)} tokens of {documents} documents" in errors
    end = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    assert stream.index.end_id == end
    assert [stream.document(number)[-1] for number in range(documents)] == [end] * documents
    last = tokenizer.decode(stream.document(documents - 1).tolist())
    assert last.endswith("the cat<|endoftext|>")


def test_other_families(run: Run, text: Path, tmp_path: Path) -> None:
    model = save_tiny_transfo_xl(tmp_path / "transfo_xl")
    assert run(*words(text, tmp_path / "a", model, "--layout", "lines", "--processes", 2))[0] == 0
    stream, tokenizer = TokenStream(tmp_path / "a"), TransfoXLTokenizer.from_pretrained(model)
    assert tokenizer.convert_ids_to_tokens(stream.document(2).tolist()) == ["<unk>", "the", "mat", "<eos>"]
    gpt = save_tiny_gpt(tmp_path / "gpt")
    status, _, errors = run(*words(text, tmp_path / "b", gpt))
    assert status == 1
    assert "create-token-stream: the tokenizer has no end token" in errors
    assert run(*words(text, tmp_path / "b", gpt, "--end_token", "none"))[0] == 0
    assert TokenStream(tmp_path / "b").index.end_id is None
    assert run(*words(text, tmp_path / "c", gpt, "--end_token", "<unk>"))[0] == 0
    assert TokenStream(tmp_path / "c").document(0)[-1] == TokenStream(tmp_path / "c").index.end_id


def test_what_cannot_be_used(run: Run, text: Path, tmp_path: Path) -> None:
    model = save_tiny_gpt2(tmp_path / "gpt2")
    for given, message in (
        (words(tmp_path, tmp_path / "out", model), "there is no such text file"),
        (words(text, tmp_path / "out", tmp_path / "none"), "none"),
        (words(text, tmp_path / "out", model, "--end_token", "[END]"), "end_token: '[END]' is not in the tokenizer's"),
    ):
        status, _, errors = run(*given)
        assert status == 1
        assert message in errors
    for path in text.iterdir():
        path.write_text(" \n\n")
    status, _, errors = run(*words(text, tmp_path / "out", model))
    assert status == 1
    assert "there is no text in" in errors


def test_help(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("create-token-stream", "--help")
    printed = capsys.readouterr().out
    for words in ("--layout files", "--end_token", "example:", "pytorch_transformers create-token-stream --input_file"):
        assert words in printed
