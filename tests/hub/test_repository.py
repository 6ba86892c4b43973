"""Files of a hub repository: downloaded once, taken from the cache, and never a silent nothing."""

import contextlib
import logging
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pytorch_transformers.hub import Location, locate

from .server import HubServer

REPO = "someone/model"
SHORT = {"small-model": REPO}
BIG = bytes(range(256)) * 800  # 204 800 bytes


def place(cache: Path, name: str = REPO, **options: Any) -> Location:
    return locate(name, shortcuts=SHORT, cache_dir=cache, **options)


def forbid_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("name", [REPO, "small-model"])
def test_downloads_once(hub_server: HubServer, cache: Path, name: str) -> None:
    hub_server.add(REPO, "config.json", b"{}")
    path = place(cache, name).file("config.json")
    assert path is not None
    assert path.read_bytes() == b"{}"
    assert cache in path.parents
    assert place(cache, name).file("config.json") == path
    assert len(hub_server.gets()) == 1


def test_nothing_is_asked_before_a_file_is(hub_server: HubServer, cache: Path) -> None:
    location = place(cache)
    assert location.folder is None
    assert location.chosen is None
    assert hub_server.requests == []


def test_first_is_the_first_that_is_there(hub_server: HubServer, cache: Path) -> None:
    hub_server.add(REPO, "sub/b.txt", b"b")
    hub_server.add(REPO, "c.txt", b"c")
    found = place(cache).first(["a.txt", "sub/b.txt", "c.txt"])
    assert found is not None
    assert found.read_bytes() == b"b"
    assert place(cache).first(["x", "y"]) is None


def test_follows_redirects_of_large_files_and_renamed_repositories(hub_server: HubServer, cache: Path) -> None:
    hub_server.add("new/model", "model.safetensors", BIG, linked=True)
    hub_server.rename(REPO, "new/model")
    path = place(cache).file("model.safetensors")
    assert path is not None
    assert path.read_bytes() == BIG
    assert any(request.startswith("/cdn/") for request in hub_server.gets())


def test_a_changed_file_is_downloaded_again(hub_server: HubServer, cache: Path) -> None:
    hub_server.add(REPO, "config.json", b"old")
    old = place(cache).file("config.json")
    hub_server.add(REPO, "config.json", b"new")
    new = place(cache).file("config.json")
    assert old is not None
    assert new is not None
    assert (old.read_bytes(), new.read_bytes()) == (b"old", b"new")


def test_all_files_of_a_location_come_from_one_commit(hub_server: HubServer, cache: Path) -> None:
    first = hub_server.add(REPO, "config.json", b"old")
    hub_server.add(REPO, "vocab.txt", b"old")
    location = place(cache)
    location.file("config.json")
    hub_server.add(REPO, "vocab.txt", b"new")  # pushed while the model loads
    vocab = location.file("vocab.txt")
    assert vocab is not None
    assert vocab.read_bytes() == b"old"
    at_first = place(cache, revision=first).file("config.json")
    assert at_first is not None
    assert at_first.read_bytes() == b"old"
    assert place(cache, revision=first).file("vocab.txt") is None


def test_a_pinned_commit_in_the_cache_needs_no_request(hub_server: HubServer, cache: Path) -> None:
    commit = hub_server.add(REPO, "config.json", b"{}")
    place(cache, revision=commit).first(["absent.json", "config.json"])
    hub_server.requests.clear()
    assert place(cache, revision=commit).first(["absent.json", "config.json"]) is not None
    assert hub_server.requests == []


def test_a_cached_model_costs_one_request(hub_server: HubServer, cache: Path) -> None:
    for name in ("config.json", "vocab.txt", "model.safetensors"):
        hub_server.add(REPO, name, b"{}")
    for _ in range(2):
        hub_server.requests.clear()
        location = place(cache)
        for name in ("config.json", "added_tokens.json", "vocab.txt", "model.safetensors"):
            location.file(name)
    assert [request.method for request in hub_server.requests] == ["HEAD"]


def test_names_and_revisions_with_odd_characters(hub_server: HubServer, cache: Path) -> None:
    hub_server.add(REPO, "a b/c#d?é%20.json", b"{}")
    for _ in range(2):
        path = place(cache, revision="refs/pr/1").file("a b/c#d?é%20.json")
        assert path is not None
        assert path.read_bytes() == b"{}"
    hub_server.stop()
    assert place(cache, revision="refs/pr/1").file("a b/c#d?é%20.json") == path


def test_errors_name_the_address_and_the_way_out(hub_server: HubServer, cache: Path) -> None:
    hub_server.add("shut/model", "config.json", b"{}")
    hub_server.gate("shut/model")
    hub_server.add(REPO, "config.json", b"{}")
    cases = {
        ("no/such", None): rf"no repository {hub_server.url}/no/such.*private.*small-model",
        ("shut/model", None): r"shut/model/resolve/main/config.json.*accepted its terms.*HF_TOKEN",
        (REPO, "v9"): r"someone/model has no revision 'v9'",
    }
    for (name, revision), message in cases.items():
        with pytest.raises(OSError, match=message):
            place(cache, name, revision=revision).file("config.json")


def test_a_file_name_cannot_leave_the_repository(hub_server: HubServer, cache: Path) -> None:
    with pytest.raises(OSError, match="points out of"):
        place(cache).file("../../other/model/config.json")
    assert hub_server.requests == []


