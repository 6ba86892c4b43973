"""The BERT tokenizer under the module name of the published package."""

from .models.bert.tokenizer import (
    PRETRAINED_INIT_CONFIGURATION,
    PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES,
    PRETRAINED_VOCAB_FILES_MAP,
    VOCAB_FILES_NAMES,
    BertTokenizer,
)
from .tokenizers.basic import BasicTokenizer, whitespace_tokenize
from .tokenizers.vocab import load_vocab
from .tokenizers.wordpiece import WordpieceTokenizer

__all__ = [
    "PRETRAINED_INIT_CONFIGURATION",
    "PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES",
    "PRETRAINED_VOCAB_FILES_MAP",
    "VOCAB_FILES_NAMES",
    "BasicTokenizer",
    "BertTokenizer",
    "WordpieceTokenizer",
    "load_vocab",
    "whitespace_tokenize",
]
