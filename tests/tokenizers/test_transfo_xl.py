"""The tokenizer of Transformer-XL: the original's vocabulary, words and punctuation, files, a vocabulary that grows."""

import copy
import importlib.util
import itertools
import json
import logging
import pickle
import re
import sys
import time
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from published import published as published_module
from pytorch_transformers.models.transfo_xl import punctuation as punctuation_module
from pytorch_transformers.models.transfo_xl.tokenizer import TransfoXLTokenizer, Vocab
from pytorch_transformers.tokenizers.calling import TextEncoder
from shared_data import shared

GOLDENS = ("goldens", "transfo_xl", "vocabulary")
SETS = ("wt103_like", "lm1b_like", "min_freq", "max_size", "enwik8_like")
ENGINES = pytest.mark.parametrize("engine", ["python", "tokenizers", "auto"])
LINES = ["the cat sat on the mat .", "Hello , World !", "the Dog <unk> <eos> sat ,", "naïve 東京 ΟΔΟΣ straße"]


def built(*lines: str, special: tuple[str, ...] = ("<eos>", "<unk>"), **options: Any) -> TransfoXLTokenizer:
    """A tokenizer with the words of some lines."""
    tokenizer = TransfoXLTokenizer(special=list(special), **options)
    tokenizer.count_sents([tokenizer.tokenize(line) for line in lines or LINES])
    tokenizer.build_vocab()
    return tokenizer


def rows(encoded: Any) -> Any:
    return encoded.tolist() if isinstance(encoded, torch.Tensor) else [row.tolist() for row in encoded]


# The original program.


def golden(name: str, engine: str = "auto") -> tuple[TransfoXLTokenizer, dict[str, Any], Path]:
    """A tokenizer that was built as the original was, what that gave, and the corpus."""
    folder = shared(*GOLDENS)
    recorded: dict[str, Any] = json.loads((folder / "golden.json").read_text(encoding="utf-8"))[name]
    options = dict(recorded["init"])
    if "vocab_file" in options:
        options["vocab_file"] = folder / options["vocab_file"]
    tokenizer = TransfoXLTokenizer(**options, engine=engine)
    if recorded["count"] is not None:
        tokenizer.count_file(folder / "corpus.txt", **recorded["count"])
    tokenizer.build_vocab()
    return tokenizer, recorded, folder / "corpus.txt"


def test_every_golden_is_looked_at() -> None:
    assert set(json.loads((shared(*GOLDENS) / "golden.json").read_text(encoding="utf-8"))) == set(SETS)


@ENGINES
@pytest.mark.parametrize("name", SETS)
def test_vocabulary_is_that_of_the_original(name: str, engine: str) -> None:
    tokenizer, recorded, corpus = golden(name, engine)
    assert tokenizer.idx2sym == recorded["idx2sym"]
    assert tokenizer.sym2idx == {symbol: number for number, symbol in enumerate(recorded["idx2sym"])}
    assert (tokenizer.unk_idx, tokenizer.eos_idx) == (recorded["unk_idx"], recorded["eos_idx"])
    assert rows(tokenizer.encode_file(corpus, **recorded["encode"])) == recorded["encoded"]
    for entry in recorded["tokenize"]:
        assert tokenizer.tokenize(entry["line"]) == entry["plain"]
        assert tokenizer.tokenize(entry["line"], add_eos=True) == entry["eos"]
        assert tokenizer.tokenize(entry["line"], add_double_eos=True) == entry["double"]
    lines = [entry["line"] for entry in recorded["tokenize"]]
    if "indices" in recorded:
        assert tokenizer(lines)["input_ids"] == recorded["indices"]
        assert [tokenizer.convert_to_tensor(entry["plain"]).tolist() for entry in recorded["tokenize"]] == recorded[
            "indices"
        ]


