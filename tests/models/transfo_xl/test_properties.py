"""What must hold whatever the weights: of the memory, of the adaptive softmax, and of what a token sees."""

import math
import warnings
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from pytorch_transformers import TransfoXLLMHeadModel, TransfoXLModel

from ..battery import assert_equal_outputs, build, fields, gradients, per_token, tensors
from ..compare import assert_same, difference
from .tiny import CASE, CUTOFFS, HEADS, HIDDEN, KINDS, LAYERS, LENGTH, MEMORY, MODELS, VIEWS, VOCAB, words

FEW = settings(max_examples=12, derandomize=True, database=None)

MODEL = {model_class: build(CASE, model_class) for model_class in MODELS}
"""Built once: no property changes its model."""
OF_KIND = {kind: build(CASE, TransfoXLLMHeadModel, **changes) for kind, changes in KINDS.items()}
"""The same for each kind of clusters."""

seeds = st.integers(0, 2**16)
pieces = st.lists(st.integers(1, 6), min_size=1, max_size=4)


def no_memory(model: Any, batch: int) -> tuple[Tensor, ...]:
    """A start from nothing, not even zeros."""
    return tuple(torch.zeros(0, batch, model.config.d_model) for _ in range(model.config.n_layer))


def in_pieces(model: Any, ids: Tensor, sizes: list[int], mems: Any = None, **switches: Any) -> list[Any]:
    """One output for each piece, each continuing from the one before."""
    outputs, start = [], 0
    with torch.no_grad():
        for size in sizes:
            outputs.append(model(ids[:, start : start + size], mems, **switches))
            mems, start = getattr(outputs[-1], "mems", None), start + size
    return outputs


def said(outputs: list[Any]) -> Tensor:
    """Scores of all tokens, or states of the model without a head, [B, T, N]: the first field."""
    return torch.cat([output[0] for output in outputs], 1)


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("model_class", MODELS)
@FEW
@given(seed=seeds, sizes=pieces)
def test_pieces_with_memory_are_the_whole(model_class: type[Any], explicit: bool, seed: int, sizes: list[int]) -> None:
    """F3: a memory of sufficient length, all of it seen, no clamp: the pieces of a text give what it gives at once."""
    model = build(CASE, model_class, mem_len=30)
    ids = words(2, sum(sizes), seed)
    with torch.no_grad():
        whole = model(ids, no_memory(model, 2), output_attentions=explicit)
    outputs = in_pieces(model, ids, sizes, no_memory(model, 2), output_attentions=explicit)
    assert_same(said(outputs), said([whole]), f"pieces of {sizes}")
    for one, other in zip(outputs[-1].mems, whole.mems, strict=True):
        assert_same(one, other, "memories")


def test_five_and_seven_tokens() -> None:
    """F3, to the letter."""
    model = build(CASE, TransfoXLLMHeadModel, mem_len=20)
    ids = words(2, 12, 3)
    with torch.no_grad():
        whole = model(ids, no_memory(model, 2))
    assert_same(said(in_pieces(model, ids, [5, 7], no_memory(model, 2))), whole.prediction_scores, "5 + 7")


def test_perplexity_does_not_depend_on_the_cuts() -> None:
    """F3: the same sum of losses for chunks of 4 and of 7."""
    model = build(CASE, TransfoXLLMHeadModel, mem_len=40)
    text = words(1, 29, 4)
    perplexities = []
    for size in (28, 4, 7):
        mems: Any = no_memory(model, 1)
        total = 0.0
        with torch.no_grad():
            for start in range(0, 28, size):
                output = model(text[:, start : start + size], mems, labels=text[:, start + 1 : start + 1 + size])
                mems, total = output.mems, total + float(output.loss.double().sum())
        perplexities.append(math.exp(total / 28))
    for other in perplexities[1:]:
        assert other == pytest.approx(perplexities[0], rel=1e-6)


def test_same_length_needs_no_more_memory() -> None:
    """With `same_length` every token sees as much, so pieces are the whole although the memory is short."""
    model = build(CASE, TransfoXLLMHeadModel, same_length=True, mem_len=5)
    ids = words(2, 14, 5)
    with torch.no_grad():
        whole = model(ids)
    for sizes in ([1] * 14, [4, 1, 7, 2], [7, 7]):
        assert_same(said(in_pieces(model, ids, sizes)), whole.prediction_scores, f"pieces of {sizes}")


