"""The auto class of tokenizers under the module name of the published package."""

from .models.auto import AutoTokenizer

__all__ = ["AutoTokenizer"]
