"""Tokens of paragraphs in a file: when they are used, what their name covers, and what happens to damaged ones."""

import io
import logging
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytorch_transformers import BertTokenizer
from pytorch_transformers.data.squad import SquadQuestion
from pytorch_transformers.data.squad_cache import load_tokens, save_tokens, token_file
from pytorch_transformers.data.squad_paragraphs import tokenize_paragraphs
from pytorch_transformers.data.squad_windows import encode_questions
from saved_bert import VOCABULARY

TEXTS = ["rain in the oven .", " \u200b", "", "caf\u00e9 \u96e8 golden \ud800 Onions", "a b c d " * 9]
QUESTIONS = [SquadQuestion(str(n), "cook ?", text) for n, text in enumerate(TEXTS) for _ in range(2)]


def rows(cache: Path | None, **options: Any) -> list[dict[str, Any]]:
    return encode_questions(QUESTIONS, BertTokenizer(VOCABULARY), cache=cache, **options).rows


def tokens(cache: Path | None) -> list[tuple[str, list[int], list[int], list[int]]]:
    found = tokenize_paragraphs(TEXTS, BertTokenizer(VOCABULARY), cache=cache)
    return [(paragraph.text, ids, paragraph.starts.tolist(), paragraph.ends.tolist()) for paragraph, ids in found]


def made(folder: Path) -> Path:
    """The one file there."""
    (path,) = folder.iterdir()
    return path


def test_fault_i1_one_file_serves_rows_of_every_length(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    for options in ({}, {}, {"max_seq_length": 16, "doc_stride": 4}, {"max_query_length": 1}):
        assert rows(folder, **options) == rows(None, **options)
        assert tokens(folder) == tokens(None)
    assert made(folder) == token_file(folder, TEXTS, BertTokenizer(VOCABULARY))


def test_what_is_in_the_file_is_not_made_again(tmp_path: Path) -> None:
    path = token_file(tmp_path, TEXTS, BertTokenizer(VOCABULARY))
    save_tokens(path, [np.array([[7], [0], [1]], dtype=np.int32)] * len(TEXTS))
    assert tokens(tmp_path) == [(text, [7], [0], [1]) for text in TEXTS]


def test_the_name_covers_the_paragraphs() -> None:
    tokenizer = BertTokenizer(VOCABULARY)
    lists = [["a b"], ["a b "], ["a", " b"], ["a ", "b"], ["b", "a "], ["a b", ""], [], [""], ["\ud800"], ["\ud801"]]
    assert len({token_file("", texts, tokenizer) for texts in lists}) == len(lists)


class Other(BertTokenizer):
    pass


def test_the_name_covers_the_tokenizer() -> None:
    more = BertTokenizer(VOCABULARY)
    more.add_tokens(["golden oven"])
    later = BertTokenizer(VOCABULARY)
    later.split_special_tokens = True
    tokenizers = [
        BertTokenizer(VOCABULARY),
        BertTokenizer([*VOCABULARY[:-2], *VOCABULARY[:-3:-1]]),
        BertTokenizer(VOCABULARY, do_lower_case=False),
        BertTokenizer(VOCABULARY, strip_accents=False),
        BertTokenizer(VOCABULARY, tokenize_chinese_chars=False),
        BertTokenizer(VOCABULARY, do_basic_tokenize=False),
        BertTokenizer(VOCABULARY, max_input_chars_per_word=5),
        BertTokenizer(VOCABULARY, never_split=["Oven"]),
        Other(VOCABULARY),
        more,
        later,
    ]
    assert len({token_file("", TEXTS, tokenizer) for tokenizer in tokenizers}) == len(tokenizers)


def test_a_saved_tokenizer_has_the_files_of_the_first(tmp_path: Path) -> None:
    tokenizer = BertTokenizer(VOCABULARY, never_split=["Oven", "Rain"], model_max_length=64)
    tokenizer.save_pretrained(tmp_path)
    again = BertTokenizer.from_pretrained(tmp_path)
    assert token_file("", TEXTS, again) == token_file("", TEXTS, tokenizer)


def test_damage_is_found_and_mended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = tokens(tmp_path)
    path = made(tmp_path)
    whole = path.read_bytes()
    found = load_tokens(path, len(TEXTS))
    assert found is not None
    cut = [whole[:size] for size in range(0, len(whole), 23)]
    changed = [whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :] for place in range(0, len(whole), 5)]
    refused = 0
    for content in [*cut, *changed, b"\x80\x04." * 9]:
        path.write_bytes(content)
        loaded = load_tokens(path, len(TEXTS))  # the date of the file may be anything, the tokens not
        refused += loaded is None
        assert loaded is None or all(np.array_equal(a, b) for a, b in zip(loaded, found, strict=True))
    assert refused > len(cut) + len(changed) // 2
    path.write_bytes(whole[:-9])
    caplog.clear()
    assert tokens(tmp_path) == expected
    assert caplog.messages == [f"{path}: can't be read (File is not a zip file); the tokens are made again"]
    assert path.read_bytes() == whole
    save_tokens(path, found[1:])
    assert tokens(tmp_path) == expected
    assert "are not those of 5 paragraphs" in caplog.messages[-1]


def test_a_folder_that_cannot_be_written_to_costs_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("this is no folder")
    assert tokens(tmp_path / "file") == tokens(None)
    assert "can't be written" in caplog.messages[-1]
    assert "the tokens are not kept" in caplog.messages[-1]


def fill(folder: Path) -> tuple[list[Any], list[str]]:
    """What 15 runs find that each begin without the file, and their warnings."""
    log, found = io.StringIO(), []
    logging.basicConfig(stream=log, level=logging.WARNING)
    for _ in range(15):
        for path in folder.glob("*.npz"):
            path.unlink(missing_ok=True)
        found.append(tokens(folder))
    return found, log.getvalue().splitlines()


def test_two_processes_that_fill_a_folder_at_once_do_no_harm(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        both = list(pool.map(fill, [tmp_path] * 2))
    assert both == [([tokens(None)] * 15, [])] * 2
    assert made(tmp_path) == token_file(tmp_path, TEXTS, BertTokenizer(VOCABULARY))  # and nothing half-written
    assert load_tokens(made(tmp_path), len(TEXTS)) is not None
