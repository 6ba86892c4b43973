"""The published commands of `run_squad.py`, as the documents of 0.1 to 0.6 give them, on a tiny model."""

import argparse
import importlib.util
import json
import shlex
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from pytorch_transformers import BertForQuestionAnswering
from pytorch_transformers.cli.train.arguments import add_all
from pytorch_transformers.cli.train.squad import COMMAND
from pytorch_transformers.data.squad import read_squad
from saved_bert import environment, save_tiny_bert
from squad_files import save_squad

SCRIPT = Path(__file__).parents[2] / "examples" / "run_squad.py"
NAMED = """
    --bert_model $MODEL --do_train --do_predict --do_lower_case --train_file $SQUAD_DIR/train-v1.1.json
    --predict_file $SQUAD_DIR/dev-v1.1.json --train_batch_size 12 --learning_rate 3e-5 --num_train_epochs 2.0
    --max_seq_length 384 --doc_stride 128 --output_dir $OUTPUT_DIR
"""
EARLY = """
    --vocab_file $MODEL/vocab.txt --bert_config_file $MODEL/bert_config.json --init_checkpoint $MODEL/pytorch_model.bin
    --do_lower_case --do_train --do_predict --train_file $SQUAD_TRAIN --predict_file $SQUAD_EVAL --learning_rate 3e-5
    --num_train_epochs 2 --max_seq_length 384 --doc_stride 128 --output_dir $OUTPUT_DIR --train_batch_size 24
"""
COMMANDS = {
    "named model": NAMED,
    "accumulation, optimizer on the CPU": EARLY + "--gradient_accumulation_steps 2 --optimize_on_cpu",
    "fp16 with a fixed scale": EARLY + "--fp16 --loss_scale 128",
    "fp16 under the earlier name": EARLY + "--fp16 --loss_scaling 128",
    "version 2": NAMED.replace("v1.1", "v2.0") + "--version_2_with_negative --null_score_diff_threshold -1.5",
    "all others": NAMED
    + """
        --max_query_length 32 --predict_batch_size 8 --warmup_proportion 0.1 --max_answer_length 30 --verbose_logging
        --no_cuda --seed 42 --local_rank -1 --overwrite_output_dir --loss_scale 0
    """,
}


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """One thread, and no state of `accelerate` that a test leaves to the next one."""
    from accelerate.state import AcceleratorState, GradientState

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the documents call the folders and files: a model as one that was converted, and two data sets."""
    folder = save_tiny_bert(tmp_path_factory.mktemp("model"), "BertForPreTraining", max_position_embeddings=384)
    (folder / "bert_config.json").write_bytes((folder / "config.json").read_bytes())
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    data = tmp_path_factory.mktemp("squad")
    for version in ("1.1", "2.0"):
        for split, count in (("train", 13), ("dev", 4)):
            save_squad(data / f"{split}-v{version}.json", count, version_2=version == "2.0")
    train, dev = data / "train-v1.1.json", data / "dev-v1.1.json"
    return {"MODEL": str(folder), "SQUAD_DIR": str(data), "SQUAD_TRAIN": str(train), "SQUAD_EVAL": str(dev)}


def arguments(command: str, variables: dict[str, str], out: Path) -> list[str]:
    return shlex.split(string.Template(command).substitute(variables, OUTPUT_DIR=str(out)))


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_squad", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_published_commands(
    script: ModuleType, variables: dict[str, str], tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "debug_squad"
    assert script.main([*arguments(command, variables, out), "--no_cuda"]) == 0
    printed = dict(line.split(" = ") for line in capsys.readouterr().out.splitlines())
    assert printed.keys() >= {"exact_match", "f1"}
    assert printed["total"] == "8"
    version = "2.0" if "v2.0" in command else "1.1"
    asked = [question.id for question in read_squad(Path(variables["SQUAD_DIR"]) / f"dev-v{version}.json")]
    assert list(json.loads((out / "predictions.json").read_text("utf-8"))) == asked
    nbest = json.loads((out / "nbest_predictions.json").read_text("utf-8"))
    assert set(nbest["0-0"][0]) == {"text", "probability", "start_logit", "end_logit"}
    assert (out / "null_odds.json").exists() == (version == "2.0")
    record = json.loads((out / "run.json").read_text("utf-8"))
    updates = {12: 6, 24: 4}[record["arguments"]["train_batch_size"]]  # of 26 rows, in two epochs
    assert record["training"]["updates"] == updates
    before = BertForQuestionAnswering.from_pretrained(variables["MODEL"]).bert.state_dict()
    after = BertForQuestionAnswering.from_pretrained(out).bert.state_dict()
    name = "encoder.layer.0.attention.self.query.weight"
    assert 0 < (before[name] - after[name]).abs().max() < 1e-3  # learned, at a rate of 3e-5


def parsed(*flags: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    add_all(COMMAND, parser)
    return vars(parser.parse_args(["--bert_model", "m", "--output_dir", "o", *flags]))


@pytest.mark.parametrize("name", ["version_2_with_negative", "verbose_logging", "do_lower_case", "do_predict"])
def test_fault_h2_switches_have_both_values(name: str) -> None:
    """HF#131: a flag that stores true and defaults to true."""
    assert parsed(f"--{name}")[name] is True
    assert parsed(f"--{name}", f"--no_{name}")[name] is False


def test_defaults_are_the_published_ones() -> None:
    options = parsed()
    published = {
        "max_seq_length": 384,
        "doc_stride": 128,
        "max_query_length": 64,
        "train_batch_size": 32,
        "learning_rate": 5e-5,
        "num_train_epochs": 3.0,
        "warmup_proportion": 0.1,
        "n_best_size": 20,
        "max_answer_length": 30,
        "verbose_logging": False,
        "no_cuda": False,
        "seed": 42,
        "gradient_accumulation_steps": 1,
        "local_rank": -1,
        "fp16": False,
        "loss_scale": 0,
        "null_score_diff_threshold": 0.0,
        "optimize_on_cpu": False,
        "overwrite_output_dir": False,
        "version_2_with_negative": None,  # as the file says
        "do_lower_case": None,  # as the tokenizer was saved
        "do_train": False,
        "do_predict": False,
    }
    assert {name: options[name] for name in published} == published


def test_runs_as_a_file_and_names_mistakes(variables: dict[str, str], tmp_path: Path) -> None:
    command = arguments(NAMED, {**variables, "SQUAD_DIR": "nowhere"}, tmp_path / "out")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *command, "--no_cuda"],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("run_squad.py: nowhere/train-v1.1.json: no such file")
    assert "Traceback" not in done.stderr
