"""Checkpoints of the original program: there and back to the last bit; what does not fit is an error."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pytorch_transformers import (
    GPT2Config,
    GPT2DoubleHeadsModel,
    GPT2LMHeadModel,
    GPT2Model,
    load_tf_weights_in_gpt2,
)
from pytorch_transformers.checkpoint.tensorflow.write import write_bundle
from pytorch_transformers.models.conversion import convert
from pytorch_transformers.models.gpt2 import FAMILY
from pytorch_transformers.models.gpt2.convert import KEY_MAP, original_config
from pytorch_transformers.models.original import load_original, save_original
from shared_data import shared

from ..battery import build
from .tiny import CASE, HIDDEN, LAYERS, MODELS, POSITIONS, VOCAB

HPARAMS = {"n_vocab": VOCAB, "n_ctx": POSITIONS, "n_embd": HIDDEN, "n_head": 5, "n_layer": LAYERS}


@pytest.fixture
def checkpoint(tmp_path: Path) -> tuple[Any, Path]:
    """A model that the original can have, and its checkpoint with the file of its sizes."""
    model = build(CASE, GPT2LMHeadModel, n_inner=None)
    folder = tmp_path / "original"
    save_original(model, folder / "model.ckpt")
    name, values = original_config(model.config)
    assert (name, values) == ("hparams.json", HPARAMS)
    (folder / name).write_text(json.dumps(values))
    return model, folder


@pytest.mark.parametrize("model_class", MODELS)
def test_there_and_back(model_class: type[Any], checkpoint: tuple[Any, Path], tmp_path: Path) -> None:
    model, folder = checkpoint
    for place in (folder, folder / "model.ckpt", folder / "model.ckpt.index"):
        loaded, info = model_class.from_pretrained(place, output_loading_info=True)
        heads = [name for name in info["missing_keys"] if not name.startswith("multiple_choice_head.summary.")]
        assert heads == info["unexpected_keys"] == []
        for name, value in model.transformer.state_dict().items():
            assert torch.equal(loaded.base_model.state_dict()[name], value), name
    if model_class is not GPT2DoubleHeadsModel:
        _, written = save_original(loaded, tmp_path / "again" / "model.ckpt")
        for path in written:
            assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_command_there_and_back(tmp_path: Path) -> None:
    """What `convert` makes of the original's own checkpoint, and of that again; the files of its sizes go along."""
    source = shared("goldens", "gpt2", "model")
    there = convert(FAMILY, source, tmp_path / "ours")
    assert there.model_class == "GPT2LMHeadModel"
    assert there.plan.fresh == there.plan.left_out == []
    back = convert(FAMILY, tmp_path / "ours", tmp_path / "theirs" / "model.ckpt")
    assert json.loads((tmp_path / "theirs" / "hparams.json").read_text()) == json.loads(
        (source / "hparams.json").read_text()
    )
    assert there.parameters == back.parameters
    first, second = (GPT2LMHeadModel.from_pretrained(place) for place in (source, tmp_path / "theirs"))
    assert all(torch.equal(second.state_dict()[name], value) for name, value in first.state_dict().items())
    data = "model.ckpt.data-00000-of-00001"
    assert (tmp_path / "theirs" / data).read_bytes() == (source / data).read_bytes(), "the values, in their order"


