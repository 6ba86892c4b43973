# The one table of public names; `__init__.py` turns it into lazy imports.

from .data.features import FeatureExtractor as FeatureExtractor
from .files import CONFIG_NAME as CONFIG_NAME
from .files import WEIGHTS_NAME as WEIGHTS_NAME
from .generation.options import GenerationOptions as GenerationOptions
from .generation.perplexity import perplexity as perplexity
from .generation.results import GenerationOutput as GenerationOutput
from .generation.text import TextGenerator as TextGenerator
from .hub.paths import cached_path as cached_path
from .modeling_bert import load_tf_weights_in_bert as load_tf_weights_in_bert
from .modeling_gpt2 import load_tf_weights_in_gpt2 as load_tf_weights_in_gpt2
from .modeling_openai import load_tf_weights_in_openai_gpt as load_tf_weights_in_openai_gpt
from .modeling_transfo_xl import load_tf_weights_in_transfo_xl as load_tf_weights_in_transfo_xl
from .models.auto import AutoConfig as AutoConfig
from .models.auto import AutoModel as AutoModel
from .models.auto import AutoModelForQuestionAnswering as AutoModelForQuestionAnswering
from .models.auto import AutoModelForSequenceClassification as AutoModelForSequenceClassification
from .models.auto import AutoModelWithLMHead as AutoModelWithLMHead
from .models.auto import AutoTokenizer as AutoTokenizer
from .models.base import PreTrainedModel as PreTrainedModel
from .models.bert.config import BertConfig as BertConfig
from .models.bert.heads import BertForMaskedLM as BertForMaskedLM
from .models.bert.heads import BertForMultipleChoice as BertForMultipleChoice
from .models.bert.heads import BertForNextSentencePrediction as BertForNextSentencePrediction
from .models.bert.heads import BertForPreTraining as BertForPreTraining
from .models.bert.heads import BertForQuestionAnswering as BertForQuestionAnswering
from .models.bert.heads import BertForSequenceClassification as BertForSequenceClassification
from .models.bert.heads import BertForTokenClassification as BertForTokenClassification
from .models.bert.model import BertModel as BertModel
from .models.bert.model import BertPreTrainedModel as BertPreTrainedModel
from .models.bert.pretrained import BERT_PRETRAINED_CONFIG_ARCHIVE_MAP as BERT_PRETRAINED_CONFIG_ARCHIVE_MAP
from .models.bert.pretrained import BERT_PRETRAINED_MODEL_ARCHIVE_MAP as BERT_PRETRAINED_MODEL_ARCHIVE_MAP
from .models.bert.tokenizer import BertTokenizer as BertTokenizer
from .models.config import PretrainedConfig as PretrainedConfig
from .models.gpt2.config import GPT2Config as GPT2Config
from .models.gpt2.heads import GPT2DoubleHeadsModel as GPT2DoubleHeadsModel
from .models.gpt2.heads import GPT2LMHeadModel as GPT2LMHeadModel
from .models.gpt2.model import GPT2Model as GPT2Model
from .models.gpt2.model import GPT2PreTrainedModel as GPT2PreTrainedModel
from .models.gpt2.pretrained import GPT2_PRETRAINED_CONFIG_ARCHIVE_MAP as GPT2_PRETRAINED_CONFIG_ARCHIVE_MAP
from .models.gpt2.pretrained import GPT2_PRETRAINED_MODEL_ARCHIVE_MAP as GPT2_PRETRAINED_MODEL_ARCHIVE_MAP
from .models.gpt2.tokenizer import GPT2Tokenizer as GPT2Tokenizer
from .models.openai_gpt.config import OpenAIGPTConfig as OpenAIGPTConfig
from .models.openai_gpt.heads import OpenAIGPTDoubleHeadsModel as OpenAIGPTDoubleHeadsModel
from .models.openai_gpt.heads import OpenAIGPTLMHeadModel as OpenAIGPTLMHeadModel
from .models.openai_gpt.model import OpenAIGPTModel as OpenAIGPTModel
from .models.openai_gpt.model import OpenAIGPTPreTrainedModel as OpenAIGPTPreTrainedModel
from .models.openai_gpt.pretrained import (
    OPENAI_GPT_PRETRAINED_CONFIG_ARCHIVE_MAP as OPENAI_GPT_PRETRAINED_CONFIG_ARCHIVE_MAP,
)
from .models.openai_gpt.pretrained import (
    OPENAI_GPT_PRETRAINED_MODEL_ARCHIVE_MAP as OPENAI_GPT_PRETRAINED_MODEL_ARCHIVE_MAP,
)
from .models.openai_gpt.tokenizer import OpenAIGPTTokenizer as OpenAIGPTTokenizer
from .models.outputs import BaseModelOutputWithPast as BaseModelOutputWithPast
from .models.outputs import BaseModelOutputWithPooling as BaseModelOutputWithPooling
from .models.outputs import BertForPreTrainingOutput as BertForPreTrainingOutput
from .models.outputs import CausalLMOutput as CausalLMOutput
from .models.outputs import DoubleHeadsModelOutput as DoubleHeadsModelOutput
from .models.outputs import MaskedLMOutput as MaskedLMOutput
from .models.outputs import ModelOutput as ModelOutput
from .models.outputs import MultipleChoiceModelOutput as MultipleChoiceModelOutput
from .models.outputs import NextSentencePredictorOutput as NextSentencePredictorOutput
from .models.outputs import QuestionAnsweringModelOutput as QuestionAnsweringModelOutput
from .models.outputs import SequenceClassifierOutput as SequenceClassifierOutput
from .models.outputs import TokenClassifierOutput as TokenClassifierOutput
from .models.outputs import TransfoXLLMHeadModelOutput as TransfoXLLMHeadModelOutput
from .models.outputs import TransfoXLModelOutput as TransfoXLModelOutput
from .models.transfo_xl.config import TransfoXLConfig as TransfoXLConfig
from .models.transfo_xl.corpus import TransfoXLCorpus as TransfoXLCorpus
from .models.transfo_xl.evaluation import evaluate as evaluate
from .models.transfo_xl.heads import TransfoXLLMHeadModel as TransfoXLLMHeadModel
from .models.transfo_xl.memory import TransfoXLCache as TransfoXLCache
from .models.transfo_xl.model import TransfoXLModel as TransfoXLModel
from .models.transfo_xl.model import TransfoXLPreTrainedModel as TransfoXLPreTrainedModel
from .models.transfo_xl.pretrained import (
    TRANSFO_XL_PRETRAINED_CONFIG_ARCHIVE_MAP as TRANSFO_XL_PRETRAINED_CONFIG_ARCHIVE_MAP,
)
from .models.transfo_xl.pretrained import (
    TRANSFO_XL_PRETRAINED_MODEL_ARCHIVE_MAP as TRANSFO_XL_PRETRAINED_MODEL_ARCHIVE_MAP,
)
from .models.transfo_xl.tokenizer import TransfoXLTokenizer as TransfoXLTokenizer
from .nn.cache import KeyValueCache as KeyValueCache
from .optim.adam import AdamW as AdamW
from .optim.groups import parameter_groups as parameter_groups
from .optim.schedules import ConstantLRSchedule as ConstantLRSchedule
from .optim.schedules import WarmupConstantSchedule as WarmupConstantSchedule
from .optim.schedules import WarmupCosineSchedule as WarmupCosineSchedule
from .optim.schedules import WarmupCosineWithHardRestartsSchedule as WarmupCosineWithHardRestartsSchedule
from .optim.schedules import WarmupLinearSchedule as WarmupLinearSchedule
from .tokenizers.base import PreTrainedTokenizer as PreTrainedTokenizer
from .tokenizers.basic import BasicTokenizer as BasicTokenizer
from .tokenizers.encoding import BatchEncoding as BatchEncoding
from .tokenizers.wordpiece import WordpieceTokenizer as WordpieceTokenizer

__version__: str
