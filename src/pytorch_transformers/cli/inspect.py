"""`pytorch_transformers inspect`: what a TensorFlow checkpoint holds, read from its index alone."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from .common import Switch, Verb

if TYPE_CHECKING:
    from ..checkpoint.tensorflow.bundle import Bundle

_GREY, _PLAIN = "\033[90m", "\033[0m"  # ECMA-48, bright black
_HEADER: Final = ("name", "shape", "dtype", "shard")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument("prefix", metavar="PREFIX", help="prefix of a checkpoint, one of its files, or its folder")
    parser.add_argument("--json", action=Switch, default=False, help="print one JSON object (default: no)")


def run(options: argparse.Namespace) -> int:
    """Print names, shapes, types and files; what belongs to training is marked, and grey on a terminal.

    The list comes from the index. That a data file is missing or cut is an error, after the list.
    """
    from ..checkpoint.bookkeeping import TENSORFLOW_BOOKKEEPING
    from ..checkpoint.tensorflow.location import required_bundle
    from ..hub import locate

    bundle = required_bundle(locate(options.prefix, shortcuts={}))
    training = {name for name in bundle if any(re.fullmatch(pattern, name) for pattern in TENSORFLOW_BOOKKEEPING)}
    if options.json:
        variables = [
            {
                "name": name,
                "shape": list(variable.shape),
                "dtype": variable.dtype,
                "shards": list(variable.shards),
                "training": name in training,
            }
            for name, variable in bundle.items()
        ]
        files = [str(path) for path in bundle.files]
        sys.stdout.write(json.dumps({"prefix": str(bundle.prefix), "files": files, "variables": variables}, indent=2))
        sys.stdout.write("\n")
        bundle.check_data()
        return 0
    rows = [
        (name, str(list(variable.shape)), variable.dtype, ", ".join(map(str, variable.shards)))
        for name, variable in bundle.items()
    ]
    widths = [max(map(len, column)) for column in zip(_HEADER, *rows, strict=True)]
    grey = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for row in (_HEADER, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        if row[0] in training:
            line = f"{_GREY}{line}  training{_PLAIN}" if grey else f"{line}  training"
        sys.stdout.write(line.rstrip() + "\n")
    sys.stdout.write(
        f"{len(bundle) - len(training)} variables, {_mebibytes(bundle.keys() - training, bundle)}; "
        f"{len(training)} of training, {_mebibytes(training, bundle)}\n"
    )
    bundle.check_data()
    return 0


def _mebibytes(names: Iterable[str], bundle: "Bundle") -> str:
    return f"{sum(bundle[name].nbytes for name in names) / 2**20:,.1f} MiB"


VERB = Verb(
    name="inspect",
    summary="what a TensorFlow checkpoint holds",
    description="List the variables of a TensorFlow checkpoint: names, shapes, types, data files. Needs no TensorFlow.",
    example="pytorch_transformers inspect uncased_L-12_H-768_A-12/bert_model.ckpt",
    add_arguments=add_arguments,
    run=run,
)
