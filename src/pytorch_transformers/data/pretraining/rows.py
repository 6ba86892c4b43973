"""From instances to the arrays of a shard, and back to the rows a model is given.

N instances of T tokens each, P of them masked: `ids` [sum of T], `offsets` [N + 1] of the instances in them, `seconds`
[N] where the second text begins (T without one), `random` [N] (1: the second text is from another document, 0: it
follows the first, 2: there is none); where they were masked when made, `positions` and `labels` [sum of P] and
`mask_offsets` [N + 1].
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .arrays import Arrays
from .draws import generator_of, key_of, uniform
from .instances import Instance
from .masking import mask_rows
from .options import InstanceOptions
from .pairs import Pair, PairMaker
from .tokens import Tokens
from .vocabulary import Vocabulary

#: Value of `random` for an input of a single text.
NO_SECOND: Final = 2
#: Rows that are made together.
_BATCH: Final = 2048

Row = dict[str, Any]


def make_shard(
    tokens: Tokens, number: int, vocabulary: Vocabulary, options: InstanceOptions, *, masked: bool
) -> dict[str, npt.NDArray[Any]]:
    """Makes all instances of a part of the corpus, in a random order.

    Args:
        tokens: The corpus.
        number: Of the part.
        vocabulary: Of the tokenizer.
        options: What to make.
        masked: Whether to mask them now; otherwise the reader does.
    """
    seed = options.random_seed
    pairs = [
        pair
        for duplicate in range(options.dupe_factor)
        for pair in PairMaker(tokens, number, options, generator_of(seed, number, duplicate))
    ]
    numbers = np.arange(len(pairs), dtype=np.uint64)
    order: npt.NDArray[np.int64] = np.argsort(uniform(key_of(seed, number, 0), numbers, 1)[:, 0], kind="stable")
    table = np.array(pairs, np.int64).reshape(-1, len(Pair._fields))
    batches = [
        _batch(table[part], numbers[part], tokens, number, vocabulary, options, masked)
        for part in np.split(order, range(_BATCH, len(order), _BATCH))
    ]
    joined = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    for lengths, offsets in (("lengths", "offsets"), ("masks", "mask_offsets")):
        if lengths in joined:
            joined[offsets] = np.concatenate([np.zeros(1, np.int64), np.cumsum(joined.pop(lengths))])
    return joined


def _batch(
    pairs: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.uint64],
    tokens: Tokens,
    number: int,
    vocabulary: Vocabulary,
    options: InstanceOptions,
    masked: bool,
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of some instances, `pairs` [N, 6] with the fields of `Pair`; with lengths instead of offsets."""
    rows = np.arange(len(pairs))
    first, first_length, part, second, second_length, is_random = pairs.T
    seconds = first_length + 2
    lengths = seconds + np.where(second_length > 0, second_length + 1, 0)
    ids = np.full((len(pairs), int(lengths.max(initial=1))), vocabulary.pad_id, np.int64)
    ids[:, 0] = vocabulary.cls_id
    ids[rows, seconds - 1] = ids[rows, lengths - 1] = vocabulary.sep_id
    _fill(ids, rows, np.ones_like(first), tokens.part(number).ids, first, first_length)
    for other in np.unique(part):
        there = np.flatnonzero(part == other)
        _fill(ids, there, seconds[there], tokens.part(int(other)).ids, second[there], second_length[there])
    inside = np.arange(ids.shape[1]) < lengths[:, None]
    arrays: dict[str, npt.NDArray[Any]] = {
        "lengths": lengths,
        "seconds": seconds.astype(np.uint16),
        "random": np.where(second_length > 0, is_random, NO_SECOND).astype(np.uint8),
    }
    hidden = ids
    if masked:
        key = key_of(options.random_seed, number)
        hidden, chosen = mask_rows(ids, lengths, seconds, numbers, key, vocabulary, options)
        arrays |= {
            "masks": chosen.sum(1),
            "positions": np.nonzero(chosen)[1].astype(np.uint16),
            "labels": ids[chosen].astype(vocabulary.id_type),
        }
    return arrays | {"ids": hidden[inside].astype(vocabulary.id_type)}


def _fill(
    ids: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    at: npt.NDArray[np.int64],
    source: npt.NDArray[Any],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
) -> None:
    """Copies `lengths` ids from `starts` in a part to the places `at` of some rows."""
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    ids[np.repeat(rows, lengths), np.repeat(at, lengths) + within] = source[np.repeat(starts, lengths) + within]


