"""The tokenizer of BERT as 0.6.2 had it: words, then word pieces, of the algorithms in `pytorch_transformers`.

What is an attribute here was one there, and may be changed as it was: `vocab`, `ids_to_tokens`, `max_len`,
`basic_tokenizer.never_split` and the others are looked at in each call.
"""

import logging
import os
import unicodedata
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytorch_transformers.models.bert.pretrained import MAX_POSITIONS, REPOSITORIES
from pytorch_transformers.tokenizers import basic
from pytorch_transformers.tokenizers.basic import whitespace_tokenize
from pytorch_transformers.tokenizers.characters import (
    CLEAN,
    CLEAN_AND_SPACE,
    SPACED_PUNCTUATION,
    WITHOUT_ACCENTS,
    is_control,
    is_ideograph,
    is_punctuation,
    is_whitespace,
)
from pytorch_transformers.tokenizers.loading import TOKENIZER_CONFIG_FILE, read_json
from pytorch_transformers.tokenizers.vocab import index_tokens, read_tokens, save_tokens
from pytorch_transformers.tokenizers.wordpiece import WordpieceTokenizer

from .archives import BERT_VOCABULARIES as PRETRAINED_VOCAB_ARCHIVE_MAP
from .archives import EARLY_NAMES
from .classic_cache import Folder, classic_vocabulary
from .file_utils import cached_path

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "PRETRAINED_VOCAB_ARCHIVE_MAP",
    "PRETRAINED_VOCAB_POSITIONAL_EMBEDDINGS_SIZE_MAP",
    "VOCAB_NAME",
    "BasicTokenizer",
    "BertTokenizer",
    "WordpieceTokenizer",
    "cached_path",
    "convert_to_unicode",
    "load_vocab",
    "printable_text",
    "whitespace_tokenize",
]

logger = logging.getLogger(__name__)

#: Shortcut name -> longest input in tokens.
PRETRAINED_VOCAB_POSITIONAL_EMBEDDINGS_SIZE_MAP: Final[Mapping[str, int]] = dict.fromkeys(
    PRETRAINED_VOCAB_ARCHIVE_MAP, MAX_POSITIONS
)
VOCAB_NAME: Final = "vocab.txt"
#: `max_len` of a tokenizer without a limit.
NO_LIMIT: Final = int(1e12)
#: Categories of characters that are no text to 0.6.2, beside those that are none to the original: without a character,
#: of private use, surrogates.
_NO_TEXT: Final = ("Cn", "Co", "Cs")


def load_vocab(vocab_file: Folder) -> "OrderedDict[str, int]":
    """Read a vocabulary, one token a line: token -> id, the number of its line.

    Args:
        vocab_file: The file, UTF-8.

    Raises:
        OSError: It can't be read.
        ValueError: It is empty, or no UTF-8.
    """
    # A token has no white space around it, but may be white space.
    tokens = [token.strip() or token for token in read_tokens(Path(vocab_file))]
    return OrderedDict(index_tokens(tokens, f"the vocabulary {os.fspath(vocab_file)!r}"))


def convert_to_unicode(text: str | bytes) -> str:
    """Text as it is, and bytes as the text of UTF-8 that they are, without what is none.

    Args:
        text: Text or bytes.

    Raises:
        ValueError: It is neither.
    """
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise ValueError(f"text: expected str or bytes, found {type(text).__name__}")


#: The same function under the name that the original has for what is printed.
printable_text = convert_to_unicode


# What characters are to 0.6.2, for programs that import these; the tokenizer has tables of the same.

_is_whitespace = is_whitespace
_is_punctuation = is_punctuation


def _is_control(char: str) -> bool:
    return is_control(char) or unicodedata.category(char) in _NO_TEXT


def check_text(text: object) -> None:
    """Raise `TypeError` for what is no text and can't be tokenized."""
    if not isinstance(text, str):
        way = "; convert_to_unicode(text) decodes UTF-8" if isinstance(text, bytes) else ""
        raise TypeError(f"text: expected a str, found {type(text).__name__}{way}")


