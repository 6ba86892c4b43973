"""The BERT encoder (Devlin et al. 2018, arXiv:1810.04805; google-research/bert, modeling.py).

One forward, from ids to hidden states: embeddings, then layers of attention and feed-forward parts, each followed by
"add and normalise" (post-norm), then a pooler over the first token. Module and parameter names are those of the
published PyTorch checkpoints. The letters in shapes are defined in `nn/__init__.py`.

Surprising: the encoder runs on one of two layouts (`nn/layouts.py`). Padded is the usual rectangle [B, T, H]. Packed
is [N, H], without padding; tasks whose result can't depend on padding use it by themselves.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ...checkpoint.keymap import KeyMap
from ...nn.activations import get_activation
from ...nn.checks import (
    check_device,
    check_float_type,
    check_indices,
    check_mask,
    check_shape,
    check_tensor,
    recording,
    values_readable,
)
from ...nn.dropout import Dropout
from ...nn.fused import FusableLayer, FusedLayer, can_fuse, serves
from ...nn.layouts import Layout, Packed, Padded
from ...nn.masks import additive_key_mask
from ...nn.pruning import kept_columns, prune_linear_layer
from ...nn.recompute import after_activation
from ...nn.tied import TiedEmbedding
from ..base import PreTrainedModel
from ..config import PretrainedConfig
from ..outputs import BaseModelOutputWithPooling
from ..warn import warn_once
from .config import BertConfig
from .convert import KEY_MAP
from .pretrained import BERT_PRETRAINED_MODEL_ARCHIVE_MAP


class BertEmbeddings(nn.Module):
    """Sum of word, position and segment embeddings, normalised."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word_embeddings: nn.Embedding = TiedEmbedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Entries of the three tables: words, positions, segments."""
        tables = (self.word_embeddings, self.position_embeddings, self.token_type_embeddings)
        words, positions, segments = (table.num_embeddings for table in tables)
        return words, positions, segments

    def forward(self, words: Tensor, positions: Tensor, types: Tensor | None) -> Tensor:
        """Embed tokens of any layout: word vectors [..., H], positions, segments (None: all 0), -> [..., H]."""
        segments = self.token_type_embeddings.weight[0] if types is None else self.token_type_embeddings(types)
        embedded: Tensor = self.LayerNorm(words + self.position_embeddings(positions) + segments)
        return self.dropout(embedded)


class BertSelfAttention(nn.Module):
    """Multi-head self-attention, without the projection that follows it (`BertSelfOutput`)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.num_attention_heads = config.num_attention_heads
        self.head_size = config.hidden_size // config.num_attention_heads
        #: Heads that are left, in the original numbering.
        self.kept_heads = list(range(config.num_attention_heads))
        self.dropout = Dropout(config.attention_probs_dropout_prob)  # its rate and mode; attention itself drops
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(
        self, hidden: Tensor, layout: Layout, head_mask: Tensor | None, need_probs: bool, first_only: bool
    ) -> tuple[Tensor, Tensor | None]:
        """[..., H] -> [..., A * D]; see `BertLayer.forward`."""
        asking = layout.first(hidden) if first_only else hidden
        heads = (self.num_attention_heads, -1)
        return layout.attend(
            self.query(asking).unflatten(-1, heads),
            self.key(hidden).unflatten(-1, heads),
            self.value(hidden).unflatten(-1, heads),
            dropout=self.dropout.p if self.dropout.training else 0.0,
            head_mask=self.kept(head_mask),
            need_probs=need_probs,
        )

    def kept(self, head_mask: Tensor | None) -> Tensor | None:
        """The values of a mask [A] for the heads that are left."""
        pruned = head_mask is not None and len(self.kept_heads) < head_mask.shape[0]
        return head_mask[self.kept_heads] if pruned and head_mask is not None else head_mask


class BertSelfOutput(nn.Module):
    """Projection of the attended values, residual and normalisation."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, context: Tensor, residual: Tensor) -> Tensor:
        """[..., A * D], [..., H] -> [..., H]."""
        normalised: Tensor = self.LayerNorm(residual + self.dropout(self.dense(context)))
        return normalised


