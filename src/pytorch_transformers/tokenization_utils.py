"""The base of all tokenizers under the module name of the published package."""

from .tokenizers.base import PreTrainedTokenizer
from .tokenizers.loading import ADDED_TOKENS_FILE, SPECIAL_TOKENS_MAP_FILE, TOKENIZER_CONFIG_FILE

__all__ = ["ADDED_TOKENS_FILE", "SPECIAL_TOKENS_MAP_FILE", "TOKENIZER_CONFIG_FILE", "PreTrainedTokenizer"]
