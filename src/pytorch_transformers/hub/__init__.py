"""From a name to files: folders, single files, archives, and repositories on the hub. Knows no model family."""

from .location import Location as Location
from .location import locate as locate
