"""Files of vectors: every format, going on after a stop, and nothing half-written."""

import errno
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from pytorch_transformers.data.feature_files import FeatureOutput, OutputOptions
from pytorch_transformers.data.features import Features

H = 3
OPTIONS = OutputOptions("model", "in.txt", H, "mean", (-1,), False, True, ".npz")
FORMATS = (".npy", ".npz", ".safetensors", ".jsonl")


def results(count: int, pooling: str = "mean", layers: int = 1, start: int = 0) -> list[Features]:
    found = []
    for number in range(start, start + count):
        generator = torch.Generator().manual_seed(number)
        ids = list(range(number % 4))  # some texts have no token at all
        shape = (len(ids), layers, H) if pooling == "none" else (layers, H)
        found.append(Features(ids, torch.randn(shape, generator=generator), truncated=number % 5 == 0))
    return found


def names(ids: Sequence[int]) -> list[str]:
    return [f"t{number}" for number in ids]


def write(path: Path, options: OutputOptions, parts: Sequence[list[Features]]) -> FeatureOutput:
    options = replace(options, output_format=path.suffix)
    with FeatureOutput(path, options, names) as output:
        for part in parts:
            output.add(part)
        output.finish()
    return output


def read(path: Path) -> dict[str, Any]:
    if path.suffix == ".npy":
        return {"vectors": np.load(path)}
    if path.suffix == ".safetensors":
        return dict(load_file(path))
    with np.load(path) as archive:
        return dict(archive)


@pytest.mark.parametrize(
    ("suffix", "pooling", "layers", "counts"),
    [
        case
        for case in product(FORMATS[:3], ("mean", "none"), ((-1,), (0, -1)), ((), (0,), (5,), (2, 3, 4)))
        if case[:2] != (".npy", "none")
    ],
)
def test_arrays_of_binary_files(
    tmp_path: Path, suffix: str, pooling: str, layers: tuple[int, ...], counts: tuple[int, ...]
) -> None:
    path = tmp_path / f"out{suffix}"
    starts = [sum(counts[:number]) for number in range(len(counts))]
    parts = [results(count, pooling, len(layers), start) for count, start in zip(counts, starts, strict=True)]
    output = write(path, replace(OPTIONS, pooling=pooling, layers=layers), parts)
    whole = results(sum(counts), pooling, len(layers))
    assert (output.done, output.cut) == (len(whole), sum(each.truncated for each in whole))
    row = (H,) if len(layers) == 1 else (2, H)
    found = read(path)
    vectors = [each.vectors.numpy().reshape(-1, *row) for each in whole]
    np.testing.assert_array_equal(found["vectors"], np.concatenate([np.zeros((0, *row)), *vectors]).astype("f4"))
    assert found["vectors"].dtype == np.float32
    if pooling == "none":
        assert found["lengths"].tolist() == [len(each.ids) for each in whole]
        assert found["ids"].tolist() == [token for each in whole for token in each.ids]
        if len(whole):  # as the documentation shows it
            split = np.split(found["vectors"], found["lengths"].cumsum()[:-1])
            assert [len(part) for part in split] == [len(each.ids) for each in whole]
    assert set(found) == ({"vectors", "lengths", "ids"} if pooling == "none" else {"vectors"})
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_json_lines_of_texts(tmp_path: Path) -> None:
    write(
        tmp_path / "out.jsonl", replace(OPTIONS, layers=(-1, 0)), [results(2, layers=2), results(1, layers=2, start=2)]
    )
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert [line["linex_index"] for line in lines] == [0, 1, 2]
    for line, features in zip(lines, results(3, layers=2), strict=True):
        assert list(line) == ["linex_index", "layers"]
        assert [layer["index"] for layer in line["layers"]] == [-1, 0]
        for layer, vector in zip(line["layers"], features.vectors.tolist(), strict=True):
            assert layer["values"] == [round(value, 6) for value in vector]


def test_json_lines_of_tokens_are_those_of_the_original(tmp_path: Path) -> None:
    """The same characters as the script writes: `json.dumps` of ordered keys, values rounded to six places."""
    write(tmp_path / "out", replace(OPTIONS, pooling="none", layers=(-1, -2)), [results(4, "none", 2)])
    expected = ""
    for number, features in enumerate(results(4, "none", 2)):
        tokens = [
            {
                "token": f"t{i}",
                "layers": [
                    {"index": index, "values": [round(float(x), 6) for x in values]}
                    for index, values in zip((-1, -2), features.vectors[i].numpy(), strict=True)
                ],
            }
            for i in range(len(features.ids))
        ]
        expected += json.dumps({"linex_index": number, "features": tokens}) + "\n"
    assert (tmp_path / "out").read_text("utf-8") == expected


class StopError(Exception):
    """Stands for whatever ends a process."""


def stopped_run(path: Path, options: OutputOptions = OPTIONS, **changes: Any) -> FeatureOutput:
    """A run that ends after two parts."""
    with (
        suppress(StopError),
        FeatureOutput(path, replace(options, output_format=path.suffix, **changes), names) as output,
    ):
        output.add(results(4))
        output.add(results(2, start=4))
        raise StopError
    assert not path.exists()
    return output


