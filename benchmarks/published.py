"""The published packages, pytorch-pretrained-bert 0.6.2 and pytorch-transformers 1.2.0, which have the names of ours.

`make bench` installs both into the folder `published` of its environment; elsewhere the variable PUBLISHED_PACKAGES
names a folder that has them (`pip install --no-deps --target FOLDER ...`). Modules are imported from there under other
names, without the packages' own `__init__`, which needs much that is not installed.
"""

import importlib
import os
import sys
import types
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

#: What the report says where it is absent.
HOW: Final = (
    "pip install --no-deps --target FOLDER pytorch-pretrained-bert==0.6.2 pytorch-transformers==1.2.0, and set "
    "PUBLISHED_PACKAGES=FOLDER"
)


def load(package: str, module: str) -> Any:
    """A module of a published package, None where the package is not there.

    Args:
        package: `pytorch_pretrained_bert` or `pytorch_transformers`.
        module: Name of the module in it.
    """
    place = Path(os.environ.get("PUBLISHED_PACKAGES") or Path(sys.prefix) / "published") / package
    if not place.is_dir():
        return None
    name = f"published_{package}"
    if name not in sys.modules:
        parent = types.ModuleType(name)
        parent.__path__ = [str(place)]
        sys.modules[name] = parent
    stand_ins = _for_downloads()
    sys.modules.update(stand_ins)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # written for a Python of 2019
            return importlib.import_module(f"{name}.{module}")
    finally:
        for each in stand_ins:
            del sys.modules[each]


def _for_downloads() -> dict[str, types.ModuleType]:
    """Empty modules for those of their imports that are not installed. They download with them, which no turn does."""
    absent = [name for name in ("boto3", "botocore", "requests") if name not in sys.modules and find_spec(name) is None]
    made = {name: types.ModuleType(name) for name in absent}
    if "botocore" in made:
        for name, attribute in (("botocore.exceptions", "ClientError"), ("botocore.config", "Config")):
            made[name] = types.ModuleType(name)
            setattr(made[name], attribute, type(attribute, (Exception,), {}))
    return made
