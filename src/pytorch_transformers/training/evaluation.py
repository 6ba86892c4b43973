"""Running a model over rows: batches of similar length, results in the order of the rows, by one process or many."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from ..data.batches import InputRow, number_of_choices, number_of_tokens
from .precision import autocast

if TYPE_CHECKING:
    from accelerate import Accelerator

Collate: TypeAlias = Callable[[Sequence[InputRow]], dict[str, Tensor]]
#: Takes a model's output and the batch, and gives what is kept of each row, in the order of the batch.
Keep: TypeAlias = Callable[[Any, dict[str, Tensor]], Sequence[Any]]

#: What the model is not given: it would compute a loss that nobody reads.
LABELS: Final = (
    "labels",
    "start_positions",
    "end_positions",
    "mc_labels",
    "lm_labels",
    "masked_lm_labels",
    "next_sentence_label",
)


def logits_of_rows(output: Any, batch: dict[str, Tensor]) -> list[np.ndarray[Any, Any]]:
    """`logits` of each row, float32: [C] for classes and choices."""
    del batch
    return list(_as_numpy(output.logits))


def logits_of_tokens(output: Any, batch: dict[str, Tensor]) -> list[np.ndarray[Any, Any]]:
    """`logits` of the tokens of each row, padding left out: [T, C]."""
    return _without_padding(_as_numpy(output.logits), batch)


def logits_of_spans(output: Any, batch: dict[str, Tensor]) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Logits of start and end of each row, padding left out: two arrays [T]."""
    starts, ends = (_without_padding(_as_numpy(x), batch) for x in (output.start_logits, output.end_logits))
    return list(zip(starts, ends, strict=True))


def choice_logits(output: Any, batch: dict[str, Tensor]) -> list[np.ndarray[Any, Any]]:
    """`mc_logits` of each row of a model with two heads: [C]."""
    del batch
    return list(_as_numpy(output.mc_logits))


def predict(
    model: nn.Module,
    rows: Sequence[InputRow],
    keep: Keep,
    collate: Collate,
    *,
    tokens_per_batch: int = 4096,
    precision: str = "float32",
    accelerator: "Accelerator | None" = None,
    description: str = "evaluation",
) -> list[Any]:
    """What a model says of each row.

    Args:
        model: Put in evaluation mode for the time.
        rows: The model is not given the labels in them, `keep` is.
        keep: What is kept of an output.
        collate: Makes a batch of rows.
        tokens_per_batch: Most tokens of a batch, padding not counted; a longer row is a batch alone.
        precision: Of the computation; see `precision.autocast`.
        accelerator: Spreads the rows over its processes; None: this process has all.
        description: Name of the progress bar, which is off where stderr is no terminal.

    Returns:
        One result for each row, in their order; in every process all of them.
    """
    process, processes = (accelerator.process_index, accelerator.num_processes) if accelerator else (0, 1)
    batches = _batches(rows, tokens_per_batch)
    # All go through the same number of batches: with sharded weights a forward pass needs everybody.
    turns = range(process, process + -(-len(batches) // processes) * processes, processes) if batches else range(0)
    found: dict[int, Any] = {}
    device = accelerator.device if accelerator else next(model.parameters()).device
    was_training = model.training
    model.eval()
    try:
        with (
            torch.inference_mode(),
            tqdm(turns, desc=description, unit="batch", leave=False, disable=True if process else None) as bar,
        ):
            for turn in bar:
                places = batches[turn % len(batches)]
                batch = {name: tensor.to(device) for name, tensor in collate([rows[i] for i in places]).items()}
                given = {name: tensor for name, tensor in batch.items() if name not in LABELS}
                with autocast(precision, device):
                    output = model(**given)
                if turn < len(batches):
                    found.update(zip(places, keep(output, batch), strict=True))
    finally:
        model.train(was_training)
    if accelerator is not None and processes > 1:
        from accelerate.utils import gather_object

        for some in gather_object([found]):
            found.update(some)
    return [found[i] for i in range(len(rows))]


def _batches(rows: Sequence[InputRow], most_tokens: int) -> list[list[int]]:
    """Places of rows, longest first (what does not fit the memory fails at once), at most `most_tokens` together."""
    lengths = [number_of_tokens(row) * max(1, number_of_choices(row)) for row in rows]
    batches: list[list[int]] = []
    room = 0
    for place in sorted(range(len(rows)), key=lambda i: -lengths[i]):
        if not batches or lengths[place] > room:
            batches.append([])
            room = most_tokens
        batches[-1].append(place)
        room -= lengths[place]
    return batches


def _as_numpy(logits: Tensor) -> np.ndarray[Any, Any]:
    return logits.float().cpu().numpy()


def _without_padding(logits: np.ndarray[Any, Any], batch: dict[str, Tensor]) -> list[np.ndarray[Any, Any]]:
    lengths = batch["attention_mask"].sum(dim=1).tolist()
    return [row[:length].copy() for row, length in zip(logits, lengths, strict=True)]
