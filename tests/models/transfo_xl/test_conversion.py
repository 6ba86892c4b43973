"""Checkpoints of the original program: there and back to the last bit; what does not fit is an error."""

import json
import pickle
import re
import shutil
import sys
from collections import Counter, OrderedDict
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from original_bert import contents, read_variables
from pytorch_transformers.checkpoint.keymap import Shape, plan_from_original, plan_to_original
from pytorch_transformers.checkpoint.tensorflow.write import write_bundle
from pytorch_transformers.cli.main import main
from pytorch_transformers.models.auto import AutoModel
from pytorch_transformers.models.conversion import convert
from pytorch_transformers.models.original import load_original, load_tf_weights, save_original
from pytorch_transformers.models.transfo_xl import FAMILY
from pytorch_transformers.models.transfo_xl.config import TransfoXLConfig
from pytorch_transformers.models.transfo_xl.convert import (
    KEY_MAP,
    convert_transfo_xl_checkpoint_to_pytorch,
    inferred_config,
    is_corpus,
    key_map,
    original_config,
)
from pytorch_transformers.models.transfo_xl.corpus import TransfoXLCorpus
from pytorch_transformers.models.transfo_xl.heads import TransfoXLLMHeadModel
from pytorch_transformers.models.transfo_xl.model import TransfoXLModel
from shared_data import shared

from ..battery import build
from .goldens import FOLDERS, Golden
from .tiny import CASE, CUTOFFS, EMBED, HEAD_SIZE, HEADS, HIDDEN, INNER, KINDS, LAYERS, VOCAB

SOFTMAX = "transformer/adaptive_softmax/"
LOOKUP = "transformer/adaptive_embed/lookup_table"
#: What names and shapes tell of the configuration.
TOLD = (
    *("vocab_size", "cutoffs", "d_model", "d_embed", "n_head", "d_head", "d_inner", "div_val", "n_layer", "untie_r"),
    *("tie_projs", "proj_same_dim"),
)
#: Settings of a recorded run that leave no trace in its variables, or are none of the model.
UNTOLD = ("n_token", "tgt_len", "mem_len", "bsz", "variants")


def recorded(folder: str, place: Path) -> Path:
    """The original's own checkpoint without its settings, as the original leaves it; returns the prefix."""
    place.mkdir(parents=True)
    for path in shared("goldens", "transfo_xl", folder).glob("model.ckpt*"):
        shutil.copyfile(path, place / path.name)
    return place / "model.ckpt"


def weights(prefix: Path) -> dict[str, Tensor]:
    """The variables without those of training."""
    slots = ("/Adam", "/Adam_1")
    return {
        name: value
        for name, value in read_variables(prefix).items()
        if name.startswith("transformer/") and not name.endswith(slots)
    }


def shapes_of(variables: Mapping[str, Tensor]) -> dict[str, Shape]:
    return {name: tuple(value.shape) for name, value in variables.items()}


