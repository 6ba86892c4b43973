"""Calling a tokenizer: fields, pairs, words, padding, truncation, windows, errors."""

import copy
import logging
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_transformers import BatchEncoding, BertTokenizer
from pytorch_transformers.tokenizers.truncation import lengths_kept
from shared_data import shared

Build = Callable[..., BertTokenizer]
A, B, C = 18, 19, 20  # ids of `a`, `b`, `c`


def test_one_text(tokenizer: BertTokenizer) -> None:
    encoding = tokenizer("a b")
    assert encoding == {"input_ids": [2, A, B, 3], "token_type_ids": [0] * 4, "attention_mask": [1] * 4}
    assert list(encoding) == ["input_ids", "token_type_ids", "attention_mask"]
    assert encoding.input_ids is encoding["input_ids"]
    assert dict(**encoding) == encoding


def test_pairs(tokenizer: BertTokenizer) -> None:
    expected = {"input_ids": [2, A, 3, B, C, 3], "token_type_ids": [0, 0, 0, 1, 1, 1], "attention_mask": [1] * 6}
    assert tokenizer("a", "b c") == expected
    assert tokenizer.encode_plus("a", "b c") == expected
    batch = {name: [row] for name, row in expected.items()}
    assert tokenizer(["a"], ["b c"]) == batch
    assert tokenizer([("a", "b c")]) == batch
    assert tokenizer.batch_encode_plus([["a", "b c"]]) == batch
    assert tokenizer.encode("a", "b c") == expected["input_ids"]


def test_without_special_tokens(tokenizer: BertTokenizer) -> None:
    assert tokenizer.encode("a b", add_special_tokens=False) == [A, B]
    assert tokenizer("a", "b", add_special_tokens=False)["token_type_ids"] == [0, 1]


def test_words(tokenizer: BertTokenizer) -> None:
    encoding = tokenizer(["a", "unaffable", "", "b."], is_split_into_words=True, return_offsets_mapping=True)
    assert encoding.tokens() == ["[CLS]", "a", "un", "##aff", "##able", "b", ".", "[SEP]"]
    assert encoding.word_ids() == [None, 0, 1, 1, 1, 3, 3, None]
    assert encoding.offsets == [None, (0, 1), (0, 2), (2, 5), (5, 9), (0, 1), (1, 2), None]
    batch = tokenizer([["a"], ["b", "c"]], is_split_into_words=True)
    assert batch["input_ids"] == [[2, A, 3], [2, B, C, 3]]
    assert tokenizer([(["a"], ["b", "c"])], is_split_into_words=True)["input_ids"] == [[2, A, 3, B, C, 3]]
    assert tokenizer(["a"], ["b", "c"], is_split_into_words=True)["input_ids"] == [2, A, 3, B, C, 3]


def test_where_tokens_came_from(tokenizer: BertTokenizer) -> None:
    encoding = tokenizer(["cats, new", "a"], ["b", "c"], padding=True)
    assert encoding.tokens(0) == ["[CLS]", "cats", ",", "new", "[SEP]", "b", "[SEP]"]
    assert encoding.word_ids(1) == [None, 0, None, 0, None, None, None]
    assert encoding.sequence_ids(1) == [None, 0, None, 1, None, None, None]
    assert encoding.word_ids(0) == [None, 0, 1, 2, None, 0, None]


def test_where_tokens_came_from_is_not_guessed(tokenizer: BertTokenizer) -> None:
    asked, late = tokenizer("a b"), tokenizer("a b")
    assert asked.word_ids() == [None, 0, 1, None]
    tokenizer.add_tokens("a b")
    assert asked.word_ids() == [None, 0, 1, None]
    with pytest.raises(ValueError, match="added to the tokenizer since"):
        late.word_ids()


@pytest.mark.parametrize("side", ["left", "right"])
def test_where_tokens_came_from_is_of_the_time_of_the_call(build: Build, side: Any) -> None:
    options: Any = {"truncation": True, "max_length": 4, "padding": True}
    asked = build(padding_side=side, truncation_side=side)(["a b c", "a"], **options)
    expected = [(asked.tokens(row), asked.word_ids(row), asked.sequence_ids(row)) for row in (0, 1)]
    tokenizer = build(padding_side=side, truncation_side=side)
    late = tokenizer(["a b c", "a"], **options)
    tokenizer.padding_side = tokenizer.truncation_side = "left" if side == "right" else "right"
    tokenizer.split_special_tokens = True
    assert [(late.tokens(row), late.word_ids(row), late.sequence_ids(row)) for row in (0, 1)] == expected
    assert late.tokens(1) == tokenizer.convert_ids_to_tokens(late["input_ids"][1])
    assert copy.copy(late).tokens(1) == late.tokens(1)