@pytest.mark.parametrize("suffix", FORMATS)
def test_going_on_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    stopped, whole = tmp_path / f"stopped{suffix}", tmp_path / f"whole{suffix}"
    folder = stopped_run(stopped).folder
    for name in ("vectors", "lines.jsonl"):  # what was being written when the process ended
        if (folder / name).exists():
            with (folder / name).open("ab") as stream:
                stream.write(b"half a resu")
    with FeatureOutput(stopped, replace(OPTIONS, output_format=suffix), names) as output:
        assert output.note == "resuming after line 6"
        assert (output.done, output.cut) == (6, 2)
        output.add(results(3, start=6))
        output.finish()
    write(whole, OPTIONS, [results(4), results(2, start=4), results(3, start=6)])
    assert stopped.read_bytes() == whole.read_bytes()
    assert {each.name for each in tmp_path.iterdir()} == {stopped.name, whole.name}


CHANGES: list[dict[str, Any]] = [
    {"model": "other"},
    {"source": "other"},
    {"pooling": "max"},
    {"layers": (0,)},
    {"normalize": True},
    {"special_tokens": False},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_other_options_start_anew_and_say_so(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "out.npz"
    stopped_run(path)
    with FeatureOutput(path, replace(OPTIONS, **change), names) as output:
        assert output.done == 0
        assert "starting anew" in output.note
        output.add(results(1))
        output.finish()
    assert read(path)["vectors"].shape == (1, H)


@pytest.mark.parametrize("damage", ["no json", "[]", "{}", '{"fingerprint": "x", "more": 1}', "missing", "short"])
def test_damaged_state_starts_anew_and_says_so(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "out.npz"
    folder = stopped_run(path).folder
    if damage == "missing":
        (folder / "vectors").unlink()
    elif damage == "short":
        os.truncate(folder / "vectors", 5)
    else:
        (folder / "state.json").write_text(damage, encoding="utf-8")
    with FeatureOutput(path, OPTIONS, names) as output:
        assert output.done == 0
        assert "damaged" in output.note
        output.finish()
    assert read(path)["vectors"].shape == (0, H)


def test_without_resume_nothing_is_kept_or_used(tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    folder = stopped_run(path).folder
    with suppress(StopError), FeatureOutput(path, OPTIONS, names, resume=False) as output:
        assert output.done == 0
        assert "is not used" in output.note
        output.add(results(1))
        raise StopError
    assert not folder.exists()


def test_files_of_others_in_the_folder_stay(tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    (tmp_path / "out.npz.partial").mkdir()
    (tmp_path / "out.npz.partial" / "mine.txt").write_text("mine", encoding="utf-8")
    write(path, OPTIONS, [results(1)])
    assert [each.name for each in (tmp_path / "out.npz.partial").iterdir()] == ["mine.txt"]


def test_second_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    with FeatureOutput(path, OPTIONS, names) as first:
        first.add(results(2))
        with pytest.raises(OSError, match="another process is writing"), FeatureOutput(path, OPTIONS, names):
            pass
        first.finish()
    assert len(read(path)["vectors"]) == 2


def test_link_is_followed_and_older_output_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "real.npz", tmp_path / "link.npz"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link, OPTIONS, [results(2)])
    assert link.is_symlink()
    assert read(target)["vectors"].shape == (2, H)


def _no_space(descriptor: int) -> None:
    """Takes the place of `os.fsync`, where a full disk is often noticed."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("suffix", FORMATS)
def test_full_disk_keeps_what_is_complete(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, options = tmp_path / f"out{suffix}", replace(OPTIONS, output_format=suffix)
    stopped_run(path)

    def run() -> None:
        with monkeypatch.context() as patch, FeatureOutput(path, options, names) as output:
            patch.setattr(os, "fsync", _no_space)
            output.add(results(3, start=6))

    with pytest.raises(OSError, match="No space left"):
        run()
    assert [each.name for each in tmp_path.iterdir()] == [f"out{suffix}.partial"]
    with FeatureOutput(path, options, names) as output:
        assert output.done == 6
        output.add(results(3, start=6))
        output.finish()
    write(tmp_path / f"whole{suffix}", OPTIONS, [results(9)])
    assert path.read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", FORMATS[:3])
def test_full_disk_at_the_end_leaves_no_output(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, options = tmp_path / f"out{suffix}", replace(OPTIONS, output_format=suffix)
    path.write_bytes(b"of an earlier run")

    def run() -> None:
        with monkeypatch.context() as patch, FeatureOutput(path, options, names) as output:
            output.add(results(3))
            patch.setattr(os, "fsync", _no_space)
            output.finish()

    with pytest.raises(OSError, match="No space left"):
        run()
    assert path.read_bytes() == b"of an earlier run"
    assert {each.name for each in tmp_path.iterdir()} == {path.name, f"{path.name}.partial"}
