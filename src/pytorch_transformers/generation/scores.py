"""From the scores of a model to the next token: pure functions on scores [B, V].

What is not to be chosen gets -inf. Sources: openai/gpt-2, src/sample.py (top_k_logits, top_p_logits), whose -1e10 is
-inf here; Keskar et al. 2019, arXiv:1909.05858 (repetition); Holtzman et al. 2019, arXiv:1904.09751 (top-p). What is
surprising in the original's top-p: the token with which the probability p is reached is dropped, so that the rest has
less than p. Holtzman et al., and what came after, keep it; so does this unless told otherwise.
"""

from collections.abc import Collection, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor


def penalise_repetition(scores: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Make tokens less likely that a text has already.

    Args:
        scores: [B, V].
        seen: [B, V], True for the tokens of the text.
        penalty: Divides positive scores and multiplies negative ones.
    """
    lowered = torch.where(scores > 0, scores / penalty, scores * penalty)
    return torch.where(seen, lowered, scores)


def ban(scores: Tensor, banned: Sequence[Collection[int]]) -> Tensor:
    """Take out tokens: for each row of [B, V] its ids."""
    rows = [row for row, ids in enumerate(banned) for _ in ids]
    columns = [token for ids in banned for token in ids]
    if not rows:
        return scores
    places = torch.tensor([rows, columns], device=scores.device)
    return scores.index_put((places[0], places[1]), scores.new_tensor(-torch.inf))


def keep_first(scores: Tensor, count: int) -> Tensor:
    """Keep the scores of the ids below `count`."""
    return F.pad(scores[:, :count], (0, max(0, scores.shape[-1] - count)), value=-torch.inf)


def divide(scores: Tensor, highest: Tensor, temperature: float) -> Tensor:
    """Scores divided by a temperature; where that makes the highest too large for a number, it is taken as 0 before.

    Args:
        scores: [B, V].
        highest: [B, 1] the highest of each row.
        temperature: Below 1e-30 it is taken as that, which leaves but the highest scores already.
    """
    temperature = max(temperature, 1e-30)
    taken_off = highest.masked_fill((highest / temperature).isfinite(), 0.0)
    return (scores - taken_off) / temperature


def keep_top_k(scores: Tensor, k: int) -> Tensor:
    """Keep the k highest scores of each row, and those equal to the last of them; all where the row has no more."""
    if k >= scores.shape[-1]:
        return scores
    return scores.masked_fill(scores < scores.topk(k).values[:, -1:], -torch.inf)


def keep_top_p(scores: Tensor, p: float, *, crossing: bool = True) -> Tensor:
    """Keep the highest scores of each row that together have the probability p; the highest one always.

    Args:
        scores: [B, V].
        p: From 0 to 1.
        crossing: Whether the token with which p is reached is kept (see the module's text). Equal scores stay or go
            together.
    """
    if p >= 1.0:  # no rounding of a sum may drop what is unlikely
        return scores
    probabilities = scores.softmax(-1, dtype=torch.float32)
    highest = _descending(probabilities)
    reached = highest.cumsum(-1)
    inside = (reached - highest < p) if crossing else (reached <= p)
    last = inside.sum(-1, keepdim=True).clamp(min=1) - 1  # place of the lowest score that is kept
    return scores.masked_fill(probabilities < highest.gather(-1, last), -torch.inf)


def _descending(x: Tensor) -> Tensor:
    """The values of each row, the highest first; on the CPU by NumPy, which sorts 50,000 in 1/20 of torch's time."""
    if x.device.type != "cpu":
        return x.sort(-1, descending=True).values
    return torch.from_numpy(np.sort(x.detach().numpy(), axis=-1)).flip(-1)


def draw(scores: Tensor, uniform: Tensor) -> Tensor:
    """Draw a token of each row with the probabilities softmax(scores), by inverting their running sum.

    The sum is in float64: in float32 the rounding of 50,000 terms would be a probability of its own.

    Args:
        scores: [B, V].
        uniform: [B] numbers from 0 to below 1, multiples of 2^-52 (see `random_number`).

    Returns:
        [B] ids.
    """
    exact = torch.float32 if scores.device.type == "mps" else torch.float64  # which has no other
    reached = scores.softmax(-1, dtype=torch.float32).cumsum(-1, dtype=exact)
    point = uniform.to(exact)[:, None] * reached[:, -1:]
    # The first place whose sum is above the point: a token of probability 0 adds nothing, so it is never that place.
    return torch.searchsorted(reached, point, right=True)[:, 0].clamp(max=scores.shape[-1] - 1)


def likeliest(scores: Tensor) -> Tensor:
    """The id [B] of the highest score of each row, the first of equal ones."""
    return scores.argmax(-1)
