"""`pytorch_transformers features`: vectors of the lines of a file. `examples/extract_features.py` is the same job."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from .common import Switch, Verb, add_place, device, place, positive

if TYPE_CHECKING:
    from ..data.feature_files import OutputOptions
    from ..data.features import FeatureExtractor, Features
    from ..data.lines import LineReader

_DESCRIPTION = """\
Turn each line of a file into vectors: hidden states of a BERT encoder.

A line is one text, or two divided by ' ||| '. An empty line is an empty text, so that results and lines have the same
numbers. The ending of --output_file chooses the format; H is the length of a vector, and with several --layers there
is an axis of layers before it. All vectors are float32.

  .npy          one array, vectors [lines, H]
  .npz          vectors [lines, H]; with --pooling none vectors [tokens, H] of all lines one after the other,
                lengths [lines], how many belong to each line, and ids [tokens], the tokens in the vocabulary
  .safetensors  the same arrays
  any other     JSON lines: {"linex_index": 0, "layers": [{"index": -1, "values": [...]}]}, with --pooling none
                {"linex_index": 0, "features": [{"token": "[CLS]", "layers": [...]}, ...]}; rounded to six places

A run that was stopped goes on when the same command is given again; until all is done its results are in
OUTPUT.partial/ beside the output. From a pipe to standard output, lines are answered as they come."""


def layer_list(text: str) -> tuple[int, ...]:
    """Numbers of layers divided by commas, for `type=`."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of layers such as -1,-2") from None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument("--model", required=True, metavar="NAME", help="name, repository, folder or archive of a model")
    parser.add_argument("--input_file", default="-", metavar="FILE", help="text, UTF-8; - is standard input (default)")
    parser.add_argument(
        "--output_file", default="-", metavar="FILE", help="see above; - is JSON lines to standard output (default)"
    )
    parser.add_argument(
        "--pooling",
        default="mean",
        choices=("cls", "mean", "max", "none"),
        help="one vector a line from its first token, the mean or maximum of its tokens; none: one a token (mean)",
    )
    parser.add_argument(
        "--layers", type=layer_list, default=(-1,), metavar="N,N", help="layers, from 0, or back from -1, the last (-1)"
    )
    parser.add_argument("--normalize", action=Switch, default=False, help="scale each vector to length 1 (default: no)")
    parser.add_argument(
        "--special_tokens",
        action=Switch,
        default=True,
        help="whether [CLS] and [SEP] count in mean and max and have vectors in none (default: yes)",
    )
    parser.add_argument(
        "--do_lower_case",
        action=Switch,
        default=None,
        help="lower-case the text, or don't (default: as saved with the tokenizer)",
    )
    parser.add_argument("--max_seq_length", type=int, metavar="N", help="longest input in tokens; longer lines are cut")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of the model")
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1, mps (default: a GPU when there is one)")
    parser.add_argument("--batch_size", type=positive, metavar="N", help="most lines of a batch")
    parser.add_argument("--batch_tokens", type=positive, default=2048, metavar="N", help="tokens of a batch (2048)")
    parser.add_argument(
        "--window",
        type=positive,
        default=4096,
        metavar="N",
        help="most lines that are sorted by length together, and that a stopped run may have to compute again (4096)",
    )
    parser.add_argument(
        "--on_bad_line",
        default="stop",
        choices=("stop", "replace"),
        help="for bytes that are no UTF-8: stop and name the line, or put U+FFFD there and list the lines (stop)",
    )
    parser.add_argument(
        "--resume", action=Switch, default=True, help="go on after what a stopped run has done (default: yes)"
    )
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Compute the vectors and write them."""
    source = _identity(options.input_file)
    output_format = Path(options.output_file).suffix.lower()
    if output_format == ".npy" and options.pooling == "none":
        raise ValueError(".npy holds one array of one shape: use .npz or .safetensors with --pooling none")
    if options.output_file != "-":
        _check_output(options.input_file, Path(options.output_file))

    import torch

    from ..data.feature_files import OutputOptions
    from ..data.features import FeatureExtractor
    from ..data.lines import LineReader

    extractor = FeatureExtractor.from_pretrained(
        options.model,
        dtype=options.dtype,
        device=device(options.device),
        do_lower_case=options.do_lower_case,
        max_length=options.max_seq_length,
        tokens_per_batch=options.batch_tokens,
        batch_size=options.batch_size,
        window=options.window,
        **place(options),
    )
    described = OutputOptions(
        model=extractor.fingerprint(),
        source=source or "",
        hidden_size=extractor.model.config.hidden_size,
        pooling=options.pooling,
        layers=options.layers,
        normalize=options.normalize,
        special_tokens=options.special_tokens,
        output_format=output_format,
    )
    with _opened(options.input_file) as stream:
        name = "standard input" if options.input_file == "-" else options.input_file
        live = options.input_file == options.output_file == "-"
        reader = LineReader(stream, name, replace=options.on_bad_line == "replace", live=live)
        try:
            if options.output_file == "-":
                cut = _to_stdout(extractor, reader, described)
            else:
                resume = options.resume and source is not None
                cut = _to_file(extractor, reader, described, Path(options.output_file), resume)
        except torch.OutOfMemoryError as error:
            raise MemoryError("the device has too little memory: give a smaller --batch_tokens") from error
    _report(reader, cut, extractor.max_length)
    return 0


def _identity(input_file: str) -> str | None:
    """What tells one input file from another: path, size and time of change; None for a pipe, which is read once.

    Raises:
        OSError: There is no such file.
    """
    if input_file == "-":
        return None
    path = Path(input_file)
    facts = path.stat()
    return f"{path.resolve()} {facts.st_size} {facts.st_mtime_ns}" if path.is_file() else None


@contextmanager
def _opened(input_file: str) -> Iterator[BinaryIO]:
    """The bytes of a file, or of standard input for "-"."""
    if input_file == "-":
        yield sys.stdin.buffer
        return
    with Path(input_file).open("rb") as stream:
        yield stream


def _check_output(input_file: str, path: Path) -> None:
    """Refuse, before anything is computed, an output that would end badly."""
    if not path.exists():
        return
    if not path.is_file():
        raise ValueError(f"--output_file {path}: there is something that is no file; - writes to standard output")
    if input_file != "-" and path.samefile(input_file):
        raise ValueError(f"--output_file {path} is the input file, which would be overwritten")


def _results(
    extractor: "FeatureExtractor", reader: "LineReader", described: "OutputOptions"
) -> "Iterator[list[Features]]":
    """Results of a window of lines at a time, with a progress bar, which is off when stderr is no terminal."""
    from tqdm import tqdm

    results = extractor.stream_windows(
        reader,
        pooling=described.pooling,  # type: ignore[arg-type]  # the parser's choices are the type's
        layers=described.layers,
        normalize=described.normalize,
        special_tokens=described.special_tokens,
    )
    with tqdm(desc="features", unit=" lines", initial=reader.lines, disable=None) as bar:
        tokens = 0
        for window in results:
            tokens += sum(len(result.ids) for result in window)
            seconds = bar.format_dict["elapsed"] or 1e-9
            bar.set_postfix_str(f"{tokens / seconds:,.0f} tokens/s", refresh=False)
            bar.update(len(window))
            yield window


def _to_stdout(extractor: "FeatureExtractor", reader: "LineReader", described: "OutputOptions") -> int:
    from ..data.feature_files import json_line

    tokens = extractor.tokenizer.convert_ids_to_tokens
    cut = done = 0
    for window in _results(extractor, reader, described):
        for index, result in enumerate(window, done):
            sys.stdout.write(json_line(index, result, described, tokens) + "\n")
        sys.stdout.flush()
        cut += sum(result.truncated for result in window)
        done += len(window)
    return cut


def _to_file(
    extractor: "FeatureExtractor", reader: "LineReader", described: "OutputOptions", path: Path, resume: bool
) -> int:
    from ..data.feature_files import FeatureOutput

    with FeatureOutput(path, described, extractor.tokenizer.convert_ids_to_tokens, resume=resume) as output:
        if output.note:
            sys.stderr.write(f"{output.note}\n")
        reader.skip(output.done)
        try:
            for window in _results(extractor, reader, described):
                output.add(window)
            output.finish()
        except BaseException:  # interrupted, a full disk, a bad line …: whatever it is, `main` says so
            if resume and output.done:
                kept = f"{output.done} lines are done and kept in {output.folder}"
                sys.stderr.write(f"{kept}; give the same command again to go on after them\n")
            raise
    sys.stderr.write(f"{path}: {output.done} lines\n")
    return output.cut


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
    description=_DESCRIPTION,
    example="pytorch_transformers features --model bert-base-uncased --input_file in.txt --output_file out.npz",
    add_arguments=add_arguments,
    run=run,
)
