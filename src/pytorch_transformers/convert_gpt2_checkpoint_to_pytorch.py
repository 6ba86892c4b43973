"""Conversion of a TensorFlow checkpoint of GPT-2 under the module name of the published package."""

from .files import CONFIG_NAME, WEIGHTS_NAME
from .models.gpt2.config import GPT2Config
from .models.gpt2.convert import convert_gpt2_checkpoint_to_pytorch
from .models.gpt2.model import GPT2Model
from .models.original import load_tf_weights as load_tf_weights_in_gpt2

__all__ = [
    "CONFIG_NAME",
    "WEIGHTS_NAME",
    "GPT2Config",
    "GPT2Model",
    "convert_gpt2_checkpoint_to_pytorch",
    "load_tf_weights_in_gpt2",
]
