"""Attention masks: from 0 / 1 marks to what is added to the scores."""

from typing import Final

import torch
from torch import Tensor

#: Added to the score of a padded key (google-research/bert, modeling.py, attention_layer). Large enough that exp()
#: of it is exactly 0 in every dtype, and finite, so that a row without any real key stays a number as in the original.
MASKED_SCORE: Final = -10000.0


def additive_key_mask(attention_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn marks [B, T], 1 real and 0 padding, into scores to add [B, 1, 1, T]: 0 or `MASKED_SCORE`."""
    return (1.0 - attention_mask[:, None, None, :].to(dtype)) * MASKED_SCORE
