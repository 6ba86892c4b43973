"""Conversion of a TensorFlow checkpoint of BERT under the module name of the published package."""

from .models.bert.convert import convert_tf_checkpoint_to_pytorch

__all__ = ["convert_tf_checkpoint_to_pytorch"]
