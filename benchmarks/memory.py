"""The most memory that a process held, for code that runs in a process of its own; see `fresh_process`.

The kernel keeps a mark of the highest use. It is set back where the system can (Linux); elsewhere the mark of the whole
process counts, which may hide a peak behind that of the imports.
"""

import sys
from pathlib import Path
from typing import Final

_STATUS: Final = Path("/proc/self/status")
_MARK: Final = Path("/proc/self/clear_refs")


class Peak:
    """The highest use of memory from now on, in bytes beyond what is in use now."""

    def __init__(self) -> None:
        self._exact = _MARK.exists()
        if self._exact:
            _MARK.write_text("5")  # see proc(5)
        self.before = _status("VmRSS") if self._exact else _highest()

    def bytes(self) -> int:
        """What came on top until now, at its highest."""
        return (_status("VmHWM") if self._exact else _highest()) - self.before


def _status(field: str) -> int:
    lines = _STATUS.read_text(encoding="utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def _highest() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
