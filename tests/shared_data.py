"""Where tests find data that is too large for the repository, and how they are skipped without it.

The data lies in a folder `shared` beside the checkout, or where the variable `PYTORCH_TRANSFORMERS_SHARED` says.
"""

import os
from pathlib import Path

import pytest


def _find() -> Path | None:
    named = os.environ.get("PYTORCH_TRANSFORMERS_SHARED")
    path = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    return path if path.is_dir() else None


#: The folder, or None when it is not on this machine.
SHARED: Path | None = _find()


def shared(*parts: str) -> Path:
    """Gives the path of shared data; skips the test that asks when it is not there.

    Args:
        *parts: folders and file under the shared folder.
    """
    if SHARED is None:
        pytest.skip("needs the shared data: a folder `shared` beside the checkout, or PYTORCH_TRANSFORMERS_SHARED")
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs the shared data {'/'.join(parts)}, which is not there")
    return path
