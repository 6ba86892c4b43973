"""Batches of a corpus against a naive computation, and against the published package where it is installed."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from published import published
from pytorch_transformers.models.transfo_xl.iterators import (
    Batch,
    LMMultiFileIterator,
    LMOrderedIterator,
    LMShuffledIterator,
)
from pytorch_transformers.models.transfo_xl.tokenizer import TransfoXLTokenizer


def lists(batches: Iterable[Batch]) -> list[tuple[Any, Any, int]]:
    return [(data.tolist(), target.tolist(), length) for data, target, length in batches]


def naive_ordered(ids: list[int], bsz: int, bptt: int, ext_len: int) -> Iterator[tuple[Any, Any, int]]:
    steps = len(ids) // bsz
    rows = [ids[row * steps : (row + 1) * steps] for row in range(bsz)]
    for start in range(0, steps - 1, bptt):
        length = min(bptt, steps - 1 - start)
        data = [row[max(0, start - ext_len) : start + length] for row in rows]
        yield data, [row[start + 1 : start + 1 + length] for row in rows], length


@given(length=st.integers(2, 60), bsz=st.integers(1, 5), bptt=st.integers(1, 9), ext_len=st.none() | st.integers(0, 7))
def test_ordered_batches(length: int, bsz: int, bptt: int, ext_len: int | None) -> None:
    data = torch.arange(100, 100 + length)
    if length // bsz < 2:
        with pytest.raises(ValueError, match=f"{length} tokens are too few for bsz={bsz}"):
            LMOrderedIterator(data, bsz, bptt)
        return
    iterator = LMOrderedIterator(data, bsz, bptt, ext_len=ext_len)
    batches = lists(iterator)
    assert batches == list(naive_ordered(data.tolist(), bsz, bptt, ext_len or 0))
    assert len(batches) in (iterator.n_batch, iterator.n_batch - 1)
    assert lists(iterator.get_fixlen_iter()) == batches  # it may be gone through again
    assert iterator.data.shape == (length // bsz, bsz)


def test_ordered_batches_may_begin_later() -> None:
    iterator = LMOrderedIterator(torch.arange(20), 2, 3)
    assert lists(iterator.get_fixlen_iter(start=3)) == lists(iterator)[1:]
    data, target, length = iterator.get_batch(7, bptt=5)
    assert (data.tolist(), target.tolist(), length) == ([[7, 8], [17, 18]], [[8, 9], [18, 19]], 2)


def test_lengths_at_random_go_through_the_whole_text() -> None:
    iterator = LMOrderedIterator(torch.arange(600), 2, 20)
    np.random.seed(7)
    batches = list(iterator.get_varlen_iter(min_len=5))
    lengths = [length for _, _, length in batches]
    assert len(set(lengths)) > 3
    assert max(lengths) <= 20 + 3 * 5
    assert min(lengths[:-1]) >= 5
    row = torch.cat([target for _, target, _ in batches], dim=1)[0].tolist()
    assert row in (list(range(1, 300)), list(range(1, 299)))  # a target that would be alone is left out
    np.random.seed(7)
    assert lists(iterator.get_varlen_iter(min_len=5)) == lists(batches)


def naive_shuffled(sentences: list[list[int]], bsz: int, bptt: int, ext_len: int) -> Iterator[tuple[Any, Any, int]]:
    """Word by word: each row has a queue of (input, target), and takes a new sentence when it is empty."""
    source = iter(sentences)
    queues: list[list[tuple[int, int]]] = [[] for _ in range(bsz)]
    seen: list[list[int]] = [[] for _ in range(bsz)]
    for _ in itertools.count():
        data, target = [], []
        for row in range(bsz):
            pairs: list[tuple[int, int]] = []
            while len(pairs) < bptt:
                while not queues[row]:
                    sentence = next(source, None)
                    if sentence is None:
                        return
                    queues[row] = list(itertools.pairwise(sentence))
                pairs.append(queues[row].pop(0))
            data.append(seen[row][max(0, len(seen[row]) - ext_len) :] + [pair[0] for pair in pairs])
            target.append([pair[1] for pair in pairs])
            seen[row] += [pair[0] for pair in pairs]
        yield data, target, bptt


@given(
    sentences=st.lists(st.lists(st.integers(0, 99), min_size=0, max_size=7), max_size=12),
    bsz=st.integers(1, 3),
    bptt=st.integers(1, 6),
    ext_len=st.integers(0, 9),
)
def test_sentences_in_order(sentences: list[list[int]], bsz: int, bptt: int, ext_len: int) -> None:
    tensors = [torch.tensor(sentence, dtype=torch.long) for sentence in sentences]
    iterator = LMShuffledIterator(tensors, bsz, bptt, ext_len=ext_len)
    assert lists(iterator) == list(naive_shuffled(sentences, bsz, bptt, ext_len))


def test_shuffled_sentences_are_the_same_ones_in_another_order() -> None:
    sentences = [torch.tensor([10 * number, 10 * number + 1]) for number in range(20)]
    iterator = LMShuffledIterator(sentences, 4, 1, shuffle=True)
    np.random.seed(1)
    first = [data for data, _, _ in lists(iterator)]
    again = [data for data, _, _ in lists(iterator)]
    assert first != again
    assert sorted(np.ravel(first)) == sorted(np.ravel(again)) == [10 * number for number in range(20)]
    np.random.seed(1)
    assert [data for data, _, _ in lists(iterator)] == first


def test_sentences_are_asked_for_one_at_a_time() -> None:
    taken = 0

    def stream() -> Iterator[torch.Tensor]:
        nonlocal taken
        while True:
            taken += 1
            yield torch.arange(4)

    next(iter(LMShuffledIterator([], 2, 3).stream_iterator(stream())))
    assert taken == 2


def files(folder: Path) -> tuple[TransfoXLTokenizer, list[Path]]:
    tokenizer = TransfoXLTokenizer()
    for symbol in ("<S>", "<unk>", *"abcdefgh"):
        tokenizer.add_symbol(symbol)
    texts = ["a b c\nd e\n", "f g h a\nb\n", "c d e f g h\n"]
    paths = [folder / f"news{number}" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    return tokenizer, paths


def test_files_one_after_the_other(tmp_path: Path) -> None:
    tokenizer, paths = files(tmp_path)
    expected: list[Any] = []
    for path in paths:
        sentences = [sentence.tolist() for sentence in tokenizer.encode_file(path, add_double_eos=True)]
        expected += naive_shuffled(sentences, 1, 2, 0)
    iterator = LMMultiFileIterator(paths, tokenizer, 1, 2)
    assert lists(iterator) == expected
    assert [len(sentence) for sentence in iterator.get_sent_stream(paths[0])] == [5, 4]
    assert len(list(iterator.get_sent_stream())) == 5


@pytest.mark.parametrize("seed", range(4))
def test_equal_to_the_published_package(tmp_path: Path, seed: int) -> None:
    original = published("pytorch_pretrained_bert", "tokenization_transfo_xl")
    random = np.random.RandomState(seed)
    data = torch.from_numpy(random.randint(0, 50, 403))
    sentences = [torch.from_numpy(random.randint(0, 50, random.randint(2, 9))) for _ in range(60)]
    tokenizer, paths = files(tmp_path)
    names = [str(path) for path in paths]
    for ext_len in (None, 3):
        ours: Any = LMOrderedIterator(data, 4, 7, ext_len=ext_len)
        theirs: Any = original.LMOrderedIterator(data, 4, 7, ext_len=ext_len)
        assert lists(ours) == lists(theirs)
        assert torch.equal(ours.data, theirs.data)
        assert (ours.n_step, ours.n_batch) == (theirs.n_step, theirs.n_batch)
        for options in ({}, {"start": 5, "std": 2, "min_len": 2, "max_deviation": 1}):
            np.random.seed(seed)
            mine = lists(ours.get_varlen_iter(**options))
            np.random.seed(seed)
            assert mine == lists(theirs.get_varlen_iter(**options))
    # More than half a batch given again would be an overlap, in which the published iterator copies over what it reads.
    for shuffle, ext_len in itertools.product((False, True), (None, 2)):
        ours = LMShuffledIterator(sentences, 3, 5, ext_len=ext_len, shuffle=shuffle)
        theirs = original.LMShuffledIterator(sentences, 3, 5, ext_len=ext_len, shuffle=shuffle)
        np.random.seed(seed)
        mine = lists(ours) + lists(ours)
        np.random.seed(seed)
        assert mine == lists(theirs) + lists(theirs)
        ours = LMMultiFileIterator(names, tokenizer, 1, 2, shuffle=shuffle)
        theirs = original.LMMultiFileIterator(list(names), tokenizer, 1, 2, shuffle=shuffle)
        np.random.seed(seed)
        mine = lists(ours) + lists(ours)
        np.random.seed(seed)
        assert mine == lists(theirs) + lists(theirs)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((torch.arange(9), 0, 3), ValueError, "bsz must be at least 1, not 0"),
        ((torch.arange(9), 2, 0), ValueError, "bptt must be at least 1, not 0"),
        ((torch.arange(9), 2.5, 3), TypeError, "bsz must be an int"),
        ((torch.arange(9), 2, 3, "cpu", -1), ValueError, "ext_len must be at least 0"),
        ((torch.arange(3), 4, 3), ValueError, "3 tokens are too few for bsz=4"),
        ((torch.arange(4), 4, 3), ValueError, "4 tokens are too few for bsz=4"),
        ((torch.ones(4, 4), 4, 3), TypeError, "one row of ids"),
        (([1, 2, 3], 1, 3), TypeError, "one row of ids"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[Any, ...], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        LMOrderedIterator(*arguments)


def test_bad_arguments_of_the_others_are_named() -> None:
    iterator = LMOrderedIterator(torch.arange(9), 1, 3)
    with pytest.raises(ValueError, match="i: 8 has no target; rows have 9 steps, so the last i is 7"):
        iterator.get_batch(8)
    with pytest.raises(ValueError, match="bptt must be at least 1"):
        iterator.get_batch(0, bptt=0)
    with pytest.raises(ValueError, match="min_len must be at least 1"):
        next(iterator.get_varlen_iter(min_len=0))
    with pytest.raises(ValueError, match="bsz must be at least 1"):
        LMShuffledIterator([], 0, 3)
    with pytest.raises(TypeError, match="a list of sentences"):
        LMShuffledIterator(torch.arange(4), 1, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there are no files"):
        LMMultiFileIterator([], TransfoXLTokenizer(), 1, 3)
