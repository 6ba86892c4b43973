"""The script by its original flags: its lines against a loop over `transformers`, and what its switches do."""

import importlib.util
import json
import logging
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from pytorch_transformers import BertTokenizer
from saved_bert import POSITIONS, environment

SCRIPT = Path(__file__).parents[2] / "examples" / "extract_features.py"
LINES = ["Cook onions until golden.", "", "two cups of flour ||| rain", "Cloud " * 60, "[SEP] zq\u2028oven"]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("extract_features", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(logging, "basicConfig", lambda **options: None)
    monkeypatch.delenv("RANK", raising=False)
    return module


@pytest.fixture
def flags(tiny: Path, tmp_path: Path) -> list[str]:
    """The flags that are needed."""
    (tmp_path / "in.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    files = ["--input_file", str(tmp_path / "in.txt"), "--output_file", str(tmp_path / "out.jsonl")]
    return [*files, "--bert_model", str(tiny), "--max_seq_length", "20"]


def expected(folder: Path, layers: tuple[int, ...], lower: bool, longest: int = 20) -> list[dict[str, Any]]:
    """The output's objects, text by text."""
    import transformers

    tokenizer = BertTokenizer.from_pretrained(folder, do_lower_case=lower)
    model = transformers.BertModel.from_pretrained(folder).eval()
    found = []
    for number, line in enumerate(LINES):
        first, found_mark, second = line.strip().partition(" ||| ")
        batch = tokenizer(
            first, second if found_mark else None, truncation=True, max_length=longest, return_tensors="pt"
        )
        with torch.no_grad():
            states = model(**batch, output_hidden_states=True).hidden_states[1:]
        tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0].tolist())
        features = [
            {"token": token, "layers": [{"index": i, "values": states[i][0, t].tolist()} for i in layers]}
            for t, token in enumerate(tokens)
        ]
        found.append({"linex_index": number, "features": features})
    return found


def assert_same(path: Path, wanted: list[dict[str, Any]]) -> None:
    """The same keys in the same order, the same tokens, and values that differ by rounding alone."""
    found = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert list(ours) == ["linex_index", "features"]
        assert ours["linex_index"] == theirs["linex_index"]
        assert [each["token"] for each in ours["features"]] == [each["token"] for each in theirs["features"]]
        for mine, other in zip(ours["features"], theirs["features"], strict=True):
            assert list(mine) == ["token", "layers"]
            for layer, reference in zip(mine["layers"], other["layers"], strict=True):
                assert list(layer) == ["index", "values"]
                assert layer["index"] == reference["index"]
                assert layer["values"] == pytest.approx(reference["values"], abs=1e-5)
                assert layer["values"] == [round(value, 6) for value in layer["values"]]


@pytest.mark.parametrize("lower", [True, False])
def test_lines_of_the_original(script: ModuleType, tiny: Path, flags: list[str], tmp_path: Path, lower: bool) -> None:
    more = ["--layers", "-1,-2,-3", "--batch_size", "2", *(["--do_lower_case"] if lower else [])]
    assert script.main([*flags, *more]) == 0
    assert_same(tmp_path / "out.jsonl", expected(tiny, (-1, -2, -3), lower))


def test_defaults_are_the_originals(script: ModuleType) -> None:
    options = script._parse(["--input_file", "i", "--output_file", "o", "--bert_model", "m"])
    assert vars(options) == {
        "input_file": "i",
        "output_file": "o",
        "bert_model": "m",
        "do_lower_case": False,
        "layers": "-1,-2,-3,-4",
        "max_seq_length": 128,
        "batch_size": 32,
        "local_rank": -1,
        "no_cuda": False,
    }


def test_as_a_process(tiny: Path, flags: list[str], tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), *flags, "--layers", "-1,0", "--do_lower_case", "--no_cuda"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert_same(tmp_path / "out.jsonl", expected(tiny, (-1, 0), lower=True))


def test_only_one_process_of_several_writes(
    script: ModuleType,
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert script.main([*flags, "--local_rank", "1"]) == 0
    assert "process 0 does all the work, process 1 none" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()
    monkeypatch.setenv("RANK", "0")
    assert script.main([*flags, "--layers", "-1", "--no_cuda"]) == 0
    assert len((tmp_path / "out.jsonl").read_text("utf-8").splitlines()) == len(LINES)


@pytest.mark.skipif(torch.cuda.device_count() > 7, reason="this machine has that GPU")
@pytest.mark.parametrize("flag", ["--local_rank", "--local-rank"])
def test_gpu_that_is_not_there(
    script: ModuleType, flags: list[str], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main([*flags, "--layers", "-1", flag, "7"]) == 1
    assert "--device cuda:7: no such device" in capsys.readouterr().err
    assert script.main([*flags, "--layers", "-1", flag, "7", "--no_cuda"]) == 0


def test_limits_of_the_model(script: ModuleType, flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main([*flags, "--max_seq_length", "128"]) == 1
    assert f"must be from 3 to {POSITIONS}" in capsys.readouterr().err
    assert script.main(flags) == 1  # four layers by default, of a model that has three
    assert "layers: -4" in capsys.readouterr().err


def test_help_shows_an_example(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        script.main(["--help"])
    assert raised.value.code == 0
    assert "example: python examples/extract_features.py" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [["--batch_size", "0"], ["--max_seq_length", "x"], ["--layers", "a,b"]])
def test_wrong_usage_exits_with_2(
    script: ModuleType, flags: list[str], wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        script.main([*flags, *wrong])
    assert raised.value.code == 2
    assert wrong[0] in capsys.readouterr().err
