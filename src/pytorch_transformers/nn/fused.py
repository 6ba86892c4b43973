"""A Transformer layer for inference on a CPU: packed weights, and each linear step one kernel with what follows it.

The weights of a layer are copied into oneDNN's own layout, query, key and value side by side; product, bias, activation
and residual are then one call, and no pass over memory lies between them. On 16 tokens that is about twice as fast as
the separate steps; on large batches it saves a fifth.

The calls are operators that torch registers for its own compiler (`torch.ops.mkldnn._linear_pointwise`). Everything
that knows of them is in this file; where they are missing, `can_fuse` says so and the layer's own forward runs.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .activations import Activation, gelu, gelu_tanh
from .checks import recording
from .layers import Conv1D
from .layouts import Layout
from .tied import TiedLinear

if TYPE_CHECKING:
    from typing_extensions import Self

#: Activation -> how oneDNN calls it: (operation, algorithm).
_ONEDNN_NAMES: Final[Mapping[Activation, tuple[str, str]]] = {
    gelu: ("gelu", "none"),
    gelu_tanh: ("gelu", "tanh"),
    F.relu: ("relu", "none"),
    F.tanh: ("tanh", "none"),
}
#: Layers that can be packed.
Linear = nn.Linear | Conv1D

_DTYPES: Final = (torch.float32, torch.bfloat16)
#: Tensor -> how often it was changed in place.
_VERSION: Final = operator.attrgetter("_version")


def can_fuse(linear: nn.Module) -> bool:
    """Whether oneDNN can take this layer: plain, on the CPU, float32, or bfloat16 where there is support.

    A layer that another library put in the place of a plain one (quantised, low-rank adapters) stays as it is.
    """
    if type(linear) not in (nn.Linear, Conv1D, VocabularyHead):
        return False
    weight = linear._parameters.get("weight")
    if (
        weight is None
        or weight.device.type != "cpu"
        or weight.dtype not in _DTYPES
        or not torch.backends.mkldnn.is_available()
    ):
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    return weight.dtype == torch.float32 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _matrix(layer: Linear) -> Tensor:
    """The matrix [out, in] of a layer, whichever way it keeps it."""
    return layer.weight.detach().t() if isinstance(layer, Conv1D) else layer.weight.detach()


def serves(hidden: Tensor) -> bool:
    """Whether packed weights may compute with these states now: on the CPU, no gradient, graph or cast is asked for.

    The answer holds for all layers of a forward; asking it in each of them would cost 2 % of a short sentence's time.
    """
    return not (recording() or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu")) and hidden.is_cpu


class FusedLinear:
    """The packed copy of one linear layer, or of several with the same input, joined side by side."""

    def __init__(self, *layers: Linear, activation: Activation | None = None) -> None:
        weight = torch.cat([_matrix(layer) for layer in layers])
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, None)
        biases = [layer.bias.detach() for layer in layers if layer.bias is not None]
        self.bias = torch.cat(biases) if biases else None
        self.product = torch.ops.mkldnn._linear_pointwise.default
        self.product_plus = torch.ops.mkldnn._linear_pointwise.binary
        self.operation, self.algorithm = _ONEDNN_NAMES.get(activation, ("none", "none")) if activation else ("none", "")
        #: An activation that oneDNN doesn't know, as a second step.
        self.then = activation if activation not in _ONEDNN_NAMES else None

    def __call__(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]: activation(x W^T + b)."""
        out: Tensor = self.product(x, self.weight, self.bias, self.operation, [], self.algorithm)
        return out if self.then is None else self.then(out)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """[..., in], [..., out] -> [..., out]: x W^T + b + residual."""
        out: Tensor = self.product_plus(x, residual, self.weight, self.bias, "add")
        return out


class FusedConv1D(FusedLinear):
    """The packed copy of a `Conv1D`.

    A single row in float32 goes through the layer's own matrix: torch's product of a row with a matrix [in, out] reads
    memory a third faster than oneDNN's, and reading memory is all there is to it.
    """

    def __init__(self, layer: Conv1D, activation: Activation | None = None) -> None:
        super().__init__(layer, activation=activation)
        self.plain, self.shift, self.activation = layer.weight.detach(), layer.bias.detach(), activation

    def __call__(self, x: Tensor) -> Tensor:
        """[B, T, in] -> [B, T, out]: activation(x W + b)."""
        if not self._is_row(x):
            return super().__call__(x)
        out = self._row(x)
        return out if self.activation is None else self.activation(out)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """[B, T, in], [B, T, out] -> [B, T, out]: x W + b + residual."""
        return self._row(x).add_(residual) if self._is_row(x) else super().plus(x, residual)

    def _is_row(self, x: Tensor) -> bool:
        return x.dtype == torch.float32 and x.numel() == x.shape[-1]

    def _row(self, x: Tensor) -> Tensor:
        return torch.addmm(self.shift, x.view(1, -1), self.plain).view(*x.shape[:-1], -1)


