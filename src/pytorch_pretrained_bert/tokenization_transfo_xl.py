"""The tokenizer and the corpora of Transformer-XL as 0.6.2 had them, on those of `pytorch_transformers`."""

import copy
import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch

from pytorch_transformers.files import atomic_write
from pytorch_transformers.models.transfo_xl import corpus as core_corpus
from pytorch_transformers.models.transfo_xl import tokenizer as core
from pytorch_transformers.models.transfo_xl.corpus import CORPUS_NAME
from pytorch_transformers.models.transfo_xl.iterators import (
    LMMultiFileIterator,
    LMOrderedIterator,
    LMShuffledIterator,
)

from .archives import TRANSFO_XL_CORPORA as PRETRAINED_CORPUS_ARCHIVE_MAP
from .archives import TRANSFO_XL_VOCABULARIES as PRETRAINED_VOCAB_ARCHIVE_MAP
from .classic_cache import Folder, classic_file, linked
from .file_utils import cached_path

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "CORPUS_NAME",
    "PRETRAINED_CORPUS_ARCHIVE_MAP",
    "PRETRAINED_VOCAB_ARCHIVE_MAP",
    "VOCAB_NAME",
    "Corpus",
    "LMMultiFileIterator",
    "LMOrderedIterator",
    "LMShuffledIterator",
    "TransfoXLCorpus",
    "TransfoXLTokenizer",
    "Vocab",
    "cached_path",
    "get_lm_corpus",
]

VOCAB_NAME: Final = "vocab.bin"


class TransfoXLTokenizer(core.TransfoXLTokenizer):
    """See `pytorch_transformers.TransfoXLTokenizer`; the arguments and the files are those of 0.6.2.

    Args:
        special: Symbols that `build_vocab` puts in front, whatever their counts.
        min_freq: Fewest occurrences of a word that `build_vocab` takes.
        max_size: Most words that `build_vocab` takes, `special` not counted; None for all.
        lower_case: Whether texts are put into lower case.
        delimiter: What stands between words; None for any white space, "" where each character is a word.
        vocab_file: A list of words in order of their ids that `build_vocab` takes in place of counts.
        never_split: Words that keep their case.
        **more: Further options of the tokenizer there.

    Raises:
        OSError: A file can't be read.
        TypeError: There is no option of that name, or it has a value of another type.
        ValueError: A file does not hold what it should, or an option has a value that it can't have.
    """

    def __init__(
        self,
        special: Sequence[str] = [],  # the published default; nothing changes it
        min_freq: int = 0,
        max_size: int | None = None,
        lower_case: bool = False,
        delimiter: str | None = None,
        vocab_file: Folder | None = None,
        never_split: Sequence[str] = ("<unk>", "<eos>", "<formula>"),
        **more: Any,
    ) -> None:
        super().__init__(
            special or None, min_freq, max_size, lower_case, delimiter, vocab_file, never_split=never_split, **more
        )

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls, pretrained_model_name_or_path: Folder, cache_dir: Folder | None = None, *inputs: Any, **kwargs: Any
    ) -> "Self":
        """Load a tokenizer.

        Args:
            pretrained_model_name_or_path: A shortcut name, a folder, a repository on the hub, or a vocabulary file.
            cache_dir: Folder for downloads.
            *inputs: Arguments of the constructor.
            **kwargs: The same by name.

        Raises:
            OSError: There is no such place, no vocabulary in it, or a pickle asks for anything but plain data. (0.6.2
                returned None, and ran what a pickle asked for.)
            TypeError: An option is unknown.
            ValueError: A file holds no vocabulary.
        """
        name = os.fspath(pretrained_model_name_or_path)
        address = PRETRAINED_VOCAB_ARCHIVE_MAP.get(name)
        file = classic_file(address, cache_dir) if address else Path(name)
        if file is None or not file.is_file():
            options = dict(zip(_ARGUMENTS, inputs, strict=False)) | kwargs
            return super().from_pretrained(name, cache_dir=cache_dir, **options)
        return cls(*inputs, pretrained_vocab_file=file, **kwargs)

    def save_vocabulary(self, vocab_path: Folder) -> str:  # type: ignore[override]
        """Write the vocabulary with its counts and options, as 0.6.2 reads it.

        Args:
            vocab_path: An existing folder, where the file is `vocab.bin`, or the file itself.

        Returns:
            The file.

        Raises:
            OSError: It can't be written.
        """
        path = Path(vocab_path)
        path = path / VOCAB_NAME if path.is_dir() else path
        attributes = {
            "counter": self.counter,
            "special": list(self.special),
            "min_freq": self.min_freq,
            "max_size": self.max_size,
            "lower_case": self.lower_case,
            "delimiter": self.delimiter,
            "vocab_file": None if self.vocab_file is None else os.fspath(self.vocab_file),
            "never_split": tuple(self.never_split),
            "idx2sym": list(self.idx2sym),
            "sym2idx": OrderedDict(self.sym2idx),
            **{name: number for name in ("unk_idx", "eos_idx") if (number := getattr(self, name)) is not None},
        }
        with atomic_write(path) as temporary:
            torch.save(attributes, temporary)
        return str(path)

    def save_pretrained(self, save_directory: Folder) -> tuple[str, ...]:
        """Write the files of `pytorch_transformers`, see there."""
        return of_core(self).save_pretrained(save_directory)

    def convert_ids_to_tokens(self, indices: Any, *of_core: Any, **more: Any) -> Any:  # type: ignore[override]
        """Look up symbols.

        Args:
            indices: The ids.
            *of_core: Further arguments of the method there.
            **more: The same by name.

        Raises:
            ValueError: No symbol has one of the ids.
        """
        return super().convert_ids_to_tokens(indices, *of_core, **more)

    def convert_tokens_to_ids(self, symbols: Any) -> Any:
        """Look up ids; one that is not in the vocabulary gets that of the unknown symbol.

        Args:
            symbols: The symbols.

        Raises:
            ValueError: One is unknown and nothing stands for it.
        """
        return super().convert_tokens_to_ids(symbols)

    def decode(self, indices: Any, exclude: Iterable[int] | None = None, *of_core: Any, **more: Any) -> str:  # type: ignore[override]
        """Turn ids into words with spaces between.

        Args:
            indices: The ids.
            exclude: Ids to leave out.
            *of_core: Further arguments of the method there.
            **more: The same by name.

        Raises:
            ValueError: No symbol has one of the ids.
        """
        if of_core or isinstance(exclude, bool):
            return super().decode(indices, bool(exclude), *of_core, **more)
        ids = [int(number) for number in indices]
        left_out = frozenset(exclude or ())
        return " ".join(self.get_sym(number) for number in ids if number not in left_out)

    def tokenize(self, line: str, add_eos: bool = False, add_double_eos: bool = False, **more: Any) -> list[str]:  # type: ignore[override]
        """Split a line into words, unknown ones as they are.

        Args:
            line: The line; white space at its ends is left out.
            add_eos: Whether to put `<eos>` behind it.
            add_double_eos: Whether to put `<S>` around it; then `add_eos` has no effect.
            **more: Further options of the method there.
        """
        return super().tokenize(line, add_eos, add_double_eos, **more)

    def _build_from_file(self, vocab_file: Folder) -> None:
        self._fill_from_list(vocab_file)


