"""What a name or path is taken for, and what is said when it is nothing (known fault B3)."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from pytorch_transformers.hub import Location, locate

SHORT = {"small-model": "someone/model", "other": "someone/other"}


def put(path: Path, text: str = "{}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_folder(tmp_path: Path) -> None:
    config = put(tmp_path / "m" / "config.json")
    for given in (tmp_path / "m", str(tmp_path / "m"), f"{tmp_path}/m/"):
        location = locate(given, shortcuts=SHORT)
        assert location.file("config.json") == config
        assert location.file("absent.json") is None
        assert location.first(["absent.json", "config.json"]) == config
        assert location.chosen is None
        assert str(tmp_path / "m") in location.description


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    assert locate(tmp_path, shortcuts=SHORT).file("config.json") is None


@pytest.mark.parametrize("name", ["weights.bin", "bert_config.json", "vocab.txt", "my model.safetensors"])
def test_one_file_chooses_its_folder(tmp_path: Path, name: str) -> None:
    chosen, config = put(tmp_path / name), put(tmp_path / "config.json")
    location = locate(chosen, shortcuts=SHORT)
    assert location.chosen == chosen
    assert location.folder == tmp_path
    assert location.file("config.json") == config


@pytest.mark.parametrize("given", ["", ".index", ".meta", ".data-00000-of-00001"])
def test_tensorflow_checkpoint_by_prefix_or_any_of_its_files(tmp_path: Path, given: str) -> None:
    for suffix in (".index", ".meta", ".data-00000-of-00001"):
        put(tmp_path / f"bert_model.ckpt{suffix}")
    location = locate(f"{tmp_path}/bert_model.ckpt{given}", shortcuts=SHORT)
    assert location.chosen == tmp_path / "bert_model.ckpt"
    assert location.folder == tmp_path


def test_home_and_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "models" / "config.json")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for given in ("~/models", "models", "./models", "../" + tmp_path.name + "/models", "models/config.json"):
        assert locate(given, shortcuts=SHORT).file("config.json") is not None


def test_a_folder_comes_before_a_shortcut_and_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path / "small-model" / "config.json")
    monkeypatch.chdir(tmp_path)
    with caplog.at_level("INFO", logger="pytorch_transformers"):
        assert locate("small-model", shortcuts=SHORT).folder == Path("small-model")
    assert "also the name of a published model" in caplog.text


def test_shortcut_and_repository_names_are_not_asked_yet() -> None:
    for name, repo in (("small-model", "someone/model"), ("a/b", "a/b"), ("google-bert/bert-base", "google-bert/bert")):
        location = locate(name, shortcuts=SHORT)
        assert isinstance(location, Location)
        assert f"/{repo}" in location.description


@pytest.mark.parametrize(
    "name",
    [
        *[
            "/no/such/place",
            "./no",
            "../no/model",
            "~/no/model",
            "~no-such-user/model",
            "a/b/c",
            "a/b/",
            "no-such-name",
            "",
        ],
        *[" ", "C:\\models\\bert", "a\0b", "a b/c", "--help", "ünï/cödé", "s3://bucket/model.tar.gz", "/", "x" * 300],
    ],
)
def test_b3_a_place_that_is_not_there_raises(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("the hub was asked for a path")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    if name == "/":
        assert locate(name, shortcuts=SHORT).folder == Path("/")
        return
    with pytest.raises(OSError, match="leads to no model") as caught:
        locate(name, shortcuts=SHORT)
    message = str(caught.value)
    assert all(short in message for short in SHORT), message
    assert repr(name) in message
    assert "archive" in message
    if name == "/no/such/place":
        assert "/no/such/place.index" in message


@pytest.mark.parametrize("name", ["../config.json", "/etc/passwd", "a/../../b", "", "..", "a\\..\\b", "a\0b"])
def test_file_names_stay_inside(tmp_path: Path, name: str) -> None:
    with pytest.raises(OSError, match="points out of"):
        locate(tmp_path, shortcuts={}).file(name)


def test_names_in_every_script(tmp_path: Path) -> None:
    config = put(tmp_path / "модель 模型 é" / "config.json")
    assert locate(config.parent, shortcuts={}).file("config.json") == config


def test_importing_the_package_is_cheap() -> None:
    program = (
        "import sys; import pytorch_transformers.hub\n"
        "print([name for name in ('torch', 'huggingface_hub', 'numpy', 'tqdm', 'safetensors') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True, encoding="utf-8")
    assert done.stdout.strip() == "[]"
