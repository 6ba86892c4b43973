"""What a training minimises: the loss of a model, as a mean over a batch however the batch is divided.

A model gives means: of its rows, or of those tokens that have a label. The mean of a whole batch is not the mean of the
means of its parts where the parts count different numbers of things; so an objective says what each mean is over, and
the loop weighs each part by its share. Then accumulation, and the number of processes, do not change the result.
"""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from torch import Tensor, nn

Batch: TypeAlias = dict[str, Tensor]


class Objective(Protocol):
    """The terms of a loss, by name."""

    def counts(self, batch: Batch) -> dict[str, int]:
        """Over how many things each term is a mean, in this batch. Called on the CPU, before the forward pass."""

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Run the model: each term as a mean [] over the things that `counts` counts, its coefficient included."""


class RowLoss:
    """The model's own loss, a mean over rows: classification, regression, multiple choice, spans."""

    def counts(self, batch: Batch) -> dict[str, int]:
        """All rows."""
        return {"loss": len(batch["input_ids"])}

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """`loss` of the model's output."""
        return {"loss": model(**batch).loss}


class LabelLoss:
    """Losses that are means over labelled things: tokens with a tag, masked words, words that follow.

    Args:
        labels: Argument with the labels -> name of the loss in the model's output. Labels below 0 are not counted.
        coefficients: Name of a loss -> what it is multiplied by in the sum; 1.0 where it is left out.
        shifted: Arguments whose first label of each row counts for nothing, since it has no token before it: those
            that GPT and GPT-2 shift by one.
        switches: Further arguments of every forward call.
    """

    def __init__(
        self,
        labels: Mapping[str, str],
        coefficients: Mapping[str, float] | None = None,
        shifted: tuple[str, ...] = (),
        **switches: Any,
    ) -> None:
        self._labels = dict(labels)
        self._coefficients = dict(coefficients or {})
        self._shifted = shifted
        self._switches = switches

    def decisive(self) -> dict[str, Any]:
        """What the trained weights depend on: a run is only resumed with the same."""
        return {"coefficients": self._coefficients}

    def counts(self, batch: Batch) -> dict[str, int]:
        """Labels of 0 and above, for each loss."""
        found = {}
        for argument, name in self._labels.items():
            labels = batch[argument][..., 1:] if argument in self._shifted else batch[argument]
            found[name] = int((labels >= 0).sum())
        return found

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """The losses of the model's output, each multiplied by its coefficient."""
        output = model(**batch, **self._switches)
        return {name: getattr(output, name) * self._coefficients.get(name, 1.0) for name in self._labels.values()}
