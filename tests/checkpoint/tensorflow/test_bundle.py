"""Reading values: mapped, independent of each other and of the file, and given back."""

import itertools
import mmap
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pytorch_transformers.checkpoint.tensorflow import bundle as module
from pytorch_transformers.checkpoint.tensorflow import table
from pytorch_transformers.checkpoint.tensorflow.bundle import Bundle
from pytorch_transformers.checkpoint.tensorflow.messages import Extent
from pytorch_transformers.checkpoint.tensorflow.write import write_bundle

from .crafted import TYPES, bits, claim, contents, data, names, random_tensor, tensors, write_parts

LARGE = torch.arange(40_000.0).reshape(200, 200)  # mapped; smaller ones are copied


@settings(max_examples=60)
@given(st.dictionaries(names, tensors, max_size=40), st.sampled_from([1, 64, 1 << 16]), st.sampled_from([300, 262144]))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, state: Mapping[str, Tensor], mapped_from: int, block: int
) -> None:
    prefix = tmp_path_factory.mktemp("bundle") / "x"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAPPED_FROM", mapped_from)
        patch.setattr(table, "BLOCK_SIZE", block)
        write_bundle(prefix, state)
        found = contents(prefix)
    assert found == {name: bits(tensor) for name, tensor in state.items()}
    assert list(found) == sorted(state)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_type_mapped_and_copied(tmp_path: Path, dtype: torch.dtype) -> None:
    state = {"large": random_tensor(dtype, (300, 300)), "odd": torch.ones(1, dtype=torch.bool)}
    state["unaligned"] = random_tensor(dtype, (300, 301), seed=1)
    write_bundle(tmp_path / "x", state)
    assert contents(tmp_path / "x") == {name: bits(tensor) for name, tensor in state.items()}
    bundle = Bundle(tmp_path / "x")
    assert bundle["large"].dtype == str(dtype).removeprefix("torch.")
    assert bundle.read("unaligned").data_ptr() % dtype.itemsize == 0


