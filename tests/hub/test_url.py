"""Files from plain addresses (known faults B5 and B6)."""

import time
from pathlib import Path

import pytest

from pytorch_transformers.hub import locate
from pytorch_transformers.hub.cache import default_cache
from pytorch_transformers.hub.download import url_file
from pytorch_transformers.hub.names import hub_address

from .server import HubServer
from .test_archive import FILES, contents, pack
from .test_repository import forbid_sockets

BIG = bytes(range(250)) * 800  # 200 000 bytes


def files(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file() and path.name != "current.json"]


def test_downloads_once_and_keeps_the_name(hub_server: HubServer, cache: Path) -> None:
    url = hub_server.add_plain("some%20dir/vocab.txt?version=1", b"a\nb\n")
    location = locate(url, shortcuts={}, cache_dir=cache)
    assert location.chosen is not None
    assert location.chosen.name == "vocab.txt"
    assert location.chosen.read_bytes() == b"a\nb\n"
    assert location.file("config.json") is None
    assert url in location.description
    assert locate(url, shortcuts={}, cache_dir=cache).chosen == location.chosen
    assert [request.known is not None for request in hub_server.requests] == [False, True]


def test_a_shortcut_may_be_an_address(hub_server: HubServer, cache: Path) -> None:
    url = hub_server.add_plain("weights.bin", BIG)
    assert locate("short", shortcuts={"short": url}, cache_dir=cache).chosen == url_file(url, cache)


def test_archive(hub_server: HubServer, tmp_path: Path, cache: Path) -> None:
    url = hub_server.add_plain("bert.tar.gz", pack(tmp_path / "b.tar.gz", FILES, top="bert/").read_bytes())
    for _ in range(2):
        location = locate(url, shortcuts={})
        assert location.folder is not None
        assert contents(location.folder) == FILES
        assert cache in location.folder.parents
    hub_server.stop()
    assert locate(url, shortcuts={}).folder == location.folder


@pytest.mark.parametrize(
    "form", ["{url}/someone/model/resolve/{commit}/{file}", "{hub}/someone/model/blob/main/{file}"]
)
def test_the_address_of_a_file_on_the_hub_is_its_repository(hub_server: HubServer, cache: Path, form: str) -> None:
    hub_server.add("someone/model", "my weights.bin", BIG)
    commit = hub_server.add("someone/model", "config.json", b"{}")
    url = form.format(url=hub_server.url, hub="https://huggingface.co", commit=commit, file="my%20weights.bin")
    location = locate(url, shortcuts={}, cache_dir=cache)
    config = location.file("config.json")
    assert location.chosen is not None
    assert location.chosen.read_bytes() == BIG
    assert config is not None
    assert config.parent == location.chosen.parent
    with pytest.raises(OSError, match=r"no file none.bin in the repository .*someone/model"):
        locate(url.replace("my%20weights", "none"), shortcuts={}, cache_dir=cache)


@pytest.mark.parametrize("end", ["", "/", "/tree/main"])
def test_the_page_of_a_repository_is_the_repository(hub_server: HubServer, cache: Path, end: str) -> None:
    hub_server.add("someone/model", "config.json", b"{}")
    location = locate(f"https://huggingface.co/someone/model{end}", shortcuts={}, cache_dir=cache)
    assert location.chosen is None
    assert location.file("config.json") is not None


@pytest.mark.parametrize("page", ["datasets/a", "docs/x", "api/models", "", "gpt2"])
def test_other_pages_of_the_hub_are_no_repositories(page: str) -> None:
    assert hub_address(f"https://huggingface.co/{page}") is None


def test_repositories_without_an_owner_have_files() -> None:
    assert hub_address("https://huggingface.co/gpt2/resolve/main/a/b.json") == ("gpt2", "main", "a/b.json")


