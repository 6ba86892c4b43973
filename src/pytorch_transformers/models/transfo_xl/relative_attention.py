"""Attention that looks at distances rather than positions (Dai et al. 2019, section 3.3), and a layer around it.

Source: kimiyoung/transformer-xl, tf/model.py, rel_multihead_attn, rel_shift, positionwise_FF, positional_embedding.
Letters as in `nn/__init__.py`; M is the number of tokens in the memory, K = M + T the number of keys.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...nn.attention import attend, merge_heads
from ...nn.checks import recording, transforming
from ...nn.dropout import Dropout
from .memory import LayerMemory

#: Base of the wave lengths (tf/model.py, positional_embedding; Vaswani et al. 2017, section 3.5).
_WAVES = 10000.0


class PositionalEmbedding(nn.Module):
    """Sinusoids of distances: all sines first, then all cosines.

    Args:
        demb: Width, H.
    """

    def __init__(self, demb: int) -> None:
        super().__init__()
        self.demb = demb

    def forward(self, pos_seq: Tensor, bsz: int | None = None) -> Tensor:
        """Distances [K] -> [K, H], or [K, B, H] for a batch; computed in the type of `pos_seq`, so pass float32."""
        steps = torch.arange(0, self.demb, 2, dtype=pos_seq.dtype, device=pos_seq.device)
        angles = torch.outer(pos_seq, 1.0 / _WAVES ** (steps / self.demb))
        table = torch.cat((angles.sin(), angles.cos()), dim=-1)
        return table if bsz is None else table[:, None].expand(-1, bsz, -1)


def relative_shift(scores: Tensor) -> Tensor:
    """Line up scores by distance with keys, without a copy: [..., T, K + 1] -> [..., T, K].

    Column c of the input is distance K - c for every row. In row-major order, one place to the right for each row
    further down is the same as cutting the flat array into rows of K after leaving out its first T numbers. What comes
    to stand at keys after the query's own place means nothing; the mask hides it. So does what was in column 0, which
    is there for the shift only.
    """
    *lead, T, width = scores.shape
    return scores.reshape(*lead, T * width)[..., T:].view(*lead, T, width - 1)


def attend_relative(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    relative: Tensor,
    w_bias: Tensor,
    r_bias: Tensor,
    mask: Tensor | None,
    *,
    dropout: float = 0.0,
    head_mask: Tensor | None = None,
    need_probs: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Mix values by content and distance of their keys: the score of a key is (q + w_bias) k + (q + r_bias) r.

    Args:
        query: [B, T, A, D].
        key: [B, A, K, D].
        value: [B, A, K, D].
        relative: [A, D, K + 1], what stands for distances K, K - 1, …, 0.
        w_bias: [A, D].
        r_bias: [A, D].
        mask: Added to the scores, broadcastable to [B, A, T, K].
        dropout: Share of probabilities set to 0.
        head_mask: [A], multiplies the probabilities.
        need_probs: Whether to return the probabilities.

    Returns:
        [B, A, T, D], and the probabilities [B, A, T, K] or None.
    """
    B, T, A, D = query.shape
    # [A, B * T, D] @ [A, D, K + 1]: a product for each head, of all rows of the batch together.
    scaled = ((query + r_bias) * D**-0.5).view(B * T, A, D).transpose(0, 1)
    by_distance = relative_shift(torch.bmm(scaled, relative).view(A, B, T, -1)).transpose(0, 1)
    if mask is not None:
        by_distance = by_distance + mask
    return attend(
        (query + w_bias).transpose(1, 2),
        key,
        value,
        mask=by_distance,  # [B, A, T, K]
        dropout=dropout,
        head_mask=head_mask,
        need_probs=need_probs,
    )


