"""Which examples make which update: a pure function of the seed, so that a run can go on from any update.

Terms: an update is one step of the optimizer, on a batch of B examples. A batch is divided over P processes, and each
process computes its share in A parts, one after the other (`gradient_accumulation_steps`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

#: Batches that are sorted by length together; more makes them more even and the order less random.
_SORTED_TOGETHER: Final = 50


@dataclass(frozen=True)
class Part:
    """What a process computes at once.

    Attributes:
        places: Places of its examples in the data.
        counts: False where the batch had too few examples for all parts, and this one repeats an example with weight
            0: processes go through the same steps, or those that wait for each other would wait for ever.
    """

    places: list[int]
    counts: bool


class BatchPlan:
    """The order of the examples in every epoch.

    Args:
        examples: How many there are.
        batch_size: B.
        seed: Two plans with the same seed are equal.
        lengths: Number of tokens of each example; batches are then made of examples of similar length.

    Raises:
        ValueError: There are no examples.
    """

    def __init__(self, examples: int, batch_size: int, seed: int, lengths: Sequence[int] | None = None) -> None:
        if examples < 1:
            raise ValueError("there are no training examples")
        self.examples = examples
        self.batch_size = batch_size
        self.seed = seed
        self._lengths = None if lengths is None else torch.tensor(lengths)

    @property
    def updates_per_epoch(self) -> int:
        """Updates of one epoch; the last may have fewer examples."""
        return math.ceil(self.examples / self.batch_size)

    def total_updates(self, epochs: float, most: int | None) -> int:
        """Updates of a whole training, counted as the loop does them; a begun batch counts, and there is one."""
        total = max(1, math.ceil(round(epochs * self.updates_per_epoch, 6)))
        return total if most is None else min(total, most)

    def batches(self, epoch: int) -> Sequence[Tensor]:
        """The batches of an epoch, counted from 0: places of the examples."""
        generator = torch.Generator().manual_seed(self.seed + 1_000_003 * epoch)
        order = torch.randperm(self.examples, generator=generator)
        if self._lengths is None:
            return order.split(self.batch_size)
        windows = order.split(self.batch_size * _SORTED_TOGETHER)
        by_length = [window[self._lengths[window].argsort(descending=True, stable=True)] for window in windows]
        batches = torch.cat(by_length).split(self.batch_size)
        return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]

    def updates(self, first: int, last: int, process: int, processes: int, parts: int) -> Iterator[list[Part]]:
        """What one process computes in the updates from `first` up to, and without, `last`."""
        epoch, done = divmod(first, self.updates_per_epoch)
        remaining = last - first
        while remaining > 0:
            for batch in self.batches(epoch)[done:][:remaining]:
                yield divide(batch.tolist(), process, processes, parts)
                remaining -= 1
            epoch, done = epoch + 1, 0


def divide(batch: list[int], process: int, processes: int, parts: int) -> list[Part]:
    """The parts of a batch that one process computes, as even as can be over all."""
    shares = [batch[part * processes + process :: parts * processes] for part in range(parts)]
    return [Part(share or batch[:1], bool(share)) for share in shares]
