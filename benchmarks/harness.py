"""How everything here is timed: two sides take turns in one process, and each pair of turns gives one ratio.

On a shared machine a time means little, for the next minute may be half as fast. Two times taken one right after the
other suffer alike, so what is reported are ratios, with their best, median and worst, and never a time by itself.
"""

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor

#: Rest before each turn, in seconds: threads of the other side's pool that still spin would slow this one.
REST: Final = 0.03
#: Inner sizes of the one-row products that stand for how fast memory is read: those of GPT-2's linear layers.
READ_WIDTHS: Final = (768, 3072)


class MismatchError(AssertionError):
    """The two sides do not give the same answer, so their times must not be compared."""


@dataclass(frozen=True)
class Plan:
    """How much to measure.

    Attributes:
        quick: Whether this is a short run that only shows that everything works.
    """

    quick: bool = False

    def rounds(self, full: int) -> int:
        """Turns of each side: `full`, or two in a quick run."""
        return 2 if self.quick else full

    def size(self, full: int) -> int:
        """Number of inputs: `full`, or an eighth of it in a quick run."""
        return max(8, full // 8) if self.quick else full


@dataclass(frozen=True)
class Result:
    """One line of the report.

    Attributes:
        subject: What is measured.
        against: What it is compared with, or what it is a share of.
        unit: What a value is: "times as fast", "s", "of the peak", …
        values: One for each pair of turns.
        check: How the answers were compared, with the difference found.
        aim: The value aimed at, if there is one.
        at_most: Whether the aim is an upper limit; usually it is a lower one.
        note: What a reader has to know.
    """

    subject: str
    against: str
    unit: str
    values: tuple[float, ...]
    check: str = ""
    aim: float | None = None
    at_most: bool = False
    note: str = ""

    @property
    def median(self) -> float:
        """The value that is compared with the aim."""
        return statistics.median(self.values)

    @property
    def best(self) -> float:
        """The most favourable value."""
        return min(self.values) if self.at_most else max(self.values)

    @property
    def worst(self) -> float:
        """The least favourable value."""
        return max(self.values) if self.at_most else min(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the median reaches the aim; None without one."""
        if self.aim is None:
            return None
        return self.median <= self.aim if self.at_most else self.median >= self.aim


@dataclass(frozen=True)
class Times:
    """Seconds of each turn of two sides that took turns; the n-th of one stands beside the n-th of the other."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def speedups(self) -> tuple[float, ...]:
        """How many times as fast ours was, in each pair of turns."""
        return tuple(their / our for our, their in zip(self.ours, self.theirs, strict=True))


def alternate(ours: Callable[[], object], theirs: Callable[[], object], rounds: int, *, repeats: int = 1) -> Times:
    """Time two sides in turns, ours first, after one untimed turn of each.

    Args:
        ours: One side.
        theirs: The other side.
        rounds: Turns of each.
        repeats: Calls in a turn, for what is too short to time alone; the first call after the rest is not timed then.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for side in (ours, theirs):
        side()
    for _ in range(rounds):
        for side, found in zip((ours, theirs), times, strict=True):
            found.append(timed(side, repeats))
    return Times(tuple(times[0]), tuple(times[1]))


def timed(side: Callable[[], object], repeats: int = 1) -> float:
    """Seconds of one call: the mean of `repeats`, after a rest."""
    gc.collect()
    time.sleep(REST)
    if repeats > 1:
        side()
    started = time.perf_counter()
    for _ in range(repeats):
        side()
    return (time.perf_counter() - started) / repeats


def read_rate(memory: Tensor, seconds: float = 0.3) -> float:
    """The bytes a second that a one-row product reads right now: all its work is to read the matrix.

    The best of several measurements of each shape, with the matrix stored either way.

    Args:
        memory: [n] float32, what is read; as large as what it is compared with, for caches are large.
        seconds: Time for each shape.
    """
    best = 0.0
    with torch.inference_mode():
        for width in READ_WIDTHS:
            row = torch.ones(1, width)
            used = memory[: len(memory) // width * width]
            for product in (
                partial(torch.mm, row, used.view(width, -1)),
                partial(F.linear, row, used.view(-1, width)),
            ):
                end = time.perf_counter() + seconds
                while (started := time.perf_counter()) < end:
                    product()
                    best = max(best, used.nbytes / (time.perf_counter() - started))
    return best


def left_out(subject: str, why: str) -> None:
    """Say that something is not measured."""
    print(f"{subject}: left out, {why}", file=sys.stderr, flush=True)


def check_close(name: str, ours: Tensor, theirs: Tensor, limit: float) -> str:
    """Say how far apart two answers are.

    Raises:
        MismatchError: They differ by more than `limit`, or in shape.
    """
    if ours.shape != theirs.shape:
        raise MismatchError(f"{name}: shapes {list(ours.shape)} and {list(theirs.shape)}")
    difference = (ours.double() - theirs.double()).abs().max().item()
    if not difference <= limit:
        raise MismatchError(f"{name}: the answers differ by {difference:.1e}, allowed is {limit:.0e}")
    return f"largest difference {difference:.1e}"


def check_equal(name: str, ours: Sequence[object], theirs: Sequence[object]) -> str:
    """Say that two lists are equal.

    Raises:
        MismatchError: They are not.
    """
    if len(ours) != len(theirs):
        raise MismatchError(f"{name}: {len(ours)} answers and {len(theirs)}")
    for number, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        if our != their:
            raise MismatchError(f"{name}: answer {number} differs: {our!r} and {their!r}")
    return f"{len(ours)} equal"


#: Tells glibc to give a freed tensor back to the system at once. By default it keeps freed pieces, and what a process
#: holds depends on how they happen to fit what comes next: for one training step on 400 to 550 MB in our runs.
RETURNING: Final = {"MALLOC_MMAP_THRESHOLD_": "131072"}


def fresh_process(code: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Any:
    """Run Python code in a process of its own and read the JSON that it prints last.

    Args:
        code: The code.
        *arguments: What it finds in `sys.argv`.
        environment: Variables for it, besides those of this process.

    Raises:
        RuntimeError: It failed; the message ends with what it said.
    """
    quiet = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1"}
    environment = {**quiet, **(environment or {})}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"a measuring process failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def alternate_processes(
    ours: str, theirs: str, rounds: int, *arguments: str, environment: Mapping[str, str] | None = None
) -> tuple[list[Any], list[Any]]:
    """As `alternate`, with a fresh process for each turn; gives what each of them printed."""
    sides = (ours, theirs)
    for code in sides:
        fresh_process(code, *arguments, environment=environment)  # files come from memory afterwards, for both
    found: tuple[list[Any], list[Any]] = ([], [])
    for _ in range(rounds):
        for code, answers in zip(sides, found, strict=True):
            answers.append(fresh_process(code, *arguments, environment=environment))
    return found


def ratios(ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]], key: str) -> tuple[float, ...]:
    """How many times as much the others needed, in each pair of turns."""
    return tuple(their[key] / our[key] for our, their in zip(ours, theirs, strict=True))
