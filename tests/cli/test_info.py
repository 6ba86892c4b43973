"""`info` on folders, archives and names of the hub."""

import json
import tarfile
from pathlib import Path

import pytest
import torch

from generation.saved_transfo_xl import save_published_transfo_xl
from hub.conftest import cache, hub_server  # noqa: F401  # fixtures
from hub.server import HubServer
from pytorch_transformers import BertForPreTraining
from saved_bert import HIDDEN, SIZES

from .conftest import Run


def parameters(folder: Path) -> dict[str, torch.Tensor]:
    """Weights as saved: a tied one counts once."""
    state = BertForPreTraining.from_pretrained(folder).state_dict()
    return {name: value for name, value in state.items() if name != "cls.predictions.decoder.weight"}


def test_text(run: Run, tiny: Path) -> None:
    status, printed, _ = run("info", tiny)
    assert status == 0
    count = sum(value.numel() for value in parameters(tiny).values())
    assert f"parameters  {count:,}\n" in printed
    assert f"memory      {4 * count / 2**20:,.1f} MiB\n" in printed
    assert "family      bert\n" in printed
    assert f"  hidden_size: {HIDDEN}\n" in printed
    assert str(tiny / "model.safetensors") in printed
    assert "word_embeddings" not in printed


def test_names(run: Run, tiny: Path) -> None:
    _, printed, _ = run("info", tiny, "--names")
    shape = [SIZES["vocab_size"], HIDDEN]
    assert f"  bert.embeddings.word_embeddings.weight  {shape}  float32\n" in printed


@pytest.mark.parametrize("flags", [(), ("--names",)])
def test_json(run: Run, tiny: Path, flags: tuple[str, ...]) -> None:
    status, printed, _ = run("info", tiny, "--json", *flags)
    assert status == 0
    found = json.loads(printed)
    state = parameters(tiny)
    assert found["family"] == "bert"
    assert found["config"]["hidden_size"] == HIDDEN
    assert found["parameters"] == sum(value.numel() for value in state.values())
    assert found["bytes"] == 4 * found["parameters"]
    assert found["files"] == [str(tiny / "model.safetensors")]
    assert ("names" in found) == bool(flags)
    if flags:
        assert found["names"] == {name: [list(value.shape), "float32"] for name, value in state.items()}


def test_archive(run: Run, tiny: Path, tmp_path: Path, cache: Path) -> None:  # noqa: F811
    archive = tmp_path / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as stream:
        for path in tiny.iterdir():
            stream.add(path, path.name)
    status, printed, _ = run("info", archive, "--json")
    assert status == 0
    assert json.loads(printed)["config"]["hidden_size"] == HIDDEN


def test_name_on_the_hub(run: Run, tiny: Path, hub_server: HubServer, cache: Path) -> None:  # noqa: F811
    for path in tiny.iterdir():
        hub_server.add("google-bert/bert-base-cased", path.name, path.read_bytes())
    for name in ("bert-base-cased", "google-bert/bert-base-cased"):
        status, printed, _ = run("info", name, "--cache_dir", cache, "--json")
        assert status == 0
        assert json.loads(printed)["config"]["hidden_size"] == HIDDEN


def test_published_folder_without_a_model_type(run: Run, tmp_path: Path) -> None:
    status, printed, _ = run("info", save_published_transfo_xl(tmp_path), "--json")
    assert status == 0
    assert json.loads(printed)["family"] == "transfo_xl"
    assert json.loads(printed)["config"]["vocab_size"] == 32


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no configuration"),
        ('{"model_type": "llama"}', "model_type is 'llama'; this library has bert"),
        ("{", "config.json is no configuration in JSON"),
        ("{}", "add a model_type, one of bert"),
        ('{"model_type": "bert"}', "No weights in"),
    ],
)
def test_what_is_no_model(run: Run, tmp_path: Path, content: str | None, message: str) -> None:
    folder = tmp_path / "something"
    folder.mkdir()
    if content is not None:
        (folder / "config.json").write_text(content, encoding="utf-8")
    status, printed, errors = run("info", folder)
    assert (status, printed) == (1, "")
    assert message in errors
    assert str(folder) in errors
