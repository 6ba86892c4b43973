"""Conversion of a checkpoint or a corpus of Transformer-XL under the module name of the published package."""

from .files import CONFIG_NAME, WEIGHTS_NAME
from .models.original import load_tf_weights as load_tf_weights_in_transfo_xl
from .models.transfo_xl.config import TransfoXLConfig
from .models.transfo_xl.convert import convert_transfo_xl_checkpoint_to_pytorch
from .models.transfo_xl.corpus import CORPUS_NAME
from .models.transfo_xl.heads import TransfoXLLMHeadModel
from .models.transfo_xl.vocabulary_files import VOCAB_FILES_NAMES

__all__ = [
    "CONFIG_NAME",
    "CORPUS_NAME",
    "VOCAB_FILES_NAMES",
    "WEIGHTS_NAME",
    "TransfoXLConfig",
    "TransfoXLLMHeadModel",
    "convert_transfo_xl_checkpoint_to_pytorch",
    "load_tf_weights_in_transfo_xl",
]
