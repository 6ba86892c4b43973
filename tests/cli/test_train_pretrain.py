"""`train pretrain`: from text to a model by commands, what the help says, and what cannot be used."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from generation.saved_gpt2 import save_tiny_gpt2
from generation.saved_transfo_xl import save_tiny_transfo_xl
from saved_gpt import save_tiny_gpt
from task_scripts import DATA, alone, record_of

from .conftest import Run

TEXT, HELD_OUT = (DATA.parent / "pretraining" / f"{name}.txt" for name in ("text", "held_out"))


@pytest.fixture(autouse=True)
def one_run() -> Iterator[None]:
    with alone():
        yield


@pytest.fixture
def data(run: Run, tiny: Path, tmp_path: Path) -> Path:
    """Folder with `train` and `dev` of BERT."""
    for name, text in (("train", TEXT), ("dev", HELD_OUT)):
        words = ("--input_file", text, "--output_file", tmp_path / name, "--tokenizer", tiny, "--dupe_factor", 2)
        assert run("create-pretraining-data", *words, "--max_seq_length", 40, "--max_predictions_per_seq", 8)[0] == 0
    return tmp_path


def pretrain(run: Run, folder: Path, *more: object) -> tuple[int, str, str]:
    return run(
        *(
            "train",
            "pretrain",
            "--data",
            folder / "train",
            "--dev_data",
            folder / "dev",
            "--output_dir",
            folder / "out",
        ),
        *("--train_batch_size", 8, "--max_steps", 3, "--no_cuda", *more),
    )


def test_bert_from_nothing(run: Run, tiny: Path, data: Path) -> None:
    status, printed, errors = pretrain(run, data, "--config", tiny / "config.json", "--tokenizer", tiny)
    assert status == 0, errors
    names = [line.partition(" = ")[0] for line in printed.splitlines()]
    assert names[:3] == ["loss", "masked_lm_loss", "masked_lm_accuracy"]
    assert names[3:] == ["next_sentence_loss", "next_sentence_accuracy"]
    record = record_of(data / "out")
    assert record["task"] == "pretrain bert"
    assert (record["training"]["updates"], record["arguments"]["learning_rate"]) == (3, 1e-4)
    assert json.loads((data / "out" / "config.json").read_text())["architectures"] == ["BertForPreTraining"]
    status, again, _ = run("train", "pretrain", "--do_eval", "--dev_data", data / "dev", "--output_dir", data / "out")
    assert (status, again) == (0, printed)
    status, printed, _ = run("fill-mask", "--model", data / "out", "the [MASK] was open .")
    assert status == 0


@pytest.mark.parametrize("family", ["gpt2", "openai_gpt", "transfo_xl"])
def test_other_families(run: Run, tmp_path: Path, family: str) -> None:
    save = {"gpt2": save_tiny_gpt2, "openai_gpt": save_tiny_gpt, "transfo_xl": save_tiny_transfo_xl}[family]
    (tmp_path / "model").mkdir()
    model = save(tmp_path / "model")
    for name, text in (("train", TEXT), ("dev", HELD_OUT)):
        end = ("--end_token", "none") if family == "openai_gpt" else ()
        words = ("--input_file", text, "--output_dir", tmp_path / name, "--tokenizer", model, "--layout", "blank_line")
        assert run("create-token-stream", *words, *end)[0] == 0
    whole = () if family == "transfo_xl" else ("--whole_documents", "--group_by_length")
    given = ("--family", family, "--model", model, "--max_seq_length", 32, *whole)
    status, printed, errors = pretrain(run, tmp_path, *given)
    assert status == 0, errors
    assert [line.partition(" = ")[0] for line in printed.splitlines()][:2] == ["loss", "perplexity"]
    assert record_of(tmp_path / "out")["task"] == f"pretrain {family}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "config: missing (--config); without a model (--model)"),
        (("--config", "$TINY/config.json"), "tokenizer: missing (--tokenizer)"),
        (("--model", "$TINY", "--tokenizer", "$DATA/gpt2"), "made with another vocabulary"),
        (("--model", "$TINY", "--family", "gpt2"), "is of bert; this task is for gpt2"),
        (("--model", "$TINY", "--data", "$DATA/none"), "none"),
        (
            ("--model", "$TINY", "--whole_documents"),
            "whole_documents: is for gpt2 and openai_gpt; the family here is bert",
        ),
        (("--model", "$TINY", "--do_predict"), "do_predict: pre-training predicts nothing"),
    ],
)
def test_what_cannot_be_used(run: Run, tiny: Path, data: Path, words: tuple[str, ...], message: str) -> None:
    (data / "gpt2").mkdir()
    (data / "gpt2" / "vocab.txt").write_text((tiny / "vocab.txt").read_text().replace("onion\n", "leek\n"))
    filled = [word.replace("$TINY", str(tiny)).replace("$DATA", str(data)) for word in words]
    status, printed, errors = pretrain(run, data, *filled)
    assert (status, printed) == (1, "")
    assert message in errors
    assert "Traceback" not in errors


def test_evaluation_needs_data_before_anything_is_done(run: Run, tiny: Path, data: Path) -> None:
    given = ("--data", data / "train", "--model", tiny, "--output_dir", data / "out", "--max_steps", 1, "--no_cuda")
    status, _, errors = run("train", "pretrain", *given)
    assert status == 1
    assert "dev_data: missing (--dev_data); --do_train alone trains without evaluation" in errors
    assert not (data / "out").exists()
    assert run("train", "pretrain", *given, "--do_train")[:2] == (0, "")
    assert record_of(data / "out")["metrics"] == {}


def test_help(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("train", "pretrain", "--help")
    printed = capsys.readouterr().out
    flags = ("--family", "--data", "--dev_data", "--most_dev_rows", "--whole_documents", "--config", "--num_workers")
    assert [flag for flag in flags if flag not in printed] == []
    assert "pytorch_transformers train pretrain --data data" in printed
