"""Checks of plain values - numbers and names - that come from outside. Needs no torch, so configurations use it too."""

import math
import operator
from collections.abc import Mapping
from numbers import Real
from typing import Any, Final

#: Names of the functions in `activations.py`.
ACTIVATION_NAMES: Final = ("gelu", "gelu_new", "gelu_tanh", "relu", "silu", "swish", "tanh")


def whole_number(name: str, value: Any, minimum: int | None = None) -> int:
    """`value` as an int, also from NumPy's types; `name` is for the message.

    Raises:
        ValueError: It is no whole number (3.0 is none, nor is True), or below `minimum`.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (minimum is not None and number < minimum):
        raise ValueError(f"{name}: {value!r}, must be a whole number{_of_at_least(minimum)}")
    return number


def real_number(name: str, value: Any, minimum: float, maximum: float = math.inf) -> float:
    """`value` as a float, also from NumPy's types; `name` is for the message.

    Raises:
        ValueError: It is no finite number from `minimum` to `maximum`.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not minimum <= value <= maximum:
        limits = _of_at_least(minimum) if maximum == math.inf else f" from {minimum} to {maximum}"
        raise ValueError(f"{name}: {value!r}, must be a number{limits}")
    return float(value)


def _of_at_least(minimum: float | None) -> str:
    return "" if minimum is None else f" of at least {minimum}"


def check_activation(value: Any, name: str = "hidden_act") -> None:
    """Raise `ValueError` unless `value` is the name of an activation function, or a function; `name` is its field."""
    if not callable(value) and value not in ACTIVATION_NAMES:
        names = ", ".join(ACTIVATION_NAMES)
        raise ValueError(f"{name}: unknown activation {value!r}; use one of {names} or a callable")


def layers_and_heads(heads: Any) -> dict[int, set[int]]:
    """The argument of `prune_heads` with its numbers checked: layer -> heads.

    Raises:
        TypeError: It is no mapping to collections.
        ValueError: A layer or head is no whole number.
    """
    if not isinstance(heads, Mapping):
        raise TypeError(f"prune_heads: expected layer -> heads, such as {{0: [1, 2]}}, found {heads!r:.100}")
    checked = {}
    for layer, numbers in heads.items():
        number = whole_number("prune_heads: layer", layer)
        if isinstance(numbers, str) or not hasattr(numbers, "__iter__"):
            raise TypeError(f"prune_heads: expected a list of heads for layer {number}, found {numbers!r:.100}")
        checked[number] = {whole_number(f"prune_heads: layer {number}, head", head) for head in numbers}
    return checked
