"""Corpora: built from texts, kept in plain files, read from what others saved."""

import json
import logging
import os
import pickle
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from published import published
from pytorch_transformers.models.transfo_xl.corpus import (
    CACHE_FOLDER,
    Corpus,
    TransfoXLCorpus,
    get_lm_corpus,
    read_corpus,
)
from pytorch_transformers.models.transfo_xl.iterators import (
    LMMultiFileIterator,
    LMOrderedIterator,
    LMShuffledIterator,
)
from pytorch_transformers.models.transfo_xl.tokenizer import TransfoXLTokenizer

TEXTS = {
    "train": "the Cat sat on the mat .\n\nthe <unk> dog Enquêtes\n",
    "valid": "the cat sat\n",
    "test": "a dog sat on 東京\n",
}
ORDERED = ("ptb", "wt2", "wt103", "enwik8", "text8")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """The folder of a data set."""
    folder = tmp_path / "data"
    folder.mkdir()
    for split, text in TEXTS.items():
        (folder / f"{split}.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def lm1b(tmp_path: Path) -> Path:
    """The folder of a tiny One Billion Word benchmark."""
    folder = tmp_path / "lm1b"
    parts = folder / "1-billion-word-language-modeling-benchmark-r13output" / "training-monolingual.tokenized.shuffled"
    parts.mkdir(parents=True)
    for number in range(2):
        (parts / f"news.en-0000{number}-of-00100").write_text("the cat sat\na dog\n", encoding="utf-8")
    for split in ("valid", "test"):
        (folder / f"{split}.txt").write_text(TEXTS[split], encoding="utf-8")
    (folder / "1b_word_vocab.txt").write_text("<S>\n<UNK>\nthe 5\ncat 3\nsat 2\ndog 1\n", encoding="utf-8")
    return folder


def same(left: TransfoXLCorpus, right: TransfoXLCorpus) -> None:
    """Two corpora are equal."""
    assert left.dataset == right.dataset
    assert left.vocab.idx2sym == right.vocab.idx2sym
    assert left.vocab.init_options == right.vocab.init_options
    for split in ("train", "valid", "test"):
        assert plain(getattr(left, split)) == plain(getattr(right, split))


def plain(split: Any) -> Any:
    if isinstance(split, torch.Tensor):
        assert split.dtype == torch.long
        return split.tolist()
    return split if split is None else [plain(each) for each in split] if not isinstance(split, str) else split


@pytest.mark.parametrize("dataset", ORDERED)
def test_corpus_is_that_of_its_texts(texts: Path, dataset: str) -> None:
    corpus = get_lm_corpus(texts, dataset) if dataset != "wt103" else TransfoXLCorpus(special=["<eos>"])
    if dataset == "wt103":
        corpus.build_corpus(texts, dataset)  # `a` and `東京` are not in its first split: they become <unk>
    lower, ends = dataset == "ptb", dataset not in ("enwik8", "text8")
    counted = ("train",) if dataset == "wt103" else ("train", "valid", "test")
    words: Counter[str] = Counter()
    for split in counted:
        words.update((TEXTS[split].lower() if lower else TEXTS[split]).split())
    expected = (["<eos>"] if ends else []) + [word for word, _ in words.most_common()]
    assert corpus.vocab.idx2sym == expected
    for split, text in TEXTS.items():
        ids = []
        for line in text.splitlines():
            symbols = (line.lower() if lower else line).split() + (["<eos>"] if ends else [])
            ids += [expected.index(each if each in expected else "<unk>") for each in symbols]
        assert getattr(corpus, split).tolist() == ids
        assert getattr(corpus, split).dtype == torch.long


def test_one_billion_words(lm1b: Path, tmp_path: Path) -> None:
    corpus = get_lm_corpus(lm1b, "lm1b")
    assert corpus.vocab.idx2sym == ["<S>", "<UNK>", "the", "cat", "sat", "dog"]
    assert plain(corpus.valid) == [[0, 2, 3, 4, 0]]
    assert plain(corpus.test) == [[0, 1, 5, 4, 1, 1, 0]]
    assert isinstance(corpus.train, list)
    assert [Path(str(path)).name for path in corpus.train] == ["news.en-00000-of-00100", "news.en-00001-of-00100"]
    iterator = corpus.get_iterator("train", 1, 2)
    assert isinstance(iterator, LMMultiFileIterator)
    assert iterator.shuffle
    np.random.seed(0)
    assert len(list(iterator)) == 6
    valid = corpus.get_iterator("valid", bsz=1, bptt=2)
    assert type(valid) is LMShuffledIterator
    assert [target.tolist() for _, target, _ in valid] == [[[2, 3]], [[4, 0]]]
    corpus.save_pretrained(tmp_path / "saved")
    same(TransfoXLCorpus.from_pretrained(tmp_path / "saved"), corpus)
    same(get_lm_corpus(lm1b, "lm1b"), corpus)


def test_iterator_of_a_text(texts: Path) -> None:
    corpus = get_lm_corpus(texts, "wt2")
    iterator = corpus.get_iterator("train", 2, bptt=3, ext_len=1)
    assert isinstance(iterator, LMOrderedIterator)
    assert (iterator.bsz, iterator.bptt, iterator.ext_len) == (2, 3, 1)
    with pytest.raises(ValueError, match="split: 'dev' is none of 'train', 'valid', 'test'"):
        corpus.get_iterator("dev", 2, 3)
    with pytest.raises(ValueError, match="nothing in 'train'; it has no splits yet"):
        Corpus().get_iterator("train", 2, 3)


@given(
    sentences=st.lists(st.lists(st.integers(0, 5), max_size=5).map(lambda ids: torch.tensor(ids, dtype=torch.long))),
    text=st.lists(st.integers(0, 5)).map(lambda ids: torch.tensor(ids, dtype=torch.long)),
)
def test_plain_form_comes_back(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[torch.Tensor], text: torch.Tensor
) -> None:
    corpus = TransfoXLCorpus()
    for symbol in ("<unk>", *"abcde"):
        corpus.vocab.add_symbol(symbol)
    corpus.train, corpus.test = text, sentences
    folder = tmp_path_factory.mktemp("corpus")
    corpus.save_pretrained(folder)
    loaded = TransfoXLCorpus.from_pretrained(folder)
    assert plain(loaded.train) == plain(text)
    assert plain(loaded.test) == plain(sentences)
    assert loaded.valid is None


def test_plain_form_is_plain(texts: Path, tmp_path: Path) -> None:
    corpus = get_lm_corpus(texts, "wt2")
    written = corpus.save_pretrained(tmp_path / "saved")
    assert {Path(path).name for path in written} == {path.name for path in (tmp_path / "saved").iterdir()}
    assert not list((tmp_path / "saved").glob("*.bin"))
    said = json.loads((tmp_path / "saved" / "corpus.json").read_text(encoding="utf-8"))
    assert said["dataset"] == "wt2"
    assert said["splits"] == {"train": "text", "valid": "text", "test": "text"}
    same(TransfoXLCorpus.from_pretrained(tmp_path / "saved"), corpus)


# What others saved.


def attributes(corpus: TransfoXLCorpus, kind: Any) -> dict[str, Any]:
    """The splits as the original has them: arrays of `kind`."""
    return {
        "dataset": corpus.dataset,
        **{split: kind(getattr(corpus, split).tolist()) for split in ("train", "valid", "test")},
    }


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
@pytest.mark.parametrize("zipped", [False, True])
def test_published_corpus_is_read(texts: Path, tmp_path: Path, kind: Any, zipped: bool) -> None:
    corpus = get_lm_corpus(texts, "wt2")
    folder = tmp_path / "published"
    folder.mkdir()
    torch.save(attributes(corpus, kind), folder / "corpus.bin", _use_new_zipfile_serialization=zipped)
    vocab = {name: getattr(corpus.vocab, name) for name in ("idx2sym", "sym2idx", "counter", "special", "lower_case")}
    torch.save(vocab, folder / "vocab.bin", _use_new_zipfile_serialization=False)
    for loaded in (TransfoXLCorpus.from_pretrained(folder), read_corpus(folder), read_corpus(folder / "corpus.bin")):
        assert loaded.dataset == "wt2"
        assert loaded.vocab.idx2sym == corpus.vocab.idx2sym
        assert plain(loaded.train) == plain(corpus.train)
        assert plain(loaded.test) == plain(corpus.test)


@pytest.fixture
def original(texts: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[TransfoXLCorpus, bytes]:
    """A corpus, and what the original program would have pickled of it."""
    corpus = get_lm_corpus(texts, "wt2")
    classes: dict[str, Any] = {}
    for module, name in (("data_utils", "Corpus"), ("vocabulary", "Vocab")):
        classes[name] = type(name, (), {"__module__": module})
        holder = types.ModuleType(module)
        setattr(holder, name, classes[name])
        monkeypatch.setitem(sys.modules, module, holder)
    whole, vocab = classes["Corpus"](), classes["Vocab"]()
    for name in ("idx2sym", "sym2idx", "counter", "special", "lower_case", "min_freq", "max_size", "delimiter"):
        setattr(vocab, name, getattr(corpus.vocab, name))
    vars(whole).update(attributes(corpus, np.array), vocab=vocab)
    content = pickle.dumps(whole, protocol=2)
    for module in ("data_utils", "vocabulary"):
        monkeypatch.setitem(sys.modules, module, None)
    return corpus, content


def test_original_corpus_is_read(original: tuple[TransfoXLCorpus, bytes], tmp_path: Path) -> None:
    corpus, content = original
    path = tmp_path / "original" / "cache.pkl"
    path.parent.mkdir()
    path.write_bytes(content)
    for loaded in (
        TransfoXLCorpus.from_pretrained(path.parent),
        read_corpus(path),
        get_lm_corpus(path.parent, "wt2"),  # in place of the texts, which are not there
    ):
        assert loaded.dataset == "wt2"
        assert loaded.vocab.idx2sym == corpus.vocab.idx2sym
        assert plain(loaded.train) == plain(corpus.train)
        loaded.train.add_(0)  # type: ignore[union-attr]  # its numbers are its own
    with pytest.raises(ValueError, match=r"'ptb', but .*cache.pkl is of 'wt2'"):
        get_lm_corpus(path.parent, "ptb")


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["corpus.bin", "cache.pkl"])
def test_malicious_corpus_is_refused_before_it_runs(tmp_path: Path, name: str) -> None:
    made = tmp_path / "made"
    TransfoXLTokenizer(special=["<unk>"]).build_vocab()
    tokenizer = TransfoXLTokenizer(special=["<unk>"])
    tokenizer.build_vocab()
    tokenizer.save_pretrained(tmp_path)
    content = {"train": np.arange(3), "valid": Malicious(made), "test": None}
    if name == "corpus.bin":
        torch.save(content, tmp_path / name)
    else:
        (tmp_path / name).write_bytes(pickle.dumps(content))
    with pytest.raises(OSError, match=f"{name} is refused"):
        TransfoXLCorpus.from_pretrained(tmp_path)
    assert not made.exists()


def test_ids_of_another_vocabulary_are_an_error(tmp_path: Path) -> None:
    tokenizer = TransfoXLTokenizer(special=["<unk>"])
    tokenizer.build_vocab()
    tokenizer.save_pretrained(tmp_path)
    torch.save({"train": np.array([0, 7]), "valid": None, "test": None}, tmp_path / "corpus.bin")
    with pytest.raises(ValueError, match="train has ids from 0 to 7, but the vocabulary has 1 symbols"):
        TransfoXLCorpus.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([1], "holds no corpus"),
        ({"vocab": 1}, "holds no corpus"),
        ({"train": 3}, "train is int"),
        ({"train": np.ones(3)}, "not one row of ids"),
        ({"train": np.ones((2, 2), dtype=np.int64)}, "not one row of ids"),
    ],
)
def test_damaged_corpora_are_named(tmp_path: Path, content: Any, said: str) -> None:
    tokenizer = TransfoXLTokenizer(special=["<unk>", "a"])
    tokenizer.build_vocab()
    torch.save(content, tmp_path / "corpus.bin")
    with pytest.raises(OSError, match=said) as error:
        read_corpus(tmp_path / "corpus.bin", tokenizer)
    assert "corpus.bin" in str(error.value)


