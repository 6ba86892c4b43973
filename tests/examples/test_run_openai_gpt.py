"""The published command of `run_openai_gpt.py` on a tiny model, and its published defaults."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from saved_gpt import save_tiny_gpt
from task_scripts import DATA, alone, check_help, load_script, record_of, run_script

SCRIPT = load_script("run_openai_gpt")
PUBLISHED = """
    --model_name $MODEL --do_train --do_eval --train_dataset $DATA/stories_train.csv
    --eval_dataset $DATA/stories_dev.csv --output_dir $OUT --train_batch_size 16
"""
DEFAULTS = {
    "train_batch_size": 8,
    "learning_rate": 6.25e-5,
    "warmup_proportion": 0.002,
    "schedule": "warmup_linear",
    "weight_decay": 0.01,
    "lm_coef": 0.9,
    "n_valid": 374,
    "max_grad_norm": 1,
    "num_train_epochs": 3,
    "seed": 42,
}


@pytest.fixture(autouse=True)
def one_run() -> Iterator[None]:
    with alone():
        yield


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_gpt(tmp_path_factory.mktemp("gpt"))


def test_published_command(gpt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = {"model": gpt, "data": DATA, "out": tmp_path / "out"}
    printed = run_script(SCRIPT, PUBLISHED, capsys, **places)
    assert [line.partition(" = ")[0] for line in printed.splitlines()] == ["accuracy", "loss"]
    record = record_of(tmp_path / "out")
    assert record["training"]["updates"] == 3
    assert {name: record["arguments"][name] for name in DEFAULTS} == {**DEFAULTS, "train_batch_size": 16}
    again = "--model_name $MODEL --do_eval --eval_dataset $DATA/stories_dev.csv --output_dir $OUT"
    assert run_script(SCRIPT, again, capsys, **places) == printed


def test_every_published_flag(gpt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = """
        --model_name $MODEL --do_train --do_eval --output_dir $OUT --train_dataset $DATA/stories_train.csv
        --seed 7 --num_train_epochs 1 --train_batch_size 4 --eval_batch_size 16 --max_grad_norm 1 --weight_decay 0.01
        --learning_rate 6.25e-5 --warmup_proportion 0.002 --lr_schedule warmup_constant --lm_coef 0.5 --n_valid 3
    """
    run_script(SCRIPT, flags, capsys, model=gpt, data=DATA, out=tmp_path / "out")
    record = record_of(tmp_path / "out")
    assert record["training"]["updates"] == 2  # of 10 stories 3 are held out
    assert record["arguments"]["schedule"] == "warmup_constant"
    _, *lines = (tmp_path / "out" / "dev_predictions.tsv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3


def test_predicts(gpt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = {"model": gpt, "data": DATA, "out": tmp_path / "out"}
    run_script(SCRIPT, f"{PUBLISHED} --do_predict --test_dataset $DATA/stories_new.csv", capsys, **places)
    lines = (tmp_path / "out" / "predictions.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[1:] in (["0\t1"], ["0\t2"])


def test_what_cannot_be_used(gpt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--model_name", str(gpt), "--output_dir", str(tmp_path / "out")]
    assert SCRIPT.main([*flags, "--train_dataset", str(DATA / "stories_train.csv")]) == 1
    assert "run_openai_gpt.py: n_valid: 374 of the 10 stories" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    check_help(SCRIPT, "run_openai_gpt", capsys, "--train_dataset", "--lm_coef", "--n_valid", "--lr_schedule")
