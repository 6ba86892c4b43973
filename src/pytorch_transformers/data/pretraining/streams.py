"""Token streams for causal models: the documents of a corpus as ids, one after the other, in one memory-mapped array.

A folder holds `ids.npy` [tokens], `documents.npy` [documents + 1], where each document begins in it, and `index.json`.
Each document ends with the end token. What a model is given are blocks of one length (`StreamBlocks`), which go on
across documents, or documents as rows of their own (`training/documents.py`).
"""

import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ...files import atomic_write, write_json
from ...tokenizers.text_files import LONGEST_LINE, Files, find_text_files, read_lines
from .arrays import sha256_of
from .processes import workers
from .rows import Row

if TYPE_CHECKING:
    from ...tokenizers.base import PreTrainedTokenizer

logger = logging.getLogger(__name__)

#: What a document is: a file, what stands between blank lines, or a line. Of `lines` blank ones are left out.
StreamLayout: TypeAlias = Literal["files", "blank_line", "lines"]
STREAM_LAYOUTS: Final[tuple[str, ...]] = get_args(StreamLayout)
INDEX: Final = "index.json"
_FORMAT: Final = "pytorch_transformers token stream"
_VERSION: Final = 1
#: Characters that are encoded together.
_BLOCK: Final = 1 << 20
_IDS: Final = "ids.npy"
_DOCUMENTS: Final = "documents.npy"


@dataclass(frozen=True)
class StreamIndex:
    """What a folder of a token stream holds.

    Attributes:
        tokens: How many, end tokens included.
        documents: How many.
        vocab_size: Of the tokenizer.
        end_id: The end token's id; None where documents do not end with one.
        layout: What a document is.
        source: Name, size in bytes and SHA-256 of each text file.
        sha256: Of each array.
    """

    tokens: int
    documents: int
    vocab_size: int
    end_id: int | None
    layout: str
    source: Sequence[dict[str, Any]]
    sha256: dict[str, str]


class _Piece(NamedTuple):
    """A part of a document; `ends` says that it is the last one."""

    text: str
    ends: bool


def write_stream(
    files: Files,
    tokenizer: "PreTrainedTokenizer",
    output: str | os.PathLike[str],
    *,
    layout: StreamLayout = "files",
    end_token: str | None = "default",
    processes: int = 1,
) -> StreamIndex:
    """Encodes text files to a token stream. Memory is bounded; any number of processes gives the same files.

    Long documents are encoded in parts that are cut before white space, where tokens end anyway, so that the ids are
    those of the whole. (Only spaCy, which OpenAI GPT may use, looks further; and 256 KiB without white space are cut
    between characters.)

    Args:
        files: See `find_text_files`; they count in this order.
        tokenizer: Of any family.
        output: The folder.
        layout: What a document is. Lines keep their ends, and space at the ends of a document is dropped.
        end_token: Put behind each document; "default" for the tokenizer's own end, None for no token.
        processes: How many work at a time, see `create_pretraining_data`.

    Returns:
        What the folder holds.

    Raises:
        OSError: A file cannot be read or written.
        ValueError: There is no text, a file is no text, or the tokenizer has no such token.
    """
    if layout not in STREAM_LAYOUTS:
        raise ValueError(f"layout is {layout!r}; it should be one of {', '.join(STREAM_LAYOUTS)}")
    paths, folder = find_text_files(files), Path(output)
    end_id = _end_id(tokenizer, end_token)
    kind = np.dtype(np.uint16 if len(tokenizer) <= 1 << 16 else np.int32)
    starts, tokens = [0], 0
    folder.mkdir(parents=True, exist_ok=True)
    (folder / INDEX).unlink(missing_ok=True)  # not complete until it is there again
    with (
        workers((tokenizer, end_id, kind), processes) as pool,
        atomic_write(folder / _IDS) as temporary,
        temporary.open("wb") as stream,
    ):
        _write_header(stream, kind, 0)
        for ids, ends in pool.map(_encode, _blocks(paths, layout)):
            stream.write(ids.tobytes())
            starts += [tokens + end for end in ends]
            tokens += len(ids)
        if not tokens:
            raise ValueError(f"there is no text in {', '.join(map(str, paths[:5]))}")
        stream.seek(0)
        _write_header(stream, kind, tokens)
    with atomic_write(folder / _DOCUMENTS) as temporary, temporary.open("wb") as stream:
        np.save(stream, np.array(starts, np.int64))
    index = StreamIndex(
        tokens,
        len(starts) - 1,
        len(tokenizer),
        end_id,
        layout,
        [{"name": path.name, "size": path.stat().st_size, "sha256": sha256_of(path)} for path in paths],
        {name: sha256_of(folder / name) for name in (_IDS, _DOCUMENTS)},
    )
    write_json(folder / INDEX, {"format": _FORMAT, "version": _VERSION, **asdict(index)})
    return index


