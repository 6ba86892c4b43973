"""Fixtures for the tests of tokenizers: vocabularies of a few dozen tokens that are always there.

This folder has no `__init__.py`: with one it would be a package named `tokenizers` on the path of the tests, and hide
the library of that name.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytorch_transformers import BertTokenizer
from pytorch_transformers.tokenizers.byte_level import BYTE_TO_CHAR, piece_pattern, to_symbols

VOCAB = Path(__file__).with_name("vocab_small.txt")


@pytest.fixture
def vocab_file() -> Path:
    return VOCAB


@pytest.fixture
def build() -> Callable[..., BertTokenizer]:
    """Builds a tokenizer over the small vocabulary."""

    def make(**options: Any) -> BertTokenizer:
        return BertTokenizer(VOCAB, **options)

    return make


@pytest.fixture
def tokenizer() -> BertTokenizer:
    return BertTokenizer(VOCAB)


#: What the small byte pairs are learned from.
TEXT = """The cats sat on the mat, and the rats ran at the cats. It's what they're there for, "that," she said; isn't it
so? Lower, slower, newer: the lowest of the low. 12 and 123 and 1234. naïve cafés, café 中文中文 😀!
    for each in range(10):\n\n\n        print(each)\n"""


class Pairs(NamedTuple):
    """A vocabulary of byte pairs and its merges."""

    vocab: dict[str, int]
    merges: list[tuple[str, str]]


def learn(words: Iterable[Sequence[str]], base: Iterable[str], count: int) -> Pairs:
    """Learns merges: the pair that is there most often becomes one symbol, again and again.

    Args:
        words: the symbols of each word.
        base: the symbols that the vocabulary begins with.
        count: how many merges to learn.
    """
    learned = [list(word) for word in words]
    merges: list[tuple[str, str]] = []
    vocab = list(base)
    for _ in range(count):
        pairs = Counter(pair for word in learned for pair in pairwise(word))
        left, right = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append((left, right))
        vocab.append(left + right)
        for word in learned:
            for place in range(len(word) - 2, -1, -1):
                if word[place : place + 2] == [left, right]:
                    word[place : place + 2] = [left + right]
    return Pairs({token: number for number, token in enumerate(vocab)}, merges)


@pytest.fixture(scope="session")
def byte_pairs() -> Pairs:
    """Byte pairs of GPT-2's kind; the last of the vocabulary is `<|endoftext|>`."""
    pairs = learn(map(to_symbols, piece_pattern().findall(TEXT)), BYTE_TO_CHAR, 60)
    pairs.vocab["<|endoftext|>"] = len(pairs.vocab)
    return pairs


@pytest.fixture(scope="session")
def letter_pairs() -> Pairs:
    """Byte pairs of OpenAI GPT's kind; the last of the vocabulary is `<unk>`."""
    words = TEXT.lower().split()
    letters = sorted(set("".join(words)))
    base = [*letters, *(letter + "</w>" for letter in letters), "\n</w>"]
    pairs = learn(([*word[:-1], word[-1] + "</w>"] for word in words), base, 60)
    pairs.vocab["<unk>"] = len(pairs.vocab)
    return pairs


def write_pairs(folder: Path, pairs: Pairs, vocab_name: str = "vocab.json", merges_name: str = "merges.txt") -> Path:
    """Writes byte pairs as the original programs keep them, and gives the folder."""
    (folder / vocab_name).write_text(json.dumps(pairs.vocab), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in pairs.merges), ""]
    (folder / merges_name).write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def save_pairs() -> Callable[..., Path]:
    return write_pairs