@pytest.mark.parametrize("model_class", MODELS)
def test_memory_of_zeros_is_seen(model_class: type[Any]) -> None:
    """No memories are `mem_len` rows of zeros, as in the original; that differs from a start without any."""
    model, ids = MODEL[model_class], words(3, 5)
    zeros = [torch.zeros(MEMORY, 3, HIDDEN) for _ in range(LAYERS)]
    with torch.no_grad():
        silent = model(ids)
        assert_equal_outputs(model(ids, zeros), silent, "zeros said aloud", exact=True)
        assert_equal_outputs(model(ids, model.init_mems(3)), silent, "init_mems of a number", exact=True)
        assert_equal_outputs(model(ids, model.init_mems(ids)), silent, "init_mems of the ids", exact=True)
        assert difference(said([model(ids, no_memory(model, 3))]), said([silent]))[0] > 1e-3


def test_memories_have_the_shape_of_the_published_ones() -> None:
    model = MODEL[TransfoXLLMHeadModel]
    for length, mems, rows in ((3, None, 9), (12, None, 9), (3, no_memory(model, 2), 3), (5, "more", 8)):
        given = [torch.randn(3, 2, HIDDEN) for _ in range(LAYERS)] if isinstance(mems, str) else mems
        found = model(words(2, length), given).mems
        assert isinstance(found, tuple)
        assert [tuple(x.shape) for x in found] == [(rows, 2, HIDDEN)] * LAYERS
        assert not any(x.requires_grad for x in found)


def test_memory_is_what_goes_into_each_layer() -> None:
    """Not what comes out: the embeddings are the first, and the last states are not among them."""
    model, ids = MODEL[TransfoXLModel], words(2, 4)
    with torch.no_grad():
        output = model(ids, output_hidden_states=True)
    for layer in range(LAYERS):
        assert torch.equal(output.mems[layer][-4:], output.hidden_states[layer].transpose(0, 1))
    assert_same(output.hidden_states[0], model.get_input_embeddings()(ids), "embeddings")
    assert torch.equal(output.hidden_states[-1], output.last_hidden_state)


@pytest.mark.parametrize("model_class", MODELS)
def test_without_memory(model_class: type[Any]) -> None:
    """`mem_len` 0: no field, and nothing is seen before the segment."""
    model, ids = build(CASE, model_class, mem_len=0), words(2, 5)
    with torch.no_grad():
        output = model(ids, output_attentions=True)
        assert "mems" not in fields(output)
        assert output.mems is None
        assert output.attentions[0].shape == (2, HEADS, 5, 5)
        assert_equal_outputs(model(ids, no_memory(model, 2)), model(ids), "none said aloud", exact=True)
        assert_same(said([MODEL[model_class](ids, no_memory(model, 2))]), said([output]), "as with an empty one")
    assert model.init_mems(2) is None


def test_memories_are_only_read() -> None:
    """Several continuations of one memory, even with dropout in place."""
    model, ids = MODEL[TransfoXLLMHeadModel], words(2, 8)
    with torch.no_grad():
        mems = model(ids[:, :4]).mems
        copies = [x.clone() for x in mems]
        first = model(ids[:, 4:], mems)
        model(ids[:, :3], mems)
        assert all(torch.equal(one, other) for one, other in zip(mems, copies, strict=True))
        assert_equal_outputs(model(ids[:, 4:], mems), first, "again", exact=True)


def test_memory_does_not_grow() -> None:
    """What is remembered may be a view of what a segment saw, and of no more, however many came before."""
    model = build(CASE, TransfoXLModel, mem_len=4)
    rows = (4 + 3) * 2 * HIDDEN * 4  # bytes of memory and segment
    for output in in_pieces(model, words(2, 30), [3] * 10):
        assert all(layer.untyped_storage().nbytes() <= rows for layer in output.mems)


