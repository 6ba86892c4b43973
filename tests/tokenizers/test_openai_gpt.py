"""`OpenAIGPTTokenizer`: recorded outputs of the original, both ways to words, engines that agree, files, errors."""

import copy
import importlib.util
import itertools
import json
import logging
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytorch_transformers import AutoTokenizer, BasicTokenizer, OpenAIGPTTokenizer
from pytorch_transformers.models.openai_gpt import tokenizer as module
from pytorch_transformers.models.warn import warn_once
from pytorch_transformers.tokenization_openai import text_standardize
from pytorch_transformers.tokenizers import memory
from pytorch_transformers.tokenizers.aligned import unchanged
from pytorch_transformers.tokenizers.letter_reference import LetterReference, LibraryLetters
from pytorch_transformers.tokenizers.standardize import align, standardize_aligned
from shared_data import shared

ENGINES = ["python", "tokenizers", "auto"]
Build = Callable[..., OpenAIGPTTokenizer]
Save = Callable[..., Path]
MANY = settings(max_examples=200, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
MISSING = [name for name in ("ftfy", "spacy") if importlib.util.find_spec(name) is None]
needs_spacy = pytest.mark.skipif(bool(MISSING), reason=f"needs the extra `gpt`: {' and '.join(MISSING)} not installed")
#: Whether ftfy and spaCy split texts; the second way is skipped where they are missing.
WAYS = [False, pytest.param(True, marks=needs_spacy)]

PARTS = st.sampled_from(
    [
        *(" ", "  ", "\n", " \n ", "\n\n", "\t", "\r\n", "\x1c", "\x85", "\xa0", "\u2028", "\u3000", "\u200b", "\x00"),
        *("the", "The", "CATS", "isn't", "U.S.", "a.m.", "12", "--", "---", "!!", '"', "(", "\\", "{}", "…", "—", "´"),
        *(
            "é",
            "e\u0301",
            "naïve",
            "中文",
            "한국",
            "😀",
            "\ud800",
            "�",
            "&amp;",
            "&lt;b",
            "â€œ",
            "“q”",
            "ﬁ",
            "İ",
            "Σ",
            "ς",
        ),
        *("<unk>", "<unk", "new", "NEW", "cool-token", "<x>", "</w>", "w</w>"),
    ]
)
TEXTS = st.lists(st.one_of(PARTS, st.text(max_size=4)), max_size=10).map("".join)
ADDED = st.lists(st.sampled_from(["new", "Cool-Token", "é", "中", "the cats"]), max_size=3, unique=True)
SPECIAL = st.lists(st.sampled_from(["<x>", "<x><y>", "The"]), max_size=2, unique=True)


@pytest.fixture
def build(letter_pairs: Any) -> Build:
    """Builds a tokenizer over the small vocabulary, with the words of BERT unless something else is asked for."""

    def make(**options: Any) -> OpenAIGPTTokenizer:
        return OpenAIGPTTokenizer(letter_pairs.vocab, letter_pairs.merges, **{"use_spacy": False, **options})

    return make


def _goldens(name: str, count: int) -> list[dict[str, Any]]:
    path = shared("goldens", "tokenizers", "openai_gpt", f"{name}.jsonl")
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(records) == count
    return records


def _original(**options: Any) -> OpenAIGPTTokenizer:
    folder = shared("goldens", "tokenizers", "openai_gpt")
    return OpenAIGPTTokenizer.from_pretrained(folder, split_special_tokens=True, **options)


# The original.


@pytest.mark.parametrize("engine", ENGINES)
def test_goldens_of_words(engine: str) -> None:
    tokenizer = _original(engine=engine, use_spacy=False)
    for record in _goldens("bpe_words", 627):
        assert tokenizer.bpe(record["word"]).split(" ") == record["pieces"]
        assert list(_ids_of(tokenizer, record["word"])) == tokenizer.convert_tokens_to_ids(record["pieces"])


def _ids_of(tokenizer: OpenAIGPTTokenizer, word: str) -> tuple[int, ...]:
    engine = tokenizer._engine
    assert isinstance(engine, (LetterReference, LibraryLetters))
    return engine._memory.words[word]


def test_goldens_of_standardizing() -> None:
    for record in _goldens("encode", 352):
        assert text_standardize(record["ftfy"]) == record["standardized"]


@pytest.mark.parametrize("engine", ENGINES)
def test_goldens_from_words_on(engine: str) -> None:
    """What needs neither ftfy nor spaCy."""
    tokenizer = _original(engine=engine, use_spacy=False)
    for record in _goldens("encode", 352):
        words = [word.lower() for word in record["words"]]
        assert [token for word in words for token in tokenizer.bpe(word).split(" ")] == record["tokens"]
        assert [number for word in words for number in _ids_of(tokenizer, word)] == record["ids"]


@needs_spacy
@pytest.mark.parametrize("engine", ENGINES)
def test_goldens(engine: str) -> None:
    tokenizer = _original(engine=engine)
    assert tokenizer.uses_spacy
    records = _goldens("encode", 352)
    for record in records:
        assert tokenizer._words.words(record["text"]) == [word.lower() for word in record["words"]]
        assert tokenizer.tokenize(record["text"]) == record["tokens"], record["text"]
        assert tokenizer.encode(record["text"]) == record["ids"], record["text"]
    assert tokenizer([record["text"] for record in records])["input_ids"] == [record["ids"] for record in records]


@pytest.mark.parametrize("engine", ENGINES)
def test_words_of_bert_where_spacy_is_missing(engine: str) -> None:
    tokenizer, basic = _original(engine=engine, use_spacy=False), BasicTokenizer()
    for record in _goldens("encode", 352):
        wanted = [token for word in basic.tokenize(record["text"]) for token in tokenizer.bpe(word).split(" ")]
        assert tokenizer.tokenize(record["text"]) == wanted


# Properties.


@MANY
@given(TEXTS)
@example(" \t\n \n--\\ +++{{ ")
def test_standardizing_keeps_the_places(text: str) -> None:
    aligned = standardize_aligned(unchanged(text))
    assert aligned.text == text_standardize(text)
    assert len(aligned.positions) == len(aligned.text)
    assert text_standardize(aligned.text) == aligned.text
    assert list(aligned.positions) == sorted(aligned.positions)
    for char, place in zip(aligned.text, aligned.positions, strict=True):
        assert char == text[place] or char in " \n-.'"


@MANY
@given(TEXTS, TEXTS)
@example("a&amp;b “c”\r\nd", 'a&b "c"\nd')
@example("", "a")
def test_alignment_is_in_order(old: str, new: str) -> None:
    aligned = align(old, new)
    assert aligned.text == new
    places = list(aligned.positions)
    assert len(places) == len(new)
    assert places == sorted(places)
    assert all(0 <= place < max(len(old), 1) for place in places)


def test_alignment_finds_what_stayed() -> None:
    old, new = "caf\u00c3\u00a9 &lt;here&gt; x", "caf\u00e9 <here> x"
    aligned = align(old, new)
    assert old[slice(*aligned.span(new.index("here"), new.index("here") + 4))] == "here"
    assert old[slice(*aligned.span(new.index("x"), new.index("x") + 1))] == "x"
    assert old[slice(*aligned.span(0, 4))].startswith("caf")
    assert len(align("ab" * 900, "cab" * 700).positions) == 2100


@pytest.mark.parametrize("spacy", WAYS)
@MANY
@given(st.lists(TEXTS, min_size=1, max_size=3), ADDED, SPECIAL)
def test_engines_agree_on_any_text(
    letter_pairs: Any, spacy: bool, texts: list[str], added: list[str], special: list[str]
) -> None:
    slow, *others = (
        OpenAIGPTTokenizer(*letter_pairs, use_spacy=spacy, engine=engine)  # type: ignore[arg-type]
        for engine in ENGINES
    )
    for tokenizer in (slow, *others):
        tokenizer.add_tokens(added)
        tokenizer.add_tokens(special, special_tokens=True)
    pieces = slow._pipeline.pieces(texts)
    ids = [[piece.id for piece in row] for row in pieces]
    for tokenizer in (slow, *others):
        assert tokenizer._encode_ids(texts) == ids
        assert tokenizer._encode_ids(texts) == ids
        assert tokenizer._pipeline.pieces(texts) == pieces
    for text, row in zip(texts, pieces, strict=True):
        for before, after in itertools.pairwise(row):
            assert before.start <= after.start
            assert before.word <= after.word
        assert all(0 <= piece.start < piece.end <= len(text) for piece in row)


@pytest.mark.parametrize("spacy", WAYS)
@MANY
@given(st.lists(st.one_of(st.integers(0, 10), st.integers(0, 10_000)), max_size=20))
def test_decoding_any_ids_never_raises(letter_pairs: Any, spacy: bool, ids: list[int]) -> None:
    tokenizer = OpenAIGPTTokenizer(*letter_pairs, use_spacy=spacy, special_tokens=["<x>"])
    known = [number % len(tokenizer) for number in ids]
    assert isinstance(tokenizer.decode(known), str)
    assert isinstance(tokenizer.decode(known, skip_special_tokens=True, clean_up_tokenization_spaces=False), str)


def _lines() -> list[str]:
    table = shared("data", "multilingual", "xquad_lines.tsv").read_text(encoding="utf-8")
    lines = [line.split("\t", 1)[1] for line in table.split("\n") if "\t" in line]
    for book in sorted(shared("data", "books").glob("*.txt")):
        lines += book.read_text(encoding="utf-8").split("\n")
    return lines


def _same_on(lines: list[str], spacy: bool) -> None:
    slow, *others = (_original(engine=engine, use_spacy=spacy) for engine in ENGINES)
    for start in range(0, len(lines), 2000):
        part = lines[start : start + 2000]
        ids = slow._encode_ids(part)
        for fast in others:
            assert fast._encode_ids(part) == ids
        assert [[piece.id for piece in row] for row in slow._pipeline.pieces(part)] == ids


@pytest.mark.parametrize("spacy", WAYS)
def test_same_on_a_sample_of_real_text(spacy: bool) -> None:
    _same_on(random.Random(0).sample(_lines(), 1000), spacy)


@pytest.mark.slow
@pytest.mark.parametrize("spacy", WAYS)
def test_same_on_all_real_text(spacy: bool) -> None:
    _same_on(_lines(), spacy)


# Words.


def test_known_ids() -> None:
    tokenizer = _original(use_spacy=False)
    assert tokenizer.tokenize("Lower newest") == ["lower</w>", "newest</w>"]
    assert tokenizer.decode(tokenizer.encode("Hello, World!")) == "hello, world!"
    assert (
        tokenizer.decode(tokenizer.encode("hello , world !"), clean_up_tokenization_spaces=False) == "hello , world !"
    )
    assert tokenizer.encode("\ue000") == [0]


@needs_spacy
def test_a_newline_is_a_word(build: Build) -> None:
    tokenizer = build(use_spacy=True)
    assert tokenizer.tokenize("the\n\n the") == ["the</w>", "\n</w>", "the</w>"]
    spans = tokenizer("the\n\n the", return_offsets_mapping=True)["offset_mapping"]
    assert spans == [(0, 3), (3, 6), (6, 9)]


@needs_spacy
def test_d4_offsets_through_ftfy(build: Build) -> None:
    text = "The caf\u00c3\u00a9s &amp; \u201ccats\u201d"
    encoding = build(use_spacy=True)(text, return_offsets_mapping=True)
    words: dict[int | None, list[tuple[int, int]]] = {}
    for word, span in zip(encoding.word_ids(), encoding["offset_mapping"], strict=True):
        words.setdefault(word, []).append(span)
    found = [text[spans[0][0] : spans[-1][1]] for spans in words.values()]
    # Of what became one sign, the span has what it became.
    assert found == ["The", "caf\u00c3\u00a9s", "&", "\u201c", "cats", "\u201d"]


def test_d4_offsets(build: Build) -> None:
    text = "The CAFÉS, cats"
    encoding = build()(text, return_offsets_mapping=True)
    words: dict[int | None, str] = {}
    for word, (start, end) in zip(encoding.word_ids(), encoding["offset_mapping"], strict=True):
        words[word] = words.get(word, "") + text[start:end]
    assert list(words.values()) == ["The", "CAFÉS", ",", "cats"]


def test_missing_packages_are_said_once(
    letter_pairs: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    warn_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        tokenizers = [OpenAIGPTTokenizer(*letter_pairs) for _ in range(3)]
    assert not any(tokenizer.uses_spacy for tokenizer in tokenizers)
    assert len(caplog.records) == 1
    assert "ftfy and spacy not installed; pip install 'pytorch-transformers[gpt]'" in caplog.text
    caplog.clear()
    OpenAIGPTTokenizer(*letter_pairs, use_spacy=False)
    assert not caplog.records
    with pytest.raises(ImportError, match="ftfy and spacy not installed"):
        OpenAIGPTTokenizer(*letter_pairs, use_spacy=True)


def test_both_packages_are_asked_for() -> None:
    assert module.WORD_PACKAGES == ("ftfy", "spacy")


# Tokens.


def test_d2_added_tokens_are_found_in_any_case(build: Build) -> None:
    tokenizer = build()
    assert tokenizer.add_tokens(["cool-token", "New"]) == 2
    assert tokenizer.tokenize("the cool-token COOL-Token New new") == ["the</w>", *("cool-token",) * 2, *("new",) * 2]
    assert tokenizer.decode(tokenizer.encode("the new cats")) == "the new cats"


def test_d8_padding_needs_a_token(build: Build) -> None:
    tokenizer = build()
    assert tokenizer.special_tokens_map == {"unk_token": "<unk>"}
    with pytest.raises(ValueError, match="no padding token"):
        tokenizer(["the", "the cats"], padding=True)
    size = len(tokenizer)
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    assert tokenizer.pad_token_id == size
    assert list(tokenizer(["the", "the cats"], padding=True)) == ["input_ids", "attention_mask"]


def test_classic_special_tokens(build: Build, letter_pairs: Any) -> None:
    size = len(letter_pairs.vocab)
    tokenizer = build(special_tokens=["_start_", "_delimiter_", "_classify_"], max_len=7)
    assert tokenizer.special_tokens == {"_start_": size, "_delimiter_": size + 1, "_classify_": size + 2}
    assert tokenizer.max_len == 7
    assert tokenizer.encode("_start_ The cats _classify_") == [size, *tokenizer.encode("the cats"), size + 2]
    ids = tokenizer.encode("_start_ the cats , isn't")
    assert tokenizer.decode(ids, True, False).startswith("the cats ,")
    assert tokenizer.decode(ids, False, True).startswith("_start_ the cats,")
    tokenizer.set_special_tokens(["<a>"])
    assert tokenizer.encode("<a>") == [size]
    assert len(tokenizer) == size + 1


def test_classic_vocabulary_of_a_few_letters() -> None:
    tokens = ["l", "o", "w", "e", "r", "w</w>", "r</w>", "lo", "low", "er</w>", "low</w>"]
    vocab = {token: number for number, token in enumerate(tokens)}
    merges = ["#version: 0.2", "l o", "lo w", "e r</w>", "lo w</w>", ""]
    for engine in ENGINES:
        tokenizer = OpenAIGPTTokenizer(
            vocab,
            merges,
            use_spacy=False,
            special_tokens=["<unk>", "<pad>"],
            engine=engine,  # type: ignore[arg-type]
        )
        assert tokenizer.tokenize("lower low") == ["low", "er</w>", "low</w>"]
        assert tokenizer.convert_tokens_to_ids(["low", "er</w>", "<unk>"]) == [8, 9, 11]
        assert tokenizer.encode("lowz low") == [8, 11, 10]
        assert tokenizer.convert_ids_to_tokens(12) == "<pad>"


# Files.


@pytest.mark.parametrize("names", [("vocab.json", "merges.txt"), ("encoder_bpe_40000.json", "vocab_40000.bpe")])
def test_two_files_alone_are_enough(
    letter_pairs: Any, save_pairs: Save, tmp_path: Path, names: tuple[str, str]
) -> None:
    save_pairs(tmp_path, letter_pairs, *names)
    tokenizer = OpenAIGPTTokenizer.from_pretrained(tmp_path, use_spacy=False)
    assert tokenizer.tokenize("The the") == ["the</w>", "the</w>"]
    (tmp_path / "special_tokens.txt").write_text("<a>\n<b>\n", encoding="utf-8")
    tokenizer = OpenAIGPTTokenizer.from_pretrained(tmp_path, use_spacy=False)
    assert list(tokenizer.special_tokens.values()) == [len(letter_pairs.vocab), len(letter_pairs.vocab) + 1]


def test_d9_save_and_load(build: Build, tmp_path: Path) -> None:
    tokenizer = build(special_tokens=["_start_"], pad_token="<pad>", model_max_length=77)
    tokenizer.add_tokens(["New"])
    tokenizer.save_pretrained(tmp_path)
    for again in (OpenAIGPTTokenizer.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)):
        assert type(again) is OpenAIGPTTokenizer
        assert not again.uses_spacy
        assert again.init_options == tokenizer.init_options
        assert len(again) == len(tokenizer)
        assert again.special_tokens == tokenizer.special_tokens
        text = "_start_ the NEW cats<pad>"
        assert again.encode(text) == tokenizer.encode(text)


def test_published_name_sets_the_length(
    letter_pairs: Any, save_pairs: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "openai-gpt").mkdir()
    save_pairs(tmp_path / "openai-gpt", letter_pairs)
    monkeypatch.chdir(tmp_path)
    assert OpenAIGPTTokenizer.from_pretrained("openai-gpt", use_spacy=False).max_len == 512


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, ""),
        (("normalizer", "lowercase", False), r"normalizer\.lowercase=False"),
        (("model", "end_of_word_suffix", ""), r"model\.end_of_word_suffix=''"),
        (("pre_tokenizer", "type", "ByteLevel"), r"pre_tokenizer\.type='ByteLevel'"),
    ],
)
def test_library_file(letter_pairs: Any, build: Build, tmp_path: Path, change: Any, message: str) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    library = Tokenizer(models.BPE(*letter_pairs, unk_token="<unk>", end_of_word_suffix="</w>"))
    library.normalizer = normalizers.BertNormalizer()
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    content = json.loads(library.to_str())
    if change:
        content[change[0]][change[1]] = change[2]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    if change:
        with pytest.raises(ValueError, match=message):
            OpenAIGPTTokenizer.from_pretrained(tmp_path)
        return
    tokenizer = OpenAIGPTTokenizer.from_pretrained(tmp_path)
    text = "The cafés, isn't it? 12 中文"
    assert not tokenizer.uses_spacy
    assert tokenizer.encode(text) == library.encode(text).ids == build().encode(text)


@pytest.mark.parametrize("spacy", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_copies_work(build: Build, engine: str, spacy: bool) -> None:
    tokenizer = build(engine=engine, use_spacy=spacy, special_tokens=["<x>"])
    text = ["the new cats " * 3, "cafés <x>\n"]
    wanted = tokenizer(text)["input_ids"]
    for other in (pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
        assert other(text)["input_ids"] == wanted
        assert other.uses_spacy == spacy


def test_memory_is_bounded(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "REMEMBERED", 5)
    tokenizer = build(engine="python")
    texts = [" ".join(map(chr, range(0x4E00, 0x4E40))), "the cats sat on the mat"]
    wanted = [[piece.id for piece in row] for row in tokenizer._reference.pieces(texts)]
    assert tokenizer._reference.ids(texts) == wanted
    assert tokenizer._reference.ids(texts) == wanted
    reference = tokenizer._letters
    assert len(reference._memory.words) == len(reference._memory.parts) == 5


def test_bad_options(build: Build) -> None:
    with pytest.raises(TypeError, match="use_spacy must be True or False"):
        build(use_spacy="no")
    with pytest.raises(TypeError, match="has no option 'spacy'"):
        build(spacy=True)
