"""Loading and saving tokenizers."""

import copy
import inspect
import json
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytorch_transformers import BertTokenizer, GPT2Tokenizer, OpenAIGPTTokenizer
from pytorch_transformers.models.bert import tokenizer as module
from pytorch_transformers.models.family import FAMILIES
from pytorch_transformers.tokenizers.base import FAMILY_CLASSES
from shared_data import shared

Build = Callable[..., BertTokenizer]


def _folder(tmp_path: Path, vocab_file: Path, **config: Any) -> Path:
    (tmp_path / "vocab.txt").write_bytes(vocab_file.read_bytes())
    if config:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


def test_b3_no_such_place() -> None:
    with pytest.raises(OSError, match="/no/such/place") as raised:
        BertTokenizer.from_pretrained("/no/such/place")
    assert "bert-base-uncased" in str(raised.value)


def test_b3_no_vocabulary_in_the_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"vocab\.txt") as raised:
        BertTokenizer.from_pretrained(tmp_path)
    assert str(tmp_path) in str(raised.value)
    with pytest.raises(OSError, match="no vocabulary file"):
        BertTokenizer(tmp_path / "vocab.txt")


def test_b4_options_are_saved_and_restored(build: Build, tmp_path: Path) -> None:
    tokenizer = build(do_lower_case=False, model_max_length=77, never_split=["New"], strip_accents=True)
    tokenizer.save_pretrained(tmp_path)
    again = BertTokenizer.from_pretrained(tmp_path)
    assert again.tokenize("Hello")[0] == "Hello"
    assert again.init_options == tokenizer.init_options
    assert again.model_max_length == again.max_len == 77
    assert BertTokenizer.from_pretrained(tmp_path, max_len=5).model_max_length == 5
    assert BertTokenizer.from_pretrained(tmp_path, do_lower_case=True).tokenize("Hello") == ["hello"]


