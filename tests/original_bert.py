"""Checkpoints as the original BERT program leaves them, of tiny random models; and the same with variables changed.

Every value is drawn at random, biases and normalisations included: among zeros and ones no swapped pair could be seen.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from models.bert.tiny import tiny_config
from pytorch_transformers import BertConfig, BertForPreTraining, BertModel
from pytorch_transformers.checkpoint.tensorflow.bundle import Bundle
from pytorch_transformers.checkpoint.tensorflow.write import write_bundle
from pytorch_transformers.models.original import save_original

#: What Google's own checkpoints are called, and their configuration.
PREFIX, CONFIG = "bert_model.ckpt", "bert_config.json"

#: Class -> kind of model, as `--head` takes it.
KINDS = {
    "BertModel": "model",
    "BertForPreTraining": "pre_training",
    "BertForMaskedLM": "masked_lm",
    "BertForNextSentencePrediction": "next_sentence",
    "BertForSequenceClassification": "sequence_classification",
    "BertForMultipleChoice": "multiple_choice",
    "BertForTokenClassification": "token_classification",
    "BertForQuestionAnswering": "question_answering",
}


def random_model(model_class: type[Any] = BertForPreTraining, seed: int = 0, **config: Any) -> Any:
    """A tiny model, no value of which is 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    model = model_class(tiny_config(**config)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).mul(0.3))
    return model


def save_checkpoint(model: Any, folder: Path, name: str = PREFIX) -> Path:
    """Write variables and configuration into a folder; returns the prefix."""
    save_original(model, folder / name)
    write_config(folder / CONFIG, model.config)
    return folder / name


def write_config(path: Path, config: BertConfig) -> Path:
    """The sizes as a file of the original's: it has no key that the original doesn't know."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ours = {"num_labels", "id2label", "label2id", "model_type", "layer_norm_eps", "pad_token_id", "return_dict"}
    known = {key: value for key, value in config.to_dict().items() if key not in ours and not key.startswith("output")}
    path.write_text(json.dumps(known), encoding="utf-8")
    return path


def read_variables(prefix: Path) -> dict[str, Tensor]:
    """All values of a checkpoint."""
    bundle = Bundle(prefix)
    return {name: bundle.read(name) for name in bundle}


def changed(prefix: Path, folder: Path, change: Mapping[str, Tensor | None], *, scope: str = "") -> Path:
    """A copy of a checkpoint in another folder, with some variables added, replaced, or (None) removed.

    Args:
        prefix: The checkpoint; its configuration is copied too.
        folder: Where to.
        change: Name -> values.
        scope: What to put before all names, those of `change` left as they are.
    """
    variables: dict[str, Tensor | None] = {f"{scope}{name}": value for name, value in read_variables(prefix).items()}
    variables.update(change)
    write_bundle(folder / PREFIX, {name: value for name, value in variables.items() if value is not None})
    shutil.copyfile(prefix.with_name(CONFIG), folder / CONFIG)
    return folder / PREFIX


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def own_weights(model: nn.Module) -> dict[str, Tensor]:
    """The weights under the names they have inside a model with a head, a tied one once."""
    prefix = "bert." if isinstance(model, BertModel) else ""
    return {
        prefix + name: value
        for name, value in model.state_dict().items()
        if name != "cls.predictions.decoder.weight"  # the table of word embeddings
    }


def assert_same_weights(ours: nn.Module, expected: nn.Module) -> None:
    """The same names, types and bits."""
    left, right = ours.state_dict(), expected.state_dict()
    assert left.keys() == right.keys()
    for name, value in right.items():
        assert left[name].dtype == value.dtype, name
        assert torch.equal(left[name], value), name
