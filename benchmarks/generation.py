"""Text generation: GPT-2 of the smallest size with random weights, greedy, against transformers and the memory's limit.

With one row, a step reads every weight once and hardly computes anything: it can't be faster than memory is read.
Neither side ends a text early, so both do the same number of steps.
"""

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from pytorch_transformers import GPT2Config, GPT2LMHeadModel

from .environment import has_bfloat16
from .harness import REST, MismatchError, Plan, Result, alternate, check_close, check_equal, left_out, read_rate
from .rivals import NO_DROPOUT_GPT2, gpt2_of_transformers

PROMPT: Final = 32  # tokens
NEW: Final = 128  # tokens
BATCHES: Final = (1, 8)
ROUNDS: Final = 5
#: How many times as fast as transformers we want to be, and the share of the speed that memory allows with one row.
AIMS: Final = {torch.float32: 1.3, torch.bfloat16: 2.0}
SHARE: Final = 0.75
#: Tokens and turns of the long continuation, and tokens at its beginning and at its end that are compared.
LONG: Final = 900
LONG_ROUNDS: Final = 3
WINDOW: Final = 100
#: What scores may differ by in float32, where they are up to about 5.
TOLERANCE: Final = 1e-4
#: In bfloat16 each side is compared with float32: how many times as large as theirs our error may be.
ERROR: Final = 1.25
_AS_FAST: Final = "times as fast"


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure each precision with one prompt and with several, and the long continuation in float32."""
    del folder
    for dtype in AIMS:
        if dtype == torch.bfloat16 and not has_bfloat16():
            left_out("generation in bfloat16", "the processor has no support for it")
            continue
        sides = _Sides(dtype)
        for batch in BATCHES:
            yield from _compare(plan, sides, batch)
        if dtype == torch.float32:
            yield from _long(plan, sides)


class _Sides:
    """Our model, fused, and that of transformers, with the same random weights."""

    def __init__(self, dtype: torch.dtype) -> None:
        torch.manual_seed(0)
        self.dtype = dtype
        self.name = str(dtype).removeprefix("torch.")
        self.ours = GPT2LMHeadModel(GPT2Config(**NO_DROPOUT_GPT2)).to(dtype).fuse_for_inference()
        self._theirs = gpt2_of_transformers(self.ours).eval()
        self._theirs.generation_config.eos_token_id = None

    def generate(self, prompts: Tensor, tokens: int) -> Tensor:
        """Ours: prompts and continuations, [B, T]."""
        return self.ours.generate(prompts, do_sample=False, max_new_tokens=tokens).sequences

    def generate_theirs(self, prompts: Tensor, tokens: int, streamer: Any = None) -> Tensor:
        """The same of transformers."""
        found: Tensor = self._theirs.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            do_sample=False,
            max_new_tokens=tokens,
            pad_token_id=0,  # nothing is padded; without it there is a warning
            streamer=streamer,
        )
        return found

    def moments(self, prompts: Tensor, tokens: int) -> tuple[list[int], list[float]]:
        """Ours: new tokens of one row, and when each of them came."""
        found, moments = [], []
        for new in self.ours.stream(prompts, do_sample=False, max_new_tokens=tokens):
            found.append(new.token)
            moments.append(time.perf_counter())
        return found, moments

    def moments_theirs(self, prompts: Tensor, tokens: int) -> tuple[list[int], list[float]]:
        """The same of transformers."""
        clock = _Clock()
        sequence = self.generate_theirs(prompts, tokens, clock)
        return sequence[0, prompts.shape[1] :].tolist(), clock.moments[1:]  # the prompt came first

    def scores(self, prompts: Tensor, tokens: int) -> tuple[Tensor, Tensor]:
        """Ours: sequences [B, T], and the scores [B, tokens, V] that the new tokens were chosen by."""
        output = self.ours.generate(prompts, do_sample=False, max_new_tokens=tokens, output_scores=True)
        assert output.scores is not None
        return output.sequences, torch.stack(list(output.scores))

    @torch.inference_mode()
    def scores_theirs(self, sequences: Tensor, tokens: int, *, exact: bool = False) -> Tensor:
        """Scores [B, tokens, V] of transformers for the last tokens of given sequences, in one pass.

        Args:
            sequences: [B, T].
            tokens: How many of them are new.
            exact: Whether to compute in float32, with the same weights.
        """
        model = gpt2_of_transformers(self.ours).float().eval() if exact else self._theirs
        logits: Tensor = model(sequences[:, :-1], use_cache=False, logits_to_keep=tokens).logits
        return logits.float()

    @property
    def weight_bytes(self) -> int:
        """What a step reads: all weights but the positions, of which it reads one. The tied table counts once."""
        unread = self.ours.transformer.wpe.weight
        return sum(weight.nbytes for weight in self.ours.parameters() if weight is not unread)

    @property
    def cache_bytes(self) -> int:
        """Of the keys and values of one token in all layers."""
        config = self.ours.config
        return 2 * config.n_layer * config.n_embd * self.ours.transformer.wpe.weight.element_size()


class _Clock:
    """Notes when transformers gives tokens; it is a streamer as its `generate` wants it."""

    def __init__(self) -> None:
        self.moments: list[float] = []

    def put(self, tokens: Tensor) -> None:
        """Take the prompt, and then a token at a time."""
        del tokens
        self.moments.append(time.perf_counter())

    def end(self) -> None:
        """Take notice of the end."""


def _prompts(batch: int) -> Tensor:
    return torch.randint(GPT2Config().vocab_size, (batch, PROMPT), generator=torch.Generator().manual_seed(batch))


def _compare(plan: Plan, sides: _Sides, batch: int) -> Iterator[Result]:
    tokens = plan.size(NEW)
    prompts = _prompts(batch)
    rows = "1 row" if batch == 1 else f"{batch} rows"
    subject = f"GPT-2, {tokens} new tokens, {sides.name}, {rows}"
    check = _check(subject, sides, prompts, tokens)
    times = alternate(
        lambda: sides.generate(prompts, tokens),
        lambda: sides.generate_theirs(prompts, tokens),
        plan.rounds(ROUNDS),
    )
    note = f"{PROMPT} tokens of prompt, {tokens * batch / statistics.median(times.ours):.0f} new tokens a second"
    yield Result(subject, "transformers", _AS_FAST, times.speedups, check, AIMS[sides.dtype], note=note)
    if batch == 1:
        yield _share_of_limit(subject, sides, prompts, tokens, plan.rounds(ROUNDS))


def _share_of_limit(subject: str, sides: _Sides, prompts: Tensor, tokens: int, rounds: int) -> Result:
    """The time in which the weights can be read over the time of a step; reading is measured before and after."""
    size = sides.weight_bytes
    memory = torch.ones(size // 4)
    shares = []
    before = read_rate(memory)
    rates = [before]
    for _ in range(rounds):
        _rest()
        _, moments = sides.moments(prompts, tokens)
        step = (moments[-1] - moments[0]) / (len(moments) - 1)  # the prompt is not counted
        after = read_rate(memory)
        shares.append(size / max(before, after) / step)
        before = after
        rates.append(after)
    note = f"{size / 1e6:.0f} MB of weights a step, one-row products read {statistics.median(rates) / 1e9:.0f} GB/s"
    return Result(subject, "reading the weights alone", "of its speed", tuple(shares), "", SHARE, note=note)


def _long(plan: Plan, sides: _Sides) -> Iterator[Result]:
    """A text that grows: what late tokens cost against early ones, on both sides."""
    tokens = plan.size(LONG)
    window = min(WINDOW, tokens // 4)
    prompts = _prompts(1)
    sides.generate(prompts, 2)
    sides.generate_theirs(prompts, 2)
    speedups, growths, their_growths, check = [], [], [], ""
    for _ in range(1 if plan.quick else LONG_ROUNDS):
        started = [_rest()]
        ours, moments = sides.moments(prompts, tokens)
        started.append(_rest())
        theirs, their_moments = sides.moments_theirs(prompts, tokens)
        check = check_equal("long continuation", ours, theirs)
        speedups.append((their_moments[-1] - started[1]) / (moments[-1] - started[0]))
        growths.append(_growth(moments, window))
        their_growths.append(_growth(their_moments, window))
    subject = f"GPT-2, {tokens} new tokens, {sides.name}, 1 row"
    yield Result(subject, "transformers", _AS_FAST, tuple(speedups), check)
    read, joined = (_expected(sides, tokens, window, passes) for passes in (1, 3))
    # In a short run the growth is less than the noise.
    limit = None if plan.quick else joined
    unit, against = "times as long a token", f"first {window}"
    note = f"by bytes: {read:.2f} if old keys and values are read, {joined:.2f} if they are also copied"
    last = f"{subject}: last {window}"
    yield Result(last, against, unit, tuple(growths), check, limit, at_most=True, note=note)
    yield Result(f"{last}, transformers", against, unit, tuple(their_growths), check, at_most=True, note=note)


def _rest() -> float:
    """Let the other side's threads come to rest; what time it is then."""
    gc.collect()
    time.sleep(REST)
    return time.perf_counter()


