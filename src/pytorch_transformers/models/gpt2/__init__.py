"""GPT-2: a language model that continues text.

Paper: Radford, Wu, Child, Luan, Amodei and Sutskever 2019, "Language Models are Unsupervised Multitask Learners".
Original code: openai/gpt-2 (MIT).

Among its siblings it is the decoder that normalises first: before attention and before the feed-forward part of each
layer, and once after the last (OpenAI GPT normalises after each). Its tokenizer reads bytes, so no text is unknown.
"""

from typing import Final

from ..record import Family
from .config import GPT2Config
from .pretrained import REPOSITORIES

FAMILY: Final = Family(
    name="gpt2",
    config_class=GPT2Config,
    repositories=REPOSITORIES,
    classes={
        "model": "model:GPT2Model",
        "language_model": "heads:GPT2LMHeadModel",
        "double_heads": "heads:GPT2DoubleHeadsModel",
        "tokenizer": "tokenizer:GPT2Tokenizer",
    },
    tokenizer_files=(
        "vocab.json",
        "merges.txt",
        "encoder.json",
        "vocab.bpe",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "tokenizer.json",
    ),
    original_files={"vocab.json": "encoder.json", "merges.txt": "vocab.bpe"},
    config_only=("hparams.json",),
    config_fields={"n_ctx": True, "layer_norm_epsilon": True, "afn": False, "dff": False},  # afn: GPT's; dff: CTRL's
    published_sizes=True,
)