@pytest.mark.parametrize("headers", [None, {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, {}])
def test_a_new_version_is_a_new_file(hub_server: HubServer, cache: Path, headers: dict[str, str] | None) -> None:
    url = hub_server.add_plain("config.json", b"old", headers)
    old = url_file(url, cache)
    assert url_file(url, cache) == old
    changed = {name: value.replace("2024", "2025") for name, value in headers.items()} if headers else headers
    hub_server.add_plain("config.json", b"newer", changed)
    new = url_file(url, cache)
    assert new.read_bytes() == b"newer"
    if headers != {}:
        assert old.read_bytes() == b"old", "a file somebody may have mapped was changed"


def test_b5_a_cut_transfer_leaves_nothing_and_is_fetched_again(hub_server: HubServer, cache: Path) -> None:
    url = hub_server.add_plain("weights.bin", BIG)
    hub_server.truncate_next(100_000)
    with pytest.raises(OSError, match=r"weights.bin broke off.*Nothing was kept"):
        url_file(url, cache)
    assert files(cache) == []
    assert url_file(url, cache).read_bytes() == BIG


def test_b5_a_cut_transfer_does_not_replace_the_version_before(hub_server: HubServer, cache: Path) -> None:
    url = hub_server.add_plain("weights.bin", b"old")
    url_file(url, cache)
    hub_server.add_plain("weights.bin", BIG)
    hub_server.truncate_next()
    with pytest.raises(OSError, match="broke off"):
        url_file(url, cache)
    assert [path.read_bytes() for path in files(cache)] == [b"old"]


def test_b5_a_cached_file_of_the_wrong_size_is_fetched_again(hub_server: HubServer, cache: Path) -> None:
    url = hub_server.add_plain("weights.bin", BIG)
    path = url_file(url, cache)
    path.write_bytes(BIG[:1000])
    assert url_file(url, cache).read_bytes() == BIG


@pytest.mark.parametrize("trouble", ["stopped", "error"])
def test_b6_the_cache_is_used_when_the_server_is_away(hub_server: HubServer, cache: Path, trouble: str) -> None:
    url = hub_server.add_plain("weights.bin", BIG)
    other = hub_server.add_plain("other.bin", BIG)
    path = url_file(url, cache)
    if trouble == "stopped":
        hub_server.stop()
    else:
        hub_server.status = 502
    began = time.monotonic()
    assert url_file(url, cache) == path
    with pytest.raises(OSError, match=r"other.bin is not in the cache") as caught:
        url_file(other, cache)
    assert str(cache) in str(caught.value)
    assert time.monotonic() - began < 2


def test_b6_offline_opens_no_socket(hub_server: HubServer, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = hub_server.add_plain("weights.bin", BIG)
    path = url_file(url, cache)
    forbid_sockets(monkeypatch)
    monkeypatch.setenv("PYTORCH_TRANSFORMERS_OFFLINE", "1")
    assert url_file(url, cache) == path
    with pytest.raises(OSError, match="network is switched off"):
        locate(f"{hub_server.url}/other.bin", shortcuts={}, cache_dir=cache)


def test_an_address_the_server_does_not_have(hub_server: HubServer, cache: Path) -> None:
    with pytest.raises(OSError, match=r"files/none.bin cannot be fetched: the server answered 404"):
        locate(f"{hub_server.url}/files/none.bin", shortcuts={}, cache_dir=cache)
    for broken in ("http://", "http://[::1", "https://no.such.host.invalid:99999/x"):
        with pytest.raises(OSError, match="http"):
            locate(broken, shortcuts={}, cache_dir=cache)
    assert files(cache) == []


def test_the_default_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    for name in ("PYTORCH_TRANSFORMERS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert default_cache() == Path("/home/somebody/.cache/pytorch_transformers")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert default_cache() == Path("/var/cache/pytorch_transformers")
    monkeypatch.setenv("PYTORCH_TRANSFORMERS_CACHE", "~/models")
    assert default_cache() == Path("/home/somebody/models")
