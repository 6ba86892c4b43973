"""`pytorch_transformers info`: what a model is, without computing anything."""

import argparse
import json
import sys

from .common import Switch, Verb, add_place, place


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument("model", metavar="NAME", help="name, repository, folder or archive of a model")
    parser.add_argument(
        "--names", action=Switch, default=False, help="list every weight with its shape and type (default: no)"
    )
    parser.add_argument("--json", action=Switch, default=False, help="print one JSON object (default: no)")
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Print the configuration, the number of parameters, the memory they take, and on request their names."""
    from ..checkpoint.read import find_weights, read_weights
    from ..models.family import family_of

    family = family_of(options.model, **place(options))
    config = family.config_class.from_pretrained(options.model, **place(options))
    files = find_weights(family.locate(options.model, **place(options)))
    weights = read_weights(files)
    parameters = sum(tensor.numel() for tensor in weights.values())
    size = sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
    names = {name: [list(tensor.shape), str(tensor.dtype).removeprefix("torch.")] for name, tensor in weights.items()}
    if options.json:
        report = {
            "family": family.name,
            "config": config.to_dict(),
            "parameters": parameters,
            "bytes": size,
            "files": [str(path) for path in files],
            **({"names": names} if options.names else {}),
        }
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
        return 0
    lines = [
        f"family      {family.name}",
        f"parameters  {parameters:,}",
        f"memory      {size / 2**20:,.1f} MiB",
        *(f"file        {path}" for path in files),
        "config",
        *(f"  {key}: {value}" for key, value in sorted(config.to_dict().items())),
    ]
    if options.names:
        lines += ["names", *(f"  {name}  {shape}  {kind}" for name, (shape, kind) in names.items())]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


VERB = Verb(
    name="info",
    summary="what a model is",
    description="Print a model's configuration, its number of parameters, and the memory they take.",
    example="pytorch_transformers info bert-base-uncased --names",
    add_arguments=add_arguments,
    run=run,
)
