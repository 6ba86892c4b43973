"""The published commands of `run_classifier.py` on a tiny model: GLUE, the early flags, and your own files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from task_scripts import DATA, alone, check_help, load_script, record_of, run_script

SCRIPT = load_script("run_classifier")
GLUE = """
    --task_name MRPC --do_train --do_eval --do_lower_case --data_dir $DATA --bert_model $MODEL --max_seq_length 128
    --train_batch_size 32 --learning_rate 2e-5 --num_train_epochs 3.0 --output_dir $OUT
"""
EARLY = """
    --task_name MRPC --do_train --do_eval --do_lower_case --data_dir $DATA --vocab_file $MODEL/vocab.txt
    --bert_config_file $MODEL/config.json --init_checkpoint $MODEL/model.safetensors --max_seq_length 128
    --train_batch_size 32 --learning_rate 2e-5 --num_train_epochs 3.0 --output_dir $OUT
"""
COMMANDS = {
    "named model": GLUE,
    "early flags": EARLY,
    "fp16": GLUE + "--fp16",
    "all others": GLUE
    + """
        --eval_batch_size 8 --warmup_proportion 0.1 --no_cuda --local_rank -1 --seed 42 --loss_scale 0
        --gradient_accumulation_steps 2 --overwrite_output_dir --cache_dir $OUT/cache --optimize_on_cpu
    """,
}


@pytest.fixture(autouse=True)
def one_run() -> Iterator[None]:
    with alone():
        yield


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of MRPC."""
    folder = tmp_path_factory.mktemp("MRPC")
    rows = [f"{number % 2}\t1\t2\tthe onion\t{'golden' if number % 2 else 'rain'} onions" for number in range(12)]
    text = "\n".join(["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", *rows, ""])
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_published_commands(
    command: str, tiny: Path, mrpc: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"data": mrpc, "model": tiny, "out": tmp_path / "out"}
    printed = run_script(SCRIPT, command, capsys, **places)
    assert [line.partition(" = ")[0] for line in printed.splitlines()] == ["accuracy", "f1", "accuracy_and_f1", "loss"]
    record = record_of(tmp_path / "out")
    assert record["task"] == "classify MRPC"
    assert record["training"]["updates"] == 3
    alone = f"--task_name MRPC --data_dir {mrpc} --bert_model {tiny} --do_eval --output_dir $OUT"
    if "--fp16" not in command:
        assert run_script(SCRIPT, alone, capsys, **places) == printed


def test_own_files(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = {"data": DATA, "model": tiny, "out": tmp_path / "out"}
    train = "--train_file $DATA/reviews_train.csv --dev_file $DATA/reviews_dev.csv --model $MODEL --output_dir $OUT"
    assert "accuracy = " in run_script(SCRIPT, f"{train} --num_train_epochs 1", capsys, **places)
    new = "--test_file $DATA/reviews_new.csv --do_predict --model $OUT --output_dir $OUT"
    assert run_script(SCRIPT, new, capsys, **places) == ""
    _, *lines = (tmp_path / "out" / "predictions.tsv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert {line.split("\t")[1] for line in lines} <= {"good", "bad"}


def test_what_cannot_be_used(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert SCRIPT.main(["--task_name", "XX", "--model", str(tiny), "--output_dir", str(tmp_path / "out")]) == 1
    assert "run_classifier.py: GLUE has no task 'XX'" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    check_help(SCRIPT, "run_classifier", capsys, "--task_name", "--bert_model", "--fp16", "--optimize_on_cpu")
