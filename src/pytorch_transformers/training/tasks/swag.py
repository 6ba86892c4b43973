"""SWAG: which of four endings goes on from a sentence; also other data in its columns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ...data.batches import InputRow
from ...data.swag import SwagExample, encode_swag, read_swag
from ..evaluation import logits_of_rows
from ..objective import Objective, RowLoss
from .choices import ChoiceTask
from .splits import Splits

FILES: Final = {"train": "train.csv", "dev": "val.csv", "test": "test.csv"}


class SwagTask(ChoiceTask[SwagExample]):
    """Learn which ending goes on from a sentence.

    Args:
        data_dir: Folder with `train.csv`, `val.csv` and `test.csv`, as published.
        train_file: Examples to train with, in place of the folder's.
        dev_file: Examples to evaluate on.
        test_file: Examples to predict, without labels.

    Raises:
        ValueError: Neither the folder nor a file is given.
    """

    head = "multiple_choice"
    family = "bert"
    keep = staticmethod(logits_of_rows)

    def __init__(
        self,
        *,
        data_dir: Path | None = None,
        train_file: Path | None = None,
        dev_file: Path | None = None,
        test_file: Path | None = None,
    ) -> None:
        splits = Splits({"train": train_file, "dev": dev_file, "test": test_file}, data_dir, FILES)
        super().__init__(splits, first=0)
        self.name = f"swag {splits}"

    def config(self) -> dict[str, Any]:
        """Nothing: the head scores one choice, however many there are."""
        return {}

    def objective(self) -> Objective:
        """Cross-entropy over the choices."""
        return RowLoss()

    def _read(self, split: str) -> list[SwagExample]:
        return read_swag(self._splits.path(split))

    def _encode(self, examples: Sequence[SwagExample]) -> list[InputRow]:
        return encode_swag(examples, self._tokenizer, self._length)
