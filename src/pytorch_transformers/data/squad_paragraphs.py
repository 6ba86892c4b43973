"""Paragraphs as tokens that know their characters, many at once, in one process or several."""

import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from .squad_cache import Tokens, load_tokens, save_tokens, token_file

if TYPE_CHECKING:
    from ..tokenizers.base import PreTrainedTokenizer

_CHUNK: Final = 128  # paragraphs that go to the tokenizer at once: enough for its batches, few enough for progress


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph and the characters of its tokens.

    Attributes:
        text: The paragraph as it was given.
        starts: First character (code point) of each token. [tokens]
        ends: One past the last character of each token. [tokens]
    """

    text: str
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

    def tokens_of(self, start: int, end: int) -> tuple[int, int] | None:
        """Give the first and the last token that have some of the characters `start` to `end` (not included).

        Returns:
            The two tokens, or None where no token has any of them: white space and control characters are dropped.
        """
        if start >= end:
            return None
        first = int(np.searchsorted(self.ends, start, side="right"))
        last = int(np.searchsorted(self.starts, end, side="left")) - 1
        return (first, last) if first <= last else None

    def characters_of(self, first: int, last: int) -> tuple[int, int]:
        """Give the first character of token `first`, and one past the last character of token `last`.

        Marks that a tokenizer drops (accents, where it takes them off) belong to the letter before them.
        """
        start, end = int(self.starts[first]), int(self.ends[last])
        limit = int(self.starts[last + 1]) if last + 1 < len(self.starts) else len(self.text)
        while end < limit and unicodedata.category(self.text[end])[0] == "M":
            end += 1
        return start, end


def tokenize_paragraphs(
    texts: Sequence[str],
    tokenizer: "PreTrainedTokenizer",
    processes: int = 1,
    cache: str | os.PathLike[str] | None = None,
) -> Iterator[tuple[Paragraph, list[int]]]:
    """Turn paragraphs into tokens; a bar shows the progress where somebody can see it.

    Args:
        texts: The paragraphs.
        tokenizer: The tokenizer.
        processes: How many processes to use; more than one are spawned.
        cache: A folder that keeps the tokens, and has those of earlier runs; None keeps nothing.

    Yields:
        Each paragraph, with the ids of its tokens; no special tokens are put around them, and none are cut off.
    """
    file = None if cache is None else token_file(cache, texts, tokenizer)
    tokens: Iterable[Tokens] | None = None if file is None else load_tokens(file, len(texts))
    if tokens is None:
        tokens = _tokenize_all(texts, tokenizer, processes)
        if file is not None:
            tokens = list(tokens)
            save_tokens(file, tokens)
    for text, (ids, starts, ends) in zip(texts, tokens, strict=True):
        yield Paragraph(text, starts, ends), ids.tolist()


def _tokenize_all(texts: Sequence[str], tokenizer: "PreTrainedTokenizer", processes: int) -> Iterator[Tokens]:
    chunks = [texts[i : i + _CHUNK] for i in range(0, len(texts), _CHUNK)]
    tokens = _tokenize_chunks(chunks, tokenizer, min(processes, len(chunks)))
    yield from tqdm(tokens, total=len(texts), desc="Paragraphs", unit="", disable=None)


def _tokenize_chunks(chunks: list[Sequence[str]], tokenizer: "PreTrainedTokenizer", processes: int) -> Iterator[Tokens]:
    if processes <= 1:
        yield from chain.from_iterable(_tokenize(chunk, tokenizer) for chunk in chunks)
        return
    with ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=_begin_process, initargs=(tokenizer,)
    ) as pool:
        yield from chain.from_iterable(pool.map(_tokenize_in_process, chunks))


def _tokenize(texts: Sequence[str], tokenizer: "PreTrainedTokenizer") -> list[Tokens]:
    """The tokens of texts, without special ones around them and without a limit."""
    rows: Iterable[list[Any]] = tokenizer._pipeline.pieces(texts, split_special=tokenizer.split_special_tokens)
    return [
        np.array([columns[0], columns[2], columns[3]], dtype=np.int32) if columns else np.zeros((3, 0), dtype=np.int32)
        for columns in (list(zip(*row, strict=True)) for row in rows)
    ]


_tokenizers: list["PreTrainedTokenizer"] = []  # of a process that does nothing but tokenise


def _begin_process(tokenizer: "PreTrainedTokenizer") -> None:
    _tokenizers.append(tokenizer)


def _tokenize_in_process(texts: Sequence[str]) -> list[Tokens]:
    return _tokenize(texts, _tokenizers[-1])
