"""Published BERT checkpoints by name: repositories, sizes, casing. Data only.

Source: google-research/bert, README "Pre-trained models"; the repositories hold the same weights converted to PyTorch.
"""

from collections.abc import Mapping
from typing import Final

#: Shortcut name -> repository on the hub.
REPOSITORIES: Final[Mapping[str, str]] = {
    "bert-base-uncased": "google-bert/bert-base-uncased",
    "bert-large-uncased": "google-bert/bert-large-uncased",
    "bert-base-cased": "google-bert/bert-base-cased",
    "bert-large-cased": "google-bert/bert-large-cased",
    "bert-base-multilingual-uncased": "google-bert/bert-base-multilingual-uncased",
    "bert-base-multilingual-cased": "google-bert/bert-base-multilingual-cased",
    "bert-base-chinese": "google-bert/bert-base-chinese",
}


def _urls(filename: str) -> dict[str, str]:
    return {name: f"https://huggingface.co/{repo}/resolve/main/{filename}" for name, repo in REPOSITORIES.items()}


#: Shortcut name -> address of the weights, configuration and vocabulary, under the names of the published package.
BERT_PRETRAINED_MODEL_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("model.safetensors")
BERT_PRETRAINED_CONFIG_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("config.json")
BERT_PRETRAINED_VOCAB_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("vocab.txt")

#: Shortcut name -> whether its vocabulary is lower-cased (google-research/bert, README and multilingual.md).
DO_LOWER_CASE: Final[Mapping[str, bool]] = {name: name.endswith("uncased") for name in REPOSITORIES}

#: Longest input of every published BERT, in tokens.
MAX_POSITIONS: Final = 512
