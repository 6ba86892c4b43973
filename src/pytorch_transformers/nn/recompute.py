"""Results of activations are computed again in the backward pass rather than kept: a quarter of what a layer keeps.

The feed-forward part of a layer has its widest tensors twice, before and after the activation: autograd keeps the one
for the slope of the activation, the other for the gradient of the matrix that follows. The second is the first put
through a function that takes a hundredth of the time of the matrix, so it is put through it again (as a selective form
of Chen et al. 2016, arXiv:1604.06174).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import Node, saved_tensors_hooks

from .checks import recording, transforming

#: Name of the step in autograd's graph -> its result, from what it keeps. Functions whose slope is computed from the
#: result (relu, tanh) keep that, and their result is there anyway.
_RESULT_OF: Final[Mapping[str, Callable[[Any], Tensor]]] = {
    "GeluBackward0": lambda step: F.gelu(step._saved_self, approximate=step._saved_approximate),
    "SiluBackward0": lambda step: F.silu(step._saved_self),
}


def after_activation(linear: nn.Module, x: Tensor) -> Tensor:
    """Compute `linear(x)`; where `x` [..., in] is the result of a gelu or a swish, it is not kept for the gradient.

    It is kept where others say how tensors are kept (gradient checkpointing, `torch.autograd.graph.save_on_cpu`), and
    where it was changed in place, by a hook for instance. Changes through `x.data` go unseen.
    """
    plain = recording() or transforming() or _others_keep()
    step = None if plain else x.grad_fn
    if step is None or step.name() not in _RESULT_OF or not _as_computed(x) or _hooked(step):
        projected: Tensor = linear(x)
        return projected
    place, count, dtype = x.data_ptr(), x.numel(), x.dtype

    def pack(kept: Tensor) -> "_Again | _Kept":
        # A view in another shape, too: it shares its count of changes with x, and a module or hook may have changed it.
        same = kept.data_ptr() == place and kept.numel() == count and kept.dtype == dtype and _as_computed(kept)
        return _Again(step, kept.shape) if same else _Kept(kept, kept._version)

    with saved_tensors_hooks(pack, lambda packed: packed.unpack()):
        result: Tensor = linear(x)
    return result


def _as_computed(x: Tensor) -> bool:
    """Whether it holds what a step gave, in the order in which the step gives it."""
    return x._version == 0 and x.is_contiguous()


def _others_keep() -> bool:
    """Whether hooks on kept tensors are set or forbidden; torch has no public way to ask, and without it: perhaps."""
    autograd: Any = torch._C._autograd
    try:
        set_already = autograd._top_saved_tensors_default_hooks(False) is not None
        return set_already or not autograd._saved_tensors_hooks_is_enabled()
    except AttributeError:
        return True


def _hooked(step: Any) -> bool:
    """Whether there were hooks when that step kept its input: they may give it once only (again, perhaps)."""
    kept = step._raw_saved_self
    return not hasattr(kept, "unpack_hook") or kept.unpack_hook is not None


class _Again(NamedTuple):
    """The result of a step, in some shape."""

    step: Node
    shape: torch.Size

    @torch.no_grad()
    def unpack(self) -> Tensor:
        """Compute it; autograd puts it back into its graph where second derivatives are asked for."""
        return _RESULT_OF[self.step.name()](self.step).view(self.shape)


class _Kept(NamedTuple):
    """Any other tensor, and how often it had been changed in place: autograd leaves that check to its hooks."""

    tensor: Tensor
    version: int

    def unpack(self) -> Tensor:
        """Give it, if it is what it was."""
        if self.tensor._version != self.version:
            raise RuntimeError(
                f"a tensor {list(self.tensor.shape)} that the gradient needs was changed in place between forward and "
                "backward (an optimizer's step, or a weight that was written to); change it after backward()"
            )
        return self.tensor
