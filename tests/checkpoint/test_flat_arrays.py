"""Numbered NumPy files: what is written is read, wherever a file ends; what is damaged is an error that names it."""

import gc
import json
import pickle
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pytorch_transformers.checkpoint.flat_arrays import FlatArrays, find_flat_arrays, write_flat_arrays
from pytorch_transformers.checkpoint.storage import SHAPES_FILE, flat_arrays
from pytorch_transformers.hub import Location, locate

SHAPES = ((7, 3), (5,), (1, 4, 6), (2, 2), (11,))


def names(count: int) -> list[str]:
    """Names w0, w1, … of that many weights."""
    return [f"w{number}" for number in range(count)]


def weights(shapes: tuple[tuple[int, ...], ...] = SHAPES, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator) for name, shape in zip(names(99), shapes, strict=False)}


def place(folder: Path) -> Location:
    return locate(folder, shortcuts={})


def opened(folder: Path) -> FlatArrays:
    found = find_flat_arrays(place(folder), names)
    assert found is not None
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_flat_arrays(tmp_path, weights(), names(len(SHAPES)))
    return tmp_path


def assert_same_weights(folder: Path, expected: dict[str, Tensor]) -> None:
    source = opened(folder)
    assert list(source) == list(expected)
    assert source.shapes() == {name: tuple(value.shape) for name, value in expected.items()}
    for name, value in expected.items():
        found = source.read(name)
        assert found.dtype == torch.float32
        assert torch.equal(found, value), name


# --- what is right ----------------------------------------------------------------------------------------------------


def test_what_is_written_is_read(folder: Path) -> None:
    files = sorted(path.name for path in folder.iterdir())
    assert files == [*(f"params_{number}.npy" for number in range(10)), SHAPES_FILE]
    assert_same_weights(folder, weights())
    assert opened(folder).prefix == folder


def test_it_is_the_form_of_the_original(folder: Path) -> None:
    """Read as the original program reads it (train.py): all files joined, cut by the shapes."""
    shapes = json.loads((folder / SHAPES_FILE).read_text())
    assert shapes == [list(shape) for shape in SHAPES]
    parts = [np.load(folder / f"params_{number}.npy") for number in range(10)]
    assert {part.dtype for part in parts} == {np.dtype(np.float32)}
    assert max(map(len, parts)) - min(map(len, parts)) <= 1  # numpy.array_split
    offsets = np.cumsum([np.prod(shape) for shape in shapes])
    pieces = np.split(np.concatenate(parts), offsets)[:-1]
    for piece, shape, value in zip(pieces, shapes, weights().values(), strict=True):
        assert np.array_equal(piece.reshape(shape), value.numpy())