def assert_same(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> None:
    """The same names, types, shapes and bits."""
    assert left.keys() == right.keys()
    for name, value in right.items():
        assert left[name].dtype == value.dtype, name
        assert torch.equal(left[name], value), name


def tiny(kind: str | None = None, model_class: type[Any] = TransfoXLLMHeadModel, **options: Any) -> Any:
    """A model of one kind, which the original can have; no value is 0 or 1."""
    return build(CASE, model_class, **{**(KINDS[kind] if kind else {}), **options})


def checkpoint(folder: Path, change: Mapping[str, Tensor | None] | None = None, **options: Any) -> Path:
    """A checkpoint of the tiny model, with some variables added, replaced, or (None) removed; returns the prefix."""
    save_original(tiny(**options), folder / "first" / "model.ckpt")
    variables: dict[str, Tensor | None] = {**read_variables(folder / "first" / "model.ckpt"), **(change or {})}
    write_bundle(folder / "model.ckpt", {name: value for name, value in variables.items() if value is not None})
    shutil.rmtree(folder / "first")
    return folder / "model.ckpt"


# --- the original's own checkpoints -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["model.ckpt", "model.ckpt.index", "."])
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_checkpoint_needs_no_configuration(folder: str, form: str, tmp_path: Path) -> None:
    """Every weight has the recorded values, and every setting that shapes tell is the recorded one."""
    golden = Golden(folder)
    place = recorded(folder, tmp_path / "theirs").parent / form
    model, info = TransfoXLLMHeadModel.from_pretrained(place, output_loading_info=True)
    assert not any(info.values())
    for name in golden.settings.keys() - set(UNTOLD):
        assert getattr(model.config, name) == golden.settings[name], name
    assert model.config.vocab_size == golden.settings["n_token"]
    values, own = golden.parameters(), dict(model.named_parameters(remove_duplicate=False))
    assert own
    for name, parameter in own.items():
        assert np.array_equal(parameter.detach().numpy(), values[name]), name


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_variable_is_used_or_belongs_to_training(folder: str, tmp_path: Path) -> None:
    prefix = recorded(folder, tmp_path / "theirs")
    done = convert(FAMILY, prefix, tmp_path / "ours")
    assert done.model_class == "TransfoXLLMHeadModel"
    assert {step.source for step in done.plan.steps} == weights(prefix).keys()
    assert done.plan.left_out == done.plan.fresh == []
    assert set(done.plan.ignored) == read_variables(prefix).keys() - weights(prefix).keys()
    assert done.parameters == sum(value.numel() for value in weights(prefix).values())


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_decoder_leaves_the_softmax_out(folder: str, tmp_path: Path) -> None:
    prefix = recorded(folder, tmp_path / "theirs")
    whole = TransfoXLLMHeadModel.from_pretrained(prefix)
    model, info = TransfoXLModel.from_pretrained(prefix, output_loading_info=True)
    assert sorted(info["unexpected_keys"]) == sorted(name for name in weights(prefix) if name.startswith(SOFTMAX))
    assert_same(model.state_dict(), whole.transformer.state_dict())


@pytest.mark.parametrize("folder", FOLDERS)
def test_recorded_checkpoints_there_and_back(folder: str, tmp_path: Path) -> None:
    """Everything comes back but what belongs to training; and a second time, byte for byte."""
    prefix = recorded(folder, tmp_path / "theirs")
    convert(FAMILY, prefix, tmp_path / "ours")
    back = convert(FAMILY, tmp_path / "ours", tmp_path / "back" / "model.ckpt")
    assert_same(read_variables(tmp_path / "back" / "model.ckpt"), weights(prefix))
    assert back.plan.left_out == []
    convert(FAMILY, tmp_path / "back", tmp_path / "again")
    convert(FAMILY, tmp_path / "again", tmp_path / "once more" / "model.ckpt")
    assert contents(tmp_path / "again") == contents(tmp_path / "ours")
    assert contents(tmp_path / "once more") == contents(tmp_path / "back")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_single_file_has_all_names_and_ties(folder: str, tmp_path: Path) -> None:
    prefix = recorded(folder, tmp_path / "theirs")
    done = convert(FAMILY, prefix, tmp_path / "pytorch_model.bin")
    state = torch.load(tmp_path / "pytorch_model.bin", weights_only=True)
    assert isinstance(done.config, TransfoXLConfig)
    model = TransfoXLLMHeadModel(done.config)
    assert state.keys() == model.state_dict().keys()
    model.load_state_dict(state)
    assert_same(model.state_dict(), TransfoXLLMHeadModel.from_pretrained(prefix).state_dict())
    values = sum(value.numel() for value in weights(prefix).values())
    assert (tmp_path / "pytorch_model.bin").stat().st_size < 4 * values + 40_000, "pieces are written without the whole"


# --- the table --------------------------------------------------------------------------------------------------------

#: What the original can't have: it has no projection of its own without clusters, and normalises after each part.
NOT_THEIRS = ("no clusters with a projection", "normalised before")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in NOT_THEIRS])
@pytest.mark.parametrize("model_class", [TransfoXLLMHeadModel, TransfoXLModel])
def test_there_and_back(kind: str, model_class: type[Any], tmp_path: Path) -> None:
    model = tiny(kind, model_class)
    prefix = tmp_path / "model.ckpt"
    save_original(model, prefix)
    loaded, info = model_class.from_pretrained(prefix, output_loading_info=True)
    assert not any(info.values())
    assert_same(loaded.state_dict(), model.state_dict())
    if model_class is TransfoXLLMHeadModel:
        without = kind == "one table"  # of the model's width, and so without projections that could be tied
        different = [name for name in TOLD if getattr(loaded.config, name) != getattr(model.config, name)]
        assert different == (["tie_projs"] if without else [])
    _, written = save_original(loaded, tmp_path / "again" / "model.ckpt")
    for path in written:
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


def test_without_clusters_the_output_projects_with_the_matrix_of_the_embeddings(tmp_path: Path) -> None:
    kind = "no clusters with a projection"
    with pytest.raises(ValueError, match=r"more than one weight has the values of transformer/adaptive_embed/proj_W$"):
        save_original(tiny(kind), tmp_path / "model.ckpt")
    assert list(tmp_path.iterdir()) == []
    model = tiny(kind, tie_projs=[True])
    save_original(model, tmp_path / "model.ckpt")
    loaded = TransfoXLLMHeadModel.from_pretrained(tmp_path / "model.ckpt")
    assert_same(loaded.state_dict(), model.state_dict())
    assert loaded.config.tie_projs == [True]
    untied = TransfoXLLMHeadModel.from_pretrained(tmp_path / "model.ckpt", tie_projs=[False])
    assert untied.crit.out_projs[0] is not untied.transformer.word_emb.emb_projs[0]
    assert torch.equal(untied.crit.out_projs[0], model.crit.out_projs[0])


