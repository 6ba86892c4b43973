"""Pre-training, from nothing or from a checkpoint: masked words and next sentences, or the words that follow.

| family | data | learns |
|---|---|---|
| bert | `create-pretraining-data`, or TFRecord files of the original | masked words, and next sentences |
| gpt2, openai_gpt | a token stream, which `create-token-stream` makes | the next token, in blocks or documents |
| transfo_xl | a token stream | the next token of segments, with the memory of those before |
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import Subset

from ...data.batches import InputRow
from ...data.pretraining import PretrainingDataset, StreamBlocks, TFRecordDataset, TokenStream, open_pretraining_data
from ...data.pretraining.vocabulary import Vocabulary
from ..documents import DocumentRows
from ..objective import LabelLoss, Objective
from ..options import TrainingOptions
from ..plan import BatchPlan
from ..segments import SegmentLoss, SegmentPlan, SegmentRows
from ..task import Predict, Source

#: A folder, or for records files and patterns divided by commas.
Place: TypeAlias = str | Path


class _Pretraining:
    """What the three share: one folder to train with and one to evaluate on, and no predictions.

    Args:
        data: To train with.
        dev_data: Held out, to evaluate on.
        most_dev_rows: Evaluate on the first so many; None on all.
    """

    metric = "loss"
    lower_is_better = True
    family = ""

    def __init__(self, *, data: Place | None, dev_data: Place | None, most_dev_rows: int | None = None) -> None:
        self._data, self._dev_data, self._most = data, dev_data, most_dev_rows
        self.name = f"pretrain {self.family}"

    def config(self) -> Mapping[str, Any]:
        """Nothing: sizes are those of the configuration."""
        return {}

    def write_evaluation(self, folder: Path) -> None:
        """There is nothing but the metrics."""

    def predict(self, predict: Predict) -> list[Any]:
        """There is nothing to predict."""
        raise ValueError("do_predict: pre-training predicts nothing; leave it out")

    def write_predictions(self, predictions: list[Any], folder: Path) -> None:
        """See `predict`."""

    def _places(self, training: bool) -> dict[bool, Place]:
        """Where the data to train with (True) and to evaluate on (False) are, those that this run uses.

        Raises:
            ValueError: They are missing.
        """
        places = {True: self._data} if training else {}
        if self._dev_data is not None or not training:
            places[False] = self._dev_data
        for part, place in places.items():
            if place is None:
                name = "data" if part else "dev_data"
                raise ValueError(
                    f"{name}: missing (--{name}); there is nothing to {'train with' if part else 'evaluate on'}"
                )
        return {part: place for part, place in places.items() if place is not None}

    def _first(self, rows: Any) -> Any:
        """Those of all rows that are evaluated, read one by one."""
        return Subset(rows, range(min(len(rows), self._most or len(rows))))


class MaskedWords(_Pretraining):
    """BERT: words behind masks, and whether a second text follows the first, where the data have it."""

    family = "bert"

    def prepare(self, tokenizer: Any, source: Source, *, training: bool) -> None:
        """Open the data; they tell whether there are next sentences.

        Raises:
            ValueError: They were made with another vocabulary, or one of them has next sentences and the other hasn't.
            OSError: They are missing or damaged.
        """
        self._opened: dict[bool, PretrainingDataset | TFRecordDataset] = {}
        for part, place in self._places(training).items():
            self._opened[part] = data = open_pretraining_data(place)
            if isinstance(data, PretrainingDataset) and data.vocabulary.sha256 != Vocabulary.of(tokenizer).sha256:
                raise _other_vocabulary(place, data.vocabulary.size, tokenizer)
        pairs = {part: "next_sentence_label" in data[0] for part, data in self._opened.items()}
        if len(set(pairs.values())) > 1:
            raise ValueError(
                f"{self._data} and {self._dev_data}: one of them has next sentences (next_sentence) and the other has "
                "none; make both alike"
            )
        self._pairs = all(pairs.values())
        self.head = "pre_training" if self._pairs else "masked_lm"

    def adjust(self, model: Any) -> None:
        """Check that the inputs fit.

        Raises:
            ValueError: They are longer than the model has positions for.
        """
        for data in self._opened.values():
            if isinstance(data, PretrainingDataset):
                _check_length(f"{data.folder}: inputs", data.index.options.max_seq_length, model.config)

    def training_rows(self) -> Sequence[InputRow]:
        """The instances."""
        return self._opened[True]  # type: ignore[return-value]  # a dataset: places and a length

    def objective(self) -> Objective:
        """Both losses, each a mean over what it labels; scores of other words are never computed."""
        if not self._pairs:
            return LabelLoss({"masked_lm_labels": "loss"}, output_logits=False)
        losses = {"masked_lm_labels": "masked_lm_loss", "next_sentence_label": "next_sentence_loss"}
        return LabelLoss(losses, output_logits=False)

    def keep(self, output: Any, batch: dict[str, Tensor]) -> Sequence[Any]:
        """Of each row: loss, hits and number of masked words; loss and hit of the next sentence."""
        logits = output.prediction_logits if self._pairs else output.logits
        words = _sums(logits, batch["masked_lm_labels"])
        if not self._pairs:
            return list(words.cpu().numpy())
        labels = batch["next_sentence_label"].reshape(-1, 1)
        pairs = _sums(output.seq_relationship_logits[:, None], labels)
        return list(torch.cat([words, pairs[:, :2]], dim=1).cpu().numpy())

    def evaluate(self, predict: Predict) -> dict[str, float]:
        """Loss and accuracy of masked words and of next sentences."""
        rows = self._first(self._opened[False])
        kept = np.stack(predict(rows)).sum(axis=0, dtype=np.float64)
        words = max(kept[2], 1.0)
        metrics = {"masked_lm_loss": kept[0] / words, "masked_lm_accuracy": kept[1] / words}
        if self._pairs:
            metrics.update(next_sentence_loss=kept[3] / len(rows), next_sentence_accuracy=kept[4] / len(rows))
        loss = metrics["masked_lm_loss"] + metrics.get("next_sentence_loss", 0.0)
        return {"loss": float(loss), **{name: float(value) for name, value in metrics.items()}}


class _OfStreams(_Pretraining):
    """What causal models share: token streams, made with the vocabulary of the tokenizer."""

    head = "language_model"

    def prepare(self, tokenizer: Any, source: Source, *, training: bool) -> None:
        """Open the streams, and note how many tokens a model is given at once.

        Raises:
            ValueError: They were made with another vocabulary.
            OSError: They are missing or damaged.
        """
        self._length = source.max_seq_length
        self._streams: dict[bool, TokenStream] = {}
        for part, place in self._places(training).items():
            self._streams[part] = stream = TokenStream(place)
            if stream.index.vocab_size != len(tokenizer):
                raise _other_vocabulary(place, stream.index.vocab_size, tokenizer)


class NextTokens(_OfStreams):
    """GPT-2 and OpenAI GPT: the next token, in blocks of a stream.

    Args:
        family: "gpt2" or "openai_gpt".
        data: Folder of a token stream.
        dev_data: Another, held out.
        most_dev_rows: Evaluate on the first so many blocks.
        whole_documents: Whether the rows are documents and parts of them, and not blocks that go on from one document
            to the next.
    """

    def __init__(self, family: str, *, whole_documents: bool = False, **given: Any) -> None:
        self.family = family
        super().__init__(**given)
        self._whole = whole_documents

    def adjust(self, model: Any) -> None:
        """Check that blocks fit.

        Raises:
            ValueError: They are longer than the model has positions for.
        """
        _check_length("max_seq_length: blocks", self._length, model.config)

    def _rows(self, training: bool) -> DocumentRows | StreamBlocks:
        if self._whole:
            return DocumentRows(self._streams[training], self._length)
        # Blocks overlap by a token in evaluation: each token but the very first is scored once.
        return StreamBlocks(self._streams[training], self._length, stride=None if training else self._length - 1)

    def training_rows(self) -> Sequence[InputRow]:
        """The blocks, or the documents."""
        return self._rows(training=True)  # type: ignore[return-value]  # a dataset: places and a length

    def objective(self) -> Objective:
        """Mean over all tokens that have one before them; no scores are kept, and padding is not computed."""
        cache: dict[str, Any] = {"use_cache": False} if self.family == "gpt2" else {}
        return LabelLoss({"labels": "loss"}, shifted=("labels",), output_logits=False, **cache)

    def keep(self, output: Any, batch: dict[str, Tensor]) -> Sequence[Any]:
        """Of each row: loss, hits and number of tokens."""
        return list(_sums(output.logits[:, :-1], batch["labels"][:, 1:]).cpu().numpy())

    def evaluate(self, predict: Predict) -> dict[str, float]:
        """Loss of a token, perplexity and accuracy."""
        rows = self._first(self._rows(training=False))
        loss, hits, tokens = np.stack(predict(rows)).sum(axis=0, dtype=np.float64)
        return {"loss": float(loss / tokens), "perplexity": math.exp(loss / tokens), "accuracy": float(hits / tokens)}


class NextWords(_OfStreams):
    """Transformer-XL: the next token of each segment, with the memory of the segments before it.

    Args:
        data: Folder of a token stream.
        dev_data: Another, held out.
        most_dev_rows: Evaluate on the first so many tokens.
        streams: How many streams, the batch size of the training.
    """

    family = "transfo_xl"

    def __init__(self, *, streams: int, **given: Any) -> None:
        super().__init__(**given)
        self._number = streams

    def adjust(self, model: Any) -> None:
        """Keep the model for evaluation, which reads a text in order."""
        self._model = model

    def training_rows(self) -> Sequence[InputRow]:
        """The segments of all streams, those that belong to one update next to each other."""
        self._segments = SegmentRows(self._streams[True].ids, self._number, self._length)
        return self._segments  # type: ignore[return-value]  # places and a length

    def plan(self, options: TrainingOptions) -> BatchPlan:
        """The order of the text."""
        return SegmentPlan(len(self._segments), self._number)

    def objective(self) -> Objective:
        """Mean over all tokens, the memory carried from update to update."""
        return SegmentLoss()

    def keep(self, output: Any, batch: dict[str, Tensor]) -> Sequence[Any]:
        """Not used: `evaluate` reads the text with a memory."""
        raise NotImplementedError

    def evaluate(self, predict: Predict) -> dict[str, float]:
        """Loss of a token and perplexity, with the model's own lengths. Every process computes all of it."""
        from ...models.transfo_xl.evaluation import evaluate

        ids = torch.from_numpy(self._streams[False].ids[: self._most].astype(np.int64))
        was_training = self._model.training
        try:
            found = evaluate(self._model.eval(), ids, tgt_len=self._length)
        finally:
            self._model.train(was_training)
        return {"loss": found.loss / found.tokens, "perplexity": found.value}


def _other_vocabulary(place: Place, size: int, tokenizer: Any) -> ValueError:
    return ValueError(
        f"{place}: made with another vocabulary, of {size} tokens; this tokenizer has {len(tokenizer)}. Use the "
        "tokenizer that the data were made with"
    )


def _check_length(what: str, length: int, config: Any) -> None:
    most = config.max_position_embeddings
    if length > most:
        raise ValueError(f"{what} of {length} tokens are too long: the model has {most} positions; make them shorter")


def _sums(logits: Tensor, labels: Tensor) -> Tensor:
    """[B, 3] in float64: loss, hits and number of the labels of each row; those below 0 do not count."""
    at = labels >= 0
    chosen, wanted = logits[at].float(), labels[at]
    loss = F.cross_entropy(chosen, wanted, reduction="none")
    hits = (chosen.argmax(dim=-1) == wanted).float()
    values = torch.stack([loss, hits, torch.ones_like(loss)], dim=1).double()
    return torch.zeros(len(labels), 3, dtype=torch.float64, device=labels.device).index_add(
        0, at.nonzero()[:, 0], values
    )
