"""Files are written whole or not at all."""

import json
import stat
import threading
from pathlib import Path

import pytest

from pytorch_transformers.files import atomic_write, write_json, write_text


def test_the_file_appears_at_the_end_of_the_block(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    with atomic_write(path) as temporary:
        temporary.write_bytes(b"whole")
        assert not path.exists()
        assert temporary.parent == path.parent
    assert path.read_bytes() == b"whole"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, ValueError, KeyboardInterrupt, SystemExit])
def test_any_failure_leaves_the_file_before(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(b"before")

    def fail() -> None:
        with atomic_write(path) as temporary:
            temporary.write_bytes(b"hal")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "file.txt"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_others_may_read_the_file_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_text(tmp_path / "ours", "x")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_text_is_utf8_with_unix_line_ends(tmp_path: Path) -> None:
    write_text(tmp_path / "t", "é\n模\n")
    assert (tmp_path / "t").read_bytes() == "é\n模\n".encode()


def test_json_is_readable(tmp_path: Path) -> None:
    write_json(tmp_path / "j", {"b": "é", "a": [1, None]}, sort_keys=True)
    assert (tmp_path / "j").read_bytes().decode().splitlines()[:2] == ["{", '  "a": [']
    assert json.loads((tmp_path / "j").read_bytes()) == {"a": [1, None], "b": "é"}
    with pytest.raises(TypeError):
        write_json(tmp_path / "j", {"x": object()})
    assert json.loads((tmp_path / "j").read_bytes())["b"] == "é"


def test_long_names(tmp_path: Path) -> None:
    write_text(tmp_path / ("n" * 255), "x")
    write_text(tmp_path / ("é" * 127), "x")
    assert len(list(tmp_path.iterdir())) == 2


def test_many_writers_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    writers = [threading.Thread(target=write_text, args=(path, str(number) * 50_000)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    text = path.read_text(encoding="utf-8")
    assert text == text[0] * 50_000
    assert list(tmp_path.iterdir()) == [path]
