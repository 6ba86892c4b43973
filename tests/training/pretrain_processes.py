"""Pre-trainings in processes of their own; `tasks/test_pretrain.py` compares with those that it runs itself.

A program and not a test: `python pretrain_processes.py killed FOLDER` gives birth to a training that is killed with
signal 9 in the middle of an epoch, and to another that goes on. `torchrun --nproc-per-node=2 pretrain_processes.py two
FOLDER` does each of `TWO` in two processes.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState

from training.corpora import Corpora
from training.stopped import born, wait

#: Killed after 3 to 9 updates of an epoch that has 17.
KILLED: dict[str, Any] = {"dropout": True, "max_steps": 24, "save_every": 1, "num_workers": 1}
DATA: dict[str, Any] = {"dynamic_masking": True}
#: Kind -> options of a training that must not depend on the number of processes.
TWO: dict[str, dict[str, Any]] = {
    "bert": {"max_steps": 6, "gradient_accumulation_steps": 2},
    "bert without next sentence": {"max_steps": 3, "train_batch_size": 3},  # one process has less to guess
    "gpt2": {"max_steps": 4},
    "transfo_xl": {"max_steps": 5, "gradient_accumulation_steps": 2},
}


def killed(folder: Path) -> None:
    """Leave the exit statuses, and which checkpoints were there, in `killed.json`."""
    corpora = Corpora(folder)
    output = folder / "killed"

    def train() -> None:
        corpora.run("bert", output, corpora.task("bert", dev=False, **DATA), **KILLED)

    corpora.model("bert", dropout=True)
    corpora.model("bert")
    corpora.data("bert", **DATA)
    corpora.run("bert", folder / "warm", corpora.task("bert", dev=False, **DATA), max_steps=1)
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    child = born(train)
    while not list(output.glob("checkpoints/step-[3-9]")):
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    status = wait(child)
    left = [path.name for path in output.glob("checkpoints/step-*")]
    (folder / "killed.json").write_text(json.dumps({"killed": status, "left": left, "status": wait(born(train))}))


def two(folder: Path) -> None:
    """Leave the curves in `curves.json`."""
    corpora = Corpora(folder)
    curves = {}
    Accelerator.end_training = lambda self: None  # a run ends what the processes share, and here are several
    for kind, options in TWO.items():
        curves[kind] = corpora.run(kind, folder / f"two {kind}", do_train=True, do_eval=True, **options)
    if os.environ["RANK"] == "0":  # the others have no whole record
        (folder / "curves.json").write_text(json.dumps(curves, default=str))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"killed": killed, "two": two}[sys.argv[1]](Path(sys.argv[2]))
