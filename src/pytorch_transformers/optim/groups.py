"""Groups of parameters for an optimizer: which weights decay, and how fast each layer learns.

What must not decay is found by the type of the module that holds it, and biases by the last word of their name. A
search for the text `LayerNorm` finds BERT's, and neither `ln_1` and `ln_f` of the GPTs nor `layer_norm` of
Transformer-XL.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from ..nn.values import real_number

_NORMS: Final = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, _NormBase)
#: Normalisations that others wrote: `FusedLayerNorm`, `BertLayerNorm`, `LlamaRMSNorm`.
_NORM_NAME: Final = re.compile(r"Norm(\d+d)?$")
#: `bias`, `r_w_bias` and `cluster_bias` of Transformer-XL, `in_proj_bias` and `bias_ih_l0` of torch.
_BIAS: Final = re.compile(r"(^|_)bias(es)?(_|$)")
#: The stack of layers: `encoder.layer` in BERT, `h` in the GPTs, `layers` in Transformer-XL.
_STACKS: Final = ("layer", "h", "layers")
#: A part of a name that says embedding: `embeddings`, `tokens_embed`, `word_emb`; GPT-2's `wte` and `wpe`.
_EMBEDDING: Final = re.compile(r"(^|_)emb|^wte$|^wpe$")


def parameter_groups(
    model: nn.Module, weight_decay: float = 0.01, *, lr: float | None = None, layer_decay: float = 1.0
) -> list[dict[str, Any]]:
    """The parameters of a model as groups for an optimizer.

    Matrices and embeddings decay; biases and the weights of normalisations do not. Each parameter is in exactly one
    group, and one that has several names (tied embeddings) is there once. Frozen ones are there too: an optimizer
    passes over what has no gradient, and they can be released later.

    Args:
        model: Any module.
        weight_decay: For those that decay.
        lr: Learning rate, for the groups to carry; None leaves it to the optimizer. Needed with `layer_decay`.
        layer_decay: The top layer learns at `lr * layer_decay`, the one below at `lr * layer_decay**2`, and so on down
            to the embeddings, which come below the first layer; heads, poolers and whatever else is in no layer learn
            at `lr`. 1.0: all alike. The idea is that of Howard and Ruder (2018), section 3.1.

    Returns:
        Dictionaries with `params`, `weight_decay` and, if one was given, `lr`: those that learn slowest first, in each
        pair what decays first. Empty ones are left out.

    Raises:
        ValueError: A number is out of its limits, the model has no parameters, or `layer_decay` has no layers or rate
            to work on.
    """
    decay = real_number("weight_decay", weight_decay, 0.0)
    share = real_number("layer_decay", layer_decay, 0.0, 1.0)
    if lr is not None:
        real_number("lr", lr, 0.0)
    by_layer = share != 1.0
    if by_layer and lr is None:
        raise ValueError(f"layer_decay: {layer_decay!r} needs the learning rate that it is a share of: give lr")
    if by_layer and share == 0.0:
        raise ValueError("layer_decay: 0.0 would stop all layers; to train a head alone, freeze the rest")
    stack, layers = _stack(model) if by_layer else ("", 0)

    found: dict[nn.Parameter, tuple[int, bool]] = {}
    for name, parameter, module in _named(model):
        level = _level(name, stack, layers, module) if by_layer else layers
        decays = not (_is_norm(module) or _BIAS.search(name.rpartition(".")[2]))
        if parameter in found:  # tied: the lowest place counts, and one role that must not decay is enough
            other_level, other_decays = found[parameter]
            level, decays = min(level, other_level), decays and other_decays
        found[parameter] = (level, decays)
    if not found:
        raise ValueError(f"model: {type(model).__name__} has no parameters")

    groups = []
    for level, decays in sorted(set(found.values()), key=lambda key: (key[0], not key[1])):
        members = [parameter for parameter, key in found.items() if key == (level, decays)]
        group: dict[str, Any] = {"params": members, "weight_decay": decay if decays else 0.0}
        if lr is not None:
            group["lr"] = lr * share ** (layers + 1 - level) if by_layer else lr
        groups.append(group)
    return groups


def _named(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, nn.Module]]:
    """Every parameter with its full name and the module that holds it; tied ones under each of their names."""
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            yield f"{path}.{name}" if path else name, parameter, module


def _is_norm(module: nn.Module) -> bool:
    return isinstance(module, _NORMS) or _NORM_NAME.search(type(module).__name__) is not None


def _stack(model: nn.Module) -> tuple[str, int]:
    """Path of the stack of layers, with a dot at its end, and the number of layers.

    Raises:
        ValueError: There is none.
    """
    stacks = {
        f"{path}.": len(module)
        for path, module in model.named_modules()
        if isinstance(module, nn.ModuleList) and path.rpartition(".")[2] in _STACKS
    }
    if not stacks:
        raise ValueError(
            f"layer_decay: {type(model).__name__} has no nn.ModuleList named {', '.join(_STACKS)}; leave it at 1.0"
        )
    path = max(stacks, key=lambda path: stacks[path])
    return path, stacks[path]


def _level(name: str, stack: str, layers: int, module: nn.Module) -> int:
    """0 for embeddings, 1 to `layers` for those of the layers, one more for what is above."""
    if name.startswith(stack):
        return int(name[len(stack) :].partition(".")[0]) + 1
    if isinstance(module, nn.Embedding) or any(_EMBEDDING.search(part) for part in name.split(".")):
        return 0
    return layers + 1
