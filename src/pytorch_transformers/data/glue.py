"""The nine tasks of GLUE (Wang et al. 2018) as a table: their files, columns, labels and scores.

The files are those of the benchmark: TSV without quoting, with a header except in CoLA's train.tsv and dev.tsv. Labels
are in the order of the published run_glue.py, so that models trained with it and with this agree on their outputs.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..files import write_text
from .classification import TextExample, examples_of, targets_of
from .metrics import Numbers, compute_metrics
from .tables import open_table

logger = logging.getLogger(__name__)

_USUAL_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "train": ("train.tsv",),
    "dev": ("dev.tsv",),
    "test": ("test.tsv",),
}
#: Names of splits that mean another one.
_SPLIT_ALIASES: Final = {"dev_matched": "dev", "test_matched": "test"}


@dataclass(frozen=True)
class GlueTask:
    """A task of GLUE.

    Attributes:
        name: Its name, as GLUE writes it.
        text_a: Column of the text, or of the first one.
        text_b: Column of the second text; None where there is one text.
        label: Column of the label or score.
        labels: The labels in the order of the model's outputs; None for a score (regression).
        metric_names: The scores that are reported, see `METRICS`.
        best_metric: The one that says which checkpoint is best: GLUE's own score of the task.
        files: Split -> names that its file may have. Other splits than "train", "dev" and "test": MNLI's mismatched.
        columns: Names of the columns of labelled files that have no header.
        guid: Column with the numbers of the rows, in the files that have it.
        skips_ragged: Whether rows with more or fewer values than columns are passed over, with a warning, as the
            published script does for QQP, whose file has such rows; elsewhere they are an error.
        submissions: Split -> name of the file of predictions that the benchmark takes.
    """

    name: str
    text_a: str
    text_b: str | None
    label: str
    labels: tuple[str, ...] | None
    metric_names: tuple[str, ...] = ("accuracy",)
    best_metric: str = "accuracy"
    files: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _USUAL_FILES, hash=False)
    columns: tuple[str, ...] | None = None
    guid: str = "index"
    skips_ragged: bool = False
    submissions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def dev_splits(self) -> tuple[str, ...]:
        """The splits to evaluate on, the one that chooses the best checkpoint first."""
        return tuple(split for split in self.files if split.startswith("dev"))

    @property
    def test_splits(self) -> tuple[str, ...]:
        """The splits to predict for a submission."""
        return tuple(split for split in self.files if split.startswith("test"))

    def file(self, folder: str | os.PathLike[str], split: str) -> Path:
        """The file of a split.

        Args:
            folder: The folder of the task.
            split: A key of `files`; MNLI's may also be called "dev_matched" and "test_matched".

        Raises:
            FileNotFoundError: It is not there; the message says what the folder should hold.
            ValueError: The task has no such split.
        """
        names = self.files[self._split(split)]
        for name in names:
            if (path := Path(folder, name)).is_file():
                return path
        every = ", ".join(" or ".join(names) for names in self.files.values())
        raise FileNotFoundError(f"no {' or '.join(names)} in {folder}; the folder of {self.name} should hold {every}")

    def _split(self, split: str) -> str:
        name = _SPLIT_ALIASES.get(split, split) if len(self.dev_splits) > 1 else split
        if name not in self.files:
            raise ValueError(f"{self.name} has no split {split!r}; there are {', '.join(self.files)}")
        return name

    def examples(self, folder: str | os.PathLike[str], split: str) -> list[TextExample]:
        """The examples of a split, in the order of the file. White space around texts is dropped, as in SST-2.

        Test files have no labels; where one has (that of MRPC's original distribution), they are read.

        Args:
            folder: The folder of the task.
            split: As for `file`.

        Raises:
            OSError: The file is not there or cannot be read.
            ValueError: The task has no such split; a row is malformed, or its label is none of the task's.
        """
        path = self.file(folder, split)
        test = self._split(split) in self.test_splits
        table = open_table(path, kind="tsv", columns=None if test else self.columns)
        skipped: list[int] = []
        examples = examples_of(
            table,
            text_a=self.text_a,
            text_b=self.text_b,
            label=self.label if not test or self.label in table.columns else None,
            guid=self.guid if self.guid in table.columns else None,
            strip=True,
            skipped=skipped if self.skips_ragged else None,
        )
        if examples[0].label is not None:
            targets_of(examples, self.labels)  # a wrong label is found now rather than after the tokenizer's work
        if skipped:
            logger.warning(
                "%s: %d rows are left out, for they do not have %d columns; the first is line %d",
                *(path, len(skipped), len(table.columns), skipped[0]),
            )
        return examples

    def metrics(self, predictions: Numbers, references: Numbers) -> dict[str, float]:
        """The scores of predictions.

        Args:
            predictions: Numbers of labels, or scores; see `predictions_of`.
            references: What is right; see `targets_of`.

        Returns:
            A score for each of `metric_names`.

        Raises:
            ValueError: The two are not lists of numbers of one length, or are empty.
        """
        return compute_metrics(self.metric_names, predictions, references)

    def write_predictions(
        self,
        folder: str | os.PathLike[str],
        examples: Sequence[TextExample],
        predictions: Sequence[float],
        split: str = "test",
    ) -> Path:
        """Write predictions as the benchmark takes them: `index<TAB>prediction` under a header.

        Scores of STS-B are brought into their range, 0 to 5, and have three decimals.

        Args:
            folder: Where to write; the name of the file is given by the task and the split, such as MNLI-mm.tsv.
            examples: The examples of the split.
            predictions: The number of a label, or a score, for each example.
            split: The split, one of `test_splits`.

        Returns:
            The path of the file.

        Raises:
            OSError: The file cannot be written.
            ValueError: There is not one prediction for each example, one is no label, or it is no test split.
        """
        split = self._split(split)
        if split not in self.test_splits:
            raise ValueError(f"GLUE takes predictions of {' and '.join(self.test_splits)}, not of {split}")
        if len(predictions) != len(examples):
            raise ValueError(f"{len(predictions)} predictions for {len(examples)} examples; there must be one for each")
        lines = [f"{example.guid}\t{self._answer(value)}" for example, value in zip(examples, predictions, strict=True)]
        path = Path(folder, f"{self.submissions.get(split, self.name)}.tsv")
        write_text(path, "\n".join(["index\tprediction", *lines, ""]))
        return path

    def _answer(self, prediction: float) -> str:
        if self.labels is None:
            return f"{min(max(prediction, 0.0), 5.0):.3f}"
        if prediction not in range(len(self.labels)):
            raise ValueError(f"the prediction {prediction} is the number of none of the {len(self.labels)} labels")
        return self.labels[int(prediction)]


_BINARY: Final = ("0", "1")
_ENTAILMENT: Final = ("entailment", "not_entailment")
_ACCURACY_AND_F1: Final = ("accuracy", "f1", "accuracy_and_f1")

#: The tasks by their names in lower case, in the order of GLUE's paper.
GLUE_TASKS: Final[Mapping[str, GlueTask]] = {
    task.name.lower(): task
    for task in (
        GlueTask(
            *("CoLA", "sentence", None, "label", _BINARY, ("matthews", "accuracy"), "matthews"),
            columns=("source", "label", "mark", "sentence"),
        ),
        GlueTask("SST-2", "sentence", None, "label", _BINARY),
        GlueTask(
            *("MRPC", "#1 String", "#2 String", "Quality", _BINARY, _ACCURACY_AND_F1, "accuracy_and_f1"),
            files={  # the second names are those of the original distribution
                "train": ("train.tsv", "msr_paraphrase_train.txt"),
                "dev": ("dev.tsv",),
                "test": ("test.tsv", "msr_paraphrase_test.txt"),
            },
        ),
        GlueTask(
            *("STS-B", "sentence1", "sentence2", "score", None),
            *(("pearson", "spearman", "pearson_and_spearman"), "pearson_and_spearman"),
        ),
        GlueTask(
            *("QQP", "question1", "question2", "is_duplicate", _BINARY, _ACCURACY_AND_F1, "accuracy_and_f1"),
            guid="id",
            skips_ragged=True,
        ),
        GlueTask(
            *("MNLI", "sentence1", "sentence2", "gold_label", ("contradiction", "entailment", "neutral")),
            files={
                "train": ("train.tsv",),
                "dev": ("dev_matched.tsv",),
                "dev_mismatched": ("dev_mismatched.tsv",),
                "test": ("test_matched.tsv",),
                "test_mismatched": ("test_mismatched.tsv",),
            },
            submissions={"test": "MNLI-m", "test_mismatched": "MNLI-mm"},
        ),
        GlueTask("QNLI", "question", "sentence", "label", _ENTAILMENT),
        GlueTask("RTE", "sentence1", "sentence2", "label", _ENTAILMENT),
        GlueTask("WNLI", "sentence1", "sentence2", "label", _BINARY),
    )
}


def glue_task(name: str) -> GlueTask:
    """A task by its name; case and hyphens do not matter, so "sst2" and "STS-B" are names.

    Raises:
        ValueError: There is no such task; the message lists them.
    """
    plain = name.lower().replace("-", "").replace("_", "")
    for key, task in GLUE_TASKS.items():
        if key.replace("-", "") == plain:
            return task
    known = ", ".join(task.name for task in GLUE_TASKS.values())
    raise ValueError(f"GLUE has no task {name!r}; it has {known}")


def glue_metrics(task: str, predictions: Numbers, references: Numbers) -> dict[str, float]:
    """The scores of a task, see `GlueTask.metrics`.

    Args:
        task: Its name.
        predictions: Numbers of labels, or scores.
        references: What is right, likewise.

    Raises:
        ValueError: There is no such task, or as for `GlueTask.metrics`.
    """
    return glue_task(task).metrics(predictions, references)
