"""The ids that the readable engine remembers are those that it would find out again, and there is a limit to them."""

import copy
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_transformers import BasicTokenizer, BertTokenizer
from pytorch_transformers.tokenizers import memory
from pytorch_transformers.tokenizers.reference import LONGEST_CHUNK, LONGEST_WORD, WordPieceReference

Build = Callable[..., BertTokenizer]
ENGINES = ["auto", "python", "tokenizers"]
TEXTS = [
    "The cats, unable  to hello; world! ",
    "new\nnew\tnew\x0cnew\x0bnew\x1cnew\x85new\u2028new\xa0new\u3000new",
    "中文 café CAFE\u0301 naïve ΑΣ ΑΣΑ İ \u200b \ud800 [MASK]",
    "hello" * 7 + " " + "un" * 51 + " " + "中" * 40,
    "",
]


def _found_out(tokenizer: BertTokenizer, texts: list[str]) -> list[list[int]]:
    """Gives the ids by way of the pieces, which nothing is remembered of."""
    return [[piece.id for piece in row] for row in tokenizer._reference.pieces(texts)]


def _remembered(tokenizer: BertTokenizer) -> tuple[list[str], list[str]]:
    """Gives the chunks and the words that are remembered."""
    engine = tokenizer._reference
    assert isinstance(engine, WordPieceReference)
    chunks = engine._memory[1]
    assert isinstance(chunks._find, partial)
    return list(chunks), list(chunks._find.args[1])


@settings(max_examples=300, derandomize=True)
@given(
    st.text(st.one_of(st.sampled_from(" \n\t\x0b\x0c\x1c\x1f\x85\xa0\u2028\u3000\u0301Σσ.aA\xad"), st.characters())),
    st.booleans(),
    st.sampled_from([None, True, False]),
)
def test_a_space_ends_all_that_looks_at_neighbours(text: str, lower: bool, strip: bool | None) -> None:
    basic = BasicTokenizer(lower, strip_accents=strip)
    assert basic.normalize(text) == " ".join(map(basic.normalize, text.split(" ")))
    assert basic.split(text) == [word for chunk in text.split(" ") for word in basic.split(chunk)]


@pytest.mark.parametrize("basic", [True, False])
def test_second_time_is_the_same(build: Build, basic: bool) -> None:
    tokenizer = build(engine="python", do_basic_tokenize=basic)
    wanted = _found_out(tokenizer, TEXTS)
    assert tokenizer._reference.ids(TEXTS) == wanted
    assert tokenizer._reference.ids(TEXTS) == wanted


def test_rows_are_the_callers_own(build: Build) -> None:
    tokenizer = build()
    first = tokenizer._encode_ids(["hello"])
    wanted = copy.deepcopy(first)
    first[0].append(-1)
    assert tokenizer._encode_ids(["hello"]) == wanted


def test_memory_is_bounded(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "REMEMBERED", 5)
    tokenizer = build(engine="python", max_input_chars_per_word=1000)
    texts = [*TEXTS, "x" * (LONGEST_WORD + 1), "y" * LONGEST_WORD, *map(chr, range(0x4E00, 0x4E40))]
    for _ in range(2):
        assert tokenizer._reference.ids(texts) == _found_out(tokenizer, texts)
    chunks, words = _remembered(tokenizer)
    assert len(chunks) == len(words) == 5


def test_what_is_long_is_not_remembered(build: Build) -> None:
    tokenizer = build(engine="python", max_input_chars_per_word=1000)
    tokenizer._encode_ids(["x" * (LONGEST_WORD + 1), "y" * LONGEST_WORD, "z" * LONGEST_CHUNK])
    assert _remembered(tokenizer) == (["z" * LONGEST_CHUNK], ["y" * LONGEST_WORD, "z" * LONGEST_CHUNK])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("part", "option", "value"),
    [
        ("basic_tokenizer", "do_lower_case", False),
        ("basic_tokenizer", "strip_accents", False),
        ("basic_tokenizer", "tokenize_chinese_chars", False),
        ("wordpiece_tokenizer", "max_input_chars_per_word", 4),
        ("wordpiece_tokenizer", "unk_token", "the"),
    ],
)
def test_changed_options_count_at_once(build: Build, engine: str, part: str, option: str, value: object) -> None:
    tokenizer = build(engine=engine)
    texts = ["Hello unable café 中文 zzz"]
    before = tokenizer._encode_ids(texts)
    tokens = tokenizer.tokenize(texts[0])
    kept = getattr(getattr(tokenizer, part), option)
    setattr(getattr(tokenizer, part), option, value)
    after = tokenizer._encode_ids(texts)
    assert after == _found_out(tokenizer, texts) != before
    assert tokenizer.convert_tokens_to_ids(tokenizer.tokenize(texts[0])) == after[0]
    setattr(getattr(tokenizer, part), option, kept)
    assert tokenizer._encode_ids(texts) == before
    assert tokenizer.tokenize(texts[0]) == tokens


@pytest.mark.parametrize("engine", ENGINES)
def test_changed_tokens_count_at_once(build: Build, engine: str) -> None:
    tokenizer = build(engine=engine)
    before = tokenizer._encode_ids(["zzz hello"])[0]
    tokenizer.add_tokens(["zzz"])
    new = tokenizer.convert_tokens_to_ids("zzz")
    assert tokenizer._encode_ids(["zzz hello"])[0] == [new, *before[1:]]
    tokenizer.unk_token = "the"
    assert tokenizer._encode_ids(["yyy zzz hello"])[0] == [tokenizer.unk_token_id, new, *before[1:]]


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_begin_without_memory(build: Build, engine: str) -> None:
    tokenizer = build(engine=engine)
    size = len(pickle.dumps(tokenizer))
    wanted = tokenizer(TEXTS[:2])["input_ids"]
    assert len(pickle.dumps(tokenizer)) == size
    for other in (pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
        assert _remembered(other) == ([], [])
        assert other(TEXTS[:2])["input_ids"] == wanted
        # The options of the copy are still those of its engine, and of no other tokenizer.
        other.basic_tokenizer.do_lower_case = False
        assert other(TEXTS[:2])["input_ids"] != wanted
    assert tokenizer(TEXTS[:2])["input_ids"] == wanted


def test_threads_share_it(build: Build) -> None:
    texts = [f"{text} {number}" for number in range(50) for text in TEXTS]
    wanted = build(engine="python")._encode_ids(texts)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            tokenizer = build(engine="python")
            assert all(rows == wanted for rows in pool.map(tokenizer._encode_ids, [texts] * 16))
    finally:
        sys.setswitchinterval(interval)
