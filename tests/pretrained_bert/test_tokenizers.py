"""The classic tokenizers: the tokens of 0.6.2 on real text, and what each method does."""

import json
import logging
import os
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import pytorch_pretrained_bert as classic
from published import published
from pytorch_pretrained_bert import tokenization, tokenization_gpt2, tokenization_openai, tokenization_transfo_xl
from pytorch_transformers import BertTokenizer as CoreBertTokenizer
from pytorch_transformers import GPT2Tokenizer as CoreGPT2Tokenizer
from pytorch_transformers import TransfoXLTokenizer as CoreTransfoXLTokenizer
from shared_data import shared

BERT = tuple(
    f"bert-base-{kind}" for kind in ("uncased", "cased", "chinese", "multilingual-uncased", "multilingual-cased")
)
#: Lines that no corpus has: special tokens, characters that are no text, letters that change their length.
ODD = (
    "[CLS] a [SEP] b[MASK] (x) [MASK]",
    "[CL\0S] x",
    "\ue000abc\U000e0001 \ud800 x\u0378y",
    "ΟΔΟΣ Σ İstanbul naïve café",
    "a\x85b\x1cc\x0bd\u2028e\u200bf",
    " [MASK], [MASK] ",
    "x" * 101 + " " + "un" * 40,
    "東京 is 東京, 日本。",
    "",
)
PER_FILE = 40
LEAVES_FILES_OPEN = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""0.6.2 does."""


def real_lines() -> Iterator[str]:
    """Lines from all over the corpora of the shared data: books, GLUE, other languages, language modelling."""
    for pattern in ("books/*.txt", "glue/*/*.tsv", "multilingual/*.*", "lm/*/*.txt"):
        for path in sorted(shared("data").glob(pattern)):
            lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line]
            yield from lines[:: max(1, len(lines) // PER_FILE)]


def write_bpe(folder: Path, tokens: list[str], merges: list[str]) -> tuple[Path, Path]:
    folder.mkdir(exist_ok=True)
    vocab, merges_file = folder / "vocab.json", folder / "merges.txt"
    vocab.write_text(json.dumps({token: number for number, token in enumerate(tokens)}), encoding="utf-8")
    merges_file.write_text("".join(f"{line}\n" for line in ("#version: 0.2", *merges)), encoding="utf-8")
    return vocab, merges_file


@pytest.fixture
def vocab(tmp_path: Path) -> Path:
    path = tmp_path / "vocab.txt"
    special, words = ("[UNK]", "[CLS]", "[SEP]", "[MASK]"), ("the", "un", "##aff", "##able", ",", "runn", "##ing")
    path.write_text("\n".join((*special, *words, "The", "[unused1]", "")), encoding="utf-8")
    return path


@pytest.fixture
def gpt2(tmp_path: Path) -> classic.GPT2Tokenizer:
    """With the bytes of the vocabulary's first 256 tokens, and `ab`."""
    tokens = [*tokenization_gpt2.bytes_to_unicode().values(), "ab"]
    return classic.GPT2Tokenizer(*write_bpe(tmp_path / "gpt2", tokens, ["a b"]))


@pytest.fixture
def openai(tmp_path: Path) -> classic.OpenAIGPTTokenizer:
    tokens = ["<unk>", *"abc.", *(f"{letter}</w>" for letter in "abc."), "ab", "ab</w>", "do</w>", "not</w>"]
    return classic.OpenAIGPTTokenizer(*write_bpe(tmp_path / "openai", tokens, ["a b", "a b</w>"]))


# As 0.6.2.


@pytest.mark.parametrize("name", BERT)
@pytest.mark.parametrize("options", [{}, {"do_basic_tokenize": False}, {"never_split": ("Alice", "the")}], ids=str)
def test_bert_gives_the_tokens_of_0_6_2(name: str, options: dict[str, Any]) -> None:
    theirs = published("pytorch_pretrained_bert", "tokenization")
    path = shared("data", "vocab", f"{name}-vocab.txt")
    options = {"do_lower_case": "-cased" not in name, **options}
    ours, other = classic.BertTokenizer(path, **options), theirs.BertTokenizer(str(path), **options)
    count = 0
    for line in (*real_lines(), *ODD):
        tokens = ours.tokenize(line)
        assert tokens == other.tokenize(line), line
        assert ours.convert_tokens_to_ids(tokens) == other.convert_tokens_to_ids(tokens)
        count += len(tokens)
    assert count > 10_000
    assert list(ours.vocab.values()) == list(other.vocab.values())


