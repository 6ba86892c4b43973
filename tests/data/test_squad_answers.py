"""Answers from scores, beside a slow program that follows the original; and the files they are written to."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytorch_transformers import BertTokenizer
from pytorch_transformers.data.squad import SquadQuestion, read_squad
from pytorch_transformers.data.squad_answers import AnswerOptions, Candidate, Logits, best_answers
from pytorch_transformers.data.squad_windows import SquadFeatures, Window, encode_questions
from saved_bert import VOCABULARY
from shared_data import shared

CONTEXT = "Rain\u00a0 in the  golden oven"  # tokens: rain in the golden ov ##en


@pytest.fixture(scope="module")
def tokenizer() -> BertTokenizer:
    return BertTokenizer(VOCABULARY)


def scores(window: Window, **places: dict[int, float]) -> Logits:
    """Scores of 0 but at some tokens of the paragraph; -1 is the class token."""
    starts, ends = np.zeros((2, window.length), dtype=np.float32)
    for array, values in ((starts, places.get("start", {})), (ends, places.get("end", {}))):
        for token, value in values.items():
            array[window.cls if token < 0 else token + window.offset] = value
    return starts, ends


def original(
    question: SquadQuestion, group: list[tuple[Window, Logits]], options: AnswerOptions, version_2: bool
) -> tuple[str, list[dict[str, Any]], float | None] | None:
    """`write_predictions` of run_squad.py, with texts from characters; None where it finds no span and says "empty"."""
    found = []
    null, null_logits = math.inf, (0.0, 0.0)
    for window, (starts, ends) in group:
        start_logits, end_logits = starts.tolist(), ends.tolist()
        tops = [
            sorted(range(window.length), key=of.__getitem__, reverse=True)[: options.n_best_size]
            for of in (start_logits, end_logits)
        ]
        if start_logits[0] + end_logits[0] < null:
            null, null_logits = start_logits[0] + end_logits[0], (start_logits[0], end_logits[0])
        shift = window.span.first - window.offset
        document = range(window.offset, window.offset + window.span.end - window.span.first)
        for i in tops[0]:
            for j in tops[1]:
                if i not in document or j not in document or not window.span.best[i - window.offset]:
                    continue
                if i <= j < i + options.max_answer_length:
                    start, end = window.paragraph.starts[i + shift], window.paragraph.ends[j + shift]
                    found.append((question.context[start:end], start_logits[i], end_logits[j]))
    if not found:
        return None
    if version_2:
        found.append(("", *null_logits))
    found.sort(key=lambda item: item[1] + item[2], reverse=True)
    nbest: list[tuple[str, float, float]] = []
    for item in found:
        if len(nbest) < options.n_best_size and item[0] not in {text for text, _, _ in nbest}:
            nbest.append(item)
    if version_2 and "" not in {text for text, _, _ in nbest}:
        nbest.append(("", *null_logits))
    total = sum(math.exp(start + end) for _, start, end in nbest)
    listed = [
        {"text": text, "probability": math.exp(start + end) / total, "start_logit": start, "end_logit": end}
        for text, start, end in nbest
    ]
    if not version_2:
        return nbest[0][0], listed, None
    best = next(item for item in found if item[0])
    odds = null - best[1] - best[2]
    return ("" if odds > options.null_score_diff_threshold else best[0]), listed, odds


def random_logits(features: SquadFeatures, seed: int) -> list[Logits]:
    draw = np.random.default_rng(seed)
    # Few values, so that there are equals; the class token is high enough to win at times.
    arrays = [np.round(draw.normal(size=(2, window.length)) * 4).astype(np.float32) / 2 for window in features.windows]
    for array, window in zip(arrays, features.windows, strict=True):
        array[:, window.cls] += 4.5
    return [(array[0], array[1]) for array in arrays]


@pytest.mark.parametrize("name", ["dev-v1.1.json", "dev-v2.0.json"])
@pytest.mark.parametrize(("n_best_size", "longest", "threshold"), [(20, 30, 0.0), (8, 8, -1.5)])
def test_answers_are_those_of_the_original_program(
    name: str, n_best_size: int, longest: int, threshold: float, tmp_path: Path
) -> None:
    questions = read_squad(shared("data", "squad", name))[:250]
    tokenizer = BertTokenizer(shared("data", "vocab", "bert-base-uncased-vocab.txt"))
    features = encode_questions(questions, tokenizer, max_seq_length=96, doc_stride=32)
    logits = random_logits(features, seed=n_best_size)
    options = AnswerOptions(n_best_size, longest, threshold)
    answers = best_answers(questions, features.windows, logits, options)
    answers.save(tmp_path)
    nbest = json.loads((tmp_path / "nbest_predictions.json").read_text("utf-8"))
    version_2 = "v2" in name
    groups: list[list[tuple[Window, Logits]]] = [[] for _ in questions]
    for window, each in zip(features.windows, logits, strict=True):
        groups[window.question].append((window, each))
    empty = compared = 0
    for question, group in zip(questions, groups, strict=True):
        expected = original(question, group, options, version_2)
        if expected is None:
            assert any(candidate.text for candidate in answers.nbest[question.id])
            continue
        compared += 1
        text, listed, odds = expected
        assert answers.predictions[question.id] == text
        assert [list(item) for item in nbest[question.id]] == [list(item) for item in listed]  # keys and their order
        for ours, theirs in zip(nbest[question.id], listed, strict=True):
            assert ours == pytest.approx(theirs)
        assert answers.null_odds.get(question.id) == odds
        empty += not text
    assert compared > 0.9 * len(questions)
    assert 0 < empty < compared if version_2 else empty == 0


def test_answers_are_parts_of_the_paragraph(tokenizer: BertTokenizer) -> None:
    question = SquadQuestion("q", "the ?", CONTEXT)
    (window,) = encode_questions([question], tokenizer).windows
    answers = best_answers([question], [window], [scores(window, start={0: 900}, end={4: 900})])
    assert answers.predictions == {"q": "Rain\u00a0 in the  golden ov"}
    first = answers.nbest["q"][0]
    assert CONTEXT[first.start : first.end] == first.text
    assert (first.start_logit, first.end_logit) == (900, 900)
    assert sum(candidate.probability for candidate in answers.nbest["q"]) == pytest.approx(1)
    assert answers.null_odds == {}
    short = best_answers(
        [question], [window], [scores(window, start={0: 9}, end={4: 9, 1: 2})], AnswerOptions(max_answer_length=4)
    )
    assert short.predictions == {"q": "Rain\u00a0 in"}


def test_a_span_counts_where_its_first_token_has_most_context(tokenizer: BertTokenizer) -> None:
    context = "a b c d e f g h i j k l"
    question = SquadQuestion("q", "the ?", context)
    features = encode_questions([question], tokenizer, max_seq_length=13, doc_stride=4)
    first, second, *_ = features.windows
    assert (first.span.first, first.span.end, second.span.first) == (0, 8, 4)
    assert (bool(first.span.best[6]), bool(second.span.best[2])) == (False, True)
    logits = [scores(window) for window in features.windows]
    logits[0] = scores(first, start={6: 9}, end={7: 9})  # g h, with most context in the second window
    logits[1] = scores(second, start={2: 6}, end={2: 6})  # g
    assert best_answers([question], features.windows, logits).predictions == {"q": "g"}


@pytest.mark.parametrize("places", [{"start": {-1: 9}, "end": {-1: 9}}, {"start": {5: 9}, "end": {0: 9}}])
def test_a_paragraph_with_words_always_gives_an_answer(
    tokenizer: BertTokenizer, places: dict[str, dict[int, float]]
) -> None:
    question = SquadQuestion("q", "the ?", CONTEXT)
    (window,) = encode_questions([question], tokenizer).windows
    answers = best_answers([question], [window], [scores(window, **places)], AnswerOptions(n_best_size=1))
    assert answers.predictions["q"] in CONTEXT
    assert len(answers.predictions["q"]) > 0
    assert len(answers.nbest["q"]) == 1


@pytest.mark.parametrize("impossible", [None, True])
def test_a_paragraph_without_words_gives_none(tokenizer: BertTokenizer, impossible: bool | None) -> None:
    question = SquadQuestion("q", "the ?", " ", is_impossible=impossible)
    (window,) = encode_questions([question], tokenizer).windows
    answers = best_answers([question], [window], [scores(window, start={-1: 1.5})])
    assert answers.predictions == {"q": ""}
    assert answers.nbest == {"q": [Candidate("", 1.0, 1.5 if impossible else 0.0, 0.0)]}
    assert answers.null_odds == ({"q": 1.5} if impossible else {})


@pytest.mark.parametrize(
    ("threshold", "asked", "expected"),
    [(0.0, None, ""), (4.0, None, "golden oven"), (3.9, None, ""), (0.0, False, "golden oven"), (0.0, True, "")],
)
@pytest.mark.parametrize("n_best_size", [1, 20])
def test_questions_that_may_have_no_answer_need_no_option(
    tokenizer: BertTokenizer, threshold: float, asked: bool | None, expected: str, n_best_size: int
) -> None:
    question = SquadQuestion("q", "the ?", CONTEXT, is_impossible=True)
    (window,) = encode_questions([question], tokenizer).windows
    logits = [scores(window, start={-1: 5, 3: 3}, end={-1: 5, 5: 3})]
    options = AnswerOptions(n_best_size, null_score_diff_threshold=threshold, version_2_with_negative=asked)
    answers = best_answers([question], [window], logits, options)
    if asked is False and n_best_size == 1:  # of the best-scored place of each kind no span can be made
        assert answers.null_odds == {}
        return
    assert answers.predictions == {"q": expected}
    assert answers.null_odds == ({} if asked is False else {"q": 4.0})


def test_files_have_the_published_names_and_layout(tokenizer: BertTokenizer, tmp_path: Path) -> None:
    question = SquadQuestion("q", "the ?", "Rain \ud83d \u4e2d", is_impossible=False)  # half of a surrogate pair
    (window,) = encode_questions([question], tokenizer).windows
    answers = best_answers([question], [window], [scores(window, start={0: 9}, end={2: 9})])
    answers.save(tmp_path / "out")
    read = {path.name: json.loads(path.read_text("ascii")) for path in (tmp_path / "out").iterdir()}
    assert read["predictions.json"] == {"q": "Rain \ud83d \u4e2d"}
    assert read["null_odds.json"] == {"q": -18.0}
    assert list(read["nbest_predictions.json"]["q"][0]) == ["text", "probability", "start_logit", "end_logit"]
    assert set(read) == {"predictions.json", "nbest_predictions.json", "null_odds.json"}


def test_predictions_that_do_not_fit_are_named(tokenizer: BertTokenizer) -> None:
    question = SquadQuestion("q7", "the ?", CONTEXT)
    (window,) = encode_questions([question], tokenizer).windows
    good = scores(window)
    with pytest.raises(ValueError, match="predictions: 0 for 1 windows"):
        best_answers([question], [window], [])
    with pytest.raises(ValueError, match=rf"shape \(2,\) for a window of question 'q7' with {window.length} tokens"):
        best_answers([question], [window], [(good[0], np.zeros(2))])
    with pytest.raises(ValueError, match="a score for question 'q7' is infinite or no number"):
        best_answers([question], [window], [(good[0], good[1] * np.nan)])
    with pytest.raises(ValueError, match="question 'q8' has no window"):
        best_answers([question, SquadQuestion("q8", "a", "b")], [window], [good])


@pytest.mark.parametrize(
    "options", [{"n_best_size": 0}, {"max_answer_length": 0}, {"null_score_diff_threshold": math.nan}]
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        AnswerOptions(**options)
