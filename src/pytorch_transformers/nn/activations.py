"""Activation functions, named by their formula rather than by the model that used them.

Published configurations say "gelu" for the exact form x * Phi(x) (Hendrycks and Gimpel 2016, arXiv:1606.08415), and
"gelu_new" for its tanh approximation, which google-research/bert uses since 2019 and OpenAI GPT from the start.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import torch.nn.functional as F
from torch import Tensor

from .values import check_activation

Activation = Callable[[Tensor], Tensor]

gelu: Final[Activation] = F.gelu
gelu_tanh: Final[Activation] = partial(F.gelu, approximate="tanh")

#: The name that `silu` had in 2018 (Ramachandran et al. 2017, arXiv:1710.05941).
swish: Final[Activation] = F.silu

#: Name in a configuration -> function; `ACTIVATION_NAMES` in `values.py` has the same names.
ACTIVATIONS: Final[Mapping[str, Activation]] = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_tanh": gelu_tanh,
    "relu": F.relu,
    "silu": swish,
    "swish": swish,
    "tanh": F.tanh,
}


def get_activation(name: str | Activation) -> Activation:
    """Return the function of that name, or `name` itself when it is callable.

    Raises:
        ValueError: The name is not one of `ACTIVATIONS`.
    """
    check_activation(name)
    return name if callable(name) else ACTIVATIONS[name]
