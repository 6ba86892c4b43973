"""`pytorch_transformers perplexity`: how well a language model predicts a text."""

import argparse
import json
import math
import sys
from pathlib import Path

from .common import Switch, Verb, add_place, device, place, positive
from .generate import load

_DESCRIPTION = """\
Compute the perplexity of a text: exp of the mean loss of its tokens.

The text is one sequence of tokens over which windows slide. Each token but the first is scored once, in the first
window that has it, from the tokens before it there. A byte order mark is skipped, and a line end of two characters
(CR LF) is read as one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument("--model", required=True, metavar="NAME", help="name, repository, folder or archive of a model")
    parser.add_argument("--input_file", required=True, metavar="FILE", help="text, UTF-8; - is standard input")
    parser.add_argument("--window", type=positive, metavar="N", help="tokens of a window (what the model can read)")
    parser.add_argument(
        "--stride",
        type=positive,
        metavar="N",
        help="tokens from one window to the next; with fewer, each token has more before it (half a window)",
    )
    parser.add_argument(
        "--start_token",
        action=Switch,
        default=False,
        help="put the token that begins a text in front, so that the first word is scored too (default: no)",
    )
    parser.add_argument("--batch_size", type=positive, default=1, metavar="N", help="windows at a time (1)")
    parser.add_argument(
        "--json", action=Switch, default=False, help="print a JSON object, with null for what is infinite (default: no)"
    )
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of the model")
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1, mps (default: a GPU when there is one)")
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Compute and print the perplexity."""
    text = _text(options.input_file)

    from tqdm import tqdm

    from ..generation.perplexity import perplexity
    from ..models.family import family_of

    if family_of(options.model, **place(options)).name == "transfo_xl":
        raise ValueError(
            f"{options.model} is a Transformer-XL, which reads a text with a memory and not in windows: use "
            "`pytorch_transformers evaluate`"
        )
    generator = load(options.model, options.dtype, device(options.device), **place(options))
    ids = list(generator.tokenizer.encode(text, add_special_tokens=False))
    if options.start_token:
        if generator.tokenizer.bos_token_id is None:
            raise ValueError(f"--start_token: the tokenizer of {options.model} has no token that begins a text")
        ids.insert(0, generator.tokenizer.bos_token_id)
    with tqdm(desc="perplexity", unit=" tokens", total=max(0, len(ids) - 1), disable=None) as bar:
        found = perplexity(
            generator.model,
            ids,
            window=options.window,
            stride=options.stride,
            batch_size=options.batch_size,
            progress=bar.update,
        )
    if options.json:
        numbers = {"perplexity": found.value, "loss": found.loss / found.tokens, "tokens": found.tokens}
        known = {name: value if math.isfinite(value) else None for name, value in numbers.items()}  # as JSON has it
        sys.stdout.write(json.dumps(known) + "\n")
    else:
        sys.stdout.write(f"perplexity {found.value:.4f}  ({found.tokens} tokens)\n")
    return 0


def _text(input_file: str) -> str:
    """The text of a file.

    Raises:
        OSError: It can't be read.
        ValueError: It is not UTF-8; the message has the number of the line.
    """
    raw = sys.stdin.buffer.read() if input_file == "-" else Path(input_file).read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(f"{input_file}, line {line}: not UTF-8 ({error.reason}); convert the file") from error
    return text.replace("\r\n", "\n")


VERB = Verb(
    name="perplexity",
    summary="how well a model predicts a text",
    description=_DESCRIPTION,
    example="pytorch_transformers perplexity --model gpt2 --input_file text.txt --stride 512",
    add_arguments=add_arguments,
    run=run,
)
