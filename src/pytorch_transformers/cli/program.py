"""What every program here does around its job: where messages go, and what an error or an interruption looks like."""

import io
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress

#: Exit status of a program that the signals SIGINT and SIGPIPE end, as a shell reports it.
INTERRUPTED, NOBODY_READS = 130, 141


def prepare_output() -> None:
    """Warnings go to stderr, and a word that the terminal's encoding lacks is no reason to stop."""
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def guarded(program: str, job: Callable[[], int]) -> int:
    """Do the job of a program whose users shall see no traceback.

    Args:
        program: What messages begin with.
        job: Gives the exit status.

    Returns:
        The exit status, see `main`.
    """
    try:
        status = job()
        sys.stdout.flush()
    except BrokenPipeError:
        with suppress(OSError):  # else Python complains when it writes out the rest at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except (OSError, ValueError, TypeError, NotImplementedError, MemoryError) as error:
        sys.stderr.write(f"{program}: {str(error) or type(error).__name__}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    return status
