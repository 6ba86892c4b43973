"""`inspect` on checkpoints of the original: the table, JSON, colour on a terminal; from the index alone."""

import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hub.conftest import cache, hub_server  # noqa: F401  # fixtures
from hub.server import HubServer
from models.bert.tiny import HIDDEN, VOCAB
from original_bert import PREFIX, changed, random_model, read_variables, save_checkpoint
from pytorch_transformers.cli.main import main
from saved_bert import environment
from shared_data import shared

from .conftest import Run

TRAINING = {
    "bert/pooler/dense/bias/adam_m": torch.zeros(HIDDEN),
    "bert/pooler/dense/bias/adam_v": torch.zeros(HIDDEN),
    "global_step": torch.tensor(3),
}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    return changed(save_checkpoint(random_model(), folder / "first"), folder / "second", TRAINING)


def test_table(run: Run, prefix: Path) -> None:
    status, printed, errors = run("inspect", prefix)
    assert (status, errors) == (0, "")
    header, *rows, total = printed.splitlines()
    assert header.split() == ["name", "shape", "dtype", "shard"]
    variables = read_variables(prefix)
    assert [row.split()[0] for row in rows] == sorted(variables)
    for row in rows:
        name = row.split()[0]
        shape = re.search(r"\[[\d, ]*\]", row)
        assert shape is not None
        assert json.loads(shape[0]) == list(variables[name].shape)
        assert row[shape.end() :].split()[:2] == [str(variables[name].dtype).removeprefix("torch."), "0"]
        assert row.endswith("training") == (name in TRAINING)
        assert row == row.rstrip()
    columns = {row.index("[") for row in rows} | {header.index("shape")}
    assert len(columns) == 1
    weights = [value for name, value in variables.items() if name not in TRAINING]
    size = sum(value.nbytes for value in weights) / 2**20
    assert total == f"{len(weights)} variables, {size:,.1f} MiB; 3 of training, 0.0 MiB"


def test_json(run: Run, prefix: Path) -> None:
    status, printed, _ = run("inspect", prefix, "--json")
    assert status == 0
    found = json.loads(printed)
    assert found.keys() == {"prefix", "files", "variables"}
    assert found["prefix"] == str(prefix)
    assert found["files"] == [f"{prefix}.index", f"{prefix}.data-00000-of-00001"]
    assert {entry["name"] for entry in found["variables"] if entry["training"]} == set(TRAINING)
    by_name = {entry["name"]: entry for entry in found["variables"]}
    assert by_name.keys() == read_variables(prefix).keys()
    assert by_name["bert/embeddings/word_embeddings"] == {
        "name": "bert/embeddings/word_embeddings",
        "shape": [VOCAB, HIDDEN],
        "dtype": "float32",
        "shards": [0],
        "training": False,
    }
    assert by_name["global_step"]["shape"] == []
    assert by_name["global_step"]["dtype"] == "int64"


@pytest.mark.parametrize("name", ["folder", "index", "data"])
def test_the_place_may_be_named_in_any_way(run: Run, prefix: Path, name: str) -> None:
    names: dict[str, Any] = {
        "folder": prefix.parent,
        "index": f"{prefix}.index",
        "data": f"{prefix}.data-00000-of-00001",
    }
    assert run("inspect", names[name]) == run("inspect", prefix)


def test_name_on_the_hub(
    run: Run,
    prefix: Path,
    hub_server: HubServer,  # noqa: F811
    cache: Path,  # noqa: F811
) -> None:
    for path in prefix.parent.iterdir():
        hub_server.add("someone/original", path.name, path.read_bytes())
    status, printed, _ = run("inspect", "someone/original")
    assert status == 0
    assert printed == run("inspect", prefix)[1]


def test_recorded_checkpoints(run: Run) -> None:
    folder = shared("goldens", "bert")
    for name, listed in (("pretraining", "pretraining_variables"), ("many_variables", "many_variables/variables")):
        _, printed, _ = run("inspect", folder / name, "--json")
        expected = json.loads((folder / f"{listed}.json").read_text(encoding="utf-8"))
        found = [[entry["name"], entry["shape"], entry["dtype"]] for entry in json.loads(printed)["variables"]]
        assert sorted(found) == sorted(expected)
    _, printed, _ = run("inspect", folder / "sharded")
    lines = [line.removesuffix("training").rstrip() for line in printed.splitlines()[1:-1]]
    assert {line.split()[-1] for line in lines} == {"0", "1", "2"}
    _, printed, _ = run("inspect", folder / "dtypes")
    assert re.search(r"string +0$", printed, re.MULTILINE)


