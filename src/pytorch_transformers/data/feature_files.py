"""Files of vectors: the formats, and output that can go on where a run was stopped.

Results are appended to plain files in a folder beside the output, `OUT.partial/`; `state.json` there, which is replaced
in one step after each window of lines, says how much of them is complete. A new run with equal options and input cuts
off the rest and goes on. The output itself appears in one step when all lines are done. Needs no torch to be imported.

The JSON-lines format is that of google-research/bert, extract_features.py: an object a line with `linex_index` and
`features`, one for each token, with `token` and `layers` (`index`, `values` rounded to six places).
"""

import fcntl
import hashlib
import json
import os
import shutil
import struct
import zipfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from ..files import atomic_write, write_json

if TYPE_CHECKING:
    from typing_extensions import Self

    from .features import Features

#: Ending of the output -> its format; any other ending is JSON lines.
BINARY_FORMATS: Final[tuple[str, ...]] = (".npz", ".npy", ".safetensors")
#: Array in a binary output -> type of its values and its name in safetensors.
_TYPES: Final = {"vectors": ("<f4", "F32"), "lengths": ("<i8", "I64"), "ids": ("<i8", "I64")}
_JSON_LINES: Final = "lines.jsonl"
_STATE: Final = "state.json"
_LOCK: Final = "lock"


@dataclass(frozen=True)
class OutputOptions:
    """What the output depends on; what a run with other options left is not reused.

    Attributes:
        model: Fingerprint of the model, its tokenizer and how it reads the text.
        source: What tells the input from another.
        hidden_size: Length of a vector.
        pooling: As for `FeatureExtractor.stream`, like the next three.
        layers: Layers of each result.
        normalize: Whether vectors are scaled to length 1.
        special_tokens: Whether [CLS] and [SEP] count.
        output_format: Ending of the output.
    """

    model: str
    source: str
    hidden_size: int
    pooling: str
    layers: tuple[int, ...]
    normalize: bool
    special_tokens: bool
    output_format: str

    def fingerprint(self) -> str:
        """A short name for this set of options."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def row(self) -> tuple[int, ...]:
        """Shape of what one text, or with pooling "none" one token, contributes."""
        return (self.hidden_size,) if len(self.layers) == 1 else (len(self.layers), self.hidden_size)


@dataclass
class _State:
    """What is complete: lines, lines that were cut to the model's length, and bytes of each file."""

    fingerprint: str
    lines: int = 0
    cut: int = 0
    sizes: dict[str, int] = field(default_factory=dict)


