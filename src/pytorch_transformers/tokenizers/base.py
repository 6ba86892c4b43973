"""`PreTrainedTokenizer`: what the tokenizers of all families can do; a family adds its files and special tokens."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..files import write_json
from .assemble import full_rows
from .calling import TextEncoder
from .encoding import BatchEncoding
from .engine import Piece
from .loading import (
    ADDED_TOKENS_FILE,
    SPECIAL_TOKENS_MAP_FILE,
    TOKENIZER_CONFIG_FILE,
    find_files,
    option_names,
    read_json,
    saved_options,
)
from .options import Padding, Tensors, Truncation
from .padding import TOKEN_FIELDS, are_token_labels, columns_of, to_tensor
from .tokens import numbers_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..hub import Location

logger = logging.getLogger(__name__)

#: What decoded English has a space too many in, and the same without (the published package, `clean_up_tokenization`).
CLEAN_UP: Final = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)


#: The tokenizers of the families. One does not load what another saved: its files may have the same names.
FAMILY_CLASSES: Final = frozenset({"BertTokenizer", "GPT2Tokenizer", "OpenAIGPTTokenizer", "TransfoXLTokenizer"})


class PreTrainedTokenizer(TextEncoder):
    """Turns text into the ids that a model was trained with, and back.

    A family derives from this class and gives `_make_reference`, `special_layout`, `save_vocabulary`, and whatever
    else differs. The constructor is that of `TokensAndIds`.
    """

    #: Argument of the constructor -> name of its file in a folder.
    vocab_files_names: ClassVar[Mapping[str, str]] = {}
    #: The same with the names that other programs gave the files; looked for where one of the usual ones is missing.
    other_files_names: ClassVar[tuple[Mapping[str, str], ...]] = ()
    #: Shortcut name -> repository on the hub.
    pretrained_repositories: ClassVar[Mapping[str, str]] = {}
    #: What `decode` puts between added tokens and the text around them.
    added_token_separator: ClassVar[str] = " "
    # What a family gives.

    def save_vocabulary(self, save_directory: str | os.PathLike[str]) -> tuple[str, ...]:
        """Writes the vocabulary files, without added tokens.

        Args:
            save_directory: an existing folder.

        Returns:
            The paths written.
        """
        raise NotImplementedError(f"{type(self).__name__} has no save_vocabulary")

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """Joins tokens of the vocabulary to text.

        Args:
            tokens: the tokens.
        """
        return " ".join(tokens)

    @classmethod
    def _read_library_file(cls, path: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Reads `tokenizer.json`: gives what takes the place of the vocabulary files, and the options it holds."""
        raise ValueError(
            f"{cls.__name__} does not read {str(path)!r}; it needs {', '.join(cls.vocab_files_names.values())}"
        )

    @classmethod
    def _published_options(cls, name: str) -> Mapping[str, Any]:
        """Gives the options that belong to a published name; none unless the family says otherwise."""
        return {}

    @classmethod
    def _options_beside(cls, location: "Location") -> Mapping[str, Any]:
        """Gives the options that files of the family's own say; none unless the family has such files."""
        return {}

    def _check_loaded(self, given: Iterable[str]) -> None:
        """Looks at a tokenizer just loaded, `given` being the options that somebody saved or passed."""

    # Ids to inputs.

    def pad(
        self,
        encoded_inputs: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        padding: Padding = True,
        *,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: Tensors | None = None,
    ) -> BatchEncoding:
        """Fills encodings that were made one at a time, so that they make a batch.

        Args:
            encoded_inputs: encodings of one text each, or one encoding with a row for each text. Besides the fields of
                the tokenizer, `labels` are filled, with -100, which the models ignore, if each text has as many of them
                as ids and they are integers. Other fields stay as they are, be they numbers or lists.
            padding: see `__call__`.
            max_length: see `__call__`.
            pad_to_multiple_of: see `__call__`.
            return_attention_mask: whether to make a mask where there is none; None as models of the family take it.
            return_tensors: "pt" or "np". The fields of the tokenizer are int64 then; one number for each text is of
                shape [batch], and floats stay floats, float32 in torch.

        Raises:
            ValueError: the encodings have different fields or no ids; a field does not fit the ids, or cannot be a
                tensor. The message names it.
        """
        columns, single = columns_of(encoded_inputs)
        call = self._make_call(
            padding=padding,
            max_length=max_length,
            pad_to_multiple_of=pad_to_multiple_of,
            return_attention_mask=return_attention_mask,
            return_tensors=return_tensors,
        )
        ids = columns["input_ids"]
        if call.return_attention_mask and "attention_mask" not in columns:
            columns["attention_mask"] = [[1] * len(row) for row in ids]
        filled = {name: rows for name, rows in columns.items() if name in TOKEN_FIELDS}
        if "labels" in columns and are_token_labels(columns["labels"], ids):
            filled["labels"] = columns["labels"]
        result = columns | (self._pad(filled, call) if call.pads else {})
        if return_tensors:
            return BatchEncoding(
                {name: to_tensor(name, rows, return_tensors, ours=name in filled) for name, rows in result.items()}
            )
        return BatchEncoding({name: rows[0] for name, rows in result.items()} if single else result)

    def build_inputs_with_special_tokens(
        self, token_ids_0: Sequence[int], token_ids_1: Sequence[int] | None = None
    ) -> list[int]:
        """Puts special tokens around the ids of one text or of two.

        Args:
            token_ids_0: ids of the first text.
            token_ids_1: ids of the second text.
        """
        return self.special_layout().join(token_ids_0, token_ids_1)

    def create_token_type_ids_from_sequences(
        self, token_ids_0: Sequence[int], token_ids_1: Sequence[int] | None = None
    ) -> list[int]:
        """Gives the segments of the input that `build_inputs_with_special_tokens` makes.

        Args:
            token_ids_0: ids of the first text.
            token_ids_1: ids of the second text.
        """
        return self.special_layout().segments(len(token_ids_0), None if token_ids_1 is None else len(token_ids_1))

    def get_special_tokens_mask(
        self,
        token_ids_0: Sequence[int],
        token_ids_1: Sequence[int] | None = None,
        already_has_special_tokens: bool = False,
    ) -> list[int]:
        """Gives 1 for special tokens and 0 for others.

        Args:
            token_ids_0: ids of the first text.
            token_ids_1: ids of the second text.
            already_has_special_tokens: whether the special tokens are in `token_ids_0` already; if not, the mask is
                for the input that `build_inputs_with_special_tokens` makes.

        Raises:
            ValueError: there is a second text beside an input that has its special tokens.
        """
        if already_has_special_tokens:
            if token_ids_1 is not None:
                raise ValueError("an input that has its special tokens is one sequence; give it as token_ids_0 alone")
            special = set(self.all_special_ids)
            return [int(number in special) for number in token_ids_0]
        return self.special_layout().special_mask(len(token_ids_0), None if token_ids_1 is None else len(token_ids_1))

    def add_special_tokens_single_sentence(self, token_ids: Sequence[int]) -> list[int]:
        """The older name of `build_inputs_with_special_tokens` for one text.

        Args:
            token_ids: ids of the text.
        """
        return self.build_inputs_with_special_tokens(token_ids)

    def add_special_tokens_sentences_pair(self, token_ids_0: Sequence[int], token_ids_1: Sequence[int]) -> list[int]:
        """The older name of `build_inputs_with_special_tokens` for two texts.

        Args:
            token_ids_0: ids of the first text.
            token_ids_1: ids of the second text.
        """
        return self.build_inputs_with_special_tokens(token_ids_0, token_ids_1)

    def prepare_for_model(
        self,
        ids: Sequence[int],
        pair_ids: Sequence[int] | None = None,
        *,
        add_special_tokens: bool = True,
        padding: Padding = False,
        truncation: Truncation = False,
        max_length: int | None = None,
        stride: int = 0,
        pad_to_multiple_of: int | None = None,
        return_tensors: Tensors | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_length: bool = False,
    ) -> BatchEncoding:
        """Makes the input of a model of ids; the options are those of `__call__`.

        Args:
            ids: ids of the first text, without special tokens.
            pair_ids: ids of the second text.
            add_special_tokens: see `__call__`.
            padding: see `__call__`.
            truncation: see `__call__`.
            max_length: see `__call__`.
            stride: see `__call__`.
            pad_to_multiple_of: see `__call__`.
            return_tensors: see `__call__`.
            return_overflowing_tokens: see `__call__`.
            return_special_tokens_mask: see `__call__`.
            return_length: see `__call__`.

        Raises:
            ValueError: the ids cannot be cut or filled as asked, or no token has one of them.
        """
        call = self._make_call(
            padding=padding,
            truncation=truncation,
            max_length=max_length,
            add_special_tokens=add_special_tokens,
            stride=stride,
            pad_to_multiple_of=pad_to_multiple_of,
            return_tensors=return_tensors,
            return_overflowing_tokens=return_overflowing_tokens,
            return_special_tokens_mask=return_special_tokens_mask,
            return_length=return_length,
        )
        first = [[Piece(number, self._table.token_of(number), 0, 0, 0) for number in ids]]
        second = None if pair_ids is None else [[Piece(n, self._table.token_of(n), 0, 0, 0) for n in pair_ids]]
        columns, samples = full_rows(first, second, self._recipe(call), self._table.token_of)
        # Ids come from no text: nothing can be said about words, so no origins are kept.
        encoding = self._finish(columns, call, False, samples)
        return BatchEncoding(dict(encoding))

    # Ids to text.

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> str:
        """Turns ids back into text.

        Args:
            token_ids: an id, or several (a list, array or one-dimensional tensor).
            skip_special_tokens: whether to leave out special tokens.
            clean_up_tokenization_spaces: whether to take out the spaces before punctuation and contractions; None as
                the tokenizer was built.

        Raises:
            TypeError: what should be an id is no integer.
            ValueError: no token has one of the ids.
        """
        ids = numbers_of(token_ids)
        ids = [ids] if isinstance(ids, int) else ids
        tokens = self.convert_ids_to_tokens(ids, skip_special_tokens=skip_special_tokens)
        parts: list[str] = []
        plain: list[str] = []
        for token in tokens:
            if token in self._table.added:
                parts += [self.convert_tokens_to_string(plain), token] if plain else [token]
                plain = []
            else:
                plain.append(token)
        parts += [self.convert_tokens_to_string(plain)] if plain else []
        text = self.added_token_separator.join(parts)
        clean = (
            self.clean_up_tokenization_spaces
            if clean_up_tokenization_spaces is None
            else (clean_up_tokenization_spaces)
        )
        return self.clean_up_tokenization(text) if clean else text

    def batch_decode(
        self,
        sequences: Iterable[Any],
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> list[str]:
        """Turns each row of ids back into text.

        Args:
            sequences: the rows, as a list, an array or a tensor.
            skip_special_tokens: see `decode`.
            clean_up_tokenization_spaces: see `decode`.

        Raises:
            TypeError: what should be an id is no integer.
            ValueError: no token has one of the ids.
        """
        rows: Iterable[Any] = sequences.tolist() if hasattr(sequences, "tolist") else sequences
        return [self.decode(row, skip_special_tokens, clean_up_tokenization_spaces) for row in rows]

    @staticmethod
    def clean_up_tokenization(out_string: str) -> str:
        """Takes out the spaces that English has no use for: before punctuation and inside contractions.

        Args:
            out_string: decoded text.
        """
        for spaced, joined in CLEAN_UP:
            out_string = out_string.replace(spaced, joined)
        return out_string

    # Loading and saving.

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | os.PathLike[str],
        *,
        cache_dir: str | os.PathLike[str] | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        **init_overrides: Any,
    ) -> "Self":
        """Loads a tokenizer with the options it was saved with.

        Args:
            name_or_path: a shortcut name, a repository on the hub, a folder, or the vocabulary file itself where there
                is only one. A place without vocabulary files may have the `tokenizer.json` of the tokenizers library.
            cache_dir: where downloads are kept.
            revision: branch, tag or commit of the repository.
            local_files_only: whether to use nothing but the disk.
            **init_overrides: options of the constructor, instead of what was saved.

        Raises:
            OSError: there is no such place, or no vocabulary in it; the message says what was looked for.
            TypeError: there is no option of that name.
            ValueError: a file does not hold what it should, or the tokenizer is that of another family.
        """
        from ..hub import locate

        location = locate(
            name_or_path,
            shortcuts=cls.pretrained_repositories,
            cache_dir=cache_dir,
            revision=revision,
            local_files_only=local_files_only,
        )
        found = find_files(location, cls.vocab_files_names, *cls.other_files_names)
        # What lies beside a vocabulary with a name of its own may belong to another one.
        usual = isinstance(found, Path) or any(
            {path.name for path in found.values()} == set(names.values())
            for names in (cls.vocab_files_names, *cls.other_files_names)
        )
        if usual:
            cls._check_family(location.file(TOKENIZER_CONFIG_FILE))
        files, defaults = cls._read_library_file(found) if isinstance(found, Path) else (found, {})
        saved = saved_options(location, option_names(cls), defaults) if usual else {}
        if "max_len" in init_overrides:  # the older name must replace a saved value too, not clash with it
            init_overrides["model_max_length"] = init_overrides.pop("max_len")
        published = cls._published_options(os.fspath(name_or_path))
        options = {**published, **cls._options_beside(location), **saved, **init_overrides}
        # The families have constructors of their own; each checks its options.
        build: Callable[..., Self] = cls
        tokenizer = build(**files, **options)
        tokenizer._check_loaded(options)
        return tokenizer

    @classmethod
    def _check_family(cls, config: Path | None) -> None:
        """Raises `ValueError` where a tokenizer of another family was saved; classes of other programs may be any."""
        kind = str(read_json(config).get("tokenizer_class")).removesuffix("Fast")
        if kind in FAMILY_CLASSES.difference(each.__name__ for each in cls.__mro__):
            raise ValueError(f"{str(config)!r} is of a {kind}, not of a {cls.__name__}; use {kind} or AutoTokenizer")

    def save_pretrained(self, save_directory: str | os.PathLike[str]) -> tuple[str, ...]:
        """Saves the vocabulary, the options, the special tokens and the added tokens.

        Args:
            save_directory: a folder; it is made if it is not there.

        Returns:
            The paths written.

        Raises:
            OSError: the folder cannot be made or written to.
        """
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        config = {"tokenizer_class": type(self).__name__, **self.init_options}
        files: dict[str, Any] = {
            TOKENIZER_CONFIG_FILE: config,
            SPECIAL_TOKENS_MAP_FILE: self.special_tokens_map,
            ADDED_TOKENS_FILE: self._table.added,
        }
        for name, value in files.items():
            write_json(folder / name, value)
        return (*self.save_vocabulary(folder), *(str(folder / name) for name in files))
