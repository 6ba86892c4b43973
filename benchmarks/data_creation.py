"""Making training data for BERT, `create-pretraining-data`, against Google's create_pretraining_data.py.

Both read the same text with the same vocabulary and flags. In the original mode our instances are those of the script;
in the streaming mode the draws are others, and the amount of work is compared: tokens and masked tokens written.
Each turn is a fresh process. Imports are not timed, though TensorFlow's take seconds; reading the vocabulary, starting
the processes of a pool and writing are.

The script is that of the package bert-tensorflow 1.0.1, in the folder of `published.py`, and runs under TensorFlow's
interface of version 1. The variable TENSORFLOW_PYTHON names a Python that has TensorFlow, where this one has none.
"""

import filecmp
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from pytorch_transformers.data.pretraining.shards import DataIndex
from pytorch_transformers.data.pretraining.tfrecord import parse_example, read_records

from .harness import MismatchError, Plan, Result, check_equal, fresh_process, left_out, ratios
from .inputs import vocabulary

ROUNDS: Final = 3
#: What both are asked for; the defaults of the script but for half of its duplicates.
FLAGS: Final = ("--max_seq_length=128", "--max_predictions_per_seq=20", "--dupe_factor=5")
#: Project Gutenberg's numbers of the books that memory is measured on; a short run has the start of one book.
MEMORY_BOOKS: Final = ("161", "521", "1661")
QUICK_BOOKS: Final = ("120",)
QUICK_CHAPTERS: Final = 10
#: How often the text is repeated to see whether memory grows with it, and the growth that still passes for none.
COPIES: Final = 4
GROWTH: Final = 1.25
#: Part by which the streaming mode's tokens may differ from the script's in number: other draws cut other texts.
TOLERANCE: Final = 0.05
HOW: Final = (
    "pip install --no-deps --target FOLDER bert-tensorflow==1.0.1, set PUBLISHED_PACKAGES=FOLDER, and where this "
    "Python has no TensorFlow TENSORFLOW_PYTHON=a Python that has it"
)
_SCRIPT: Final = "Google's script"
#: Both sides: memory is counted from after the imports. `worker` is that of the largest process of a pool, which begins
#: with the same imports.
_FRAME: Final = """
import json, resource, sys, time
from benchmarks.memory import Peak
{imports}

memory = Peak()
started = time.perf_counter()
{work}
seconds = time.perf_counter() - started
worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
worker = max(worker - memory.before, 0)
print(json.dumps({{"seconds": seconds, "peak": memory.bytes(), "worker": worker}}))
"""
_OURS: Final = _FRAME.format(
    imports="""
from pytorch_transformers.cli.main import main
from pytorch_transformers.data.pretraining import create
from pytorch_transformers.models.bert import tokenizer
""",
    work="""
if main(["create-pretraining-data", *sys.argv[1:]]):
    sys.exit("no data were made")
""",
)
_THEIRS: Final = _FRAME.format(
    imports="""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1
from benchmarks import published

sys.modules["tensorflow"] = tensorflow.compat.v1
published.load("bert", "tokenization")
sys.modules["bert"] = sys.modules["published_bert"]  # the script imports a part of its package by this name
script = published.load("bert", "create_pretraining_data")
script.FLAGS(["script", *sys.argv[1:]])
""",
    work="script.main(None)",
)
#: Says whether all is there; without importing TensorFlow, which takes seconds.
_PROBE: Final = """
import json, sys, types
from importlib.util import find_spec
from benchmarks import published

there = find_spec("tensorflow") is not None
sys.modules["tensorflow"] = types.ModuleType("tensorflow")
print(json.dumps(there and published.load("bert", "tokenization") is not None))
"""
#: Goes on as a program of another Python.
_ELSEWHERE: Final = """
import os, sys
os.execv(sys.argv[1], [sys.argv[1], "-c", *sys.argv[2:]])
"""


