"""What a task adds to the training of a model: its data, its head, its metrics."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from torch import Tensor

from ..data.batches import InputRow
from .objective import Objective
from .options import TrainingOptions
from .plan import BatchPlan

logger = logging.getLogger(__name__)

#: Runs the model over rows and gives what `Task.keep` keeps of each, in their order.
Predict: TypeAlias = Callable[[Sequence[InputRow]], list[Any]]


@dataclass(frozen=True, kw_only=True)
class Source:
    """The model that a training starts from.

    Attributes:
        model: Name, repository, folder, weights file, TensorFlow prefix or archive; see `from_pretrained`. None begins
            with new weights, which needs `config` and `tokenizer`.
        tokenizer: Where the tokenizer is, if not with the model; may be a vocabulary file.
        config: Configuration, if it is not beside the weights.
        do_lower_case: Whether to lower-case; None: as saved with the tokenizer.
        max_seq_length: Most tokens of an input, special ones included.
        cache_dir: Folder for downloads.
        revision: Branch, tag or commit of a repository.
        local_files_only: Whether to use no network.
    """

    model: str | None
    tokenizer: str | None = None
    config: str | None = None
    do_lower_case: bool | None = None
    max_seq_length: int = 128
    cache_dir: str | None = None
    revision: str | None = None
    local_files_only: bool = False

    @property
    def place(self) -> dict[str, Any]:
        """Where downloads go and come from, as arguments of `from_pretrained`."""
        return {"cache_dir": self.cache_dir, "revision": self.revision, "local_files_only": self.local_files_only}


def report_cut(cut: int, rows: int, split: str, max_seq_length: int) -> None:
    """Say how many inputs were too long."""
    if cut:
        logger.warning(
            "%s: %d of %d inputs are longer than max_seq_length, %d tokens, and are cut",
            split,
            cut,
            rows,
            max_seq_length,
        )


def length_within(model: Any, max_seq_length: int) -> int:
    """Most tokens of an input: `max_seq_length`, or what the model has positions for if that is less, which is said.

    Args:
        model: A model with `max_position_embeddings` in its configuration.
        max_seq_length: What was asked for.
    """
    most: int = model.config.max_position_embeddings
    if max_seq_length > most:
        logger.warning("max_seq_length: %d is more than the %d tokens that the model takes", max_seq_length, most)
    return min(max_seq_length, most)


@runtime_checkable
class ChecksData(Protocol):
    """A task that can tell before the training what is wrong with the data that are used after it."""

    def check(self, *, evaluating: bool, predicting: bool) -> None:
        """Read what an evaluation, and a prediction, will take; called after `adjust`.

        Raises:
            OSError: It can't be read.
            ValueError: It can't be used; the message says why.
        """


@runtime_checkable
class HasPlan(Protocol):
    """A task whose examples have an order of their own."""

    def plan(self, options: TrainingOptions) -> BatchPlan:
        """The order; called after `training_rows`."""


@runtime_checkable
class ScoresPredictions(Protocol):
    """A task whose data to predict may have answers."""

    def scores(self, predictions: list[Any]) -> dict[str, float]:
        """Metrics of what `Task.predict` gave; none where answers are not known."""


class Task(Protocol):
    """A task. `prepare` is called first; what else is asked for depends on what the run does.

    Attributes:
        name: For the record: "classify MRPC".
        head: Kind of model; see `Family.classes`.
        family: Name of the only family whose models have such a head here.
        metric: Which metric tells the best evaluation.
        lower_is_better: Whether a smaller value of it is better.
    """

    name: str
    head: str
    family: str
    metric: str
    lower_is_better: bool

    def keep(self, output: Any, batch: dict[str, Tensor]) -> Sequence[Any]:
        """What is kept of the model's output, for each row; one of the functions of `evaluation`."""

    def prepare(self, tokenizer: Any, source: Source, *, training: bool) -> None:
        """Read the data; the tokenizer may get the task's own tokens."""

    def config(self) -> Mapping[str, Any]:
        """Fields of the model's configuration that the task sets: `num_labels`, `id2label`."""

    def adjust(self, model: Any) -> None:
        """Change the loaded model: new tokens."""

    def training_rows(self) -> Sequence[InputRow]:
        """Rows with labels."""

    def objective(self) -> Objective:
        """What is minimised."""

    def evaluate(self, predict: Predict) -> dict[str, float]:
        """Metrics on the development data."""

    def write_evaluation(self, folder: Path) -> None:
        """Write what the last evaluation predicted; called in the first process."""

    def predict(self, predict: Predict) -> list[Any]:
        """Predictions for data without labels."""

    def write_predictions(self, predictions: list[Any], folder: Path) -> None:
        """Write them; called in the first process."""