@pytest.mark.parametrize("model_class", MODELS)
def test_reset_length(model_class: type[Any]) -> None:
    """Lengths can be changed at any time, on either class: by the published method or one by one."""
    model, ids = build(CASE, model_class), words(2, 6)
    model.reset_length(4, 2, 5)
    assert (model.tgt_len, model.ext_len, model.mem_len) == (4, 2, 5)
    with torch.no_grad():
        assert [x.shape[0] for x in model(ids).mems] == [5] * LAYERS
        built = build(CASE, model_class, tgt_len=4, ext_len=2, mem_len=5)
        assert_equal_outputs(model(ids), built(ids), "reset", exact=True)
        other = build(CASE, model_class)
        other.mem_len, other.ext_len, other.tgt_len = 5, 2, 4
        assert_equal_outputs(other(ids), built(ids), "set one by one", exact=True)
        for name, value in (("clamp_len", 3), ("same_length", True)):
            setattr(other, name, value)
            assert getattr(other, name) == value
        built = build(CASE, model_class, tgt_len=4, ext_len=2, mem_len=5, clamp_len=3, same_length=True)
        assert_equal_outputs(other(ids), built(ids), "views set one by one", exact=True)
        assert difference(said([other(ids)]), said([model(ids)]))[0] > 1e-4


def test_context_that_is_computed_again() -> None:
    """`ext_len`: the last tokens of a segment stay out of the memory, come again, and only new ones are labelled."""
    model = build(CASE, TransfoXLLMHeadModel, mem_len=30, ext_len=2, tgt_len=4)
    text = words(2, 15, 6)
    with torch.no_grad():
        expected = model(text[:, :14], no_memory(model, 2), labels=text[:, 1:]).loss
        output = model(text[:, :6], no_memory(model, 2), labels=text[:, 1:7])
        assert_same(output.loss, expected[:, :6], "the first segment")
        for start in (6, 10):  # two tokens that come again, and four new ones
            assert [x.shape[0] for x in output.mems] == [start - 2] * LAYERS
            labels = text[:, start + 1 : start + 5]
            output = model(text[:, start - 2 : start + 4], output.mems, labels=labels)
            assert_same(output.loss, expected[:, start : start + 4], f"from {start}")


# --- cache ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("explicit", [False, True])
@FEW
@given(seed=seeds, sizes=pieces)
def test_cache_is_the_memory(view: str, explicit: bool, seed: int, sizes: list[int]) -> None:
    """The same segments with keys and values that are kept: scores, losses and attentions."""
    model = build(CASE, TransfoXLLMHeadModel, **VIEWS[view])
    text = words(2, sum(sizes), seed)
    expected = in_pieces(model, text, sizes, output_attentions=explicit)
    cache = model.new_cache(2, sum(sizes))
    outputs, start = [], 0
    with torch.no_grad():
        for size in sizes:
            outputs.append(model(text[:, start : start + size], cache, output_attentions=explicit))
            start += size
    for place, (one, other) in enumerate(zip(outputs, expected, strict=True)):
        assert_same(one.prediction_scores, other.prediction_scores, f"piece {place} of {sizes}")
        if explicit:
            for layer, (probs, others) in enumerate(zip(one.attentions, other.attentions, strict=True)):
                assert_same(probs, others, f"attention {layer}, piece {place} of {sizes}")


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "with context"])
def test_cache_without_end(view: str) -> None:
    """Many more tokens than the cache was made for, one by one: the window moves along."""
    model = build(CASE, TransfoXLLMHeadModel, **VIEWS[view])
    text = words(2, 60, 8)
    expected = said(in_pieces(model, text, [1] * 60))
    cache = model.new_cache(2, 4)
    with torch.no_grad():
        for place in range(60):
            scores = model.next_token_logits(text[:, place : place + 1], cache, None)
            assert_same(scores, expected[:, place], f"token {place}")


def test_five_and_three_tokens_in_a_cache() -> None:
    """E2: one pass against 5 + 3 tokens."""
    model = build(CASE, TransfoXLLMHeadModel, same_length=True)
    ids = words(2, 8, 9)
    cache = model.new_cache(2, 8)
    with torch.no_grad():
        whole = model(ids).prediction_scores
        for start, stop in ((0, 5), (5, 8)):
            output = model(ids[:, start:stop], cache)
            assert_same(output.prediction_scores, whole[:, start:stop], f"tokens {start} to {stop}")


