"""The original program's instances and records, bit for bit."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers import BertTokenizer
from pytorch_transformers.data.pretraining import (
    InstanceOptions,
    PretrainingDataset,
    TFRecordDataset,
    create_pretraining_data,
    create_tfrecords,
    open_pretraining_data,
)
from pytorch_transformers.data.pretraining.documents import Sentence, read_sentences
from pytorch_transformers.data.pretraining.instances import (
    Instance,
    collect_documents,
    original_instances,
    shuffle,
    truncate_pair,
)
from pytorch_transformers.data.pretraining.tfrecord import (
    _classes,
    _pack,
    features_of,
    pack_instance,
    parse_example,
    read_records,
)
from pytorch_transformers.data.pretraining.vocabulary import Vocabulary
from shared_data import shared

from .corpus import document_of, make_documents, make_tokenizer, write_documents

CASES = ("default", "whole_word_mask", "short")


@pytest.fixture(scope="module")
def tokenizer() -> BertTokenizer:
    vocab = shared("goldens", "tokenizers", "bert", "vocab.txt")
    return BertTokenizer(vocab, split_special_tokens=True, max_input_chars_per_word=200)


@pytest.fixture(scope="module")
def text() -> Path:
    return shared("goldens", "pretraining_data", "sample_text.txt")


def golden(case: str) -> tuple[InstanceOptions, dict[str, Any], list[dict[str, Any]]]:
    """The options of a case, its facts, and the instances of the original program."""
    folder = shared("goldens", "pretraining_data")
    facts = json.loads((folder / "config.json").read_text())["cases"][case]
    lines = (folder / f"{case}.jsonl").read_text(encoding="utf-8").split("\n")
    names = InstanceOptions.__dataclass_fields__.keys() & facts.keys()
    return (
        InstanceOptions(**{name: facts[name] for name in names}),
        facts,
        [json.loads(line) for line in lines if line],
    )


@pytest.mark.parametrize("case", CASES)
def test_instances_are_those_of_the_original(tokenizer: BertTokenizer, text: Path, case: str) -> None:
    options, facts, expected = golden(case)
    sentences = list(read_sentences([text], join_files=True, whole_lines=True))
    documents = collect_documents(sentences, tokenizer._encode_ids([sentence.text for sentence in sentences]))
    rng = random.Random(options.random_seed)
    instances = original_instances(documents, Vocabulary.of(tokenizer), options, rng)
    assert rng.random() == facts["rng_random_after"]
    assert len(instances) == facts["instances"] == len(expected)
    for instance, wanted in zip(instances, expected, strict=True):
        assert instance.positions is not None
        assert instance.labels is not None
        assert {
            "tokens": tokenizer.convert_ids_to_tokens(instance.input_ids),
            "segment_ids": instance.token_type_ids,
            "is_random_next": instance.is_random_next,
            "masked_lm_positions": instance.positions,
            "masked_lm_labels": tokenizer.convert_ids_to_tokens(instance.labels),
        } == wanted


def test_records_are_those_of_the_original_byte_for_byte(tokenizer: BertTokenizer, text: Path, tmp_path: Path) -> None:
    options, facts, _ = golden("default")
    assert create_tfrecords([text], tokenizer, [tmp_path / "out.tfrecord"], options) == facts["instances"]
    recorded = shared("goldens", "pretraining_data", "default.tfrecord")
    assert (tmp_path / "out.tfrecord").read_bytes() == recorded.read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_shards_and_records_hold_the_recorded_arrays(
    tokenizer: BertTokenizer, text: Path, tmp_path: Path, case: str
) -> None:
    options, facts, _ = golden(case)
    index = create_pretraining_data([text], tokenizer, tmp_path / "data", options, mode="original")
    assert index.rng_random_after == facts["rng_random_after"]
    data = PretrainingDataset(tmp_path / "data", verify=True)
    found = [features_of(instance, options) for instance in data.instances(range(len(data)))]
    with np.load(shared("goldens", "pretraining_data", f"{case}_features.npz")) as arrays:
        for name in arrays.files:
            np.testing.assert_array_equal(
                np.array([features[name] for features in found]), arrays[name].reshape(len(found), -1), err_msg=name
            )


def test_recorded_records_are_read(text: Path) -> None:
    """As rows for a model: labels stand at the places of the masks."""
    path = shared("goldens", "pretraining_data", "default.tfrecord")
    data = open_pretraining_data(path)
    assert isinstance(data, TFRecordDataset)
    _, facts, expected = golden("default")
    assert len(data) == facts["instances"]
    for number, wanted in enumerate(expected):
        row = data[number]
        assert row["token_type_ids"] == wanted["segment_ids"]
        assert row["next_sentence_label"] == wanted["is_random_next"]
        places = [place for place, label in enumerate(row["masked_lm_labels"]) if label != -100]
        assert places == wanted["masked_lm_positions"]
        assert len(row["input_ids"]) == len(row["masked_lm_labels"]) == len(wanted["tokens"])
    assert data[-1] == data[len(data) - 1]
    with pytest.raises(IndexError):
        data[len(data)]


@st.composite
def masked_instances(draw: st.DrawFn) -> Instance:
    """Inputs of up to 12 tokens of 1 to 5 bytes each on the wire, up to 4 of them masked."""
    numbers = st.integers(0, 2**31 - 1) | st.integers(0, 300)
    ids = draw(st.lists(numbers, max_size=12))
    positions = draw(st.lists(st.integers(0, 11), max_size=4, unique=True).map(sorted))
    labels = draw(st.lists(numbers, min_size=len(positions), max_size=len(positions)))
    return Instance(ids, draw(st.integers(0, len(ids))), draw(st.booleans()), positions, labels)


@given(masked_instances())
def test_a_record_packed_in_two_parts_is_that_of_the_whole(instance: Instance) -> None:
    options = InstanceOptions(max_seq_length=12, max_predictions_per_seq=4)
    features = features_of(instance, options)
    packed = pack_instance(instance, options)
    assert parse_example(packed) == features
    whole = _classes()["Features"].FromString(_pack(features))
    assert packed == _classes()["Example"](features=whole).SerializeToString()


def test_several_record_files_take_turns(tmp_path: Path) -> None:
    tokenizer = make_tokenizer(3)
    text = write_documents(tmp_path / "in.txt", make_documents(3, 6))
    options = InstanceOptions(max_seq_length=24, dupe_factor=2)
    paths = [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"]
    count = create_tfrecords([text], tokenizer, paths, options)
    create_tfrecords([text], tokenizer, [tmp_path / "one.tfrecord"], options)
    one = list(read_records(tmp_path / "one.tfrecord"))
    assert len(one) == count == len(TFRecordDataset(paths))
    assert [list(read_records(path)) for path in paths] == [one[::2], one[1::2]]
    assert set(parse_example(one[0])) == {
        *("input_ids", "input_mask", "segment_ids", "next_sentence_labels"),
        *("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"),
    }


@pytest.mark.parametrize("place", [3, 9, 40, -2])
def test_damaged_records_are_named(tmp_path: Path, place: int) -> None:
    tokenizer = make_tokenizer(2)
    text = write_documents(tmp_path / "in.txt", make_documents(2, 4))
    path = tmp_path / "x.tfrecord"
    create_tfrecords([text], tokenizer, [path], InstanceOptions(max_seq_length=24, dupe_factor=1))
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"x\.tfrecord, byte"):
        list(read_records(path))


def test_cut_off_records_are_named(tmp_path: Path) -> None:
    tokenizer = make_tokenizer(2)
    text = write_documents(tmp_path / "in.txt", make_documents(2, 4))
    path = tmp_path / "x.tfrecord"
    create_tfrecords([text], tokenizer, [path], InstanceOptions(max_seq_length=24, dupe_factor=1))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(OSError, match="ends within a record"):
        TFRecordDataset([path])


def test_a_random_next_sentence_is_never_from_its_own_document() -> None:
    """Two documents of five sentences, thousands of draws: ten misses in a row happen, and are no answer."""
    documents = make_documents(2, 5)
    tokenizer = make_tokenizer(2)
    sentences = [Sentence(number, text) for number, document in enumerate(documents) for text in document]
    encoded = collect_documents(sentences, tokenizer._encode_ids([sentence.text for sentence in sentences]))
    options = InstanceOptions(max_seq_length=32, dupe_factor=2000, masked_lm_prob=0.0, max_predictions_per_seq=1)
    instances = original_instances(encoded, Vocabulary.of(tokenizer), options, random.Random(5))
    drawn = 0
    for instance in instances:
        if not instance.is_random_next:
            continue
        tokens = tokenizer.convert_ids_to_tokens(instance.input_ids)
        assert instance.positions is not None
        shown = [None if place in instance.positions else document_of(token) for place, token in enumerate(tokens)]
        first = {name for name in shown[: instance.second] if name}
        second = {name for name in shown[instance.second :] if name}
        assert not first & second
        drawn += 1
    assert drawn > 4000  # so that ten misses, one time in 1024, were among them


def test_one_document_is_refused(tmp_path: Path) -> None:
    text = write_documents(tmp_path / "in.txt", make_documents(1, 5))
    with pytest.raises(ValueError, match="one document, and a random next sentence must come from another"):
        create_tfrecords([text], make_tokenizer(1), [tmp_path / "x.tfrecord"])
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_what_the_original_has_not(tmp_path: Path) -> None:
    text, tokenizer = write_documents(tmp_path / "in.txt", make_documents(2, 5)), make_tokenizer(2)
    with pytest.raises(ValueError, match="needs the streaming mode"):
        create_pretraining_data([text], tokenizer, tmp_path / "a", mode="original", dynamic_masking=True)
    for options in (InstanceOptions(next_sentence=False), InstanceOptions(single_document="distant")):
        with pytest.raises(ValueError, match="needs the streaming mode"):
            create_pretraining_data([text], tokenizer, tmp_path / "b", options, mode="original")


def test_files_run_on_as_in_the_original(tmp_path: Path) -> None:
    """Without a blank line at its end, the document of a file goes on in the next."""
    one, two = tmp_path / "1.txt", tmp_path / "2.txt"
    one.write_text("a\nb", encoding="utf-8")
    two.write_text("c\n\nd\n", encoding="utf-8")
    joined = [sentence.document for sentence in read_sentences([one, two], join_files=True)]
    assert joined == [0, 0, 0, 1]
    assert [sentence.document for sentence in read_sentences([one, two])] == [0, 0, 1, 2]


@given(st.integers(0, 300), st.integers(0, 2**32))
def test_items_are_shuffled_as_python_does(count: int, seed: int) -> None:
    ours, theirs = list(range(count)), list(range(count))
    draw, python = random.Random(seed), random.Random(seed)
    shuffle(ours, draw)
    python.shuffle(theirs)
    assert ours == theirs
    assert draw.getstate() == python.getstate()


def test_truncation_of_a_huge_pair_takes_no_longer_than_its_draws() -> None:
    first, second = truncate_pair(range(400_000), range(5), 100, random.Random(0))
    assert len(first) + len(second) == 100
    assert first == list(range(first[0], first[0] + len(first)))
    assert abs(first[0] - 200_000) < 2_000
