"""SQuAD 1.1 and 2.0 files as questions with their paragraphs and answers.

Source: the official JSON files (Rajpurkar et al. 2016; Rajpurkar, Jia and Liang 2018): `data[].paragraphs[].qas[]`,
with `answers[].text` and `answers[].answer_start`, the place of its first character (code point) in `context`.
Surprising: nothing in a file says reliably which version it is; what does is that the questions of 2.0 have
`is_impossible`, so this is followed wherever it stands.
"""

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

logger = logging.getLogger(__name__)

_KINDS: Final = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}
_SHOWN: Final = 3  # ids in a message; the rest is counted

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class SquadAnswer:
    """What an annotator marked.

    Attributes:
        text: The words of the answer.
        start: Where it begins in the paragraph, in characters (code points).
    """

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class SquadQuestion:
    """One question and the paragraph that it is asked about.

    Attributes:
        id: Its name in files of predictions.
        text: The question.
        context: The paragraph. Questions on one paragraph share the string.
        answers: The answers of the annotators; none where there is none, or where the file does not say.
        is_impossible: Whether the paragraph does not answer it; None where the file says nothing, as in version 1.1.
        title: The article that the paragraph is from.
    """

    id: str
    text: str
    context: str
    answers: tuple[SquadAnswer, ...] = ()
    is_impossible: bool | None = None
    title: str = ""


def read_squad(path: str | os.PathLike[str]) -> list[SquadQuestion]:
    """Read the questions of a file, of either version, in their order.

    Answers that are not at their places are reported in one warning; scores do not depend on the place, and
    `find_answer` says where such an answer is after all, if it is near.

    Args:
        path: The file; UTF-8, with or without byte order mark.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no such JSON; the message names the file, the place in it and the id of the question. Two
            questions with one id are an error too, for predictions are kept by id.
    """
    questions = list(_questions(_read_json(Path(path)), path))
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise ValueError(f"{path}: two questions have the id {question.id!r}; predictions are kept by id")
        seen.add(question.id)
    astray = [
        question.id
        for question in questions
        if any(not question.context.startswith(answer.text, answer.start) for answer in question.answers)
    ]
    if astray:
        logger.warning("%s: an answer is not at its answer_start in %s", path, name_some(astray))
    return questions


def is_version_2(questions: Iterable[SquadQuestion]) -> bool:
    """Tell whether some question may be without an answer: whether their file has `is_impossible`."""
    return any(question.is_impossible is not None for question in questions)


def find_answer(context: str, answer: SquadAnswer) -> tuple[int, int] | None:
    """Say where an answer is in its paragraph: its first character, and one past its last.

    An answer that is not exactly at its place is looked for in the words around that place, any white space being as
    good as any other: the published training script took such rows and left out the others, so the same rows remain.

    Returns:
        The place, or None where the answer is not found.
    """
    start, end = answer.start, answer.start + len(answer.text)
    words = answer.text.split()
    if not words or start >= len(context):
        return None
    if context.startswith(answer.text, start):
        return start, end
    left, right = start, min(end, len(context))
    while left > 0 and not context[left - 1].isspace():
        left -= 1
    while right < len(context) and not context[right].isspace():
        right += 1
    found = re.compile(r"\s+".join(map(re.escape, words))).search(context, left, right)
    return found.span() if found else None


def name_some(ids: list[str]) -> str:
    """Name questions in a message: the first few, and how many there are."""
    shown = ", ".join(ids[:_SHOWN]) + (", ..." if len(ids) > _SHOWN else "")
    return f"{len(ids)} question{'s' if len(ids) > 1 else ''} ({shown})"


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{path}: no such file; expected a SQuAD file such as train-v1.1.json or dev-v2.0.json"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: not JSON ({error.msg}, column {error.colno})") from error


def _questions(content: Any, path: str | os.PathLike[str]) -> Iterator[SquadQuestion]:
    for a, article in enumerate(_get(content, "data", list, str(path))):
        where = f"{path}: data[{a}]"
        title = _get(article, "title", str, where, "")
        for p, paragraph in enumerate(_get(article, "paragraphs", list, where)):
            inside = f"{where}.paragraphs[{p}]"
            context = _get(paragraph, "context", str, inside)
            for q, entry in enumerate(_get(paragraph, "qas", list, inside)):
                yield _question(entry, context, title, f"{inside}.qas[{q}]")


def _question(entry: Any, context: str, title: str, where: str) -> SquadQuestion:
    name = _get(entry, "id", str, where)
    where = f"{where} (id {name!r})"
    impossible = _get(entry, "is_impossible", bool, where) if "is_impossible" in entry else None
    answers = tuple(
        SquadAnswer(_get(answer, "text", str, f"{where}.answers[{n}]"), _place(answer, f"{where}.answers[{n}]"))
        for n, answer in enumerate(_get(entry, "answers", list, where, []))
    )
    if impossible and answers:
        raise ValueError(f"{where}: is_impossible is true, but there are answers; expected an empty list of them")
    return SquadQuestion(name, _get(entry, "question", str, where), context, answers, impossible, title)


def _place(answer: Any, where: str) -> int:
    start = _get(answer, "answer_start", int, where)
    if start < 0:
        raise ValueError(f"{where}: answer_start is {start}; expected a place in the paragraph, 0 or more")
    return start


def _get(node: Any, key: str, kind: type[Value], where: str, default: Value | None = None) -> Value:
    """The value of a key, checked to be of a kind; without a default the key must be there."""
    if not isinstance(node, dict):
        raise ValueError(f"{where}: {_shown(node)}; expected an object with {key!r}")  # noqa: TRY004
    if key not in node:
        if default is None:
            raise ValueError(f"{where}: no {key!r}; expected {_KINDS[kind]}")
        return default
    value = node[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{where}: {key!r} is {_shown(value)}; expected {_KINDS[kind]}")
    return value


def _shown(value: Any) -> str:
    return f"{json.dumps(value):.60}"
