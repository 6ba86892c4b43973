"""A function over many jobs in several processes, results in order; one process does the same without any other."""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from typing import Any, Final, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

#: Jobs for each process that are begun before the first result is asked for.
_AHEAD: Final = 2
#: In a process of the pool, what `in_processes` was given to share.
_shared: list[Any] = []


def in_processes(
    work: Callable[[Any, Job], Result], shared: Any, jobs: Iterable[Job], processes: int
) -> Iterator[Result]:
    """Gives `work(shared, job)` for each job, in order.

    Args:
        work: A function of a module.
        shared: What each process is sent once.
        jobs: Asked for one by one, a few ahead of the results, so that they need not fit in memory.
        processes: How many. With more than one, a program must keep what it runs under `if __name__ == "__main__"`.

    Raises:
        ValueError: `processes` is below 1.
    """
    if processes < 1:
        raise ValueError(f"processes is {processes}; it should be at least 1")
    if processes == 1:
        for job in jobs:
            yield work(shared, job)
        return
    # "spawn": a copy of this process by "fork" may hold a lock of one of its threads for ever.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _begin, (shared,)) as pool:
        source = iter(jobs)
        try:
            begun: deque[Future[Result]] = deque(
                pool.submit(_do, work, job) for job in islice(source, _AHEAD * processes)
            )
            while begun:
                yield begun.popleft().result()
                begun.extend(pool.submit(_do, work, job) for job in islice(source, 1))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin(shared: Any) -> None:
    _shared[:] = [shared]
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Without this a killed program leaves its processes waiting for jobs for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(work: Callable[[Any, Job], Result], job: Job) -> Result:
    return work(_shared[0], job)
