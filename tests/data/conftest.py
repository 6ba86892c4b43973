"""A tiny model for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pytorch_transformers import FeatureExtractor
from saved_bert import save_tiny_bert


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """Tiny matrices are not worth a second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny BERT."""
    return save_tiny_bert(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def extractor(tiny: Path) -> FeatureExtractor:
    """The tiny BERT, with a budget of tokens that makes several batches of a few texts."""
    return FeatureExtractor.from_pretrained(tiny, tokens_per_batch=64)
