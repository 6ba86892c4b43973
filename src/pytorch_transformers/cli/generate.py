"""`pytorch_transformers generate`: continue texts. `examples/run_gpt2.py` is the same job by the original's options."""

import argparse
import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..hub.shipped import GENERATE
from .common import Switch, Verb, add_model, add_place, device, place, positive

if TYPE_CHECKING:
    from ..generation import GeneratedText, TextGenerator

_DESCRIPTION = """\
Continue texts with a language model, and print them as they are written.

Prompts are given as arguments, or one a line of a file, or typed one after the other; white space around them counts.
One that can't be used is named and the others are continued; then the exit status is 1. Without --temperature,
--top_k, --top_p or --num_samples each next word is the likeliest; with one of them it is drawn. --seed makes draws
repeatable: they depend on it, the prompt and the number of the sample alone.

Transformer-XL has a token that ends a line. A line end in a prompt is that token, and it ends no text; --stop does.

Each text is written with its prompt in front; several are divided by a line that says which is which. --json writes an
object a line instead, when a text is complete: {"prompt": ..., "sample": 0, "text": ..., "finish_reason": ...}."""

#: What stands for a byte that is not of the encoding in what Python took from the system (PEP 383).
_ODD_BYTE: Final = re.compile("[\udc80-\udcff]")
#: What messages of the library call an option -> what it is here.
_SPELLINGS: Final = {"do_sample=False": "--no_do_sample", "window=N": "--window N"}
#: What may be wrong with a prompt.
_EMPTY: Final = "empty, but a text follows from a prompt; --unconditional starts from nothing"

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


class _Prompt(NamedTuple):
    """What is to be continued.

    Attributes:
        name: What messages call it.
        text: None stands for a text without a prompt.
        error: Why it can't be used, if that is so.
    """

    name: str
    text: str | None
    error: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="a text to continue")
    add_model(parser, GENERATE)
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
    try:  # before a model is loaded for nothing
        GenerationOptions(**settings)
    except ValueError as error:
        raise ValueError(_spelled(error)) from error
    generator = load(options.model, options.dtype, device(options.device), **place(options))
    if options.seed is None:
        torch.seed()  # which is the same at the start of every process otherwise
    write = _write_json if options.json else _write_texts
    failed = write(generator, _prompts(options), settings, options)
    return int(failed and not options.interactive)  # whoever types a prompt sees at once what is wrong with it


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
    model = language_model(model_class, name, dtype, where, **places)
    return TextGenerator(model, tokenizer)


