"""What holds for all tests.

Nothing is read from or written to the caches of the person who runs them. Generated examples are the same in every
run, and none has to be quick: a busy machine is no fault.
"""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

_CACHES = tempfile.TemporaryDirectory(prefix="caches-of-tests-")


def pytest_configure(config: pytest.Config) -> None:
    """Point every cache to an empty folder before a library reads where its cache is; child processes inherit it."""
    for name in ("HF_HOME", "PYTORCH_TRANSFORMERS_CACHE", "MPLCONFIGDIR"):
        os.environ[name] = str(Path(_CACHES.name) / name.lower())
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        os.environ.pop(name, None)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folder."""
    _CACHES.cleanup()
