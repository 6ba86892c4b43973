"""Small checkpoints for tests that damage them."""

from pathlib import Path

import pytest

from pytorch_transformers.checkpoint.tensorflow.write import write_bundle

from .crafted import STATE


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    write_bundle(tmp_path / "x", STATE)
    return tmp_path / "x"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that stays as it is; to be copied."""
    prefix = tmp_path_factory.mktemp("original") / "x"
    write_bundle(prefix, STATE)
    return prefix
