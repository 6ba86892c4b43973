"""The two engines of a tokenizer give the same result on every input."""

import itertools
import random
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytorch_transformers import BertTokenizer
from pytorch_transformers.tokenizers.characters import is_accent
from pytorch_transformers.tokenizers.rust import RustEngine, agreement_for
from shared_data import shared

VOCAB = Path(__file__).with_name("vocab_small.txt")

PARTS = st.sampled_from(
    [
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "[UNK]",
        "[MASK",
        "[PAD]]",
        "[unused1]",
        "[unused",
        "NEW",
        "New",
        "new",
        "NEWTON",
        "cool-token",
        "COOL-Token",
        "cool-token2",
        "cool\n",
        "",
        "",
        "",
        "the",
        "cats",
        "unable",
        "hello",
        "world",
        "café",
        "CAFÉ",
        "café",
        "ΑΣ",
        "ΑΣΑ",
        "Σ",
        "σς",
        "İ",
        "ß",
        "ẞ",
        "ﬁ",
        "中文",
        "中",
        "한",
        "가",
        "́",
        "ȩ́",
        "\u200d\n",
        "",
        "",
        "",
        "\u200b",
        "\x00",
        "�",
        "\x1c",
        "\x85",
        "\u2028",
        "\xa0",
        "\u3000",
        "�",
        "�",
        "😀",
        "##s",
        "#",
        "1",
        "naïve",
        "！",
        "་",
        "〮",
        "ཱི",
        "\ue000\n",
        "",
        "",
        "",
        "𝅥",
        "ǅ",
        "ŉ",
    ]
)
TEXTS = st.lists(
    st.one_of(PARTS, st.text(max_size=6), st.sampled_from(["", " ", "  ", "\n", "\t", "a", "x" * 101])), max_size=8
).map("".join)
OPTIONS = st.fixed_dictionaries(
    {
        "do_lower_case": st.booleans(),
        "tokenize_chinese_chars": st.booleans(),
        "strip_accents": st.sampled_from([None, True, False]),
        "do_basic_tokenize": st.sampled_from([True, True, True, False]),
        "never_split": st.sampled_from([[], ["New"], ["[unused1]", "naïve", "zzz!"]]),
    }
)
ADDED = st.lists(
    st.sampled_from(
        ["cool-token", "cool-token2", "New", "cool", "中文", "Σ", "ﬁ x", "é", " a b", "\u0301", "##s", "İ"]
    ),
    max_size=4,
    unique=True,
)
BIG = settings(max_examples=400, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def _both(options: dict[str, Any], added: list[str], special: list[str]) -> tuple[BertTokenizer, BertTokenizer]:
    pair = BertTokenizer(VOCAB, engine="python", **options), BertTokenizer(VOCAB, engine="tokenizers", **options)
    for tokenizer in pair:
        tokenizer.add_tokens(added)
        tokenizer.add_special_tokens({"additional_special_tokens": special})
    return pair


@BIG
@given(TEXTS, OPTIONS, ADDED, st.lists(st.sampled_from(["<x>", "<x><y>", "e\u0301", "中", " s "]), unique=True))
@example("ΑΣ", {"do_lower_case": True}, [], [])
@example("a\x00\u0301 b", {"do_lower_case": True}, [], [])
def test_same_on_any_text(text: str, options: dict[str, Any], added: list[str], special: list[str]) -> None:
    slow, fast = _both(options, added, special)
    ids = slow._encode_ids([text, text + " a"])
    assert fast._encode_ids([text, text + " a"]) == ids
    assert fast._encode_ids([text])[0] == ids[0]
    pieces = slow._pipeline.pieces([text])[0]
    # Tokens, offsets and words too, and ids are the same whether or not the rest was asked for.
    assert fast._pipeline.pieces([text])[0] == pieces
    assert [piece.id for piece in pieces] == ids[0]


@BIG
@given(st.text(max_size=30), st.booleans())
def test_same_on_random_unicode(text: str, lower: bool) -> None:
    slow, fast = _both({"do_lower_case": lower}, [], [])
    assert fast._pipeline.pieces([text]) == slow._pipeline.pieces([text])
    assert fast._encode_ids([text, ""]) == slow._encode_ids([text, ""])


@BIG
@given(TEXTS, OPTIONS)
def test_d4_offsets_are_in_order_and_cover_what_is_kept(text: str, options: dict[str, Any]) -> None:
    tokenizer = BertTokenizer(VOCAB, **options)
    pieces = tokenizer._pipeline.pieces([text])[0]
    for before, after in itertools.pairwise(pieces):
        # Two pieces share a character only where normalisation made several of it, as of a Hangul syllable.
        several = len(tokenizer._reference.normalize(text[after.start])) > 1
        assert before.end <= after.start + several
        assert before.word <= after.word <= before.word + 1
    covered = {index for piece in pieces for index in range(piece.start, piece.end)}
    for index in set(range(len(text))) - covered:
        char = text[index]
        assert char.isspace() or not tokenizer.tokenize(char) or is_accent(char)


def test_nearly_all_characters_in_use_go_to_the_library() -> None:
    """Otherwise the comparison above would compare the reference with itself."""
    agreement = agreement_for(BertTokenizer(VOCAB)._reference)
    assert agreement.covers("".join(map(chr, range(128))))
    for text in (
        "Grüße, “quoted” – naïve…",
        "Привет, мир!",
        "你好，世界。",
        "こんにちは",
        "안녕하세요",
        "สวัสดี",
        "مرحبا",
        "हिन्दी",
        "😀",
    ):
        assert agreement.covers(text), text


def test_what_depends_on_its_neighbours_stays_with_the_reference() -> None:
    agreement = agreement_for(BertTokenizer(VOCAB)._reference)
    for text in ("Σ", "\ud800", "a\udfffb", "\ue000", "\u302e"):
        assert not agreement.covers(text)


def test_characters_learned_later_are_remembered() -> None:
    agreement = agreement_for(BertTokenizer(VOCAB, tokenize_chinese_chars=False)._reference)
    texts = [chr(0x4E00 + number) for number in range(400)]
    assert all(agreement.covers(text) for text in texts * 2)
    assert agreement._stranger.search(texts[0]) is None


def test_library_and_reference_divide_a_batch_in_order(build: Callable[..., BertTokenizer]) -> None:
    texts = ["the cat", "Σ", "hello", "\ud800", "", "new"]
    assert isinstance(build(engine="tokenizers")._engine, RustEngine)
    assert build(engine="tokenizers")._encode_ids(texts) == build(engine="python")._encode_ids(texts)


VOCABULARIES = ["uncased", "cased", "multilingual-uncased", "multilingual-cased", "chinese"]


def _lines() -> list[str]:
    table = shared("data", "multilingual", "xquad_lines.tsv").read_text(encoding="utf-8")
    lines = [line.split("\t", 1)[1] for line in table.split("\n") if "\t" in line]
    for book in sorted(shared("data", "books").glob("*.txt")):
        lines += book.read_text(encoding="utf-8").split("\n")
    return lines


def _same_on_lines(name: str, lines: list[str]) -> None:
    path = shared("data", "vocab", f"bert-base-{name}-vocab.txt")
    lower = not name.endswith("-cased") and name != "cased"
    slow, fast = (BertTokenizer(path, lower, engine=engine) for engine in ("python", "tokenizers"))
    for start in range(0, len(lines), 2000):
        part = lines[start : start + 2000]
        ids = slow._encode_ids(part)
        assert fast._encode_ids(part) == ids
        pieces = slow._pipeline.pieces(part)
        assert fast._pipeline.pieces(part) == pieces
        assert [[piece.id for piece in row] for row in pieces] == ids


@pytest.mark.parametrize("name", VOCABULARIES)
def test_same_on_a_sample_of_real_text(name: str) -> None:
    _same_on_lines(name, random.Random(0).sample(_lines(), 1000))


@pytest.mark.slow
@pytest.mark.parametrize("name", VOCABULARIES)
def test_same_on_all_real_text(name: str) -> None:
    _same_on_lines(name, _lines())


@pytest.mark.slow
@pytest.mark.parametrize("lower", [True, False])
def test_same_on_every_assigned_character(lower: bool) -> None:
    slow, fast = _both({"do_lower_case": lower}, [], [])
    # Private characters are the reference's; of the unassigned ones a sample will do.
    codes = [code for code in range(0x30000) if unicodedata.category(chr(code)) not in ("Cn", "Co") or code % 97 == 0]
    texts = [f"a{chr(code)}b {chr(code)} B{chr(code)}" for code in codes]
    for start in range(0, len(texts), 50_000):
        part = texts[start : start + 50_000]
        assert fast._encode_ids(part) == slow._encode_ids(part)
