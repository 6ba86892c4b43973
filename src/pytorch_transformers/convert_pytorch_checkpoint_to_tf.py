"""Conversion of a BERT model to a TensorFlow checkpoint under the module name of the published package."""

from .models.bert.convert import convert_pytorch_checkpoint_to_tf

__all__ = ["convert_pytorch_checkpoint_to_tf"]
