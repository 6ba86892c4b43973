"""Embeddings and softmax of a large vocabulary in clusters of falling frequency: rare words get narrow vectors.

Papers: Grave et al. 2017, "Efficient softmax approximation for GPUs"; Baevski and Auli 2019 for the input side.
Source: kimiyoung/transformer-xl, tf/model.py, mask_adaptive_embedding_lookup and mask_adaptive_logsoftmax.

The first cluster is the head. Its softmax has one place more for each tail, in the order of the tails; a word of a tail
has the probability of its tail's place times that of the word within the tail. Letters: N is the number of tokens, V
that of words, H the width of the hidden states.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...nn.checks import recording, transforming
from ...nn.tied import TiedEmbedding, note_gradient
from .config import check_cutoffs

#: Scores in memory at a time: 2^22 of float32 are 16 MiB. And words of a block at least, for products to be fast.
_BLOCK: Final = 1 << 22
_LEAST_WORDS: Final = 256
#: Standard deviation of the matrices of a module that is used alone; a model draws them as its configuration says.
_NEW: Final = 0.01
#: Of all scores, N V, the share that may be kept for the backward pass is one in so many; or `_BLOCK` if that is more.
_KEPT_SHARE: Final = 8


class Cluster(NamedTuple):
    """Words `start` to before `stop`, whose embeddings have that `width`."""

    start: int
    stop: int
    width: int

    @property
    def words(self) -> int:
        """Number of them."""
        return self.stop - self.start


def clusters(n_token: int, d_embed: int, cutoffs: Sequence[int], div_val: int) -> list[Cluster]:
    """The head and the tails of a vocabulary.

    Raises:
        ValueError: The cut-offs don't rise, or lie beyond the vocabulary.
    """
    check_cutoffs(cutoffs, n_token)
    ends = [0, *cutoffs, n_token]
    return [Cluster(start, stop, d_embed // div_val**i) for i, (start, stop) in enumerate(pairwise(ends))]


def _tables(parts: Sequence[Cluster], div_val: int) -> list[Cluster]:
    """Clusters that have a table of their own: with one width for all there is one table."""
    return list(parts) if div_val > 1 else [Cluster(0, parts[-1].stop, parts[0].width)]


def _projected(part: Cluster, d_proj: int, div_val: int, proj_same_dim: bool) -> bool:
    """Whether a matrix leads from the width of a cluster to H and back."""
    return part.width != d_proj or (div_val > 1 and proj_same_dim)


def _matrices(wanted: Sequence[bool], parts: Sequence[Cluster], d_proj: int) -> nn.ParameterList:
    """A matrix [H, width] for each part that wants one, None for the others."""
    matrices = nn.ParameterList()
    for want, part in zip(wanted, parts, strict=True):
        matrix = nn.Parameter(torch.empty(d_proj, part.width)) if want else None
        matrices.append(matrix if matrix is None else nn.init.normal_(matrix, 0.0, _NEW))
    return matrices


class AdaptiveEmbedding(nn.Module):
    """Embeddings of a vocabulary in clusters, under the published name.

    Args:
        n_token: Words, V.
        d_embed: Width of the head's embeddings.
        d_proj: Width of the result, H.
        cutoffs: Where the tails begin.
        div_val: By what the width is divided from one cluster to the next.
        sample_softmax: For code of the published package; only False is supported.
        proj_same_dim: Whether a cluster of width H is projected too (where `div_val` is above 1).
    """

    def __init__(
        self,
        n_token: int,
        d_embed: int,
        d_proj: int,
        cutoffs: Sequence[int],
        div_val: int = 1,
        sample_softmax: bool = False,
        *,
        proj_same_dim: bool = True,
    ) -> None:
        super().__init__()
        if sample_softmax:
            raise NotImplementedError("sample_softmax: a sampled softmax is not supported")
        self.d_proj, self.div_val = d_proj, div_val
        self._cutoffs = list(cutoffs)
        self.emb_scale = d_proj**0.5
        self._parts = _tables(clusters(n_token, d_embed, cutoffs, div_val), div_val)
        self.emb_layers = nn.ModuleList(TiedEmbedding(part.words, part.width) for part in self._parts)
        wanted = [_projected(part, d_proj, div_val, proj_same_dim) for part in self._parts]
        self.emb_projs = _matrices(wanted, self._parts, d_proj)

    @property
    def num_embeddings(self) -> int:
        """Number of words, V."""
        return self._parts[-1].stop

    @property
    def embedding_dim(self) -> int:
        """Width of the result, H."""
        return self.d_proj

    @property
    def weight(self) -> Tensor:
        """The table of the head, which tells where the model is and in what type."""
        head: Any = self.emb_layers[0]
        table: Tensor = head.weight
        return table

    def forward(self, inp: Tensor) -> Tensor:
        """Ids [...] -> vectors [..., H], times the root of H."""
        if len(self._parts) == 1:
            return self._looked_up(0, inp) * self.emb_scale
        if not recording() and not inp.numel():
            return self.weight.new_zeros(*inp.shape, self.d_proj)
        ids = inp.reshape(-1)
        last = len(self._parts) - 1
        if recording():  # the number of words of a cluster must not be part of a graph: each table is asked for all
            result: Tensor | None = None
            for number, part in enumerate(self._parts):
                found = self._looked_up(number, (ids - part.start).clamp(0, part.words - 1))
                result = found if result is None else torch.where((ids >= part.start)[:, None], found, result)
            assert result is not None
            return result.view(*inp.shape, -1) * self.emb_scale
        vectors, places = [], []
        for number, part in enumerate(self._parts):
            # Ids that are none go to the first or last table, whose lookup fails.
            start = part.start if number else -torch.inf
            stop = part.stop if number < last else torch.inf
            place = ((ids >= start) & (ids < stop)).nonzero().squeeze(1)
            if place.numel():
                places.append(place)
                vectors.append(self._looked_up(number, ids[place] - part.start))
        together = torch.cat(vectors)
        result = together.new_zeros(ids.numel(), self.d_proj).index_copy(0, torch.cat(places), together)
        return result.view(*inp.shape, -1) * self.emb_scale

    def _looked_up(self, number: int, ids: Tensor) -> Tensor:
        """Vectors [..., H] of ids within a table."""
        vectors: Tensor = self.emb_layers[number](ids)
        projection = self.emb_projs[number]
        return vectors if projection is None else F.linear(vectors, projection)

    def replace_last(self, table: nn.Embedding) -> None:
        """Put another table, of more or fewer words, in the place of the last one."""
        self._parts[-1] = self._parts[-1]._replace(stop=self._parts[-1].start + table.num_embeddings)
        self.emb_layers[-1] = table


class ProjectedAdaptiveLogSoftmax(nn.Module):
    """Log-probabilities and losses over a vocabulary in clusters, under the published name.

    Args:
        n_token: Words, V.
        d_embed: Width of the head.
        d_proj: Width of the hidden states, H.
        cutoffs: Where the tails begin; empty for an ordinary softmax.
        div_val: By what the width is divided from one cluster to the next.
        keep_order: For code of the published package: losses come in the order of the tokens in any case.
        proj_same_dim: Whether the states are projected for a cluster of width H too (where `div_val` is above 1).
    """

    def __init__(
        self,
        n_token: int,
        d_embed: int,
        d_proj: int,
        cutoffs: Sequence[int],
        div_val: int = 1,
        keep_order: bool = False,
        *,
        proj_same_dim: bool = True,
    ) -> None:
        super().__init__()
        del keep_order
        self.div_val = div_val
        self._parts = clusters(n_token, d_embed, cutoffs, div_val)
        if self.tails:
            self.cluster_weight = nn.Parameter(torch.zeros(self.tails, d_embed))
            self.cluster_bias = nn.Parameter(torch.zeros(self.tails))
        self.out_layers = nn.ModuleList(nn.Linear(part.width, part.words) for part in _tables(self._parts, div_val))
        wanted = [_projected(part, d_proj, div_val, proj_same_dim) for part in self._parts]
        self.out_projs = _matrices(wanted, self._parts, d_proj)

    @property
    def n_token(self) -> int:
        """Number of words, V."""
        return self._parts[-1].stop

    @property
    def tails(self) -> int:
        """Number of clusters beside the head."""
        return len(self._parts) - 1

    def forward(self, hidden: Tensor, labels: Tensor | None = None, keep_order: bool = False) -> Tensor:
        """Losses of the labels, or, without labels, the log-probabilities of all words.

        Args:
            hidden: [N, H].
            labels: [N] words; below 0 is ignored, with a loss of 0. They are not shifted.
            keep_order: For code of the published package: losses come in the order of the tokens in any case.

        Returns:
            [N] negative log-likelihoods, in float32 at least; or `log_prob(hidden)`.

        Raises:
            ValueError: The shapes don't fit.
        """
        del keep_order
        if labels is None:
            return self.log_prob(hidden)
        if not recording() and (hidden.ndim != 2 or labels.shape != hidden.shape[:1]):
            raise ValueError(
                f"hidden, labels: expected shapes [N, H] and [N], found {list(hidden.shape)} and {list(labels.shape)}"
            )
        labels = labels.long()
        if recording() or transforming():
            scores = self.log_prob(hidden).gather(1, labels.clamp(min=0)[:, None]).squeeze(1)
            return -scores.to(_exact(scores.dtype)).where(labels >= 0, 0.0)
        return self._losses(hidden, labels)

    def log_prob(self, hidden: Tensor) -> Tensor:
        """Log-probabilities [N, V] of all words, from states [N, H].

        Raises:
            ValueError: The states have another shape.
        """
        if not recording() and hidden.ndim != 2:
            raise ValueError(f"hidden: expected shape [N, H], found {list(hidden.shape)}")
        head, *tails = self._parts
        scores = self._scores(0, self._narrowed(0, hidden))  # [N, head + tails]
        of_head = torch.log_softmax(scores, dim=-1)
        if not tails:
            return of_head
        pieces = [of_head[:, : head.words]]
        if torch.is_grad_enabled() or recording():  # a gradient may be asked of a tail alone
            for number in range(1, len(self._parts)):
                within = torch.log_softmax(self._scores(number, self._narrowed(number, hidden)), dim=-1)
                pieces.append(within + of_head[:, head.words + number - 1, None])
            return torch.cat(pieces, dim=1)
        result = of_head.new_empty(len(hidden), self.n_token)
        result[:, : head.words] = pieces[0]
        for number, part in enumerate(tails, 1):
            within = torch.log_softmax(self._scores(number, self._narrowed(number, hidden)), dim=-1)
            torch.add(within, of_head[:, head.words + number - 1, None], out=result[:, part.start : part.stop])
        return result

    def _narrowed(self, number: int, hidden: Tensor) -> Tensor:
        """States [N, H] in the width of a cluster."""
        projection = self.out_projs[number]
        return hidden if projection is None else F.linear(hidden, projection.t())

    def _table(self, number: int) -> tuple[Tensor, Tensor]:
        """Weights [words, width] and biases [words] of a cluster."""
        part = self._parts[number]
        if self.div_val > 1:
            own: Any = self.out_layers[number]
            return own.weight, own.bias
        whole: Any = self.out_layers[0]
        return whole.weight[part.start : part.stop], whole.bias[part.start : part.stop]

    def _scores(self, number: int, narrowed: Tensor) -> Tensor:
        """Scores of the words of a cluster, [N, words]; behind those of the head, one for each tail."""
        weight, bias = self._table(number)
        if number == 0 and self.tails:
            weight = torch.cat((weight, self.cluster_weight))
            bias = torch.cat((bias, self.cluster_bias))
        return F.linear(narrowed, weight, bias)

    def _losses(self, hidden: Tensor, labels: Tensor) -> Tensor:
        """Negative log-likelihoods [N]: each token's word is looked for in the head and in the tail that has it."""
        head = self._parts[0]
        places, targets = [], []
        of_head = labels
        for number, part in enumerate(self._parts[1:], 1):
            stop = part.stop if number < self.tails else torch.inf  # what is beyond the last word fails there
            place = ((labels >= part.start) & (labels < stop)).nonzero().squeeze(1)
            places.append(place)
            targets.append(labels[place] - part.start)
            of_head = of_head.index_fill(0, place, head.words + number - 1)
        labelled = (labels >= 0).nonzero().squeeze(1)
        rows = [self._narrowed(0, hidden[labelled] if len(labelled) < len(labels) else hidden)]
        rows += [self._narrowed(number, hidden[place]) for number, place in enumerate(places, 1)]
        parts = [part if self.div_val == 1 else Cluster(0, part.words, part.width) for part in self._parts]
        of_tails = (self.cluster_weight, self.cluster_bias) if places else (None, None)
        tables = [tensor for layer in self.out_layers for tensor in (layer.weight, layer.bias)]
        losses: Any = _ClusterLosses.apply(  # type: ignore[no-untyped-call]
            parts, [of_head[labelled], *targets], *of_tails, *rows, *tables
        )
        result: Tensor = losses[0].new_zeros(len(labels)).index_copy(0, labelled, losses[0])
        for place, loss in zip(places, losses[1:], strict=True):
            if len(place):
                result = result.index_add(0, place, loss)
        return result

    def replace_last(self, layer: nn.Linear) -> None:
        """Put another layer, of more or fewer words, in the place of the last one."""
        start = self._parts[-1].start if self.div_val > 1 else 0
        self._parts[-1] = self._parts[-1]._replace(stop=start + layer.out_features)
        self.out_layers[-1] = layer