@pytest.mark.parametrize("same_length", [False, True])
def test_greedy_text_is_what_the_memory_says(same_length: bool) -> None:
    """`generate` against the model called step by step with the memories it returns."""
    model = build(CASE, TransfoXLLMHeadModel, noise=0.1, same_length=same_length, clamp_len=6)
    prompt = words(2, 5, 10)
    with torch.no_grad():
        output = model(prompt)
        tokens, fresh = prompt, prompt
        for step in range(12):
            output = model(fresh, None if step == 0 else output.mems)
            fresh = output.prediction_scores[:, -1].argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, fresh], 1)
    assert len(set(tokens[0, 5:].tolist())) > 2, "a model that has more than one thing to say"
    assert torch.equal(model.generate(prompt, max_new_tokens=12).sequences, tokens)


def test_text_goes_on_whatever_is_computed_again() -> None:
    """`ext_len` is about segments that come again; text generation gives each token once and remembers it."""
    text = words(2, 9, 10)
    plain, model = build(CASE, TransfoXLLMHeadModel), build(CASE, TransfoXLLMHeadModel, ext_len=2)
    cache, other = plain.new_cache(2, 9), model.new_cache(2, 9)
    with torch.no_grad():
        for start, stop in ((0, 5), (5, 6), (6, 7), (7, 9)):
            expected = plain.next_token_logits(text[:, start:stop], cache, None)
            assert_same(model.next_token_logits(text[:, start:stop], other, None), expected, f"up to {stop}")


@pytest.mark.parametrize("same_length", [False, True])
@pytest.mark.parametrize("pieces", [(9,), (1,) * 9, (4, 1, 3, 1), (2, 7)], ids=str)
def test_padding_on_the_left_of_a_cache(pieces: tuple[int, ...], same_length: bool) -> None:
    """E1: each row gives what its text gives alone, in pieces that end at the same places."""
    model, ids = build(CASE, TransfoXLLMHeadModel, same_length=same_length, clamp_len=7), words(4, 9, 11)
    padding = torch.tensor([0, 3, 8, 1])
    mask = (torch.arange(9) >= padding[:, None]).long()
    cache, alone = model.new_cache(4, 9), [model.new_cache(1, 9) for _ in padding]
    end = 0
    with torch.no_grad():
        for piece in pieces:
            start, end = end, end + piece
            together = model.next_token_logits(ids[:, start:end], cache, mask[:, :end])
            for row, before in enumerate(padding.tolist()):
                if before < end:
                    text = ids[row : row + 1, max(before, start) : end]
                    expected = model.next_token_logits(text, alone[row], None)
                    assert_same(together[row : row + 1], expected, f"row {row}, up to {end}")


def test_prompts_of_different_lengths() -> None:
    """E1: together they go on as each does alone, well beyond the memory."""
    model = build(CASE, TransfoXLLMHeadModel, noise=0.3)
    prompts = [[5, 6, 7, 8, 9, 50, 60], [5, 6, 7], [33]]
    together = model.generate(prompts, max_new_tokens=15).new_tokens
    assert together == [model.generate([prompt], max_new_tokens=15).new_tokens[0] for prompt in prompts]


def test_rows_of_a_cache_can_be_chosen() -> None:
    """As in a search with several hypotheses: rows in another order, twice or not at all."""
    model, ids = MODEL[TransfoXLLMHeadModel], words(3, 8, 12)
    cache = model.new_cache(3, 8)
    with torch.no_grad():
        model(ids[:, :4], cache)
        rows = torch.tensor([2, 0, 0, 1])
        cache.select(rows)
        assert cache.batch == 4
        found = model(ids[rows, 4:], cache).prediction_scores
        whole = model.new_cache(3, 8)
        model(ids[:, :4], whole)
        assert_same(found, model(ids[:, 4:], whole).prediction_scores[rows], "chosen rows")
        whole.clear()
        assert whole.tokens == 0
        assert torch.equal(model(ids, whole).prediction_scores, model(ids, model.new_cache(3, 8)).prediction_scores)


