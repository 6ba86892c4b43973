"""`pytorch_transformers features`: vectors of the lines of a file. `examples/extract_features.py` is the same job."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from .common import Verb, add_place, place, positive

if TYPE_CHECKING:
    from ..data.feature_files import LineReader, OutputOptions
    from ..data.features import FeatureExtractor, Features

#: Lines of a part of the output: what a stopped run may have to compute again, at most.
_PART_LINES = 1024


def layer_list(text: str) -> tuple[int, ...]:
    """Numbers of layers divided by commas, for `type=`."""
    return tuple(int(part) for part in text.split(","))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument("--model", required=True, metavar="NAME", help="name, repository, folder or archive of a model")
    parser.add_argument(
        "--input_file", default="-", metavar="FILE", help="one text a line, or two divided by ' ||| '; - is stdin"
    )
    parser.add_argument(
        "--output_file",
        default="-",
        metavar="FILE",
        help="written as .npz, .npy or .safetensors by its ending, otherwise as JSON lines; - is JSON lines to stdout",
    )
    parser.add_argument(
        "--pooling",
        default="mean",
        choices=("cls", "mean", "max", "none"),
        help="one vector a line from its first token, the mean or maximum of its tokens; none: one a token",
    )
    parser.add_argument(
        "--layers", type=layer_list, default=(-1,), metavar="N,N", help="layers, -1 is the last (default: -1)"
    )
    parser.add_argument("--normalize", action="store_true", help="scale each vector to length 1")
    parser.add_argument("--no_special_tokens", action="store_true", help="leave [CLS] and [SEP] out of the result")
    parser.add_argument("--max_seq_length", type=int, metavar="N", help="longest input in tokens; longer lines are cut")
    parser.add_argument("--batch_size", type=positive, metavar="N", help="most lines of a batch")
    parser.add_argument("--batch_tokens", type=positive, default=2048, metavar="N", help="tokens of a batch (2048)")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of the model")
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1 … (default: a GPU when there is one)")
    parser.add_argument(
        "--do_lower_case",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="lower-case the text (default: as saved with the tokenizer)",
    )
    parser.add_argument(
        "--on_bad_line", default="stop", choices=("stop", "replace"), help="what to do with bytes that are no UTF-8"
    )
    parser.add_argument("--no_resume", action="store_true", help="start anew even if an earlier run was stopped")
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Compute the vectors and write them."""
    from ..data.feature_files import LineReader, OutputOptions
    from ..data.features import FeatureExtractor

    extractor = FeatureExtractor.from_pretrained(
        options.model,
        dtype=options.dtype,
        device=options.device or default_device(),
        do_lower_case=options.do_lower_case,
        max_length=options.max_seq_length,
        tokens_per_batch=options.batch_tokens,
        batch_size=options.batch_size,
        **place(options),
    )
    described = OutputOptions(
        model=str(options.model),
        source=_identity(options.input_file),
        pooling=options.pooling,
        layers=options.layers,
        normalize=options.normalize,
        special_tokens=not options.no_special_tokens,
        max_length=options.max_seq_length,
        dtype=options.dtype,
        do_lower_case=options.do_lower_case,
        output_format=Path(options.output_file).suffix,
    )
    with opened(options.input_file) as stream:
        name = "stdin" if options.input_file == "-" else options.input_file
        reader = LineReader(stream, name, replace=options.on_bad_line == "replace")
        if options.output_file == "-":
            cut = _to_stdout(extractor, reader, described)
        else:
            resume = not options.no_resume and options.input_file != "-"
            cut = _to_file(extractor, reader, described, Path(options.output_file), resume)
    _report(reader, cut, extractor.max_length)
    return 0


def default_device() -> str:
    """A GPU when there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _identity(input_file: str) -> str:
    """What tells one input from another, for resuming: path, size and time of change."""
    if input_file == "-":
        return "-"
    path = Path(input_file)
    facts = path.stat()
    return f"{path.resolve()} {facts.st_size} {facts.st_mtime_ns}"


@contextmanager
def opened(input_file: str) -> Iterator[BinaryIO]:
    """The bytes of a file, or of standard input for "-"."""
    if input_file == "-":
        yield sys.stdin.buffer
        return
    with Path(input_file).open("rb") as stream:
        yield stream


def _results(extractor: "FeatureExtractor", reader: "LineReader", described: "OutputOptions") -> "Iterator[Features]":
    """Results line by line with a progress bar, which is off when stderr is no terminal."""
    from tqdm import tqdm

    results = extractor.stream(
        reader,
        pooling=described.pooling,  # type: ignore[arg-type]  # the parser's choices are the type's
        layers=described.layers,
        normalize=described.normalize,
        special_tokens=described.special_tokens,
    )
    with tqdm(desc="features", unit=" lines", initial=reader.lines, disable=None) as bar:
        tokens = 0
        for result in results:
            tokens += len(result.ids)
            seconds = bar.format_dict["elapsed"]
            bar.set_postfix_str(f"{tokens / max(seconds, 1e-9):,.0f} tokens/s", refresh=False)
            bar.update()
            yield result


def _to_stdout(extractor: "FeatureExtractor", reader: "LineReader", described: "OutputOptions") -> int:
    from ..data.feature_files import json_line

    cut = 0
    for index, result in enumerate(_results(extractor, reader, described)):
        cut += result.truncated
        line = json_line(index, result, described, extractor.tokenizer.convert_ids_to_tokens)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    return cut


def _to_file(
    extractor: "FeatureExtractor", reader: "LineReader", described: "OutputOptions", path: Path, resume: bool
) -> int:
    from ..data.feature_files import FeatureOutput

    tokens: Any = extractor.tokenizer.convert_ids_to_tokens
    output = FeatureOutput(path, described, tokens, resume=resume)
    if output.done:
        sys.stderr.write(f"resuming after line {output.done} ({output.folder})\n")
        reader.skip(output.done)
    cut = 0
    results = _results(extractor, reader, described)
    while part := list(islice(results, _PART_LINES)):
        output.add(part)
        cut += sum(result.truncated for result in part)
    lines = output.done
    output.finish()
    sys.stderr.write(f"{path}: {lines} lines\n")
    return cut


def _report(reader: "LineReader", cut: int, max_length: int) -> None:
    """Say what was done to lines that could not be used as they were."""
    if cut:
        sys.stderr.write(f"{cut} lines were longer than {max_length} tokens and cut (--max_seq_length)\n")
    if reader.replaced:
        numbers = ", ".join(map(str, reader.replaced[:10])) + (", …" if len(reader.replaced) > 10 else "")
        sys.stderr.write(f"{len(reader.replaced)} lines were not UTF-8, bad bytes replaced: {numbers}\n")


VERB = Verb(
    name="features",
    summary="vectors of texts",
    description="Turn each line of a file into vectors: hidden states of a BERT encoder.",
    example="pytorch_transformers features --model bert-base-uncased --input_file in.txt --output_file out.npz",
    add_arguments=add_arguments,
    run=run,
)
