"""The OpenAI GPT decoder: ids to hidden states.

Source: openai/finetune-transformer-lm, train.py. What is surprising: the layers normalise after each residual, and
nothing normalises at the end; "gelu" is the tanh form; special tokens stand behind the vocabulary, in the same table as
the segments and the output layer. Letters of the shapes: `nn/__init__.py`.
"""

from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar, Final, TypeVar

import torch
from torch import Tensor, nn

from ...checkpoint.keymap import KeyMap
from ...nn.activations import ACTIVATIONS, Activation, gelu_tanh
from ...nn.block import DecoderBlock, FeedForward, prune_blocks
from ...nn.cache import KeyValueCache
from ...nn.dropout import Dropout
from ...nn.layers import Conv1D
from ...nn.layouts import Packed
from ...nn.tied import TiedEmbedding
from ...nn.values import whole_number
from ..base import PreTrainedModel
from ..config import PretrainedConfig
from ..decoder import (
    Attention,
    Decoded,
    DecoderInputs,
    cache_for,
    check_inputs,
    layer_head_mask,
    mask_of,
    run_blocks,
    token_positions,
)
from ..outputs import BaseModelOutputWithPast
from .config import OpenAIGPTConfig
from .convert import KEY_MAP
from .pretrained import OPENAI_GPT_PRETRAINED_MODEL_ARCHIVE_MAP

#: Activations by the names of the original (train.py, act_fns), and of the other families.
ACT_FNS: Final[Mapping[str, Activation]] = {**ACTIVATIONS, "gelu": gelu_tanh}

Model = TypeVar("Model", bound="OpenAIGPTPreTrainedModel")


class MLP(FeedForward):
    """The feed-forward part.

    Args:
        n_state: Width inside, F.
        config: The sizes.
    """

    def __init__(self, n_state: int, config: OpenAIGPTConfig) -> None:
        activation = config.afn if callable(config.afn) else ACT_FNS[config.afn]
        super().__init__(config.n_embd, n_state, activation, config.resid_pdrop)


class Block(DecoderBlock):
    """One layer, which normalises after each residual.

    Args:
        n_ctx: Longest input; not used.
        config: The sizes.
        scale: Whether attention scores are divided by the root of the head size.
    """

    def __init__(self, n_ctx: int, config: OpenAIGPTConfig, scale: bool = False) -> None:
        super().__init__(
            Attention(config.n_embd, n_ctx, config, scale),
            MLP(4 * config.n_embd, config),
            width=config.n_embd,
            eps=config.layer_norm_epsilon,
            norm_first=False,
        )


class OpenAIGPTPreTrainedModel(PreTrainedModel):
    """Base of the OpenAI GPT models, and of your own: subclass it, add modules, and they are initialised as its own."""

    config_class: ClassVar[type[PretrainedConfig]] = OpenAIGPTConfig
    base_model_prefix: ClassVar[str] = "transformer"
    key_map: ClassVar[KeyMap] = KEY_MAP
    pretrained_model_archive_map: ClassVar[Mapping[str, str]] = OPENAI_GPT_PRETRAINED_MODEL_ARCHIVE_MAP
    #: Published checkpoints hold the causal mask of each layer, and the numbers of the positions.
    constant_keys: ClassVar[tuple[str, ...]] = (r"(^|\.)h\.\d+\.attn\.bias$", r"(^|\.)position_ids$")
    config: OpenAIGPTConfig

    def _init_weights(self, module: nn.Module) -> None:
        """Matrices from a normal distribution, biases 0, normalisation 1 (train.py, conv1d and embed)."""
        if isinstance(module, nn.Linear | nn.Embedding | Conv1D):
            module.weight.normal_(0.0, self.config.initializer_range)
        elif isinstance(module, nn.LayerNorm) and module.elementwise_affine:
            module.weight.fill_(1.0)
        if isinstance(module, nn.Linear | nn.LayerNorm | Conv1D) and module.bias is not None:
            module.bias.zero_()

    @classmethod
    def from_pretrained(
        cls: type[Model],
        name_or_path: str | PathLike[str],
        *model_args: Any,
        num_special_tokens: int | None = None,
        **options: Any,
    ) -> Any:
        """See `PreTrainedModel.from_pretrained`.

        Args:
            name_or_path: As there.
            *model_args: As there.
            num_special_tokens: Special tokens that the model shall have, see `set_num_special_tokens`.
            **options: As there.
        """
        loaded = super().from_pretrained(name_or_path, *model_args, **options)
        if num_special_tokens is not None:
            model = loaded[0] if isinstance(loaded, tuple) else loaded
            model.set_num_special_tokens(num_special_tokens)
        return loaded

    def set_num_special_tokens(self, num_special_tokens: int) -> None:
        """Change the number of special tokens: their vectors stand behind the vocabulary, new ones are drawn at random.

        Raises:
            ValueError: It is no whole number of at least 0.
        """
        words, special = self.config.vocab_size, whole_number("num_special_tokens", num_special_tokens, 0)
        self.resize_token_embeddings(words + special)
        vars(self.config).update(vocab_size=words, n_special=special)

    def _note_vocabulary(self, size: int) -> None:
        """Where there are special tokens, rows that come or go are theirs: they stand behind the vocabulary."""
        words = min(self.config.vocab_size, size) if self.config.n_special else size
        vars(self.config).update(vocab_size=words, n_special=size - words)

    def _make_decoder(self, config: OpenAIGPTConfig) -> "OpenAIGPTModel":
        """Build the decoder of a model with a head."""
        return OpenAIGPTModel(config)


