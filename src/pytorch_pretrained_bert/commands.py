"""The commands that convert checkpoints: `pytorch_pretrained_bert VERB ...`, and each module as a script.

A conversion needs torch, and is imported when it runs: `--help` is instant.
"""

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from pytorch_transformers.cli.program import guarded, prepare_output

from . import __version__

PROGRAM: Final = "pytorch_pretrained_bert"

#: How the messages of conversions tell the user to name the configuration; these commands have no such option.
_NAME_CONFIG: Final = "Name it: config=FILE (--config FILE)."

#: What the arguments are, by the ends of their names.
_MEANINGS: Final = {
    "config_file": "its configuration, a JSON file",
    "dataset_file": "a corpus of the original program, cache.pkl",
    "checkpoint_path": "the TensorFlow checkpoint",
    "checkpoint_folder_path": "the folder of the NumPy files",
    "dump_folder_path": "the folder that gets the files",
    "dump_path": "the file to write, or a folder that is there",
}


class Argument(NamedTuple):
    """An argument of a verb."""

    metavar: str
    help: str
    optional: bool = False


class Verb(NamedTuple):
    """One verb: what its arguments are in order, and which module converts.

    Attributes:
        module: The module, and its function of the same name.
        order: Place of each of the function's arguments among those of the verb; None for "".
        arguments: Those of the verb.
        example: For the help.
    """

    module: str
    order: tuple[int | None, ...]
    arguments: tuple[Argument, ...]
    example: str


_OUT: Final = Argument("PYTORCH_DUMP_OUTPUT", "folder that gets pytorch_model.bin and config.json")
_CONFIG: Final = "its configuration (default: the file beside it, or the published sizes)"
#: The verbs, with the arguments in the order of 0.6.2.
VERBS: Final = {
    "convert_tf_checkpoint_to_pytorch": Verb(
        "convert_tf_checkpoint_to_pytorch",
        (0, 1, 2),
        (
            Argument("TF_CHECKPOINT", "prefix of a TensorFlow checkpoint of BERT"),
            Argument("TF_CONFIG", "its configuration, bert_config.json"),
            Argument("PYTORCH_DUMP_OUTPUT", "the file to write, pytorch_model.bin; or a folder that is there"),
        ),
        "bert_model.ckpt bert_config.json pytorch_model.bin",
    ),
    "convert_openai_checkpoint": Verb(
        "convert_openai_checkpoint_to_pytorch",
        (0, 2, 1),
        (
            Argument("OPENAI_GPT_CHECKPOINT_FOLDER_PATH", "folder of params_0.npy ... and params_shapes.json"),
            _OUT,
            Argument("OPENAI_GPT_CONFIG", _CONFIG, optional=True),
        ),
        "finetune-transformer-lm/model openai-gpt",
    ),
    "convert_transfo_xl_checkpoint": Verb(
        "convert_transfo_xl_checkpoint_to_pytorch",
        (0, 2, 1, None),
        (
            Argument("TF_CHECKPOINT_OR_DATASET", "prefix of a TensorFlow checkpoint, or the corpus cache.pkl"),
            _OUT,
            Argument("TF_CONFIG", _CONFIG, optional=True),
        ),
        "model.ckpt-0 transfo-xl",
    ),
    "convert_gpt2_checkpoint": Verb(
        "convert_gpt2_checkpoint_to_pytorch",
        (0, 2, 1),
        (
            Argument("TF_CHECKPOINT", "prefix or folder of a TensorFlow checkpoint of GPT-2"),
            _OUT,
            Argument("GPT2_CONFIG", _CONFIG, optional=True),
        ),
        "models/117M gpt2",
    ),
}


def build_parser() -> argparse.ArgumentParser:
    """The parser of all verbs."""
    example = "convert_tf_checkpoint_to_pytorch"
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Convert checkpoints of the original programs. TensorFlow is not needed.",
        epilog=f"example: {PROGRAM} {example} {VERBS[example].example}",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, verb in VERBS.items():
        sub = verbs.add_parser(name, help=verb.arguments[0].help, epilog=f"example: {PROGRAM} {name} {verb.example}")
        for metavar, text, optional in verb.arguments:
            sub.add_argument(metavar.lower(), metavar=metavar, help=text, nargs="?" if optional else None, default="")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    Returns:
        The exit status: 0, 1 when something given can't be used (the message says what). Wrong usage exits with 2.
    """
    prepare_output()
    options = build_parser().parse_args(arguments)
    verb = VERBS[options.verb]
    given = [getattr(options, argument.metavar.lower()) for argument in verb.arguments]

    def job() -> int:
        values = ["" if place is None else given[place] for place in verb.order]
        if options.verb == "convert_transfo_xl_checkpoint" and _is_corpus(values[0]):
            values[0], values[3] = "", values[0]
        module = importlib.import_module(f".{verb.module}", __package__)
        optional = next((argument.metavar for argument in verb.arguments if argument.optional), "")
        with _config_is(f"Name it as the third argument, {optional}."):
            getattr(module, verb.module)(*values)
        sys.stdout.write(f"{given[0]} is converted: {values[2]}\n")
        return 0

    return guarded(f"{PROGRAM} {options.verb}", job)


@contextmanager
def _config_is(way: str) -> Iterator[None]:
    """Errors that ask for a configuration say how it is given to this program."""
    try:
        yield
    except (OSError, ValueError) as error:
        text = str(error)
        if not text.endswith(_NAME_CONFIG):
            raise
        raise type(error)(text.replace(_NAME_CONFIG, way)) from error


def _is_corpus(source: str) -> bool:
    from pytorch_transformers.models.transfo_xl.convert import is_corpus

    return is_corpus(source)


def run_script(convert: Callable[..., None], optional: Collection[str] = ()) -> int:
    """Run a conversion with its arguments from the command line, each as `--name VALUE`.

    Args:
        convert: The function.
        optional: The arguments that may be left out, and are "" then.

    Returns:
        The exit status, see `main`.
    """
    prepare_output()
    parser = argparse.ArgumentParser(description=(convert.__doc__ or "").partition("\n")[0])
    for name in inspect.signature(convert).parameters:
        meaning = next(text for end, text in _MEANINGS.items() if name.endswith(end))
        parser.add_argument(f"--{name}", help=meaning, required=name not in optional, default="")
    options = parser.parse_args()

    def job() -> int:
        config = next(name for name in vars(options) if name.endswith("config_file"))
        with _config_is(f"Name it: --{config} FILE."):
            convert(**vars(options))
        return 0

    return guarded(parser.prog, job)
