"""Writing weights: bit for bit, and whole or not at all."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from torch import Tensor

from pytorch_transformers.checkpoint.read import find_weights, read_weights
from pytorch_transformers.checkpoint.save import save_bin, save_safetensors, save_sharded
from pytorch_transformers.hub import locate

STATE = {"a": torch.arange(1000.0), "b": torch.ones(10, 10, dtype=torch.bfloat16)}


def single(state: dict[str, Tensor], folder: Path) -> None:
    save_safetensors(state, folder / "model.safetensors")


def pickled(state: dict[str, Tensor], folder: Path) -> None:
    save_bin(state, folder / "pytorch_model.bin")


def sharded(state: dict[str, Tensor], folder: Path) -> None:
    save_sharded(state, folder, 300)


SAVES = [single, pickled, sharded]
Save = Callable[[dict[str, Tensor], Path], None]


def load(folder: Path) -> dict[str, Tensor]:
    return read_weights(find_weights(locate(folder, shortcuts={})))


def bits(tensor: Tensor) -> bytes:
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype)  # `contiguous` leaves one element's stride as it is
    return flat.copy_(tensor.reshape(-1)).view(torch.uint8).numpy().tobytes()


def assert_same(read: dict[str, Tensor], saved: dict[str, Tensor]) -> None:
    assert read.keys() == saved.keys()
    for name, tensor in saved.items():
        assert (read[name].dtype, read[name].shape) == (tensor.dtype, tensor.shape), name
        assert bits(read[name]) == bits(tensor), name


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16]
DTYPES += [torch.int32, torch.int64, torch.bool, torch.float8_e4m3fn]


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Any bits at all, NaNs with payload and signed zeros included; some transposed, some with steps, some expanded."""
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    dtype = draw(st.sampled_from(DTYPES))
    count = int(torch.tensor(shape).prod()) * torch.empty((), dtype=dtype).element_size()
    data = draw(st.binary(min_size=count, max_size=count))
    tensor = torch.frombuffer(bytearray(data or b"\0"), dtype=torch.uint8)[:count].clone()
    tensor = (tensor % 2).bool().reshape(shape) if dtype is torch.bool else tensor.view(dtype).reshape(shape)
    change = draw(st.sampled_from(["none", "transposed", "stepped", "expanded"]))
    if change == "transposed" and len(shape) > 1:
        return tensor.transpose(0, -1)
    if change == "stepped" and shape:
        return tensor[::2]
    return tensor.unsqueeze(0).expand(2, *shape) if change == "expanded" else tensor


@pytest.mark.parametrize("save", SAVES)
@settings(max_examples=60, derandomize=True)
@given(state=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), tensors(), max_size=5))
def test_any_tensors_survive_bit_for_bit(
    save: Save, tmp_path_factory: pytest.TempPathFactory, state: dict[str, Tensor]
) -> None:
    state = {name: tensor for name, tensor in state.items() if name != "__metadata__"}
    folder = tmp_path_factory.mktemp("save")
    save(state, folder)
    assert_same(load(folder), state)


@pytest.mark.parametrize("save", SAVES)
def test_what_was_read_from_one_file_is_saved_again(tmp_path: Path, save: Save) -> None:
    """Mapped tensors are all of one storage."""
    single(STATE, tmp_path / "first")
    save(load(tmp_path / "first"), tmp_path / "second")
    assert_same(load(tmp_path / "second"), STATE)


def test_the_file_says_that_it_is_of_torch(tmp_path: Path) -> None:
    single(STATE, tmp_path)
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        assert file.metadata() == {"format": "pt"}


@pytest.mark.parametrize("save", SAVES)
def test_parameters_are_saved_as_tensors(tmp_path: Path, save: Save) -> None:
    save(torch.nn.Linear(3, 2).state_dict(keep_vars=True), tmp_path)
    assert not any(tensor.requires_grad for tensor in load(tmp_path).values())


