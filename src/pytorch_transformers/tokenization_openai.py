"""The OpenAI GPT tokenizer under the module name of the published package."""

from .models.openai_gpt.tokenizer import (
    PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES,
    PRETRAINED_VOCAB_FILES_MAP,
    OpenAIGPTTokenizer,
)
from .tokenizers.basic import BasicTokenizer
from .tokenizers.bpe_tokenizer import VOCAB_FILES_NAMES
from .tokenizers.standardize import text_standardize

__all__ = [
    "PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES",
    "PRETRAINED_VOCAB_FILES_MAP",
    "VOCAB_FILES_NAMES",
    "BasicTokenizer",
    "OpenAIGPTTokenizer",
    "text_standardize",
]
