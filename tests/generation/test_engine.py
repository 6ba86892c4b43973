"""The loop against whole forwards and `transformers`, and what must hold of batches, seeds, windows and ends."""

import threading
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pytorch_transformers.generation import GenerationOptions, NewToken
from pytorch_transformers.generation.engine import Generation, collected
from shared_data import shared

from .tiny import CLASSES, POSITIONS, WORDS, greedy, make, next_logits

PROMPTS = [[5, 6, 7, 8, 9], [5, 6, 7], [1], [60, 0, 60, 0, 60, 0, 60]]
SAMPLING: dict[str, Any] = {"do_sample": True, "seed": 7, "max_new_tokens": 12}


def padded(rows: list[list[int]], side: str, fill: int = 3) -> tuple[Tensor, Tensor]:
    """Ids and mask of rows padded on one side."""
    longest = max(map(len, rows))
    ids, mask = torch.full((len(rows), longest), fill), torch.zeros(len(rows), longest, dtype=torch.long)
    for number, row in enumerate(rows):
        place = slice(longest - len(row), longest) if side == "left" else slice(0, len(row))
        ids[number, place], mask[number, place] = torch.tensor(row), 1
    return ids, mask


# Equality with other ways to compute the same.


@pytest.mark.parametrize("kind", CLASSES)
def test_greedy_is_what_whole_forwards_give(kind: str) -> None:
    model = make(kind)
    found = model.generate(PROMPTS, max_new_tokens=15)
    assert found.new_tokens == [greedy(model, prompt, 15) for prompt in PROMPTS]
    assert found.rows == [[*prompt, *new] for prompt, new in zip(PROMPTS, found.new_tokens, strict=True)]
    assert set(found.finish_reasons) == {"length"}


def test_greedy_of_the_original() -> None:
    """Recorded with openai/gpt-2, sample_sequence with top_k=1, a row at a time."""
    from pytorch_transformers.models.gpt2.heads import GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(str(shared("goldens", "gpt2", "model") / "model.ckpt"), from_tf=True)
    with np.load(shared("goldens", "gpt2", "reference.npz")) as arrays:
        context, output = (torch.from_numpy(arrays[name]).long() for name in ("greedy_context", "greedy_output"))
        ids, split = torch.from_numpy(arrays["input_ids"]).long(), int(arrays["split_k"])
        steps = {name: torch.from_numpy(arrays[name]) for name in ("logits", "step1_logits", "step2_logits")}
    assert torch.equal(model.generate(context, max_new_tokens=20).sequences, output)
    for row in range(len(context)):
        assert torch.equal(model.generate(context[row], max_new_tokens=20).sequences, output[row : row + 1])
    drawn = model.generate(context, max_new_tokens=20, do_sample=True, top_k=1, seed=0)
    assert torch.equal(drawn.sequences, output)
    cache = model.new_cache(len(ids), ids.shape[1])
    with torch.no_grad():
        for start, end, wanted in (
            (0, split, steps["logits"][:, split - 1]),
            (split, split + 1, steps["step1_logits"][:, -1]),
            (split + 1, ids.shape[1], steps["step2_logits"][:, -1]),
        ):
            found = model.next_token_logits(ids[:, start:end], cache, None)
            assert (found - wanted).abs().max() < 2e-5  # the README of the goldens: what float32 programs differ by


@pytest.mark.parametrize("kind", ["gpt2", "openai-gpt"])
def test_greedy_and_scores_of_transformers(kind: str) -> None:
    import transformers

    model = make(kind, eos_token_id=11)
    names = {
        "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config),
        "openai-gpt": (transformers.OpenAIGPTLMHeadModel, transformers.OpenAIGPTConfig),
    }
    model_class, config_class = names[kind]
    sizes = {"vocab_size": WORDS, "n_positions": POSITIONS, "n_embd": 24, "n_layer": 2, "n_head": 3}
    other = model_class(config_class(**sizes, bos_token_id=None, eos_token_id=None)).eval()
    unexpected = other.load_state_dict(model.state_dict(), strict=False).unexpected_keys
    assert not unexpected
    ids, mask = padded(PROMPTS[:1] if kind == "openai-gpt" else PROMPTS, "left")
    options: dict[str, Any] = {
        "max_new_tokens": 14,
        "repetition_penalty": 1.4,
        "no_repeat_ngram_size": 2,
        "min_new_tokens": 4,
        "eos_token_id": 11,
        "pad_token_id": 0,
    }
    with torch.no_grad():
        theirs = other.generate(
            ids, attention_mask=mask, **options, do_sample=False, output_scores=True, return_dict_in_generate=True
        )
    ours = model.generate(ids, mask, **options, output_scores=True)
    assert ours.scores is not None
    for row, new in enumerate(ours.new_tokens):
        assert new == theirs.sequences[row, ids.shape[1] :].tolist()[: len(new)]
        expected = torch.stack([step[row] for step in theirs.scores])[: len(new)]
        torch.testing.assert_close(ours.scores[row], expected, atol=1e-5, rtol=0)