@pytest.mark.parametrize("name", SETS)
def test_vocabulary_of_the_original_survives_saving(name: str, tmp_path: Path) -> None:
    tokenizer, recorded, corpus = golden(name)
    tokenizer.save_pretrained(tmp_path)
    loaded = TransfoXLTokenizer.from_pretrained(tmp_path)
    assert loaded.idx2sym == recorded["idx2sym"]
    assert loaded.init_options == tokenizer.init_options
    assert (loaded.unk_idx, loaded.eos_idx) == (recorded["unk_idx"], recorded["eos_idx"])
    assert rows(loaded.encode_file(corpus, **recorded["encode"])) == recorded["encoded"]


@pytest.mark.parametrize("name", ["wikitext-2", "wikitext-103"])
def test_equal_to_the_published_package_on_real_text(name: str) -> None:
    original = published_module("pytorch_pretrained_bert", "tokenization_transfo_xl")
    path = shared("data", "lm", name, "valid.txt")
    theirs: Any
    ours: Any
    theirs, ours = (each(special=["<eos>"], min_freq=2) for each in (original.TransfoXLTokenizer, TransfoXLTokenizer))
    for tokenizer in (theirs, ours):
        tokenizer.count_file(str(path), add_eos=True)
        tokenizer.build_vocab()
    assert ours.idx2sym == theirs.idx2sym
    ids = rows(ours.encode_file(path, ordered=True))
    assert ids == rows(theirs.encode_file(str(path), ordered=True))
    assert ours.decode(ids[:500]) == theirs.decode(ids[:500])
    assert ours.decode(ids[:500], exclude={0}) == theirs.decode(ids[:500], exclude={0})


# Words.


def test_default_is_words_between_white_space() -> None:
    tokenizer = built("hello , world")
    assert tokenizer.tokenize("hello, world") == ["hello,", "world"]
    assert tokenizer.encode("hello, world") == [tokenizer.unk_token_id, tokenizer.get_idx("world")]
    assert tokenizer.decode(tokenizer.encode("hello , world")) == "hello , world"


def test_special_tokens_are_whole_words() -> None:
    tokenizer = built()
    eos = tokenizer.eos_token_id
    assert tokenizer.encode("x<eos>y") == [tokenizer.unk_token_id]
    assert tokenizer.encode("the <eos> cat")[1] == eos
    assert tokenizer.encode("<eos>") == [eos]


def test_delimiters_and_characters() -> None:
    tokenizer = built("a,b,,c", delimiter=",")
    assert tokenizer.tokenize(" a,b,,c\n") == ["a", "b", "", "c"]
    ids = tokenizer.encode("a,,b")
    assert tokenizer.decode(ids) == "a,,b"
    spans = tokenizer(" a,,b", return_offsets_mapping=True)["offset_mapping"]
    assert [" a,,b"[start:end] for start, end in spans] == ["a", "", "b"]
    letters = built("ab c", delimiter="")
    assert letters.tokenize(" ab c ") == ["a", "b", " ", "c"]
    assert letters.decode(letters.encode("c ab")) == "c ab"
    assert letters("c ab", return_offsets_mapping=True)["offset_mapping"] == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_special_tokens_keep_their_case() -> None:
    tokenizer = built("the <UNK> CAT", special=("<UNK>",), lower_case=True)
    assert tokenizer.idx2sym[0] == "<UNK>"
    assert tokenizer.unk_token == "<UNK>"
    assert tokenizer.tokenize("THE <UNK> Cat") == ["the", "<UNK>", "cat"]
    assert tokenizer.encode("THE <UNK> dog") == [tokenizer.get_idx("the"), 0, 0]


@ENGINES
@pytest.mark.parametrize("lower_case", [False, True])
def test_spans_are_those_of_the_words(engine: str, lower_case: bool) -> None:
    tokenizer = built(lower_case=lower_case, engine=engine)
    for line in [*LINES, "  the\tcat\u2028sat\u3000\x1con \x85 ", "İstanbul ΑΣ Σ the", ""]:
        encoding = tokenizer(line, return_offsets_mapping=True)
        assert [line[start:end] for start, end in encoding["offset_mapping"]] == line.split()
        assert encoding.word_ids() == list(range(len(line.split())))


