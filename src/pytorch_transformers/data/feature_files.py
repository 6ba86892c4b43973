"""Files of texts in, files of vectors out: reading lines with their numbers, and output that can be resumed.

Results are kept in parts beside the output, `OUT.parts/`, each written in one step; a run that was stopped goes on after
the last complete part. The output itself appears in one step when all lines are done. Needs no torch to be imported.

The JSON-lines format is that of google-research/bert, extract_features.py: an object a line with `linex_index` and
`features`, one for each token, with `token` and `layers` (`index`, `values` rounded to six places).
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from ..files import atomic_write, write_json

if TYPE_CHECKING:
    from .features import Features, Text

#: Ending of the output -> its format; any other ending is JSON lines.
BINARY_FORMATS: Final[tuple[str, ...]] = (".npz", ".npy", ".safetensors")
_PAIR: Final = re.compile(r"(.*) \|\|\| (.*)")  # as the original: the last " ||| " divides
_PART: Final = "{:08d}"

Array = npt.NDArray[Any]


class BadLineError(ValueError):
    """A line of the input that is no text; the message has its number."""


@dataclass
class LineReader:
    """The lines of a stream as texts and pairs; lines end at a line feed only.

    Attributes:
        stream: Where the bytes come from.
        name: What messages call it.
        replace: Whether bytes that are no UTF-8 are replaced, and the line number kept in `replaced`; otherwise they
            are an error.
        replaced: Numbers of such lines, from 1.
        lines: How many lines were read.
    """

    stream: BinaryIO
    name: str
    replace: bool = False
    replaced: list[int] | None = None
    lines: int = 0

    def __iter__(self) -> "Iterator[Text]":
        for raw in self.stream:
            self.lines += 1
            yield self._text(raw)

    def skip(self, count: int) -> None:
        """Pass over lines whose results there are already."""
        for _, _ in zip(range(count), self.stream, strict=False):
            self.lines += 1

    def _text(self, raw: bytes) -> "Text":
        try:
            line = raw.decode("utf-8-sig" if self.lines == 1 else "utf-8")
        except UnicodeDecodeError as error:
            if not self.replace:
                raise BadLineError(
                    f"{self.name}, line {self.lines}: not UTF-8 ({error.reason} at byte {error.start}); "
                    "convert the file, or pass --on_bad_line replace"
                ) from error
            self.replaced = [*(self.replaced or []), self.lines]
            line = raw.decode("utf-8", errors="replace")
        line = line.strip()
        pair = _PAIR.fullmatch(line)
        return (pair[1], pair[2]) if pair else line


@dataclass(frozen=True)
class OutputOptions:
    """What the output depends on; parts of a run with other options are not reused."""

    model: str
    source: str
    pooling: str
    layers: tuple[int, ...]
    normalize: bool
    special_tokens: bool
    max_length: int | None
    dtype: str
    do_lower_case: bool | None
    output_format: str

    def fingerprint(self) -> str:
        """A short name for this set of options."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class FeatureOutput:
    """An output file in the making.

    Args:
        path: The file; its ending chooses the format.
        options: What the results depend on.
        tokens: Turns ids into tokens, for the JSON lines.
        resume: Whether to go on after the parts of an earlier run with equal options.

    Raises:
        ValueError: The format can't hold such results.
    """

    def __init__(self, path: Path, options: OutputOptions, tokens: Any, *, resume: bool = True) -> None:
        if path.suffix == ".npy" and options.pooling == "none":
            raise ValueError(".npy holds one array of one shape: use .npz or .safetensors with --pooling none")
        self.path, self.options, self._tokens = path, options, tokens
        self.folder = path.with_name(f"{path.name}.parts")
        self._binary = path.suffix in BINARY_FORMATS
        self._state: dict[str, Any] = {"fingerprint": options.fingerprint(), "parts": []}
        if resume:
            self._state = self._earlier() or self._state
        if not self._parts and self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def _parts(self) -> list[int]:
        """How many lines each complete part holds."""
        parts: list[int] = self._state["parts"]
        return parts

    @property
    def done(self) -> int:
        """Lines whose results are in complete parts."""
        return sum(self._parts)

    def _earlier(self) -> dict[str, Any] | None:
        try:
            state = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):  # no earlier run, or one that was stopped before its first part
            return None
        return state if state.get("fingerprint") == self._state["fingerprint"] else None

    def add(self, results: "Sequence[Features]") -> None:
        """Write the next results as one part."""
        name = _PART.format(len(self._parts))
        if self._binary:
            with atomic_write(self.folder / f"{name}.npz") as temporary, temporary.open("wb") as stream:
                np.savez(stream, allow_pickle=False, **_arrays(results, self.options.pooling == "none"))
        else:
            with atomic_write(self.folder / f"{name}.jsonl") as temporary, temporary.open("w", encoding="utf-8") as out:
                for index, features in enumerate(results, self.done):
                    out.write(json_line(index, features, self.options, self._tokens) + "\n")
        self._state = {**self._state, "parts": [*self._parts, len(results)]}
        write_json(self.folder / "state.json", self._state)

    def finish(self) -> None:
        """Put the parts together into the output file, and remove them."""
        paths = sorted(self.folder.glob("????????.npz" if self._binary else "????????.jsonl"))
        with atomic_write(self.path) as temporary:
            if self._binary:
                self._join_arrays(paths, temporary)
            else:
                with temporary.open("wb") as out:
                    for path in paths:
                        with path.open("rb") as part:
                            shutil.copyfileobj(part, out)
        shutil.rmtree(self.folder)

    def _join_arrays(self, paths: Sequence[Path], temporary: Path) -> None:
        """Copy the parts into arrays that lie on the disk, so that no more than one part is in memory at a time."""
        if not paths:
            raise ValueError("the input has no lines: there is nothing to write")
        joined: dict[str, Array] = {}
        for name in np.load(paths[0]).files:
            shapes = [np.load(path, mmap_mode="r")[name].shape for path in paths]
            first = np.load(paths[0])[name]
            whole = np.lib.format.open_memmap(  # type: ignore[no-untyped-call]
                self.folder / f"{name}.npy",
                mode="w+",
                dtype=first.dtype,
                shape=(sum(shape[0] for shape in shapes), *first.shape[1:]),
            )
            start = 0
            for path, shape in zip(paths, shapes, strict=True):
                whole[start : start + shape[0]] = np.load(path)[name]
                start += shape[0]
            joined[name] = whole
        _save_arrays(joined, temporary, self.path.suffix)


def _save_arrays(arrays: Mapping[str, Array], path: Path, suffix: str) -> None:
    if suffix == ".safetensors":
        from safetensors.numpy import save_file

        save_file(dict(arrays), path)
        return
    with path.open("wb") as stream:
        if suffix == ".npy":
            np.save(stream, arrays["vectors"])
        else:
            np.savez(stream, allow_pickle=False, **arrays)


def _arrays(results: "Sequence[Features]", ragged: bool) -> dict[str, Array]:
    """`vectors` [texts, H]; for single tokens [tokens, H] with `lengths` [texts] and `ids` [tokens].

    With several layers there is an axis of layers before H.
    """
    vectors = [features.vectors.numpy() for features in results]
    if vectors and vectors[0].shape[-2] == 1:
        vectors = [vector.squeeze(-2) for vector in vectors]
    if not ragged:
        return {"vectors": np.stack(vectors)}
    return {
        "vectors": np.concatenate(vectors),
        "lengths": np.array([len(features.ids) for features in results], dtype=np.int64),
        "ids": np.array([token for features in results for token in features.ids], dtype=np.int64),
    }


def json_line(index: int, features: "Features", options: OutputOptions, tokens: Any) -> str:
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
