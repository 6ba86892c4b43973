"""A cache of 0.6.2 of the test's own, empty at first, and no network."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytorch_pretrained_bert import classic_cache


@pytest.fixture(autouse=True)
def classic_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that 0.6.2 would download to; it is not there until a test fills it."""
    folder = tmp_path / "classic"
    monkeypatch.setattr(classic_cache, "PYTORCH_PRETRAINED_BERT_CACHE", folder)
    monkeypatch.setenv("PYTORCH_PRETRAINED_BERT_CACHE", os.fspath(folder))
    monkeypatch.setenv("PYTORCH_TRANSFORMERS_OFFLINE", "1")
    return folder


@pytest.fixture(scope="session")
def loads() -> Callable[[str], set[str]]:
    """What gives the top-level packages that a statement imports, in a process of its own."""

    def loaded(statement: str) -> set[str]:
        code = f"import sys\n{statement}\nprint(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
        return {name.partition(".")[0] for name in done.stdout.split()}

    return loaded