def test_where_tokens_came_from_keeps_the_special_tokens_of_the_call(
    tokenizer: BertTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding = tokenizer("a")
    monkeypatch.setattr(tokenizer, "special_layout", lambda: None)
    assert encoding.tokens() == ["[CLS]", "a", "[SEP]"]


def test_d4_offsets_in_the_text_as_given() -> None:
    tokenizer = BertTokenizer(shared("data", "vocab", "bert-base-uncased-vocab.txt"))
    encoding = tokenizer("Café, the naïve", return_offsets_mapping=True)
    assert encoding.tokens() == ["[CLS]", "cafe", ",", "the", "naive", "[SEP]"]
    assert encoding.offsets == [None, (0, 4), (4, 5), (6, 9), (10, 15), None]
    tensor = tokenizer("Café", return_offsets_mapping=True, return_tensors="pt").offset_mapping
    assert tensor.tolist() == [[[0, 0], [0, 4], [0, 0]]]


@pytest.mark.parametrize("engine", ["python", "tokenizers"])
def test_d4_dropped_and_added_characters(build: Build, engine: str) -> None:
    def offsets(text: str, **options: Any) -> list[Any]:
        encoding = build(engine=engine, **options)(text, add_special_tokens=False, return_offsets_mapping=True)
        return list(zip(encoding.tokens(), encoding.offsets, strict=True))

    assert offsets("cafe\u0301 a") == [("cafe", (0, 4)), ("a", (6, 7))]
    assert offsets("\x00a\u200bb\x00 c") == [("a", (1, 2)), ("##b", (3, 4)), ("c", (6, 7))]
    assert offsets("a中b") == [("a", (0, 1)), ("中", (1, 2)), ("b", (2, 3))]
    assert offsets("한") == [("ᄒ", (0, 1)), ("##ᅡ", (0, 1)), ("##ᆫ", (0, 1))]
    assert offsets("a [MASK]b") == [("a", (0, 1)), ("[MASK]", (2, 8)), ("b", (8, 9))]
    assert offsets("ΑΣ"[1:] + " é", do_lower_case=True, strip_accents=False)[1] == ("é", (2, 3))


def test_tensors(tokenizer: BertTokenizer) -> None:
    encoding = tokenizer(["a", "a b"], padding=True, return_tensors="pt")
    assert encoding.input_ids.tolist() == [[2, A, 3, 0], [2, A, B, 3]]
    assert encoding.attention_mask.tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert {value.dtype for value in encoding.values()} == {torch.int64}
    assert tokenizer("a", return_tensors="pt").input_ids.shape == (1, 3)
    array = tokenizer("a", return_tensors="np").input_ids
    assert (type(array), array.dtype, array.shape) == (np.ndarray, np.int64, (1, 3))
    with pytest.raises(ValueError, match="padding=True"):
        tokenizer(["a", "a b"], return_tensors="pt")
    with pytest.raises(ValueError, match="'tf' is none of"):
        tokenizer("a", return_tensors="tf")  # type: ignore[arg-type]


def test_empty(tokenizer: BertTokenizer) -> None:
    assert tokenizer([]) == {"input_ids": [], "token_type_ids": [], "attention_mask": []}
    assert tokenizer("")["input_ids"] == [2, 3]
    assert tokenizer(["", "a"])["input_ids"] == [[2, 3], [2, A, 3]]
    with pytest.raises(ValueError, match="empty batch"):
        tokenizer([], return_tensors="pt")


@pytest.mark.parametrize(
    ("text", "pair", "where"),
    [
        (None, None, "text must be a string, not None"),
        (3, None, "text must be a string, not int"),
        (["a", None], None, r"text\[1\] must be a string, not None"),
        (["a", ["b"]], None, r"text\[1\] must be a string, not list .*is_split_into_words"),
        (["a", "b"], ["c", 4], r"text_pair\[1\] must be a string, not int"),
        ([("a", "b"), "c"], None, r"text\[1\] must be a pair"),
        ([("a", "b"), ("c", None)], None, r"text\[1\]\[1\] must be a string, not None"),
        ("a", ["b"], "text_pair must be a string, not list"),
        (["a"], "b", "text_pair must be a list"),
        (b"a", None, "text must be a string, not bytes"),
    ],
)
def test_what_is_no_text_is_named(tokenizer: BertTokenizer, text: Any, pair: Any, where: str) -> None:
    with pytest.raises(TypeError, match=where):
        tokenizer(text, pair)


def test_more_input_errors(tokenizer: BertTokenizer) -> None:
    with pytest.raises(ValueError, match="2 texts and text_pair 1"):
        tokenizer(["a", "b"], ["c"])
    with pytest.raises(TypeError, match=r"text\[1\]\[0\] must be a string"):
        tokenizer([["a"], [None]], is_split_into_words=True)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="max_lenght"):
        tokenizer("a", max_lenght=3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="truncation='longest' is none of"):
        tokenizer("a", truncation="longest")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not one text"):
        tokenizer.batch_encode_plus("a")
    with pytest.raises(TypeError, match="must be a string"):
        tokenizer.tokenize(None)  # type: ignore[arg-type]


