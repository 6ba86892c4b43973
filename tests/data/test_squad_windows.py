"""Rows for span models: windows, and where answers are marked, beside a slow program that follows the original."""

import unicodedata
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytorch_transformers import BertTokenizer
from pytorch_transformers.data.squad import SquadAnswer, SquadQuestion, read_squad
from pytorch_transformers.data.squad_paragraphs import tokenize_paragraphs
from pytorch_transformers.data.squad_windows import SquadFeatures, cut_document, encode_questions
from pytorch_transformers.tokenizers.special import Layout
from saved_bert import VOCABULARY
from shared_data import shared

ODD_SPACES = "\u00a0\u3000\u202f\u2009\u2028\t"


@pytest.fixture(scope="module")
def tokenizer() -> BertTokenizer:
    return BertTokenizer(VOCABULARY)


@pytest.fixture(scope="module")
def uncased() -> BertTokenizer:
    return BertTokenizer(shared("data", "vocab", "bert-base-uncased-vocab.txt"))


def ask(context: str, answer: str | None = None, text: str = "cook ?", name: str = "q") -> SquadQuestion:
    answers = () if answer is None else (SquadAnswer(answer, context.index(answer)),)
    return SquadQuestion(name, text, context, answers)


def marked(features: SquadFeatures) -> list[str | None]:
    """The characters that each row marks; None for the class token."""
    texts: list[str | None] = []
    for row, window in zip(features.rows, features.windows, strict=True):
        first, last = row["start_positions"], row["end_positions"]
        if first == last == window.cls:
            texts.append(None)
            continue
        shift = window.span.first - window.offset
        start, end = window.paragraph.characters_of(first + shift, last + shift)
        texts.append(window.paragraph.text[start:end])
    return texts


# Windows.


def original_windows(length: int, room: int, stride: int) -> list[tuple[int, int]]:
    """`doc_spans` of run_squad.py: first token and number of tokens."""
    spans, start = [], 0
    while True:
        count = min(length - start, room)
        spans.append((start, count))
        if start + count == length:
            return spans
        start += min(count, stride)


def original_best(spans: list[tuple[int, int]], token: int) -> int:
    """The window with most context for a token, as run_squad.py defines it."""
    scores = {
        number: min(token - start, start + count - 1 - token) + 0.01 * count
        for number, (start, count) in enumerate(spans)
        if start <= token < start + count
    }
    return max(scores, key=lambda number: (scores[number], -number))


@given(length=st.integers(0, 120), room=st.integers(1, 40), stride=st.integers(1, 60))
@example(length=640, room=320, stride=310)  # a last window so short that its length counts
def test_windows_hold_every_token_and_one_is_best_for_each(length: int, room: int, stride: int) -> None:
    spans = cut_document(length, room, stride)
    expected = original_windows(length, room, stride)
    assert [(span.first, span.end - span.first) for span in spans] == expected
    assert set().union(*(range(span.first, span.end) for span in spans)) == set(range(length))
    best = [
        (span.first + place, number)
        for number, span in enumerate(spans)
        for place in np.flatnonzero(span.best).tolist()
    ]
    assert sorted(best) == [(token, original_best(expected, token)) for token in range(length)]


