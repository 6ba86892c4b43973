"""What the two GPT models share beside `nn/block.py`: checks of their inputs, positions, and the stack of layers.

Families name their tables and choose where they normalise; ids to hidden states can be read in their `model.py`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..nn.block import BlockOutput, CausalAttention, DecoderBlock
from ..nn.cache import KeyValueCache, Past
from ..nn.checks import (
    check_device,
    check_float_type,
    check_indices,
    check_mask,
    check_shape,
    check_tensor,
    recording,
    values_readable,
)
from ..nn.fused import serves
from ..nn.layouts import Packed
from ..nn.masks import CausalMask, decoder_mask
from .decoder_config import DecoderConfig

#: Keys and values of earlier tokens: one tensor [2, B, A, T, D] a layer, as published, or a cache.
Pasts = Sequence[Tensor] | KeyValueCache | None


class DecoderInputs(NamedTuple):
    """The tensors of a forward call that describe the tokens: [B, T] once `flattened`, [N] once `packed`."""

    input_ids: Tensor | None = None
    past: Pasts = None
    attention_mask: Tensor | None = None
    token_type_ids: Tensor | None = None
    position_ids: Tensor | None = None
    head_mask: Tensor | None = None
    inputs_embeds: Tensor | None = None
    layout: Packed | None = None

    @property
    def tokens(self) -> tuple[str, Tensor]:
        """Which of the two descriptions of the tokens was given, and what.

        Raises:
            ValueError: Neither or both were.
            TypeError: It is no tensor.
        """
        if (self.input_ids is None) == (self.inputs_embeds is None):
            raise ValueError("give input_ids or inputs_embeds, one of the two")
        name = "input_ids" if self.inputs_embeds is None else "inputs_embeds"
        given = self.input_ids if self.inputs_embeds is None else self.inputs_embeds
        check_tensor(name, given)
        assert given is not None
        return name, given

    def flattened(self) -> tuple["DecoderInputs", tuple[int, ...]]:
        """The same with all leading axes as one batch, and what those axes and T were: choices are rows like others.

        Raises:
            ValueError: There are no tokens, or an argument has another shape than the tokens.
            TypeError: One is no tensor.
        """
        name, given = self.tokens
        past = self.past
        if isinstance(past, list | tuple) and all(layer is None for layer in past):  # 0.6.2's way to say none
            past = None
        shape = tuple(given.shape if name == "input_ids" else given.shape[:-1])
        if len(shape) < 2 or (not recording() and 0 in given.shape):
            axes = "[batch, ..., tokens]" if name == "input_ids" else "[batch, ..., tokens, hidden]"
            raise ValueError(f"{name}: expected a shape {axes} without empty axes, found {list(given.shape)}")
        flat: dict[str, Any] = {name: given.reshape(-1, *given.shape[len(shape) - 1 :])}
        others = (("token_type_ids", self.token_type_ids), ("position_ids", self.position_ids))
        for other, x in others:
            if x is not None:
                check_tensor(other, x)
                if other != "position_ids" or (not recording() and tuple(x.shape) != (1, shape[-1])):
                    check_shape(other, x, shape, "as the tokens")
                flat[other] = x.reshape(-1, shape[-1])
        if self.attention_mask is not None:
            check_tensor("attention_mask", self.attention_mask)
            check_past_form(past)
            length = shape[-1] + past_length(past)
            check_shape(
                "attention_mask", self.attention_mask, (*shape[:-1], length), "cached and new tokens of each row"
            )
            flat["attention_mask"] = self.attention_mask.reshape(-1, length)
        return self._replace(past=past, **flat), shape

    def packed(self, layout: Packed) -> "DecoderInputs":
        """The same, flattened before, without what the layout leaves out: [N] each; no mask is needed any more."""
        _, given = self.tokens
        positions = token_positions(self).expand(given.shape[:2])
        ids, types, embeds = (
            None if x is None else layout.pack(x) for x in (self.input_ids, self.token_type_ids, self.inputs_embeds)
        )
        return DecoderInputs(
            ids,
            token_type_ids=types,
            position_ids=layout.pack(positions),
            head_mask=self.head_mask,
            inputs_embeds=embeds,
            layout=layout,
        )


def check_past_form(past: Pasts) -> None:
    """Raise unless it is what a past can be, as far as its length can be read then."""
    if past is None or isinstance(past, KeyValueCache) or recording():
        return
    if not isinstance(past, list | tuple | Tensor):
        raise TypeError(f"past: expected a tensor for each layer, or a KeyValueCache, found {type(past).__name__}")
    for layer in past:
        check_tensor("past", layer)
        if layer.ndim != 5:
            raise ValueError(
                f"past: expected shape [2, batch, heads, tokens, head size] for each layer, found {list(layer.shape)}"
            )


def check_past(past: Sequence[Tensor] | KeyValueCache, batch: int, blocks: nn.ModuleList, like: Tensor) -> None:
    """Raise `ValueError` unless keys and values are those of this model, for that many rows, of the type of `like`."""
    layers = [past.layer(n).values for n in range(past.layers)] if isinstance(past, KeyValueCache) else list(past)
    what = "past: a cache" if isinstance(past, KeyValueCache) else "past"
    if len(layers) != len(blocks):
        raise ValueError(f"{what}: expected one tensor a layer, {len(blocks)}, found {len(layers)}")
    length = layers[0].shape[3] if layers else 0
    for layer, block in zip(layers, blocks, strict=True):
        attention = getattr(block, "attn", None)
        if not isinstance(attention, CausalAttention):  # one of a user's own making
            continue
        expected = (2, batch, attention.n_head, length, attention.head_size)
        check_device(what, layer, "the model", like)
        check_shape(what, layer, expected, "keys and values, batch, heads, tokens, head size")
        check_float_type(what, layer, like.dtype)


class Attention(CausalAttention):
    """Causal self-attention of the size that a configuration says, under the published name.

    Args:
        nx: Width of the hidden states, H.
        n_ctx: Longest input; not used, as masks are made to fit.
        config: The sizes.
        scale: Whether scores are divided by the root of the head size.
    """

    def __init__(self, nx: int, n_ctx: int, config: DecoderConfig, scale: bool = False) -> None:
        del n_ctx
        super().__init__(
            nx, config.n_head, dropout=config.attn_pdrop, residual_dropout=config.resid_pdrop, scaled=scale
        )


def past_length(past: Pasts) -> int:
    """Number of tokens whose keys and values are there already."""
    if past is None:
        return 0
    if isinstance(past, KeyValueCache):
        return past.length
    return past[0].shape[3] if len(past) else 0


def layer_past(past: Pasts, number: int) -> Past:
    """What one layer continues from."""
    if past is None:
        return None
    return past.layer(number) if isinstance(past, KeyValueCache) else past[number]


def cache_for(blocks: nn.ModuleList, batch: int, length: int, like: Tensor) -> KeyValueCache:
    """Room for the keys and values of that many sequences of that many tokens, of the type and device of `like`."""
    attentions = [block.attn for block in blocks if isinstance(block, DecoderBlock)]
    return KeyValueCache(
        [attention.n_head for attention in attentions],
        batch,
        length,
        attentions[0].head_size if attentions else 1,
        like.dtype,
        like.device,
    )


def check_inputs(inputs: DecoderInputs, *, words: int, positions: int, like: Tensor, blocks: nn.ModuleList) -> None:
    """Refuse what would fail in a kernel, or compute something else than was meant.

    Args:
        inputs: Flattened.
        words: Rows of the table of tokens, V.
        positions: Rows of the table of positions.
        like: The table of tokens [V, H].
        blocks: The layers.

    Raises:
        ValueError: A shape, type or value is wrong; the message names the argument, the limit and the way out.
    """
    if recording():
        return
    name, given = inputs.tokens
    B, T = given.shape[:2]
    check_past_form(inputs.past)
    before = past_length(inputs.past)
    for other in ("attention_mask", "token_type_ids", "position_ids", "head_mask"):
        if (x := getattr(inputs, other)) is not None:
            check_tensor(other, x)
            check_device(other, x, name, given)
    if before + T > positions and inputs.position_ids is None and inputs.attention_mask is None:
        cached = f"{before} tokens in the cache and {T} new ones" if before else f"{T} tokens"
        raise ValueError(
            f"{name}: {cached}, but this model has {positions} positions; shorten the text, or let windows of it slide"
        )
    if inputs.input_ids is not None:
        check_indices("input_ids", given, words, "is this the tokenizer of the model?")
    else:
        check_shape("inputs_embeds", given, (B, T, like.shape[1]), "batch, tokens, hidden size")
        check_float_type("inputs_embeds", given, like.dtype)
    if inputs.token_type_ids is not None:
        remedy = "they are looked up in the table of tokens"
        check_indices("token_type_ids", inputs.token_type_ids, words, remedy)
    if inputs.position_ids is not None:
        check_indices("position_ids", inputs.position_ids, positions, "the model has no more positions")
    if (mask := inputs.attention_mask) is not None:
        check_mask("attention_mask", mask)
        if values_readable(mask) and inputs.position_ids is None and int(mask.sum(1).max()) > positions:
            raise ValueError(
                f"attention_mask: {int(mask.sum(1).max())} real tokens in a row, but this model has {positions} "
                "positions; shorten the text"
            )
    if isinstance(inputs.past, KeyValueCache) and before + T > inputs.past.room:
        raise ValueError(f"past: the cache has room for {inputs.past.room} tokens, not for {before} and {T} more")
    if inputs.past is not None:
        check_past(inputs.past, B, blocks, like)


def token_positions(inputs: DecoderInputs) -> Tensor:
    """Position of each new token, [B, T] or [1, T]: counted from the first real token of the row, after the cache."""
    if inputs.position_ids is not None:
        return inputs.position_ids
    _, given = inputs.tokens
    T, before = given.shape[1], past_length(inputs.past)
    if inputs.attention_mask is None:
        return torch.arange(before, before + T, device=given.device)[None]
    counted = inputs.attention_mask.long().cumsum(-1) - 1
    return counted.clamp(min=0)[:, -T:]


def packable(inputs: DecoderInputs, labels: Tensor | None) -> bool:
    """Whether a loss can be computed without the padded tokens: they are on the right, and have no label.

    Args:
        inputs: As they were given.
        labels: As they were given; whether they can be used is checked later.
    """
    mask = inputs.attention_mask
    if recording() or inputs.past is not None or not isinstance(mask, Tensor) or not isinstance(labels, Tensor):
        return False
    if labels.shape != mask.shape or mask.ndim < 2 or not values_readable(mask):
        return False
    padding = mask == 0
    on_the_right = bool((padding[..., 1:] >= padding[..., :-1]).all()) and not bool(padding[..., 0].any())
    return on_the_right and bool(padding.any()) and bool((labels[padding] < 0).all())


def mask_of(inputs: DecoderInputs, hidden: Tensor) -> CausalMask:
    """Which tokens each of the embedded ones [B, T, H], or [N, H] where they are packed, sees."""
    if inputs.layout is not None:
        return CausalMask(None, causal=True, packed=inputs.layout)
    return decoder_mask(real_mask(inputs.attention_mask), hidden.shape[1], past_length(inputs.past), hidden)


def real_mask(mask: Tensor | None) -> Tensor | None:
    """The mask, or None where it says that nothing is padding."""
    return None if mask is not None and values_readable(mask) and bool(mask.all()) else mask


def layer_head_mask(head_mask: Tensor | None, layers: int, heads: int, like: Tensor) -> Tensor | None:
    """[A] or [L, A] -> [L, A]."""
    if head_mask is None:
        return None
    if head_mask.ndim == 1:
        head_mask = head_mask.expand(layers, -1)
    check_shape("head_mask", head_mask, (layers, heads), "layers, heads; or heads alone")
    return head_mask.to(like.dtype)


class Decoded(NamedTuple):
    """Result of `run_blocks`."""

    hidden: Tensor
    presents: tuple[Tensor, ...]
    states: tuple[Tensor, ...]
    probs: tuple[Tensor, ...]


def run_blocks(
    blocks: nn.ModuleList,
    hidden: Tensor,
    mask: CausalMask,
    past: Pasts,
    head_mask: Tensor | None,
    *,
    need_states: bool,
    need_probs: bool,
    recompute: bool,
) -> Decoded:
    """Run the layers.

    Args:
        blocks: The layers, `DecoderBlock` each.
        hidden: [B, T, H] embedded tokens, or [N, H] of those that `mask` has packed.
        mask: Which tokens each of them sees.
        past: Keys and values of the tokens before them.
        head_mask: [L, A].
        need_states: Whether to return what went into each layer.
        need_probs: Whether to return the attention probabilities [B, A, T, T] of each layer.
        recompute: Whether to compute layers again in backward rather than to keep their activations.
    """
    presents, states, probs = [], [], []
    packed = serves(hidden)
    for number, block in enumerate(blocks):
        if need_states:
            states.append(hidden)
        silenced = None if head_mask is None else head_mask[number]
        arguments = (hidden, mask, layer_past(past, number), silenced, need_probs, packed)
        done: BlockOutput = checkpoint(block, *arguments, use_reentrant=False) if recompute else block(*arguments)
        hidden = done.hidden
        if done.present is not None:
            presents.append(done.present)
        if done.probs is not None:
            probs.append(done.probs)
    if isinstance(past, KeyValueCache):
        past.advance(hidden.shape[1])
    return Decoded(hidden, tuple(presents), tuple(states), tuple(probs))
