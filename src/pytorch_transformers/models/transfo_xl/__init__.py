"""Transformer-XL: a language model that remembers the states of earlier segments of a text.

Paper: Dai, Yang, Yang, Carbonell, Le and Salakhutdinov 2019, "Transformer-XL: Attentive Language Models Beyond a
Fixed-Length Context". Original code: kimiyoung/transformer-xl, folder tf (Apache-2.0).

Among its siblings it is the one without positions of its own: attention looks at distances, so a text may have any
length, and what a segment can see goes beyond it into a memory. Words are ordered by frequency, and rare ones have
narrow embeddings and cheap scores (adaptive input and softmax).
"""

from typing import Final

from ..record import Family
from .config import TransfoXLConfig
from .pretrained import REPOSITORIES

FAMILY: Final = Family(
    name="transfo_xl",
    config_class=TransfoXLConfig,
    repositories=REPOSITORIES,
    classes={
        "model": "model:TransfoXLModel",
        "language_model": "heads:TransfoXLLMHeadModel",
        "tokenizer": "tokenizer:TransfoXLTokenizer",
    },
    # First what is published: vocab.txt without a word beside it is BERT's.
    tokenizer_files=("vocab.bin", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    original_files={},
    config_fields={"cutoffs": True, "div_val": True},  # n_token and d_model are XLNet's too
    corpus_files=(("corpus.json", "corpus.safetensors"), ("corpus.bin",), ("cache.pkl",)),
)
