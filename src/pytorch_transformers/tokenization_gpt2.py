"""The GPT-2 tokenizer under the module name of the published package."""

from .models.gpt2.tokenizer import (
    PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES,
    PRETRAINED_VOCAB_FILES_MAP,
    GPT2Tokenizer,
)
from .tokenizers.bpe_tokenizer import VOCAB_FILES_NAMES

__all__ = [
    "PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES",
    "PRETRAINED_VOCAB_FILES_MAP",
    "VOCAB_FILES_NAMES",
    "GPT2Tokenizer",
]
