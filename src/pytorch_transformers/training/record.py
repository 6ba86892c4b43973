"""The record of a run: what was done, with what, and what came out.

It is `run.json`. Where that is the record of a training, a run without training leaves it as it is, and writes
`run_without_training.json`.
"""

import json
import platform
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .. import __version__
from ..files import write_json, write_text

if TYPE_CHECKING:
    from accelerate import Accelerator

RECORD: Final = "run.json"
LATER_RECORD: Final = "run_without_training.json"
RESULTS: Final = "eval_results.txt"  # the published name
_LIBRARIES: Final = ("torch", "accelerate", "tokenizers", "numpy", "safetensors")


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def surroundings(accelerator: "Accelerator") -> dict[str, Any]:
    """Versions, machine and processes."""
    import torch

    device = accelerator.device
    return {
        "versions": {
            "python": platform.python_version(),
            "pytorch-transformers": __version__,
            **{name: metadata.version(name) for name in _LIBRARIES},
        },
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "threads": torch.get_num_threads(),
        "processes": accelerator.num_processes,
        "command": sys.argv,
    }


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write the record, and the metrics also as lines of a text file, as the published scripts do."""
    keeps = "training" not in record and _is_of_training(folder / RECORD)
    write_json(folder / (LATER_RECORD if keeps else RECORD), record)
    if metrics := record.get("metrics"):
        write_text(folder / RESULTS, "".join(f"{name} = {metrics[name]}\n" for name in sorted(metrics)))


def _is_of_training(path: Path) -> bool:
    try:
        return "training" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
