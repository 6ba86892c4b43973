"""The order of the examples: nothing is lost or doubled, whoever computes it and wherever a run goes on."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers.training.plan import BatchPlan, divide

sizes = st.integers(1, 60)
few = st.integers(1, 5)


def lengths_of(examples: int) -> list[int]:
    return [(7 * i) % 13 + 1 for i in range(examples)]


@given(examples=sizes, batch_size=st.integers(1, 20), seed=st.integers(0, 10), by_length=st.booleans())
def test_every_example_once_an_epoch(examples: int, batch_size: int, seed: int, by_length: bool) -> None:
    plan = BatchPlan(examples, batch_size, seed, lengths_of(examples) if by_length else None)
    for epoch in range(3):
        batches = plan.batches(epoch)
        assert len(batches) == plan.updates_per_epoch == math.ceil(examples / batch_size)
        assert sorted(i for batch in batches for i in batch.tolist()) == list(range(examples))
        assert sorted(map(len, batches))[1:] == [batch_size] * (len(batches) - 1)  # only one is smaller


@given(batch=st.lists(st.integers(), min_size=1, max_size=50, unique=True), processes=few, parts=few)
def test_division_loses_and_doubles_nothing(batch: list[int], processes: int, parts: int) -> None:
    shares = [divide(batch, process, processes, parts) for process in range(processes)]
    assert all(len(share) == parts for share in shares)
    counted = [len(part.places) for share in shares for part in share if part.counts]
    assert sorted(i for share in shares for part in share if part.counts for i in part.places) == sorted(batch)
    assert max(counted) - min(counted) <= 1
    idle = [part for share in shares for part in share if not part.counts]
    assert all(part.places == batch[:1] for part in idle)  # something to compute, of weight 0
    assert not idle or len(batch) < processes * parts


@given(
    examples=sizes,
    batch_size=st.integers(1, 20),
    first=st.integers(0, 30),
    processes=few,
    parts=few,
    by_length=st.booleans(),
    data=st.data(),
)
def test_going_on_from_any_update(
    examples: int, batch_size: int, first: int, processes: int, parts: int, by_length: bool, data: st.DataObject
) -> None:
    plan = BatchPlan(examples, batch_size, 3, lengths_of(examples) if by_length else None)
    last = first + data.draw(st.integers(0, 30))
    process = data.draw(st.integers(0, processes - 1))
    whole = list(plan.updates(0, last, process, processes, parts))
    assert len(whole) == last
    assert list(plan.updates(first, last, process, processes, parts)) == whole[first:]


@given(
    examples=sizes,
    batch_size=st.integers(1, 20),
    epochs=st.one_of(st.integers(1, 5), st.floats(0.01, 5.0)),
    most=st.none() | st.integers(1, 40),
)
def test_the_number_of_updates_is_what_the_loop_does(
    examples: int, batch_size: int, epochs: float, most: int | None
) -> None:
    plan = BatchPlan(examples, batch_size, 0)
    total = plan.total_updates(epochs, most)
    per_epoch = plan.updates_per_epoch
    planned = plan.total_updates(epochs, None)
    assert total == (planned if most is None else min(planned, most))
    assert planned - 1 < epochs * per_epoch + 1e-5
    assert planned + 1e-5 >= epochs * per_epoch  # a begun batch counts
    assert len(list(plan.updates(0, total, 0, 1, 1))) == total


def test_the_numbers_of_a_known_case() -> None:
    """Known fault G1: 0.6.2 plans 7715."""
    plan = BatchPlan(49_401, 32, 0)
    assert plan.total_updates(5, None) == 7720
    assert plan.total_updates(5, 100) == 100
    assert plan.total_updates(0.1, None) == 155  # 154.4
    assert plan.total_updates(1e-9, None) == 1
    assert BatchPlan(10, 1, 0).total_updates(0.7, None) == 7  # 0.7 * 10 is a little more than 7 as a float
    assert BatchPlan(100, 1, 0).total_updates(0.07, None) == 7  # and this is 7.000000000000001


def test_epochs_and_seeds_differ() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return [i for batch in BatchPlan(50, 8, seed).batches(epoch) for i in batch.tolist()]

    assert order(0, 0) == order(0, 0)
    assert len({tuple(order(seed, epoch)) for seed in (0, 1, 2) for epoch in (0, 1, 2)}) == 9


def test_length_groups_save_padding() -> None:
    draw = [(i * i * 31) % 97 + 1 for i in range(1000)]

    def padded(plan: BatchPlan) -> int:
        return sum(len(batch) * max(draw[i] for i in batch.tolist()) for batch in plan.batches(0))

    tokens = sum(draw)
    assert padded(BatchPlan(1000, 16, 0)) > 1.5 * tokens
    assert padded(BatchPlan(1000, 16, 0, draw)) < 1.1 * tokens
    # The longest are not all at the beginning: batches are shuffled too.
    longest = [max(draw[i] for i in batch.tolist()) for batch in BatchPlan(1000, 16, 0, draw).batches(0)]
    assert longest != sorted(longest, reverse=True)


def test_no_examples() -> None:
    with pytest.raises(ValueError, match="no training examples"):
        BatchPlan(0, 8, 0)
