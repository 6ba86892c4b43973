"""Asking a trained model about new inputs: classes of texts, tags of words, answers in paragraphs.

Which of them a model is for is told by the class that its configuration names; see `load_predictor`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np
import torch

from ..data.batches import InputRow, collate
from ..data.classification import TextExample, encode_texts, predictions_of
from ..data.columns import Sentence
from ..data.squad import SquadQuestion
from ..data.squad_answers import AnswerOptions, Candidate, best_answers
from ..data.squad_windows import encode_questions
from ..data.tokens import encode_sentences, predicted_tags
from ..models.family import family_of
from ..nn.values import whole_number
from .evaluation import Keep, logits_of_rows, logits_of_spans, logits_of_tokens, predict

if TYPE_CHECKING:
    from ..data.rows import Text
    from ..models.base import PreTrainedModel
    from ..tokenizers.base import PreTrainedTokenizer

TOKENS_PER_BATCH: Final = 2048
_DIGITS: Final = 6  # of probabilities; more is noise of the batches
_ROW: Final = 384  # tokens of a row with a paragraph, as published; longer ones pay only where paragraphs are long


class Predictor:
    """A model with the head of a task, and its tokenizer.

    Args:
        model: Put in evaluation mode; on a CPU its weights are packed (`fuse_for_inference`).
        tokenizer: The tokenizer that belongs to it.
        max_seq_length: Longest row in tokens, special ones included. By default what the model has positions for.
        tokens_per_batch: Tokens of a batch.

    Attributes:
        cut: How many inputs so far were too long and were cut.

    Raises:
        ValueError: A number is too small, or `max_seq_length` is more than the model has positions for.
    """

    #: Kind of head; see `Family.classes`.
    head: ClassVar[str]

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizer",
        *,
        max_seq_length: int | None = None,
        tokens_per_batch: int = TOKENS_PER_BATCH,
    ) -> None:
        config: Any = model.config  # of a family with such a head
        most = min(config.max_position_embeddings, tokenizer.model_max_length)
        if max_seq_length is not None and whole_number("max_seq_length", max_seq_length, 1) > most:
            raise ValueError(f"max_seq_length: {max_seq_length}, must be at most {most}, which the model was made for")
        self.model = model.eval()
        if model.device.type == "cpu":
            model.fuse_for_inference()
        self.tokenizer = tokenizer
        self.max_seq_length = max_seq_length or most
        self.tokens_per_batch = whole_number("tokens_per_batch", tokens_per_batch, 1)
        self.labels = [config.id2label[number] for number in range(config.num_labels)]
        self.cut = 0

    def _run(self, rows: Sequence[InputRow], keep: Keep) -> list[Any]:
        """What the model says of each row."""
        return predict(
            self.model,
            rows,
            keep,
            partial(collate, pad_token_id=self.tokenizer.pad_token_id or 0),
            tokens_per_batch=self.tokens_per_batch,
            description="window",
        )


class TextPredictor(Predictor):
    """Classes, or scores, of texts and pairs of texts."""

    head = "sequence_classification"

    def predict(self, texts: "Sequence[Text]") -> list[dict[str, Any]]:
        """For each text its `label`, the `probability` of that, and the `probabilities` of all labels, by label.

        A model of scores gives a `score` only.

        Raises:
            ValueError: The model says no number.
        """
        pairs = [(text, None) if isinstance(text, str) else text for text in texts]
        examples = [TextExample(str(number), *pair) for number, pair in enumerate(pairs)]
        labels = None if len(self.labels) == 1 else self.labels
        encoded = encode_texts(examples, self.tokenizer, self.max_seq_length, labels=labels)
        self.cut += encoded.truncated
        logits = self._run(encoded.rows, logits_of_rows)
        answers = predictions_of(logits, labels)
        if labels is None:
            return [{"score": round(answer, _DIGITS)} for answer in answers]
        found = []
        for scores, answer in zip(logits, answers, strict=True):
            shares = np.exp(scores.astype(np.float64) - scores.max())
            rounded = [round(share, _DIGITS) for share in (shares / shares.sum()).tolist()]
            best = int(answer)
            probabilities = dict(zip(labels, rounded, strict=True))
            found.append({"label": labels[best], "probability": rounded[best], "probabilities": probabilities})
        return found


class TagPredictor(Predictor):
    """Tags of words. No sentence is cut: one that is too long for a row is divided."""

    head = "token_classification"

    def predict(self, sentences: Sequence[Sentence]) -> list[list[str]]:
        """A tag for each word of each sentence; see `predicted_tags`."""
        rows, windows = encode_sentences(sentences, self.tokenizer, self.max_seq_length)
        return predicted_tags(self._run(rows, logits_of_tokens), windows, sentences, self.labels)


class AnswerPredictor(Predictor):
    """Answers in paragraphs, as parts of them.

    Args:
        model: See `Predictor`.
        tokenizer: See `Predictor`.
        max_seq_length: See `Predictor`; by default at most 384, as published.
        doc_stride: See `encode_questions`.
        max_query_length: See `encode_questions`.
        answers: How answers are chosen; None for the published values.
        **options: See `Predictor`.
    """

    head = "question_answering"

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizer",
        *,
        max_seq_length: int | None = None,
        doc_stride: int = 128,
        max_query_length: int = 64,
        answers: AnswerOptions | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, tokenizer, max_seq_length=max_seq_length, **options)
        if max_seq_length is None:
            self.max_seq_length = min(self.max_seq_length, _ROW)
        self._windows: dict[str, Any] = {"doc_stride": doc_stride, "max_query_length": max_query_length}
        answers = answers or AnswerOptions()
        # With two listed, the answer is among them, whichever the threshold prefers.
        self._listed = 1 if answers.n_best_size == 1 else None
        self._options = replace(answers, n_best_size=max(2, answers.n_best_size))

    def predict(self, questions: Sequence[SquadQuestion]) -> list[dict[str, Any]]:
        """For each question the `answer`, "" for none; its place, `start` and `end`; its `probability`; the `nbest`.

        Places are characters of the paragraph, the end not included, null for no answer. A probability is a share
        among the n best candidates.

        Args:
            questions: Questions with ids that differ.

        Raises:
            ValueError: A question leaves no room for its paragraph, or the model says no number.
        """
        features = encode_questions(questions, self.tokenizer, max_seq_length=self.max_seq_length, **self._windows)
        logits = self._run(features.rows, logits_of_spans)
        answers = best_answers(questions, features.windows, logits, self._options)
        found = []
        for question in questions:
            text, candidates = answers.predictions[question.id], answers.nbest[question.id]
            chosen = next(candidate for candidate in candidates if candidate.text == text)
            found.append({**_shown("answer", chosen), "nbest": [_shown("text", c) for c in candidates[: self._listed]]})
        return found


def _shown(name: str, candidate: Candidate) -> dict[str, Any]:
    return {
        name: candidate.text,
        "start": candidate.start,
        "end": candidate.end,
        "probability": round(candidate.probability, _DIGITS),
    }


AnyPredictor: TypeAlias = TextPredictor | TagPredictor | AnswerPredictor

#: Name of a task, as the training has it -> what predicts.
PREDICTORS: Final[dict[str, type[AnyPredictor]]] = {
    "classify": TextPredictor,
    "tokens": TagPredictor,
    "squad": AnswerPredictor,
}


def load_predictor(
    name_or_path: str,
    task: str | None = None,
    *,
    dtype: torch.dtype | str | None = None,
    device: torch.device | str | None = None,
    do_lower_case: bool | None = None,
    options: Callable[[str], dict[str, Any]] = lambda task: {},
    **place: Any,
) -> AnyPredictor:
    """Load a trained model and its tokenizer.

    Args:
        name_or_path: Folder of the model, or a name; see `from_pretrained`.
        task: One of `PREDICTORS`; None takes the one that the configuration tells, by the class of the saved model.
        dtype: Of the weights.
        device: Where to compute.
        do_lower_case: Whether to lower-case; None: as saved with the tokenizer.
        options: Gives arguments of the predictor for a task.
        **place: `cache_dir`, `revision`, `local_files_only`, as for `from_pretrained`.

    Raises:
        ValueError: The task is not told, or the model has no trained head for it.
        OSError: There is no such model.
    """
    family = family_of(name_or_path, **place)
    config = family.config_class.from_pretrained(name_or_path, **place)
    saved = [str(name) for name in getattr(config, "architectures", None) or ()]
    if task is None:
        task = next((each for each, kind in PREDICTORS.items() if _class_name(family, kind) in saved), None)
    if task is None:
        classes = [name for kind in PREDICTORS.values() if (name := _class_name(family, kind))]
        raise ValueError(
            f"{name_or_path}: the configuration names {', '.join(saved) or 'no class'} as its architecture, and "
            f"predictions need {', '.join(classes) or 'a head that this family lacks'}; say the task (--task "
            f"{', '.join(PREDICTORS)}) if the model has its head all the same"
        )
    kind = PREDICTORS[task]
    if not _class_name(family, kind):
        raise ValueError(f"{name_or_path}: is of {family.name}, which has no head for the task {task}")
    casing = {} if do_lower_case is None else {"do_lower_case": do_lower_case}
    tokenizer = family.load("tokenizer").from_pretrained(name_or_path, **place, **casing)
    model, info = family.load(kind.head).from_pretrained(
        name_or_path, dtype=dtype, device=device, output_loading_info=True, **place
    )
    if info["missing_keys"]:
        raise ValueError(
            f"{name_or_path}: has no trained head for the task {task} ({', '.join(info['missing_keys'][:3])} would be "
            f"new and random); train it first (pytorch_transformers train {task})"
        )
    return kind(model, tokenizer, **options(task))


def _class_name(family: Any, kind: type[AnyPredictor]) -> str:
    """Name of the family's class with the head; "" where it has none."""
    return str(family.classes.get(kind.head, "")).rpartition(":")[2]
