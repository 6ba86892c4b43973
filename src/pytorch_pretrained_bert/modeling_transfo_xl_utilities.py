"""The adaptive softmax of Transformer-XL as 0.6.2 had it, on that of `pytorch_transformers`."""

from collections.abc import Sequence
from typing import Any, Final

import torch.nn.functional as F
from torch import Tensor

from pytorch_transformers.models.transfo_xl import adaptive_softmax as core

__all__ = ["LogUniformSampler", "ProjectedAdaptiveLogSoftmax", "sample_logits"]

_SAMPLED: Final = (
    "a sampled softmax is not supported, and no model of pytorch_pretrained_bert 0.6.2 could be built with one; use "
    "sample_softmax=-1, whose adaptive softmax is exact"
)


class ProjectedAdaptiveLogSoftmax(core.ProjectedAdaptiveLogSoftmax):
    """Log-probabilities and losses over a vocabulary in clusters.

    Args:
        n_token: Words, V.
        d_embed: Width of the head.
        d_proj: Width of the hidden states, H.
        cutoffs: Where the tails begin; empty for an ordinary softmax.
        div_val: By what the width is divided from one cluster to the next.
        keep_order: Not used: losses come in the order of the tokens. (0.6.2 grouped them by cluster without it.)
    """

    def __init__(
        self,
        n_token: int,
        d_embed: int,
        d_proj: int,
        cutoffs: Sequence[int],
        div_val: int = 1,
        keep_order: bool = False,
    ) -> None:
        super().__init__(n_token, d_embed, d_proj, cutoffs, div_val, keep_order)

    @property
    def d_embed(self) -> int:
        """Width of the head."""
        return self._parts[0].width

    @property
    def d_proj(self) -> int:
        """Width of the hidden states, H."""
        projection = self.out_projs[0]
        return self.d_embed if projection is None else projection.shape[0]

    @property
    def cutoffs(self) -> list[int]:
        """Where the clusters end."""
        return [part.stop for part in self._parts]

    @property
    def cutoff_ends(self) -> list[int]:
        """The same with 0 in front."""
        return [0, *self.cutoffs]

    @property
    def n_clusters(self) -> int:
        """Number of clusters beside the head."""
        return self.tails

    @property
    def shortlist_size(self) -> int:
        """Number of words in the head."""
        return self._parts[0].words

    @property
    def head_size(self) -> int:
        """Number of scores of the head: of its words, and of the other clusters."""
        return self.shortlist_size + self.n_clusters

    def _compute_logit(self, hidden: Tensor, weight: Tensor, bias: Tensor | None, proj: Tensor | None) -> Tensor:
        """Scores [N, words] of states [N, H]; a cluster has weights [words, width] and a projection [H, width]."""
        return F.linear(hidden if proj is None else F.linear(hidden, proj.t()), weight, bias)

    def forward(self, hidden: Tensor, target: Tensor | None = None, keep_order: bool = False) -> Tensor:
        """Negative log-likelihoods [N] of the target; without one the log-probabilities [N, V].

        Args:
            hidden: [N, H].
            target: N words, not shifted; below 0 is ignored, with a loss of 0.
            keep_order: Not used, see above.

        Raises:
            ValueError: The target has another number of words.
        """
        if target is not None:
            target = target.reshape(-1)
            if len(target) != len(hidden):
                raise ValueError(f"target: {len(target)} words, but there are {len(hidden)} states; each needs one")
        return super().forward(hidden, target, keep_order)

    def log_prob(self, hidden: Tensor) -> Tensor:
        """Log-probabilities [N, V] of all words, from states [N, H]; 0.6.2 failed here with any cutoffs."""
        return super().log_prob(hidden)


class LogUniformSampler:
    """The sampler of a softmax that is not supported.

    Args:
        range_max: Number of words.
        n_sample: Number of samples.

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, range_max: int, n_sample: int) -> None:
        raise NotImplementedError(f"LogUniformSampler: {_SAMPLED}")

    def sample(self, labels: Tensor) -> Any:
        """Not supported."""
        raise NotImplementedError(f"LogUniformSampler: {_SAMPLED}")


def sample_logits(embedding: Any, bias: Tensor, labels: Tensor, inputs: Tensor, sampler: Any) -> Tensor:
    """The scores of a softmax that is not supported.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(f"sample_logits: {_SAMPLED}")