@given(
    shapes=st.lists(st.lists(st.integers(1, 5), max_size=3), min_size=1, max_size=6),
    parts=st.integers(1, 14),
    data=st.data(),
)
@settings(max_examples=40, derandomize=True, database=None)
def test_files_may_end_anywhere(
    shapes: list[list[int]], parts: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Inside a weight, between two, or with nothing in them: any number of files of any size, one weight over many."""
    folder = tmp_path_factory.mktemp("flat")
    expected = weights(tuple(map(tuple, shapes)))
    values = np.concatenate([value.numpy().reshape(-1) for value in expected.values()])
    ends = sorted(data.draw(st.lists(st.integers(0, len(values)), min_size=parts - 1, max_size=parts - 1)))
    for number, part in enumerate(np.split(values, ends)):
        np.save(folder / f"params_{number}.npy", part)
    (folder / SHAPES_FILE).write_text(json.dumps(shapes))
    assert_same_weights(folder, expected)


def test_values_stay_in_the_files_until_they_are_changed(folder: Path) -> None:
    """A weight that lies in one file is mapped; writing to it changes neither the file nor another reader's copy."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in names(len(SHAPES)):
        opened(folder).read(name).zero_()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert_same_weights(folder, weights())


def test_other_types_are_written_as_float32(tmp_path: Path) -> None:
    exact = {name: value.bfloat16() for name, value in weights().items()}
    write_flat_arrays(tmp_path, exact, names(len(SHAPES)))
    assert_same_weights(tmp_path, {name: value.float() for name, value in exact.items()})
    turned = {name: value.double().t() if value.dim() == 2 else value for name, value in weights().items()}
    write_flat_arrays(tmp_path, turned, names(len(SHAPES)))
    assert_same_weights(tmp_path, {name: value.float().contiguous() for name, value in turned.items()})


def test_order_is_that_of_the_names(tmp_path: Path) -> None:
    shuffled = dict(sorted(weights().items(), reverse=True))
    write_flat_arrays(tmp_path, shuffled, names(len(SHAPES)))
    assert_same_weights(tmp_path, weights())


def test_a_place_without_one(tmp_path: Path) -> None:
    """The files with the values do not make one without their shapes."""
    assert find_flat_arrays(place(tmp_path), names) is None
    np.save(tmp_path / "params_0.npy", np.zeros(3, np.float32))
    assert find_flat_arrays(place(tmp_path), names) is None


def test_storage(folder: Path, tmp_path: Path) -> None:
    storage = flat_arrays(names)
    source = storage.find(place(folder))
    assert source is not None
    assert torch.equal(source.read("w2"), weights()["w2"])
    assert storage.looked_for == SHAPES_FILE
    written = storage.write(tmp_path / "copy", weights())
    assert all(path.read_bytes() == (folder / path.name).read_bytes() for path in written)


@pytest.mark.parametrize("change", ["missing", "too many", "another"])
def test_other_weights_than_the_names_are_not_written(change: str, tmp_path: Path) -> None:
    given_weights = weights()
    if change != "too many":
        del given_weights["w1"]
    if change != "missing":
        given_weights["extra"] = torch.zeros(2)
    named = "extra" if change == "too many" else "w1"
    with pytest.raises(ValueError, match=rf"one whole model.*{named}"):
        write_flat_arrays(tmp_path, given_weights, names(len(SHAPES)))
    assert list(tmp_path.iterdir()) == []


# --- what is damaged --------------------------------------------------------------------------------------------------


def _rewritten(path: Path, change: Callable[[np.ndarray[Any, Any]], Any]) -> None:
    np.save(path, change(np.load(path)))


def _cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def _pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps(np.load(path)))


def _objects(path: Path) -> None:
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)


def _archive(path: Path) -> None:
    values = np.load(path)
    with path.open("wb") as stream:
        np.savez(stream, values=values)


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("nothing", "at all")


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "truncated": lambda path: _cut(path, path.stat().st_size - 4),
    "truncated inside the header": lambda path: _cut(path, 20),
    "truncated inside the magic": lambda path: _cut(path, 3),
    "empty": lambda path: _cut(path, 0),
    "text": lambda path: path.write_text("no numbers"),
    "html": lambda path: path.write_text("<!DOCTYPE html>"),
    "pickled": _pickled,
    "objects": _objects,
    "archive": _archive,
    "zip": _zip,
    "float64": lambda path: _rewritten(path, lambda x: x.astype(np.float64)),
    "integers": lambda path: _rewritten(path, lambda x: x.astype(np.int32)),
    "other byte order": lambda path: _rewritten(path, lambda x: x.astype(">f4")),
    "two axes": lambda path: _rewritten(path, lambda x: x[None]),
    "no axis": lambda path: _rewritten(path, lambda x: x[0]),
    "not a number": lambda path: _rewritten(path, lambda x: np.where(np.arange(len(x)) == 1, np.nan, x).astype("f4")),
    "infinite": lambda path: _rewritten(path, lambda x: np.where(np.arange(len(x)) == 1, np.inf, x).astype("f4")),
}