class FeatureOutput:
    """An output file in the making, to be used in a `with` statement.

    Args:
        path: The file; its ending chooses the format.
        options: What the results depend on.
        tokens: Turns ids into tokens, for the JSON lines.
        resume: Whether to go on after what an earlier run with equal options left, and to keep it after a failure.

    Raises:
        OSError: The place cannot be written to, or another process is writing this output.
    """

    def __init__(
        self, path: Path, options: OutputOptions, tokens: Callable[[list[int]], list[str]], *, resume: bool = True
    ) -> None:
        self.path = path.resolve()
        self.folder = self.path.with_name(f"{self.path.name}.partial")
        self.options = options
        self._tokens = tokens
        self._resume = resume
        self._opened = ExitStack()
        self._state = _State(options.fingerprint())
        #: What became of an earlier run's results: nothing to say, or one sentence.
        self.note = ""

    @property
    def done(self) -> int:
        """Lines whose results are complete."""
        return self._state.lines

    @property
    def cut(self) -> int:
        """Those of them that were longer than the model takes."""
        return self._state.cut

    def __enter__(self) -> "Self":
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            self._lock(opened.enter_context((self.folder / _LOCK).open("wb")))
            earlier, self.note = self._earlier() if (self.folder / _STATE).exists() else (None, "")
            self._state = earlier or self._state
            if earlier is None:
                self._discard()
            self._files = {
                name: opened.enter_context((self.folder / name).open("ab")) for name in self._arrays() or [_JSON_LINES]
            }
            for name, stream in self._files.items():
                stream.truncate(self._state.sizes.get(name, 0))
            self._opened = opened.pop_all()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with suppress(OSError):  # what could not be written is not counted in the state
            self._opened.close()
        if kind is None or not self._resume or not self.done:
            self._discard()
            (self.folder / _LOCK).unlink(missing_ok=True)
            with suppress(OSError):  # somebody else's files in it stay
                self.folder.rmdir()

    def _lock(self, stream: IO[bytes]) -> None:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # gone with the process, however it ends
        except OSError as error:
            raise OSError(f"another process is writing {self.path}: it uses {self.folder}") from error

    def _earlier(self) -> tuple[_State | None, str]:
        """The state of an earlier run, if it can go on, and a sentence about that."""
        if not self._resume:
            return None, f"starting anew: what an earlier run left in {self.folder} is not used"
        try:
            state = _State(**json.loads((self.folder / _STATE).read_text(encoding="utf-8")))
            complete = all((self.folder / name).stat().st_size >= size for name, size in state.sizes.items())
        except (OSError, ValueError, TypeError):
            complete = False
        if not complete:
            return None, f"starting anew: what an earlier run left in {self.folder} is damaged"
        if state.fingerprint != self._state.fingerprint:
            return None, f"starting anew: {self.folder} is from a run with another input, model or other options"
        return state, f"resuming after line {state.lines}"

    def _discard(self) -> None:
        for name in (_STATE, _JSON_LINES, *_TYPES):
            (self.folder / name).unlink(missing_ok=True)

    def _arrays(self) -> list[str]:
        """Names of the arrays in the output; none for JSON lines."""
        if self.options.output_format not in BINARY_FORMATS:
            return []
        return list(_TYPES) if self.options.pooling == "none" else ["vectors"]

    def add(self, results: "Sequence[Features]") -> None:
        """Write the next results; once this returns they outlive the process."""
        for index, features in enumerate(results, self.done):
            for name, stream in self._files.items():
                stream.write(self._bytes(name, index, features))
        for stream in self._files.values():
            stream.flush()
            os.fsync(stream.fileno())
        self._state = _State(
            self._state.fingerprint,
            self._state.lines + len(results),
            self._state.cut + sum(features.truncated for features in results),
            {name: stream.tell() for name, stream in self._files.items()},
        )
        write_json(self.folder / _STATE, asdict(self._state))

    def _bytes(self, name: str, index: int, features: "Features") -> bytes:
        if name == _JSON_LINES:
            return f"{json_line(index, features, self.options, self._tokens)}\n".encode()
        values = {"vectors": features.vectors, "lengths": [len(features.ids)], "ids": features.ids}[name]
        return np.asarray(values).astype(_TYPES[name][0]).tobytes()

    def finish(self) -> None:
        """Make the output file of what was added."""
        if not self._arrays():
            (self.folder / _JSON_LINES).replace(self.path)
            return
        shapes = {name: self._shape(name) for name in self._arrays()}
        with atomic_write(self.path) as temporary:
            _WRITERS[self.options.output_format](temporary, self.folder, shapes)

    def _shape(self, name: str) -> tuple[int, ...]:
        row = self.options.row if name == "vectors" else ()
        size = np.dtype(_TYPES[name][0]).itemsize * int(np.prod(row, dtype=np.int64))
        return (self._state.sizes.get(name, 0) // size, *row)


Shapes = dict[str, tuple[int, ...]]


def _write_npy(path: Path, folder: Path, shapes: Shapes) -> None:
    with path.open("wb") as out:
        _write_array(out, folder / "vectors", shapes["vectors"])


def _write_npz(path: Path, folder: Path, shapes: Shapes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, shape in shapes.items():
            # A ZipInfo of its own has a fixed date, so that equal vectors make equal files.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as out:
                _write_array(out, folder / name, shape)


def _write_safetensors(path: Path, folder: Path, shapes: Shapes) -> None:
    """Eight bytes of length, a header in JSON, the values: the library itself would need all of them in memory."""
    header, start = {}, 0
    for name, shape in shapes.items():
        end = start + (folder / name).stat().st_size
        header[name] = {"dtype": _TYPES[name][1], "shape": shape, "data_offsets": (start, end)}
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the values begin at a multiple of 8
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name in shapes:
            _copy(folder / name, out)


_WRITERS: Final = {".npy": _write_npy, ".npz": _write_npz, ".safetensors": _write_safetensors}


def _write_array(out: IO[bytes], values: Path, shape: tuple[int, ...]) -> None:
    header = {"descr": _TYPES[values.name][0], "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, header)
    _copy(values, out)


def _copy(source: Path, out: IO[bytes]) -> None:
    with source.open("rb") as stream:
        shutil.copyfileobj(stream, out, 1 << 20)


def json_line(
    index: int, features: "Features", options: OutputOptions, tokens: Callable[[list[int]], list[str]]
) -> str:
    """One line of the output: the original's format for single tokens, `layers` of the whole text otherwise."""
    rounded = np.round(features.vectors.numpy().astype(np.float64), 6).tolist()
    if options.pooling != "none":
        return json.dumps({"linex_index": index, "layers": _layers(options.layers, rounded)})
    words = tokens(features.ids)
    found = [
        {"token": word, "layers": _layers(options.layers, values)} for word, values in zip(words, rounded, strict=True)
    ]
    return json.dumps({"linex_index": index, "features": found})


def _layers(layers: Sequence[int], values: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    return [{"index": layer, "values": row} for layer, row in zip(layers, values, strict=True)]
