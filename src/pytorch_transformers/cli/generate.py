"""`pytorch_transformers generate`: continue texts. `examples/run_gpt2.py` is the same job by the original's options."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .common import Switch, Verb, add_place, device, place, positive

if TYPE_CHECKING:
    from ..generation import GeneratedText, TextGenerator

_DESCRIPTION = """\
Continue texts with a language model, and print them as they are written.

Prompts are given as arguments, or one a line of a file, or typed one after the other. Without --temperature, --top_k,
--top_p or --num_samples each next word is the likeliest; with one of them it is drawn. --seed makes draws repeatable:
they depend on it, the prompt and the number of the sample alone.

Each text is written with its prompt in front; several are divided by a line that says which is which. --json writes an
object a line instead, when a text is complete: {"prompt": ..., "sample": 0, "text": ..., "finish_reason": ...}."""

#: Options that are arguments of `GenerationOptions` as they are: name, type, letter, help.
_OPTIONS: Final[tuple[tuple[str, Any, str, str], ...]] = (
    ("max_new_tokens", positive, "N", "most tokens that follow a prompt (128, or what the model has room for)"),
    ("max_length", positive, "N", "most tokens of prompt and continuation together"),
    ("min_new_tokens", int, "N", "so many tokens come before the text may end (0)"),
    ("min_length", int, "N", "the same for prompt and continuation together (0)"),
    ("temperature", float, "X", "below 1 the likely gets likelier, above 1 less likely (1)"),
    ("top_k", int, "K", "draw among the K likeliest tokens; 0: among all"),
    ("top_p", float, "P", "draw among the likeliest tokens that together have the probability P"),
    ("repetition_penalty", float, "X", "above 1, tokens that the text has already get less likely (1)"),
    ("no_repeat_ngram_size", int, "N", "no sequence of N tokens comes twice; 0: any may"),
    ("num_samples", positive, "N", "continuations of each prompt (1)"),
    ("seed", int, "N", "makes draws repeatable"),
    ("window", positive, "N", "where the model's context is full, go on from the last N tokens; otherwise an error"),
    ("prefill_chunk", positive, "N", "read a prompt N tokens at a time, to save memory"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="a text to continue")
    parser.add_argument("--model", required=True, metavar="NAME", help="name, repository, folder or archive of a model")
    parser.add_argument("--input_file", metavar="FILE", help="prompts, one a line, UTF-8; - is standard input")
    parser.add_argument(
        "--interactive", action=Switch, default=False, help="ask for prompts until the input ends (default: no)"
    )
    parser.add_argument(
        "--unconditional", action=Switch, default=False, help="one text without any prompt (default: no)"
    )
    parser.add_argument(
        "--do_sample", action=Switch, default=None, help="draw tokens, or take the likeliest (default: see above)"
    )
    for name, kind, letter, text in _OPTIONS:
        parser.add_argument(f"--{name}", type=kind, metavar=letter, help=text)
    parser.add_argument(
        "--top_p_crossing",
        action=Switch,
        default=True,
        help="whether the token with which P is reached can be drawn; openai/gpt-2 leaves it out (default: yes)",
    )
    parser.add_argument("--stop", action="append", metavar="TEXT", help="end before this text; may be repeated")
    parser.add_argument("--echo", action=Switch, default=True, help="write the prompt before its text (default: yes)")
    parser.add_argument(
        "--json", action=Switch, default=False, help="print a JSON object for each text on one line (default: no)"
    )
    parser.add_argument(
        "--batch_size", type=positive, default=8, metavar="N", help="with --json, most texts at a time (8)"
    )
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of the model")
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1, mps (default: a GPU when there is one)")
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Continue the prompts."""
    sources = {
        "PROMPT": bool(options.prompt),
        "--input_file": options.input_file is not None,
        "--interactive": options.interactive,
        "--unconditional": options.unconditional,
    }
    given = [name for name, there in sources.items() if there]
    if len(given) != 1:
        found = f"found {' and '.join(given)}" if given else "found none"
        raise ValueError(f"give prompts in one of these ways: {', '.join(sources)}; {found}")
    import torch

    from ..generation import GenerationOptions

    settings = _settings(options)
    GenerationOptions(**settings)  # its errors come before a model is loaded for nothing
    generator = load(options.model, options.dtype, device(options.device), **place(options))
    if options.seed is None:
        torch.seed()  # which is the same at the start of every process otherwise
    if options.json:
        _write_json(generator, _prompts(options), settings, options.batch_size)
    else:
        _write_texts(generator, _prompts(options), settings, options)
    return 0