def test_b5_a_transfer_that_is_cut_is_completed(hub_server: HubServer, cache: Path) -> None:
    hub_server.add(REPO, "model.safetensors", BIG, linked=True)
    hub_server.truncate_next(100_000)
    path = None
    with contextlib.suppress(OSError):  # early versions of the hub library leave the second attempt to the caller
        path = place(cache).file("model.safetensors")
    path = path or place(cache).file("model.safetensors")
    assert path is not None
    assert path.read_bytes() == BIG
    assert len([path for path in hub_server.gets() if path.startswith("/cdn/")]) == 2


def test_b5_a_transfer_that_stays_cut_leaves_nothing(
    hub_server: HubServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)  # between the hub library's attempts
    hub_server.add(REPO, "model.safetensors", BIG, linked=True)
    for sent in (100_000, *[0] * 9):
        hub_server.truncate_next(sent)
    with pytest.raises(OSError, match=r"model.safetensors could not be downloaded.*load again"):
        place(cache).file("model.safetensors")
    assert [path for path in cache.rglob("*") if path.is_file() and path.stat().st_size >= 100_000] == []
    assert not list(cache.rglob("snapshots/*/model.safetensors"))
    hub_server._cuts.clear()
    path = place(cache).file("model.safetensors")
    assert path is not None
    assert path.read_bytes() == BIG


@pytest.mark.parametrize("trouble", ["stopped", "error"])
def test_b6_the_cache_is_used_when_the_server_is_away(hub_server: HubServer, cache: Path, trouble: str) -> None:
    hub_server.add(REPO, "config.json", b"{}")
    filled = place(cache)
    cached = filled.file("config.json")
    assert filled.file("absent.json") is None
    if trouble == "stopped":
        hub_server.stop()
    else:
        hub_server.status = 503
    began = time.monotonic()
    location = place(cache)
    assert location.first(["absent.json", "config.json"]) == cached
    assert location.file("never-asked.json") is None
    assert place(cache).first(["config.json", "absent.json"]) == cached
    assert time.monotonic() - began < 2, "waited for a server that is away"
    assert "only the cache was looked at" in location.description


@pytest.mark.parametrize("trouble", ["stopped", "error"])
def test_b6_neither_server_nor_cache_is_an_error_at_once(hub_server: HubServer, cache: Path, trouble: str) -> None:
    if trouble == "stopped":
        hub_server.stop()
    else:
        hub_server.status = 500
    began = time.monotonic()
    with pytest.raises(OSError, match=rf"{hub_server.url}/{REPO}/resolve/main/config.json") as caught:
        place(cache).file("config.json")
    assert str(cache) in str(caught.value)
    assert time.monotonic() - began < 2


def test_b6_a_silent_server_is_waited_for_once(
    hub_server: HubServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_server.add(REPO, "config.json", b"{}")
    cached = place(cache).file("config.json")
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "1")
    hub_server.delay = 30.0
    began = time.monotonic()
    location = place(cache)
    assert location.file("config.json") == cached
    assert location.first(["vocab.txt", "merges.txt", "added_tokens.json"]) is None
    assert time.monotonic() - began < 2.5
    with pytest.raises(OSError, match="the server cannot be reached"):
        place(cache, "someone/else").file("config.json")


@pytest.mark.parametrize("switch", ["argument", "HF_HUB_OFFLINE", "PYTORCH_TRANSFORMERS_OFFLINE"])
def test_b6_offline_opens_no_socket(
    hub_server: HubServer, cache: Path, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    hub_server.add(REPO, "config.json", b"{}")
    cached = place(cache).file("config.json")
    forbid_sockets(monkeypatch)
    if switch != "argument":
        monkeypatch.setenv(switch, "yes")
    argument = switch == "argument"
    location = place(cache, local_files_only=argument)
    assert location.file("config.json") == cached
    assert location.file("other.json") is None
    with pytest.raises(OSError, match="network is switched off") as caught:
        place(cache, "someone/else", local_files_only=argument).file("config.json")
    assert f"{hub_server.url}/someone/else" in str(caught.value)
    assert str(cache) in str(caught.value)


def test_absence_that_is_only_supposed_is_logged(
    hub_server: HubServer, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub_server.add(REPO, "config.json", b"{}")
    place(cache).file("config.json")
    with caplog.at_level(logging.INFO, logger="pytorch_transformers"):
        assert place(cache, local_files_only=True).file("added_tokens.json") is None
    assert "taken as absent" in caplog.text


def test_two_processes_fill_an_empty_cache_at_once(hub_server: HubServer, cache: Path) -> None:
    hub_server.add(REPO, "model.safetensors", BIG, linked=True)
    url = hub_server.add_plain("weights.bin", BIG)
    program = (
        "import sys; from pathlib import Path; from pytorch_transformers.hub import locate\n"
        "for name, file in ((sys.argv[1], 'model.safetensors'), (sys.argv[2], 'weights.bin')):\n"
        "    print(len(locate(name, shortcuts={}, cache_dir=sys.argv[3]).file(file).read_bytes()))"
    )
    command = [sys.executable, "-W", "error", "-c", program, REPO, url, str(cache)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")
        for _ in range(2)
    ]
    for process in running:
        out, err = process.communicate(timeout=60)
        assert out.split() == [str(len(BIG))] * 2, err
    assert not [path for path in cache.rglob("*") if path.name.endswith((".tmp", ".incomplete"))]