@pytest.mark.parametrize("kind", ["one table", "one tail"])
def test_an_output_with_tables_of_its_own_begins_with_copies(kind: str, tmp_path: Path) -> None:
    model = tiny(kind)
    save_original(model, tmp_path / "model.ckpt")
    untied: Any
    untied, info = TransfoXLLMHeadModel.from_pretrained(
        tmp_path / "model.ckpt", tie_weight=False, output_loading_info=True
    )
    assert not any(info.values())
    for ours, words in zip(untied.crit.out_layers, untied.transformer.word_emb.emb_layers, strict=True):
        assert ours.weight is not words.weight
        assert ours.weight.data_ptr() != words.weight.data_ptr()
    assert_same(untied.state_dict(), model.state_dict())
    _, info = TransfoXLModel.from_pretrained(tmp_path / "model.ckpt", tie_weight=False, output_loading_info=True)
    assert all(name.startswith(SOFTMAX) for name in info["unexpected_keys"]), "the tables are used"
    with pytest.raises(ValueError, match="more than one weight has the values of transformer/adaptive_embed/"):
        save_original(untied, tmp_path / "again.ckpt")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_cover_every_parameter(kind: str, tmp_path: Path) -> None:
    """By the table of the model's own configuration; pieces turn round without a rest."""
    if kind in NOT_THEIRS:
        kind = "head not projected at equal width"
    model = tiny(kind)
    save_original(model, tmp_path / "model.ckpt")
    variables = shapes_of(read_variables(tmp_path / "model.ckpt"))
    targets = {name: tuple(value.shape) for name, value in model.named_parameters()}
    table = key_map(model.config)
    assert table == model.own_key_map()
    assert set(KEY_MAP.rows) < set(table.rows)
    plan = plan_from_original(table, variables, targets)
    assert {step.source for step in plan.steps} == variables.keys()
    assert {step.target for step in plan.steps} == targets.keys()
    back = {(step.target, step.source, step.target_rows, step.source_rows) for step in plan_to_original(table, targets)}
    assert back == {(step.source, step.target, step.source_rows, step.target_rows) for step in plan.steps}


def test_pieces_go_where_they_belong(tmp_path: Path) -> None:
    """One bias in three variables, and one variable in three layers."""
    model = tiny("one table")
    save_original(model, tmp_path / "model.ckpt")
    variables = read_variables(tmp_path / "model.ckpt")
    ends = [0, *CUTOFFS, VOCAB]
    bias = model.crit.out_layers[0].bias
    for number, (start, end) in enumerate(pairwise(ends)):
        assert torch.equal(variables[f"{SOFTMAX}cutoff_{number}/b"], bias[start:end])
    for name in ("r_w_bias", "r_r_bias"):
        stacked = variables[f"transformer/{name}"]
        assert stacked.shape == (LAYERS, HEADS, HEAD_SIZE)
        for number, layer in enumerate(model.transformer.layers):
            assert torch.equal(getattr(layer.dec_attn, name), stacked[number])


def test_the_report_says_which_pieces(tmp_path: Path) -> None:
    prefix = checkpoint(tmp_path, kind="one table")
    values = json.loads(json.dumps(convert(FAMILY, prefix, tmp_path / "ours").as_dict()))
    assert {
        "source": "transformer/r_w_bias",
        "target": "transformer.layers.1.dec_attn.r_w_bias",
        "operation": "drop_first",
        "source_rows": [1, 2],
    } in values["used"]
    assert {
        "source": f"{SOFTMAX}cutoff_1/b",
        "target": "crit.out_layers.0.bias",
        "operation": "as_is",
        "target_rows": [CUTOFFS[0], CUTOFFS[1]],
    } in values["used"]
    assert {"source": LOOKUP, "target": "transformer.word_emb.emb_layers.0.weight", "operation": "as_is"} in values[
        "used"
    ]


@pytest.mark.parametrize("kind", ["one table", "tails with their own projections"])
def test_a_larger_vocabulary_can_be_written(kind: str, tmp_path: Path) -> None:
    """The table is that of the configuration as it is now."""
    model = tiny(kind)
    model.resize_token_embeddings(VOCAB + 5)
    save_original(model, tmp_path / "model.ckpt")
    assert read_variables(tmp_path / "model.ckpt")[f"{SOFTMAX}cutoff_3/b"].shape == (VOCAB + 5 - CUTOFFS[-1],)
    loaded = TransfoXLLMHeadModel.from_pretrained(tmp_path / "model.ckpt")
    assert loaded.config.vocab_size == VOCAB + 5
    assert_same(loaded.state_dict(), model.state_dict())


# --- the configuration ------------------------------------------------------------------------------------------------


