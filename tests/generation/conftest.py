"""What all tests of generation share."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from .tiny import make


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """Tiny matrices are not worth a second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="package")
def gpt2() -> Any:
    """A small GPT-2."""
    return make("gpt2")
