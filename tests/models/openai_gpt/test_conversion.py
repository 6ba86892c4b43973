"""Checkpoints of the original program's form: there and back to the last bit; what does not fit is an error.

How the files are read, whatever is in them, is the subject of `tests/checkpoint/test_flat_arrays.py`.
"""

import json
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pytorch_transformers import (
    OpenAIGPTConfig,
    OpenAIGPTDoubleHeadsModel,
    OpenAIGPTLMHeadModel,
    OpenAIGPTModel,
    load_tf_weights_in_openai_gpt,
)
from pytorch_transformers.models.openai_gpt.convert import KEY_MAP, original_config
from pytorch_transformers.models.original import load_original, save_original
from shared_data import shared

from ..battery import build
from ..gpt2.tiny import LAYERS
from .tiny import CASE, MODELS

SIZES: dict[str, Any] = {"vocab_size": 90, "n_positions": 20, "n_embd": 24, "n_head": 3, "n_layer": 3}


@pytest.fixture
def checkpoint(tmp_path: Path) -> tuple[Any, Path]:
    """A model, and its weights as the original keeps them."""
    model = build(CASE, OpenAIGPTLMHeadModel)
    _, written = save_original(model, tmp_path / "original")
    assert sorted(path.name for path in written) == [*(f"params_{n}.npy" for n in range(10)), "params_shapes.json"]
    return model, tmp_path / "original"


def test_there_and_back(checkpoint: tuple[Any, Path], tmp_path: Path) -> None:
    model, folder = checkpoint
    for model_class in MODELS:
        loaded, info = model_class.from_pretrained(folder, config=model.config, output_loading_info=True)
        heads = [name for name in info["missing_keys"] if not name.startswith("multiple_choice_head.summary.")]
        assert heads == info["unexpected_keys"] == []
        own = loaded.state_dict()
        for name, value in model.transformer.state_dict().items():
            prefix = "" if model_class is OpenAIGPTModel else "transformer."
            assert torch.equal(own[prefix + name], value), name
        if model_class is not OpenAIGPTDoubleHeadsModel:
            save_original(loaded, tmp_path / model_class.__name__)
            for path in folder.iterdir():
                assert (tmp_path / model_class.__name__ / path.name).read_bytes() == path.read_bytes(), path.name


def test_the_originals_own_files_come_back(tmp_path: Path) -> None:
    """Byte for byte, but for the header of `.npy` and the spaces of the JSON."""
    folder = shared("goldens", "openai_gpt", "model")
    model = OpenAIGPTModel.from_pretrained(folder, config=OpenAIGPTConfig(**SIZES))
    save_original(model, tmp_path)
    for number in range(10):
        name = f"params_{number}.npy"
        ours, theirs = np.load(tmp_path / name), np.load(folder / name)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs), name
    shapes = [json.loads((place / "params_shapes.json").read_text()) for place in (tmp_path, folder)]
    assert shapes[0] == shapes[1]