def test_a_configuration_that_is_given_or_lies_beside_it_is_taken(tmp_path: Path) -> None:
    """Lengths and dropout leave no trace in a checkpoint: the file beside it keeps them on the way back."""
    model = tiny(mem_len=3, clamp_len=5, dropout=0.25)
    model.save_pretrained(tmp_path / "ours")
    convert(FAMILY, tmp_path / "ours", tmp_path / "theirs" / "model.ckpt")
    assert TransfoXLConfig.from_pretrained(tmp_path / "theirs") == model.config
    assert TransfoXLLMHeadModel.from_pretrained(tmp_path / "theirs").config == model.config
    assert convert(FAMILY, tmp_path / "theirs", tmp_path / "again").config == model.config
    (tmp_path / "theirs" / "config.json").rename(tmp_path / "sizes.json")
    told = TransfoXLLMHeadModel.from_pretrained(tmp_path / "theirs")
    default = TransfoXLConfig()
    assert (told.config.mem_len, told.config.clamp_len) == (default.mem_len, default.clamp_len)
    named = TransfoXLLMHeadModel.from_pretrained(tmp_path / "theirs", config=tmp_path / "sizes.json")
    assert named.config == model.config
    changed = TransfoXLLMHeadModel.from_pretrained(tmp_path / "theirs", mem_len=4)
    assert (changed.config.mem_len, changed.config.vocab_size) == (4, VOCAB)
    done = convert(FAMILY, tmp_path / "theirs", tmp_path / "third", overrides={"mem_len": 4})
    assert isinstance(done.config, TransfoXLConfig)
    assert (done.config.mem_len, done.config.vocab_size) == (4, VOCAB)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vocab_size": VOCAB - 1}, (f"{LOOKUP} [61, 40]", "[60, 40]", f"{SOFTMAX}cutoff_3/b [14]", "[13]")),
        ({"vocab_size": VOCAB + 1}, (f"{LOOKUP} [61, 40]", "[62, 40]", "crit.out_layers.0.bias[47:62] [15]")),
        (
            {"cutoffs": [11, 30, 47]},
            (f"{SOFTMAX}cutoff_1/b [18] for crit.out_layers.0.bias[11:30] [19]", "cutoff_2/b [18]"),
        ),
        ({"cutoffs": [11, 29]}, (f"{SOFTMAX}cutoff_3/b", "cutoff_2/b [18] for crit.out_layers.0.bias[29:61] [32]")),
        (
            {"cutoffs": [11, 29, 47, 50]},
            ("no variable has the values of crit.out_layers.0.bias[50:61]", "cluster_W [3, 40]"),
        ),
        ({"cutoffs": []}, (f"{SOFTMAX}cutoff_0/b", "values of crit.out_layers.0.bias")),
        ({"n_layer": LAYERS - 1}, ("no place for transformer/layer_2/", "transformer/r_w_bias[2:3]", "r_r_bias[2:3]")),
        (
            {"n_layer": LAYERS + 1},
            (
                "transformer.layers.3.dec_attn.qkv_net.weight",
                "transformer/r_w_bias[3:4] [0, 5, 6] for transformer.layers.3",
            ),
        ),
        ({"untie_r": False}, ("transformer/r_w_bias [3, 5, 6] for transformer.r_w_bias [5, 6]",)),
        ({"n_head": HEAD_SIZE, "d_head": HEADS}, ("transformer/r_w_bias[0:1] [1, 5, 6]", "dec_attn.r_w_bias [6, 5]")),
        ({"d_inner": INNER + 1}, ("transformer/layer_0/ff/layer_1/kernel [40, 37]", "CoreNet.0.weight [38, 40]")),
        ({"d_embed": EMBED}, ("emb_projs.0", f"{LOOKUP} [61, 40]")),
        ({"div_val": 2}, (LOOKUP, "no variable has the values of transformer.word_emb.emb_layers.0.weight")),
    ],
    ids=lambda value: "-".join(f"{key}" for key in value) if isinstance(value, dict) else "",
)
def test_a_wrong_configuration(change: dict[str, Any], words: tuple[str, ...], tmp_path: Path) -> None:
    """Every name, piece and shape that differs; the model that was there is as it was, and nothing is written."""
    sizes = {**KINDS["one table"], **change}
    prefix = checkpoint(tmp_path / "theirs", kind="one table")
    CASE.config(**sizes).save_pretrained(tmp_path)
    model = build(CASE, TransfoXLLMHeadModel, **sizes)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for load in (
        lambda: TransfoXLLMHeadModel.from_pretrained(prefix, config=CASE.config(**sizes)),
        lambda: load_original(model, prefix),
        lambda: convert(FAMILY, prefix, tmp_path / "out", config=tmp_path / "config.json"),
    ):
        with pytest.raises(ValueError, match=re.escape(str(prefix))) as caught:
            load()
        assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)
    assert_same(model.state_dict(), before)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"tie_projs": [False] * 4},
            "no variable has the values of crit.out_projs.1, crit.out_projs.2, crit.out_projs.3",
        ),
        ({"tie_projs": [True] * 4}, f"no place for {SOFTMAX}cutoff_0/proj"),
        (
            {"d_embed": EMBED + 1},
            "cutoff_0/lookup_table [11, 24] for transformer.word_emb.emb_layers.0.weight [11, 25]",
        ),
        ({"div_val": 1}, "no row of the table knows transformer/adaptive_embed/cutoff_0/lookup_table"),
        ({"cutoffs": [11, 28, 47]}, f"{SOFTMAX}cutoff_1/b [18] for crit.out_layers.1.bias [17]"),
    ],
    ids=lambda value: "-".join(f"{key}" for key in value) if isinstance(value, dict) else "",
)
def test_a_wrong_configuration_of_clusters(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    prefix = checkpoint(tmp_path)
    with pytest.raises(ValueError, match=re.escape(words)):
        TransfoXLLMHeadModel.from_pretrained(prefix, config=CASE.config(**change))


def test_ignored_sizes(tmp_path: Path) -> None:
    """Arrays of another size are new, also those in pieces; the others are loaded."""
    prefix = checkpoint(tmp_path, kind="one table")
    sizes = {**KINDS["one table"], "n_head": HEAD_SIZE, "d_head": HEADS, "vocab_size": VOCAB + 1}
    model, info = TransfoXLLMHeadModel.from_pretrained(
        prefix, config=CASE.config(**sizes), ignore_mismatched_sizes=True, output_loading_info=True
    )
    assert {name for name, *_ in info["mismatched_keys"]} >= {
        "crit.out_layers.0.bias",
        "transformer.word_emb.emb_layers.0.weight",
        *(f"transformer.layers.{n}.dec_attn.r_w_bias" for n in range(LAYERS)),
    }
    assert torch.equal(model.crit.cluster_bias, read_variables(prefix)[f"{SOFTMAX}cutoff_0/cluster_b"])


# --- what names and shapes tell ---------------------------------------------------------------------------------------

#: A checkpoint of tails with tables of their own.
SHAPES: dict[str, Shape] = {
    "transformer/r_w_bias": (LAYERS, HEADS, HEAD_SIZE),
    "transformer/layer_0/ff/layer_1/kernel": (HIDDEN, INNER),
    "transformer/adaptive_embed/cutoff_0/lookup_table": (11, 24),
    "transformer/adaptive_embed/cutoff_1/lookup_table": (50, 6),
    f"{SOFTMAX}cutoff_0/b": (11,),
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"transformer/r_w_bias": None}, "there is no transformer/r_w_bias"),
        ({"transformer/r_w_bias": (3,)}, "transformer/r_w_bias [3] should have 2 or 3 axes"),
        ({"transformer/layer_0/ff/layer_1/kernel": ()}, "layer_0/ff/layer_1/kernel [] should have 2 axes"),
        ({"transformer/adaptive_embed/cutoff_1/lookup_table": (0, 6)}, "none of them empty"),
        ({"transformer/adaptive_embed/cutoff_1/lookup_table": (50, 7)}, "widths of the tables, [24, 7]"),
        (
            {"transformer/adaptive_embed/cutoff_0/lookup_table": None},
            "no transformer/adaptive_embed/cutoff_0/lookup_table",
        ),
        ({f"{SOFTMAX}cutoff_99999999999/b": (1,)}, "no transformer/adaptive_embed/cutoff_2/lookup_table"),
        ({LOOKUP: (61, 24)}, f"there is no {SOFTMAX}cutoff_1/b"),
        (
            dict.fromkeys(SHAPES),
            f"no transformer/r_w_bias, there is no transformer/layer_0/ff/layer_1/kernel, there is no {LOOKUP}",
        ),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[:40],
)
def test_shapes_that_tell_no_configuration(change: dict[str, Shape | None], words: str) -> None:
    assert inferred_config(SHAPES)["div_val"] == 4
    shapes = {name: shape for name, shape in {**SHAPES, **change}.items() if shape is not None}
    with pytest.raises(ValueError, match=re.escape(words)):
        inferred_config(shapes)


