"""Texts to ids with the special tokens: the same rows from every side."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pytorch_transformers import BertTokenizer

from .environment import installed
from .harness import Plan, Result, alternate, check_equal, timed
from .inputs import model_folder, sentences

TEXTS: Final = 4000
ROUNDS: Final = 9
Rows = list[list[int]]


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure all sides on the same texts."""
    del folder
    texts = sentences(plan.size(TEXTS))
    tokenizer = BertTokenizer.from_pretrained(model_folder())

    def ours() -> Rows:
        rows: Rows = tokenizer(texts)["input_ids"]
        return rows

    fresh = BertTokenizer.from_pretrained(model_folder())

    def first_time() -> Rows:
        """As `ours`, without the words that the tokenizer has met before."""
        nonlocal fresh
        rows: Rows = fresh(texts)["input_ids"]
        return rows

    def renew() -> None:
        nonlocal fresh
        fresh = BertTokenizer.from_pretrained(model_folder())

    subject = f"tokenisation of {len(texts)} sentences"
    library = _library(texts)
    check = check_equal(f"{subject} against tokenizers", ours(), library())
    rounds = plan.rounds(ROUNDS)
    speedups = alternate(ours, library, rounds).speedups
    yield Result(subject, "tokenizers", "times as fast", speedups, check, 0.9, note="words met before")
    speedups = _first_times(first_time, renew, library, rounds)
    yield Result(subject, "tokenizers", "times as fast", speedups, check, 0.9, note="a new tokenizer each time")
    if installed("pytorch-pretrained-bert"):
        classic = _classic(texts)
        check = check_equal(f"{subject} against 0.6.2", ours(), classic())
        speedups = alternate(ours, classic, plan.rounds(3)).speedups
        yield Result(subject, "pytorch-pretrained-bert 0.6.2", "times as fast", speedups, check, 20.0)
    python = BertTokenizer.from_pretrained(model_folder(), engine="python")
    check = check_equal(f"{subject} against the Python engine", ours(), python(texts)["input_ids"])
    speedups = alternate(ours, lambda: python(texts)["input_ids"], plan.rounds(3)).speedups
    yield Result(subject, "our engine in Python", "times as fast", speedups, check, note="for information")


def _first_times(
    side: Callable[[], Rows], renew: Callable[[], None], other: Callable[[], Rows], rounds: int
) -> tuple[float, ...]:
    speedups: list[float] = []
    for _ in range(rounds):
        renew()
        # No untimed turn of ours: it is the first that counts. The other side has no memory to warm.
        ours = timed(side)
        speedups.append(timed(other) / ours)
    return tuple(speedups)


def _library(texts: list[str]) -> Callable[[], Rows]:
    from tokenizers import Tokenizer

    tokenizer: Any = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return lambda: [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]


def _classic(texts: list[str]) -> Callable[[], Rows]:
    from pytorch_pretrained_bert.tokenization import BertTokenizer as Classic

    tokenizer: Any = Classic(str(model_folder() / "vocab.txt"))
    convert = tokenizer.convert_tokens_to_ids
    return lambda: [convert(["[CLS]", *tokenizer.tokenize(text), "[SEP]"]) for text in texts]
