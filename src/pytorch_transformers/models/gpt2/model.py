"""The GPT-2 decoder: ids to hidden states.

Source: openai/gpt-2, src/model.py. What is surprising in it: the layers normalise before each part, and once more after
the last; the table of tokens serves segments too, and as the output layer. Letters of the shapes: `nn/__init__.py`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ...checkpoint.keymap import KeyMap
from ...nn.activations import get_activation
from ...nn.block import DecoderBlock, FeedForward, prune_blocks
from ...nn.cache import KeyValueCache
from ...nn.dropout import Dropout
from ...nn.layers import Conv1D
from ...nn.layouts import Packed
from ...nn.tied import TiedEmbedding
from ..base import PreTrainedModel
from ..config import PretrainedConfig
from ..decoder import (
    Attention,
    Decoded,
    DecoderInputs,
    Pasts,
    cache_for,
    check_inputs,
    layer_head_mask,
    mask_of,
    run_blocks,
    token_positions,
)
from ..outputs import BaseModelOutputWithPast
from .config import GPT2Config
from .convert import KEY_MAP
from .pretrained import GPT2_PRETRAINED_MODEL_ARCHIVE_MAP


class MLP(FeedForward):
    """The feed-forward part.

    Args:
        n_state: Width inside, F.
        config: The sizes.
    """

    def __init__(self, n_state: int, config: GPT2Config) -> None:
        super().__init__(config.n_embd, n_state, get_activation(config.activation_function), config.resid_pdrop)


class Block(DecoderBlock):
    """One layer, which normalises before each part.

    Args:
        n_ctx: Longest input; not used.
        config: The sizes.
        scale: Whether attention scores are divided by the root of the head size.
    """

    def __init__(self, n_ctx: int, config: GPT2Config, scale: bool = False) -> None:
        super().__init__(
            Attention(config.n_embd, n_ctx, config, scale),
            MLP(config.n_inner or 4 * config.n_embd, config),
            width=config.n_embd,
            eps=config.layer_norm_epsilon,
            norm_first=True,
        )


class GPT2PreTrainedModel(PreTrainedModel):
    """Base of the GPT-2 models, and of your own: subclass it, add modules, and they are initialised as GPT-2's."""

    config_class: ClassVar[type[PretrainedConfig]] = GPT2Config
    base_model_prefix: ClassVar[str] = "transformer"
    key_map: ClassVar[KeyMap] = KEY_MAP
    pretrained_model_archive_map: ClassVar[Mapping[str, str]] = GPT2_PRETRAINED_MODEL_ARCHIVE_MAP
    #: Published checkpoints hold the causal mask of each layer.
    constant_keys: ClassVar[tuple[str, ...]] = (r"(^|\.)h\.\d+\.attn\.(bias|masked_bias)$",)
    config: GPT2Config

    def _init_weights(self, module: nn.Module) -> None:
        """Matrices from a normal distribution, biases 0, normalisation 1.

        What writes into the residual stream gets a standard deviation smaller by the root of the number of such
        layers, 2 L (Radford et al. 2019, section 2.3). The original draws positions with 0.01; the published PyTorch
        packages, and this one, draw them like the rest.
        """
        spread = self.config.initializer_range
        if isinstance(module, DecoderBlock):
            for layer in (module.attn.c_proj, module.mlp.c_proj):
                layer.weight.normal_(0.0, spread / (2 * self.config.n_layer) ** 0.5)
        elif isinstance(module, nn.Linear | nn.Embedding | Conv1D):
            module.weight.normal_(0.0, spread)
        elif isinstance(module, nn.LayerNorm) and module.elementwise_affine:
            module.weight.fill_(1.0)
        if isinstance(module, nn.Linear | nn.LayerNorm | Conv1D) and module.bias is not None:
            module.bias.zero_()

    def _make_decoder(self, config: GPT2Config) -> "GPT2Model":
        """Build the decoder of a model with a head."""
        return GPT2Model(config)


