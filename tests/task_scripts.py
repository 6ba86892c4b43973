"""The scripts in `examples/` that fine-tune, run inside this process on the small data beside them."""

import contextlib
import importlib.util
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
DATA = EXAMPLES / "data" / "finetuning"


def load_script(name: str) -> ModuleType:
    """`examples/NAME.py` as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One thread, and no state of `accelerate` that a run leaves to the next one."""
    import torch
    from accelerate.state import AcceleratorState, GradientState

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()


def run_script(script: ModuleType, command: str, capsys: pytest.CaptureFixture[str], **places: Path) -> str:
    """What a command prints; `$NAME` in it is a place."""
    words = [_filled(word, places) for word in shlex.split(command)]
    status = script.main(words)
    printed = capsys.readouterr()
    assert status == 0, printed.err
    return printed.out


def record_of(folder: Path) -> dict[str, Any]:
    """What a run wrote down of itself."""
    record: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return record


def check_help(script: ModuleType, name: str, capsys: pytest.CaptureFixture[str], *flags: str) -> None:
    """The help has an example, and all of these flags."""
    with pytest.raises(SystemExit) as raised:
        script.main(["--help"])
    assert raised.value.code == 0
    text = capsys.readouterr().out
    assert f"python examples/{name}.py --" in text
    assert [flag for flag in flags if flag not in text] == []


def _filled(word: str, places: dict[str, Path]) -> str:
    for name, place in places.items():
        word = word.replace(f"${name.upper()}", str(place))
    return word