def language_model(model_class: Any, name: str, dtype: str, where: str, **places: Any) -> Any:
    """The language model of that name, ready to predict.

    Args:
        model_class: The class of language models of its family.
        name: What `from_pretrained` takes.
        dtype: Of the weights.
        where: The device.
        **places: Arguments of `from_pretrained`.

    Raises:
        OSError: There is none, or a file of it can't be read.
        ValueError: It was not trained.
    """
    model, info = model_class.from_pretrained(name, output_loading_info=True, dtype=dtype, device=where, **places)
    if new := [key for key in info["missing_keys"] if not key.startswith(f"{model.base_model_prefix}.")]:
        raise ValueError(f"{name} has no trained language model: {', '.join(new)} would be random")
    return model.fuse_for_inference()  # on a CPU; elsewhere it changes nothing


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `GenerationOptions`: those that were given."""
    named = {name: getattr(options, name) for name, *_ in _OPTIONS}
    named |= {"do_sample": options.do_sample, "stop_strings": options.stop}
    return {name: value for name, value in named.items() if value is not None} | {
        "top_p_crossing": options.top_p_crossing
    }


def _prompts(options: argparse.Namespace) -> Iterator[_Prompt | None]:
    """The prompts in their order; None where there is no further one for now."""
    if options.unconditional:
        yield _Prompt("--unconditional", None)
    elif options.interactive:
        for number, text in enumerate(typed_lines("prompt> "), 1):
            error = unusable(text) if text else "a prompt should not be empty; Ctrl-D ends"
            yield _Prompt(f"prompt {number}", text, error)
    elif options.prompt:
        for number, text in enumerate(options.prompt, 1):
            yield _Prompt(f"prompt {number}", text, unusable(text))
    else:
        yield from _lines(options.input_file)


def unusable(text: str) -> str:
    """What is wrong with a typed prompt, "" for nothing."""
    if (odd := _ODD_BYTE.search(text)) is not None:
        encoding = getattr(sys.stdin, "encoding", None) or "UTF-8"
        return f"not {encoding} (byte 0x{ord(odd[0]) - 0xDC00:02x} at character {odd.start()})"
    return "" if text else _EMPTY


def typed_lines(question: str) -> Iterator[str]:
    """Lines that somebody types, until the input ends; the question goes to stderr, so that stdout has texts alone.

    A byte that is not of the input's encoding is a lone surrogate, as `unusable` knows it.
    """
    keep_odd_bytes()
    while True:
        sys.stderr.write(question)
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            sys.stderr.write("\n")
            return
        yield line.removesuffix("\n").removesuffix("\r")


def keep_odd_bytes() -> None:
    """Bytes of standard input that are not of its encoding shall not end the reading; `unusable` finds them."""
    if isinstance(sys.stdin, io.TextIOWrapper) and sys.stdin.errors != "surrogateescape":
        sys.stdin.reconfigure(errors="surrogateescape")


def _lines(input_file: str) -> Iterator[_Prompt | None]:
    """The lines of a file as prompts; `data/lines.py` says what a line is. None before each wait for more of a pipe."""
    from ..data.lines import LineReader

    class Lines(LineReader):
        """Lines as they are, without their ends; bytes that are no UTF-8 stay as lone surrogates."""

        def _text(self, raw: bytes) -> str:
            line = raw.removesuffix(b"\n").removesuffix(b"\r")
            return line.decode("utf-8-sig" if self.lines == 1 else "utf-8", "surrogateescape")

    stdin = input_file == "-"
    with nullcontext(sys.stdin.buffer) if stdin else Path(input_file).open("rb") as stream:
        reader = Lines(stream, "standard input" if stdin else input_file, live=stdin)
        for text in reader:
            if text is None:
                yield None
                continue
            assert isinstance(text, str)
            name = f"{reader.name}, line {reader.lines}"
            if (odd := _ODD_BYTE.search(text)) is not None:
                yield _Prompt(name, text, f"not UTF-8 (byte 0x{ord(odd[0]) - 0xDC00:02x}); convert the file")
            else:
                yield _Prompt(name, text, "" if text else _EMPTY)


def _spelled(error: ValueError) -> str:
    """The message of an error of the library in the words of the command line."""
    message = str(error)
    for theirs, ours in _SPELLINGS.items():
        message = message.replace(theirs, ours)
    return message


def _report(prompt: _Prompt, message: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"pytorch_transformers generate: {prompt.name}: {message}\n")


def _write_texts(
    generator: "TextGenerator",
    prompts: Iterator[_Prompt | None],
    settings: dict[str, Any],
    options: argparse.Namespace,
) -> bool:
    """Write one text after the other, piece by piece. In a conversation Ctrl-C ends a text, not the program.

    Returns:
        Whether there was a prompt that could not be used.
    """
    samples = settings.pop("num_samples", 1)
    if samples > 1:
        settings.setdefault("do_sample", True)
    several = samples > 1 or len(options.prompt) > 1 or options.input_file is not None
    failed = False
    for number, prompt in enumerate((prompt for prompt in prompts if prompt is not None), 1):
        for sample in range(samples):
            heading = f"{'=' * 20} prompt {number}, sample {sample + 1} {'=' * 20}\n" if several else ""
            begun = False
            try:
                if prompt.error:
                    raise ValueError(prompt.error)
                pieces = generator.stream(prompt.text, first_sample=sample, **settings)
                begun = True
                sys.stdout.write(heading + (prompt.text or "" if options.echo else ""))
                for piece in pieces:
                    sys.stdout.write(piece)
                    sys.stdout.flush()
            except KeyboardInterrupt:
                if not options.interactive:
                    raise
            except ValueError as error:
                if begun:
                    sys.stdout.write("\n")
                _report(prompt, _spelled(error))
                failed = True
                break
            sys.stdout.write("\n")
            sys.stdout.flush()
    return failed


def _write_json(
    generator: "TextGenerator",
    prompts: Iterator[_Prompt | None],
    settings: dict[str, Any],
    options: argparse.Namespace,
) -> bool:
    """Write an object for each text, in batches of at most `--batch_size` texts; what is typed is answered at once.

    Returns:
        Whether there was a prompt that could not be used.
    """
    samples = settings.pop("num_samples", 1)
    if samples > 1:
        settings.setdefault("do_sample", True)
    together = 1 if options.interactive else max(1, options.batch_size // samples)  # prompts
    failed = False
    for batch in _batches(prompts, together):
        results, messages = _answers(generator, batch, samples, options.batch_size, settings)
        for text in results:
            found = {"prompt": text.prompt, "sample": text.sample, "text": text.text, "tokens": text.tokens}
            sys.stdout.write(json.dumps({**found, "finish_reason": text.finish_reason}) + "\n")
        sys.stdout.flush()
        for prompt, message in messages:
            _report(prompt, message)
            failed = True
    return failed


def _batches(prompts: Iterator[_Prompt | None], size: int) -> Iterator[list[_Prompt]]:
    """So many prompts at a time; fewer where no further one is there for now."""
    batch: list[_Prompt] = []
    for prompt in prompts:
        if prompt is not None:
            batch.append(prompt)
        if batch and (prompt is None or len(batch) == size):
            yield batch
            batch = []
    if batch:
        yield batch


def _answers(
    generator: "TextGenerator", batch: list[_Prompt], samples: int, batch_size: int, settings: dict[str, Any]
) -> "tuple[list[GeneratedText], list[tuple[_Prompt, str]]]":
    """The texts of those prompts in their order, and what is wrong with the others."""
    messages = [(prompt, prompt.error) for prompt in batch if prompt.error]
    good = [prompt for prompt in batch if not prompt.error]
    results: list[list[GeneratedText]] = [[] for _ in good]
    try:
        for first in range(0, samples if good else 0, batch_size):
            size = min(batch_size, samples - first)
            texts = generator.generate(
                [prompt.text for prompt in good], num_samples=size, first_sample=first, **settings
            )
            for row, text in enumerate(texts):
                results[row // size].append(text)
    except ValueError as error:
        if len(good) == 1:
            return [], [*messages, (good[0], _spelled(error))]
        alone = [_answers(generator, [prompt], samples, batch_size, settings) for prompt in good]
        found = [text for texts, _ in alone for text in texts]
        messages += [message for _, several in alone for message in several]
        return found, sorted(messages, key=lambda message: batch.index(message[0]))
    return [text for texts in results for text in texts], messages


VERB = Verb(
    name="generate",
    summary="continue texts",
    description=_DESCRIPTION,
    example='pytorch_transformers generate --model gpt2 --top_p 0.9 --seed 1 "The capital of France is"',
    add_arguments=add_arguments,
    run=run,
)
