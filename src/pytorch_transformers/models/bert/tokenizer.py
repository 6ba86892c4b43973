"""The tokenizer of BERT: its special tokens, its file and its quirks; the algorithm is in `tokenizers/`.

Source: google-research/bert, tokenization.py (`FullTokenizer`) and run_classifier.py (where [CLS] and [SEP] stand).
Surprising: the original has no list of tokens to keep, so `[MASK]` in a text is split at its brackets there
(`split_special_tokens=True` does the same); and it tries words of up to 200 characters, its ports to PyTorch 100.
"""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ...tokenizers.base import PreTrainedTokenizer
from ...tokenizers.basic import BasicTokenizer
from ...tokenizers.library_file import read_wordpiece
from ...tokenizers.options import checked_count, checked_flag
from ...tokenizers.reference import WordPieceReference
from ...tokenizers.special import Layout
from ...tokenizers.vocab import TokensById, index_tokens, save_tokens, tokens_of
from ...tokenizers.wordpiece import CONTINUATION, WordpieceTokenizer
from .pretrained import BERT_PRETRAINED_VOCAB_ARCHIVE_MAP, DO_LOWER_CASE, MAX_POSITIONS, REPOSITORIES

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ...tokenizers.options import CommonOptions

logger = logging.getLogger(__name__)

#: Argument of the constructor -> name of its file in a folder.
VOCAB_FILES_NAMES: Final[Mapping[str, str]] = {"vocab_file": "vocab.txt"}
#: Argument of the constructor -> shortcut name -> address of the file.
PRETRAINED_VOCAB_FILES_MAP: Final[Mapping[str, Mapping[str, str]]] = {"vocab_file": BERT_PRETRAINED_VOCAB_ARCHIVE_MAP}
#: Shortcut name -> longest input in tokens.
PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES: Final[Mapping[str, int]] = dict.fromkeys(REPOSITORIES, MAX_POSITIONS)
#: Shortcut name -> options of the constructor.
PRETRAINED_INIT_CONFIGURATION: Final[Mapping[str, Mapping[str, Any]]] = {
    name: {"do_lower_case": lower} for name, lower in DO_LOWER_CASE.items()
}


