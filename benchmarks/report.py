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
    """Write `report.json`, `report.png` and the table, which goes into a README between its marks or into `report.md`.

    Args:
        folder: It is made when missing.
        results: The lines, in order.
        facts: What the run ran on.
        failures: Subject -> why it gave no result.
        readme: A file with the two marks; None writes `report.md` into the folder.

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
    paths = [folder / "report.json", folder / "report.png", readme or folder / "report.md"]
    paths[0].write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draw(paths[1], results)
    if readme is None:
        paths[2].write_text(text, encoding="utf-8")
    else:
        _insert(readme, text)
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
    if facts["quick"]:
        conditions = f"A short run, with few repetitions on little text: not to be relied on. {conditions}"
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

    speeds = [one for one in results if not one.at_most]
    limited = [one for one in results if one.at_most]
    parts = [part for part in (speeds, limited) if part]
    figure, panels = pyplot.subplots(
        len(parts) or 1,
        1,
        figsize=(11, 1.6 + 0.38 * len(results)),
        height_ratios=[len(part) + 0.6 for part in parts] or None,
        squeeze=False,
        layout="constrained",
    )
    for part, axes in zip(parts, panels[:, 0], strict=False):
        if part is speeds:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
            _bars(axes, part, [1.0] * len(part), start=1.0)
            axes.axvline(1.0, color="black", linewidth=0.8)
            axes.set_xlabel("times as fast, or share of the rate: further right is better; red: the aim")
        else:
            _bars(axes, part, [one.aim or 1.0 for one in part], start=0.0)
            axes.set_xlim(left=0)
            axes.set_xlabel("share of what is allowed: further left is better; red: the limit")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _bars(axes: Any, results: Sequence[Result], scales: Sequence[float], start: float) -> None:
    """One bar a result, from `start` to its median, in units of `scales`."""
    colours = {True: "tab:green", False: "tab:orange", None: "tab:gray"}
    for place, (one, scale) in enumerate(zip(results, scales, strict=True)):
        middle, low, high = (value / scale for value in (one.median, min(one.values), max(one.values)))
        axes.barh(place, middle - start, left=start, color=colours[one.met], height=0.7, alpha=0.8)
        axes.errorbar(middle, place, xerr=[[middle - low], [high - middle]], color="black", capsize=3)
        axes.annotate(f" {_number(one.median)}", (high, place), va="center", fontsize=7)
        if one.aim is not None:
            axes.plot([one.aim / scale] * 2, [place - 0.45, place + 0.45], color="tab:red", linewidth=2.5)
    axes.set_yticks(range(len(results)), [f"{one.subject}\nagainst {one.against}" for one in results], fontsize=7)
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
