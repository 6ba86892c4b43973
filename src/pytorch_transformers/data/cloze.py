"""RocStories cloze: which of two sentences ends a story of four (Mostafazadeh et al. 2016), for OpenAI GPT.

Source: Radford et al. 2018, section 4.2, and openai/finetune-transformer-lm, train.py (`transform_roc`).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .choices import choice_in
from .tables import open_table

if TYPE_CHECKING:
    from ..models.openai_gpt.tokenizer import OpenAIGPTTokenizer
    from .batches import InputRow

#: What stands before the story, between story and ending, and where the model looks at the end; in order of their ids.
TASK_TOKENS: Final = ("_start_", "_delimiter_", "_classify_")
_SENTENCES: Final = tuple(f"InputSentence{number}" for number in range(1, 5))
_ENDINGS: Final = ("RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2")
#: Columns as some copies of the data call them -> as the files of 2016 and 2018 do, both in plain form.
_OTHER_NAMES: Final = {
    "storyid": "inputstoryid",
    "sentencequiz1": "randomfifthsentencequiz1",
    "sentencequiz2": "randomfifthsentencequiz2",
}


@dataclass(frozen=True)
class ClozeExample:
    """One story.

    Attributes:
        guid: Its id in the file.
        story: Its four sentences.
        endings: The two sentences to choose from.
        label: Number of the right one, from 0; None where the file does not say.
    """

    guid: str
    story: str
    endings: tuple[str, str]
    label: int | None


def read_cloze(path: str | os.PathLike[str]) -> list[ClozeExample]:
    """Read a file of the Story Cloze Test of 2016 or 2018.

    Args:
        path: The file: CSV in UTF-8. Columns are found by their names, in which case, spaces and `_` don't matter:
            `InputStoryid`, `InputSentence1` to `InputSentence4`, `RandomFifthSentenceQuiz1` and `2`, and
            `AnswerRightEnding`, 1 or 2, which the test file of 2018 does not have.

    Raises:
        OSError: The file cannot be read.
        ValueError: A row is not as it should be; the message begins with FILE:LINE. Or there is none.
    """
    table = open_table(path, kind="csv")
    names = {_plain(column): column for column in table.columns}
    table.require((names.get(_plain(name), name) for name in (*_SENTENCES, *_ENDINGS)), "the Story Cloze Test")
    story, endings = ([names[_plain(name)] for name in columns] for columns in (_SENTENCES, _ENDINGS))
    guid, label = (names.get(_plain(name), name) for name in ("InputStoryid", "AnswerRightEnding"))
    examples = [
        ClozeExample(
            guid=row.values.get(guid, ""),
            story=" ".join(row.values[sentence] for sentence in story),
            endings=(row.values[endings[0]], row.values[endings[1]]),
            label=choice_in(table, row, label, first=1, count=2),
        )
        for row in table.rows()
    ]
    if not examples:
        raise ValueError(f"{table.path}: no row below the header; expected one for each story")
    return examples


def _plain(column: str) -> str:
    name = "".join(filter(str.isalnum, column)).casefold()
    return _OTHER_NAMES.get(name, name)


def add_task_tokens(tokenizer: "OpenAIGPTTokenizer") -> int:
    """Make `TASK_TOKENS` special tokens behind the vocabulary and those that are there; ids there keep their tokens.

    Args:
        tokenizer: It is changed, unless it has them all already, as one that was saved with them.

    Returns:
        How many special tokens there are now: what the model's `set_num_special_tokens` wants.
    """
    there = tokenizer.special_tokens
    if not there.keys() >= set(TASK_TOKENS):
        tokenizer.set_special_tokens(list(dict.fromkeys((*there, *TASK_TOKENS))))
    return len(tokenizer) - tokenizer.vocab_size


def encode_cloze(
    examples: Sequence[ClozeExample], tokenizer: "OpenAIGPTTokenizer", n_positions: int
) -> "list[InputRow]":
    """Rows of two choices for `OpenAIGPTDoubleHeadsModel`: `_start_` story `_delimiter_` ending `_classify_`.

    The names of the task tokens in a story are text like any other.

    Args:
        examples: The stories.
        tokenizer: See `add_task_tokens`.
        n_positions: Most tokens that the model takes. Story and ending may each have half of it less two tokens, as
            published; what is more is left out at the end.

    Returns:
        For each story `input_ids` and `mc_token_ids`, the place of `_classify_`; if the right ending is known, also
        `mc_labels` and `lm_labels`, which are the ids.

    Raises:
        ValueError: The tokenizer does not have the task tokens, or `n_positions` is too small.
    """
    missing = [token for token in TASK_TOKENS if token not in tokenizer.get_vocab()]
    if missing:
        raise ValueError(f"the tokenizer has no {', '.join(missing)}; call add_task_tokens(tokenizer) before")
    most = n_positions // 2 - 2
    if most < 1:
        raise ValueError(f"n_positions={n_positions} has no room for a story and its ending; it must be 6 or more")
    start, delimiter, classify = tokenizer.convert_tokens_to_ids(list(TASK_TOKENS))
    texts = [text for example in examples for text in (example.story, *example.endings)]
    encoded = tokenizer.batch_encode_plus(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    parts = (ids[:most] for ids in encoded)
    rows: list[InputRow] = []
    for example in examples:
        story, *endings = (next(parts) for _ in range(3))
        ids = [[start, *story, delimiter, *ending, classify] for ending in endings]
        row: dict[str, Any] = {"input_ids": ids, "mc_token_ids": [len(choice) - 1 for choice in ids]}
        if example.label is not None:
            row |= {"lm_labels": [list(choice) for choice in ids], "mc_labels": example.label}
        rows.append(row)
    return rows
