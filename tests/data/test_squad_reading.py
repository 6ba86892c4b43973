"""SQuAD files: what is read, and what is said of files that are wrong."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from pytorch_transformers.data.squad import SquadAnswer, SquadQuestion, find_answer, is_version_2, read_squad
from shared_data import shared

CONTEXT = "Onions are cooked until\u00a0golden."


def question(**changes: Any) -> dict[str, Any]:
    entry = {"id": "q1", "question": "How long?", "answers": [{"text": "until\u00a0golden", "answer_start": 18}]}
    return {key: value for key, value in (entry | changes).items() if value is not ...}


def write(folder: Path, *entries: Any, context: Any = CONTEXT, encoding: str = "utf-8") -> Path:
    content = {"version": "x", "data": [{"title": "Food", "paragraphs": [{"context": context, "qas": list(entries)}]}]}
    path = folder / "some.json"
    path.write_text(json.dumps(content, ensure_ascii=False), encoding=encoding)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_file_is_read(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, question(), question(id="q2", answers=...), encoding=encoding)
    answer = SquadAnswer("until\u00a0golden", 18)
    first = SquadQuestion("q1", "How long?", CONTEXT, (answer,), None, "Food")
    assert read_squad(path) == [first, SquadQuestion("q2", "How long?", CONTEXT, (), None, "Food")]
    assert not is_version_2(read_squad(path))


def test_version_2_is_told_by_its_questions(tmp_path: Path) -> None:
    path = write(tmp_path, question(is_impossible=False), question(id="q2", answers=[], is_impossible=True))
    questions = read_squad(path)
    assert [q.is_impossible for q in questions] == [False, True]
    assert is_version_2(questions)
    assert is_version_2(questions[:1])  # all with an answer, but the file might have had others


@pytest.mark.parametrize(
    ("folder", "name", "count", "impossible", "paragraphs"),
    [
        ("squad", "train-v1.1.json", 1721, 0, 390),
        ("squad", "dev-v1.1.json", 573, 0, 117),
        ("squad", "train-v2.0.json", 3708, 1987, 390),
        ("squad", "dev-v2.0.json", 1105, 532, 117),
        ("squad", "xquad.en.json", 1190, 0, 240),
        ("multilingual", "xquad.zh.json", 1190, 0, 240),
        ("multilingual", "xquad.ru.json", 1190, 0, 240),
    ],
)
def test_real_files_have_what_their_makers_say(
    folder: str, name: str, count: int, impossible: int, paragraphs: int, caplog: pytest.LogCaptureFixture
) -> None:
    questions = read_squad(shared("data", folder, name))
    assert (len(questions), sum(bool(q.is_impossible) for q in questions)) == (count, impossible)
    assert is_version_2(questions) == ("v2" in name)
    assert len({q.context for q in questions}) == paragraphs
    for q in questions:
        assert all(q.context[a.start : a.start + len(a.text)] == a.text for a in q.answers)
        assert bool(q.answers) != bool(q.is_impossible)
    assert not caplog.records


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (question(id=7), r"qas\[0\]: 'id' is 7; expected a text"),
        (question(question=...), r"\(id 'q1'\): no 'question'; expected a text"),
        (question(answers={"text": "x"}), r"\(id 'q1'\): 'answers' is {.*; expected a list"),
        (question(answers=[{"text": "x"}]), r"\(id 'q1'\)\.answers\[0\]: no 'answer_start'; expected a whole number"),
        (question(answers=[{"text": "x", "answer_start": True}]), "'answer_start' is true; expected a whole number"),
        (question(answers=[{"text": "x", "answer_start": -1}]), "answer_start is -1; expected a place"),
        (question(answers=["x"]), r"\(id 'q1'\)\.answers\[0\]: \"x\"; expected an object with 'text'"),
        (question(is_impossible="no"), r"\(id 'q1'\): 'is_impossible' is \"no\"; expected true or false"),
        (question(is_impossible=True), r"\(id 'q1'\): is_impossible is true, but there are answers"),
        ([1], r"qas\[0\]: \[1\]; expected an object with 'id'"),
    ],
)
def test_a_malformed_question_is_named(tmp_path: Path, entry: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        read_squad(write(tmp_path, entry))
    assert str(error.value).startswith(f"{tmp_path / 'some.json'}: data[0].paragraphs[0].qas[0]")


def test_malformed_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    with pytest.raises(FileNotFoundError, match=r"some\.json: no such file; expected a SQuAD file"):
        read_squad(path)
    for content, message in (
        (b'{"data": [\n}', r"some\.json:2: not JSON"),
        (b'{"data": "\xff"}', r"some\.json: not UTF-8"),
        (b"[]", r"some\.json: \[\]; expected an object with 'data'"),
        (b'{"data": [{"paragraphs": [{}]}]}', r"data\[0\]\.paragraphs\[0\]: no 'context'"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_squad(path)
    with pytest.raises(ValueError, match=r"some\.json: two questions have the id 'q1'"):
        read_squad(write(tmp_path, question(), question()))


def test_answers_that_are_elsewhere_are_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    wrong = [question(id=f"q{n}", answers=[{"text": "golden", "answer_start": 0}]) for n in range(5)]
    path = write(tmp_path, question(), *wrong[2:], question(id="last"))
    with caplog.at_level(logging.WARNING):
        assert len(read_squad(path)) == 5
    (record,) = caplog.records
    assert record.getMessage() == f"{path}: an answer is not at its answer_start in 3 questions (q2, q3, q4)"


@pytest.mark.parametrize(
    ("text", "start", "found"),
    [
        ("golden", 24, "golden"),
        ("until golden", 18, "until\u00a0golden"),  # another white space
        ("  until\ngolden ", 18, "until\u00a0golden"),
        ("are", 8, "are"),  # two characters too far, in the same word
        ("olde", 25, "olde"),  # a part of a word
        ("golden", 0, None),
        ("golden", 999, None),
        (" ", 6, None),
        ("", 6, None),
        ("g.lden", 24, None),  # no pattern
    ],
)
def test_an_answer_is_found_at_its_place_or_in_the_words_there(text: str, start: int, found: str | None) -> None:
    place = find_answer(CONTEXT, SquadAnswer(text, start))
    assert (None if place is None else CONTEXT[slice(*place)]) == found


def test_an_answer_at_its_place_is_not_looked_for_before_it() -> None:
    assert find_answer(CONTEXT, SquadAnswer("n", 4)) == (4, 5)  # the second of Onions
