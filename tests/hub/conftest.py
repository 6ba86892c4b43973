"""A fresh server, and a fresh cache that nothing on the machine shares, for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .server import HubServer

_SWITCHES = ("HF_HUB_OFFLINE", "PYTORCH_TRANSFORMERS_OFFLINE", "HF_TOKEN", "XDG_CACHE_HOME")


@pytest.fixture
def hub_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """A running server that `HF_ENDPOINT` points to, and a hub cache of the test's own."""
    from huggingface_hub import close_session

    server = HubServer()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    for name in _SWITCHES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    yield server
    server.stop()
    close_session()  # its open connections would be reported as leaked sockets


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, also the default one for archives and plain addresses."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("PYTORCH_TRANSFORMERS_CACHE", str(folder))
    return folder
