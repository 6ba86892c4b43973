"""Checkpoints of the original programs, into models and out of them, by the table of the family.

Everything is planned on names and shapes before a value is read, and read whole before a model is changed; a checkpoint
that doesn't fit, or is damaged, is an error and never a model with some wrong weights.
"""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from ..checkpoint.keymap import Converted, KeyMap, Plan, Step, plan_from_original, plan_to_original, scope_prefix
from ..checkpoint.read import chosen_weights
from ..checkpoint.storage import Source
from ..hub import Location, locate
from .config import PretrainedConfig
from .construction import shared_parameters

if TYPE_CHECKING:
    from .base import PreTrainedModel

Model = TypeVar("Model", bound="PreTrainedModel")


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


def number_of_labels(source: Source, key_map: KeyMap, scope: str = "") -> int | None:
    """How many labels the head of a checkpoint has, read from its shape; None if it has no such head."""
    shapes = source.shapes()
    for name in key_map.labels:
        shape = shapes.get(scope_prefix(scope) + name)
        if shape:
            return shape[0]
    return None


def with_labels(config: PretrainedConfig, labels: int | None) -> PretrainedConfig:
    """A configuration with that many labels; names of labels stay where their number is right."""
    return config if labels is None else type(config).from_dict(config.to_dict(), num_labels=labels)


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
            model.key_map, source.shapes(), targets, scope=scope, ignore=ignore, any_shape=any_shape
        )
    except ValueError as error:
        raise ValueError(f"{source.prefix} into {type(model).__name__}: {error}") from error
    from tqdm import tqdm

    def values(step: Step) -> Tensor:
        return step.apply(source.read(step.source))

    # Checksums and transposes leave the interpreter alone, so threads share the work.
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        read = tqdm(pool.map(values, plan.steps), "reading", len(plan.steps), disable=None if progress else True)
        state = {own[step.target][0]: tensor for step, tensor in zip(plan.steps, read, strict=True)}
    if strange := [step.source for step in plan.steps if not state[own[step.target][0]].is_floating_point()]:
        raise ValueError(f"{source.prefix}: {', '.join(strange)} should hold floating-point numbers, and hold others")
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
    source = find_original(locate(path, shortcuts={}), model.key_map, asked=True)
    assert source is not None
    state, _ = original_state(model, source, scope=scope, ignore=ignore)
    own = model.state_dict()
    with torch.no_grad():
        for name, tensor in state.items():
            own[name].copy_(tensor)
    return model


def load_tf_weights(model: Model, *config_and_path: Any, scope: str = "", ignore: Sequence[str] = ()) -> Model:
    """`load_original` with the arguments of the published packages: `(model, path)` or `(model, config, path)`.

    Raises:
        TypeError: There are more or fewer arguments, or the configuration is none.
        OSError: As `load_original`.
        ValueError: As `load_original`.
    """
    if len(config_and_path) not in (1, 2):
        raise TypeError(f"expected (model, path) or (model, config, path), found {1 + len(config_and_path)} arguments")
    if len(config_and_path) == 2 and not isinstance(config_and_path[0], PretrainedConfig | None):
        raise TypeError(f"config: expected a configuration, found {type(config_and_path[0]).__name__}")
    return load_original(model, config_and_path[-1], scope=scope, ignore=ignore)


def save_original(model: "PreTrainedModel", prefix: str | PathLike[str]) -> tuple[list[Step], list[Path]]:
    """Write the weights of a model as a checkpoint that the original program restores.

    Args:
        model: The model.
        prefix: For TensorFlow, the path of the checkpoint without endings, as `folder/bert_model.ckpt`; for NumPy files
            their folder.

    Returns:
        What was written under which name, and the files.

    Raises:
        ValueError: The original program can't have such a model: it has pruned heads, or weights of other names.
        OSError: The disk refused a file.
    """
    if getattr(model.config, "pruned_heads", None):
        raise ValueError(f"{type(model).__name__} has pruned heads, which the original program can't load")
    own = _full_names(model)
    steps = plan_to_original(model.key_map, own)
    tensors = Converted(lambda full: own[full][1].detach(), steps)
    return steps, model.key_map.storage.write(Path(prefix), tensors)


def _full_names(model: "PreTrainedModel") -> dict[str, tuple[str, Tensor]]:
    """Name inside a model with a head -> (own name, tensor), without constants and what shares another's values."""
    prefix = f"{model.base_model_prefix}." if model.base_model is model else ""
    shared: Mapping[str, str] = shared_parameters(model, model.base_model_prefix)
    return {
        prefix + name: (name, tensor)
        for name, tensor in model.state_dict().items()
        if name not in shared and not any(re.search(pattern, name) for pattern in model.constant_keys)
    }
