"""`pytorch_transformers convert`: checkpoints of the original programs to PyTorch, and back."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.family import FAMILIES
from .common import Switch, Verb, add_place, place

if TYPE_CHECKING:
    from ..models.conversion import Conversion


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="prefix or folder of a TensorFlow checkpoint; or a PyTorch model by name or path",
    )
    parser.add_argument(
        "out",
        metavar="OUT",
        help="a folder (config.json, model.safetensors, vocabulary), or one file NAME.bin; NAME.ckpt writes a "
        "TensorFlow checkpoint",
    )
    parser.add_argument(
        "--family", required=True, choices=[family.name for family in FAMILIES], help="family of the model"
    )
    parser.add_argument(
        "--config", metavar="FILE", help="its configuration (default: the usual name beside the checkpoint)"
    )
    heads = "; ".join(f"{family.name}: {', '.join(family.heads)}" for family in FAMILIES)
    parser.add_argument(
        "--head", metavar="NAME", help=f"kind of model (default: what the names in the checkpoint say). {heads}"
    )
    parser.add_argument("--scope", metavar="NAME", default="", help="scope to strip from all names: NAME/bert/…")
    parser.add_argument(
        "--ignore",
        metavar="PATTERN",
        action="append",
        default=[],
        help="regular expression of whole names that aren't part of the model; may be given again",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=_setting,
        help="change a field of the configuration, as hidden_act=gelu_tanh; may be given again",
    )
    parser.add_argument(
        "--json", action=Switch, default=False, help="print the report as one JSON object (default: no)"
    )
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Convert, and report what was used and what was not."""
    from ..models.conversion import convert

    family = next(family for family in FAMILIES if family.name == options.family)
    done = convert(
        family,
        options.source,
        options.out,
        config=options.config,
        head=options.head,
        scope=options.scope,
        ignore=options.ignore,
        overrides=dict(options.set),
        progress=True,
        **place(options),
    )
    sys.stdout.write(json.dumps(done.as_dict(), indent=2) + "\n" if options.json else _report(done))
    return 0


def _report(done: "Conversion") -> str:
    """The report in words: counts, and the names of what may surprise."""
    plan = done.plan
    lines = [
        f"{done.model_class} from {done.source}",
        f"used      {len(plan.steps)} tensors, {done.parameters:,} values",
        f"ignored   {len(plan.ignored)} variables of training",
    ]
    if plan.left_out:
        lines.append(
            f"left out  {len(plan.left_out)}, which {done.model_class} doesn't have: {', '.join(plan.left_out)}"
        )
    if plan.fresh:
        lines.append(f"fresh     {len(plan.fresh)}, to be trained: {', '.join(plan.fresh)}")
    lines += [f"written   {path}" for path in done.written]
    return "\n".join(lines) + "\n"


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


VERB = Verb(
    name="convert",
    summary="original checkpoints to PyTorch, and back",
    description="Convert a checkpoint of the original program to PyTorch, or the reverse. TensorFlow is not needed.",
    example="pytorch_transformers convert --family bert uncased_L-12_H-768_A-12/bert_model.ckpt bert-base-uncased",
    add_arguments=add_arguments,
    run=run,
)


def add_classic_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the published command."""
    parser.add_argument("source", metavar="CKPT", help="prefix of a TensorFlow checkpoint of BERT")
    parser.add_argument("config", metavar="CONFIG", help="its configuration, bert_config.json")
    parser.add_argument("out", metavar="OUT", help="the file to write, pytorch_model.bin; or a folder that is there")


def run_classic(options: argparse.Namespace) -> int:
    """Convert with the published arguments."""
    from ..models import bert
    from ..models.conversion import convert

    done = convert(
        bert.FAMILY,
        options.source,
        options.out,
        config=options.config,
        one_file=not Path(options.out).is_dir(),
        progress=True,
    )
    sys.stdout.write(_report(done))
    return 0


CLASSIC_BERT = Verb(
    name="convert_tf_checkpoint_to_pytorch",
    summary="older spelling of convert, for BERT",
    description="Convert a TensorFlow checkpoint of BERT, with the arguments of the published package.",
    example="pytorch_transformers convert_tf_checkpoint_to_pytorch bert_model.ckpt bert_config.json pytorch_model.bin",
    add_arguments=add_classic_arguments,
    run=run_classic,
)
