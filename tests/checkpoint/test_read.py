"""Finding and reading weights: every format, and every way a file can be wrong."""

import json
import logging
import os
import pickle
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn

from pytorch_transformers.checkpoint.read import WEIGHT_FILES, find_weights, read_weights
from pytorch_transformers.checkpoint.save import save_sharded
from pytorch_transformers.hub import locate

STATE = {"a.weight": torch.arange(2000.0).reshape(40, 50), "b": torch.ones(3, dtype=torch.bfloat16)}


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def legacy(content: Any, path: Path) -> None:
    torch.save(content, path, _use_new_zipfile_serialization=False)


SAVES: dict[str, Callable[[Any, Path], None]] = {"safetensors": save_file, "bin": torch.save, "legacy": legacy}


def find(path: Path) -> list[str]:
    return [found.name for found in find_weights(locate(path, shortcuts={}))]


def test_the_first_of_the_known_names_is_taken(tmp_path: Path) -> None:
    save_sharded({"x": torch.ones(64), "y": torch.ones(64)}, tmp_path, 300)
    shards = find(tmp_path)
    assert len(shards) == 2
    torch.save(STATE, tmp_path / "pytorch_model.bin")
    assert find(tmp_path) == shards
    save_file(STATE, tmp_path / "model.safetensors")
    assert find(tmp_path) == ["model.safetensors"]
    assert find(tmp_path / "pytorch_model.bin") == ["pytorch_model.bin"]
    assert find(tmp_path / "model.safetensors.index.json") == shards


def test_an_index_of_pickles(tmp_path: Path) -> None:
    for number, name in enumerate(STATE):
        torch.save({name: STATE[name]}, tmp_path / f"part-{number}.bin")
    weight_map = {name: f"part-{number}.bin" for number, name in enumerate(STATE)}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")
    assert same(read_weights(find_weights(locate(tmp_path, shortcuts={}))), STATE)


@pytest.mark.parametrize("name", ["w.bin", "w.pt", "w.pth", "w.ckpt", "w.pth.tar"])
def test_a_chosen_file_under_any_name(tmp_path: Path, name: str) -> None:
    torch.save(STATE, tmp_path / name)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert same(read_weights(find_weights(locate(tmp_path / name, shortcuts={}))), STATE)


def test_a_chosen_configuration_finds_the_weights_beside_it(tmp_path: Path) -> None:
    torch.save(STATE, tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert find(tmp_path / "config.json") == ["pytorch_model.bin"]


def test_no_weights_lists_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No weights in the folder") as caught:
        find(tmp_path)
    assert all(name in str(caught.value) for name in (*WEIGHT_FILES, str(tmp_path)))
    (tmp_path / "tf_model.h5").touch()
    with pytest.raises(OSError, match=r"holds tf_model.h5, which"):
        find(tmp_path)
    (tmp_path / "bert_model.ckpt.index").touch()
    with pytest.raises(OSError, match=r"TensorFlow checkpoint, .*bert_model\.ckpt: see `.* inspect` and `convert`"):
        find(tmp_path)
    with pytest.raises(OSError, match=r"No weights in .*TensorFlow checkpoint, .*bert_model\.ckpt: see"):
        find(tmp_path / "bert_model.ckpt")


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    first, second = save_sharded({"x": torch.ones(64), "y": torch.ones(64)}, tmp_path, 300)
    second.unlink()
    with pytest.raises(OSError, match=second.name) as caught:
        find(tmp_path)
    assert first.name not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"weight_map": [1]}', '{"weight_map": {"a": 1}}', "\x00\xff"])
def test_a_broken_index_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(OSError, match=r"model.safetensors.index.json \(\d+ bytes\)"):
        find(tmp_path)


@pytest.mark.parametrize("shard", ["../secret.safetensors", "/etc/passwd", "a\\..\\b"])
def test_an_index_cannot_point_out_of_its_place(tmp_path: Path, shard: str) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": shard}}), encoding="utf-8")
    with pytest.raises(OSError, match="points out of"):
        find(tmp_path)


