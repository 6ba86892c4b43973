"""`pytorch_transformers download`: fetch a model, to use it later without a network."""

import argparse
import shutil
import sys
from pathlib import Path

from ..files import atomic_write
from .common import Verb, add_place, place


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument("model", metavar="NAME", help="name or repository of a model, or address of an archive")
    parser.add_argument("--output_dir", metavar="FOLDER", help="copy the files here as well")
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Fetch the files and print where they are."""
    from ..checkpoint.read import WEIGHT_FILES, find_weights
    from ..models.family import family_of

    family = family_of(options.model, **place(options))
    location = family.locate(options.model, **place(options))
    weights = find_weights(location)
    others = [*family.config_class.filenames, *family.tokenizer_files]
    paths = [*weights, *(path for name in others if (path := location.file(name)) is not None)]
    indexes = [name for name in WEIGHT_FILES if name.endswith(".index.json")]
    if weights[0].name not in WEIGHT_FILES and (index := location.first(indexes)):  # shards are found through it
        paths.append(index)
    if options.output_dir:
        folder = Path(options.output_dir)
        paths = [_copy(path, folder / path.name) for path in paths]
    sys.stdout.write("\n".join(str(path) for path in paths) + "\n")
    return 0


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