def test_no_step_changes_the_model() -> None:
    """A cache belongs to its text only: a second one starts from nothing."""
    model, ids = MODEL[TransfoXLLMHeadModel], words(2, 6)
    with torch.no_grad():
        first, second = model.new_cache(2, 6), model.new_cache(2, 6)
        one = model(ids, first).prediction_scores
        model(ids, first)
        assert torch.equal(model(ids, second).prediction_scores, one)


# --- softmax ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(seed=seeds, batch=st.integers(1, 3), length=st.integers(1, 6))
def test_losses_are_minus_the_log_probabilities(kind: str, seed: int, batch: int, length: int) -> None:
    """And these are of probabilities: they add up to 1."""
    model, ids = OF_KIND[kind], words(batch, length, seed)
    labels = (words(batch, length, seed + 1) - 1).clamp(max=VOCAB - 1)  # some are -1
    with torch.no_grad():
        scores = model(ids).prediction_scores
        loss = model(ids, labels=labels).loss
    assert_same(scores.double().exp().sum(-1), torch.ones(batch, length), "add up to 1")
    chosen = -scores.gather(2, labels.clamp(min=0)[..., None])[..., 0]
    assert_same(loss, torch.where(labels < 0, torch.zeros(()), chosen), "losses")
    assert not loss[labels < 0].any()


def test_log_prob_of_a_hundred_words() -> None:
    """F1: 100 words, cut-offs 10, 20 and 80, 15 states."""
    for changes in ({}, {"div_val": 1}, {"div_val": 1, "d_embed": HIDDEN}):
        model = build(CASE, TransfoXLLMHeadModel, vocab_size=100, cutoffs=[10, 20, 80], **changes)
        hidden = torch.randn(15, HIDDEN, generator=torch.Generator().manual_seed(1))
        found = model.crit.log_prob(hidden)
        assert found.shape == (15, 100)
        assert_same(found.double().exp().sum(1), torch.ones(15), "rows")
        with torch.no_grad():
            assert_same(model.crit(hidden), found, "forward without target")
            for word in range(0, 100, 7):
                losses = model.crit(hidden, torch.full((15,), word))
                assert_same(losses, -found[:, word], f"word {word}")
        ids = torch.randint(0, 100, (3, 5), generator=torch.Generator().manual_seed(2))
        with torch.no_grad():
            output = model(ids, output_hidden_states=True)
            states = output.hidden_states[-1].reshape(15, HIDDEN)
            assert_same(output.prediction_scores.reshape(15, 100), model.crit.log_prob(states), "of the model")


