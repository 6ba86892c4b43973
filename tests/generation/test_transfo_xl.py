"""Text generation with Transformer-XL: a memory in place of a context that fills up, words, and lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pytorch_transformers.cli.generate import load
from pytorch_transformers.cli.main import main
from pytorch_transformers.generation import TextGenerator
from pytorch_transformers.generation.lines import LinePieces, Lines
from pytorch_transformers.generation.text import Pieces
from pytorch_transformers.models.transfo_xl.heads import TransfoXLLMHeadModel

from .saved_transfo_xl import SIZES, TEXT, save_published_transfo_xl, save_tiny_transfo_xl, tiny_model, tiny_tokenizer

WORDS, MEMORY = 32, SIZES["mem_len"]
NEW = 3 * MEMORY
#: One that fills the memory alone, one that does not, one of a single word.
PROMPTS = [[*range(1, 20)], [5, 6, 7], [9]]
DRAWS = {"greedy": {}, "drawn": {"seed": 3, "top_k": 20, "num_samples": 2}, "top_p": {"seed": 4, "top_p": 0.9}}


@pytest.fixture(scope="module", params=[False, True], ids=["all there are", "same length"])
def model(request: pytest.FixtureRequest) -> Any:
    return tiny_model(WORDS, same_length=request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_transfo_xl(tmp_path_factory.mktemp("transfo-xl"))


@pytest.fixture(scope="module")
def generator(folder: Path) -> TextGenerator:
    return load(str(folder), "float32", "cpu")


class Counting(TransfoXLLMHeadModel):
    """Notes how many tokens it is given at each step."""

    def next_token_logits(self, input_ids: Tensor, cache: Any, attention_mask: Tensor | None) -> Tensor:
        self.given.append(input_ids.shape[1])
        return super().next_token_logits(input_ids, cache, attention_mask)

    given: list[int]


def by_hand(model: Any, prompt: Sequence[int], count: int) -> list[int]:
    """The likeliest continuation through `forward` and the published memories, from a memory of zeros."""
    mems, ids, new = None, torch.tensor([list(prompt)]), list[int]()
    with torch.no_grad():
        for _ in range(count):
            output = model(ids, mems)
            mems = output.mems
            new.append(int(output.prediction_scores[0, -1].argmax()))
            ids = torch.tensor([new[-1:]])
    return new


# --- the engine -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", PROMPTS, ids=len)
def test_equals_a_loop_over_published_memories(model: Any, prompt: list[int]) -> None:
    found = model.generate([prompt], max_new_tokens=NEW).new_tokens[0]
    assert found == by_hand(model, prompt, NEW)
    assert len(set(found)) > 2  # not one word for ever


@pytest.mark.parametrize("draws", DRAWS.values(), ids=DRAWS)
def test_rows_of_a_batch_are_what_they_are_alone(model: Any, draws: dict[str, Any]) -> None:
    together = model.generate(PROMPTS, max_new_tokens=NEW, **draws).new_tokens
    alone = [row for prompt in PROMPTS for row in model.generate([prompt], max_new_tokens=NEW, **draws).new_tokens]
    assert together == alone
    assert len(set(map(tuple, together))) > 1


def test_rows_that_end_leave_the_others_as_they_are(model: Any) -> None:
    """Padding that all remaining rows have is dropped, and the memory with it."""
    alone = [model.generate([prompt], max_new_tokens=NEW).new_tokens[0] for prompt in PROMPTS]
    stop = alone[0][1]
    cut = [row[: row.index(stop) + 1] if stop in row else row for row in alone]
    assert model.generate(PROMPTS, max_new_tokens=NEW, eos_token_id=stop).new_tokens == cut
    lengths = {len(row) for row in cut}
    assert len(lengths) > 1


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_a_prompt_in_pieces(chunk: int) -> None:
    model = tiny_model(WORDS, same_length=True)
    wanted = model.generate(PROMPTS, max_new_tokens=NEW).new_tokens
    assert model.generate(PROMPTS, max_new_tokens=NEW, prefill_chunk=chunk).new_tokens == wanted


def test_only_new_tokens_are_read(model: Any) -> None:
    """F3: the prompt once, then one token at a time, however long the text has become."""
    counting = Counting(model.config).eval()
    counting.load_state_dict(model.state_dict())
    counting.given = []
    output = counting.generate(PROMPTS[:1], max_new_tokens=NEW)
    assert counting.given == [len(PROMPTS[0])] + [1] * (NEW - 1)
    assert output.new_tokens == model.generate(PROMPTS[:1], max_new_tokens=NEW).new_tokens


def test_nothing_limits_the_length_and_the_cache_does_not_grow() -> None:
    model = tiny_model(WORDS, same_length=True)
    assert model.context_length() is None
    cache = model.new_cache(1, 10_000)
    places = cache._layers[0].shape[3]
    assert places < 10 * (MEMORY + 32)
    with torch.inference_mode():
        for start in range(0, 2 * places, 7):
            model.next_token_logits(torch.arange(start, start + 7)[None] % WORDS, cache, None)
    assert cache._layers[0].shape[3] == places
    assert cache.tokens > 2 * places


def test_stream_of_ids(model: Any) -> None:
    wanted = model.generate(PROMPTS, max_new_tokens=NEW, seed=1, top_k=9).new_tokens
    rows: list[list[int]] = [[] for _ in PROMPTS]
    for new in model.stream(PROMPTS, max_new_tokens=NEW, seed=1, top_k=9):
        rows[new.row].append(new.token)
    assert rows == wanted


# --- words and lines --------------------------------------------------------------------------------------------------


def test_lines_of_a_prompt_are_those_of_the_training_text(generator: TextGenerator) -> None:
    """The same ids as a corpus has for the text, up to the end of its last line."""
    tokenizer: Any = generator.tokenizer
    corpus = [
        token
        for line in TEXT.splitlines()
        for token in tokenizer.convert_tokens_to_ids(tokenizer.tokenize(line, add_eos=True))
    ]
    assert generator._ids(TEXT) == corpus
    assert corpus.count(tokenizer.eos_token_id) == TEXT.count("\n")
    for end in ("\r\n", "\r"):
        assert generator._ids(TEXT.replace("\n", end)) == corpus
    assert generator._ids("The cat") == tokenizer.encode("The cat", add_special_tokens=False)


def test_a_line_end_ends_no_text(generator: TextGenerator) -> None:
    """It is written as one; where it shall end the text, a stop string or `eos_token_id` says so."""
    end = generator.tokenizer.eos_token_id
    assert end is not None
    prompts = ["The cat\nsat", "The dog", None]
    texts = [
        generator.generate(prompt, max_new_tokens=40, seed=seed, do_sample=True) for seed, prompt in enumerate(prompts)
    ]
    found = next(text for text in texts if 0 < text.tokens.index(end) < 30)
    assert all(text.finish_reason == "length" and len(text.tokens) == 40 for text in texts)
    assert found.text.count("\n") == found.tokens.count(end) > 0
    assert "<eos>" not in found.text
    options: dict[str, Any] = {"max_new_tokens": 40, "seed": texts.index(found), "do_sample": True}
    stopped = generator.generate(found.prompt, stop_strings="\n", **options)
    assert (stopped.text, stopped.finish_reason) == (found.text.partition("\n")[0], "stop_string")
    ended = generator.generate(found.prompt, eos_token_id=end, **options)
    assert (ended.text, ended.finish_reason) == (found.text.partition("\n")[0], "stop_token")


def test_prompt_and_text_are_one_text(generator: TextGenerator) -> None:
    for prompt in ("The cat", "The cat\nThe", "The cat\n", "\n"):
        found = generator.generate(prompt, max_new_tokens=20, seed=1, top_k=30)
        assert generator._ids(prompt + found.text) == generator._ids(prompt) + found.tokens


@pytest.mark.parametrize("draws", [{}, {"seed": 7, "top_k": 20}])
def test_pieces_are_the_text(generator: TextGenerator, draws: dict[str, Any]) -> None:
    for prompt in ("The cat", "= The Mat =\n\nThe", None):
        wanted = generator.generate(prompt, max_new_tokens=NEW, **draws).text
        pieces = list(generator.stream(prompt, max_new_tokens=NEW, **draws))
        assert "".join(pieces) == wanted
        assert len(pieces) == NEW  # a word at a time


def test_texts_of_a_batch_are_what_they_are_alone(generator: TextGenerator) -> None:
    prompts = ["The cat sat on the mat ,\nand the dog", "The", None]
    for draws in ({"do_sample": False}, {"seed": 2, "temperature": 0.8}):
        together = generator.generate(prompts, max_new_tokens=NEW, **draws)
        alone = [generator.generate(prompt, max_new_tokens=NEW, **draws) for prompt in prompts]
        assert [text.text for text in together] == [text.text for text in alone]


def test_no_prompt_starts_where_a_line_does(generator: TextGenerator) -> None:
    options: dict[str, Any] = {"max_new_tokens": 10, "do_sample": False}
    assert generator.generate(None, **options).tokens == generator.generate("\n", **options).tokens


def test_without_a_token_for_line_ends_they_are_spaces() -> None:
    """As the tokenizer has it by itself; and its token ends a text."""
    tokenizer, model = tiny_tokenizer(), tiny_model(WORDS)
    end = tokenizer.eos_token_id
    plain = TextGenerator(model, tokenizer, line_end_token_id=None)
    assert plain._ids("The cat\nsat") == plain._ids("The cat sat") == tokenizer.encode("The cat sat")
    texts = (plain.generate("The", seed=seed, temperature=5.0, max_new_tokens=40) for seed in range(20))
    found = next(text for text in texts if end in text.tokens)
    assert found.finish_reason == "stop_token"
    assert found.tokens.index(end) == len(found.tokens) - 1
    for asked in (TextGenerator(model, tokenizer), TextGenerator(model, tokenizer, line_end_token_id=end)):
        assert asked._ids("The cat\nsat") == [*plain._ids("The cat"), end, *plain._ids("sat")]
    other = TextGenerator(model, tokenizer, line_end_token_id=5)
    assert other._ids("The cat\nsat") == [*plain._ids("The cat"), 5, *plain._ids("sat")]


@settings(max_examples=60, derandomize=True, database=None)
@given(tokens=st.lists(st.integers(0, WORDS - 1), max_size=30), before=st.integers(0, 30))
def test_decoded_lines_are_encoded_to_the_same(tokens: list[int], before: int) -> None:
    lines = Lines(TOKENIZER, TOKENIZER.eos_token_id)
    text = lines.decode(tokens, clean_up_tokenization_spaces=False)
    assert lines.encode(text, add_special_tokens=False) == tokens
    decoder = Pieces(lines, tokens[:before][-4:])
    said = "".join([decoder.add(token) for token in tokens[before:]]) + decoder.rest()
    assert lines.decode(tokens[:before], clean_up_tokenization_spaces=False) + said == text


TOKENIZER = tiny_tokenizer()


def joining_tokenizer() -> Any:
    pytest.importorskip("sacremoses", reason="needs sacremoses, which splits and joins punctuation")
    return tiny_tokenizer(punctuation=True)


def test_signs_are_joined_as_in_the_whole_line() -> None:
    """On which side of a quote the space goes depends on the quotes before it, and `1 @,@` on what follows."""
    tokenizer = joining_tokenizer()
    lines = Lines(tokenizer, tokenizer.eos_token_id)
    ids = lines.encode(TEXT, add_special_tokens=False)
    text = lines.decode(ids, clean_up_tokenization_spaces=False)
    assert 'The dog said: "The cat sat on the mat." The door was shut.' in text
    assert "well-made mat of 1,000 <unk> threads." in text
    for before in (0, 5, 17, 40, len(ids) - 12):
        decoder = LinePieces(lines, ids[:before])
        pieces = [decoder.add(token) for token in ids[before:]]
        start = lines.decode(ids[:before], clean_up_tokenization_spaces=False)
        assert start + "".join(pieces) + decoder.rest() == text
        assert max(map(len, pieces)) < 20  # not a line at a time


def test_a_line_without_end_costs_no_more_than_others() -> None:
    tokenizer = joining_tokenizer()
    lines = Lines(tokenizer, tokenizer.eos_token_id)
    decoder = LinePieces(lines, [])
    words = [5, 7, 8] * 500
    said = "".join([decoder.add(token) for token in words]) + decoder.rest()
    assert said == tokenizer.decode(words)
    assert len(decoder._ids) <= 513


def test_generation_with_joined_signs() -> None:
    tokenizer = joining_tokenizer()
    lines = Lines(tokenizer, tokenizer.eos_token_id)
    generator = TextGenerator(tiny_model(WORDS), tokenizer, line_end_token_id=tokenizer.eos_token_id)
    prompt = 'The dog said: "The cat'
    start = generator._ids(prompt)
    for seed in range(5):
        options: dict[str, Any] = {"max_new_tokens": 60, "seed": seed, "temperature": 3.0}
        found = generator.generate(prompt, **options)
        whole = lines.decode([*start, *found.tokens], clean_up_tokenization_spaces=False)
        assert prompt + found.text == whole
        assert "".join(generator.stream(prompt, **options)) == found.text


# --- the command ------------------------------------------------------------------------------------------------------


def test_command_on_a_published_folder(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As 1.2.0 saves it, without a `model_type`."""
    flags = ["--max_new_tokens", "25", "The cat\nThe"]
    assert main(["generate", "--model", str(folder), *flags]) == 0
    wanted = capsys.readouterr().out
    assert main(["generate", "--model", str(save_published_transfo_xl(tmp_path)), *flags]) == 0
    assert capsys.readouterr().out == wanted


def test_command(folder: Path, generator: TextGenerator, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["generate", "--model", str(folder), "--max_new_tokens", "25", "--seed", "1", "--temperature", "1.5"]
    wanted = generator.generate("The cat\nThe", max_new_tokens=25, seed=1, temperature=1.5).text
    assert main([*flags, "The cat\nThe"]) == 0
    assert capsys.readouterr().out == f"The cat\nThe{wanted}\n"
    assert main([*flags, "--unconditional"]) == 0
    wanted = generator.generate(None, max_new_tokens=25, seed=1, temperature=1.5).text
    assert capsys.readouterr().out == f"{wanted}\n"
