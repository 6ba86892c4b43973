"""A tiny model for the examples."""

from pathlib import Path

import pytest

from saved_bert import save_tiny_bert


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny BERT."""
    return save_tiny_bert(tmp_path_factory.mktemp("tiny"))
