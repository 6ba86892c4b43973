"""The auto classes under the module name of the published package."""

from .models.auto import (
    AutoConfig,
    AutoModel,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelWithLMHead,
)

__all__ = [
    "AutoConfig",
    "AutoModel",
    "AutoModelForQuestionAnswering",
    "AutoModelForSequenceClassification",
    "AutoModelWithLMHead",
]
