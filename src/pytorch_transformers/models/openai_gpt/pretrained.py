"""Published OpenAI GPT checkpoints by name: repositories and sizes. Data only.

Source: openai/finetune-transformer-lm, folder `model`; the repository holds the same weights converted to PyTorch.
"""

from collections.abc import Mapping
from typing import Final

#: Shortcut name -> repository on the hub.
REPOSITORIES: Final[Mapping[str, str]] = {"openai-gpt": "openai-community/openai-gpt"}


def _urls(filename: str) -> dict[str, str]:
    return {name: f"https://huggingface.co/{repo}/resolve/main/{filename}" for name, repo in REPOSITORIES.items()}


#: Shortcut name -> address of weights, configuration, vocabulary and merges, under the names of the published package.
OPENAI_GPT_PRETRAINED_MODEL_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("model.safetensors")
OPENAI_GPT_PRETRAINED_CONFIG_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("config.json")
OPENAI_GPT_PRETRAINED_VOCAB_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("vocab.json")
OPENAI_GPT_PRETRAINED_MERGES_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("merges.txt")

#: Longest input of the published model, in tokens.
MAX_POSITIONS: Final = 512