class OpenAIGPTModel(OpenAIGPTPreTrainedModel):
    """The decoder without a head.

    Args:
        config: The sizes.
    """

    def __init__(self, config: OpenAIGPTConfig) -> None:
        super().__init__(config)
        self.tokens_embed: nn.Embedding = TiedEmbedding(config.total_tokens_embeddings, config.n_embd)
        self.positions_embed = nn.Embedding(config.n_positions, config.n_embd)
        self.drop = Dropout(config.embd_pdrop)
        self.h = nn.ModuleList(Block(config.n_ctx, config, scale=True) for _ in range(config.n_layer))
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
    ) -> Any:
        """Compute the states of tokens.

        Args:
            input_ids: [B, T] ids, or with more axes before the last.
            attention_mask: [B, T], 1 for real tokens, 0 for padding on the left; all 1 by default.
            token_type_ids: [B, T] ids whose vectors are added; they come from the table of tokens.
            position_ids: [B, T] or [1, T]; counted from the first real token of each row by default.
            head_mask: [A] or [L, A], 1 keeps a head, 0 silences it; gradients flow into it.
            inputs_embeds: [B, T, H] vectors in place of `input_ids`.
            output_hidden_states: Whether to return the states of the embeddings and all layers.
            output_attentions: Whether to return the attention probabilities of all layers.
            return_dict: False returns a plain tuple.

        Returns:
            `BaseModelOutputWithPast` without past: last_hidden_state [B, T, H], and on request hidden_states
            (L + 1 times [B, T, H]) and attentions (L times [B, A, T, T]).

        Raises:
            ValueError: An argument has a wrong shape, type or value; the message names it.
        """
        inputs = DecoderInputs(input_ids, None, attention_mask, token_type_ids, position_ids, head_mask, inputs_embeds)
        return self.packaged(self.outputs(inputs, output_hidden_states, output_attentions), return_dict)

    def outputs(
        self,
        inputs: DecoderInputs,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        unpad: bool = False,
    ) -> Any:
        """The same by name, which is what models with a head call; see `forward`, and `decode` for `unpad`."""
        config = self.config
        need_states = config.output_hidden_states if output_hidden_states is None else output_hidden_states
        need_probs = config.output_attentions if output_attentions is None else output_attentions
        inputs, shape = inputs.flattened()
        table, places = self.tokens_embed, self.positions_embed
        check_inputs(
            inputs, words=table.num_embeddings, positions=places.num_embeddings, like=table.weight, blocks=self.h
        )
        unpad = unpad and not (need_states or need_probs)
        decoded = self.decode(inputs, need_states=need_states, need_probs=need_probs, unpad=unpad)
        return BaseModelOutputWithPast.of(
            last_hidden_state=decoded.hidden.view(*shape, -1),
            hidden_states=tuple(state.view(*shape, -1) for state in decoded.states) or None,
            attentions=decoded.probs or None,
        )

    def decode(
        self, inputs: DecoderInputs, *, need_states: bool = False, need_probs: bool = False, unpad: bool = False
    ) -> Decoded:
        """The forward that all models and text generation share, without checks.

        Args:
            inputs: Flattened.
            need_states: Whether to return the states of the embeddings and all layers.
            need_probs: Whether to return the attention probabilities.
            unpad: Whether to compute real tokens only, see `packable`; states of padded ones are 0 then. Nothing else
                can be asked for.
        """
        if unpad and inputs.attention_mask is not None:
            inputs = inputs.packed(Packed.from_mask(inputs.attention_mask))
        words = self.tokens_embed(inputs.input_ids) if inputs.inputs_embeds is None else inputs.inputs_embeds
        hidden = words + self.positions_embed(token_positions(inputs))  # [B, T, H], or [N, H]
        if inputs.token_type_ids is not None:
            hidden = hidden + self.tokens_embed(inputs.token_type_ids)
        decoded = self._run_layers(self.drop(hidden), inputs, need_states, need_probs)
        if inputs.layout is not None:
            return decoded._replace(hidden=inputs.layout.restore(decoded.hidden))
        return decoded._replace(states=(*decoded.states, decoded.hidden) if need_states else ())

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
        return cache_for(self.h, batch, length, self.tokens_embed.weight)

    def get_input_embeddings(self) -> nn.Embedding:
        """The table of tokens [V, H]."""
        return self.tokens_embed

    def _replace_embeddings(self, embeddings: nn.Embedding) -> None:
        self.tokens_embed = embeddings

    def _prune_heads(self, heads_to_prune: Mapping[int, set[int]]) -> None:
        prune_blocks(self.h, heads_to_prune, self.config.n_head)
        for number, heads in heads_to_prune.items():
            self.config.pruned_heads[number] = sorted(heads | set(self.config.pruned_heads.get(number, ())))
