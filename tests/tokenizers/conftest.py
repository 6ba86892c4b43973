"""Fixtures for the tests of tokenizers: a vocabulary of a few dozen tokens that is always there.

This folder has no `__init__.py`: with one it would be a package named `tokenizers` on the path of the tests, and hide
the library of that name.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytorch_transformers import BertTokenizer

VOCAB = Path(__file__).with_name("vocab_small.txt")


@pytest.fixture
def vocab_file() -> Path:
    return VOCAB


@pytest.fixture
def build() -> Callable[..., BertTokenizer]:
    """Builds a tokenizer over the small vocabulary."""

    def make(**options: Any) -> BertTokenizer:
        return BertTokenizer(VOCAB, **options)

    return make


@pytest.fixture
def tokenizer() -> BertTokenizer:
    return BertTokenizer(VOCAB)