@pytest.mark.parametrize(
    ("widths", "divisor"),
    [([24], 2), ([1], 2), ([24, 12], 2), ([24, 6, 1], 4), ([10, 3], 3), ([10, 1, 0], None), ([1024, 256, 64, 16], 4)],
)
def test_the_divisor_of_widths(widths: list[int], divisor: int | None) -> None:
    """The smallest that fits, as the widths are rounded down."""
    tables: dict[str, Shape] = {
        f"transformer/adaptive_embed/cutoff_{i}/lookup_table": (9, width) for i, width in enumerate(widths)
    }
    shapes = {**{name: shape for name, shape in SHAPES.items() if "cutoff" not in name}, **tables}
    if divisor is None:
        with pytest.raises(ValueError, match="none of them empty"):
            inferred_config(shapes)
        return
    values = inferred_config(shapes)
    assert values["div_val"] == divisor
    assert [widths[0] // divisor**i for i in range(len(widths))] == widths
    assert TransfoXLConfig(**values).d_embed == widths[0]


# --- too little, too much ---------------------------------------------------------------------------------------------


def test_a_checkpoint_with_too_little_or_too_much(tmp_path: Path) -> None:
    """Pieces and variables that are missing, and those that nobody knows, are named; training's are none of both."""
    config = CASE.config(**KINDS["one table"])
    training = {
        "global_step": torch.tensor(3),
        f"{LOOKUP}/Adam": torch.ones(2),
        "transformer/r_w_bias/Adam_1": torch.ones(2),
    }
    whole = checkpoint(tmp_path / "whole", training, kind="one table")
    assert TransfoXLLMHeadModel.from_pretrained(whole).config.n_layer == LAYERS
    for number, (missing, words) in enumerate(
        {
            f"{SOFTMAX}cutoff_1/b": "no variable has the values of crit.out_layers.0.bias[11:29]",
            f"{SOFTMAX}cutoff_3/b": "no variable has the values of crit.out_layers.0.bias[47:61]",
            "transformer/r_r_bias": "no variable has the values of transformer.layers.0.dec_attn.r_r_bias, ",
            f"{SOFTMAX}cutoff_0/cluster_W": "no variable has the values of crit.cluster_weight",
            "transformer/layer_1/ff/LayerNorm/beta": "values of transformer.layers.1.pos_ff.layer_norm.bias",
        }.items()
    ):
        prefix = checkpoint(tmp_path / str(number), {missing: None}, kind="one table")
        with pytest.raises(ValueError, match=re.escape(words)):
            TransfoXLLMHeadModel.from_pretrained(prefix, config=config)
    with pytest.raises(
        ValueError, match=rf"0/model\.ckpt: no configuration, and the shapes .* no {SOFTMAX}cutoff_1/b$"
    ):
        TransfoXLLMHeadModel.from_pretrained(tmp_path / "0" / "model.ckpt")
    with pytest.raises(
        ValueError, match=rf"0/model\.ckpt: no configuration, and the shapes .* no {SOFTMAX}cutoff_1/b$"
    ):
        convert(FAMILY, tmp_path / "0", tmp_path / "out")
    with pytest.raises(
        ValueError, match=r"4/model\.ckpt into TransfoXLLMHeadModel: no variable has the values of"
    ) as caught:
        convert(FAMILY, tmp_path / "4", tmp_path / "out")
    assert "published" not in str(caught.value), "no other sizes were tried"
    more = checkpoint(tmp_path / "more", {"transformer/layer_0/extra": torch.ones(2)}, kind="one table")
    with pytest.raises(ValueError, match=r"more/model\.ckpt.*transformer/layer_0/extra \[2\]"):
        TransfoXLLMHeadModel.from_pretrained(more)
    done = convert(FAMILY, more, tmp_path / "out", ignore=["transformer/.*/extra"])
    assert done.plan.ignored == ["transformer/layer_0/extra"]


def test_a_piece_of_whole_numbers_is_no_weight(tmp_path: Path) -> None:
    """Joined with the other pieces it would become one in silence."""
    prefix = checkpoint(tmp_path, {f"{SOFTMAX}cutoff_1/b": torch.ones(18).long()}, kind="one table")
    with pytest.raises(ValueError, match=f"{SOFTMAX}cutoff_1/b should hold floating-point numbers"):
        TransfoXLLMHeadModel.from_pretrained(prefix)


@pytest.mark.parametrize("kind", ["one table", "one tail"])
def test_a_scope_is_stripped(kind: str, tmp_path: Path) -> None:
    """The configuration is found below the scope, too; without it the error names the scope."""
    model = tiny(kind)
    save_original(model, tmp_path / "plain" / "model.ckpt")
    variables = read_variables(tmp_path / "plain" / "model.ckpt")
    write_bundle(tmp_path / "scoped" / "model.ckpt", {f"tower/{name}": value for name, value in variables.items()})
    convert(FAMILY, tmp_path / "scoped", tmp_path / "out", scope="tower")
    assert_same(TransfoXLLMHeadModel.from_pretrained(tmp_path / "out").state_dict(), model.state_dict())
    with pytest.raises(ValueError, match=r"shapes tell none.*known without 'tower' before them.*--scope tower"):
        convert(FAMILY, tmp_path / "scoped", tmp_path / "more")
    other = tiny(kind, seed=4)
    load_tf_weights(other, tmp_path / "scoped", scope="tower")
    assert_same(other.state_dict(), model.state_dict())


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pre_lnorm": True}, "pre_lnorm: the original Transformer-XL computes with False, not True"),
        ({"tie_weight": False}, "tie_weight: .* with True, not False"),
        ({"layer_norm_epsilon": 1e-5}, "layer_norm_epsilon: .* with 1e-12, not 1e-05"),
        ({"same_length": True, "same_length_one_fewer": True}, "same_length_one_fewer: .*as with False, not True"),
    ],
)
def test_what_the_original_cannot_compute(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    """And nothing is written: a checkpoint beside an error would be taken for a good one."""
    with pytest.raises(ValueError, match=words):
        original_config(CASE.config(**change))
    tiny(**change).save_pretrained(tmp_path / "ours")
    with pytest.raises(ValueError, match=words):
        convert(FAMILY, tmp_path / "ours", tmp_path / "theirs" / "model.ckpt")
    assert not (tmp_path / "theirs").exists()
    assert original_config(CASE.config(same_length_one_fewer=True))[0] == "config.json"


def test_what_the_original_cannot_have(tmp_path: Path) -> None:
    odd = tiny()
    odd.adapter = torch.nn.Linear(2, 3)
    with pytest.raises(ValueError, match=r"no such weights: adapter\.weight, adapter\.bias$"):
        save_original(odd, tmp_path / "model.ckpt")
    with pytest.raises(ValueError, match="computes in float32"):
        save_original(tiny().double(), tmp_path / "model.ckpt")
    assert list(tmp_path.iterdir()) == []


def test_files_beside_the_checkpoint(tmp_path: Path) -> None:
    tiny().save_pretrained(tmp_path / "ours")
    done = convert(FAMILY, tmp_path / "ours", tmp_path / "theirs" / "model.ckpt")
    names = {"model.ckpt.index", "model.ckpt.data-00000-of-00001", "checkpoint", "config.json"}
    assert {path.name for path in done.written} == {path.name for path in (tmp_path / "theirs").iterdir()} == names
    assert type(AutoModel.from_pretrained(tmp_path / "theirs")) is TransfoXLModel


# --- published names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["two", "three", "by name"])
def test_published_function_reads_in_place(form: str, tmp_path: Path) -> None:
    source, model = tiny(), tiny(seed=5)
    save_original(source, tmp_path / "model.ckpt")
    forms: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "two": ((tmp_path / "model.ckpt",), {}),
        "three": ((model.config, str(tmp_path / "model.ckpt")), {}),
        "by name": ((), {"config": model.config, "tf_path": tmp_path / "model.ckpt"}),
    }
    arguments, named = forms[form]
    assert load_tf_weights(model, *arguments, **named) is model
    assert_same(model.state_dict(), source.state_dict())
    assert model.crit.out_layers[1].weight is model.transformer.word_emb.emb_layers[1].weight