def test_scores_are_those_of_the_model(gpt2: Any) -> None:
    found = gpt2.generate(PROMPTS, max_new_tokens=6, output_scores=True)
    assert found.scores is not None
    for row, prompt in enumerate(PROMPTS):
        assert found.scores[row].shape == (6, WORDS)
        for step in range(6):
            expected = next_logits(gpt2, [*prompt, *found.new_tokens[row][:step]])
            torch.testing.assert_close(found.scores[row][step], expected, atol=1e-5, rtol=0)
    assert gpt2.generate(PROMPTS, max_new_tokens=1).scores is None


def test_scores_say_what_could_be_drawn(gpt2: Any) -> None:
    found = gpt2.generate([1], top_k=5, temperature=0.5, seed=1, max_new_tokens=3, output_scores=True)
    assert found.scores is not None
    possible = found.scores[0] > -torch.inf
    assert possible.sum(-1).tolist() == [5, 5, 5]
    expected = next_logits(gpt2, [1]) / 0.5
    torch.testing.assert_close(found.scores[0][0][possible[0]], expected[possible[0]], atol=1e-5, rtol=0)


# Batches.


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_fault_e1_prompts_of_different_length(kind: str, side: str) -> None:
    """HF#3021: a short prompt goes on differently when it is padded."""
    model = make(kind)
    prompts = [[5, 6, 7, 8, 9], [5, 6, 7]]
    found = model.generate(*padded(prompts, side), max_new_tokens=6)
    assert found.new_tokens == [model.generate([prompt], max_new_tokens=6).new_tokens[0] for prompt in prompts]
    assert found.new_tokens == [greedy(model, prompt, 6) for prompt in prompts]
    ids, mask = padded(prompts, "left")
    if "double" not in kind:
        with torch.no_grad():
            logits = model(ids, attention_mask=mask).logits
            alone = model(torch.tensor([prompts[1]])).logits
        torch.testing.assert_close(logits[1, 2:], alone[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["gpt2", "openai-gpt"])
def test_fault_e2_only_new_tokens_are_given_with_a_cache(kind: str) -> None:
    """HF#1749: the whole text together with the cache counts it twice."""
    model = make(kind)
    ids = torch.randint(0, WORDS, (2, 8))
    cache = model.new_cache(2, 8)
    with torch.no_grad():
        whole = model(ids).logits
        first = model.next_token_logits(ids[:, :5], cache, None)
        last = model.next_token_logits(ids[:, 5:], cache, torch.ones(2, 8))
    torch.testing.assert_close(first, whole[:, 4], atol=1e-5, rtol=0)
    torch.testing.assert_close(last, whole[:, 7], atol=1e-5, rtol=0)
    assert cache.length == 8


def test_rows_leave_the_batch_when_they_end(gpt2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later steps compute the rows that are left, and these go on as they would alone."""
    lengths = {tuple(prompt): greedy(gpt2, prompt, 20) for prompt in PROMPTS}
    stop = lengths[5, 6, 7][3]
    sizes = []
    plain = gpt2.next_token_logits

    def counted(ids: Tensor, cache: Any, mask: Tensor | None) -> Tensor:
        sizes.append((tuple(ids.shape), None if mask is None else mask.shape[1]))
        result: Tensor = plain(ids, cache, mask)
        return result

    monkeypatch.setattr(gpt2, "next_token_logits", counted)
    found = gpt2.generate(PROMPTS, max_new_tokens=20, eos_token_id=stop)
    for prompt, new, reason in zip(PROMPTS, found.new_tokens, found.finish_reasons, strict=True):
        whole = lengths[tuple(prompt)]
        assert new == whole[: len(new)]
        assert (reason == "stop_token") == (new[-1] == stop)
        assert reason == "stop_token" or len(new) == 20
        assert stop not in new[:-1]
    active = [shape[0] for shape, _ in sizes]
    assert sorted(active, reverse=True) == active
    assert active[-1] < active[0]
    assert all(shape[1] == 1 for shape, _ in sizes[1:])


def test_penalties_stay_with_their_rows_when_others_leave(gpt2: Any) -> None:
    options: dict[str, Any] = {"max_new_tokens": 25, "repetition_penalty": 3.0, "eos_token_id": list(range(0, 60, 9))}
    found = gpt2.generate(PROMPTS, **options)
    assert len({len(new) for new in found.new_tokens}) > 2
    assert found.new_tokens == [gpt2.generate([prompt], **options).new_tokens[0] for prompt in PROMPTS]


def test_padding_of_rows_that_left_goes_too(gpt2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the long prompt has ended, the short one is computed without padding and without a mask."""
    masks = []
    plain = gpt2.next_token_logits

    def noted(ids: Tensor, cache: Any, mask: Tensor | None) -> Tensor:
        masks.append((None if mask is None else tuple(mask.shape), cache.length))
        result: Tensor = plain(ids, cache, mask)
        return result

    monkeypatch.setattr(gpt2, "next_token_logits", noted)
    found = gpt2.generate([[1, 2, 3, 4, 5, 6], [9, 8]], max_length=9)
    assert masks[0] == ((2, 6), 0)
    assert masks[2] == ((2, 8), 7)
    assert masks[3] == (None, 4)  # 8 tokens less 4 of padding
    monkeypatch.undo()
    assert found.new_tokens == [greedy(gpt2, [1, 2, 3, 4, 5, 6], 3), greedy(gpt2, [9, 8], 7)]


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 100])
def test_chunked_prefill_is_the_whole(gpt2: Any, chunk: int) -> None:
    whole = gpt2.generate(PROMPTS, max_new_tokens=8, output_scores=True)
    parts = gpt2.generate(PROMPTS, max_new_tokens=8, output_scores=True, prefill_chunk=chunk)
    assert parts.new_tokens == whole.new_tokens
    for ours, theirs in zip(parts.scores, whole.scores, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_work_of_a_step_does_not_grow(gpt2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cache for everything, one new token a row at each step."""
    caches, shapes = [], []
    new_cache, step = gpt2.new_cache, gpt2.next_token_logits

    def noted_cache(batch: int, length: int) -> Any:
        caches.append((batch, length))
        return new_cache(batch, length)

    def noted(ids: Tensor, cache: Any, mask: Tensor | None) -> Tensor:
        shapes.append(tuple(ids.shape))
        result: Tensor = step(ids, cache, mask)
        return result

    monkeypatch.setattr(gpt2, "new_cache", noted_cache)
    monkeypatch.setattr(gpt2, "next_token_logits", noted)
    gpt2.generate(torch.ones(2, 4, dtype=torch.long), max_new_tokens=30)
    assert caches == [(2, 33)]  # the last token is not read again
    assert shapes == [(2, 4), *[(2, 1)] * 29]


# Draws.


@pytest.mark.parametrize(
    "more", [{}, {"top_k": 10}, {"top_p": 0.8}, {"temperature": 1.7, "repetition_penalty": 1.3}], ids=str
)
def test_same_seed_same_text_on_batch_sizes_1_and_4(gpt2: Any, more: dict[str, Any]) -> None:
    together = gpt2.generate(PROMPTS, **SAMPLING, **more)
    alone = [gpt2.generate([prompt], **SAMPLING, **more).new_tokens[0] for prompt in PROMPTS]
    turned = gpt2.generate(PROMPTS[::-1], **SAMPLING, **more)
    assert together.new_tokens == alone == turned.new_tokens[::-1]
    assert gpt2.generate(PROMPTS, **{**SAMPLING, "seed": 8}, **more).new_tokens != alone


def test_longer_text_of_a_seed_begins_as_the_shorter(gpt2: Any) -> None:
    short, long = (gpt2.generate([1, 2], do_sample=True, seed=0, max_new_tokens=n).new_tokens[0] for n in (5, 20))
    assert long[:5] == short


def test_samples_share_the_prompt(gpt2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = []
    plain = gpt2.next_token_logits

    def noted(ids: Tensor, cache: Any, mask: Tensor | None) -> Tensor:
        shapes.append(tuple(ids.shape))
        result: Tensor = plain(ids, cache, mask)
        return result

    monkeypatch.setattr(gpt2, "next_token_logits", noted)
    found = gpt2.generate(PROMPTS[:2], num_samples=3, seed=1, max_new_tokens=10)
    assert shapes == [(2, 5), *[(6, 1)] * 9]
    assert len({tuple(new) for new in found.new_tokens}) == 6
    assert found.prompts == [PROMPTS[0]] * 3 + [PROMPTS[1]] * 3
    alone = [gpt2.generate([prompt], num_samples=3, seed=1, max_new_tokens=10).new_tokens for prompt in PROMPTS[:2]]
    assert found.new_tokens == [*alone[0], *alone[1]]


def test_samples_in_parts_are_the_same(gpt2: Any) -> None:
    options: dict[str, Any] = {"do_sample": True, "seed": 4, "max_new_tokens": 6}
    whole = gpt2.generate([3], num_samples=5, **options).new_tokens
    parts = [
        *gpt2.generate([3], num_samples=2, **options).new_tokens,
        *gpt2.generate([3], num_samples=3, first_sample=2, **options).new_tokens,
    ]
    assert parts == whole


def test_samples_have_the_probabilities_of_the_model(gpt2: Any) -> None:
    """Chi-square of 4,000 first tokens on a model with ten words."""
    model = make("gpt2", vocab_size=10)
    found = model.generate([1, 2, 3], num_samples=4000, max_new_tokens=1, seed=0)
    counts = torch.tensor([new[0] for new in found.new_tokens]).bincount(minlength=10).double()
    expected = next_logits(model, [1, 2, 3]).double().softmax(-1) * 4000
    assert expected.min() > 5
    assert ((counts - expected) ** 2 / expected).sum() < 27.9  # 9 degrees of freedom, 0.1 %


def test_without_a_seed_torch_decides(gpt2: Any) -> None:
    def drawn() -> list[list[int]]:
        found: list[list[int]] = gpt2.generate([[1, 2]] * 3, do_sample=True, max_new_tokens=8).new_tokens
        return found

    torch.manual_seed(5)
    first, second = drawn(), drawn()
    torch.manual_seed(5)
    assert drawn() == first != second
    assert len({tuple(new) for new in first}) == 3  # equal prompts in one batch


def test_greedy_leaves_torchs_random_state_alone(gpt2: Any) -> None:
    before = torch.get_rng_state()
    gpt2.generate([1], max_new_tokens=3)
    gpt2.generate([1], max_new_tokens=3, do_sample=True, seed=1)
    assert torch.equal(torch.get_rng_state(), before)


# Ends, bans, windows.


def test_stop_tokens(gpt2: Any) -> None:
    whole = greedy(gpt2, [5, 6, 7], 15)
    stop = whole[4]
    place = whole.index(stop)
    for given in (stop, [stop], {stop, 59}):
        found = gpt2.generate([5, 6, 7], max_new_tokens=15, eos_token_id=given)
        assert found.new_tokens == [whole[: place + 1]]
        assert found.finish_reasons == ["stop_token"]


def test_stop_token_of_the_configuration() -> None:
    whole = greedy(make("gpt2"), [5, 6, 7], 15)
    model = make("gpt2", eos_token_id=whole[4])
    assert model.generate([5, 6, 7], max_new_tokens=15).finish_reasons == ["stop_token"]
    assert model.generate([5, 6, 7], max_new_tokens=15, eos_token_id=None).new_tokens == [whole]


@pytest.mark.parametrize("option", [{"min_new_tokens": 9}, {"min_length": 12}])
def test_least_length(gpt2: Any, option: dict[str, int]) -> None:
    stop = greedy(gpt2, [5, 6, 7], 15)[2]
    found = gpt2.generate([5, 6, 7], max_new_tokens=15, eos_token_id=stop, **option)
    assert stop not in found.new_tokens[0][:9]
    assert len(found.new_tokens[0]) >= 10 or found.finish_reasons == ["length"]


def test_longest_length_counts_each_prompt(gpt2: Any) -> None:
    found = gpt2.generate(PROMPTS, max_length=10)
    assert [len(row) for row in found.rows] == [10] * len(PROMPTS)
    assert found.sequences.shape == (4, 10)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_fault_e3_no_ngram_comes_twice(gpt2: Any, size: int) -> None:
    found = gpt2.generate(PROMPTS, max_new_tokens=25, no_repeat_ngram_size=size)
    for row, prompt in zip(found.rows, PROMPTS, strict=True):
        ngrams = [tuple(row[i : i + size]) for i in range(len(row) - size + 1)]
        inside = [gram for i, gram in enumerate(ngrams) if i + size > len(prompt)]
        assert len(set(inside)) == len(inside)
        assert not set(inside) & set(ngrams[: max(0, len(prompt) - size + 1)])
    assert found.new_tokens == [
        gpt2.generate([prompt], max_new_tokens=25, no_repeat_ngram_size=size).new_tokens[0] for prompt in PROMPTS
    ]


def test_fault_e3_penalty_ends_loops() -> None:
    model = make("gpt2", seed=3, initializer_range=0.5)
    loop = model.generate([1], max_new_tokens=30).new_tokens[0]
    assert len(set(loop)) < 15
    assert len(set(model.generate([1], max_new_tokens=30, repetition_penalty=5.0).new_tokens[0])) > len(set(loop))


def test_row_without_a_token_left_ends() -> None:
    model = make("gpt2", vocab_size=6)
    found = model.generate([[1, 2], [3]], max_new_tokens=20, no_repeat_ngram_size=1)
    assert sorted(found.rows[0]) == sorted(found.rows[1]) == list(range(6))
    assert found.finish_reasons == ["banned", "banned"]


def test_ids_beyond_the_vocabulary_are_not_chosen(gpt2: Any) -> None:
    for options in ({}, {"do_sample": True, "seed": 0}):
        found = gpt2.generate([1], max_new_tokens=30, vocabulary_size=20, **options)
        assert max(found.new_tokens[0]) < 20


def slid(model: Any, prompt: list[int], count: int, window: int) -> list[int]:
    """A loop that starts anew from the last tokens when the context is full."""
    ids, start = list(prompt), 0
    if len(ids) > POSITIONS:
        start = len(ids) - window
    for number in range(count):
        if number and len(ids) - start > POSITIONS:
            start = len(ids) - window
        ids.append(int(next_logits(model, ids[start:]).argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize("window", [1, 17, POSITIONS])
def test_window_slides(gpt2: Any, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = [[5, 6, 7], [1], [n % WORDS for n in range(30)], [n % WORDS for n in range(0, 3 * POSITIONS, 2)]]
    lengths = []
    new_cache = gpt2.new_cache

    def noted(batch: int, length: int) -> Any:
        lengths.append(length)
        return new_cache(batch, length)

    monkeypatch.setattr(gpt2, "new_cache", noted)
    found = gpt2.generate(prompts, max_new_tokens=70, window=window)
    assert lengths == [POSITIONS]
    assert found.new_tokens == [slid(gpt2, prompt, 70, window) for prompt in prompts]


def test_window_slides_after_rows_have_left(gpt2: Any) -> None:
    prompts = [[5, 6, 7, 8, 9, 10, 11], [1, 2]]
    stop = greedy(gpt2, prompts[0], 5)[-1]
    found = gpt2.generate(prompts, max_new_tokens=90, window=20, eos_token_id=stop)
    alone = [gpt2.generate([prompt], max_new_tokens=90, window=20, eos_token_id=stop) for prompt in prompts]
    assert found.new_tokens == [each.new_tokens[0] for each in alone]


def test_the_whole_context_can_be_used(gpt2: Any) -> None:
    """The last token is not read, so one more fits than there are positions."""
    found = gpt2.generate([5], max_new_tokens=POSITIONS)
    assert found.new_tokens == [greedy(gpt2, [5], POSITIONS)]
    assert len(gpt2.generate([5]).new_tokens[0]) == POSITIONS  # by default what fits, at most 128


# Streams and cancellation.


def test_stream_is_generate(gpt2: Any) -> None:
    options: dict[str, Any] = {**SAMPLING, "num_samples": 2, "eos_token_id": [3, 4, 5, 6], "output_scores": True}
    whole = gpt2.generate(PROMPTS, **options)
    rows: dict[int, list[NewToken]] = {}
    for new in gpt2.stream(PROMPTS, **options):
        rows.setdefault(new.row, []).append(new)
    assert [[new.token for new in rows[row]] for row in range(8)] == whole.new_tokens
    assert [rows[row][-1].finished for row in range(8)] == list(whole.finish_reasons)
    assert all(new.finished is None for row in rows.values() for new in row[:-1])
    for row in range(8):
        assert torch.equal(torch.stack([new.scores for new in rows[row] if new.scores is not None]), whole.scores[row])


def test_stream_computes_when_asked(gpt2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    plain = gpt2.next_token_logits

    def counted(*inputs: Any) -> Any:
        calls.append(1)
        return plain(*inputs)

    monkeypatch.setattr(gpt2, "next_token_logits", counted)
    stream = gpt2.stream([1, 2], max_new_tokens=30)
    assert not calls
    first = list(islice(stream, 3))
    assert len(calls) == 3
    stream.close()
    assert list(stream) == []
    assert len(calls) == 3
    monkeypatch.undo()
    assert [new.token for new in first] == greedy(gpt2, [1, 2], 3)


def test_closed_stream_knows_why_rows_ended(gpt2: Any) -> None:
    stream = gpt2.stream([[1, 2, 3], [4]], max_length=4)
    next(stream)
    stream.close()
    assert stream.reasons == {0: "length", 1: "cancelled"}


def test_stream_leaves_gradients_on_between_steps(gpt2: Any) -> None:
    for _ in gpt2.stream([1, 2], max_new_tokens=2):
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()


def cancel_by_event(after: int) -> tuple[Any, Callable[[], None]]:
    event, left = threading.Event(), [after]

    def seen() -> None:
        left[0] -= 1
        if left[0] == 0:
            event.set()

    return event, seen


def test_event_cancels(gpt2: Any) -> None:
    event, seen = cancel_by_event(5)
    tokens = []
    for new in gpt2.stream([1, 2], max_new_tokens=30, cancel=event):
        tokens.append(new.token)
        seen()
    assert tokens == greedy(gpt2, [1, 2], 5)


def test_function_cancels(gpt2: Any) -> None:
    asked = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 3

    found = gpt2.generate(PROMPTS, max_new_tokens=30, cancel=stop)
    assert found.finish_reasons == ["cancelled"] * 4
    assert found.new_tokens == [greedy(gpt2, prompt, 3) for prompt in PROMPTS]
    before = gpt2.generate(PROMPTS, max_new_tokens=30, cancel=lambda: True, output_scores=True)
    assert before.new_tokens == [[], [], [], []]


def test_cancelled_while_the_prompt_is_read(gpt2: Any) -> None:
    answers = iter([False, False, True])
    found = gpt2.generate([1] * 20, prefill_chunk=4, cancel=lambda: next(answers))
    assert found.new_tokens == [[]]
    assert found.finish_reasons == ["cancelled"]


def test_no_gradients_and_any_integer_type(gpt2: Any) -> None:
    ids = torch.tensor([[1, 2]], dtype=torch.int32)
    assert gpt2.generate(ids, max_new_tokens=2).new_tokens == gpt2.generate([1, 2], max_new_tokens=2).new_tokens
    assert gpt2.generate([ids[0], [3]], max_new_tokens=2).rows[0][:2] == [1, 2]


def test_bfloat16() -> None:
    model = make("gpt2").to(torch.bfloat16)
    found = model.generate(PROMPTS, max_new_tokens=10, output_scores=True)
    assert found.scores[0].dtype == torch.float32
    assert all(len(new) == 10 for new in found.new_tokens)


# Other models.


class Markov:
    """What a model must have and no more: each id is followed by the next one, and 0 by itself; 9 is only read."""

    training = False
    device = "cpu"

    class Seen:
        """Number of tokens that were read of each row."""

        def __init__(self, batch: int) -> None:
            self.counts = torch.zeros(batch, dtype=torch.long)

        def select(self, rows: Tensor) -> None:
            self.counts = self.counts[rows]

    def vocabulary_size(self) -> int:
        return 10

    def context_length(self) -> None:
        return None

    def new_cache(self, batch: int, length: int) -> "Markov.Seen":
        return self.Seen(batch)

    def next_token_logits(self, ids: Tensor, cache: "Markov.Seen", attention_mask: Tensor | None) -> Tensor:
        assert attention_mask is None
        cache.counts += ids.shape[1]
        return torch.nn.functional.one_hot((ids[:, -1] + (ids[:, -1] > 0)) % 9, 9) * 2.0


def continued(prompts: list[list[int]], **options: Any) -> list[list[int]]:
    found = collected(Generation(Markov(), prompts, None, GenerationOptions(**options)))
    return [list(new) for new in found.new_tokens]


def test_any_model_with_the_few_methods() -> None:
    """No limit of positions, no padding, scores for fewer ids than are read."""
    assert continued([[5], [9]], max_new_tokens=5, eos_token_id=7) == [[6, 7], [1, 2, 3, 4, 5]]
    assert continued([[9, 9, 3]], repetition_penalty=3.0, min_new_tokens=2, eos_token_id=[9, 4])[0][:2] == [0, 0]
    assert len(continued([[1]], max_new_tokens=300)[0]) == 300
    assert len(continued([[1]])[0]) == 128
    assert continued([[9]], max_new_tokens=99, no_repeat_ngram_size=1, vocabulary_size=4)[0] == [1, 2, 3, 0]
    sampled = continued([[4], [9]], num_samples=3, top_k=1, seed=0, max_new_tokens=2)
    assert sampled == [[5, 6]] * 3 + [[1, 2]] * 3


def test_other_prompts_have_other_random_numbers() -> None:
    class Even(Markov):
        """Every id is as likely as any other, so that the draws show the random numbers."""

        def next_token_logits(self, ids: Tensor, cache: Markov.Seen, attention_mask: Tensor | None) -> Tensor:
            return torch.zeros(len(ids), 10)

    options = GenerationOptions(do_sample=True, seed=0, max_new_tokens=20)
    first, second, again = collected(Generation(Even(), [[1], [2], [1]], None, options)).new_tokens
    assert first == again != second


# What can't be used.


@pytest.mark.parametrize(
    ("prompt", "options", "message"),
    [
        ([], {}, "prompt 0 is empty"),
        ([[1], []], {}, "prompt 1 is empty"),
        (torch.zeros(2, 0, dtype=torch.long), {}, "prompt 0 is empty"),
        (torch.zeros(0, 2, dtype=torch.long), {}, "no prompts"),
        ([1] * (POSITIONS + 1), {}, "has 41 tokens, but this model has 40 positions"),
        ([1] * 5, {"max_new_tokens": POSITIONS}, "ask for 36 new tokens at most"),
        ([1] * 5, {"max_length": POSITIONS + 2}, "ask for 36 new tokens at most"),
        ([1] * 5, {"max_length": 5}, "max_length: 5, but the prompt has 5 tokens already"),
        ([1, WORDS], {}, f"found {WORDS} in prompt 0, allowed is 0 to {WORDS - 1}"),
        ([1, -1], {}, "found -1 in prompt 0"),
        (torch.tensor([[0.5]]), {}, "expected integers"),
        ([1.5], {}, "1.5, must be a whole number"),
        (torch.zeros(1, 1, 1, dtype=torch.long), {}, r"expected a shape \[batch, tokens\]"),
        ([1], {"eos_token_id": WORDS}, f"eos_token_id: {WORDS}, but the model has {WORDS} ids"),
        ([1], {"pad_token_id": WORDS}, f"pad_token_id: {WORDS}"),
        ([1], {"vocabulary_size": WORDS + 1}, "the tokenizer belongs to another model"),
        ([1], {"window": POSITIONS + 1}, "window: 41, but this model has 40 positions"),
        ([1], {"stop_strings": "x"}, "TextGenerator"),
    ],
)
def test_bad_input(gpt2: Any, prompt: Any, options: dict[str, Any], message: str) -> None:
    for call in (gpt2.generate, gpt2.stream):
        with pytest.raises(ValueError, match=message):
            call(prompt, **options)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([[1, 0, 1]], "row 0 has padding between tokens"),
        ([[0, 0, 0]], "prompt 0 is empty"),
        ([[2, 1, 1]], "found 2, allowed is 1"),
        ([[1, 1]], "expected shape"),
    ],
)
def test_bad_mask(gpt2: Any, mask: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gpt2.generate(torch.tensor([[1, 2, 3]]), torch.tensor(mask))


def test_wrong_types(gpt2: Any) -> None:
    with pytest.raises(TypeError, match="tensor or lists of ids, found str"):
        gpt2.generate("text")
    with pytest.raises(TypeError, match="nonsense"):
        gpt2.generate([1], nonsense=1)
    with pytest.raises(TypeError, match=r"attention_mask: expected a tensor, an array or lists, found str"):
        gpt2.generate([[1]], "1")
    with pytest.raises(ValueError, match="input_ids: with an attention_mask all rows must be of one length"):
        gpt2.generate([[1], [1, 2]], [[1], [1, 1]])
    with pytest.raises(ValueError, match="expected integers"):
        gpt2.generate(np.array([1.5]))


def test_model_in_training_is_refused() -> None:
    with pytest.raises(ValueError, match="training mode"):
        make("gpt2").train().generate([1])


def test_no_pad_token(gpt2: Any) -> None:
    """The lists are there in any case; one tensor of rows of different length needs something to fill it."""
    stop = greedy(gpt2, [1], 3)[-1]
    found = gpt2.generate(PROMPTS, max_new_tokens=5)
    with pytest.raises(ValueError, match="pass pad_token_id, or take the lists"):
        _ = found.sequences
    assert len(found.rows) == 4
    filled = gpt2.generate([[5], [1]], max_new_tokens=9, eos_token_id=stop, pad_token_id=2)
    assert filled.sequences.tolist() == [row + [2] * (10 - len(row)) for row in filled.rows]
    with_config = make("gpt2", pad_token_id=2)
    assert with_config.generate(PROMPTS, max_new_tokens=5).sequences.shape == (4, 12)


def test_lists_and_arrays_are_as_tensors(gpt2: Any) -> None:
    ids, mask = padded(PROMPTS, "left")
    wanted = gpt2.generate(ids, mask, max_new_tokens=4).new_tokens
    for ours, marks in (
        (ids.tolist(), mask.tolist()),
        (ids.numpy(), mask.numpy()),
        (ids.numpy().astype(np.uint16), mask.bool().numpy()),
        (list(ids), list(mask)),
        ([row.numpy() for row in ids], mask),
        (ids, mask.tolist()),
    ):
        assert gpt2.generate(ours, marks, max_new_tokens=4).new_tokens == wanted
    assert gpt2.generate([np.array(row) for row in PROMPTS], max_new_tokens=4).new_tokens == wanted
    assert gpt2.generate(np.array(PROMPTS[0]), max_new_tokens=4).new_tokens == wanted[:1]


@pytest.mark.parametrize("temperature", [1e-20, 1e-38, 1e-40, 5e-324])
def test_least_temperature_is_the_likeliest_token(gpt2: Any, temperature: float) -> None:
    found = gpt2.generate(PROMPTS, temperature=temperature, seed=1, max_new_tokens=5)
    assert found.new_tokens == gpt2.generate(PROMPTS, max_new_tokens=5).new_tokens


@pytest.mark.parametrize("options", [{}, {"do_sample": True, "seed": 1}, {"top_p": 0.5, "temperature": 0.5}], ids=str)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_scores_that_are_not_finite(options: dict[str, Any], value: float) -> None:
    """One such score is enough: it makes all probabilities NaN, and the draw the last id."""
    model = make("gpt2")
    with torch.no_grad():
        model.transformer.wte.weight[3] = value
    with pytest.raises(ValueError, match="the model's scores are not finite"):
        model.generate([1], max_new_tokens=2, **options)


def test_least_length_that_cannot_be(gpt2: Any) -> None:
    for options in (
        {"min_length": 10, "max_new_tokens": 5},
        {"min_new_tokens": POSITIONS + 1},
        {"min_new_tokens": 9, "max_length": 5},
    ):
        with pytest.raises(ValueError, match=r"must follow prompt 0, but at most \d+ come"):
            gpt2.generate([1], eos_token_id=2, **options)


def test_close_before_the_first_token(gpt2: Any) -> None:
    stream = gpt2.stream(PROMPTS, max_new_tokens=4)
    stream.close()
    assert stream.reasons == dict.fromkeys(range(len(PROMPTS)), "cancelled")
    assert list(stream) == []