@pytest.mark.parametrize("tied", [True, False])
def test_no_cut_offs(tied: bool) -> None:
    """F2: an ordinary softmax, with and without target."""
    model = build(CASE, TransfoXLLMHeadModel, vocab_size=50, cutoffs=[], div_val=1, d_embed=HIDDEN, tie_weight=tied)
    ids = torch.randint(0, 50, (2, 7), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        scores, loss = model(ids).prediction_scores, model(ids, labels=ids).loss
        hidden = model.transformer(ids).last_hidden_state
        output = model.crit.out_layers[0]
        expected = torch.log_softmax(hidden @ output.weight.t() + output.bias, -1)
    assert scores.shape == (2, 7, 50)
    assert_same(scores, expected, "scores")
    assert_same(loss, -expected.gather(2, ids[..., None])[..., 0], "losses")
    assert (output.weight is model.transformer.word_emb.emb_layers[0].weight) == tied


def test_labels_are_not_shifted() -> None:
    """F5: one token, as input and as label, has a loss: minus its own log-probability."""
    model, three = MODEL[TransfoXLLMHeadModel], torch.tensor([[3]])
    with torch.no_grad():
        loss = model(three, labels=three).loss
        assert loss.shape == (1, 1)
        assert_same(loss[0, 0], -model(three).prediction_scores[0, 0, 3], "loss")


def test_fewer_labels_than_tokens() -> None:
    """They are those of the last tokens, as with `ext_len`."""
    model, ids = MODEL[TransfoXLLMHeadModel], words(3, 7)
    labels = words(3, 7, 1)
    with torch.no_grad():
        whole = model(ids, labels=labels)
        for count in (1, 3, 7):
            output = model(ids, labels=labels[:, -count:])
            assert_same(output.loss, whole.loss[:, -count:], f"{count} labels")
            assert all(torch.equal(one, other) for one, other in zip(output.mems, whole.mems, strict=True))


def test_every_boundary_of_the_clusters() -> None:
    """First and last word of each, alone and together, as input and as label."""
    model = MODEL[TransfoXLLMHeadModel]
    edges = [0, *(edge for cutoff in CUTOFFS for edge in (cutoff - 1, cutoff)), VOCAB - 1]
    ids = torch.tensor([edges])
    with torch.no_grad():
        together = model(ids, no_memory(model, 1), labels=ids)
        scores = model(ids, no_memory(model, 1)).prediction_scores
        assert_same(together.loss[0], [-scores[0, i, word].item() for i, word in enumerate(edges)], "losses")
        for word in edges:
            one = torch.tensor([[word]])
            expected = -model(one).prediction_scores[0, 0, word]
            assert_same(model(one, labels=one).loss[0, 0], expected, f"word {word} alone")


# --- what a token sees ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("model_class", MODELS)
def test_causality(model_class: type[Any], view: str) -> None:
    """A later token, whatever it is, changes nothing that is said of an earlier one; nor does its absence.

    In float64, where nothing is 1e-12: words of a cluster are projected together, and rounded by how many there are.
    """
    model, ids = build(CASE, model_class, **VIEWS[view]).double(), words(2, 8)
    for switches in ({}, {"output_attentions": True}):
        with torch.no_grad():
            whole = said([model(ids, **switches)])
            for place in range(1, 8):
                changed = torch.where(torch.arange(8) >= place, (ids * 7 + place) % VOCAB, ids)
                other = said([model(changed, **switches)])
                assert_same(other[:, :place], whole[:, :place], f"place {place} is seen before it", max_abs=1e-12)
                assert difference(other[:, place:], whole[:, place:])[0] > 1e-3
                shorter = said([model(ids[:, :place], **switches)])
                assert_same(shorter, whole[:, :place], f"the first {place} alone", max_abs=1e-12)


@pytest.mark.parametrize(("fewer", "seen"), [(False, MEMORY + 1), (True, MEMORY)])
def test_same_length_shows_as_many_keys_to_all(fewer: bool, seen: int) -> None:
    """Itself and the whole length of the memory, also over a shorter and a longer memory than segment."""
    model = build(CASE, TransfoXLModel, same_length=True, same_length_one_fewer=fewer)
    for length in (1, 4, 12):
        with torch.no_grad():
            attentions = model(words(2, length), output_attentions=True).attentions
        places, keys = torch.arange(length)[:, None] + MEMORY, torch.arange(MEMORY + length)
        visible = (keys <= places) & (keys > places - seen)
        for probs in attentions:
            assert probs.shape == (2, HEADS, length, MEMORY + length)
            assert torch.equal(probs > 0, visible.expand_as(probs))
            assert (visible.sum(1) == seen).all()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("model_class", MODELS)
@FEW
@given(seed=seeds)
def test_rows_do_not_know_of_each_other(model_class: type[Any], view: str, seed: int) -> None:
    """What stands beside a text, memory included, changes nothing; nor do the rows' order and number."""
    model, ids = build(CASE, model_class, **VIEWS[view]), words(4, 6, seed)
    with torch.no_grad():
        mems = getattr(model(words(4, 6, seed + 1)), "mems", None)
        together = said([model(ids, mems)])
        for rows in ([0], [2], [3, 1], [2, 0, 1, 3]):
            some = None if mems is None else [layer[:, rows] for layer in mems]
            assert_same(said([model(ids[rows], some)]), together[rows], f"rows {rows}")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("model_class", MODELS)
def test_explicit_path_and_kept_heads(model_class: type[Any], view: str) -> None:
    """Asking for the probabilities, or keeping all heads, takes another way to the same numbers."""
    model, ids = build(CASE, model_class, **VIEWS[view]), words(2, 6)
    with torch.no_grad():
        mems = getattr(model(words(2, 6, 1)), "mems", None)
        plain = model(ids, mems)
        explicit = model(ids, mems, output_attentions=True)
        assert_equal_outputs(list(explicit)[: len(plain)], plain, "explicit")
        assert_equal_outputs(model(ids, mems, head_mask=torch.ones(LAYERS, HEADS)), plain, "all heads kept")


def test_vectors_instead_of_ids() -> None:
    """As the table of words gives them: scaled by the root of the width."""
    for model in (*MODEL.values(), *OF_KIND.values()):
        ids = words(2, 5)
        table = model.get_input_embeddings()
        with torch.no_grad():
            assert_equal_outputs(model(inputs_embeds=table(ids)), model(ids), "vectors")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("view", ["all", "same length, clamped"])
def test_half_precision_is_finite(view: str, dtype: torch.dtype) -> None:
    """In float16 the largest number is 65504, so a mask of -1e30 is an infinity; losses are still float32."""
    model = build(CASE, TransfoXLLMHeadModel, **VIEWS[view]).to(dtype)
    reference = build(CASE, TransfoXLLMHeadModel, **VIEWS[view])
    ids, mems = words(2, 9), None
    labels = words(2, 9, 1)
    for _ in range(3):
        with torch.no_grad():
            for explicit in (False, True):
                output = model(ids, mems, output_attentions=explicit)
                assert all(torch.isfinite(x).all() for x in tensors(output))
                assert all(x.dtype == dtype for x in tensors(output))
        model.train()
        loss = model(ids, mems, labels=labels).loss
        assert torch.isfinite(loss).all()
        model.zero_grad()
        loss.float().mean().backward()
        assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())
        model.eval()
        with torch.no_grad():
            expected = reference(ids, None if mems is None else [x.float() for x in mems], labels=labels).loss
            assert difference(loss, expected)[0] < 0.5
        mems = output.mems


