"""Byte pair encoding: the merges, the characters that stand for bytes, and the two files."""

import json
import logging
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytorch_transformers.tokenizers.bpe import Merges
from pytorch_transformers.tokenizers.bpe_files import read_merges, read_vocabulary, save_bpe
from pytorch_transformers.tokenizers.byte_level import (
    BYTE_TO_CHAR,
    CHAR_TO_BYTE,
    byte_counts,
    piece_pattern,
    to_bytes,
    to_symbols,
    to_text,
)
from pytorch_transformers.tokenizers.joiner import ByteJoiner, Joiner, LetterJoiner, LibraryJoiner
from shared_data import shared

Save = Callable[..., Path]
MANY = settings(max_examples=400, derandomize=True)


def in_rounds(merges: list[tuple[str, str]], symbols: list[str]) -> list[str]:
    """What the original does: the pair learned first is joined wherever it stands, then the next one is looked for."""
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    while True:
        pairs = [pair for pair in pairwise(symbols) if pair in ranks]
        if not pairs:
            return symbols
        best = min(pairs, key=ranks.__getitem__)
        joined: list[str] = []
        while symbols:
            width = 2 if tuple(symbols[:2]) == best else 1
            joined.append("".join(symbols[:width]))
            symbols = symbols[width:]
        symbols = joined


LETTERS = st.sampled_from("abc")
#: Any pairs at all, also those that no training gives.
ANY_MERGES = st.lists(st.tuples(st.text("abc", min_size=1, max_size=3), st.text("abc", min_size=1, max_size=3)))


@MANY
@given(ANY_MERGES, st.lists(LETTERS, max_size=12))
@example([("a", "a")], list("aaaaa"))
@example([("t", "h"), ("th", "e"), ("x", "the"), ("t", "he"), ("h", "e")], list("xthethe"))
@example([("ab", "c"), ("a", "b")], list("abcabc"))
def test_rounds_are_those_of_the_original(merges: list[tuple[str, str]], word: list[str]) -> None:
    assert Merges(merges).join(word) == in_rounds(merges, word)


