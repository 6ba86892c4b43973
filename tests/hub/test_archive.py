"""Archives: unpacked once, safely, whole or not at all."""

import gzip
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pytorch_transformers.hub import locate
from pytorch_transformers.hub.archive import extract

FILES = {"config.json": b"{}", "weights/a.bin": bytes(range(256)) * 40}


def pack(path: Path, files: dict[str, bytes], *members: tarfile.TarInfo, top: str = "") -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(top + name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for member in members:
            tar.addfile(member)
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def left_in(cache: Path) -> list[Path]:
    return [path for path in cache.glob("archives/*") if path.is_file() or any(path.iterdir())]


@pytest.mark.parametrize("name", ["m.tar.gz", "m.tgz", "m.tar", "M.TAR.GZ"])
@pytest.mark.parametrize("top", ["", "./", "bert-base/", "a/b/"])
def test_unpacks_to_the_folder_with_the_files(tmp_path: Path, cache: Path, name: str, top: str) -> None:
    archive = pack(tmp_path / name, FILES, top=top)
    location = locate(archive, shortcuts={}, cache_dir=cache)
    assert location.folder is not None
    assert contents(location.folder) == FILES
    assert str(archive) in location.description
    assert cache in location.folder.parents


def test_unpacks_into_the_default_cache(tmp_path: Path, cache: Path) -> None:
    folder = locate(pack(tmp_path / "m.tar.gz", FILES), shortcuts={}).folder
    assert folder is not None
    assert cache in folder.parents


def test_a_folder_left_by_macos_does_not_hide_the_top(tmp_path: Path, cache: Path) -> None:
    files = {"._top": b"x", "top/config.json": b"{}", "top/vocab.txt": b""}
    assert extract(pack(tmp_path / "m.tgz", files), cache).name == "top"


def test_unpacks_once_and_again_after_a_change(tmp_path: Path, cache: Path) -> None:
    archive = pack(tmp_path / "m.tar.gz", FILES)
    first = extract(archive, cache)
    (first / "mark").touch()
    assert (extract(archive, cache) / "mark").exists()
    pack(archive, {"config.json": b"{ }"})
    assert contents(extract(archive, cache)) == {"config.json": b"{ }"}


def test_links_inside_are_kept(tmp_path: Path, cache: Path) -> None:
    archive = pack(tmp_path / "m.tar", FILES, special("same.json", tarfile.SYMTYPE, "config.json"))
    assert (extract(archive, cache) / "same.json").read_bytes() == b"{}"


@pytest.mark.parametrize(
    "member",
    [
        special("/tmp/evil", tarfile.REGTYPE),
        special("../evil", tarfile.REGTYPE),
        special("a/../../evil", tarfile.REGTYPE),
        special("a\\..\\evil", tarfile.REGTYPE),
        special("C:evil", tarfile.REGTYPE),
        special("evil", tarfile.SYMTYPE, "/etc/passwd"),
        special("evil", tarfile.SYMTYPE, "../../../etc/passwd"),
        special("evil", tarfile.LNKTYPE, "/etc/passwd"),
        special("evil", tarfile.LNKTYPE, "../../evil"),
        special("evil", tarfile.CHRTYPE),
        special("evil", tarfile.BLKTYPE),
        special("evil", tarfile.FIFOTYPE),
    ],
    ids=lambda member: f"{member.type.decode()}-{member.name}-{member.linkname}",
)
def test_members_that_could_reach_outside_are_refused(tmp_path: Path, cache: Path, member: tarfile.TarInfo) -> None:
    archive = pack(tmp_path / "m.tar.gz", FILES, member)
    with pytest.raises(OSError, match="is refused: its member") as caught:
        extract(archive, cache)
    assert str(archive) in str(caught.value)
    assert repr(member.name) in str(caught.value)
    assert left_in(cache) == []


def test_a_file_written_through_a_link_stays_inside(tmp_path: Path, cache: Path) -> None:
    with tarfile.open(tmp_path / "m.tar", "w") as tar:
        tar.addfile(special("sub", tarfile.SYMTYPE, "."))
        member = special("sub/evil", tarfile.REGTYPE)
        tar.addfile(member)
    folder = extract(tmp_path / "m.tar", cache)
    assert cache in (folder / "evil").resolve().parents


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def between_members(data: bytes) -> bytes:
    return data[:1024]  # one block of header, one of data: `tarfile` alone takes this for complete


def inside_header(data: bytes) -> bytes:
    return data[:1300]


@pytest.mark.parametrize("name", ["m.tar", "m.tar.gz"])
@pytest.mark.parametrize("damage", [half, between_members, inside_header, lambda _: b"", lambda _: b"<html>" * 300])
def test_truncated_and_corrupt_archives_are_named(
    tmp_path: Path, cache: Path, name: str, damage: Callable[[bytes], bytes]
) -> None:
    plain = pack(tmp_path / "plain.tar", FILES).read_bytes()
    archive = tmp_path / name
    data = damage(plain)
    archive.write_bytes(gzip.compress(data) if name.endswith("gz") and data[:1] not in (b"", b"<") else data)
    with pytest.raises(OSError, match="truncated or not a tar file") as caught:
        extract(archive, cache)
    assert str(archive) in str(caught.value)
    assert left_in(cache) == []


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
def test_a_cut_gzip_stream_is_named(tmp_path: Path, cache: Path, keep: float) -> None:
    archive = pack(tmp_path / "m.tar.gz", {"config.json": b"{}", "noise.bin": os.urandom(50_000)})
    data = archive.read_bytes()
    archive.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(OSError, match="truncated") as caught:
        extract(archive, cache)
    assert str(archive) in str(caught.value)
    assert left_in(cache) == []


def test_a_changed_byte_in_a_gzip_stream_is_noticed(tmp_path: Path, cache: Path) -> None:
    archive = pack(tmp_path / "m.tar.gz", {"noise.bin": os.urandom(50_000)})
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 1
    archive.write_bytes(data)
    with pytest.raises(OSError, match="truncated or not a tar file"):
        extract(archive, cache)
    assert left_in(cache) == []


def test_two_processes_unpack_at_once(tmp_path: Path, cache: Path) -> None:
    archive = pack(tmp_path / "m.tar.gz", {f"{number}.txt": b"x" * 1000 for number in range(300)})
    program = (
        "import sys; from pathlib import Path; from pytorch_transformers.hub.archive import extract\n"
        "print(len(list(extract(Path(sys.argv[1]), Path(sys.argv[2])).iterdir())))"
    )
    command = [sys.executable, "-c", program, str(archive), str(cache)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") for _ in range(3)]
    assert [process.communicate(timeout=60)[0].strip() for process in running] == ["300"] * 3
    assert len(list((cache / "archives").iterdir())) == 1