def _growth(moments: Sequence[float], window: int) -> float:
    """What one of the last tokens took over what one of the first took; medians."""
    steps = [later - earlier for earlier, later in pairwise(moments)]
    return statistics.median(steps[-window:]) / statistics.median(steps[:window])


def _expected(sides: _Sides, tokens: int, window: int, passes: int) -> float:
    """The same from the bytes that pass: the weights once, and the keys and values so often."""
    early, late = PROMPT + window / 2, PROMPT + tokens - window / 2
    each = passes * sides.cache_bytes
    return (sides.weight_bytes + each * late) / (sides.weight_bytes + each * early)


def _check(subject: str, sides: _Sides, prompts: Tensor, tokens: int) -> str:
    """Compare tokens and scores.

    Raises:
        MismatchError: Tokens differ, other than where the precision leaves open which is the likeliest; or scores do.
    """
    sequences, scores = sides.scores(prompts, tokens)
    ours, theirs = sequences[:, PROMPT:], sides.generate_theirs(prompts, tokens)[:, PROMPT:]
    their_scores = sides.scores_theirs(sequences, tokens)
    if sides.dtype == torch.float32:
        check_equal(subject, ours.tolist(), theirs.tolist())
        variety = len(set(ours.flatten().tolist()))
        close = check_close(subject, scores, their_scores, TOLERANCE)
        return f"all {ours.numel()} tokens equal ({variety} different), scores: {close}"
    exact = sides.scores_theirs(sequences, tokens, exact=True)
    errors = [_Error.of(found, exact) for found in (scores, their_scores)]
    if not errors[0].mean <= ERROR * errors[1].mean:
        raise MismatchError(f"{subject}: scores are off by {errors[0].mean:.1e}, theirs by {errors[1].mean:.1e}")
    both = f"scores off float32 by {errors[0].mean:.1e}, theirs by {errors[1].mean:.1e} (root mean square)"
    return f"{_ties(subject, ours, theirs, exact, sum(error.most for error in errors))}; {both}"


