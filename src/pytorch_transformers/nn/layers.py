"""Linear layers: that of OpenAI GPT and GPT-2, and one whose matrix is a table of embeddings, too."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .checks import recording, transforming


class Conv1D(nn.Module):
    """A linear layer with the matrix [in, out], as both original programs keep it (a convolution of width 1 there).

    Args:
        nf: Size of the output.
        nx: Size of the input.
    """

    def __init__(self, nf: int, nx: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(nx, nf).normal_(0.0, 0.02))
        self.bias = nn.Parameter(torch.zeros(nf))

    @property
    def nf(self) -> int:
        """Size of the output."""
        return self.weight.shape[1]

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        return torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], self.nf)

    def extra_repr(self) -> str:
        """Sizes, for `print(model)`."""
        return f"nf={self.nf}, nx={self.weight.shape[0]}"


def prune_conv1d_layer(layer: Conv1D, index: Tensor, dim: int = 1) -> Conv1D:
    """Keep the columns (`dim` 1, outputs) or rows (`dim` 0, inputs) of `layer` that `index` lists, in place.

    Returns:
        The same layer.
    """
    index = index.to(layer.weight.device)
    layer.weight = nn.Parameter(layer.weight.detach().index_select(dim, index), layer.weight.requires_grad)
    if dim == 1:
        layer.bias = nn.Parameter(layer.bias.detach().index_select(0, index), layer.bias.requires_grad)
    return layer


class TiedLinear(nn.Linear):
    """A projection onto the vocabulary, [..., H] -> [..., V], without a bias, whose matrix is the table of words.

    Args:
        width: Size of the hidden states, H.
        words: Size of the vocabulary, V.
    """

    def __init__(self, width: int, words: int) -> None:
        super().__init__(width, words, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., V]."""
        plain = recording() or transforming() or torch.is_autocast_enabled(hidden.device.type)
        if plain or not torch.is_grad_enabled():
            return super().forward(hidden)
        scores: Tensor = _Projection.apply(hidden, self.weight)  # type: ignore[no-untyped-call]
        return scores


class _Projection(torch.autograd.Function):
    """`F.linear`, except that the gradient of the matrix is no view of another tensor.

    torch adds a second gradient, here that of the looked-up embeddings, in place to what nothing else refers to. That
    of `F.linear` is the transpose of a tensor, so the sum would be a third tensor of the size of the table.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        """[..., in] and [out, in] -> [..., out]."""
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The gradients, given that of the result."""
        x, weight = ctx.saved_tensors
        want_x, want_weight = ctx.needs_input_grad
        rows, x_rows = slope.reshape(-1, slope.shape[-1]), x.reshape(-1, x.shape[-1])
        return slope @ weight if want_x else None, rows.t() @ x_rows if want_weight else None
