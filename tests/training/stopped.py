"""Trainings that are killed, or whose disk is full, and go on; `test_checkpoints` looks at what is left.

A program and not a test: `python stopped.py FOLDER`. It imports everything once and gives birth to the processes that
are killed, each of which does what a command does that is given again and again. Leaves `told.json` in the folder.
"""

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from accelerate.state import AcceleratorState, GradientState
from torch import nn

from pytorch_transformers.training.checkpoints import checkpoint_folders
from training import small

OPTIONS: dict[str, Any] = {"dropout": True, "num_train_epochs": 6, "save_every": 1, "keep_checkpoints": 2}
UPDATES = 18


def train(folder: Path, save_files: Callable[[Path], None] | None = None, **options: Any) -> None:
    """Train, or go on with it, and leave the weights and the curve."""
    training = small.training(folder, **{**OPTIONS, **options})
    if save_files is not None:
        training._save_files = save_files
    training.run()
    torch.save(small.weights(training.model), folder / "weights.pt")
    (folder / "history.json").write_text(json.dumps(training.progress.history))


def born(job: Callable[[], None]) -> int:
    """Start a process that does the job; gives its id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        job()
        status = 0
    except OSError as error:
        sys.stderr.write(f"{error}\n")
    finally:
        os._exit(status)


def wait(child: int) -> int:
    """Wait for a process; its exit status, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at_random(folder: Path, seed: int, usual: float) -> dict[str, Any]:
    """Give the same command until it ends by itself, and kill it on the way at moments drawn at random."""
    draw = random.Random(seed)
    moments: list[float] = []
    left: list[list[str]] = []
    status = -signal.SIGKILL
    while status:
        child = born(lambda: train(folder))
        if len(moments) < 12:  # then it may end
            moments.append(draw.uniform(0.05, 0.4) * usual)
            time.sleep(moments[-1])
            os.kill(child, signal.SIGKILL)
        status = wait(child)
        if status > 0:
            break
        left.append(sorted(path.name for path in (folder / "checkpoints").glob("*")))
    return {"status": status, "moments": moments, "left": left}


def killed_while_writing(folder: Path) -> dict[str, Any]:
    """Killed when weights and optimizer of a checkpoint are written and its progress is not."""
    kill_at = f"step-{UPDATES // 2}.unfinished"

    def save_files(unfinished: Path) -> None:
        if unfinished.name == kill_at and not (folder / "was killed").exists():
            (folder / "was killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    status = wait(born(lambda: train(folder, save_files)))
    left = sorted(path.name for path in (folder / "checkpoints").iterdir())
    (folder / "checkpoints" / "step-99.unfinished").mkdir()  # of an older run, and no update has its name
    went_on = wait(born(lambda: train(folder)))
    after = sorted(path.name for path in (folder / "checkpoints").iterdir())
    return {"killed": status, "left": left, "status": went_on, "after": after}


def full_disk(folder: Path) -> dict[str, Any]:
    """From some update on no file may be larger than a few bytes."""

    def evaluate(model: nn.Module) -> dict[str, float]:
        if small_disk and len(checkpoint_folders(folder)) == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        return {}

    small_disk = True
    reading, writing = os.pipe()

    def refused() -> None:
        os.dup2(writing, 2)
        train(folder, evaluate=evaluate)

    status = wait(born(refused))
    os.close(writing)
    message = os.fdopen(reading, encoding="utf-8", errors="replace").read()
    left = sorted(path.name for path in (folder / "checkpoints").iterdir())
    small_disk = False
    return {
        "refused": status,
        "message": message,
        "left": left,
        "status": wait(born(lambda: train(folder, evaluate=evaluate))),
    }


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    train(folder / "warm", num_train_epochs=1)  # what is imported on the way is there for all
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    started = time.perf_counter()
    assert wait(born(lambda: train(folder / "whole"))) == 0
    usual = time.perf_counter() - started
    told = {
        "usual": usual,
        "random": {seed: killed_at_random(folder / f"random-{seed}", seed, usual) for seed in (0, 1, 2)},
        "writing": killed_while_writing(folder / "writing"),
        "full": full_disk(folder / "full"),
    }
    (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