def load(name: str, dtype: str, where: str, **places: Any) -> "TextGenerator":
    """The language model of that name and its tokenizer.

    Raises:
        OSError: There is none, or a file of it can't be read.
        ValueError: It is of a family without language models, or its language model was not trained.
    """
    from ..generation import TextGenerator
    from ..models.family import family_of

    family = family_of(name, **places)
    model_class = family.load("language_model")
    tokenizer = family.load("tokenizer").from_pretrained(name, **places)
    model, info = model_class.from_pretrained(name, output_loading_info=True, dtype=dtype, device=where, **places)
    if new := [key for key in info["missing_keys"] if not key.startswith(f"{model.base_model_prefix}.")]:
        raise ValueError(f"{name} has no trained language model: {', '.join(new)} would be random")
    return TextGenerator(model.fuse_for_inference(), tokenizer)  # on a CPU; elsewhere it changes nothing


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `GenerationOptions`: those that were given."""
    named = {name: getattr(options, name) for name, *_ in _OPTIONS}
    named |= {"do_sample": options.do_sample, "stop_strings": options.stop}
    return {name: value for name, value in named.items() if value is not None} | {
        "top_p_crossing": options.top_p_crossing
    }


def _prompts(options: argparse.Namespace) -> Iterator[str | None]:
    """The prompts in their order; None stands for a text without one."""
    if options.unconditional:
        yield None
    elif options.interactive:
        yield from _typed()
    elif options.prompt:
        yield from options.prompt
    else:
        yield from _lines(options.input_file)


def _typed() -> Iterator[str]:
    """Lines that somebody types, until the input ends; the question goes to stderr, so that stdout has texts alone."""
    while True:
        sys.stderr.write("prompt> ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            sys.stderr.write("\n")
            return
        if line.strip():
            yield line.strip()
        else:
            sys.stderr.write("a prompt should not be empty; Ctrl-D ends\n")


def _lines(input_file: str) -> Iterator[str]:
    """The lines of a file as prompts; `data/lines.py` says what a line is. Empty ones are an error with a number."""
    from ..data.lines import LineReader

    with nullcontext(sys.stdin.buffer) if input_file == "-" else Path(input_file).open("rb") as stream:
        reader = LineReader(stream, "standard input" if input_file == "-" else input_file)
        for line in reader:
            text = " ||| ".join(line) if isinstance(line, tuple) else line or ""
            if not text:
                raise ValueError(f"{reader.name}, line {reader.lines}: empty, but a text follows from a prompt")
            yield text


def _write_texts(
    generator: "TextGenerator",
    prompts: Iterator[str | None],
    settings: dict[str, Any],
    options: argparse.Namespace,
) -> None:
    """Write one text after the other, piece by piece. In a conversation Ctrl-C ends a text, not the program."""
    samples = settings.pop("num_samples", 1)
    if samples > 1:
        settings.setdefault("do_sample", True)
    several = samples > 1 or len(options.prompt) > 1 or options.input_file is not None
    for number, prompt in enumerate(prompts, 1):
        for sample in range(samples):
            if several:
                sys.stdout.write(f"{'=' * 20} prompt {number}, sample {sample + 1} {'=' * 20}\n")
            try:
                pieces = generator.stream(prompt, first_sample=sample, **settings)
                if options.echo and prompt is not None:
                    sys.stdout.write(prompt)
                for piece in pieces:
                    sys.stdout.write(piece)
                    sys.stdout.flush()
            except KeyboardInterrupt:
                if not options.interactive:
                    raise
            except ValueError as error:
                if not options.interactive:
                    raise
                sys.stderr.write(f"{error}\n")
                continue
            sys.stdout.write("\n")
            sys.stdout.flush()


def _write_json(
    generator: "TextGenerator", prompts: Iterator[str | None], settings: dict[str, Any], batch_size: int
) -> None:
    """Write an object for each text, in batches of at most that many texts."""
    samples = settings.pop("num_samples", 1)
    if samples > 1:
        settings.setdefault("do_sample", True)
    together = max(1, batch_size // samples)  # prompts
    while batch := list(islice(prompts, together)):
        results: list[list[GeneratedText]] = [[] for _ in batch]
        for first in range(0, samples, batch_size):
            size = min(batch_size, samples - first)
            texts = generator.generate(batch, num_samples=size, first_sample=first, **settings)
            for row, text in enumerate(texts):
                results[row // size].append(text)
        for text in (text for texts in results for text in texts):
            found = {"prompt": text.prompt, "sample": text.sample, "text": text.text, "tokens": text.tokens}
            sys.stdout.write(json.dumps({**found, "finish_reason": text.finish_reason}) + "\n")
        sys.stdout.flush()


VERB = Verb(
    name="generate",
    summary="continue texts",
    description=_DESCRIPTION,
    example='pytorch_transformers generate --model gpt2 --top_p 0.9 --seed 1 "The capital of France is"',
    add_arguments=add_arguments,
    run=run,
)
