"""BERT once more, in NumPy: the forward of the paper and of the original program, sharing nothing with the library.

Sources: Devlin et al. 2018, "BERT" (https://arxiv.org/abs/1810.04805), sections 3 and A.2 for inputs, heads and the
activation; Vaswani et al. 2017, "Attention Is All You Need" (https://arxiv.org/abs/1706.03762), section 3.2 for
attention and 3.3 for the feed-forward part. google-research/bert `modeling.py` settles what the papers leave open:
normalisation comes after each residual sum, its epsilon is 1e-12, and a masked key gets -10000 added to its score.

Parameters come as a mapping from the names of the published PyTorch checkpoints to arrays; a linear map is
`x @ weight.T + bias`. Everything is computed in the given `dtype`, float64 unless told otherwise.

Letters: B batch, T tokens, N heads, H width of a head, D = N * H hidden width, L layers, V vocabulary, K labels.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Array = NDArray[Any]
Parameters = Mapping[str, Array]

MASKED = -10000.0  # google-research/bert modeling.py, attention_layer: `adder = (1.0 - mask) * -10000.0`

_erf = np.frompyfunc(math.erf, 1, 1)


def gelu(x: Array) -> Array:
    """Hendrycks & Gimpel 2016: x * P(X <= x) of a standard normal X."""
    return x * 0.5 * (1.0 + np.asarray(_erf(x / math.sqrt(2.0)), dtype=x.dtype))


def gelu_tanh(x: Array) -> Array:
    """The approximation that google-research/bert took later (0.044715 is from the same paper, section 2)."""
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def relu(x: Array) -> Array:
    """The positive part."""
    return np.maximum(x, 0.0)


def swish(x: Array) -> Array:
    """Ramachandran et al. 2017: x * sigmoid(x)."""
    return x / (1.0 + np.exp(-x))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "gelu_new": gelu_tanh,
    "relu": relu,
    "swish": swish,
    "silu": swish,
    "tanh": np.tanh,
}


def softmax(x: Array) -> Array:
    """Over the last axis."""
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def log_softmax(x: Array) -> Array:
    """Over the last axis."""
    shifted = x - x.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def cross_entropy(logits: Array, labels: ArrayLike) -> float:
    """Mean of -log p(label) over the labels that are not negative; 0 if there is none."""
    flat, rows = np.asarray(labels).reshape(-1), logits.reshape(-1, logits.shape[-1])
    known = np.flatnonzero(flat >= 0)
    return float(-log_softmax(rows[known])[np.arange(len(known)), flat[known]].mean()) if len(known) else 0.0


@dataclass(frozen=True)
class Encoded:
    """What the encoder computes."""

    hidden_states: list[Array]
    """[B, T, D], L + 1 of them: the embeddings, then each layer."""
    attentions: list[Array]
    """[B, N, T, T], L of them: rows are queries."""
    pooled: Array
    """[B, D]"""

    @property
    def last(self) -> Array:
        """[B, T, D]."""
        return self.hidden_states[-1]


class NumpyBert:
    """The encoder and its heads over one set of parameters.

    Args:
        parameters: published PyTorch names to arrays; the encoder's names may or may not start with `bert.`.
        heads: number of attention heads N.
        hidden_act: a key of `ACTIVATIONS`.
        eps: added to the variance in each normalisation.
        dtype: of all arithmetic.
    """

    def __init__(
        self,
        parameters: Parameters,
        *,
        heads: int,
        hidden_act: str = "gelu",
        eps: float = 1e-12,
        dtype: DTypeLike = np.float64,
    ) -> None:
        self.parameters = {name: np.asarray(value).astype(dtype) for name, value in parameters.items()}
        self.prefix = "bert." if any(name.startswith("bert.") for name in parameters) else ""
        self.heads, self.activation, self.eps = heads, ACTIVATIONS[hidden_act], eps
        start = f"{self.prefix}encoder.layer."
        self.layers = 1 + max(int(name[len(start) :].split(".")[0]) for name in parameters if name.startswith(start))

    def linear(self, name: str, x: Array) -> Array:
        """[..., in] -> [..., out]."""
        product: Array = x @ self.parameters[f"{name}.weight"].T
        bias = self.parameters.get(f"{name}.bias")
        return product if bias is None else product + bias

    def norm(self, name: str, x: Array) -> Array:
        """Ba et al. 2016 over the last axis, with the biased variance."""
        centred = x - x.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.eps)
        return np.asarray(centred / scale * self.parameters[f"{name}.weight"] + self.parameters[f"{name}.bias"])

    def embed(
        self, input_ids: ArrayLike, token_type_ids: ArrayLike | None = None, position_ids: ArrayLike | None = None
    ) -> Array:
        """[B, T] -> [B, T, D]: token, position and segment vectors added up, then normalised."""
        ids = np.asarray(input_ids)
        segments = np.zeros_like(ids) if token_type_ids is None else np.asarray(token_type_ids)
        positions = np.arange(ids.shape[1])[None, :] if position_ids is None else np.asarray(position_ids)
        table = f"{self.prefix}embeddings."
        words = self.parameters[f"{table}word_embeddings.weight"][ids]
        places = self.parameters[f"{table}position_embeddings.weight"][positions]
        kinds = self.parameters[f"{table}token_type_embeddings.weight"][segments]
        return self.norm(f"{table}LayerNorm", words + places + kinds)

    def attention(self, name: str, x: Array, adder: Array, head_mask: Array) -> tuple[Array, Array]:
        """[B, T, D] -> [B, T, D] and the probabilities [B, N, T, T] (before the head mask)."""
        batch, length, width = x.shape

        def split(kind: str) -> Array:  # [B, T, D] -> [B, N, T, H]
            mapped = self.linear(f"{name}.self.{kind}", x)
            heads: Array = mapped.reshape(batch, length, self.heads, -1).transpose(0, 2, 1, 3)
            return heads

        query, key, value = split("query"), split("key"), split("value")
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(query.shape[-1]) + adder
        probabilities = softmax(scores)
        context = (probabilities * head_mask[None, :, None, None]) @ value
        merged = context.transpose(0, 2, 1, 3).reshape(batch, length, width)
        return self.norm(f"{name}.output.LayerNorm", self.linear(f"{name}.output.dense", merged) + x), probabilities

    def encode(
        self,
        input_ids: ArrayLike,
        attention_mask: ArrayLike | None = None,
        token_type_ids: ArrayLike | None = None,
        position_ids: ArrayLike | None = None,
        *,
        head_mask: ArrayLike | None = None,
    ) -> Encoded:
        """All hidden states, attention probabilities and the pooled vector. `head_mask` is [L, N]."""
        hidden = self.embed(input_ids, token_type_ids, position_ids)
        mask = np.ones(hidden.shape[:2]) if attention_mask is None else np.asarray(attention_mask)
        adder = ((1.0 - mask) * MASKED).astype(hidden.dtype)[:, None, None, :]
        kept = np.ones((self.layers, self.heads)) if head_mask is None else np.asarray(head_mask)
        states, attentions = [hidden], []
        for index in range(self.layers):
            layer = f"{self.prefix}encoder.layer.{index}"
            hidden, probabilities = self.attention(
                f"{layer}.attention", hidden, adder, kept[index].astype(hidden.dtype)
            )
            inner = self.activation(self.linear(f"{layer}.intermediate.dense", hidden))
            hidden = self.norm(f"{layer}.output.LayerNorm", self.linear(f"{layer}.output.dense", inner) + hidden)
            states.append(hidden)
            attentions.append(probabilities)
        pooler = f"{self.prefix}pooler.dense"
        has_pooler = f"{pooler}.weight" in self.parameters
        pooled = np.tanh(self.linear(pooler, hidden[:, 0])) if has_pooler else np.zeros_like(hidden[:, 0])
        return Encoded(states, attentions, pooled)

    def masked_lm(self, hidden: Array) -> Array:
        """[..., D] -> [..., V]: dense, activation, normalisation, then the token vectors themselves and a bias."""
        inner = self.activation(self.linear("cls.predictions.transform.dense", hidden))
        inner = self.norm("cls.predictions.transform.LayerNorm", inner)
        table = self.parameters[f"{self.prefix}embeddings.word_embeddings.weight"]
        return np.asarray(inner @ table.T + self.parameters["cls.predictions.bias"])

    def next_sentence(self, pooled: Array) -> Array:
        """[B, D] -> [B, 2]; class 1 is a random second sentence."""
        return self.linear("cls.seq_relationship", pooled)

    def classify(self, states: Array) -> Array:
        """[..., D] -> [..., K]: of the pooled vector (sequences, choices) or of each token."""
        return self.linear("classifier", states)

    def span(self, hidden: Array) -> tuple[Array, Array]:
        """[B, T, D] -> start and end logits, each [B, T]."""
        both = self.linear("qa_outputs", hidden)
        return both[..., 0], both[..., 1]