@pytest.mark.parametrize("save", [torch.save, legacy])
@pytest.mark.parametrize("wrap", [dict, OrderedDict, lambda s: {"state_dict": s}, lambda s: {"model": s, "epoch": 3}])
def test_torch_formats(
    tmp_path: Path, save: Callable[[Any, Path], None], wrap: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    save(wrap(STATE), tmp_path / "w.bin")
    with caplog.at_level(logging.INFO, logger="pytorch_transformers"):
        assert same(read_weights([tmp_path / "w.bin"]), STATE)
    assert ("the weights are under" in caplog.text) == (set(wrap(STATE)) != set(STATE))
    assert ("epoch" in caplog.text) == ("epoch" in wrap(STATE))


def test_parameters_and_counters(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    torch.save({"w": nn.Parameter(torch.ones(2)), "step": 7, "lr": 0.1, "name": "x"}, tmp_path / "w.bin")
    with caplog.at_level(logging.INFO, logger="pytorch_transformers"):
        state = read_weights([tmp_path / "w.bin"])
    assert list(state) == ["w"]
    assert not state["w"].requires_grad
    assert "left out: step, lr, name" in caplog.text


@pytest.mark.parametrize(
    "content", [{"w": torch.ones(1), "optim": {"lr": 1}}, {"w": [torch.ones(1)]}, {3: torch.ones(1)}]
)
def test_entries_that_are_no_tensors_are_listed(tmp_path: Path, content: dict[Any, Any]) -> None:
    torch.save(content, tmp_path / "w.bin")
    with pytest.raises(OSError, match=rf"w.bin is no dict of names and tensors: {list(content)[-1]}"):
        read_weights([tmp_path / "w.bin"])


@pytest.mark.parametrize("content", [torch.ones(3), [torch.ones(3)], 3])
def test_a_file_that_is_no_dict(tmp_path: Path, content: Any) -> None:
    torch.save(content, tmp_path / "w.bin")
    with pytest.raises(OSError, match=rf"w.bin holds {type(content).__name__}"):
        read_weights([tmp_path / "w.bin"])


def test_a_name_in_two_files_is_an_error(tmp_path: Path) -> None:
    paths = [tmp_path / "1.safetensors", tmp_path / "2.safetensors"]
    for path in paths:
        save_file(STATE, path)
    with pytest.raises(OSError, match=r"2.safetensors and .*1.safetensors both hold a.weight, b"):
        read_weights(paths)


# --- files that were damaged on the way (known fault B5) ---

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "first bytes": lambda data: data[:7],
    "half": lambda data: data[: len(data) // 2],
    "last byte missing": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "git-lfs": lambda data: b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 440473133\n",
    "web page": lambda data: b"\n<!DOCTYPE html><html><body>503 Service Unavailable</body></html>",
    "text": lambda data: b"Not Found",
}


@pytest.mark.parametrize("kind", ["safetensors", "bin", "legacy"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_b5_a_damaged_file_is_named(tmp_path: Path, kind: str, damage: str) -> None:
    path = tmp_path / ("model.safetensors" if kind == "safetensors" else "pytorch_model.bin")
    SAVES[kind](STATE, path)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(OSError, match="cannot be read") as caught:
        read_weights([path])
    message = str(caught.value)
    assert f"{path} ({path.stat().st_size} bytes)" in message
    assert "fetch it again" in message
    hints = {"empty": "it is empty", "git-lfs": "git lfs pull", "web page": "a web page"}
    assert hints.get(damage, "") in message


@pytest.mark.parametrize("kind", ["bin", "safetensors"])
def test_b5_every_cut_is_noticed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"w.{kind}"
    SAVES[kind](STATE, path)
    data = path.read_bytes()
    for size in range(0, len(data), 97):
        path.write_bytes(data[:size])
        with pytest.raises(OSError, match=r"cannot be read"):
            read_weights([path])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", SAVES)
@settings(max_examples=100, derandomize=True)
@given(edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 20), st.binary(max_size=8)), min_size=1, max_size=4))
def test_b5_any_damage_is_an_os_error_or_goes_unseen_in_the_numbers(
    tmp_path_factory: pytest.TempPathFactory, kind: str, edits: list[tuple[float, int, bytes]]
) -> None:
    path = tmp_path_factory.mktemp("damage") / ("w.safetensors" if kind == "safetensors" else "w.bin")
    SAVES[kind]({"a.weight": torch.arange(20.0), "b": torch.ones(3)}, path)
    data = path.read_bytes()
    for place, removed, added in edits:
        start = int(place * len(data))
        data = data[:start] + added + data[start + removed :]
    path.write_bytes(data)
    try:
        state = read_weights([path])
    except OSError as error:
        assert str(path) in str(error)  # noqa: PT017 - either outcome is right
    else:
        assert all(isinstance(tensor.sum().item(), float | int | bool) for tensor in state.values())


# --- pickles that do more than hold data (known fault B8) ---


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, (f"touch '{self.mark}'",))