def test_b4_warns_of_a_cased_vocabulary(vocab_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = _folder(tmp_path, vocab_file)
    with caplog.at_level(logging.WARNING):
        BertTokenizer.from_pretrained(folder)
    assert "do_lower_case=False" in caplog.text
    caplog.clear()
    BertTokenizer.from_pretrained(folder, do_lower_case=True)
    BertTokenizer.from_pretrained(_folder(tmp_path, vocab_file, do_lower_case=True))
    assert not caplog.records


def test_b4_no_warning_for_published_uncased_vocabularies(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("uncased", "multilingual-uncased", "chinese"):
        BertTokenizer.from_pretrained(shared("data", "vocab", f"bert-base-{name}-vocab.txt"))
    assert not caplog.records
    BertTokenizer.from_pretrained(shared("data", "vocab", "bert-base-cased-vocab.txt"))
    assert len(caplog.records) == 1


def test_b4_published_names_set_the_casing(
    vocab_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _folder(tmp_path, vocab_file)
    (tmp_path / "bert-base-cased").mkdir()
    _folder(tmp_path / "bert-base-cased", vocab_file)
    monkeypatch.chdir(tmp_path)
    tokenizer = BertTokenizer.from_pretrained("bert-base-cased")
    assert (tokenizer.do_lower_case, tokenizer.model_max_length) == (False, 512)
    assert BertTokenizer.from_pretrained("bert-base-cased", do_lower_case=True).do_lower_case
    assert not caplog.records


def test_b7_works_where_the_encoding_is_not_utf_8(vocab_file: Path, tmp_path: Path) -> None:
    code = """
import sys, warnings
from pytorch_transformers import BertTokenizer
warnings.simplefilter("error", EncodingWarning)  # not before: other packages are not ours to mend
tokenizer = BertTokenizer(sys.argv[1], do_lower_case=False)
tokenizer.add_tokens(["na\\u00efve-\\u4e2d"])
tokenizer.save_pretrained(sys.argv[2])
again = BertTokenizer.from_pretrained(sys.argv[2])
assert again.get_vocab() == tokenizer.get_vocab()
assert again.tokenize("\\u00e9 na\\u00efve-\\u4e2d") == ["\\u00e9", "na\\u00efve-\\u4e2d"]
"""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-X", "warn_default_encoding", "-c", code]
    subprocess.run([*command, vocab_file, tmp_path], check=True, env={**os.environ, **plain})


def test_d9_round_trip(build: Build, tmp_path: Path) -> None:
    tokenizer = build()
    tokenizer.add_tokens(["cool-token"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<Ent>", "<Rel>"], "bos_token": "<s>"})
    written = tokenizer.save_pretrained(tmp_path / "new" / "folder")
    assert {Path(path).name for path in written} == {
        "vocab.txt",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
    }
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(
        Path(path).name for path in written
    )
    again = BertTokenizer.from_pretrained(tmp_path / "new" / "folder")
    text = "a COOL-token<Ent>, <rel> <Rel> [MASK] <s>"
    assert again.encode(text) == tokenizer.encode(text)
    assert again.tokenize(text) == tokenizer.tokenize(text)
    assert len(again) == len(tokenizer) == tokenizer.vocab_size + 4
    assert again.get_vocab() == tokenizer.get_vocab()
    assert again.special_tokens_map == tokenizer.special_tokens_map
    assert again.init_options == tokenizer.init_options


def test_d9_a_vocabulary_alone_is_enough(vocab_file: Path, tmp_path: Path) -> None:
    expected = BertTokenizer(vocab_file).encode("the cats")
    assert BertTokenizer.from_pretrained(vocab_file).encode("the cats") == expected
    assert BertTokenizer.from_pretrained(_folder(tmp_path, vocab_file)).encode("the cats") == expected
    other = tmp_path / "other-vocab.txt"
    other.write_bytes(vocab_file.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    # The options beside it belong to vocab.txt.
    assert BertTokenizer.from_pretrained(other).do_lower_case
    assert not BertTokenizer.from_pretrained(tmp_path / "vocab.txt").do_lower_case


def test_d9_weights_named_in_place_of_the_vocabulary(vocab_file: Path, tmp_path: Path) -> None:
    _folder(tmp_path, vocab_file, do_lower_case=False)
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert not BertTokenizer.from_pretrained(tmp_path / "model.safetensors").do_lower_case


def test_files_of_other_programs(vocab_file: Path, tmp_path: Path, build: Build) -> None:
    first = build().vocab_size
    decoder = {
        "0": {"content": "[PAD]", "special": True, "lstrip": False},
        str(first): {"content": "<e>", "special": True},
        str(first + 1): {"content": "plain-one", "special": False},
    }
    folder = _folder(
        tmp_path,
        vocab_file,
        tokenizer_class="BertTokenizer",
        name_or_path="somewhere",
        model_max_length=1000000000000000019884624838656,
        mask_token={"content": "[MASK]", "lstrip": True},
        cls_token="[SEP]",
        added_tokens_decoder=decoder,
        tokenizer_file=None,
        do_lower_case=True,
        model_input_names=["input_ids"],
    )
    (folder / "special_tokens_map.json").write_text('{"cls_token": {"content": "[CLS]"}}', encoding="utf-8")
    tokenizer = BertTokenizer.from_pretrained(folder)
    assert tokenizer.cls_token == "[CLS]"
    assert tokenizer.mask_token_id == 4
    assert tokenizer.additional_special_tokens == ["<e>"]
    assert tokenizer.tokenize("<e> <E> PLAIN-one") == ["<e>", *tokenizer.tokenize("<E>"), "plain-one"]
    assert tokenizer.get_added_vocab() == {"<e>": first, "plain-one": first + 1}
    assert tokenizer.model_max_length == int(1e12)


def test_transformers_reads_what_we_save(build: Build, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = build()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<e>"]})
    tokenizer.save_pretrained(tmp_path)
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    text = "the cats <e> [MASK], hello"
    assert theirs.encode(text) == tokenizer.encode(text)


def test_broken_files_are_named(vocab_file: Path, tmp_path: Path) -> None:
    folder = _folder(tmp_path, vocab_file)
    (folder / "tokenizer_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"tokenizer_config\.json"):
        BertTokenizer.from_pretrained(folder)
    (folder / "tokenizer_config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ValueError, match="JSON object"):
        BertTokenizer.from_pretrained(folder)
    (folder / "tokenizer_config.json").unlink()
    (folder / "added_tokens.json").write_text('{"x": 3}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"'x' cannot have the id 3.*\[SEP\]"):
        BertTokenizer.from_pretrained(folder)


def test_saving_leaves_no_half_file(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = build()
    tokenizer.save_pretrained(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        tokenizer.save_pretrained(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_save_vocabulary(build: Build, vocab_file: Path, tmp_path: Path) -> None:
    assert build().save_vocabulary(tmp_path) == (str(tmp_path / "vocab.txt"),)
    assert (tmp_path / "vocab.txt").read_bytes() == vocab_file.read_bytes()
    assert build().save_vocabulary(tmp_path / "v.txt") == (str(tmp_path / "v.txt"),)


@pytest.mark.parametrize("engine", ["python", "tokenizers", "auto"])
def test_pickle_and_deepcopy(build: Build, engine: str) -> None:
    tokenizer = build(engine=engine)
    tokenizer.add_tokens(["cool-token"])
    expected = tokenizer.encode("a cool-token [MASK]")
    for other in (pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
        assert other.encode("a cool-token [MASK]") == expected
        assert other.tokenize("the Cool-token") == ["the", "cool-token"]
        other.add_tokens(["another"])
        assert len(other) == len(tokenizer) + 1


def test_unknown_options_are_refused(vocab_file: Path) -> None:
    with pytest.raises(TypeError, match="'do_lowercase'; did you mean 'do_lower_case'"):
        BertTokenizer(vocab_file, do_lowercase=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean 'padding_side'"):
        BertTokenizer.from_pretrained(vocab_file, paddding_side="left")
    with pytest.raises(ValueError, match="engine='rust' is none of"):
        BertTokenizer(vocab_file, engine="rust")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two names"):
        BertTokenizer(vocab_file, max_len=3, model_max_length=4)
    with pytest.raises(ValueError, match=r"no unknown token '<unk>'"):
        BertTokenizer(vocab_file, unk_token="<unk>")


@pytest.mark.parametrize(
    "name",
    [
        "do_lower_case",
        "do_basic_tokenize",
        "tokenize_chinese_chars",
        "strip_accents",
        "split_special_tokens",
        "clean_up_tokenization_spaces",
    ],
)
@pytest.mark.parametrize("value", ["False", 0, []], ids=repr)
def test_what_is_neither_true_nor_false_is_named(vocab_file: Path, tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} must be True or False, not {value!r}".replace("[]", r"\[\]")):
        BertTokenizer(vocab_file, **{name: value})
    with pytest.raises(TypeError, match=name):
        BertTokenizer.from_pretrained(_folder(tmp_path, vocab_file, **{name: value}))


def test_published_names() -> None:
    assert module.VOCAB_FILES_NAMES == {"vocab_file": "vocab.txt"}
    names = set(module.PRETRAINED_VOCAB_FILES_MAP["vocab_file"])
    assert names == set(module.PRETRAINED_INIT_CONFIGURATION) == set(module.PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES)
    assert module.PRETRAINED_INIT_CONFIGURATION["bert-base-cased"] == {"do_lower_case": False}


def test_constructor_takes_the_published_arguments_in_order() -> None:
    names = list(inspect.signature(BertTokenizer).parameters)[:10]
    assert names == [
        "vocab_file",
        "do_lower_case",
        "do_basic_tokenize",
        "never_split",
        "unk_token",
        "sep_token",
        "pad_token",
        "cls_token",
        "mask_token",
        "tokenize_chinese_chars",
    ]


def test_importing_and_using_loads_no_torch(vocab_file: Path) -> None:
    code = """
import sys
from pytorch_transformers import BertTokenizer
tokenizer = BertTokenizer(sys.argv[1])
tokenizer(["a", "b c"], padding=True)
assert not {"torch", "tokenizers", "huggingface_hub", "numpy"} & set(sys.modules), sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code, vocab_file], check=True)


def test_classes_of_the_families() -> None:
    assert {family.classes["tokenizer"].partition(":")[2] for family in FAMILIES} == FAMILY_CLASSES


@pytest.mark.parametrize("suffix", ["", "Fast"])
@pytest.mark.parametrize(("ours", "other"), [(GPT2Tokenizer, OpenAIGPTTokenizer), (OpenAIGPTTokenizer, GPT2Tokenizer)])
def test_tokenizer_of_another_family(
    ours: Any, other: Any, suffix: str, byte_pairs: Any, letter_pairs: Any, save_pairs: Any, tmp_path: Path
) -> None:
    """The files have the same names; without a check texts would become ids that mean nothing."""
    folder = save_pairs(tmp_path, byte_pairs if ours is GPT2Tokenizer else letter_pairs)
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps({"tokenizer_class": other.__name__ + suffix}), encoding="utf-8")
    with pytest.raises(ValueError, match=f"is of a {other.__name__}, not of a {ours.__name__}; use {other.__name__}"):
        ours.from_pretrained(folder)
    for allowed in (ours.__name__ + suffix, "PreTrainedTokenizerFast", "MyTokenizer", None):
        config.write_text(json.dumps({"tokenizer_class": allowed}), encoding="utf-8")
        assert len(ours.from_pretrained(folder)) > 50

    class Derived(ours):  # type: ignore[misc]
        """A subclass reads what its family saved."""

    config.write_text(json.dumps({"tokenizer_class": ours.__name__}), encoding="utf-8")
    assert len(Derived.from_pretrained(folder)) > 50