class RelativeAttention(torch.autograd.Function):
    """`attend_relative` for training: the same numbers, with fewer passes over its largest tensors.

    Of the tensors [A, B, T, K] it keeps the probabilities only, and the gradient of the shift is written where the
    products read it.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        relative: Tensor,
        w_bias: Tensor,
        r_bias: Tensor,
        mask: Tensor | None,
    ) -> Tensor:
        """See `attend_relative`; the result is [B, A, T, D]."""
        B, T, A, D = query.shape
        K = key.shape[2]
        by_content = (query + w_bias).mul_(D**-0.5).permute(2, 0, 1, 3).reshape(A * B, T, D)
        by_distance = (query + r_bias).mul_(D**-0.5).view(B * T, A, D).transpose(0, 1)
        keys, values = (x.transpose(0, 1).reshape(A * B, K, D) for x in (key, value))
        scores = relative_shift(torch.bmm(by_distance, relative).view(A * B, T, K + 1))
        if mask is not None:
            scores.view(A, B, T, K).add_(mask.transpose(0, 1) if mask.ndim == 4 else mask)
        probs = torch.softmax(scores.baddbmm_(by_content, keys.transpose(1, 2)), dim=-1)
        mixed = torch.bmm(probs, values)
        ctx.save_for_backward(by_content, by_distance, keys, values, relative, probs, mixed)
        ctx.sizes = A, B
        return mixed.view(A, B, T, D).transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients, given that of the result."""
        if torch.is_grad_enabled():  # create_graph=True
            raise RuntimeError(
                "attention has no second derivatives here; ask for the probabilities, output_attentions=True, and take "
                "the scores rather than the loss"
            )
        by_content, by_distance, keys, values, relative, probs, mixed = ctx.saved_tensors
        A, B = ctx.sizes
        (_, T, D), K = by_content.shape, keys.shape[1]
        slope = slope.transpose(0, 1).reshape(A * B, T, D)
        of_values = torch.bmm(probs.transpose(1, 2), slope)
        of_probs = torch.bmm(slope, values.transpose(1, 2)).sub_((slope * mixed).sum(-1, keepdim=True))
        # The inverse of the shift: T zeros in front, and rows of K + 1.
        shifted = probs.new_empty(A * B, T * (K + 1))
        shifted[:, :T] = 0.0
        of_scores = shifted[:, T:].view(A * B, T, K)
        torch.mul(of_probs, probs, out=of_scores)
        of_content = torch.bmm(of_scores, keys)
        of_keys = torch.bmm(of_scores.transpose(1, 2), by_content)
        by_head = shifted.view(A, B * T, K + 1)
        of_distance = torch.bmm(by_head, relative.transpose(1, 2))
        of_relative = torch.bmm(by_distance.transpose(1, 2), by_head)
        of_content = of_content.view(A, B, T, D).permute(1, 2, 0, 3) * D**-0.5
        of_distance = of_distance.view(A, B, T, D).permute(1, 2, 0, 3) * D**-0.5
        return (
            of_content + of_distance,
            of_keys.view(A, B, K, D).transpose(0, 1),
            of_values.view(A, B, K, D).transpose(0, 1),
            of_relative,
            of_content.sum((0, 1)),
            of_distance.sum((0, 1)),
            None,
        )


class Context(NamedTuple):
    """What all layers of a segment share.

    Fields: `distances` [K + 1, H], sinusoids of K, K - 1, …, 0; `mask`, added to the scores, broadcastable to
    [B, A, T, K], or None where every token sees every key; `padding` [B, T, 1], True where the token is none, or None.
    """

    distances: Tensor
    mask: Tensor | None
    padding: Tensor | None


