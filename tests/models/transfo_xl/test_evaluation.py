"""Perplexity: the same number as two plain loops over segments, and none of the things it must not depend on."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from pytorch_transformers import TransfoXLLMHeadModel
from pytorch_transformers.generation.perplexity import Perplexity
from pytorch_transformers.models.transfo_xl.evaluation import PAPER, evaluate, segments

from ..battery import build
from .reference import NumpyTransfoXL
from .tiny import CASE, HIDDEN, LAYERS, MEMORY, VIEWS, VOCAB, words

TOKENS = 53
TEXT = words(1, TOKENS, 3)[0]
#: In float64, so that what should not matter is told from what matters little.
EXACT = 1e-12
#: The sinusoids of a model are computed in float32 all the same.
SINUSOIDS = 1e-7


def made(**changes: Any) -> Any:
    """A tiny model in float64."""
    return build(CASE, TransfoXLLMHeadModel, **changes).double()


def start_of(model: Any) -> tuple[Tensor, ...] | None:
    """The memory at the start of one text: zeros with `same_length`, nothing without."""
    if model.same_length:
        return None
    nothing = torch.zeros(0, 1, HIDDEN, dtype=torch.float64)
    return (nothing,) * LAYERS


def by_hand(model: Any, text: Tensor) -> Perplexity:
    """One stream through `forward`, with the published memories."""
    mems, total, tokens = start_of(model), 0.0, 0
    with torch.no_grad():
        for start in range(0, len(text) - 1, model.tgt_len):
            end = min(start + model.tgt_len, len(text) - 1)
            inputs = text[None, max(0, start - model.ext_len) : end]
            output = model(inputs, mems, labels=text[None, start + 1 : end + 1])
            mems = output.mems
            total += float(output.loss.sum())
            tokens += end - start
    return Perplexity(total, tokens)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("tgt_len", [1, 5, 7, 60])
def test_equals_a_loop_over_published_memories(view: str, tgt_len: int) -> None:
    model = made(**{**VIEWS[view], "tgt_len": tgt_len})
    found, wanted = evaluate(model, TEXT, batch_size=1), by_hand(model, TEXT)
    assert found.tokens == wanted.tokens == TOKENS - 1
    assert found.loss == pytest.approx(wanted.loss, rel=EXACT)


@pytest.mark.parametrize("same_length", [False, True])
@pytest.mark.parametrize("clamp_len", [-1, 6])
def test_equals_the_numpy_reference(same_length: bool, clamp_len: int) -> None:
    model = made()
    lengths: dict[str, Any] = {"mem_len": 8, "clamp_len": clamp_len, "same_length": same_length}
    reference = NumpyTransfoXL(
        {name: value.numpy() for name, value in model.state_dict().items()}, model.config, **lengths
    )
    mems: Any = None if same_length else [torch.zeros(0, 1, HIDDEN).numpy()] * LAYERS
    total = 0.0
    for start in range(0, TOKENS - 1, 6):
        end = min(start + 6, TOKENS - 1)
        decoded = reference.decode(TEXT[None, start:end], mems)
        mems = decoded.mems
        total += float(reference.losses(decoded.last, TEXT[None, start + 1 : end + 1]).sum())
    found = evaluate(model, TEXT, batch_size=1, tgt_len=6, ext_len=0, **lengths)
    assert found.loss == pytest.approx(total, rel=SINUSOIDS)
    assert found.value == pytest.approx(math.exp(total / (TOKENS - 1)), rel=SINUSOIDS)


@pytest.mark.parametrize(
    "lengths",
    [
        pytest.param({"same_length": True, "mem_len": 6}, id="same length"),
        pytest.param({"same_length": True, "mem_len": 6, "clamp_len": 4}, id="same length, clamped"),
        pytest.param({"same_length": False, "mem_len": TOKENS}, id="the memory holds the text"),
    ],
)
def test_cuts_do_not_matter(lengths: dict[str, Any]) -> None:
    """F3: of 4 and 7 tokens, to the letter, and others."""
    model = made()
    wanted = evaluate(model, TEXT, batch_size=1, tgt_len=4, **lengths)
    for tgt_len, ext_len in ((7, 0), (1, 0), (TOKENS + 9, 0), (4, 2), (7, 3), (3, 5), (5, TOKENS)):
        found = evaluate(model, TEXT, batch_size=1, tgt_len=tgt_len, ext_len=ext_len, **lengths)
        assert found.tokens == wanted.tokens
        assert found.loss == pytest.approx(wanted.loss, rel=EXACT), (tgt_len, ext_len)


def test_cuts_matter_where_the_memory_is_short() -> None:
    """Without `same_length` a token sees more the further back it stands in its segment, as in the original."""
    model = made(same_length=False, mem_len=3)
    losses = [evaluate(model, TEXT, batch_size=1, tgt_len=tgt_len).loss for tgt_len in (2, 9)]
    assert losses[0] != pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize(
    ("lengths", "warm_up"),
    [
        pytest.param({"same_length": True, "mem_len": 4}, LAYERS * 4, id="as far as a token sees"),
        pytest.param({"same_length": True, "mem_len": 6}, TOKENS, id="to the beginning"),
        pytest.param({"same_length": False, "mem_len": TOKENS}, TOKENS, id="to the beginning, all in the memory"),
    ],
)
@pytest.mark.parametrize("batch_size", [2, 3, 10, 500])
def test_batches_do_not_matter_after_reading_enough(lengths: dict[str, Any], warm_up: int, batch_size: int) -> None:
    model = made()
    wanted = evaluate(model, TEXT, batch_size=1, tgt_len=5, **lengths)
    found = evaluate(model, TEXT, batch_size=batch_size, tgt_len=5, warm_up=warm_up, **lengths)
    assert found.tokens == wanted.tokens == TOKENS - 1
    assert found.loss == pytest.approx(wanted.loss, rel=EXACT)


def test_a_token_sees_all_layers_times_the_memory_and_no_less() -> None:
    """With one token less to read, the first that a row scores is off: the limit of `evaluate` is the right one."""
    model = made(same_length=True, mem_len=4)
    wanted = evaluate(model, TEXT, batch_size=1).loss
    enough = evaluate(model, TEXT, batch_size=3, warm_up=LAYERS * 4).loss
    fewer = evaluate(model, TEXT, batch_size=3, warm_up=LAYERS * 4 - 1).loss
    none = evaluate(model, TEXT, batch_size=3, warm_up=0).loss
    assert abs(enough - wanted) < abs(fewer - wanted) < abs(none - wanted)
    assert fewer != pytest.approx(wanted, rel=1e-9)


def test_warm_up_is_the_memory_by_default() -> None:
    model = made(same_length=True)
    assert evaluate(model, TEXT, batch_size=4) == evaluate(model, TEXT, batch_size=4, warm_up=MEMORY)
    assert evaluate(model, TEXT, batch_size=4) != evaluate(model, TEXT, batch_size=4, warm_up=0)


def test_every_token_weighs_the_same() -> None:
    """The last segment has 3 tokens and the others 7; the mean of their means would be another number."""
    model, text = made(same_length=True), TEXT[:18]
    found = evaluate(model, text, batch_size=1, tgt_len=7)
    with torch.no_grad():
        losses = model(text[None, :-1], labels=text[None, 1:]).loss[0]
    assert found.value == pytest.approx(float(losses.mean().exp()), rel=EXACT)
    means = torch.stack([part.mean() for part in losses.split(7)]).mean()
    assert found.value != pytest.approx(float(means.exp()), rel=1e-5)


def test_rows_score_the_whole_text_between_them() -> None:
    for tokens in (2, 3, 11, 20):
        text = torch.arange(tokens)
        for streams in range(1, tokens):
            for tgt_len, ext_len, warm_up in ((1, 0, 0), (4, 0, 0), (4, 3, 2), (3, 0, 50), (50, 1, 1)):
                labels: list[int] = []
                for step in segments(text, streams, tgt_len, ext_len, warm_up):
                    assert step.labels.shape == (streams, tgt_len)
                    asked = step.labels >= 0
                    labels += step.labels[asked].tolist()
                    before = step.input_ids[:, -tgt_len:]
                    assert torch.equal(before[asked] + 1, step.labels[asked])  # each from the one before it
                assert sorted(labels) == list(range(1, tokens))


@pytest.mark.parametrize("steps", [1, 3, 100])
def test_max_eval_steps(steps: int) -> None:
    model = made(same_length=True, tgt_len=7)
    found = evaluate(model, TEXT, batch_size=1, max_eval_steps=steps)
    assert found == evaluate(model, TEXT[: 7 * steps + 1], batch_size=1)
    assert found.tokens == min(7 * steps, TOKENS - 1)


def test_progress_is_the_result_so_far() -> None:
    model, seen = made(same_length=True, tgt_len=7), list[Perplexity]()
    found = evaluate(model, TEXT, batch_size=3, progress=seen.append)
    assert seen[-1] == found
    assert [each.tokens for each in seen] == sorted({each.tokens for each in seen} | {seen[0].tokens})
    assert 0 < seen[0].tokens < found.tokens


def test_lists_and_other_integers_are_texts() -> None:
    model = made(same_length=True)
    wanted = evaluate(model, TEXT)
    assert evaluate(model, TEXT.tolist()) == evaluate(model, TEXT.int()) == wanted


def lengths_of(model: Any) -> tuple[Any, ...]:
    decoder = model.transformer
    return decoder.tgt_len, decoder.ext_len, decoder.mem_len, decoder.clamp_len, decoder.same_length


def test_lengths_are_as_before() -> None:
    model = made()
    before = lengths_of(model)
    asked: dict[str, Any] = {"tgt_len": 3, "ext_len": 2, "mem_len": 4, "clamp_len": 5, "same_length": True}
    during = []
    evaluate(model, TEXT, progress=lambda so_far: during.append(lengths_of(model)), **asked)
    assert set(during) == {tuple(asked.values())}
    assert lengths_of(model) == before

    def stop(so_far: Perplexity) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(model, TEXT, progress=stop, **asked)
    assert lengths_of(model) == before
    for wrong in ({"tgt_len": 0}, {"ext_len": -1}, {"mem_len": -1}, {"clamp_len": -2}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            evaluate(model, TEXT, **{**asked, **wrong})
        assert lengths_of(model) == before


def test_lengths_of_the_paper() -> None:
    """Section 4.1 and table 1; the released script evaluates so."""
    assert PAPER == {"tgt_len": 128, "ext_len": 0, "mem_len": 1600, "clamp_len": 1000, "same_length": True}
    config = CASE.config(**PAPER)
    assert {name: getattr(config, name) for name in PAPER} == PAPER


def test_loss_that_is_no_number() -> None:
    model = made(same_length=True)
    before = lengths_of(model)
    with torch.no_grad():
        model.transformer.layers[-1].pos_ff.layer_norm.bias.fill_(math.nan)
    with pytest.raises(ValueError, match="not a number in segment 0"):
        evaluate(model, TEXT, mem_len=3)
    assert lengths_of(model) == before


def test_what_cannot_be_used() -> None:
    model = made()
    for text in (torch.tensor([], dtype=torch.long), torch.tensor([5]), [], [7], TEXT[None]):
        with pytest.raises(ValueError, match="one token to predict"):
            evaluate(model, text)
    with pytest.raises(TypeError, match=r"integers, found torch\.float32"):
        evaluate(model, torch.tensor([1.0, 2.0]))
    for wrong in (VOCAB, -1):
        with pytest.raises(ValueError, match=rf"found {wrong}, but the model has words 0 to {VOCAB - 1}"):
            evaluate(model, [3, wrong, 4])
    for name, value in (("batch_size", 0), ("warm_up", -1), ("max_eval_steps", 0), ("batch_size", 1.5)):
        with pytest.raises(ValueError, match=name):
            evaluate(model, TEXT, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"model\.eval\(\)"):
        evaluate(model.train(), TEXT)
