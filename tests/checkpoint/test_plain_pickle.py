"""Pickles through the allow-list: what is read, what is refused before it is called, what is damaged."""

import collections
import os
import pickle
import struct
import sys
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers.checkpoint.plain_pickle import Record, read_plain


@pytest.fixture
def original(monkeypatch: pytest.MonkeyPatch) -> tuple[type, type]:
    """The two classes of the original program, importable while the file is written and gone when it is read."""
    classes = []
    for module, name in (("data_utils", "Corpus"), ("vocabulary", "Vocab")):
        made = type(name, (), {"__module__": module})
        holder = types.ModuleType(module)
        setattr(holder, name, made)
        monkeypatch.setitem(sys.modules, module, holder)
        classes.append(made)
    return classes[0], classes[1]


def corpus_of(classes: tuple[type, type]) -> Any:
    corpus, vocab = classes[0](), classes[1]()
    vocab.counter = collections.Counter({"the": 3, "Enquêtes": 1})
    vocab.sym2idx = collections.OrderedDict([("the", 0), ("Enquêtes", 1)])
    vocab.idx2sym = ["the", "Enquêtes"]
    vocab.special = {"<eos>"}
    vocab.max_size = None
    corpus.vocab = vocab
    corpus.train = np.arange(6)
    corpus.valid = [np.array([1, 2], dtype=">i4"), np.array([3], dtype="<i8")]
    corpus.size = np.int64(7)
    return corpus


