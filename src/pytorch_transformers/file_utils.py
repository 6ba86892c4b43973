"""Files by path or address, under the module name of the published package."""

from .files import CONFIG_NAME, WEIGHTS_NAME
from .hub.paths import cached_path

__all__ = ["CONFIG_NAME", "WEIGHTS_NAME", "cached_path"]