class _TextTable(dict[int, str]):
    """Drops the characters that are no text to 0.6.2 alone."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = value = "" if unicodedata.category(char) in _NO_TEXT else char
        return value


_TEXT: Final = _TextTable()


class BasicTokenizer(basic.BasicTokenizer):
    """Splits text into words: white space, punctuation, ideographs; lower-cased and without accents if asked.

    Args:
        do_lower_case: Whether to lower-case.
        never_split: Words that are kept whole and in their case, where white space is around them. The list REPLACES
            that of special tokens: give those as well.
    """

    never_split: Collection[str]  # type: ignore[assignment]

    def __init__(
        self,
        do_lower_case: bool = True,
        never_split: Collection[str] = ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"),
    ) -> None:
        super().__init__(do_lower_case)
        self.never_split = never_split

    def tokenize(self, text: str) -> list[str]:  # type: ignore[override]
        """Split a text into words.

        Args:
            text: Any text.

        Raises:
            TypeError: It is no text.
        """
        check_text(text)
        if self._has_own_steps():
            return self._tokenize_by_steps(text)
        self.strip_accents = self.do_lower_case
        text = text if text.isascii() else text.translate(_TEXT)
        kept = set(self.never_split)
        if not kept:
            return self.split(text)
        words = text.translate(CLEAN_AND_SPACE).split()
        if kept.isdisjoint(words):
            return self.split(text)
        return [part for word in words for part in ([word] if word in kept else self.split(word))]

    # The steps one by one, for programs that call or override them.

    def _has_own_steps(self) -> bool:
        """Whether a subclass, or somebody in this object or in this class, has replaced a step."""
        own, kind = vars(self), type(self)
        return any(name in own or getattr(kind, name) is not step for name, step in _STEPS.items())

    def _tokenize_by_steps(self, text: str) -> list[str]:
        """What `tokenize` does, slower and by the methods: those that are replaced have their effect."""
        parts: list[str] = []
        for word in self._tokenize_chinese_chars(self._clean_text(text)).split():
            plain = not self.do_lower_case or word in self.never_split
            parts += self._run_split_on_punc(word if plain else self._run_strip_accents(word.lower()))
        return " ".join(parts).split()  # a replaced step may leave white space in a part

    def _clean_text(self, text: str) -> str:
        return text.translate(_TEXT).translate(CLEAN)

    def _tokenize_chinese_chars(self, text: str) -> str:
        alone = self._is_chinese_char
        return "".join(f" {char} " if alone(ord(char)) else char for char in text)

    def _is_chinese_char(self, cp: int) -> bool:
        return is_ideograph(chr(cp))

    def _run_strip_accents(self, text: str) -> str:
        return unicodedata.normalize("NFD", text).translate(WITHOUT_ACCENTS)

    def _run_split_on_punc(self, text: str) -> list[str]:
        if text in self.never_split:
            return [text]
        parts: list[str] = []
        grows = False
        for char in text:
            alone = len(SPACED_PUNCTUATION[ord(char)]) > 1
            if grows and not alone:
                parts[-1] += char
            else:
                parts.append(char)
            grows = not alone
        return parts


#: The steps as they are here, to notice replaced ones.
_STEPS: Final[Mapping[str, Any]] = {
    name: vars(BasicTokenizer)[name]
    for name in (
        *("_clean_text", "_tokenize_chinese_chars", "_is_chinese_char"),
        *("_run_strip_accents", "_run_split_on_punc"),
    )
}


class BertTokenizer:
    """Turns text into the word pieces of BERT, and those into ids. `[CLS]` and `[SEP]` are for the caller to add.

    Args:
        vocab_file: The vocabulary, one token a line.
        do_lower_case: Whether to lower-case; must be as the vocabulary was made.
        max_len: Longest input in tokens. Longer ones are not cut: `convert_tokens_to_ids` warns.
        do_basic_tokenize: Whether to clean the text and split it at punctuation; without it words are what stands
            between white space, and nothing is lower-cased.
        never_split: See `BasicTokenizer`: it REPLACES the list of special tokens.

    Attributes:
        vocab: Token -> id.
        ids_to_tokens: The other way round.

    Raises:
        ValueError: There is no such file, or it is no vocabulary.
    """

    vocab: MutableMapping[str, int]
    ids_to_tokens: MutableMapping[int, str]

    def __init__(
        self,
        vocab_file: Folder,
        do_lower_case: bool = True,
        max_len: int | None = None,
        do_basic_tokenize: bool = True,
        never_split: Collection[str] = ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"),
    ) -> None:
        if not Path(vocab_file).is_file():
            raise ValueError(
                f"vocab_file: there is no file {os.fspath(vocab_file)!r}; for a folder or the name of a published "
                "model use BertTokenizer.from_pretrained"
            )
        self.vocab = load_vocab(vocab_file)
        self.ids_to_tokens = OrderedDict((number, token) for token, number in self.vocab.items())
        self.do_basic_tokenize = do_basic_tokenize
        if do_basic_tokenize:
            self.basic_tokenizer = BasicTokenizer(do_lower_case, never_split)
        self.wordpiece_tokenizer = WordpieceTokenizer(self.vocab)
        self.max_len = NO_LIMIT if max_len is None else max_len

    def tokenize(self, text: str) -> list[str]:
        """Split a text into word pieces.

        Args:
            text: Any text.

        Raises:
            TypeError: It is no text.
        """
        check_text(text)
        if not self.do_basic_tokenize:
            return self.wordpiece_tokenizer.tokenize(text)
        pieces_of = self.wordpiece_tokenizer.tokenize
        return [piece for word in self.basic_tokenizer.tokenize(text) for piece in pieces_of(word)]

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Look up ids; a warning says when there are more than `max_len`.

        Args:
            tokens: Word pieces, as `tokenize` gives them.

        Raises:
            KeyError: One is not in the vocabulary.
        """
        try:
            ids = [self.vocab[token] for token in tokens]
        except KeyError as error:
            raise KeyError(
                f"{error.args[0]!r} is not in the vocabulary of {len(self.vocab)} tokens. Words become word pieces, "
                "which are, by tokenizer.tokenize(text): call it first."
            ) from None
        warn_of_length(len(ids), self.max_len)
        return ids

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Look up tokens.

        Args:
            ids: The ids.

        Raises:
            KeyError: No token has one of them.
        """
        return [token_of(self.ids_to_tokens, number) for number in ids]

    def save_vocabulary(self, vocab_path: Folder) -> str:
        """Write the vocabulary, one token a line.

        Args:
            vocab_path: An existing folder, where the file is `vocab.txt`, or the file itself.

        Returns:
            The file.

        Raises:
            OSError: It can't be written.
        """
        path = Path(vocab_path)
        path = path / VOCAB_NAME if path.is_dir() else path
        tokens = sorted(self.vocab, key=lambda token: self.vocab[token])
        warn_of_holes([self.vocab[token] for token in tokens], 0, path)
        return str(save_tokens(tokens, path))

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: Folder | None = None,
        cache_dir: Folder | None = None,
        *inputs: Any,
        **kwargs: Any,
    ) -> "Self":
        """Load a tokenizer. `do_lower_case` is as the name of a published model says, whatever is passed.

        Args:
            pretrained_model_name_or_path: A shortcut name, a folder, a repository on the hub, a vocabulary file or the
                address of one.
            cache_dir: Folder for downloads.
            *inputs: Arguments of the constructor after the vocabulary.
            **kwargs: The same by name; and `pretrained_model_name`, which the first argument was called before 0.5.

        Raises:
            OSError: There is no such place, or no vocabulary in it. (0.6.2 returned None.)
            TypeError: An option is unknown, or no name is given.
        """
        early = kwargs.pop("pretrained_model_name", None)
        if (pretrained_model_name_or_path is None) == (early is None):
            raise TypeError(
                f"from_pretrained takes one name: pretrained_model_name_or_path={pretrained_model_name_or_path!r}, "
                f"pretrained_model_name={early!r} (as it was called before 0.5)"
            )
        name = os.fspath(early if pretrained_model_name_or_path is None else pretrained_model_name_or_path)
        published = EARLY_NAMES.get(name, name)
        if published in PRETRAINED_VOCAB_ARCHIVE_MAP:
            _set_case(published, kwargs)
            kwargs["max_len"] = shortest(
                kwargs.get("max_len"), PRETRAINED_VOCAB_POSITIONAL_EMBEDDINGS_SIZE_MAP[published]
            )
        addresses = {"vocab_file": PRETRAINED_VOCAB_ARCHIVE_MAP}
        files, location = classic_vocabulary(name, addresses, {"vocab_file": VOCAB_NAME}, REPOSITORIES, cache_dir)
        if (
            location is not None
            and "do_lower_case" not in kwargs
            and not inputs
            and files["vocab_file"].name == VOCAB_NAME
        ):
            # 0.6.2 has no file of options, but pytorch_transformers saves what the vocabulary was made with.
            said = read_json(location.file(TOKENIZER_CONFIG_FILE)).get("do_lower_case")
            kwargs |= {} if said is None else {"do_lower_case": said}
        return cls(files["vocab_file"], *inputs, **kwargs)


def _set_case(name: str, options: dict[str, Any]) -> None:
    """Make `do_lower_case` what the vocabulary of a published name needs, and say so where that changes it."""
    needed = "-cased" not in name
    if bool(options.get("do_lower_case", True)) != needed:
        logger.warning(
            "%s is %s, so do_lower_case=%s is used; pass it to say that you know.",
            name,
            "uncased" if needed else "cased",
            needed,
        )
        options["do_lower_case"] = needed


# What the tokenizers of all families share.


def shortest(asked: int | None, published: int) -> int:
    """`max_len` of a published model: what was asked for, if that is less."""
    return published if asked is None else min(asked, published)


def token_of(tokens: Mapping[int, str], number: int) -> str:
    """The token that has an id.

    Raises:
        KeyError: There is none; the message says which ids there are.
    """
    try:
        return tokens[int(number)]
    except KeyError:
        raise KeyError(f"no token has the id {int(number)}; ids go from {min(tokens)} to {max(tokens)}") from None


def warn_of_length(length: int, limit: int) -> None:
    """Say in the log that there are more tokens than the model has positions."""
    if length > limit:
        logger.warning(
            "%d tokens are more than max_len=%d, which is what the model can take: cut them before it gets them.",
            length,
            limit,
        )


def warn_of_holes(ids: Iterable[int], first: int, path: Path) -> None:
    """Say in the log that tokens will have other ids when a file is read back, as their ids are not in a row."""
    for expected, number in enumerate(ids, first):
        if number != expected:
            logger.warning(
                "%s: the ids are not in a row (%d should be %d); tokens from there on will have other ids in the file",
                path,
                number,
                expected,
            )
            return
