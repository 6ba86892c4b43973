"""Checkpoints of the original programs, into models and out of them, by the table of the family.

Everything is planned on names and shapes before a value is read, and read whole before a model is changed; a checkpoint
that doesn't fit, or is damaged, is an error and never a model with some wrong weights.
"""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import torch
from torch import Tensor

from ..checkpoint.keymap import (
    Converted,
    KeyMap,
    Plan,
    Selection,
    Step,
    found_scopes,
    plan_from_original,
    plan_to_original,
)
from ..checkpoint.read import chosen_weights
from ..checkpoint.storage import Source
from ..hub import Location, locate
from .config import PretrainedConfig
from .construction import shared_parameters

if TYPE_CHECKING:
    from .base import PreTrainedModel

Model = TypeVar("Model", bound="PreTrainedModel")
Config = TypeVar("Config", bound=PretrainedConfig)


def find_original(location: Location, key_map: KeyMap, *, asked: bool) -> Source | None:
    """The original checkpoint of a place.

    Args:
        location: The place.
        key_map: The table of the family, which says how its original keeps its weights.
        asked: Whether the caller wants an original checkpoint; otherwise it is taken only where it was named, or where
            there are no PyTorch weights.

    Raises:
        OSError: There is none and one was asked for; there are several; or it is damaged.
    """
    if not asked and chosen_weights(location) is not None:
        return None
    storage = key_map.storage
    source = storage.find(location)
    if source is None and asked:
        raise OSError(f"No {storage.kind} in {location.description}: looked for {storage.looked_for}.")
    return source


def inferred_config(kind: type[Config], source: Source, key_map: KeyMap, selected: Selection) -> Config | None:
    """The configuration that the names and shapes of a checkpoint tell; None where the family doesn't read them.

    Args:
        kind: The class of the configuration; what isn't told has its defaults.
        source: The checkpoint.
        key_map: The table of the family.
        selected: Its names.

    Raises:
        ValueError: They don't tell it, or tell what can't be.
    """
    if key_map.inferred_config is None:
        return None
    shapes = source.shapes()
    try:
        values = key_map.inferred_config({inner: shapes[name] for inner, name in selected.weights.items()})
        return kind.from_dict(values)
    except ValueError as error:
        scopes = found_scopes(key_map, selected.weights)
        hint = f" (names are known without {scopes[0]!r} before them: --scope {scopes[0]})" if len(scopes) == 1 else ""
        raise ValueError(f"{source.prefix}: no configuration, and the shapes tell none: {error}{hint}") from error


def fitting_config(
    config: PretrainedConfig, source: Source, key_map: KeyMap, selected: Selection, *, labels: bool = True
) -> PretrainedConfig:
    """A configuration with as many labels as the head of a checkpoint has.

    Args:
        config: The configuration.
        source: The checkpoint.
        key_map: The table of the family.
        selected: Its names.
        labels: Whether to look at labels; not where the caller has said how many there are.

    Raises:
        ValueError: It asks for more layers than there are weights. They would be built before anything is compared,
            and a wrong number can be a large one.
    """
    layers = getattr(config, "num_hidden_layers", 0)
    if layers > len(selected.weights):
        raise ValueError(
            f"{source.prefix}: the configuration says {layers} layers, and there are {len(selected.weights)} weights"
        )
    shapes = source.shapes()
    for name in key_map.labels if labels else ():
        shape = shapes.get(selected.weights.get(name, ""))
        if shape:
            return type(config).from_dict(config.to_dict(), num_labels=shape[0])
    return config


def original_state(
    model: "PreTrainedModel",
    source: Source,
    *,
    scope: str = "",
    ignore: Sequence[str] = (),
    any_shape: bool = False,
    progress: bool = False,
) -> tuple[dict[str, Tensor], Plan]:
    """The values of a checkpoint under the names of a model.

    Values that need no change stay mapped to the file; of the others only ours are kept in memory.

    Args:
        model: Gives names and shapes; it may be without values (meta device), and isn't changed.
        source: The checkpoint.
        scope: Leading part of all original names to strip.
        ignore: Patterns of further names that aren't part of the model.
        any_shape: Whether shapes may differ; the caller then looks after them.
        progress: Whether to show a bar, on a terminal.

    Raises:
        ValueError: Names or shapes don't fit; the message lists all of them.
        OSError: A value is damaged; the message names file and variable.
    """
    own = _full_names(model)
    targets = {full: tuple(tensor.shape) for full, (_, tensor) in own.items()}
    try:
        plan = plan_from_original(
            model.own_key_map(), source.shapes(), targets, scope=scope, ignore=ignore, any_shape=any_shape
        )
    except ValueError as error:
        raise ValueError(f"{source.prefix} into {type(model).__name__}: {error}") from error
    from tqdm import tqdm

    strange: set[str] = set()

    def floating(name: str) -> Tensor:
        tensor = source.read(name)
        if not tensor.is_floating_point():
            strange.add(name)
        return tensor

    tensors = Converted(floating, plan.steps)
    # Checksums and transposes leave the interpreter alone, so threads share the work.
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        read = tqdm(pool.map(tensors.__getitem__, tensors), "reading", len(tensors), disable=None if progress else True)
        state = {own[name][0]: tensor for name, tensor in zip(tensors, read, strict=True)}
    if strange:
        listed = ", ".join(sorted(strange))
        raise ValueError(f"{source.prefix}: {listed} should hold floating-point numbers, and hold others")
    return state, plan