TEXT = st.text(
    st.sampled_from("ab AΣσİi ß.,<>-'\u2028\u00a0\x1c\x0b東é\n\t") | st.characters(), max_size=30
) | st.lists(st.sampled_from(["the", "cat", "<eos>", "<unk>", "New", "<pad>", "x<pad>", "ΟΔΟΣ", "\ud800"])).map(
    " ".join
)


@pytest.mark.parametrize("lower_case", [False, True])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(text=TEXT)
def test_engines_agree_on_any_text(lower_case: bool, text: str) -> None:
    choices: list[dict[str, Any]] = [{}, {"pad_token": "<pad>"}]
    for options in choices:
        ours, library = (built(lower_case=lower_case, engine=engine, **options) for engine in ("python", "tokenizers"))
        for tokenizer in (ours, library):
            tokenizer.add_tokens(["New", "ΟΔΟΣ"])
        left, right = (each([text, "the cat"], return_offsets_mapping=True) for each in (ours, library))
        assert dict(left) == dict(right)
        assert ours([text])["input_ids"] == library([text])["input_ids"] == [left["input_ids"][0]]


@given(words=st.lists(st.text(min_size=1, max_size=5).filter(lambda word: word.split() == [word]), min_size=1))
def test_known_words_come_back(words: list[str]) -> None:
    text = " ".join(words)
    tokenizer = built(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode(text)) == words
    assert [tokenizer.get_sym(tokenizer.get_idx(word)) for word in words] == words


def test_unknown_word_without_unknown_token_is_an_error() -> None:
    tokenizer = built("a b", special=())
    assert tokenizer.unk_token is None
    assert tokenizer.unk_token_id is None
    for ask in (
        lambda: tokenizer.encode("a zebra"),
        lambda: tokenizer.get_idx("zebra"),
        lambda: tokenizer("a zebra", return_offsets_mapping=True),
        lambda: tokenizer.convert_to_tensor(["zebra"]),
    ):
        with pytest.raises(ValueError, match=r"'zebra' is not in the vocabulary.*unknown token"):
            ask()


def test_no_special_token_that_the_vocabulary_does_not_hold() -> None:
    tokenizer = built("a b", special=("<unk>",))
    assert tokenizer.special_tokens_map == {"unk_token": "<unk>"}
    assert tokenizer.all_special_tokens == ["<unk>"]
    assert len(tokenizer) == tokenizer.vocab_size == 3
    tokenizer.add_special("<eos>")
    assert (tokenizer.eos_token, tokenizer.eos_token_id, tokenizer.eos_idx) == ("<eos>", 3, 3)
    tokenizer.add_symbol("<formula>")
    assert tokenizer.additional_special_tokens == ["<formula>"]


def test_padding_truncation_and_tensors() -> None:
    tokenizer = built(pad_token="<pad>")
    assert tokenizer.pad_token_id == tokenizer.vocab_size
    batch = tokenizer(["the cat", "the cat sat on"], padding=True, return_tensors="pt", return_attention_mask=True)
    assert list(batch["input_ids"].shape) == [2, 4]
    assert batch["input_ids"][0, 2:].tolist() == [tokenizer.pad_token_id] * 2
    assert batch["attention_mask"].sum(1).tolist() == [2, 4]
    assert set(tokenizer("the")) == {"input_ids"}
    assert tokenizer.tokenize("the cat sat") == ["the", "cat", "sat"]
    assert len(tokenizer("the cat sat", truncation=True, max_length=2)["input_ids"]) == 2
    windows = tokenizer("the cat sat on", truncation=True, max_length=2, return_overflowing_tokens=True)
    assert [len(row) for row in windows["input_ids"]] == [2, 2]
    assert tokenizer.decode(batch["input_ids"][0], skip_special_tokens=True) == "the cat"


# A vocabulary that grows.


