"""Scores of entities are those of seqeval, and of a count of entities by the rules of CoNLL made here."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers.data.columns import read_sentences, to_iob2
from pytorch_transformers.data.entities import entity_metrics, entity_report
from shared_data import shared

TAGS = st.sampled_from(["O", "B-x", "I-x", "B-creative-work", "I-creative-work", "B-work", "I-work"])
PAIRS = st.lists(st.lists(st.tuples(TAGS, TAGS), max_size=8), min_size=1, max_size=5).filter(any)


def entities(sentences: list[list[str]]) -> set[tuple[str, int, int, int]]:
    """Type, sentence, begin and end: `B-` begins an entity, and `I-` does where it goes on from none of its type."""
    found = set()
    for number, tags in enumerate(sentences):
        begin = 0
        for place, tag in enumerate([*to_iob2(tags), "O"]):
            if place and tag[0] != "I" and tags[place - 1] != "O":
                found.add((tags[place - 1][2:], number, begin, place))
            begin = begin if tag[0] == "I" else place
    return found


def ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


@given(pairs=PAIRS)
def test_scores_are_those_of_seqeval_and_of_counting(pairs: list[list[tuple[str, str]]]) -> None:
    from seqeval.metrics import accuracy_score, classification_report, f1_score, precision_score, recall_score

    gold, predicted = ([[pair[side] for pair in row] for row in pairs] for side in (0, 1))
    metrics = entity_metrics(gold, predicted)
    assert metrics == {
        "precision": precision_score(gold, predicted, zero_division=0),
        "recall": recall_score(gold, predicted, zero_division=0),
        "f1": f1_score(gold, predicted, zero_division=0),
        "accuracy": accuracy_score(gold, predicted),
    }
    wanted, found = entities(gold), entities(predicted)
    assert metrics["precision"] == pytest.approx(ratio(len(wanted & found), len(found)))
    assert metrics["recall"] == pytest.approx(ratio(len(wanted & found), len(wanted)))
    assert metrics["f1"] == pytest.approx(ratio(2 * len(wanted & found), len(wanted) + len(found)))
    report = entity_report(gold, predicted)
    assert list(report) == sorted({kind for kind, *_ in wanted | found})
    if report:
        theirs = classification_report(gold, predicted, output_dict=True, zero_division=0)
        for kind, scores in report.items():
            names = {"precision": "precision", "recall": "recall", "f1-score": "f1", "support": "support"}
            assert {names[name]: value for name, value in theirs[kind].items()} == scores


def test_iob1_and_iob2_score_the_same() -> None:
    gold = [["I-x", "I-x", "B-x", "O"], ["I-y"]]
    assert entity_metrics(gold, [to_iob2(tags) for tags in gold])["f1"] == 1.0
    assert entity_metrics(gold, [["I-x", "I-x", "I-x", "O"], ["I-y"]])["f1"] == pytest.approx(2 / 5)
    sentences = read_sentences(shared("data", "conll2003", "eng.testa.sample.txt"))
    tags = [list(sentence.tags or ()) for sentence in sentences]
    converted = [to_iob2(row) for row in tags]
    assert tags != converted
    assert entity_metrics(tags, converted)["f1"] == 1.0
    assert {kind: scores["f1"] for kind, scores in entity_report(tags, converted).items()} == (
        {"LOC": 1.0, "MISC": 1.0, "ORG": 1.0, "PER": 1.0}
    )


def test_entities_do_not_reach_over_the_end_of_a_sentence() -> None:
    assert entity_metrics([["B-x"], ["I-x"]], [["B-x"], ["I-x"]])["f1"] == 1.0
    assert entity_report([["B-x"], ["I-x"]], [["B-x"], ["O"]])["x"] == (
        {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3), "support": 2.0}
    )


def test_no_entities_are_zero_and_no_words_an_error() -> None:
    assert entity_metrics([["O"]], [["O"]]) == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "accuracy": 1.0}
    assert entity_report([["O"]], [["O"]]) == {}
    for gold, predicted in (([], []), ([[]], [[]]), ([["O"]], [["O", "O"]]), ([["O"]], [["O"], []])):
        with pytest.raises(ValueError, match="each word needs both"):
            entity_metrics(gold, predicted)


def test_without_seqeval_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "seqeval.metrics", None)
    with pytest.raises(ImportError, match=r"pytorch-transformers\[train\]"):
        entity_metrics([["O"]], [["O"]])
