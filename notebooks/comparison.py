"""What the three notebooks share: which files to compare, tables and plots of differences, and the bounds.

The two programs are google-research/bert on TensorFlow, as arrays that were recorded from it, and this library.
Surprising: the original has used two formulas for gelu, so there are two recordings of the same weights and inputs;
the names of the formulas are the values of `hidden_act` here ("gelu" is the exact one, "gelu_tanh" its approximation).
"""

from __future__ import annotations

import html
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

Arrays = dict[str, NDArray[Any]]

MAX_STD = 1e-6
"""Bound on the standard deviation of a difference: the notebooks of 2018 found 1.5e-7 to 9e-7 for BERT-base."""

MAX_ABS = 1e-5
"""Bound on the largest difference. float32 rounds values of 2 to 4, the largest here, by up to 1.2e-7, at each of some
thirty operations on the way through three layers. Programs that add in another order may thus differ by a few 1e-6
at the worst of some thousand places. The wrong formula for gelu makes a difference many times as large."""

FORMULAS = {"gelu_tanh": "tanh gelu", "gelu": "erf gelu"}
"""Value of `hidden_act` -> words for it."""

VARIABLES = {"gelu_tanh": "BERT_RECORDED", "gelu": "BERT_RECORDED_ERF"}
"""Value of `hidden_act` -> environment variable that names arrays recorded with it."""

_STYLES: tuple[dict[str, Any], ...] = (  # colours that the colour-blind tell apart too (Okabe and Ito 2008)
    {"color": "#0072B2", "marker": "o", "markersize": 8},
    {"color": "#D55E00", "marker": "s", "markersize": 4},  # smaller: it often lies on the first
    {"color": "#777777", "marker": "x", "markersize": 6},
)
_FLOOR = 1e-9  # a difference of 0 has no place on a logarithmic axis; it is drawn here


def chosen_files(checkpoint: str, config: str, recorded: Mapping[str, str]) -> tuple[str, str, dict[str, str]]:
    """The files given, or those that the environment names in their place.

    `BERT_CHECKPOINT` is the prefix of a TensorFlow checkpoint, `BERT_CONFIG` its `bert_config.json`, `BERT_RECORDED`
    and `BERT_RECORDED_ERF` arrays recorded with the tanh and the erf formula. With one of the latter two, only that one
    is compared.

    Raises:
        ValueError: A checkpoint was named without its configuration or the arrays recorded from it.
    """
    named = {act: os.environ[name] for act, name in VARIABLES.items() if os.environ.get(name)}
    if os.environ.get("BERT_CHECKPOINT") and not (named and os.environ.get("BERT_CONFIG")):
        recordings = " or ".join(VARIABLES.values())
        raise ValueError(f"BERT_CHECKPOINT is set, but not what belongs to it: expected BERT_CONFIG and {recordings}")
    return (
        os.environ.get("BERT_CHECKPOINT") or checkpoint,
        os.environ.get("BERT_CONFIG") or config,
        named or dict(recorded),
    )


def other_formula(hidden_act: str) -> str:
    """The formula that a run was not recorded with."""
    return "gelu" if hidden_act == "gelu_tanh" else "gelu_tanh"


def load_arrays(path: str | Path, names: Sequence[str]) -> Arrays:
    """Read a recorded run.

    Args:
        path: An `.npz` file.
        names: Arrays that must be in it.

    Raises:
        ValueError: One of them is missing; the message names all that are.
    """
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)
    if missing := [name for name in names if name not in arrays]:
        raise ValueError(f"{path}: expected the array {missing[0]}; missing are {', '.join(missing)}")
    return arrays


def model_inputs(arrays: Arrays) -> dict[str, torch.Tensor]:
    """The recorded inputs [B, T] under our names."""
    names = {"input_ids": "input_ids", "attention_mask": "input_mask", "token_type_ids": "segment_ids"}
    return {ours: integers(arrays[theirs]) for ours, theirs in names.items()}


def integers(values: ArrayLike) -> torch.Tensor:
    """Recorded ids, positions or labels as the integers that torch indexes with."""
    return torch.from_numpy(np.asarray(values, dtype=np.int64))


@dataclass(frozen=True)
class Row:
    """One quantity: its recorded values, and how far ours are from them.

    Attributes:
        name: What it is.
        shape: Its shape; () for a single number.
        spread: Standard deviation of the recorded values, or the value itself if it is a single number.
        std: Standard deviation of the difference; None for a single number, which has none.
        largest: Largest absolute difference.
    """

    name: str
    shape: tuple[int, ...]
    spread: float
    std: float | None
    largest: float

    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        shape = " × ".join(map(str, self.shape)) or "one number"
        std = "–" if self.std is None else f"{self.std:.1e}"
        return self.name, shape, f"{self.spread:.3f}", std, f"{self.largest:.1e}"