def _exact(dtype: torch.dtype) -> torch.dtype:
    """Half precision is too coarse for sums over a vocabulary."""
    return torch.promote_types(dtype, torch.float32)


class _ClusterLosses(torch.autograd.Function):
    """Cross-entropies in all clusters, with one gradient for each table.

    The scores are computed a block of words at a time, so that each table is read once. As many as are an eighth of all
    are kept for the backward pass, others are computed again there: with 267,735 words they would be by far the largest
    tensor.
    """

    @staticmethod
    def forward(
        ctx: Any,
        parts: Sequence[Cluster],
        targets: Sequence[Tensor],
        tail_weight: Tensor | None,
        tail_bias: Tensor | None,
        *tensors: Tensor,
    ) -> tuple[Tensor, ...]:
        """Losses [n] for the rows of each cluster.

        Args:
            parts: The clusters, as slices of their tables.
            targets: For each cluster the places [n] of the rows' words in it.
            tail_weight: [tails, width], what the head has besides its words.
            tail_bias: [tails].
            *tensors: The rows [n, width] of each cluster, then weights and biases of each table.
        """
        ctx.parts, ctx.targets = parts, targets
        ctx.save_for_backward(tail_weight, tail_bias, *tensors)
        ctx.kept = {}
        tables = _Tables(parts, tail_weight, tail_bias, tensors)
        share = sum(part.words for part in parts) * len(targets[0]) // _KEPT_SHARE
        room = max(share, _BLOCK) if any(ctx.needs_input_grad) else 0
        losses, ctx.norms = [], []
        for number, target in enumerate(targets):
            norm: Tensor | None = None
            wanted: Tensor | None = None
            for block in tables.blocks(number, len(target)):
                scores = tables.scores(block)
                here = scores.logsumexp(-1, keepdim=True)
                norm = here if norm is None else torch.logaddexp(norm, here)
                place = (target - block.start)[:, None]
                inside = (place >= 0) & (place < scores.shape[1])
                found = scores.gather(1, tables.columns(block, place)).where(inside, 0.0)
                wanted = found if wanted is None else wanted + found
                if scores.numel() <= room:
                    room -= scores.numel()
                    ctx.kept[block] = scores
            assert norm is not None
            assert wanted is not None
            losses.append((norm - wanted).squeeze(1))
            ctx.norms.append(norm)
        return tuple(losses)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Any, ...]:
        """The gradients, given those of the losses."""
        if torch.is_grad_enabled():  # create_graph=True
            raise RuntimeError(
                "this loss has no second derivatives; take the scores (no labels, output_attentions=True) and gather"
            )
        tail_weight, tail_bias, *tensors = saved = ctx.saved_tensors
        tables = _Tables(ctx.parts, tail_weight, tail_bias, tensors)
        # The gradient of each word's weights comes from one block, so none of them needs a start at 0.
        gradients = [
            torch.empty_like(x) if want else None for x, want in zip(saved, ctx.needs_input_grad[2:], strict=True)
        ]
        into = _Tables(ctx.parts, gradients[0], gradients[1], gradients[2:])
        for number, target in enumerate(ctx.targets):
            rows, slope = tensors[number], slopes[number][:, None]
            of_rows = None if gradients[2 + number] is None else torch.zeros_like(rows, dtype=_exact(rows.dtype))
            for block in tables.blocks(number, len(target)):
                scores = ctx.kept.pop(block, None)
                change = tables.scores(block) if scores is None else scores
                change = change.sub_(ctx.norms[number]).exp_().mul_(slope)  # softmax times what comes after, …
                place = (target - block.start)[:, None]
                inside = (place >= 0) & (place < change.shape[1])  # … less that at the label
                change.scatter_add_(1, tables.columns(block, place), (-slope).where(inside, 0.0))
                low = change.to(rows.dtype)
                for span, weight, _ in tables.of(block):
                    if of_rows is not None:
                        of_rows += low[:, span] @ weight.to(low.dtype)
                for span, of_weight, of_bias in into.of(block):
                    if of_weight is not None and of_weight.dtype == low.dtype:
                        torch.mm(low[:, span].t(), rows, out=of_weight)
                    elif of_weight is not None:
                        of_weight.copy_(low[:, span].t() @ rows)
                    if of_bias is not None:
                        of_bias.copy_(change[:, span].sum(0))
            gradients[2 + number] = None if of_rows is None else of_rows.to(rows.dtype)
        for tensor, gradient in zip(saved, gradients, strict=True):
            if gradient is not None:
                note_gradient(tensor, gradient)
        return None, None, *gradients