def test_padding(build: Build) -> None:
    tokenizer = build(model_max_length=8)
    assert [len(row) for row in tokenizer(["a", "a b"], padding="longest")["input_ids"]] == [4, 4]
    assert [len(row) for row in tokenizer(["a", "a b"], padding="max_length")["input_ids"]] == [8, 8]
    assert len(tokenizer("a", padding="max_length", max_length=5)["input_ids"]) == 5
    assert len(tokenizer("a", padding=True, pad_to_multiple_of=8)["input_ids"]) == 8
    left = build(padding_side="left")(["a", "a b"], padding=True, return_special_tokens_mask=True)
    assert left["input_ids"][0] == [0, 2, A, 3]
    assert left["attention_mask"][0] == [0, 1, 1, 1]
    assert left["special_tokens_mask"][0] == [1, 1, 0, 1]
    with pytest.raises(ValueError, match="max_length"):
        build()("a", padding="max_length")


def test_padding_needs_a_token(build: Build) -> None:
    with pytest.raises(ValueError, match="pad_token"):
        build(pad_token=None)(["a", "a b"], padding=True)


def test_pad_encodings_made_one_at_a_time(tokenizer: BertTokenizer) -> None:
    texts = ["a", "a b c"]
    expected = tokenizer(texts, padding=True, return_tensors="pt")
    padded = tokenizer.pad([tokenizer(text) for text in texts], return_tensors="pt")
    assert all(torch.equal(padded[name], expected[name]) for name in expected)
    assert tokenizer.pad({"input_ids": [[2, 3], [2, A, 3]]})["attention_mask"] == [[1, 1, 0], [1, 1, 1]]
    with pytest.raises(ValueError, match="input_ids"):
        tokenizer.pad({"labels": [1]})


def test_truncation(build: Build) -> None:
    tokenizer = build(model_max_length=4)
    assert tokenizer.encode("a b c", truncation=True) == [2, A, B, 3]
    assert build(truncation_side="left").encode("a b c", truncation=True, max_length=4) == [2, B, C, 3]
    assert tokenizer.encode("a b c", truncation=True, max_length=2) == [2, 3]
    with pytest.raises(ValueError, match="2 special tokens"):
        tokenizer.encode("a b c", truncation=True, max_length=1)
    pair: Any = {"max_length": 7}
    assert tokenizer.encode("a b c", "a b c", truncation=True, **pair) == [2, A, B, 3, A, B, 3]
    assert tokenizer.encode("a b c", "a b c", truncation="only_first", **pair) == [2, A, 3, A, B, C, 3]
    assert tokenizer.encode("a b c", "a b c", truncation="only_second", **pair) == [2, A, B, C, 3, A, 3]
    with pytest.raises(ValueError, match="only_first"):
        tokenizer.encode("a", "a b c a b c", truncation="only_first", **pair)
    with pytest.raises(ValueError, match="second text"):
        tokenizer.encode("a b c", truncation="only_second")


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 60))
def test_longest_first_takes_one_token_at_a_time(first: int, second: int, room: int) -> None:
    one, other = first, second
    while one + other > room:
        if one > other:
            one -= 1
        else:
            other -= 1
    assert lengths_kept(first, second, room, "longest_first") == (one, other)


@pytest.mark.parametrize("number", [np.int64, np.array, torch.tensor], ids=["int64", "array", "tensor"])
def test_numbers_of_other_libraries(build: Build, number: Callable[[int], Any]) -> None:
    tokenizer = build(model_max_length=number(4), max_input_chars_per_word=number(50))
    assert type(tokenizer.model_max_length) is type(tokenizer.init_options["max_input_chars_per_word"]) is int
    assert tokenizer.encode("a b c", truncation=True, max_length=number(4)) == [2, A, B, 3]
    assert tokenizer.encode("a", padding=True, pad_to_multiple_of=number(4)) == [2, A, 3, 0]
    assert tokenizer.prepare_for_model([A, B, C], truncation=True, max_length=number(3))["input_ids"] == [2, A, 3]


