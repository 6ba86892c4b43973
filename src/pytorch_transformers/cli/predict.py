"""`pytorch_transformers predict`: what a trained model says of new inputs - labels, tags or answers."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

from .common import Switch, Verb, add_place, device, place, positive
from .train.squad import add_answer_options, answer_options

if TYPE_CHECKING:
    from ..data.columns import Sentence
    from ..data.lines import LineReader
    from ..data.rows import Text
    from ..data.squad import SquadQuestion
    from ..training.prediction import AnswerPredictor, AnyPredictor, TagPredictor, TextPredictor

_DESCRIPTION = """\
Ask a trained model, such as `pytorch_transformers train` saves, about new inputs. What it is for is told by the class
that its configuration names; --task says it where that is missing.

  classify  a text a line, pairs divided by ' ||| '; gives JSON lines with label, probability and probabilities, or
            the score
  tokens    a sentence a line, words divided by white space (--format conll: a word a line, more columns are passed
            over, a blank line between sentences); gives a line with word, tab and tag for each word, and a blank line
            after each sentence
  squad     JSON lines {"question": "...", "context": "..."}, with an "id" or without, or a SQuAD file (.json); gives
            JSON lines with answer, start and end in characters, probability, and nbest, the best candidates

From a pipe, lines are answered as they come."""

#: Characters of inputs that are sorted by length together: what bounds the memory where they are long.
_WINDOW_CHARACTERS: Final = 1 << 22

Item = TypeVar("Item")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    add = parser.add_argument
    add("--model", required=True, metavar="NAME", help="folder of a trained model, name, repository or archive")
    add("--input_file", default="-", metavar="FILE", help="see above, UTF-8; - is standard input (default)")
    add("--output_file", default="-", metavar="FILE", help="see above; - is standard output (default)")
    add("--task", choices=("classify", "tokens", "squad"), help="default: what the model was saved for")
    add("--format", default="lines", choices=("lines", "conll"), help="of the input for tokens (lines)")
    add(
        "--do_lower_case",
        action=Switch,
        default=None,
        help="lower-case the text, or don't (default: as saved with the tokenizer)",
    )
    add(
        "--max_seq_length",
        type=positive,
        metavar="N",
        help="longest row in tokens (default: what the model takes; at most 384 for squad)",
    )
    add_answer_options(parser)
    add = parser.add_argument_group("machine").add_argument
    add("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of the model")
    add("--device", metavar="NAME", help="cpu, cuda, cuda:1, mps (default: a GPU when there is one)")
    add("--batch_tokens", type=positive, default=2048, metavar="N", help="tokens of a batch (2048)")
    add("--window", type=positive, default=4096, metavar="N", help="most inputs sorted by length together (4096)")
    add(
        "--on_bad_line",
        default="stop",
        choices=("stop", "replace"),
        help="for bytes that are no UTF-8: stop and name the line, or put U+FFFD there (stop)",
    )
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Answer the inputs."""
    chosen = answer_options(options)
    _check_files(options.input_file, options.output_file)

    import torch

    from ..training.prediction import load_predictor

    def settings(task: str) -> dict[str, Any]:
        common = {"max_seq_length": options.max_seq_length, "tokens_per_batch": options.batch_tokens}
        if task != "squad":
            return common
        windows = {"doc_stride": options.doc_stride, "max_query_length": options.max_query_length}
        return {**common, **windows, "answers": chosen}

    predictor = load_predictor(
        options.model,
        options.task,
        dtype=options.dtype,
        device=device(options.device),
        do_lower_case=options.do_lower_case,
        options=settings,
        **place(options),
    )
    try:
        _answer(predictor, options)
    except torch.OutOfMemoryError as error:
        raise MemoryError("the device has too little memory: give a smaller --batch_tokens") from error
    if predictor.cut:
        sys.stderr.write(f"{predictor.cut} inputs were longer than {predictor.max_seq_length} tokens and cut\n")
    return 0


def _check_files(input_file: str, output_file: str) -> None:
    """Refuse, before a model is loaded, files that would end badly.

    Raises:
        ValueError: The output is no file, or the input.
        OSError: There is no such input.
    """
    if input_file != "-":
        Path(input_file).open("rb").close()
    path = Path(output_file)
    if output_file == "-" or not path.exists():
        return
    if not path.is_file():
        raise ValueError(f"--output_file {path}: there is something that is no file; - writes to standard output")
    if input_file != "-" and path.samefile(input_file):
        raise ValueError(f"--output_file {path} is the input file, which would be overwritten")


def _answer(predictor: "AnyPredictor", options: argparse.Namespace) -> None:
    """Read, ask and write, a window at a time."""
    from ..data.lines import LineReader
    from ..training.prediction import AnswerPredictor, TagPredictor

    if options.format == "conll" and not isinstance(predictor, TagPredictor):
        raise ValueError("--format conll: is for models that tag words; this one takes lines")
    is_file = options.input_file != "-"
    live = not is_file and options.output_file == "-"
    source = Path(options.input_file).open("rb") if is_file else nullcontext(sys.stdin.buffer)  # noqa: SIM115
    with source as stream:
        name = options.input_file if is_file else "standard input"
        reader = LineReader(stream, name, replace=options.on_bad_line == "replace", live=live)
        if isinstance(predictor, TagPredictor):
            sentences = _columns(reader) if options.format == "conll" else _sentences(reader)
            answered = _in_windows(sentences, lambda each: sum(map(len, each.words)), _tagged(predictor), options)
        elif isinstance(predictor, AnswerPredictor):
            squad = is_file and Path(name).suffix.lower() == ".json"
            questions = _questions_of_file(name) if squad else _questions(reader)
            answered = _in_windows(questions, lambda each: len(each[0].context), _found(predictor), options)
        else:
            texts: Iterator[Any] = iter(reader)  # of Text | None, whose two kinds a type checker would mix up
            answered = _in_windows(texts, _length, _labelled(predictor), options)
        with _written(options.output_file) as output:
            for text in answered:
                output.write(text)
                output.flush()
    if reader.replaced:
        sys.stderr.write(f"{len(reader.replaced)} lines were not UTF-8, bad bytes replaced\n")