@pytest.mark.parametrize("config", ["", "config.json"])
def test_published_function_to_pytorch(config: str, tmp_path: Path) -> None:
    """`pytorch_model.bin` and `config.json` of the language model; sizes are told by the checkpoint."""
    model = tiny()
    save_original(model, tmp_path / "theirs" / "model.ckpt")
    model.config.save_pretrained(tmp_path)
    out = tmp_path / "out"
    file = str(tmp_path / config) if config else ""
    convert_transfo_xl_checkpoint_to_pytorch(str(tmp_path / "theirs" / "model.ckpt"), file, str(out), "")
    assert sorted(path.name for path in out.iterdir()) == ["config.json", "pytorch_model.bin"]
    loaded, info = TransfoXLLMHeadModel.from_pretrained(out, output_loading_info=True)
    assert not any(info.values())
    assert_same(loaded.state_dict(), model.state_dict())
    assert loaded.config.mem_len == (model.config.mem_len if config else TransfoXLConfig().mem_len)


def test_the_command_of_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_original(tiny("one table"), tmp_path / "theirs" / "xl")  # no "ckpt" in its name
    assert main(["convert_transfo_xl_checkpoint", str(tmp_path / "theirs" / "xl"), str(tmp_path / "classic")]) == 0
    assert "TransfoXLLMHeadModel from" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "classic").iterdir()} == {"config.json", "pytorch_model.bin"}
    assert main(["convert", "--family", "transfo_xl", str(tmp_path / "theirs"), str(tmp_path / "ours"), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["model_class"] == "TransfoXLLMHeadModel"
    assert {"source_rows", "target_rows"} <= set().union(*values["used"])
    first, second = (TransfoXLLMHeadModel.from_pretrained(tmp_path / name) for name in ("classic", "ours"))
    assert_same(first.state_dict(), second.state_dict())


def test_a_corpus_is_told_from_a_checkpoint_by_what_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "model.ckpt"  # by its name alone, all in it would be checkpoints
    folder.mkdir()
    prefix = checkpoint(folder)
    cache = folder / "cache.pkl"
    cache.write_bytes(b"\x80\x02N.")
    assert is_corpus(cache)
    parts = list(folder.glob("model.ckpt.*"))
    assert len(parts) == 2
    for path in (prefix, folder, folder / "gone", *parts):
        assert not is_corpus(path)
    for name in ("model.safetensors", "pytorch_model.bin", "config.json"):
        (folder / name).touch()
        assert not is_corpus(folder / name)
    for name in ("corpus.bin", "transfo-xl-wt103-corpus.bin"):  # weights are .bin too: by its name
        (folder / name).touch()
        assert is_corpus(folder / name)


WORDS = ("<eos>", "the", "onion", "of")


def corpus_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus as `data_utils.py` of the original pickles it (protocol 2), with the vocabulary inside."""
    modules = {name: ModuleType(name) for name in ("data_utils", "vocabulary")}
    objects = {}
    for module, kind in (("data_utils", "Corpus"), ("vocabulary", "Vocab")):
        cls = type(kind, (), {"__module__": module})
        setattr(modules[module], kind, cls)
        monkeypatch.setitem(sys.modules, module, modules[module])
        objects[kind] = cls()
    vars(objects["Vocab"]).update(
        counter=Counter({word: 9 - i for i, word in enumerate(WORDS)}),
        special=["<eos>"],
        min_freq=0,
        max_size=None,
        lower_case=False,
        delimiter=None,
        vocab_file=None,
        idx2sym=list(WORDS),
        sym2idx=OrderedDict((word, i) for i, word in enumerate(WORDS)),
    )
    splits = {name: np.array([1, 2, 3, 1, 0], dtype=np.int64) for name in ("train", "valid", "test")}
    vars(objects["Corpus"]).update(vocab=objects["Vocab"], dataset="wt103", cutoffs=[2], **splits)
    path.write_bytes(pickle.dumps(objects["Corpus"], protocol=2))
    return path


@pytest.mark.parametrize("way", ["function", "classic", "convert", "json"])
def test_a_corpus(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The vocabulary and the ids come out, whatever way they go."""
    with monkeypatch.context() as patch:
        cache = corpus_file(tmp_path / "cache.pkl", patch)
    out = tmp_path / "out"
    if way == "function":
        convert_transfo_xl_checkpoint_to_pytorch("", "", str(out), str(cache))
    else:
        command = ["convert", "--family", "transfo_xl"] if way != "classic" else ["convert_transfo_xl_checkpoint"]
        assert main([*command, str(cache), str(out), *(["--json"] if way == "json" else [])]) == 0
        said = capsys.readouterr().out
        paths = json.loads(said)["written"] if way == "json" else re.findall("^written   (.*)$", said, re.MULTILINE)
        assert {Path(path) for path in paths} == set(out.iterdir())
    corpus = TransfoXLCorpus.from_pretrained(out)
    assert corpus.vocab.convert_ids_to_tokens([0, 1, 2, 3]) == list(WORDS)
    assert isinstance(corpus.train, Tensor)
    assert corpus.train.tolist() == [1, 2, 3, 1, 0]
    assert not (out / "pytorch_model.bin").exists()


@pytest.mark.parametrize("command", [["convert", "--family", "transfo_xl"], ["convert_transfo_xl_checkpoint"]], ids=len)
def test_a_published_corpus(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`corpus.bin`, with its vocabulary beside it."""
    symbols = {"idx2sym": list(WORDS), "sym2idx": {word: i for i, word in enumerate(WORDS)}}
    splits = {name: np.array([1, 2, 3, 1, 0]) for name in ("train", "valid", "test")}
    torch.save({"dataset": "wt103", **splits}, tmp_path / "corpus.bin", _use_new_zipfile_serialization=False)
    assert main([*command, str(tmp_path / "corpus.bin"), str(tmp_path / "out")]) == 1
    assert "vocab" in capsys.readouterr().err  # it is missing
    torch.save(symbols, tmp_path / "vocab.bin", _use_new_zipfile_serialization=False)
    assert main([*command, str(tmp_path / "corpus.bin"), str(tmp_path / "out")]) == 0
    assert "corpus from" in capsys.readouterr().out
    corpus = TransfoXLCorpus.from_pretrained(tmp_path / "out")
    assert corpus.vocab.idx2sym == list(WORDS)
    assert isinstance(corpus.test, Tensor)
    assert corpus.test.tolist() == [1, 2, 3, 1, 0]


def test_a_corpus_and_a_checkpoint_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        cache = corpus_file(tmp_path / "cache.pkl", patch)
    model = tiny()
    save_original(model, tmp_path / "model.ckpt")
    convert_transfo_xl_checkpoint_to_pytorch(tmp_path / "model.ckpt", "", tmp_path / "out", cache)
    assert_same(TransfoXLLMHeadModel.from_pretrained(tmp_path / "out").state_dict(), model.state_dict())
    assert len(TransfoXLCorpus.from_pretrained(tmp_path / "out").vocab) == len(WORDS)


def test_options_of_checkpoints_are_none_of_a_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cache.pkl").write_bytes(b"\x80\x02N.")
    command = ["convert", "--family", "transfo_xl", str(tmp_path / "cache.pkl"), str(tmp_path / "out")]
    assert main([*command, "--scope", "tower", "--set", "mem_len=3"]) != 0
    assert "--scope, --set is about checkpoints" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