def _write_header(stream: Any, kind: "np.dtype[Any]", count: int) -> None:
    # The header of numpy leaves room for a count that grows.
    np.lib.format.write_array_header_1_0(
        stream, {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (count,)}
    )


def _end_id(tokenizer: "PreTrainedTokenizer", end_token: str | None) -> int | None:
    if end_token is None:
        return None
    token = end_token
    if end_token == "default":
        token = tokenizer.eos_token or tokenizer.sep_token or ""
        if not token:
            raise ValueError(
                "the tokenizer has no end token to divide documents with; name one as end_token, or None for none"
            )
    if token not in tokenizer.get_vocab():
        raise ValueError(f"end_token: {token!r} is not in the tokenizer's vocabulary; add it or name another")
    return int(tokenizer.convert_tokens_to_ids(token))


def _blocks(paths: Sequence[Path], layout: StreamLayout) -> Iterator[list[_Piece]]:
    held: list[_Piece] = []
    characters = 0
    for path in paths:
        for piece in _pieces(read_lines(path, LONGEST_LINE, keep_ends=True), layout):
            held.append(piece)
            characters += len(piece.text)
            if characters >= _BLOCK:
                yield held
                held, characters = [], 0
    if held:
        yield held


def _pieces(lines: Iterable[str], layout: StreamLayout) -> Iterator[_Piece]:
    """The documents of a file in parts of bounded size."""
    if layout == "lines":
        yield from (_Piece(line.strip(), True) for line in lines if line.strip())
        return
    text, begun = "", False  # `begun`: a part of the document was given already
    collected: list[str] = []
    size = 0
    for line in lines:
        if layout == "blank_line" and not line.strip():
            text = "".join((text, *collected)).strip() if not begun else "".join((text, *collected)).rstrip()
            if text or begun:
                yield _Piece(text, True)
            text, begun, collected, size = "", False, [], 0
            continue
        collected.append(line)
        size += len(line)
        if size >= LONGEST_LINE:
            text = "".join((text, *collected))
            text = text if begun else text.lstrip()
            # White space at the end may go on in the next line, and tokens of white space with it.
            done = text.rstrip()
            if done:
                yield _Piece(done, False)
                text, begun = text[len(done) :], True
            collected, size = [], 0
    text = "".join((text, *collected))
    text = text.rstrip() if begun else text.strip()
    if text or begun:
        yield _Piece(text, True)


def _encode(
    shared: "tuple[PreTrainedTokenizer, int | None, np.dtype[Any]]", pieces: list[_Piece]
) -> tuple[npt.NDArray[Any], list[int]]:
    """The ids of a block, and where documents end in them."""
    tokenizer, end_id, kind = shared
    ids: list[int] = []
    ends: list[int] = []
    for piece, row in zip(pieces, tokenizer._encode_ids([piece.text for piece in pieces]), strict=True):
        ids += row
        if piece.ends:
            ids += [] if end_id is None else [end_id]
            ends.append(len(ids))
    return np.array(ids, kind), ends