def test_autocast() -> None:
    """bfloat16 where it pays, with float32 parameters: near the float32 losses and gradients."""
    model = build(CASE, TransfoXLLMHeadModel).train()
    ids, labels = words(3, 8), words(3, 8, 1)
    loss = model(ids, labels=labels).loss
    expected = gradients(model, loss.mean())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(ids, labels=labels)
        again = model(ids, output.mems, labels=labels)
        scores = model(ids).prediction_scores
    assert difference(output.loss, loss)[0] < 0.2
    assert again.loss.isfinite().all()
    assert_same(scores.double().exp().sum(-1), torch.ones(3, 8), "add up to 1", max_abs=0.05, max_std=0.02)
    for name, gradient in gradients(model, output.loss.mean()).items():
        assert gradient.dtype == torch.float32
        # Eight bits, and rectifiers that let a slope through on one side only: a few percent of the whole gradient.
        assert float((gradient - expected[name]).norm()) < 0.1 * float(expected[name].norm()), name


def test_distances_are_exact_in_half_precision() -> None:
    """A far distance is no whole number in bfloat16; sinusoids are computed in float32 and rounded after that."""
    exact = build(CASE, TransfoXLModel, n_layer=1, mem_len=600)
    halved = build(CASE, TransfoXLModel, n_layer=1, mem_len=600).bfloat16()
    rounded = build(CASE, TransfoXLModel, n_layer=1, mem_len=600).bfloat16().float()
    ids = words(1, 4)
    generator = torch.Generator().manual_seed(1)
    mems = [torch.randn(600, 1, HIDDEN, generator=generator).bfloat16()]
    with torch.no_grad():
        found = halved(ids, mems, output_attentions=True).attentions[0].float()
        expected = rounded(ids, [mems[0].float()], output_attentions=True).attentions[0]
        assert exact(ids).last_hidden_state.isfinite().all()
    assert float((found - expected).abs().max()) < 0.1 * float(expected.max())


# --- compilers and exporters ------------------------------------------------------------------------------------------


def memory_arguments(model: Any, batch: int, before: int, length: int) -> dict[str, Any]:
    """Ids and memories of those sizes."""
    generator = torch.Generator().manual_seed(batch)
    mems = tuple(torch.randn(before, batch, HIDDEN, generator=generator) for _ in range(LAYERS))
    return {"input_ids": words(batch, length, batch), "mems": mems}