#: Arguments of the constructor by their places.
_ARGUMENTS: Final = ("special", "min_freq", "max_size", "lower_case", "delimiter", "vocab_file", "never_split")


def of_core(tokenizer: core.TransfoXLTokenizer) -> core.TransfoXLTokenizer:
    """The same tokenizer with the methods of `pytorch_transformers`; the one here has no state of its own."""
    found = copy.copy(tokenizer)
    found.__class__ = core.TransfoXLTokenizer
    return found


class TransfoXLCorpus(core_corpus.TransfoXLCorpus):
    """See `pytorch_transformers.TransfoXLCorpus`; its vocabulary is the tokenizer here.

    Args:
        *args: Arguments of its vocabulary.
        **kwargs: The same by name.
    """

    vocab: core.TransfoXLTokenizer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.vocab = TransfoXLTokenizer(*args, **kwargs)

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: Folder, cache_dir: Folder | None = None, *inputs: Any, **kwargs: Any
    ) -> "Self":
        """Load a corpus with its vocabulary.

        Args:
            pretrained_model_name_or_path: A shortcut name, a folder, or a repository on the hub.
            cache_dir: Folder for downloads.
            *inputs: Arguments of the vocabulary's constructor.
            **kwargs: The same by name.

        Raises:
            OSError: There is no corpus, it is damaged, or a pickle asks for anything but plain data. (0.6.2 returned
                None, and ran what a pickle asked for.)
            ValueError: Ids and vocabulary don't fit each other.
        """
        place = os.fspath(pretrained_model_name_or_path)
        names = {CORPUS_NAME: PRETRAINED_CORPUS_ARCHIVE_MAP, VOCAB_NAME: PRETRAINED_VOCAB_ARCHIVE_MAP}
        if place in PRETRAINED_CORPUS_ARCHIVE_MAP:
            found = {name: classic_file(table[place], cache_dir) for name, table in names.items()}
            files = {name: file for name, file in found.items() if file is not None}
            place = str(linked(files)) if len(files) == len(names) else place
        options = dict(zip(_ARGUMENTS, inputs, strict=False)) | kwargs
        return _with_face(super().from_pretrained(place, cache_dir, **options))


def _with_face(corpus: Any) -> Any:
    """A corpus of `pytorch_transformers` as one of here."""
    if not isinstance(corpus, TransfoXLCorpus):
        corpus.__class__ = TransfoXLCorpus
    corpus.vocab.__class__ = TransfoXLTokenizer
    return corpus


def get_lm_corpus(datadir: Folder, dataset: str) -> TransfoXLCorpus:
    """The corpus of a data set: from the cache below its folder, or built from its texts and put there.

    (In 0.6.2 it failed in any case.) See `pytorch_transformers.models.transfo_xl.corpus.get_lm_corpus`.

    Args:
        datadir: The folder of the data set.
        dataset: "ptb", "wt2", "wt103", "lm1b", "enwik8" or "text8".

    Raises:
        OSError: A file is missing or can't be read.
        ValueError: There is no such data set, or a file is not UTF-8.
    """
    found: TransfoXLCorpus = _with_face(core_corpus.get_lm_corpus(datadir, dataset))
    return found


Vocab = TransfoXLTokenizer
Corpus = TransfoXLCorpus
