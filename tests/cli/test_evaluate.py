"""`evaluate` end to end on a tiny Transformer-XL in a folder."""

import io
import json
import logging
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from generation.saved_gpt2 import save_tiny_gpt2
from generation.saved_transfo_xl import (
    TEXT,
    save_published_corpus,
    save_published_transfo_xl,
    save_tiny_corpus,
    save_tiny_transfo_xl,
    tiny_tokenizer,
)
from pytorch_transformers import TransfoXLConfig, TransfoXLCorpus, TransfoXLLMHeadModel
from pytorch_transformers.generation.perplexity import Perplexity
from pytorch_transformers.models.family import family_of
from pytorch_transformers.models.transfo_xl.evaluation import PAPER, evaluate

from .conftest import Run

TOKENS = 64
#: What the paper's lengths would take needless time for.
SHORT = ["--tgt_len", 8, "--mem_len", 12]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_transfo_xl(tmp_path_factory.mktemp("transfo-xl"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT.encode())
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `save_pretrained` writes it; the splits are the text, and two thirds of it."""
    return save_tiny_corpus(tmp_path_factory.mktemp("corpus"))


def expected(folder: Path, ids: Any, **lengths: Any) -> Perplexity:
    model = TransfoXLLMHeadModel.from_pretrained(folder)
    return evaluate(model, ids, **{**PAPER, "mem_len": 12, "tgt_len": 8, **lengths})


def text_ids(lines: list[str], *, eos: bool = True) -> list[int]:
    tokenizer = tiny_tokenizer()
    return [token for line in lines for token in tokenizer.convert_tokens_to_ids([*line.split(), *["<eos>"] * eos])]


def test_number_and_json(run: Run, folder: Path, file: Path) -> None:
    wanted = expected(folder, text_ids(TEXT.splitlines()))
    status, printed, _ = run("evaluate", "--model", folder, "--input_file", file, *SHORT)
    assert wanted.tokens == TOKENS - 1
    assert (status, printed) == (
        0,
        f"perplexity {wanted.value:.4f}  ({wanted.tokens} tokens)\nloss {wanted.loss / wanted.tokens:.4f}\n",
    )
    status, printed, _ = run("evaluate", "--model_name", folder, "--input_file", file, *SHORT, "--json")
    assert json.loads(printed) == pytest.approx(
        {"perplexity": wanted.value, "loss": wanted.loss / wanted.tokens, "tokens": wanted.tokens, "unknown": 0}
    )


def test_default_lengths_are_those_of_the_paper(run: Run, folder: Path, file: Path) -> None:
    """The configuration has others, as it has those of training."""
    wanted = evaluate(TransfoXLLMHeadModel.from_pretrained(folder), text_ids(TEXT.splitlines()), **PAPER)
    status, printed, _ = run("evaluate", "--model", folder, "--input_file", file, "--json")
    assert status == 0
    assert json.loads(printed)["perplexity"] == pytest.approx(wanted.value, rel=1e-6)
    asked = [f for name in ("tgt_len", "ext_len", "mem_len", "clamp_len") for f in (f"--{name}", PAPER[name])]
    assert run("evaluate", "--model", folder, "--input_file", file, "--json", "--same_length", *asked)[1] == printed


@pytest.mark.parametrize(
    ("flags", "lengths"),
    [
        (["--no_same_length"], {"same_length": False}),
        (["--clamp_len", 4], {"clamp_len": 4}),
        (["--mem_len", 3], {"mem_len": 3}),
        (["--batch_size", 3, "--warm_up", 0], {"batch_size": 3, "warm_up": 0}),
        (["--no_same_length", "--ext_len", 2], {"same_length": False, "ext_len": 2}),
        (["--no_same_length", "--tgt_len", 5], {"same_length": False, "tgt_len": 5}),
        (["--batch_size", 1, "--max_eval_steps", 2], {"batch_size": 1, "max_eval_steps": 2}),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_each_option_reaches_the_model(
    run: Run, folder: Path, file: Path, flags: list[Any], lengths: dict[str, Any]
) -> None:
    ids = text_ids(TEXT.splitlines())
    wanted = expected(folder, ids, **lengths)
    status, printed, _ = run("evaluate", "--model", folder, "--input_file", file, *SHORT, "--json", *flags)
    assert status == 0
    assert json.loads(printed)["perplexity"] == pytest.approx(wanted.value, rel=1e-6)
    assert json.loads(printed)["tokens"] == wanted.tokens
    assert wanted.loss != pytest.approx(expected(folder, ids).loss, rel=1e-6)


def test_standard_input_byte_order_mark_and_line_ends(
    run: Run, folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = run("evaluate", "--model", folder, "--input_file", file, *SHORT)
    for end in ("\r\n", "\r", "\n"):
        content = b"\xef\xbb\xbf" + TEXT.replace("\n", end).encode()
        file.write_bytes(content)
        assert run("evaluate", "--model", folder, "--input_file", file, *SHORT) == wanted
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert run("evaluate", "--model", folder, "--input_file", "-", *SHORT) == wanted


def test_without_line_ends(run: Run, folder: Path, file: Path) -> None:
    wanted = expected(folder, text_ids(TEXT.splitlines(), eos=False))
    status, printed, _ = run("evaluate", "--model", folder, "--input_file", file, *SHORT, "--json", "--no_add_eos")
    assert status == 0
    assert json.loads(printed)["tokens"] == wanted.tokens == TOKENS - 1 - TEXT.count("\n")
    assert json.loads(printed)["perplexity"] == pytest.approx(wanted.value, rel=1e-6)


def test_words_outside_the_vocabulary_are_counted(
    run: Run, folder: Path, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`<unk>` of the text itself is a word like others."""
    file.write_text("The zebra sat on the <unk> .\nThe zebra and the yak\n")
    with caplog.at_level(logging.WARNING):
        status, printed, _ = run("evaluate", "--model", folder, "--input_file", file, *SHORT, "--json")
    assert status == 0
    assert json.loads(printed)["unknown"] == 3
    wanted = expected(folder, text_ids(["The <unk> sat on the <unk> .", "The <unk> and the <unk>"]))
    assert json.loads(printed)["perplexity"] == pytest.approx(wanted.value, rel=1e-6)
    (said,) = caplog.messages
    assert "3 of 14 words are not in the vocabulary (such as 'zebra')" in said
    caplog.clear()
    file.write_text("The <unk> sat .\n")
    assert run("evaluate", "--model", folder, "--input_file", file, *SHORT)[0] == 0
    assert not caplog.messages


@pytest.mark.parametrize("split", ["valid", "test"])
def test_corpus(run: Run, folder: Path, corpus: Path, split: str) -> None:
    ids = text_ids(TEXT.splitlines())[: 40 if split == "valid" else TOKENS]
    wanted = expected(folder, ids)
    status, printed, _ = run("evaluate", "--model", folder, "--corpus", corpus, "--split", split, *SHORT, "--json")
    assert status == 0
    assert json.loads(printed) == pytest.approx(
        {"perplexity": wanted.value, "loss": wanted.loss / wanted.tokens, "tokens": wanted.tokens, "split": split}
    )
    if split == "test":
        printed = run("evaluate", "--model", folder, "--corpus", corpus, *SHORT)[1]
        assert printed.startswith(f"perplexity {wanted.value:.4f}  ({wanted.tokens} tokens)\n")


def test_both_splits(run: Run, folder: Path, corpus: Path) -> None:
    found = [expected(folder, text_ids(TEXT.splitlines())[:end]) for end in (40, TOKENS)]  # valid first
    status, printed, _ = run("evaluate", "--model", folder, "--corpus", corpus, "--split", "all", *SHORT)
    assert status == 0
    lines = printed.splitlines()
    assert lines[0] == f"valid: perplexity {found[0].value:.4f}  (39 tokens)"
    assert lines[2] == f"test: perplexity {found[1].value:.4f}  (63 tokens)"
    printed = run("evaluate", "--model", folder, "--corpus", corpus, "--split", "all", *SHORT, "--json")[1]
    assert [json.loads(line)["split"] for line in printed.splitlines()] == ["valid", "test"]


def test_published_corpus_without_a_vocabulary_beside(run: Run, folder: Path, corpus: Path, tmp_path: Path) -> None:
    """`corpus.bin` is a pickle of the splits alone; its ids are taken for the model's."""
    saved = TransfoXLCorpus.from_pretrained(corpus)
    torch.save(
        {"dataset": "wt103", "train": saved.valid, "valid": saved.valid, "test": saved.test}, tmp_path / "corpus.bin"
    )
    wanted = run("evaluate", "--model", folder, "--corpus", corpus, *SHORT, "--json")
    assert wanted[0] == 0
    assert run("evaluate", "--model", folder, "--corpus", tmp_path / "corpus.bin", *SHORT, "--json") == wanted


def test_model_without_a_vocabulary_needs_none_for_ids(run: Run, folder: Path, corpus: Path, tmp_path: Path) -> None:
    TransfoXLLMHeadModel.from_pretrained(folder).save_pretrained(tmp_path)
    wanted = run("evaluate", "--model", folder, "--corpus", corpus, *SHORT)
    assert wanted[0] == 0
    assert run("evaluate", "--model", tmp_path, "--corpus", corpus, *SHORT) == wanted


def test_corpus_of_another_model(run: Run, folder: Path, tmp_path: Path) -> None:
    words = tiny_tokenizer().idx2sym
    for changed, message in (
        ([*words, "zebra"], "its vocabulary has 33 words, and the model 32"),
        ([*words[:3], words[4], words[3], *words[5:]], "id 3 is '.' there and 'the' here"),
    ):
        data = TransfoXLCorpus()
        for symbol in changed:
            data.vocab.add_symbol(symbol)
        data.test = torch.tensor([1, 2, 3, 4])
        data.save_pretrained(tmp_path)
        status, printed, errors = run("evaluate", "--model", folder, "--corpus", tmp_path, *SHORT)
        assert (status, printed) == (1, "")
        assert message in errors


def test_sentences_are_no_text(run: Run, folder: Path, tmp_path: Path) -> None:
    data = TransfoXLCorpus()
    data.vocab = tiny_tokenizer()
    data.test = [torch.tensor([1, 2, 3]), torch.tensor([4, 5])]
    data.save_pretrained(tmp_path)
    status, _, errors = run("evaluate", "--model", folder, "--corpus", tmp_path, *SHORT)
    assert status == 1
    assert "--split test: sentences without an order" in errors
    status, _, errors = run("evaluate", "--model", folder, "--corpus", tmp_path, "--split", "valid", *SHORT)
    assert status == 1
    assert "--split valid: the corpus has no such split" in errors


@pytest.mark.parametrize(
    ("content", "flags", "message"),
    [
        (b"", [], "text.txt: 0 words; there must be one to predict"),
        (b"The\n", ["--no_add_eos"], "text.txt: 1 words; there must be one to predict"),
        (b"The cat\n\xff", [], "line 2: not UTF-8"),
        (b"The cat\n", ["--corpus", "somewhere"], "--input_file or --corpus, one of the two"),
        (b"The cat\n", ["--split", "valid"], "--split valid: a text has no splits"),
        (b"The cat\n", ["--device", "cuda:77"], "no such device"),
    ],
)
def test_what_cannot_be_used(
    run: Run, folder: Path, file: Path, content: bytes, flags: list[str], message: str
) -> None:
    file.write_bytes(content)
    status, printed, errors = run("evaluate", "--model", folder, "--input_file", file, *flags)
    assert (status, printed) == (1, "")
    assert message in errors


def test_neither_text_nor_corpus_and_a_text_as_corpus(run: Run, folder: Path, file: Path) -> None:
    status, _, errors = run("evaluate", "--model", folder)
    assert (status, "--input_file or --corpus" in errors) == (1, True)
    status, _, errors = run("evaluate", "--model", folder, "--corpus", file)
    assert (status, "--input_file is for texts" in errors) == (1, True)
    status, _, errors = run("evaluate", "--model", folder, "--corpus", "./nowhere")
    assert (status, "nowhere" in errors) == (1, True)
    status, _, errors = run("evaluate", "--model", folder, "--corpus", "./nowhere", "--no_add_eos")
    assert (status, "--add_eos is for --input_file" in errors) == (1, True)


@pytest.mark.parametrize("wrong", [["--tgt_len", "0"], ["--mem_len", "-1"], ["--clamp_len", "-2"], ["--ext_len", "x"]])
def test_numbers_out_of_range_are_wrong_usage(run: Run, wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        run("evaluate", "--model", "m", "--input_file", "f", *wrong)
    assert raised.value.code == 2
    assert wrong[0] in capsys.readouterr().err


def test_other_families_and_the_other_command(run: Run, folder: Path, tiny: Path, file: Path, tmp_path: Path) -> None:
    gpt2 = save_tiny_gpt2(tmp_path)
    for other, name in ((gpt2, "gpt2"), (tiny, "bert")):
        status, printed, errors = run("evaluate", "--model", other, "--input_file", file)
        assert (status, printed) == (1, "")
        assert f"no Transformer-XL but of the family {name}" in errors
        assert "`pytorch_transformers perplexity`" in errors
    status, printed, errors = run("perplexity", "--model", folder, "--input_file", file)
    assert (status, printed) == (1, "")
    assert "use `pytorch_transformers evaluate`" in errors


def test_published_folder(run: Run, folder: Path, corpus: Path, file: Path, tmp_path: Path) -> None:
    """As 1.2.0 saves it: no `model_type`, the vocabulary and the corpus as pickles."""
    published = save_published_corpus(save_published_transfo_xl(tmp_path))
    wanted = run("evaluate", "--model", folder, "--corpus", corpus, "--split", "all", *SHORT)
    assert wanted[0] == 0
    assert run("evaluate", "--model", published, "--corpus", published, "--split", "all", *SHORT) == wanted
    wanted = run("evaluate", "--model", folder, "--input_file", file, *SHORT)
    assert run("evaluate", "--model", published, "--input_file", file, *SHORT) == wanted


def test_configuration_that_does_not_say_what_it_is(run: Run, tiny: Path, file: Path, tmp_path: Path) -> None:
    """The command is for one family, and need not guess; what is left out has its default."""
    path = save_tiny_transfo_xl(tmp_path, div_val=TransfoXLConfig().div_val) / "config.json"
    wanted = run("evaluate", "--model", tmp_path, "--input_file", file, *SHORT)
    assert wanted[0] == 0
    values = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({name: values[name] for name in values.keys() - {"model_type", "div_val"}}))
    with pytest.raises(ValueError, match="does not say what it is"):
        family_of(tmp_path)
    assert run("evaluate", "--model", tmp_path, "--input_file", file, *SHORT) == wanted
    values = json.loads((tiny / "config.json").read_text("utf-8"))
    path.write_text(json.dumps({name: values[name] for name in values.keys() - {"model_type"}}))
    status, printed, errors = run("evaluate", "--model", tmp_path, "--input_file", file, *SHORT)
    assert (status, printed) == (1, "")
    assert "TransfoXLConfig: unknown key" in errors


def test_vocabulary_of_another_model_is_refused(run: Run, folder: Path, file: Path, tmp_path: Path) -> None:
    """Before the text is encoded: the ids that the model lacks need not come in it."""
    TransfoXLLMHeadModel.from_pretrained(folder).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join([*tiny_tokenizer().idx2sym, "zebra"]) + "\n")
    status, printed, errors = run("evaluate", "--model", tmp_path, "--input_file", file, *SHORT)
    assert (status, printed) == (1, "")
    assert "the tokenizer has 33 tokens, but the model 32" in errors


