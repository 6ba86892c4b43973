"""A linear layer that can take its activation and its residual along, and on a CPU runs all three as one kernel.

`Linear` is `torch.nn.Linear` with two optional steps after the product. `fuse()` packs a copy of the weight into
oneDNN's own layout; from then on, without gradients, product + bias + activation + residual are one call. On one row
of 16 tokens that is about twice as fast, on large batches it saves the passes over memory between the steps.

The packed call uses operators that torch registers for its own compiler (`torch.ops.mkldnn._linear_pointwise`), so
everything that knows of them is in this file, and where they are missing `fuse()` changes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .activations import Activation, gelu, gelu_tanh
from .checks import recording

if TYPE_CHECKING:
    from typing_extensions import Self

#: Activation -> how oneDNN calls it: (operation, algorithm).
_ONEDNN_NAMES: Final[Mapping[Activation, tuple[str, str]]] = {
    gelu: ("gelu", "none"),
    gelu_tanh: ("gelu", "tanh"),
    F.relu: ("relu", "none"),
    F.tanh: ("tanh", "none"),
}
_DTYPES: Final = (torch.float32, torch.bfloat16)


def can_fuse(weight: Tensor) -> bool:
    """Whether oneDNN can take this weight: on the CPU, float32, or bfloat16 where the processor has it."""
    if weight.device.type != "cpu" or weight.dtype not in _DTYPES or not torch.backends.mkldnn.is_available():
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    return weight.dtype == torch.float32 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


class FusedLinear:
    """The packed copy of one linear layer, or of several with the same input joined side by side.

    It notices when a source weight was replaced or changed in place (`current` is False then); changes through
    `weight.data` go unseen, so fuse again after those.
    """

    def __init__(self, *sources: nn.Linear) -> None:
        self._sources = [(layer, layer.weight, _version(layer.weight)) for layer in sources]
        weight = torch.cat([layer.weight.detach() for layer in sources])
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, None)
        self.bias = torch.cat([layer.bias.detach() for layer in sources])
        self.dtype = weight.dtype

    def current(self) -> bool:
        """Whether the copy still equals the weights it was made from."""
        return all(layer.weight is weight and _version(weight) == seen for layer, weight, seen in self._sources)

    def usable(self, x: Tensor) -> bool:
        """Whether the packed copy may serve `x` now: nobody needs a gradient, no graph is recorded, nothing changed."""
        return (
            not torch.is_grad_enabled()
            and x.dtype == self.dtype
            and not recording()
            and not torch.is_autocast_enabled("cpu")
            and self.current()
        )

    def __call__(self, x: Tensor, activation: Activation | None = None, residual: Tensor | None = None) -> Tensor:
        """[..., in] -> [..., out]: activation(x W^T + b), or x W^T + b + residual."""
        if residual is not None:
            out: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, residual, self.weight, self.bias, "add")
            return out
        operation, algorithm = ("none", "none") if activation is None else _ONEDNN_NAMES.get(activation, ("", ""))
        if operation:
            fused: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, operation, [], algorithm)
            return fused
        assert activation is not None
        return activation(self(x))


def _version(weight: Tensor) -> int:
    """Counts the in-place changes of a tensor; tensors made in inference mode have no counter."""
    return -1 if weight.is_inference() else weight._version


class Fusable(nn.Module):
    """A module with linear layers that can be packed into one `FusedLinear`; see the module's text."""

    fused: FusedLinear | None = None

    def sources(self) -> Sequence[nn.Linear]:
        """The layers to pack, side by side."""
        raise NotImplementedError

    def fuse(self) -> None:
        """Pack a copy of the weights for inference on the CPU; does nothing where oneDNN can't take them."""
        sources = self.sources()
        fits = all(layer.bias is not None and can_fuse(layer.weight) for layer in sources)
        self.fused = FusedLinear(*sources) if fits else None

    def train(self, mode: bool = True) -> "Self":
        """Training changes the weights, so it drops the packed copy."""
        if mode:
            self.fused = None
        return super().train(mode)

    def __getstate__(self) -> dict[str, Any]:
        """Pickles and copies hold the weights themselves only."""
        return {**self.__dict__, "fused": None}


class Linear(Fusable, nn.Linear):
    """`torch.nn.Linear` with an optional activation and residual."""

    def sources(self) -> Sequence[nn.Linear]:
        """The layer itself."""
        return (self,)

    def forward(self, x: Tensor, activation: Activation | None = None, residual: Tensor | None = None) -> Tensor:
        """[..., in] -> [..., out]: activation(x W^T + b) + residual, the last two only where given."""
        if self.fused is not None and (activation is None or residual is None) and self.fused.usable(x):
            return self.fused(x, activation, residual)
        out = F.linear(x, self.weight, self.bias)
        if activation is not None:
            out = activation(out)
        return out if residual is None else out + residual


def dropout_add(dense: Linear, x: Tensor, residual: Tensor, dropout: nn.Dropout) -> Tensor:
    """Add dropout(dense(x)) to the residual, in one call where nothing drops. [..., in], [..., out] -> [..., out]."""
    if dropout.training and dropout.p > 0:
        return residual + dropout(dense(x))
    added: Tensor = dense(x, residual=residual)
    return added
