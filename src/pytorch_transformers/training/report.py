"""The curves of a run as one HTML page that needs no other file, and as a PNG."""

import base64
import html
import io
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..files import atomic_write, write_text

logger = logging.getLogger(__name__)

_NOT_CURVES: Final = ("step", "epoch")
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2rem .6rem;text-align:left}"
    "img{max-width:100%}"
)


def write_report(folder: Path, record: Mapping[str, Any]) -> list[Path]:
    """Write `report.html` and `report.png`; nothing, with a line that says so, where matplotlib is not installed."""
    image = curves(record["history"], record["task"])
    if image is None:
        logger.warning("no report.html: it needs matplotlib, pip install 'pytorch-transformers[train]'")
        return []
    with atomic_write(folder / "report.png") as temporary:
        temporary.write_bytes(image)
    write_text(folder / "report.html", page(record, image))
    return [folder / "report.html", folder / "report.png"]


def curves(history: Sequence[Mapping[str, Any]], title: str) -> bytes | None:
    """Loss, learning rate and metrics over the updates as a PNG; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    training = [point for point in history if "learning_rate" in point]
    evaluations = [point for point in history if "learning_rate" not in point]
    figure = Figure(figsize=(10, 3.2 if not evaluations else 6.0), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(2 if evaluations else 1, 2, squeeze=False)
    steps = [point["step"] for point in training]
    for name in dict.fromkeys(name for point in training for name in point):
        if name not in (*_NOT_CURVES, "learning_rate"):
            axes[0][0].plot(steps, [point.get(name) for point in training], label=name)
    axes[0][0].set(xlabel="updates", ylabel="loss")
    if training:
        axes[0][0].legend()
    axes[0][1].plot(steps, [point["learning_rate"] for point in training], color="tab:gray")
    axes[0][1].set(xlabel="updates", ylabel="learning rate")
    if evaluations:
        _metrics(axes[1], evaluations)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()


def _metrics(axes: Any, evaluations: Sequence[Mapping[str, Any]]) -> None:
    """Shares on the left, and on the right whatever has another scale: losses, percent, perplexity."""
    steps = [point["step"] for point in evaluations]
    for name in dict.fromkeys(name for point in evaluations for name in point if name not in _NOT_CURVES):
        values = [point.get(name) for point in evaluations]
        is_share = all(value is None or -1.0 <= value <= 1.0 for value in values)
        axes[0 if is_share else 1].plot(steps, values, marker="o", label=name)
    for side in axes:
        side.set(xlabel="updates", ylabel="evaluation")
        if side.lines:
            side.legend()
        else:
            side.axis("off")


def page(record: Mapping[str, Any], image: bytes) -> str:
    """The HTML page."""
    picture = base64.b64encode(image).decode()
    tables = "".join(
        f"<h2>{title}</h2>{_table(record[name])}"
        for name, title in (("metrics", "Metrics"), ("training", "Training"), ("arguments", "Arguments"))
        if record.get(name)
    )
    title = html.escape(str(record["task"]))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f'<h1>{title}</h1><img alt="curves of loss, learning rate and metrics" src="data:image/png;base64,{picture}">'
        f"{tables}</html>\n"
    )


def _table(values: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(_text(value))}</td></tr>" for name, value in values.items()
    )
    return f"<table>{rows}</table>"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
