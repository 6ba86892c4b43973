"""The GPT-2 models under the module name of the published package."""

from .models.decoder import Attention
from .models.gpt2.config import GPT2Config
from .models.gpt2.heads import GPT2DoubleHeadsModel, GPT2LMHeadModel
from .models.gpt2.model import MLP, Block, GPT2Model, GPT2PreTrainedModel
from .models.gpt2.pretrained import GPT2_PRETRAINED_CONFIG_ARCHIVE_MAP, GPT2_PRETRAINED_MODEL_ARCHIVE_MAP
from .models.original import load_tf_weights as load_tf_weights_in_gpt2
from .nn.activations import gelu_tanh as gelu
from .nn.layers import Conv1D, prune_conv1d_layer

__all__ = [
    "GPT2_PRETRAINED_CONFIG_ARCHIVE_MAP",
    "GPT2_PRETRAINED_MODEL_ARCHIVE_MAP",
    "MLP",
    "Attention",
    "Block",
    "Conv1D",
    "GPT2Config",
    "GPT2DoubleHeadsModel",
    "GPT2LMHeadModel",
    "GPT2Model",
    "GPT2PreTrainedModel",
    "gelu",
    "load_tf_weights_in_gpt2",
    "prune_conv1d_layer",
]
