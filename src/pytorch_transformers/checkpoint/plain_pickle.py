"""From a pickle to plain data, through an allow-list: vocabularies and corpora of Transformer-XL.

A pickle is a program. Here every name that it asks for is looked up in a table of a few harmless ones before anything
is called, and what the table gives are stand-ins of this module, made anew for each file: containers become dicts and
sets, NumPy arrays are rebuilt from their bytes, objects of the original program become a `Record` of their attributes.
No class that a file names is ever imported.

Three forms are read: a bare pickle (`cache.pkl` of kimiyoung/transformer-xl, of Python 2 or 3), and both formats of
`torch.save`. Only files with tensors need torch, and go on to its own restricted unpickler.
"""

import io
import pickle
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import numpy as np

from .refused import broken

#: First object of what `torch.save` wrote before its zip format (torch/serialization.py, MAGIC_NUMBER).
_TORCH_MAGIC: Final = 0x1950A86A20F9469CFC6C
_ZIP_MAGIC: Final = b"PK"
#: Modules in which the original program and the published packages have the classes below.
_RECORD_MODULES: Final = frozenset(
    {
        "__main__",  # the original's data_utils.py, run as a program
        "data_utils",
        "vocabulary",
        "utils.vocabulary",
        "pytorch_pretrained_bert.tokenization_transfo_xl",
        "pytorch_transformers.tokenization_transfo_xl",
        "pytorch_transformers.models.transfo_xl.corpus",
        "pytorch_transformers.models.transfo_xl.tokenizer",
    }
)
_RECORD_CLASSES: Final = frozenset({"Corpus", "Vocab", "TransfoXLCorpus", "TransfoXLTokenizer"})
#: Numbers and truth values of fixed size, in either byte order; no objects, records or texts.
_DTYPE: Final = re.compile(r"[<>=|]?[biuf](1|2|4|8)")
_TENSOR_FUNCTIONS: Final = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_parameter")
_STORAGE: Final = re.compile(r"([A-Z][A-Za-z0-9]*)?Storage")


