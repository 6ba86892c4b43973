"""`pytorch_transformers download`: fetch a model, to use it later without a network."""

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..files import atomic_write
from .common import Switch, Verb, add_place, place

if TYPE_CHECKING:
    from ..hub import Location
    from ..models.record import Family


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument("model", metavar="NAME", help="name or repository of a model, or address of an archive")
    parser.add_argument("--output_dir", metavar="FOLDER", help="copy the files here as well")
    parser.add_argument(
        "--corpus", action=Switch, default=False, help="fetch the corpus too, for `evaluate --corpus` (default: no)"
    )
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Fetch the files and print where they are."""
    from ..checkpoint.read import WEIGHT_FILES, find_weights
    from ..models.family import family_of

    family = family_of(options.model, **place(options))
    location = family.locate(options.model, **place(options))
    corpus = _corpus(family, location) if options.corpus else []  # if it can't be had, nothing is fetched in vain
    weights = find_weights(location)
    others = [*family.config_class.filenames, *family.tokenizer_files]
    paths = [*weights, *(path for name in others if (path := location.file(name)) is not None), *corpus]
    indexes = [name for name in WEIGHT_FILES if name.endswith(".index.json")]
    if weights[0].name not in WEIGHT_FILES and (index := location.first(indexes)):  # shards are found through it
        paths.append(index)
    if options.output_dir:
        folder = Path(options.output_dir)
        paths = [_copy(path, folder / path.name) for path in paths]
    sys.stdout.write("\n".join(str(path) for path in paths) + "\n")
    return 0


def _corpus(family: "Family", location: "Location") -> list[Path]:
    """The files of the corpus, in the first form that is there.

    Raises:
        OSError: There is none, or part of it is missing.
        ValueError: Models of the family have none.
    """
    if not family.corpus_files:
        raise ValueError(f"--corpus: there are no corpora of {family.name}; leave it out")
    for names in family.corpus_files:
        if location.file(names[0]) is None:
            continue
        paths = {name: location.file(name) for name in names}
        if missing := [name for name, path in paths.items() if path is None]:
            raise OSError(f"the corpus in {location.description} has {names[0]}, but no {', '.join(missing)}")
        return [path for path in paths.values() if path is not None]
    known = ", ".join(names[0] for names in family.corpus_files)
    raise OSError(f"no corpus in {location.description}: looked for {known}; leave --corpus out")


def _copy(source: Path, target: Path) -> Path:
    with atomic_write(target) as temporary:
        shutil.copyfile(source, temporary)
    return target


VERB = Verb(
    name="download",
    summary="fetch a model",
    description="Fetch the files of a model into the cache, or into a folder, for use without a network.",
    example="pytorch_transformers download bert-base-uncased --output_dir bert-base-uncased",
    add_arguments=add_arguments,
    run=run,
)
