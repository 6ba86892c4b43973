"""The OpenAI GPT models under the module name of the published package."""

from .models.decoder import Attention
from .models.openai_gpt.config import OpenAIGPTConfig
from .models.openai_gpt.heads import OpenAIGPTDoubleHeadsModel, OpenAIGPTLMHeadModel
from .models.openai_gpt.model import (
    ACT_FNS,
    MLP,
    Block,
    OpenAIGPTModel,
    OpenAIGPTPreTrainedModel,
)
from .models.openai_gpt.pretrained import (
    OPENAI_GPT_PRETRAINED_CONFIG_ARCHIVE_MAP,
    OPENAI_GPT_PRETRAINED_MODEL_ARCHIVE_MAP,
)
from .models.original import load_tf_weights as load_tf_weights_in_openai_gpt
from .nn.activations import gelu_tanh as gelu
from .nn.activations import swish
from .nn.layers import Conv1D, prune_conv1d_layer

__all__ = [
    "ACT_FNS",
    "MLP",
    "OPENAI_GPT_PRETRAINED_CONFIG_ARCHIVE_MAP",
    "OPENAI_GPT_PRETRAINED_MODEL_ARCHIVE_MAP",
    "Attention",
    "Block",
    "Conv1D",
    "OpenAIGPTConfig",
    "OpenAIGPTDoubleHeadsModel",
    "OpenAIGPTLMHeadModel",
    "OpenAIGPTModel",
    "OpenAIGPTPreTrainedModel",
    "gelu",
    "load_tf_weights_in_openai_gpt",
    "prune_conv1d_layer",
    "swish",
]