@dataclass(frozen=True)
class _Side:
    """One way to make the data.

    Attributes:
        name: What to call it.
        program: Code and first arguments for `fresh_process`.
        output: Where the data go: a file, or a folder of shards.
        processes: How many it asks for; with one, all is done in the first.
    """

    name: str
    program: tuple[str, ...]
    output: Path
    processes: int = 1

    def make(self, words: Path, texts: Sequence[Path]) -> dict[str, float]:
        """Make the data anew; gives seconds, and the highest memory of its processes together."""
        if self.output.is_dir():
            shutil.rmtree(self.output)
        more = [f"--processes={self.processes}"] * (self.processes > 1)
        files = f"--input_file={','.join(map(str, texts))}"
        found = fresh_process(
            *self.program, files, f"--output_file={self.output}", f"--vocab_file={words}", *FLAGS, *more
        )
        return {"seconds": found["seconds"], "peak": found["peak"] + self.processes * found["worker"]}


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure both modes, speed on all books and memory on some, once and repeated.

    Raises:
        MismatchError: The instances differ from the script's, or those of two processes from those of one.
    """
    words = vocabulary("bert-base-uncased-vocab.txt")
    books = words and words[0].parents[1] / "books"
    if not words or not books or not books.is_dir():
        left_out("data creation", "it needs the books and vocabularies of the folder shared, see inputs.py")
        return
    python = os.environ.get("TENSORFLOW_PYTHON") or sys.executable
    if not fresh_process(_ELSEWHERE, python, _PROBE):
        left_out("data creation", HOW)
        return
    texts = _texts(books, folder / "books")
    some = [texts[number] for number in (QUICK_BOOKS if plan.quick else MEMORY_BOOKS)]
    if plan.quick:
        for path in some:
            chapters = path.read_text(encoding="utf-8").split("\n\n")
            path.write_text("\n\n".join(chapters[:QUICK_CHAPTERS]), encoding="utf-8")
    original = _Side("the original's instances", (_OURS,), folder / "ours.tfrecord")
    single, double = (_Side("shards", (_OURS,), folder / f"shards-{number}", number) for number in (1, 2))
    script = _Side(_SCRIPT, (_ELSEWHERE, python, _THEIRS), folder / "theirs.tfrecord")

    yield from _growth((single, double), script, words[0], some, folder)

    all_of = some if plan.quick else list(texts.values())
    sides = (original, single, double, script)
    found: dict[_Side, list[dict[str, float]]] = {side: [] for side in sides}
    for _ in range(1 if plan.quick else ROUNDS):  # what comes before has brought all files into memory
        for side in sides:
            found[side].append(side.make(words[0], all_of))
    size = sum(path.stat().st_size for path in all_of)
    checks = _checks(original, (single, double), script)
    for side in sides[:-1]:
        yield _speed(side, found[side], found[script], size, checks[side])
    for side in sides[:-1]:
        yield _peak(side, found[side], found[script])


def _texts(books: Path, folder: Path) -> dict[str, Path]:
    """The books, one sentence a line: number -> file."""
    script = Path(__file__).resolve().parents[1] / "assets" / "prepare_books.py"
    subprocess.run([sys.executable, script, books, folder], check=True, stdout=subprocess.DEVNULL)
    return {path.stem.removeprefix("pg"): path for path in sorted((folder / "sentences").glob("pg*.txt"))}


def _growth(
    sides: Sequence[_Side], script: _Side, words: Path, texts: Sequence[Path], folder: Path
) -> Iterator[Result]:
    """What the memory for a text becomes when the text is there several times."""
    copies = [folder / f"{path.stem}-{copy}.txt" for copy in range(COPIES) for path in texts]
    for number, copy in enumerate(copies):
        shutil.copyfile(texts[number % len(texts)], copy)
    size = sum(path.stat().st_size for path in texts) / 1e6
    once, repeated = ([side.make(words, paths)["peak"] for side in (*sides, script)] for paths in (texts, copies))
    theirs = f"the script's {once[-1] / 1e6:.0f} MB become {repeated[-1] / 1e6:.0f}"
    for side, first, last in zip(sides, once, repeated, strict=False):
        yield Result(
            f"data creation, {_named(side)}: memory for {COPIES} times the text",
            "the text once",
            "times as much",
            (last / first,),
            "",
            GROWTH,
            at_most=True,
            note=f"{size:.1f} MB of text: {first / 1e6:.0f} MB become {last / 1e6:.0f}, {theirs}",
        )


def _speed(
    side: _Side,
    ours: Sequence[Mapping[str, float]],
    theirs: Sequence[Mapping[str, float]],
    size: int,
    check: str,
) -> Result:
    our, their = (size / 1e6 / statistics.median(turn["seconds"] for turn in turns) for turns in (ours, theirs))
    return Result(
        f"data creation, {_named(side)}",
        _SCRIPT,
        "times as fast",
        ratios(ours, theirs, "seconds"),
        check,
        10.0 if side.processes > 1 else None,
        note=f"{size / 1e6:.1f} MB of text, {our:.2f} and {their:.2f} MB a second",
    )


def _peak(side: _Side, ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]]) -> Result:
    our, their = (statistics.median(turn["peak"] for turn in turns) / 1e6 for turns in (ours, theirs))
    return Result(
        f"data creation, {_named(side)}",
        f"{_SCRIPT}, peak memory",
        "times as small",
        ratios(ours, theirs, "peak"),
        note=f"{our:.0f} and {their:.0f} MB beyond the imports{', all processes' * (side.processes > 1)}",
    )


def _named(side: _Side) -> str:
    return f"{side.name}, {side.processes} process{'es' * (side.processes > 1)}"


def _checks(original: _Side, streaming: Sequence[_Side], script: _Side) -> dict[_Side, str]:
    """Compare what the last turns wrote.

    Raises:
        MismatchError: It is not what it should be.
    """
    records, tokens, masked = _compare_records(original.output, script.output)
    same = "bytes" if filecmp.cmp(original.output, script.output, shallow=False) else "features"
    indexes = [DataIndex.read(side.output) for side in streaming]
    shards = check_equal("data creation, shards of one process and of two", *(list(index.shards) for index in indexes))
    made: tuple[Any, ...] = tuple(sum(getattr(s, key) for s in indexes[0].shards) for key in ("tokens", "masked"))
    for what, our, their in zip(("tokens", "masked tokens"), made, (tokens, masked), strict=True):
        if abs(our - their) > TOLERANCE * their:
            raise MismatchError(f"data creation: {our} {what} in the shards, and {their} of {_SCRIPT}")
    amount = f"{made[0] / tokens:.3f} times the script's tokens, {made[1] / masked:.3f} times its masked ones"
    check = f"{amount}; shards of 1 and 2 processes: {shards}"
    return {original: f"{records} records with the same {same}", **dict.fromkeys(streaming, check)}


def _compare_records(ours: Path, theirs: Path) -> tuple[int, int, int]:
    """How many records, tokens and masked tokens there are in both files.

    The order of the features in a record is that of a map and not the same in all releases of protobuf.

    Raises:
        MismatchError: A record of one is not that of the other.
    """
    records = tokens = masked = 0
    for our, their in zip_longest(read_records(ours), read_records(theirs)):
        if our is None or their is None or (features := parse_example(our)) != parse_example(their):
            raise MismatchError(f"data creation: record {records} is not that of {_SCRIPT}")
        records += 1
        tokens += sum(features["input_mask"])
        masked += int(sum(features["masked_lm_weights"]))
    return records, tokens, masked
