"""`TransfoXLCorpus`: the texts of a data set as ids, with the vocabulary that was counted from them.

Source: kimiyoung/transformer-xl, data_utils.py. A split is one text in order (int64, [N]), or a list of sentences that
have no order, or the paths of files of sentences.

A corpus is saved in plain files: those of the tokenizer, `corpus.safetensors` (int32 ids; for sentences their lengths
beside) and `corpus.json`. What others saved is read too, through an allow-list: `corpus.bin` of the published packages
and `cache.pkl` of the original program.
"""

import json
import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor

from ...checkpoint.plain_pickle import Record, read_plain
from ...checkpoint.refused import broken
from ...files import atomic_write, write_json
from ...hub import locate
from .iterators import LMMultiFileIterator, LMOrderedIterator, LMShuffledIterator
from .pretrained import REPOSITORIES
from .tokenizer import TransfoXLTokenizer

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)

#: The corpus in the published packages.
CORPUS_NAME: Final = "corpus.bin"
#: The corpus, vocabulary included, in the original program.
ORIGINAL_CACHE_NAME: Final = "cache.pkl"
IDS_NAME: Final = "corpus.safetensors"
DESCRIPTION_NAME: Final = "corpus.json"
#: Where `get_lm_corpus` keeps what it made, below the folder of the data set.
CACHE_FOLDER: Final = "transfo_xl_cache"
SPLITS: Final = ("train", "valid", "test")
_LENGTHS: Final = ".lengths"
_FORMAT: Final = 1
#: Files of sentences of the One Billion Word corpus, below its folder (original data_utils.py).
_LM1B_TRAIN: Final = (
    "1-billion-word-language-modeling-benchmark-r13output/training-monolingual.tokenized.shuffled/news.en-*"
)
LM1B_WORDS: Final = "1b_word_vocab.txt"

#: Data set -> options of its vocabulary (original data_utils.py, `get_lm_corpus`).
DATASETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "ptb": {"special": ["<eos>"], "lower_case": True},
    "wt2": {"special": ["<eos>"], "lower_case": False},
    "wt103": {"special": ["<eos>"], "lower_case": False},
    "lm1b": {"special": [], "lower_case": False},
    "enwik8": {},
    "text8": {},
}
#: Those whose lines do not end with a token: their words are characters or bytes, the end of a line among them.
_WITHOUT_LINE_ENDS: Final = frozenset({"enwik8", "text8"})

Split = Tensor | list[Tensor] | list[str] | None


