"""Vocabularies learned from text: the published formats, and the same result whatever the order, run or threads."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from pytorch_transformers import BertTokenizer, GPT2Tokenizer
from pytorch_transformers.tokenizers.bpe_files import read_merges, read_vocabulary, save_bpe
from pytorch_transformers.tokenizers.train import END_OF_TEXT, WORDPIECE_SPECIAL, train_byte_bpe, train_wordpiece
from pytorch_transformers.tokenizers.vocab import read_tokens, save_tokens

TEXT = """\
The lowest of the low towers shows slowly; lower, LOWER still. Café Zoë's naïve cafés.
[MASK] and [CLS] are no words here. 我们在北京。
unhappy unhappily happily happy, unable, able, ability.
"""


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text(TEXT * 4, encoding="utf-8")
    return path


@pytest.fixture
def halves(tmp_path: Path) -> list[Path]:
    """Two files of random words, in which very many pairs are equally frequent."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefgh", k=draw.randint(1, 6))) for _ in range(3000)]
    paths = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for number, path in enumerate(paths):
        path.write_text("\n".join(words[number::2]), encoding="utf-8")
    return paths


def test_wordpiece_format(text: Path, tmp_path: Path) -> None:
    tokens = train_wordpiece(text, 150, limit_alphabet=50)
    assert tuple(tokens[:5]) == WORDPIECE_SPECIAL == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert len(tokens) == len(set(tokens)) <= 150
    single = [token for token in tokens[5:] if len(token) == 1]
    inside = [token for token in tokens if token.startswith("##") and len(token) == 3]
    assert tokens[5 : 5 + len(single) + len(inside)] == sorted(single) + sorted(inside)
    assert {"t", "京", "[", ".", "##e"} <= set(tokens)
    assert not {"T", "é", "ë"} & set("".join(tokens[5:]))  # lower-cased, without accents
    assert "the" in tokens
    assert (
        save_tokens(tokens, tmp_path / "vocab.txt").read_bytes() == "".join(f"{token}\n" for token in tokens).encode()
    )
    assert read_tokens(tmp_path / "vocab.txt") == tokens
    tokenizer = BertTokenizer(tmp_path / "vocab.txt")
    ids = tokenizer._encode_ids(TEXT.replace("[MASK]", "").replace("[CLS]", "").split("\n"))
    assert tokenizer.unk_token_id not in {number for row in ids for number in row}


def test_cased_wordpiece_keeps_case_and_accents(text: Path) -> None:
    letters = set("".join(train_wordpiece(text, 200, do_lower_case=False)[5:]))
    assert {"T", "é", "ë"} <= letters


def test_min_frequency(text: Path) -> None:
    tokens = train_wordpiece(text, 5000)
    assert "unhappily" in tokens
    assert "unhappily" not in train_wordpiece(text, 5000, min_frequency=5)
    assert len(tokens) < 5000


def test_limited_alphabet_keeps_the_most_frequent(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("a b b c c c d d d d e e e e\n", encoding="utf-8")
    assert train_wordpiece(path, 50, limit_alphabet=3)[5:] == ["c", "d", "e"]
    # Of equally frequent ones those that come first; by default a quarter of the vocabulary.
    path.write_text("a b c d e f\n", encoding="utf-8")
    assert train_wordpiece(path, 16)[5:] == ["a", "b", "c", "d"]


def test_byte_bpe_format(text: Path, tmp_path: Path) -> None:
    tokens, merges = train_byte_bpe(text, 300)
    assert tokens[-1] == END_OF_TEXT == "<|endoftext|>"
    assert len(tokens) == len(set(tokens)) <= 300
    assert tokens[256:-1] == [left + right for left, right in merges.pairs]
    assert tokens[:3] == ["!", '"', "#"]  # as in the published file
    vocab, lines = save_bpe(tokens, merges, tmp_path / "vocab.json", tmp_path / "merges.txt")
    loaded, _, _ = read_vocabulary(vocab)
    assert list(loaded) == tokens
    assert read_merges(lines, loaded, "").pairs == merges.pairs
    tokenizer = GPT2Tokenizer(vocab, lines)
    assert tokenizer.decode(tokenizer(TEXT + "\x00\U0001f600")["input_ids"]) == TEXT + "\x00\U0001f600"
    assert len(tokenizer(TEXT)["input_ids"]) < len(TEXT.encode())


def test_byte_bpe_without_an_end(text: Path) -> None:
    tokens, merges = train_byte_bpe(text, 256, end_token=None)
    assert len(tokens) == 256
    assert not merges.pairs


TRAIN = """
import hashlib, sys
from pytorch_transformers.tokenizers.train import train_byte_bpe, train_wordpiece
files = sys.argv[1:]
print(hashlib.sha256(repr((train_wordpiece(files, 400), train_wordpiece(files, 400, limit_alphabet=6),
    train_byte_bpe(files, 600)[0])).encode()).hexdigest())
"""


def test_the_same_text_makes_the_same_vocabulary_in_every_run(halves: list[Path]) -> None:
    """Each process has its own order of hash tables; files are named in both orders, and threads vary."""
    found = set()
    for files, threads in ((halves, "1"), (halves[::-1], "2"), (halves, "2")):
        done = subprocess.run(
            [sys.executable, "-c", TRAIN, *map(str, files)],
            env={**os.environ, "RAYON_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        found.add(done.stdout)
    assert len(found) == 1


def test_one_huge_line(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("low lower lowest " * 40_000, encoding="utf-8")
    assert {"low", "lower", "lowest"} <= set(train_wordpiece(path, 60))
    assert "Ġlower" in train_byte_bpe(path, 300)[0]


def test_what_cannot_be_learned_from(text: Path, tmp_path: Path) -> None:
    empty, binary = tmp_path / "empty.txt", tmp_path / "binary.txt"
    empty.write_text("\n \n\t\n")
    binary.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    for train in (train_wordpiece, train_byte_bpe):
        with pytest.raises(ValueError, match=r"there is no text in .*empty.txt"):
            train([empty], 300)
        with pytest.raises(ValueError, match=r"binary.txt:1: this is not UTF-8 text"):
            train([text, binary], 300)
        with pytest.raises(FileNotFoundError, match="there is no such text file"):
            train([tmp_path / "none.txt"], 300)
        with pytest.raises(ValueError, match="min_frequency is 0"):
            train(text, 300, min_frequency=0)
    with pytest.raises(
        ValueError, match="vocab_size is 20, and the special tokens and the characters of the text need"
    ):
        train_wordpiece(text, 20, limit_alphabet=30)
    with pytest.raises(ValueError, match="vocab_size is 256; the 256 bytes and the end token need 257"):
        train_byte_bpe(text, 256)
