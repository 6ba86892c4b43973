"""What the notebooks share: measures, bounds, tables, and the choice of files."""

import importlib.util
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

PNG = b"\x89PNG\r\n\x1a\n"
BOUNDS = (1e-6, 1e-5)
DEFAULTS = ("checkpoint", "config", {"gelu": "erf.npz", "gelu_tanh": "tanh.npz"})


@pytest.fixture(scope="module")
def comparison() -> Iterator[ModuleType]:
    path = Path(__file__).parents[2] / "notebooks" / "comparison.py"
    spec = importlib.util.spec_from_file_location("comparison", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["comparison"] = importlib.util.module_from_spec(spec)  # dataclasses look there
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("comparison", None)


def test_measures(comparison: ModuleType) -> None:
    (row,) = comparison.compare("t", {"x": (np.zeros((2, 2), np.float32), torch.tensor([[1e-3, -1e-3]] * 2))}).rows
    assert (row.name, row.shape, row.spread) == ("x", (2, 2), 0.0)
    assert row.std == pytest.approx(1e-3)
    assert row.largest == pytest.approx(1e-3)


def test_single_number_has_a_difference_but_no_spread(comparison: ModuleType) -> None:
    (row,) = comparison.compare("t", {"loss": (np.float32(2.0), torch.tensor(2.5))}).rows
    assert (row.std, row.largest, row.spread) == (None, 0.5, 2.0)
    assert row.cells() == ("loss", "one number", "2.000", "–", "5.0e-01")


def test_difference_is_computed_in_double_precision(comparison: ModuleType) -> None:
    """In float32 the difference of the two would be 0 or 6e-8."""
    (row,) = comparison.compare("t", {"x": (np.array([1.0]), torch.tensor([1.0 + 1e-9], dtype=torch.float64))}).rows
    assert row.largest == pytest.approx(1e-9)


def test_shapes_are_not_broadcast(comparison: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"x: recorded with the shape \(4, 1\), ours has \(4,\)"):
        comparison.compare("t", {"x": (np.zeros((4, 1)), torch.zeros(4))})


@pytest.mark.parametrize(
    ("difference", "faults"),
    [
        ([0.0, 0.0], 0),
        ([9e-7, -9e-7], 0),
        ([2e-6, -2e-6], 1),  # the standard deviation alone
        ([9e-6, 9e-6], 0),  # a common shift below the second bound
        ([2e-5, 2e-5], 1),  # a common shift: its standard deviation is 0
        ([2e-5, -2e-5], 2),
        ([math.nan, 0.0], 2),
        ([math.inf, 0.0], 2),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # the std of infinities, which numpy warns of
def test_bounds(comparison: ModuleType, difference: list[float], faults: int) -> None:
    table = comparison.compare("t", {"x": (np.zeros(2), np.array(difference))})
    found = table.beyond(*BOUNDS)
    assert len(found) == faults
    assert all(text.startswith("t: x: ") for text in found)


def test_table_as_text_and_as_html(comparison: ModuleType) -> None:
    table = comparison.compare("a & b", {"<x>": (np.zeros((2, 3)), np.zeros((2, 3))), "loss": (1.0, 1.0)})
    lines = repr(table).splitlines()
    assert lines[0] == "a & b"
    assert lines[2].split() == ["<x>", "2", "×", "3", "0.000", "0.0e+00", "0.0e+00"]
    html = table._repr_html_()
    assert "<caption>a &amp; b</caption>" in html
    assert "<td>&lt;x&gt;</td><td>2 × 3</td>" in html
    assert "7 values in 2 quantities" in table.summary()


def test_plot_is_the_same_each_time(comparison: ModuleType) -> None:
    table = comparison.compare("t", {"x": (np.zeros(2), np.array([0.0, 1e-6])), "loss": (1.0, 1.0)})
    first, second = (comparison.plot([table, table, table], *BOUNDS) for _ in range(2))
    assert first.png.startswith(PNG)
    assert first == second
    assert b"Software" not in first.png
    data, metadata = first._repr_png_()
    assert data == first.png
    assert "x, loss" in metadata["alt"]


def test_missing_array_is_named(comparison: ModuleType, tmp_path: Path) -> None:
    np.savez(tmp_path / "run.npz", a=np.zeros(1))
    assert list(comparison.load_arrays(tmp_path / "run.npz", ["a"])) == ["a"]
    with pytest.raises(ValueError, match=r"run\.npz: expected the array b; missing are b, c"):
        comparison.load_arrays(tmp_path / "run.npz", ["a", "b", "c"])


def test_pickled_arrays_are_refused(comparison: ModuleType, tmp_path: Path) -> None:
    np.savez(tmp_path / "run.npz", a=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        comparison.load_arrays(tmp_path / "run.npz", ["a"])


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, DEFAULTS),
        ({"BERT_RECORDED": "mine.npz"}, ("checkpoint", "config", {"gelu_tanh": "mine.npz"})),
        ({"BERT_RECORDED_ERF": "mine.npz"}, ("checkpoint", "config", {"gelu": "mine.npz"})),
        (
            {"BERT_CHECKPOINT": "c", "BERT_CONFIG": "j", "BERT_RECORDED": "t", "BERT_RECORDED_ERF": "e"},
            ("c", "j", {"gelu_tanh": "t", "gelu": "e"}),
        ),
        ({"BERT_CHECKPOINT": "", "BERT_RECORDED": ""}, DEFAULTS),
    ],
)
def test_choice_of_files(
    comparison: ModuleType,
    variables: dict[str, str],
    expected: tuple[str, str, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("BERT_CHECKPOINT", "BERT_CONFIG", "BERT_RECORDED", "BERT_RECORDED_ERF"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert comparison.chosen_files(*DEFAULTS) == expected


@pytest.mark.parametrize("given", [(), ("BERT_CONFIG",), ("BERT_RECORDED",)])
def test_own_checkpoint_needs_what_belongs_to_it(
    comparison: ModuleType, given: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BERT_CONFIG", "BERT_RECORDED", "BERT_RECORDED_ERF"):
        monkeypatch.delenv(name, raising=False)
    for name in ("BERT_CHECKPOINT", *given):
        monkeypatch.setenv(name, "mine")
    with pytest.raises(ValueError, match="expected BERT_CONFIG and BERT_RECORDED or BERT_RECORDED_ERF"):
        comparison.chosen_files(*DEFAULTS)
