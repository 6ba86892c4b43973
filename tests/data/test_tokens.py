"""Words to pieces and back: no word is lost however long a sentence is, and perfect scores give the tags again."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers import BertTokenizer, OpenAIGPTTokenizer
from pytorch_transformers.data.columns import Sentence, labels_of, read_sentences
from pytorch_transformers.data.entities import entity_metrics
from pytorch_transformers.data.tokens import IGNORED, Window, encode_sentences, predicted_tags
from shared_data import shared

LABELS = ["O", "B-x", "I-x", "B-creative-work", "I-creative-work"]
#: Any text, words of several pieces, and words of none.
WORDS = st.text(max_size=8) | st.sampled_from(
    ["cook", "onions", "baking", "uncookable", "\x00", "\u200b", "[SEP]", "!?!"]
)
PAIRS = st.lists(st.tuples(WORDS, st.sampled_from(LABELS)), max_size=12)


def sentence_of(pairs: list[tuple[str, str]]) -> Sentence:
    return Sentence([word for word, _ in pairs], [tag for _, tag in pairs])


@pytest.fixture(scope="module")
def tokenizer(tiny: Path) -> BertTokenizer:
    return BertTokenizer.from_pretrained(tiny)


def perfect(labels: list[list[int]], count: int = len(LABELS)) -> list[npt.NDArray[np.float32]]:
    """Scores that give each labelled piece its label, and all others a class that is wrong wherever it is read."""
    return [np.eye(count, dtype=np.float32)[[count - 1 if n == IGNORED else n for n in row]] for row in labels]


def test_the_first_piece_of_a_word_has_its_label(tokenizer: BertTokenizer) -> None:
    sentence = Sentence(["onions", "\x00", "baking", "!?"], ["B-x", "B-x", "I-x", "O"])
    rows, windows = encode_sentences([sentence], tokenizer, 48, LABELS)
    pieces = ["[CLS]", "onion", "##s", "bak", "##ing", "!", "?", "[SEP]"]
    assert rows[0]["input_ids"] == tokenizer.convert_tokens_to_ids(pieces)
    assert rows[0]["labels"] == [-100, 1, -100, 2, -100, 0, -100, -100]
    assert rows[0]["token_type_ids"] == [0] * 8
    assert windows == [Window(0, [0, 2, 3], [1, 3, 5])]


def test_families_without_segments_or_special_tokens_get_none() -> None:
    tokenizer = OpenAIGPTTokenizer({"<unk>": 0, "a": 1, "a</w>": 2, "b</w>": 3}, [], use_spacy=False)
    rows, windows = encode_sentences([Sentence(["a", "ab", "b"], ["B-x", "O", "I-x"])], tokenizer, 3, LABELS)
    assert rows == [{"input_ids": [2, 1, 3], "labels": [1, 0, -100]}, {"input_ids": [3], "labels": [2]}]
    assert windows == [Window(0, [0, 1], [0, 1]), Window(0, [2], [0])]


@given(sentences=st.lists(PAIRS.map(sentence_of), max_size=4))
def test_pieces_and_words_are_those_of_the_tokenizer(tokenizer: BertTokenizer, sentences: list[Sentence]) -> None:
    """`tokenizer(words, is_split_into_words=True)` and its `word_ids` are the reference."""
    rows, windows = encode_sentences(sentences, tokenizer, 10_000)
    found = {window.sentence: (row, window) for row, window in zip(rows, windows, strict=True)}
    for number, sentence in enumerate(sentences):
        encoding = tokenizer(list(sentence.words), is_split_into_words=True)
        words = encoding.word_ids()
        if set(words) == {None}:
            assert number not in found
            continue
        row, window = found[number]
        assert row == {name: encoding[name] for name in ("input_ids", "token_type_ids")}
        first = {word: place for place, word in reversed(list(enumerate(words))) if word is not None}
        assert dict(zip(window.words, window.places, strict=True)) == first


@given(sentences=st.lists(PAIRS.map(sentence_of), min_size=1, max_size=4), length=st.integers(3, 14))
def test_perfect_scores_give_the_tags_again(tokenizer: BertTokenizer, sentences: list[Sentence], length: int) -> None:
    rows, windows = encode_sentences(sentences, tokenizer, length, LABELS)
    assert all(len(row["input_ids"]) == len(row["labels"]) <= length for row in rows)
    assert all(ids[0] != ids[-1] == tokenizer.sep_token_id for ids in (row["input_ids"] for row in rows))
    tags = predicted_tags(perfect([row["labels"] for row in rows]), windows, sentences, LABELS)
    no_piece = {word for sentence in sentences for word in sentence.words if not tokenizer.tokenize(word)}
    expected = [
        ["O" if word in no_piece else tag for word, tag in zip(each.words, each.tags or (), strict=True)]
        for each in sentences
    ]
    assert tags == expected
    placed = sorted((window.sentence, word) for window in windows for word in window.words)
    assert placed == [
        (number, place)
        for number, sentence in enumerate(sentences)
        for place, word in enumerate(sentence.words)
        if word not in no_piece
    ]


@given(words=st.lists(st.sampled_from(["cook", "onions", "uncookable", "!" * 20]), max_size=30), room=st.integers(1, 9))
def test_long_sentences_are_divided_between_words_and_no_earlier_than_needed(
    tokenizer: BertTokenizer, words: list[str], room: int
) -> None:
    rows, windows = encode_sentences([Sentence(words)], tokenizer, room + 2)
    sizes = [min(len(tokenizer.tokenize(word)), room) for word in words]
    assert [word for window in windows for word in window.words] == list(range(len(words)))
    for row, window, after in zip(rows, windows, [*windows[1:], None], strict=False):
        taken = sum(sizes[word] for word in window.words)
        assert len(row["input_ids"]) == taken + 2
        assert after is None or taken + sizes[after.words[0]] > room


def test_wnut_makes_a_round_trip() -> None:
    sentences = read_sentences(shared("data", "wnut17", "dev.txt"))
    tokenizer = BertTokenizer(shared("data", "vocab", "bert-base-cased-vocab.txt"), do_lower_case=False)
    labels = labels_of(sentences)
    rows, windows = encode_sentences(sentences, tokenizer, 24, labels)
    assert len(rows) > len(sentences)
    gold = [list(sentence.tags or ()) for sentence in sentences]
    tags = predicted_tags(perfect([row["labels"] for row in rows], len(labels)), windows, sentences, labels)
    assert tags == gold
    assert entity_metrics(gold, tags) == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "accuracy": 1.0}


def test_what_cannot_be_encoded_is_refused(tokenizer: BertTokenizer) -> None:
    sentence = Sentence(["cook"], ["B-y"])
    assert encode_sentences([], tokenizer, 3) == encode_sentences([Sentence([], [])], tokenizer, 3, LABELS) == ([], [])
    assert len(encode_sentences([sentence], tokenizer, 3)[0]) == 1
    with pytest.raises(ValueError, match=r"max_seq_length=2 .*pass 3 or more"):
        encode_sentences([sentence], tokenizer, 2)
    with pytest.raises(ValueError, match=r"sentences\[0\]: the tag 'B-y' of 'cook' is none of O, B-x"):
        encode_sentences([sentence], tokenizer, 9, LABELS)
    with pytest.raises(ValueError, match=r"sentences\[1\] has no tags"):
        encode_sentences([Sentence(["a"], ["O"]), Sentence(["cook"])], tokenizer, 9, LABELS)


@pytest.mark.parametrize("shape", [(4, 4), (2, 5), (5,)])
def test_scores_of_another_shape_are_refused(tokenizer: BertTokenizer, shape: tuple[int, ...]) -> None:
    sentences = [Sentence(["cook", "rain"])]
    _, windows = encode_sentences(sentences, tokenizer, 9)
    with pytest.raises(ValueError, match=r"expected \[3 or more, 5\]"):
        predicted_tags([np.zeros(shape, np.float32)], windows, sentences, LABELS)
    with pytest.raises(ValueError, match="logits of 0 rows and 1 windows"):
        predicted_tags([], windows, sentences, LABELS)


def test_rows_train_the_model(tiny: Path, tokenizer: BertTokenizer) -> None:
    """The names are those of the model's arguments, and only first pieces are in the loss."""
    import torch

    from pytorch_transformers import BertForTokenClassification
    from pytorch_transformers.data.batches import collate

    sentences = [Sentence(["onions", "rain"], ["B-x", "O"]), Sentence(["baking"], ["I-x"])]
    rows, _ = encode_sentences(sentences, tokenizer, 12, LABELS)
    model = BertForTokenClassification.from_pretrained(tiny, num_labels=len(LABELS)).eval()
    output = model(**collate(rows))
    chosen = torch.stack([output.logits[0, 1], output.logits[0, 3], output.logits[1, 1]])
    assert torch.allclose(output.loss, torch.nn.functional.cross_entropy(chosen, torch.tensor([1, 0, 2])))
