"""Texts to ids with the special tokens: the same rows from every side.

Some tokenizers remember the words that they have met, so there are two kinds of lines: all words were met before, and
new tokenizers for each turn, which have met a single full stop. Building them is not timed, and some of them build
what they need with the first text.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import torch

from pytorch_transformers import BertTokenizer, GPT2Tokenizer
from pytorch_transformers.tokenizers.byte_level import to_bytes
from pytorch_transformers.tokenizers.options import EngineName

from . import published
from .environment import installed
from .harness import Plan, Result, alternate, check_equal, left_out, timed
from .inputs import model_folder, sentences, vocabulary

TEXTS: Final = 4000
ROUNDS: Final = 9
#: For rivals that take many times as long.
FEW_ROUNDS: Final = 3
#: The one token of GPT-2's vocabulary that is no text.
GPT2_END: Final = "<|endoftext|>"
Rows = list[list[int]]
#: Texts to ids.
Side = Callable[[list[str]], Rows]
#: Builds a tokenizer.
Maker = Callable[[], Side]


@dataclass(frozen=True)
class Rival:
    """What we are compared with.

    Attributes:
        name: What the report calls it.
        make: See `Maker`.
        aim: How many times as fast we want to be.
        rounds: Turns.
        first: Whether new tokenizers are measured too.
        note: What a reader has to know.
    """

    name: str
    make: Maker
    aim: float | None = None
    rounds: int = ROUNDS
    first: bool = True
    note: str = ""


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure all sides on the same texts, for each kind of vocabulary."""
    del folder
    texts = sentences(plan.size(TEXTS))
    many = f"{len(texts)} sentences"
    yield from _compare(plan, f"tokenisation of {many}", texts, _ours_bert, _bert_rivals())
    if (files := vocabulary("gpt2-vocab.json", "gpt2-merges.txt")) is None:
        left_out("tokenisation of GPT-2", "its vocabulary is not at hand: shared/data/vocab/gpt2-*")
        return
    ours = partial(_ours_gpt2, files)
    yield from _compare(plan, f"GPT-2 tokenisation of {many}", texts, ours, _gpt2_rivals(files, texts))
    whole = ["\n".join(texts)]
    one = f"GPT-2 tokenisation of one text of {len(whole[0].encode()) / 1e3:.0f} kB"
    yield from _compare(plan, one, whole, ours, _gpt2_rivals(files, whole))
    plain = [text for text in texts if text.isascii()]
    subject = f"GPT-2 tokenisation of {len(plain)} sentences"
    yield from _compare(plan, subject, plain, ours, _gpt2_slow_rivals(files))


def _compare(plan: Plan, subject: str, texts: list[str], make: Maker, rivals: Sequence[Rival]) -> Iterator[Result]:
    ours = partial(make(), texts)
    for rival in rivals:
        theirs = partial(rival.make(), texts)
        check = check_equal(f"{subject} against {rival.name}", ours(), theirs())
        rounds = plan.rounds(rival.rounds)
        speedups = alternate(ours, theirs, rounds).speedups
        yield _result(subject, rival, speedups, check, "words met before")
        if rival.first:
            speedups = _first_times(texts, make, rival.make, rounds)
            yield _result(subject, rival, speedups, check, "new tokenizers each time")


def _result(subject: str, rival: Rival, speedups: tuple[float, ...], check: str, how: str) -> Result:
    note = f"{how}; {rival.note}" if rival.note else how
    return Result(subject, rival.name, "times as fast", speedups, check, rival.aim, note=note)


def _first_times(texts: list[str], make: Maker, make_other: Maker, rounds: int) -> tuple[float, ...]:
    speedups: list[float] = []
    for _ in range(rounds):
        sides = make(), make_other()
        for side in sides:
            side(["."])
        # No untimed turn: it is the first that counts.
        ours, theirs = (timed(partial(side, texts)) for side in sides)
        speedups.append(theirs / ours)
    return tuple(speedups)


# BERT


def _ours_bert(engine: EngineName = "auto") -> Side:
    tokenizer = BertTokenizer.from_pretrained(model_folder(), engine=engine)
    return lambda texts: tokenizer(texts)["input_ids"]


