"""OpenAI GPT: a language model that is fine-tuned for tasks, the first of its kind.

Paper: Radford, Narasimhan, Salimans and Sutskever 2018, "Improving Language Understanding by Generative Pre-Training".
Original code: openai/finetune-transformer-lm (MIT).

Among its siblings it is the decoder that normalises after each residual, and not once more at the end (GPT-2 does it
before each part). Tokens that a task adds stand behind the vocabulary.
"""

from typing import Final

from ..record import Family
from .config import OpenAIGPTConfig
from .pretrained import REPOSITORIES

FAMILY: Final = Family(
    name="openai_gpt",
    config_class=OpenAIGPTConfig,
    repositories=REPOSITORIES,
    classes={
        "model": "model:OpenAIGPTModel",
        "language_model": "heads:OpenAIGPTLMHeadModel",
        "double_heads": "heads:OpenAIGPTDoubleHeadsModel",
        "tokenizer": "tokenizer:OpenAIGPTTokenizer",
    },
    tokenizer_files=(
        "vocab.json",
        "merges.txt",
        "encoder_bpe_40000.json",
        "vocab_40000.bpe",
        "special_tokens.txt",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "tokenizer.json",
    ),
    original_files={"vocab.json": "encoder_bpe_40000.json", "merges.txt": "vocab_40000.bpe"},
    config_fields={"n_ctx": True, "afn": True},
    published_sizes=True,
)
