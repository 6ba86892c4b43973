"""A tiny Transformer-XL of odd sizes, its inputs and labels: what all tests of the family build on.

Sizes are odd and different from each other, so that a transposed or misread axis cannot go unnoticed: hidden 40,
5 heads of 6, inner width 37, 61 words in clusters of 11, 18, 18 and 14 whose embeddings have width 24, 12, 6 and 3,
segments of 7 tokens and a memory of 9.
"""

import re
from typing import Any

import torch
from torch import Tensor

from pytorch_transformers import TransfoXLConfig, TransfoXLLMHeadModel, TransfoXLModel, TransfoXLPreTrainedModel

from ..battery import Case, Inputs

VOCAB, CUTOFFS, HIDDEN, EMBED, HEADS, HEAD_SIZE, LAYERS, INNER = 61, (11, 29, 47), 40, 24, 5, 6, 3, 37
BATCH, LENGTH, MEMORY = 4, 7, 9

MODELS: tuple[type[Any], ...] = (TransfoXLModel, TransfoXLLMHeadModel)

KINDS: dict[str, dict[str, Any]] = {
    "tails with tied projections": {},
    "tails with their own projections": {"proj_share_all_but_first": False},
    "all projections tied": {"tie_projs": [True] * 4},
    "head projected at equal width": {"d_embed": HIDDEN},
    "head not projected at equal width": {"d_embed": HIDDEN, "proj_same_dim": False},
    "one table": {"div_val": 1, "d_embed": HIDDEN},
    "one table with a projection": {"div_val": 1},
    "one table with its own projections": {"div_val": 1, "proj_share_all_but_first": False},
    "one tail": {"cutoffs": [13]},
    "no clusters": {"cutoffs": [], "div_val": 1, "d_embed": HIDDEN},
    "no clusters with a projection": {"cutoffs": [], "div_val": 1},
    "one r bias for all layers": {"untie_r": False},
    "normalised before": {"pre_lnorm": True},
    "odd hidden width per head": {"n_head": 3, "d_head": 11},
}
"""What a configuration can make of the parameters, as changes of the tiny one."""

VIEWS: dict[str, dict[str, Any]] = {
    "all": {},
    "clamped": {"clamp_len": 4},
    "same length": {"same_length": True},
    "same length, one fewer": {"same_length": True, "same_length_one_fewer": True},
    "same length, clamped": {"same_length": True, "clamp_len": 5},
    "with context": {"ext_len": 2},
    "short memory": {"mem_len": 3},
    "no memory": {"mem_len": 0},
}
"""What a configuration can make of what a token sees."""


def tiny_config(**overrides: Any) -> TransfoXLConfig:
    """No dropout, so that training and evaluation agree."""
    fields: dict[str, Any] = {
        "vocab_size": VOCAB,
        "cutoffs": list(CUTOFFS),
        "d_model": HIDDEN,
        "d_embed": EMBED,
        "n_head": HEADS,
        "d_head": HEAD_SIZE,
        "d_inner": INNER,
        "div_val": 2,
        "n_layer": LAYERS,
        "tgt_len": LENGTH,
        "mem_len": MEMORY,
        "clamp_len": -1,
        "same_length": False,
        "dropout": 0.0,
        "dropatt": 0.0,
    }
    return TransfoXLConfig(**{**fields, **overrides})


def words(batch: int = BATCH, length: int = LENGTH, seed: int = 0) -> Tensor:
    """Random ids [B, T], of all clusters where there is room."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, VOCAB, (batch, length), generator=generator)
    some = torch.tensor([0, *CUTOFFS])[: ids.numel()]
    ids.view(-1)[: len(some)] = some
    return ids


def segment_inputs(model_class: type[Any], batch: int = BATCH, length: int = LENGTH, seed: int = 0) -> Inputs:
    """Ids alone: there is no mask, and no padding."""
    return {"input_ids": words(batch, length, seed)}


def segment_labels(model_class: type[Any], inputs: Inputs, seed: int = 0, ignored: int = -1) -> Inputs:
    """Other words, of all clusters, which follow in no text; `ignored` at some places."""
    if "LMHead" not in model_class.__name__:
        return {}
    generator = torch.Generator().manual_seed(1000 + seed)
    ids = inputs["input_ids"]
    labels = (ids * 7 + 5) % VOCAB
    labels = torch.where(torch.rand(ids.shape, generator=generator) < 0.8, labels, torch.full_like(ids, ignored))
    some = torch.tensor([0, *CUTOFFS])[: labels.numel()]
    labels.view(-1)[: len(some)] = some
    return {"labels": labels}


def segment_outputs(model_class: type[Any], batch: int, length: int) -> dict[str, tuple[int, ...]]:
    """Fields without labels, and without `mems`, which is no tensor."""
    if "LMHead" in model_class.__name__:
        return {"prediction_scores": (batch, length, VOCAB)}
    return {"last_hidden_state": (batch, length, HIDDEN)}


def spread(name: str, config: Any) -> float:
    """Projections of clusters have their own spread (train_gpu.py: proj_init_std, init_std)."""
    return float(config.proj_init_std if re.search(r"_projs\.", name) else config.init_std)


CASE = Case(
    config=tiny_config,
    base=TransfoXLModel,
    pretrained=TransfoXLPreTrainedModel,
    heads=MODELS[1:],
    inputs=segment_inputs,
    labels=segment_labels,
    outputs=segment_outputs,
    modules=tuple(
        f"pytorch_transformers.models.transfo_xl.{name}"
        for name in ("model", "heads", "relative_attention", "adaptive_softmax")
    ),
    head_count=HEADS,
    layer_count=LAYERS,
    prune=False,
    layers="n_layer",
    dropout="dropout",
    spread=spread,
    uncached={"mem_len": 0},
    options={
        "dropout": 0.3,
        "dropatt": 0.2,
        "tgt_len": 5,
        "ext_len": 1,
        "mem_len": 13,
        "clamp_len": 6,
        "same_length": True,
        "same_length_one_fewer": True,
        "layer_norm_epsilon": 1e-5,
        "pre_lnorm": True,
        "proj_same_dim": False,
        "tie_projs": [True, False, True, False],
        "init": "uniform",
        "init_range": 0.07,
        "eos_token_id": 7,
    },
)