def test_a_stride_beyond_the_room_leaves_no_token_out(tokenizer: BertTokenizer) -> None:
    words = [chr(ord("a") + n) for n in range(16)]
    features = encode_questions([ask(" ".join(words))], tokenizer, max_seq_length=12, doc_stride=100)
    rows = [tokenizer.convert_ids_to_tokens(row["input_ids"]) for row in features.rows]
    assert rows[0] == ["[CLS]", "cook", "?", "[SEP]", *words[:7], "[SEP]"]
    assert [word for row in rows for word in row[4:-1]] == words
    assert features.rows[0] == {"input_ids": features.rows[0]["input_ids"], "token_type_ids": [0] * 4 + [1] * 8}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"doc_stride": 0}, "doc_stride: 0, must be a whole number of at least 1"),
        ({"doc_stride": -5}, "doc_stride: -5"),
        ({"max_seq_length": 5}, r"max_seq_length: 5 leaves no room .* question 'q' of 2 tokens and 3 special tokens"),
        ({"max_seq_length": 0}, "max_seq_length: 0"),
        ({"max_query_length": 0}, "max_query_length: 0"),
        ({"processes": 0}, "processes: 0"),
    ],
)
def test_impossible_settings_are_errors(tokenizer: BertTokenizer, options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode_questions([ask("a b c")], tokenizer, **options)  # type: ignore[arg-type]


def test_rows_longer_than_the_model_takes_are_an_error() -> None:
    with pytest.raises(ValueError, match="max_seq_length: 65, must be at most 64"):
        encode_questions([ask("a")], BertTokenizer(VOCABULARY, model_max_length=64), max_seq_length=65)


def test_long_questions_are_cut(tokenizer: BertTokenizer) -> None:
    (row,) = encode_questions([ask("a", text="b c d e")], tokenizer, max_query_length=2).rows
    assert tokenizer.decode(row["input_ids"]) == "[CLS] b c [SEP] a [SEP]"


def test_a_paragraph_without_tokens_has_one_row(tokenizer: BertTokenizer) -> None:
    features = encode_questions([ask(" \u200b ")], tokenizer)
    assert tokenizer.decode(features.rows[0]["input_ids"]) == "[CLS] cook? [SEP] [SEP]"
    assert len(features.windows) == 1


def test_questions_on_one_paragraph_share_its_tokens(tokenizer: BertTokenizer) -> None:
    context = "rain in the oven . " * 20
    questions = [ask(f" {context}".strip(), name=str(n), text="a " * (1 + n % 3)) for n in range(10)]
    features = encode_questions([*questions, ask("rain")], tokenizer, max_seq_length=32, doc_stride=8)
    assert len({id(window.paragraph) for window in features.windows}) == 2
    assert [window.question for window in features.windows] == sorted(window.question for window in features.windows)


def test_several_processes_give_the_same_rows(tokenizer: BertTokenizer) -> None:
    questions = [ask(f"rain {'a ' * (n % 7)}cloud {n}", "cloud", name=str(n)) for n in range(300)]
    one = encode_questions(questions, tokenizer, training=True)
    two = encode_questions(questions, tokenizer, training=True, processes=2)
    assert two.rows == one.rows
    assert marked(two) == ["cloud"] * 300


# Answers.


class ClassLast(BertTokenizer):
    """`first [SEP] second [SEP] [CLS]`: where other families have the class token."""

    def special_layout(self) -> Layout:
        cls, sep = BertTokenizer.special_layout(self).before[0], BertTokenizer.special_layout(self).after[0]
        return Layout((), (sep,), (sep, cls))


class NoClass(BertTokenizer):
    def special_layout(self) -> Layout:
        return Layout()


@pytest.mark.parametrize("kind", [BertTokenizer, ClassLast])
def test_answers_outside_of_a_window_point_to_the_class_token(kind: type[BertTokenizer]) -> None:
    tokenizer = kind(VOCABULARY)
    context = "a b c d e f golden rain g h i j [CLS] k"
    questions = [ask(context, "golden rain"), SquadQuestion("none", "a ?", context, is_impossible=True)]
    features = encode_questions(questions, tokenizer, max_seq_length=12, doc_stride=3, training=True)
    for row, window in zip(features.rows, features.windows, strict=True):
        ids = row["input_ids"]
        assert len(ids) == len(row["token_type_ids"]) == window.length
        assert window.cls == (0 if kind is BertTokenizer else len(ids) - 1)
        assert ids[window.cls] == tokenizer.cls_token_id
        shown = tokenizer.convert_ids_to_tokens(ids)
        if window.question == 0 and {"golden", "rain"} <= set(shown):
            assert shown[row["start_positions"] : row["end_positions"] + 1] == ["golden", "rain"]
        else:
            assert row["start_positions"] == row["end_positions"] == window.cls
    answered = [text for text in marked(features) if text]
    assert answered
    assert len(answered) < len(features.rows) / 2


def test_a_tokenizer_without_class_token_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no class token \(cls_token\)"):
        encode_questions([ask("a")], NoClass(VOCABULARY))


def test_rows_for_training_need_answers(tokenizer: BertTokenizer, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match="question 'q' has no answer to train on"):
        encode_questions([ask("a b")], tokenizer, training=True)
    wrong = SquadQuestion("wrong", "a ?", "a b c", (SquadAnswer("c", 0),))
    nothing = ask("a \u200b b", "\u200b", name="nothing")
    features = encode_questions([wrong, ask("a b", "b"), nothing], tokenizer, training=True)
    assert (features.skipped, marked(features)) == (["wrong", "nothing"], ["b"])
    assert "left out 2 questions (wrong, nothing)" in caplog.text
    assert "start_positions" not in encode_questions([wrong], tokenizer).rows[0]


@pytest.mark.parametrize("space", ODD_SPACES)
@pytest.mark.parametrize(
    ("before", "answer", "after"),
    [
        ("rain,{0}", "golden{0}{0}Onions", "{0}cook"),
        ("rain({0}", "Baking", ")"),
        ("雨{0}在", "云{0}中", "。"),
        ("caf\u00e9 ", "e\u0301te\u0301", "{0}in"),  # dropped accents belong to their letters
        ("\U0001f600{0}", "oven\U0001f600a", "{0}b"),
        ("\u200b a", "oven\u200b{0}rain", "\u200b"),  # dropped characters
    ],
)
def test_answers_are_exact_to_the_character(
    tokenizer: BertTokenizer, before: str, answer: str, after: str, space: str
) -> None:
    before, answer, after = (text.replace("{0}", space) for text in (before, answer, after))
    question = SquadQuestion("q", "?", before + answer + after, (SquadAnswer(answer, len(before)),))
    assert marked(encode_questions([question], tokenizer, training=True)) == [answer]


@given(
    text=st.text(st.sampled_from("aAbz .,é日中й\u0301\u0323\u00a0\u3000\u202f\u200b\U0001f600कि한İ"), max_size=30),
    data=st.data(),
)
@pytest.mark.parametrize("lower", [True, False])
def test_tokens_are_found_by_their_characters(text: str, data: st.DataObject, lower: bool) -> None:
    ((paragraph, ids),) = tokenize_paragraphs([text], BertTokenizer(VOCABULARY, do_lower_case=lower))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    spans = list(zip(paragraph.starts.tolist(), paragraph.ends.tolist(), strict=True))
    touched = [n for n, (first, last) in enumerate(spans) if first < end and start < last]
    found = paragraph.tokens_of(start, end)
    assert found == ((touched[0], touched[-1]) if touched and start < end else None)
    assert len(ids) == len(spans)
    for n in range(len(ids)):
        first, last = paragraph.characters_of(n, n)
        assert text[first:last].strip() == text[first:last] != ""
        following = text[last : spans[n + 1][0] if n + 1 < len(spans) else None]
        assert not (following and unicodedata.category(following[0]).startswith("M"))


def test_a_mark_that_is_a_token_is_no_part_of_the_token_before_it() -> None:
    tokenizer = BertTokenizer([*VOCABULARY, "##\u0301"], do_lower_case=False)
    ((paragraph, ids),) = tokenize_paragraphs(["e\u0301"], tokenizer)
    assert tokenizer.convert_ids_to_tokens(ids) == ["e", "##\u0301"]
    assert [paragraph.characters_of(n, n) for n in (0, 1)] == [(0, 1), (1, 2)]


def original_rows(
    questions: list[SquadQuestion], tokenizer: BertTokenizer, length: int, stride: int
) -> list[tuple[list[str], int, int]]:
    """Tokens and marked places as run_squad.py makes them, from words between white space."""
    pieces = cache(tokenizer.tokenize)
    rows = []
    for question in questions:
        context, (answer, *_) = question.context, question.answers
        words, word_of = [""], []
        for char in context:
            if char.isspace() and words[-1]:
                words.append("")
            elif not char.isspace():
                words[-1] += char
            word_of.append(len(words) - 1)
        words = [word for word in words if word]
        firsts: list[int] = []
        tokens: list[str] = []
        for word in words:
            firsts.append(len(tokens))
            tokens += pieces(word)
        firsts.append(len(tokens))
        start = firsts[word_of[answer.start]]
        end = firsts[word_of[answer.start + len(answer.text) - 1] + 1] - 1
        wanted = pieces(answer.text)
        better = [
            (first, last)
            for first in range(start, end + 1)
            for last in range(end, first - 1, -1)
            if tokens[first : last + 1] == wanted
        ]
        start, end = better[0] if better else (start, end)
        asked = pieces(question.text)[:64]
        offset = len(asked) + 2
        for first, count in original_windows(len(tokens), length - len(asked) - 3, stride):
            inside = first <= start and end < first + count
            row = ["[CLS]", *asked, "[SEP]", *tokens[first : first + count], "[SEP]"]
            rows.append((row, start - first + offset, end - first + offset) if inside else (row, 0, 0))
    return rows


def test_rows_are_those_of_the_original_program(uncased: BertTokenizer) -> None:
    questions = read_squad(shared("data", "squad", "train-v1.1.json"))[:900]
    features = encode_questions(questions, uncased, max_seq_length=160, doc_stride=64, training=True)
    expected = original_rows(questions, uncased, 160, 64)
    assert len(features.rows) == len(expected) > len(questions) * 1.5
    ids = [uncased.convert_tokens_to_ids(tokens) for tokens, _, _ in expected]
    assert [row["input_ids"] for row in features.rows] == ids
    places = [(row["start_positions"], row["end_positions"]) for row in features.rows]
    differences = [
        (found, (start, end)) for found, (_, start, end) in zip(places, expected, strict=True) if found != (start, end)
    ]
    # Where the answer is a part of a word that has other pieces alone, the original takes the whole words.
    assert len(differences) <= 2, differences


@pytest.mark.parametrize(
    ("folder", "name", "vocabulary", "lower", "share"),
    [
        ("squad", "train-v1.1.json", "bert-base-uncased", True, 0.998),
        ("squad", "dev-v2.0.json", "bert-base-uncased", True, 0.998),
        ("multilingual", "xquad.zh.json", "bert-base-chinese", True, 1),
        ("multilingual", "xquad.ru.json", "bert-base-multilingual-cased", False, 1),
    ],
)
def test_marked_answers_are_the_answers_character_for_character(
    folder: str, name: str, vocabulary: str, lower: bool, share: float
) -> None:
    questions = [question for question in read_squad(shared("data", folder, name)) if question.answers]
    tokenizer = BertTokenizer(shared("data", "vocab", f"{vocabulary}-vocab.txt"), do_lower_case=lower)
    features = encode_questions(questions, tokenizer, max_seq_length=512, training=True)
    right, found = 0, set()
    for window, text in zip(features.windows, marked(features), strict=True):
        answer = questions[window.question].answers[0].text
        if text is not None and window.question not in found:
            found.add(window.question)
            assert answer in text  # it may begin or end inside of a piece
            right += text == answer
    assert not features.skipped
    assert len(found) == len(questions)
    assert right >= share * len(questions)