@pytest.mark.parametrize("form", ["two", "three", "three without a configuration", "folder"])
def test_published_function(form: str, checkpoint: tuple[Any, Path]) -> None:
    source, folder = checkpoint
    model = build(CASE, GPT2DoubleHeadsModel, seed=5, n_inner=None)
    head = model.multiple_choice_head.summary.weight.detach().clone()
    arguments: dict[str, tuple[Any, ...]] = {
        "two": (folder / "model.ckpt",),
        "three": (model.config, str(folder / "model.ckpt")),
        "three without a configuration": (None, folder / "model.ckpt"),
        "folder": (folder,),
    }
    assert load_tf_weights_in_gpt2(model, *arguments[form]) is model
    for name, value in source.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name
    assert torch.equal(model.multiple_choice_head.summary.weight, head), "what the checkpoint lacks stays"
    assert model.lm_head.weight is model.transformer.wte.weight
    with pytest.raises(TypeError, match="found 1 arg"):
        load_tf_weights_in_gpt2(model)
    with pytest.raises(TypeError, match="config: expected a configuration, found dict"):
        load_tf_weights_in_gpt2(model, {}, folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_layer": LAYERS - 1}, (f"model/h{LAYERS - 1}/attn/c_attn/w", f"model/h{LAYERS - 1}/mlp/c_proj/b")),
        ({"n_layer": LAYERS + 1}, (f"transformer.h.{LAYERS}.attn.c_attn.weight", "no variable")),
        ({"n_embd": 45}, ("model/wte", "[99, 40]", "[99, 45]", "model/h0/attn/c_attn/w", "[1, 40, 120]", "[45, 135]")),
        ({"vocab_size": 98}, ("model/wte", "[99, 40]", "[98, 40]")),
        ({"n_positions": 22}, ("model/wpe", "[23, 40]", "[22, 40]")),
        ({"n_inner": 37}, ("model/h0/mlp/c_fc/w", "[1, 40, 160]", "[40, 37]")),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_wrong_configuration(change: dict[str, int], words: tuple[str, ...], checkpoint: tuple[Any, Path]) -> None:
    """Every name and shape that differs; the model that was there is as it was."""
    _, folder = checkpoint
    sizes: dict[str, Any] = {"n_inner": None, **change}
    model = build(CASE, GPT2Model, **sizes)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for load in (
        lambda: GPT2Model.from_pretrained(folder, config=CASE.config(**sizes)),
        lambda: load_original(model, folder),
    ):
        with pytest.raises(ValueError, match=re.escape(str(folder / "model.ckpt"))) as caught:
            load()
        assert [word for word in words if word not in str(caught.value)] == []
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_a_checkpoint_with_too_little_or_too_much(checkpoint: tuple[Any, Path], tmp_path: Path) -> None:
    """A missing variable, and one that nobody knows, are named; what belongs to training is none of both."""
    model, _ = checkpoint
    variables: dict[str, Tensor] = {}
    for name, value in model.state_dict().items():
        if found := KEY_MAP.to_original(name):
            row, original = found
            variables[original] = value[None] if row.operation == "drop_first" else value
    training = {
        "global_step": torch.tensor(3),
        "model/wte/Adam": model.lm_head.weight,
        "beta1_power": torch.tensor(0.9),
    }
    write_bundle(tmp_path / "a" / "model.ckpt", {**variables, **training})
    loaded = GPT2LMHeadModel.from_pretrained(tmp_path / "a", config=model.config)
    assert all(torch.equal(loaded.state_dict()[name], value) for name, value in model.state_dict().items())
    fewer = {name: value for name, value in variables.items() if name != "model/h1/ln_2/g"}
    write_bundle(tmp_path / "b" / "model.ckpt", fewer)
    with pytest.raises(
        ValueError, match=r"b/model\.ckpt.*no variable has the values of transformer\.h\.1\.ln_2\.weight"
    ):
        GPT2LMHeadModel.from_pretrained(tmp_path / "b", config=model.config)
    write_bundle(tmp_path / "c" / "model.ckpt", {**variables, "model/h0/attn/extra": torch.ones(2)})
    with pytest.raises(ValueError, match=r"c/model\.ckpt.*model/h0/attn/extra \[2\]"):
        GPT2LMHeadModel.from_pretrained(tmp_path / "c", config=model.config)
    again = load_original(build(CASE, GPT2LMHeadModel, n_inner=None), tmp_path / "c", ignore=["model/.*/extra"])
    assert torch.equal(again.lm_head.weight, model.lm_head.weight)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"activation_function": "relu"}, "activation_function.*gelu_new.*relu"),
        ({"n_inner": 37}, "n_inner.*37"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon.*1e-05.*1e-06"),
    ],
)
def test_what_the_original_cannot_compute(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        original_config(CASE.config(**{"n_inner": None, **change}))
    assert original_config(CASE.config(n_inner=160, activation_function="gelu_tanh"))[1] == HPARAMS


def test_what_the_original_cannot_have(tmp_path: Path) -> None:
    pruned = build(CASE, GPT2LMHeadModel)
    pruned.prune_heads({0: [1]})
    with pytest.raises(ValueError, match="pruned heads"):
        save_original(pruned, tmp_path / "model.ckpt")
    with pytest.raises(ValueError, match=r"no such weights: multiple_choice_head\.summary\.weight"):
        save_original(build(CASE, GPT2DoubleHeadsModel), tmp_path / "model.ckpt")
    assert list(tmp_path.iterdir()) == []


def test_rows_cover_every_parameter() -> None:
    """Both ways, each name once."""
    model = build(CASE, GPT2LMHeadModel)
    names = [name for name, _ in model.named_parameters()]
    originals = [found[1] for name in names if (found := KEY_MAP.to_original(name)) is not None]
    assert len(originals) == len(set(originals)) == len(names)
    back = [found[1] for name in originals if (found := KEY_MAP.to_ours(name)) is not None]
    assert back == names


# --- published PyTorch checkpoints ------------------------------------------------------------------------------------


def old_state(model: Any, *, prefix: bool = True) -> dict[str, Tensor]:
    """The names of published files: constants among the weights, the decoder with or without its prefix."""
    state = {name: value.clone() for name, value in model.state_dict().items() if name != "lm_head.weight"}
    for layer in range(model.config.n_layer):
        triangle = torch.ones(POSITIONS, POSITIONS).tril()[None, None]
        state[f"transformer.h.{layer}.attn.bias"] = triangle
        state[f"transformer.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    return state if prefix else {name.removeprefix("transformer."): value for name, value in state.items()}


@pytest.mark.parametrize("prefix", [True, False])
@pytest.mark.parametrize("model_class", MODELS)
def test_published_files(
    model_class: type[Any], prefix: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Causal masks in the file are no news, and a missing or extra prefix is none, either."""
    source = build(CASE, GPT2LMHeadModel)
    source.config.save_pretrained(tmp_path)
    torch.save(old_state(source, prefix=prefix), tmp_path / "pytorch_model.bin")
    with caplog.at_level(logging.WARNING):
        loaded, info = model_class.from_pretrained(tmp_path, output_loading_info=True)
    missing = [name for name in info["missing_keys"] if not name.startswith("multiple_choice_head.")]
    assert missing == info["unexpected_keys"] == []
    if model_class is not GPT2DoubleHeadsModel:
        assert caplog.messages == []
    for name, value in source.transformer.state_dict().items():
        assert torch.equal(loaded.base_model.state_dict()[name], value), name


@pytest.mark.parametrize("model_class", [GPT2LMHeadModel, GPT2DoubleHeadsModel])
def test_files_of_0_6_2(model_class: type[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its heads had other names: lm_head.decoder.weight, multiple_choice_head.linear.weight and .bias."""
    source = build(CASE, model_class)
    source.config.save_pretrained(tmp_path)
    state = old_state(source)
    state["lm_head.decoder.weight"] = state["transformer.wte.weight"]
    for kind in ("weight", "bias") if model_class is GPT2DoubleHeadsModel else ():
        state[f"multiple_choice_head.linear.{kind}"] = state.pop(f"multiple_choice_head.summary.{kind}")
    torch.save(state, tmp_path / "pytorch_model.bin")
    with caplog.at_level(logging.WARNING):
        loaded, info = model_class.from_pretrained(tmp_path, output_loading_info=True)
    assert info["missing_keys"] == info["unexpected_keys"] == []
    assert caplog.messages == []
    for name, value in source.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name


def test_published_configurations(tmp_path: Path) -> None:
    """What the configuration of the published `gpt2` says: nothing of it is lost, and nothing is warned about."""
    published = {
        "activation_function": "gelu_new",
        "architectures": ["GPT2LMHeadModel"],
        "attn_pdrop": 0.1,
        "bos_token_id": 50256,
        "embd_pdrop": 0.1,
        "eos_token_id": 50256,
        "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05,
        "model_type": "gpt2",
        "n_ctx": 1024,
        "n_embd": 768,
        "n_head": 12,
        "n_layer": 12,
        "n_positions": 1024,
        "resid_pdrop": 0.1,
        "summary_activation": None,
        "summary_first_dropout": 0.1,
        "summary_proj_to_labels": True,
        "summary_type": "cls_index",
        "summary_use_proj": True,
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
        "vocab_size": 50257,
    }
    (tmp_path / "config.json").write_text(json.dumps(published))
    config = GPT2Config.from_pretrained(tmp_path)
    assert {name: value for name, value in config.to_dict().items() if name in published} == published
    assert GPT2LMHeadModel.without_values(config).num_parameters() == 124_439_808


def test_the_vocabulary_gets_the_names_of_the_side_it_comes_to(tmp_path: Path) -> None:
    ours, theirs, again = tmp_path / "ours", tmp_path / "theirs", tmp_path / "again"
    GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=8, n_embd=8, n_layer=1, n_head=2)).save_pretrained(ours)
    (ours / "vocab.json").write_text('{"a": 0}', encoding="utf-8")
    (ours / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    convert(FAMILY, ours, theirs / "model.ckpt")
    names = {path.name for path in theirs.iterdir()}
    assert names >= {"encoder.json", "vocab.bpe", "hparams.json", "checkpoint", "model.ckpt.index"}
    assert not names & {"vocab.json", "merges.txt"}
    convert(FAMILY, theirs, again)
    assert (again / "vocab.json").read_bytes() == (ours / "vocab.json").read_bytes()
    assert (again / "merges.txt").read_bytes() == (ours / "merges.txt").read_bytes()
    assert not (again / "encoder.json").exists()
