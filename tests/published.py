"""The published packages, pytorch-pretrained-bert 0.6.2 and pytorch-transformers 1.2.0, beside ours of the same names.

`make test` installs both into the folder `published` of its environment; elsewhere the variable PUBLISHED_PACKAGES
names a folder that has them (`pip install --no-deps --target FOLDER ...`). Their modules are imported under other
names, without the packages' own `__init__`, which needs much that is not installed.
"""

import contextlib
import importlib
import os
import sys
import types
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

#: What they import to download files, and the one name that they take from each. No test downloads anything.
_FOR_DOWNLOADS = {
    "boto3": None,
    "requests": None,
    "botocore": None,
    "botocore.config": "Config",
    "botocore.exceptions": "ClientError",
}


def folder() -> Path:
    """Where the published packages are, or would be."""
    return Path(os.environ.get("PUBLISHED_PACKAGES") or Path(sys.prefix) / "published")


def published(package: str, module: str) -> Any:
    """A module of a published package; skips the test that asks where the package is not there.

    Args:
        package: `pytorch_pretrained_bert` or `pytorch_transformers`.
        module: Name of the module in it.
    """
    place = folder() / package
    if not place.is_dir():
        pytest.skip(f"needs the published {package}: see tests/published.py")
    name = f"published_{package}"
    if name not in sys.modules:
        parent = types.ModuleType(name)
        parent.__path__ = [str(place)]
        sys.modules[name] = parent
    with _without_downloads(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # written for a Python of 2019
        return importlib.import_module(f"{name}.{module}")


@contextlib.contextmanager
def _without_downloads() -> Iterator[None]:
    """Empty modules in place of those for downloads that are not installed, as long as something is imported."""
    absent = [name for name in _FOR_DOWNLOADS if name.partition(".")[0] not in sys.modules and not _installed(name)]
    for name in absent:
        sys.modules[name] = types.ModuleType(name)
        if (attribute := _FOR_DOWNLOADS[name]) is not None:
            setattr(sys.modules[name], attribute, type(attribute, (Exception,), {}))
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def _installed(name: str) -> bool:
    return find_spec(name.partition(".")[0]) is not None
