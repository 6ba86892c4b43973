"""What all verbs share: options, exit status, and help."""

import argparse
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers.cli.common import Switch, join_negative_lists
from pytorch_transformers.cli.main import build_parser, main
from saved_bert import COMMAND, environment


def verbs() -> dict[str, argparse.ArgumentParser]:
    (sub,) = (action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(sub.choices)


@pytest.mark.parametrize("name", ["--normalize", "--no_noise"])
def test_of_a_switch_the_last_form_counts(name: str) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(name, action=Switch, default=None, dest="value")
    negative = f"--no_{name.removeprefix('--')}"
    assert parser.parse_args([]).value is None
    assert parser.parse_args([name]).value is True
    assert parser.parse_args([negative]).value is False
    assert parser.parse_args([negative, name]).value is True
    assert parser.parse_args([name, negative]).value is False


@pytest.mark.parametrize(
    ("typed", "joined"),
    [
        (["--layers", "-1,-2"], ["--layers=-1,-2"]),
        (["a", "--layers", "-1,2,-3", "b"], ["a", "--layers=-1,2,-3", "b"]),
        (["--layers", "-1"], ["--layers", "-1"]),  # argparse takes a single one by itself
        (["--layers=-1,-2"], ["--layers=-1,-2"]),
        (["--", "-1,-2"], ["--", "-1,-2"]),
        (["-1,-2"], ["-1,-2"]),
        (["text", "-1,-2"], ["text", "-1,-2"]),
        ([], []),
    ],
)
def test_negative_lists_are_joined(typed: list[str], joined: list[str]) -> None:
    assert join_negative_lists(typed) == joined


@given(st.lists(st.text(alphabet="-=,1a ", max_size=6)))
def test_joining_loses_nothing(arguments: list[str]) -> None:
    joined = join_negative_lists(arguments)
    assert "=".join(joined).replace("=", " ") == " ".join(arguments).replace("=", " ")


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["features"], ["info"], ["features", "--nonsense"]])
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert "usage: " in capsys.readouterr().err


@pytest.mark.parametrize("verb", verbs())
def test_help_fits_a_terminal_and_shows_both_forms(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    text = capsys.readouterr().out
    assert all(len(line) <= 120 for line in text.splitlines())
    both = "--local_files_only | --no_local_files_only" in " ".join(text.split())
    of_this_machine = verb in ("inspect", "train-tokenizer") or verb.startswith("convert_")
    assert both == (not of_this_machine and verb != "train")  # its tasks have help of their own


def test_help_of_features_documents_the_files(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["features", "--help"])
    text = capsys.readouterr().out
    for word in (".npy", ".npz", ".safetensors", "JSON lines", "lengths", "ids", "linex_index", ".partial"):
        assert word in text


def test_errors_without_text_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr("pytorch_transformers.models.family.family_of", refuse)
    assert main(["info", "somewhere"]) == 1
    assert capsys.readouterr().err.endswith("pytorch_transformers info: MemoryError\n")


def test_module_is_the_command() -> None:
    done = subprocess.run(
        [*COMMAND, "info", "./nowhere"], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("pytorch_transformers info: './nowhere' leads to no model")
    assert "Traceback" not in done.stderr
