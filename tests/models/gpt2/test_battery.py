"""The battery that every family passes, and that of decoders, on the three GPT-2 models."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytorch_transformers import GPT2LMHeadModel, GPT2Model

from ..battery import CAUSAL, EVERY_MODEL, ONCE, Check, check_compile, check_onnx, run
from .tiny import CASE


def _name(value: Any) -> str:
    return str(value.__name__).removeprefix("check_")


def _runs() -> Iterator[Any]:
    """Each check on each class; compiling takes seconds, so by default only one class is compiled."""
    for check in (*EVERY_MODEL, *CAUSAL):
        for model_class in CASE.models:
            slow = check is check_compile and model_class is not GPT2LMHeadModel
            yield pytest.param(
                check,
                model_class,
                marks=[pytest.mark.slow] if slow else [],
                id=f"{_name(check)}-{_name(model_class)}",
            )


@pytest.mark.parametrize(("check", "model_class"), list(_runs()))
def test_every_model(check: Check, model_class: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(check, CASE, model_class, tmp_path, monkeypatch)


@pytest.mark.parametrize("check", ONCE, ids=_name)
def test_family(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(check, CASE, None, tmp_path, monkeypatch)


@pytest.mark.parametrize("model_class", [GPT2LMHeadModel, pytest.param(GPT2Model, marks=pytest.mark.slow)], ids=_name)
def test_onnx(model_class: type[Any], tmp_path: Path) -> None:
    check_onnx(CASE, model_class, tmp_path)
