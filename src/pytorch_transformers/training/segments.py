"""Training of Transformer-XL: a text is read in order, and the model remembers the segments before.

The text is cut into B streams of equal length, and an update takes the next segment of each. Source:
kimiyoung/transformer-xl, pytorch/data_utils.py, LMOrderedIterator, and train.py.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from .objective import Batch
from .plan import BatchPlan

#: "No segment yet", the number before that of the first.
_NONE: Final = -1


class SegmentRows:
    """Segments of B streams of a text; place `k * B + b` is segment k of stream b.

    A row holds `input_ids` and `labels`, the same one token later, and the numbers of its `stream` and `segment`. The
    last segment may be shorter, and fewer than B tokens at the end are left out.

    Args:
        ids: The text, [n].
        streams: B.
        length: Tokens of a segment.

    Raises:
        ValueError: The text is too short for two tokens in each stream.
    """

    def __init__(self, ids: npt.NDArray[Any], streams: int, length: int) -> None:
        steps = len(ids) // streams
        if steps < 2:
            raise ValueError(
                f"{len(ids)} tokens are too few for {streams} streams of two; give more text, or a smaller "
                "train_batch_size"
            )
        self._rows = ids[: steps * streams].reshape(streams, steps)
        self._length = length
        self._segments = -(-(steps - 1) // length)
        self._streams = streams

    def __len__(self) -> int:
        return self._segments * self._streams

    def __getitem__(self, place: int) -> dict[str, Any]:
        segment, stream = divmod(place, self._streams)
        start = segment * self._length
        row = self._rows[stream, start : start + self._length + 1].astype(np.int64).tolist()
        return {"input_ids": row[:-1], "labels": row[1:], "stream": stream, "segment": segment}


class SegmentPlan(BatchPlan):
    """The order of a text: the same in every epoch, and nothing at random.

    Args:
        rows: Number of segments of all streams.
        streams: B.
    """

    def __init__(self, rows: int, streams: int) -> None:
        super().__init__(rows, streams, seed=0)

    def batches(self, epoch: int) -> tuple[Tensor, ...]:
        """The segments in order."""
        del epoch
        return torch.arange(self.examples).split(self.batch_size)


class SegmentLoss:
    """Mean loss of a token, each stream with the memory that its last segment left.

    A part of an update has the same streams in every update, so its memory is kept under its first stream.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[int, list[Tensor]]] = {}

    def counts(self, batch: Batch) -> dict[str, int]:
        """All tokens."""
        return {"loss": int((batch["labels"] >= 0).sum())}

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Run the model, and remember."""
        labels, stream, segment = batch["labels"], int(batch["stream"][0]), int(batch["segment"][0])
        last, memories = self._kept.get(stream, (_NONE, []))
        goes_on = segment == last + 1 and memories
        before = [memory.to(labels.device) for memory in memories] if goes_on else None
        output = model(batch["input_ids"], before, labels=labels, return_dict=True)
        # A part that is there for its weight of 0 alone repeats a stream (`plan.Part`), which must not go on twice.
        if segment != last:
            self._kept[stream] = segment, list(output.mems or ())  # without gradients
        return {"loss": output.loss.sum() / (labels >= 0).sum().clamp(min=1)}

    def state(self) -> dict[int, tuple[int, list[Tensor]]]:
        """The memories, for a checkpoint: under the first stream of each part the number of its last segment, too."""
        return {
            stream: (segment, [memory.cpu() for memory in memories])
            for stream, (segment, memories) in self._kept.items()
        }

    def load_state(self, state: dict[int, tuple[int, list[Tensor]]]) -> None:
        """Go on with memories of a checkpoint; they go where the model is when they are used."""
        self._kept = dict(state)