def test_many_symbols_are_added_fast_and_the_engine_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    builds = []
    build = TransfoXLTokenizer._build_engine

    def counted(self: TransfoXLTokenizer) -> None:
        builds.append(1)
        build(self)

    monkeypatch.setattr(TransfoXLTokenizer, "_build_engine", counted)
    tokenizer = TransfoXLTokenizer()
    builds.clear()
    start = time.perf_counter()
    for number in range(267_734):
        tokenizer.add_symbol(f"w{number}")
    tokenizer.add_special("<unk>")
    assert not builds
    assert tokenizer.encode("w5 w267733 x") == [5, 267_733, 267_734]
    assert time.perf_counter() - start < 20  # 0.5 s where it was written; a rebuild for each would take hours
    assert len(builds) == 1


@ENGINES
def test_every_change_is_seen(engine: str) -> None:
    tokenizer = built("a b", engine=engine)
    assert tokenizer.encode("a c") == [2, 1]
    tokenizer.add_symbol("c")
    assert tokenizer.encode("a c") == [2, 4]
    assert tokenizer.vocab_size == len(tokenizer) == 5
    tokenizer.count_sents([["d"] * 9])
    tokenizer.build_vocab()
    assert tokenizer.idx2sym == ["<eos>", "<unk>", "d", "a", "b"]
    assert tokenizer.encode("d a c") == [2, 3, 1]


def test_added_tokens_stand_behind_the_vocabulary() -> None:
    tokenizer = built("a b", pad_token="<pad>")
    assert tokenizer.get_added_vocab() == {"<pad>": 4}
    assert tokenizer.add_tokens(["New"]) == 1
    assert tokenizer.encode("New a xNew <pad>") == [5, 2, 1, 4]
    with pytest.raises(ValueError, match="'c' would take the id 4 of the added token '<pad>'"):
        tokenizer.add_symbol("c")
    with pytest.raises(ValueError, match="white space"):
        tokenizer.add_tokens("New York")
    tokenizer.count_sents([["z"]])
    tokenizer.build_vocab()
    assert tokenizer.get_added_vocab() == {"<pad>": 5, "New": 6}
    assert tokenizer.encode("New z <pad>") == [6, 4, 5]


def test_roles_may_be_set() -> None:
    tokenizer = built("a b", special=())
    tokenizer.unk_token = "<unk>"
    assert tokenizer.encode("zebra") == [tokenizer.unk_token_id] == [2]
    tokenizer.unk_token = "a"
    assert tokenizer.encode("zebra") == [0]


def test_nothing_is_replaced_by_nothing(tmp_path: Path) -> None:
    built("a b").save_pretrained(tmp_path)
    loaded = TransfoXLTokenizer.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match="no words were counted"):
        loaded.build_vocab()
    assert loaded.decode(loaded.encode("b a")) == "b a"


def test_copies_and_pickles_are_the_same() -> None:
    tokenizer = built(pad_token="<pad>")
    for twin in (copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert twin("the <pad> dog")["input_ids"] == tokenizer("the <pad> dog")["input_ids"]
        twin.count_sents([["more"]])
        twin.build_vocab()
    assert "more" not in tokenizer.sym2idx


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"min_freq": -1}, ValueError, "min_freq must be at least 0"),
        ({"max_size": "9"}, TypeError, "max_size must be an int"),
        ({"lower_case": "yes"}, TypeError, "lower_case must be True or False"),
        ({"delimiter": 3}, TypeError, "delimiter must be a string or None"),
        ({"special": "<eos>"}, TypeError, "special must be a list"),
        ({"never_splits": []}, TypeError, "did you mean 'never_split'"),
        ({"punctuation": True, "delimiter": ","}, ValueError, "cannot go with delimiter=','"),
        ({"pretrained_vocab_file": "nowhere.txt"}, OSError, "no vocabulary file 'nowhere.txt'"),
        ({"vocab_file": "nowhere.txt"}, OSError, "nowhere.txt"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=re.escape(said)):
        TransfoXLTokenizer(**options)


