"""From a place to the names and tensors it holds: file -> state dict, without running anything the file says.

safetensors files are mapped, so that reading costs no copy: a page comes from the disk when it is first touched.
Pickled files go through torch's restricted unpickler, which builds tensors and plain containers and nothing else.
"""

import json
import logging
import pickle
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from ..hub.location import Location
from .refused import broken, refused

logger = logging.getLogger(__name__)

#: What is looked for in a place, in this order.
WEIGHT_FILES: Final = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)

_INDEX: Final = ".index.json"
_WEIGHT_SUFFIXES: Final = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".pt.tar", ".pth.tar")
_OTHER_FRAMEWORKS: Final = ("tf_model.h5", "flax_model.msgpack", "model.onnx")
# Names under which training programs put the weights beside other things.
_WRAPPERS: Final = ("state_dict", "model_state_dict", "model")
_ZIP_MAGIC: Final = b"PK"
_PICKLE_MAGIC: Final = b"\x80"  # opcode PROTO; torch.save has always written protocol 2 or later
# How torch's unpickler says that it knows what to build and will not.
_REFUSAL = re.compile(r"GLOBAL \S+|Can only (create|build)|[Tt]rying to call reduce|must be \S+ to load")


def chosen_weights(location: Location) -> Path | None:
    """The PyTorch weights of a place, or the index of their shards.

    A weights file the user chose comes first; then nothing, if what they chose is the prefix of a TensorFlow
    checkpoint; then the first of `WEIGHT_FILES` that is there.
    """
    chosen = location.chosen
    if chosen is not None and not chosen.is_file():
        return None
    if chosen is not None and chosen.name.endswith((_INDEX, *_WEIGHT_SUFFIXES)):
        return None if _is_tensorflow(chosen) else chosen
    return location.first(WEIGHT_FILES)


def _is_tensorflow(path: Path) -> bool:
    """Whether a file is a TensorFlow checkpoint of the old single-file kind; `.ckpt` is a name in both worlds."""
    if path.suffix != ".ckpt":
        return False
    from .tensorflow.find import is_v1  # protobuf: not for every import

    return is_v1(path)


def find_weights(location: Location) -> list[Path]:
    """The files that hold the PyTorch weights of a place: one file, or all shards of an index, in order of their names.

    Raises:
        OSError: There are none (the message lists what was looked for), an index is broken, or one of its shards is
            missing (the message names it).
    """
    found = chosen_weights(location)
    if found is None:
        raise OSError(_none_found(location))
    return _shards(found, location) if found.name.endswith(_INDEX) else [found]


def read_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The tensors of all files together, on the CPU.

    Args:
        paths: What `find_weights` returned.

    Raises:
        OSError: A file is truncated, corrupt, no weights file at all, would run code, or holds something that is no
            tensor; or two files hold the same name. The message names the file and what to do.
    """
    state: dict[str, Tensor] = {}
    source: dict[str, Path] = {}
    for path in paths:
        part = _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)
        if twice := sorted(state.keys() & part.keys()):
            raise OSError(f"{path} and {source[twice[0]]} both hold {_some(twice)}.")
        state.update(part)
        source.update(dict.fromkeys(part, path))
    return state


def _none_found(location: Location) -> str:
    """Why there are no weights, with a word on files of other frameworks that are there instead."""
    message = f"No weights in {location.description}: looked for {', '.join(WEIGHT_FILES)}."
    folder = location.folder
    if folder is None:  # asking a repository for other files would download them
        return message
    from .tensorflow.find import find_prefix

    if (prefix := find_prefix(location.chosen or folder)) is not None:
        return (
            f"{message} It holds a TensorFlow checkpoint, {prefix}: see `pytorch_transformers inspect` and `convert`."
        )
    if others := [name for name in _OTHER_FRAMEWORKS if (folder / name).exists()]:
        return f"{message} It holds {others[0]}, which this library does not read."
    return message


def _shards(index: Path, location: Location) -> list[Path]:
    """All files an index names."""
    try:
        names = sorted({_named(name) for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise broken(index, f"it is no index of weight files ({type(error).__name__}: {error})") from error
    found = {name: location.file(name) for name in names}
    if missing := [name for name, path in found.items() if path is None]:
        raise OSError(f"{index} lists {_some(missing)}, which {location.description} does not have.")
    return [path for path in found.values() if path is not None]


def _named(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no file name")
    return value


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, ValueError) as error:
        raise broken(path, str(error)) from error


def _read_torch(path: Path) -> dict[str, Tensor]:
    """Read what `torch.save` wrote: a zip archive, which can be mapped, or the older format, which cannot."""
    mapped = _is_zip(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except Exception as error:  # a damaged pickle can fail in any way: the unpickler trusts its input's structure
        if isinstance(error, pickle.UnpicklingError) and (reason := _REFUSAL.search(str(error))):
            raise refused(path, reason[0].removeprefix("GLOBAL ")) from error
        raise broken(path, str(error) or type(error).__name__) from error
    return _tensors(_unwrapped(content, path), path)


def _is_zip(path: Path) -> bool:
    """Whether the file is in torch's zip format, or else in its older one.

    Raises:
        OSError: It is in neither, is cut, or holds a TorchScript program, which is code.
    """
    with path.open("rb") as stream:
        head = stream.read(2)
    if head[:1] == _PICKLE_MAGIC:
        return False
    if head != _ZIP_MAGIC:
        raise broken(path, "it is no file of torch.save")
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except Exception as error:  # as many kinds as there are ways to damage the table at the end of a zip file
        raise broken(path, f"its end is missing or damaged ({error})") from error
    if any(name.endswith("/constants.pkl") for name in names):
        raise refused(path, "a TorchScript program")
    return True


def _unwrapped(content: Any, path: Path) -> Mapping[Any, Any]:
    """The state dict itself, out of the larger dict a training program saved."""
    if not isinstance(content, Mapping):
        raise OSError(f"{path} holds {type(content).__name__}, not a dict of names and tensors.")
    if any(isinstance(value, Tensor) for value in content.values()):
        return content
    for name in _WRAPPERS:
        inner = content.get(name)
        if isinstance(inner, Mapping):
            others = [str(key) for key in content if key != name]
            logger.info("%s: the weights are under %r; not read: %s.", path, name, _some(others) if others else "-")
            return _unwrapped(inner, path)
    return content


def _tensors(state: Mapping[Any, Any], path: Path) -> dict[str, Tensor]:
    """Only the tensors. Counters and flags beside them are left out and said; anything else is an error."""
    wrong = [
        str(key) for key, value in state.items() if not isinstance(value, Tensor | bool | int | float | str | None)
    ]
    wrong += [repr(key) for key in state if not isinstance(key, str)]
    if wrong:
        raise OSError(f"{path} is no dict of names and tensors: {_some(wrong)}. Save the model's state_dict() instead.")
    if scalars := [key for key, value in state.items() if not isinstance(value, Tensor)]:
        logger.info("%s: not tensors, left out: %s.", path, _some(scalars))
    return {key: value.detach() for key, value in state.items() if isinstance(value, Tensor)}


def _some(names: Sequence[str], limit: int = 5) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(map(str, names[:limit])) + more