@st.composite
def orderly_merges(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Pairs as training gives them: of symbols that were there before, each making a new one."""
    symbols = ["a", "b", "c"]
    merges = []
    for _ in range(draw(st.integers(0, 12))):
        left, right = draw(st.sampled_from(symbols)), draw(st.sampled_from(symbols))
        if left + right not in symbols:
            symbols.append(left + right)
            merges.append((left, right))
    return merges


@MANY
@given(orderly_merges(), st.text("abcé", max_size=14), st.booleans())
def test_the_library_gives_the_same_for_orderly_merges(merges: list[tuple[str, str]], word: str, letters: bool) -> None:
    """A word with an unknown letter too, which the library leaves out."""
    table = Merges(merges)
    assert table.orderly
    tokens = dict.fromkeys([*"abc", *(letter + "</w>" for letter in "abc"), *(a + b for a, b in merges)])
    vocab = {token: number for number, token in enumerate(tokens)}
    joiner: Joiner = LetterJoiner(vocab, table, 99) if letters else ByteJoiner(vocab, table, 99)
    if word:
        assert LibraryJoiner(joiner, patience=0).ids(word) == joiner.ids(word)


@pytest.mark.parametrize("merges", [[("a", "b"), ("b", "c"), ("a", "bc"), ("ab", "c")], [("ab", "c"), ("a", "b")]])
def test_merges_that_no_training_gives_are_found_out(merges: list[tuple[str, str]]) -> None:
    assert not Merges(merges).orderly


def test_a_long_word_takes_no_square_of_its_length() -> None:
    merges = Merges([("a", "b"), ("ab", "ab"), ("c", "c")])
    start = time.process_time()
    merges.join("abcab" * 40_000)
    assert time.process_time() - start < 20  # 0.5 s; with one pass for each round it would be hours


def test_each_byte_has_a_character_that_can_be_seen() -> None:
    assert len(BYTE_TO_CHAR) == len(CHAR_TO_BYTE) == 256
    assert BYTE_TO_CHAR[ord(" ")] == "Ġ"
    assert BYTE_TO_CHAR[ord("\n")] == "Ċ"
    assert all(char.isprintable() and not char.isspace() for char in BYTE_TO_CHAR)
    assert to_bytes("".join(BYTE_TO_CHAR)) == bytes(range(256))


@MANY
@given(st.text(st.characters(categories=None)))
@example("\ud800\udfff x \udfff\ud800")
def test_text_to_symbols_and_back(text: str) -> None:
    symbols = to_symbols(text)
    assert len(symbols) == sum(byte_counts(text))
    assert to_text(to_bytes(symbols)) == text
    assert "".join(piece_pattern().findall(text)) == text


@given(st.binary())
@example(b"\xed\xa0")
@example(b"\xed\xa0\x80\xff\xed\xb0\x80")
def test_bytes_are_always_decoded(content: bytes) -> None:
    text = to_text(content)
    if "�" in text and not any("\ud800" <= char <= "\udfff" for char in text):
        assert text == content.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("can can", ["can", " can"]),
        ("it's IT'S we'll", ["it", "'s", " IT", "'", "S", " we", "'ll"]),
        ("a  b   c ", ["a", " ", " b", "  ", " c", " "]),
        ("a\n\nb \n c", ["a", "\n", "\n", "b", " \n", " c"]),
        ("x1²三.!", ["x", "1²", "三", ".!"]),
        ("\x1c a", ["\x1c", " a"]),
    ],
)
def test_pieces(text: str, pieces: list[str]) -> None:
    assert piece_pattern().findall(text) == pieces


# Files.


def test_files_come_back(byte_pairs: Any, tmp_path: Path) -> None:
    merges = Merges(byte_pairs.merges)
    save_bpe(list(byte_pairs.vocab), merges, tmp_path / "v", tmp_path / "m")
    vocab, tokens, name = read_vocabulary(tmp_path / "v")
    assert vocab == byte_pairs.vocab
    assert tokens == list(byte_pairs.vocab)
    again = read_merges(tmp_path / "m", vocab, name)
    assert again.pairs == byte_pairs.merges
    assert again.orderly
    assert (tmp_path / "m").read_text(encoding="utf-8").startswith("#version: 0.2\n")


def test_saving_leaves_the_old_file_when_it_fails(byte_pairs: Any, tmp_path: Path) -> None:
    (tmp_path / "v").write_text("old", encoding="utf-8")
    with pytest.raises(ValueError, match="space or newline"):
        save_bpe(["a"], Merges([("a ", "b")]), tmp_path / "v", tmp_path / "m")
    assert (tmp_path / "v").read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["v"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 0,\n "b": 1', r"line 2, column \d+: this is not JSON.*cut off"),
        ('{"a": 0,\n "b" 1}', r"line 2, column \d+: this is not JSON"),
        ("", r"line 1, column 1: this is not JSON.*cut off"),
        ('["a"]', "should hold a JSON object, token -> id, not list"),
        ('{"a": 0,\n "b": 2}', "2 tokens with ids up to 2, and none with the id 1"),
        ('{"a": 0,\n "b": 0}', "the id 0 to two tokens, 'a' and 'b'"),
        ('{"a": 0,\n "b": "1"}', "line 2: the id of 'b' should be an integer from 0 on, not '1'"),
        ('{"a": 0,\n "\\u00e9": -1}', "line 2: the id of 'é' should be an integer from 0 on, not -1"),
        ('{"a": 0,\n "b": true}', "line 2: the id of 'b' should be an integer"),
        ('{"a": 0,\n "b": 1,\n "a": 2}', "line 3: the token 'a' is there more than once"),
        ("{}", "is empty"),
    ],
)
def test_a_bad_vocabulary_says_where(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as raised:
        read_vocabulary(tmp_path / "vocab.json")
    assert str(tmp_path / "vocab.json") in str(raised.value)


def test_a_vocabulary_that_is_no_utf_8_says_where(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_bytes(b'{"a": 0,\n"\xff": 1}')
    with pytest.raises(ValueError, match=r"line 2: this is not UTF-8"):
        read_vocabulary(tmp_path / "vocab.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("#version: 0.2\na b\nab\n", r"line 3: a merge should be two symbols.*'ab'"),
        ("a b\nab c d\n", "line 2: a merge should be two symbols"),
        ("a b\na  b\n", "line 2: a merge should be two symbols"),
        ("#version: 0.2\na c\n", r"line 2: the merge 'a' 'c' does not fit the vocabulary 'V'.* no 'c'"),
        ("a b\nb a\n", r"line 2: the merge 'b' 'a' does not fit the vocabulary 'V'.* no 'ba'"),
    ],
)
def test_bad_merges_say_where(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "merges.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as raised:
        read_merges(path, {"a": 0, "b": 1, "ab": 2}, "the vocabulary 'V'")
    assert str(path) in str(raised.value)


def test_what_is_no_source_is_refused() -> None:
    with pytest.raises(TypeError, match="a vocabulary is the path"):
        read_vocabulary(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="merges are the path"):
        read_merges(3, {}, "the vocabulary")  # type: ignore[arg-type]
    with pytest.raises(OSError, match="there is no file '/no/such'"):
        read_vocabulary("/no/such")


def test_lines_end_at_newlines_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "merges.txt"
    path.write_bytes("\u2028 \x85\r\n# #\n\n".encode())
    vocab = {token: number for number, token in enumerate(["\u2028", "\x85", "\u2028\x85", "#", "##"])}
    assert read_merges(path, vocab, "the vocabulary").pairs == [("\u2028", "\x85"), ("#", "#")]


@pytest.mark.parametrize("name", ["gpt2", "openai-gpt"])
def test_published_files(name: str, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    with caplog.at_level(logging.WARNING):
        vocab, tokens, description = read_vocabulary(shared("data", "vocab", f"{name}-vocab.json"))
        merges = read_merges(shared("data", "vocab", f"{name}-merges.txt"), vocab, description)
    assert merges.orderly
    assert len(merges.pairs) == {"gpt2": 50_000, "openai-gpt": 40_000}[name]
    save_bpe(tokens, merges, tmp_path / "v", tmp_path / "m")
    assert json.loads((tmp_path / "v").read_text(encoding="utf-8")) == vocab
    wanted = shared("data", "vocab", f"{name}-merges.txt").read_bytes().split(b"\n", 1)[1]
    assert (tmp_path / "m").read_bytes().split(b"\n", 1)[1] == wanted
    assert not caplog.records
