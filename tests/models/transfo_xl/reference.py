"""Transformer-XL once more, in NumPy: the forward of paper and original program, sharing nothing with the library.

Sources: Dai et al. 2019, "Transformer-XL" (https://arxiv.org/abs/1901.02860), section 3.3 and appendix B; Grave et al.
2017, "Efficient softmax approximation for GPUs", for the clusters; Baevski & Auli 2019, "Adaptive Input
Representations", for those of the embeddings. kimiyoung/transformer-xl, folder tf, settles what the papers leave open:
normalisation comes after each residual sum and adds 1e-12 to the variance, sines stand before cosines, and
`same_length` shows each token the whole length of the memory and itself.

Attention is written from distances, one query at a time: key j of query i is `M + i - j` tokens back, and what that
distance looks like is computed there and then. The library, as the original, shifts one matrix instead.

Parameters come as a mapping from the names of the library to arrays; a linear map is `x @ weight.T + bias`. Everything
is computed in the given `dtype`, float64 unless told otherwise.

Letters: B batch, T tokens, M tokens of the memory, A heads, D width of a head, H hidden width, E embedding width of a
cluster, V words.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..reference import log_softmax, softmax

Array = NDArray[Any]


@dataclass(frozen=True)
class Decoded:
    """What the layers compute."""

    hidden_states: list[Array]
    """[B, T, H], L + 1 of them: the scaled embeddings, then each layer."""
    attentions: list[Array]
    """[B, A, T, M + T], L of them: rows are queries; after the head mask."""
    mems: list[Array]
    """[M', B, H], L of them: what goes into each layer, of the last `mem_len` tokens that are not context only."""

    @property
    def last(self) -> Array:
        """[B, T, H]."""
        return self.hidden_states[-1]


class NumpyTransfoXL:
    """The layers and the adaptive softmax over one set of parameters.

    Args:
        parameters: names of `TransfoXLLMHeadModel` to arrays; a projection that is not there is no projection.
        config: anything with the fields of `TransfoXLConfig`.
        dtype: of all arithmetic.
        **changes: fields that differ from `config`.
    """

    def __init__(
        self, parameters: Mapping[str, Array], config: Any, *, dtype: DTypeLike = np.float64, **changes: Any
    ) -> None:
        self.parameters = {name: np.asarray(value).astype(dtype) for name, value in parameters.items()}
        fields: dict[str, Any] = {**vars(config), **changes}
        self.words, self.cutoffs = fields["vocab_size"], list(fields["cutoffs"])
        self.width, self.heads, self.size = fields["d_model"], fields["n_head"], fields["d_head"]
        self.layers, self.div_val = fields["n_layer"], fields["div_val"]
        self.mem_len, self.ext_len, self.clamp_len = fields["mem_len"], fields["ext_len"], fields["clamp_len"]
        self.norm_first, self.eps = fields["pre_lnorm"], fields["layer_norm_epsilon"]
        self.reach: int | None = None
        """Tokens before itself that a token sees, if not all."""
        if fields["same_length"]:
            self.reach = self.mem_len - int(fields["same_length_one_fewer"])

    # --- words ---------------------------------------------------------------------------------------------------

    def cluster(self, place: int) -> slice:
        """The words of the head (0) or of a tail."""
        ends = [0, *self.cutoffs, self.words]
        return slice(ends[place], ends[place + 1])

    def table(self, place: int, kind: str) -> Array:
        """Vectors [V', E] or biases [V'] of the words of a cluster; with `div_val` 1 they are rows of one table."""
        name = {"embedding": "transformer.word_emb.emb_layers.{}.weight", "weight": "crit.out_layers.{}.weight"}
        name["bias"] = "crit.out_layers.{}.bias"
        if self.div_val == 1:
            return self.parameters[name[kind].format(0)][self.cluster(place)]
        return self.parameters[name[kind].format(place)]

    def embed(self, ids: ArrayLike) -> Array:
        """[B, T] -> [B, T, H]: each word from the table of its cluster, projected, times the root of H."""
        tokens = np.asarray(ids)
        embedded = np.empty((*tokens.shape, self.width), dtype=next(iter(self.parameters.values())).dtype)
        for place in range(len(self.cutoffs) + 1):
            words = self.cluster(place)
            projection = self.parameters.get(f"transformer.word_emb.emb_projs.{0 if self.div_val == 1 else place}")
            vectors = self.table(place, "embedding")
            if projection is not None:
                vectors = vectors @ projection.T
            here = (tokens >= words.start) & (tokens < words.stop)
            embedded[here] = vectors[tokens[here] - words.start]
        return embedded * math.sqrt(self.width)

    def log_probs(self, hidden: Array) -> Array:
        """[..., H] -> [..., V]: head words and one column for each tail share a softmax; tails split their column."""

        def projected(place: int) -> Array:
            projection = self.parameters.get(f"crit.out_projs.{place}")
            return hidden if projection is None else hidden @ projection

        weight, bias = self.table(0, "weight"), self.table(0, "bias")
        if not self.cutoffs:
            return log_softmax(projected(0) @ weight.T + bias)
        weight = np.concatenate([weight, self.parameters["crit.cluster_weight"]])
        bias = np.concatenate([bias, self.parameters["crit.cluster_bias"]])
        head = log_softmax(projected(0) @ weight.T + bias)
        parts = [head[..., : self.cutoffs[0]]]
        for place in range(1, len(self.cutoffs) + 1):
            tail = log_softmax(projected(place) @ self.table(place, "weight").T + self.table(place, "bias"))
            parts.append(head[..., self.cutoffs[0] + place - 1, None] + tail)
        return np.concatenate(parts, axis=-1)

    def losses(self, hidden: Array, targets: ArrayLike) -> Array:
        """[B, T, H] and targets [B, T] -> [B, T]: -log p of each, 0 where the target is below 0."""
        wanted = np.asarray(targets)
        chosen = np.take_along_axis(self.log_probs(hidden), np.maximum(wanted, 0)[..., None], axis=-1)[..., 0]
        return np.where(wanted < 0, 0.0, -chosen)

    # --- layers --------------------------------------------------------------------------------------------------

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

    def distance_vector(self, distance: int) -> Array:
        """[H]: sines of the distance at falling frequencies, then cosines; far distances all look like `clamp_len`."""
        if self.clamp_len > 0:
            distance = min(distance, self.clamp_len)
        frequencies = 1.0 / 10000.0 ** (np.arange(0, self.width, 2) / self.width)
        return np.concatenate([np.sin(distance * frequencies), np.cos(distance * frequencies)])

    def bias(self, name: str, layer: int) -> Array:
        """[A, D] r_w_bias or r_r_bias: the layer's own, or the one that all share."""
        own = self.parameters.get(f"transformer.layers.{layer}.dec_attn.{name}")
        return self.parameters[f"transformer.{name}"] if own is None else own

    def attention(self, layer: int, x: Array, memory: Array, head_mask: Array) -> tuple[Array, Array]:
        """[B, T, H] after [B, M, H] -> [B, T, A * D] mapped to [B, T, H], and the probabilities [B, A, T, M + T]."""
        name = f"transformer.layers.{layer}.dec_attn"
        batch, length, before = x.shape[0], x.shape[1], memory.shape[1]
        seen = np.concatenate([memory, x], axis=1)  # [B, M + T, H]
        query, key, value = (
            part.reshape(batch, before + length, self.heads, self.size)
            for part in np.split(self.linear(f"{name}.qkv_net", seen), 3, axis=-1)
        )
        r_w_bias, r_r_bias = self.bias("r_w_bias", layer), self.bias("r_r_bias", layer)
        probabilities = np.zeros((batch, self.heads, length, before + length), dtype=x.dtype)
        context = np.zeros((batch, length, self.heads, self.size), dtype=x.dtype)
        for i in range(length):
            place = before + i
            reach = place if self.reach is None else min(self.reach, place)
            keys = list(range(place - reach, place + 1))
            far = np.stack([self.distance_vector(place - j) for j in keys]).astype(x.dtype)
            position = self.linear(f"{name}.r_net", far).reshape(len(keys), self.heads, self.size)
            content = np.einsum("bad,bjad->baj", query[:, place] + r_w_bias, key[:, keys])
            distance = np.einsum("bad,jad->baj", query[:, place] + r_r_bias, position)
            weights = softmax((content + distance) / math.sqrt(self.size)) * head_mask[:, None]
            probabilities[:, :, i, keys] = weights
            context[:, i] = np.einsum("baj,bjad->bad", weights, value[:, keys])
        return self.linear(f"{name}.o_net", context.reshape(batch, length, -1)), probabilities

    def decode(
        self,
        ids: ArrayLike,
        mems: Sequence[ArrayLike] | None = None,
        *,
        head_mask: ArrayLike | None = None,
    ) -> Decoded:
        """Ids [B, T] after memories (L times [M, B, H]; None: `mem_len` rows of zeros, which are seen as any other)."""
        hidden = self.embed(ids)
        if mems is None:
            mems = [np.zeros((self.mem_len, len(hidden), self.width))] * self.layers
        kept = np.ones((self.layers, self.heads)) if head_mask is None else np.asarray(head_mask)
        states, attentions, new_mems = [hidden], [], []
        for layer in range(self.layers):
            memory = np.asarray(mems[layer], dtype=hidden.dtype).transpose(1, 0, 2)
            new_mems.append(self.remember(memory, hidden))
            attention, feed_forward = f"transformer.layers.{layer}.dec_attn", f"transformer.layers.{layer}.pos_ff"

            def before(name: str, x: Array) -> Array:
                return self.norm(f"{name}.layer_norm", x) if self.norm_first else x

            def after(name: str, x: Array) -> Array:
                return x if self.norm_first else self.norm(f"{name}.layer_norm", x)

            read, probabilities = self.attention(
                layer, before(attention, hidden), before(attention, memory), kept[layer].astype(hidden.dtype)
            )
            hidden = after(attention, hidden + read)
            inner = np.maximum(self.linear(f"{feed_forward}.CoreNet.0", before(feed_forward, hidden)), 0.0)
            hidden = after(feed_forward, hidden + self.linear(f"{feed_forward}.CoreNet.3", inner))
            states.append(hidden)
            attentions.append(probabilities)
        return Decoded(states, attentions, new_mems)

    def remember(self, memory: Array, hidden: Array) -> Array:
        """[B, M, H] and [B, T, H] -> [M', B, H]: the last `mem_len` of both, without the last `ext_len` tokens."""
        end = memory.shape[1] + max(0, hidden.shape[1] - self.ext_len)
        joined = np.concatenate([memory, hidden], axis=1)[:, max(0, end - self.mem_len) : end]
        return joined.transpose(1, 0, 2)
