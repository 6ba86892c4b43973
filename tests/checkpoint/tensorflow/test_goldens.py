"""Checkpoints that TensorFlow wrote, against the values recorded beside them (shared/goldens/bert/README.md)."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from pytorch_transformers.checkpoint.tensorflow.bundle import Bundle, find_prefix
from pytorch_transformers.checkpoint.tensorflow.table import read_table, write_table
from pytorch_transformers.checkpoint.tensorflow.write import write_bundle
from shared_data import shared

from .crafted import bits, index

#: Folder -> the recorded list of names, shapes and types.
LISTED = {
    "bert/pretraining": "bert/pretraining_variables.json",
    "bert/classifier": "bert/classifier_variables.json",
    "bert/squad": "bert/squad_variables.json",
    "bert/many_variables": "bert/many_variables/variables.json",
    "gpt2/model": "gpt2/variables.json",
}
OTHERS = ["bert/partitioned", "bert/sharded", "bert/many_blocks", "bert/dtypes"]


def golden(folder: str) -> Bundle:
    prefix = find_prefix(shared("goldens", *folder.split("/")))
    assert prefix is not None
    return Bundle(prefix)


def recorded(*parts: str) -> dict[str, npt.NDArray[np.generic]]:
    with np.load(shared("goldens", *parts)) as archive:
        return dict(archive)


def assert_equal(bundle: Bundle, name: str, expected: npt.NDArray[np.generic]) -> None:
    """Bit for bit, shape and type included."""
    found = bundle.read(name)
    assert bits(found) == bits(torch.from_numpy(expected))
    assert bundle[name].shape == expected.shape
    assert bundle[name].dtype == str(expected.dtype)
    assert bundle[name].nbytes == expected.nbytes


@pytest.mark.parametrize("folder", LISTED)
def test_names_shapes_and_types_are_the_recorded_ones(folder: str) -> None:
    bundle = golden(folder)
    listed = json.loads(shared("goldens", *LISTED[folder].split("/")).read_text(encoding="utf-8"))
    assert [[name, list(variable.shape), variable.dtype] for name, variable in bundle.items()] == sorted(listed)


@pytest.mark.parametrize(
    ("folder", "values"),
    [("bert/pretraining", "bert/pretraining_variables.npz"), ("gpt2/model", "gpt2/variables.npz")],
)
def test_values_are_the_recorded_ones(folder: str, values: str) -> None:
    bundle = golden(folder)
    expected = recorded(*values.split("/"))
    assert list(bundle) == sorted(expected)
    for name, value in expected.items():
        assert_equal(bundle, name, value)


def test_partitioned_variables_are_put_together() -> None:
    bundle = golden("bert/partitioned")
    expected = recorded("bert", "pretraining_variables.npz")
    assert [len(variable.parts) for variable in bundle.values()] == [3, 2, 1]
    for name in bundle:
        assert_equal(bundle, name, expected[name])


def test_several_data_files() -> None:
    bundle = golden("bert/sharded")
    expected = recorded("bert", "pretraining_variables.npz")
    assert bundle.shards == 3
    assert {shard for variable in bundle.values() for shard in variable.shards} == {0, 1, 2}
    assert bundle.files == sorted(bundle.files, key=lambda path: (path.suffix != ".index", path))
    assert len(bundle.files) == 4
    for name in bundle:
        assert_equal(bundle, name, expected[name])


def test_all_values_in_the_order_of_names() -> None:
    bundle = golden("bert/many_variables")
    expected = recorded("bert", "many_variables", "reference.npz")
    joined = torch.cat([bundle.read(name).reshape(-1) for name in bundle if name != "global_step"])
    assert bits(joined) == bits(torch.from_numpy(expected["all_values_in_name_order"]))


def test_several_index_blocks() -> None:
    bundle = golden("bert/many_blocks")
    expected = recorded("bert", "many_blocks", "reference.npz")
    assert [name.encode() for name in bundle] == expected["names"].tolist()
    assert [list(variable.shape) for variable in bundle.values()] == [json.loads(text) for text in expected["shapes"]]
    joined = torch.cat([bundle.read(name).reshape(-1) for name in bundle])
    assert bits(joined) == bits(torch.from_numpy(expected["all_values_in_name_order"]))


def test_every_type() -> None:
    bundle = golden("bert/dtypes")
    expected = recorded("bert", "dtypes", "reference.npz")
    wide = expected.pop("bfloat16")
    for name, value in expected.items():
        assert_equal(bundle, name, value)
    assert bundle.read("bfloat16").dtype == torch.bfloat16
    assert bits(bundle.read("bfloat16").float()) == bits(torch.from_numpy(wide))
    (strings,) = bundle.keys() - expected.keys() - {"bfloat16"}
    assert (bundle[strings].dtype, bundle[strings].shape) == ("string", (3,))
    with pytest.raises(TypeError, match=f"'{strings}' is of type string"):
        bundle.read(strings)


@pytest.mark.parametrize("folder", [*LISTED, *OTHERS])
def test_a_table_written_again_is_byte_for_byte_that_of_tensorflow(folder: str, tmp_path: Path) -> None:
    path = index(golden(folder).prefix)
    with (tmp_path / "again").open("wb") as stream:
        write_table(stream, read_table(path).items())
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("folder", LISTED)
def test_a_checkpoint_written_again_is_byte_for_byte_that_of_tensorflow(folder: str, tmp_path: Path) -> None:
    bundle = golden(folder)
    written = write_bundle(tmp_path / "again", {name: bundle.read(name) for name in bundle})
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in reversed(bundle.files)]
