"""An optimizer whose averages are in main memory, for models that fit a GPU only without them (`--optimize_on_cpu`).

Adam keeps two values for each weight, so a model needs half the memory for its training state this way: weights and
gradients on the GPU, averages and a copy of the weights in main memory. In each step the gradients go there and the
new weights come back, which costs time; the numbers are those of the optimizer on the CPU.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer


class CpuOptimizer(Optimizer):
    """Another optimizer, run on copies of the parameters in main memory.

    Args:
        groups: Groups of parameters, on any device.
        make: Makes the optimizer from groups like these; it gets those of the copies.
    """

    def __init__(self, groups: list[dict[str, Any]], make: Callable[[list[dict[str, Any]]], Optimizer]) -> None:
        copies = [{**group, "params": [_copy(parameter) for parameter in group["params"]]} for group in groups]
        self._inner = make(copies)
        super().__init__(groups, dict(self._inner.defaults))

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters where they are."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        pairs = self._pairs()
        for parameter, copy in pairs:
            copy.grad = None if parameter.grad is None else parameter.grad.to("cpu", copy.dtype)
        self._inner.step()
        for parameter, copy in pairs:
            if copy.grad is not None:
                parameter.copy_(copy)
                copy.grad = None
        return loss

    def state_dict(self) -> dict[str, Any]:
        """The state of the inner optimizer, with the rates as they are now."""
        self._pairs()
        return self._inner.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state, and from the weights as they are now."""
        self._inner.load_state_dict(state_dict)
        for outer, inner in zip(self.param_groups, self._inner.param_groups, strict=True):
            outer.update({name: value for name, value in inner.items() if name != "params"})
        with torch.no_grad():
            for parameter, copy in self._pairs():
                copy.copy_(parameter)

    def _pairs(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Each parameter and its copy. The rates of the outer groups, which a schedule sets, go to the inner ones."""
        pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        for outer, inner in zip(self.param_groups, self._inner.param_groups, strict=True):
            inner.update({name: value for name, value in outer.items() if name != "params"})
            pairs += zip(outer["params"], inner["params"], strict=True)
        return pairs


def _copy(parameter: torch.Tensor) -> torch.Tensor:
    copy = torch.empty_like(parameter, device="cpu", pin_memory=parameter.is_cuda)
    return copy.copy_(parameter.detach()).requires_grad_(parameter.requires_grad)
