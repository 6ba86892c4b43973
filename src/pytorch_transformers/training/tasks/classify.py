"""Classes or scores of texts and pairs of texts: GLUE's nine tasks, and files of your own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from ...data.batches import InputRow
from ...data.classification import (
    EncodedTexts,
    TextExample,
    encode_texts,
    labels_of,
    predictions_of,
    read_texts,
    targets_of,
)
from ...data.glue import GlueTask
from ...data.metrics import compute_metrics
from ...files import write_text
from ...nn.losses import classification_loss, regression_loss
from ..evaluation import logits_of_rows
from ..objective import Objective, RowLoss
from ..task import Predict, Source, length_within, report_cut
from .choices import DEV_PREDICTIONS, PREDICTIONS

_SCORE_METRICS: Final = ("pearson", "spearman", "pearson_and_spearman")


class ClassifyTask:
    """Learn the label, or with `regression` the score, of each text. A task of GLUE, or files of your own.

    Args:
        glue: The task of GLUE, whose files are in `data_dir`.
        data_dir: Folder of GLUE's files.
        train_file: Your own examples to train with; TSV, CSV or JSON lines, by the ending.
        dev_file: Examples to evaluate on.
        test_file: Texts to predict, without labels.
        text_column: Name of the column of the texts in your own files; see `read_texts` for what is found without.
        text_pair_column: Of the second texts.
        label_column: Of the labels.
        regression: Whether the labels are scores.

    Raises:
        ValueError: Neither a task of GLUE with its folder nor a file is given, or both are.
    """

    head = "sequence_classification"
    family = "bert"
    lower_is_better = False
    keep = staticmethod(logits_of_rows)

    def __init__(
        self,
        *,
        glue: GlueTask | None = None,
        data_dir: Path | None = None,
        train_file: Path | None = None,
        dev_file: Path | None = None,
        test_file: Path | None = None,
        text_column: str | None = None,
        text_pair_column: str | None = None,
        label_column: str | None = None,
        regression: bool = False,
    ) -> None:
        files = {"train": train_file, "dev": dev_file, "test": test_file}
        if (glue is None) == all(file is None for file in files.values()):
            raise ValueError(
                "give either a task of GLUE (--task_name and --data_dir) or files of your own (--train_file, "
                "--dev_file, --test_file)"
            )
        if glue is not None and data_dir is None:
            raise ValueError(f"{glue.name} needs data_dir, the folder with its files")
        self._glue, self._data_dir, self._files = glue, data_dir, files
        self._columns = (text_column, text_pair_column, label_column)
        self._labels: tuple[str, ...] | None = glue.labels if glue else None
        self._regression = glue.labels is None if glue else regression
        self._outputs: list[int] | None = None  # of the model, in the order of the labels
        self._training = False
        self._examples: dict[str, list[TextExample]] = {}
        self._encoded: dict[str, EncodedTexts] = {}
        self._answers: dict[str, list[int] | list[float]] = {}
        names = _SCORE_METRICS if regression else ("accuracy",)
        self._metric_names = glue.metric_names if glue else names
        self._dev_splits = glue.dev_splits if glue else ("dev",)
        self._test_splits = glue.test_splits if glue else ("test",)
        self.metric = glue.best_metric if glue else names[-1]
        self.name = f"classify {glue.name if glue else (train_file or dev_file or test_file)}"

    def prepare(self, tokenizer: Any, source: Source, *, training: bool) -> None:
        """Note how to encode, and read the training data, which tell the labels."""
        self._tokenizer, self._length = tokenizer, source.max_seq_length
        self._training = training
        if training:
            examples = self._split("train")
            if self._labels is None and not self._regression:
                self._labels = labels_of(examples)

    def config(self) -> dict[str, Any]:
        """The labels, where they are known before the model is. One that is trained already has names of its own."""
        if self._regression:
            return {"num_labels": 1}
        if self._labels is None:
            return {}
        if not self._training:
            return {"num_labels": len(self._labels)}
        return {"num_labels": len(self._labels), "id2label": dict(enumerate(self._labels))}

    def adjust(self, model: Any) -> None:
        """Take the labels of a model that was trained on files of your own, and no more tokens than it does."""
        self._length = length_within(model, self._length)
        config = model.config
        if self._regression or (self._labels is None and config.num_labels == 1):
            self._regression = True
            self._metric_names = _SCORE_METRICS
            return
        names = tuple(config.id2label[number] for number in range(config.num_labels))
        if self._labels is None:
            self._labels = names
            return
        plain = [name.lower() for name in names]  # a model from elsewhere may have them in capitals, in another order
        if names != self._labels and sorted(plain) == sorted(label.lower() for label in self._labels):
            self._outputs = [plain.index(label.lower()) for label in self._labels]

    def check(self, *, evaluating: bool, predicting: bool) -> None:
        """Read development and test data; those to evaluate on have labels that the model knows."""
        if evaluating:
            for split in self._dev_splits:
                targets_of(self._split(split), self._labels)
        if predicting:
            for split in self._test_splits:
                self._split(split)

    def training_rows(self) -> Sequence[InputRow]:
        """The training examples as rows."""
        return self._rows("train")

    def objective(self) -> Objective:
        """Cross-entropy, or the squared error."""
        return RowLoss()

    def evaluate(self, predict: Predict) -> dict[str, float]:
        """GLUE's metrics, and the loss; those of MNLI's mismatched part end with `_mismatched`."""
        metrics = {}
        for split in self._dev_splits:
            logits = self._logits(predict, split)
            targets = targets_of(self._split(split), self._labels)
            self._answers[split] = predictions_of(logits, self._labels)
            scores = compute_metrics(self._metric_names, self._answers[split], targets)
            loss = regression_loss if self._regression else classification_loss
            scores["loss"] = loss(torch.from_numpy(np.stack(logits)), torch.tensor(targets)).item()
            metrics.update({name + split.removeprefix("dev"): value for name, value in scores.items()})
        return metrics

    def write_evaluation(self, folder: Path) -> None:
        """Write number, prediction and label of each development example."""
        lines = ["index\tprediction\tlabel"]
        for split, answers in self._answers.items():
            lines += [
                f"{example.guid}\t{self._text(answer)}\t{example.label}"
                for example, answer in zip(self._split(split), answers, strict=True)
            ]
        write_text(folder / DEV_PREDICTIONS, "\n".join([*lines, ""]))

    def predict(self, predict: Predict) -> list[Any]:
        """The answers for each test split."""
        return [(split, predictions_of(self._logits(predict, split), self._labels)) for split in self._test_splits]

    def write_predictions(self, predictions: list[Any], folder: Path) -> None:
        """Write what GLUE's server takes, or `predictions.tsv` for a file of your own."""
        for split, answers in predictions:
            if self._glue:
                self._glue.write_predictions(folder, self._split(split), answers, split)
            else:
                lines = [f"{number}\t{self._text(answer)}" for number, answer in enumerate(answers)]
                write_text(folder / PREDICTIONS, "\n".join(["index\tprediction", *lines, ""]))

    def _logits(self, predict: Predict, split: str) -> list["np.ndarray[Any, Any]"]:
        """What the model says of each row, in the order of the labels here."""
        logits = predict(self._rows(split))
        return logits if self._outputs is None else [row[self._outputs] for row in logits]

    def _text(self, answer: float) -> str:
        return f"{answer:.6g}" if self._labels is None else self._labels[int(answer)]

    def _split(self, split: str) -> list[TextExample]:
        if split not in self._examples:
            if self._glue:
                assert self._data_dir is not None
                self._examples[split] = self._glue.examples(self._data_dir, split)
            else:
                path, (a, b, label) = self._files[split], self._columns
                if path is None:
                    raise ValueError(f"{split}_file: missing (--{split}_file)")
                self._examples[split] = read_texts(path, text_a=a, text_b=b, label=label, labelled=split != "test")
        return self._examples[split]

    def _rows(self, split: str) -> Sequence[InputRow]:
        if split not in self._encoded:
            encoded = encode_texts(self._split(split), self._tokenizer, self._length, labels=self._labels)
            report_cut(encoded.truncated, len(encoded.rows), split, self._length)
            self._encoded[split] = encoded
        return self._encoded[split].rows