@dataclass(frozen=True)
class Table:
    """The comparison of one recorded run with one model; a notebook shows it as a table."""

    title: str
    rows: tuple[Row, ...]

    HEAD = ("quantity", "shape", "spread or value", "std of difference", "largest difference")

    def beyond(self, max_std: float, max_abs: float) -> list[str]:
        """What is over a bound, or no number at all, one text each; empty when the two programs agree."""
        faults = []
        for row in self.rows:
            if row.std is not None and not row.std <= max_std:
                faults.append(f"{self.title}: {row.name}: std of difference {row.std:.1e} > {max_std:.0e}")
            if not row.largest <= max_abs:
                faults.append(f"{self.title}: {row.name}: largest difference {row.largest:.1e} > {max_abs:.0e}")
        return faults

    def summary(self) -> str:
        """The worst of all rows, in a sentence."""
        values = sum(math.prod(row.shape) for row in self.rows)
        stds = [row.std for row in self.rows if row.std is not None]
        largest = max(row.largest for row in self.rows)
        return (
            f"{self.title}: {values} values in {len(self.rows)} quantities; std of difference up to "
            f"{max(stds, default=math.nan):.1e}, largest difference {largest:.1e}"
        )

    def __repr__(self) -> str:
        lines = [self.HEAD, *(row.cells() for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join([self.title, *texts])

    def _repr_html_(self) -> str:
        def line(tag: str, cells: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "\n".join(line("td", row.cells()) for row in self.rows)
        title = html.escape(self.title)
        return f"<table>\n<caption>{title}</caption>\n{line('th', self.HEAD)}\n{body}\n</table>"


def compare(title: str, pairs: Mapping[str, tuple[ArrayLike, ArrayLike | torch.Tensor]]) -> Table:
    """Measure how far two programs are apart.

    Args:
        title: What is compared with what.
        pairs: Name of a quantity -> recorded values, our values.

    Raises:
        ValueError: Shapes differ; nothing is broadcast.
    """
    rows = []
    for name, (recorded, ours) in pairs.items():
        expected, found = _float64(recorded), _float64(ours)
        if expected.shape != found.shape:
            raise ValueError(f"{name}: recorded with the shape {expected.shape}, ours has {found.shape}")
        difference = found - expected
        single = difference.ndim == 0
        rows.append(
            Row(
                name=name,
                shape=expected.shape,
                spread=float(expected if single else expected.std()),
                std=None if single else float(difference.std()),
                largest=float(np.abs(difference).max()),
            )
        )
    return Table(title, tuple(rows))


def _float64(values: ArrayLike | torch.Tensor) -> NDArray[np.float64]:
    """In double precision, so that the comparison adds no rounding of its own."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().double().numpy()
    return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True)
class Plot:
    """A picture that notebooks show, with words for those who can't see it."""

    png: bytes
    text: str

    def __repr__(self) -> str:
        return f"<plot: {self.text}>"

    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        return self.png, {"alt": self.text}


def plot(tables: Sequence[Table], max_std: float, max_abs: float) -> Plot:
    """Draw the differences of each quantity, one line for each table, beside the bounds.

    Args:
        tables: Up to three, with the same quantities.
        max_std: Bound on the standard deviations, which are on the left.
        max_abs: Bound on the largest differences, which are on the right.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.4), dpi=80, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    names = [row.name for row in tables[0].rows]
    panels: list[tuple[Any, str, float, list[list[float]]]] = [
        (left, "std of difference", max_std, [[_or_nan(row.std) for row in table.rows] for table in tables]),
        (right, "largest difference", max_abs, [[row.largest for row in table.rows] for table in tables]),
    ]
    for axes, title, bound, lines in panels:
        axes.axhline(bound, color="black", linewidth=0.8)
        axes.text(0.01, bound, f"bound {bound:.0e}", transform=axes.get_yaxis_transform(), va="bottom", fontsize=8)
        for table, values, style in zip(tables, lines, _STYLES, strict=False):
            axes.plot(np.maximum(values, _FLOOR), linestyle=":", label=table.title, **style)
        axes.set_yscale("log")
        axes.set_title(title, fontsize=10)
        axes.set_xlim(-0.4, len(names) - 0.6)
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor", fontsize=8)
        axes.grid(axis="y", alpha=0.3)
    left.set_ylabel("ours − TensorFlow")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", fontsize=8, frameon=False)
    picture = BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})  # no version: the picture stays the same
    return Plot(picture.getvalue(), f"{panels[0][1]} and {panels[1][1]} of {', '.join(names)}, with their bounds")


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
