"""What the verbs share."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Verb:
    """One verb of the command line."""

    name: str
    summary: str
    description: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def add_place(parser: argparse.ArgumentParser) -> None:
    """Arguments that say where a model is looked for."""
    parser.add_argument("--cache_dir", metavar="FOLDER", help="folder for downloads (default: the hub's own cache)")
    parser.add_argument("--revision", metavar="NAME", help="branch, tag or commit of a repository")
    parser.add_argument("--local_files_only", action="store_true", help="use no network at all")


def place(options: argparse.Namespace) -> dict[str, Any]:
    """The values of `add_place`, as keyword arguments of `from_pretrained`."""
    return {
        "cache_dir": options.cache_dir,
        "revision": options.revision,
        "local_files_only": options.local_files_only,
    }


def positive(text: str) -> int:
    """A whole number of at least 1, for `type=`."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number
