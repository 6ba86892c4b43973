"""Damaged files: an error that names the file and the variable, or the values as they were."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_transformers.checkpoint.tensorflow.bundle import Bundle
from pytorch_transformers.checkpoint.tensorflow.messages import Entry, pack_entry, parse_entry
from pytorch_transformers.checkpoint.tensorflow.table import MAGIC, read_table
from pytorch_transformers.checkpoint.tensorflow.write import write_bundle

from .crafted import EXPECTED, bits, claim, copied, data, index, write_index


@settings(max_examples=100)
@given(position=st.integers(0, 10**6), change=st.integers(1, 255))
def test_a_changed_byte_of_the_data(
    original: Path, tmp_path_factory: pytest.TempPathFactory, position: int, change: int
) -> None:
    prefix = copied(original, tmp_path_factory.mktemp("changed"))
    content = bytearray(data(prefix).read_bytes())
    position %= len(content)
    content[position] ^= change
    data(prefix).write_bytes(content)
    bundle = Bundle(prefix)
    hit = [name for name, item in bundle.items() if 0 <= position - item.parts[0].offset < item.nbytes]
    assert len(hit) == 1
    for name in bundle:
        if name in hit:
            with pytest.raises(OSError, match=rf"x\.data-00000-of-00001 .*'{name}', at bytes .*checksum"):
                bundle.read(name)
        else:
            assert bits(bundle.read(name)) == EXPECTED[name]


@settings(max_examples=100)
@given(length=st.integers(0, 10**6), which=st.sampled_from([index, data]))
def test_a_cut_file(
    original: Path, tmp_path_factory: pytest.TempPathFactory, length: int, which: Callable[[Path], Path]
) -> None:
    prefix = copied(original, tmp_path_factory.mktemp("cut"))
    path = which(prefix)
    content = path.read_bytes()
    path.write_bytes(content[: length % len(content)])
    with pytest.raises(OSError, match=rf"{path.name} \(\d+ bytes\) cannot be read: .*fetch it again") as caught:
        Bundle(prefix)
    if which is data and length % len(content):
        assert "it ends before the end of '" in str(caught.value)


def test_a_file_cut_or_gone_after_opening(prefix: Path) -> None:
    bundle = Bundle(prefix)
    held = bundle.read("a")
    content = data(prefix).read_bytes()
    data(prefix).write_bytes(content[:1000])
    with pytest.raises(OSError, match=r"x\.data-00000-of-00001 .*ends before the end of 'c'"):
        bundle.read("c")
    assert bits(bundle.read("a")) == bits(held)
    data(prefix).unlink()
    with pytest.raises(FileNotFoundError, match=r"x\.data-00000-of-00001"):
        bundle.read("a")


def test_missing_files(prefix: Path) -> None:
    data(prefix).unlink()
    with pytest.raises(OSError, match=r"x\.data-00000-of-00001 is missing: it holds 'a' and others"):
        Bundle(prefix)
    index(prefix).rename(prefix.with_name("y.index"))
    with pytest.raises(OSError, match=r"x\.index is missing.*There is .*y\.index"):
        Bundle(prefix)
    with pytest.raises(OSError, match=r"is missing.*There is .*y\.index"):
        Bundle(prefix.parent)
    with pytest.raises(OSError, match=r"\.index is missing"):
        Bundle("")


def test_swapped_data_files(tmp_path: Path) -> None:
    """Two data files of the same size, made into one checkpoint."""
    table = {}
    for shard, value in enumerate([1.0, 2.0]):
        part = tmp_path / f"part{shard}"
        write_bundle(part, {f"v{shard}": torch.full((5,), value)})
        data(part).rename(data(tmp_path / "x", shard, 2))
        for key, packed in read_table(index(part)).items():
            table[key] = pack_entry(Entry(**{**asdict(parse_entry(packed)), "shard": shard})) if key else packed
    write_index(tmp_path / "x", table)
    claim(tmp_path / "x", "", shards=2)
    bundle = Bundle(tmp_path / "x")
    assert bundle["v1"].shards == (1,)
    assert [bundle.read(name)[0].item() for name in bundle] == [1, 2]
    first, second = bundle.files[1:]
    first.rename(tmp_path / "aside")
    with pytest.raises(OSError, match=r"x\.data-00000-of-00002 is missing: it holds 'v0'"):
        Bundle(tmp_path / "x")
    second.rename(first)
    (tmp_path / "aside").rename(second)
    for name, path in zip(bundle, (first, second), strict=True):
        with pytest.raises(OSError, match=rf"{path.name}.*'{name}'.*checksum"):
            Bundle(tmp_path / "x").read(name)


def test_checkpoints_of_the_older_format(tmp_path: Path) -> None:
    (tmp_path / "model.ckpt").write_bytes(b"V1" * 100 + MAGIC)
    with pytest.raises(OSError, match=r"model\.ckpt is a TensorFlow checkpoint in the older format V1.*SaverDef\.V2"):
        Bundle(tmp_path / "model.ckpt")


def test_a_table_that_is_no_checkpoint(tmp_path: Path) -> None:
    write_index(tmp_path / "x", {b"key": b"value"})
    with pytest.raises(OSError, match=r"x\.index.*it has no header"):
        Bundle(tmp_path / "x")
