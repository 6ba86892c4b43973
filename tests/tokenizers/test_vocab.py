"""Vocabulary files: a line is an id, whatever is on it."""

import logging
from pathlib import Path

import pytest

from pytorch_transformers import BertTokenizer
from pytorch_transformers.tokenizers.vocab import load_vocab, read_tokens, save_tokens
from shared_data import shared


def test_d5_unusual_lines(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes("[PAD]\n[UNK]\n\u2028\na\n\nb\n".encode())
    assert read_tokens(path) == ["[PAD]", "[UNK]", "\u2028", "a", "", "b"]
    assert list(load_vocab(path).values()) == [0, 1, 2, 3, 4, 5]


def test_d5_only_newlines_end_a_line(tmp_path: Path) -> None:
    tokens = ["[UNK]", "\u00a0", "\u0085", "\u2029", "x\ry", " z ", "\x0b", "\x1c"]
    path = tmp_path / "vocab.txt"
    path.write_bytes("\r\n".join(tokens).encode())
    assert read_tokens(path) == tokens


def test_d5_no_newline_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[UNK]\na")
    assert read_tokens(path) == ["[UNK]", "a"]


def test_d5_duplicates_are_reported_and_shift_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("[UNK]\na\nb\na\nc\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        vocab = load_vocab(path)
    assert vocab == {"[UNK]": 0, "a": 3, "b": 2, "c": 4}
    assert "'a'" in caplog.text
    tokenizer = BertTokenizer(path, sep_token=None, cls_token=None, pad_token=None, mask_token=None)
    assert (tokenizer.vocab_size, len(tokenizer)) == (5, 5)
    assert tokenizer.convert_ids_to_tokens([1, 3, 4]) == ["a", "a", "c"]


@pytest.mark.parametrize(
    ("name", "size"), [("uncased", 30522), ("cased", 28996), ("chinese", 21128), ("multilingual-cased", 119547)]
)
def test_d5_published_sizes(name: str, size: int) -> None:
    tokens = read_tokens(shared("data", "vocab", f"bert-base-{name}-vocab.txt"))
    assert len(tokens) == len(set(tokens)) == size


def test_d5_chinese_ids() -> None:
    vocab = load_vocab(shared("data", "vocab", "bert-base-chinese-vocab.txt"))
    assert (vocab["我"], vocab["哦"]) == (2769, 1521)


def test_byte_order_mark_is_no_part_of_the_first_token(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes("\ufeff[PAD]\n[UNK]\n".encode())
    assert read_tokens(path) == ["[PAD]", "[UNK]"]


def test_round_trip_is_byte_exact(tmp_path: Path) -> None:
    source = shared("data", "vocab", "bert-base-multilingual-cased-vocab.txt")
    assert save_tokens(read_tokens(source), tmp_path / "v.txt").read_bytes() == source.read_bytes()


def test_what_is_no_vocabulary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"vocab\.txt.*not UTF-8"):
        read_tokens(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="empty"):
        read_tokens(path)
    with pytest.raises(ValueError, match="newline"):
        save_tokens(["a\nb"], path)
