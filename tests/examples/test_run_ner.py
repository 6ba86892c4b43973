"""`run_ner.py` on a tiny model: train, evaluate, tag, and evaluate alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from task_scripts import DATA, alone, check_help, load_script, record_of, run_script

SCRIPT = load_script("run_ner")
TRAIN = """
    --data_dir $DATA --bert_model $MODEL --do_train --do_eval --do_predict --max_seq_length 40 --train_batch_size 8
    --learning_rate 3e-3 --num_train_epochs 5 --output_dir $OUT
"""


@pytest.fixture(autouse=True)
def one_run() -> Iterator[None]:
    with alone():
        yield


def test_train_and_evaluate_alone(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = {"model": tiny, "data": DATA / "entities", "out": tmp_path / "out"}
    printed = run_script(SCRIPT, TRAIN, capsys, **places)
    names = [line.partition(" = ")[0] for line in printed.splitlines()]
    assert names == ["precision", "recall", "f1", "accuracy", "loss"]
    assert record_of(tmp_path / "out")["training"]["updates"] == 10
    again = "--dev_file $DATA/dev.txt --bert_model $MODEL --do_eval --max_seq_length 40 --output_dir $OUT"
    assert run_script(SCRIPT, again, capsys, **places) == printed
    words = (DATA / "entities" / "test.txt").read_text(encoding="utf-8").split()
    tagged = [
        line.split("\t") for line in (tmp_path / "out" / "predictions.txt").read_text(encoding="utf-8").split("\n")
    ]
    assert [row[0] for row in tagged if row != [""]] == words


def test_what_cannot_be_used(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "train.txt"
    broken.write_text("Anna\tB-PER\nlives\tX\n", encoding="utf-8")
    flags = ["--train_file", str(broken), "--do_train", "--model", str(tiny), "--output_dir", str(tmp_path / "out")]
    assert SCRIPT.main(flags) == 1
    assert "train.txt:2: the tag is 'X'" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    check_help(SCRIPT, "run_ner", capsys, "--data_dir", "--iob2", "--no_iob2", "--test_file")
