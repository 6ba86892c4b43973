"""Published Transformer-XL checkpoints by name: repositories and addresses. Data only.

Source: kimiyoung/transformer-xl, tf/sota/download.sh; the repository holds the same weights converted to PyTorch.
"""

from collections.abc import Mapping
from typing import Final

#: Shortcut name -> repository on the hub.
REPOSITORIES: Final[Mapping[str, str]] = {"transfo-xl-wt103": "transfo-xl/transfo-xl-wt103"}


def _urls(filename: str) -> dict[str, str]:
    return {name: f"https://huggingface.co/{repo}/resolve/main/{filename}" for name, repo in REPOSITORIES.items()}


#: Shortcut name -> address of weights, configuration, vocabulary and corpus, under the names of the published package.
TRANSFO_XL_PRETRAINED_MODEL_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("pytorch_model.bin")
TRANSFO_XL_PRETRAINED_CONFIG_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("config.json")
PRETRAINED_VOCAB_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("vocab.bin")
PRETRAINED_CORPUS_ARCHIVE_MAP: Final[Mapping[str, str]] = _urls("corpus.bin")