class BertTokenizer(PreTrainedTokenizer):
    """Turns text into the word pieces of BERT.

    `[CLS] first [SEP]` is the input of one text, `[CLS] first [SEP] second [SEP]` that of a pair.

    Args:
        vocab_file: the vocabulary, one token a line; or the tokens themselves, in order of their ids.
        do_lower_case: whether to lower-case; must be as the vocabulary was made.
        do_basic_tokenize: whether to clean the text and split it at punctuation; without it words are what stands
            between white space, and nothing is lower-cased.
        never_split: words that are kept whole and in their case, also beside punctuation, in addition to the special
            tokens; one that begins or ends in a letter or digit is found as a whole word only.
        unk_token: stands for a word that cannot be made of pieces of the vocabulary.
        sep_token: ends each text.
        pad_token: fills short rows.
        cls_token: begins the input.
        mask_token: stands for a word to be guessed.
        tokenize_chinese_chars: whether each CJK ideograph is a word of its own.
        strip_accents: whether accents are dropped; None does as `do_lower_case` says.
        max_input_chars_per_word: longest word in characters that is tried; a longer one is unknown.
        bos_token: a role that BERT does not use.
        eos_token: a role that BERT does not use.
        **common: the options of every tokenizer, see `TokensAndIds`.

    Raises:
        OSError: the vocabulary cannot be read.
        TypeError: there is no option of that name, or it has a value of another type.
        ValueError: the vocabulary is no UTF-8 text or lacks the unknown token, or an option has a value that it cannot
            have.
    """

    vocab_files_names: ClassVar[Mapping[str, str]] = VOCAB_FILES_NAMES
    pretrained_repositories: ClassVar[Mapping[str, str]] = REPOSITORIES

    def __init__(
        self,
        vocab_file: str | os.PathLike[str] | Sequence[str],
        do_lower_case: bool = True,
        do_basic_tokenize: bool = True,
        never_split: Iterable[str] | None = None,
        unk_token: str | None = "[UNK]",
        sep_token: str | None = "[SEP]",
        pad_token: str | None = "[PAD]",
        cls_token: str | None = "[CLS]",
        mask_token: str | None = "[MASK]",
        tokenize_chinese_chars: bool = True,
        *,
        strip_accents: bool | None = None,
        max_input_chars_per_word: int = 100,
        bos_token: str | None = None,
        eos_token: str | None = None,
        **common: "Unpack[CommonOptions]",
    ) -> None:
        if isinstance(never_split, str):
            raise TypeError("never_split must be a list of words, not one string")
        never_split = list(never_split or ())
        tokens, description = tokens_of(vocab_file)
        self._vocab = index_tokens(tokens, description)
        self._do_basic_tokenize = checked_flag("do_basic_tokenize", do_basic_tokenize)
        self._max_input_chars_per_word = checked_count("max_input_chars_per_word", max_input_chars_per_word, least=1)
        self.basic_tokenizer = BasicTokenizer(
            do_lower_case, never_split, tokenize_chinese_chars, strip_accents=strip_accents
        )
        super().__init__(
            self._vocab,
            tokens,
            never_split=never_split,
            options={
                "do_lower_case": do_lower_case,
                "do_basic_tokenize": do_basic_tokenize,
                "never_split": never_split,
                "tokenize_chinese_chars": tokenize_chinese_chars,
                "strip_accents": strip_accents,
                "max_input_chars_per_word": self._max_input_chars_per_word,
            },
            bos_token=bos_token,
            eos_token=eos_token,
            unk_token=unk_token,
            sep_token=sep_token,
            pad_token=pad_token,
            cls_token=cls_token,
            mask_token=mask_token,
            **common,
        )

    @property
    def do_lower_case(self) -> bool:
        """Whether text is lower-cased."""
        return self.basic_tokenizer.do_lower_case

    @property
    def vocab(self) -> Mapping[str, int]:
        """Token -> id of the vocabulary, without added tokens."""
        return self._vocab

    @property
    def ids_to_tokens(self) -> Mapping[int, str]:
        """Id -> token of the vocabulary, without added tokens."""
        return TokensById(self._table.tokens)

    def _make_reference(self) -> WordPieceReference:
        unknown = self._table.roles["unk_token"]
        if unknown not in self._vocab:
            raise ValueError(
                f"the vocabulary has no unknown token {unknown!r}, so words that are not in it cannot be written; name "
                "the right one with unk_token, or add it to the vocabulary"
            )
        self.wordpiece_tokenizer = WordpieceTokenizer(self._vocab, unknown, self._max_input_chars_per_word)
        basic = self.basic_tokenizer if self._do_basic_tokenize else None
        return WordPieceReference(self._vocab, self.wordpiece_tokenizer, basic)

    def _stored_form(self, token: str) -> str:
        return token.lower() if self._do_basic_tokenize and self.do_lower_case else token

    def special_layout(self) -> Layout:
        """Gives `[CLS]` before the first text and `[SEP]` after each.

        Raises:
            ValueError: one of the two tokens was taken away.
        """
        cls_id, sep_id = self.cls_token_id, self.sep_token_id
        if cls_id is None or sep_id is None:
            raise ValueError("an input of BERT needs cls_token and sep_token; set them, or add_special_tokens=False")
        return Layout((cls_id,), (sep_id,), (sep_id,))

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """Joins word pieces to text.

        Args:
            tokens: the word pieces.
        """
        return " ".join(tokens).replace(f" {CONTINUATION}", "").strip()

    def save_vocabulary(self, save_directory: str | os.PathLike[str]) -> tuple[str, ...]:
        """Writes the vocabulary, one token a line, without added tokens.

        Args:
            save_directory: an existing folder, where the file is `vocab.txt`, or the path of the file itself.

        Returns:
            The path written.

        Raises:
            OSError: it cannot be written.
        """
        path = Path(save_directory)
        path = path / VOCAB_FILES_NAMES["vocab_file"] if path.is_dir() else path
        return (str(save_tokens(self._table.tokens, path)),)

    @classmethod
    def _read_library_file(cls, path: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        content = read_wordpiece(path, cls.__name__)
        return {"vocab_file": content.tokens}, content.options

    @classmethod
    def _published_options(cls, name: str) -> Mapping[str, Any]:
        if name not in DO_LOWER_CASE:
            return {}
        return {"do_lower_case": DO_LOWER_CASE[name], "model_max_length": MAX_POSITIONS}

    def _check_loaded(self, given: Iterable[str]) -> None:
        if "do_lower_case" in given or not (self._do_basic_tokenize and self.do_lower_case):
            return
        # Letters such as the double-struck R are capitals too, but lower-casing leaves them alone.
        capitals = [token for token in self._vocab if token[:1] != token[:1].lower()]
        if capitals:
            logger.warning(
                "the tokenizer lower-cases, but %d tokens of its vocabulary begin with a capital (%s): it looks like a "
                "cased vocabulary, for which do_lower_case=False is right. Pass do_lower_case to say which it is.",
                len(capitals),
                ", ".join(map(repr, capitals[:3])),
            )
