"""Perplexity of a text of any length: segments of it pass by, and each token is scored once.

The text is cut into as many streams as the batch has rows, and each stream goes through the model segment by segment
with a memory of its own, as in the original (tf/train_gpu.py, `evaluate`). Two things differ, so that the result says
something of the text and not of the way it was cut: every token after the first is scored, none is left over at the
end; and a stream that begins within the text first reads the tokens before it, which it does not score.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from ...generation.perplexity import Perplexity
from ...nn.checks import INDEX_TYPES
from ...nn.values import whole_number
from .heads import TransfoXLLMHeadModel

#: Lengths with which the paper evaluates on WikiText-103 (Dai et al. 2019, table 1: 18.3; script wt103_large_tf.sh).
PAPER: Final[Mapping[str, Any]] = {
    "tgt_len": 128,
    "ext_len": 0,
    "mem_len": 1600,
    "clamp_len": 1000,
    "same_length": True,
}


class Segment(NamedTuple):
    """One step: `input_ids` [B, T], and `labels` [B, T'] for its last places, -1 where nothing is scored."""

    input_ids: Tensor
    labels: Tensor


def evaluate(
    model: TransfoXLLMHeadModel,
    ids: Tensor | Sequence[int],
    *,
    batch_size: int = 10,
    tgt_len: int | None = None,
    ext_len: int | None = None,
    mem_len: int | None = None,
    clamp_len: int | None = None,
    same_length: bool | None = None,
    warm_up: int | None = None,
    max_eval_steps: int | None = None,
    progress: Callable[[Perplexity], object] = lambda so_far: None,
) -> Perplexity:
    """Score each token of a text after the first once, from those before it.

    With `same_length` a stream begins with a memory of zeros, which is attended to as in the original. Without it the
    number of zeros that a token sees would depend on where segments end, so a stream begins with no memory then.

    The result does not depend on `tgt_len` and `ext_len` with `same_length`, or where the memory holds the text. Nor
    does it on `batch_size` where `warm_up` reaches back to the beginning of the text or, with `same_length`, over
    `n_layer` times `mem_len` tokens, which is as far as a token can see; with less it matters little.

    Args:
        model: The language model. Its lengths are as before afterwards.
        ids: The text, [n].
        batch_size: Streams at a time, B.
        tgt_len: Tokens of a segment; as the model has it by default, and so for the following four.
        ext_len: Tokens before a segment that are computed again with it.
        mem_len: Tokens of the memory.
        clamp_len: Distance from which all positions look alike; none if it isn't above 0.
        same_length: Whether every token sees itself and `mem_len` before it, rather than all there are.
        warm_up: Tokens that a stream reads before those that it scores; as many as the memory holds by default.
        max_eval_steps: Segments after which to stop; by default the whole text is scored.
        progress: Called after each segment with the perplexity of all tokens so far.

    Raises:
        ValueError: The text has no second token, a number or an id is out of range, or the loss is not a number.
        TypeError: The ids are no integers.
    """
    if model.training:
        raise ValueError("the model is in training mode, where dropout changes the loss; call model.eval() first")
    size = whole_number("batch_size", batch_size, 1)
    most = None if max_eval_steps is None else whole_number("max_eval_steps", max_eval_steps, 1)
    text = _checked(ids, model.crit.n_token)
    with _lengths(model, tgt_len, ext_len, mem_len, clamp_len, same_length), torch.inference_mode():
        before = model.mem_len if warm_up is None else whole_number("warm_up", warm_up, 0)
        size = min(size, len(text) - 1)
        cache = model.new_cache(size, model.tgt_len + model.ext_len, zeros_seen=model.same_length)
        total, tokens = 0.0, 0
        for number, segment in enumerate(segments(text, size, model.tgt_len, model.ext_len, before)):
            if number == most:
                break
            segment = Segment(*(x.to(model.device) for x in segment))
            total += float(model(segment.input_ids, cache, labels=segment.labels, return_dict=True).loss.double().sum())
            if math.isnan(total):
                raise ValueError(
                    f"the model's loss is not a number in segment {number}: its weights are not, or its dtype is too "
                    "small for them"
                )
            tokens += int((segment.labels >= 0).sum())
            if tokens:
                progress(Perplexity(total, tokens))
    return Perplexity(total, tokens)


def segments(text: Tensor, streams: int, tgt_len: int, ext_len: int, warm_up: int) -> Iterator[Segment]:
    """The steps through a text.

    Args:
        text: Ids [n].
        streams: Rows, B; each scores about as many tokens as the others.
        tgt_len: Tokens of a segment.
        ext_len: Tokens before a segment that come again with it.
        warm_up: Tokens before those that a row scores.
    """
    # Row b scores the tokens from places[b] to before places[b + 1], each from the one before it.
    places = torch.linspace(1, len(text), streams + 1, dtype=torch.float64).round().long()
    begin = (places[:-1] - 1 - warm_up).clamp(min=0)[:, None]
    first, end = places[:-1, None], places[1:, None]
    steps = -(-int((end - 1 - begin).max()) // tgt_len)
    for step in range(steps):
        start = step * tgt_len
        inputs = begin + torch.arange(max(0, start - ext_len), start + tgt_len)
        targets = begin + torch.arange(start, start + tgt_len) + 1
        scored = (targets >= first) & (targets < end)
        labels = text[targets.clamp(max=len(text) - 1)].where(scored, -1)
        # Behind the end of a row its last token is repeated; nothing is scored there.
        yield Segment(text[inputs.minimum(end - 1).clamp(max=len(text) - 1)], labels)


def _checked(ids: Tensor | Sequence[int], words: int) -> Tensor:
    """The text as a tensor.

    Raises:
        ValueError: There is nothing to score, or an id is none of the model's.
        TypeError: The ids are no integers.
    """
    if isinstance(ids, str | bytes):
        raise TypeError(f"ids: expected integers, found {type(ids).__name__}; encode the text first")
    text = ids if isinstance(ids, Tensor) else torch.as_tensor(ids)
    if text.numel() and text.dtype not in INDEX_TYPES:
        raise TypeError(f"ids: expected integers, found {text.dtype}")
    if text.ndim != 1 or len(text) < 2:
        raise ValueError(
            f"ids: found shape {list(text.shape)}; there must be one token to predict, and one before it, in a row"
        )
    low, high = (int(value) for value in text.aminmax())
    if low < 0 or high >= words:
        raise ValueError(
            f"ids: found {low if low < 0 else high}, but the model has words 0 to {words - 1}; is this its vocabulary?"
        )
    return text.cpu().long()


@contextmanager
def _lengths(
    model: TransfoXLLMHeadModel,
    tgt_len: int | None,
    ext_len: int | None,
    mem_len: int | None,
    clamp_len: int | None,
    same_length: bool | None,
) -> Iterator[None]:
    """Give a model other lengths for a while."""
    usual = model.tgt_len, model.ext_len, model.mem_len
    clamp, same = model.clamp_len, model.same_length
    asked = (tgt_len, ext_len, mem_len)
    try:
        model.reset_length(*(own if wish is None else wish for wish, own in zip(asked, usual, strict=True)))
        model.clamp_len = clamp if clamp_len is None else whole_number("clamp_len", clamp_len, -1)
        model.same_length = same if same_length is None else same_length
        yield
    finally:
        model.reset_length(*usual)
        model.clamp_len, model.same_length = clamp, same
