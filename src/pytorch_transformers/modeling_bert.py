"""The BERT models under the module name of the published package."""

from .models.bert.config import BertConfig
from .models.bert.heads import (
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertLMPredictionHead,
    BertOnlyMLMHead,
    BertOnlyNSPHead,
    BertPredictionHeadTransform,
    BertPreTrainingHeads,
)
from .models.bert.model import (
    BertAttention,
    BertEmbeddings,
    BertEncoder,
    BertIntermediate,
    BertLayer,
    BertModel,
    BertOutput,
    BertPooler,
    BertPreTrainedModel,
    BertSelfAttention,
    BertSelfOutput,
)
from .models.bert.pretrained import BERT_PRETRAINED_CONFIG_ARCHIVE_MAP, BERT_PRETRAINED_MODEL_ARCHIVE_MAP
from .models.original import load_tf_weights as load_tf_weights_in_bert
from .nn.activations import ACTIVATIONS as ACT2FN
from .nn.activations import gelu, swish
from .nn.pruning import prune_linear_layer

__all__ = [
    "ACT2FN",
    "BERT_PRETRAINED_CONFIG_ARCHIVE_MAP",
    "BERT_PRETRAINED_MODEL_ARCHIVE_MAP",
    "BertAttention",
    "BertConfig",
    "BertEmbeddings",
    "BertEncoder",
    "BertForMaskedLM",
    "BertForMultipleChoice",
    "BertForNextSentencePrediction",
    "BertForPreTraining",
    "BertForQuestionAnswering",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertIntermediate",
    "BertLMPredictionHead",
    "BertLayer",
    "BertModel",
    "BertOnlyMLMHead",
    "BertOnlyNSPHead",
    "BertOutput",
    "BertPooler",
    "BertPreTrainedModel",
    "BertPreTrainingHeads",
    "BertPredictionHeadTransform",
    "BertSelfAttention",
    "BertSelfOutput",
    "gelu",
    "load_tf_weights_in_bert",
    "prune_linear_layer",
    "swish",
]
