"""What is a document and a sentence, in every layout."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers.data.pretraining.documents import Layout, Sentence, blocks_of, read_sentences, split_sentences
from pytorch_transformers.tokenizers.text_files import LONGEST_LINE, find_text_files, read_lines

ENGLISH = 'One fish swims. "Two?" asked\nthe cat. Then\n\n\nDr. Who came!\n'
CHINESE = "我们在这里。你好！“他来了。”他说\n\n再见\n"


def read(path: Path, content: str, layout: Layout) -> list[tuple[int, str]]:
    path.write_bytes(content.encode())
    return [(number, text) for number, text in read_sentences([path], layout)]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("sentences", [(0, 'One fish swims. "Two?" asked'), (0, "the cat. Then"), (1, "Dr. Who came!")]),
        ("lines", [(0, 'One fish swims. "Two?" asked'), (0, "the cat. Then"), (0, "Dr. Who came!")]),
        (
            "paragraphs",
            [(0, "One fish swims."), (0, '"Two?"'), (0, "asked the cat."), (0, "Then"), (1, "Dr."), (1, "Who came!")],
        ),
        (
            "files",
            [(0, "One fish swims."), (0, '"Two?"'), (0, "asked the cat."), (0, "Then"), (0, "Dr."), (0, "Who came!")],
        ),
    ],
)
@pytest.mark.parametrize("change", [str, lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")])
def test_layouts(tmp_path: Path, layout: Layout, expected: list[tuple[int, str]], change: type[str]) -> None:
    assert read(tmp_path / "in.txt", change(ENGLISH), layout) == expected


def test_chinese(tmp_path: Path) -> None:
    assert read(tmp_path / "in.txt", CHINESE, "paragraphs") == [
        *((0, "我们在这里。"), (0, "你好！"), (0, "“他来了。”"), (0, "他说"), (1, "再见")),
    ]
    assert read(tmp_path / "in.txt", CHINESE, "sentences") == [(0, "我们在这里。你好！“他来了。”他说"), (1, "再见")]


def test_each_file_begins_a_document(tmp_path: Path) -> None:
    for name, content in (("b", "1\n\n2"), ("a", "3"), ("c", "\n\n4\n\n")):
        (tmp_path / f"{name}.txt").write_text(content)
    files = [tmp_path / f"{name}.txt" for name in "bac"]
    assert list(read_sentences(files)) == [(0, "1"), (1, "2"), (2, "3"), (3, "4")]
    assert list(read_sentences(files, "files")) == [(0, "1"), (0, "2"), (1, "3"), (2, "4")]


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    assert read(tmp_path / "in.txt", "a\u2028b\x85c\rd\n", "sentences") == [(0, "a\u2028b\x85c\rd")]


@pytest.mark.parametrize("layout", ["sentences", "files"])
@pytest.mark.parametrize("unit", ["word ", "中文", "é"])
def test_a_huge_line_is_given_in_parts_without_loss(tmp_path: Path, layout: Layout, unit: str) -> None:
    text = unit * (3 * LONGEST_LINE // len(unit.encode()))
    found = read(tmp_path / "in.txt", f"{text}\n\nend\n", layout)
    assert len(found) > 2
    assert all(len(sentence) <= 2 * LONGEST_LINE for _, sentence in found)
    assert "".join(sentence.replace(" ", "") for _, sentence in found[:-1]) == text.replace(" ", "")
    assert found[-1][1] == "end"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\0\r\ufeff"), max_size=40), max_size=6))
def test_parts_of_lines_are_the_lines(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    path.write_bytes("\n".join(lines).encode())
    whole = list(read_lines(path, keep_ends=True))
    assert "".join(whole) == "".join(read_lines(path, 8, keep_ends=True)) == "\n".join(lines)
    assert [line.removesuffix("\n") for line in whole] == list(read_lines(path))


@given(st.text())
def test_sentences_lose_nothing_but_space(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


def test_blocks_hold_all_sentences_in_order() -> None:
    sentences = [Sentence(number // 3, "x" * (number % 7 + 1)) for number in range(50)]
    blocks = list(blocks_of(sentences, 10))
    held = [pair for block in blocks for pair in zip(block.documents, block.texts, strict=True)]
    assert held == sentences
    assert [block.number for block in blocks] == list(range(len(blocks)))
    sizes = [sum(map(len, block.texts)) for block in blocks]
    assert all(10 <= size < 17 for size in sizes[:-1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"fine\nna\xefve\n", "in.txt:2: this is not UTF-8 text: byte 0xef"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "in.txt:1: a byte of zero; this looks like a binary file"),
        (b"\x1f\x8b\x08\x00", "in.txt:1: "),
        (b"\x1f\x8b\x08\x01", "unpack it first"),
    ],
)
def test_what_is_no_text_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "in.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(read_sentences([tmp_path / "in.txt"]))


def test_no_such_layout(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="layout is 'words'; it should be one of sentences, lines"):
        list(read_sentences([tmp_path], "words"))  # type: ignore[arg-type]


def test_files_are_found_by_name_pattern_and_comma(tmp_path: Path) -> None:
    one, two, other = tmp_path / "1.txt", tmp_path / "2.txt", tmp_path / "a,b.md"
    for path in (one, two, other):
        path.touch()
    assert find_text_files(f"{tmp_path}/*.txt") == [one, two]
    assert find_text_files(f"{two}, {tmp_path}/1*") == [two, one]
    assert find_text_files([str(other), one]) == [other, one]
    assert find_text_files(one) == [one]
    for files, error, message in (
        (f"{tmp_path}/*.rst", FileNotFoundError, "there is no such text file"),
        (tmp_path / "none", FileNotFoundError, "there is no such text file"),
        (str(tmp_path), IsADirectoryError, "is a folder; name its files"),
        ([], ValueError, "no text file is named"),
        ([one, str(one)], ValueError, "named more than once"),
    ):
        with pytest.raises(error, match=message):
            find_text_files(files)  # type: ignore[arg-type]
