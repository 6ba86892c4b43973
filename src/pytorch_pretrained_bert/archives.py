"""The names of published models and the addresses that 0.6.2 had for them. Data only.

The addresses are dead; they still name files in the cache of 0.6.2 (see `classic_cache.py`). What is not there comes
from the hub.
"""

from collections.abc import Mapping
from typing import Final

_PLACE: Final = "https://s3.amazonaws.com/models.huggingface.co/bert/"
_BERT: Final = (
    "bert-base-uncased",
    "bert-large-uncased",
    "bert-base-cased",
    "bert-large-cased",
    "bert-base-multilingual-uncased",
    "bert-base-multilingual-cased",
    "bert-base-chinese",
)

BERT_MODELS: Final[Mapping[str, str]] = {name: f"{_PLACE}{name}.tar.gz" for name in _BERT}
BERT_VOCABULARIES: Final[Mapping[str, str]] = {name: f"{_PLACE}{name}-vocab.txt" for name in _BERT}

#: What the first releases called a model -> its name since.
EARLY_NAMES: Final[Mapping[str, str]] = {"bert-base-multilingual": "bert-base-multilingual-uncased"}
#: The addresses that went with the first.
EARLY_MODELS: Final[Mapping[str, str]] = {name: f"{_PLACE}{name}.tar.gz" for name in EARLY_NAMES}
EARLY_VOCABULARIES: Final[Mapping[str, str]] = {name: f"{_PLACE}{name}-vocab.txt" for name in EARLY_NAMES}

OPENAI_GPT_MODELS: Final[Mapping[str, str]] = {"openai-gpt": f"{_PLACE}openai-gpt-pytorch_model.bin"}
OPENAI_GPT_CONFIGS: Final[Mapping[str, str]] = {"openai-gpt": f"{_PLACE}openai-gpt-config.json"}
OPENAI_GPT_VOCABULARIES: Final[Mapping[str, str]] = {"openai-gpt": f"{_PLACE}openai-gpt-vocab.json"}
OPENAI_GPT_MERGES: Final[Mapping[str, str]] = {"openai-gpt": f"{_PLACE}openai-gpt-merges.txt"}
GPT2_MODELS: Final[Mapping[str, str]] = {"gpt2": f"{_PLACE}gpt2-pytorch_model.bin"}
GPT2_CONFIGS: Final[Mapping[str, str]] = {"gpt2": f"{_PLACE}gpt2-config.json"}
GPT2_VOCABULARIES: Final[Mapping[str, str]] = {"gpt2": f"{_PLACE}gpt2-vocab.json"}
GPT2_MERGES: Final[Mapping[str, str]] = {"gpt2": f"{_PLACE}gpt2-merges.txt"}
TRANSFO_XL_MODELS: Final[Mapping[str, str]] = {"transfo-xl-wt103": f"{_PLACE}transfo-xl-wt103-pytorch_model.bin"}
TRANSFO_XL_CONFIGS: Final[Mapping[str, str]] = {"transfo-xl-wt103": f"{_PLACE}transfo-xl-wt103-config.json"}
TRANSFO_XL_VOCABULARIES: Final[Mapping[str, str]] = {"transfo-xl-wt103": f"{_PLACE}transfo-xl-wt103-vocab.bin"}
TRANSFO_XL_CORPORA: Final[Mapping[str, str]] = {"transfo-xl-wt103": f"{_PLACE}transfo-xl-wt103-corpus.bin"}