def test_no_line_end_in_the_vocabulary(run: Run, folder: Path, file: Path, tmp_path: Path) -> None:
    """Lines of such a text, as those of enwik8, end with nothing; asking for what isn't there is an error."""
    model = TransfoXLLMHeadModel.from_pretrained(folder)
    model.resize_token_embeddings(31)
    model.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(tiny_tokenizer().idx2sym[1:]) + "\n")
    status, printed, _ = run("evaluate", "--model", tmp_path, "--input_file", file, *SHORT, "--json")
    assert status == 0
    assert json.loads(printed)["tokens"] == TOKENS - 1 - TEXT.count("\n")
    status, _, errors = run("evaluate", "--model", tmp_path, "--input_file", file, *SHORT, "--add_eos")
    assert status == 1
    assert "--add_eos: the vocabulary has no <eos>" in errors


def test_infinite_is_null_and_not_a_number_an_error(run: Run, folder: Path, file: Path, tmp_path: Path) -> None:
    model: Any = TransfoXLLMHeadModel.from_pretrained(folder)
    tiny_tokenizer().save_pretrained(tmp_path)
    for scale in (1e6, math.nan):
        with torch.no_grad():
            model.transformer.layers[-1].pos_ff.layer_norm.weight.fill_(scale)
        model.save_pretrained(tmp_path)
        status, printed, errors = run("evaluate", "--model", tmp_path, "--input_file", file, *SHORT, "--json")
        if math.isnan(scale):
            assert (status, printed) == (1, "")
            assert "the model's loss is not a number" in errors
        else:
            assert status == 0
            assert json.loads(printed)["perplexity"] is None
            assert json.loads(printed)["loss"] > 1000
