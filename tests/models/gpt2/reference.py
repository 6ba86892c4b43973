"""GPT and GPT-2 once more, in NumPy: the forwards of papers and original programs, sharing nothing with the library.

Sources: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", sections 3.1 to 3.3, with
openai/finetune-transformer-lm train.py; Radford et al. 2019, "Language Models are Unsupervised Multitask Learners",
section 2.3, with openai/gpt-2 src/model.py. The programs settle what the papers leave open: normalisation adds 1e-5 to
the biased variance, gelu is the tanh form, and a score that must not be seen is set to -1e9 (GPT) or -1e10 (GPT-2).

Parameters come as a mapping from the names of the published PyTorch checkpoints to arrays; a linear map is
`x @ weight + bias`, with matrices as the originals keep them. Everything is computed in the given `dtype`.

Letters: B batch, T tokens, P tokens before them, N heads, H width of a head, D = N * H hidden width, L layers, V words.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..reference import ACTIVATIONS, cross_entropy, softmax

Array = NDArray[Any]


@dataclass(frozen=True)
class Decoded:
    """What a decoder computes."""

    hidden_states: list[Array]
    """[B, T, D], L + 1 of them: the embeddings, then each layer as it is (GPT-2: before the last normalisation)."""
    attentions: list[Array]
    """[B, N, T, P + T], L of them: rows are queries; after the head mask."""
    presents: list[Array]
    """[2, B, N, P + T, H], L of them."""
    last: Array
    """[B, T, D]: the states that the heads read."""


class NumpyDecoder:
    """A decoder and its heads over one set of parameters.

    Args:
        parameters: published PyTorch names to arrays; the decoder's names may or may not start with `transformer.`.
        heads: number of attention heads N.
        norm_first: GPT-2's order, and its last normalisation; otherwise that of GPT.
        activation: a key of `ACTIVATIONS`.
        eps: added to the variance in each normalisation.
        dtype: of all arithmetic.
    """

    def __init__(
        self,
        parameters: Mapping[str, Array],
        *,
        heads: int,
        norm_first: bool,
        activation: str = "gelu_tanh",
        eps: float = 1e-5,
        dtype: DTypeLike = np.float64,
    ) -> None:
        self.parameters = {name.removeprefix("transformer."): np.asarray(v, dtype) for name, v in parameters.items()}
        self.heads, self.norm_first, self.eps = heads, norm_first, eps
        self.activation = ACTIVATIONS[activation]
        self.hidden_value = -1e10 if norm_first else -1e9
        self.layers = 1 + max(int(name.split(".")[1]) for name in self.parameters if name.startswith("h."))
        self.words = self.parameters["wte.weight" if norm_first else "tokens_embed.weight"]
        self.places = self.parameters["wpe.weight" if norm_first else "positions_embed.weight"]

    def linear(self, name: str, x: Array) -> Array:
        """[..., in] -> [..., out]."""
        return np.asarray(x @ self.parameters[f"{name}.weight"] + self.parameters[f"{name}.bias"])

    def norm(self, name: str, x: Array) -> Array:
        """Ba et al. 2016 over the last axis, with the biased variance."""
        centred = x - x.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.eps)
        return np.asarray(centred / scale * self.parameters[f"{name}.weight"] + self.parameters[f"{name}.bias"])

    def attention(
        self, name: str, x: Array, seen: Array, past: Array | None, head_mask: Array
    ) -> tuple[Array, Array, Array]:
        """[B, T, D] -> [B, T, D], the probabilities [B, N, T, P + T], and keys and values [2, B, N, P + T, H]."""
        batch, length, width = x.shape
        mixed = self.linear(f"{name}.c_attn", x)  # queries, keys and values side by side

        def split(part: int) -> Array:  # [B, T, D] -> [B, N, T, H]
            own = mixed[..., part * width : (part + 1) * width]
            return np.asarray(own.reshape(batch, length, self.heads, -1).transpose(0, 2, 1, 3))

        query, key, value = split(0), split(1), split(2)
        if past is not None:
            key, value = np.concatenate([past[0], key], 2), np.concatenate([past[1], value], 2)
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(query.shape[-1])
        scores = np.where(seen[:, None], scores, self.hidden_value)
        probabilities = softmax(scores) * head_mask[None, :, None, None]
        context = (probabilities @ value).transpose(0, 2, 1, 3).reshape(batch, length, width)
        return self.linear(f"{name}.c_proj", context), probabilities, np.stack([key, value])

    def feed_forward(self, name: str, x: Array) -> Array:
        """[..., D] -> [..., D]."""
        return self.linear(f"{name}.c_proj", self.activation(self.linear(f"{name}.c_fc", x)))

    def decode(
        self,
        input_ids: ArrayLike,
        attention_mask: ArrayLike | None = None,
        token_type_ids: ArrayLike | None = None,
        position_ids: ArrayLike | None = None,
        *,
        past: Sequence[Array] | None = None,
        head_mask: ArrayLike | None = None,
    ) -> Decoded:
        """All that the decoder computes. `attention_mask` is [B, P + T], `head_mask` [L, N]."""
        ids = np.asarray(input_ids)
        batch, length = ids.shape
        before = 0 if past is None else past[0].shape[3]
        mask = np.ones((batch, before + length)) if attention_mask is None else np.asarray(attention_mask)
        counted = np.maximum(np.cumsum(mask, axis=1) - 1, 0).astype(int)[:, before:]
        positions = counted if position_ids is None else np.asarray(position_ids)
        hidden = self.words[ids] + self.places[positions]
        if token_type_ids is not None:
            hidden = hidden + self.words[np.asarray(token_type_ids)]
        order = np.arange(before + length)
        seen = (mask[:, None, :] > 0) & (order[None, None, :] <= order[None, before:, None])  # [B, T, P + T]
        kept = np.ones((self.layers, self.heads)) if head_mask is None else np.asarray(head_mask)
        states, attentions, presents = [hidden], [], []
        for index in range(self.layers):
            layer, earlier = f"h.{index}", None if past is None else past[index]
            source = self.norm(f"{layer}.ln_1", hidden) if self.norm_first else hidden
            attended, probabilities, present = self.attention(f"{layer}.attn", source, seen, earlier, kept[index])
            if self.norm_first:
                hidden = hidden + attended
                hidden = hidden + self.feed_forward(f"{layer}.mlp", self.norm(f"{layer}.ln_2", hidden))
            else:
                inner = self.norm(f"{layer}.ln_1", hidden + attended)
                hidden = self.norm(f"{layer}.ln_2", inner + self.feed_forward(f"{layer}.mlp", inner))
            states.append(hidden)
            attentions.append(probabilities)
            presents.append(present)
        last = self.norm("ln_f", hidden) if self.norm_first else hidden
        return Decoded(states, attentions, presents, last)

    def scores(self, hidden: Array) -> Array:
        """[..., D] -> [..., V]: products with the vectors of the words."""
        return np.asarray(hidden @ self.words.T)

    def choice(self, hidden: Array, places: ArrayLike) -> Array:
        """[B, T, D] and places [B] -> [B]."""
        chosen = hidden[np.arange(len(hidden)), np.asarray(places)]
        name = "multiple_choice_head.summary"
        return np.asarray(chosen @ self.parameters[f"{name}.weight"][0] + self.parameters[f"{name}.bias"][0])


def next_token_loss(logits: Array, labels: ArrayLike) -> float:
    """Mean of -log p of each label that is not negative, from the scores one place before it."""
    return cross_entropy(logits[..., :-1, :], np.asarray(labels)[..., 1:])