def test_habits_of_the_older_package() -> None:
    tokenizer = TransfoXLTokenizer(special=[], never_split=("<unk>", "<eos>", "<formula>"), lower_case=True)
    tokenizer.count_sents([["a", "b"]], verbose=True)
    tokenizer.build_vocab()
    assert Vocab is TransfoXLTokenizer
    assert tokenizer.convert_tokens_to_ids(["b", "a"]) == [1, 0]
    assert tokenizer.convert_ids_to_tokens([1, 0]) == ["b", "a"]
    assert rows(tokenizer.encode_sents([["a"], ["b", "a"]])) == [[0], [1, 0]]
    assert rows(tokenizer.encode_sents([["a"], ["b", "a"]], ordered=True)) == [0, 1, 0]
    assert tokenizer.encode_sents([], ordered=True).dtype == torch.long  # type: ignore[union-attr]


def test_signature_of_tokenize_is_a_wider_one() -> None:
    assert TransfoXLTokenizer.tokenize is not TextEncoder.tokenize
    with pytest.raises(TypeError, match="text must be a string"):
        built().tokenize(["a"])  # type: ignore[arg-type]


# Files.


def test_saved_form_is_plain(tmp_path: Path) -> None:
    tokenizer = built("b a b", never_split=["X"], min_freq=1, pad_token="<pad>")
    tokenizer.add_tokens(["New"])
    paths = tokenizer.save_pretrained(tmp_path)
    assert {Path(path).name for path in paths} == {
        "vocab.txt", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    }  # fmt: skip
    assert (tmp_path / "vocab.txt").read_text(encoding="utf-8") == "<eos>\n<unk>\nb\na\n"
    loaded = TransfoXLTokenizer.from_pretrained(tmp_path)
    assert loaded.sym2idx == tokenizer.sym2idx
    assert loaded.init_options == tokenizer.init_options
    assert loaded.get_added_vocab() == tokenizer.get_added_vocab()
    assert loaded.encode("New b <pad> q") == tokenizer.encode("New b <pad> q")


@given(
    symbols=st.lists(
        st.sampled_from(["", " ", "\r", "a\r", "\ufeff", "\ufeffa", "a\u2028b", "\x85", "\U0001f600", "a b", "x\r\r"])
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=5),
        min_size=1,
        unique=True,
    )
)
def test_any_symbols_survive_saving(tmp_path_factory: pytest.TempPathFactory, symbols: list[str]) -> None:
    tokenizer = TransfoXLTokenizer(delimiter="|")
    for symbol in symbols:
        tokenizer.add_symbol(symbol)
    folder = tmp_path_factory.mktemp("saved")
    tokenizer.save_pretrained(folder)
    assert TransfoXLTokenizer.from_pretrained(folder).idx2sym == symbols


def test_what_cannot_be_saved_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the vocabulary is empty"):
        TransfoXLTokenizer().save_pretrained(tmp_path)
    tokenizer = TransfoXLTokenizer()
    tokenizer.add_symbol("a\nb")
    with pytest.raises(ValueError, match="newline"):
        tokenizer.save_vocabulary(tmp_path)


def test_tokenizer_of_another_family_is_refused(tmp_path: Path) -> None:
    from pytorch_transformers import BertTokenizer

    built().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is of a TransfoXLTokenizer"):
        BertTokenizer.from_pretrained(tmp_path)


def published(symbols: list[str], **attributes: Any) -> dict[str, Any]:
    """The attributes of a vocabulary, as published `vocab.bin` files hold them."""
    return {
        "counter": Counter({symbol: len(symbols) - number for number, symbol in enumerate(symbols)}),
        "special": ["<eos>"],
        "min_freq": 0,
        "max_size": None,
        "lower_case": False,
        "delimiter": None,
        "vocab_file": None,
        "idx2sym": symbols,
        "sym2idx": OrderedDict((symbol, number) for number, symbol in enumerate(symbols)),
        "eos_idx": 0,
        **attributes,
    }


