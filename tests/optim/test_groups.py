"""Which parameters decay, and how fast each layer learns, for models of every family."""

import re
from typing import Any

import pytest
import torch
from torch import nn

from pytorch_transformers import (
    AdamW,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    OpenAIGPTConfig,
    OpenAIGPTDoubleHeadsModel,
    TransfoXLConfig,
    TransfoXLLMHeadModel,
    parameter_groups,
)

_XL: dict[str, Any] = {
    "vocab_size": 20,
    "cutoffs": [5, 10],
    "d_model": 8,
    "d_embed": 8,
    "n_head": 2,
    "d_head": 4,
    "d_inner": 12,
}
_BERT = BertConfig(20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12)
_GPT: dict[str, Any] = {"vocab_size": 20, "n_positions": 8, "n_ctx": 8, "n_embd": 8, "n_layer": 2, "n_head": 2}
MODELS: dict[str, nn.Module] = {
    "BERT classifier": BertForSequenceClassification(_BERT),
    "BERT language model": BertForMaskedLM(_BERT),
    "GPT": OpenAIGPTDoubleHeadsModel(OpenAIGPTConfig(**_GPT)),
    "GPT-2": GPT2LMHeadModel(GPT2Config(**_GPT)),
    "Transformer-XL": TransfoXLLMHeadModel(TransfoXLConfig(**_XL, n_layer=2, untie_r=False, div_val=1)),
    "Transformer-XL, divided": TransfoXLLMHeadModel(TransfoXLConfig(**_XL, n_layer=2, div_val=2)),
}


def names_of(model: nn.Module, groups: list[dict[str, Any]], **wanted: float) -> set[str]:
    """Names, the first one of tied ones, of the parameters whose group has these options."""
    members = {
        id(parameter)
        for group in groups
        for parameter in group["params"]
        if all(group[key] == pytest.approx(value) for key, value in wanted.items())
    }
    return {name for name, parameter in model.named_parameters() if id(parameter) in members}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("layer_decay", [1.0, 0.5])
def test_each_parameter_is_in_exactly_one_group(name: str, layer_decay: float) -> None:
    model = MODELS[name]
    groups = parameter_groups(model, 0.1, lr=1.0, layer_decay=layer_decay)
    members = [id(parameter) for group in groups for parameter in group["params"]]
    assert len(members) == len(set(members))
    assert set(members) == {id(parameter) for parameter in model.parameters()}
    assert all(group["params"] for group in groups)
    AdamW(groups)  # torch refuses a parameter in two groups


@pytest.mark.parametrize("name", MODELS)
def test_biases_and_normalisations_do_not_decay(name: str) -> None:
    model = MODELS[name]
    groups = parameter_groups(model, 0.1)
    expected = {
        parameter
        for parameter, _ in model.named_parameters()
        if re.search(r"bias$|LayerNorm\.|\.ln_\w+\.|layer_norm\.", parameter)
    }
    assert names_of(model, groups, weight_decay=0.0) == expected
    assert (
        names_of(model, groups, weight_decay=0.1) == {parameter for parameter, _ in model.named_parameters()} - expected
    )
    assert len(groups) == 2
    assert all("lr" not in group for group in groups)


def test_gpt2_by_name() -> None:
    exempt = names_of(MODELS["GPT-2"], parameter_groups(MODELS["GPT-2"], 0.1), weight_decay=0.0)
    assert {f"transformer.h.{layer}.ln_{norm}.weight" for layer in (0, 1) for norm in (1, 2)} <= exempt
    assert "transformer.ln_f.weight" in exempt
    assert "transformer.wte.weight" not in exempt


def test_transfo_xl_by_name() -> None:
    exempt = names_of(MODELS["Transformer-XL"], parameter_groups(MODELS["Transformer-XL"], 0.1), weight_decay=0.0)
    assert {"transformer.r_w_bias", "transformer.r_r_bias", "crit.cluster_bias"} <= exempt
    assert "crit.cluster_weight" not in exempt


class RootNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))


