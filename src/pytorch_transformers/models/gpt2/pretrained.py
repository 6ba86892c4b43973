"""Published GPT-2 checkpoints by name: repositories and sizes. Data only.

Source: openai/gpt-2, README and download_model.py; the repositories hold the same weights converted to PyTorch.
"""

from collections.abc import Mapping
from typing import Final

#: Shortcut name -> repository on the hub.
REPOSITORIES: Final[Mapping[str, str]] = {
    "gpt2": "openai-community/gpt2",
    "gpt2-medium": "openai-community/gpt2-medium",
    "gpt2-large": "openai-community/gpt2-large",
    "gpt2-xl": "openai-community/gpt2-xl",
}

#: Shortcut name -> the sizes in which the four differ (Radford et al. 2019, table 2; hparams.json of each).
SIZES: Final[Mapping[str, Mapping[str, int]]] = {
    "gpt2": {"n_embd": 768, "n_layer": 12, "n_head": 12},
    "gpt2-medium": {"n_embd": 1024, "n_layer": 24, "n_head": 16},
    "gpt2-large": {"n_embd": 1280, "n_layer": 36, "n_head": 20},
    "gpt2-xl": {"n_embd": 1600, "n_layer": 48, "n_head": 25},
}


def _urls(filename: str) -> dict[str, str]:
    return {name: f"https://huggingface.co/{repo}/resolve/main/{filename}" for name, repo in REPOSITORIES.items()}


#: Shortcut name -> address of weights, configuration, vocabulary and merges, under the names of the published package.
GPT2_PRETRAINED_MODEL_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("model.safetensors")
GPT2_PRETRAINED_CONFIG_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("config.json")
GPT2_PRETRAINED_VOCAB_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("vocab.json")
GPT2_PRETRAINED_MERGES_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("merges.txt")

#: Longest input of every published GPT-2, in tokens.
MAX_POSITIONS: Final = 1024
