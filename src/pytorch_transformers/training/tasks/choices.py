"""What tasks of multiple choice share: every example has a number of choices, and one of them is right."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
import torch

from ...data.batches import InputRow
from ...data.choices import best_choices, choice_metrics
from ...files import write_text
from ...nn.losses import classification_loss
from ..task import Predict, Source, length_within
from .splits import Splits

PREDICTIONS: Final = "predictions.tsv"
DEV_PREDICTIONS: Final = "dev_predictions.tsv"


class _Example(Protocol):
    @property
    def label(self) -> int | None:
        """Number of the right choice, from 0; None where it is not known."""


Example = TypeVar("Example", bound=_Example)


class ChoiceTask(ABC, Generic[Example]):
    """Learn which choice is the right one.

    Args:
        splits: Where the data are.
        first: What the files call the first choice; predictions are written in the same way.
    """

    metric = "accuracy"
    lower_is_better = False

    def __init__(self, splits: Splits, first: int) -> None:
        self._splits, self._first = splits, first
        self._examples: dict[str, list[Example]] = {}
        self._encoded: dict[str, list[InputRow]] = {}
        self._answers: list[int] = []
        self._tokenizer: Any = None
        self._length = 0

    @abstractmethod
    def _read(self, split: str) -> list[Example]:
        """The examples of a split."""

    @abstractmethod
    def _encode(self, examples: Sequence[Example]) -> list[InputRow]:
        """Their rows."""

    def prepare(self, tokenizer: Any, source: Source, *, training: bool) -> None:
        """Note how to encode, and read the training data, so that what is wrong with them is said before the work."""
        self._tokenizer, self._length = tokenizer, source.max_seq_length
        if training:
            self._answered("train")

    def adjust(self, model: Any) -> None:
        """Change nothing, and take no more tokens than the model does."""
        self._length = length_within(model, self._length)

    def check(self, *, evaluating: bool, predicting: bool) -> None:
        """Read development and test data; those to evaluate on tell the right choices."""
        if evaluating:
            self._answered("dev")
        if predicting:
            self._split("test")

    def training_rows(self) -> Sequence[InputRow]:
        """The training examples as rows."""
        self._answered("train")
        return self._rows("train")

    def evaluate(self, predict: Predict) -> dict[str, float]:
        """How often the best choice is the right one, and the loss of the choice."""
        labels = self._answered("dev")
        scores = predict(self._rows("dev"))
        self._answers = best_choices(scores)
        loss = classification_loss(torch.from_numpy(np.stack(scores)), torch.tensor(labels)).item()
        return {**choice_metrics(scores, labels), "loss": loss}

    def write_evaluation(self, folder: Path) -> None:
        """Write number, prediction and label of each development example."""
        lines = [
            f"{number}\t{answer + self._first}\t{label + self._first}"
            for number, (answer, label) in enumerate(zip(self._answers, self._answered("dev"), strict=True))
        ]
        write_text(folder / DEV_PREDICTIONS, "\n".join(["index\tprediction\tlabel", *lines, ""]))

    def predict(self, predict: Predict) -> list[Any]:
        """The number of the best choice of each test example, from 0."""
        return best_choices(predict(self._rows("test")))

    def write_predictions(self, predictions: list[Any], folder: Path) -> None:
        """Write number and prediction of each test example."""
        lines = [f"{number}\t{answer + self._first}" for number, answer in enumerate(predictions)]
        write_text(folder / PREDICTIONS, "\n".join(["index\tprediction", *lines, ""]))

    def _answered(self, split: str) -> list[int]:
        """The right choices.

        Raises:
            ValueError: The file does not tell them.
        """
        labels = [example.label for example in self._split(split)]
        known = [label for label in labels if label is not None]
        if len(known) < len(labels):
            raise ValueError(f"{self._splits}: the {split} data do not tell the right choices; only test data may not")
        return known

    def _split(self, split: str) -> list[Example]:
        if split not in self._examples:
            self._examples[split] = self._read(split)
        return self._examples[split]

    def _rows(self, split: str) -> list[InputRow]:
        if split not in self._encoded:
            self._encoded[split] = self._encode(self._split(split))
        return self._encoded[split]
