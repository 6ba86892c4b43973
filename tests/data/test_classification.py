"""Your own file of texts, labels and their numbers, and rows for a model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_transformers import BertTokenizer, GPT2Tokenizer, OpenAIGPTTokenizer, TransfoXLTokenizer
from pytorch_transformers.data.batches import collate
from pytorch_transformers.data.classification import (
    TextExample,
    encode_texts,
    examples_of,
    labels_of,
    predictions_of,
    read_texts,
    targets_of,
)
from pytorch_transformers.data.tables import open_table
from pytorch_transformers.tokenizers.base import PreTrainedTokenizer
from saved_bert import VOCABULARY
from shared_data import shared


def save(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> BertTokenizer:
    return BertTokenizer(save(tmp_path_factory.mktemp("words") / "vocab.txt", "\n".join(VOCABULARY) + "\n"))


def fields(examples: list[TextExample]) -> list[tuple[str | None, ...]]:
    return [(example.text_a, example.text_b, example.label) for example in examples]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("t.tsv", 'text\tlabel\na "b\tyes\n', [('a "b', None, "yes")]),
        ("t.csv", 'Label,Sentence\r\nno,"a, b"\r\n', [("a, b", None, "no")]),
        ("t.jsonl", '{"text_a": "a", "text_b": "b", "label": 1}\n', [("a", "b", "1")]),
        ("t.tsv", "\ufeffsentence1\tsentence2\tid\tlabel\n a\tb \t7\t x \n", [(" a", "b ", "x")]),
    ],
)
def test_columns_are_found_by_their_names(
    tmp_path: Path, name: str, text: str, found: list[tuple[str | None, ...]]
) -> None:
    assert fields(read_texts(save(tmp_path / name, text))) == found


def test_columns_are_named(tmp_path: Path) -> None:
    path = save(tmp_path / "t.tsv", "q\ttext\tclass\tlabel\n1\t2\t3\t4\n")
    assert fields(read_texts(path, text_a="q", label="class")) == [("1", None, "3")]
    assert fields(read_texts(path, text_a="q", text_b="text")) == [("1", "2", "4")]
    assert fields(read_texts(path, text_b="q", labelled=False)) == [("2", "1", None)]
    pairs = save(tmp_path / "pairs.tsv", "sentence1\tsentence2\tlabel\n1\t2\t3\n")
    assert fields(read_texts(pairs, text_a="sentence1")) == [("1", None, "3")]  # who names one names both
    (example,) = read_texts(path)
    assert (example.guid, example.place) == ("0", f"{path}:2")


def test_no_label_is_needed_to_predict(tmp_path: Path) -> None:
    assert fields(read_texts(save(tmp_path / "t.csv", "text\nx\n\ny\n"), labelled=False)) == [
        ("x", None, None),
        ("", None, None),
        ("y", None, None),
    ]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("a\tlabel\n1\t2\n", {}, r"t\.tsv:1: no column of the text; name it \(text_a\), or call it .* 'sentence1'"),
        ("text\tb\n1\t2\n", {}, r"t\.tsv:1: no column of the label; name it \(label\), or call it 'label'"),
        ("text\tsentence\tlabel\n1\t2\t3\n", {}, r":1: text_a could be any of the columns 'text', 'sentence'"),
        ("text\tlabel\n1\t2\n", {"text_b": "b"}, r":1: a file of texts needs the column 'b', and the columns are"),
        ("text\tlabel\n1\t2\n3\t \n", {}, r"t\.tsv:3: the label is empty; expected one under 'label'"),
        ("text\tlabel\n1\t2\n3\n", {}, r"t\.tsv:3: 1 column, 2 columns expected"),
        ("text\tlabel\n", {}, r"t\.tsv:1: the file has no rows"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, text: str, options: dict[str, str], said: str) -> None:
    path = save(tmp_path / "t.tsv", text)
    with pytest.raises(ValueError, match=said):
        read_texts(path, **options)  # type: ignore[arg-type]


def test_numbers_of_rows_from_a_column(tmp_path: Path) -> None:
    table = open_table(save(tmp_path / "t.tsv", "n\ttext\n5\t a \n3\tb\n"))
    found = examples_of(table, text_a="text", guid="n", strip=True)
    assert [(example.guid, example.text_a) for example in found] == [("5", "a"), ("3", "b")]


def labelled(*labels: str | None) -> list[TextExample]:
    return [TextExample(str(n), "cook rain", None, label, f"f.tsv:{n + 2}") for n, label in enumerate(labels)]


def test_order_of_labels() -> None:
    assert labels_of(labelled("b", "a", "b", "C")) == ("C", "a", "b")
    assert labels_of(labelled("10", "2", "-1", "2")) == ("-1", "2", "10")
    assert labels_of(labelled("10", "2", "x")) == ("10", "2", "x")
    with pytest.raises(ValueError, match="one label only, 'a' in the examples"):
        labels_of(labelled("a", "a"))
    with pytest.raises(ValueError, match="no labels in the examples"):
        labels_of(labelled(None))


def test_numbers_of_labels_and_scores() -> None:
    assert targets_of(labelled("b", "a"), ("a", "b")) == [1, 0]
    assert targets_of(labelled("1.5", "-2"), None) == [1.5, -2.0]
    with pytest.raises(ValueError, match=r"f\.tsv:3: unknown label 'x'; the labels are 'a', 'b'"):
        targets_of(labelled("a", "x"), ("a", "b"))
    with pytest.raises(ValueError, match=r"f\.tsv:2: no label; the labels are 'a', 'b'"):
        targets_of(labelled(None), ("a", "b"))
    for wrong in ("two", "nan", "inf", None):
        with pytest.raises(ValueError, match=r"f\.tsv:3: the score is .*; expected a number"):
            targets_of(labelled("1", wrong), None)
    with pytest.raises(ValueError, match=r"example 7: unknown label 'x'"):
        targets_of([TextExample("7", "a", label="x")], ("a", "b"))


def published(first: list[int], second: list[int] | None, room: int) -> None:
    """How the published scripts cut: one id at a time off the longer text, off the second if both are equally long."""
    while len(first) + len(second or ()) > room:
        (first if second is None or len(first) > len(second) else second).pop()


TEXTS = st.lists(st.sampled_from(["cook", "rain", "onions", ",", "zq", "baking"]), max_size=8).map(" ".join)


@settings(max_examples=60)
@given(texts=st.lists(st.tuples(TEXTS, st.none() | TEXTS), max_size=6), longest=st.integers(4, 16))
def test_rows_equal_the_published_ones(
    tokenizer: BertTokenizer, texts: list[tuple[str, str | None]], longest: int
) -> None:
    """Each text alone, with `tokenize` and `convert_tokens_to_ids`, and the special tokens put there by hand."""
    examples = [TextExample(str(number), *pair) for number, pair in enumerate(texts)]
    found = encode_texts(examples, tokenizer, longest, labels=("a", "b"))
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    cut = 0
    for row, (text_a, text_b) in zip(found.rows, texts, strict=True):
        first = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text_a))
        second = None if text_b is None else tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text_b))
        room = longest - (2 if second is None else 3)
        cut += len(first) + len(second or ()) > room
        published(first, second, room)
        tail = [] if second is None else [*second, sep]
        assert row == {
            "input_ids": [cls, *first, sep, *tail],
            "token_type_ids": [0] * (len(first) + 2) + [1] * len(tail),
        }
    assert found.truncated == cut


def test_labels_are_in_the_rows(tokenizer: BertTokenizer) -> None:
    rows = encode_texts(labelled("b", "a"), tokenizer, 8, labels=("a", "b")).rows
    assert [row["labels"] for row in rows] == [1, 0]
    assert collate(rows)["labels"].tolist() == [1, 0]
    scores = collate(encode_texts(labelled("2", "0.5"), tokenizer, 8, labels=None).rows)["labels"]
    assert scores.is_floating_point()
    assert scores.tolist() == [2.0, 0.5]
    assert "labels" not in encode_texts(labelled(None, None), tokenizer, 8, labels=("a", "b")).rows[0]
    with pytest.raises(ValueError, match=r"f\.tsv:3: no label"):
        encode_texts(labelled("a", None), tokenizer, 8, labels=("a", "b"))


def test_side_of_the_cut(tmp_path: Path) -> None:
    vocabulary = save(tmp_path / "vocab.txt", "\n".join(VOCABULARY) + "\n")
    tokenizer = BertTokenizer(vocabulary, truncation_side="left")
    found = encode_texts([TextExample("0", "cook rain oven", "the a")], tokenizer, 6, labels=None)
    # Four tokens and two, with room for three: two of the longer go, then one of the second.
    tokens = tokenizer.decode(found.rows[0]["input_ids"]).split()
    assert tokens == ["[CLS]", "oven", "[SEP]", "a", "[SEP]"]
    assert found.truncated == 1


@pytest.mark.parametrize(("pair", "special"), [(None, 2), ("rain", 3)])
def test_length_without_room(tokenizer: BertTokenizer, pair: str | None, special: int) -> None:
    examples = [TextExample("0", "cook rain", pair)]
    with pytest.raises(ValueError, match=rf"max_seq_length={special} leaves no room .* the {special} special tokens"):
        encode_texts(examples, tokenizer, special, labels=None)
    assert len(encode_texts(examples, tokenizer, special + 1, labels=None).rows[0]["input_ids"]) == special + 1


def transfo_xl() -> TransfoXLTokenizer:
    built = TransfoXLTokenizer(special=["<eos>", "<unk>"])
    built.count_sents([["a", "man", "plays", "the", "flute", "."]])
    built.build_vocab()
    return built


def openai_gpt() -> OpenAIGPTTokenizer:
    folder = shared("data", "vocab")
    return OpenAIGPTTokenizer(folder / "openai-gpt-vocab.json", folder / "openai-gpt-merges.txt")


def gpt2() -> GPT2Tokenizer:
    folder = shared("data", "vocab")
    return GPT2Tokenizer(folder / "gpt2-vocab.json", folder / "gpt2-merges.txt")


@pytest.mark.parametrize("make", [openai_gpt, gpt2, transfo_xl])
def test_other_families(make: Callable[[], PreTrainedTokenizer]) -> None:
    """No special tokens, so no segments either; a text without tokens is refused rather than given to the model."""
    tokenizer = make()
    single, pair = TextExample("0", "a man plays the flute ."), TextExample("1", "the man plays", "a flute .")
    first, second = encode_texts([single, pair], tokenizer, 4, labels=None).rows
    assert first == {"input_ids": tokenizer.encode(single.text_a)[:4]}
    assert second == {"input_ids": tokenizer.encode("the man plays")[:2] + tokenizer.encode("a flute .")[:2]}
    with pytest.raises(ValueError, match=r"f\.tsv:9: the text has no tokens"):
        encode_texts([single, TextExample("1", "", place="f.tsv:9")], tokenizer, 4, labels=None)


def test_predictions() -> None:
    logits: list[Any] = [np.array([0.1, 0.3, -1], np.float32), np.array([2, 0, 1], np.float32)]
    assert predictions_of(logits, ("a", "b", "c")) == [1, 0]
    assert predictions_of([np.array([2.5], np.float32)], None) == [2.5]
    with pytest.raises(ValueError, match=r"logits\[0\] has the shape \(3,\); expected \(2,\)"):
        predictions_of(logits, ("a", "b"))
    with pytest.raises(ValueError, match=r"logits\[1\] has the shape \(2,\); expected \(1,\)"):
        predictions_of([np.zeros(1, np.float32), np.zeros(2, np.float32)], None)
    with pytest.raises(ValueError, match=r"logits\[1\] has nan: the model has diverged"):
        predictions_of([logits[0], logits[1] * np.float32("nan")], ("a", "b", "c"))
