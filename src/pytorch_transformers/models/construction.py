"""How a model comes to its weights: who initialises them, which are shared, and what a checkpoint left empty.

Knows no family; `base.py` is its only user.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

#: Modules whose parameters every family initialises by a rule of its own.
_RULED: Final = (nn.Linear, nn.Embedding, nn.LayerNorm)
_DRAWS: Final = frozenset({Tensor.normal_, Tensor.uniform_, Tensor.bernoulli_, Tensor.exponential_})


class _Depth(threading.local):
    """How many models are under construction in this thread; only the outermost initialises its weights."""

    value = 0


_depth = _Depth()


@contextmanager
def constructing() -> Iterator[None]:
    """Models constructed inside don't initialise themselves."""
    _depth.value += 1
    try:
        yield
    finally:
        _depth.value -= 1


class InitialisesItself(type(nn.Module)):  # type: ignore[misc]  # the metaclass of nn.Module is `type`
    """Initialises a model when its whole constructor has run, also that of a user's subclass.

    A constructor that calls `init_weights` itself has chosen the moment, and what it sets afterwards stays.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Construct, and initialise where that is left to do."""
        outermost = _depth.value == 0
        with constructing():
            model = super().__call__(*args, **kwargs)
        if outermost and not model.is_initialised:
            model.init_weights()
        return model


class NothingDrawn(TorchFunctionMode):
    """Leaves tensors without values as they are, where a constructor would draw random ones.

    It is not only that there is nothing to draw: torch's kernel for it on the meta device imports the compiler, 800
    modules, which took most of the time of loading a small model.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Return the tensor itself for the functions of `torch.nn.init` and those that they call."""
        kwargs = kwargs or {}
        tensor = args[0] if args else kwargs.get("tensor")
        draws = getattr(function, "__module__", "") == "torch.nn.init" or function in _DRAWS
        if draws and isinstance(tensor, Tensor) and tensor.is_meta:
            return tensor
        return function(*args, **kwargs)


def shared_parameters(model: nn.Module, preferred_prefix: str) -> dict[str, str]:
    """Parameters that are another one under a second name: that name -> the name its values are kept under.

    That is the first name with `preferred_prefix`, which names the encoder, or the first at all.
    """
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    shared = {}
    for group in names.values():
        source = next((name for name in group if name.startswith(f"{preferred_prefix}.")), group[0])
        shared.update({name: source for name in group if name != source})
    return shared


def share_parameters(model: nn.Module, shared: Mapping[str, str]) -> None:
    """Make each parameter the one it shares its values with."""
    for name, source in shared.items():
        owner, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(owner), attribute, model.get_parameter(source))


@torch.no_grad()
def fill_empty(
    model: nn.Module,
    rule: Callable[[nn.Module], None],
    build: Callable[[], nn.Module],
    device: torch.device,
    dtype: torch.dtype | None,
) -> None:
    """Give values to what is still on the meta device after the tensors of a checkpoint were put in.

    Args:
        model: The model.
        rule: Initialises the parameters of one module, as the family does.
        build: Makes the model with values. It is called only for parameters, constants and plain tensors of a user's
            own making, whose values only the constructor knows.
        device: Where the values go.
        dtype: Floating-point type of the values; None is torch's default.
    """
    whole: nn.Module | None = None
    for path, module in model.named_modules():
        empty = [name for name, value in _own_tensors(module) if value.is_meta]
        if not empty:
            continue
        if isinstance(module, _RULED):
            loaded = {name: value for name, value in _own_tensors(module) if name not in empty}
            module.to_empty(device=device, recurse=False)
            module.to(dtype or torch.get_default_dtype())
            rule(module)
            for name, value in loaded.items():
                setattr(module, name, value)
            continue
        whole = whole or build()
        origin = whole.get_submodule(path)
        for name in empty:
            value = getattr(origin, name)
            value = value.to(device, dtype if value.is_floating_point() else None)
            kept = nn.Parameter(value, value.requires_grad) if name in module._parameters else value
            setattr(module, name, kept)


def _own_tensors(module: nn.Module) -> list[tuple[str, Tensor]]:
    """Parameters, buffers and plain tensors of a module itself."""
    own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False), *vars(module).items()]
    return [(name, value) for name, value in own if isinstance(value, Tensor)]
