"""The small models of the repository, by their bare names."""

from pathlib import Path

import pytest

from pytorch_transformers.hub import locate, shipped
from pytorch_transformers.hub.shipped import FILL_MASK, SHIPPED, shipped_folder

from .test_location import put


def test_found_from_within_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SHIPPED:
        folder = put(tmp_path / "assets" / name / "config.json").parent
        for inside in (tmp_path, tmp_path / "docs" / "deep"):
            inside.mkdir(parents=True, exist_ok=True)
            monkeypatch.chdir(inside)
            assert shipped_folder(name) == folder
            assert locate(name, shortcuts={}).folder == folder


def test_what_is_on_disk_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "assets" / FILL_MASK / "config.json")
    own = put(tmp_path / FILL_MASK / "config.json").parent
    monkeypatch.chdir(tmp_path)
    location = locate(FILL_MASK, shortcuts={})
    assert location.folder is not None
    assert location.folder.absolute() == own


def test_other_names_are_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "assets" / "bert" / "config.json")
    monkeypatch.chdir(tmp_path)
    assert shipped_folder("bert") is None
    with pytest.raises(OSError, match=f"Known names: .*{FILL_MASK}"):
        locate("bert", shortcuts={})


def test_outside_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says where they are to be found, and asks nobody on the network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shipped, "__file__", str(tmp_path / "lib" / "package" / "hub" / "shipped.py"))
    with pytest.raises(OSError, match=r"bert-mini-books comes with the repository.*Change to one, or name another"):
        locate(FILL_MASK, shortcuts={})
