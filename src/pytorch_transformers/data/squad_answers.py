"""From the scores of the windows to one answer for each question, a list of the next best ones, and their files.

Source: google-research/bert, run_squad.py (Devlin et al. 2019): which spans are looked at, in which order, and the
files. Different from it: an answer is the exact part of the paragraph that its tokens cover; and where none of the
best-scored places makes a span, all of them are tried, so that a paragraph with a word in it always gives an answer.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..files import write_text
from ..nn.values import real_number, whole_number
from .squad import SquadQuestion, is_version_2
from .squad_windows import Window

#: Names of the files that `Answers.save` writes, as published.
PREDICTIONS_NAME: Final = "predictions.json"
NBEST_NAME: Final = "nbest_predictions.json"
NULL_ODDS_NAME: Final = "null_odds.json"

#: Scores of the tokens of a window as first and as last token of the answer: [T], [T].
Logits = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class AnswerOptions:
    """How answers are chosen.

    Attributes:
        n_best_size: How many answers to list for each question, and of how many first and last tokens of each window
            spans are made.
        max_answer_length: Longest answer in tokens.
        null_score_diff_threshold: The empty answer is given where its score is more than this above that of the best
            other one; `best_f1_thresh` of `squad_metrics` is a value to try.
        version_2_with_negative: Whether the empty answer may be given; None as the questions say.

    Raises:
        ValueError: A number is none or too small.
    """

    n_best_size: int = 20
    max_answer_length: int = 30
    null_score_diff_threshold: float = 0.0
    version_2_with_negative: bool | None = None

    def __post_init__(self) -> None:
        whole_number("n_best_size", self.n_best_size, 1)
        whole_number("max_answer_length", self.max_answer_length, 1)
        real_number("null_score_diff_threshold", self.null_score_diff_threshold, -np.inf)


class Candidate(NamedTuple):
    """One answer that is possible.

    Fields: `text`, a part of the paragraph, or "" for no answer; `probability` among those listed for the question;
    `start_logit` and `end_logit`, the scores of its first and last token; `start` and `end`, its place in the
    paragraph in characters, end not included, None for no answer.
    """

    text: str
    probability: float
    start_logit: float
    end_logit: float
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Answers:
    """The answers to some questions, by their ids.

    Attributes:
        predictions: The answer; "" where there is none.
        nbest: The best candidates, best first. The empty answer is among them where it may be given.
        null_odds: How much the score of the empty answer is above that of the best other one, where it may be given.
    """

    predictions: dict[str, str] = field(default_factory=dict)
    nbest: dict[str, list[Candidate]] = field(default_factory=dict)
    null_odds: dict[str, float] = field(default_factory=dict)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write `predictions.json`, `nbest_predictions.json` and, if there are any, `null_odds.json`.

        They are what the official evaluation scripts read.

        Args:
            folder: Where to write them; it is made if it is not there.

        Raises:
            OSError: The disk refused a file.
        """
        shown = ("text", "probability", "start_logit", "end_logit")
        nbest = {
            name: [{key: getattr(candidate, key) for key in shown} for candidate in candidates]
            for name, candidates in self.nbest.items()
        }
        contents = {PREDICTIONS_NAME: self.predictions, NBEST_NAME: nbest}
        if self.null_odds:
            contents[NULL_ODDS_NAME] = self.null_odds
        for name, content in contents.items():
            # ASCII: paragraphs may have halves of surrogate pairs, which no encoding takes.
            write_text(Path(folder) / name, json.dumps(content, indent=4) + "\n")


class _Found(NamedTuple):
    """A span with its scores: row positions of its first and last token in a window; None for the empty answer."""

    window: Window | None
    first: int
    last: int
    start_logit: float
    end_logit: float


def best_answers(
    questions: Sequence[SquadQuestion],
    windows: Sequence[Window],
    predictions: Sequence[Logits],
    options: AnswerOptions | None = None,
) -> Answers:
    """Choose the answers.

    Args:
        questions: The questions.
        windows: The windows that `encode_questions` made of them.
        predictions: For each window the scores of its tokens as first and as last one of the answer, without padding.
        options: How to choose; None for the published values.

    Raises:
        ValueError: There are not as many predictions as windows, or not as many scores as tokens; a score is not
            finite; a question has no window.
    """
    options = options or AnswerOptions()
    if len(predictions) != len(windows):
        raise ValueError(f"predictions: {len(predictions)} for {len(windows)} windows; each window needs its own")
    groups: list[list[tuple[Window, Logits]]] = [[] for _ in questions]
    for window, (starts, ends) in zip(windows, predictions, strict=True):
        logits = np.asarray(starts, dtype=np.float64), np.asarray(ends, dtype=np.float64)
        _check(window, logits, questions[window.question].id)
        groups[window.question].append((window, logits))
    may_be_none = options.version_2_with_negative
    if may_be_none is None:
        may_be_none = is_version_2(questions)
    answers = Answers()
    for question, group in zip(questions, groups, strict=True):
        if not group:
            raise ValueError(f"question {question.id!r} has no window; was it left out of rows made for training?")
        nbest, best, empty = _choose(question, group, options, may_be_none)
        text = nbest[0].text
        if empty is not None:
            odds = empty.start_logit + empty.end_logit - (best.start_logit + best.end_logit if best else 0.0)
            text = best.text if best and odds <= options.null_score_diff_threshold else ""
            answers.null_odds[question.id] = odds
        answers.predictions[question.id] = text
        answers.nbest[question.id] = nbest
    return answers