class RelPartialLearnableMultiHeadAttn(nn.Module):
    """Relative attention with a learned matrix for distances, under the published name.

    The score of a key is (q + r_w_bias) k + (q + r_r_bias) r, where r is the projected sinusoid of its distance.

    Args:
        n_head: Heads, A.
        d_model: Width of the hidden states, H.
        d_head: Size of a head, D.
        dropout: Dropout of the result.
        dropatt: Dropout of the probabilities.
        pre_lnorm: Whether to normalise before attention rather than after it.
        r_r_bias: [A, D] shared with other layers; the layer's own where it isn't given.
        r_w_bias: The same.
        layer_norm_epsilon: Added to the variance.
    """

    def __init__(
        self,
        n_head: int,
        d_model: int,
        d_head: int,
        dropout: float,
        dropatt: float = 0.0,
        *,
        pre_lnorm: bool = False,
        r_r_bias: nn.Parameter | None = None,
        r_w_bias: nn.Parameter | None = None,
        layer_norm_epsilon: float = 1e-12,
    ) -> None:
        super().__init__()
        self.n_head, self.d_head = n_head, d_head
        self.pre_lnorm = pre_lnorm
        self.qkv_net = nn.Linear(d_model, 3 * n_head * d_head, bias=False)
        self.drop = Dropout(dropout)
        self.dropatt = Dropout(dropatt)
        self.o_net = nn.Linear(n_head * d_head, d_model, bias=False)
        self.layer_norm = nn.LayerNorm(d_model, eps=layer_norm_epsilon)
        self.r_r_bias = nn.Parameter(torch.zeros(n_head, d_head)) if r_r_bias is None else r_r_bias
        self.r_w_bias = nn.Parameter(torch.zeros(n_head, d_head)) if r_w_bias is None else r_w_bias
        self.r_net = nn.Linear(d_model, n_head * d_head, bias=False)

    def forward(
        self,
        hidden: Tensor,
        context: Context,
        memory: Tensor | LayerMemory | None,
        head_mask: Tensor | None = None,
        need_probs: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Mix each token with what it sees.

        Args:
            hidden: [B, T, H], what goes into the layer.
            context: What all layers share.
            memory: [B, M, H], what went into this layer for earlier tokens, or a cache of their keys and values. None
                where there are none.
            head_mask: [A], multiplies the probabilities.
            need_probs: Whether to return the probabilities.

        Returns:
            [B, T, H], and the probabilities [B, A, T, K] or None.
        """
        query, key, value, relative = self._projected(hidden, context.distances, memory)
        dropout = self.dropatt.p if self.dropatt.training else 0.0
        inputs = (query, key, value, relative, self.r_w_bias, self.r_r_bias, context.mask)
        plain = need_probs or dropout or head_mask is not None or recording() or transforming()
        if torch.is_grad_enabled() and not plain and not torch.is_autocast_enabled(hidden.device.type):
            mixed, probs = RelativeAttention.apply(*inputs), None  # type: ignore[no-untyped-call]
        else:
            mixed, probs = attend_relative(*inputs, dropout=dropout, head_mask=head_mask, need_probs=need_probs)
        if recording():  # the strides of what attention returns differ from one pass of an exporter to the next
            mixed = mixed.transpose(1, 2).clone(memory_format=torch.contiguous_format).transpose(1, 2)
        result = hidden + self.drop(self.o_net(merge_heads(mixed)))
        return (result if self.pre_lnorm else self.layer_norm(result)), probs

    def _projected(
        self, hidden: Tensor, distances: Tensor, memory: Tensor | LayerMemory | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries [B, T, A, D], keys and values [B, A, K, D] each, and distances [A, D, K + 1]."""
        query, key, value = self.keys_and_more(hidden)
        if isinstance(memory, LayerMemory):
            key, value = memory.extend(key, value)
            return query, key, value, memory.relative(key.shape[2], self.project_distances)
        if memory is not None:  # no queries of what is remembered
            A, D = self.n_head, self.d_head
            inner = self.layer_norm(memory) if self.pre_lnorm else memory
            remembered = F.linear(inner, self.qkv_net.weight[A * D :]).unflatten(-1, (2, A, D)).unbind(2)
            # A major axis for the heads is what the products want; the copy is made here in any case.
            pairs = zip(remembered, (key, value), strict=True)
            key, value = (torch.cat([x.permute(2, 0, 1, 3) for x in pair], dim=2).transpose(0, 1) for pair in pairs)
        else:
            key, value = key.transpose(1, 2), value.transpose(1, 2)
        return query, key, value, self.project_distances(distances)

    def keys_and_more(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [B, T, A, D] each of states [B, T, H]."""
        inner = self.layer_norm(hidden) if self.pre_lnorm else hidden
        query, key, value = self.qkv_net(inner).unflatten(-1, (3, self.n_head, self.d_head)).unbind(2)
        return query, key, value

    def project_distances(self, distances: Tensor) -> Tensor:
        """Sinusoids [K + 1, H] -> [A, D, K + 1]."""
        projected: Tensor = self.r_net(distances)
        return projected.unflatten(-1, (self.n_head, self.d_head)).permute(1, 2, 0)


class PositionwiseFF(nn.Module):
    """The feed-forward part of a layer, under the published name.

    Args:
        d_model: Width of the hidden states, H.
        d_inner: Width inside, F.
        dropout: Dropout inside and of the result.
        pre_lnorm: Whether to normalise before it rather than after it.
        layer_norm_epsilon: Added to the variance.
    """

    def __init__(
        self,
        d_model: int,
        d_inner: int,
        dropout: float,
        pre_lnorm: bool = False,
        *,
        layer_norm_epsilon: float = 1e-12,
    ) -> None:
        super().__init__()
        self.pre_lnorm = pre_lnorm
        self.CoreNet = nn.Sequential(
            nn.Linear(d_model, d_inner),
            nn.ReLU(inplace=True),
            Dropout(dropout),
            nn.Linear(d_inner, d_model),
            Dropout(dropout),
        )
        self.layer_norm = nn.LayerNorm(d_model, eps=layer_norm_epsilon)

    def forward(self, hidden: Tensor) -> Tensor:
        """[B, T, H] -> [B, T, H]."""
        if self.pre_lnorm:
            return hidden + self._core(self.layer_norm(hidden))
        normalised: Tensor = self.layer_norm(hidden + self._core(hidden))
        return normalised

    def _core(self, hidden: Tensor) -> Tensor:
        # On rows [B * T, H], as a linear layer gives a view for more axes: to change that in place costs copies.
        inner: Tensor = self.CoreNet(hidden.reshape(-1, hidden.shape[-1]))
        return inner.view(hidden.shape)


class LayerOutput(NamedTuple):
    """What a layer gives: `hidden` [B, T, H] and `probs` [B, A, T, K] or None."""

    hidden: Tensor
    probs: Tensor | None


class RelPartialLearnableDecoderLayer(nn.Module):
    """One layer, under the published name.

    Args:
        n_head: Heads, A.
        d_model: Width of the hidden states, H.
        d_head: Size of a head, D.
        d_inner: Width inside the feed-forward part, F.
        dropout: Dropout of both parts.
        dropatt: Dropout of the attention probabilities.
        pre_lnorm: Whether both parts normalise first.
        r_r_bias: See `RelPartialLearnableMultiHeadAttn`.
        r_w_bias: See `RelPartialLearnableMultiHeadAttn`.
        layer_norm_epsilon: Added to the variance.
    """

    def __init__(
        self,
        n_head: int,
        d_model: int,
        d_head: int,
        d_inner: int,
        dropout: float,
        *,
        dropatt: float = 0.0,
        pre_lnorm: bool = False,
        r_r_bias: nn.Parameter | None = None,
        r_w_bias: nn.Parameter | None = None,
        layer_norm_epsilon: float = 1e-12,
    ) -> None:
        super().__init__()
        self.dec_attn = RelPartialLearnableMultiHeadAttn(
            n_head,
            d_model,
            d_head,
            dropout,
            dropatt,
            pre_lnorm=pre_lnorm,
            r_r_bias=r_r_bias,
            r_w_bias=r_w_bias,
            layer_norm_epsilon=layer_norm_epsilon,
        )
        self.pos_ff = PositionwiseFF(d_model, d_inner, dropout, pre_lnorm, layer_norm_epsilon=layer_norm_epsilon)

    def forward(
        self,
        hidden: Tensor,
        context: Context,
        memory: Tensor | LayerMemory | None = None,
        head_mask: Tensor | None = None,
        need_probs: bool = False,
    ) -> LayerOutput:
        """See `RelPartialLearnableMultiHeadAttn.forward`."""
        mixed, probs = self.dec_attn(hidden, context, memory, head_mask, need_probs)
        return LayerOutput(self.pos_ff(mixed), probs)
