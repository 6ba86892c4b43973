"""A tiny random BERT in a folder, with a vocabulary of a few words, as a downloaded model would lie there."""

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

#: Whole words, then pieces: "oven" is ov ##en, "baking" is bak ##ing.
WORDS = "the a on in cook onion ##s until golden rain ##y cloud bak ##ing ov ##en two cup of flour . , ! ? | [ ] un"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split()),
    *(mark + letter for letter in LETTERS for mark in ("", "##") if mark + letter not in WORDS.split()),
]
SIZES: dict[str, Any] = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 48,
}
LAYERS, HIDDEN, POSITIONS = SIZES["num_hidden_layers"], SIZES["hidden_size"], SIZES["max_position_embeddings"]


def save_tiny_bert(folder: Path, model_class: str = "BertForPreTraining", **config: Any) -> Path:
    """Write configuration, weights, vocabulary and tokenizer options into `folder` and return it.

    The weights are ten times those of a fresh model, so that texts differ by more than rounding.
    """
    import torch

    import pytorch_transformers

    torch.manual_seed(0)
    sizes = pytorch_transformers.BertConfig(**{**SIZES, "initializer_range": 0.2, **config})
    getattr(pytorch_transformers, model_class)(sizes).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}), encoding="utf-8")
    return folder


def some_texts(count: int, seed: int = 0) -> list[str]:
    """Texts of very different lengths, among them an empty one and one that is longer than the model takes."""
    draw = random.Random(seed)
    words = ["cook", "onions", "until", "golden", "rain", "Clouds", "baking", "oven", "two cups", "of flour.", "zq"]
    texts = [" ".join(draw.choices(words, k=draw.choice((1, 2, 3, 5, 8, 20)))) for _ in range(count)]
    for number, text in ((1, ""), (3, "onion " * (2 * POSITIONS))):
        if count > number:
            texts[number] = text.strip()
    return texts


def environment(**changes: str) -> dict[str, str]:
    """For a process of its own that computes on one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **changes}


#: The command as a process of its own.
COMMAND = [sys.executable, "-m", "pytorch_transformers"]