def zipped(content: Any, path: Path) -> None:
    torch.save(content, path)


def bare(content: Any, path: Path) -> None:
    path.write_bytes(pickle.dumps(content, protocol=2))


@pytest.mark.parametrize("save", [zipped, legacy, bare])
@pytest.mark.parametrize("place", [lambda evil: evil, lambda evil: {"state_dict": {"x": evil}}])
def test_b8_a_pickle_that_runs_code_is_refused_before_the_call(
    tmp_path: Path, save: Callable[[Any, Path], None], place: Callable[[Any], Any]
) -> None:
    path, mark = tmp_path / "pytorch_model.bin", tmp_path / "mark"
    save(place(Evil(mark)), path)
    with pytest.raises(OSError, match="is refused: it runs code") as caught:
        read_weights([path])
    assert not mark.exists()
    assert str(path) in str(caught.value)
    assert "system" in str(caught.value)
    assert "state_dict()" in str(caught.value)
    assert "weights_only=False" not in str(caught.value)


def test_b8_the_pickle_of_the_test_would_have_run(tmp_path: Path) -> None:
    bare(Evil(tmp_path / "mark"), tmp_path / "w")
    pickle.loads((tmp_path / "w").read_bytes())
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize("save", [zipped, legacy])
def test_b8_a_whole_model_is_refused_with_the_way_out(tmp_path: Path, save: Callable[[Any, Path], None]) -> None:
    save(nn.Linear(2, 2), tmp_path / "w.bin")
    with pytest.raises(OSError, match=r"w.bin is refused.*Linear.*whole model.*torch.save\(model.state_dict"):
        read_weights([tmp_path / "w.bin"])


def test_b8_a_program_in_an_archive_is_refused(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        torch.jit.save(torch.jit.script(nn.Linear(2, 2)), tmp_path / "w.pt")
    with pytest.raises(OSError, match=r"w.pt is refused"):
        read_weights([tmp_path / "w.pt"])


def test_a_zip_of_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "w.bin", "w") as archive:
        archive.writestr("readme.txt", "x")
    with pytest.raises(OSError, match=r"w.bin \(\d+ bytes\) cannot be read"):
        read_weights([tmp_path / "w.bin"])


# --- memory ---


def mapped_files() -> str:
    return Path("/proc/self/maps").read_text(encoding="utf-8")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads Linux's list of mapped files")
@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_reading_maps_the_file_and_copies_nothing(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"w.{kind}"
    SAVES[kind]({"w": torch.ones(1 << 20), "v": torch.ones(10)}, path)
    state = read_weights([path])
    spans = [line.split()[0].split("-") for line in mapped_files().splitlines() if line.endswith(str(path))]
    for tensor in state.values():
        assert any(int(start, 16) <= tensor.data_ptr() < int(end, 16) for start, end in spans), "was copied"


def test_what_was_read_survives_a_new_save_over_the_file(tmp_path: Path) -> None:
    save_sharded(STATE, tmp_path)
    state = read_weights(find_weights(locate(tmp_path, shortcuts={})))
    save_sharded({name: torch.zeros_like(tensor) for name, tensor in STATE.items()}, tmp_path)
    assert same(state, STATE)


def test_what_was_read_can_be_changed_without_changing_the_file(tmp_path: Path) -> None:
    save_file(STATE, tmp_path / "model.safetensors")
    read_weights([tmp_path / "model.safetensors"])["b"].zero_()
    assert same(read_weights([tmp_path / "model.safetensors"]), STATE)
