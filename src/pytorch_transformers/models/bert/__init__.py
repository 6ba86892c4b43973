"""BERT: Bidirectional Encoder Representations from Transformers.

Paper: Devlin, Chang, Lee and Toutanova 2018, arXiv:1810.04805. Original code: google-research/bert (Apache-2.0).

Among its siblings it is the encoder: every token sees every other, words are masked and guessed, and each layer
normalises after the residual (post-norm). GPT and GPT-2 see only what came before.
"""

from typing import Final

from ..record import Family
from .config import BertConfig
from .pretrained import REPOSITORIES

FAMILY: Final = Family(
    name="bert",
    config_class=BertConfig,
    repositories=REPOSITORIES,
    classes={
        "model": "model:BertModel",
        "pre_training": "heads:BertForPreTraining",
        "masked_lm": "heads:BertForMaskedLM",
        "next_sentence": "heads:BertForNextSentencePrediction",
        "sequence_classification": "heads:BertForSequenceClassification",
        "multiple_choice": "heads:BertForMultipleChoice",
        "token_classification": "heads:BertForTokenClassification",
        "question_answering": "heads:BertForQuestionAnswering",
        "tokenizer": "tokenizer:BertTokenizer",
    },
    tokenizer_files=(
        "vocab.txt",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "tokenizer.json",
    ),
    original_files={"vocab.txt": "vocab.txt"},
    config_only=("bert_config.json",),  # no config_fields: RoBERTa's are the same
)
