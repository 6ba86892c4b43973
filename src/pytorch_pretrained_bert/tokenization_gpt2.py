"""The tokenizer of GPT-2 as 0.6.2 had it, of the byte pairs in `pytorch_transformers`.

One thing is mended: 0.6.2 failed on most characters beyond ASCII and took the others for bytes of their own; here a
text is its bytes in UTF-8, as in the original, and comes back: `decode(encode(text)) == text`.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, Final

from pytorch_transformers.models.gpt2.pretrained import MAX_POSITIONS, REPOSITORIES
from pytorch_transformers.tokenizers.byte_level import (
    BYTE_TO_CHAR,
    CHAR_TO_BYTE,
    piece_pattern,
    to_bytes,
    to_symbols,
    to_text,
)

from .archives import GPT2_MERGES as PRETRAINED_MERGES_ARCHIVE_MAP
from .archives import GPT2_VOCABULARIES as PRETRAINED_VOCAB_ARCHIVE_MAP
from .classic_bpe import MERGES_NAME, SPECIAL_TOKENS_NAME, VOCAB_NAME, ClassicBPETokenizer, get_pairs
from .classic_cache import Folder
from .file_utils import cached_path
from .tokenization import check_text

__all__ = [
    "MERGES_NAME",
    "PRETRAINED_MERGES_ARCHIVE_MAP",
    "PRETRAINED_VOCAB_ARCHIVE_MAP",
    "PRETRAINED_VOCAB_POSITIONAL_EMBEDDINGS_SIZE_MAP",
    "SPECIAL_TOKENS_NAME",
    "VOCAB_NAME",
    "GPT2Tokenizer",
    "bytes_to_unicode",
    "cached_path",
    "get_pairs",
]

#: Shortcut name -> longest input in tokens.
PRETRAINED_VOCAB_POSITIONAL_EMBEDDINGS_SIZE_MAP: Final[Mapping[str, int]] = dict.fromkeys(
    PRETRAINED_VOCAB_ARCHIVE_MAP, MAX_POSITIONS
)


def bytes_to_unicode() -> dict[int, str]:
    """Byte -> the character that stands for it in the vocabulary."""
    return dict(enumerate(BYTE_TO_CHAR))


class GPT2Tokenizer(ClassicBPETokenizer):
    """Turns text into the byte pairs of GPT-2, and back.

    A token that is not in the vocabulary gets the id 0, which is that of `!`: `convert_tokens_to_ids` is for tokens
    that `tokenize` gave, or special ones.

    Args:
        vocab_file: The vocabulary, a JSON file.
        merges_file: The merges, one a line.
        errors: What `decode` does with bytes that are no UTF-8, as for `bytes.decode`.
        special_tokens: See `set_special_tokens`.
        max_len: Longest input in tokens. Longer ones are not cut: `convert_tokens_to_ids` warns.

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
        errors: str = "replace",
        special_tokens: Sequence[str] | None = None,
        max_len: int | None = None,
    ) -> None:
        self.errors = errors
        self.byte_encoder = bytes_to_unicode()
        self.byte_decoder = dict(CHAR_TO_BYTE)
        super().__init__(vocab_file, merges_file, special_tokens, max_len)

    @property
    def pat(self) -> Any:
        """The compiled pattern of the pieces that texts are divided into."""
        return piece_pattern()

    def _symbols(self, word: str) -> Sequence[str]:
        return self._merges.join(word)

    def tokenize(self, text: str) -> list[str]:
        """See `ClassicBPETokenizer.tokenize`; tokens are in the characters that stand for bytes.

        Raises:
            TypeError: It is no text.
        """
        check_text(text)
        bpe = self.bpe
        return [token for piece in self.pat.findall(text) for token in bpe(to_symbols(piece)).split(" ")]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text that ids were made of. 0.6.2 failed on those of special tokens.

        Args:
            tokens: The ids.

        Raises:
            KeyError: No token has one of the ids.
        """
        ids = [int(number) for number in tokens]
        found = zip(ids, self.convert_ids_to_tokens(ids), strict=True)
        # Bytes are joined before they are decoded: a character may be divided between tokens.
        return "".join(
            "".join(token for _, token in part)
            if special
            else to_text(b"".join(to_bytes(token) for _, token in part), self.errors)
            for special, part in groupby(found, key=lambda each: each[0] in self.special_tokens_decoder)
        )