def test_modules_of_others() -> None:
    model = nn.Module()
    for name, module in {
        "rms": nn.RMSNorm(3),
        "group": nn.GroupNorm(1, 3),
        "batch": nn.BatchNorm1d(3),
        "own": RootNorm(),
        "attention": nn.MultiheadAttention(2, 1),
        "lstm": nn.LSTM(2, 2),
        "biased": nn.Linear(2, 2),
    }.items():
        model.add_module(name, module)
    assert names_of(model, parameter_groups(model, 0.1), weight_decay=0.1) == {
        "attention.in_proj_weight",
        "attention.out_proj.weight",
        "lstm.weight_ih_l0",
        "lstm.weight_hh_l0",
        "biased.weight",
    }


def test_tied_roles_and_frozen_ones() -> None:
    """One role that must not decay is enough; what is frozen is there, for it may be released."""
    model = nn.Module()
    model.norm, model.other = nn.LayerNorm(3, bias=False), nn.Linear(1, 1, bias=False)
    model.other.weight = model.norm.weight
    model.frozen = nn.Linear(1, 1, bias=False).requires_grad_(False)
    decays, exempt = parameter_groups(model, 0.1)
    assert [id(parameter) for parameter in exempt["params"]] == [id(model.norm.weight)]
    assert [id(parameter) for parameter in decays["params"]] == [id(model.frozen.weight)]


LEVELS: dict[str, dict[float, tuple[str, ...]]] = {
    "BERT classifier": {
        0.125: ("bert.embeddings.word_embeddings.weight", "bert.embeddings.LayerNorm.weight"),
        0.25: ("bert.encoder.layer.0.output.dense.weight", "bert.encoder.layer.0.output.LayerNorm.bias"),
        0.5: ("bert.encoder.layer.1.output.dense.weight",),
        1.0: ("bert.pooler.dense.weight", "classifier.weight", "classifier.bias"),
    },
    "BERT language model": {0.125: ("bert.embeddings.word_embeddings.weight",), 1.0: ("cls.predictions.bias",)},
    "GPT": {
        0.125: ("transformer.tokens_embed.weight", "transformer.positions_embed.weight"),
        0.25: ("transformer.h.0.attn.c_attn.weight",),
        0.5: ("transformer.h.1.mlp.c_fc.bias",),
    },
    "GPT-2": {
        0.125: ("transformer.wte.weight", "transformer.wpe.weight"),
        0.25: ("transformer.h.0.ln_1.weight",),
        1.0: ("transformer.ln_f.weight",),
    },
    "Transformer-XL": {
        0.125: ("transformer.word_emb.emb_layers.0.weight",),
        # The biases that all layers share have the place of the lowest one.
        0.25: ("transformer.layers.0.pos_ff.CoreNet.0.weight", "transformer.r_w_bias"),
        0.5: ("transformer.layers.1.dec_attn.qkv_net.weight",),
        1.0: ("crit.cluster_weight", "crit.cluster_bias"),
    },
}


@pytest.mark.parametrize("name", LEVELS)
def test_each_layer_learns_slower_than_the_one_above(name: str) -> None:
    model = MODELS[name]
    groups = parameter_groups(model, 0.1, lr=1.0, layer_decay=0.5)
    for rate, members in LEVELS[name].items():
        assert set(members) <= names_of(model, groups, lr=rate), rate
    rates = [group["lr"] for group in groups]
    assert rates == sorted(rates)
    assert set(rates) == {0.125, 0.25, 0.5, 1.0}


def test_a_rate_is_carried_without_layers() -> None:
    groups = parameter_groups(nn.Linear(2, 2), lr=0.3)
    assert [(group["lr"], group["weight_decay"]) for group in groups] == [(0.3, 0.01), (0.3, 0.0)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight_decay": -0.1}, r"weight_decay: -0\.1"),
        ({"lr": -1}, r"lr: -1"),
        ({"lr": 1.0, "layer_decay": 1.5}, r"layer_decay: 1\.5.*from 0\.0 to 1\.0"),
        ({"lr": 1.0, "layer_decay": 0.0}, r"layer_decay: 0\.0 would stop"),
        ({"layer_decay": 0.9}, r"layer_decay: 0\.9 needs the learning rate"),
        ({"lr": 1.0, "layer_decay": 0.9}, r"layer_decay: Linear has no nn\.ModuleList named layer, h, layers"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parameter_groups(nn.Linear(2, 2), **options)


def test_a_module_without_parameters() -> None:
    with pytest.raises(ValueError, match="GELU has no parameters"):
        parameter_groups(nn.GELU())
