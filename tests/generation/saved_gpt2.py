"""A tiny random GPT-2 in a folder, as a downloaded model would lie there; its tokens are all bytes and a few words."""

import json
from pathlib import Path
from typing import Any, Final

#: Pairs that are joined, in order. The bytes of "é" are Ã and ©, a space is Ġ, in the characters that stand for bytes.
MERGES: Final = ("t h", "th e", "Ġ the", "Ġ c", "a t", "Ġc at", "Ã ©", "h e", "l l", "he ll", "hell o")
SIZES: Final[dict[str, Any]] = {"n_positions": 48, "n_embd": 24, "n_layer": 3, "n_head": 3}
POSITIONS: Final = SIZES["n_positions"]


def save_tiny_gpt2(folder: Path, **config: Any) -> Path:
    """Write configuration, weights and vocabulary into `folder` and return it.

    The weights are ten times those of a fresh model, so that its words differ in probability.
    """
    import torch

    from pytorch_transformers import GPT2Config, GPT2LMHeadModel
    from pytorch_transformers.tokenizers.byte_level import BYTE_TO_CHAR

    tokens = [*BYTE_TO_CHAR, *(pair.replace(" ", "") for pair in MERGES), "<|endoftext|>"]
    torch.manual_seed(0)
    sizes = GPT2Config(**{"vocab_size": len(tokens), "initializer_range": 0.2, **SIZES, **config})
    GPT2LMHeadModel(sizes).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(("#version: 0.2", *MERGES)) + "\n", encoding="utf-8")
    return folder