class Record(dict[str, Any]):
    """The attributes of an object of the original program, by name.

    Args:
        kind: Module and class that the file names, as text.
        attributes: The attributes.
    """

    def __init__(self, kind: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(attributes)
        self.kind = kind

    def __repr__(self) -> str:
        return f"Record({self.kind!r}, {super().__repr__()})"


def read_plain(path: str | Path) -> Any:
    """Reads a pickle that holds nothing but plain data.

    Args:
        path: A bare pickle, or a file of `torch.save` in either format.

    Returns:
        What it holds: None, numbers, str, lists, tuples, dicts (`OrderedDict` and `Counter` too), sets, NumPy arrays,
        `Record` for objects of the original program, tensors. Byte strings, which is what Python 2 had for text, are
        decoded as UTF-8, the keys of dicts and the names of attributes too.

    Raises:
        OSError: There is no such file; it is truncated, damaged or something else; it asks for anything that is not in
            the allow-list, which then has not been called; or a byte string is not UTF-8. The message names the file.
    """
    path = Path(path)
    with path.open("rb") as stream:
        is_zip = stream.read(2) == _ZIP_MAGIC
    unpickler = _unpickle_zip(path) if is_zip else _unpickle_file(path)
    if unpickler.has_tensors:
        return _with_torch(path, mapped=is_zip)
    return unpickler.content


class _RefusedError(Exception):
    """Something outside the allow-list was asked for."""


def _unpickle_file(path: Path) -> "_Unpickler":
    with path.open("rb") as stream:
        unpickler = _loaded(path, stream)
        if isinstance(unpickler.content, int) and unpickler.content == _TORCH_MAGIC:
            for _ in ("protocol version", "sizes of the machine's integers"):
                _loaded(path, stream)
            unpickler = _loaded(path, stream)
    return unpickler


def _unpickle_zip(path: Path) -> "_Unpickler":
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            pickles = [name for name in names if name == "data.pkl" or name.endswith("/data.pkl")]
            if any(name.endswith("/constants.pkl") for name in names):
                raise _refused(path, "a TorchScript program")
            if len(pickles) != 1:
                raise broken(path, "it is no file of torch.save: it should hold one data.pkl")
            content = archive.read(pickles[0])
    except OSError:
        raise
    except Exception as error:  # as many kinds as there are ways to damage a zip file
        raise broken(path, f"its table or data.pkl is missing or damaged ({error})") from error
    return _loaded(path, io.BytesIO(content))


def _loaded(path: Path, stream: BinaryIO) -> "_Unpickler":
    """Runs one pickle of a stream, and stops behind it."""
    unpickler = _Unpickler(stream)
    try:
        unpickler.content = _Plain().of(unpickler.load())
    except _RefusedError as error:
        raise _refused(path, str(error)) from error
    except UnicodeDecodeError as error:
        raise OSError(
            f"{path} holds text that is not UTF-8: {error.object[:60]!r} ({error}). Python 2 wrote it as bytes in "
            "another encoding; read it there, decode it, and pickle it again."
        ) from error
    except Exception as error:  # a damaged pickle can fail in any way: the unpickler trusts its input's structure
        raise broken(path, f"it is no pickle, or cut or damaged ({type(error).__name__}: {error})") from error
    return unpickler


def _with_torch(path: Path, *, mapped: bool) -> Any:
    """Reads a file that has tensors; all that it asks for has been looked at by then."""
    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as error:
        raise _refused(path, "objects of a program that hold tensors") from error
    except Exception as error:  # see above
        raise broken(path, str(error) or type(error).__name__) from error


def _refused(path: Path, asked: str) -> OSError:
    return OSError(
        f"{path} is refused: it runs code or builds objects when read ({asked}), and so could do anything; nothing of "
        "it has run. A vocabulary or corpus needs plain containers, text, numbers and arrays. If you trust where it "
        "comes from, open it with the program that wrote it and save plain data there: "
        "pickle.dump(vars(vocab), file, protocol=2)."
    )


# What stands in for the names that a pickle may ask for. A pickle can also set attributes on whatever it holds (opcode
# BUILD): what it is given must be of no use to anybody else, or refuse that.


class _Function:
    """A function that a pickle may call."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *args: Any) -> Any:
        return self._call(*args)

    def __setstate__(self, state: Any) -> NoReturn:
        raise _RefusedError("attributes set on a function")


class _Stateful:
    """An object whose state comes after it; on the class itself setting a state fails for want of an object."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Object(_Stateful):
    """An object of the original program; each file gets a subclass for each of its classes."""

    kind = ""


class _DType(_Stateful):
    """`numpy.dtype`: the code of a number; its state says the byte order."""

    def __init__(self, code: Any, *_: Any) -> None:
        self._code = code

    def value(self) -> "np.dtype[Any]":
        code = _text(self._code)
        if not isinstance(code, str) or not _DTYPE.fullmatch(code):
            raise _RefusedError(f"a NumPy array of {code!r:.60}")
        order = _text(self.state[1]) if self.state else "="
        return np.dtype(code) if code[0] in "<>=|" else np.dtype(f"{order}{code}")


class _Array(_Stateful):
    """`numpy.ndarray`: version, shape, type, column order, bytes."""

    def __init__(self, *_: Any) -> None: ...

    def value(self) -> "np.ndarray[Any, Any]":
        _, shape, dtype, by_columns, data = self.state
        return _array(data, dtype, shape, "F" if by_columns else "C")


class _Storage:
    """The numbers of a tensor, which are not read here."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> NoReturn:
        raise _RefusedError("attributes set on a tensor")


def _array(data: Any, dtype: Any, shape: Any, order: Any) -> "np.ndarray[Any, Any]":
    if not isinstance(dtype, _DType) or not isinstance(data, bytes | bytearray):
        raise _RefusedError("a NumPy array that is not plain numbers")
    flat = np.frombuffer(data, dtype.value())
    native = flat.astype(flat.dtype.newbyteorder("="), copy=False)
    return native.reshape(tuple(shape), order="F" if _text(order) == "F" else "C")


def _scalar(dtype: Any, data: Any) -> Any:
    return _array(data, dtype, (), "C").item()


def _encode(text: Any, encoding: Any) -> bytes:
    """`_codecs.encode`, by which Python 3 writes bytes in protocols that have none."""
    if not isinstance(text, str) or _text(encoding) not in ("latin1", "latin-1"):
        raise _RefusedError(f"an encoding other than latin1: {encoding!r:.60}")
    return text.encode("latin-1")


def _reconstruct_object(cls: Any, base: Any, state: Any = None) -> Any:
    """`copy_reg._reconstructor`, by which protocols 0 and 1 make an object."""
    if not (isinstance(cls, type) and issubclass(cls, _Object)) or base is not object or state is not None:
        raise _RefusedError("an object that is made of another one")
    return cls()


def _no_tensor(*_: Any) -> _Storage:
    return _Storage()


def _pairs(items: Iterable[Any] = ()) -> dict[Any, Any]:
    return dict(items)


def _of_both(old: str, new: str, name: str, value: Callable[..., Any]) -> dict[tuple[str, str], Callable[..., Any]]:
    return {(old, name): value, (new, name): value}


#: Module and name -> what a pickle gets when it calls it. The names of Python 2 and 3, of NumPy 1 and 2.
_FUNCTIONS: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("collections", "Counter"): _pairs,
    ("collections", "OrderedDict"): _pairs,
    ("_codecs", "encode"): _encode,
    **_of_both("__builtin__", "builtins", "set", set),
    **_of_both("__builtin__", "builtins", "frozenset", frozenset),
    **_of_both("copy_reg", "copyreg", "_reconstructor", _reconstruct_object),
    **_of_both("numpy.core.multiarray", "numpy._core.multiarray", "_reconstruct", _Array),
    **_of_both("numpy.core.multiarray", "numpy._core.multiarray", "scalar", _scalar),
    **_of_both("numpy.core.numeric", "numpy._core.numeric", "_frombuffer", _array),
    ("numpy", "dtype"): _DType,
    **{("torch._utils", name): _no_tensor for name in _TENSOR_FUNCTIONS},
}


class _Unpickler(pickle.Unpickler):
    """Runs a pickle with the stand-ins.

    Args:
        stream: Where the pickle begins.
    """

    def __init__(self, stream: BinaryIO) -> None:
        # Bytes are asked for, and decoded later, because arrays of Python 2 need theirs as they are.
        super().__init__(stream, encoding="bytes")
        self.has_tensors = False
        self.content: Any = None

    def find_class(self, module: str, name: str, /) -> Any:
        """Gives the stand-in of a name, or refuses it."""
        if (module, name) in _FUNCTIONS:
            return _Function(_FUNCTIONS[module, name])
        if module in _RECORD_MODULES and name in _RECORD_CLASSES:
            return type(name, (_Object,), {"kind": f"{module}.{name}"})
        if (module, name) in (("__builtin__", "object"), ("builtins", "object")):
            return object
        if (module, name) == ("numpy", "ndarray"):
            return _Storage()  # only handed on to `_reconstruct`
        if module in ("torch", "torch.storage") and _STORAGE.fullmatch(name):
            return _Storage()
        raise _RefusedError(f"{module}.{name}")

    def persistent_load(self, pid: Any, /) -> Any:
        """Notes that there are tensors: their numbers are what lies outside the pickle."""
        self.has_tensors = True
        return _Storage()


def _text(value: Any) -> Any:
    return value.decode("utf-8") if isinstance(value, bytes) else value


class _Plain:
    """Replaces the stand-ins by what they stand for, and byte strings by text."""

    def __init__(self) -> None:
        # Something that is held twice is looked at once; and a container that holds itself would have no end.
        self._done: dict[int, Any] = {}
        self._open: set[int] = set()

    def of(self, value: Any) -> Any:
        """Gives a value as plain data.

        Args:
            value: What the unpickler gave.
        """
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if isinstance(value, bytes | bytearray):
            return value.decode("utf-8")
        key = id(value)
        if key in self._open:
            raise _RefusedError("a container that holds itself")
        if key not in self._done:
            self._open.add(key)
            self._done[key] = self._convert(value)
            self._open.remove(key)
        return self._done[key]

    def _convert(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.of(key): self.of(item) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return type(value)(map(self.of, value))
        if isinstance(value, _Array):
            return value.value()
        if isinstance(value, _Object):
            return Record(value.kind, self._attributes(value.state))
        if isinstance(value, np.ndarray | _Storage):
            return value
        raise _RefusedError(f"a value of type {type(value).__name__}")

    def _attributes(self, state: Any) -> dict[str, Any]:
        if not isinstance(state, dict | None):
            raise _RefusedError(f"an object whose state is of type {type(state).__name__}")
        return {str(self.of(name)): self.of(item) for name, item in (state or {}).items()}
