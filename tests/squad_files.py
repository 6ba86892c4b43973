"""Small SQuAD files that a tiny BERT with the words of `saved_bert` can learn."""

import json
import random
from pathlib import Path
from typing import Any

_FILLERS = ("the", "a", "on", "until", "rain", "cloud", "baking", "two", "of", ".", ",")
#: What a question asks about -> the words that answer it.
_ANSWERS = {"oven ?": ("flour", "onions"), "cook in ?": ("golden", "cup")}


def some_squad(count: int, seed: int = 0, *, version_2: bool = False) -> dict[str, Any]:
    """`count` paragraphs with two questions each; in version 2 every third paragraph has no answer to the second."""
    draw = random.Random(seed)
    paragraphs = []
    for number in range(count):
        words = draw.choices(_FILLERS, k=draw.randint(4, 12))
        impossible = version_2 and number % 3 == 0
        answers = {question: draw.choice(known) for question, known in _ANSWERS.items()}
        for answer in list(answers.values())[: 1 if impossible else 2]:
            words.insert(draw.randint(0, len(words)), answer)
        context = " ".join(words)
        questions: list[dict[str, Any]] = []
        for place, (question, answer) in enumerate(answers.items()):
            found = [] if impossible and place else [{"text": answer, "answer_start": _find(words, answer)}]
            questions.append({"id": f"{number}-{place}", "question": question, "answers": found})
            if version_2:
                questions[-1]["is_impossible"] = not found
        paragraphs.append({"context": context, "qas": questions})
    return {"version": "v2.0" if version_2 else "1.1", "data": [{"title": "Baking", "paragraphs": paragraphs}]}


def save_squad(path: Path, count: int, seed: int = 0, *, version_2: bool = False) -> Path:
    """Write it."""
    path.write_text(json.dumps(some_squad(count, seed, version_2=version_2)), encoding="utf-8")
    return path


def _find(words: list[str], answer: str) -> int:
    """Where the word begins in the text: there is one such word."""
    return len(" ".join([*words[: words.index(answer)], ""]))