def _bert_rivals() -> list[Rival]:
    rivals = [Rival("tokenizers", _library_bert, 0.9)]
    if published.load("pytorch_pretrained_bert", "tokenization"):
        rivals.append(Rival("pytorch-pretrained-bert 0.6.2", _classic_bert, 20.0, rounds=FEW_ROUNDS, first=False))
    else:
        left_out("tokenisation against pytorch-pretrained-bert 0.6.2", published.HOW)
    return [*rivals, _python_engine(_ours_bert)]


def _python_engine(ours: Callable[..., Side]) -> Rival:
    make = partial(ours, engine="python")
    return Rival("our engine in Python", make, rounds=FEW_ROUNDS, first=False, note="for information")


def _library_bert() -> Side:
    from tokenizers import Tokenizer

    tokenizer: Any = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return lambda texts: [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]


def _classic_bert() -> Side:
    tokenizer = published.load("pytorch_pretrained_bert", "tokenization").BertTokenizer(
        str(model_folder() / "vocab.txt")
    )
    convert = tokenizer.convert_tokens_to_ids
    return lambda texts: [convert(["[CLS]", *tokenizer.tokenize(text), "[SEP]"]) for text in texts]


# GPT-2; `files` are its vocabulary and its merges


def _ours_gpt2(files: Sequence[Path], engine: EngineName = "auto") -> Side:
    vocab, merges = files
    tokenizer = GPT2Tokenizer(vocab, merges, engine=engine)
    return lambda texts: tokenizer(texts)["input_ids"]


def _gpt2_rivals(files: Sequence[Path], texts: list[str]) -> list[Rival]:
    rivals = [Rival("tokenizers", partial(_library_gpt2, files), 0.9)]
    if installed("tiktoken"):
        rivals.append(Rival("tiktoken", partial(_tiktoken, files, texts), 0.9))
    else:
        left_out("GPT-2 tokenisation against tiktoken", "the package tiktoken is not installed")
    return rivals


def _gpt2_slow_rivals(files: Sequence[Path]) -> list[Rival]:
    rivals = []
    if published.load("pytorch_pretrained_bert", "tokenization_gpt2"):
        classic = Rival(
            "pytorch-pretrained-bert 0.6.2",
            partial(_classic_gpt2, files),
            20.0,
            rounds=FEW_ROUNDS,
            note="ASCII, where its ids are right",
        )
        rivals.append(classic)
    return [*rivals, _python_engine(partial(_ours_gpt2, files))]


def _library_gpt2(files: Sequence[Path]) -> Side:
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocab, merges = map(str, files)
    tokenizer: Any = Tokenizer(models.BPE.from_file(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return lambda texts: [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]


def _tiktoken(files: Sequence[Path], texts: list[str]) -> Side:
    """Of its two ways, one text after another or in threads, the faster for these texts; it remembers no words."""
    encoding = _tiktoken_encoding(files[0])
    threads = torch.get_num_threads()

    def one_by_one(texts: list[str]) -> Rows:
        return [encoding.encode_ordinary(text) for text in texts]

    def threaded(texts: list[str]) -> Rows:
        rows: Rows = encoding.encode_ordinary_batch(texts, num_threads=threads)
        return rows

    return min((one_by_one, threaded), key=lambda side: min(timed(partial(side, texts)) for _ in range(3)))


@cache
def _tiktoken_encoding(vocab: Path) -> Any:
    """As tiktoken's own `gpt2`, which it would download; ranks of its merges are the ids."""
    import tiktoken
    from tiktoken_ext.openai_public import r50k_pat_str

    ids: dict[str, int] = json.loads(vocab.read_text(encoding="utf-8"))
    special = {GPT2_END: ids.pop(GPT2_END)}
    ranks = {to_bytes(token): number for token, number in ids.items()}
    return tiktoken.Encoding("gpt2", pat_str=r50k_pat_str, mergeable_ranks=ranks, special_tokens=special)


def _classic_gpt2(files: Sequence[Path]) -> Side:
    tokenizer = published.load("pytorch_pretrained_bert", "tokenization_gpt2").GPT2Tokenizer(*map(str, files))
    return lambda texts: [tokenizer.encode(text) for text in texts]
