"""The files that hold a vocabulary of Transformer-XL, and what they say beside its symbols.

Ours is `vocab.txt`, one symbol a line, its id the number of the line; the options are in `tokenizer_config.json`. Read
only: the pickles of the published packages (`vocab.bin`) and of the original program (`cache.pkl`), which hold the
attributes of an object, and the original's own lists of words (`1b_word_vocab.txt`), where the first field counts.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ...tokenizers.vocab import read_tokens, save_tokens
from .text_lines import lines_of

logger = logging.getLogger(__name__)

#: Names of the files, as published.
VOCAB_FILES_NAMES: Final[Mapping[str, str]] = {"pretrained_vocab_file": "vocab.bin", "vocab_file": "vocab.txt"}
#: How the original and the published packages name what an unknown word becomes, the first found is taken.
UNKNOWN_SYMBOLS: Final = ("<UNK>", "<unk>")
#: Attributes of a pickled vocabulary that are options of ours.
_OPTIONS: Final = ("special", "min_freq", "max_size", "lower_case", "delimiter", "never_split")
_BOM: Final = "\ufeff"
#: How pickles and the files of `torch.save` begin; no text in UTF-8 does.
_PICKLE_STARTS: Final = (b"\x80", b"PK\x03\x04")
_PICKLES: Final = (".bin", ".pkl", ".pt")


class SavedVocabulary(NamedTuple):
    """What a file holds: the symbols in order of their ids, counts, ids of named symbols ("eos_idx"), options."""

    symbols: list[str]
    counter: dict[str, int]
    named: dict[str, int]
    options: dict[str, Any]


def read_vocabulary(path: str | os.PathLike[str]) -> SavedVocabulary:
    """Reads a vocabulary that was saved whole.

    Args:
        path: `vocab.txt` as we write it, or a pickle: what is named `.bin`, `.pkl` or `.pt`, or begins like one.

    Raises:
        OSError: there is no such file, or it cannot be read; a pickle asks for anything but plain data.
        ValueError: it does not hold a vocabulary.
    """
    path = Path(path)
    if not path.is_file():
        raise OSError(f"there is no vocabulary file {str(path)!r}; from_pretrained(...) takes a folder or a name")
    with path.open("rb") as stream:
        head = stream.read(4)
    if path.suffix in _PICKLES or head.startswith(_PICKLE_STARTS):
        from ...checkpoint.plain_pickle import read_plain

        return vocabulary_of(read_plain(path), path)
    tokens = read_tokens(path)
    _check_unique(tokens, path)
    return SavedVocabulary(tokens, {}, {}, {})


def vocabulary_of(content: Any, path: Path) -> SavedVocabulary:
    """Gives the vocabulary in what a pickle held.

    Args:
        content: the attributes of the original's `Vocab`, by name, or those of its `Corpus`, which has one.
        path: the file, for messages.

    Raises:
        ValueError: there is no vocabulary in it.
    """
    attributes = content.get("vocab", content) if isinstance(content, Mapping) else None
    if not isinstance(attributes, Mapping) or "idx2sym" not in attributes:
        raise ValueError(f"{path} holds no vocabulary: it should be the attributes of one, and `idx2sym` among them")
    symbols = attributes["idx2sym"]
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        raise ValueError(f"{path}: idx2sym should be a list of str, not {symbols!r:.60}")
    _check_unique(symbols, path)
    ids = attributes.get("sym2idx")
    if ids is not None and ids != {symbol: number for number, symbol in enumerate(symbols)}:
        raise ValueError(f"{path}: sym2idx and idx2sym do not say the same")
    counter = attributes.get("counter") or {}
    options = {name: attributes[name] for name in _OPTIONS if attributes.get(name) is not None}
    named = {name: attributes[name] for name in ("eos_idx", "unk_idx") if isinstance(attributes.get(name), int)}
    if wrong := [f"{name}={number}" for name, number in named.items() if not 0 <= number < len(symbols)]:
        raise ValueError(f"{path}: {', '.join(wrong)}, but there are {len(symbols)} symbols")
    mended = _mended(symbols, path)
    if mended is not symbols:
        renamed = dict(zip(symbols, mended, strict=True))
        counter = {renamed.get(symbol, symbol): count for symbol, count in counter.items()}
    return SavedVocabulary(list(mended), dict(counter), named, options)


def _mended(symbols: list[str], path: Path) -> list[str]:
    """Undoes the damage of a file whose bytes of UTF-8 were once read as Latin-1: `EnquÃªtes` is `Enquêtes`.

    The published vocabulary was made so (Hugging Face transformers, issue 271). It shows in that not one symbol has a
    character beyond Latin-1 and all those beyond ASCII are UTF-8 again; in words of a language that does not happen.
    """
    damaged = [symbol for symbol in symbols if not symbol.isascii()]
    try:
        right = {symbol: symbol.encode("latin-1").decode("utf-8") for symbol in damaged}
    except UnicodeError:
        return symbols
    mended = [right.get(symbol, symbol) for symbol in symbols]
    if not damaged or len(set(mended)) != len(symbols):
        return symbols
    logger.warning(
        "%s: %d symbols beyond ASCII were UTF-8 read as Latin-1, such as %r, which is %r; they are mended, ids stay",
        path,
        len(damaged),
        damaged[0],
        right[damaged[0]],
    )
    return mended


def _check_unique(symbols: Sequence[str], path: Path) -> None:
    if len(set(symbols)) != len(symbols):
        seen: set[str] = set()
        twice = next(symbol for symbol in symbols if symbol in seen or seen.add(symbol))  # type: ignore[func-returns-value]
        raise ValueError(f"{path} holds {twice!r} more than once; a vocabulary has one id for each symbol")


def read_word_list(path: str | os.PathLike[str]) -> list[str]:
    """Reads the original's list of words: the first field of each line, such as a word in front of its count.

    A word that comes again has its first id only, as in the original program; a line with nothing on it, which is an
    error there, is passed over.

    Args:
        path: the file, UTF-8.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not UTF-8, or has neither `<UNK>` nor `<unk>`.
    """
    words = list(dict.fromkeys(fields[0] for line in lines_of(path) if (fields := line.split())))
    if not any(symbol in words for symbol in UNKNOWN_SYMBOLS):
        raise ValueError(f"{os.fspath(path)} has neither {' nor '.join(UNKNOWN_SYMBOLS)}, which unknown words become")
    return words


def save_vocabulary(symbols: Sequence[str], path: Path) -> Path:
    """Writes `vocab.txt`.

    Args:
        symbols: the symbols in order of their ids.
        path: the file.

    Raises:
        OSError: the disk refused it.
        ValueError: there are no symbols, or one has a newline in it.
    """
    if not symbols:
        raise ValueError("the vocabulary is empty: there is nothing to save before build_vocab()")
    # Reading takes one byte-order mark from the beginning and one carriage return from each end of line.
    lines = [symbol + "\r" if symbol.endswith("\r") else symbol for symbol in symbols]
    lines[0] = _BOM + lines[0] if lines[0].startswith(_BOM) else lines[0]
    return save_tokens(lines, path)