class BertAttention(nn.Module):
    """Self-attention with its output part; holds the heads that can be pruned."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = BertSelfAttention(config)
        self.output = BertSelfOutput(config)

    def prune_heads(self, heads: set[int]) -> None:
        """Remove heads (original numbering) from all four matrices; those gone already are skipped."""
        attention = self.self
        present = heads & set(attention.kept_heads)
        if not present:
            return
        index = kept_columns(
            attention.num_attention_heads, attention.head_size, {attention.kept_heads.index(head) for head in present}
        )
        for layer in (attention.query, attention.key, attention.value):
            prune_linear_layer(layer, index)
        prune_linear_layer(self.output.dense, index, dim=1)
        attention.kept_heads = [head for head in attention.kept_heads if head not in present]
        attention.num_attention_heads = len(attention.kept_heads)


class BertIntermediate(nn.Module):
    """First half of the feed-forward part, with the activation."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.activation = get_activation(config.hidden_act)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., F]."""
        return self.activation(self.dense(hidden))


class BertOutput(nn.Module):
    """Second half of the feed-forward part, residual and normalisation."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.intermediate_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, expanded: Tensor, residual: Tensor) -> Tensor:
        """[..., F], [..., H] -> [..., H]."""
        normalised: Tensor = self.LayerNorm(residual + self.dropout(after_activation(self.dense, expanded)))
        return normalised


class BertLayer(FusableLayer):
    """One Transformer layer: attention, then the feed-forward part."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = BertAttention(config)
        self.intermediate = BertIntermediate(config)
        self.output = BertOutput(config)

    def forward(
        self,
        hidden: Tensor,
        layout: Layout,
        head_mask: Tensor | None = None,
        need_probs: bool = False,
        first_only: bool = False,
        packed_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute one layer.

        Args:
            hidden: [B, T, H] padded or [N, H] packed.
            layout: Which of the two, and which tokens belong together.
            head_mask: [A], multiplies the attention probabilities of each head.
            need_probs: Whether to return the probabilities (padded layout only).
            first_only: Whether only the first token of each sequence is asked for; the others serve as keys alone.
            packed_weights: Whether those of `fuse` may be used where there are some; see `nn/fused.py`, `serves`.

        Returns:
            The states, like `hidden`, or `layout.first` of them; and the probabilities [B, A, T, T] or None.
        """
        if packed_weights and self.fused is not None and self.fused.usable(hidden):
            kept = None if head_mask is None else self.attention.self.kept(head_mask)
            output: tuple[Tensor, Tensor | None] = self.fused(hidden, layout, kept, need_probs, first_only)
            return output
        context, probs = self.attention.self(hidden, layout, head_mask, need_probs, first_only)
        attended = self.attention.output(context, layout.first(hidden) if first_only else hidden)
        return self.output(self.intermediate(attended), attended), probs

    def make_fused(self) -> FusedLayer | None:
        """The layer on packed weights, where oneDNN can take them; see `nn/fused.py`."""
        attention = self.attention.self
        linears = (
            *(attention.query, attention.key, attention.value, self.attention.output.dense),
            *(self.intermediate.dense, self.output.dense),
        )
        norms = (self.attention.output.LayerNorm, self.output.LayerNorm)
        if not all(map(can_fuse, linears)) or any(type(norm) is not nn.LayerNorm for norm in norms):
            return None
        return FusedLayer(
            self,
            query=attention.query,
            key=attention.key,
            value=attention.value,
            output=self.attention.output.dense,
            norm=self.attention.output.LayerNorm,
            inner=self.intermediate.dense,
            activation=self.intermediate.activation,
            outer=self.output.dense,
            last_norm=self.output.LayerNorm,
            heads=attention.num_attention_heads,
        )


class BertEncoder(nn.Module):
    """The stack of layers."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.layer = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))

    def block(self, number: int) -> BertLayer:
        """The layer of that number."""
        layer = self.layer[number]
        assert isinstance(layer, BertLayer)
        return layer

    def forward(
        self,
        hidden: Tensor,
        layout: Layout,
        head_mask: Tensor | None,
        need_states: bool,
        need_probs: bool,
        first_only: bool,
        depth: int | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Run the layers, or the first `depth` of them.

        Returns:
            The last states; the states of the embeddings and of each layer, if needed; the probabilities of each layer.
        """
        states, all_probs = [hidden], []
        recompute = self.config.gradient_checkpointing and self.training and torch.is_grad_enabled()
        packed_weights = serves(hidden)
        layers = list(self.layer)[:depth]
        for number, layer in enumerate(layers):
            mask = None if head_mask is None else head_mask[number]
            last = first_only and number == len(layers) - 1
            if recompute:
                hidden, probs = checkpoint(layer, hidden, layout, mask, need_probs, last, use_reentrant=False)
            else:
                hidden, probs = layer(hidden, layout, mask, need_probs, last, packed_weights)
            if need_states:
                states.append(hidden)
            if probs is not None:
                all_probs.append(probs)
        if first_only and not len(layers):
            hidden = layout.first(hidden)
        return hidden, tuple(states), tuple(all_probs)


class BertPooler(nn.Module):
    """A dense layer with tanh over the first token, trained with next-sentence prediction."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, first: Tensor) -> Tensor:
        """States of the first token [B, H], or of all tokens [B, T, H], of which the first is taken -> [B, H]."""
        return torch.tanh(self.dense(first[:, 0] if first.ndim == 3 else first))


class Inputs(NamedTuple):
    """The tensors of a forward call that describe the tokens, in the order of its arguments."""

    input_ids: Tensor | None = None
    attention_mask: Tensor | None = None
    token_type_ids: Tensor | None = None
    position_ids: Tensor | None = None
    head_mask: Tensor | None = None
    inputs_embeds: Tensor | None = None


class Encoded(NamedTuple):
    """Result of `BertModel.encode`; `hidden` and `states` lie as `layout` says, or are first tokens alone."""

    hidden: Tensor
    layout: Layout
    states: tuple[Tensor, ...]
    probs: tuple[Tensor, ...]
    first_only: bool

    @property
    def first(self) -> Tensor:
        """The first token of each sequence, as `layout.first` gives it."""
        return self.hidden if self.first_only else self.layout.first(self.hidden)

    def extras(self) -> dict[str, Any]:
        """The optional fields that the outputs of all models end with, None where not asked for."""
        return {
            "hidden_states": tuple(self.layout.restore(state) for state in self.states) or None,
            "attentions": self.probs or None,
        }


class BertPreTrainedModel(PreTrainedModel):
    """Base of the BERT models, and of your own: subclass it, add modules, and they are initialised as BERT's."""

    config_class: ClassVar[type[PretrainedConfig]] = BertConfig
    base_model_prefix: ClassVar[str] = "bert"
    key_map: ClassVar[KeyMap] = KEY_MAP
    pretrained_model_archive_map: ClassVar[Mapping[str, str]] = BERT_PRETRAINED_MODEL_ARCHIVE_MAP
    constant_keys: ClassVar[tuple[str, ...]] = (r"(^|\.)embeddings\.(position_ids|token_type_ids)$",)
    config: BertConfig

    def _init_weights(self, module: nn.Module) -> None:
        """Matrices from a normal distribution, biases 0, normalisation 1 (modeling.py, create_initializer).

        The original cuts the distribution at two standard deviations; the published PyTorch packages don't.
        """
        if isinstance(module, nn.Linear | nn.Embedding):
            module.weight.normal_(0.0, self.config.initializer_range)
        elif isinstance(module, nn.LayerNorm) and module.elementwise_affine:
            module.weight.fill_(1.0)
        if isinstance(module, nn.Linear | nn.LayerNorm) and module.bias is not None:
            module.bias.zero_()

    def _make_encoder(self, config: BertConfig, *, pooling: bool = True) -> "BertModel":
        """Build the encoder of a model with a head, with or without its pooler."""
        return BertModel(config, add_pooling_layer=pooling)


class BertModel(BertPreTrainedModel):
    """The encoder with its pooler: ids to hidden states.

    Args:
        config: The sizes.
        add_pooling_layer: Whether there is a pooler; False leaves its weights out.
    """

    def __init__(self, config: BertConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config)
        self.embeddings = BertEmbeddings(config)
        self.encoder = BertEncoder(config)
        self.pooler = BertPooler(config) if add_pooling_layer else None
        self._prune_heads({layer: set(heads) for layer, heads in config.pruned_heads.items()})

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        *,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
        unpad: bool = False,
    ) -> Any:
        """Encode a batch.

        Args:
            input_ids: [B, T] ids of the tokens.
            attention_mask: [B, T], 1 for real tokens, 0 for padding; all 1 by default.
            token_type_ids: [B, T] segment of each token; all 0 by default.
            position_ids: [B, T] or [1, T]; 0 to T - 1 by default.
            head_mask: [A] or [L, A], 1 keeps a head, 0 silences it; gradients flow into it.
            inputs_embeds: [B, T, H] vectors in place of `input_ids`.
            output_hidden_states: Whether to return the states of the embeddings and all layers.
            output_attentions: Whether to return the attention probabilities of all layers.
            return_dict: False returns a plain tuple.
            unpad: Whether to compute real tokens only; states at padded positions are then 0. By default they are
                what the original computes there, which means nothing.

        Returns:
            `BaseModelOutputWithPooling`: last_hidden_state [B, T, H], pooler_output [B, H], and on request
            hidden_states (L + 1 times [B, T, H]) and attentions (L times [B, A, T, T]).

        Raises:
            ValueError: An argument has a wrong shape, type or value; the message names it.
        """
        encoded = self.encode(
            Inputs(input_ids, attention_mask, token_type_ids, position_ids, head_mask, inputs_embeds),
            pack=unpad,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        fields = {
            "last_hidden_state": encoded.layout.restore(encoded.hidden),
            "pooler_output": None,
            **encoded.extras(),
        }
        if self.pooler is not None:
            fields["pooler_output"] = self.pool(encoded)
        if unpad and attention_mask is not None and isinstance(encoded.layout, Padded):  # it could not be packed
            real = attention_mask.bool()[..., None]
            fields["last_hidden_state"] = fields["last_hidden_state"].where(real, 0.0)
            fields["hidden_states"] = tuple(state.where(real, 0.0) for state in encoded.states) or None
        output = BaseModelOutputWithPooling.of(**fields)
        return self.packaged(output, return_dict)

    def encode(
        self,
        inputs: Inputs,
        *,
        pack: bool = False,
        first_only: bool = False,
        depth: int | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> Encoded:
        """The forward that all models share: check, choose a layout, embed, run the layers.

        Args:
            inputs: As the arguments of `forward`.
            pack: Whether padding may be left out. It is, where something is padded and no graph is recorded.
            first_only: Whether the first token of each sequence is all that will be read.
            depth: Layers to run; all by default.
            output_hidden_states: As in `forward`; with it `first_only` has no effect.
            output_attentions: As in `forward`; it needs the padded layout.
        """
        need_states = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        need_probs = self.config.output_attentions if output_attentions is None else output_attentions
        self._check(inputs)
        layout = self._layout(inputs, pack and not need_probs)
        embedded = self._embed(inputs, layout)
        head_mask = self._head_mask(inputs.head_mask, embedded)
        first_only = first_only and not (need_states or need_probs)
        hidden, states, probs = self.encoder(embedded, layout, head_mask, need_states, need_probs, first_only, depth)
        return Encoded(hidden, layout, states if need_states else (), probs, first_only)

    def pool(self, encoded: Encoded) -> Tensor:
        """The pooled first token [B, H] of what `encode` returned, whether with `first_only` or not."""
        if self.pooler is None:
            raise ValueError("this BertModel was built with add_pooling_layer=False")
        pooled: Tensor = self.pooler(encoded.layout.first_in_batch_order(encoded.first))
        return pooled

    def _check(self, inputs: Inputs) -> None:
        """Refuse what would fail in a kernel, or compute something else than was meant."""
        ids, embeds, config = inputs.input_ids, inputs.inputs_embeds, self.config
        if (ids is None) == (embeds is None):
            raise ValueError("give input_ids or inputs_embeds, one of the two")
        given = ids if ids is not None else embeds
        assert given is not None
        if recording():
            return
        name = "input_ids" if embeds is None else "inputs_embeds"
        check_tensor(name, given)
        for other, x in inputs._asdict().items():
            if x is not None:
                check_tensor(other, x)
                check_device(other, x, name, given)
        expected = 2 if embeds is None else 3
        if given.ndim != expected or given.numel() == 0:
            axes = "[batch, tokens]" if embeds is None else "[batch, tokens, hidden]"
            raise ValueError(f"{name}: expected a shape {axes} without empty axes, found {list(given.shape)}")
        B, T = given.shape[:2]
        words, places, segments = self.embeddings.sizes
        if places < T and inputs.position_ids is None:
            raise ValueError(
                f"{name}: {T} tokens, but this model has {places} positions; "
                "truncate the input (tokenizer(..., truncation=True)) or split it into windows"
            )
        if ids is not None:
            check_indices("input_ids", ids, words, "is this the tokenizer of the model?")
        if embeds is not None:
            check_shape("inputs_embeds", embeds, (B, T, config.hidden_size), "batch, tokens, hidden size")
            check_float_type("inputs_embeds", embeds, self.embeddings.LayerNorm.weight.dtype)
        if (types := inputs.token_type_ids) is not None:
            check_shape("token_type_ids", types, (B, T), "batch, tokens")
            check_indices("token_type_ids", types, segments, "if you meant the mask, pass attention_mask=…")
        if (positions := inputs.position_ids) is not None:
            rows = 1 if positions.ndim == 2 and positions.shape[0] == 1 else B
            check_shape("position_ids", positions, (rows, T), "batch, tokens")
            check_indices("position_ids", positions, places, "the model has no more positions")
        if (mask := inputs.attention_mask) is not None:
            check_shape("attention_mask", mask, (B, T), "batch, tokens")
            check_mask("attention_mask", mask)
        elif ids is not None and (pad := config.pad_token_id) is not None and values_readable(ids) and pad in ids:
            warn_once("input_ids hold padding but attention_mask was not given: the padding counts as text")

    def _layout(self, inputs: Inputs, pack: bool) -> Layout:
        mask = inputs.attention_mask
        if mask is None:
            return Padded(None)
        pack = pack and not recording() and not mask.is_meta
        if (pack or values_readable(mask)) and bool(mask.all()):
            return Padded(None)
        # A sequence whose first token is padding (padded on the left) has nothing at the place heads read.
        if pack and bool(mask[:, 0].all()):
            return Packed.from_mask(mask)
        return Padded(additive_key_mask(mask, self.embeddings.LayerNorm.weight.dtype))

    def _embed(self, inputs: Inputs, layout: Layout) -> Tensor:
        ids, embeds, types, positions = (
            inputs.input_ids,
            inputs.inputs_embeds,
            inputs.token_type_ids,
            inputs.position_ids,
        )
        given = ids if embeds is None else embeds
        assert given is not None
        if positions is None:
            positions = torch.arange(given.shape[1], device=given.device)[None]  # [1, T]
        if isinstance(layout, Packed):
            positions = layout.pack(positions.expand(given.shape[:2]))
            given = layout.pack(given)
            types = None if types is None else layout.pack(types)
        words = self.embeddings.word_embeddings(given) if embeds is None else given
        embedded: Tensor = self.embeddings(words, positions, types)
        return embedded

    def _head_mask(self, head_mask: Tensor | None, like: Tensor) -> Tensor | None:
        """[A] or [L, A] -> [L, A]."""
        if head_mask is None:
            return None
        L, A = self.config.num_hidden_layers, self.config.num_attention_heads
        if head_mask.ndim == 1:
            head_mask = head_mask.expand(L, -1)
        check_shape("head_mask", head_mask, (L, A), "layers, heads; or heads alone")
        return head_mask.to(like.dtype)

    def get_input_embeddings(self) -> nn.Embedding:
        """The table of word embeddings [V, H]."""
        return self.embeddings.word_embeddings

    def _replace_embeddings(self, embeddings: nn.Embedding) -> None:
        self.embeddings.word_embeddings = embeddings

    def _prune_heads(self, heads_to_prune: Mapping[int, set[int]]) -> None:
        L, A = self.config.num_hidden_layers, self.config.num_attention_heads
        for number, heads in heads_to_prune.items():
            if not 0 <= number < L:
                raise ValueError(f"prune_heads: there is no layer {number}, only 0 to {L - 1}")
            if bad := [head for head in sorted(heads) if not 0 <= head < A]:
                raise ValueError(f"prune_heads: layer {number} has no head {bad[0]}, only 0 to {A - 1}")
            if set(self.encoder.block(number).attention.self.kept_heads) <= heads:
                raise ValueError(f"prune_heads: no head of layer {number} would be left; a layer needs at least one")
        for number, heads in heads_to_prune.items():
            self.encoder.block(number).attention.prune_heads(heads)
            self.config.pruned_heads[number] = sorted(heads | set(self.config.pruned_heads.get(number, ())))
