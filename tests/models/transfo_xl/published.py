"""The published package pytorch-transformers 1.2.0, where the variable PUBLISHED_PACKAGES names a folder that has it.

Its modules are loaded under another name, since ours has the same; the package's own `__init__`, which needs much
that is not installed, is left out.
"""

import importlib
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

_NAME = "published_pytorch_transformers"


def published(module: str) -> Any:
    """A module of it; skips the test that asks where there is none."""
    folder = os.environ.get("PUBLISHED_PACKAGES")
    if not folder:
        pytest.skip("needs pytorch-transformers 1.2.0, unpacked in a folder that PUBLISHED_PACKAGES names")
    if _NAME not in sys.modules:
        package = types.ModuleType(_NAME)
        package.__path__ = [str(Path(folder) / "pytorch_transformers")]
        sys.modules[_NAME] = package
    return importlib.import_module(f"{_NAME}.{module}")