class PackedCopy:
    """Packed copies of the weights of one layer, and whether they still are copies of it.

    It notices when a weight, a module or the activation of its layer was replaced, or a weight changed in place;
    changes through `weight.data` go unseen.

    Args:
        layer: The layer, whose parameters and hooks are watched.
        linears: Its linear layers, which were copied.
        norms: Its normalisations, whose parameters are used as they are.
        activation: Its activation function, if it has one.
    """

    def __init__(
        self,
        layer: nn.Module,
        linears: Sequence[Linear],
        norms: Sequence[nn.LayerNorm] = (),
        activation: Activation | None = None,
    ) -> None:
        self.dtype = linears[0].weight.dtype
        parts = [part for part in layer.modules() if part is not layer]
        self._hooks = [hooks for part in parts for hooks in (part._forward_hooks, part._forward_pre_hooks)]
        children = [(part._modules, name, child) for part in layer.modules() for name, child in part.named_children()]
        functions = [(vars(part), name, value) for part in parts for name, value in vars(part).items()]
        held: list[tuple[dict[str, Any], str, Any]] = [
            *children,
            *(entry for entry in functions if activation is not None and entry[2] is activation),
            *(
                (part._parameters, name, parameter)
                for part in (*linears, *norms)
                for name, parameter in part._parameters.items()
            ),
        ]
        #: What must not be replaced: the dict that holds it, its name there, and what it is.
        self._holders, self._names, self._held = zip(*held, strict=True)
        weights = [weight for part in linears for weight in part.parameters(recurse=False)]
        #: What was copied must not change in place either; tensors made in inference mode don't count their changes.
        self._copied = [weight for weight in weights if not weight.is_inference()]
        self._versions = list(map(_VERSION, self._copied))

    def usable(self, hidden: Tensor) -> bool:
        """Whether it may stand in for the layer where `serves` says yes: no hook sees its steps, nothing changed."""
        # `map` and not a loop: for a single sentence these fifty comparisons are felt.
        return (
            hidden.dtype == self.dtype
            and not any(self._hooks)
            and all(map(operator.is_, map(dict.get, self._holders, self._names), self._held))
            and list(map(_VERSION, self._copied)) == self._versions
        )


class FusedLayer(PackedCopy):
    """A post-norm layer (Vaswani et al. 2017, figure 1, left) on packed copies of its weights.

    Args:
        layer: The layer.
        query: Projection of the queries, [H, H]; likewise `key` and `value`.
        output: Projection of the attended values, [H, H].
        norm: Normalisation after the attention.
        inner: First half of the feed-forward part, [F, H], followed by `activation`.
        outer: Second half, [H, F].
        last_norm: Normalisation after the feed-forward part.
        heads: Number of attention heads, A.
    """

    def __init__(
        self,
        layer: nn.Module,
        *,
        query: nn.Linear,
        key: nn.Linear,
        value: nn.Linear,
        output: nn.Linear,
        norm: nn.LayerNorm,
        inner: nn.Linear,
        activation: Activation,
        outer: nn.Linear,
        last_norm: nn.LayerNorm,
        heads: int,
    ) -> None:
        super().__init__(layer, (query, key, value, output, inner, outer), (norm, last_norm), activation)
        self.qkv = FusedLinear(query, key, value)
        self.output, self.norm = FusedLinear(output), norm
        self.inner = FusedLinear(inner, activation=activation)
        self.outer, self.last_norm = FusedLinear(outer), last_norm
        self.heads = heads

    def __call__(
        self, hidden: Tensor, layout: Layout, head_mask: Tensor | None, need_probs: bool, first_only: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the layer without dropout: states [..., H] of any layout, and the probabilities or None."""
        query, key, value = self.qkv(hidden).unflatten(-1, (3, self.heads, -1)).unbind(-3)  # [..., A, D] each
        if first_only:
            query, hidden = layout.first(query), layout.first(hidden)
        context, probs = layout.attend(query, key, value, head_mask=head_mask, need_probs=need_probs)
        attended = normalised(self.norm, self.output.plus(context, hidden))
        return normalised(self.last_norm, self.outer.plus(self.inner(attended), attended)), probs


class FusableLayer(nn.Module):
    """A layer that can run on packed copies of its weights; the copies are no part of its state."""

    fused: Any = None

    def make_fused(self) -> PackedCopy | None:
        """Build the packed copies, or None where they can't be."""
        raise NotImplementedError

    def fuse(self) -> None:
        """Pack the weights as they are now, for inference on the CPU."""
        self.fused = self.make_fused()

    def train(self, mode: bool = True) -> "Self":
        """Training changes the weights, so it drops the packed copies."""
        if mode:
            self.fused = None
        return super().train(mode)

    def _apply(self, *arguments: Any, **options: Any) -> "Self":
        """Another type or device changes the weights in a way that no count of changes shows."""
        self.fused = None
        return super()._apply(*arguments, **options)  # type: ignore[no-untyped-call]

    def __getstate__(self) -> dict[str, Any]:
        """Pickles and copies hold the weights themselves only."""
        return {**self.__dict__, "fused": None}


class VocabularyHead(FusableLayer, TiedLinear):
    """A projection onto the vocabulary, [..., H] -> [..., V], that can run on packed weights."""

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., V]."""
        if self.fused is not None and serves(hidden) and self.fused.usable(hidden):
            scores: Tensor = self.fused(hidden)
            return scores
        return super().forward(hidden)

    def make_fused(self) -> "FusedHead | None":
        """The projection on packed weights, where oneDNN can take them."""
        return FusedHead(self) if can_fuse(self) else None


class FusedHead(PackedCopy):
    """The packed copy of a `VocabularyHead`: for few rows several times as fast as the plain product."""

    def __init__(self, head: VocabularyHead) -> None:
        super().__init__(head, (head,))
        self.product = FusedLinear(head)
        self.head = head

    def __call__(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., V]; a single row in float32 takes the plain way, which reads less."""
        row = hidden.dtype == torch.float32 and hidden.numel() == hidden.shape[-1]
        return F.linear(hidden, self.head.weight) if row else self.product(hidden)


def normalised(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    """What `norm(x)` computes, without the cost of calling a module, which a single sentence feels."""
    parameters = norm._parameters  # `norm.weight` takes a search, see nn.Module.__getattr__
    return torch.layer_norm(x, norm.normalized_shape, parameters["weight"], parameters["bias"], norm.eps)