@pytest.mark.parametrize("number", [0, 4, 9])
@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_part(what: str, number: int, folder: Path) -> None:
    """One error, which names the file; nothing is unpickled."""
    path = folder / f"params_{number}.npy"
    DAMAGE[what](path)

    def read_all() -> None:
        source = opened(folder)
        for name in source:
            source.read(name)

    with pytest.raises(OSError, match=re.escape(str(path))):
        read_all()
    gc.collect()  # a file that was left open is an error of this test and not of a later one


@pytest.mark.parametrize("number", range(10))
def test_a_missing_part(number: int, folder: Path) -> None:
    (folder / f"params_{number}.npy").unlink()
    with pytest.raises(OSError, match=r"asks for 65 values.*hold \d+\..*[Tt]here should be 10") as caught:
        opened(folder)
    assert str(folder) in str(caught.value)
    assert f"params_{number}.npy" in str(caught.value), "the first that is missing is named"


def test_a_part_too_many(folder: Path) -> None:
    """That of a larger checkpoint in the same folder: never a model with some wrong weights."""
    shutil.copy(folder / "params_9.npy", folder / "params_10.npy")
    with pytest.raises(OSError, match=r"asks for 65 values, but the 11 files .* hold 71") as caught:
        opened(folder)
    assert str(folder) in str(caught.value)


def test_a_part_of_an_older_checkpoint(folder: Path) -> None:
    """Writing does not remove it, and reading does not take it for one of ours."""
    np.save(folder / "params_10.npy", np.zeros(3, np.float32))
    write_flat_arrays(folder, weights(seed=1), names(len(SHAPES)))
    with pytest.raises(OSError, match=r"the 11 files .* hold 68"):
        opened(folder)


SHAPES_TEXTS: dict[str, str] = {
    "empty": "",
    "no JSON": "[[7, 3], [5]",
    "a number": "5",
    "an object": '{"w0": [7, 3]}',
    "a list of numbers": "[7, 3]",
    "a text among the sizes": '[[7, "3"]]',
    "a fraction": "[[7, 3.0]]",
    "nothing": "[[null]]",
    "true": "[[true, 3]]",
    "zero": "[[7, 0]]",
    "below zero": "[[-7, -3]]",
    "not a number": "[[NaN]]",
}


@pytest.mark.parametrize("what", SHAPES_TEXTS)
def test_damaged_shapes(what: str, folder: Path) -> None:
    path = folder / SHAPES_FILE
    path.write_text(SHAPES_TEXTS[what])
    with pytest.raises(OSError, match=re.escape(str(path))):
        opened(folder)


def test_shapes_that_are_no_text(folder: Path) -> None:
    (folder / SHAPES_FILE).write_bytes(b"\xff\xfe\x00[[7]]")
    with pytest.raises(OSError, match=SHAPES_FILE):
        opened(folder)


@pytest.mark.parametrize(
    "sizes", [[[7, 3], [5], [1, 4, 6], [2, 2], [12]], [[7, 3], [5]], [[10**12, 10**12]], [[2]] * 500]
)
def test_shapes_of_another_checkpoint(sizes: list[list[int]], folder: Path) -> None:
    """More or fewer values than there are; nothing is allocated for them."""
    (folder / SHAPES_FILE).write_text(json.dumps(sizes))
    needed = sum(int(np.prod([int(n) for n in shape], dtype=object)) for shape in sizes)
    with pytest.raises(OSError, match=rf"{SHAPES_FILE} asks for {needed:,} values, but the 10 files .* hold 65"):
        opened(folder)


def test_names_that_refuse_the_number_of_weights(folder: Path) -> None:
    """The family knows how many there can be; the message names the file all the same."""

    def three(count: int) -> list[str]:
        if count != 3:
            raise ValueError(f"{count} weights are too many")
        return names(count)

    with pytest.raises((OSError, ValueError), match="5 weights are too many") as caught:
        find_flat_arrays(place(folder), three)
    assert str(folder / SHAPES_FILE) in str(caught.value)
