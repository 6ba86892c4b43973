"""The demo on the real model: what it prints and draws, and what it says when something is missing."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def nearest(printed: str) -> dict[str, str]:
    """Query -> the sentence printed first below it."""
    return dict(re.findall(r"^(\S.*)\n +-?\d\.\d{3}  (.+)$", printed, flags=re.MULTILINE))


def test_bundled_text(demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--output", str(tmp_path / "new" / "folder"), "--top", "2"]) == 0
    printed = capsys.readouterr().out
    found = nearest(printed)
    assert len(found) == len(demo.read_lines(demo.DATA / "queries.txt"))
    assert found["Will it snow tonight?"].startswith(("The forecast promises plenty of snowfall", "Heavy snow"))
    assert found["How do I make onions soft and sweet?"].startswith("Let the onions cook slowly")
    assert found["Our airline left us stranded overnight."].startswith(
        ("Our flight was cancelled", "The plane never left")
    )
    assert "[200, 384] torch.float32" in printed
    assert re.search(r"200 sentences, 2684 tokens in .* sentences/s, .* tokens/s", printed)
    assert (tmp_path / "new" / "folder" / "similarity.png").read_bytes().startswith(PNG)
    assert re.search(r"He opened the \[MASK\] and went in\.  .*\bdoor 0\.\d\d", printed)
    assert (
        len(re.findall(r"^(?:gpt2|transfo-xl)-mini-books\n  The next morning\b.* ", printed, flags=re.MULTILINE)) == 2
    )


def test_own_text_shorter_than_top(demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, queries = tmp_path / "text.txt", tmp_path / "queries.txt"
    text.write_text("\ufeffA café in Zürich.\n\n  Rain is near. \n", encoding="utf-8")
    queries.write_text("Where can I get coffee?\n", encoding="utf-8")
    assert demo.main(["--input", str(text), "--queries", str(queries), "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert nearest(printed) == {"Where can I get coffee?": "A café in Zürich."}
    assert "[2, 384]" in printed


def test_missing_model_says_what_to_do(
    demo: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "MODEL_PACKAGE", "no_such_package")
    assert demo.main([]) == 1
    assert "`make demo`" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "", " \n\n"])
def test_text_without_sentences_is_named(
    demo: ModuleType, content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    if content is not None:
        text.write_text(content, encoding="utf-8")
    assert demo.main(["--input", str(text)]) == 1
    assert str(text) in capsys.readouterr().err


@pytest.mark.parametrize("number", ["0", "-3", "many"])
def test_bad_number_is_wrong_usage(demo: ModuleType, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        demo.main(["--top", number])
    assert raised.value.code == 2
    assert "--top" in capsys.readouterr().err


def test_help_shows_an_example(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        demo.main(["--help"])
    assert raised.value.code == 0
    assert "example: python examples/demo.py" in capsys.readouterr().out


def test_bundled_text_is_distinct_sentences(demo: ModuleType) -> None:
    lines = demo.read_lines(demo.DATA / "sentences.txt")
    assert len(lines) == len(set(lines)) == 200