@pytest.mark.parametrize("zipped", [False, True])
def test_published_vocabulary_is_read(tmp_path: Path, zipped: bool) -> None:
    content = published(
        ["<eos>", "the", "<unk>", "<formula>", "東京", "Enquêtes"], lower_case=True, min_freq=3, eos_idx=0
    )
    torch.save(content, tmp_path / "vocab.bin", _use_new_zipfile_serialization=zipped)
    tokenizer = TransfoXLTokenizer.from_pretrained(tmp_path)
    assert tokenizer.idx2sym == content["idx2sym"]
    assert tokenizer.counter["the"] == 5
    assert (tokenizer.lower_case, tokenizer.min_freq, tokenizer.special) == (True, 3, ["<eos>"])
    assert (tokenizer.eos_idx, tokenizer.unk_idx, tokenizer.unk_token_id) == (0, None, 2)
    assert tokenizer.additional_special_tokens == ["<formula>"]
    assert tokenizer.encode("THE 東京 Zebra <eos>") == [1, 4, 2, 0]
    assert tokenizer.decode([1, 4]) == "the 東京"
    tokenizer.save_pretrained(tmp_path / "plain")
    plain = TransfoXLTokenizer.from_pretrained(tmp_path / "plain")
    assert plain.init_options == tokenizer.init_options
    assert plain.encode("THE 東京 Zebra <eos>") == [1, 4, 2, 0]
    assert TransfoXLTokenizer.from_pretrained(tmp_path / "vocab.bin").idx2sym == content["idx2sym"]
    assert TransfoXLTokenizer(pretrained_vocab_file=content).idx2sym == content["idx2sym"]
    again = TransfoXLTokenizer(pretrained_vocab_file=tmp_path / "vocab.bin", delimiter=",")
    assert again.tokenize("a,b") == ["a", "b"]


def test_python_2_symbol_is_known(tmp_path: Path) -> None:
    """The vocabulary of the original, Python 2: symbols are bytes."""
    symbols = [b"<eos>", b"<unk>", b"Enqu\xc3\xaates"]
    path = tmp_path / "cache.pkl"
    path.write_bytes(
        b"\x80\x02cvocabulary\nVocab\n)\x81}(U\x07idx2sym](U\x05<eos>U\x05<unk>U\x09" + symbols[2] + b"eU\x07special]U"
        b"\x05<eos>aub."
    )
    tokenizer = TransfoXLTokenizer(pretrained_vocab_file=path)
    assert tokenizer.idx2sym == ["<eos>", "<unk>", "Enquêtes"]
    assert tokenizer.encode("Enquêtes") == [2]
    assert tokenizer.special == ["<eos>"]


def test_damage_by_latin_1_is_mended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    damaged = [word.encode().decode("latin-1") for word in ["<unk>", "Enquêtes", "東京", "the"]]
    torch.save(published(damaged), tmp_path / "vocab.bin")
    with caplog.at_level(logging.WARNING):
        tokenizer = TransfoXLTokenizer.from_pretrained(tmp_path)
    assert tokenizer.idx2sym == ["<unk>", "Enquêtes", "東京", "the"]
    assert tokenizer.counter["東京"] == 2
    assert "2 symbols beyond ASCII were UTF-8 read as Latin-1" in caplog.text


@pytest.mark.parametrize("symbols", [["Ã©", "東"], ["é", "a"], ["Ã©", "é"]])
def test_what_is_no_damage_stays(tmp_path: Path, symbols: list[str]) -> None:
    torch.save(published(symbols), tmp_path / "vocab.bin")
    assert TransfoXLTokenizer.from_pretrained(tmp_path).idx2sym == symbols


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (["a"], "holds no vocabulary"),
        ({"sym2idx": {}}, "holds no vocabulary"),
        (published(["a", 3]), "should be a list of str"),  # type: ignore[list-item]
        (published(["a", "a"]), "'a' more than once"),
        (published(["a"], sym2idx={"a": 4}), "do not say the same"),
        (published(["a"], eos_idx=9), "eos_idx=9, but there are 1 symbols"),
    ],
)
def test_damaged_vocabularies_are_named(tmp_path: Path, content: Any, said: str) -> None:
    torch.save(content, tmp_path / "vocab.bin")
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        TransfoXLTokenizer.from_pretrained(tmp_path)
    assert "vocab.bin" in str(error.value)


