"""The tokenizer of OpenAI GPT: its special tokens, its files and its quirks; the algorithms are in `tokenizers/`.

Source: openai/finetune-transformer-lm, text_utils.py (`TextEncoder`) and train.py (where the tokens of a task stand).
Surprising: the model learned from words that ftfy and spaCy made. Where one of them is missing, words are split as BERT
does, as in the published packages, and a few texts have other ids; it is said once, and `use_spacy` decides. Text comes
back in lower case, with the spaces of `text_standardize`. There is no token to fill rows with, none for the beginning
or end: a task adds its own, which stand behind the vocabulary.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ...tokenizers.bpe_files import MergesSource, VocabSource
from ...tokenizers.bpe_tokenizer import BPETokenizer
from ...tokenizers.engine import Engine
from ...tokenizers.joiner import WORD_END, LetterJoiner
from ...tokenizers.letter_reference import LetterReference, letter_engine
from ...tokenizers.library_file import Accepted, read_bpe
from ...tokenizers.options import EngineName, checked_flag
from ...tokenizers.standardize import BasicWords, SpacyWords
from ..warn import warn_once
from .pretrained import (
    MAX_POSITIONS,
    OPENAI_GPT_PRETRAINED_MERGES_ARCHIVE_MAP,
    OPENAI_GPT_PRETRAINED_VOCAB_ARCHIVE_MAP,
    REPOSITORIES,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ...tokenizers.options import CommonOptions

#: Argument of the constructor -> name of its file in the original program.
ORIGINAL_FILES_NAMES: Final[Mapping[str, str]] = {
    "vocab_file": "encoder_bpe_40000.json",
    "merges_file": "vocab_40000.bpe",
}
#: Argument of the constructor -> shortcut name -> address of the file.
PRETRAINED_VOCAB_FILES_MAP: Final[Mapping[str, Mapping[str, str]]] = {
    "vocab_file": OPENAI_GPT_PRETRAINED_VOCAB_ARCHIVE_MAP,
    "merges_file": OPENAI_GPT_PRETRAINED_MERGES_ARCHIVE_MAP,
}
#: Shortcut name -> longest input in tokens.
PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES: Final[Mapping[str, int]] = dict.fromkeys(REPOSITORIES, MAX_POSITIONS)
#: What the way from text to words needs besides; the extra `gpt` installs them.
WORD_PACKAGES: Final = ("ftfy", "spacy")
#: What `tokenizer.json` may say; see `Accepted`.
_ACCEPTED: Final[Accepted] = {
    "normalizer": {
        "type": ("BertNormalizer",),
        "clean_text": (None, True),
        "handle_chinese_chars": (None, True),
        "strip_accents": (None, True),
        "lowercase": (True,),
    },
    "pre_tokenizer": {"type": ("BertPreTokenizer",)},
    "model": {"end_of_word_suffix": (WORD_END,)},
    "post_processor": {"type": (None,)},
}


class OpenAIGPTTokenizer(BPETokenizer):
    """Turns text into the byte pairs of OpenAI GPT.

    No special tokens are put around texts.

    Args:
        vocab_file: the vocabulary, a JSON file, or token -> id itself.
        merges_file: the merges, one a line, or a list of them.
        unk_token: stands for what is not in the vocabulary.
        use_spacy: whether ftfy and spaCy split texts into words, as the model learned; False splits as BERT does, None
            if one of them is not installed.
        special_tokens: special tokens to stand behind the vocabulary, see `set_special_tokens`.
        bos_token: begins a text; there is none unless one is given.
        eos_token: ends a text; there is none unless one is given.
        sep_token: stands between texts; there is none unless one is given.
        pad_token: fills short rows; there is none unless one is given.
        cls_token: stands where a classifier looks; there is none unless one is given.
        mask_token: a role that OpenAI GPT does not use.
        **common: the options of every tokenizer, see `TokensAndIds`.

    Raises:
        ImportError: `use_spacy` is True, and ftfy or spaCy is not installed.
        OSError: a file cannot be read.
        TypeError: there is no option of that name, or it has a value of another type.
        ValueError: a file does not hold what it should, the two do not fit each other, or an option has a value that
            it cannot have.
    """

    other_files_names: ClassVar[tuple[Mapping[str, str], ...]] = (ORIGINAL_FILES_NAMES,)
    pretrained_repositories: ClassVar[Mapping[str, str]] = REPOSITORIES

    def __init__(
        self,
        vocab_file: VocabSource,
        merges_file: MergesSource,
        unk_token: str | None = "<unk>",
        *,
        use_spacy: bool | None = None,
        special_tokens: Sequence[str] | None = None,
        bos_token: str | None = None,
        eos_token: str | None = None,
        sep_token: str | None = None,
        pad_token: str | None = None,
        cls_token: str | None = None,
        mask_token: str | None = None,
        **common: "Unpack[CommonOptions]",
    ) -> None:
        self._words = _words(None if use_spacy is None else checked_flag("use_spacy", use_spacy))
        super().__init__(
            vocab_file,
            merges_file,
            options={"use_spacy": use_spacy},
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

    @property
    def uses_spacy(self) -> bool:
        """Whether ftfy and spaCy split texts into words."""
        return isinstance(self._words, SpacyWords)

    def _make_joiner(self, unknown: int | None) -> LetterJoiner:
        return LetterJoiner(self._vocab, self._merges, unknown)

    def _make_reference(self) -> LetterReference:
        self._letters = LetterReference(self._make_joiner(self._unknown_id), self._words)
        return self._letters

    def _make_engine(self, name: EngineName) -> Engine:
        return letter_engine(name, self._letters)

    def _stored_form(self, token: str) -> str:
        return token.lower()

    def bpe(self, token: str) -> str:
        """Joins the letters of a word, and puts spaces between the tokens that they become.

        Args:
            token: the word, in lower case.
        """
        return " ".join(self._letters.joiner.tokens(token))

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """Joins tokens of the vocabulary to text.

        Args:
            tokens: the tokens.
        """
        return "".join(tokens).replace(WORD_END, " ").strip()

    @classmethod
    def _read_library_file(cls, path: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        content = read_bpe(path, cls.__name__, _ACCEPTED)
        # The file itself says that words are split as BERT does.
        return {"vocab_file": content.vocab, "merges_file": content.merges}, {"use_spacy": False, **content.options}

    @classmethod
    def _published_options(cls, name: str) -> Mapping[str, Any]:
        return {"model_max_length": MAX_POSITIONS} if name in REPOSITORIES else {}


def _words(use_spacy: bool | None) -> BasicWords | SpacyWords:
    """Gives what splits texts.

    Raises:
        ImportError: a package that was asked for is not installed.
    """
    missing = [name for name in WORD_PACKAGES if importlib.util.find_spec(name) is None]
    if use_spacy is False:
        return BasicWords()
    if not missing:
        return SpacyWords()
    hint = f"{' and '.join(missing)} not installed; pip install 'pytorch-transformers[gpt]'"
    if use_spacy:
        raise ImportError(f"use_spacy=True, but there is {hint}")
    warn_once(
        f"OpenAIGPTTokenizer splits texts into words as BERT does, not as the model learned them, for there is {hint}. "
        "use_spacy=False says that this is right"
    )
    return BasicWords()
