"""The layer of OpenAI GPT and GPT-2: causal self-attention, then a feed-forward part.

The two differ in where they normalise: OpenAI GPT after each residual (post-norm, as Vaswani et al. 2017), GPT-2 before
each part (pre-norm; Radford et al. 2019, section 2.3) and once more after the last layer.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .activations import Activation
from .attention import attend, merge_heads
from .cache import Past, extended
from .dropout import Dropout
from .fused import FusableLayer, FusedConv1D, PackedCopy, can_fuse, normalised
from .layers import Conv1D, prune_conv1d_layer
from .masks import CausalMask
from .pruning import kept_columns
from .recompute import after_activation


class BlockOutput(NamedTuple):
    """What a block returns: states [B, T, H], keys and values [2, B, A, T, D], probabilities [B, A, T, T] or None.

    Of packed tokens: states [N, H] and nothing else.
    """

    hidden: Tensor
    present: Tensor | None
    probs: Tensor | None


class CausalAttention(nn.Module):
    """Multi-head attention in which a token sees itself and what came before.

    Args:
        width: Size of the hidden states, H.
        heads: Number of heads, A.
        dropout: Of the probabilities.
        residual_dropout: Of the result.
        scaled: Whether scores are divided by the root of D; the original has the switch, and its models use it.
    """

    def __init__(
        self, width: int, heads: int, *, dropout: float = 0.0, residual_dropout: float = 0.0, scaled: bool = True
    ) -> None:
        super().__init__()
        self.n_head = heads
        self.head_size = width // heads
        self.scaled = scaled
        #: Heads that are left, in the original numbering.
        self.kept_heads = list(range(heads))
        self.c_attn = Conv1D(3 * width, width)
        self.c_proj = Conv1D(width, width)
        self.attn_dropout = Dropout(dropout)
        self.resid_dropout = Dropout(residual_dropout)

    def forward(
        self,
        hidden: Tensor,
        mask: CausalMask,
        past: Past = None,
        head_mask: Tensor | None = None,
        need_probs: bool = False,
    ) -> BlockOutput:
        """[B, T, H] -> [B, T, H], or [N, H] -> [N, H] of packed tokens; see `DecoderBlock.forward`."""
        dropout = self.attn_dropout.p if self.attn_dropout.training else 0.0
        mixed = self.mix(self.c_attn(hidden), mask, past, head_mask, need_probs, dropout)
        return mixed._replace(hidden=self.resid_dropout(self.c_proj(mixed.hidden)))

    def mix(
        self,
        projected: Tensor,
        mask: CausalMask,
        past: Past,
        head_mask: Tensor | None,
        need_probs: bool,
        dropout: float = 0.0,
    ) -> BlockOutput:
        """What lies between the two matrices: [..., 3 * A * D] -> [..., A * D]."""
        mixed = projected.unflatten(-1, (3, self.n_head, self.head_size))
        silenced = self.kept(head_mask)
        if mask.packed is not None:
            query, key, value = mixed.unbind(1)  # [N, A, D]
            query = query if self.scaled else query * self.head_size**0.5
            context, _ = mask.packed.attend(
                query, key, value, causal=True, dropout=dropout, head_mask=silenced, need_probs=need_probs
            )
            return BlockOutput(context, None, None)
        mixed = mixed.permute(2, 0, 3, 1, 4)
        query = mixed[0] if self.scaled else mixed[0] * self.head_size**0.5  # [B, A, T, D]
        present = extended(mixed[1:], past)
        context, probs = attend(
            query,
            present[0],
            present[1],
            mask=mask.added,
            causal=mask.causal,
            dropout=dropout,
            head_mask=silenced,
            need_probs=need_probs,
        )
        return BlockOutput(merge_heads(context), present, probs)

    def kept(self, head_mask: Tensor | None) -> Tensor | None:
        """The values of a mask [A] for the heads that are left."""
        pruned = head_mask is not None and len(self.kept_heads) < head_mask.shape[0]
        return head_mask[self.kept_heads] if pruned and head_mask is not None else head_mask

    def prune_heads(self, heads: set[int]) -> None:
        """Remove heads (original numbering) from both matrices; those gone already are skipped."""
        present = heads & set(self.kept_heads)
        if not present:
            return
        removed = {self.kept_heads.index(head) for head in present}
        index = kept_columns(self.n_head, self.head_size, removed)
        width = self.n_head * self.head_size
        prune_conv1d_layer(self.c_attn, torch.cat([index, index + width, index + 2 * width]))
        prune_conv1d_layer(self.c_proj, index, dim=0)
        self.kept_heads = [head for head in self.kept_heads if head not in present]
        self.n_head = len(self.kept_heads)


class FeedForward(nn.Module):
    """Two linear layers with an activation between them, [H] -> [F] -> [H]."""

    def __init__(self, width: int, inner: int, activation: Activation, dropout: float = 0.0) -> None:
        super().__init__()
        self.c_fc = Conv1D(inner, width)
        self.c_proj = Conv1D(width, inner)
        self.act = activation
        self.dropout = Dropout(dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., H]."""
        projected: Tensor = self.dropout(after_activation(self.c_proj, self.act(self.c_fc(hidden))))
        return projected


