"""TensorFlow itself reads what is written here, and what it writes is read; where it is installed."""

import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from pytorch_transformers.checkpoint.tensorflow.bundle import Bundle, find_prefix, is_v1
from pytorch_transformers.checkpoint.tensorflow.messages import DTYPES
from pytorch_transformers.checkpoint.tensorflow.write import write_bundle

from .crafted import bits, random_tensor

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def tf() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module: ModuleType = pytest.importorskip("tensorflow")
    return module


def test_numbers_of_types(tf: ModuleType) -> None:
    assert {number: tf.dtypes.as_dtype(number).name for number in DTYPES} == {
        number: name for number, (name, _) in DTYPES.items()
    }
    assert all(tf.dtypes.as_dtype(number).size == size for number, (_, size) in DTYPES.items())


def test_tensorflow_reads_all_types_and_shapes(tf: ModuleType, tmp_path: Path) -> None:
    state = {
        f"{name}/{shape}": random_tensor(getattr(torch, name), shape)
        for name, _ in DTYPES.values()
        for shape in [(3, 5), (), (0, 4), (1, 1, 200, 200)]
    }
    write_bundle(tmp_path / "x", state)
    reader = tf.train.load_checkpoint(str(tmp_path / "x"))
    assert reader.get_variable_to_shape_map() == {name: list(tensor.shape) for name, tensor in state.items()}
    for name, tensor in state.items():
        value = reader.get_tensor(name)
        assert tf.dtypes.as_dtype(value.dtype).name == name.split("/")[0]
        assert (value.shape, value.tobytes()) == bits(tensor)[1:]


def test_tensorflow_reads_several_index_blocks(tf: ModuleType, tmp_path: Path) -> None:
    # Multiples of a large odd number: names that have little in common, of 70 characters.
    names = [f"{number * 2654435761 % 2**32:08x}" * 8 + "/kernel"[: number % 7] for number in range(9000)]
    state = {name: torch.tensor(float(number)) for number, name in enumerate(names)}
    write_bundle(tmp_path / "x", state)
    assert (tmp_path / "x.index").stat().st_size > 2 * 262144
    reader = tf.train.load_checkpoint(str(tmp_path / "x"))
    assert len(reader.get_variable_to_shape_map()) == len(state)
    for name in [*names[::500], max(names), min(names)]:
        assert reader.get_tensor(name) == state[name]
    assert {name: bits(tensor) for name, tensor in state.items()} == {
        name: bits(bundle.read(name)) for bundle in [Bundle(tmp_path / "x")] for name in bundle
    }


def test_parts_and_shards_of_tensorflow(tf: ModuleType, tmp_path: Path) -> None:
    """Three data files; one variable cut along each axis, in parts that lie in different files; and a string."""
    whole = np.random.default_rng(0).standard_normal((300, 40), dtype=np.float32)
    parts = []
    for shard, row in enumerate([0, 100, 200]):
        names = ["parted", "parted", f"alone/{shard}", f"text/{shard}"]
        places = [f"300 40 {row},100:0,25", f"300 40 {row},100:25,15", "", ""]
        values = [whole[row : row + 100, :25], whole[row : row + 100, 25:], np.int64(shard), [b"some", b"text"]]
        parts.append(str(tmp_path / f"part{shard}"))
        tf.raw_ops.SaveV2(prefix=parts[-1], tensor_names=names, shape_and_slices=places, tensors=values)
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=str(tmp_path / "x"))
    bundle = Bundle(tmp_path / "x")
    assert bundle.shards == 3
    assert (bundle["parted"].shards, len(bundle["parted"].parts)) == ((0, 1, 2), 6)
    assert bits(bundle.read("parted")) == bits(torch.from_numpy(whole))
    assert [bundle.read(f"alone/{shard}").item() for shard in range(3)] == [0, 1, 2]
    assert bundle["text/1"].dtype == "string"


def test_an_object_graph_of_tensorflow(tf: ModuleType, tmp_path: Path) -> None:
    value = np.arange(60_000, dtype=np.float32).reshape(200, 300)
    tf.train.Checkpoint(kernel=tf.Variable(value)).save(str(tmp_path / "x"))
    prefix = find_prefix(tmp_path)
    assert prefix is not None
    assert prefix == tmp_path / "x-1"
    bundle = Bundle(prefix)
    assert bundle["_CHECKPOINTABLE_OBJECT_GRAPH"].dtype == "string"
    assert bits(bundle.read("kernel/.ATTRIBUTES/VARIABLE_VALUE")) == bits(torch.from_numpy(value))


def test_the_older_format_of_tensorflow(tf: ModuleType, tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.get_variable("a", initializer=np.ones(3, np.float32), use_resource=False)
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver(write_version=tf.compat.v1.train.SaverDef.V1)
        saver.save(session, str(tmp_path / "old.ckpt"), write_meta_graph=False)
    assert is_v1(tmp_path / "old.ckpt")
    with pytest.raises(OSError, match=r"old\.ckpt is a TensorFlow checkpoint in the older format V1"):
        Bundle(tmp_path / "old.ckpt")
