"""`features` from end to end: files, pipes, stops and mistakes. Results themselves are tested in `data/`."""

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from pytorch_transformers import FeatureExtractor
from saved_bert import COMMAND, HIDDEN, POSITIONS, environment, some_texts

from .conftest import Run

TEXTS = some_texts(30)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A file of lines."""
    path = tmp_path / "in.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def vectors(path: Path) -> Any:
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".safetensors":
        return load_file(path)["vectors"]
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return archive["vectors"]
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return np.array([[layer["values"] for layer in line["layers"]] for line in lines]).squeeze(1)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors", ".jsonl", ".NPZ"])
def test_every_format_has_the_vectors_in_order(run: Run, tiny: Path, text: Path, suffix: str) -> None:
    out = text.parent / "new" / "folder" / f"out{suffix}"
    status, printed, errors = run("features", "--model", tiny, "--input_file", text, "--output_file", out)
    assert (status, printed) == (0, "")
    assert f"{out}: {len(TEXTS)} lines" in errors
    assert f"lines were longer than {POSITIONS} tokens and cut" in errors
    expected = FeatureExtractor.from_pretrained(tiny).encode(TEXTS).numpy()
    if suffix == ".NPZ":
        out = out.rename(out.with_suffix(".npz"))
    np.testing.assert_allclose(vectors(out), expected, rtol=0, atol=1e-5)
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.parametrize("spelling", [["--layers", "-1,-2"], ["--layers=-1,-2"], ["--layer", "-1,-2"]])
def test_layers_as_people_type_them(run: Run, tiny: Path, text: Path, spelling: list[str]) -> None:
    status, printed, _ = run("features", *spelling, "--model", tiny, "--input_file", text)
    assert status == 0
    assert [layer["index"] for layer in json.loads(printed.splitlines()[0])["layers"]] == [-1, -2]


def test_options_reach_the_extractor(run: Run, tiny: Path, text: Path) -> None:
    out = text.with_name("out.npz")
    flags: tuple[object, ...] = (
        "--pooling",
        "none",
        "--layers",
        "0,-1",
        "--normalize",
        "--no_special_tokens",
        "--max_seq_length",
        9,
    )
    flags = (*flags, "--no_do_lower_case", "--batch_size", 2, "--batch_tokens", 20, "--window", 7)
    assert run("features", "--model", tiny, "--input_file", text, "--output_file", out, *flags)[0] == 0
    extractor = FeatureExtractor.from_pretrained(tiny, do_lower_case=False, max_length=9)
    expected = list(extractor.stream(TEXTS, pooling="none", layers=(0, -1), normalize=True, special_tokens=False))
    with np.load(out) as archive:
        assert archive["lengths"].tolist() == [len(each.ids) for each in expected]
        assert archive["ids"].tolist() == [token for each in expected for token in each.ids]
        whole = torch.cat([each.vectors for each in expected])
        np.testing.assert_allclose(archive["vectors"], whole.numpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_other_types_are_near(run: Run, tiny: Path, text: Path, dtype: str) -> None:
    out = text.with_name("out.npy")
    assert run("features", "--model", tiny, "--input_file", text, "--output_file", out, "--dtype", dtype)[0] == 0
    expected = FeatureExtractor.from_pretrained(tiny).encode(TEXTS).numpy()
    assert vectors(out).dtype == np.float32
    np.testing.assert_allclose(vectors(out), expected, rtol=0, atol=0.15)


@pytest.mark.parametrize(
    ("suffix", "pooling", "shape"),
    [(".npy", "mean", (0, HIDDEN)), (".npz", "none", (0, HIDDEN)), (".safetensors", "cls", (0, HIDDEN))],
)
def test_empty_input_gives_an_empty_array(
    run: Run, tiny: Path, text: Path, suffix: str, pooling: str, shape: tuple[int, ...]
) -> None:
    text.write_bytes(b"")
    out = text.with_name(f"out{suffix}")
    flags = ("--pooling", pooling)
    assert run("features", "--model", tiny, "--input_file", text, "--output_file", out, *flags)[0] == 0
    assert vectors(out).shape == shape


def test_empty_input_gives_an_empty_file_of_lines(run: Run, tiny: Path, text: Path) -> None:
    text.write_bytes(b"")
    out = text.with_name("out.jsonl")
    assert run("features", "--model", tiny, "--input_file", text, "--output_file", out)[0] == 0
    assert out.read_bytes() == b""
    assert run("features", "--model", tiny, "--input_file", text)[:2] == (0, "")


def test_bad_line_stops_with_its_number(run: Run, tiny: Path, text: Path) -> None:
    text.write_bytes(b"cook\nrain\n\xff\xfe\ngolden\n")
    out = text.with_name("out.npy")
    status, _, errors = run("features", "--model", tiny, "--input_file", text, "--output_file", out)
    assert status == 1
    assert f"{text}, line 3: not UTF-8" in errors
    assert [path.name for path in text.parent.iterdir()] == ["in.txt"]
    flags = ("--on_bad_line", "replace")
    status, _, errors = run("features", "--model", tiny, "--input_file", text, "--output_file", out, *flags)
    assert status == 0
    assert "1 lines were not UTF-8, bad bytes replaced: 3" in errors
    assert len(vectors(out)) == 4


def test_bad_lines_before_a_stop_are_still_reported(run: Run, tiny: Path, text: Path) -> None:
    text.write_bytes(b"\xff\ncook\n\xff\n" + b"rain\n" * 9)
    flags = (
        "--model",
        tiny,
        "--input_file",
        text,
        "--output_file",
        text.with_name("out.npy"),
        "--on_bad_line",
        "replace",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytorch_transformers.data.feature_files.FeatureOutput.finish", interrupt)
        assert run("features", *flags)[0] == 130
    status, _, errors = run("features", *flags)
    assert status == 0
    assert "resuming after line 12" in errors
    assert "2 lines were not UTF-8, bad bytes replaced: 1, 3" in errors


def interrupt(*arguments: object) -> None:
    """What Ctrl-C does."""
    raise KeyboardInterrupt


def test_interrupted_run_says_how_to_go_on(run: Run, tiny: Path, text: Path) -> None:
    out = text.with_name("out.npz")
    flags = ("--model", tiny, "--input_file", text, "--output_file", out, "--window", 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytorch_transformers.data.feature_files.FeatureOutput.finish", interrupt)
        status, _, errors = run("features", *flags)
    assert status == 130
    assert f"{len(TEXTS)} lines are done and kept in {out}.partial; give the same command again" in errors
    assert errors.endswith("interrupted\n")
    status, _, errors = run("features", *flags, "--normalize")
    assert status == 0
    assert "starting anew" in errors
    np.testing.assert_allclose(np.linalg.norm(vectors(out), axis=1), 1, atol=1e-5)


def test_input_that_changed_starts_anew(run: Run, tiny: Path, text: Path) -> None:
    flags = ("--model", tiny, "--input_file", text, "--output_file", text.with_name("out.npy"), "--window", 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytorch_transformers.data.feature_files.FeatureOutput.finish", interrupt)
        run("features", *flags)
    text.write_text("\n".join(reversed(TEXTS)) + "\n", encoding="utf-8")
    os.utime(text, (1, 1))  # the same size; the time differs
    status, _, errors = run("features", *flags)
    assert status == 0
    assert "starting anew" in errors
    expected = FeatureExtractor.from_pretrained(tiny).encode(TEXTS[::-1]).numpy()
    np.testing.assert_allclose(vectors(text.with_name("out.npy")), expected, rtol=0, atol=1e-5)


def limit_files(size: int) -> Callable[[], None]:
    """For `preexec_fn`: no file may grow beyond `size` bytes, which is how a full disk looks from inside."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_killed_run_goes_on_to_the_same_bytes(run: Run, tiny: Path, text: Path) -> None:
    """Killed in the middle, then out of space, then to the end."""
    text.write_text("\n".join(some_texts(3000)) + "\n", encoding="utf-8")
    out, whole = text.with_name("out.npz"), text.with_name("whole.npz")
    flags = ["features", "--model", str(tiny), "--input_file", str(text), "--window", "50", "--output_file"]
    with subprocess.Popen([*COMMAND, *flags, str(out)], env=environment(), stderr=subprocess.DEVNULL) as process:
        state = out.with_name("out.npz.partial") / "state.json"
        while not state.exists() and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()
    done = json.loads(state.read_text("utf-8"))
    assert 0 < done["lines"] < 3000

    full = subprocess.run(
        [*COMMAND, *flags, str(out)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit_files(done["sizes"]["vectors"] + 20_000),
    )
    assert full.returncode == 1
    assert f"resuming after line {done['lines']}" in full.stderr
    assert "File too large" in full.stderr
    assert "give the same command again" in full.stderr
    assert "Traceback" not in full.stderr
    assert not out.exists()

    status, _, errors = run(*flags, out)
    assert status == 0
    assert "resuming after line" in errors
    assert run(*flags, whole)[0] == 0
    assert out.read_bytes() == whole.read_bytes()
    assert {path.name for path in text.parent.iterdir()} == {"in.txt", out.name, whole.name}


def test_lines_of_a_pipe_are_answered_as_they_come(tiny: Path) -> None:
    command = [*COMMAND, "features", "--model", str(tiny)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        for number, line in enumerate(("cook onions", "", "golden ||| rain")):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["linex_index"] == number
        process.stdin.close()
        assert process.stdout.read() == ""
        errors = process.stderr.read()
    assert process.returncode == 0
    assert "tokens/s" not in errors  # no progress bar where there is no terminal


def test_reader_that_leaves_is_no_error(tiny: Path, text: Path) -> None:
    text.write_text("cook onions until golden\n" * 20_000, encoding="utf-8")
    command = [*COMMAND, "features", "--model", str(tiny), "--input_file", str(text), "--window", "20"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout
        assert process.stderr
        assert json.loads(process.stdout.readline())["linex_index"] == 0
        process.stdout.close()
        errors = process.stderr.read().decode()
    assert process.returncode == 141
    assert not re.search("pipe|Traceback|Error", errors, re.IGNORECASE), errors


def test_pipe_to_a_file_leaves_nothing_after_a_failure(
    run: Run, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"cook\n" * 20 + b"\xff\n")))
    status, _, errors = run("features", "--model", tiny, "--output_file", tmp_path / "out.npy", "--window", 2)
    assert status == 1
    assert "standard input, line 21: not UTF-8" in errors
    assert list(tmp_path.iterdir()) == []


def test_progress_bar_of_a_terminal_shows_tokens(tiny: Path, text: Path) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    out = text.with_name("out.npy")
    command = [*COMMAND, "features", "--model", str(tiny), "--input_file", str(text), "--output_file", str(out)]
    subprocess.run(command, stderr=slave, env=environment(), check=True)
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # what Linux says at the end
        while part := os.read(master, 1 << 16):
            shown += part
    os.close(master)
    assert re.search(rb"features: 30 lines .*tokens/s", shown), shown


REFUSED: list[tuple[list[object], str]] = [
    (["--input_file", "missing.txt"], "missing.txt"),
    (["--input_file", "."], "directory"),
    (["--output_file", "."], "no file"),
    (["--output_file", "/dev/null"], "no file"),
    (["--output_file", "in.txt"], "is the input file"),
    (["--output_file", "in.txt/out.npy"], "in.txt"),
    (["--output_file", "out.npy", "--pooling", "none"], ".npy holds one array"),
    (["--layers", "3"], "layers: 3, must be from -3 to 2"),
    (["--layers", "-1,-4"], "layers: -4"),
    (["--max_seq_length", "1000"], f"must be from 3 to {POSITIONS}"),
    (["--max_seq_length", "0"], f"must be from 3 to {POSITIONS}"),
    (["--device", "gpu"], "--device gpu: no such device"),
    (["--device", "cpu:x"], "no such device"),
    (["--device", "cuda:99"], "--device cuda:99: no such device"),
    (["--model", "./nowhere"], "nowhere"),
]


@pytest.mark.parametrize(
    ("flags", "message"), REFUSED, ids=lambda each: " ".join(each) if isinstance(each, list) else ""
)
def test_mistakes_are_named(
    run: Run, tiny: Path, text: Path, flags: list[object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(text.parent)
    status, printed, errors = run("features", "--model", tiny, "--input_file", "in.txt", *flags)
    assert (status, printed) == (1, "")
    assert message in errors
    assert errors.splitlines()[-1].startswith("pytorch_transformers features: ")
    assert [path.name for path in text.parent.iterdir()] == ["in.txt"]
    assert text.read_text("utf-8").splitlines() == TEXTS


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--layers", "one"], "'one' is no list of layers such as -1,-2"),
        (["--layers="], "is no list of layers"),
        (["--batch_size", "0"], "0 is less than 1"),
        (["--window", "many"], "'many' is no whole number"),
        (["--dtype", "int8"], "invalid choice: 'int8'"),
        (["--pooling", "median"], "invalid choice: 'median'"),
        (["--on_bad_line", "ignore"], "invalid choice"),
    ],
)
def test_wrong_usage_exits_with_2(
    run: Run, tiny: Path, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        run("features", "--model", tiny, *flags)
    assert raised.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_folder_that_may_not_be_written_to(run: Run, tiny: Path, text: Path) -> None:
    folder = text.with_name("locked")
    folder.mkdir(mode=0o500)
    status, _, errors = run("features", "--model", tiny, "--input_file", text, "--output_file", folder / "out.npy")
    assert status == 1
    assert "Permission denied" in errors


def test_device_out_of_memory_says_what_to_do(
    run: Run, tiny: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("pytorch_transformers.data.features.FeatureExtractor._run", refuse)
    status, _, errors = run("features", "--model", tiny, "--input_file", text)
    assert status == 1
    assert "smaller --batch_tokens" in errors
