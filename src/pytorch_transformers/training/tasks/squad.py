"""Answers as parts of a paragraph: SQuAD 1.1 and 2.0, and files of your own in their form.

Source: google-research/bert, run_squad.py (Devlin et al. 2019, section 4.2); what is different is said in the modules
`data/squad*.py`. A question without an answer needs no option: where the file says `is_impossible`, that is followed.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from torch import Tensor, nn

from ...data.batches import InputRow
from ...data.squad import SquadQuestion, is_version_2, name_some, read_squad
from ...data.squad_answers import AnswerOptions, Answers, best_answers
from ...data.squad_metrics import squad_metrics
from ...data.squad_windows import SquadFeatures, encode_questions
from ...nn.losses import span_loss
from ...nn.values import whole_number
from ..evaluation import logits_of_spans
from ..objective import Batch, Objective, RowLoss
from ..task import Predict, Source

#: Files, as the messages and options call them.
_TRAIN: Final = "train_file"
_PREDICT: Final = "predict_file"


class SpanLoss(RowLoss):
    """The mean of the cross-entropies of first and last token, over all rows.

    A row that does not have the answer points to its class token, and so counts as the others. Scores at padding are
    left out, which the model's own loss counts in: with them, the loss of a row would depend on the length of the
    longest in its batch, and a batch computed in parts would not give the same as the whole.
    """

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Run the model without the places, and compare the scores of its tokens with them."""
        places = ("start_positions", "end_positions")
        output = model(**{name: tensor for name, tensor in batch.items() if name not in places})
        padding = batch["attention_mask"] == 0  # [B, T]
        logits = [x.float().masked_fill(padding, -math.inf) for x in (output.start_logits, output.end_logits)]
        return {"loss": span_loss(*logits, *(batch[name] for name in places))}


class SquadTask:
    """Learn to find the answer to a question in a paragraph.

    Args:
        train_file: Questions with answers to train with, a SQuAD file of either version.
        predict_file: Questions to evaluate on and to answer.
        doc_stride: See `encode_questions`.
        max_query_length: See `encode_questions`.
        answers: How answers are chosen; None for the published values.
        processes: How many processes turn paragraphs into tokens; see `encode_questions`.
        token_cache: A folder that keeps these tokens for later runs; see `encode_questions`.

    Raises:
        ValueError: No file is given, or a number is too small.
    """

    head = "question_answering"
    family = "bert"
    metric = "f1"
    lower_is_better = False
    keep = staticmethod(logits_of_spans)

    def __init__(
        self,
        *,
        train_file: Path | None = None,
        predict_file: Path | None = None,
        doc_stride: int = 128,
        max_query_length: int = 64,
        answers: AnswerOptions | None = None,
        processes: int = 1,
        token_cache: Path | None = None,
    ) -> None:
        if train_file is None and predict_file is None:
            raise ValueError(
                "give questions to train with (--train_file), questions to answer (--predict_file) or both"
            )
        self._files = {_TRAIN: train_file, _PREDICT: predict_file}
        self._windows = {
            "doc_stride": whole_number("doc_stride", doc_stride, 1),
            "max_query_length": whole_number("max_query_length", max_query_length, 1),
            "processes": whole_number("processes", processes, 1),
        }
        self._token_cache = token_cache
        self._options = answers or AnswerOptions()
        self._questions: dict[str, list[SquadQuestion]] = {}
        self._features: dict[str, SquadFeatures] = {}
        self._answers: Answers | None = None
        self.name = f"squad {train_file or predict_file}"

    def prepare(self, tokenizer: Any, source: Source, *, training: bool) -> None:
        """Note how to encode, and read the files that will be used: what is wrong with them shows before training."""
        self._tokenizer, self._length = tokenizer, source.max_seq_length
        for name, path in self._files.items():
            if path is not None and (training or name == _PREDICT):
                self._read(name)

    def config(self) -> dict[str, Any]:
        """Nothing: the head has the same two scores always."""
        return {}

    def adjust(self, model: Any) -> None:
        """Change nothing.

        Raises:
            ValueError: The rows would be longer than the model has positions for.
        """
        positions = model.config.max_position_embeddings
        if self._length > positions:
            raise ValueError(
                f"max_seq_length: {self._length}, must be at most {positions}, the positions of the model "
                "(max_position_embeddings)"
            )

    def check(self, *, evaluating: bool, predicting: bool) -> None:
        """Read the questions to answer; those to evaluate on have answers, or are said to have none."""
        if evaluating or predicting:
            questions = self._read(_PREDICT)
            if evaluating and not is_version_2(questions):
                open_ones = [question.id for question in questions if not question.answers]
                if open_ones:
                    raise ValueError(
                        f"{self._files[_PREDICT]}: no answer to compare with in {name_some(open_ones)}; leave do_eval "
                        "out (do_predict answers without it), or say is_impossible in the file"
                    )

    def training_rows(self) -> Sequence[InputRow]:
        """The windows of all training questions, with the places of their answers."""
        return self._encode(_TRAIN).rows

    def objective(self) -> Objective:
        """See `SpanLoss`."""
        return SpanLoss()

    def evaluate(self, predict: Predict) -> dict[str, float]:
        """Exact match and F1 in percent, as the official scripts; for version 2.0 also of both kinds of questions.

        Raises:
            ValueError: A question has no answer to be compared with.
        """
        self._answers = self._answer(predict)
        return self._scores(self._answers)

    def write_evaluation(self, folder: Path) -> None:
        """Write the answers, see `Answers.save`."""
        assert self._answers is not None
        self._answers.save(folder)

    def predict(self, predict: Predict) -> list[Any]:
        """The answers to `predict_file`; those of the evaluation right before, if there was one."""
        return [self._answers or self._answer(predict)]

    def write_predictions(self, predictions: list[Any], folder: Path) -> None:
        """Write them as the evaluation does."""
        (answers,) = predictions
        answers.save(folder)

    def scores(self, predictions: list[Any]) -> dict[str, float]:
        """The metrics of `evaluate`, if the file has answers."""
        (answers,) = predictions
        known = all(question.answers or question.is_impossible for question in self._read(_PREDICT))
        return self._scores(answers) if known else {}

    def _answer(self, predict: Predict) -> Answers:
        features = self._encode(_PREDICT)
        return best_answers(self._read(_PREDICT), features.windows, predict(features.rows), self._options)

    def _scores(self, answers: Answers) -> dict[str, float]:
        # The threshold was applied when the answers were chosen.
        odds = answers.null_odds or None
        return squad_metrics(self._read(_PREDICT), answers.predictions, odds, null_threshold=math.inf)

    def _read(self, name: str) -> list[SquadQuestion]:
        if name not in self._questions:
            path = self._files[name]
            if path is None:
                raise ValueError(f"{name}: missing (--{name})")
            questions = read_squad(path)
            if not questions:
                raise ValueError(f"{path}: has no questions")
            self._questions[name] = questions
        return self._questions[name]

    def _encode(self, name: str) -> SquadFeatures:
        if name not in self._features:
            self._features[name] = encode_questions(
                self._read(name),
                self._tokenizer,
                max_seq_length=self._length,
                training=name == _TRAIN,
                cache=self._token_cache,
                **self._windows,
            )
        return self._features[name]
