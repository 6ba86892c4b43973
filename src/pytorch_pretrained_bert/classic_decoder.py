"""What the classic GPT and GPT-2 share beside `classic.py`: attention as a part of its own, the heads, the inputs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pytorch_transformers.models.causal import MultipleChoiceHead
from pytorch_transformers.models.decoder import Attention, Decoded, DecoderInputs, real_mask
from pytorch_transformers.nn.attention import attend, merge_heads
from pytorch_transformers.nn.cache import KeyValueCache
from pytorch_transformers.nn.fused import VocabularyHead
from pytorch_transformers.nn.masks import decoder_mask

from .classic import ClassicNames, WithDecoder, called_as_in_062, is_watched, shared_constant


def causal_table(attention: "ClassicAttention") -> Tensor:
    """The mask that 0.6.2 keeps in each layer: [1, 1, n_ctx, n_ctx], 1 where a token is seen."""
    size = attention.n_ctx
    return shared_constant(
        ("causal", size), attention.c_attn.weight, lambda: torch.ones(size, size).tril().view(1, 1, size, size)
    )


class ClassicAttention(ClassicNames, Attention):
    """Causal self-attention with the methods of 0.6.2.

    Args:
        nx: Width of the hidden states, H.
        n_ctx: Longest input of the mask in the state dict; attention itself has no limit.
        config: The sizes.
        scale: Whether scores are divided by the root of the head size.
    """

    constants: ClassVar[Mapping[str, Callable[[Any], Tensor]]] = {"bias": causal_table}
    n_ctx = 0

    def __init__(self, nx: int, n_ctx: int, config: Any, scale: bool = False) -> None:
        super().__init__(nx, n_ctx, config, scale)
        self.n_ctx = n_ctx

    @property
    def bias(self) -> Tensor:
        """The mask [1, 1, n_ctx, n_ctx]; made when asked for."""
        return causal_table(self)

    @property
    def scale(self) -> bool:
        """Whether scores are divided by the root of the head size."""
        return self.scaled

    @property
    def split_size(self) -> int:
        """Width of queries, keys and values each."""
        return self.n_head * self.head_size

    def has_own_steps(self) -> bool:
        """Whether a subclass has changed a step of attention, so that `by_steps` must compute it."""
        steps = ("_attn", "merge_heads", "split_heads")
        return any(getattr(type(self), name) is not getattr(ClassicAttention, name) for name in steps)

    def by_steps(self, x: Tensor, layer_past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """States [B, T, H] -> states, and keys and values [2, B, A, past + T, D], by way of the methods below."""
        query, key, value = self.c_attn(x).chunk(3, dim=-1)
        keys, values = self.split_heads(key, k=True), self.split_heads(value)
        if layer_past is not None:
            keys = torch.cat((layer_past[0].transpose(-1, -2), keys), dim=-1)
            values = torch.cat((layer_past[1], values), dim=-2)
        mixed = self.merge_heads(self._attn(self.split_heads(query), keys, values))
        return self.resid_dropout(self.c_proj(mixed)), torch.stack((keys.transpose(-1, -2), values))

    def _attn(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Queries [B, A, T, D], keys turned round [B, A, D, K] and values [B, A, K, D] -> [B, A, T, D]."""
        T, K = q.shape[-2], k.shape[-1]
        mask = decoder_mask(None, T, K - T, q)
        query = q if self.scaled else q * self.head_size**0.5
        dropout = self.attn_dropout.p if self.attn_dropout.training else 0.0
        mixed, _ = attend(query, k.transpose(-1, -2), v, mask=mask.added, causal=mask.causal, dropout=dropout)
        return mixed

    def merge_heads(self, x: Tensor) -> Tensor:
        """[B, A, T, D] -> [B, T, A * D]."""
        return merge_heads(x)

    def split_heads(self, x: Tensor, k: bool = False) -> Tensor:
        """[B, T, A * D] -> [B, A, T, D]; with `k` [B, A, D, T]."""
        heads = x.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
        return heads.transpose(-1, -2) if k else heads


class ClassicLMHead(ClassicNames, VocabularyHead):
    """The projection onto the vocabulary, with the table of tokens as its matrix.

    Another linear layer may be put in its place as `decoder`.

    Args:
        model_embeddings_weights: The table [V, H].
        config: The sizes; not used.
    """

    renamed: ClassVar[Mapping[str, str]] = {"weight": "decoder.weight"}

    def __init__(self, model_embeddings_weights: nn.Parameter, config: Any) -> None:
        del config
        words, width = model_embeddings_weights.shape
        super().__init__(width, words)
        self.weight = model_embeddings_weights

    @property
    def n_embd(self) -> int:
        """Width of the hidden states, H."""
        return self.in_features

    @property
    def decoder(self) -> Any:
        """The linear layer, which here is the head itself unless it was replaced."""
        return self._modules.get("decoder", self)

    def __setattr__(self, name: str, value: Any) -> None:
        """Take another linear layer as `decoder`; from then on the matrix is that layer's."""
        replaced = vars(self).get("_modules", {}).get("decoder")
        if name == "decoder":
            self._replace_decoder(value)
        elif name == "weight" and replaced is not None:
            replaced.weight = value
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        replaced = vars(self).get("_modules", {}).get("decoder")
        return replaced.weight if name == "weight" and replaced is not None else super().__getattr__(name)

    def _replace_decoder(self, layer: nn.Module) -> None:
        if layer is self:
            return
        if isinstance(layer, ClassicLMHead) and layer.decoder is layer:  # the decoder of another model
            table: Any = layer.weight
            self.set_embeddings_weights(table)
            return
        self._parameters.pop("weight", None)
        self._modules["decoder"] = layer
        vars(self).update(fused=None, renamed={})  # the name is that of 0.6.2 now

    def is_one_matrix(self) -> bool:
        """Whether `weight` says all about it: neither the layer nor the way it is called was changed."""
        plain = type(self).forward is ClassicLMHead.forward and "decoder" not in self._modules
        return plain and "forward" not in vars(self) and not is_watched(self)

    def set_embeddings_weights(self, model_embeddings_weights: nn.Parameter) -> None:
        """Take another table [V, H]."""
        self.out_features, self.in_features = model_embeddings_weights.shape
        self.weight = model_embeddings_weights

    def forward(self, hidden_state: Tensor) -> Tensor:
        """[..., H] -> [..., V]."""
        scores: Tensor = super().forward(hidden_state) if self.decoder is self else self.decoder(hidden_state)
        return scores


