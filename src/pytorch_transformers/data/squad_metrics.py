"""Exact match and F1 of answers, as the official evaluation scripts of SQuAD 1.1 and 2.0 compute them, in percent.

Source: Rajpurkar et al. 2016, section 6.1, and the scripts evaluate-v1.1 and evaluate-v2.0: answers are compared in
lower case, without ASCII punctuation and English articles, white space being one space; the best of the annotators'
answers counts. Surprising: words are what stands between spaces, so in Chinese F1 is little more than exact match; and
two answers of which nothing is left agree in version 2.0, while in 1.1 their F1 is 0.
"""

import logging
import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from .squad import SquadQuestion, is_version_2, name_some

logger = logging.getLogger(__name__)

_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Give an answer in the form in which it is compared."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def squad_metrics(
    questions: Sequence[SquadQuestion],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float] | None = None,
    *,
    null_threshold: float = 1.0,
) -> dict[str, float]:
    """Score predictions against the answers of the annotators.

    A question without a prediction scores 0, and a warning counts them.

    Args:
        questions: The questions with their answers.
        predictions: Id of a question -> answer, "" for none.
        null_odds: Id -> how sure the model is that there is no answer; for version 2.0 only.
        null_threshold: Above these odds a prediction counts as empty; the default of the official script, where it is
            called `na_prob_thresh`.

    Returns:
        `exact_match` and `f1` in percent, and `total`, the number of questions. For version 2.0 (where the official
        script calls `exact_match` just `exact`) also `HasAns_exact`, `HasAns_f1`, `HasAns_total` and the same with
        `NoAns_`, as far as there are such questions; with `null_odds` also `best_exact` and `best_f1`, what the best
        threshold on them would give, and the thresholds, `best_exact_thresh` and `best_f1_thresh`.

    Raises:
        ValueError: There are no questions; in version 1.1 a question has no answer; a prediction has no odds.
    """
    if not questions:
        raise ValueError("questions: there are none, so there is nothing to score")
    version_2 = is_version_2(questions)
    missing = [question.id for question in questions if question.id not in predictions]
    if missing:
        logger.warning("%s of %d have no prediction and score 0", name_some(missing), len(questions))
    exact, f1 = {}, {}
    for question in questions:
        golds = _golds(question, version_2)
        prediction = predictions.get(question.id)
        scores = [(0.0, 0.0)] if prediction is None else [_score(prediction, gold, version_2) for gold in golds]
        exact[question.id], f1[question.id] = (max(column) for column in zip(*scores, strict=True))
    if not version_2:
        return _means(exact, f1, list(exact), "exact_match", "")
    answerable = {question.id: bool(question.answers) for question in questions}
    odds = dict.fromkeys(exact, 0.0) if null_odds is None else null_odds
    without = [name for name in exact if name not in odds]
    if without:
        raise ValueError(f"null_odds: none for {name_some(without)}; each needs its own")
    kept_exact, kept_f1 = (
        {name: float(not answerable[name]) if odds[name] > null_threshold else score for name, score in raw.items()}
        for raw in (exact, f1)
    )
    metrics = _means(kept_exact, kept_f1, list(exact), "exact_match", "")
    for has, prefix in ((True, "HasAns_"), (False, "NoAns_")):
        if names := [name for name in exact if answerable[name] is has]:
            metrics |= _means(kept_exact, kept_f1, names, "exact", prefix)
    if null_odds is not None:
        for key, raw in (("best_exact", exact), ("best_f1", f1)):
            metrics[key], metrics[f"{key}_thresh"] = _best_threshold(raw, predictions, null_odds, answerable)
    return metrics


def _golds(question: SquadQuestion, version_2: bool) -> list[str]:
    """The answers in the form in which they are compared; for 2.0 without empty ones, or the empty one alone."""
    golds = [normalize_answer(answer.text) for answer in question.answers]
    if version_2:
        return [gold for gold in golds if gold] or [""]
    if not golds:
        raise ValueError(f"question {question.id!r} has no answer to score against, and its file no is_impossible")
    return golds


def _score(prediction: str, gold: str, version_2: bool) -> tuple[float, float]:
    """Exact match and F1 of a prediction and one normalised answer, each from 0 to 1."""
    prediction = normalize_answer(prediction)
    exact = float(prediction == gold)
    ours, theirs = prediction.split(), gold.split()
    if version_2 and not (ours and theirs):
        return exact, exact
    common = sum((Counter(ours) & Counter(theirs)).values())
    if not common:
        return exact, 0.0
    precision, recall = common / len(ours), common / len(theirs)
    return exact, 2 * precision * recall / (precision + recall)


def _means(
    exact: Mapping[str, float], f1: Mapping[str, float], names: list[str], exact_key: str, prefix: str
) -> dict[str, float]:
    return {
        f"{prefix}{exact_key}": 100.0 * sum(exact[name] for name in names) / len(names),
        f"{prefix}f1": 100.0 * sum(f1[name] for name in names) / len(names),
        f"{prefix}total": len(names),
    }


def _best_threshold(
    scores: Mapping[str, float],
    predictions: Mapping[str, str],
    odds: Mapping[str, float],
    answerable: Mapping[str, bool],
) -> tuple[float, float]:
    """The best mean score that a threshold on the odds can give, in percent, and the threshold.

    From the threshold below which every answer is taken as empty it goes up through the odds, one question at a time:
    the answer of one more is taken as predicted. The first of equals is best, and the lowest counts as 0.
    """
    total = best = float(sum(not has for has in answerable.values()))
    threshold = 0.0
    for name in sorted((name for name in odds if name in scores), key=odds.__getitem__):
        if answerable[name]:
            total += scores[name]
        elif predictions.get(name):
            total -= 1
        if total > best:
            best, threshold = total, odds[name]
    return 100.0 * best / len(scores), threshold