def _ties(subject: str, ours: Tensor, theirs: Tensor, exact: Tensor, limit: float) -> str:
    """Say how many tokens are equal until each row's first difference, and how close the two candidates are there.

    After it the rows are different texts, and there is nothing to compare.

    Args:
        subject: What is measured.
        ours: Tokens [B, T].
        theirs: Tokens [B, T].
        exact: Scores [B, T, V] in float32 after our tokens.
        limit: What the errors of both sides can bridge.

    Raises:
        MismatchError: Float32 sees one of the candidates further ahead than that.
    """
    gaps, equal = [], 0
    for our, their, scores in zip(ours, theirs, exact, strict=True):
        places = (our != their).nonzero().flatten().tolist()
        equal += places[0] if places else len(our)
        if places:
            first = scores[places[0]]
            gaps.append(abs(float(first[our[places[0]]] - first[their[places[0]]])))
    if not gaps:
        return f"all {ours.numel()} tokens equal"
    if not max(gaps) <= limit:
        raise MismatchError(f"{subject}: other tokens where float32 sees a gap of {max(gaps):.1e}; errors: {limit:.1e}")
    part = f"{len(gaps)} of {len(ours)} rows part"
    return f"{equal} of {ours.numel()} tokens come before {part}, at scores that float32 has {max(gaps):.1e} apart"


@dataclass(frozen=True)
class _Error:
    """How far scores are off: the root of the mean square, and the most."""

    mean: float
    most: float

    @classmethod
    def of(cls, scores: Tensor, exact: Tensor) -> "_Error":
        difference = scores - exact
        return cls(difference.square().mean().sqrt().item(), difference.abs().max().item())