class ClassicMultipleChoiceHead(ClassicNames, MultipleChoiceHead):
    """One score for each text, from the state of one of its tokens.

    Args:
        width: Size of the hidden states, H.
        dropout: Of that state.
    """

    core_named: ClassVar[Mapping[str, str]] = {"linear.weight": "summary.weight", "linear.bias": "summary.bias"}
    linear: nn.Linear

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__(width, dropout)
        self.linear = self._modules.pop("summary")  # type: ignore[assignment]  # what was made above

    @property
    def n_embd(self) -> int:
        """Width of the hidden states, H."""
        return self.linear.in_features

    @property
    def summary(self) -> nn.Linear:  # type: ignore[override]
        """The linear layer [1, H], under its name in `pytorch_transformers`."""
        return self.linear

    def forward(self, hidden_states: Tensor, mc_token_ids: Tensor | None) -> Tensor:
        """States [B, C, T, H] and places [B, C] of tokens -> [B, C]."""
        return super().forward(hidden_states, mc_token_ids)


class WithVocabulary(WithDecoder):
    """A model with an output layer, which may have been replaced by another."""

    lm_head: Any

    def own_tied_weights(self) -> Mapping[str, str]:
        """See `pytorch_transformers`."""
        names: Mapping[str, str] = super().own_tied_weights()  # type: ignore[misc]
        if "decoder" not in self.lm_head._modules:
            return names
        return {name.replace("lm_head.weight", "lm_head.decoder.weight"): source for name, source in names.items()}


def needs_scores(lm_head: nn.Module) -> bool:
    """Whether a loss must be computed from the scores of this head, rather than from its matrix."""
    return not (isinstance(lm_head, ClassicLMHead) and lm_head.is_one_matrix())


def layers_called_as_in_062(
    layers: nn.ModuleList,
    block: type[nn.Module],
    attention: type[nn.Module],
    inputs: DecoderInputs,
    need_probs: bool,
) -> bool:
    """See `called_as_in_062`."""
    parts = [pair for layer in layers for pair in ((layer, block), (getattr(layer, "attn", None), attention))]
    parts = [(part, kind) for part, kind in parts if part is not None]
    if not called_as_in_062(parts, {}):  # without a look at the mask, for which a GPU would have to be waited for
        return False
    asked = {
        "text generation": isinstance(inputs.past, KeyValueCache),
        "attention_mask": real_mask(inputs.attention_mask) is not None,
        "head_mask": inputs.head_mask is not None,
        "output_attentions": need_probs,
    }
    return called_as_in_062(parts, asked)


def run_as_in_062(
    layers: Iterable[nn.Module],
    hidden: Tensor,
    need_states: bool,
    run: Callable[[int, Any, Tensor], tuple[Tensor, Sequence[Tensor]]],
) -> Decoded:
    """Run layers one after another on [B, T, H]; `run` calls one, and gives its states and what it leaves behind."""
    states: list[Tensor] = []
    presents: list[Tensor] = []
    for number, layer in enumerate(layers):
        if need_states:
            states.append(hidden)
        hidden, present = run(number, layer, hidden)
        presents.extend(present)
    return Decoded(hidden.contiguous(), tuple(presents), tuple(states), ())


def token_inputs(input_ids: Tensor, position_ids: Tensor | None, token_type_ids: Tensor | None) -> dict[str, Any]:
    """The arguments that describe the tokens, by name, all in the shape of the ids.

    0.6.2 takes the others with any axes before the last, as [T] or flattened.
    """
    return {
        "input_ids": input_ids,
        "position_ids": _like(position_ids, input_ids),
        "token_type_ids": _like(token_type_ids, input_ids),
    }


def _like(x: Tensor | None, input_ids: Tensor) -> Tensor | None:
    if x is None or x.ndim == 0 or input_ids.ndim == 0 or x.shape[-1] != input_ids.shape[-1]:
        return x
    if x.numel() == x.shape[-1]:
        return x.reshape(-1).expand(input_ids.shape)
    return x.reshape(input_ids.shape) if x.numel() == input_ids.numel() else x