class TokenStream:
    """A token stream, memory-mapped.

    Args:
        folder: What `write_stream` made.
        verify: Whether to compare the arrays with their checksums now.

    Attributes:
        index: What the folder holds.
        ids: [tokens] uint16 or int32.
        documents: [documents + 1] where each document begins, and the number of all tokens.

    Raises:
        OSError: There is no complete stream, or it is damaged.
    """

    def __init__(self, folder: str | os.PathLike[str], *, verify: bool = False) -> None:
        self.folder = Path(folder)
        path = self.folder / INDEX
        if not path.is_file():
            raise OSError(f"{path} is missing: the folder holds no complete token stream; make it with write_stream")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if (content.pop("format"), content.pop("version")) != (_FORMAT, _VERSION):
                raise ValueError("it is of another format")
            self.index = StreamIndex(**content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise OSError(f"{path} is damaged or from another program: {error}") from error
        self.ids: npt.NDArray[Any] = self._mapped(_IDS, self.index.tokens)
        self.documents: npt.NDArray[np.int64] = self._mapped(_DOCUMENTS, self.index.documents + 1)
        if verify:
            for name, sha256 in self.index.sha256.items():
                if sha256_of(self.folder / name) != sha256:
                    raise OSError(f"{self.folder / name} does not match its checksum; make the stream again")

    def _mapped(self, name: str, size: int) -> npt.NDArray[Any]:
        path = self.folder / name
        try:
            values: npt.NDArray[Any] = np.load(path, mmap_mode="r")
        except FileNotFoundError:
            raise
        except (OSError, ValueError, EOFError) as error:
            raise OSError(f"{path} is damaged ({error}); make the stream again") from error
        if values.shape != (size,):
            raise OSError(f"{path} holds {values.shape} values and {INDEX} says {size}; make the stream again")
        return values

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["folder"])  # type: ignore[misc]  # maps the files anew

    def __len__(self) -> int:
        """How many tokens there are."""
        return len(self.ids)

    def document(self, number: int) -> npt.NDArray[Any]:
        """Gives the ids of a document with its end token.

        Args:
            number: From 0.

        Raises:
            IndexError: There is no such document.
        """
        if not 0 <= number < self.index.documents:
            raise IndexError(f"there is no document {number}; there are {self.index.documents}")
        return self.ids[self.documents[number] : self.documents[number + 1]]


class StreamBlocks:
    """Blocks of a stream, all of one length but the last, which go on across documents; a map-style dataset of torch.

    A row holds `input_ids` and equal `labels`: the models move them by one themselves.

    Args:
        stream: The ids.
        length: Tokens of a block.
        stride: Tokens from the start of one block to that of the next; None for `length`. With `length - 1` each token
            but the first is predicted once, also the first of a block.
        drop_last: Whether to leave out a last block that is shorter.

    Raises:
        ValueError: A length is out of range, or the stream has no block.
    """

    def __init__(self, stream: TokenStream, length: int, *, stride: int | None = None, drop_last: bool = False) -> None:
        self.stream, self.length, self.stride = stream, length, length if stride is None else stride
        if length < 2:
            raise ValueError(f"length is {length}; a block needs 2 tokens, one to predict and one to predict it from")
        if not 1 <= self.stride <= length:
            raise ValueError(f"stride is {stride}; it should be from 1 to the length of a block, {length}")
        tokens = len(stream)
        whole = max(0, (tokens - length) // self.stride + 1)
        covered = (whole - 1) * self.stride + length if whole else 0
        # A single token more predicts nothing by itself.
        rest = covered < tokens and tokens - whole * self.stride >= 2
        self._count = whole + (rest and not drop_last)
        if not self._count:
            raise ValueError(f"the stream has {tokens} tokens, fewer than one block of {length}; give a smaller length")

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> Row:
        """One block."""
        if not 0 <= number < len(self):
            raise IndexError(f"there is no block {number}; there are {len(self)}")
        start = number * self.stride
        ids = self.stream.ids[start : start + self.length].tolist()
        return {"input_ids": ids, "labels": list(ids)}
