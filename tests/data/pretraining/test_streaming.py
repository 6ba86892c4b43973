"""The streaming mode: what every instance must be, equal files for any number of processes, and going on."""

import json
import operator
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from pytorch_transformers.data.batches import collate
from pytorch_transformers.data.pretraining import (
    InstanceOptions,
    PretrainingDataset,
    TFRecordDataset,
    create_pretraining_data,
    create_tfrecords,
    open_pretraining_data,
)
from pytorch_transformers.data.pretraining.create import Mode
from pytorch_transformers.data.pretraining.draws import generator_of, key_of, uniform, uniform_at
from pytorch_transformers.data.pretraining.instances import Instance, truncate_pair
from pytorch_transformers.data.pretraining.pairs import excess
from pytorch_transformers.data.pretraining.processes import workers
from pytorch_transformers.tokenizers.train import train_wordpiece
from saved_bert import environment

from .corpus import document_of, document_words, make_documents, make_tokenizer, write_documents

DOCUMENTS = 20
SMALL = InstanceOptions(max_seq_length=32, max_predictions_per_seq=6, dupe_factor=3)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_documents(tmp_path_factory.mktemp("text") / "in.txt", make_documents(DOCUMENTS, 40))


@pytest.fixture(scope="module", params=[False, True], ids=["tokens", "words"])
def data(text: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> PretrainingDataset:
    """Some ten thousand instances in several shards."""
    options = InstanceOptions(
        max_seq_length=32, max_predictions_per_seq=6, dupe_factor=40, do_whole_word_mask=request.param
    )
    folder = tmp_path_factory.mktemp("data")
    create_pretraining_data([text], make_tokenizer(DOCUMENTS), folder, options, block_size=4000)
    return PretrainingDataset(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def original_ids(instance: Instance) -> list[int]:
    """The ids before anything was masked."""
    ids = list(instance.input_ids)
    for place, label in zip(instance.positions or (), instance.labels or (), strict=True):
        ids[place] = label
    return ids


def all_of(data: PretrainingDataset) -> list[Instance]:
    return data.instances(range(len(data)))


def test_every_instance_is_well_formed(data: PretrainingDataset) -> None:
    tokenizer, options = make_tokenizer(DOCUMENTS), data.index.options
    cls_id, sep_id = tokenizer.cls_token_id, tokenizer.sep_token_id
    assert len(data) > 9000
    assert len(data.index.shards) > 5
    for instance in all_of(data):
        ids = original_ids(instance)
        assert len(ids) <= options.max_seq_length
        assert [place for place, token in enumerate(ids) if token in (cls_id, sep_id)] == [
            *(0, instance.second - 1, len(ids) - 1)
        ]
        assert ids[0] == cls_id
        assert 2 < instance.second < len(ids) - 1  # neither text is empty
        assert instance.positions is not None
        assert instance.positions == sorted(set(instance.positions))
        assert not {0, instance.second - 1, len(ids) - 1} & set(instance.positions)
        most = min(options.max_predictions_per_seq, max(1, round(len(ids) * options.masked_lm_prob)))
        assert len(instance.positions) <= most
        if not options.do_whole_word_mask:
            assert len(instance.positions) == most
            continue
        pieces = data.vocabulary.continues[ids]
        for place in range(2, len(ids) - 1):
            if pieces[place] and place != instance.second:
                assert (place in instance.positions) == (place - 1 in instance.positions)


def test_random_next_sentences_are_from_other_documents_and_true_ones_follow(data: PretrainingDataset) -> None:
    tokenizer = make_tokenizer(DOCUMENTS)
    for instance in all_of(data):
        names = [document_of(token) for token in tokenizer.convert_ids_to_tokens(original_ids(instance))]
        first = {name for name in names[: instance.second] if name}
        second = {name for name in names[instance.second :] if name}
        assert len(first) <= 1
        assert len(second) <= 1
        if first and second:
            assert (first != second) == instance.is_random_next


def test_shares_of_masks_pairs_and_lengths(data: PretrainingDataset) -> None:
    fates: Counter[str] = Counter()
    random_words: Counter[int] = Counter()
    instances = all_of(data)
    for instance in instances:
        for place, label in zip(instance.positions or (), instance.labels or (), strict=True):
            token = instance.input_ids[place]
            kind = "mask" if token == data.vocabulary.mask_id else "same" if token == label else "other"
            fates[kind] += 1
            random_words[token] += kind == "other"
    total = sum(fates.values())
    assert total > 30_000
    for kind, share in (("mask", 0.8), ("same", 0.1), ("other", 0.1)):
        assert fates[kind] / total == pytest.approx(share, abs=0.015), kind
    assert len(+random_words) > 0.95 * (data.vocabulary.size - 1)  # any token, [MASK] counted above
    # A chunk of one sentence has always a random next one, so a little more than half.
    assert 0.5 < np.mean([bool(instance.is_random_next) for instance in instances]) < 0.62
    lengths = np.array([len(instance.input_ids) for instance in instances])
    assert np.mean(lengths == data.index.options.max_seq_length) > 0.75  # filled up, but for short ones and last ones
    assert set(range(8, 33)) <= set(lengths.tolist())
    seconds = np.array([len(one.input_ids) - one.second - 1 for one in instances])
    firsts = np.array([one.second - 2 for one in instances])
    assert np.mean(firsts) == pytest.approx(np.mean(seconds), rel=0.25)


def test_masked_places_are_spread_evenly(data: PretrainingDataset) -> None:
    """Among full inputs no place of text is masked much more often than another."""
    full = [one for one in all_of(data) if len(one.input_ids) == data.index.options.max_seq_length]
    counts = np.bincount([place for one in full for place in one.positions or ()], minlength=32)
    text = np.array([sum(place != one.second - 1 for one in full) for place in range(32)])
    rates = counts[1:-1] / text[1:-1]
    assert rates.std() < 0.25 * rates.mean()


def test_pairs_are_cut_at_both_ends_of_both_texts(tmp_path: Path) -> None:
    """Each sentence goes through the words of its document in order, so a text that is cut shows where."""
    text = write_documents(tmp_path / "in.txt", [[" ".join(document_words(number))] * 40 for number in range(4)])
    tokenizer = make_tokenizer(4)
    create_pretraining_data([text], tokenizer, tmp_path / "data", SMALL)
    cut = [one for one in all_of(PretrainingDataset(tmp_path / "data")) if len(one.input_ids) == 32]
    words = [tokenizer.convert_ids_to_tokens(original_ids(one)) for one in cut]
    ends = [
        (texts[1][-1] != "a", texts[one.second - 2][-1] != "l", texts[one.second][-1] != "a", texts[-2][-1] != "l")
        for one, texts in zip(cut, words, strict=True)
    ]
    shares = np.mean(ends, axis=0)
    assert len(cut) > 100
    assert (shares > 0.2).all(), shares
    assert abs(shares[0] - shares[1]) < 0.15
    assert abs(shares[2] - shares[3]) < 0.15


def test_all_text_is_used(text: Path, tmp_path: Path) -> None:
    """The first texts and true next ones together go through the whole corpus in each duplicate."""
    options = InstanceOptions(max_seq_length=64, dupe_factor=1, short_seq_prob=0.0)
    tokenizer = make_tokenizer(DOCUMENTS)
    create_pretraining_data([text], tokenizer, tmp_path, options)
    data = PretrainingDataset(tmp_path)
    used = sum(
        (instance.second - 2) + (0 if instance.is_random_next else len(instance.input_ids) - instance.second - 1)
        for instance in all_of(data)
    )
    tokens = sum(map(len, tokenizer._encode_ids(text.read_text().split("\n"))))
    assert 0.85 * tokens < used <= tokens


@pytest.fixture(scope="module")
def made_by_one(text: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("one")
    create_pretraining_data([text], make_tokenizer(DOCUMENTS), folder, SMALL, block_size=4000)
    return contents(folder)


@pytest.mark.parametrize("processes", [2, 3])
def test_any_number_of_processes_makes_the_same_files(
    text: Path, made_by_one: dict[str, bytes], tmp_path: Path, processes: int
) -> None:
    create_pretraining_data([text], make_tokenizer(DOCUMENTS), tmp_path, SMALL, block_size=4000, processes=processes)
    assert contents(tmp_path) == made_by_one
    assert len(made_by_one) > 5


def test_a_seed_makes_the_same_files_and_another_one_others(
    text: Path, made_by_one: dict[str, bytes], tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere" / text.name
    copy.parent.mkdir()
    copy.write_bytes(text.read_bytes())
    tokenizer = make_tokenizer(DOCUMENTS)
    create_pretraining_data([copy], tokenizer, tmp_path / "a", SMALL, block_size=4000)
    assert contents(tmp_path / "a") == made_by_one
    other = InstanceOptions(max_seq_length=32, max_predictions_per_seq=6, dupe_factor=3, random_seed=1)
    create_pretraining_data([copy], tokenizer, tmp_path / "b", other, block_size=4000)
    assert contents(tmp_path / "b")["shard-00000.safetensors"] != made_by_one["shard-00000.safetensors"]


MAKE = """
import resource, sys
from pathlib import Path
from typing import Any
sys.path.insert(0, sys.argv[1])
from data.pretraining.corpus import make_tokenizer
from pytorch_transformers.data.pretraining import InstanceOptions, create_pretraining_data
if int(sys.argv[4]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), resource.RLIM_INFINITY))
options = InstanceOptions(max_seq_length=32, max_predictions_per_seq=6, dupe_factor=3)
create_pretraining_data([sys.argv[2]], make_tokenizer(20), sys.argv[3], options, block_size=4000)
"""


def start(text: Path, folder: Path, limit: int) -> "subprocess.Popen[str]":
    """Makes the data in a process that can't write files of more than `limit` bytes, as if the disk were full."""
    command = [sys.executable, "-c", MAKE, str(Path(__file__).parents[2]), str(text), str(folder), str(limit)]
    return subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)


def test_a_full_disk_leaves_finished_shards_which_are_not_made_again(tmp_path: Path) -> None:
    documents = make_documents(DOCUMENTS, 40)
    documents[DOCUMENTS // 2].insert(20, " ".join(documents[DOCUMENTS // 2] * 2))  # a long line makes a large block
    text = write_documents(tmp_path / "in.txt", documents)
    whole, folder = tmp_path / "whole", tmp_path / "data"
    create_pretraining_data([text], make_tokenizer(DOCUMENTS), whole, SMALL, block_size=4000)
    sizes = [path.stat().st_size for path in sorted(whole.glob("shard-*"))]
    large = sizes.index(max(sizes))
    assert 2 <= large < len(sizes) - 1
    limit = max(sizes[:large])
    process = start(text, folder, limit)
    assert "File too large" in process.communicate(timeout=60)[1]
    assert process.returncode
    left = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    kept = [f"shard-{number:05d}.safetensors" for number in range(large)]
    assert set(left) == {*kept, "work"}  # no index, nothing half-written
    with pytest.raises(OSError, match="no complete training data"):
        PretrainingDataset(folder)
    create_pretraining_data([text], make_tokenizer(DOCUMENTS), folder, SMALL, block_size=4000)
    assert contents(folder) == contents(whole)
    assert all((folder / name).stat().st_mtime_ns == left[name] for name in kept)


def test_a_killed_run_goes_on(text: Path, made_by_one: dict[str, bytes], tmp_path: Path) -> None:
    process = start(text, tmp_path, 0)
    for _ in range(6000):
        if (tmp_path / "shard-00000.safetensors").exists() or process.poll() is not None:
            break
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    (tmp_path / ".shard-00001.safetensors.0123456789ab.tmp").write_bytes(b"half")  # as when killed while writing
    create_pretraining_data([text], make_tokenizer(DOCUMENTS), tmp_path, SMALL, block_size=4000)
    assert contents(tmp_path) == made_by_one


def test_what_another_run_has_left_is_not_used(text: Path, made_by_one: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "job.json").write_text(json.dumps({"job": "other"}))
    (tmp_path / "work" / "part-00000.safetensors").write_bytes(b"other")
    (tmp_path / "shard-00000.safetensors").write_bytes(b"other")
    (tmp_path / "shard-99999.safetensors").write_bytes(b"other")
    create_pretraining_data([text], make_tokenizer(DOCUMENTS), tmp_path, SMALL, block_size=4000)
    assert contents(tmp_path) == made_by_one


def test_complete_data_are_kept_unless_told_otherwise(text: Path, tmp_path: Path) -> None:
    tokenizer = make_tokenizer(DOCUMENTS)
    index = create_pretraining_data([text], tokenizer, tmp_path, SMALL)
    before = (tmp_path / "index.json").stat().st_mtime_ns
    assert create_pretraining_data([text], tokenizer, tmp_path, SMALL) == index
    assert (tmp_path / "index.json").stat().st_mtime_ns == before
    other = InstanceOptions(max_seq_length=16, max_predictions_per_seq=2, dupe_factor=1)
    with pytest.raises(ValueError, match="holds other training data already"):
        create_pretraining_data([text], tokenizer, tmp_path, other)
    assert len(PretrainingDataset(tmp_path, verify=True)) == index.instances
    create_pretraining_data([text], tokenizer, tmp_path, other, overwrite=True)
    assert PretrainingDataset(tmp_path, verify=True).index.options == other


def test_records_of_the_streaming_mode_are_its_instances(text: Path, tmp_path: Path) -> None:
    tokenizer = make_tokenizer(DOCUMENTS)
    create_pretraining_data([text], tokenizer, tmp_path / "data", SMALL)
    path = tmp_path / "x.tfrecord"
    count = create_tfrecords([text], tokenizer, [path], SMALL, mode="streaming")
    data, records = PretrainingDataset(tmp_path / "data"), TFRecordDataset([path])
    assert len(data) == len(records) == count
    assert [records[i] for i in range(0, count, 37)] == data.__getitems__(range(0, count, 37))
    assert sorted(child.name for child in tmp_path.iterdir()) == ["data", "x.tfrecord"]


@pytest.mark.parametrize("words", [False, True])
def test_dynamic_masks_change_with_the_epoch_and_not_with_the_batch(text: Path, tmp_path: Path, words: bool) -> None:
    options = InstanceOptions(max_seq_length=32, max_predictions_per_seq=6, dupe_factor=1, do_whole_word_mask=words)
    create_pretraining_data([text], make_tokenizer(DOCUMENTS), tmp_path, options, dynamic_masking=True)
    data, again = PretrainingDataset(tmp_path), PretrainingDataset(tmp_path, epoch=1)
    numbers = list(range(0, len(data), 5))
    rows = data.__getitems__(numbers)
    assert rows == [data[number] for number in numbers] == list(reversed(data.__getitems__(numbers[::-1])))
    others = again.__getitems__(numbers)
    data.set_epoch(1)
    assert data.__getitems__(numbers) == others
    assert sum(a["masked_lm_labels"] != b["masked_lm_labels"] for a, b in zip(rows, others, strict=True)) > 0.9 * len(
        rows
    )
    # What lies below the masks is the same.
    assert [original_ids(one) for one in data.instances(numbers)] == [
        original_ids(one) for one in PretrainingDataset(tmp_path).instances(numbers)
    ]


def test_rows_go_through_a_loader_to_batches(data: PretrainingDataset) -> None:
    loader: DataLoader[Any] = DataLoader(data, batch_size=7, collate_fn=collate, num_workers=1)  # type: ignore[arg-type]  # what it asks for is there
    batch = next(iter(loader))
    assert batch["input_ids"].shape == batch["token_type_ids"].shape == batch["masked_lm_labels"].shape
    assert batch["next_sentence_label"].shape == (7,)
    assert data[-1] == data[len(data) - 1]
    with pytest.raises(IndexError, match="there is no instance"):
        data[len(data)]


def test_masked_words_alone(text: Path, tmp_path: Path) -> None:
    """Without next sentences one document is enough, and all of it is used once in each duplicate."""
    one = write_documents(tmp_path / "in.txt", make_documents(1, 100))
    tokenizer = make_tokenizer(1)
    options = InstanceOptions(max_seq_length=32, dupe_factor=2, next_sentence=False)
    create_pretraining_data([one], tokenizer, tmp_path / "data", options)
    data = PretrainingDataset(tmp_path / "data")
    instances = all_of(data)
    assert all(one.second == len(one.input_ids) and one.is_random_next is None for one in instances)
    assert "next_sentence_label" not in data[0]
    tokens = sum(map(len, tokenizer._encode_ids(one.read_text().split("\n"))))
    assert sum(len(one.input_ids) - 2 for one in instances) == 2 * tokens


def test_one_document_is_refused_or_read_from_a_distance(tmp_path: Path) -> None:
    # Words that tell their place in the document: sentence n has word n only.
    words = [f"{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(400)]
    tokenizer = type(make_tokenizer(1))(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    one = write_documents(tmp_path / "in.txt", [[" ".join([word] * 5) for word in words]])
    with pytest.raises(ValueError, match="one document, and a random next sentence must come from another"):
        create_pretraining_data([one], tokenizer, tmp_path / "data")
    assert not (tmp_path / "data").exists()
    options = InstanceOptions(max_seq_length=32, dupe_factor=5, single_document="distant")
    create_pretraining_data([one], tokenizer, tmp_path / "data", options, block_size=1000)
    seen = 0
    for instance in all_of(PretrainingDataset(tmp_path / "data")):
        ids = original_ids(instance)
        first, second = ids[1 : instance.second - 1], ids[instance.second : -1]
        gap = min(abs(a - b) for a in first for b in second)
        if instance.is_random_next:
            assert gap >= 400 // 8
            seen += 1
        else:
            assert gap <= 1
    assert seen > 100
    short = write_documents(tmp_path / "short.txt", [["aa", "ab"]])
    with pytest.raises(ValueError, match="has no distant parts"):
        create_pretraining_data([short], tokenizer, tmp_path / "other", options)


def test_missing_and_damaged_shards_are_named(text: Path, tmp_path: Path) -> None:
    create_pretraining_data([text], make_tokenizer(DOCUMENTS), tmp_path, SMALL, block_size=4000)
    shard = tmp_path / "shard-00001.safetensors"
    content = shard.read_bytes()
    shard.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    PretrainingDataset(tmp_path)
    with pytest.raises(OSError, match=r"1 of \d+ shards do not match their checksums: shard-00001"):
        PretrainingDataset(tmp_path, verify=True)
    shard.write_bytes(content[: len(content) // 2])
    data = PretrainingDataset(tmp_path)
    with pytest.raises(OSError, match=r"shard-00001.safetensors is damaged"):
        all_of(data)
    shard.unlink()
    with pytest.raises(OSError, match=r"shard-00001.safetensors is missing"):
        PretrainingDataset(tmp_path)
    (tmp_path / "index.json").write_text("{}")
    with pytest.raises(OSError, match="damaged or from another program"):
        PretrainingDataset(tmp_path)


def test_a_second_process_is_told_that_one_is_at_work(text: Path, tmp_path: Path) -> None:
    import fcntl

    (tmp_path / "work").mkdir()
    with (tmp_path / "work" / "lock").open("wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="another process is writing"):
            create_pretraining_data([text], make_tokenizer(DOCUMENTS), tmp_path, SMALL)


@pytest.fixture
def small_memory() -> Iterator[None]:
    """Leaves this process 600 MB more address space than it has."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + 600 * 2**20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_one_huge_line_and_a_document_of_many_duplicates(tmp_path: Path, small_memory: None) -> None:
    """A line of 3 MB is many sentences of one document; its duplicates are made block by block."""
    line = " ".join(make_documents(1, 1000)[0])
    (tmp_path / "in.txt").write_text(" ".join([line] * 90) + "\n\n" + "ba bb\n", encoding="utf-8")
    assert (tmp_path / "in.txt").stat().st_size > 3_000_000
    options = InstanceOptions(max_seq_length=512, max_predictions_per_seq=77, dupe_factor=2)
    index = create_pretraining_data([tmp_path / "in.txt"], make_tokenizer(2), tmp_path / "data", options)
    assert index.documents == 2
    lengths = [
        len(row["input_ids"]) for row in map(PretrainingDataset(tmp_path / "data").__getitem__, range(0, 400, 9))
    ]
    assert np.mean(lengths) > 200


@pytest.mark.parametrize("mode", ["original", "streaming"])
def test_special_tokens_in_the_text_are_text(tmp_path: Path, mode: Mode) -> None:
    text = write_documents(tmp_path / "in.txt", [["aa [SEP] ab [MASK]"] * 5, ["ba [CLS] bb"] * 5])
    options = InstanceOptions(masked_lm_prob=0.0, max_predictions_per_seq=1)
    create_pretraining_data([text], make_tokenizer(2), tmp_path / "data", options, mode=mode)
    for instance in all_of(PretrainingDataset(tmp_path / "data")):
        ids = original_ids(instance)
        assert ids.count(2) == 1
        assert ids.count(3) == 2
        assert 4 not in ids


@pytest.mark.parametrize("mode", ["original", "streaming"])
def test_a_binary_file_leaves_nothing_behind(text: Path, tmp_path: Path, mode: Mode) -> None:
    (tmp_path / "x.bin").write_bytes(b"a\n\xff\n")
    with pytest.raises(ValueError, match=r"x.bin:2: this is not UTF-8 text"):
        create_pretraining_data([text, tmp_path / "x.bin"], make_tokenizer(2), tmp_path / "data", SMALL, mode=mode)
    assert [path.name for path in tmp_path.iterdir()] == ["x.bin"]


def test_chinese_running_text(tmp_path: Path) -> None:
    """Each ideograph is a token, and sentences end at ideographic full stops."""
    ideographs = [chr(0x4E00 + number) for number in range(200)]
    paragraphs = [
        "\n".join("".join(ideographs[start + line : start + line + 12]) + "。" * (line % 2) for line in range(30))
        for start in (0, 60, 140)
    ]
    (tmp_path / "in.txt").write_text("\n\n".join(paragraphs), encoding="utf-8")
    tokenizer = type(make_tokenizer(1))(train_wordpiece(tmp_path / "in.txt", 400, limit_alphabet=300))
    index = create_pretraining_data([tmp_path / "in.txt"], tokenizer, tmp_path / "data", SMALL, layout="paragraphs")
    assert index.documents == 3
    data = open_pretraining_data(tmp_path / "data", verify=True)
    assert isinstance(data, PretrainingDataset)
    seen = {number for instance in all_of(data) for number in original_ids(instance)}
    assert tokenizer.unk_token_id not in seen
    assert len(seen) > 110


@pytest.mark.parametrize("processes", [1, 2])
def test_a_failure_in_a_process_is_that_of_the_program(processes: int) -> None:
    with workers(12, processes) as pool:
        assert list(pool.map(operator.truediv, [1, 2, 3, 4, 6])) == [12, 6, 4, 3, 2]
        assert list(pool.map(operator.floordiv, [5, 7])) == [2, 1]
        with pytest.raises(ZeroDivisionError):
            list(pool.map(operator.truediv, [1, 0, 2, 3, 4, 6, 8, 9]))


def test_no_process() -> None:
    with pytest.raises(ValueError, match="processes is 0; it should be at least 1"), workers(12, 0):
        pass


def test_text_that_gives_no_tokens_is_no_corpus(tmp_path: Path) -> None:
    text = tmp_path / "in.txt"
    for content in ("", "\n\n  \n", "\u200b\n\u200b\n"):
        text.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=r"there is no text in .*in.txt"):
            create_pretraining_data([text], make_tokenizer(2), tmp_path / "data", SMALL)
        assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_seq_length": 4}, "max_seq_length is 4; it should be from 5"),
        ({"max_predictions_per_seq": 0}, "max_predictions_per_seq is 0"),
        ({"masked_lm_prob": 1.5}, "masked_lm_prob is 1.5; it should be from 0 to 1"),
        ({"short_seq_prob": -0.1}, "short_seq_prob is -0.1"),
        ({"dupe_factor": 0}, "dupe_factor is 0"),
        ({"random_seed": -1}, "random_seed is -1"),
        ({"single_document": "same"}, "single_document is 'same'"),
    ],
)
def test_options_out_of_range(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        InstanceOptions(**options)  # type: ignore[arg-type]


@given(st.integers(1, 300), st.integers(1, 300), st.integers(2, 100), st.integers(0, 2**32))
def test_as_much_is_cut_as_token_by_token(first: int, second: int, most: int, seed: int) -> None:
    if first + second <= most:
        return
    left = truncate_pair(range(first), range(second), most, generator_of(seed))
    assert excess(first, second, most) == (first - len(left[0]), second - len(left[1]))


@given(st.integers(0, 2**63 - 1), st.lists(st.integers(0, 2**40), min_size=1, max_size=6), st.integers(1, 9))
@settings(max_examples=30)
def test_draws_depend_on_their_place_alone(seed: int, rows: list[int], columns: int) -> None:
    key = key_of(seed, 3)
    numbers = np.array(rows, np.uint64)
    drawn = uniform(key, numbers, columns)
    assert ((drawn >= 0) & (drawn < 1)).all()
    np.testing.assert_array_equal(drawn[-1:], uniform(key, numbers[-1:], columns + 4)[:, :columns])
    np.testing.assert_array_equal(drawn[:, -1], uniform_at(key, numbers, np.full(len(rows), columns - 1, np.uint64)))


def test_draws_are_uniform_and_keys_differ() -> None:
    drawn = uniform(key_of(7), np.arange(400, dtype=np.uint64), 250)
    counts, _ = np.histogram(drawn, 50)
    assert ((counts - 2000) ** 2 / 2000).sum() < 90  # chi-squared with 49 degrees of freedom
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 0.15
    assert abs(np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]) < 0.02
    assert len({key_of(*parts) for parts in ((), (0,), (0, 0), (1,), (0, 1), (1, 0))}) == 6
    # The numbers are part of the format: the same seed makes the same data in every release.
    assert key_of(1, 2, 3) == 2869315087210772132
    assert uniform(key_of(1, 2, 3), np.array([5], np.uint64), 2).tolist() == [[0.6643550287025793, 0.35988135710964575]]
    assert generator_of(1, 2).random() == 0.7881385350601772
