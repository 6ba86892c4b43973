"""Token classification: a tag for each word, such as the named entities of CoNLL-2003 and WNUT-17."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from ...data.batches import InputRow
from ...data.columns import Sentence, labels_of, read_sentences, write_tags
from ...data.entities import entity_metrics, entity_report
from ...data.tokens import IGNORED, Window, encode_sentences, predicted_tags
from ...files import write_text
from ...nn.losses import classification_loss
from ..evaluation import logits_of_tokens
from ..objective import LabelLoss, Objective
from ..task import Predict, Source, length_within
from .splits import Splits

logger = logging.getLogger(__name__)

FILES: Final = {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"}
PREDICTIONS: Final = "predictions.txt"
DEV_PREDICTIONS: Final = "dev_predictions.txt"
ENTITIES: Final = "entities.tsv"
_SCORES: Final = ("precision", "recall", "f1")


class TokensTask:
    """Learn the tag of each word, and find entities.

    Args:
        data_dir: Folder with `train.txt`, `dev.txt` and `test.txt`.
        train_file: Sentences to train with, in place of the folder's.
        dev_file: Sentences to evaluate on.
        test_file: Sentences to tag; only the words are read.
        iob2: Whether IOB1 tags are turned into IOB2 first, where each entity begins with `B-`.

    Raises:
        ValueError: Neither the folder nor a file is given.
    """

    head = "token_classification"
    family = "bert"
    metric = "f1"
    lower_is_better = False
    keep = staticmethod(logits_of_tokens)

    def __init__(
        self,
        *,
        data_dir: Path | None = None,
        train_file: Path | None = None,
        dev_file: Path | None = None,
        test_file: Path | None = None,
        iob2: bool = False,
    ) -> None:
        self._splits = Splits({"train": train_file, "dev": dev_file, "test": test_file}, data_dir, FILES)
        self._iob2 = iob2
        self.name = f"tokens {self._splits}"
        self._labels: list[str] = []
        self._sentences: dict[str, list[Sentence]] = {}
        self._encoded: dict[str, tuple[list[InputRow], list[Window]]] = {}
        self._tags: list[list[str]] = []

    def prepare(self, tokenizer: Any, source: Source, *, training: bool) -> None:
        """Note how to encode, and collect the tags of the training data, and of the development data if there are."""
        self._tokenizer, self._length = tokenizer, source.max_seq_length
        if training:
            splits = ["train", *(["dev"] if self._splits.given("dev") else [])]
            self._labels = labels_of(*map(self._split, splits))

    def config(self) -> dict[str, Any]:
        """The tags, where they are known before the model is."""
        if not self._labels:
            return {}
        return {"num_labels": len(self._labels), "id2label": dict(enumerate(self._labels))}

    def adjust(self, model: Any) -> None:
        """Take the tags of a trained model, and no more tokens than the model does."""
        self._length = length_within(model, self._length)
        if not self._labels:
            self._labels = [model.config.id2label[number] for number in range(model.config.num_labels)]

    def check(self, *, evaluating: bool, predicting: bool) -> None:
        """Read development and test data."""
        for split, used in (("dev", evaluating), ("test", predicting)):
            if used:
                self._split(split)

    def training_rows(self) -> Sequence[InputRow]:
        """The training sentences as rows."""
        return self._rows("train")[0]

    def objective(self) -> Objective:
        """Cross-entropy, a mean over words."""
        return LabelLoss({"labels": "loss"})

    def evaluate(self, predict: Predict) -> dict[str, float]:
        """Precision, recall and F1 of entities, accuracy of words, and the loss.

        A tag that the model does not know counts as one that was not found, and for nothing in the loss.
        """
        sentences = self._split("dev")
        rows, windows = self._rows("dev")
        logits = predict(rows)
        self._tags = predicted_tags(logits, windows, sentences, self._labels)
        metrics = entity_metrics(_gold(sentences), self._tags)
        return {**metrics, "loss": self._loss(logits, windows, _gold(sentences))}

    def write_evaluation(self, folder: Path) -> None:
        """Write the tags of the development data in columns, and the scores of each type of entity."""
        sentences = self._split("dev")
        write_tags(folder / DEV_PREDICTIONS, sentences, self._tags)
        lines = ["\t".join(("type", *_SCORES, "support"))]
        for kind, scores in entity_report(_gold(sentences), self._tags).items():
            values = [f"{scores[name]:.4f}" for name in _SCORES]
            lines.append("\t".join((kind, *values, f"{scores['support']:.0f}")))
        write_text(folder / ENTITIES, "\n".join([*lines, ""]))

    def predict(self, predict: Predict) -> list[Any]:
        """The tags of each test sentence."""
        rows, windows = self._rows("test")
        return predicted_tags(predict(rows), windows, self._split("test"), self._labels)

    def write_predictions(self, predictions: list[Any], folder: Path) -> None:
        """Write the words of the test data with their tags, in columns."""
        write_tags(folder / PREDICTIONS, self._split("test"), predictions)

    def _loss(
        self, logits: Sequence["np.ndarray[Any, Any]"], windows: Sequence[Window], gold: Sequence[Sequence[str]]
    ) -> float:
        """Cross-entropy of the words in the windows; 0 where no word is in one."""
        if not windows:
            return 0.0
        classes = {label: number for number, label in enumerate(self._labels)}
        scores = [row[list(window.places)] for row, window in zip(logits, windows, strict=True)]
        targets = [classes.get(gold[w.sentence][word], IGNORED) for w in windows for word in w.words]
        return classification_loss(torch.from_numpy(np.concatenate(scores)), torch.tensor(targets)).item()

    def _split(self, split: str) -> list[Sentence]:
        if split not in self._sentences:
            tagged = split != "test"
            path = self._splits.path(split)
            self._sentences[split] = read_sentences(path, tagged=tagged, iob2=self._iob2 and tagged)
        return self._sentences[split]

    def _rows(self, split: str) -> tuple[list[InputRow], list[Window]]:
        """Rows, with tags only where they are learned: those of evaluation may be unknown to the model."""
        if split not in self._encoded:
            sentences = self._split(split)
            labels = self._labels if split == "train" else None
            self._encoded[split] = encode_sentences(sentences, self._tokenizer, self._length, labels)
            windows = self._encoded[split][1]
            if divided := len(windows) - len({window.sentence for window in windows}):
                logger.warning(
                    "%s: sentences of more than max_seq_length, %d tokens, are divided: %d sentences are %d rows",
                    split,
                    self._length,
                    len(windows) - divided,
                    len(windows),
                )
        return self._encoded[split]


def _gold(sentences: Sequence[Sentence]) -> list[Sequence[str]]:
    """Their tags, which were read."""
    return [sentence.tags or () for sentence in sentences]
