"""A function over many jobs in several processes, results in order; one process does the same without any other."""

import multiprocessing
import os
import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

#: Jobs for each process that are begun before the first result is asked for.
_AHEAD: Final = 2
#: In a process of the pool, what `workers` was given to share.
_shared: list[Any] = []


class Workers:
    """Some processes, or this one alone, see `workers`."""

    def __init__(self, shared: Any, processes: int, pool: ProcessPoolExecutor | None) -> None:
        self._shared = shared
        self._ahead = _AHEAD * processes
        self._pool = pool

    def map(self, work: Callable[[Any, Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
        """Gives `work(shared, job)` for each job, in order.

        Args:
            work: A function of a module.
            jobs: Asked for one by one, a few ahead of the results, so that they need not fit in memory.
        """
        if self._pool is None:
            for job in jobs:
                yield work(self._shared, job)
            return
        pool, source = self._pool, iter(jobs)
        begun: deque[Future[Result]] = deque(pool.submit(_do, work, job) for job in islice(source, self._ahead))
        while begun:
            yield begun.popleft().result()
            begun.extend(pool.submit(_do, work, job) for job in islice(source, 1))


@contextmanager
def workers(shared: Any, processes: int) -> Iterator[Workers]:
    """Holds processes for as many kinds of work as are asked for: each takes some tenths of a second to start.

    Args:
        shared: What each process is sent once.
        processes: How many. With more than one, a program must keep what it runs under `if __name__ == "__main__"`.

    Raises:
        ValueError: `processes` is below 1.
    """
    if processes < 1:
        raise ValueError(f"processes is {processes}; it should be at least 1")
    if processes == 1:
        yield Workers(shared, 1, None)
        return
    # "spawn": a copy of this process by "fork" may hold a lock of one of its threads for ever.
    context = multiprocessing.get_context("spawn")
    with TemporaryDirectory() as folder:
        # In a file: what a process is started with goes through a pipe, and where that is full this process would wait
        # until the other has done its imports, for one after the other.
        path = Path(folder) / "shared.pickle"
        path.write_bytes(pickle.dumps(shared))
        pool = ProcessPoolExecutor(processes, context, _begin, (path,))
        try:
            yield Workers(shared, processes, pool)
        finally:
            pool.shutdown(cancel_futures=True)  # some are left when a job failed, or when no more results are wanted


def _begin(path: Path) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _shared[:] = [pickle.loads(path.read_bytes())]


def _end_with_parent() -> None:
    """Without this a killed program leaves its processes waiting for jobs for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(work: Callable[[Any, Job], Result], job: Job) -> Result:
    return work(_shared[0], job)