class GPT2Model(GPT2PreTrainedModel):
    """The decoder without a head.

    Args:
        config: The sizes.
    """

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.wte: nn.Embedding = TiedEmbedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.drop = Dropout(config.embd_pdrop)
        self.h = nn.ModuleList(Block(config.n_ctx, config, scale=True) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self._prune_heads({layer: set(heads) for layer, heads in config.pruned_heads.items()})

    def forward(
        self,
        input_ids: Tensor | None = None,
        past: Pasts = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        *,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """Compute the states of new tokens.

        Args:
            input_ids: [B, T] ids of the new tokens, or with more axes before the last. Tokens that are in `past` are
                not given again.
            past: What `past` of an earlier output was: keys and values of the tokens before. Or a `KeyValueCache`,
                which is written in place.
            attention_mask: [B, past + T], 1 for real tokens, 0 for padding on the left; all 1 by default.
            token_type_ids: [B, T] ids whose vectors are added; they come from the table of tokens.
            position_ids: [B, T] or [1, T]; counted from the first real token of each row by default.
            head_mask: [A] or [L, A], 1 keeps a head, 0 silences it; gradients flow into it.
            inputs_embeds: [B, T, H] vectors in place of `input_ids`.
            use_cache: Whether to return `past` for the next call.
            output_hidden_states: Whether to return what goes into each layer, and the final states.
            output_attentions: Whether to return the attention probabilities of all layers.
            return_dict: False returns a plain tuple.

        Returns:
            `BaseModelOutputWithPast`: last_hidden_state [B, T, H], past (L times [2, B, A, past + T, D], or the cache),
            and on request hidden_states (L + 1 times [B, T, H]; the last is normalised) and attentions
            (L times [B, A, T, past + T]).

        Raises:
            ValueError: An argument has a wrong shape, type or value; the message names it.
        """
        inputs = DecoderInputs(input_ids, past, attention_mask, token_type_ids, position_ids, head_mask, inputs_embeds)
        output = self.outputs(inputs, use_cache, output_hidden_states, output_attentions)
        return self.packaged(output, return_dict)

    def outputs(
        self,
        inputs: DecoderInputs,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        unpad: bool = False,
    ) -> Any:
        """The same by name, which is what models with a head call; see `forward`, and `decode` for `unpad`."""
        config = self.config
        need_states = config.output_hidden_states if output_hidden_states is None else output_hidden_states
        need_probs = config.output_attentions if output_attentions is None else output_attentions
        cached = config.use_cache if use_cache is None else use_cache
        past = inputs.past
        inputs, shape = inputs.flattened()
        check_inputs(
            inputs,
            words=self.wte.num_embeddings,
            positions=self.wpe.num_embeddings,
            like=self.wte.weight,
            blocks=self.h,
        )
        unpad = unpad and not (need_states or need_probs or cached)
        decoded = self.decode(inputs, need_states=need_states, need_probs=need_probs, unpad=unpad)
        last = decoded.hidden.view(*shape, -1)
        return BaseModelOutputWithPast.of(
            last_hidden_state=last,
            past=(past if isinstance(past, KeyValueCache) else decoded.presents) if cached else None,
            hidden_states=tuple(state.view(*shape, -1) for state in decoded.states) or None,
            attentions=decoded.probs or None,
        )

    def decode(
        self, inputs: DecoderInputs, *, need_states: bool = False, need_probs: bool = False, unpad: bool = False
    ) -> Decoded:
        """The forward that all models and text generation share, without checks.

        Args:
            inputs: Flattened.
            need_states: Whether to return what goes into each layer, and the final states.
            need_probs: Whether to return the attention probabilities.
            unpad: Whether to compute real tokens only, see `packable`; states of padded ones are 0 then. Nothing else
                can be asked for.
        """
        if unpad and inputs.attention_mask is not None:
            inputs = inputs.packed(Packed.from_mask(inputs.attention_mask))
        words = self.wte(inputs.input_ids) if inputs.inputs_embeds is None else inputs.inputs_embeds
        hidden = words + self.wpe(token_positions(inputs))  # [B, T, H], or [N, H]
        if inputs.token_type_ids is not None:
            hidden = hidden + self.wte(inputs.token_type_ids)
        decoded = self._run_layers(self.drop(hidden), inputs, need_states, need_probs)
        last = self.ln_f(decoded.hidden)
        if inputs.layout is not None:
            last = inputs.layout.restore(last)
        return decoded._replace(hidden=last, states=(*decoded.states, last) if need_states else ())

    def _run_layers(self, hidden: Tensor, inputs: DecoderInputs, need_states: bool, need_probs: bool) -> Decoded:
        """Run the layers on embedded tokens [B, T, H], or packed ones [N, H]; see `decode`."""
        config = self.config
        return run_blocks(
            self.h,
            hidden,
            mask_of(inputs, hidden),
            inputs.past,
            layer_head_mask(inputs.head_mask, config.n_layer, config.n_head, hidden),
            need_states=need_states,
            need_probs=need_probs,
            recompute=config.gradient_checkpointing and self.training and torch.is_grad_enabled(),
        )

    def new_cache(self, batch: int, length: int) -> KeyValueCache:
        """Room for the keys and values of that many sequences of that many tokens."""
        return cache_for(self.h, batch, length, self.wte.weight)

    def get_input_embeddings(self) -> nn.Embedding:
        """The table of tokens [V, H]."""
        return self.wte

    def _replace_embeddings(self, embeddings: nn.Embedding) -> None:
        self.wte = embeddings

    def _prune_heads(self, heads_to_prune: Mapping[int, set[int]]) -> None:
        prune_blocks(self.h, heads_to_prune, self.config.n_head)
        for number, heads in heads_to_prune.items():
            self.config.pruned_heads[number] = sorted(heads | set(self.config.pruned_heads.get(number, ())))
