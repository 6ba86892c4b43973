"""The tokenizer of OpenAI GPT as 0.6.2 had it, of the words and byte pairs in `pytorch_transformers`."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Final

from pytorch_transformers.models.openai_gpt.pretrained import MAX_POSITIONS, REPOSITORIES
from pytorch_transformers.models.openai_gpt.tokenizer import WORD_PACKAGES
from pytorch_transformers.tokenizers.base import CLEAN_UP
from pytorch_transformers.tokenizers.joiner import WORD_END, LetterJoiner
from pytorch_transformers.tokenizers.standardize import SpacyWords, text_standardize

from .archives import OPENAI_GPT_MERGES as PRETRAINED_MERGES_ARCHIVE_MAP
from .archives import OPENAI_GPT_VOCABULARIES as PRETRAINED_VOCAB_ARCHIVE_MAP
from .classic_bpe import MERGES_NAME, SPECIAL_TOKENS_NAME, VOCAB_NAME, ClassicBPETokenizer, get_pairs
from .classic_cache import Folder
from .file_utils import cached_path
from .tokenization import BasicTokenizer, check_text

__all__ = [
    "MERGES_NAME",
    "PRETRAINED_MERGES_ARCHIVE_MAP",
    "PRETRAINED_VOCAB_ARCHIVE_MAP",
    "PRETRAINED_VOCAB_POSITIONAL_EMBEDDINGS_SIZE_MAP",
    "SPECIAL_TOKENS_NAME",
    "VOCAB_NAME",
    "BasicTokenizer",
    "OpenAIGPTTokenizer",
    "cached_path",
    "get_pairs",
    "text_standardize",
]

logger = logging.getLogger(__name__)

#: Shortcut name -> longest input in tokens.
PRETRAINED_VOCAB_POSITIONAL_EMBEDDINGS_SIZE_MAP: Final[Mapping[str, int]] = dict.fromkeys(
    PRETRAINED_VOCAB_ARCHIVE_MAP, MAX_POSITIONS
)


class OpenAIGPTTokenizer(ClassicBPETokenizer):
    """Turns text into the byte pairs of OpenAI GPT, and back.

    Where ftfy and spaCy are installed they split texts into words, as the model learned; otherwise BERT's
    `BasicTokenizer` does. Special tokens are not looked for in a text: look up their ids, and put them between those of
    the text.

    Args:
        vocab_file: The vocabulary, a JSON file.
        merges_file: The merges, one a line.
        special_tokens: See `set_special_tokens`.
        max_len: Longest input in tokens. Longer ones are not cut: `convert_tokens_to_ids` warns.

    Attributes:
        nlp: What splits texts into words.
        fix_text: `ftfy.fix_text`, which mends texts before; None where BERT's tokenizer splits them.

    Raises:
        OSError: A file can't be read.
        ValueError: A file does not hold what it should.
    """

    addresses: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "vocab_file": PRETRAINED_VOCAB_ARCHIVE_MAP,
        "merges_file": PRETRAINED_MERGES_ARCHIVE_MAP,
    }
    repositories: ClassVar[Mapping[str, str]] = REPOSITORIES
    sizes: ClassVar[Mapping[str, int]] = PRETRAINED_VOCAB_POSITIONAL_EMBEDDINGS_SIZE_MAP

    def __init__(
        self,
        vocab_file: Folder,
        merges_file: Folder,
        special_tokens: Sequence[str] | None = None,
        max_len: int | None = None,
    ) -> None:
        missing = [name for name in WORD_PACKAGES if find_spec(name) is None]
        if missing:
            logger.warning(
                "%s not installed, so BERT's BasicTokenizer splits texts into words, not as the model learned; "
                "pip install 'pytorch-transformers[gpt]'",
                " and ".join(missing),
            )
        self.fix_text: Callable[[str], str] | None = None if missing else import_module("ftfy").fix_text
        self.nlp: Any = BasicTokenizer(do_lower_case=True, never_split=[]) if missing else SpacyWords()
        super().__init__(vocab_file, merges_file, special_tokens, max_len)

    def set_special_tokens(self, special_tokens: Sequence[str] | None) -> None:
        """See `ClassicBPETokenizer.set_special_tokens`."""
        super().set_special_tokens(special_tokens)
        if isinstance(self.nlp, BasicTokenizer):
            self.nlp.never_split = list(special_tokens or ())

    def _symbols(self, word: str) -> Sequence[str]:
        return LetterJoiner(self.encoder, self._merges, None).tokens(word)

    def tokenize(self, text: str) -> list[str]:
        """See `ClassicBPETokenizer.tokenize`; the last token of each word ends in `</w>`.

        Raises:
            TypeError: It is no text.
        """
        check_text(text)
        words = self.nlp.tokenize(text) if isinstance(self.nlp, BasicTokenizer) else self.nlp.words(text)
        bpe = self.bpe
        return [token for word in words for token in bpe(word).split(" ")]

    def decode(
        self, ids: Iterable[int], skip_special_tokens: bool = False, clean_up_tokenization_spaces: bool = True
    ) -> str:
        """Turn ids back into text.

        Args:
            ids: The ids.
            skip_special_tokens: Whether to leave out special tokens.
            clean_up_tokenization_spaces: Whether to take out unknown tokens and the spaces before punctuation and
                contractions; `do not` becomes `don't` then.

        Raises:
            KeyError: No token has one of the ids.
        """
        tokens = self.convert_ids_to_tokens(ids, skip_special_tokens=skip_special_tokens)
        text = "".join(tokens).replace(WORD_END, " ").strip()
        if not clean_up_tokenization_spaces:
            return text
        text = text.replace("<unk>", "")
        for spaced, joined in CLEAN_UP:
            text = text.replace(spaced, joined)
            if spaced == " 'm":  # the place that 0.6.2 has for it: the order matters
                text = text.replace(" do not", " don't")
        return text