def test_steps_of_the_basic_tokenizer_are_those_of_0_6_2() -> None:
    theirs = published("pytorch_pretrained_bert", "tokenization").BasicTokenizer()
    ours = classic.BasicTokenizer()
    for line in (*real_lines(), *ODD, "[MASK]"):
        for step in ("_clean_text", "_tokenize_chinese_chars", "_run_strip_accents", "_run_split_on_punc"):
            assert getattr(ours, step)(line) == getattr(theirs, step)(line), (step, line)
    for char in "a東가ひ㐀\U0002f800":
        assert ours._is_chinese_char(ord(char)) == theirs._is_chinese_char(ord(char))


def own_step(basic: Any, step: str) -> Any:
    """A `BasicTokenizer` of theirs or ours with one step replaced by one that does something else besides."""

    def clean(self: Any, text: str) -> str:
        return str(basic._clean_text(self, text)).replace("e", " ")

    def ideographs(self: Any, text: str) -> str:
        return str(basic._tokenize_chinese_chars(self, text)).replace("t", " t ")

    def is_ideograph(self: Any, cp: int) -> bool:
        return cp == ord("a")

    def accents(self: Any, text: str) -> str:
        return f"{basic._run_strip_accents(self, text)}é"

    def punctuation(self: Any, text: str) -> list[str]:
        return [text[:2], f" {text[2:]} "]

    replaced = {
        "_clean_text": clean,
        "_tokenize_chinese_chars": ideographs,
        "_is_chinese_char": is_ideograph,
        "_run_strip_accents": accents,
        "_run_split_on_punc": punctuation,
    }
    return replaced[step]


