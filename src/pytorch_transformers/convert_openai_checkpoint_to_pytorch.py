"""Conversion of a checkpoint of OpenAI GPT in NumPy files under the module name of the published package."""

from .files import CONFIG_NAME, WEIGHTS_NAME
from .models.openai_gpt.config import OpenAIGPTConfig
from .models.openai_gpt.convert import convert_openai_checkpoint_to_pytorch
from .models.openai_gpt.model import OpenAIGPTModel
from .models.original import load_tf_weights as load_tf_weights_in_openai_gpt

__all__ = [
    "CONFIG_NAME",
    "WEIGHTS_NAME",
    "OpenAIGPTConfig",
    "OpenAIGPTModel",
    "convert_openai_checkpoint_to_pytorch",
    "load_tf_weights_in_openai_gpt",
]
