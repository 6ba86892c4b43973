"""A tiny GPT-2 of odd sizes, its inputs and labels: what all tests of the family build on.

Sizes are odd and different from each other, so that a transposed or misread axis cannot go unnoticed: hidden 40 = 5
heads of 8, inner width 37, vocabulary 99, 23 positions.
"""

import re
from typing import Any

import torch
from torch import Tensor

from pytorch_transformers import (
    GPT2Config,
    GPT2DoubleHeadsModel,
    GPT2LMHeadModel,
    GPT2Model,
    GPT2PreTrainedModel,
)

from ..battery import Case, Inputs

VOCAB, HIDDEN, HEADS, LAYERS, INNER, POSITIONS = 99, 40, 5, 3, 37, 23
BATCH, LENGTH, CHOICES = 13, 7, 4

MODELS: tuple[type[Any], ...] = (GPT2Model, GPT2LMHeadModel, GPT2DoubleHeadsModel)


def tiny_config(**overrides: Any) -> GPT2Config:
    """No dropout, so that training and evaluation agree."""
    fields: dict[str, Any] = {
        "vocab_size": VOCAB,
        "n_positions": POSITIONS,
        "n_embd": HIDDEN,
        "n_layer": LAYERS,
        "n_head": HEADS,
        "n_inner": INNER,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "summary_first_dropout": 0.0,
    }
    return GPT2Config(**{**fields, **overrides})


def has_choices(model_class: type[Any]) -> bool:
    """Whether its inputs are [B, C, T]."""
    return model_class.__name__.endswith("DoubleHeadsModel")


def decoder_inputs(
    model_class: type[Any], batch: int = BATCH, length: int = LENGTH, seed: int = 0, *, mask: bool = True
) -> Inputs:
    """Random ids and types; padding at the end, which no real token sees, so that it can be told from a mask's error.

    With choices, also the place of the last real token of each. Types are ids of the vocabulary.
    """
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, CHOICES, length) if has_choices(model_class) else (batch, length)
    inputs = {"input_ids": torch.randint(0, VOCAB, shape, generator=generator)}
    lengths = torch.randint(1, length + 1, shape[:-1], generator=generator)
    lengths.view(-1)[0] = length
    if lengths.numel() > 1 and length > 1:
        lengths.view(-1)[1] = length - 1
    if mask:
        inputs["attention_mask"] = (torch.arange(length) < lengths.unsqueeze(-1)).long()
    inputs["token_type_ids"] = torch.randint(0, VOCAB, shape, generator=generator)
    if has_choices(model_class):
        inputs["mc_token_ids"] = lengths - 1 if mask else torch.full_like(lengths, length - 1)
    return inputs


def decoder_labels(model_class: type[Any], inputs: Inputs, seed: int = 0, ignored: int = -1) -> Inputs:
    """The ids themselves, `ignored` at padding and at some other places; and a right choice."""
    if "LMHead" not in model_class.__name__ and not has_choices(model_class):
        return {}
    generator = torch.Generator().manual_seed(1000 + seed)
    ids = inputs["input_ids"]
    kept = inputs.get("attention_mask", torch.ones_like(ids)).bool()
    kept = kept & (torch.rand(ids.shape, generator=generator) < 0.8)
    kept.view(-1, ids.shape[-1])[0, 1] = True
    labels = torch.where(kept, ids, torch.full_like(ids, ignored))
    if not has_choices(model_class):
        return {"labels": labels}
    return {"lm_labels": labels, "mc_labels": torch.randint(0, CHOICES, (ids.shape[0],), generator=generator)}


def decoder_outputs(model_class: type[Any], batch: int, length: int) -> dict[str, tuple[int, ...]]:
    """Fields without labels, and without `past`, which is no tensor."""
    if has_choices(model_class):
        return {"lm_logits": (batch, CHOICES, length, VOCAB), "mc_logits": (batch, CHOICES)}
    if "LMHead" in model_class.__name__:
        return {"logits": (batch, length, VOCAB)}
    return {"last_hidden_state": (batch, length, HIDDEN)}


def decoder_losses(model_class: type[Any]) -> tuple[str, ...]:
    """Names of the losses."""
    return ("lm_loss", "mc_loss") if has_choices(model_class) else ("loss",)


def residual_scaled(name: str, config: Any) -> float:
    """What writes into the residual stream is drawn smaller by the root of 2 L (Radford et al. 2019, section 2.3)."""
    scaled = re.search(r"\.c_proj\.weight$", name)
    return float(config.initializer_range) / ((2 * config.n_layer) ** 0.5 if scaled else 1.0)


def real(inputs: Inputs) -> Tensor:
    """The mask as booleans, all true if there is none."""
    return inputs.get("attention_mask", torch.ones_like(inputs["input_ids"])).bool()


CASE = Case(
    config=tiny_config,
    base=GPT2Model,
    pretrained=GPT2PreTrainedModel,
    heads=MODELS[1:],
    inputs=decoder_inputs,
    labels=decoder_labels,
    outputs=decoder_outputs,
    losses=decoder_losses,
    max_length=POSITIONS,
    modules=("pytorch_transformers.models.gpt2.model", "pytorch_transformers.models.gpt2.heads"),
    head_count=HEADS,
    layer_count=LAYERS,
    layers="n_layer",
    dropout="resid_pdrop",
    spread=residual_scaled,
    uncached={"use_cache": False},
    options={
        "resid_pdrop": 0.3,
        "activation_function": "relu",
        "initializer_range": 0.07,
        "layer_norm_epsilon": 1e-3,
        "n_inner": 51,
        "use_cache": False,
        "eos_token_id": 7,
    },
)