@pytest.mark.parametrize("value", ["4", 4.0, True, [4]], ids=repr)
def test_what_is_no_number_is_named(build: Build, value: Any) -> None:
    with pytest.raises(TypeError, match=r"max_length must be an int, not .*\("):
        build()("a", truncation=True, max_length=value)
    with pytest.raises(TypeError, match="model_max_length must be an int"):
        build(model_max_length=value)
    with pytest.raises(TypeError, match="max_input_chars_per_word must be an int"):
        build(max_input_chars_per_word=value)


def test_windows(tokenizer: BertTokenizer) -> None:
    options: Any = {"truncation": True, "max_length": 5, "stride": 1, "return_overflowing_tokens": True}
    encoding = tokenizer(["a b c d e", "a"], **options)
    assert encoding["input_ids"] == [[2, 18, 19, 20, 3], [2, 20, 21, 22, 3], [2, 18, 3]]
    assert encoding["overflow_to_sample_mapping"] == [0, 0, 1]
    pair = tokenizer("a b", "a b c d", truncation="only_second", max_length=7, return_overflowing_tokens=True)
    assert pair["input_ids"] == [[2, 18, 19, 3, 18, 19, 3], [2, 18, 19, 3, 20, 21, 3]]
    assert pair.sequence_ids(1) == [None, 0, 0, None, 1, 1, None]
    with pytest.raises(ValueError, match="only_first"):
        tokenizer("a b", "a b c d", truncation=True, max_length=7, return_overflowing_tokens=True)
    with pytest.raises(ValueError, match="stride=3 must be less than the 3"):
        tokenizer("a b c d e", **{**options, "stride": 3})