# --- colour -----------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal(prefix: Path, monkeypatch: pytest.MonkeyPatch, no_color: str | None) -> str:
    terminal = Terminal()
    with monkeypatch.context() as patch:
        patch.delenv("NO_COLOR", raising=False)
        if no_color is not None:
            patch.setenv("NO_COLOR", no_color)
        patch.setattr(sys, "stdout", terminal)
        patch.setattr("logging.basicConfig", lambda **options: None)
        assert main(["inspect", str(prefix)]) == 0
    return terminal.getvalue()


def test_training_is_grey_on_a_terminal(run: Run, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_terminal(prefix, monkeypatch, None)
    grey = [line for line in shown.splitlines() if "\033" in line]
    assert len(grey) == len(TRAINING)
    assert all(line.startswith("\033[90m") and line.endswith("\033[0m") for line in grey)
    plain = run("inspect", prefix)[1]
    assert "\033" not in plain
    assert re.sub(r"\033\[\d+m", "", shown) == plain


@pytest.mark.parametrize(("value", "coloured"), [("1", False), ("0", False), ("", True)])
def test_no_color_is_respected(prefix: Path, monkeypatch: pytest.MonkeyPatch, value: str, coloured: bool) -> None:
    """https://no-color.org: "when present and not an empty string (regardless of its value)"."""
    assert ("\033" in on_a_terminal(prefix, monkeypatch, value)) == coloured


# --- what cannot be read ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["index", "data-00000-of-00001"])
def test_a_broken_file_is_named(run: Run, prefix: Path, tmp_path: Path, ending: str) -> None:
    folder = Path(shutil.copytree(prefix.parent, tmp_path / "broken"))
    path = folder / f"{PREFIX}.{ending}"
    path.write_bytes(path.read_bytes()[:-9])
    for name in (folder, folder / PREFIX):
        status, printed, errors = run("inspect", name)
        assert status == 1
        assert ("bert/pooler/dense/kernel" in printed) == (ending != "index"), "the index alone is enough for the list"
        assert errors.startswith("pytorch_transformers inspect: ")
        assert str(path) in errors


def test_values_are_not_read(run: Run, prefix: Path, tmp_path: Path) -> None:
    """The index alone is: damage among the values is for those who read them."""
    folder = Path(shutil.copytree(prefix.parent, tmp_path / "zeros"))
    data = folder / f"{PREFIX}.data-00000-of-00001"
    data.write_bytes(bytes(data.stat().st_size))
    assert run("inspect", folder)[1] == run("inspect", prefix)[1]


def test_no_checkpoint(run: Run, tiny: Path, tmp_path: Path) -> None:
    for name, message in (
        (tmp_path, f"No TensorFlow checkpoint in the folder {tmp_path}: looked for PREFIX.index"),
        (tmp_path / "gone", str(tmp_path / "gone")),
        (tiny, "No TensorFlow checkpoint in the folder"),
        (tiny / "config.json", "config.json is no TensorFlow checkpoint"),
        (tiny / "model.safetensors", "model.safetensors is no TensorFlow checkpoint"),
    ):
        status, printed, errors = run("inspect", name)
        assert (status, printed) == (1, "")
        assert message in errors


def test_info_leads_here(run: Run, prefix: Path) -> None:
    status, printed, errors = run("info", prefix.parent)
    assert (status, printed) == (1, "")
    assert str(prefix) in errors
    assert "`pytorch_transformers inspect` and `convert`" in errors


def test_torch_is_not_imported(prefix: Path) -> None:
    """A list of names should not wait for seconds; the trace is python's own."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pytorch_transformers", "inspect", str(prefix)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    trace = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "google_crc32c" in trace  # the trace was read
    assert not trace & {"torch", "transformers", "tokenizers", "safetensors", "huggingface_hub", "tensorflow"}
    assert "bert/embeddings/word_embeddings" in done.stdout