def test_no_memory_is_kept_but_ours(checkpoint: tuple[Any, Path]) -> None:
    """What is loaded can be trained, and the files stay as they are."""
    model, folder = checkpoint
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    loaded = OpenAIGPTLMHeadModel.from_pretrained(folder, config=model.config)
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.add_(1.0)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("form", ["two", "three", "three without a configuration", "file"])
def test_published_function(form: str, checkpoint: tuple[Any, Path]) -> None:
    source, folder = checkpoint
    model = build(CASE, OpenAIGPTDoubleHeadsModel, seed=5)
    head = model.multiple_choice_head.summary.weight.detach().clone()
    arguments: dict[str, tuple[Any, ...]] = {
        "two": (folder,),
        "three": (model.config, str(folder)),
        "three without a configuration": (None, folder),
        "file": (folder / "params_shapes.json",),
    }
    assert load_tf_weights_in_openai_gpt(model, *arguments[form]) is model
    for name, value in source.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name
    assert torch.equal(model.multiple_choice_head.summary.weight, head), "what the files lack stays"
    assert model.lm_head.weight is model.transformer.tokens_embed.weight
    with pytest.raises(TypeError, match="found 1 arg"):
        load_tf_weights_in_openai_gpt(model)
    with pytest.raises(TypeError, match="config: expected a configuration, found str"):
        load_tf_weights_in_openai_gpt(model, "config.json", folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_layer": LAYERS - 1}, (f"model/h{LAYERS - 1}/attn/c_attn/w", f"model/h{LAYERS - 1}/ln_2/b", "no place")),
        ({"n_layer": LAYERS + 1}, (f"transformer.h.{LAYERS}.attn.c_attn.weight", "no variable")),
        ({"n_embd": 45}, ("model/tokens", "[99, 40]", "[99, 45]", "shapes differ")),
        ({"vocab_size": 98}, ("model/tokens", "[99, 40]", "[98, 40]")),
        ({"n_special": 3}, ("model/tokens", "[99, 40]", "[102, 40]")),
        ({"n_positions": 22}, ("model/positions", "[23, 40]", "[22, 40]")),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_wrong_configuration(change: dict[str, int], words: tuple[str, ...], checkpoint: tuple[Any, Path]) -> None:
    """Every name and shape that differs; the model that was there is as it was."""
    _, folder = checkpoint
    config = CASE.config(**change)
    model = build(CASE, OpenAIGPTModel, **change)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    loads: list[Callable[[], Any]] = [
        lambda: OpenAIGPTModel.from_pretrained(folder, config=config),
        lambda: load_original(model, folder),
    ]
    for load in loads:
        with pytest.raises(ValueError, match=re.escape(str(folder))) as caught:
            load()
        assert [word for word in words if word not in str(caught.value)] == []
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_a_number_of_weights_that_no_model_has(checkpoint: tuple[Any, Path]) -> None:
    """One shape too few: the message names the file."""
    model, folder = checkpoint
    path = folder / "params_shapes.json"
    path.write_text(json.dumps(json.loads(path.read_text())[:-1]))
    with pytest.raises((OSError, ValueError), match=r"37 weights.*12 for each layer") as caught:
        OpenAIGPTModel.from_pretrained(folder, config=model.config)
    assert str(path) in str(caught.value)


def test_damage_leaves_the_model_as_it_was(checkpoint: tuple[Any, Path]) -> None:
    _, folder = checkpoint
    values = np.load(folder / "params_9.npy")
    values[-1] = np.nan
    np.save(folder / "params_9.npy", values)
    model = build(CASE, OpenAIGPTModel, seed=7)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(OSError, match=r"params_9\.npy.*model/h2/ln_2/b.*not finite"):
        load_original(model, folder)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_pytorch_weights_come_first(checkpoint: tuple[Any, Path]) -> None:
    """Unless the original's are asked for."""
    model, folder = checkpoint
    other = build(CASE, OpenAIGPTLMHeadModel, seed=9)
    other.save_pretrained(folder)
    for asked, expected in ((False, other), (True, model)):
        loaded = OpenAIGPTLMHeadModel.from_pretrained(folder, from_tf=asked)
        assert torch.equal(loaded.lm_head.weight, expected.lm_head.weight)
    for path in folder.glob("params_*"):
        path.unlink()
    with pytest.raises(OSError, match=r"No checkpoint of NumPy files in .*params_shapes\.json"):
        OpenAIGPTLMHeadModel.from_pretrained(folder, from_tf=True)


def test_what_the_original_cannot_have(tmp_path: Path) -> None:
    pruned = build(CASE, OpenAIGPTLMHeadModel)
    pruned.prune_heads({0: [1]})
    with pytest.raises(ValueError, match="pruned heads"):
        save_original(pruned, tmp_path)
    with pytest.raises(ValueError, match=r"no such weights: multiple_choice_head\.summary\.weight"):
        save_original(build(CASE, OpenAIGPTDoubleHeadsModel), tmp_path)
    with pytest.raises(ValueError, match=r"n_special: 3.*set_num_special_tokens\(0\)"):
        original_config(CASE.config(n_special=3))
    assert list(tmp_path.iterdir()) == []
    name, values = original_config(CASE.config())
    assert name == "config.json"
    assert OpenAIGPTConfig.from_dict(values) == CASE.config()


def test_rows_cover_every_parameter() -> None:
    """Both ways, each name once."""
    model = build(CASE, OpenAIGPTLMHeadModel)
    names = [name for name, _ in model.named_parameters()]
    originals = [found[1] for name in names if (found := KEY_MAP.to_original(name)) is not None]
    assert len(originals) == len(set(originals)) == len(names)
    back = [found[1] for name in originals if (found := KEY_MAP.to_ours(name)) is not None]
    assert back == names


# --- published PyTorch checkpoints ------------------------------------------------------------------------------------


def old_state(model: Any, *, prefix: bool = True, constants: bool = True) -> dict[str, Tensor]:
    """The names of published files: constants among the weights, the decoder with or without its prefix."""
    state = {name: value.clone() for name, value in model.state_dict().items() if name != "lm_head.weight"}
    if constants:
        positions = model.config.n_positions
        for layer in range(model.config.n_layer):
            triangle = torch.ones(positions, positions).tril()[None, None]
            state[f"transformer.h.{layer}.attn.bias"] = triangle
        state["transformer.position_ids"] = torch.arange(positions)
    return state if prefix else {name.removeprefix("transformer."): value for name, value in state.items()}


@pytest.mark.parametrize("prefix", [True, False])
@pytest.mark.parametrize("model_class", MODELS)
def test_published_files(
    model_class: type[Any], prefix: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Causal masks in the file are no news, and a missing or extra prefix is none, either."""
    source = build(CASE, OpenAIGPTLMHeadModel)
    source.config.save_pretrained(tmp_path)
    torch.save(old_state(source, prefix=prefix), tmp_path / "pytorch_model.bin")
    with caplog.at_level(logging.WARNING):
        loaded, info = model_class.from_pretrained(tmp_path, output_loading_info=True)
    missing = [name for name in info["missing_keys"] if not name.startswith("multiple_choice_head.")]
    assert missing == info["unexpected_keys"] == []
    if model_class is not OpenAIGPTDoubleHeadsModel:
        assert caplog.messages == []
    for name, value in source.transformer.state_dict().items():
        assert torch.equal(loaded.base_model.state_dict()[name], value), name


@pytest.mark.parametrize("model_class", [OpenAIGPTLMHeadModel, OpenAIGPTDoubleHeadsModel])
def test_files_of_0_6_2(model_class: type[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its heads had other names: lm_head.decoder.weight, multiple_choice_head.linear.weight and .bias."""
    source = build(CASE, model_class, n_special=2)
    source.config.save_pretrained(tmp_path)
    state = old_state(source)
    state["lm_head.decoder.weight"] = state["transformer.tokens_embed.weight"]
    for kind in ("weight", "bias") if model_class is OpenAIGPTDoubleHeadsModel else ():
        state[f"multiple_choice_head.linear.{kind}"] = state.pop(f"multiple_choice_head.summary.{kind}")
    torch.save(state, tmp_path / "pytorch_model.bin")
    with caplog.at_level(logging.WARNING):
        loaded, info = model_class.from_pretrained(tmp_path, output_loading_info=True)
    assert info["missing_keys"] == info["unexpected_keys"] == []
    assert caplog.messages == []
    for name, value in source.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name


def test_a_copied_folder_can_be_moved(checkpoint: tuple[Any, Path], tmp_path: Path) -> None:
    """A model is not bound to the place it came from once it is saved as ours."""
    model, folder = checkpoint
    OpenAIGPTLMHeadModel.from_pretrained(folder, config=model.config).save_pretrained(tmp_path / "ours")
    shutil.rmtree(folder)
    loaded = OpenAIGPTLMHeadModel.from_pretrained(tmp_path / "ours")
    assert all(torch.equal(loaded.state_dict()[name], value) for name, value in model.state_dict().items())
