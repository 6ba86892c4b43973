"""One process or many: who they are, how they are started, and what is done by one of them alone.

`accelerate` finds out from the environment that `torchrun`, `accelerate launch` or the old
`python -m torch.distributed.launch` sets, and from a configuration of its own, how the work is spread. A command that
was started plainly on a machine with several GPUs starts itself again, once a GPU, under torch's launcher.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from accelerate import Accelerator

logger = logging.getLogger(__name__)

#: What every launcher sets for the processes that it starts.
_LAUNCHED: Final = "LOCAL_RANK"


def make_accelerator(*, no_cuda: bool = False, tensorboard: Path | None = None) -> "Accelerator":
    """The processes of this training, and the device of each.

    Args:
        no_cuda: Use the CPU though there is a GPU.
        tensorboard: Folder for the curves that TensorBoard shows; None writes none.

    Raises:
        ImportError: `accelerate` is not installed.
    """
    import torch

    try:
        from accelerate import Accelerator
        from accelerate.utils import GradientAccumulationPlugin
    except ImportError as error:
        raise ImportError("training needs accelerate: pip install 'pytorch-transformers[train]'") from error
    on_cpu = no_cuda or not torch.accelerator.is_available()  # said, or several processes would not know each other
    shown = {} if tensorboard is None else {"log_with": "tensorboard", "project_dir": tensorboard.parent}
    accelerator = Accelerator(
        cpu=on_cpu,
        # Both are done by the loop; from a configuration of accelerate they would be done a second time.
        mixed_precision="no",
        gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=1),
        **shown,
    )
    if tensorboard is not None:
        accelerator.init_trackers(tensorboard.name)
    if (precision := os.environ.get("ACCELERATE_MIXED_PRECISION", "no")) != "no":
        logger.warning("accelerate's mixed_precision, %s, counts for nothing here: give --fp16 or --bf16", precision)
    if os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true" and accelerator.distributed_type != "FSDP":
        logger.warning("accelerate shards weights over several GPUs only: here each process has the whole model")
    return accelerator


def start_all(processes: int | None, command: Sequence[str], *, no_cuda: bool = False) -> None:
    """Replace this process by `processes` of the same command, if that is more than one and none was launched yet.

    Args:
        processes: How many; None is one a GPU of this machine.
        command: What each runs: a script with its arguments, or `-m`, a module and its arguments.
        no_cuda: Whether GPUs are left alone.
    """
    if _LAUNCHED in os.environ:
        return
    if processes is None:
        processes = _gpus() if not no_cuda else 1
    if processes < 2:
        return
    sys.stderr.write(f"starting {processes} processes; --num_processes 1 uses one\n")
    sys.stdout.flush()
    launcher = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}")
    os.execv(sys.executable, (sys.executable, *launcher, *command))


def note_local_rank(local_rank: int) -> None:
    """Let `--local_rank N`, which old launchers give as an argument, count as the variable of today's.

    Raises:
        ValueError: It was given by hand, without a launcher that says how many processes there are.
    """
    if local_rank < 0:
        return
    if "WORLD_SIZE" not in os.environ:
        raise ValueError(
            f"--local_rank {local_rank}: no launcher started this process. Start all with torchrun --nproc-per-node=N "
            "and the command, or leave --local_rank out"
        )
    os.environ.setdefault(_LAUNCHED, str(local_rank))


@contextlib.contextmanager
def first_alone(accelerator: "Accelerator") -> Iterator[None]:
    """The first process runs the block before the others: what it downloads or writes, they find."""
    with accelerator.main_process_first():
        yield


def _gpus() -> int:
    import torch

    return torch.cuda.device_count()
