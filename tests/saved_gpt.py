"""A tiny random OpenAI GPT in a folder, as a downloaded model would lie there."""

import json
import string
from pathlib import Path
from typing import Any, Final

_MERGES: Final = ("t h", "th e</w>", "i n", "in g</w>")


def save_tiny_gpt(folder: Path, **config: Any) -> Path:
    """Write model and tokenizer into `folder` and return it.

    Tokens are letters, inside and at the end of a word, and a few pairs of them.
    """
    import torch

    from pytorch_transformers import OpenAIGPTConfig, OpenAIGPTLMHeadModel

    letters = (*string.ascii_lowercase, *string.digits, *string.punctuation)
    pairs = (pair.replace(" ", "") for pair in _MERGES)
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), *pairs, "<unk>"]
    sizes = {"n_positions": 64, "n_embd": 24, "n_layer": 2, "n_head": 3}
    torch.manual_seed(0)
    OpenAIGPTLMHeadModel(OpenAIGPTConfig(vocab_size=len(tokens), **{**sizes, **config})).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps({token: n for n, token in enumerate(tokens)}), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(("#version: 0.2", *_MERGES)) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"use_spacy": False}), encoding="utf-8")
    return folder
