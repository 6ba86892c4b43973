"""SWAG: every row of the files is read, rows are laid out as published, and what is wrong is named with its line."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers import BertTokenizer, OpenAIGPTTokenizer
from pytorch_transformers.data.choices import best_choices, choice_metrics
from pytorch_transformers.data.swag import SwagExample, encode_swag, read_swag
from shared_data import shared

HEADER = ["", "video-id", "fold-ind", "startphrase", "sent1", "sent2", "gold-source"]
HEADER += ["ending0", "ending1", "ending2", "ending3", "label"]
WORDS = st.lists(st.sampled_from(["the", "onions", "until", "Clouds", "baking", "é", "中", ",", "[SEP]"]), max_size=9)
TEXTS = WORDS.map(" ".join)


@pytest.fixture(scope="module")
def tokenizer(tiny: Path) -> BertTokenizer:
    return BertTokenizer.from_pretrained(tiny)


def write(path: Path, *rows: list[str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return path


def row(*endings: str, label: str = "2") -> list[str]:
    return ["0", "v", "1", "s", "the cook", "a", "gold", *endings, label]


@pytest.mark.parametrize(
    ("name", "count", "begun"),
    [("swag_sample.csv", 11, 11), ("codah_train.csv", 1665, 1445), ("codah_val.csv", 556, 484)],
)
def test_shared_files_have_the_questions_that_their_readme_counts(name: str, count: int, begun: int) -> None:
    examples = read_swag(shared("data", "swag", name))
    assert len(examples) == count
    assert sum(bool(example.start) for example in examples) == begun
    assert {example.label for example in examples} <= {0, 1, 2, 3}


def test_fields_are_found_by_the_names_of_their_columns(tmp_path: Path) -> None:
    endings = ("golden", 'a "cup", of\nflour', "é\u2028中", "")
    (example,) = read_swag(write(tmp_path / "train.csv", HEADER, row(*endings)))
    assert example == SwagExample("v", "the cook", "a", endings, 2)
    (turned,) = read_swag(write(tmp_path / "turned.csv", HEADER[::-1], row(*endings, label=" 2 ")[::-1]))
    assert turned == example


def test_the_file_for_a_test_has_no_labels(tmp_path: Path, tokenizer: BertTokenizer) -> None:
    (example,) = read_swag(write(tmp_path / "test.csv", HEADER[:-1], row("a", "b", "c", "d")[:-1]))
    assert example.label is None
    assert encode_swag([example], tokenizer, 20)[0].keys() == {"input_ids", "token_type_ids"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([HEADER, row("a", "b", "c", "d"), row("a", "b", "c", "d", label="4")], r":3: label is '4'.*0, 1, 2, 3"),
        ([HEADER, row("a\nb", "b", "c", "d"), row("a", "b", "c", "d", label="")], r":4: label is ''"),
        ([HEADER, row("a", "b", "c")], r":2: 11 columns, 12 columns expected"),
        ([HEADER[:5], ["0", "v", "1", "s", "a"]], r":1: .*'sent2', 'ending0'"),
        ([HEADER], "no row below the header"),
        ([], r":1: the file is empty"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, rows: list[list[str]], message: str) -> None:
    path = write(tmp_path / "bad.csv", *rows)
    with pytest.raises(ValueError, match=message) as error:
        read_swag(path)
    assert str(error.value).startswith(str(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"val\.csv"):
        read_swag(tmp_path / "val.csv")


@given(context=TEXTS, start=TEXTS, endings=st.tuples(TEXTS, TEXTS, TEXTS, TEXTS), limit=st.integers(5, 40))
def test_choices_are_laid_out_and_cut_as_published(
    tokenizer: BertTokenizer, context: str, start: str, endings: tuple[str, ...], limit: int
) -> None:
    (encoded,) = encode_swag([SwagExample("", context, start, endings, 1)], tokenizer, limit)
    assert encoded["labels"] == 1
    for ids, types, ending in zip(encoded["input_ids"], encoded["token_type_ids"], endings, strict=True):
        first, second = tokenizer.tokenize(context), tokenizer.tokenize(f"{start} {ending}")
        while len(first) + len(second) > limit - 3:  # a token at a time from the longer one, else from the second
            (first if len(first) > len(second) else second).pop()
        assert tokenizer.convert_ids_to_tokens(ids) == ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
        assert types == [0] * (len(first) + 2) + [1] * (len(second) + 1)


def test_the_side_that_is_cut_is_that_of_the_tokenizer(tiny: Path) -> None:
    tokenizer = BertTokenizer.from_pretrained(tiny, truncation_side="left")
    example = SwagExample("", "the onions bak", "a", ("golden rain oven", "", "", ""), None)
    (row,) = encode_swag([example], tokenizer, 7)
    assert row["input_ids"][0] == tokenizer.convert_tokens_to_ids(
        ["[CLS]", "##s", "bak", "[SEP]", "ov", "##en", "[SEP]"]
    )


def test_families_without_segments_get_none() -> None:
    tokenizer = OpenAIGPTTokenizer({"<unk>": 0, "a</w>": 1, "b</w>": 2}, [], use_spacy=False)
    (row,) = encode_swag([SwagExample("", "a", "b", ("a", "b", "a b", ""), 3)], tokenizer, 8)
    assert row == {"input_ids": [[1, 2, 1], [1, 2, 2], [1, 2, 1, 2], [1, 2]], "labels": 3}


def test_a_length_without_room_is_refused(tokenizer: BertTokenizer) -> None:
    example = SwagExample("", "a", "b", ("a", "b", "c", "d"), 0)
    assert encode_swag([example], tokenizer, 5)
    assert encode_swag([], tokenizer, 5) == []
    with pytest.raises(ValueError, match=r"max_seq_length=4 .*pass 5 or more"):
        encode_swag([example], tokenizer, 4)


def test_accuracy_counts_the_best_choices() -> None:
    scores = [np.array(row, np.float32) for row in ([0, 3, 1, 2], [5, 1, 1, 5], [-3, -2, -1, -4])]
    assert best_choices(scores) == [1, 0, 2]
    assert choice_metrics(scores, [1, 3, 2]) == {"accuracy": pytest.approx(2 / 3)}
    for wrong in ([1, 3], []):
        with pytest.raises(ValueError, match=r"predictions|references"):
            choice_metrics(scores, wrong)


def test_rows_train_the_model(tiny: Path, tokenizer: BertTokenizer) -> None:
    """The names are those of the model's arguments, and the right choice is what lowers its loss."""
    import torch

    from pytorch_transformers import BertForMultipleChoice
    from pytorch_transformers.data.batches import collate

    examples = [SwagExample("", "the cook", "a", ("golden", "rain", "cup until golden", "oven"), n) for n in (0, 2)]
    batch = collate(encode_swag(examples, tokenizer, 16))
    model = BertForMultipleChoice.from_pretrained(tiny).eval()
    output = model(**batch)
    expected = torch.nn.functional.cross_entropy(output.logits, torch.tensor([0, 2]))
    assert output.logits.shape == (2, 4)
    assert torch.allclose(output.loss, expected)
