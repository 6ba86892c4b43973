"""The published commands of pre-training and of language-model fine-tuning, on a tiny model and a tiny text."""

import json
import runpy
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytorch_transformers import BertForPreTraining, BertTokenizer
from pytorch_transformers.data.pretraining import PretrainingDataset
from task_scripts import DATA, EXAMPLES, alone, check_help, load_script, record_of, run_script

CORPUS = DATA.parent / "pretraining" / "text.txt"
PREGENERATE, FINETUNE = load_script("pregenerate_training_data"), load_script("finetune_on_pregenerated")
SIMPLE, GOOGLE, CREATE = (
    load_script(name) for name in ("run_lm_finetuning", "run_pretraining", "create_pretraining_data")
)
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def one_run() -> Iterator[None]:
    with alone():
        yield


def pregenerate(tiny: Path, folder: Path, capsys: Capture) -> Path:
    command = """
        --train_corpus $CORPUS --bert_model $MODEL --do_lower_case --output_dir $OUT --epochs_to_generate 2
        --max_seq_len 48 --short_seq_prob 0.2 --masked_lm_prob 0.2 --max_predictions_per_seq 10 --reduce_memory
    """
    run_script(PREGENERATE, command, capsys, corpus=CORPUS, model=tiny, out=folder)
    return folder


def test_pregenerated_data(tiny: Path, tmp_path: Path, capsys: Capture) -> None:
    data = PretrainingDataset(pregenerate(tiny, tmp_path / "data", capsys))
    options = data.index.options
    assert (options.dupe_factor, options.max_seq_length, options.max_predictions_per_seq) == (2, 48, 10)
    assert (options.masked_lm_prob, options.short_seq_prob) == (0.2, 0.2)
    assert data.index.dynamic_masking
    before = [data[number]["masked_lm_labels"] for number in range(len(data))]
    data.set_epoch(1)
    assert [data[number]["masked_lm_labels"] for number in range(len(data))] != before


