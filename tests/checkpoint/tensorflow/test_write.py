"""Writing: whole or not at all, one tensor at a time, whatever its device and layout."""

import errno
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from pytorch_transformers.checkpoint.tensorflow.bundle import Bundle
from pytorch_transformers.checkpoint.tensorflow.write import write_bundle

from .crafted import bits, contents, data, index


class Lazy(Mapping[str, Tensor]):
    """Computes a tensor when it is asked for."""

    def __init__(self, names: list[str], fail: str = "") -> None:
        self.asked: list[str] = []
        self._names, self._fail = names, fail

    def __getitem__(self, name: str) -> Tensor:
        self.asked.append(name)
        if name == self._fail:
            raise OSError(errno.ENOSPC, "No space left on device")
        return torch.full((3,), float(len(name)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def test_each_tensor_is_asked_for_once_in_sorted_order(tmp_path: Path) -> None:
    lazy = Lazy(["b", "a/c", "a", "\u20ac", "\U0001f600", "\uffee"])
    written = write_bundle(tmp_path / "new" / "x", lazy)
    assert written == [data(tmp_path / "new" / "x"), index(tmp_path / "new" / "x")]
    assert lazy.asked == sorted(lazy) == list(Bundle(tmp_path / "new" / "x"))


def test_nothing_to_write(tmp_path: Path) -> None:
    write_bundle(tmp_path / "x", {})
    assert contents(tmp_path / "x") == {}


def test_layouts_in_memory(tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    imaginary = torch.complex(base, base).conj()
    state = {
        "transposed": base.T,
        "strided": base[::2, 1::3],
        "expanded": base[0].expand(3, 6),
        "parameter": torch.nn.Parameter(base),
        "conjugated": imaginary,
        "negative": torch._neg_view(base),
        "channels": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "scalar": base[1, 2],
    }
    write_bundle(tmp_path / "x", state)
    expected = {name: bits(tensor.detach().resolve_conj().resolve_neg().clone()) for name, tensor in state.items()}
    assert contents(tmp_path / "x") == expected


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_tensors_of_a_gpu(tmp_path: Path) -> None:
    tensor = torch.randn(30, 40)
    write_bundle(tmp_path / "x", {"a": tensor.cuda().T})
    assert bits(Bundle(tmp_path / "x").read("a")) == bits(tensor.T)


@pytest.mark.parametrize("name", ["", "\0", "a\0b", "\ud800"])
def test_names_that_cannot_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a variable"):
        write_bundle(tmp_path / "x", {"a": torch.ones(3), name: torch.ones(3)})
    assert not list(tmp_path.iterdir())


def test_tensors_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"'a' is of type torch\.float8_e5m2, which .* cannot hold: bfloat16, bool"):
        write_bundle(tmp_path / "x", {"a": torch.ones(3).to(torch.float8_e5m2)})
    with pytest.raises(ValueError, match="'a' is on the meta device"):
        write_bundle(tmp_path / "x", {"a": torch.ones(3, device="meta")})
    with pytest.raises(ValueError, match=r"'a' is of layout torch\.sparse_coo"):
        write_bundle(tmp_path / "x", {"a": torch.eye(3).to_sparse()})
    assert not list(tmp_path.iterdir())


def test_a_save_that_fails_leaves_the_earlier_one(tmp_path: Path) -> None:
    write_bundle(tmp_path / "x", {"a": torch.ones(30)})
    before = contents(tmp_path / "x")
    with pytest.raises(OSError, match="No space left"):
        write_bundle(tmp_path / "x", Lazy(["a", "b"], fail="b"))
    assert contents(tmp_path / "x") == before
    assert sorted(tmp_path.iterdir()) == sorted([index(tmp_path / "x"), data(tmp_path / "x")])


@pytest.mark.parametrize("stop", [1, 2])
def test_a_stop_between_the_files_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int) -> None:
    """The first rename is that of the data, the second that of the index; the machine stops before one of them."""
    write_bundle(tmp_path / "x", {"a": torch.ones(30)})
    before = contents(tmp_path / "x")
    done: list[str] = []
    rename = Path.replace

    def stopping(path: Path, target: Path) -> Path:
        if len(done) + 1 >= stop:
            raise KeyboardInterrupt
        done.append(target.suffix)
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", stopping)
    with pytest.raises(KeyboardInterrupt):
        write_bundle(tmp_path / "x", {"a": torch.zeros(30)})
    assert done == [".data-00000-of-00001"][: stop - 1]
    if stop == 1:
        assert contents(tmp_path / "x") == before
    else:
        with pytest.raises(OSError, match=r"data-00000-of-00001.*'a'.*checksum"):
            contents(tmp_path / "x")
    assert len(list(tmp_path.iterdir())) == 2


def test_an_earlier_checkpoint_is_replaced_while_it_is_open(tmp_path: Path) -> None:
    """Converting a checkpoint into its own place: tensors map the old file until it is renamed over."""
    state = {"a": torch.arange(50_000.0), "b": torch.ones(3)}
    write_bundle(tmp_path / "x", state)
    bundle = Bundle(tmp_path / "x")
    held = bundle.read("a")
    write_bundle(tmp_path / "x", {name: bundle.read(name) * 2 for name in bundle})
    assert bits(held) == bits(state["a"])
    assert contents(tmp_path / "x") == {name: bits(tensor * 2) for name, tensor in state.items()}