class TransfoXLCorpus:
    """A data set as ids.

    Args:
        *inputs: Arguments of its vocabulary, see `TransfoXLTokenizer`.
        **options: The same.

    Attributes:
        vocab: The vocabulary.
        dataset: Name of the data set, None if it has none.
        train: The split to learn from, see the module.
        valid: The split to choose by.
        test: The split to report.
    """

    def __init__(self, *inputs: Any, **options: Any) -> None:
        self.vocab = TransfoXLTokenizer(*inputs, **options)
        self.dataset: str | None = None
        self.train: Split = None
        self.valid: Split = None
        self.test: Split = None

    # Building.

    def build_corpus(self, path: str | os.PathLike[str], dataset: str) -> None:
        """Counts the words of a data set, builds the vocabulary and encodes the splits.

        Args:
            path: Folder with `train.txt`, `valid.txt`, `test.txt`; for lm1b the folder of the benchmark instead of the
                first.
            dataset: "ptb", "wt2", "wt103", "lm1b", "enwik8" or "text8".

        Raises:
            OSError: A file is missing or cannot be read.
            ValueError: There is no such data set; a file is not UTF-8; or a word is unknown and nothing stands for it.
        """
        _check_dataset(dataset)
        folder = Path(path)
        files = source_files(folder, dataset)
        self.dataset = dataset
        # lm1b has a list of words; WikiText-103 is counted in its first split alone, which has all words.
        for split in () if dataset == "lm1b" else SPLITS[:1] if dataset == "wt103" else SPLITS:
            self.vocab.count_words(folder / f"{split}.txt")
        self.vocab.build_vocab()
        if dataset == "lm1b":
            self.train = [str(file) for file in files if file.suffix != ".txt"]
            self.valid, self.test = (self._encode(folder, split, add_double_eos=True) for split in SPLITS[1:])
        else:
            add_eos = dataset not in _WITHOUT_LINE_ENDS
            self.train, self.valid, self.test = (
                self._encode(folder, split, ordered=True, add_eos=add_eos) for split in SPLITS
            )

    def _encode(self, folder: Path, split: str, **options: bool) -> Tensor | list[Tensor]:
        return self.vocab.encode_file(folder / f"{split}.txt", **options)

    def get_iterator(
        self, split: str, *inputs: Any, **options: Any
    ) -> LMOrderedIterator | LMShuffledIterator | LMMultiFileIterator:
        """Gives the batches of a split.

        Args:
            split: "train", "valid" or "test".
            *inputs: Arguments of the iterator: `bsz`, `bptt`, `device`, `ext_len`.
            **options: The same.

        Returns:
            An iterator over a text in order, over sentences, or over files of sentences, which are shuffled.

        Raises:
            ValueError: There is no such split, or nothing in it; or what the iterator says.
        """
        data = self._split(split)
        if isinstance(data, Tensor):
            return LMOrderedIterator(data, *inputs, **options)
        if all(isinstance(each, Tensor) for each in data):
            return LMShuffledIterator(data, *inputs, **options)
        return LMMultiFileIterator(data, self.vocab, *inputs, **{**options, "shuffle": True})

    def _split(self, split: str) -> Any:
        if split not in SPLITS:
            raise ValueError(f"split: {split!r} is none of {', '.join(map(repr, SPLITS))}")
        data: Split = getattr(self, split)
        if data is None or len(data) == 0:
            there = [name for name in SPLITS if getattr(self, name) is not None]
            raise ValueError(
                f"split: the corpus has nothing in {split!r}; it has {', '.join(there) or 'no splits yet'}"
            )
        return data

    # Loading and saving.

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | os.PathLike[str],
        cache_dir: str | os.PathLike[str] | None = None,
        *inputs: Any,
        revision: str | None = None,
        local_files_only: bool = False,
        **options: Any,
    ) -> "Self":
        """Loads a corpus with its vocabulary.

        Args:
            pretrained_model_name_or_path: A shortcut name, a repository on the hub, or a folder: with what
                `save_pretrained` wrote, with `corpus.bin` and a vocabulary, or with the original's `cache.pkl`. Or a
                file of either kind, under any name.
            cache_dir: Where downloads are kept.
            *inputs: There are none; the published package has them.
            revision: Branch, tag or commit of the repository.
            local_files_only: Whether to use nothing but the disk.
            **options: Options of the vocabulary, instead of what was saved.

        Raises:
            OSError: There is no corpus, it is damaged, or a pickle asks for anything but plain data.
            TypeError: There are further positional arguments.
            ValueError: Ids and vocabulary do not fit each other.
        """
        if inputs:
            raise TypeError(f"from_pretrained takes the options of the vocabulary by name, not {inputs!r:.60}")
        place: dict[str, Any] = {"cache_dir": cache_dir, "revision": revision, "local_files_only": local_files_only}
        location = locate(pretrained_model_name_or_path, shortcuts=REPOSITORIES, **place)
        corpus = cls.__new__(cls)
        chosen = location.chosen
        named = chosen if chosen is not None and chosen.is_file() and chosen.name != DESCRIPTION_NAME else None
        description = location.file(DESCRIPTION_NAME) if named is None else None
        pickled = named or (None if description else location.first((CORPUS_NAME, ORIGINAL_CACHE_NAME)))
        if pickled is not None:
            content = read_plain(pickled)
            if isinstance(content, Mapping) and "vocab" in content:  # the original's, with its vocabulary inside
                vocab = TransfoXLTokenizer(pretrained_vocab_file=content, **options)
            else:
                beside = pickled.parent if named is not None else pretrained_model_name_or_path
                vocab = TransfoXLTokenizer.from_pretrained(beside, **place, **options)
            corpus._take(content, pickled, vocab)
        elif description is not None:
            corpus.vocab = TransfoXLTokenizer.from_pretrained(pretrained_model_name_or_path, **place, **options)
            ids = location.file(IDS_NAME)
            if ids is None:
                raise OSError(f"{description} has no {IDS_NAME} beside it")
            corpus._read(description, ids)
        else:
            raise OSError(
                f"no corpus in {location.description}: looked for {DESCRIPTION_NAME}, {CORPUS_NAME} and "
                f"{ORIGINAL_CACHE_NAME}"
            )
        return corpus

    def _take(self, content: Any, path: Path, vocab: TransfoXLTokenizer) -> None:
        """Takes the splits out of what a pickle held, the attributes of a corpus, and a vocabulary."""
        self.vocab = vocab
        if not isinstance(content, Mapping) or not set(SPLITS) & set(content):
            raise OSError(f"{path} holds no corpus: it should have {', '.join(SPLITS)}")
        dataset = content.get("dataset")
        self.dataset = dataset if isinstance(dataset, str) else None
        for split in SPLITS:
            setattr(self, split, _split_of(content.get(split), split, path))
        self._check(path)

    def _check(self, path: Path) -> None:
        """Raises where an id is not in the vocabulary."""
        size = len(self.vocab)
        for split in SPLITS:
            data = getattr(self, split)
            rows = [data] if isinstance(data, Tensor) else [each for each in data or () if isinstance(each, Tensor)]
            for row in rows:
                if row.numel() and not 0 <= int(row.min()) <= int(row.max()) < size:
                    raise ValueError(
                        f"{path}: {split} has ids from {int(row.min())} to {int(row.max())}, but the vocabulary has "
                        f"{size} symbols; the two are not of one corpus"
                    )

    def save_pretrained(self, save_directory: str | os.PathLike[str]) -> tuple[str, ...]:
        """Saves the corpus and its vocabulary in plain files.

        Args:
            save_directory: A folder; it is made if it is not there.

        Returns:
            The paths written.

        Raises:
            OSError: The folder cannot be made or written to.
            ValueError: There is no vocabulary yet.
        """
        return self._save(Path(save_directory), {})

    def _save(self, folder: Path, sources: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
        from safetensors.torch import save_file

        kinds: dict[str, Any] = {}
        tensors: dict[str, Tensor] = {}
        for split in SPLITS:
            data: Split = getattr(self, split)
            if isinstance(data, Tensor):
                kinds[split] = "text"
                tensors[split] = data.to(torch.int32)
            elif data is not None and all(isinstance(each, Tensor) for each in data):
                kinds[split] = "sentences"
                rows = [each for each in data if isinstance(each, Tensor)]
                tensors[split] = torch.cat([torch.empty(0, dtype=torch.int32), *rows]).to(torch.int32)
                tensors[split + _LENGTHS] = torch.tensor([len(row) for row in rows], dtype=torch.int32)
            elif data is not None:
                kinds[split] = [str(each) for each in data]
        written = self.vocab.save_pretrained(folder)
        with atomic_write(folder / IDS_NAME) as temporary:
            save_file(tensors, temporary)
        # Last: whoever finds it finds the others.
        write_json(
            folder / DESCRIPTION_NAME,
            {
                "format": _FORMAT,
                "dataset": self.dataset,
                "vocab_size": self.vocab.vocab_size,
                "splits": kinds,
                "sources": {name: list(state) for name, state in sources.items()},
            },
        )
        return (*written, str(folder / IDS_NAME), str(folder / DESCRIPTION_NAME))

    def _read(self, description: Path, ids: Path) -> None:
        """Reads what `_save` wrote."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        said = _read_description(description)
        if said["vocab_size"] != self.vocab.vocab_size:
            raise ValueError(
                f"{description} is of a vocabulary of {said['vocab_size']} symbols, but the one beside it has "
                f"{self.vocab.vocab_size}"
            )
        try:
            tensors = load_file(ids)
        except (SafetensorError, ValueError) as error:
            raise broken(ids, str(error)) from error
        self.dataset = said["dataset"]
        for split in SPLITS:
            setattr(self, split, _saved_split(said["splits"].get(split), split, tensors, ids))
        self._check(ids)


#: The original's name.
Corpus = TransfoXLCorpus


def source_files(folder: Path, dataset: str) -> list[Path]:
    """Gives the text files that a data set is made of.

    Args:
        folder: The folder of the data set.
        dataset: Its name.

    Raises:
        OSError: One is missing; the message names it.
    """
    names = [f"{split}.txt" for split in (SPLITS[1:] if dataset == "lm1b" else SPLITS)]
    parts = sorted(folder.glob(_LM1B_TRAIN)) if dataset == "lm1b" else []
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise FileNotFoundError(f"{folder} has no {', '.join(missing)}, of which the corpus {dataset!r} is made")
    if dataset == "lm1b" and not parts:
        raise FileNotFoundError(f"{folder} has no {_LM1B_TRAIN}, of which the corpus 'lm1b' is made")
    return [*(folder / name for name in names), *parts]


def get_lm_corpus(datadir: str | os.PathLike[str], dataset: str) -> TransfoXLCorpus:
    """Gives the corpus of a data set: from the cache below its folder, or built from its texts and put there.

    The cache is the folder `transfo_xl_cache`. It is made anew, and a warning says why, when the texts have been
    changed since or when it is damaged. Where there is none, `cache.pkl` of the original program is read instead of
    the texts.

    Args:
        datadir: The folder of the data set.
        dataset: "ptb", "wt2", "wt103", "lm1b", "enwik8" or "text8".

    Raises:
        OSError: A file is missing or cannot be read; or `cache.pkl` is damaged or no plain data.
        ValueError: There is no such data set; `cache.pkl` is of another one; a file is not UTF-8.
    """
    _check_dataset(dataset)
    folder = Path(datadir)
    cache = folder / CACHE_FOLDER
    original = folder / ORIGINAL_CACHE_NAME
    if not (cache / DESCRIPTION_NAME).is_file() and original.is_file():
        logger.info("%s is read instead of the texts; remove it to build the corpus anew", original)
        corpus = TransfoXLCorpus.from_pretrained(original)
        if corpus.dataset not in (None, dataset):
            raise ValueError(f"dataset: {dataset!r}, but {original} is of {corpus.dataset!r}; remove one of the two")
        return corpus
    files = source_files(folder, dataset)
    words = folder / LM1B_WORDS
    sources = {str(file.relative_to(folder)): _state(file) for file in [*files, *([words] * (dataset == "lm1b"))]}
    cached = _cached(cache, dataset, sources)
    if cached is not None:
        return cached
    options = dict(DATASETS[dataset])
    corpus = TransfoXLCorpus(**options, **({"vocab_file": words} if dataset == "lm1b" else {}))
    corpus.build_corpus(folder, dataset)
    _replace(cache, corpus, sources)
    return corpus


def _cached(cache: Path, dataset: str, sources: Mapping[str, list[int]]) -> TransfoXLCorpus | None:
    """Gives what the cache holds; None where there is none, or it is out of date or damaged, which is said."""
    description = cache / DESCRIPTION_NAME
    if not description.is_file():
        return None
    try:
        said = _read_description(description)
        if said["dataset"] == dataset and said["sources"] == sources:
            return TransfoXLCorpus.from_pretrained(cache)
        known = said["sources"]
        changed = [name for name in {**known, **sources} if known.get(name) != sources.get(name)]
        reason = f"{', '.join(changed[:3])} changed" if changed else f"it is of {said['dataset']!r}"
    except (OSError, ValueError) as error:
        reason = str(error)
    logger.warning("the cache %s is out of date or damaged and is made anew: %s", cache, reason)
    return None


def _replace(cache: Path, corpus: TransfoXLCorpus, sources: Mapping[str, list[int]]) -> None:
    """Puts a new cache in place of the old one; files of the two are never mixed."""
    temporary = cache.with_name(f".{cache.name}.{os.urandom(6).hex()}.tmp")
    old = temporary.with_suffix(".old")
    try:
        corpus._save(temporary, sources)
        if cache.exists():
            cache.rename(old)
        temporary.rename(cache)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def read_corpus(path: str | os.PathLike[str], tokenizer: TransfoXLTokenizer | None = None) -> TransfoXLCorpus:
    """Reads a corpus in whatever form it has.

    Args:
        path: A folder that `TransfoXLCorpus.from_pretrained` takes; a text file, `.txt`, of which each line ends with
            `<eos>`; or another file, which is a pickle: the original's `cache.pkl`, or the published `corpus.bin` with
            a vocabulary beside it or with `tokenizer`.
        tokenizer: The vocabulary, which a text needs, and which takes the place of that beside `corpus.bin`.

    Returns:
        The corpus; a text is its split `test`, and the others are None.

    Raises:
        OSError: It cannot be read, or a pickle asks for anything but plain data.
        ValueError: A text has no `tokenizer` or is not UTF-8; ids and vocabulary do not fit each other.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no corpus {str(path)!r}")
    if path.is_dir():
        return TransfoXLCorpus.from_pretrained(path)
    corpus = TransfoXLCorpus.__new__(TransfoXLCorpus)
    corpus.dataset, corpus.train, corpus.valid, corpus.test = None, None, None, None
    if path.suffix == ".txt":
        if tokenizer is None:
            raise ValueError(f"the text {str(path)!r} needs a tokenizer")
        corpus.vocab = tokenizer
        corpus.test = tokenizer.encode_file(path, ordered=True)
        return corpus
    content = read_plain(path)
    if tokenizer is None and isinstance(content, Mapping) and isinstance(content.get("vocab"), Record):
        tokenizer = TransfoXLTokenizer(pretrained_vocab_file=content)
    if tokenizer is None:
        tokenizer = TransfoXLTokenizer.from_pretrained(path.parent)
    corpus._take(content, path, tokenizer)
    return corpus


def _check_dataset(dataset: str) -> None:
    if dataset not in DATASETS:
        raise ValueError(f"dataset: {dataset!r} is none of {', '.join(DATASETS)}")


def _state(file: Path) -> list[int]:
    """Size in bytes and time of the last change in nanoseconds."""
    status = file.stat()
    return [status.st_size, status.st_mtime_ns]


def _split_of(value: Any, split: str, path: Path) -> Split:
    """Gives a split of a pickled corpus: arrays and tensors become int64 tensors, paths stay."""
    if value is None:
        return None
    if isinstance(value, np.ndarray | Tensor):
        return _ids(value, split, path)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    if isinstance(value, list) and all(isinstance(each, np.ndarray | Tensor) for each in value):
        return [_ids(each, split, path) for each in value]
    raise OSError(f"{path}: {split} is {type(value).__name__}, no array of ids, list of arrays or list of paths")


def _ids(value: Any, split: str, path: Path) -> Tensor:
    # NumPy's arrays lie in the bytes of the pickle, which must not be written to.
    tensor = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
    if tensor.dim() != 1 or tensor.is_floating_point() or tensor.dtype == torch.bool:
        raise OSError(f"{path}: {split} has {list(tensor.shape)} values of {tensor.dtype}, not one row of ids")
    return tensor.long()


def _read_description(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["format"] != _FORMAT:
            raise ValueError(f"format {said['format']!r}, {_FORMAT} is known")
        if not isinstance(said["splits"], dict) or not isinstance(said["sources"], dict):
            raise TypeError("splits and sources should be objects")
        return {name: said[name] for name in ("dataset", "vocab_size", "splits", "sources")}
    except (ValueError, KeyError, TypeError) as error:
        raise broken(path, f"it describes no corpus ({type(error).__name__}: {error})") from error


def _saved_split(kind: Any, split: str, tensors: Mapping[str, Tensor], path: Path) -> Split:
    if kind is None or isinstance(kind, list):
        return kind
    needed = [split, *([split + _LENGTHS] if kind == "sentences" else [])]
    if kind not in ("text", "sentences") or (missing := [name for name in needed if name not in tensors]):
        raise broken(
            path, f"it has no {', '.join(missing) if kind in ('text', 'sentences') else split} of kind {kind!r}"
        )
    ids = tensors[split].long()
    if kind == "text":
        return ids
    lengths = tensors[split + _LENGTHS].tolist()
    if sum(lengths) != len(ids):
        raise broken(path, f"{split} has {len(ids)} ids, but sentences of {sum(lengths)}")
    ends = list(accumulate(lengths))
    return [ids[end - length : end] for length, end in zip(lengths, ends, strict=True)]
