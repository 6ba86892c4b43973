"""One way to say that two results are the same numbers."""

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

MAX_ABS = 1e-5
"""float32 keeps 24 bits: values of a layer (up to about 4) are rounded by 2e-7 at each of some 30 operations, so two
correct programs that add in another order differ by a few 1e-6 at most. 1e-5 leaves room for that, and for no more."""

MAX_STD = 1e-6
"""The same for the typical element, which meets rounding errors of both signs."""


def array(value: ArrayLike | torch.Tensor) -> NDArray[np.float64]:
    """The numbers of a tensor or array, in float64 so that the comparison adds no rounding of its own."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().to(torch.float64).numpy()
    return np.asarray(value, dtype=np.float64)


def difference(ours: ArrayLike | torch.Tensor, reference: ArrayLike | torch.Tensor) -> tuple[float, float]:
    """Largest absolute value and standard deviation of the difference."""
    delta = array(ours) - array(reference)
    return float(np.abs(delta).max(initial=0.0)), float(delta.std()) if delta.size else 0.0


def assert_same(
    ours: ArrayLike | torch.Tensor,
    reference: ArrayLike | torch.Tensor,
    what: str,
    *,
    max_abs: float = MAX_ABS,
    max_std: float = MAX_STD,
) -> None:
    """Equal shape, all finite, and the difference within both bounds."""
    left, right = array(ours), array(reference)
    assert left.shape == right.shape, f"{what}: shape {left.shape}, expected {right.shape}"
    assert np.isfinite(left).all(), f"{what}: not finite"
    largest, std = difference(left, right)
    assert largest <= max_abs, f"{what}: max abs difference {largest:.3e} > {max_abs:.0e} (std {std:.3e})"
    assert std <= max_std, f"{what}: std of the difference {std:.3e} > {max_std:.0e} (max abs {largest:.3e})"
