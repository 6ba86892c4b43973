"""The linear layer of OpenAI GPT and GPT-2."""

import torch
from torch import Tensor, nn


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
