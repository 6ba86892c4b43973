"""Files with a word and its tag in each line: every sentence is read, written and read again, and faults are named."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers.data.columns import (
    Sentence,
    labels_of,
    parse_sentences,
    read_sentences,
    to_iob2,
    write_tags,
)
from shared_data import shared

KINDS = ("person", "creative-work", "LOC")
TAGS = st.sampled_from(["O", *(f"{prefix}-{kind}" for prefix in "BI" for kind in KINDS)])
#: What a file can hold: no line feed, tab or half of a pair; a byte order mark at the beginning of a file is none.
WORDS = st.text(st.characters(exclude_characters="\n\t\ufeff", exclude_categories=["Cs"]), min_size=1).filter(
    lambda word: word != "-DOCSTART-"
)
SENTENCES = st.lists(st.lists(st.tuples(WORDS, TAGS), min_size=1, max_size=6), min_size=1, max_size=4)


def split(pairs: list[tuple[str, str]]) -> Sentence:
    words, tags = zip(*pairs, strict=True)
    return Sentence(list(words), list(tags))


def parse(text: str, *, tagged: bool = True, iob2: bool = False) -> list[Sentence]:
    return list(parse_sentences(enumerate(text.split("\n"), 1), "NAME", tagged=tagged, iob2=iob2))


@pytest.mark.parametrize(("name", "counts"), [("train.txt", (3394, 62730, 1975)), ("dev.txt", (1009, 15733, 836))])
def test_wnut_has_what_its_readme_counts(name: str, counts: tuple[int, int, int]) -> None:
    sentences = read_sentences(shared("data", "wnut17", name))
    entities = sum(tag.startswith("B-") for sentence in sentences for tag in sentence.tags or ())
    assert (len(sentences), sum(len(sentence.words) for sentence in sentences), entities) == counts
    kinds = ("corporation", "creative-work", "group", "location", "person", "product")
    assert labels_of(sentences) == ["O", *(f"B-{kind}" for kind in kinds), *(f"I-{kind}" for kind in kinds)]
    assert all(to_iob2(sentence.tags or ()) == sentence.tags for sentence in sentences)  # it is IOB2 already


def test_conll_has_what_its_readme_counts() -> None:
    path = shared("data", "conll2003", "eng.testa.sample.txt")
    sentences = read_sentences(path)
    assert len(sentences) == 100
    assert not any("-DOCSTART-" in sentence.words for sentence in sentences)
    assert labels_of(sentences) == ["O", "I-LOC", "I-MISC", "I-ORG", "I-PER"]
    converted = read_sentences(path, iob2=True)
    assert [sentence.words for sentence in converted] == [sentence.words for sentence in sentences]
    assert {tag[0] for sentence in converted for tag in sentence.tags or ()} == {"O", "B", "I"}
    assert converted[0].tags == ["O", "O", "B-ORG", *["O"] * 8]


def test_columns_are_divided_by_tabs_or_by_spaces() -> None:
    expected = [Sentence(["a", "b"], ["O", "B-x"]), Sentence(["c"], ["O"])]
    assert parse("a O\nb   B-x\n\nc O") == expected
    assert parse("a\tO\r\nb\tB-x \r\n \t \r\n\n\nc\tO\r\n") == expected
    assert parse("-DOCSTART- -X- O\n\na N O\nb N B-x\n-DOCSTART- (12)\nc V O\n\n") == expected
    assert parse("New York\tB-x\n\xa0\tO\n") == [Sentence(["New York", "\xa0"], ["B-x", "O"])]
    assert parse("") == parse("\n \n\t\n") == parse("-DOCSTART- -X- O O\n\n") == []


def test_without_tags_the_words_are_read() -> None:
    assert parse("a\nb\n\nc", tagged=False) == [Sentence(["a", "b"]), Sentence(["c"])]
    assert parse("a N O\nb N what\n", tagged=False) == [Sentence(["a", "b"])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a O\n\nb\n", "NAME:3: 1 columns in 'b'; expected 2: the word first, its tag last"),
        ("a\n", "NAME:1: 1 columns in 'a'; expected 2"),
        ("a O\nNew York B-x\n", "NAME:2: 3 columns in 'New York B-x'; expected 2"),
        ("a\tO\n\tO\n", r"NAME:2: 2 columns in '\\tO'"),
        ("a\tO\nb\t\n", "NAME:2: the tag is ''; expected O"),
        ("a O\r\nb NN\r\n", "NAME:2: the tag is 'NN'; expected O, or B- or I- and a type"),
        ("a B-\n", "NAME:1: the tag is 'B-'"),
        ("a o\n", "NAME:1: the tag is 'o'"),
        ("a\u2028b X\n", "NAME:1: the tag is 'X'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "dev.txt"
    with pytest.raises(FileNotFoundError, match=r"dev\.txt"):
        read_sentences(path)
    path.write_bytes(b"a\tO\n\xff\tO\n")
    with pytest.raises(ValueError, match=r"dev\.txt:2: not UTF-8"):
        read_sentences(path)
    path.write_bytes(b"\n\n")
    with pytest.raises(ValueError, match=r"dev\.txt: no sentence; expected a word and its tag a line"):
        read_sentences(path)
    path.write_bytes(b"\xef\xbb\xbf\xc3\xa9\tO\r\n")
    assert read_sentences(path) == [Sentence(["é"], ["O"])]


@given(sentences=SENTENCES.map(lambda each: [split(pairs) for pairs in each]))
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, sentences: list[Sentence]) -> None:
    path = tmp_path_factory.mktemp("tags") / "predictions.txt"
    write_tags(path, sentences, [sentence.tags or () for sentence in sentences])
    assert read_sentences(path) == sentences


@pytest.mark.parametrize("word", ["", "a\tb", "a\nb"])
def test_words_that_would_break_the_columns_are_not_written(tmp_path: Path, word: str) -> None:
    with pytest.raises(ValueError, match="cannot be written"):
        write_tags(tmp_path / "predictions.txt", [Sentence([word])], [["O"]])
    assert not list(tmp_path.iterdir())


def test_tags_become_iob2() -> None:
    iob1 = ["I-x", "I-x", "B-x", "I-x", "I-y", "O", "I-x", "B-y"]
    assert to_iob2(iob1) == ["B-x", "I-x", "B-x", "I-x", "B-y", "O", "B-x", "B-y"]
    assert to_iob2(["S-x", "I-x", "I-x", "E-x", "I-x", "O"]) == ["S-x", "B-x", "I-x", "E-x", "B-x", "O"]
    assert to_iob2([]) == []


@given(tags=st.lists(TAGS, max_size=12))
def test_conversion_leaves_no_entity_without_a_beginning_and_changes_nothing_twice(tags: list[str]) -> None:
    converted = to_iob2(tags)
    assert to_iob2(converted) == converted
    assert [tag[1:] for tag in converted] == [tag[1:] for tag in tags]
    for before, tag in zip(["O", *converted], converted, strict=False):
        assert tag[0] != "I" or before[1:] == tag[1:]


def test_labels_are_sorted_with_o_first() -> None:
    first, second = Sentence(["a", "b"], ["I-z", "B-a"]), Sentence(["c"], ["I-a"])
    assert labels_of([first, Sentence(["d"])], [second]) == ["O", "B-a", "I-a", "I-z"]
    assert labels_of([]) == ["O"]


def test_each_word_has_one_tag() -> None:
    with pytest.raises(ValueError, match="2 words and 1 tags"):
        Sentence(["a", "b"], ["O"])
