"""`TransfoXLConfig`: the sizes of a Transformer-XL model and what they mean."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Final

from ...nn.values import real_number, whole_number
from ..config import PretrainedConfig
from .pretrained import REPOSITORIES

_VOCAB_SIZE: Final = 267735  # words of WikiText-103
_CUTOFFS: Final = (20000, 40000, 200000)
_INITIALISATIONS: Final = ("normal", "uniform")


def check_cutoffs(cutoffs: Sequence[int], words: int) -> None:
    """Raise `ValueError` unless the clusters of a vocabulary of that many words have words each."""
    if any(start >= end for start, end in pairwise([0, *cutoffs, words])):
        raise ValueError(
            f"cutoffs: {list(cutoffs)} must rise and be below vocab_size, {words}; use cutoffs=[] for a small "
            "vocabulary"
        )


def _switch(name: str, value: Any) -> bool:
    if not isinstance(value, bool) and value not in (0, 1):
        raise ValueError(f"{name}: expected true or false, found {value!r}")
    return bool(value)


class TransfoXLConfig(PretrainedConfig):
    """Sizes of a Transformer-XL model; the defaults are those of the large one for WikiText-103.

    Source: Dai et al. 2019, section 4.1; flags of train_gpu.py in the original program, whose names these are.

    Args:
        vocab_size: Words, V (n_token in the original). Or the path of a configuration file, as published code has it.
        cutoffs: Where the clusters of the vocabulary begin, which is ordered by frequency: words below the first are
            the head, each further number begins a tail. Empty for an ordinary softmax.
        d_model: Width of the hidden states, H; even.
        d_embed: Width of the embeddings of the head; those of tail i have `d_embed // div_val**i`.
        n_head: Heads of each layer, A.
        d_head: Size of a head, D; A D need not be H.
        d_inner: Width inside the feed-forward part, F.
        div_val: By what the width of the embeddings is divided from one cluster to the next; with 1 they are one table.
        pre_lnorm: Whether a layer normalises before each part, and not after it (the PyTorch original has it).
        n_layer: Layers, L.
        tgt_len: Tokens of a segment, in training and by default in evaluation.
        ext_len: Tokens of context in front of a segment that are computed again, and stay out of the memory until then.
        mem_len: Tokens of the memory, M.
        clamp_len: Distance from which all positions look alike; -1 or 0 for none.
        same_length: Whether every token sees itself and the `mem_len` before it, rather than all before it.
        proj_share_all_but_first: Whether the clusters but the first project with the matrices of the embeddings, where
            `tie_projs` doesn't say more.
        attn_type: 0, relative attention with a matrix for positions. There is no other.
        sample_softmax: -1 or 0. A sampled softmax is not supported.
        adaptive: Whether the softmax has clusters; False goes with empty `cutoffs` only.
        tie_weight: Whether output and embeddings share their tables.
        dropout: Dropout after embeddings, attention, inside and after the feed-forward part, and at the end.
        dropatt: Dropout of the attention probabilities.
        untie_r: Whether each layer has its own r_w_bias and r_r_bias.
        init: "normal" or "uniform": the distribution of new weights.
        init_range: Bound of the uniform one.
        proj_init_std: Standard deviation of the projections of the clusters.
        init_std: Standard deviation of the normal one.
        layer_norm_epsilon: Added to the variance in layer normalisation. 1e-12 in the original program (contrib
            layer_norm), and so for its checkpoints; its authors' PyTorch version has 1e-5.
        tie_projs: For the head and each tail, whether it projects with the matrix of the embeddings.
        proj_same_dim: Whether embeddings are projected where they have width H already (`div_val` above 1 only).
        same_length_one_fewer: Whether `same_length` lets every token see itself and `mem_len` - 1 before it. The
            published PyTorch packages compute so; the original program doesn't.
        eos_token_id: The id that ends a line; generation stops there.
        **others: Fields of every family, see `PretrainedConfig`, and keys of other programs.

    Raises:
        ValueError: A value is impossible, or a key looks like a typing error.
        TypeError: `cutoffs` is no list.
        NotImplementedError: `attn_type` is not 0, or `sample_softmax` asks for one.
        OSError: `vocab_size` is a path that can't be read.
    """

    model_type: ClassVar[str] = "transfo-xl"
    aliases: ClassVar[Mapping[str, str]] = {"vocab_size_or_config_json_file": "vocab_size", "n_token": "vocab_size"}
    repositories: ClassVar[Mapping[str, str]] = REPOSITORIES

    def __init__(
        self,
        vocab_size: int | str | Path = _VOCAB_SIZE,
        cutoffs: Sequence[int] = _CUTOFFS,
        d_model: int = 1024,
        d_embed: int = 1024,
        n_head: int = 16,
        d_head: int = 64,
        d_inner: int = 4096,
        div_val: int = 4,
        pre_lnorm: bool = False,
        n_layer: int = 18,
        tgt_len: int = 128,
        ext_len: int = 0,
        mem_len: int = 1600,
        clamp_len: int = 1000,
        same_length: bool = True,
        proj_share_all_but_first: bool = True,
        attn_type: int = 0,
        sample_softmax: int = -1,
        adaptive: bool = True,
        tie_weight: bool = True,
        dropout: float = 0.1,
        dropatt: float = 0.0,
        untie_r: bool = True,
        init: str = "normal",
        init_range: float = 0.01,
        proj_init_std: float = 0.01,
        init_std: float = 0.02,
        *,
        layer_norm_epsilon: float = 1e-12,
        tie_projs: Sequence[bool] | None = None,
        proj_same_dim: bool = True,
        same_length_one_fewer: bool = False,
        eos_token_id: int | None = None,
        **others: Any,
    ) -> None:
        words = self._size_or_file(vocab_size, _VOCAB_SIZE, others)
        if words is None:
            return
        self.vocab_size = words
        if not isinstance(cutoffs, list | tuple):
            raise TypeError(f"cutoffs: expected a list of numbers, found {cutoffs!r}; use [] for an ordinary softmax")
        self.cutoffs = [whole_number("cutoffs", cutoff, 1) for cutoff in cutoffs]
        self.d_model = whole_number("d_model", d_model, 1)
        self.d_embed = whole_number("d_embed", d_embed, 1)
        self.n_head = whole_number("n_head", n_head, 1)
        self.d_head = whole_number("d_head", d_head, 1)
        self.d_inner = whole_number("d_inner", d_inner, 1)
        self.div_val = whole_number("div_val", div_val, 1)
        self.pre_lnorm = _switch("pre_lnorm", pre_lnorm)
        self.n_layer = whole_number("n_layer", n_layer, 0)
        self.tgt_len = whole_number("tgt_len", tgt_len, 1)
        self.ext_len = whole_number("ext_len", ext_len, 0)
        self.mem_len = whole_number("mem_len", mem_len, 0)
        self.clamp_len = whole_number("clamp_len", clamp_len, -1)
        self.same_length = _switch("same_length", same_length)
        self.proj_share_all_but_first = _switch("proj_share_all_but_first", proj_share_all_but_first)
        self.attn_type = attn_type
        self.sample_softmax = whole_number("sample_softmax", sample_softmax, -1)
        self.adaptive = _switch("adaptive", adaptive)
        self.tie_weight = _switch("tie_weight", tie_weight)
        self.dropout = real_number("dropout", dropout, 0.0, 1.0)
        self.dropatt = real_number("dropatt", dropatt, 0.0, 1.0)
        self.untie_r = _switch("untie_r", untie_r)
        self.init = init
        self.init_range = real_number("init_range", init_range, 0.0)
        self.proj_init_std = real_number("proj_init_std", proj_init_std, 0.0)
        self.init_std = real_number("init_std", init_std, 0.0)
        self.layer_norm_epsilon = real_number("layer_norm_epsilon", layer_norm_epsilon, 0.0)
        shared = [False, *[proj_share_all_but_first] * len(self.cutoffs)]
        self.tie_projs = shared if tie_projs is None else [_switch("tie_projs", tied) for tied in tie_projs]
        self.proj_same_dim = _switch("proj_same_dim", proj_same_dim)
        self.same_length_one_fewer = _switch("same_length_one_fewer", same_length_one_fewer)
        self.eos_token_id = None if eos_token_id is None else whole_number("eos_token_id", eos_token_id, 0)
        super().__init__(**others)
        self._check_together()

    def _check_together(self) -> None:
        """Refuse what doesn't go together, and what was published but never worked."""
        if self.attn_type != 0:
            raise NotImplementedError(
                f"attn_type: {self.attn_type!r}; only 0, relative attention with a matrix for positions, is supported, "
                "which all published checkpoints have"
            )
        if self.sample_softmax > 0:
            raise NotImplementedError(
                f"sample_softmax: {self.sample_softmax}; a sampled softmax is not supported: use -1"
            )
        if self.d_model % 2:
            raise ValueError(
                f"d_model: {self.d_model} is odd, but half of it are sines and half cosines; use an even one"
            )
        if not self.adaptive and self.cutoffs:
            raise ValueError(f"adaptive: False, but there are clusters, cutoffs={self.cutoffs}; use cutoffs=[]")
        check_cutoffs(self.cutoffs, self.vocab_size)
        if self.d_embed // self.div_val ** len(self.cutoffs) < 1:
            raise ValueError(
                f"div_val: {self.div_val} leaves no width for the last of {len(self.cutoffs) + 1} clusters, whose "
                f"embeddings have d_embed // div_val**{len(self.cutoffs)}; d_embed is {self.d_embed}"
            )
        if len(self.tie_projs) != len(self.cutoffs) + 1:
            raise ValueError(
                f"tie_projs: {len(self.tie_projs)} values, but the head and the tails of cutoffs={self.cutoffs} are "
                f"{len(self.cutoffs) + 1}"
            )
        if self.eos_token_id is not None and self.eos_token_id >= self.vocab_size:
            raise ValueError(f"eos_token_id: {self.eos_token_id}, but the vocabulary has {self.vocab_size} words")
        if self.init not in _INITIALISATIONS:
            raise ValueError(f"init: {self.init!r}, allowed is {' or '.join(_INITIALISATIONS)}")

    @property
    def n_token(self) -> int:
        """V, under the original's name; may be set."""
        return self.vocab_size

    @n_token.setter
    def n_token(self, words: int) -> None:
        self.vocab_size = whole_number("n_token", words, 1)

    def to_dict(self) -> dict[str, Any]:
        """See `PretrainedConfig.to_dict`; V under both names, of which the published packages read the original's."""
        return {**super().to_dict(), "n_token": self.vocab_size}

    @property
    def hidden_size(self) -> int:
        """H, under the name that all families share."""
        return self.d_model

    @property
    def num_hidden_layers(self) -> int:
        """L, under the name that all families share."""
        return self.n_layer

    @property
    def num_attention_heads(self) -> int:
        """A, under the name that all families share."""
        return self.n_head

    @property
    def max_position_embeddings(self) -> int:
        """Places that one segment looks at; a text may have any length (the published package's name)."""
        return self.tgt_len + self.ext_len + self.mem_len
