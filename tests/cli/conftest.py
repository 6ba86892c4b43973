"""A tiny model, and the command in this process."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from pytorch_transformers.cli.main import main
from saved_bert import save_tiny_bert

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """Tiny matrices are not worth a second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny BERT with its pre-training heads."""
    return save_tiny_bert(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command: exit status, standard output, standard error."""
    # The command sets up logging once in a process; here there are many runs in one.
    monkeypatch.setattr(logging, "basicConfig", lambda **options: None)

    def run(*arguments: object) -> tuple[int, str, str]:
        status = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run