# The cache.


def test_cache_is_used_and_follows_the_texts(
    texts: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = get_lm_corpus(texts, "wt2")
    assert (texts / CACHE_FOLDER / "corpus.json").is_file()
    assert sorted(path.name for path in texts.iterdir()) == ["test.txt", "train.txt", CACHE_FOLDER, "valid.txt"]
    with monkeypatch.context() as context:
        context.setattr(TransfoXLCorpus, "build_corpus", lambda *_: pytest.fail("the cache was not used"))
        same(get_lm_corpus(texts, "wt2"), corpus)
    assert not caplog.records
    (texts / "valid.txt").write_text("the cat sat on\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        changed = get_lm_corpus(texts, "wt2")
    assert len(plain(changed.valid)) == 5
    assert "valid.txt changed" in caplog.text
    assert CACHE_FOLDER in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert get_lm_corpus(texts, "ptb").vocab.lower_case
    assert "it is of 'wt2'" in caplog.text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("corpus.json", b"{"),
        ("corpus.json", b'{"format": 9}'),
        ("corpus.safetensors", b"1234"),
        ("vocab.txt", b"the\n"),
        ("tokenizer_config.json", b"{"),
    ],
)
def test_damaged_cache_is_said_and_made_anew(
    texts: Path, name: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = get_lm_corpus(texts, "wt2")
    damaged = texts / CACHE_FOLDER / name
    damaged.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        same(get_lm_corpus(texts, "wt2"), corpus)
    assert "out of date or damaged" in caplog.text
    assert CACHE_FOLDER in caplog.text
    assert damaged.read_bytes() != content


def test_damaged_plain_form_is_an_error(texts: Path, tmp_path: Path) -> None:
    corpus = get_lm_corpus(texts, "wt2")
    corpus.save_pretrained(tmp_path / "saved")
    (tmp_path / "saved" / "corpus.safetensors").write_bytes(b"1234")
    with pytest.raises(OSError, match=r"corpus\.safetensors .* cannot be read"):
        TransfoXLCorpus.from_pretrained(tmp_path / "saved")
    (tmp_path / "saved" / "corpus.safetensors").unlink()
    with pytest.raises(OSError, match=r"has no corpus\.safetensors beside it"):
        TransfoXLCorpus.from_pretrained(tmp_path / "saved")


def test_failure_leaves_the_old_cache(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    get_lm_corpus(texts, "wt2")
    before = {path.name: path.read_bytes() for path in (texts / CACHE_FOLDER).iterdir()}
    (texts / "test.txt").write_text("new text\n", encoding="utf-8")

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("pytorch_transformers.models.transfo_xl.corpus.write_json", full)
    with pytest.raises(OSError, match="no space left"):
        get_lm_corpus(texts, "wt2")
    assert {path.name: path.read_bytes() for path in (texts / CACHE_FOLDER).iterdir()} == before
    assert sorted(path.name for path in texts.iterdir()) == ["test.txt", "train.txt", CACHE_FOLDER, "valid.txt"]


# Whatever form it has.


def test_text_is_read_with_a_tokenizer(texts: Path) -> None:
    tokenizer = get_lm_corpus(texts, "wt2").vocab
    corpus = read_corpus(texts / "test.txt", tokenizer)
    assert plain(corpus.test) == plain(tokenizer.encode_file(texts / "test.txt", ordered=True))
    assert corpus.train is None
    assert isinstance(corpus.get_iterator("test", 1, 2), LMOrderedIterator)
    with pytest.raises(ValueError, match="needs a tokenizer"):
        read_corpus(texts / "test.txt")


def test_what_is_no_corpus_is_said(texts: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no corpus"):
        read_corpus(tmp_path / "nowhere")
    (tmp_path / "corpus.zip").write_bytes(b"no pickle")
    with pytest.raises(OSError, match=r"corpus\.zip .* cannot be read"):
        read_corpus(tmp_path / "corpus.zip")
    with pytest.raises(OSError, match=r"no corpus in .*: looked for corpus.json, corpus.bin and cache.pkl"):
        TransfoXLCorpus.from_pretrained(texts)
    with pytest.raises(ValueError, match="dataset: 'wt1' is none of ptb, wt2"):
        get_lm_corpus(texts, "wt1")
    with pytest.raises(FileNotFoundError, match=r"has no train\.txt, valid\.txt, test\.txt"):
        get_lm_corpus(tmp_path, "wt2")
    with pytest.raises(FileNotFoundError, match="of which the corpus 'lm1b' is made"):
        get_lm_corpus(texts, "lm1b")


def test_other_encodings_are_named(texts: Path) -> None:
    (texts / "valid.txt").write_bytes(b"one\ntwo caf\xe9\n")
    with pytest.raises(ValueError, match=r"valid\.txt, line 2, is not UTF-8"):
        get_lm_corpus(texts, "wt2")


def test_equal_to_the_published_package(texts: Path) -> None:
    original = published("pytorch_pretrained_bert", "tokenization_transfo_xl")
    for dataset, options in (("ptb", {"lower_case": True}), ("wt103", {}), ("wt2", {})):
        theirs = original.TransfoXLCorpus(special=["<eos>"], **options)
        theirs.build_corpus(str(texts), dataset)
        ours = TransfoXLCorpus(special=["<eos>"], **options)
        ours.build_corpus(texts, dataset)
        assert ours.vocab.idx2sym == theirs.vocab.idx2sym
        for split in ("train", "valid", "test"):
            assert torch.equal(getattr(ours, split), getattr(theirs, split))