def test_finetune_on_pregenerated(tiny: Path, tmp_path: Path, capsys: Capture) -> None:
    data = pregenerate(tiny, tmp_path / "data", capsys)
    command = """
        --pregenerated_data $DATA --bert_model $MODEL --do_lower_case --output_dir $OUT --epochs 3 --reduce_memory
        --train_batch_size 8 --gradient_accumulation_steps 2 --learning_rate 1e-3 --warmup_steps 2 --adam_epsilon 1e-8
        --no_cuda --local_rank -1 --seed 42 --loss_scale 0
    """
    printed = run_script(FINETUNE, command, capsys, data=data, model=tiny, out=tmp_path / "out")
    assert printed == ""  # nothing is evaluated
    record = record_of(tmp_path / "out")
    per_pass = -(-len(PretrainingDataset(data)) // 8)
    assert record["training"]["updates"] == pytest.approx(1.5 * per_pass, abs=0.5)  # 3 epochs, and 2 are in a pass
    assert record["arguments"]["adam_epsilon"] == 1e-8
    BertForPreTraining.from_pretrained(tmp_path / "out")
    BertTokenizer.from_pretrained(tmp_path / "out")


def test_warmup_steps_are_steps(tiny: Path, tmp_path: Path, capsys: Capture) -> None:
    data = pregenerate(tiny, tmp_path / "data", capsys)
    command = (
        "--pregenerated_data $DATA --bert_model $MODEL --output_dir $OUT --epochs 2 --train_batch_size 4 "
        "--warmup_steps 3 --log_every 1 --learning_rate 3e-4"
    )
    run_script(FINETUNE, command, capsys, data=data, model=tiny, out=tmp_path / "out")
    rates = [point["learning_rate"] for point in record_of(tmp_path / "out")["history"]]
    assert rates[:3] == pytest.approx([1e-4, 2e-4, 3e-4])
    assert max(rates) == rates[2]


def test_run_lm_finetuning(tiny: Path, tmp_path: Path, capsys: Capture) -> None:
    command = """
        --train_corpus $CORPUS --bert_model $MODEL --do_lower_case --max_seq_length 40 --output_dir $OUT --on_memory
        --do_train --learning_rate 1e-3 --train_batch_size 8 --num_train_epochs 2 --no_cuda --log_every 1
    """
    places = {"corpus": CORPUS, "model": tiny, "out": tmp_path / "out"}
    run_script(SIMPLE, command, capsys, **places)
    record = record_of(tmp_path / "out")
    data = PretrainingDataset(tmp_path / "out" / "data")
    assert data.index.options.dupe_factor == 2
    assert data.index.options.max_seq_length == 40
    assert record["training"]["updates"] == -(-len(data) // 8)
    losses = [point["loss"] for point in record["history"]]
    assert losses[-1] < losses[0]
    words = "--bert_model $MODEL --dev_data $OUT/data --do_eval --no_do_train --output_dir $OUT --train_corpus $CORPUS"
    assert "masked_lm_accuracy = " in run_script(SIMPLE, words, capsys, **places)


def test_the_other_name(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "argv", ["simple_lm_finetuning.py", "--help"])
    with pytest.raises(SystemExit) as raised:
        runpy.run_path(str(EXAMPLES / "simple_lm_finetuning.py"), run_name="__main__")
    assert raised.value.code == 0
    assert "--train_corpus" in capsys.readouterr().out


def test_run_pretraining(tiny: Path, tmp_path: Path, capsys: Capture) -> None:
    """The two commands of the original's documentation: records, then training and evaluation."""
    shutil.copy(tiny / "vocab.txt", tmp_path)
    (tmp_path / "bert_config.json").write_bytes((tiny / "config.json").read_bytes())
    records = tmp_path / "data.tfrecord"
    create = """
        --input_file=$CORPUS --output_file=$DATA --vocab_file=$MODEL/vocab.txt --do_lower_case=True
        --max_seq_length=40 --max_predictions_per_seq=8 --masked_lm_prob=0.15 --random_seed=12345 --dupe_factor=3
    """
    places = {"corpus": CORPUS, "data": records, "model": tiny, "out": tmp_path / "out", "here": tmp_path}
    run_script(CREATE, create, capsys, **places)
    command = """
        --input_file=$DATA --output_dir=$OUT --do_train=True --do_eval=True --bert_config_file=$HERE/bert_config.json
        --train_batch_size=8 --max_seq_length=40 --max_predictions_per_seq=8 --num_train_steps=6
        --num_warmup_steps=3 --learning_rate=2e-3 --save_checkpoints_steps=4 --eval_batch_size=4 --max_eval_steps=2
        --use_tpu=False
    """
    printed = run_script(GOOGLE, f"{command} --init_checkpoint=$MODEL --log_every=1", capsys, **places)
    names = [line.partition(" = ")[0] for line in printed.splitlines()]
    assert names == [
        *("loss", "masked_lm_loss", "masked_lm_accuracy", "next_sentence_loss", "next_sentence_accuracy"),
    ]
    record = record_of(tmp_path / "out")
    assert record["training"]["updates"] == 6
    rates = [point["learning_rate"] for point in record["history"] if "learning_rate" in point]
    assert rates == pytest.approx([2e-3 / 3, 4e-3 / 3, 2e-3, 4e-3 / 3, 2e-3 / 3, 0.0], abs=1e-9)
    assert [path.name for path in (tmp_path / "out" / "checkpoints").iterdir()] == ["step-4"]
    given = record["arguments"]
    assert (given["correct_bias"], given["most_dev_rows"], given["eval_batch_size"]) == (False, 8, 4)
    alone = "--input_file=$DATA --output_dir=$OUT --do_eval --eval_batch_size=4 --max_eval_steps=2"
    assert run_script(GOOGLE, alone, capsys, **places) == printed


def test_a_new_model(tiny: Path, tmp_path: Path, capsys: Capture) -> None:
    """Without --init_checkpoint, and with the vocabulary that lies beside the configuration."""
    shutil.copy(tiny / "vocab.txt", tmp_path)
    (tmp_path / "bert_config.json").write_bytes((tiny / "config.json").read_bytes())
    data = pregenerate(tiny, tmp_path / "data", capsys)
    command = "--input_file $DATA --bert_config_file $HERE/bert_config.json --nodo_eval --do_train --output_dir $OUT"
    places = {"data": data, "here": tmp_path, "out": tmp_path / "out"}
    assert run_script(GOOGLE, f"{command} --num_train_steps 2 --train_batch_size 4", capsys, **places) == ""
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert config["vocab_size"] == len(BertTokenizer.from_pretrained(tmp_path / "out"))


def test_what_cannot_be_used(tiny: Path, tmp_path: Path, capsys: Capture) -> None:
    missing = ["--pregenerated_data", str(tmp_path / "none"), "--bert_model", str(tiny), "--output_dir", str(tmp_path)]
    assert FINETUNE.main(missing) == 1
    assert "finetune_on_pregenerated.py: " in capsys.readouterr().err
    (tmp_path / "empty.txt").write_text("\n\n")
    for script, flag in (
        (PREGENERATE, "pytorch_transformers create-pretraining-data"),
        (SIMPLE, "run_lm_finetuning.py"),
    ):
        words = ["--train_corpus", str(tmp_path / "empty.txt"), "--bert_model", str(tiny)]
        assert script.main([*words, "--output_dir", str(tmp_path / "out")]) == 1
        assert f"{flag}: there is no text in" in capsys.readouterr().err
    assert GOOGLE.main(["--input_file", "x", "--output_dir", str(tmp_path / "a"), "--do_train"]) == 1
    assert "run_pretraining.py: config: missing (--config)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "name", "flags"),
    [
        (PREGENERATE, "pregenerate_training_data", ("--epochs_to_generate", "--reduce_memory", "--max_seq_len")),
        (FINETUNE, "finetune_on_pregenerated", ("--pregenerated_data", "--epochs", "--warmup_steps", "--fp16")),
        (SIMPLE, "run_lm_finetuning", ("--train_corpus", "--on_memory", "--bert_model", "--max_seq_length")),
        (
            GOOGLE,
            "run_pretraining",
            ("--num_train_steps", "--num_warmup_steps", "--init_checkpoint", "--max_eval_steps"),
        ),
    ],
)
def test_help(script: object, name: str, flags: tuple[str, ...], capsys: Capture) -> None:
    check_help(script, name, capsys, *flags)  # type: ignore[arg-type]
