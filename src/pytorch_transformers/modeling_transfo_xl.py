"""The Transformer-XL models under the module name of the published package."""

from .models.original import load_tf_weights as load_tf_weights_in_transfo_xl
from .models.transfo_xl.adaptive_softmax import AdaptiveEmbedding, ProjectedAdaptiveLogSoftmax
from .models.transfo_xl.config import TransfoXLConfig
from .models.transfo_xl.heads import TransfoXLLMHeadModel
from .models.transfo_xl.model import TransfoXLModel, TransfoXLPreTrainedModel
from .models.transfo_xl.pretrained import (
    TRANSFO_XL_PRETRAINED_CONFIG_ARCHIVE_MAP,
    TRANSFO_XL_PRETRAINED_MODEL_ARCHIVE_MAP,
)
from .models.transfo_xl.relative_attention import (
    PositionalEmbedding,
    PositionwiseFF,
    RelPartialLearnableDecoderLayer,
    RelPartialLearnableMultiHeadAttn,
)

__all__ = [
    "TRANSFO_XL_PRETRAINED_CONFIG_ARCHIVE_MAP",
    "TRANSFO_XL_PRETRAINED_MODEL_ARCHIVE_MAP",
    "AdaptiveEmbedding",
    "PositionalEmbedding",
    "PositionwiseFF",
    "ProjectedAdaptiveLogSoftmax",
    "RelPartialLearnableDecoderLayer",
    "RelPartialLearnableMultiHeadAttn",
    "TransfoXLConfig",
    "TransfoXLLMHeadModel",
    "TransfoXLModel",
    "TransfoXLPreTrainedModel",
    "load_tf_weights_in_transfo_xl",
]
