"""Masking of many instances at once; what is drawn for one depends on its key and number alone, see `draws.py`."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .draws import key_of, uniform, uniform_at
from .options import InstanceOptions
from .vocabulary import Vocabulary

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: Of the tokens to be guessed: part that becomes [MASK], and part up to which it stays as it is; the rest is random.
_MASKED, _KEPT = 0.8, 0.9


class Masked(NamedTuple):
    """Fields: `ids` [N, T], masked; `chosen` [N, T], which tokens are to be guessed."""

    ids: Ids
    chosen: Flags


def mask_rows(
    ids: Ids,
    lengths: npt.NDArray[np.int64],
    seconds: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.uint64],
    key: int,
    vocabulary: Vocabulary,
    options: InstanceOptions,
) -> Masked:
    """Chooses tokens of each row and hides them: 80 % become [MASK], 10 % stay, 10 % become any token.

    As many are chosen as the original program chooses: `masked_lm_prob` of all tokens of the row, at least one, at most
    `max_predictions_per_seq`. [CLS] and [SEP] are never chosen. A word never goes on across [SEP].

    Args:
        ids: [N, T] rows with special tokens, padded with anything.
        lengths: [N] tokens of each row.
        seconds: [N] where the second text begins, the length where there is none.
        numbers: [N] numbers of the rows, which decide their draws together with `key`.
        key: See `key_of`.
        vocabulary: Of the tokenizer.
        options: How many, and whether words are masked whole.
    """
    width = ids.shape[1]
    places = np.arange(width)
    most = np.rint(lengths * options.masked_lm_prob).astype(np.int64).clip(1, options.max_predictions_per_seq)
    text = (places > 0) & (places < lengths[:, None] - 1) & (places != seconds[:, None] - 1)  # [N, T]
    order = uniform(key_of(key, 0), numbers, width)
    if options.do_whole_word_mask:
        chosen = _choose_words(text, vocabulary.continues[ids], order, most)
    else:
        chosen = _choose_tokens(text, order, most)
    row, place = np.nonzero(chosen)
    fate = uniform_at(key_of(key, 1), numbers[row], place.astype(np.uint64))
    other = uniform_at(key_of(key, 2), numbers[row], place.astype(np.uint64))
    there = ids[row, place]
    masked = ids.copy()
    masked[row, place] = np.where(
        fate < _MASKED,
        vocabulary.mask_id,
        np.where(fate < _KEPT, there, (other * vocabulary.size).astype(np.int64)),
    )
    return Masked(masked, chosen)


def _choose_tokens(text: Flags, order: npt.NDArray[np.float64], most: Ids) -> Flags:
    """The `most` tokens of each row that come first; all where a row has no more."""
    order = np.where(text, order, 2.0)
    last = np.take_along_axis(np.sort(order, axis=1), np.minimum(most, order.shape[1])[:, None] - 1, axis=1)
    return text & (order <= last)


def _choose_words(text: Flags, continues: Flags, order: npt.NDArray[np.float64], most: Ids) -> Flags:
    """Whole words in their order, each that still fits, until there are `most` tokens.

    A row whose words are all longer than `most` is left with none, as in the original program.
    """
    before = np.zeros_like(text)
    before[:, 1:] = text[:, :-1]
    starts = text & ~(continues & before)
    places = np.arange(text.shape[1])
    start = np.maximum.accumulate(np.where(starts, places, 0), axis=1)  # [N, T] where the word of each token begins
    key = np.where(text, np.take_along_axis(order, start, axis=1), 2.0)
    sequence = np.argsort(key, axis=1, kind="stable")  # words in their order, each from its start on
    row = np.broadcast_to(np.arange(len(text))[:, None], text.shape)
    size = np.bincount((row * text.shape[1] + start)[text], minlength=text.size).reshape(text.shape)  # at each start
    begins, sizes, real = (np.take_along_axis(values, sequence, axis=1).T.copy() for values in (starts, size, text))
    chosen = np.zeros_like(real)  # [T, N] in the order of `sequence`
    taken = np.zeros(len(text), np.int64)
    accepted = np.zeros(len(text), bool)
    for place in range(len(real)):
        accepted = np.where(begins[place], taken + sizes[place] <= most, accepted) & real[place]
        chosen[place] = accepted
        taken += accepted
        if not (real[place] & (taken < most)).any():
            break
    result = np.zeros_like(text)
    np.put_along_axis(result, sequence, chosen.T, axis=1)
    return result