@pytest.mark.parametrize("view", ["all", "same length, clamped"])
@pytest.mark.parametrize("model_class", MODELS)
def test_export_with_memory(model_class: type[Any], view: str) -> None:
    """J1: one graph for any batch and length of segments, after memories of the configured length."""
    model = build(CASE, model_class, **VIEWS[view])
    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=2, max=64)
    shapes = {"input_ids": {0: batch, 1: length}, "mems": tuple({1: batch} for _ in range(LAYERS))}
    with torch.no_grad():
        given = memory_arguments(model, 3, MEMORY, 5)
        program = torch.export.export(model, (), given, dynamic_shapes=shapes)
        for sizes in ((2, MEMORY, 7), (5, MEMORY, 3), (3, MEMORY, 12)):
            given = memory_arguments(model, *sizes)
            found, expected = tensors(program.module()(**given)), tensors(model(**given))
            for one, other in zip(found, expected, strict=True):
                assert_same(one, other, f"exported, at {sizes}")


def test_export_with_a_growing_memory() -> None:
    """J1: the length of the memory may be left open, too."""
    model = build(CASE, TransfoXLLMHeadModel)
    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=2, max=64)
    before = torch.export.Dim("before", min=2, max=64)
    shapes = {"input_ids": {0: batch, 1: length}, "mems": tuple({0: before, 1: batch} for _ in range(LAYERS))}
    with torch.no_grad():
        given = memory_arguments(model, 3, 11, 5)
        program = torch.export.export(model, (), given, dynamic_shapes=shapes)
        for sizes in ((2, 9, 7), (5, 14, 3)):
            given = memory_arguments(model, *sizes)
            found, expected = tensors(program.module()(**given)), tensors(model(**given))
            for one, other in zip(found, expected, strict=True):
                assert_same(one, other, f"exported, at {sizes}")


@pytest.mark.parametrize("view", ["all", "same length, clamped"])
def test_trace_with_memory(view: str) -> None:
    """J1: a trace of a segment goes on over segments of other lengths."""
    model = build(CASE, TransfoXLLMHeadModel, torchscript=True, **VIEWS[view])

    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Tensor, mems: list[Tensor]) -> Any:
            return self.model(ids, mems)

    ids = words(3, 30)
    with torch.no_grad(), warnings.catch_warnings():
        mems = list(model(ids[:, :4])[1])
        warnings.filterwarnings("ignore", message=r".*torch\.jit\.\w+.*deprecated", category=DeprecationWarning)
        traced: Any = torch.jit.trace(Step(), (ids[:, 4:9], mems))
        for start, stop in ((4, 7), (7, 15), (15, 16), (16, 25)):
            found, expected = traced(ids[:, start:stop], mems), model(ids[:, start:stop], mems)
            assert_equal_outputs(found, expected, f"traced, {stop - start} tokens")
            mems = list(expected[1])


def test_labels_in_a_recorded_graph() -> None:
    """While a graph is recorded the losses are gathered from all log-probabilities; the same numbers."""
    model = build(CASE, TransfoXLLMHeadModel)
    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=2, max=64)
    shapes = {name: {0: batch, 1: length} for name in ("input_ids", "labels")}
    given = {"input_ids": words(3, 5), "labels": words(3, 5, 1)}
    with torch.no_grad():
        program = torch.export.export(model, (), given, dynamic_shapes=shapes)
        for sizes in ((2, 7), (4, 3)):
            labels = words(*sizes, 3)
            labels[0, 1] = -1
            given = {"input_ids": words(*sizes, 2), "labels": labels}
            for one, other in zip(tensors(program.module()(**given)), tensors(model(**given)), strict=True):
                assert_same(one, other, f"exported, at {sizes}")


def test_length_constants() -> None:
    """The tiny sizes are what the docstring of `tiny` says, and differ."""
    assert len({LENGTH, MEMORY, HIDDEN, HEADS, LAYERS, VOCAB, *CUTOFFS}) == 9
    assert per_token(MODEL[TransfoXLModel](words(1, 2)))[0].shape == (1, 2, HIDDEN)