def test_list_of_words_needs_an_unknown_one(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("the 5\n\nthe 4\nof 3\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has neither <UNK> nor <unk>"):
        TransfoXLTokenizer(vocab_file=path)
    path.write_text("the 5\n\nthe 4\n<unk> 3\n", encoding="utf-8")
    assert TransfoXLTokenizer(vocab_file=path).encode("the of") == [0, 1]


def test_text_in_another_encoding_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"one\r\ntwo\rthree\n" + b"caf\xe9\n")
    with pytest.raises(ValueError, match=r"text\.txt, line 4, is not UTF-8: byte 0xe9"):
        TransfoXLTokenizer().count_file(path)


# Punctuation as in WikiText-103.


needs_moses = pytest.mark.skipif(importlib.util.find_spec("sacremoses") is None, reason="sacremoses is not installed")


@needs_moses
def test_punctuation_is_split_and_joined(tmp_path: Path) -> None:
    tokenizer = built("hello , world", punctuation=True)
    assert tokenizer.tokenize("hello, world") == ["hello", ",", "world"]
    assert tokenizer.decode(tokenizer.encode("hello, world")) == "hello, world"
    tokenizer.save_pretrained(tmp_path)
    loaded = TransfoXLTokenizer.from_pretrained(tmp_path)
    assert loaded.punctuation
    assert loaded.encode("hello, world") == tokenizer.encode("hello, world")
    assert loaded.decode(loaded.encode("hello, world")) == "hello, world"


@needs_moses
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It cost 1,000.50 dollars.", "It cost 1 @,@ 000 @.@ 50 dollars ."),
        ("A well-known, 3-day (or so) trip…", "A well @-@ known , 3 @-@ day ( or so ) trip …"),
        ('He didn\'t say "no" to Mr. Smith.', 'He didn \'t say " no " to Mr. Smith .'),
        ("the <unk> @-@ like <eos> it 's", "the <unk> @-@ like <eos> it 's"),
    ],
)
def test_punctuation_follows_wikitext(text: str, words: str) -> None:
    tokenizer = TransfoXLTokenizer(punctuation=True)
    assert " ".join(tokenizer.tokenize(text)) == words


@needs_moses
def test_real_lines_of_wikitext_are_split_already() -> None:
    path = shared("data", "lm", "wikitext-103", "valid.txt")
    lines = [line.strip() for line in path.read_text(encoding="utf-8").split("\n") if line.strip()][:150]
    tokenizer = TransfoXLTokenizer(punctuation=True)
    assert [" ".join(tokenizer.tokenize(line)) for line in lines] == lines
    plain = [line for line in lines if "<unk>" not in line]
    assert len(plain) > 50
    # As people write it, and split again.
    assert [" ".join(tokenizer.tokenize(tokenizer.convert_tokens_to_string(line.split()))) for line in plain] == plain


@needs_moses
@settings(max_examples=200)
@given(
    text=st.text(
        st.sampled_from("ab1 .,-'`\"()[]&|<>@é中\u3000\u200b%$…–\x01\t\x1cAMr;!?#") | st.characters(), max_size=20
    )
)
def test_punctuation_has_spans_in_any_text(text: str) -> None:
    tokenizer = TransfoXLTokenizer(punctuation=True, unk_token="[U]", vocab_file=None)
    tokenizer.add_symbol("[U]")
    words = tokenizer.tokenize(text)
    spans = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    assert len(words) == len(spans)
    inner = {"@-@": "-", "@,@": ",", "@.@": "."}
    for word, (start, end) in zip(words, spans, strict=True):
        part = re.sub(r"[\x00-\x08\x0e-\x1b]", "", text[start:end])
        assert part in (word, inner.get(word))
    assert all(last[1] <= first[0] for last, first in itertools.pairwise(spans))


def test_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    punctuation_module._moses.cache_clear()
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    try:
        with pytest.raises(ImportError, match=r"pip install 'pytorch-transformers\[transfo-xl\]'"):
            TransfoXLTokenizer(punctuation=True)
    finally:
        punctuation_module._moses.cache_clear()
