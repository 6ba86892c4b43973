"""`BPETokenizer`: what GPT-2 and OpenAI GPT have in common, their two files and the classic special tokens."""

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .base import PreTrainedTokenizer
from .bpe_files import MergesSource, VocabSource, read_merges, read_vocabulary, save_bpe
from .joiner import Joiner
from .loading import ADDED_TOKENS_FILE
from .table import TokenTable
from .vocab import TokensById, read_tokens, save_tokens

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..hub import Location
    from .options import BaseOptions

#: Argument of the constructor -> name of its file in a folder.
VOCAB_FILES_NAMES: Final[Mapping[str, str]] = {"vocab_file": "vocab.json", "merges_file": "merges.txt"}
#: Where the 0.6.2 package keeps special tokens, one a line, in order of their ids.
SPECIAL_TOKENS_FILE: Final = "special_tokens.txt"


class BPETokenizer(PreTrainedTokenizer):
    """Base of the tokenizers of byte pairs.

    Args:
        vocab_file: the vocabulary, a JSON file, or token -> id itself.
        merges_file: the merges, one a line, or a list of them.
        options: the options of the family, to be saved with the tokenizer.
        special_tokens: see `set_special_tokens`.
        **common: the options of every tokenizer, see `TokensAndIds`.

    Raises:
        OSError: a file cannot be read.
        TypeError: there is no option of that name, or it has a value of another type.
        ValueError: a file does not hold what it should, the two do not fit each other, or an option has a value that
            it cannot have.
    """

    vocab_files_names: ClassVar[Mapping[str, str]] = VOCAB_FILES_NAMES
    #: GPT and GPT-2 learned without segments.
    model_input_names: ClassVar[tuple[str, ...]] = ("input_ids", "attention_mask")

    def __init__(
        self,
        vocab_file: VocabSource,
        merges_file: MergesSource,
        *,
        options: Mapping[str, Any],
        special_tokens: Sequence[str] | None = None,
        **common: "Unpack[BaseOptions]",
    ) -> None:
        self._vocab, tokens, description = read_vocabulary(vocab_file)
        self._merges = read_merges(merges_file, self._vocab, description)
        if special_tokens is not None:
            classic = self._classic_ids(special_tokens)
            more = [*(common.get("additional_special_tokens") or ()), *special_tokens]
            common["additional_special_tokens"] = list(dict.fromkeys(more))
            common["added_tokens"] = {**classic, **(common.get("added_tokens") or {})}
        super().__init__(self._vocab, tokens, options=options, **common)

    # What a family gives.

    @abstractmethod
    def _make_joiner(self, unknown: int | None) -> Joiner:
        """Builds what joins the symbols of a word; called again when the unknown token changes."""

    # Tokens and ids.

    @property
    def _unknown_id(self) -> int | None:
        unknown = self._table.roles["unk_token"]
        return None if unknown is None else self._table.id_of(unknown)

    @property
    def encoder(self) -> Mapping[str, int]:
        """Token -> id of the vocabulary, without added tokens."""
        return self._vocab

    @property
    def decoder(self) -> Mapping[int, str]:
        """Id -> token of the vocabulary, without added tokens."""
        return TokensById(self._table.tokens)

    @property
    def bpe_ranks(self) -> Mapping[tuple[str, str], int]:
        """Pair -> its place in the order of the merges."""
        return self._merges.ranks

    @property
    def special_tokens(self) -> dict[str, int]:
        """Token -> id of the special tokens that stand behind the vocabulary and have no role."""
        return {token: self._table.added[token] for token in self._table.additional if token in self._table.added}

    @property
    def special_tokens_decoder(self) -> dict[int, str]:
        """The other direction of `special_tokens`."""
        return {number: token for token, number in self.special_tokens.items()}

    def set_special_tokens(self, special_tokens: Sequence[str] | None) -> None:
        """Makes these the special tokens without a role, in place of those so far.

        They stand behind the vocabulary: the first has the id `vocab_size`, as the 0.6.2 package and models that were
        fine-tuned with it have it. One that is in the vocabulary already keeps its id there, and the others have the
        ids that they would have without it. A token with a role that is not in the vocabulary comes after them.

        Args:
            special_tokens: the tokens in order of their ids; None for none.

        Raises:
            TypeError: it is no list of tokens.
            ValueError: ordinary tokens were added before, whose ids would change.
        """
        table = self._table
        special = table.special()
        ordinary = [token for token in table.added if token not in special]
        if ordinary:
            raise ValueError(
                f"set_special_tokens would change the ids of tokens that were added before, such as {ordinary[0]!r}; "
                "call it first, or use add_special_tokens"
            )
        classic = self._classic_ids(special_tokens or ())
        self._table = TokenTable(table.vocab, table.tokens, classic)
        self._table.roles = table.roles
        self._table.additional = list(special_tokens or ())
        self._give_ids(self._table.special())
        self._build_engine()
        self._rebuild()

    def _classic_ids(self, special_tokens: Sequence[str]) -> dict[str, int]:
        if isinstance(special_tokens, str) or not all(isinstance(token, str) and token for token in special_tokens):
            raise TypeError(f"special_tokens must be a list of tokens, not {special_tokens!r:.60}")
        ids = {token: number for number, token in enumerate(special_tokens, len(self._vocab))}
        if len(ids) != len(special_tokens):
            raise ValueError(f"special_tokens holds a token more than once: {special_tokens!r:.200}")
        return {token: number for token, number in ids.items() if token not in self._vocab}

    # Loading and saving.

    def save_vocabulary(self, save_directory: str | os.PathLike[str]) -> tuple[str, ...]:
        """Writes the vocabulary and the merges, without added tokens.

        Special tokens without a role that stand right behind the vocabulary are written for the 0.6.2 package besides,
        to `special_tokens.txt`.

        Args:
            save_directory: an existing folder.

        Returns:
            The paths written.

        Raises:
            OSError: there is no such folder, or it cannot be written to.
        """
        folder = Path(save_directory)
        if not folder.is_dir():
            raise NotADirectoryError(f"{str(folder)!r} is no folder; the vocabulary is two files and needs one")
        names = (folder / name for name in VOCAB_FILES_NAMES.values())
        paths = list(save_bpe(self._table.tokens, self._merges, *names))
        special = self.special_tokens
        if special and list(special.values()) == [self.vocab_size + place for place in range(len(special))]:
            paths.append(save_tokens(special, folder / SPECIAL_TOKENS_FILE))
        return tuple(map(str, paths))

    @classmethod
    def _options_beside(cls, location: "Location") -> Mapping[str, Any]:
        # What this package saved has the same tokens in other files, which may be newer.
        path = None if location.file(ADDED_TOKENS_FILE) else location.file(SPECIAL_TOKENS_FILE)
        return {} if path is None else {"special_tokens": [token for token in read_tokens(path) if token]}
