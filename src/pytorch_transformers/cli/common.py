"""What the verbs share."""

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Verb:
    """One verb of the command line."""

    name: str
    summary: str
    description: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


#: A list of numbers that begins with a minus: `-1,-2`.
_NEGATIVE_LIST: Final = re.compile(r"-\d+(,-?\d+)+")


def join_negative_lists(arguments: Sequence[str]) -> list[str]:
    """`--layers -1,-2` as `--layers=-1,-2`, which argparse does not take for an option."""
    joined: list[str] = []
    for argument in arguments:
        if joined and re.fullmatch(r"--\w[\w-]*", joined[-1]) and _NEGATIVE_LIST.fullmatch(argument):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


class Switch(argparse.Action):
    """An option with a negative form, for `action=`: `--name` and `--no_name`."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        self._negative = [f"--no_{name.removeprefix('--')}" for name in option_strings]
        super().__init__([*option_strings, *self._negative], dest, nargs=0, **options)

    def __call__(
        self, parser: object, namespace: argparse.Namespace, values: object, option_string: str | None = None
    ) -> None:
        """Note which of the two forms was given."""
        setattr(namespace, self.dest, option_string not in self._negative)

    def format_usage(self) -> str:
        """Both forms, for the first lines of the help."""
        return " | ".join(self.option_strings)


def add_model(parser: argparse.ArgumentParser, default: str, *more_names: str) -> None:
    """The argument that says which model is used: a small one of the repository unless another is named."""
    parser.add_argument(
        *("--model", *more_names),
        default=default,
        metavar="NAME",
        help="name, repository, folder or archive of a model (default: %(default)s, a small one of the repository)",
    )


def add_place(parser: argparse.ArgumentParser) -> None:
    """Arguments that say where a model is looked for."""
    parser.add_argument("--cache_dir", metavar="FOLDER", help="folder for downloads (default: the hub's own cache)")
    parser.add_argument("--revision", metavar="NAME", help="branch, tag or commit of a repository")
    parser.add_argument("--local_files_only", action=Switch, default=False, help="use no network at all (default: no)")


def place(options: argparse.Namespace) -> dict[str, Any]:
    """The values of `add_place`, as keyword arguments of `from_pretrained`."""
    return {
        "cache_dir": options.cache_dir,
        "revision": options.revision,
        "local_files_only": options.local_files_only,
    }


def positive(text: str) -> int:
    """A whole number of at least 1, for `type=`."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def device(name: str | None) -> str:
    """A device that this machine has; without a name a GPU when there is one.

    Raises:
        ValueError: There is no such device.
    """
    import torch

    there = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if name is None:
        return "cuda" if there["cuda"] else "cpu"
    kind, _, number = name.partition(":")
    if (number and not number.isdecimal()) or int(number or 0) >= there.get(kind, 0):
        raise ValueError(f"--device {name}: no such device; here are cpu and {there['cuda']} GPUs (cuda:N)")
    return name
