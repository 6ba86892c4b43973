"""What each process does when the weights are sharded; `test_processes` compares. Leaves files in the folder.

A program and not a test, started like `two.py`. `accelerate` shards only where there are GPUs, and without a word
leaves each process a whole model elsewhere; the sharding of torch works on a CPU too. So the processes are said to be
of the kind that have a GPU.
"""

import sys
from pathlib import Path
from typing import Any

import torch
from accelerate.state import PartialState
from accelerate.utils import DistributedType

from training import small


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    PartialState(cpu=True)
    PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU
    options: dict[str, Any] = {"evaluate": small.accuracy(small.some_rows(7, seed=1))}
    trained = small.training(folder / "sharded", **options)
    assert trained.accelerator.distributed_type == "FSDP"
    trained.run()
    groups = trained.optimizer.param_groups
    held = sum(parameter.to_local().numel() for group in groups for parameter in group["params"])
    trained.save_model(folder / "model")
    again = small.training(folder / "sharded", **options)  # goes on from the checkpoint after the first epoch
    again.run()
    again.save_model(folder / "again")
    facts = {"history": trained.progress.history, "again": again.progress.history, "held": held}
    torch.save(facts, folder / f"process-{trained.accelerator.process_index}.pt")
    trained.accelerator.end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
