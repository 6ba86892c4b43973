"""The order in which Transformer-XL reads a text, and the memory it reads with."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers import TransfoXLConfig, TransfoXLLMHeadModel
from pytorch_transformers.data.batches import collate
from pytorch_transformers.training.plan import divide
from pytorch_transformers.training.segments import SegmentLoss, SegmentPlan, SegmentRows

streams_of = st.integers(1, 6)
lengths = st.integers(1, 9)


@given(streams=streams_of, length=lengths, tokens=st.integers(2, 200))
def test_each_token_is_a_label_once(streams: int, length: int, tokens: int) -> None:
    """Those after the first of a stream, in order; none but the last few of the text is left out."""
    text = np.arange(tokens, dtype=np.uint16)
    steps = tokens // streams
    if steps < 2:
        with pytest.raises(ValueError, match=f"{tokens} tokens are too few for {streams} streams of two"):
            SegmentRows(text, streams, length)
        return
    rows = SegmentRows(text, streams, length)
    found: dict[int, list[int]] = {stream: [] for stream in range(streams)}
    for place in range(len(rows)):
        row = rows[place]
        assert row["labels"] == [token + 1 for token in row["input_ids"]]
        assert 1 <= len(row["labels"]) <= length
        found[row["stream"]] += row["labels"]
    for stream, labels in found.items():
        assert labels == list(range(stream * steps + 1, (stream + 1) * steps))


@given(
    streams=streams_of,
    length=lengths,
    steps=st.integers(2, 40),
    processes=st.integers(1, 3),
    parts=st.integers(1, 3),
    epochs=st.integers(1, 3),
)
def test_updates_go_through_the_same_streams(
    streams: int, length: int, steps: int, processes: int, parts: int, epochs: int
) -> None:
    """All rows of an update are of one segment, the next one; a part has the same streams in every update."""
    rows = SegmentRows(np.zeros(streams * steps, np.uint16), streams, length)
    plan = SegmentPlan(len(rows), streams)
    per_epoch = plan.updates_per_epoch
    assert per_epoch * streams == len(rows)
    for process in range(processes):
        seen: list[list[list[int]]] = []
        for number, update in enumerate(plan.updates(0, epochs * per_epoch, process, processes, parts)):
            of_parts = [[rows[place] for place in part.places] for part in update]
            assert {row["segment"] for part in of_parts for row in part} == {number % per_epoch}
            seen.append([[row["stream"] for row in part] for part in of_parts])
        assert all(streams_of_parts == seen[0] for streams_of_parts in seen)
    first = [place for process in range(processes) for part in divide(list(range(streams)), process, processes, parts)
             if part.counts for place in part.places]  # fmt: skip
    assert sorted(first) == list(range(streams))


def tiny_model(**config: Any) -> TransfoXLLMHeadModel:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": 12,
        "cutoffs": [6],
        "d_model": 16,
        "d_embed": 16,
        "n_head": 2,
        "d_head": 8,
        "d_inner": 20,
        "n_layer": 2,
        "div_val": 1,
        "tgt_len": 5,
        "mem_len": 7,
        "init_std": 0.5,
        "dropout": 0.0,
        "dropatt": 0.0,
    }
    return TransfoXLLMHeadModel(TransfoXLConfig(**{**sizes, **config}))


def some_text(tokens: int) -> Any:
    return np.random.default_rng(0).integers(0, 12, tokens).astype(np.uint16)


def losses(rows: SegmentRows, updates: int, objective: SegmentLoss, model: Any, first: int = 0) -> list[float]:
    plan = SegmentPlan(len(rows), 3)
    found = []
    for (part,) in plan.updates(first, updates, 0, 1, 1):
        found.append(objective.terms(model, collate([rows[i] for i in part.places]))["loss"].item())
    return found


@pytest.mark.parametrize("mem_len", [7, 0])
def test_the_loss_is_that_of_the_whole_stream(mem_len: int) -> None:
    """Segment after segment with the model's own memory, and anew in the next epoch."""
    model = tiny_model(mem_len=mem_len)
    rows = SegmentRows(some_text(3 * 18), 3, 5)  # segments of 5, 5, 5 and 2
    found = losses(rows, 8, SegmentLoss(), model)
    text = torch.from_numpy(some_text(3 * 18).astype(np.int64)).view(3, 18)
    mems: Any = None
    wanted = []
    for start in (0, 5, 10, 15):
        output = model(text[:, start : min(start + 5, 17)], mems, labels=text[:, start + 1 : start + 6])
        wanted.append(output.loss.mean().item())
        mems = output.mems
    assert found == pytest.approx(wanted + wanted, abs=1e-6)
    without = [losses(rows, update + 1, SegmentLoss(), model, first=update)[0] for update in range(4)]
    assert (without[1] == pytest.approx(wanted[1], abs=1e-6)) == (mem_len == 0)  # the memory matters


def test_memory_has_no_gradient_to_earlier_segments() -> None:
    model, objective = tiny_model(), SegmentLoss()
    rows = SegmentRows(some_text(3 * 18), 3, 5)
    losses(rows, 1, objective, model)
    ((segment, memories),) = objective.state().values()
    assert segment == 0
    assert not any(memory.requires_grad for memory in memories)


def test_a_saved_memory_goes_on(tmp_path: Any) -> None:
    model, rows = tiny_model(), SegmentRows(some_text(3 * 18), 3, 5)
    whole = losses(rows, 7, SegmentLoss(), model)
    begun, again = SegmentLoss(), SegmentLoss()
    losses(rows, 2, begun, model)
    torch.save(begun.state(), tmp_path / "state.pt")
    again.load_state(torch.load(tmp_path / "state.pt", weights_only=True))
    assert losses(rows, 7, again, model, first=2) == whole[2:]


def test_a_part_that_only_fills_up_does_not_move_the_memory() -> None:
    """With more parts than streams a process computes its first stream twice, the second time with a weight of 0."""
    model, rows = tiny_model(), SegmentRows(some_text(2 * 18), 2, 5)
    objective, once = SegmentLoss(), SegmentLoss()
    plan = SegmentPlan(len(rows), 2)
    for update in plan.updates(0, plan.updates_per_epoch * 2, 0, 2, 2):
        assert [part.counts for part in update] == [True, False]
        real, filler = (collate([rows[i] for i in part.places]) for part in update)
        wanted = once.terms(model, real)["loss"].item()
        assert objective.terms(model, real)["loss"].item() == wanted
        objective.terms(model, filler)
