"""The tokenizer of GPT-2: its special token, its files and its quirks; the algorithms are in `tokenizers/`.

Source: openai/gpt-2, src/encoder.py. Any text comes back as it was: `decode(encode(text)) == text`.
Surprising: there is one special token, `<|endoftext|>`, which stood between the documents that the model learned from;
it begins and ends texts and stands for what is unknown, which no text is. The original splits it like any text
(`split_special_tokens=True` does the same). There is no token to fill rows with: give one, or use `<|endoftext|>`, but
then pass the mask. For generation fill on the left: `padding_side="left"`.
"""

import codecs
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ...tokenizers.bpe_files import MergesSource, VocabSource
from ...tokenizers.bpe_tokenizer import BPETokenizer
from ...tokenizers.byte_level import BYTE_TO_CHAR, to_bytes, to_text
from ...tokenizers.byte_reference import ByteLevelReference, byte_level_engine
from ...tokenizers.engine import Engine
from ...tokenizers.joiner import ByteJoiner
from ...tokenizers.library_file import Accepted, read_bpe
from ...tokenizers.options import EngineName, checked_flag
from ...tokenizers.pipeline import Pipeline, SpacedPipeline
from ...tokenizers.tokens import numbers_of
from ..warn import warn_once
from .pretrained import (
    GPT2_PRETRAINED_MERGES_ARCHIVE_MAP,
    GPT2_PRETRAINED_VOCAB_ARCHIVE_MAP,
    MAX_POSITIONS,
    REPOSITORIES,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ...tokenizers.options import CommonOptions

#: Argument of the constructor -> name of its file in the original program.
ORIGINAL_FILES_NAMES: Final[Mapping[str, str]] = {"vocab_file": "encoder.json", "merges_file": "vocab.bpe"}
#: Argument of the constructor -> shortcut name -> address of the file.
PRETRAINED_VOCAB_FILES_MAP: Final[Mapping[str, Mapping[str, str]]] = {
    "vocab_file": GPT2_PRETRAINED_VOCAB_ARCHIVE_MAP,
    "merges_file": GPT2_PRETRAINED_MERGES_ARCHIVE_MAP,
}
#: Shortcut name -> longest input in tokens.
PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES: Final[Mapping[str, int]] = dict.fromkeys(REPOSITORIES, MAX_POSITIONS)
#: Stands between documents.
END_OF_TEXT: Final = "<|endoftext|>"
#: What `tokenizer.json` may say; see `Accepted`.
_ACCEPTED: Final[Accepted] = {
    "normalizer": {"type": (None,)},
    "pre_tokenizer": {"type": ("ByteLevel",), "use_regex": (None, True)},
    "model": {"end_of_word_suffix": (None, "")},
    "post_processor": {"type": (None, "ByteLevel")},
}


class GPT2Tokenizer(BPETokenizer):
    """Turns text into the byte pairs of GPT-2, and back without loss.

    No special tokens are put around texts.

    Args:
        vocab_file: the vocabulary, a JSON file, or token -> id itself.
        merges_file: the merges, one a line, or a list of them.
        errors: what `decode` does with bytes that are no UTF-8, as for `bytes.decode`: "replace" puts U+FFFD in their
            place. The bytes that a lone surrogate was encoded to are that surrogate again, whatever is said here.
        unk_token: stands for a byte that is not in the vocabulary; those of the published models have all.
        bos_token: begins a text.
        eos_token: ends a text.
        add_prefix_space: whether a text that begins with no space is taken as if it did, so that its first word is the
            one that it would be inside a text. `decode` gives that space too. Words given one by one
            (`is_split_into_words`) are texts in this respect.
        special_tokens: special tokens to stand behind the vocabulary, see `set_special_tokens`.
        pad_token: fills short rows; there is none unless one is given.
        sep_token: a role that GPT-2 does not use.
        cls_token: a role that GPT-2 does not use.
        mask_token: a role that GPT-2 does not use.
        **common: the options of every tokenizer, see `TokensAndIds`; `clean_up_tokenization_spaces` is False here
            unless it is asked for.

    Raises:
        OSError: a file cannot be read.
        TypeError: there is no option of that name, or it has a value of another type.
        ValueError: a file does not hold what it should, the two do not fit each other, or an option has a value that
            it cannot have.
    """

    other_files_names: ClassVar[tuple[Mapping[str, str], ...]] = (ORIGINAL_FILES_NAMES,)
    pretrained_repositories: ClassVar[Mapping[str, str]] = REPOSITORIES
    pipeline_class: ClassVar[type[Pipeline]] = SpacedPipeline
    added_token_separator: ClassVar[str] = ""

    def __init__(
        self,
        vocab_file: VocabSource,
        merges_file: MergesSource,
        errors: str = "replace",
        unk_token: str | None = END_OF_TEXT,
        bos_token: str | None = END_OF_TEXT,
        eos_token: str | None = END_OF_TEXT,
        *,
        add_prefix_space: bool = False,
        special_tokens: Sequence[str] | None = None,
        pad_token: str | None = None,
        sep_token: str | None = None,
        cls_token: str | None = None,
        mask_token: str | None = None,
        **common: "Unpack[CommonOptions]",
    ) -> None:
        self.errors = _checked_handler(errors)
        self._add_prefix_space = checked_flag("add_prefix_space", add_prefix_space)
        self._bytes: tuple[int, _TokenBytes] | None = None
        if common.get("clean_up_tokenization_spaces") is None:
            common["clean_up_tokenization_spaces"] = False
        super().__init__(
            vocab_file,
            merges_file,
            options={"errors": errors, "add_prefix_space": add_prefix_space},
            special_tokens=special_tokens,
            bos_token=bos_token,
            eos_token=eos_token,
            unk_token=unk_token,
            sep_token=sep_token,
            pad_token=pad_token,
            cls_token=cls_token,
            mask_token=mask_token,
            **common,
        )
        if missing := sum(char not in self._vocab for char in BYTE_TO_CHAR):
            warn_once(
                f"GPT2Tokenizer: {missing} of the 256 bytes are not in the vocabulary, so that texts with them get "
                f"{unk_token} or an error; is it a vocabulary of GPT-2?"
            )

    @property
    def add_prefix_space(self) -> bool:
        """Whether a text that begins with no space is taken as if it did."""
        return self._add_prefix_space

    def _make_joiner(self, unknown: int | None) -> ByteJoiner:
        return ByteJoiner(self._vocab, self._merges, unknown)

    def _make_reference(self) -> ByteLevelReference:
        self._bytes_reference = ByteLevelReference(
            self._make_joiner(self._unknown_id), add_prefix_space=self._add_prefix_space
        )
        return self._bytes_reference

    def _make_engine(self, name: EngineName) -> Engine:
        return byte_level_engine(name, self._bytes_reference)

    def bpe(self, token: str) -> str:
        """Joins the symbols of a word, and puts spaces between the tokens that they become.

        Args:
            token: the word, in the characters that stand for bytes.
        """
        return " ".join(self._merges.join(token))

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """Joins tokens of the vocabulary to text.

        Args:
            tokens: the tokens.
        """
        return to_text(to_bytes("".join(tokens)), self.errors)

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> str:
        """Turns ids back into the text that they were made of.

        Ids that were made of no text may give bytes that are no UTF-8; `errors` says what becomes of them.

        Args:
            token_ids: an id, or several (a list, array or one-dimensional tensor).
            skip_special_tokens: whether to leave out special tokens.
            clean_up_tokenization_spaces: whether to take out the spaces before punctuation and contractions; None as
                the tokenizer was built, which is not to.

        Raises:
            TypeError: what should be an id is no integer.
            ValueError: no token has one of the ids; or `errors` is "strict" and bytes are no text.
        """
        numbers = numbers_of(token_ids)
        ids = [numbers] if isinstance(numbers, int) else numbers
        if skip_special_tokens:
            skipped = set(self.all_special_ids)
            ids = [number for number in ids if number not in skipped]
        # Everything is joined before it is decoded: a character may be divided between tokens.
        text = to_text(b"".join(map(self._token_bytes().__getitem__, ids)), self.errors)
        asked = clean_up_tokenization_spaces
        clean = self.clean_up_tokenization_spaces if asked is None else asked
        return self.clean_up_tokenization(text) if clean else text

    def _token_bytes(self) -> "_TokenBytes":
        if self._bytes is None or self._bytes[0] != self._changes:
            self._bytes = self._changes, _TokenBytes(self)
        return self._bytes[1]

    @property
    def init_options(self) -> dict[str, Any]:
        """See `TokensAndIds.init_options`; `errors` may have been changed since."""
        return {**super().init_options, "errors": self.errors}

    @classmethod
    def _read_library_file(cls, path: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        content = read_bpe(path, cls.__name__, _ACCEPTED)
        return {"vocab_file": content.vocab, "merges_file": content.merges}, content.options

    @classmethod
    def _published_options(cls, name: str) -> Mapping[str, Any]:
        return {"model_max_length": MAX_POSITIONS} if name in REPOSITORIES else {}


class _TokenBytes(dict[int, bytes]):
    """Id -> the bytes of its token, found out when they are first asked for.

    Special and added tokens are texts; the tokens of the vocabulary are in the characters that stand for bytes.

    Args:
        owner: the tokenizer, as it is now.
    """

    def __init__(self, owner: GPT2Tokenizer) -> None:
        super().__init__()
        self._token_of = owner._table.token_of
        self._texts = {*owner._table.added, *owner.all_special_tokens}

    def __missing__(self, number: int) -> bytes:
        token = self._token_of(number)
        self[number] = value = token.encode("utf-8", "surrogatepass") if token in self._texts else to_bytes(token)
        return value


def _checked_handler(errors: str) -> str:
    try:
        codecs.lookup_error(errors)
    except (LookupError, TypeError):
        raise ValueError(
            f"errors={errors!r} is no way to handle errors of decoding; Python has 'replace', 'ignore', 'strict', "
            "'backslashreplace' and others"
        ) from None
    return errors
