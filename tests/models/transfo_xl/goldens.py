"""Recorded runs of the original program, kimiyoung/transformer-xl (folder tf), and its variables under our names."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pytorch_transformers import TransfoXLConfig
from shared_data import shared

Array = NDArray[Any]

FOLDERS = ("div1", "div1_proj", "div2", "div2_untied_proj", "nocutoff")
VARIANTS = ("base", "clamp_len", "same_length", "same_length_clamp_len", "no_initial_mems", "eval_lengths")

_SIZES = ("cutoffs", "n_layer", "d_model", "d_embed", "n_head", "d_head", "d_inner", "div_val", "untie_r", "tie_projs")
_TRAINING = ("proj_share_all_but_first", "proj_same_dim", "tgt_len", "mem_len")


def _arrays(*parts: str) -> dict[str, Array]:
    with np.load(shared("goldens", "transfo_xl", *parts)) as stored:
        return dict(stored)


@dataclass(frozen=True)
class Variant:
    """One way in which the original ran over the three segments."""

    options: Mapping[str, Any]
    """Fields of the configuration that differ from the folder's."""
    starts_empty: bool
    """No memory before the first segment, rather than zeros; and all rows of it are remembered."""
    segments: int
    recorded: Mapping[str, Array]
    """seg{k}/{loss, nll, hidden, mems_{layer}, log_probs}; time comes first."""


class Golden:
    """One folder."""

    def __init__(self, folder: str) -> None:
        with shared("goldens", "transfo_xl", folder, "config.json").open(encoding="utf-8") as file:
            self.settings: dict[str, Any] = json.load(file)
        self.folder = folder
        self.variables = _arrays(folder, "variables.npz")
        self.gradients = _arrays(folder, "gradients_seg0.npz")
        self.reference = _arrays(folder, "reference.npz")

    def config(self, **options: Any) -> TransfoXLConfig:
        """Its sizes, without dropout, clamp and `same_length` unless a variant says so."""
        fields: dict[str, Any] = {name: self.settings[name] for name in (*_SIZES, *_TRAINING)}
        fields |= {"dropout": 0.0, "dropatt": 0.0, "clamp_len": -1, "same_length": False}
        return TransfoXLConfig(self.settings["n_token"], **{**fields, **options})

    def variant(self, name: str) -> Variant:
        """The recorded run of that name."""
        options = dict(self.settings["variants"][name])
        recorded = {k.removeprefix(f"{name}/"): v for k, v in self.reference.items() if k.startswith(f"{name}/")}
        segments = sum(key.endswith("/nll") for key in recorded)
        return Variant(options, options.pop("mems", None) == "none", segments, recorded)

    def segment(self, variant: Variant, place: int) -> tuple[Array, Array]:
        """Ids and targets [B, T] of a segment; shorter segments are cut from the same text."""
        length = variant.options.get("tgt_len", self.settings["tgt_len"])
        data = self.reference["data"]
        return data[:, place * length : (place + 1) * length], data[:, place * length + 1 : (place + 1) * length + 1]

    def parameters(self, variables: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """All of `variables` (default: the checkpoint) by the names that our language model has for them.

        Written here a second time on purpose, apart from the library's converter. A shared parameter comes under each
        of its names.
        """
        given = self.variables if variables is None else variables
        given = {k.removeprefix("transformer/"): v for k, v in given.items() if k.startswith("transformer/")}
        given = {k: v for k, v in given.items() if not k.endswith(("/Adam", "/Adam_1"))}
        ours = {name: value for key in list(given) for name, value in self._named(key, given)}
        for place, tied in enumerate(self.settings["tie_projs"]):
            source = f"transformer.word_emb.emb_projs.{0 if self.settings['div_val'] == 1 else place}"
            if tied and source in ours:
                ours[f"crit.out_projs.{place}"] = ours[source]
        return ours

    def _named(self, key: str, given: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
        value, words = given[key], key.split("/")
        if words[0] in ("r_w_bias", "r_r_bias"):
            layers = range(self.settings["n_layer"])
            if not self.settings["untie_r"]:
                yield f"transformer.{key}", value
            for layer in layers:
                yield f"transformer.layers.{layer}.dec_attn.{key}", value[layer] if value.ndim == 3 else value
        elif words[0].startswith("layer_"):
            part = {"rel_attn": "dec_attn", "ff": "pos_ff"}[words[1]]
            inside = {"qkv": "qkv_net", "r": "r_net", "o": "o_net", "LayerNorm": "layer_norm"}
            inside |= {"layer_1": "CoreNet.0", "layer_2": "CoreNet.3"}
            kind = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}[words[3]]
            name = f"transformer.layers.{words[0][6:]}.{part}.{inside[words[2]]}.{kind}"
            yield name, value.T if words[3] == "kernel" else value
        else:
            place = words[1][7:] if words[1].startswith("cutoff_") else "0"
            kind = words[-1]
            if kind == "lookup_table":
                yield f"transformer.word_emb.emb_layers.{place}.weight", value
                yield f"crit.out_layers.{place}.weight", value
            elif kind == "proj_W":
                yield f"transformer.word_emb.emb_projs.{place}", value.T
            elif kind == "proj":
                yield f"crit.out_projs.{place}", value.T
            elif kind in ("cluster_W", "cluster_b"):
                yield {"cluster_W": "crit.cluster_weight", "cluster_b": "crit.cluster_bias"}[kind], value
            elif kind == "bias" or self.settings["div_val"] > 1:
                yield f"crit.out_layers.{place}.bias", value
            else:  # the clusters of one table have one row of biases
                pieces = [given[f"{words[0]}/cutoff_{i}/b"] for i in range(len(self.settings["cutoffs"]) + 1)]
                yield "crit.out_layers.0.bias", np.concatenate(pieces)

    def fill(self, model: nn.Module) -> None:
        """Give a language model the values of the checkpoint; each of both sides is used."""
        values = self.parameters()
        own = dict(model.named_parameters(remove_duplicate=False))
        assert set(own) <= set(values), set(own) - set(values)
        filled = {id(parameter) for parameter in own.values()}
        for name, value in values.items():
            if name not in own:  # the library keeps a shared parameter under one name or several
                assert any(other in own and values[other] is value for other in values), f"{name} is not in the model"
                continue
            with torch.no_grad():
                own[name].copy_(torch.from_numpy(np.ascontiguousarray(value)))
            filled.discard(id(own[name]))
        assert not filled


def tensor(value: Array) -> Tensor:
    """As it is; whole numbers as int64."""
    found = torch.from_numpy(np.ascontiguousarray(value))
    return found if found.is_floating_point() else found.long()
