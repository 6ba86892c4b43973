"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2), the one function that every model goes through."""

from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from .checks import recording
from .dropout import dropout as drop
from .dropout import levels_dropped
from .dropped_attention import attend_dropped
from .masks import causal_mask

_HALF: Final = (torch.bfloat16, torch.float16)
#: Keys up to which the backward pass of torch's half-precision kernel takes several times as long on a CPU as that of
#: float32: eight times at 16 keys, twice at 128, as measured; from 384 it is faster.
_SLOW_IN_HALF: Final = 320


def merge_heads(x: Tensor) -> Tensor:
    """[B, A, T, D] -> [B, T, A * D]."""
    return x.transpose(1, 2).flatten(2)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    head_mask: Tensor | None = None,
    need_probs: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Mix `value` by how well each `query` fits each `key`.

    Args:
        query: [B, A, Tq, D].
        key: [B, A, Tk, D].
        value: [B, A, Tk, D].
        mask: Added to the scores, broadcastable to [B, A, Tq, Tk].
        causal: Whether each query sees the keys up to its own place only; then Tq is Tk.
        dropout: Share of probabilities set to 0; pass 0.0 outside training.
        head_mask: [A], multiplies the probabilities of each head.
        need_probs: Whether to return the probabilities as well, after dropout and `head_mask`.

    Returns:
        The context [B, A, Tq, D], and the probabilities [B, A, Tq, Tk] or None.
    """
    dropped = levels_dropped(query, dropout) if dropout > 0 and head_mask is None and not need_probs else None
    if dropped is not None and not (mask is not None and mask.requires_grad):
        return attend_dropped(query, key, value, mask, causal, dropped), None
    if _slow_in_half(query, key):
        with torch.autocast("cpu", enabled=False):
            added = None if mask is None else mask.float()
            qkv = (query.float(), key.float(), value.float())
            mixed, probs = _attend(*qkv, added, causal, dropout, head_mask, need_probs)
        return mixed.to(query.dtype), None if probs is None else probs.to(query.dtype)
    return _attend(query, key, value, mask, causal, dropout, head_mask, need_probs)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    dropout: float,
    head_mask: Tensor | None,
    need_probs: bool,
) -> tuple[Tensor, Tensor | None]:
    """`attend`, in the types of its inputs."""
    if head_mask is None and not need_probs:
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal)
        return mixed, None
    scores = (query @ key.transpose(-1, -2)) * query.shape[-1] ** -0.5  # [B, A, Tq, Tk]
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = scores + causal_mask(query.shape[2], key.shape[2], scores)
    probs = drop(torch.softmax(scores, dim=-1), dropout)
    if head_mask is not None:
        probs = probs * head_mask[:, None, None]
    return probs @ value, probs if need_probs else None


def _slow_in_half(query: Tensor, key: Tensor) -> bool:
    """Whether the gradients of this call would be computed faster in float32."""
    half = query.dtype in _HALF and query.device.type == "cpu" and torch.is_grad_enabled()
    return half and not recording() and key.shape[2] <= _SLOW_IN_HALF
