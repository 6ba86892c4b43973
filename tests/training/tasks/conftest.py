"""Tiny models for the tasks, without dropout."""

from pathlib import Path

import pytest

from saved_bert import save_tiny_bert
from saved_gpt import save_tiny_gpt


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny BERT."""
    return save_tiny_bert(tmp_path_factory.mktemp("bert"), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


@pytest.fixture(scope="session")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny OpenAI GPT; its tokens are letters."""
    no_dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop", "summary_first_dropout"), 0.0)
    return save_tiny_gpt(tmp_path_factory.mktemp("gpt"), **no_dropout)
