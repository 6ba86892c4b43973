"""A training without a model: given gradients of several shapes, so that two optimizers see the same ones."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

SHAPES: tuple[tuple[int, ...], ...] = ((7, 5), (33,), (), (4, 3, 2))
Make = Callable[[list[nn.Parameter]], Any]


def weights(dtype: torch.dtype = torch.float32, shapes: Sequence[tuple[int, ...]] = SHAPES) -> list[nn.Parameter]:
    """Parameters of odd shapes, the same at each call."""
    draw = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=draw).to(dtype)) for shape in shapes]


def give_gradients(parameters: Sequence[Tensor], step: int) -> None:
    """Gradients of step `step`, some longer than 1.0 and some shorter."""
    draw = torch.Generator().manual_seed(step)
    for number, parameter in enumerate(parameters):
        scale = 0.01 + 3.0 * ((step + number) % 4)
        parameter.grad = (torch.randn(parameter.shape, generator=draw) * scale).to(parameter)


def advance(optimizer: Optimizer, parameters: Sequence[Tensor], steps: range) -> None:
    """Make these steps."""
    for step in steps:
        give_gradients(parameters, step)
        optimizer.step()


def trained(make: Make, steps: int = 200, dtype: torch.dtype = torch.float32) -> tuple[Any, Tensor]:
    """An optimizer after so many steps, and all weights in a row."""
    parameters = weights(dtype)
    optimizer = make(parameters)
    advance(optimizer, parameters, range(steps))
    return optimizer, flat(parameters)


def flat(parameters: Sequence[Tensor]) -> Tensor:
    """All values in a row."""
    return torch.cat([parameter.detach().flatten() for parameter in parameters]).clone()
