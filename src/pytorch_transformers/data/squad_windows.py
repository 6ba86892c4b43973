"""Questions and paragraphs as rows of ids for a span model: a long paragraph is cut into windows that overlap.

Source: google-research/bert, run_squad.py (Devlin et al. 2019): the windows, the window in which a token has most
context around it, and where an answer is marked that is outside of a window.
Different from it: a paragraph is turned into tokens once for all its questions, and tokens know their characters, so
an answer is marked by the tokens that cover it and read back as the very characters of the paragraph. No words need to
be matched, which loses characters with odd white space and in languages that do not put spaces between words.
"""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..nn.values import whole_number
from .squad import SquadQuestion, find_answer, name_some
from .squad_paragraphs import Paragraph, tokenize_paragraphs

if TYPE_CHECKING:
    from ..tokenizers.base import PreTrainedTokenizer
    from ..tokenizers.special import Layout

logger = logging.getLogger(__name__)

_SHARE: Final = 0.01  # of the length of a window, added to the context of its tokens (run_squad.py)


class Span(NamedTuple):
    """Tokens of a paragraph that are in one window.

    Fields: `first`; `end`, one past the last; `best`, bool [end - first]: of which tokens no other window of the
    paragraph shows more context. Each token of the paragraph is so marked in exactly one window.
    """

    first: int
    end: int
    best: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Window:
    """What is known of a row and is no input of the model.

    Attributes:
        question: Place of its question in the list of questions.
        paragraph: The paragraph, with the characters of its tokens.
        span: Which of these tokens the row has.
        offset: Where they begin in the row.
        cls: Where the class token is in the row: what "no answer in this window" points to.
        length: Tokens of the row.
    """

    question: int
    paragraph: Paragraph
    span: Span
    offset: int
    cls: int
    length: int