def load_original(model: Model, path: str | PathLike[str], *, scope: str = "", ignore: Sequence[str] = ()) -> Model:
    """Read the weights of an original checkpoint into a model, in place.

    Parameters that the checkpoint can't have (a new head) keep the values they have.

    Args:
        model: The model; its sizes must be those of the checkpoint.
        path: Prefix of the checkpoint, one of its files, or a folder that holds one.
        scope: Leading part of all original names to strip.
        ignore: Patterns of further names that aren't part of the model.

    Returns:
        The model.

    Raises:
        OSError: There is no checkpoint, or it is damaged; the model is as it was.
        ValueError: Names or shapes don't fit; the message lists all of them, and the model is as it was.
    """
    if not hasattr(model, "key_map"):
        raise TypeError(
            f"model: {type(model).__name__} is no model of this library; its weights have no original names"
        )
    if any(parameter.is_meta for parameter in model.parameters()):
        raise ValueError(
            "model: it is on the meta device and can't take values; use from_pretrained(..., from_tf=True)"
        )
    source = find_original(locate(path, shortcuts={}), model.key_map, asked=True)
    assert source is not None
    state, _ = original_state(model, source, scope=scope, ignore=ignore)
    own = model.state_dict()
    with torch.no_grad():
        for name, tensor in state.items():
            own[name].copy_(tensor)
    return model


#: What the published packages call the path, family by family.
_PATH_NAMES: Final = ("tf_checkpoint_path", "gpt2_checkpoint_path", "openai_checkpoint_folder_path", "tf_path", "path")


def load_tf_weights(
    model: Model, *config_and_path: Any, scope: str = "", ignore: Sequence[str] = (), **named: Any
) -> Model:
    """`load_original` with the arguments of the published packages: `(model, path)` or `(model, config, path)`.

    Args:
        model: See `load_original`.
        *config_and_path: The path; or the configuration, which the model has already, and the path.
        scope: See `load_original`.
        ignore: See `load_original`.
        **named: The same by name: `config`, and the path as `tf_checkpoint_path` or what the family calls it.

    Raises:
        TypeError: There are more or fewer arguments, or the configuration is none.
        OSError: As `load_original`.
        ValueError: As `load_original`.
    """
    given = list(config_and_path)
    config = named.pop("config", given.pop(0) if len(given) == 2 else None)
    paths = given + [named.pop(name) for name in _PATH_NAMES if name in named]
    if len(paths) != 1 or named:
        raise TypeError(
            f"expected (model, path) or (model, config, path), found {1 + len(config_and_path)} arguments"
            + (f" and {', '.join(named)}" if named else "")
        )
    if not isinstance(config, PretrainedConfig | None):
        raise TypeError(f"config: expected a configuration, found {type(config).__name__}")
    return load_original(model, paths[0], scope=scope, ignore=ignore)


def save_original(model: "PreTrainedModel", prefix: str | PathLike[str]) -> tuple[list[Step], list[Path]]:
    """Write the weights of a model as a checkpoint that the original program restores, in float32 as all of them are.

    Args:
        model: The model.
        prefix: For TensorFlow, the path of the checkpoint without endings, as `folder/bert_model.ckpt`; for NumPy files
            their folder.

    Returns:
        What was written under which name, and the files.

    Raises:
        ValueError: The original program can't have such a model: pruned heads, weights of other names, float64.
        OSError: The disk refused a file.
    """
    refuse_unlike_original(model)
    own = _full_names(model)
    steps = plan_to_original(model.own_key_map(), {full: tuple(tensor.shape) for full, (_, tensor) in own.items()})
    if wide := [name for name, tensor in own.values() if tensor.dtype == torch.float64]:
        raise ValueError(
            f"the original program computes in float32, and {', '.join(wide)} would lose digits; use .float()"
        )
    tensors = Converted(lambda full: own[full][1].detach().float(), steps)
    return steps, model.key_map.storage.write(Path(prefix).expanduser(), tensors)


def refuse_unlike_original(model: "PreTrainedModel") -> None:
    """Raise `ValueError` for a model that the original program can't have."""
    if getattr(model.config, "pruned_heads", None):
        raise ValueError(f"{type(model).__name__} has pruned heads, which the original program can't load")
    if wide := [name for name, tensor in model.state_dict().items() if tensor.dtype == torch.float64]:
        raise ValueError(f"the original program computes in float32; {', '.join(wide)} would lose digits: use .float()")


def _full_names(model: "PreTrainedModel") -> dict[str, tuple[str, Tensor]]:
    """Name inside a model with a head -> (own name, tensor), without constants and what shares another's values."""
    prefix = f"{model.base_model_prefix}." if model.base_model is model else ""
    shared: Mapping[str, str] = shared_parameters(model, model.base_model_prefix)
    return {
        prefix + name: (name, tensor)
        for name, tensor in model.state_dict().items()
        if name not in shared and not any(re.search(pattern, name) for pattern in model.constant_keys)
    }