@settings(derandomize=True)
@given(st.integers(0, 20), st.integers(1, 6), st.data(), st.sampled_from(["left", "right"]))
def test_windows_hold_every_token(length: int, room: int, data: st.DataObject, side: Any) -> None:
    stride = data.draw(st.integers(0, room - 1))
    tokenizer = BertTokenizer(shared_vocab(), truncation_side=side)
    encoding = tokenizer(
        " ".join("ab"[number % 2] for number in range(length)),
        truncation=True,
        max_length=room + 2,
        stride=stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    seen = [span for row in encoding.offsets for span in row if span]
    assert set(seen) == {(2 * number, 2 * number + 1) for number in range(length)}
    for before, after in zip(encoding.offsets[:-1], encoding.offsets[1:], strict=True):
        shared_tokens = {span for span in before if span} & {span for span in after if span}
        assert len(shared_tokens) == stride


def shared_vocab() -> Any:
    from pathlib import Path

    return Path(__file__).with_name("vocab_small.txt")


def test_long_text_is_warned_about_once(build: Build, caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = build(model_max_length=4)
    with caplog.at_level(logging.WARNING):
        for text in ("a b c", "a b c d", "a"):
            tokenizer(text)
    assert len(caplog.records) == 1
    assert "5 tokens" in caplog.text
    assert "truncation=True" in caplog.text


def test_length_and_masks(tokenizer: BertTokenizer) -> None:
    encoding = tokenizer(["a", "a b"], padding=True, return_length=True, return_token_type_ids=False)
    assert list(encoding) == ["input_ids", "attention_mask", "length"]
    assert encoding["length"] == [3, 4]
    assert "attention_mask" not in tokenizer("a", return_attention_mask=False)


def test_encoding_copies_moves_and_pickles(tokenizer: BertTokenizer) -> None:
    encoding = tokenizer(["a", "b"], return_tensors="pt")
    copied = encoding.copy()
    copied.input_ids[0, 0] = 99
    assert encoding.input_ids[0, 0] == 2
    assert copied.tokens(0) == encoding.tokens(0)
    assert encoding.to("cpu") is encoding
    assert copy.deepcopy(encoding).input_ids is not encoding.input_ids
    listed = tokenizer("a")
    listed.copy()["input_ids"][0] = 99
    assert listed["input_ids"][0] == 2
    for item in (tokenizer("a", return_offsets_mapping=True), tokenizer("a b")):
        again = pickle.loads(pickle.dumps(item))
        assert (type(again), again) == (BatchEncoding, item)
    assert pickle.loads(pickle.dumps(tokenizer("a", return_offsets_mapping=True))).word_ids() == [None, 0, None]
    with pytest.raises(ValueError, match="before pickling"):
        pickle.loads(pickle.dumps(tokenizer("a"))).word_ids()
    with pytest.raises(AttributeError, match="no field 'labels'"):
        _ = encoding.labels
    with pytest.raises(ValueError, match="return_offsets_mapping"):
        _ = encoding.offsets


def test_ids_to_inputs(tokenizer: BertTokenizer) -> None:
    assert tokenizer.build_inputs_with_special_tokens([A], [B]) == [2, A, 3, B, 3]
    assert tokenizer.create_token_type_ids_from_sequences([A], [B]) == [0, 0, 0, 1, 1]
    assert tokenizer.get_special_tokens_mask([A], [B]) == [1, 0, 1, 0, 1]
    assert tokenizer.get_special_tokens_mask([2, A, 3], already_has_special_tokens=True) == [1, 0, 1]
    assert tokenizer.add_special_tokens_single_sentence([A]) == [2, A, 3]
    assert tokenizer.add_special_tokens_sentences_pair([A], [B]) == [2, A, 3, B, 3]
    assert (tokenizer.num_special_tokens_to_add(), tokenizer.num_special_tokens_to_add(pair=True)) == (2, 3)
    assert tokenizer.prepare_for_model([A, B, C], [B], truncation=True, max_length=6) == {
        "input_ids": [2, A, B, 3, B, 3],
        "token_type_ids": [0, 0, 0, 0, 1, 1],
        "attention_mask": [1] * 6,
    }
    with pytest.raises(ValueError, match="999"):
        tokenizer.prepare_for_model([999])


def test_decode(tokenizer: BertTokenizer) -> None:
    ids = tokenizer.encode("The cats, unaffable!")
    assert tokenizer.decode(ids, skip_special_tokens=True) == "the cats, unaffable!"
    assert tokenizer.decode(ids) == "[CLS] the cats, unaffable! [SEP]"
    assert tokenizer.decode(ids, True, False) == "the cats , unaffable !"
    assert tokenizer.decode(torch.tensor(ids), skip_special_tokens=True) == "the cats, unaffable!"
    assert tokenizer.decode(np.array(ids)[1]) == tokenizer.decode(ids[1]) == "the"
    assert tokenizer.batch_decode([[A], [B, C]]) == ["a", "b c"]
    tokenizer.add_tokens("cool-token")
    assert tokenizer.decode(tokenizer.encode("a cool-token b", add_special_tokens=False)) == "a cool-token b"
    with pytest.raises(ValueError, match="batch_decode"):
        tokenizer.decode([[A]])


@pytest.mark.parametrize("wrap", [np.array, torch.tensor], ids=["array", "tensor"])
def test_decode_takes_tensors_and_arrays(tokenizer: BertTokenizer, wrap: Callable[[Any], Any]) -> None:
    assert tokenizer.batch_decode(wrap([[A, B], [B, C]])) == ["a b", "b c"]
    assert tokenizer.batch_decode([wrap([A]), wrap([B, C])]) == ["a", "b c"]
    assert tokenizer.batch_decode(wrap([A, B])) == ["a", "b"]
    assert tokenizer.decode(wrap([A, B])) == tokenizer.decode([wrap(A), wrap(B)]) == "a b"
    assert tokenizer.decode(wrap(A)) == tokenizer.convert_ids_to_tokens(wrap(A)) == "a"
    assert tokenizer.convert_ids_to_tokens(wrap([A, B])) == ["a", "b"]
    for rows in (wrap([[A], [B]]), [wrap([A, B])]):
        with pytest.raises(ValueError, match="batch_decode"):
            tokenizer.decode(rows)
    for wrong in (wrap([1.0]), wrap(1.0), [wrap(1.0)]):
        with pytest.raises(TypeError, match="int, not"):
            tokenizer.decode(wrong)


@pytest.mark.parametrize("ids", ["abc", b"abc", None, 1.5, [1.5], ["a"], [None], {"input_ids": [A]}], ids=repr)
def test_what_is_no_id_is_named(tokenizer: BertTokenizer, ids: Any) -> None:
    for ask in (tokenizer.decode, tokenizer.convert_ids_to_tokens, lambda ids: tokenizer.batch_decode([ids])):
        with pytest.raises(TypeError, match=r"must be an int.*not .*\("):
            ask(ids)


def test_model_takes_the_encoding(tokenizer: BertTokenizer) -> None:
    def model(input_ids: Any, token_type_ids: Any, attention_mask: Any) -> int:
        return int(input_ids.shape[1])

    assert model(**tokenizer("a b", return_tensors="pt")) == 4