@contextmanager
def _written(output_file: str) -> Iterator[TextIO]:
    """Standard output, or a file that appears when all is done."""
    if output_file == "-":
        yield sys.stdout
        return
    from ..files import atomic_write

    with atomic_write(output_file) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        yield stream


def _in_windows(
    items: Iterable[Item | None],
    size: Callable[[Item], int],
    answer: Callable[[list[Item]], Iterator[str]],
    options: argparse.Namespace,
) -> Iterator[str]:
    """What is to be written for each window of inputs, with a progress bar, which is off without a terminal."""
    from tqdm import tqdm

    with tqdm(desc="predict", unit=" inputs", disable=None) as bar:
        for window in _windows(items, size, options.window):
            yield "".join(answer(window))
            bar.update(len(window))


def _windows(items: Iterable[Item | None], size: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """Inputs in groups that are answered together; one ends at None too, which says that somebody waits."""
    window: list[Item] = []
    characters = 0
    try:
        for item in items:
            if item is not None:
                window.append(item)
                characters += size(item)
            if window and (item is None or len(window) == most or characters >= _WINDOW_CHARACTERS):
                yield window
                window, characters = [], 0
    except ValueError:  # a bad line; those before it get their answers
        if window:
            yield window
        raise
    if window:
        yield window


# Inputs: None says that there are no more for now.


def _lines(reader: "LineReader") -> Iterator[str | None]:
    """Whole lines: for those that are no texts, ' ||| ' divides nothing."""
    for text in reader:
        yield " ||| ".join(text) if isinstance(text, tuple) else text


def _sentences(reader: "LineReader") -> "Iterator[Sentence | None]":
    from ..data.columns import Sentence

    for line in _lines(reader):
        yield None if line is None else Sentence(line.split())


def _columns(reader: "LineReader") -> "Iterator[Sentence | None]":
    """Sentences of lines with a word and other columns, each as soon as a blank line ends it."""
    from ..data.columns import parse_sentences

    lines: list[tuple[int, str]] = []
    for line in _lines(reader):
        if line is None:
            yield None
        elif line:
            lines.append((reader.lines, line))
        else:
            yield from parse_sentences(lines, reader.name, tagged=False)
            lines = []
    yield from parse_sentences(lines, reader.name, tagged=False)


def _questions(reader: "LineReader") -> "Iterator[tuple[SquadQuestion, Any] | None]":
    """Questions of JSON lines, with what they have as `id`. Blank lines are passed over."""
    from ..data.squad import SquadQuestion

    for line in _lines(reader):
        if line is None:
            yield None
        elif line:
            where = f"{reader.name}:{reader.lines}"
            expected = 'expected {"question": "...", "context": "..."}'
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{where}: not JSON ({error.msg}, column {error.colno}); {expected}") from error
            if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("question", "context")):
                raise ValueError(f"{where}: {line:.60} has no texts under these two names; {expected}")
            yield SquadQuestion(where, row["question"], row["context"]), row.get("id")


def _questions_of_file(path: str) -> "Iterator[tuple[SquadQuestion, Any] | None]":
    from ..data.squad import read_squad

    for question in read_squad(path):
        yield question, question.id


def _length(text: "Text") -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


# Answers, as they are written


def _labelled(predictor: "TextPredictor") -> "Callable[[list[Text]], Iterator[str]]":
    return lambda texts: (json.dumps(found) + "\n" for found in predictor.predict(texts))


def _tagged(predictor: "TagPredictor") -> "Callable[[list[Sentence]], Iterator[str]]":
    def answer(sentences: "list[Sentence]") -> Iterator[str]:
        for sentence, tags in zip(sentences, predictor.predict(sentences), strict=True):
            yield "".join(f"{word}\t{tag}\n" for word, tag in zip(sentence.words, tags, strict=True)) + "\n"

    return answer


def _found(predictor: "AnswerPredictor") -> "Callable[[list[tuple[SquadQuestion, Any]]], Iterator[str]]":
    def answer(questions: "list[tuple[SquadQuestion, Any]]") -> Iterator[str]:
        found = predictor.predict([question for question, _ in questions])
        for (_, name), row in zip(questions, found, strict=True):
            yield json.dumps(row if name is None else {"id": name, **row}) + "\n"

    return answer


VERB = Verb(
    name="predict",
    summary="labels, tags or answers from a trained model",
    description=_DESCRIPTION,
    example="pytorch_transformers predict --model mrpc --input_file pairs.txt --output_file labels.jsonl",
    add_arguments=add_arguments,
    run=run,
)