@pytest.mark.parametrize("save", [single, sharded])
def test_shared_tensors_are_refused_by_name(tmp_path: Path, save: Save) -> None:
    table = torch.ones(10, 4)
    for other in (table, table[2:], table.view(-1)):
        with pytest.raises(ValueError, match=r"(wte and lm_head|lm_head and wte).*tied name"):
            save({"wte": table, "lm_head": other}, tmp_path)
    assert list(tmp_path.iterdir()) == []
    save({"wte": table[:5], "lm_head": table[5:], "empty": table[:0]}, tmp_path)


def test_save_bin_keeps_sharing_and_leaves_the_rest_of_a_storage_out(tmp_path: Path) -> None:
    table = torch.ones(10, 4)
    save_bin({"wte": table, "lm_head": table, "row": torch.ones(1_000_000)[:4]}, tmp_path / "pytorch_model.bin")
    state = load(tmp_path)
    assert state["wte"].data_ptr() == state["lm_head"].data_ptr()
    assert (tmp_path / "pytorch_model.bin").stat().st_size < 10_000


@pytest.mark.parametrize("save", SAVES)
def test_tensors_without_data_are_refused(tmp_path: Path, save: Save) -> None:
    with pytest.raises(ValueError, match=r"w: on the meta device"):
        save({"w": torch.empty(2, device="meta")}, tmp_path)


@pytest.mark.parametrize(("limit", "count"), [(10_000, 1), ("3KB", 2), (1, 2), ("1GB", 1)])
def test_shards(tmp_path: Path, limit: int | str, count: int) -> None:
    paths = save_sharded(STATE, tmp_path, limit)
    assert len(paths) == count
    index = tmp_path / "model.safetensors.index.json"
    assert index.exists() == (count > 1)
    assert {path.name for path in tmp_path.iterdir()} - {index.name} == {path.name for path in paths}
    if count > 1:
        content = json.loads(index.read_text(encoding="utf-8"))
        assert set(content["weight_map"]) == set(STATE)
        assert content["metadata"]["total_size"] == 4200
    assert_same(load(tmp_path), STATE)


def test_a_new_save_replaces_the_one_before_whatever_its_shards(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "model-extra.safetensors").touch()
    for number, limit in enumerate((1, 10_000, 300, 2500, 10_000)):
        state = {name: torch.full_like(tensor, number) for name, tensor in STATE.items()}
        paths = save_sharded(state, tmp_path, limit)
        assert_same(load(tmp_path), state)
        kept = {path.name for path in tmp_path.iterdir()} - {path.name for path in paths}
        assert kept - {"model.safetensors.index.json"} == {"config.json", "model-extra.safetensors"}


# --- the disk is full (known fault B5) ---


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def full(_: int) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        yield


@pytest.mark.parametrize("save", SAVES)
def test_b5_a_disk_that_is_full_at_the_end_leaves_the_save_before(
    tmp_path: Path, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(STATE, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with failing(monkeypatch), pytest.raises(OSError, match="No space left"):
        save({name: torch.zeros_like(tensor) for name, tensor in STATE.items()}, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# The process may write no file beyond its limit (`RLIMIT_FSIZE`): the system refuses the write that crosses it.
_LIMITED = r"""
import resource, sys
from pathlib import Path
import torch
from pytorch_transformers.checkpoint.save import save_bin, save_safetensors, save_sharded
from pytorch_transformers.files import write_text

folder = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
state = {"a": torch.zeros(5_000), "b": torch.zeros(200_000)}
for save in (
    lambda: save_safetensors(state, folder / "model.safetensors"),
    lambda: save_bin(state, folder / "pytorch_model.bin"),
    lambda: save_sharded(state, folder, "100KB"),
    lambda: write_text(folder / "vocab.txt", "x" * 200_000),
):
    try:
        save()
    except OSError as error:
        print(type(error).__name__, error)
    else:
        sys.exit("was written")
"""


def test_b5_a_disk_that_fills_up_leaves_nothing_half_written(tmp_path: Path) -> None:
    save_sharded(STATE, tmp_path, 300)
    save_bin(STATE, tmp_path / "pytorch_model.bin")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(tmp_path)], capture_output=True, check=False, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [name for name in ("model.safetensors", "pytorch_model.bin") if name not in lines[0] + lines[1]] == []
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
