"""The small models that come with the repository, in its folder `assets`, and can be named without a path."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: The model that each command of the package uses where none is named.
FILL_MASK: Final = "bert-mini-books"
GENERATE: Final = "gpt2-mini-books"
EVALUATE: Final = "transfo-xl-mini-books"
SHIPPED: Final = (FILL_MASK, GENERATE, EVALUATE)

_ASSETS: Final = "assets"
_NEEDED: Final = "config.json"


def shipped_folder(name: str) -> Path | None:
    """Where the files of that model are; None where it is no such name.

    Raises:
        OSError: It is one, but neither the current folder nor this package lies in a checkout.
    """
    if name not in SHIPPED:
        return None
    for root in _roots():
        if (root / _ASSETS / name / _NEEDED).is_file():
            return root / _ASSETS / name
    raise OSError(
        f"{name} comes with the repository, in its folder {_ASSETS}, and neither {Path.cwd()} nor this package is part "
        "of a checkout. Change to one, or name another model (--model)"
    )


def _roots() -> Iterator[Path]:
    """What may be a checkout: the current folder and those around it, and what an editable package lies in."""
    here = Path.cwd()
    yield from (here, *here.parents)
    yield Path(__file__).resolve().parents[3]
