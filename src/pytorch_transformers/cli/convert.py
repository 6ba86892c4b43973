"""`pytorch_transformers convert`: checkpoints of the original programs to PyTorch, and back."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..models import bert, gpt2, openai_gpt, transfo_xl
from ..models.family import FAMILIES, Family
from .common import Switch, Verb, add_place, place

if TYPE_CHECKING:
    from ..models.conversion import Conversion


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="prefix or folder of a TensorFlow checkpoint, or folder of OpenAI GPT's NumPy files; or a PyTorch model; "
        "or a corpus of Transformer-XL, cache.pkl or corpus.bin",
    )
    parser.add_argument(
        "out",
        metavar="OUT",
        help="a folder (config.json, model.safetensors, vocabulary), or one file NAME.bin; NAME.ckpt or NAME.ckpt-STEP "
        "writes a TensorFlow checkpoint; for a PyTorch model of OpenAI GPT, the folder of its NumPy files",
    )
    parser.add_argument(
        "--family", required=True, choices=[family.name for family in FAMILIES], help="family of the model"
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="its configuration (default: the usual name beside the checkpoint; for Transformer-XL, whose program has "
        "none, the sizes that the checkpoint tells)",
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
    if _is_corpus(family, options.source):
        _convert_corpus(family, options)
        return 0
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
        f"used      {len({step.target for step in plan.steps})} tensors, {done.parameters:,} values",
        f"ignored   {len(plan.ignored)} variables that are not part of the model",
    ]
    if plan.left_out:
        lines.append(
            f"left out  {len(plan.left_out)}, which {done.model_class} doesn't have: {', '.join(plan.left_out)}"
        )
    if plan.fresh:
        lines.append(f"fresh     {len(plan.fresh)}, to be trained: {', '.join(plan.fresh)}")
    lines += [f"written   {path}" for path in done.written]
    return "\n".join(lines) + "\n"


def _is_corpus(family: Family, source: str) -> bool:
    """Whether the source is a corpus in ids, where the original program of the family has one."""
    found = getattr(family.conversion, "is_corpus", None)
    return found is not None and bool(found(source))


def _convert_corpus(family: Family, options: argparse.Namespace) -> None:
    """Convert a corpus, and report the files.

    Raises:
        ValueError: An option is about checkpoints.
    """
    defaults: dict[str, Any] = {"config": None, "head": None, "scope": "", "ignore": [], "set": []}
    if given := [f"--{name}" for name, default in defaults.items() if getattr(options, name, default) != default]:
        raise ValueError(
            f"{options.source} is no checkpoint, and is taken for a corpus; {', '.join(given)} is about checkpoints"
        )
    written = [str(path) for path in family.conversion.convert_corpus(options.source, options.out)]
    report = {"source": options.source, "written": written}
    if getattr(options, "json", False):
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        lines = [f"corpus from {options.source}", *(f"written   {path}" for path in written)]
        sys.stdout.write("\n".join(lines) + "\n")


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


def _classic(
    name: str, family: Family, arguments: tuple[tuple[str, str], ...], example: str, *, head: str | None = None
) -> Verb:
    """The published command for one family.

    Args:
        name: What it is called.
        family: The family.
        arguments: Metavar and help of SOURCE, CONFIG and OUT, in the order of the command; `[CONFIG]` may be left out.
        example: For the help.
        head: Kind of model, for the commands whose OUT is a folder; the others go by the names in the checkpoint.
    """

    def add(parser: argparse.ArgumentParser) -> None:
        for metavar, text in arguments:
            field = metavar.strip("[]").lower()
            parser.add_argument(field, metavar=metavar.strip("[]"), help=text, nargs="?" if "[" in metavar else None)

    def run_it(options: argparse.Namespace) -> int:
        from ..models.conversion import convert, convert_classic

        if _is_corpus(family, options.source):
            _convert_corpus(family, options)
            return 0
        if head is not None:
            done = convert_classic(family, options.source, options.config or "", options.out, head=head)
        else:
            one_file = not Path(options.out).is_dir()
            done = convert(family, options.source, options.out, config=options.config, one_file=one_file, progress=True)
        sys.stdout.write(_report(done))
        return 0

    kind = family.name.replace("_", " ")
    return Verb(
        name=name,
        summary=f"older spelling of convert, for {kind}",
        description=f"Convert an original checkpoint of {kind}, with the arguments of the published package.",
        example=f"pytorch_transformers {name} {example}",
        add_arguments=add,
        run=run_it,
    )


_OF_FOLDER: Final = (
    ("OUT", "folder that gets pytorch_model.bin and config.json"),
    ("[CONFIG]", "its configuration (default: the file beside it, or the published sizes)"),
)
#: The published commands.
CLASSIC: Final = (
    _classic(
        "convert_tf_checkpoint_to_pytorch",
        bert.FAMILY,
        (
            ("SOURCE", "prefix of a TensorFlow checkpoint"),
            ("CONFIG", "its configuration, bert_config.json"),
            ("OUT", "the file to write, pytorch_model.bin; or a folder that is there"),
        ),
        "bert_model.ckpt bert_config.json pytorch_model.bin",
    ),
    _classic(
        "convert_openai_checkpoint",
        openai_gpt.FAMILY,
        (("SOURCE", "folder of params_0.npy … and params_shapes.json"), *_OF_FOLDER),
        "finetune-transformer-lm/model openai-gpt",
        head="model",
    ),
    _classic(
        "convert_gpt2_checkpoint",
        gpt2.FAMILY,
        (("SOURCE", "prefix or folder of a TensorFlow checkpoint"), *_OF_FOLDER),
        "models/117M gpt2",
        head="model",
    ),
    _classic(
        "convert_transfo_xl_checkpoint",
        transfo_xl.FAMILY,
        (
            ("SOURCE", "prefix or folder of a TensorFlow checkpoint, or a corpus, cache.pkl or corpus.bin"),
            ("OUT", "folder that gets pytorch_model.bin and config.json, or the vocabulary and the corpus"),
            ("[CONFIG]", "its configuration (default: the file beside it, or the sizes that the checkpoint tells)"),
        ),
        "wt103/model.ckpt-0 transfo-xl",
        head="language_model",
    ),
)
