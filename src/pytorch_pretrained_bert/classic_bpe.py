"""What the classic tokenizers of byte pairs, those of OpenAI GPT and GPT-2, share: two files, special tokens, ids."""

import json
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, overload

from pytorch_transformers.files import write_text
from pytorch_transformers.tokenizers.bpe import Merges, Pair
from pytorch_transformers.tokenizers.loading import read_json
from pytorch_transformers.tokenizers.memory import REMEMBERED
from pytorch_transformers.tokenizers.vocab import read_tokens, save_tokens

from .classic_cache import Folder, classic_vocabulary
from .tokenization import NO_LIMIT, shortest, token_of, warn_of_holes, warn_of_length

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)

VOCAB_NAME: Final = "vocab.json"
MERGES_NAME: Final = "merges.txt"
SPECIAL_TOKENS_NAME: Final = "special_tokens.txt"
_FILES: Final = {"vocab_file": VOCAB_NAME, "merges_file": MERGES_NAME}


def get_pairs(word: Sequence[str]) -> set[Pair]:
    """The pairs of neighbouring symbols in a word, each once.

    Args:
        word: Its symbols; at least one.
    """
    return set(pairwise(word))


def _read_merges(path: Folder) -> Merges:
    """The merges of a file; its first line is the version and is not one.

    Raises:
        OSError: It can't be read.
        ValueError: A line is no pair; the message names it.
    """
    pairs: list[Pair] = []
    for number, line in enumerate(read_tokens(Path(path))[1:], 2):
        parts = line.split()
        if len(parts) == 2:
            pairs.append((parts[0], parts[1]))
        elif parts:
            raise ValueError(f"{os.fspath(path)}, line {number}: a merge should be two symbols, not {line!r:.60}")
    return Merges(pairs)


