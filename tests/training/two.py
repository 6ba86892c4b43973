"""What each of two processes does under torch's launcher; `test_processes` compares with one process.

A program and not a test: `python -m torch.distributed.run --nproc-per-node=2 two.py FOLDER`. Process N leaves
`process-N.json` and `process-N.pt` in the folder.
"""

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from pytorch_transformers import BertForTokenClassification
from pytorch_transformers.files import atomic_write
from pytorch_transformers.training.processes import first_alone, make_accelerator
from training import small

STOP_AT = 4


class StoppedError(Exception):
    """Ends a training in between."""


def stop_at(update: int, seen: list[int]) -> Any:
    """An evaluation that does not come back from its `update`-th call."""

    def evaluate(model: torch.nn.Module) -> dict[str, float]:
        seen.append(1)
        if len(seen) == update:
            raise StoppedError
        return {"accuracy": 0.0}

    return evaluate


def trainings(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those that must not depend on the number of processes."""
    told, kept = {}, {}
    variants: dict[str, dict[str, Any]] = {
        "rows": {"evaluate": small.accuracy(small.some_rows(7, seed=1)), "metric": "accuracy"},
        "parts": {"gradient_accumulation_steps": 3, "rows": 17},  # the last batch has 1 row for 6 parts
        "tags": {"kind": BertForTokenClassification, "gradient_accumulation_steps": 2},  # the pooler has no gradient
        "float16": {"precision": "float16", "loss_scale": 2.0**32},  # the first updates overflow
    }
    for name, options in variants.items():
        trained = small.training(folder / name, save_every=0, **options)
        progress = trained.run()
        told[name] = {"history": progress.history, "tokens": progress.tokens, "skipped": progress.skipped}
        kept[name] = small.weights(trained.model)
    return told, kept


def resumed(folder: Path) -> dict[str, Any]:
    """Weights of a training with dropout that goes through, and of one that is stopped and goes on."""
    options: dict[str, Any] = {"dropout": True, "evaluate_every": 1, "evaluate": stop_at(0, [])}
    whole = small.training(folder / "whole", **options)
    whole.run()
    broken = small.training(folder / "broken", **{**options, "evaluate": stop_at(STOP_AT, [])})
    with contextlib.suppress(StoppedError):
        broken.run()
    again = small.training(folder / "broken", **options)
    again.run()
    return {"whole": small.weights(whole.model), "again": small.weights(again.model)}


def cache(folder: Path, accelerator: Accelerator) -> dict[str, Any]:
    """Files that both want to write."""
    made = folder / "made.txt"
    with first_alone(accelerator):
        was_there = made.exists()
        if not was_there:
            made.write_text(str(accelerator.process_index))
    accelerator.wait_for_everyone()
    whole = True
    for turn in range(50):  # both at once
        with atomic_write(folder / "both.bin") as path:
            path.write_bytes(bytes([turn]) * 100_000)
        content = (folder / "both.bin").read_bytes()
        whole = whole and len(content) == 100_000 and len(set(content)) == 1
    return {"was_there": was_there, "made_by": made.read_text(), "whole": whole}


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    accelerator = make_accelerator(no_cuda=True)
    told, kept = trainings(folder / f"process-{accelerator.process_index}")
    model = small.tiny_model()
    for count in (0, 1, 7, 8):
        found = small.predictions(model, small.some_rows(count), tokens_per_batch=16, accelerator=accelerator)
        told[f"predictions {count}"] = [row.tolist() for row in found]
    told["cache"] = cache(folder, accelerator)
    kept.update(resumed(folder / "resumed"))
    told["processes"] = accelerator.num_processes
    told["backend"] = torch.distributed.get_backend()
    (folder / f"process-{accelerator.process_index}.json").write_text(json.dumps(told))
    torch.save(kept, folder / f"process-{accelerator.process_index}.pt")
    accelerator.end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