@dataclass(frozen=True)
class SquadFeatures:
    """Rows for a model, with what is known of each.

    Attributes:
        rows: Arguments of the model by name: `input_ids`, `token_type_ids` where models of the family take them, and
            for training `start_positions` and `end_positions`. No padding.
        windows: For each row its window; the windows of a question follow each other.
        skipped: Ids of questions that were left out of training, their answers not being in the paragraph.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def encode_questions(
    questions: Sequence[SquadQuestion],
    tokenizer: "PreTrainedTokenizer",
    *,
    max_seq_length: int = 384,
    doc_stride: int = 128,
    max_query_length: int = 64,
    training: bool = False,
    processes: int = 1,
    cache: str | os.PathLike[str] | None = None,
) -> SquadFeatures:
    """Turn questions into rows of ids, one for each window over their paragraph.

    Args:
        questions: The questions, as `read_squad` gives them.
        tokenizer: The tokenizer of the model; it must put a class token into its inputs.
        max_seq_length: Most tokens of a row, special ones included.
        doc_stride: How many tokens a window begins after the one before it; where that is more than the row has room
            for, as many as there is room for, so that none is left out.
        max_query_length: Most tokens of a question; the rest of a longer one is cut off.
        training: Whether to mark the first answer. A question without one points to the class token in every window,
            as the others do in windows that do not have their whole answer.
        processes: How many processes turn paragraphs into tokens. More than one are started anew (spawned), so a
            script that asks for them must have its work below `if __name__ == "__main__":`. It pays from some
            ten thousand paragraphs.
        cache: A folder that keeps the tokens of the paragraphs for later runs, see `squad_cache`; None keeps nothing.

    Raises:
        ValueError: A number is too small, `max_seq_length` is more than the tokenizer's limit, a question leaves no
            room for its paragraph, or one to train on has no answer; the message names it. The tokenizer has no class
            token.
    """
    max_seq_length = whole_number("max_seq_length", max_seq_length, 1)
    doc_stride = whole_number("doc_stride", doc_stride, 1)
    max_query_length = whole_number("max_query_length", max_query_length, 1)
    processes = whole_number("processes", processes, 1)
    if max_seq_length > tokenizer.model_max_length:
        raise ValueError(
            f"max_seq_length: {max_seq_length}, must be at most {tokenizer.model_max_length}, the model_max_length of "
            "the tokenizer"
        )
    asked = [ids[:max_query_length] for ids in tokenizer._encode_ids([question.text for question in questions])]
    layout = tokenizer.special_layout()
    rooms = [max_seq_length - layout.special_count(pair=True) - len(ids) for ids in asked]
    for question, ids, room in zip(questions, asked, rooms, strict=True):
        if room < 1:
            raise ValueError(
                f"max_seq_length: {max_seq_length} leaves no room for a paragraph beside question {question.id!r} of "
                f"{len(ids)} tokens and {layout.special_count(pair=True)} special tokens; raise it, or lower "
                f"max_query_length ({max_query_length})"
            )
    contexts = list(dict.fromkeys(question.context for question in questions))
    paragraphs = dict(zip(contexts, tokenize_paragraphs(contexts, tokenizer, processes, cache), strict=True))
    types = "token_type_ids" in tokenizer.model_input_names
    features = SquadFeatures()
    for number, (question, ids, room) in enumerate(zip(questions, asked, rooms, strict=True)):
        paragraph, document = paragraphs[question.context]
        answer = None
        if training and not question.is_impossible:
            answer = _answer_tokens(question, paragraph)
            if answer is None:
                features.skipped.append(question.id)
                continue
        for span in cut_document(len(document), room, doc_stride):
            length = span.end - span.first
            cls = _class_place(layout, tokenizer.cls_token_id, len(ids), length)
            offset = len(layout.before) + len(ids) + len(layout.between)
            row: dict[str, Any] = {"input_ids": layout.join(ids, document[span.first : span.end])}
            if types:
                row["token_type_ids"] = layout.segments(len(ids), length)
            if training:
                row["start_positions"], row["end_positions"] = cls, cls
                if answer is not None and span.first <= answer[0] and answer[1] < span.end:
                    row["start_positions"] = answer[0] - span.first + offset
                    row["end_positions"] = answer[1] - span.first + offset
            features.rows.append(row)
            features.windows.append(Window(number, paragraph, span, offset, cls, len(row["input_ids"])))
    if features.skipped:
        logger.warning("left out %s: the answer is not in the paragraph at its place", name_some(features.skipped))
    return features


@lru_cache(maxsize=4096)
def cut_document(length: int, room: int, stride: int) -> tuple[Span, ...]:
    """Cut a document into windows that begin `stride` tokens apart, and find the best window for each token.

    The context of a token in a window is the number of tokens to the left or to the right of it, whichever is less,
    and a hundredth of the length of the window. The first of equals is best.

    Args:
        length: Tokens of the document.
        room: Most tokens of a window, at least 1.
        stride: Tokens from the beginning of a window to that of the next, at least 1; at most `room` is used.

    Returns:
        The windows: the first that reaches the end of the document is the last. An empty document has one, so that
        every question has a row.
    """
    firsts = range(0, max(length - room, 0) + min(room, stride), min(room, stride))
    bounds = [(first, min(first + room, length)) for first in firsts]
    context = np.full(length, -1.0)
    best = np.zeros(length, dtype=np.int64)
    for number, (first, end) in enumerate(bounds):
        place = np.arange(end - first)
        here = np.minimum(place, place[::-1]) + _SHARE * (end - first)
        better = here > context[first:end]
        context[first:end][better] = here[better]
        best[first:end][better] = number
    spans = tuple(Span(first, end, best[first:end] == number) for number, (first, end) in enumerate(bounds))
    for span in spans:
        span.best.setflags(write=False)  # they are shared by all documents of the length
    return spans


def _answer_tokens(question: SquadQuestion, paragraph: Paragraph) -> tuple[int, int] | None:
    """The tokens of the first answer, or None where it is not in the paragraph."""
    if not question.answers:
        raise ValueError(
            f"question {question.id!r} has no answer to train on, and is_impossible does not say that there is none"
        )
    characters = find_answer(question.context, question.answers[0])
    return paragraph.tokens_of(*characters) if characters else None


def _class_place(layout: "Layout", cls_id: int | None, first: int, second: int) -> int:
    """Where the class token is in a row of two texts of so many tokens: before, between or after them."""
    place = 0
    for ids, text in ((layout.before, first), (layout.between, second), (layout.after, 0)):
        if cls_id in ids:
            return place + ids.index(cls_id)
        place += len(ids) + text
    raise ValueError("the tokenizer puts no class token (cls_token) into its inputs, which `no answer` points to")
