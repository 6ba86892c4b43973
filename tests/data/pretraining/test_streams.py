"""Token streams for causal models: the ids of whole documents, blocks of them, and rows packed from them."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers import GPT2Tokenizer
from pytorch_transformers.data.pretraining import StreamBlocks, TokenStream, write_stream
from pytorch_transformers.data.pretraining.streams import StreamLayout
from pytorch_transformers.tokenizers.text_files import LONGEST_LINE
from pytorch_transformers.tokenizers.train import train_byte_bpe

from .corpus import make_documents, make_tokenizer, write_documents

TEXT = "The cat sat.\nIt slept,  then\n\n\n  it ate.\n\nThe end \n"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> GPT2Tokenizer:
    path = tmp_path_factory.mktemp("train") / "in.txt"
    path.write_text(TEXT * 3, encoding="utf-8")
    tokens, merges = train_byte_bpe(path, 320)
    return GPT2Tokenizer({token: number for number, token in enumerate(tokens)}, merges.pairs)


@pytest.mark.parametrize(
    ("layout", "documents"),
    [
        ("files", [TEXT.strip()]),
        ("blank_line", ["The cat sat.\nIt slept,  then", "it ate.", "The end"]),
        ("lines", ["The cat sat.", "It slept,  then", "it ate.", "The end"]),
    ],
)
def test_documents_with_end_tokens(
    tokenizer: GPT2Tokenizer, tmp_path: Path, layout: StreamLayout, documents: list[str]
) -> None:
    for name in ("1.txt", "2.txt"):
        (tmp_path / name).write_text(TEXT, encoding="utf-8")
    index = write_stream(f"{tmp_path}/*.txt", tokenizer, tmp_path / "out", layout=layout)
    stream = TokenStream(tmp_path / "out", verify=True)
    assert stream.index == index
    end = tokenizer.eos_token_id
    assert [stream.document(number).tolist() for number in range(index.documents)] == [
        [*tokenizer(text)["input_ids"], end] for text in documents * 2
    ]
    assert len(stream) == index.tokens == stream.documents[-1]
    assert isinstance(stream.ids, np.memmap)
    assert stream.ids.dtype == np.uint16
    with pytest.raises(IndexError):
        stream.document(index.documents)
    copy = pickle.loads(pickle.dumps(stream))
    np.testing.assert_array_equal(copy.ids, stream.ids)


def test_a_long_document_has_the_ids_of_the_whole(tokenizer: GPT2Tokenizer, tmp_path: Path) -> None:
    """Cut between lines and within a huge line, at white space of every kind; two processes make the same."""
    units = ["The cat sat.\n", "It   slept\n\n\n", "  then it ate \t", "end.\n \n"]
    text = "".join(units[(number * 7 + number // 5) % 4] for number in range(4 * LONGEST_LINE // 12))
    text += " word" * (LONGEST_LINE // 4) + "\n x"
    (tmp_path / "in.txt").write_text(text, encoding="utf-8")
    one = write_stream(tmp_path / "in.txt", tokenizer, tmp_path / "one")
    two = write_stream(tmp_path / "in.txt", tokenizer, tmp_path / "two", processes=2)
    assert one == two
    stream = TokenStream(tmp_path / "two")
    assert stream.ids.tolist() == [*tokenizer(text.strip())["input_ids"], tokenizer.eos_token_id]


def test_other_ends(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("aa\n\nab ac\n", encoding="utf-8")
    bert = make_tokenizer(1)
    for end, ends in (("default", [bert.sep_token_id]), (None, []), ("[CLS]", [bert.cls_token_id])):
        index = write_stream(tmp_path / "in.txt", bert, tmp_path / "out", layout="blank_line", end_token=end)
        plain = bert._encode_ids(["aa", "ab ac"])
        assert TokenStream(tmp_path / "out").ids.tolist() == [*plain[0], *ends, *plain[1], *ends]
        assert index.end_id == (ends[0] if ends else None)
    with pytest.raises(ValueError, match="'<end>' is not in the tokenizer's vocabulary"):
        write_stream(tmp_path / "in.txt", bert, tmp_path / "out", end_token="<end>")


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> TokenStream:
    folder = tmp_path_factory.mktemp("stream")
    text = write_documents(folder / "in.txt", make_documents(12, 4))
    write_stream(text, make_tokenizer(12), folder / "out", layout="blank_line")
    return TokenStream(folder / "out")


@given(length=st.integers(2, 90), data=st.data())
def test_blocks_cover_the_stream(stream: TokenStream, length: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, length))
    blocks = StreamBlocks(stream, length, stride=stride)
    ids = stream.ids.tolist()
    rows = [blocks[number]["input_ids"] for number in range(len(blocks))]
    assert all(row == ids[number * stride : number * stride + length] for number, row in enumerate(rows))
    assert all(len(row) == length for row in rows[:-1])
    assert len(rows[-1]) >= 2
    # All is covered, but perhaps a last single token that would predict nothing.
    assert len(ids) - ((len(rows) - 1) * stride + len(rows[-1])) in (0, 1)
    whole = StreamBlocks(stream, length, stride=stride, drop_last=True)
    assert [whole[number]["input_ids"] for number in range(len(whole))] == [row for row in rows if len(row) == length]
    assert blocks[0]["labels"] == rows[0]
    with pytest.raises(IndexError):
        blocks[len(blocks)]


def test_what_cannot_be_used(stream: TokenStream, tmp_path: Path) -> None:
    cases: tuple[tuple[int, dict[str, Any], str], ...] = (
        (1, {}, "length is 1"),
        (8, {"stride": 9}, "stride is 9; it should be from 1 to the length"),
        (10**6, {"drop_last": True}, "fewer than one block"),
    )
    for length, more, message in cases:
        with pytest.raises(ValueError, match=message):
            StreamBlocks(stream, length, **more)
    (tmp_path / "in.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(ValueError, match="there is no text"):
        write_stream(tmp_path / "in.txt", make_tokenizer(1), tmp_path / "out")
    with pytest.raises(OSError, match="holds no complete token stream"):
        TokenStream(tmp_path / "out")


def test_damaged_streams_are_named(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("aa ab\n", encoding="utf-8")
    write_stream(tmp_path / "in.txt", make_tokenizer(1), tmp_path / "out")
    path = tmp_path / "out" / "ids.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-2] + b"\1\1")
    TokenStream(tmp_path / "out")
    with pytest.raises(OSError, match=r"ids\.npy does not match its checksum"):
        TokenStream(tmp_path / "out", verify=True)
    path.write_bytes(content[:-2])
    with pytest.raises(OSError, match=r"ids\.npy"):
        TokenStream(tmp_path / "out")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        TokenStream(tmp_path / "out")
