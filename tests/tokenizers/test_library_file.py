"""`tokenizer.json` in place of a vocabulary: the one file that recent programs save."""

import copy
import json
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytorch_transformers import AutoTokenizer, BertTokenizer

TEXTS = ["the cats [MASK], hello", "Héllo <e> Cool-Token, a<E> 中b", "x" * 30, ""]
Change = Callable[[dict[str, Any]], object]


def saved_by_transformers(folder: Path, vocab_file: Path, **options: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertTokenizer(str(vocab_file), **options)
    theirs.add_tokens(["cool-token"])
    theirs.add_special_tokens({"additional_special_tokens": ["<e>"]})
    theirs.save_pretrained(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["tokenizer.json", "tokenizer_config.json"]
    return theirs


@pytest.fixture
def folder(tmp_path: Path, vocab_file: Path) -> Path:
    saved_by_transformers(tmp_path, vocab_file)
    return tmp_path


def change(path: Path, how: Change) -> None:
    content = json.loads(path.read_text("utf-8"))
    how(content)
    path.write_text(json.dumps(content), "utf-8")


@pytest.mark.parametrize(
    "options",
    [{}, {"do_lower_case": False}, {"strip_accents": True, "do_lower_case": False}, {"tokenize_chinese_chars": False}],
    ids=str,
)
@pytest.mark.parametrize("config", [True, False], ids=["with config", "without"])
def test_opens_what_transformers_saves(
    tmp_path: Path, vocab_file: Path, options: dict[str, Any], config: bool, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = saved_by_transformers(tmp_path, vocab_file, **options)
    if not config:
        (tmp_path / "tokenizer_config.json").unlink()
    ours = BertTokenizer.from_pretrained(tmp_path)
    assert [ours.encode(text) for text in TEXTS] == [theirs.encode(text) for text in TEXTS]
    assert ours.get_vocab() == theirs.get_vocab()
    assert (ours.vocab_size, len(ours)) == (theirs.vocab_size, len(theirs))
    assert ours.get_added_vocab() == {"cool-token": ours.vocab_size, "<e>": ours.vocab_size + 1}
    assert ours.additional_special_tokens == ["<e>"]
    assert not caplog.records


@pytest.mark.parametrize("engine", ["python", "tokenizers", "auto"])
def test_saves_pickles_and_copies_as_any_other(folder: Path, vocab_file: Path, tmp_path: Path, engine: str) -> None:
    ours = BertTokenizer.from_pretrained(folder, engine=engine)
    ours.save_pretrained(tmp_path / "new")
    assert (tmp_path / "new" / "vocab.txt").read_bytes() == vocab_file.read_bytes()
    assert not (tmp_path / "new" / "tokenizer.json").exists()
    for other in (
        BertTokenizer.from_pretrained(tmp_path / "new"),
        pickle.loads(pickle.dumps(ours)),
        copy.deepcopy(ours),
    ):
        assert other.get_vocab() == ours.get_vocab()
        assert other.init_options == ours.init_options
        assert [other.encode(text) for text in TEXTS] == [ours.encode(text) for text in TEXTS]


def test_the_file_by_its_path(folder: Path) -> None:
    expected = BertTokenizer.from_pretrained(folder)
    tokenizer = BertTokenizer.from_pretrained(folder / "tokenizer.json")
    assert tokenizer.get_vocab() == expected.get_vocab()
    assert tokenizer.init_options == expected.init_options


def test_auto_tokenizer_reads_the_class_that_was_saved(folder: Path) -> None:
    assert isinstance(AutoTokenizer.from_pretrained(folder), BertTokenizer)
    assert isinstance(AutoTokenizer.from_pretrained(folder / "tokenizer.json"), BertTokenizer)
    change(folder / "tokenizer_config.json", lambda content: content.update(tokenizer_class="BertTokenizerFast"))
    assert isinstance(AutoTokenizer.from_pretrained(folder), BertTokenizer)


def test_the_config_wins(folder: Path) -> None:
    change(folder / "tokenizer_config.json", lambda content: content.update(do_lower_case=False, unk_token="[PAD]"))
    tokenizer = BertTokenizer.from_pretrained(folder)
    assert (tokenizer.do_lower_case, tokenizer.unk_token) == (False, "[PAD]")
    assert BertTokenizer.from_pretrained(folder, do_lower_case=True).do_lower_case


def test_the_file_gives_what_the_config_does_not(folder: Path) -> None:
    def other(content: dict[str, Any]) -> None:
        content["model"].update(unk_token="[MASK]", max_input_chars_per_word=7)
        content["normalizer"].update(lowercase=False, strip_accents=True, handle_chinese_chars=False)

    (folder / "tokenizer_config.json").unlink()
    change(folder / "tokenizer.json", other)
    options = BertTokenizer.from_pretrained(folder).init_options
    wanted = {"unk_token": "[MASK]", "max_input_chars_per_word": 7, "do_lower_case": False, "strip_accents": True}
    assert {**wanted, "tokenize_chinese_chars": False}.items() <= options.items()
    change(folder / "tokenizer.json", lambda content: content.update(normalizer=None))
    change(folder / "tokenizer.json", lambda content: content["pre_tokenizer"].update(type="WhitespaceSplit"))
    assert BertTokenizer.from_pretrained(folder).tokenize("Hello, a") == ["[MASK]", "a"]


def test_a_vocabulary_is_read_first(folder: Path, vocab_file: Path) -> None:
    (folder / "vocab.txt").write_bytes(vocab_file.read_bytes() + b"more\n")
    (folder / "tokenizer.json").write_text("{", "utf-8")
    (folder / "tokenizer_config.json").unlink()
    assert BertTokenizer.from_pretrained(folder).vocab["more"] == 80


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (lambda content: content["model"].update(type="BPE"), r"type 'BPE', and BertTokenizer .*vocab\.txt"),
        (lambda content: content.pop("model"), "'model' should be a JSON object, not NoneType"),
        (lambda content: content["model"].update(vocab=["a"]), "'vocab' should be a JSON object, not list"),
        (lambda content: content["model"].update(vocab={}), "0 tokens"),
        (lambda content: content["model"]["vocab"].pop("the"), "79 tokens, and none with the id 46"),
        (lambda content: content["model"]["vocab"].update(the=47), "none with the id 46"),
        (lambda content: content["model"]["vocab"].update(the=[46]), "none with the id 46"),
        (lambda content: content["model"].update(continuing_subword_prefix="@@"), "continuing_subword_prefix='@@'"),
        (lambda content: content["normalizer"].update(type="Lowercase"), r"normalizer, pre_tokenizer=\['Lowercase'"),
        (lambda content: content["normalizer"].update(clean_text=False), "clean_text=False"),
        (lambda content: content.update(added_tokens=["a"]), "an id and a content; there is 'a'"),
        (lambda content: content.update(added_tokens={"a": 3}), "an id and a content; there is {'a': 3}"),
    ],
)
def test_what_cannot_be_read_is_named(folder: Path, how: Change, message: str) -> None:
    change(folder / "tokenizer.json", how)
    with pytest.raises(ValueError, match=message) as raised:
        BertTokenizer.from_pretrained(folder)
    assert str(folder / "tokenizer.json") in str(raised.value)


def test_a_broken_file_is_named(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"model": ', "utf-8")
    with pytest.raises(ValueError, match=r"tokenizer\.json' is not a JSON file"):
        BertTokenizer.from_pretrained(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(OSError, match=r"vocab\.txt is not there; neither is tokenizer\.json"):
        BertTokenizer.from_pretrained(folder)


def test_tokens_of_the_vocabulary_among_the_added_ones_are_reported(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entry = {"id": 46, "content": "the", "special": False}
    change(folder / "tokenizer.json", lambda content: content["added_tokens"].append(entry))
    with caplog.at_level(logging.WARNING):
        tokenizer = BertTokenizer.from_pretrained(folder)
    assert "tokens of the vocabulary as added ones ('the')" in caplog.text
    assert "the" not in tokenizer.get_added_vocab()


def test_tokens_in_place_of_a_file(vocab_file: Path) -> None:
    tokens = vocab_file.read_text("utf-8").splitlines()
    expected = BertTokenizer(vocab_file)
    for vocab in (tokens, tuple(tokens), list(expected.vocab)):
        tokenizer = BertTokenizer(vocab)
        assert tokenizer.encode("the cats") == expected.encode("the cats")
    tokens.append("later")
    assert "later" not in BertTokenizer(tuple(tokens[:-1])).vocab
    with pytest.raises(TypeError, match="path of a file or a list of str, not 3"):
        BertTokenizer(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="path of a file or a list of str"):
        BertTokenizer(["a", 3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="vocabulary is empty"):
        BertTokenizer([])