def _check(window: Window, logits: Logits, name: str) -> None:
    for scores in logits:
        if scores.shape != (window.length,):
            raise ValueError(
                f"predictions: scores of shape {scores.shape} for a window of question {name!r} with {window.length} "
                "tokens; each token needs a score, and padding none"
            )
        if not np.isfinite(scores).all():
            raise ValueError(f"predictions: a score for question {name!r} is infinite or no number (nan)")


def _choose(
    question: SquadQuestion, group: list[tuple[Window, Logits]], options: AnswerOptions, may_be_none: bool
) -> tuple[list[Candidate], Candidate | None, Candidate | None]:
    """The candidates to list; the best that has a text, if one has; and the empty one, if it may be given."""
    listed: dict[str, Candidate] = {}
    best: Candidate | None = None
    for found in _ranked(group, options, may_be_none):
        if len(listed) >= options.n_best_size and (best or not may_be_none):
            break
        candidate = _candidate(question, found)
        if len(listed) < options.n_best_size:
            listed.setdefault(candidate.text, candidate)
        if candidate.text and best is None:
            best = candidate
    empty = None
    if may_be_none or not listed:  # not among the best, it is listed last
        empty = listed.setdefault("", _candidate(question, _empty(group) if may_be_none else _Found(None, 0, 0, 0, 0)))
    totals = np.array([candidate.start_logit + candidate.end_logit for candidate in listed.values()])
    shares = np.exp(totals - totals.max())
    shares /= shares.sum()
    nbest = [
        candidate._replace(probability=float(share)) for candidate, share in zip(listed.values(), shares, strict=True)
    ]
    return nbest, best, empty if may_be_none else None


def _candidate(question: SquadQuestion, found: _Found) -> Candidate:
    if found.window is None:
        return Candidate("", 0.0, found.start_logit, found.end_logit)
    window = found.window
    shift = window.span.first - window.offset
    start, end = window.paragraph.characters_of(found.first + shift, found.last + shift)
    return Candidate(question.context[start:end], 0.0, found.start_logit, found.end_logit, start, end)


def _empty(group: list[tuple[Window, Logits]]) -> _Found:
    """The empty answer, with the scores of the window that says least for it; the first of equals."""
    scores = [(float(starts[window.cls]), float(ends[window.cls])) for window, (starts, ends) in group]
    return _Found(None, 0, 0, *min(scores, key=sum))


def _ranked(group: list[tuple[Window, Logits]], options: AnswerOptions, may_be_none: bool) -> Iterator[_Found]:
    """Spans of all windows of a question, the empty answer among them; best score first, of equals the first found."""
    spans = [_spans(window, logits, options, options.n_best_size) for window, logits in group]
    if not any(len(firsts) for firsts, _ in spans):
        spans = [_spans(window, logits, options, window.length) for window, logits in group]
    counts = [len(firsts) for firsts, _ in spans]
    owners = np.repeat(np.arange(len(group)), counts)
    firsts, lasts = (np.concatenate(parts) for parts in zip(*spans, strict=True))
    totals = [starts[i] + ends[j] for (_, (starts, ends)), (i, j) in zip(group, spans, strict=True)]
    empty = [_empty(group)] if may_be_none else []
    scores = np.concatenate([*totals, [found.start_logit + found.end_logit for found in empty]])
    for place in np.argsort(-scores, kind="stable").tolist():
        if place == len(owners):
            yield empty[0]
            continue
        window, (starts, ends) = group[owners[place]]
        first, last = int(firsts[place]), int(lasts[place])
        yield _Found(window, first, last, float(starts[first]), float(ends[last]))


def _spans(
    window: Window, logits: Logits, options: AnswerOptions, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row positions of the first and of the last tokens of spans, of the `most` best-scored places of each.

    A span is in the paragraph, no longer than allowed, and begins with a token that has its best window here.
    """
    firsts, lasts = (np.argsort(-scores, kind="stable")[:most] for scores in logits)
    may_begin, may_end = np.zeros((2, window.length), dtype=bool)
    document = slice(window.offset, window.offset + len(window.span.best))
    may_begin[document], may_end[document] = window.span.best, True
    firsts, lasts = firsts[may_begin[firsts]], lasts[may_end[lasts]]
    length = lasts[None] - firsts[:, None] + 1
    rows, columns = np.nonzero((length > 0) & (length <= options.max_answer_length))
    return firsts[rows], lasts[columns]