@pytest.mark.parametrize("protocol", range(6))
def test_original_corpus_is_read_in_every_protocol(
    tmp_path: Path, original: tuple[type, type], protocol: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache.pkl"
    path.write_bytes(pickle.dumps(corpus_of(original), protocol=protocol))
    for module in ("data_utils", "vocabulary"):
        monkeypatch.setitem(sys.modules, module, None)  # an import of it fails
    corpus = read_plain(path)
    assert isinstance(corpus, Record)
    assert corpus.kind == "data_utils.Corpus"
    assert corpus["vocab"].kind == "vocabulary.Vocab"
    assert dict(corpus["vocab"]) == {
        "counter": {"the": 3, "Enquêtes": 1},
        "sym2idx": {"the": 0, "Enquêtes": 1},
        "idx2sym": ["the", "Enquêtes"],
        "special": {"<eos>"},
        "max_size": None,
    }
    np.testing.assert_array_equal(corpus["train"], np.arange(6))
    assert [row.tolist() for row in corpus["valid"]] == [[1, 2], [3]]
    assert all(row.dtype.isnative for row in corpus["valid"])
    assert corpus["size"] == 7
    assert type(corpus["size"]) is int


def text2(value: bytes) -> bytes:
    """A `str` of Python 2, as protocol 2 writes it (SHORT_BINSTRING)."""
    return b"U" + bytes([len(value)]) + value


def python2_vocabulary(symbols: list[bytes]) -> bytes:
    """An object of vocabulary.Vocab as Python 2 wrote it in protocol 2: names and symbols are bytes."""
    numbers = b"".join(text2(symbol) + b"K" + bytes([number]) for number, symbol in enumerate(symbols))
    pairs = b"".join(b"]" + b"(" + text2(symbol) + b"K" + bytes([n]) + b"e" for n, symbol in enumerate(symbols))
    return (
        b"\x80\x02cvocabulary\nVocab\n)\x81}("
        + text2(b"idx2sym") + b"](" + b"".join(map(text2, symbols)) + b"e"
        + text2(b"sym2idx") + b"ccollections\nOrderedDict\n](" + pairs + b"e\x85R"
        + text2(b"counter") + b"ccollections\nCounter\n}(" + numbers + b"u\x85R"
        + text2(b"special") + b"c__builtin__\nset\n](" + text2(b"<eos>") + b"e\x85R"
        + text2(b"lower_case") + b"\x89"
        + b"ub."
    )  # fmt: skip


def test_python_2_bytes_are_utf8(tmp_path: Path) -> None:
    path = tmp_path / "cache.pkl"
    path.write_bytes(python2_vocabulary([b"<eos>", b"Enqu\xc3\xaates", b"\xe6\x9d\xb1"]))
    vocab = read_plain(path)
    assert vocab["idx2sym"] == ["<eos>", "Enquêtes", "東"]
    assert vocab["sym2idx"] == {"<eos>": 0, "Enquêtes": 1, "東": 2}
    assert vocab["counter"]["Enquêtes"] == 1
    assert vocab["special"] == {"<eos>"}
    assert vocab["lower_case"] is False


def test_python_2_array_keeps_its_bytes(tmp_path: Path) -> None:
    data = struct.pack("<3q", 200, -1, 2**40)  # bytes that are not UTF-8
    code = (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01K\x03\x85cnumpy\ndtype\nU\x02i8K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        + text2(data)
        + b"tb."
    )
    path = tmp_path / "array.pkl"
    path.write_bytes(code)
    assert read_plain(path).tolist() == [200, -1, 2**40]


def test_bytes_that_are_not_utf8_are_an_error_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cache.pkl"
    path.write_bytes(python2_vocabulary([b"Enqu\xeates"]))
    with pytest.raises(OSError, match=r"cache\.pkl holds text that is not UTF-8: b'Enqu\\xeates'"):
        read_plain(path)


@pytest.mark.parametrize("zipped", [False, True])
def test_torch_files_without_and_with_tensors(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "vocab.bin"
    plain = {"idx2sym": ["a", "b"], "counter": collections.Counter(a=2), "train": np.arange(3), "dataset": None}
    torch.save(plain, path, _use_new_zipfile_serialization=zipped)
    read = read_plain(path)
    assert read["idx2sym"] == ["a", "b"]
    assert read["counter"] == {"a": 2}
    assert read["train"].tolist() == [0, 1, 2]
    tensors = {"train": torch.arange(5), "valid": [torch.tensor([1, 2])], "dataset": "wt103"}
    torch.save(tensors, path, _use_new_zipfile_serialization=zipped)
    read = read_plain(path)
    assert torch.equal(read["train"], torch.arange(5))
    assert read["valid"][0].tolist() == [1, 2]
    assert read["dataset"] == "wt103"


def attempt(path: Path) -> tuple[Any, OSError | None]:
    """What is read, or the error; any other error fails the test."""
    try:
        return read_plain(path), None
    except OSError as error:
        return None, error


def bare(value: Any, path: Path) -> None:
    path.write_bytes(pickle.dumps(value))


def legacy(value: Any, path: Path) -> None:
    torch.save(value, path, _use_new_zipfile_serialization=False)


def zipped(value: Any, path: Path) -> None:
    torch.save(value, path)


WRITERS = pytest.mark.parametrize("write", [bare, legacy, zipped])


class Malicious:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


class Evaluating:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (f"open({str(self.path)!r}, 'w')",)


@WRITERS
@pytest.mark.parametrize("kind", [Malicious, Evaluating])
def test_a_call_is_refused_before_it_is_made(
    tmp_path: Path, write: Callable[[Any, Path], None], kind: type[Malicious]
) -> None:
    made, path = tmp_path / "made", tmp_path / "vocab.bin"
    write({"idx2sym": ["a"], "counter": kind(made)}, path)
    with pytest.raises(OSError, match=r"vocab\.bin is refused: .*(mkdir|eval).* nothing of it has run"):
        read_plain(path)
    assert not made.exists()


def test_the_malicious_pickle_does_what_it_says(tmp_path: Path) -> None:
    made, path = tmp_path / "made", tmp_path / "vocab.bin"
    bare(Malicious(made), path)
    pickle.loads(path.read_bytes())
    assert made.exists()


def test_tensors_beside_a_call_are_refused(tmp_path: Path) -> None:
    made, path = tmp_path / "made", tmp_path / "corpus.bin"
    zipped({"train": torch.arange(3), "x": Malicious(made)}, path)
    with pytest.raises(OSError, match="is refused"):
        read_plain(path)
    assert not made.exists()


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        (b"cos\nsystem\n(S'true'\ntR.", "os.system"),
        (b"cbuiltins\ngetattr\n.", "builtins.getattr"),
        (b"cvocabulary\nOther\n)\x81.", "vocabulary.Other"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "os.system"),
        (b"(ios\nsystem\n.", "os.system"),
        (b"ccollections\nCounter\n(N}S'x'\nI1\nstb.", "attributes set on a function"),
        (b"ccopy_reg\n_reconstructor\n(c__builtin__\nset\nc__builtin__\nobject\nNtR.", "an object that is made"),
        (b"]\x94h\x00a.", "a container that holds itself"),
        (b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00utf-8tR.", "an encoding other than latin1"),
    ],
)
def test_what_is_outside_the_allow_list_is_named(tmp_path: Path, code: bytes, asked: str) -> None:
    path = tmp_path / "cache.pkl"
    path.write_bytes(code)
    with pytest.raises(OSError, match="is refused") as error:
        read_plain(path)
    assert asked in str(error.value)


def test_state_set_on_a_class_stays_out_of_the_process(tmp_path: Path) -> None:
    """BUILD with slots sets attributes; the class must be nobody else's."""
    path = tmp_path / "cache.pkl"
    path.write_bytes(b"cvocabulary\nVocab\n(N}S'kind'\nI1\nstb.")
    with pytest.raises(OSError, match=r"cannot be read|is refused"):
        read_plain(path)
    good = tmp_path / "good.pkl"
    good.write_bytes(python2_vocabulary([b"a"]))
    assert read_plain(good).kind == "vocabulary.Vocab"


def test_array_of_objects_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cache.pkl"
    bare(np.array([[1], "x"], dtype=object), path)
    with pytest.raises(OSError, match="is refused"):
        read_plain(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"<!DOCTYPE html><html>", "it is a web page"),
        (b"version https://git-lfs.github.com/spec/v1", "git-lfs pointer"),
        (b"PK\x03\x04 and then nothing", "missing or damaged"),
        (b"the words of a text file", "it is no pickle"),
        (pickle.dumps(["a"] * 100)[:-30], "cut or damaged"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "vocab.bin"
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"vocab\.bin") as error:
        read_plain(path)
    assert said in str(error.value)


@WRITERS
def test_every_cut_is_an_oserror(tmp_path: Path, write: Callable[[Any, Path], None]) -> None:
    whole, path = tmp_path / "whole.bin", tmp_path / "vocab.bin"
    write({"idx2sym": ["a", "b"], "train": np.arange(4)}, whole)
    content = whole.read_bytes()
    for end in range(0, len(content) - 1, 7):
        path.write_bytes(content[:end])
        read, error = attempt(path)
        # What torch writes behind the object in its older format is not needed.
        assert (error is not None and "vocab.bin" in str(error)) or (write is legacy and "idx2sym" in read)


def test_zip_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "vocab.bin"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(OSError, match="should hold one"):
        read_plain(path)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=12,
)


@given(value=PLAIN, protocol=st.integers(0, 5))
def test_plain_data_comes_back(tmp_path_factory: pytest.TempPathFactory, value: Any, protocol: int) -> None:
    path = tmp_path_factory.getbasetemp() / "plain.pkl"
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    assert read_plain(path) == value


@given(content=st.binary(max_size=60))
def test_any_bytes_are_read_or_an_oserror(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.pkl"
    path.write_bytes(b"\x80\x02" + content)
    _, error = attempt(path)
    assert error is None or "bytes.pkl" in str(error)
