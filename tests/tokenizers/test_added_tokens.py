"""Special tokens, words that are never split, and added tokens: where they are found, and at what cost."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_transformers import BasicTokenizer, BertTokenizer
from pytorch_transformers.tokenizers.added import TokenMatcher
from shared_data import shared

Build = Callable[..., BertTokenizer]
ENGINES = pytest.mark.parametrize("engine", ["python", "tokenizers", "auto"])


@ENGINES
def test_d1_never_split_adds_to_the_special_tokens(build: Build, engine: str) -> None:
    tokenizer = build(never_split=["[unused1]"], engine=engine)
    assert tokenizer.tokenize("[CLS] [unused1] a [SEP]") == ["[CLS]", "[unused1]", "a", "[SEP]"]
    assert tokenizer.tokenize("(a[unused1].") == ["[UNK]", "a", "[unused1]", "."]


@ENGINES
def test_d1_never_split_keeps_case_and_words(build: Build, engine: str) -> None:
    tokenizer = build(never_split=["New"], engine=engine)
    assert tokenizer.tokenize("New, new New-New") == ["New", ",", "new", "New", "-", "New"]
    # Part of a longer word is not the word.
    assert "New" not in tokenizer.tokenize("Newton aNew New1 _New")


@ENGINES
def test_d1_never_split_beyond_the_vocabulary_is_unknown(build: Build, engine: str) -> None:
    tokenizer = build(never_split=["zzz!"], engine=engine)
    assert tokenizer.tokenize("a zzz!.") == ["a", "zzz!", "."]
    assert tokenizer.encode("zzz!", add_special_tokens=False) == [tokenizer.unk_token_id]
    assert len(tokenizer) == tokenizer.vocab_size


def test_d1_basic_tokenizer() -> None:
    basic = BasicTokenizer(never_split=["[MASK]"])
    assert basic.tokenize("A [MASK], [CLS]") == ["a", "[MASK]", ",", "[", "cls", "]"]
    assert basic.tokenize("A [CLS]", never_split=["[CLS]"]) == ["a", "[CLS]"]
    assert BasicTokenizer().tokenize("[MASK]") == ["[", "mask", "]"]


@ENGINES
def test_d2_added_tokens_are_compared_after_normalisation(build: Build, engine: str) -> None:
    tokenizer = build(engine=engine)
    assert tokenizer.add_tokens(["cool-token", "New"]) == 1  # `new` is in the vocabulary
    tokens = tokenizer.tokenize("a cool-token COOL-Token New new")
    assert tokens == ["a", "cool-token", "cool-token", "new", "new"]
    assert tokenizer.convert_tokens_to_ids("cool-token") == tokenizer.vocab_size


@ENGINES
def test_d2_added_special_tokens_are_compared_exactly(build: Build, engine: str) -> None:
    tokenizer = build(engine=engine)
    assert tokenizer.add_special_tokens({"additional_special_tokens": ["<Ent>"]}) == 1
    assert tokenizer.tokenize("a<Ent>b <ent>") == ["a", "<Ent>", "b", *tokenizer.tokenize("<ent>")]
    assert "<Ent>" not in tokenizer.tokenize("<ent>")


@ENGINES
def test_d2_accents_controls_and_ideographs(build: Build, engine: str) -> None:
    tokenizer = build(engine=engine)
    tokenizer.add_tokens(["Ünder", "中b"])
    assert tokenizer.tokenize("a UNDER u\u0308nd\x00er") == ["a", "ünder", "ünder"]
    assert tokenizer.tokenize("a中b") == ["a", "中b"]
    encoding = tokenizer("a u\u0308nd\x00er.", return_offsets_mapping=True, add_special_tokens=False)
    assert encoding.offsets == [(0, 1), (2, 9), (9, 10)]


def test_cased_added_tokens_keep_their_case(build: Build) -> None:
    tokenizer = build(do_lower_case=False)
    tokenizer.add_tokens("Cool")
    assert tokenizer.tokenize("Cool cool")[0] == "Cool"
    assert tokenizer.tokenize("Cool cool").count("Cool") == 1


@ENGINES
def test_longest_of_tokens_that_begin_alike(build: Build, engine: str) -> None:
    tokenizer = build(engine=engine)
    tokenizer.add_tokens(["<a", "<a>", "<a>>b"])
    assert tokenizer.tokenize("<a><a<a>>b<a>>") == ["<a>", "<a", "<a>>b", "<a>", *tokenizer.tokenize(">")]


class CountingDict(dict[str, bool]):
    """Counts look-ups."""

    lookups = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.lookups += 1
        return super().get(key, default)


def _lookups(count: int) -> int:
    matcher = TokenMatcher.of(f"token{number:05d}" for number in range(count))
    matcher._tokens = CountingDict(matcher._tokens)
    matcher.find("three token words, token00001 and tokens")
    return matcher._tokens.lookups


def test_d3_cost_does_not_depend_on_how_many_were_added() -> None:
    assert _lookups(10) == _lookups(5000) == _lookups(50_000) > 0


def test_d3_adding_does_not_rebuild(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = build()
    engine = tokenizer._engine
    monkeypatch.setattr(tokenizer, "_rebuild", lambda: pytest.fail("rebuilt for an ordinary token"))
    assert tokenizer.add_tokens([f"token{number}" for number in range(5000)]) == 5000
    assert tokenizer.tokenize("a token77 b") == ["a", "token77", "b"]
    assert tokenizer._engine is engine


ALPHABET = st.text("ab[", max_size=8)


@settings(derandomize=True)
@given(st.sets(st.text("ab[", min_size=1, max_size=3), max_size=5), ALPHABET)
def test_matcher_agrees_with_trying_every_token(tokens: set[str], text: str) -> None:
    expected, place = [], 0
    while place < len(text):
        fits = [token for token in tokens if text.startswith(token, place)]
        if fits:
            expected.append((place, place + len(max(fits, key=len))))
        place += len(max(fits, key=len, default=" "))
    matcher = TokenMatcher.of(tokens)
    assert matcher.find(text) == expected
    assert matcher.may_match(text) or not expected


def test_split_special_tokens(build: Build) -> None:
    tokenizer = build()
    assert tokenizer.tokenize("[MASK]") == ["[MASK]"]
    assert tokenizer.tokenize("[MASK]", split_special_tokens=True) == ["[", "mask", "]"]
    assert build(split_special_tokens=True).tokenize("[MASK]") == ["[", "mask", "]"]
    assert build(split_special_tokens=True)("[MASK]", split_special_tokens=False)["input_ids"][1] == 4


def test_special_tokens_touching_text(build: Build) -> None:
    assert build().tokenize("a[MASK]b[SEP].") == ["a", "[MASK]", "b", "[SEP]", "."]


def test_a_token_of_which_nothing_is_left_is_never_found(build: Build) -> None:
    tokenizer = build()
    assert tokenizer.add_tokens(["\u0301"]) == 1
    assert tokenizer.tokenize("e\u0301") == ["e"]


def test_roles(build: Build) -> None:
    tokenizer = build()
    assert (tokenizer.cls_token, tokenizer.cls_token_id) == ("[CLS]", 2)
    assert (tokenizer.bos_token, tokenizer.bos_token_id) == (None, None)
    assert tokenizer.all_special_tokens == ["[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"]
    assert tokenizer.all_special_ids == [1, 3, 0, 2, 4]
    tokenizer.bos_token = "<s>"
    assert tokenizer.bos_token_id == tokenizer.vocab_size == len(tokenizer) - 1
    assert tokenizer.tokenize("<s>a") == ["<s>", "a"]
    tokenizer.additional_special_tokens = ["<x>", "[unused1]"]
    assert tokenizer.additional_special_tokens_ids == [tokenizer.vocab_size + 1, 5]
    assert tokenizer.special_tokens_map["additional_special_tokens"] == ["<x>", "[unused1]"]
    tokenizer.mask_token = None
    assert tokenizer.tokenize("[MASK]") == ["[", "mask", "]"]
    with pytest.raises(AttributeError, match="set cls_token"):
        tokenizer.cls_token_id = 5
    with pytest.raises(TypeError, match="additional_special_tokens"):
        tokenizer.add_special_tokens({"additional_special_token": ["x"]})
    with pytest.raises(TypeError, match="list of tokens"):
        tokenizer.additional_special_tokens = "abc"


def test_unknown_token_can_be_changed(build: Build) -> None:
    tokenizer = build(engine="tokenizers")
    tokenizer.unk_token = "[unused1]"
    assert tokenizer.encode("zzzz", add_special_tokens=False) == [5]


def test_a_role_beyond_the_vocabulary_gets_an_id(build: Build, caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = build(pad_token="<PAD>")
    assert tokenizer.pad_token_id == tokenizer.vocab_size
    assert "<PAD>" in caplog.text
    assert tokenizer(["a", "a b"], padding=True)["input_ids"][0][-1] == tokenizer.pad_token_id


def test_d6_unknown_tokens_have_the_unknown_id(build: Build) -> None:
    tokenizer = build()
    assert tokenizer.convert_tokens_to_ids(["zzz", "the"]) == [1, tokenizer.vocab["the"]]
    assert tokenizer.convert_tokens_to_ids("zzz") == 1


def test_d6_published_vocabulary() -> None:
    tokenizer = BertTokenizer(shared("data", "vocab", "bert-base-uncased-vocab.txt"))
    assert tokenizer.convert_tokens_to_ids(["zzz", "the"]) == [100, 1996]


def test_ids_to_tokens_is_a_view(build: Build) -> None:
    tokenizer = build()
    tokenizer.add_tokens("more")
    view = tokenizer.ids_to_tokens
    assert view == dict(enumerate(tokenizer.vocab))
    assert (len(view), view[18], view.get(80)) == (80, "a", None)
    assert -1 not in view
    word: Any = "a"
    assert word not in view
    assert not any(isinstance(value, dict) and len(value) >= 80 for value in vars(view).values())
    assert pickle.loads(pickle.dumps(view)) == view


def test_ids_to_tokens(build: Build) -> None:
    tokenizer = build()
    assert tokenizer.convert_ids_to_tokens([2, 18, 3]) == ["[CLS]", "a", "[SEP]"]
    assert tokenizer.convert_ids_to_tokens([2, 18, 3], skip_special_tokens=True) == ["a"]
    assert tokenizer.convert_ids_to_tokens(0) == "[PAD]"
    for number in (-1, len(tokenizer)):
        with pytest.raises(ValueError, match=f"{number}"):
            tokenizer.convert_ids_to_tokens([number])