@pytest.mark.parametrize("where", ["subclass", "object", "class"])
@pytest.mark.parametrize("step", tokenization._STEPS)
def test_replaced_steps_have_their_effect(step: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in 0.6.2, whose `tokenize` calls them."""
    theirs = published("pytorch_pretrained_bert", "tokenization")
    lines = [*list(real_lines())[::7], *ODD]
    results: list[list[list[str]]] = []
    for basic in (classic.BasicTokenizer, theirs.BasicTokenizer):
        # The steps as they were, for the new ones to call.
        original = type("Original", (), {name: vars(basic)[name] for name in tokenization._STEPS})
        own = own_step(original, step)
        plain = [basic().tokenize(line) for line in lines]
        with monkeypatch.context() as patch:
            if where == "class":
                patch.setattr(basic, step, own)
            kind: Any = type("Own", (basic,), {step: own}) if where == "subclass" else basic
            for options in ({}, {"do_lower_case": False}, {"never_split": ("The", "to")}):
                tokenizer = kind(**options)
                if where == "object":
                    setattr(tokenizer, step, types.MethodType(own, tokenizer))
                results.append([tokenizer.tokenize(line) for line in lines])
        assert results[-3] != plain
    assert results[:3] == results[3:]


def test_kinds_of_characters_are_those_of_0_6_2() -> None:
    theirs = published("pytorch_pretrained_bert", "tokenization")
    for name in ("_is_whitespace", "_is_control", "_is_punctuation"):
        ours, other = getattr(tokenization, name), getattr(theirs, name)
        wrong = [code for code in range(sys.maxunicode + 1) if ours(chr(code)) != other(chr(code))]
        assert not wrong, name


@LEAVES_FILES_OPEN
def test_gpt2_gives_the_tokens_of_0_6_2_for_ascii_and_all_text_comes_back() -> None:
    theirs = published("pytorch_pretrained_bert", "tokenization_gpt2")
    files = [str(shared("data", "vocab", f"gpt2-{end}")) for end in ("vocab.json", "merges.txt")]
    ours, other = (module.GPT2Tokenizer(*files, special_tokens=["_s_"]) for module in (classic, theirs))
    core = CoreGPT2Tokenizer(*files)
    assert ours.bpe_ranks == other.bpe_ranks
    ascii_lines = 0
    for line in (*real_lines(), *ODD):
        ids = ours.encode(line)
        if line.isascii():
            assert ids == other.encode(line), line
            assert ours.decode(ids) == other.decode(ids)
            ascii_lines += 1
        assert ids == core.encode(line), line
        assert ours.decode(ids) == line
    assert ascii_lines > 500


@LEAVES_FILES_OPEN
def test_openai_gpt_gives_the_tokens_of_0_6_2() -> None:
    theirs = published("pytorch_pretrained_bert", "tokenization_openai")
    files = [str(shared("data", "vocab", f"openai-gpt-{end}")) for end in ("vocab.json", "merges.txt")]
    ours, other = (module.OpenAIGPTTokenizer(*files, special_tokens=["_s_"]) for module in (classic, theirs))
    assert len(ours) == len(other) == 40479
    for line in (*real_lines(), *ODD, "I do not say : ' don 't ' , you 're , <unk> it 's _s_ . "):
        ids = ours.encode(line)
        assert ids == other.encode(line), line
        for clean in (True, False):
            options = {"clean_up_tokenization_spaces": clean, "skip_special_tokens": clean}
            assert ours.decode([*ids, 40478], **options) == other.decode([*ids, 40478], **options)


@pytest.mark.parametrize(
    "options",
    [
        {"special": ["<eos>", "<unk>"]},
        {"special": ["<eos>", "<unk>"], "lower_case": True, "min_freq": 2},
        {"special": ["<unk>", "<eos>"], "max_size": 500, "delimiter": " "},
    ],
    ids=str,
)
def test_transfo_xl_gives_the_words_of_0_6_2(options: dict[str, Any], tmp_path: Path) -> None:
    theirs = published("pytorch_pretrained_bert", "tokenization_transfo_xl")
    lines = [*real_lines(), *(line for line in ODD if line)]
    ours, other = (module.TransfoXLTokenizer(**options) for module in (classic, theirs))
    for tokenizer in (ours, other):
        tokenizer.count_sents([tokenizer.tokenize(line, add_eos=True) for line in lines])
        tokenizer.build_vocab()
    assert ours.idx2sym == other.idx2sym
    assert len(ours) == len(other)
    for line in lines:
        ids = ours.convert_tokens_to_ids(ours.tokenize(line, add_eos=True))
        assert ids == other.convert_tokens_to_ids(other.tokenize(line, add_eos=True)), line
        assert ours.decode(ids, exclude=[0]) == other.decode(ids, exclude=[0])
    # The files of each open in the other.
    (tmp_path / "other").mkdir()
    ours.save_vocabulary(tmp_path)
    other.save_vocabulary(str(tmp_path / "other"))
    for place, module in ((tmp_path, theirs), (tmp_path / "other", classic)):
        again = module.TransfoXLTokenizer.from_pretrained(str(place))
        assert again.idx2sym == other.idx2sym
        assert again.counter == other.counter
        for name in ("unk_idx", "eos_idx", "lower_case", "min_freq", "max_size", "delimiter", "special"):
            assert getattr(again, name) == getattr(other, name), name


@pytest.mark.parametrize(
    ("module", "ours"),
    [
        ("tokenization", tokenization),
        ("tokenization_openai", tokenization_openai),
        ("tokenization_gpt2", tokenization_gpt2),
        ("tokenization_transfo_xl", tokenization_transfo_xl),
    ],
)
def test_tables_are_those_of_0_6_2(module: str, ours: Any) -> None:
    content = json.loads(shared("api", "pytorch_pretrained_bert-0.6.2.json").read_text(encoding="utf-8"))
    constants = {
        name: said["value"]
        for name, said in content[f"pytorch_pretrained_bert.{module}"].items()
        if said["kind"] == "constant"
    }
    assert len(constants) > 2
    for name, value in constants.items():
        assert getattr(ours, name) == value, name


# BERT.


def test_bert_as_an_example(vocab: Path) -> None:
    tokenizer = classic.BertTokenizer(vocab)
    tokens = tokenizer.tokenize("UNaffable, running [MASK] thé Xx")
    assert tokens == ["un", "##aff", "##able", ",", "runn", "##ing", "[MASK]", "the", "[UNK]"]
    ids = tokenizer.convert_tokens_to_ids(tokens)
    assert tokenizer.convert_ids_to_tokens(ids) == tokens
    assert tokenizer.convert_ids_to_tokens(torch.tensor(ids)) == tokens
    assert tokenizer.max_len == 10**12


def test_d6_words_that_are_no_tokens(vocab: Path) -> None:
    tokenizer = classic.BertTokenizer(vocab)
    with pytest.raises(KeyError, match=r"'zzz' is not in the vocabulary.*tokenizer\.tokenize"):
        tokenizer.convert_tokens_to_ids(["zzz", "the"])
    with pytest.raises(KeyError, match="no token has the id 99; ids go from 0 to 12"):
        tokenizer.convert_ids_to_tokens([99])


def test_d1_never_split_replaces_the_special_tokens(vocab: Path) -> None:
    text = "[CLS] [unused1] a [SEP]"
    assert classic.BertTokenizer(vocab).tokenize(text) == ["[CLS]", *["[UNK]"] * 4, "[SEP]"]
    replaced = classic.BertTokenizer(vocab, never_split=["[unused1]"])
    assert replaced.tokenize(text) == [*["[UNK]"] * 3, "[unused1]", *["[UNK]"] * 4]
    special = replaced.basic_tokenizer.never_split
    both = classic.BertTokenizer(vocab, never_split=[*special, "[CLS]", "[SEP]"])
    assert both.tokenize(text) == ["[CLS]", "[unused1]", "[UNK]", "[SEP]"]
    # Beside punctuation a word is not found, as in 0.6.2.
    assert both.tokenize("[CLS].")[0] == "[UNK]"


def test_attributes_may_be_changed(vocab: Path) -> None:
    tokenizer = classic.BertTokenizer(vocab)
    tokenizer.vocab["new"] = 13
    tokenizer.ids_to_tokens[13] = "new"
    tokenizer.basic_tokenizer.never_split = (*tokenizer.basic_tokenizer.never_split, "The")
    assert tokenizer.tokenize("New The") == ["new", "The"]
    assert tokenizer.convert_tokens_to_ids(["new"]) == [13]
    tokenizer.basic_tokenizer.do_lower_case = False
    assert tokenizer.tokenize("New Thé") == ["[UNK]", "[UNK]"]


def test_the_name_of_the_first_argument_before_0_5(vocab: Path, classic_folder: Path) -> None:
    loaded = classic.BertTokenizer.from_pretrained(pretrained_model_name=str(vocab), do_lower_case=False)
    assert loaded.tokenize("The the") == ["The", "the"]
    from .downloads import download

    download(classic_folder, "bert-base-cased-vocab.txt", b"[UNK]\na\n")
    assert classic.BertTokenizer.from_pretrained(pretrained_model_name="bert-base-cased").max_len == 512
    with pytest.raises(TypeError, match="takes one name"):
        classic.BertTokenizer.from_pretrained(str(vocab), pretrained_model_name=str(vocab))
    with pytest.raises(TypeError, match="takes one name"):
        classic.BertTokenizer.from_pretrained()


@pytest.mark.parametrize("convert", [tokenization.convert_to_unicode, tokenization.printable_text])
def test_bytes_of_utf_8_become_text(convert: Callable[[Any], str]) -> None:
    assert convert("naïve") == convert("naïve".encode()) == "naïve"
    assert convert(b"a\xffb") == "ab"
    with pytest.raises(ValueError, match="found int"):
        convert(3)


@pytest.mark.parametrize("family", ["bert", "bert words", "bert without words", "gpt2", "openai", "transfo-xl"])
@pytest.mark.parametrize("text", [None, b"the", 3, ["the"]], ids=str)
def test_what_is_no_text_is_named(family: str, text: Any, vocab: Path, gpt2: Any, openai: Any) -> None:
    tokenizer = {
        "bert": classic.BertTokenizer(vocab),
        "bert words": classic.BasicTokenizer(),
        "bert without words": classic.BertTokenizer(vocab, do_basic_tokenize=False),
        "gpt2": gpt2,
        "openai": openai,
        "transfo-xl": classic.TransfoXLTokenizer(),
    }[family]
    with pytest.raises(TypeError, match=rf"text.* {type(text).__name__}") as caught:
        tokenizer.tokenize(text)
    if isinstance(text, bytes) and family != "transfo-xl":
        assert "convert_to_unicode(text)" in str(caught.value)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "openai"])
def test_the_length_warning(kind: str, vocab: Path, gpt2: Any, openai: Any, caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = {"bert": classic.BertTokenizer(vocab), "gpt2": gpt2, "openai": openai}[kind]
    tokenizer.max_len = 2
    token = next(iter(tokenizer.vocab if kind == "bert" else tokenizer.encoder))
    with caplog.at_level(logging.WARNING):
        assert len(tokenizer.convert_tokens_to_ids([token] * 2)) == 2
        assert not caplog.records
        assert len(tokenizer.convert_tokens_to_ids([token] * 3)) == 3
    assert "3 tokens are more than max_len=2" in caplog.text


def test_vocabulary_files(vocab: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = classic.BertTokenizer(vocab)
    folder = tmp_path / "out"
    folder.mkdir()
    assert tokenizer.save_vocabulary(folder) == str(folder / "vocab.txt")
    assert (folder / "vocab.txt").read_bytes() == vocab.read_bytes()
    assert tokenizer.save_vocabulary(str(tmp_path / "named.txt")) == str(tmp_path / "named.txt")  # failed in 0.6.2
    again = classic.BertTokenizer.from_pretrained(str(tmp_path / "named.txt"), None, False, max_len=5)
    assert (again.basic_tokenizer.do_lower_case, again.max_len, again.vocab) == (False, 5, tokenizer.vocab)
    assert not caplog.records
    tokenizer.vocab["far"] = 40
    tokenizer.save_vocabulary(folder)
    assert "40 should be 13" in caplog.text
    (tmp_path / "spaces.txt").write_text("a \n \u2028\nb\n", encoding="utf-8")
    assert tokenization.load_vocab(tmp_path / "spaces.txt") == {"a": 0, " \u2028": 1, "b": 2}
    with pytest.raises(ValueError, match="from_pretrained"):
        classic.BertTokenizer(folder)
    (folder / "vocab.txt").unlink()
    with pytest.raises(OSError, match=r"vocab\.txt is not there"):
        classic.BertTokenizer.from_pretrained(folder)


@pytest.mark.parametrize(
    ("name", "given", "used", "warns"),
    [
        ("bert-base-cased", {}, False, True),
        ("bert-base-cased", {"do_lower_case": False}, False, False),
        ("bert-base-multilingual-cased", {"do_lower_case": True}, False, True),
        ("bert-base-uncased", {"do_lower_case": False}, True, True),
        ("bert-base-uncased", {}, True, False),
        ("bert-base-chinese", {}, True, False),
        ("bert-base-multilingual", {}, True, False),
    ],
)
def test_the_case_of_published_names(
    name: str, given: dict[str, Any], used: bool, warns: bool, classic_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from .downloads import download

    download(classic_folder, f"{name}-vocab.txt", b"[UNK]\na\n")
    tokenizer = classic.BertTokenizer.from_pretrained(name, max_len=1000, **given)
    assert tokenizer.basic_tokenizer.do_lower_case is used
    assert tokenizer.max_len == 512
    assert bool(caplog.records) is warns


def test_a_place_without_the_classic_files(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    for tokenizer in (classic.BertTokenizer, classic.GPT2Tokenizer):
        with pytest.raises(OSError, match=r"vocab\.(txt|json).*only tokenizer\.json"):
            tokenizer.from_pretrained(tmp_path)


def test_a_folder_of_the_other_package_keeps_its_case(vocab: Path, tmp_path: Path) -> None:
    CoreBertTokenizer(vocab, do_lower_case=False).save_pretrained(tmp_path / "cased")
    assert classic.BertTokenizer.from_pretrained(tmp_path / "cased").tokenize("The the") == ["The", "the"]
    assert classic.BertTokenizer.from_pretrained(tmp_path / "cased", do_lower_case=True).tokenize("The") == ["the"]


# GPT and GPT-2.


@pytest.mark.parametrize("family", ["gpt2", "openai"])
def test_special_tokens(family: str, gpt2: Any, openai: Any, tmp_path: Path) -> None:
    tokenizer = {"gpt2": gpt2, "openai": openai}[family]
    size = len(tokenizer)
    tokenizer.set_special_tokens(["_start_", "_end_"])
    assert len(tokenizer) == size + 2
    assert tokenizer.convert_tokens_to_ids("_end_") == size + 1
    token = tokenizer.tokenize("ab")[0]
    ids = tokenizer.convert_tokens_to_ids(["_start_", token, "nothing"])
    assert ids == [size, tokenizer.encoder[token], 0]
    assert tokenizer.convert_ids_to_tokens(ids[:2]) == ["_start_", token]
    assert tokenizer.convert_ids_to_tokens(ids[:2], skip_special_tokens=True) == [token]
    files = tokenizer.save_vocabulary(tmp_path)
    assert [Path(file).name for file in files] == ["vocab.json", "merges.txt", "special_tokens.txt"]
    again = type(tokenizer).from_pretrained(tmp_path)
    assert again.special_tokens == tokenizer.special_tokens == {"_start_": size, "_end_": size + 1}
    assert again.bpe_ranks == tokenizer.bpe_ranks
    assert again.encoder == tokenizer.encoder
    assert type(tokenizer).from_pretrained(tmp_path, special_tokens=["_x_"]).special_tokens == {"_x_": size}
    tokenizer.set_special_tokens(None)
    assert len(tokenizer) == size
    tokenizer.save_vocabulary(tmp_path)
    assert type(tokenizer).from_pretrained(tmp_path).special_tokens == {}
    with pytest.raises(NotADirectoryError, match="three files"):
        tokenizer.save_vocabulary(tmp_path / "vocab.json")
    with pytest.raises(KeyError, match="no token has the id 9999"):
        tokenizer.convert_ids_to_tokens([9999])


def test_gpt2_decodes_special_tokens_and_parts_of_characters(gpt2: classic.GPT2Tokenizer) -> None:
    gpt2.set_special_tokens(["_end_"])
    ids = [*gpt2.encode("é ab"), gpt2.convert_tokens_to_ids("_end_"), *gpt2.encode("ab")]
    assert len(ids) == 6
    assert gpt2.decode(ids) == "é ab_end_ab"
    assert gpt2.decode(ids[:1]) == "\ufffd"
    assert gpt2.bpe("abc") == "ab c"


def test_openai_gpt_decodes_as_an_example(openai: classic.OpenAIGPTTokenizer) -> None:
    assert openai.tokenize("AB c.") == ["ab</w>", "c</w>", ".</w>"]
    assert openai.decode(openai.encode("ab c.")) == "ab c."
    assert openai.decode(openai.encode("ab c."), clean_up_tokenization_spaces=False) == "ab c ."
    ids = openai.convert_tokens_to_ids(["a</w>", "<unk>", "do</w>", "not</w>"])
    assert openai.decode(ids) == "a don't"
    assert openai.bpe("abc") == "ab c</w>"


def test_what_mends_texts_before_openai_gpt(openai: classic.OpenAIGPTTokenizer) -> None:
    if isinstance(openai.nlp, classic.BasicTokenizer):
        assert openai.fix_text is None
    else:
        assert openai.fix_text is not None
        assert openai.fix_text("schÃ¶n") == "schön"
        assert openai.nlp.words("It's") == ["it", "'s"]  # no model of English is installed


@pytest.mark.parametrize("family", ["bert", "gpt2", "openai"])
def test_tokenizers_go_to_other_processes(family: str, vocab: Path, gpt2: Any, openai: Any) -> None:
    tokenizer = {"bert": classic.BertTokenizer(vocab), "gpt2": gpt2, "openai": openai}[family]
    text = "the runn aff ab abc"
    tokens = tokenizer.tokenize(text)
    assert pickle.loads(pickle.dumps(tokenizer)).tokenize(text) == tokens


def test_openai_gpt_leaves_a_backslash_alone_as_the_original_does() -> None:
    assert tokenization_openai.text_standardize("a\\b (c)") == "a\\b ( c )"


def test_merges_are_read_as_they_are(tmp_path: Path) -> None:
    vocab, merges = write_bpe(tmp_path, [*"abc", "ab", "abc"], ["a b"])
    merges.write_text("#version: 0.2\na b\nab c", encoding="utf-8")  # 0.6.2 lost the last one
    assert classic.GPT2Tokenizer(vocab, merges).tokenize("abc") == ["abc"]
    merges.write_text("#version: 0.2\na b\nab\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 3"):
        classic.GPT2Tokenizer(vocab, merges)
    assert tokenization_gpt2.get_pairs("abcab") == {("a", "b"), ("b", "c"), ("c", "a")}


def test_the_tokenizers_need_no_torch(loads: Callable[[str], set[str]]) -> None:
    loaded = loads("from pytorch_pretrained_bert import BertTokenizer, GPT2Tokenizer, OpenAIGPTTokenizer, cached_path")
    assert "regex" not in loaded  # GPT-2 loads it when it first splits a text
    assert "torch" not in loaded


# Transformer-XL.


@pytest.fixture
def words() -> classic.TransfoXLTokenizer:
    tokenizer = classic.TransfoXLTokenizer(special=["<eos>", "<unk>"])
    tokenizer.count_sents([tokenizer.tokenize("the cat and the dog", add_eos=True)])
    tokenizer.build_vocab()
    return tokenizer


def test_transfo_xl_as_an_example(words: classic.TransfoXLTokenizer) -> None:
    tokens = words.tokenize(" the bird and the dog ", add_eos=True)
    assert tokens == ["the", "bird", "and", "the", "dog", "<eos>"]
    ids = words.convert_tokens_to_ids(tokens)
    assert words.convert_ids_to_tokens(ids) == ["the", "<unk>", "and", "the", "dog", "<eos>"]
    assert words.decode(ids) == "the <unk> and the dog <eos>"
    assert words.decode(ids, [0, 1]) == "the and the dog"
    assert words.convert_to_tensor(tokens).tolist() == ids
    assert words.tokenize("a", add_double_eos=True) == ["<S>", "a", "<S>"]
    assert words.batch_decode([ids[:1], ids[2:3]]) == ["the", "and"]
    assert words.never_split == ["<unk>", "<eos>", "<formula>"]
    with pytest.raises(ValueError, match="99"):
        words.get_sym(99)
    lower = classic.TransfoXLTokenizer(["<unk>"], lower_case=True, never_split=["NASA"])
    assert lower.tokenize("The NASA") == ["the", "NASA"]


def test_transfo_xl_files(words: classic.TransfoXLTokenizer, tmp_path: Path) -> None:
    path = words.save_vocabulary(tmp_path)
    assert path == str(tmp_path / "vocab.bin")
    named = words.save_vocabulary(tmp_path / "named.bin")  # failed in 0.6.2
    for place in (tmp_path, path, named):
        again = classic.TransfoXLTokenizer.from_pretrained(place, None, ["<unk>"])
        assert (again.idx2sym, again.unk_idx, again.counter) == (words.idx2sym, words.unk_idx, words.counter)
        assert again.tokenize("The cat") == words.tokenize("The cat")
    # The files of the other package, and those by it.
    words.save_pretrained(tmp_path / "new")
    assert (tmp_path / "new" / "vocab.txt").is_file()
    assert classic.TransfoXLTokenizer.from_pretrained(tmp_path / "new").idx2sym == words.idx2sym
    assert CoreTransfoXLTokenizer.from_pretrained(tmp_path / "new").idx2sym == words.idx2sym
    (tmp_path / "words.txt").write_text("<unk>\nthe 9\ncat 3\n", encoding="utf-8")
    listed = classic.TransfoXLTokenizer(vocab_file=tmp_path / "words.txt")
    listed.build_vocab()
    assert listed.idx2sym == ["<unk>", "the", "cat"]
    listed._build_from_file(tmp_path / "words.txt")
    assert listed.unk_idx == 0


class _Call:
    """Pickled, a call of `os.mkdir`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (os.fspath(self.folder),)


def test_a_vocabulary_of_transfo_xl_that_runs_code_is_refused(tmp_path: Path) -> None:
    torch.save({"idx2sym": _Call(tmp_path / "made")}, tmp_path / "vocab.bin")
    with pytest.raises((ValueError, OSError), match=r"mkdir"):
        classic.TransfoXLTokenizer.from_pretrained(tmp_path)
    assert not (tmp_path / "made").exists()


def test_a_corpus_from_its_texts(tmp_path: Path) -> None:
    for split, line in (("train", "a b a"), ("valid", "b c"), ("test", "a")):
        (tmp_path / f"{split}.txt").write_text(f"{line}\n", encoding="utf-8")
    for _ in range(2):  # the second time from the cache
        corpus = tokenization_transfo_xl.get_lm_corpus(tmp_path, "wt2")
        assert isinstance(corpus, classic.TransfoXLCorpus)
        assert isinstance(corpus.vocab, classic.TransfoXLTokenizer)
        assert corpus.vocab.idx2sym == ["<eos>", "a", "b", "c"]
        data, target, length = next(iter(corpus.get_iterator("train", 1, 2)))
        assert (data.tolist(), target.tolist(), length) == ([[1, 2]], [[2, 1]], 2)
    own = classic.TransfoXLCorpus(special=["<eos>"])
    own.build_corpus(tmp_path, "wt2")
    assert own.vocab.idx2sym == corpus.vocab.idx2sym
