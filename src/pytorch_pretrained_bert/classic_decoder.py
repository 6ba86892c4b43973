"""What the classic GPT and GPT-2 share beside `classic.py`: attention as a part of its own, the heads, the inputs."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pytorch_transformers.models.causal import MultipleChoiceHead
from pytorch_transformers.models.decoder import Attention
from pytorch_transformers.nn.attention import attend, merge_heads
from pytorch_transformers.nn.fused import VocabularyHead
from pytorch_transformers.nn.masks import decoder_mask

from .classic import ClassicNames, shared_constant


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

    def _attn(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Queries [B, A, T, D], keys turned round [B, A, D, K] and values [B, A, K, D] -> [B, A, T, D]."""
        T, K = q.shape[-2], k.shape[-1]
        mask = decoder_mask(None, T, K - T, q)
        query = q if self.scaled else q * self.head_size**0.5
        dropout = self.attn_dropout.p if self.training else 0.0
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
    def decoder(self) -> nn.Linear:
        """The linear layer, which here is the head itself."""
        return self

    def set_embeddings_weights(self, model_embeddings_weights: nn.Parameter) -> None:
        """Take another table [V, H]."""
        self.out_features, self.in_features = model_embeddings_weights.shape
        self.weight = model_embeddings_weights

    def forward(self, hidden_state: Tensor) -> Tensor:
        """[..., H] -> [..., V]."""
        return super().forward(hidden_state)


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
    def summary(self) -> nn.Linear:  # type: ignore[override]
        """The linear layer [1, H], under its name in `pytorch_transformers`."""
        return self.linear

    def forward(self, hidden_states: Tensor, mc_token_ids: Tensor | None) -> Tensor:
        """States [B, C, T, H] and places [B, C] of tokens -> [B, C]."""
        return super().forward(hidden_states, mc_token_ids)


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
