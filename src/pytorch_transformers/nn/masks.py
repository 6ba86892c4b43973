"""Attention masks: from 0 / 1 marks to what is added to the scores."""

from typing import TYPE_CHECKING, Final, NamedTuple

import torch
from torch import Tensor

from .checks import recording

if TYPE_CHECKING:
    from .layouts import Packed

#: Added to the score of a padded key (google-research/bert, modeling.py, attention_layer). Large enough that exp()
#: of it is exactly 0 in every dtype, and finite, so that a row without any real key stays a number as in the original.
MASKED_SCORE: Final = -10000.0


def additive_key_mask(attention_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn marks [B, T], 1 real and 0 padding, into scores to add [B, 1, 1, T]: 0 or `MASKED_SCORE`."""
    return (1.0 - attention_mask[:, None, None, :].to(dtype)) * MASKED_SCORE


def causal_mask(queries: int, keys: int, like: Tensor) -> Tensor:
    """Scores to add [Tq, Tk], of the type and device of `like`: the last query sees all keys, each earlier one less."""
    places = torch.arange(keys, device=like.device)
    hidden = places > places[keys - queries :, None]  # no number that a trace would keep
    return torch.zeros(queries, keys, dtype=like.dtype, device=like.device).masked_fill(hidden, MASKED_SCORE)


class CausalMask(NamedTuple):
    """Which tokens a token sees.

    Attributes:
        added: Added to the scores.
        causal: Whether nothing after a token is seen besides.
        packed: How the tokens lie where padding was left out; `added` is then None.
    """

    added: Tensor | None
    causal: bool
    packed: "Packed | None" = None


def decoder_mask(attention_mask: Tensor | None, tokens: int, past: int, like: Tensor) -> CausalMask:
    """The mask of a decoder.

    Args:
        attention_mask: [B, past + tokens], 1 real and 0 padding; None where nothing is padded.
        tokens: Number of new tokens, T.
        past: Number of tokens before them whose keys are kept.
        like: Gives the type and device of the scores.
    """
    one = not recording() and tokens == 1  # one new token sees all there are
    if attention_mask is None:
        if one:
            return CausalMask(None, causal=False)
        if type(past) is int and past == 0:  # while a graph is recorded, a length is no int
            return CausalMask(None, causal=True)
        return CausalMask(causal_mask(tokens, past + tokens, like), causal=False)
    padding = additive_key_mask(attention_mask, like.dtype)
    return CausalMask(padding if one else padding + causal_mask(tokens, past + tokens, like), causal=False)