def mappings(path: Path) -> list[tuple[int, int]]:
    """Addresses at which a file is mapped into this process."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    spans = (line.split()[0].split("-") for line in lines if line.endswith(str(path)))
    return [(int(start, 16), int(end, 16)) for start, end in spans]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux for the mappings of the process")
def test_values_are_mapped_and_the_mapping_goes_with_the_tensor(tmp_path: Path) -> None:
    write_bundle(tmp_path / "x", {"a": torch.ones(5), "b": LARGE})
    bundle = Bundle(tmp_path / "x")
    assert not mappings(data(tmp_path / "x"))
    tensor = bundle.read("b")
    (span,) = mappings(data(tmp_path / "x"))
    assert span[0] <= tensor.data_ptr()
    assert tensor.data_ptr() + tensor.nbytes <= span[1]
    view = tensor[3]
    del tensor
    assert bits(view) == bits(LARGE[3])
    del view
    assert not mappings(data(tmp_path / "x"))


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_change_in_place_stays_in_its_tensor(tmp_path: Path, name: str) -> None:
    state = {"a": torch.ones(5), "b": LARGE}
    write_bundle(tmp_path / "x", state)
    before = data(tmp_path / "x").read_bytes()
    bundle = Bundle(tmp_path / "x")
    first = bundle.read(name)
    first.mul_(-1)
    assert bits(bundle.read(name)) == bits(state[name])
    assert bits(first) == bits(-state[name])
    del first
    assert data(tmp_path / "x").read_bytes() == before


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for the memory of the process")
def test_memory_goes_back_with_the_tensor(tmp_path: Path) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * mmap.PAGESIZE

    large = torch.zeros(16 << 20, dtype=torch.uint8)
    write_bundle(tmp_path / "x", {"a": large})
    tensor = Bundle(tmp_path / "x").read("a")
    assert torch.equal(tensor, large)
    before = resident()
    del tensor
    assert before - resident() > large.nbytes // 2


def test_what_is_known_without_reading(tmp_path: Path) -> None:
    write_bundle(tmp_path / "x", {"b/scalar": torch.tensor(3), "a": torch.zeros(2, 0, 3, dtype=torch.bfloat16)})
    for path in (tmp_path / "x", str(tmp_path / "x.index")):
        bundle = Bundle(path)
        assert (bundle.prefix, bundle.shards) == (tmp_path / "x", 1)
        assert list(bundle) == ["a", "b/scalar"]
        variable = bundle["a"]
        assert (variable.name, variable.shape, variable.dtype, variable.nbytes) == ("a", (2, 0, 3), "bfloat16", 0)
        assert (bundle["b/scalar"].shape, bundle["b/scalar"].nbytes, bundle["b/scalar"].shards) == ((), 8, (0,))
        assert [item.name for item in bundle.files] == ["x.index", "x.data-00000-of-00001"]
        assert "2 variables in 1 data files" in repr(bundle)
        with pytest.raises(KeyError, match="c"):
            bundle.read("c")


PLACES: list[list[tuple[Extent, ...]]] = [
    [((0, 40), (0, None)), ((40, 60), (0, None))],
    [((0, None), (0, 30)), ((0, None), (30, 20))],
    [((0, 64), (0, 25)), ((64, 36), (0, 25)), ((0, 10), (25, 25)), ((10, 90), (25, 25))],
    [((0, 100), (0, 50))],
    [((start, 1), (0, None)) for start in reversed(range(100))],
]


@pytest.mark.parametrize("places", PLACES, ids=len)
def test_parts_are_put_together(tmp_path: Path, places: list[tuple[Extent, ...]]) -> None:
    whole = torch.randn(100, 50)
    write_parts(tmp_path / "x", "w\xff\u20ac", whole, places, {"other": torch.ones(3)})
    bundle = Bundle(tmp_path / "x")
    assert bits(bundle.read("w\xff\u20ac")) == bits(whole)
    assert bits(bundle.read("other")) == bits(torch.ones(3))
    assert len(bundle["w\xff\u20ac"].parts) == len(places)
    assert bundle["w\xff\u20ac"].nbytes == whole.nbytes


def test_long_extents_in_keys(tmp_path: Path) -> None:
    """Numbers of all lengths: their bytes in a key differ."""
    whole = torch.arange(20_000, dtype=torch.float32)
    cuts = [0, 1, 63, 64, 65, 8191, 8192, 8193, 20_000]
    places: list[tuple[Extent, ...]] = [((a, b - a),) for a, b in itertools.pairwise(cuts)]
    write_parts(tmp_path / "x", "w", whole, places)
    assert bits(Bundle(tmp_path / "x").read("w")) == bits(whole)


def test_types_that_torch_does_not_have(tmp_path: Path) -> None:
    write_bundle(tmp_path / "x", {"a": torch.ones(3), "b": torch.ones(2)})
    claim(tmp_path / "x", "a", dtype=21)
    bundle = Bundle(tmp_path / "x")
    assert (bundle["a"].dtype, bundle["a"].nbytes) == ("DT_21", 12)
    with pytest.raises(TypeError, match=r"x: 'a' is of type DT_21, for which torch has none"):
        bundle.read("a")
    assert bits(bundle.read("b")) == bits(torch.ones(2))


def test_names_of_an_object_graph_are_just_names(tmp_path: Path) -> None:
    state = {"model/a/.ATTRIBUTES/VARIABLE_VALUE": torch.ones(3), "_CHECKPOINTABLE_OBJECT_GRAPH": torch.ones(1)}
    write_bundle(tmp_path / "x", state)
    claim(tmp_path / "x", "_CHECKPOINTABLE_OBJECT_GRAPH", dtype=7, shape=())
    bundle = Bundle(tmp_path / "x")
    assert bundle["_CHECKPOINTABLE_OBJECT_GRAPH"].dtype == "string"
    assert bits(bundle.read("model/a/.ATTRIBUTES/VARIABLE_VALUE")) == bits(torch.ones(3))


def test_opening_imports_neither_torch_nor_tensorflow_and_registers_nothing(tmp_path: Path) -> None:
    write_bundle(tmp_path / "x", {"a": torch.ones(3)})
    program = f"""
import sys
from pytorch_transformers.checkpoint.tensorflow.bundle import Bundle
assert Bundle({str(tmp_path / "x")!r})["a"].shape == (3,)
assert not {{"torch", "tensorflow"}} & sys.modules.keys()
from google.protobuf import descriptor_pool
for package in ("pytorch_transformers.", "pytorch_transformers.tensorflow.", "tensorflow."):
    try:
        descriptor_pool.Default().FindMessageTypeByName(package + "BundleEntryProto")
    except KeyError:
        continue
    raise AssertionError(package)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
