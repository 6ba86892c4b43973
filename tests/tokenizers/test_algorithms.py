"""The readable algorithms: characters, words, word pieces, and text that remembers its places."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_transformers import BasicTokenizer, WordpieceTokenizer
from pytorch_transformers.tokenizers.aligned import decompose, lower, unchanged
from pytorch_transformers.tokenizers.characters import is_punctuation

VOCAB = dict.fromkeys(["un", "##aff", "##able", "want", "##want", "##ed", "[UNK]", "a", ""], 0)
MARKS = st.text(
    st.one_of(st.characters(), st.sampled_from("\u0301\u0327\u0323\u302e\u0f71\u0f72e\u00e9\ud55cΣİ")), max_size=12
)
MANY = settings(max_examples=300, derandomize=True)


def test_wordpieces() -> None:
    wordpiece = WordpieceTokenizer(VOCAB)
    assert wordpiece.tokenize("") == []
    assert wordpiece.tokenize("unwanted unaffable") == ["un", "##want", "##ed", "un", "##aff", "##able"]
    assert wordpiece.tokenize("unwantedX") == ["[UNK]"]
    assert wordpiece.pieces("unwanted") == [("un", 0, 2), ("##want", 2, 6), ("##ed", 6, 8)]


@pytest.mark.parametrize(("length", "known"), [(99, True), (100, True), (101, False)])
def test_longest_word(length: int, known: bool) -> None:
    vocab = {"a": 0, "##a": 1, "[UNK]": 2}
    assert (WordpieceTokenizer(vocab).tokenize("a" * length) != ["[UNK]"]) is known


def test_words() -> None:
    assert BasicTokenizer().tokenize(" \tHeLLo!how  \n Are yoU?  ") == ["hello", "!", "how", "are", "you", "?"]
    assert BasicTokenizer(False).tokenize("HäLLo!") == ["HäLLo", "!"]
    assert BasicTokenizer().tokenize("HäLLo") == ["hallo"]
    assert BasicTokenizer(strip_accents=False).tokenize("HäLLo") == ["hällo"]
    assert BasicTokenizer(False, strip_accents=True).tokenize("HäLLo") == ["HaLLo"]
    assert BasicTokenizer().tokenize("ah中文bz") == ["ah", "中", "文", "bz"]
    assert BasicTokenizer(tokenize_chinese_chars=False).tokenize("ah中文bz") == ["ah中文bz"]
    assert BasicTokenizer().tokenize("ΑΣ ΑΣΑ Σ") == ["ας", "ασα", "σ"]


def test_ascii_punctuation() -> None:
    signs = [chr(code) for code in range(128) if is_punctuation(chr(code))]
    assert "".join(signs) == "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


@MANY
@given(MARKS, st.booleans(), st.booleans(), st.sampled_from([None, True, False]))
def test_aligned_text_is_the_normalised_text(text: str, low: bool, chinese: bool, strip: bool | None) -> None:
    basic = BasicTokenizer(low, None, chinese, strip_accents=strip)
    aligned = basic.normalize_aligned(text)
    assert aligned.text == basic.normalize(text)
    assert len(aligned.positions) == len(aligned.text)
    # Normalised text may be normalised again, and the short way for ASCII is the long way.
    assert basic.split(aligned.text) == basic.split(text)
    assert basic.split(text) == basic.split(text + " \u3000")


@MANY
@given(MARKS)
def test_aligned_steps_do_what_python_does(text: str) -> None:
    assert decompose(unchanged(text)).text == unicodedata.normalize("NFD", text)
    assert lower(unchanged(text)).text == text.lower()


@MANY
@given(st.text(st.characters(max_codepoint=127)))
def test_short_way_for_ascii(text: str) -> None:
    for basic in (BasicTokenizer(True), BasicTokenizer(False)):
        # A character beyond ASCII at the end takes the long way.
        assert [*basic.split(text), "中"] == basic.split(text + "中")
