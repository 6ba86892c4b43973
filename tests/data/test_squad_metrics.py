"""Scores of answers beside torchmetrics (version 1.1), by hand, and beside a search through all thresholds (2.0)."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torchmetrics.functional.text import squad as torchmetrics_squad

from pytorch_transformers.data.squad import SquadAnswer, SquadQuestion, read_squad
from pytorch_transformers.data.squad_metrics import normalize_answer, squad_metrics
from shared_data import shared


def question(name: str, *answers: str, impossible: bool | None = None) -> SquadQuestion:
    return SquadQuestion(name, "?", "context", tuple(SquadAnswer(text, 0) for text in answers), impossible)


def of_version_2(**answers: list[str]) -> list[SquadQuestion]:
    return [question(name, *texts, impossible=not texts) for name, texts in answers.items()]


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Normans,", "normans"),
        ("an apple a day", "apple day"),
        ("A", ""),
        ("another", "another"),
        ("the-end", "theend"),  # punctuation goes first
        ("10–11\u00a0th", "10–11 th"),  # only ASCII punctuation goes
        ("U.S.A. 'THE' \u3000x\n", "usa x"),
        ("x–the–y", "x– –y"),  # an article leaves a space
        ("中文，的", "中文，的"),
    ],
)
def test_answers_are_normalised_as_officially(text: str, normal: str) -> None:
    assert normalize_answer(text) == normal


def changed(text: str, others: list[str], draw: random.Random) -> str:
    words = text.split()
    kind = draw.randrange(7)
    if kind == 0:
        return draw.choice(others)
    if kind == 1:
        return " ".join(words[: max(1, len(words) // 2)])
    if kind == 2:
        return f"The {text.upper()}!"
    if kind == 3:
        return f"{text} {draw.choice(others)} {text}"
    return "" if kind == 4 else text


@pytest.mark.parametrize(
    ("folder", "name"),
    [("squad", "dev-v1.1.json"), ("squad", "xquad.en.json"), ("multilingual", "xquad.zh.json")],
)
def test_version_1_is_as_torchmetrics_has_it(folder: str, name: str) -> None:
    questions = read_squad(shared("data", folder, name))
    draw = random.Random(7)
    others = [q.answers[0].text for q in questions]
    predictions = {q.id: changed(draw.choice(q.answers).text, others, draw) for q in questions}
    expected = torchmetrics_squad(
        [{"prediction_text": text, "id": name} for name, text in predictions.items()],
        [
            {"answers": {"text": [a.text for a in q.answers], "answer_start": [a.start for a in q.answers]}, "id": q.id}
            for q in questions
        ],
    )
    found = squad_metrics(questions, predictions)
    assert found.keys() == {"exact_match", "f1", "total"}
    assert found["total"] == len(questions)
    assert found["exact_match"] == pytest.approx(float(expected["exact_match"]), rel=1e-6)
    assert found["f1"] == pytest.approx(float(expected["f1"]), rel=1e-6)
    assert 20 < found["exact_match"] < found["f1"] < 90


def test_version_2_by_hand() -> None:
    questions = of_version_2(a=["the red fox", "fox"], b=["blue"], c=[], d=[], e=["an"], f=["the", "sky"])
    predictions = {"a": "red dog", "b": "", "c": "", "d": "something", "e": "the", "f": ""}
    metrics = squad_metrics(questions, predictions)
    # a: one word of two and of two (`the` is dropped): F1 1/2. e: nothing is left of gold and prediction: they agree.
    # f: an answer of which nothing is left does not count beside another.
    assert metrics == pytest.approx(
        {
            "exact_match": 200 / 6,
            "f1": 250 / 6,
            "total": 6,
            "HasAns_exact": 25.0,
            "HasAns_f1": 37.5,
            "HasAns_total": 4,
            "NoAns_exact": 50.0,
            "NoAns_f1": 50.0,
            "NoAns_total": 2,
        }
    )


def test_in_version_1_two_answers_of_which_nothing_is_left_share_no_word() -> None:
    assert squad_metrics([question("a", "the")], {"a": "an"}) == {"exact_match": 100.0, "f1": 0.0, "total": 1}


def test_odds_above_the_threshold_are_empty_answers() -> None:
    questions = of_version_2(a=["fox"], b=["dog"], c=[], d=[])
    predictions = {"a": "fox", "b": "dog", "c": "cat", "d": "cow"}
    odds = {"a": -3.0, "b": 2.0, "c": 1.0, "d": 5.0}
    metrics = squad_metrics(questions, predictions, odds)
    assert (metrics["HasAns_exact"], metrics["NoAns_exact"]) == (50.0, 50.0)  # b and d are taken as empty, c is not
    assert squad_metrics(questions, predictions, odds, null_threshold=9)["exact_match"] == 50.0
    # From the empty answer everywhere (2 right): a is right too (3), c gets wrong (2), b is right (3), d wrong (2).
    assert (metrics["best_exact"], metrics["best_exact_thresh"]) == (75.0, -3.0)
    assert (metrics["best_f1"], metrics["best_f1_thresh"]) == (75.0, -3.0)


Case = tuple[list[str], str, float]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([[], ["a b c"], ["b", "c d"]]), st.sampled_from(["", "b", "b c", "x"]), st.floats(-9, 9)
        ),
        min_size=1,
        max_size=12,
        unique_by=lambda case: case[2],
    )
)
def test_the_best_threshold_is_found(cases: list[Case]) -> None:
    questions = of_version_2(**{f"q{n}": golds for n, (golds, _, _) in enumerate(cases)})
    predictions = {f"q{n}": text for n, (_, text, _) in enumerate(cases)}
    odds = {f"q{n}": value for n, (_, _, value) in enumerate(cases)}
    metrics = squad_metrics(questions, predictions, odds)

    def at(threshold: float) -> dict[str, float]:
        return squad_metrics(questions, predictions, odds, null_threshold=threshold)

    for kind, best in (("exact_match", "best_exact"), ("f1", "best_f1")):
        reached = [at(threshold)[kind] for threshold in (-10.0, *odds.values())]
        assert metrics[best] == pytest.approx(max(reached))
        # 0 stands for the lowest threshold; sums that are equal but for rounding may choose another.
        if metrics[f"{best}_thresh"] != 0.0 or metrics[best] > at(-10.0)[kind] + 1e-9:
            assert at(metrics[f"{best}_thresh"])[kind] == pytest.approx(metrics[best])


def test_perfect_answers_to_a_real_file_score_100() -> None:
    questions = read_squad(shared("data", "squad", "dev-v2.0.json"))
    metrics = squad_metrics(questions, {q.id: q.answers[0].text if q.answers else "" for q in questions})
    assert {metrics[key] for key in ("exact_match", "f1", "HasAns_f1", "NoAns_f1")} == {100.0}
    assert (metrics["total"], metrics["HasAns_total"], metrics["NoAns_total"]) == (1105, 573, 532)


def test_what_is_missing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    questions = [question("a", "fox"), question("b", "dog")]
    assert squad_metrics(questions, {"b": "dog", "z": "not asked"})["exact_match"] == 50.0
    assert "1 question (a) of 2 have no prediction and score 0" in caplog.text
    assert squad_metrics(of_version_2(a=[], b=["dog"]), {"b": "dog"})["NoAns_exact"] == 0.0
    with pytest.raises(ValueError, match="questions: there are none"):
        squad_metrics([], {})
    with pytest.raises(ValueError, match="question 'a' has no answer to score against"):
        squad_metrics([question("a")], {"a": "fox"})
    with pytest.raises(ValueError, match=r"null_odds: none for 1 question \(a\)"):
        squad_metrics(of_version_2(a=["fox"]), {"a": "fox"}, {})
