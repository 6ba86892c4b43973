"""The published command of `run_swag.py` on a tiny model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from saved_bert import save_tiny_bert
from task_scripts import DATA, alone, check_help, load_script, record_of, run_script

SCRIPT = load_script("run_swag")
PUBLISHED = """
    --bert_model $MODEL --do_train --do_lower_case --do_eval --data_dir $DATA --train_batch_size 16
    --learning_rate 2e-5 --num_train_epochs 3.0 --max_seq_length 80 --output_dir $OUT --gradient_accumulation_steps 4
    --eval_batch_size 8 --warmup_proportion 0.1 --no_cuda --local_rank -1 --seed 42 --loss_scale 0
"""


@pytest.fixture(autouse=True)
def one_run() -> Iterator[None]:
    with alone():
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its vocabulary has few words, and letters for all others."""
    return save_tiny_bert(tmp_path_factory.mktemp("model"), max_position_embeddings=80)


def test_published_command(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = {"model": model, "data": DATA / "swag", "out": tmp_path / "out"}
    printed = run_script(SCRIPT, PUBLISHED, capsys, **places)
    assert [line.partition(" = ")[0] for line in printed.splitlines()] == ["accuracy", "loss"]
    record = record_of(tmp_path / "out")
    assert record["training"]["updates"] == 3
    assert record["arguments"]["max_seq_length"] == 80
    again = "--bert_model $MODEL --do_eval --do_predict --data_dir $DATA --output_dir $OUT"
    assert run_script(SCRIPT, again, capsys, **places) == printed
    assert record_of(tmp_path / "out")["arguments"]["max_seq_length"] == 80  # without the flag too
    _, *lines = (tmp_path / "out" / "predictions.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines] == ["0", "1"]


def test_what_cannot_be_used(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--bert_model", str(model), "--output_dir", str(tmp_path / "out")]
    assert SCRIPT.main(flags) == 1
    assert "run_swag.py: no data: give data_dir (--data_dir)" in capsys.readouterr().err
    assert SCRIPT.main([*flags, "--data_dir", str(tmp_path)]) == 1
    assert "train.csv: there is no such file" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    check_help(SCRIPT, "run_swag", capsys, "--data_dir", "--bert_model", "--fp16", "--loss_scale")