class ClassicBPETokenizer(ABC):
    """Base of the two.

    Args:
        vocab_file: The vocabulary, a JSON file.
        merges_file: The merges, one a line.
        special_tokens: See `set_special_tokens`.
        max_len: Longest input in tokens. Longer ones are not cut: `convert_tokens_to_ids` warns.

    Attributes:
        encoder: Token -> id of the vocabulary.
        decoder: The other way round.
        bpe_ranks: Pair -> its place in the order of the merges.
        special_tokens: Token -> id of the special tokens.
        special_tokens_decoder: The other way round.
        cache: Word -> the tokens it becomes, with spaces between.

    Raises:
        OSError: A file can't be read.
        ValueError: A file does not hold what it should.
    """

    #: Argument of the constructor -> shortcut name -> address of its file.
    addresses: ClassVar[Mapping[str, Mapping[str, str]]]
    #: Shortcut name -> repository on the hub.
    repositories: ClassVar[Mapping[str, str]]
    #: Shortcut name -> longest input in tokens.
    sizes: ClassVar[Mapping[str, int]]

    def __init__(
        self,
        vocab_file: Folder,
        merges_file: Folder,
        special_tokens: Sequence[str] | None = None,
        max_len: int | None = None,
    ) -> None:
        self.max_len = NO_LIMIT if max_len is None else max_len
        self.encoder: dict[str, int] = read_json(Path(vocab_file))
        self.decoder = {number: token for token, number in self.encoder.items()}
        self._merges = _read_merges(merges_file)
        self.bpe_ranks = self._merges.ranks
        self.cache: dict[str, str] = {}
        self.special_tokens: dict[str, int] = {}
        self.special_tokens_decoder: dict[int, str] = {}
        self.set_special_tokens(special_tokens)

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: Folder, cache_dir: Folder | None = None, *inputs: Any, **kwargs: Any
    ) -> "Self":
        """Load a tokenizer, with the special tokens saved in a folder unless others are given.

        Args:
            pretrained_model_name_or_path: A shortcut name, a folder, or a repository on the hub.
            cache_dir: Folder for downloads.
            *inputs: Arguments of the constructor after the two files.
            **kwargs: The same by name.

        Raises:
            OSError: There is no such place, or a file is missing. (0.6.2 returned None.)
            TypeError: An option is unknown.
            ValueError: A file does not hold what it should.
        """
        name = os.fspath(pretrained_model_name_or_path)
        files, location = classic_vocabulary(name, cls.addresses, _FILES, cls.repositories, cache_dir)
        if name in cls.sizes:
            kwargs["max_len"] = shortest(kwargs.get("max_len"), cls.sizes[name])
        if location is not None and "special_tokens" not in kwargs and name not in cls.repositories:
            saved = location.file(SPECIAL_TOKENS_NAME)
            if saved is not None and saved.stat().st_size:
                kwargs["special_tokens"] = read_tokens(saved)
        return cls(files["vocab_file"], files["merges_file"], *inputs, **kwargs)

    def __len__(self) -> int:
        return len(self.encoder) + len(self.special_tokens)

    def set_special_tokens(self, special_tokens: Sequence[str] | None) -> None:
        """Make these the special tokens, in place of those so far; the first has the id behind the vocabulary.

        Args:
            special_tokens: The tokens in order of their ids; None for none.
        """
        self.special_tokens = {token: number for number, token in enumerate(special_tokens or (), len(self.encoder))}
        self.special_tokens_decoder = {number: token for token, number in self.special_tokens.items()}

    # Texts to ids.

    @abstractmethod
    def _symbols(self, word: str) -> Sequence[str]:
        """The tokens of a word, which `bpe` takes."""

    @abstractmethod
    def tokenize(self, text: str) -> list[str]:
        """Split a text into tokens.

        Args:
            text: Any text.
        """

    def bpe(self, token: str) -> str:
        """Join the symbols of a word, and put spaces between the tokens that they become.

        Args:
            token: The word.
        """
        found = self.cache.get(token)
        if found is None:
            found = " ".join(self._symbols(token))
            if len(self.cache) < REMEMBERED:
                self.cache[token] = found
        return found

    @overload
    def convert_tokens_to_ids(self, tokens: str) -> int: ...  # type: ignore[overload-overlap]

    @overload
    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]: ...

    def convert_tokens_to_ids(self, tokens: str | Iterable[str]) -> int | list[int]:
        """Look up ids; a token that has none gets 0. A warning says when there are more than `max_len`.

        Args:
            tokens: A token, or several.
        """
        if isinstance(tokens, str):
            return self._id_of(tokens)
        ids = [self._id_of(token) for token in tokens]
        warn_of_length(len(ids), self.max_len)
        return ids

    def _id_of(self, token: str) -> int:
        number = self.special_tokens.get(token)
        return self.encoder.get(token, 0) if number is None else number

    def encode(self, text: str) -> list[int]:
        """The ids of a text; special tokens are not looked for in it.

        Args:
            text: Any text.
        """
        return self.convert_tokens_to_ids(self.tokenize(text))

    # Ids to text.

    def convert_ids_to_tokens(self, ids: Iterable[int], skip_special_tokens: bool = False) -> list[str]:
        """Look up tokens.

        Args:
            ids: The ids.
            skip_special_tokens: Whether to leave out special tokens.

        Raises:
            KeyError: No token has one of the ids.
        """
        special = self.special_tokens_decoder
        numbers = [int(number) for number in ids]
        return [
            special[number] if number in special else token_of(self.decoder, number)
            for number in numbers
            if not (skip_special_tokens and number in special)
        ]

    # Files.

    def save_vocabulary(self, vocab_path: Folder) -> tuple[str, str, str]:
        """Write vocabulary, merges and special tokens.

        Args:
            vocab_path: An existing folder.

        Returns:
            The three files.

        Raises:
            OSError: There is no such folder, or it can't be written to. (0.6.2 returned None.)
        """
        folder = Path(vocab_path)
        if not folder.is_dir():
            raise NotADirectoryError(f"{str(folder)!r} is no folder; the vocabulary is three files and needs one")
        vocab, merges, special = (folder / name for name in (VOCAB_NAME, MERGES_NAME, SPECIAL_TOKENS_NAME))
        write_text(vocab, json.dumps(self.encoder, ensure_ascii=False))
        write_text(merges, "".join(f"{line}\n" for line in ("#version: 0.2", *map(" ".join, self._merges.pairs))))
        warn_of_holes(self.special_tokens.values(), len(self.encoder), special)
        save_tokens(self.special_tokens, special)
        return str(vocab), str(merges), str(special)
