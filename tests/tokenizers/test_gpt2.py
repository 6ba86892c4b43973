"""`GPT2Tokenizer`: recorded outputs of the original, text that comes back, engines that agree, files, errors."""

import copy
import itertools
import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytorch_transformers import AutoTokenizer, GPT2Tokenizer
from pytorch_transformers.models.warn import warn_once
from pytorch_transformers.tokenizers import memory
from pytorch_transformers.tokenizers.byte_level import BYTE_TO_CHAR
from pytorch_transformers.tokenizers.byte_reference import AutoByteLevel, ByteLevelReference
from pytorch_transformers.tokenizers.rust import RustEngine, agreement_for
from shared_data import shared

ENGINES = ["python", "tokenizers", "auto"]
Save = Callable[..., Path]
MANY = settings(max_examples=300, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

PARTS = st.sampled_from(
    [
        *(" ", "  ", "\n", "\n\n", "\t", "\r\n", "\x0b", "\x1c", "\x1f", "\x85", "\xa0", "\u2028", "\u3000", "\u200b"),
        *("the", " the", "The", "cats", "'s", "'S", "'re", "'", "isn't", "12", "²", "½", "三", "a1b", "...", "!?", "-"),
        *(
            "é",
            "e\u0301",
            "naïve",
            "中文",
            "한국",
            "हिन्दी",
            "😀",
            "👩\u200d👧",
            "\ud800",
            "\udfff",
            "\x00",
            "�",
            "\ufeff",
        ),
        *("<|endoftext|>", "<|endoftext", "new", " new", "NEW", "cool-token", "<x>", "<x", "İ", "ſ"),
    ]
)
TEXTS = st.lists(st.one_of(PARTS, st.text(max_size=4)), max_size=10).map("".join)
ADDED = st.lists(st.sampled_from(["new", " new", "cool-token", "é", "中", "\n", "s "]), max_size=3, unique=True)
SPECIAL = st.lists(st.sampled_from(["<x>", "<x><y>", " the", "e\u0301", "\ud800"]), max_size=2, unique=True)


@pytest.fixture
def build(byte_pairs: Any) -> Callable[..., GPT2Tokenizer]:
    """Builds a tokenizer over the small vocabulary."""

    def make(**options: Any) -> GPT2Tokenizer:
        return GPT2Tokenizer(byte_pairs.vocab, byte_pairs.merges, **options)

    return make


@pytest.fixture(scope="module")
def real() -> dict[str, GPT2Tokenizer]:
    vocab, merges = shared("data", "vocab", "gpt2-vocab.json"), shared("data", "vocab", "gpt2-merges.txt")
    return {engine: GPT2Tokenizer(vocab, merges, engine=engine) for engine in ENGINES}  # type: ignore[arg-type]


# The original.


@pytest.mark.parametrize("engine", ENGINES)
def test_goldens(engine: Any) -> None:
    folder = shared("goldens", "tokenizers", "gpt2")
    tokenizer = GPT2Tokenizer.from_pretrained(folder, engine=engine, split_special_tokens=True)
    records = [json.loads(line) for line in (folder / "encode.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(records) == 352
    for record in records:
        assert tokenizer.tokenize(record["text"]) == record["tokens"], record["text"]
        assert tokenizer.encode(record["text"]) == record["ids"], record["text"]
        assert tokenizer.decode(record["ids"]) == record["text"]
        words = [word for word, _ in tokenizer._bytes_reference._words(record["text"])]
        assert words == record["pre_tokens"]
        assert [token for word in words for token in tokenizer.bpe(_symbols(word)).split()] == record["tokens"]
    assert tokenizer([record["text"] for record in records])["input_ids"] == [record["ids"] for record in records]
    decoded = [json.loads(line) for line in (folder / "decode.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(decoded) == 60
    for record in decoded:
        assert tokenizer.decode(record["ids"]) == record["text"]
        assert tokenizer.convert_tokens_to_string(tokenizer.convert_ids_to_tokens(record["ids"])) == record["text"]


def _symbols(word: str) -> str:
    from pytorch_transformers.tokenizers.byte_level import to_symbols

    return to_symbols(word)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("y is ?", [88, 318, 5633]),
        ("can", [5171]),
        (" can", [460]),
        ("import tensorflow as ", [11748, 11192, 273, 11125, 355, 220]),
        ("a<|endoftext|> b", [64, 50256, 275]),
        ("", []),
    ],
)
def test_d7_known_ids(real: dict[str, GPT2Tokenizer], text: str, ids: list[int]) -> None:
    for tokenizer in real.values():
        assert tokenizer.encode(text) == ids
        assert tokenizer.decode(ids) == text


# Text comes back, and engines agree.


@MANY
@given(TEXTS, st.sampled_from(ENGINES), ADDED, SPECIAL)
@example(" a b <x> new ", "auto", ["new", " new"], ["<x>"])
@example("\ud83d\ude00", "python", [], [])
def test_d7_any_text_comes_back(byte_pairs: Any, text: str, engine: Any, added: list[str], special: list[str]) -> None:
    tokenizer = GPT2Tokenizer(byte_pairs.vocab, byte_pairs.merges, engine=engine)
    tokenizer.add_tokens(added)
    tokenizer.add_tokens(special, special_tokens=True)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.decode(tokenizer.encode(text, split_special_tokens=True)) == text


@MANY
@given(st.lists(TEXTS, min_size=1, max_size=3), st.booleans(), st.booleans(), ADDED, SPECIAL)
@example(["a\n\n\nb", "a\n\n b", "a\t\n b"], False, False, [], [])
@example(["\n a", " \n", "x <x> y"], True, True, [], ["<x>"])
def test_engines_agree_on_any_text_and_options(
    byte_pairs: Any, texts: list[str], prefix: bool, split: bool, added: list[str], special: list[str]
) -> None:
    slow, *others = (
        GPT2Tokenizer(
            byte_pairs.vocab,
            byte_pairs.merges,
            engine=engine,  # type: ignore[arg-type]
            add_prefix_space=prefix,
            split_special_tokens=split,
        )
        for engine in ENGINES
    )
    for tokenizer in (slow, *others):
        tokenizer.add_tokens(added)
        tokenizer.add_tokens(special, special_tokens=True)
    pieces = slow._pipeline.pieces(texts, split_special=split)
    ids = [[piece.id for piece in row] for row in pieces]
    assert slow._encode_ids(texts) == ids  # with what is remembered and without
    for fast in others:
        assert fast._encode_ids(texts) == ids
        assert [fast._encode_ids([text])[0] for text in texts] == ids
        # Spans and words too.
        assert fast._pipeline.pieces(texts, split_special=split) == pieces


@MANY
@given(st.text(st.characters(categories=None), max_size=30))
def test_engines_agree_on_random_unicode(byte_pairs: Any, text: str) -> None:
    slow, *others = (GPT2Tokenizer(*byte_pairs, engine=engine) for engine in ENGINES)  # type: ignore[arg-type]
    pieces = slow._pipeline.pieces([text])
    for fast in others:
        assert fast._pipeline.pieces([text]) == pieces
        assert fast._encode_ids([text, ""]) == [[piece.id for piece in pieces[0]], []]


@MANY
@given(st.lists(st.text(" \n\t\r\x1c\x1f\x85\xa0\u2028ab'.1", max_size=12), min_size=1, max_size=4))
def test_what_is_remembered_is_what_would_be_found_out(byte_pairs: Any, texts: list[str]) -> None:
    tokenizer = GPT2Tokenizer(*byte_pairs, engine="python")
    for prefix in (False, True):
        reference = ByteLevelReference(tokenizer._bytes_reference.joiner, add_prefix_space=prefix)
        wanted = [[piece.id for piece in row] for row in reference.pieces(texts)]
        assert reference.ids(texts) == wanted
        assert reference.ids(texts) == wanted


@MANY
@given(st.data(), st.sampled_from(["replace", "ignore", "backslashreplace"]))
def test_decoding_any_ids_never_raises(byte_pairs: Any, data: st.DataObject, errors: str) -> None:
    tokenizer = GPT2Tokenizer(byte_pairs.vocab, byte_pairs.merges, errors)
    tokenizer.add_tokens(["\ud800", "é"])
    ids = data.draw(st.lists(st.integers(0, len(tokenizer) - 1)))
    text = tokenizer.decode(ids)
    assert isinstance(text, str)
    assert isinstance(tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=True), str)
    assert tokenizer.batch_decode([ids, []]) == [text, ""]


@MANY
@given(TEXTS)
def test_d4_offsets_cover_the_text_in_order(byte_pairs: Any, text: str) -> None:
    tokenizer = GPT2Tokenizer(*byte_pairs, split_special_tokens=True)
    spans = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    for (start, end), (next_start, _) in itertools.pairwise(spans):
        # Tokens share a character only where it is divided.
        assert start < end
        assert next_start == end or (next_start == end - 1 and len(text[next_start].encode(errors="surrogatepass")) > 1)
    assert {place for start, end in spans for place in range(start, end)} == set(range(len(text)))


def test_offsets_and_words(build: Callable[..., GPT2Tokenizer]) -> None:
    encoding = build()("the café<|endoftext|> cats", return_offsets_mapping=True)
    text = "the café<|endoftext|> cats"
    assert "".join(dict.fromkeys(text[start:end] for start, end in encoding["offset_mapping"])) == text
    assert encoding.word_ids()[0] == 0
    assert encoding.word_ids()[-1] == 3


def test_the_engines_are_three(build: Callable[..., GPT2Tokenizer]) -> None:
    """Otherwise the comparisons above would compare one with itself."""
    assert isinstance(build(engine="python")._engine, ByteLevelReference)
    assert isinstance(build(engine="tokenizers")._engine, RustEngine)
    assert isinstance(build(engine="auto")._engine, AutoByteLevel)
    agreement = agreement_for(build()._reference)
    for text in ("".join(map(chr, range(128))), "Grüße – “naïve”…", "你好，世界。", "สวัสดี", "हिन्दी", "😀"):
        assert agreement.covers(text), text


def test_merges_that_the_library_would_not_follow_stay_with_us() -> None:
    from pytorch_transformers.tokenizers.byte_level import BYTE_TO_CHAR

    vocab = {token: number for number, token in enumerate([*BYTE_TO_CHAR, "ab", "abc", "<|endoftext|>"])}
    for engine in ENGINES:
        tokenizer = GPT2Tokenizer(vocab, [("ab", "c"), ("a", "b")], engine=engine)  # type: ignore[arg-type]
        assert tokenizer.tokenize("abc") == ["abc"]
        assert isinstance(tokenizer._engine, ByteLevelReference)


def _lines() -> list[str]:
    table = shared("data", "multilingual", "xquad_lines.tsv").read_text(encoding="utf-8")
    lines = [line.split("\t", 1)[1] for line in table.split("\n") if "\t" in line]
    for book in sorted(shared("data", "books").glob("*.txt")):
        lines += book.read_text(encoding="utf-8").split("\n")
    return lines


def _same_on(tokenizers: dict[str, GPT2Tokenizer], lines: list[str]) -> None:
    for start in range(0, len(lines), 2000):
        part = lines[start : start + 2000]
        pieces = tokenizers["python"]._pipeline.pieces(part)
        assert tokenizers["tokenizers"]._pipeline.pieces(part) == pieces
        for tokenizer in tokenizers.values():
            ids = tokenizer._encode_ids(part)
            assert ids == [[piece.id for piece in row] for row in pieces]
        assert tokenizer.batch_decode(ids) == part


def test_same_on_a_sample_of_real_text(real: dict[str, GPT2Tokenizer]) -> None:
    _same_on(real, random.Random(0).sample(_lines(), 2000))


@pytest.mark.slow
def test_same_on_all_real_text(real: dict[str, GPT2Tokenizer]) -> None:
    _same_on(real, _lines())


@pytest.mark.slow
def test_same_on_whole_books(real: dict[str, GPT2Tokenizer]) -> None:
    for book in sorted(shared("data", "books").glob("*.txt")):
        text = book.read_text(encoding="utf-8")
        ids = real["auto"].encode(text)
        assert all(tokenizer.encode(text) == ids for tokenizer in real.values())
        assert real["auto"].decode(ids) == text


# Options.


def test_prefix_space(build: Callable[..., GPT2Tokenizer]) -> None:
    tokenizer = build(add_prefix_space=True)
    assert tokenizer.tokenize("cats") == build().tokenize(" cats") == tokenizer.tokenize(" cats")
    assert tokenizer.decode(tokenizer.encode("cats")) == " cats"
    assert tokenizer("cats", return_offsets_mapping=True)["offset_mapping"][0][0] == 0
    words = tokenizer(["the", "cats"], is_split_into_words=True)
    assert words["input_ids"] == build().encode(" the cats")
    assert tokenizer.encode("") == []


def test_errors_says_what_becomes_of_bytes_that_are_no_text(build: Callable[..., GPT2Tokenizer]) -> None:
    number = build().convert_tokens_to_ids("ÿ")
    assert build().decode([number]) == "�"
    assert build(errors="ignore").decode([number]) == ""
    with pytest.raises(UnicodeDecodeError):
        build(errors="strict").decode([number])
    with pytest.raises(ValueError, match="errors='sometimes'"):
        build(errors="sometimes")
    tokenizer = build()
    tokenizer.errors = "ignore"
    assert tokenizer.init_options["errors"] == "ignore"


def test_spaces_are_cleaned_up_only_if_asked_for(build: Callable[..., GPT2Tokenizer]) -> None:
    ids = build().encode("the cats , is n't")
    assert build().decode(ids) == "the cats , is n't"
    assert build().decode(ids, clean_up_tokenization_spaces=True) == "the cats, isn't"
    assert build(clean_up_tokenization_spaces=True).decode(ids) == "the cats, isn't"


def test_d8_padding_needs_a_token(build: Callable[..., GPT2Tokenizer]) -> None:
    tokenizer = build()
    assert (tokenizer.pad_token, tokenizer.pad_token_id) == (None, None)
    with pytest.raises(ValueError, match=r"no padding token.*add_special_tokens\(\{'pad_token'"):
        tokenizer(["the", "the cats"], padding=True)
    size = len(tokenizer)
    tokenizer.pad_token = "<PAD>"
    assert (tokenizer.pad_token_id, len(tokenizer)) == (size, size + 1)
    assert build(pad_token="<PAD>").pad_token_id == size
    tokenizer.padding_side = "left"
    batch = tokenizer(["the", "the cats"], padding=True, return_tensors="pt")
    assert batch["input_ids"][0, 0] == size
    assert batch["input_ids"][0, -1] == tokenizer.encode("the")[-1]
    assert batch["attention_mask"][0].tolist()[-1] == 1
    assert list(batch) == ["input_ids", "attention_mask"]


def test_no_special_tokens_are_put_around(build: Callable[..., GPT2Tokenizer]) -> None:
    tokenizer = build()
    assert tokenizer.encode("the") == tokenizer.encode("the", add_special_tokens=False)
    assert tokenizer.encode("the", " cats") == tokenizer.encode("the") + tokenizer.encode(" cats")
    assert tokenizer.num_special_tokens_to_add() == 0
    end = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    assert tokenizer.bos_token_id == tokenizer.eos_token_id == tokenizer.unk_token_id == end
    assert tokenizer.decode([end, *tokenizer.encode("the")], skip_special_tokens=True) == "the"


def test_truncation_and_windows(build: Callable[..., GPT2Tokenizer]) -> None:
    tokenizer = build(max_len=4)
    text = "the cats sat on the mat"
    ids = tokenizer.encode(text, truncation=False)
    assert tokenizer.encode(text, truncation=True) == ids[:4]
    rows = tokenizer(text, truncation=True, stride=1, return_overflowing_tokens=True)["input_ids"]
    assert rows[0] == ids[:4]
    assert rows[1][0] == ids[3]


def test_added_tokens_keep_the_spaces_around_them(build: Callable[..., GPT2Tokenizer]) -> None:
    tokenizer = build()
    assert tokenizer.add_tokens(["new", " spaced "]) == 2
    assert tokenizer.tokenize("a new spaced b") == ["a", "Ġ", "new", " spaced ", "b"]
    for text in ("a new b", "anewb", "NEW", "new", " new "):
        assert tokenizer.decode(tokenizer.encode(text)) == text


# Classic special tokens.


def test_classic_special_tokens_stand_behind_the_vocabulary(
    build: Callable[..., GPT2Tokenizer], byte_pairs: Any
) -> None:
    size = len(byte_pairs.vocab)
    tokenizer = build(special_tokens=["<speaker1>", "<speaker2>"], pad_token="<pad>")
    assert tokenizer.special_tokens == {"<speaker1>": size, "<speaker2>": size + 1}
    assert tokenizer.pad_token_id == size + 2
    assert tokenizer.encode("<speaker2>the")[0] == size + 1
    tokenizer.set_special_tokens(["<a>", "<b>", "<c>"])
    assert tokenizer.special_tokens == {"<a>": size, "<b>": size + 1, "<c>": size + 2}
    assert tokenizer.special_tokens_decoder[size] == "<a>"
    assert (tokenizer.pad_token_id, len(tokenizer)) == (size + 3, size + 4)
    assert tokenizer.encode("<b>") == [size + 1]
    assert len(tokenizer.encode("<speaker2>")) > 1
    tokenizer.set_special_tokens(None)
    assert tokenizer.special_tokens == {}
    assert tokenizer.pad_token_id == size
    tokenizer.add_tokens(["new"])
    with pytest.raises(ValueError, match="ids of tokens that were added before, such as 'new'"):
        tokenizer.set_special_tokens(["<a>"])


def test_a_special_token_of_the_vocabulary_keeps_its_id_there(
    build: Callable[..., GPT2Tokenizer], byte_pairs: Any
) -> None:
    tokenizer = build(special_tokens=["<|endoftext|>", "<a>"])
    assert tokenizer.convert_tokens_to_ids(["<|endoftext|>", "<a>"]) == [
        len(byte_pairs.vocab) - 1,
        len(byte_pairs.vocab) + 1,
    ]


@pytest.mark.parametrize(("tokens", "error"), [("<a>", TypeError), ([""], TypeError), (["<a>", "<a>"], ValueError)])
def test_bad_special_tokens(build: Callable[..., GPT2Tokenizer], tokens: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="special_tokens"):
        build(special_tokens=tokens)
    with pytest.raises(error, match="special_tokens"):
        build().set_special_tokens(tokens)


def test_classic_vocabulary_of_a_few_letters(tmp_path: Path) -> None:
    """A vocabulary without most bytes: what it lacks is unknown."""
    tokens = ["l", "o", "w", "e", "r", "Ġ", "Ġl", "Ġlo", "Ġlow", "er"]
    vocab = {token: number for number, token in enumerate(tokens)}
    merges = ["#version: 0.2", "Ġ l", "Ġl o", "Ġlo w", "e r", ""]
    for engine in ENGINES:
        tokenizer = GPT2Tokenizer(vocab, merges, engine=engine, special_tokens=["<unk>"], unk_token="<unk>")  # type: ignore[arg-type]
        assert tokenizer.tokenize(" lower") == ["Ġlow", "er"]
        assert tokenizer.encode(" lower<unk>") == [8, 9, 10]
        assert tokenizer.encode(" lowz") == [8, 10]
        assert tokenizer("loz", return_offsets_mapping=True)["offset_mapping"] == [(0, 1), (1, 2), (2, 3)]
    tokenizer = GPT2Tokenizer(vocab, merges, unk_token=None)
    with pytest.raises(ValueError, match="'z' is not in the vocabulary"):
        tokenizer.encode("z")


# Files.


@pytest.mark.parametrize("names", [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")])
def test_two_files_alone_are_enough(byte_pairs: Any, save_pairs: Save, tmp_path: Path, names: tuple[str, str]) -> None:
    save_pairs(tmp_path, byte_pairs, *names)
    tokenizer = GPT2Tokenizer.from_pretrained(tmp_path)
    assert tokenizer.decode(tokenizer.encode(" the cats ")) == " the cats "
    assert tokenizer.encoder == byte_pairs.vocab
    assert tokenizer.decoder[len(byte_pairs.vocab) - 1] == "<|endoftext|>"
    assert list(tokenizer.bpe_ranks) == byte_pairs.merges


def test_d9_save_and_load(build: Callable[..., GPT2Tokenizer], tmp_path: Path) -> None:
    tokenizer = build(add_prefix_space=True, errors="ignore", model_max_length=77, pad_token="<pad>")
    tokenizer.add_tokens([" new", "cool"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<x>", "<y>"]})
    paths = tokenizer.save_pretrained(tmp_path)
    assert all(Path(path).is_file() for path in paths)
    text = "the new cool<x> cats<pad><|endoftext|>"
    for again in (GPT2Tokenizer.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)):
        assert type(again) is GPT2Tokenizer
        assert again.init_options == tokenizer.init_options
        assert len(again) == len(tokenizer)
        assert again.encode(text) == tokenizer.encode(text)
        assert again.special_tokens_map == tokenizer.special_tokens_map
    assert GPT2Tokenizer.from_pretrained(tmp_path, max_len=5).model_max_length == 5


def test_special_tokens_file(build: Callable[..., GPT2Tokenizer], byte_pairs: Any, tmp_path: Path) -> None:
    """The 0.6.2 package keeps its special tokens there, and nowhere else."""
    tokenizer = build(special_tokens=["<a>", "<b>"])
    paths = tokenizer.save_vocabulary(tmp_path)
    assert [Path(path).name for path in paths] == ["vocab.json", "merges.txt", "special_tokens.txt"]
    assert (tmp_path / "special_tokens.txt").read_text(encoding="utf-8") == "<a>\n<b>\n"
    again = GPT2Tokenizer.from_pretrained(tmp_path)
    assert again.special_tokens == tokenizer.special_tokens
    assert GPT2Tokenizer.from_pretrained(tmp_path, special_tokens=["<c>"]).special_tokens == {
        "<c>": len(byte_pairs.vocab)
    }
    # What this package saves later says more, and wins.
    again.set_special_tokens(None)
    again.save_pretrained(tmp_path)
    assert GPT2Tokenizer.from_pretrained(tmp_path).special_tokens == {}


def test_saving_needs_a_folder(build: Callable[..., GPT2Tokenizer], tmp_path: Path) -> None:
    with pytest.raises(OSError, match="is no folder"):
        build().save_vocabulary(tmp_path / "file.json")


def test_published_name_sets_the_length(
    byte_pairs: Any, save_pairs: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gpt2", "gpt2-xl", "other"):
        (tmp_path / name).mkdir()
        save_pairs(tmp_path / name, byte_pairs)
    monkeypatch.chdir(tmp_path)
    assert GPT2Tokenizer.from_pretrained("gpt2").max_len == 1024
    assert GPT2Tokenizer.from_pretrained("gpt2-xl").max_len == 1024
    assert GPT2Tokenizer.from_pretrained("gpt2-xl", max_len=7).max_len == 7
    assert GPT2Tokenizer.from_pretrained("other").max_len > 1024


def test_missing_files_are_named(byte_pairs: Any, save_pairs: Save, tmp_path: Path) -> None:
    save_pairs(tmp_path, byte_pairs)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(OSError, match=r"vocab\.json, merges\.txt, or encoder\.json, vocab\.bpe, and merges\.txt"):
        GPT2Tokenizer.from_pretrained(tmp_path)
    with pytest.raises(OSError, match="/no/such/place"):
        GPT2Tokenizer.from_pretrained("/no/such/place")


def _library_file(folder: Path, byte_pairs: Any, **changes: Any) -> Path:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.BPE(byte_pairs.vocab, byte_pairs.merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=changes.pop("add_prefix_space", False))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    tokenizer.add_special_tokens(["<|endoftext|>", "<x>"])
    content = json.loads(tokenizer.to_str())
    for name, value in changes.items():
        part, _, key = name.partition("__")
        if key:
            content[part][key] = value
        else:
            content[part] = value
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return folder / "tokenizer.json"


@pytest.mark.parametrize("prefix", [False, True])
def test_library_file(build: Callable[..., GPT2Tokenizer], byte_pairs: Any, tmp_path: Path, prefix: bool) -> None:
    _library_file(tmp_path, byte_pairs, add_prefix_space=prefix)
    tokenizer = GPT2Tokenizer.from_pretrained(tmp_path)
    assert tokenizer.additional_special_tokens == ["<x>"]
    assert tokenizer.encode("cats<x>") == [*build(add_prefix_space=prefix).encode("cats"), len(byte_pairs.vocab)]
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "GPT2TokenizerFast"}', encoding="utf-8")
    assert type(AutoTokenizer.from_pretrained(tmp_path)) is GPT2Tokenizer


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model__type": "WordPiece"}, "of type 'WordPiece'"),
        ({"model__dropout": 0.1}, r"model\.dropout=0\.1"),
        ({"model__end_of_word_suffix": "</w>"}, r"model\.end_of_word_suffix='</w>'"),
        ({"model__ignore_merges": True}, r"model\.ignore_merges=True"),
        ({"model__merges": None}, "no list of merges"),
        ({"model__merges": [["a", "zz"]]}, "does not fit"),
        ({"normalizer": {"type": "Lowercase"}}, r"normalizer\.type='Lowercase'"),
        ({"pre_tokenizer__use_regex": False}, r"pre_tokenizer\.use_regex=False"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, r"pre_tokenizer\.type='Whitespace'"),
        ({"post_processor": {"type": "TemplateProcessing"}}, r"post_processor\.type='TemplateProcessing'"),
    ],
)
def test_library_file_of_another_kind(byte_pairs: Any, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = _library_file(tmp_path, byte_pairs, **changes)
    with pytest.raises(ValueError, match=message):
        GPT2Tokenizer.from_pretrained(path)


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_work(build: Callable[..., GPT2Tokenizer], engine: str) -> None:
    tokenizer = build(engine=engine)
    tokenizer.add_tokens(["new"])
    text = ["the new cats " * 3, "café<|endoftext|>\n"]
    wanted = tokenizer(text)["input_ids"]
    for other in (pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
        assert other(text)["input_ids"] == wanted
        assert other.batch_decode(wanted) == text
        other.add_tokens(["mat"])
        assert len(other) == len(tokenizer) + 1


def test_memory_is_bounded(build: Callable[..., GPT2Tokenizer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "REMEMBERED", 5)
    tokenizer = build(engine="python")
    reference = tokenizer._bytes_reference
    texts = [" ".join(map(chr, range(0x4E00, 0x4E40))), "x" * 500, "y" * 101 + " z"]
    for _ in range(2):
        assert reference.ids(texts) == [[piece.id for piece in row] for row in reference.pieces(texts)]
    assert len(reference._memory.chunks) == len(reference._memory.pieces) == 5
    assert "x" * 500 not in reference._memory.pieces


def test_unknown_options_are_refused(build: Callable[..., GPT2Tokenizer]) -> None:
    with pytest.raises(TypeError, match="did you mean 'add_prefix_space'"):
        build(add_prefix_spaces=True)
    with pytest.raises(TypeError, match="add_prefix_space must be True or False"):
        build(add_prefix_space="no")


def test_bytes_that_the_vocabulary_lacks(byte_pairs: Any, letter_pairs: Any, caplog: pytest.LogCaptureFixture) -> None:
    warn_once.cache_clear()
    GPT2Tokenizer(byte_pairs.vocab, byte_pairs.merges)
    assert not caplog.records
    for _ in range(2):
        GPT2Tokenizer(letter_pairs.vocab, letter_pairs.merges, unk_token="<unk>")
    missing = sum(char not in letter_pairs.vocab for char in BYTE_TO_CHAR)
    assert [record.message.partition(",")[0] for record in caplog.records if "256" in record.message] == [
        f"GPT2Tokenizer: {missing} of the 256 bytes are not in the vocabulary"
    ]