class _Block(NamedTuple):
    """Words `start` to before `stop` of a cluster; those of the head that are beyond its words stand for tails."""

    number: int
    start: int
    stop: int


class _Tables(NamedTuple):
    """Weights and biases of all clusters, or their gradients, of which some may be missing."""

    parts: Sequence[Cluster]
    tail_weight: Any
    tail_bias: Any
    tensors: Sequence[Any]

    def blocks(self, number: int, rows: int) -> Iterator[_Block]:
        """All words of a cluster, so many at a time that they have `_BLOCK` scores with that many rows."""
        words = self.parts[number].words
        step = max(_LEAST_WORDS, _BLOCK // max(1, rows))
        tails = 0 if number or self.tail_weight is None else len(self.parts) - 1
        for start in range(0, words, step):
            last = start + step >= words
            yield _Block(number, start, words + tails if last else start + step)

    def of(self, block: _Block) -> Iterator[tuple[slice, Any, Any]]:
        """What a block consists of: its columns, with their weights [words, width] and biases [words]."""
        part = self.parts[block.number]
        one = len(self.tensors) == len(self.parts) + 2
        table = len(self.parts) + (0 if one else 2 * block.number)
        stop = min(block.stop, part.words)
        rows = slice(part.start + block.start, part.start + stop)
        weight, bias = (None if x is None else x[rows] for x in self.tensors[table : table + 2])
        yield slice(0, stop - block.start), weight, bias
        if block.stop > stop:
            yield slice(stop - block.start, None), self.tail_weight, self.tail_bias

    def columns(self, block: _Block, place: Tensor) -> Tensor:
        """Places [n, 1] that may lie outside of a block, as columns of it; beyond the last block there is none."""
        width = block.stop - block.start
        last = block.stop >= self.parts[block.number].words
        return place.clamp(min=0) if last else place.clamp(0, width - 1)

    def scores(self, block: _Block) -> Tensor:
        """Scores [n, words] of a block, in float32 at least."""
        rows = self.tensors[block.number]
        scores = rows.new_empty(len(rows), block.stop - block.start)
        with torch.autocast(rows.device.type, enabled=False):
            for span, weight, bias in self.of(block):
                torch.addmm(bias.to(rows.dtype), rows, weight.to(rows.dtype).t(), out=scores[:, span])
        return scores.to(_exact(scores.dtype))
