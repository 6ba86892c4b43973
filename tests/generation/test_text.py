"""From text to text: pieces that never cut a character, stop strings, and the checks of model and tokenizer."""

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers.generation import TextGenerator
from pytorch_transformers.generation.text import Pieces, StopStrings
from pytorch_transformers.models.gpt2.heads import GPT2LMHeadModel
from pytorch_transformers.models.gpt2.tokenizer import GPT2Tokenizer

from .saved_gpt2 import POSITIONS, save_tiny_gpt2
from .tiny import greedy, make


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_gpt2(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> GPT2Tokenizer:
    return GPT2Tokenizer.from_pretrained(str(folder))


@pytest.fixture(scope="module")
def generator(folder: Path, tokenizer: GPT2Tokenizer) -> TextGenerator:
    return TextGenerator(GPT2LMHeadModel.from_pretrained(str(folder)), tokenizer)


class Words:
    """A tokenizer that puts spaces between words, as OpenAI GPT's does."""

    bos_token_id = eos_token_id = None
    words: tuple[str, ...] = ("the", "cat", "sat", "on", "mat")

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: str, /, *, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return [self.words.index(word) for word in text.split()]

    def decode(self, token_ids: Any, /, *, clean_up_tokenization_spaces: bool) -> str:
        assert not clean_up_tokenization_spaces
        return " ".join(self.words[token] for token in token_ids)


def test_text_of_the_tokens(generator: TextGenerator, tokenizer: GPT2Tokenizer) -> None:
    found = generator.generate("the cat", max_new_tokens=20)
    prompt = tokenizer.encode("the cat")
    tokens = greedy(generator.model, prompt, 20)
    assert found.tokens == tokens
    assert found.prompt == "the cat"
    assert found.sample == 0
    assert found.finish_reason == "length"
    assert found.text == tokenizer.decode(tokens)
    assert found.scores is None


def test_several_texts_of_different_length(generator: TextGenerator) -> None:
    texts = ["the cat", "hello", "é", "the the the cat"]
    found = generator.generate(texts, max_new_tokens=9, num_samples=2, seed=1, output_scores=True)
    assert [each.prompt for each in found] == [text for text in texts for _ in range(2)]
    assert [each.sample for each in found] == [0, 1] * 4
    alone = [generator.generate([text], max_new_tokens=9, num_samples=2, seed=1) for text in texts]
    assert [each.text for each in found] == [each.text for several in alone for each in several]
    assert all(each.scores is not None and each.scores.shape == (9, 268) for each in found)


@pytest.mark.parametrize("seed", range(12))
def test_stream_joins_to_the_text(generator: TextGenerator, tokenizer: GPT2Tokenizer, seed: int) -> None:
    """Random weights give random bytes: characters begun, not ended, and out of place."""
    options: dict[str, Any] = {"temperature": 1.5, "seed": seed, "max_new_tokens": POSITIONS - 2, "eos_token_id": None}
    whole = generator.generate("é", **options)
    pieces = list(generator.stream("é", **options))
    assert "".join(pieces) == whole.text == tokenizer.decode(whole.tokens)
    assert all(pieces)


@given(st.text(max_size=40), st.integers(0, 3), st.booleans())
def test_no_character_is_cut(text: str, before: int, every_byte: bool) -> None:
    """Whatever was given so far is the beginning of the text, also where each byte is a token."""
    tokens: list[Any] = [bytes([byte]) for byte in text.encode("utf-8", "surrogatepass")]
    if not every_byte:  # two bytes a token: borders lie within characters
        tokens = [b"".join(tokens[i : i + 2]) for i in range(0, len(tokens), 2)]

    class Bytes(Words):
        def decode(self, token_ids: Any, /, *, clean_up_tokenization_spaces: bool) -> str:
            return b"".join(token_ids).decode("utf-8", "replace")

    first: list[Any] = [b"a"] * before
    decoder = Pieces(Bytes(), first)
    pieces = [decoder.add(token) for token in tokens]
    whole = b"".join(tokens).decode("utf-8", "replace")
    assert "".join(pieces) + decoder.rest() == whole
    clean = "\ufffd" not in whole
    assert not clean or not any("\ufffd" in piece for piece in pieces)


def test_lone_surrogate_is_not_cut(tokenizer: GPT2Tokenizer) -> None:
    """GPT-2's tokenizer gives it back from its three bytes, which are two marks of what is incomplete until then."""
    ids = tokenizer.encode("a\ud83db")
    decoder = Pieces(tokenizer, ids[:1])
    assert [decoder.add(token) for token in ids[1:]] == ["", "", "\ud83d", "b"]


def test_decoding_a_token_does_not_grow() -> None:
    """The tokenizer gets the last tokens, not the whole text, each time."""
    longest = 0

    class Counting(Words):
        def decode(self, token_ids: Any, /, *, clean_up_tokenization_spaces: bool) -> str:
            nonlocal longest
            longest = max(longest, len(token_ids))
            return super().decode(token_ids, clean_up_tokenization_spaces=clean_up_tokenization_spaces)

    decoder = Pieces(Counting(), [0])
    assert "".join(decoder.add(n % 5) for n in range(1, 100)).startswith(" cat sat on mat the")
    assert longest <= 2


@pytest.mark.parametrize("handler", ["replace", "ignore"])
@given(content=st.lists(st.sampled_from([*(bytes([byte]) for byte in b"\x80\xe2\x82\xac\xf0\xeda"), b"\xef\xbf\xbd"])))
def test_bytes_that_are_no_text(handler: str, content: list[Any]) -> None:
    """However long they go on, what comes out is what the whole decodes to, and few tokens are looked at."""
    tokens = [*content, *[b"\x80"] * 40, *content, *[b"\xe2", b"\x82"] * 12, *content]
    longest = 0

    class Bytes(Words):
        errors = handler

        def decode(self, token_ids: Any, /, *, clean_up_tokenization_spaces: bool) -> str:
            nonlocal longest
            longest = max(longest, len(token_ids))
            return b"".join(token_ids).decode("utf-8", handler)

    decoder = Pieces(Bytes(), [])
    assert "".join(decoder.add(token) for token in tokens) + decoder.rest() == b"".join(tokens).decode("utf-8", handler)
    assert longest <= 17


def test_surrogate_after_bytes_that_are_no_text(tokenizer: GPT2Tokenizer) -> None:
    for before in range(24):
        ids = tokenizer.convert_tokens_to_ids(["Ģ"] * before) + tokenizer.encode("\ud83d\u20acb")
        decoder = Pieces(tokenizer, [])
        assert "".join(decoder.add(token) for token in ids) + decoder.rest() == tokenizer.decode(ids)


def test_word_that_is_the_mark_of_bad_bytes() -> None:
    """A tokenizer of words may have U+FFFD as a word, again and again."""

    class Marks(Words):
        words = ("the", "\ufffd", "cat")

    tokens = [1] * 40 + [2, 1, 0]
    decoder = Pieces(Marks(), [0])
    found = "".join(decoder.add(token) for token in tokens) + decoder.rest()
    assert found == "".join(f" {Marks.words[token]}" for token in tokens)


@pytest.mark.parametrize("errors", ["strict", "backslashreplace", "surrogateescape"])
def test_handler_of_errors_that_cannot_be(folder: Path, generator: TextGenerator, errors: str) -> None:
    other = GPT2Tokenizer.from_pretrained(str(folder), errors=errors)
    with pytest.raises(ValueError, match=rf"errors='{errors}'.* errors= 'replace' or 'ignore'"):
        TextGenerator(generator.model, other)
    TextGenerator(generator.model, GPT2Tokenizer.from_pretrained(str(folder), errors="ignore"))


def test_spaces_of_a_tokenizer_of_words() -> None:
    """The space between prompt and continuation belongs to the continuation."""
    generator = TextGenerator(make("gpt2", vocab_size=5), Words())
    found = generator.generate("the cat", max_new_tokens=6)
    assert found.text == "".join(f" {Words.words[token]}" for token in found.tokens)
    assert "".join(generator.stream("the cat", max_new_tokens=6)) == found.text


def test_stop_strings(generator: TextGenerator) -> None:
    options: dict[str, Any] = {"max_new_tokens": 30, "do_sample": True, "seed": 3, "eos_token_id": None}
    whole = generator.generate("the", **options)
    stop = whole.text[6:9]
    place = whole.text.index(stop)
    for strings in (stop, ["not in it", stop], [whole.text[place + 1 : place + 2] + "never", stop]):
        found = generator.generate("the", stop_strings=strings, **options)
        assert found.text == whole.text[:place]
        assert found.finish_reason == "stop_string"
        assert found.tokens == whole.tokens[: len(found.tokens)]
        assert len(found.tokens) < 30
        assert "".join(generator.stream("the", stop_strings=strings, **options)) == found.text


def test_stop_string_ends_one_row_of_a_batch(generator: TextGenerator) -> None:
    texts = ["the", "hello"]
    options: dict[str, Any] = {"max_new_tokens": 30, "do_sample": True, "seed": 3, "eos_token_id": None}
    whole = generator.generate(texts, **options)
    stop = whole[0].text[5:8]
    found = generator.generate(texts, stop_strings=[stop], **options)
    for ours, all_ in zip(found, whole, strict=True):
        assert ours.text == all_.text.partition(stop)[0]
    assert found[0].finish_reason == "stop_string"


@given(st.text("abc", max_size=30), st.lists(st.text("abc", min_size=1, max_size=4), max_size=3), st.data())
def test_stop_strings_in_any_pieces(text: str, strings: list[str], data: st.DataObject) -> None:
    stops, given_out, rest = StopStrings(strings), "", text
    while rest and not stops.found:
        size = data.draw(st.integers(1, len(rest)))
        given_out += stops.add(rest[:size])
        rest = rest[size:]
    ends = [text.index(string) for string in strings if string in text]
    if not ends:
        assert not stops.found
        assert given_out + stops.rest() == text
        return
    assert stops.found
    # The string that is complete first ends the text; of those in one piece, the one that begins first.
    assert given_out in {text[:end] for end in ends}
    if len(strings) == 1:
        assert given_out == text[: ends[0]]


def test_stop_token_is_no_text(generator: TextGenerator, tokenizer: GPT2Tokenizer) -> None:
    tokens = greedy(generator.model, tokenizer.encode("hello"), 10)
    stop = next(token for place, token in enumerate(tokens) if place and token not in tokens[:place])
    found = generator.generate("hello", max_new_tokens=10, eos_token_id=stop)
    assert found.finish_reason == "stop_token"
    assert found.tokens[-1] == stop
    assert found.text == tokenizer.decode(found.tokens[:-1])


def test_end_of_text_stops_by_default(folder: Path, tokenizer: GPT2Tokenizer) -> None:
    model = GPT2LMHeadModel.from_pretrained(str(folder))
    with torch.no_grad():  # a model that always ends
        model.transformer.ln_f.weight.zero_()
        model.transformer.ln_f.bias.copy_(model.transformer.wte.weight[tokenizer.eos_token_id])
    found = TextGenerator(model, tokenizer).generate("hello")
    assert (found.text, found.finish_reason, found.tokens) == ("", "stop_token", [tokenizer.eos_token_id])
    assert "<|endoftext|>" in TextGenerator(model, tokenizer).generate("hello", eos_token_id=None).text


def test_from_nothing(generator: TextGenerator, tokenizer: GPT2Tokenizer) -> None:
    found = generator.generate(max_new_tokens=5)
    assert found.prompt is None
    assert tokenizer.bos_token_id is not None
    assert found.tokens == greedy(generator.model, [tokenizer.bos_token_id], 5)
    assert "".join(generator.stream(max_new_tokens=5)) == found.text == tokenizer.decode(found.tokens)
    with pytest.raises(ValueError, match="no token that begins a text"):
        TextGenerator(make("gpt2"), Words()).generate()


def test_cancel_and_close(generator: TextGenerator) -> None:
    event = threading.Event()
    pieces = []
    for piece in generator.stream("hello", max_new_tokens=40, cancel=event, eos_token_id=None):
        pieces.append(piece)
        event.set()
    assert len(pieces) <= 2
    stream = generator.stream("hello", max_new_tokens=40, eos_token_id=None)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert list(stream) == []
    assert generator.generate("hello", cancel=lambda: True).finish_reason == "cancelled"


def test_vocabulary_and_model_of_different_size(folder: Path, tokenizer: GPT2Tokenizer) -> None:
    with pytest.raises(ValueError, match="tokenizer has 268 tokens, but the model 61"):
        TextGenerator(make("gpt2"), tokenizer)
    model = make("gpt2", vocab_size=400, initializer_range=0.5)
    found = TextGenerator(model, tokenizer).generate("hello", do_sample=True, seed=0, eos_token_id=None)
    assert max(found.tokens) < 268
    assert max(model.generate([1], do_sample=True, seed=0).new_tokens[0]) >= 268


def test_bad_texts(generator: TextGenerator) -> None:
    with pytest.raises(ValueError, match="prompt 0 is empty"):
        generator.generate("")
    with pytest.raises(ValueError, match="prompt 1 is empty"):
        generator.generate(["a", ""])
    with pytest.raises(ValueError, match="no prompts"):
        generator.generate([])
    with pytest.raises(ValueError, match=f"but this model has {POSITIONS} positions"):
        generator.stream("x" * (POSITIONS + 1))
    with pytest.raises(ValueError, match="stream one after the other"):
        generator.stream("x", num_samples=2)
    with pytest.raises(TypeError, match="nonsense: no such option of generation; there are do_sample, "):
        generator.stream("x", nonsense=1)
    wrong: Any
    for wrong in ([1, 2], torch.tensor([1, 2]), 5, [[1]], [b"x"]):
        with pytest.raises(TypeError, match=r"expected texts, found \w+; ids are for model.generate"):
            generator.generate(wrong)
    with pytest.raises(TypeError, match="expected texts, found list"):
        generator.stream([1])  # type: ignore[arg-type]
