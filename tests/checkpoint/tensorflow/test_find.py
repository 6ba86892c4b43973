"""Which checkpoint a path means."""

from pathlib import Path

import pytest
import torch

from pytorch_transformers.checkpoint.tensorflow.bundle import find_prefix, is_v1
from pytorch_transformers.checkpoint.tensorflow.table import MAGIC
from pytorch_transformers.checkpoint.tensorflow.write import write_bundle


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one checkpoint, `model.ckpt-3`."""
    write_bundle(tmp_path / "model.ckpt-3", {"a": torch.ones(3)})
    return tmp_path


def another(folder: Path) -> None:
    write_bundle(folder / "model.ckpt-12", {"a": torch.ones(3)})


def state(folder: Path, text: str) -> None:
    (folder / "checkpoint").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("ending", ["", ".index", ".meta", ".data-00000-of-00001", ".data-00007-of-00016"])
def test_prefix_and_files(folder: Path, ending: str) -> None:
    assert find_prefix(folder / f"model.ckpt-3{ending}") == folder / "model.ckpt-3"
    assert find_prefix(folder / f"model.ckpt-4{ending}") is None


@pytest.mark.parametrize(
    "name", [".index", "model.safetensors", "model.ckpt-3.data", "model.ckpt-3.index.json", "no/x"]
)
def test_other_files(folder: Path, name: str) -> None:
    assert find_prefix(folder / name) is None


def test_a_prefix_that_ends_like_a_file(tmp_path: Path) -> None:
    write_bundle(tmp_path / "x.index", {"a": torch.ones(3)})
    assert find_prefix(tmp_path / "x.index") == tmp_path / "x.index"
    assert find_prefix(tmp_path / "x.index.index") == tmp_path / "x.index"


def test_the_only_one_of_a_folder(folder: Path) -> None:
    assert find_prefix(folder) == folder / "model.ckpt-3"
    (folder / "empty").mkdir()
    assert find_prefix(folder / "empty") is None


def test_several_and_nothing_that_says_which(folder: Path) -> None:
    another(folder)
    with pytest.raises(OSError, match=r"holds several .*model\.ckpt-12, model\.ckpt-3, and no file.*Give the path"):
        find_prefix(folder)


@pytest.mark.parametrize(
    "named",
    ["model.ckpt-12", "./model.ckpt-12", "/home/me/run/model.ckpt-12", r"C:\\run\\model.ckpt-12", "run/model.ckpt-12"],
)
def test_the_one_that_the_state_file_names(folder: Path, named: str) -> None:
    another(folder)
    state(folder, f'model_checkpoint_path: "{named}"\nall_model_checkpoint_paths: "model.ckpt-3"\nnew_field: 1.5\n')
    assert find_prefix(folder) == folder / "model.ckpt-12"


def test_names_with_escapes(folder: Path) -> None:
    another(folder)
    write_bundle(folder / "größe", {"a": torch.ones(3)})
    state(folder, r'model_checkpoint_path: "gr\303\266\303\237e"')
    assert find_prefix(folder) == folder / "größe"


def test_a_name_in_a_folder_below(folder: Path) -> None:
    another(folder)
    write_bundle(folder / "run" / "x", {"a": torch.ones(3)})
    state(folder, 'model_checkpoint_path: "run/x"')
    assert find_prefix(folder) == folder / "run" / "x"


def test_an_absolute_path_elsewhere_is_not_followed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "x"
    write_bundle(elsewhere, {"a": torch.ones(3)})
    state(folder, f'model_checkpoint_path: "{elsewhere}"')
    assert find_prefix(folder) == folder / "model.ckpt-3"
    another(folder)
    with pytest.raises(OSError, match=r"holds several .*its file 'checkpoint' names '/.*/x'"):
        find_prefix(folder)


@pytest.mark.parametrize("content", [b"", b"\x80\x02}q\x00.", b"model_checkpoint_path: 3", b"\xff", b"\n" * (2 << 20)])
def test_a_file_of_this_name_that_is_something_else(folder: Path, content: bytes) -> None:
    (folder / "checkpoint").write_bytes(content)
    assert find_prefix(folder) == folder / "model.ckpt-3"
    another(folder)
    with pytest.raises(OSError, match="no file 'checkpoint' names one"):
        find_prefix(folder)


def test_the_older_format(folder: Path) -> None:
    (folder / "old").write_bytes(b"V1" * 100 + MAGIC)
    (folder / "short").write_bytes(MAGIC[1:])
    assert is_v1(folder / "old")
    assert not is_v1(folder / "short")
    assert not is_v1(folder / "model.ckpt-3.index")
    assert not is_v1(folder / "model.ckpt-3.data-00000-of-00001")
    assert not is_v1(folder)
    assert not is_v1(folder / "none")