def shard_of(instances: Sequence[Instance], vocabulary: Vocabulary, *, masked: bool = True) -> Arrays:
    """The arrays of instances that were made one by one.

    Args:
        instances: The instances; where `masked`, with positions and labels.
        vocabulary: Of the tokenizer.
        masked: Whether to keep what is masked in them.
    """
    arrays: dict[str, npt.NDArray[Any]] = {
        "ids": _flat([instance.input_ids for instance in instances], vocabulary.id_type),
        "offsets": _offsets([instance.input_ids for instance in instances]),
        "seconds": np.array([instance.second for instance in instances], np.uint16),
        "random": np.array(
            [NO_SECOND if instance.is_random_next is None else instance.is_random_next for instance in instances],
            np.uint8,
        ),
    }
    if masked:
        positions = [instance.positions or [] for instance in instances]
        arrays |= {
            "positions": _flat(positions, np.dtype(np.uint16)),
            "labels": _flat([instance.labels or [] for instance in instances], vocabulary.id_type),
            "mask_offsets": _offsets(positions),
        }
    return arrays


def _flat(rows: Sequence[Sequence[int]], kind: "np.dtype[Any]") -> npt.NDArray[Any]:
    return np.fromiter(chain.from_iterable(rows), kind)


def _offsets(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    return np.array([0, *accumulate(map(len, rows))], np.int64)


def instances_of(arrays: Arrays) -> Iterator[Instance]:
    """The instances of a shard, one by one.

    Args:
        arrays: See above.
    """
    return (instance_at(arrays, number) for number in range(len(arrays["offsets"]) - 1))


def instance_at(arrays: Arrays, number: int) -> Instance:
    """One instance of a shard.

    Args:
        arrays: See above.
        number: Which, from 0.
    """
    start, end = arrays["offsets"][number : number + 2].tolist()
    flag = int(arrays["random"][number])
    positions = labels = None
    if "positions" in arrays:
        begin, stop = arrays["mask_offsets"][number : number + 2].tolist()
        positions, labels = arrays["positions"][begin:stop].tolist(), arrays["labels"][begin:stop].tolist()
    return Instance(
        arrays["ids"][start:end].tolist(),
        int(arrays["seconds"][number]),
        None if flag == NO_SECOND else bool(flag),
        positions,
        labels,
    )


def mask_instances(
    instances: Sequence[Instance], numbers: Sequence[int], key: int, vocabulary: Vocabulary, options: InstanceOptions
) -> list[Instance]:
    """Masks instances that were stored without masks.

    Args:
        instances: The instances.
        numbers: Their numbers, which decide the draws together with `key`.
        key: See `key_of`.
        vocabulary: Of the tokenizer.
        options: What was asked for when they were made.
    """
    lengths = np.array([len(instance.input_ids) for instance in instances])
    ids = np.full((len(instances), int(lengths.max())), vocabulary.pad_id)
    for row, instance in enumerate(instances):
        ids[row, : lengths[row]] = instance.input_ids
    seconds = np.array([instance.second for instance in instances])
    hidden, chosen = mask_rows(ids, lengths, seconds, np.array(numbers, np.uint64), key, vocabulary, options)
    return [
        Instance(
            hidden[row, : lengths[row]].tolist(),
            instance.second,
            instance.is_random_next,
            np.flatnonzero(chosen[row]).tolist(),
            ids[row, chosen[row]].tolist(),
        )
        for row, instance in enumerate(instances)
    ]


def row_of(instance: Instance) -> Row:
    """Makes what a model is given.

    That is `input_ids`, `token_type_ids` and `masked_lm_labels` [T], the labels -100 where nothing is to be guessed,
    and `next_sentence_label`, 1 for a random second text; without a second text there is none.

    Args:
        instance: A masked instance.
    """
    labels = [-100] * len(instance.input_ids)
    for place, label in zip(instance.positions or (), instance.labels or (), strict=True):
        labels[place] = label
    row: Row = {
        "input_ids": instance.input_ids,
        "token_type_ids": instance.token_type_ids,
        "masked_lm_labels": labels,
    }
    if instance.is_random_next is not None:
        row["next_sentence_label"] = int(instance.is_random_next)
    return row