class DecoderBlock(FusableLayer):
    """One layer.

    Args:
        attention: Its attention.
        feed_forward: Its feed-forward part.
        width: Size of the hidden states, H.
        eps: Added to the variance in normalisation.
        norm_first: Whether it normalises before each part (GPT-2) or after each residual (OpenAI GPT).
    """

    def __init__(
        self, attention: CausalAttention, feed_forward: FeedForward, *, width: int, eps: float, norm_first: bool
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.ln_1 = nn.LayerNorm(width, eps=eps)
        self.attn = attention
        self.ln_2 = nn.LayerNorm(width, eps=eps)
        self.mlp = feed_forward

    def forward(
        self,
        hidden: Tensor,
        mask: CausalMask,
        past: Past = None,
        head_mask: Tensor | None = None,
        need_probs: bool = False,
        packed_weights: bool = False,
    ) -> BlockOutput:
        """Compute one layer.

        Args:
            hidden: [B, T, H] states of the new tokens, or [N, H] of those that `mask` has packed.
            mask: Which tokens each of them sees.
            past: Keys and values of the tokens before them.
            head_mask: [A], multiplies the attention probabilities of each head.
            need_probs: Whether to return the probabilities.
            packed_weights: Whether those of `fuse` may be used where there are some; see `nn/fused.py`, `serves`.
        """
        if packed_weights and self.fused is not None and self.fused.usable(hidden):
            output: BlockOutput = self.fused(hidden, mask, past, head_mask, need_probs)
            return output
        if self.norm_first:
            attended = self.attn(self.ln_1(hidden), mask, past, head_mask, need_probs)
            hidden = hidden + attended.hidden
            hidden = hidden + self.mlp(self.ln_2(hidden))
        else:
            attended = self.attn(hidden, mask, past, head_mask, need_probs)
            hidden = self.ln_1(hidden + attended.hidden)
            hidden = self.ln_2(hidden + self.mlp(hidden))
        return BlockOutput(hidden, attended.present, attended.probs)

    def make_fused(self) -> "FusedBlock | None":
        """The layer on packed weights, where oneDNN can take them; see `nn/fused.py`."""
        linears = (self.attn.c_attn, self.attn.c_proj, self.mlp.c_fc, self.mlp.c_proj)
        plain = all(map(can_fuse, linears)) and type(self.ln_1) is type(self.ln_2) is nn.LayerNorm
        return FusedBlock(self) if plain and self.attn.scaled else None


class FusedBlock(PackedCopy):
    """A `DecoderBlock` on packed copies of its weights, without dropout."""

    def __init__(self, block: DecoderBlock) -> None:
        attention, inner, outer = block.attn, block.mlp.c_fc, block.mlp.c_proj
        super().__init__(
            block, (attention.c_attn, attention.c_proj, inner, outer), (block.ln_1, block.ln_2), block.mlp.act
        )
        self.qkv, self.output = FusedConv1D(attention.c_attn), FusedConv1D(attention.c_proj)
        self.inner, self.outer = FusedConv1D(inner, activation=block.mlp.act), FusedConv1D(outer)
        self.ln_1, self.ln_2, self.norm_first = block.ln_1, block.ln_2, block.norm_first
        self.attention = attention

    def __call__(
        self, hidden: Tensor, mask: CausalMask, past: Past, head_mask: Tensor | None, need_probs: bool
    ) -> BlockOutput:
        """See `DecoderBlock.forward`."""
        first = normalised(self.ln_1, hidden) if self.norm_first else hidden
        mixed = self.attention.mix(self.qkv(first), mask, past, head_mask, need_probs)
        hidden = self.output.plus(mixed.hidden, hidden)
        if self.norm_first:
            hidden = self.outer.plus(self.inner(normalised(self.ln_2, hidden)), hidden)
        else:
            hidden = normalised(self.ln_1, hidden)
            hidden = normalised(self.ln_2, self.outer.plus(self.inner(hidden), hidden))
        return mixed._replace(hidden=hidden)


def prune_blocks(blocks: nn.ModuleList, heads_to_prune: Mapping[int, set[int]], heads: int) -> None:
    """Remove heads of several layers, after checking that all of them can go.

    Args:
        blocks: The layers.
        heads_to_prune: Layer -> heads, in the original numbering.
        heads: Heads of a layer before any was removed.

    Raises:
        ValueError: There is no such layer or head, or no head would be left in a layer.
    """
    attentions = [block.attn for block in blocks if isinstance(block, DecoderBlock)]
    for number, removed in heads_to_prune.items():
        if not 0 <= number < len(blocks):
            raise ValueError(f"prune_heads: there is no layer {number}, only 0 to {len(blocks) - 1}")
        if bad := [head for head in sorted(removed) if not 0 <= head < heads]:
            raise ValueError(f"prune_heads: layer {number} has no head {bad[0]}, only 0 to {heads - 1}")
        if set(attentions[number].kept_heads) <= removed:
            raise ValueError(f"prune_heads: no head of layer {number} would be left; a layer needs at least one")
    for number, removed in heads_to_prune.items():
        attentions[number].prune_heads(removed)
