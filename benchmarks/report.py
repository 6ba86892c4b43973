"""The report: figures for programs (JSON), a table for readers (Markdown), and a picture."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from .harness import Result

BEGIN: Final = "<!-- report: begin -->"
END: Final = "<!-- report: end -->"
_MET: Final = {True: "yes", False: "**no**", None: ""}


def write(
    folder: Path, results: Sequence[Result], facts: Mapping[str, Any], failures: Mapping[str, str], readme: Path | None
) -> list[Path]:
    """Write `report.json`, `report.md` and `report.png` into a folder, and the table into a README between its marks.

    Args:
        folder: It is made when missing.
        results: The lines, in order.
        facts: What the run ran on.
        failures: Subject -> why it gave no result.
        readme: A file with the two marks, or None.

    Returns:
        The paths written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "environment": dict(facts),
        "results": [
            {**asdict(one), "best": one.best, "median": one.median, "worst": one.worst, "met": one.met}
            for one in results
        ],
        "failures": dict(failures),
    }
    text = table(results, facts, failures)
    paths = [folder / name for name in ("report.json", "report.md", "report.png")]
    paths[0].write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    paths[1].write_text(text, encoding="utf-8")
    draw(paths[2], results)
    if readme is not None:
        _insert(readme, text)
        paths.append(readme)
    return paths


def table(results: Sequence[Result], facts: Mapping[str, Any], failures: Mapping[str, str]) -> str:
    """The results and what they were measured on, as Markdown."""
    lines = [
        "| what | against | median (worst to best) | aim | met | answers | note |",
        "|---|---|---|---|---|---|---|",
        *(_row(one) for one in results),
    ]
    lines += [f"| {name} | | **failed** | | | {' '.join(why.split())} | |" for name, why in failures.items()]
    rates = facts["matrix_product_gflops"]
    speed = ", ".join(f"{rate:,.0f} GFLOP/s in {name}" for name, rate in rates.items())
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    conditions = (
        f"Measured with {facts['threads']} threads on {facts['processor']['machine']} "
        f"({', '.join(facts['processor']['features']) or facts['capability']}), which reached {speed} in bare matrix "
        f"products; text: {facts['text']}. Python {facts['python']}, {versions}."
    )
    lines += ["", conditions]
    return "\n".join(lines) + "\n"


def _row(one: Result) -> str:
    aim = "" if one.aim is None else f"{'≤' if one.at_most else '≥'} {_number(one.aim)}"
    value = f"{_number(one.median)} {one.unit} ({_number(one.worst)} to {_number(one.best)})"
    cells = (one.subject, one.against, value, aim, _MET[one.met], one.check, one.note)
    return f"| {' | '.join(cells)} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def draw(path: Path, results: Sequence[Result]) -> None:
    """Bars of the medians with the spread from worst to best; the aim is a line across the bar.

    Speeds stand on a logarithmic axis, for they reach from 1 to hundreds; what has a limit stands beside them as a
    share of its limit.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    limited = [one for one in results if one.at_most]
    others = [one for one in results if not one.at_most]
    figure, panels = pyplot.subplots(
        2,
        1,
        figsize=(11, 2.6 + 0.36 * max(1, len(results))),
        height_ratios=(max(1, len(others)), max(1, len(limited)) + 0.5),
        layout="constrained",
    )
    _bars(panels[0], others, [1.0] * len(others))
    panels[0].set_xscale("log")
    panels[0].axvline(1.0, color="black", linewidth=0.8)
    panels[0].xaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    panels[0].set_xlabel("times as fast, or share of the rate: further right is better; red line: the aim")
    _bars(panels[1], limited, [one.aim or 1.0 for one in limited])
    panels[1].set_xlim(left=0)
    panels[1].set_xlabel("share of what is allowed: further left is better; red line: the limit")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _bars(axes: Any, results: Sequence[Result], scales: Sequence[float]) -> None:
    places = range(len(results))
    medians = [one.median / scale for one, scale in zip(results, scales, strict=True)]
    low = [(one.median - min(one.values)) / scale for one, scale in zip(results, scales, strict=True)]
    high = [(max(one.values) - one.median) / scale for one, scale in zip(results, scales, strict=True)]
    colours = {True: "tab:green", False: "tab:orange", None: "tab:gray"}
    axes.barh(
        places, medians, xerr=(low, high), color=[colours[one.met] for one in results], capsize=3, height=0.7, alpha=0.8
    )
    for place, one, scale in zip(places, results, scales, strict=True):
        if one.aim is not None:
            axes.plot([one.aim / scale] * 2, [place - 0.45, place + 0.45], color="tab:red", linewidth=2.5)
    axes.set_yticks(list(places), [f"{one.subject}\nagainst {one.against}" for one in results], fontsize=7)
    axes.invert_yaxis()
    axes.grid(axis="x", which="both", linewidth=0.3)


def _insert(readme: Path, text: str) -> None:
    """Replace what stands between the marks.

    Raises:
        ValueError: The marks are not there.
    """
    before, begin, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{readme.name} has no {BEGIN} … {END}, where the table goes")
    readme.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")
