"""The rules on scores: OpenAI's recorded filters, the definition of each, and draws that have the right frequencies."""

from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pytorch_transformers.generation import scores as rules
from pytorch_transformers.generation.engine import random_number
from shared_data import shared

DROPPED = -1e10  # what the original writes where we write -inf


@pytest.fixture(scope="module")
def golden() -> dict[str, Tensor]:
    with np.load(shared("goldens", "gpt2", "reference.npz")) as arrays:
        return {name: torch.from_numpy(arrays[name]) for name in arrays if name.startswith("filter")}


def as_original(scores: Tensor) -> Tensor:
    return scores.masked_fill(scores == -torch.inf, DROPPED)


@pytest.mark.parametrize("k", [1, 5, 101])
def test_top_k_of_the_original(golden: dict[str, Tensor], k: int) -> None:
    assert torch.equal(as_original(rules.keep_top_k(golden["filter_logits"], k)), golden[f"filter/top_k_{k}"])


@pytest.mark.parametrize("p", [0.0, 0.3, 0.9])
def test_top_p_of_the_original(golden: dict[str, Tensor], p: float) -> None:
    """The one that crosses p is dropped; the best stays."""
    found = rules.keep_top_p(golden["filter_logits"], p, crossing=False)
    assert torch.equal(as_original(found), golden[f"filter/top_p_{p}"])


@pytest.mark.parametrize("p", [0.0, 0.3, 0.9])
def test_the_fields_top_p_keeps_one_more(golden: dict[str, Tensor], p: float) -> None:
    logits = golden["filter_logits"]
    original = (golden[f"filter/top_p_{p}"] > DROPPED).sum(-1)
    found = (rules.keep_top_p(logits, p) > -torch.inf).sum(-1)
    # The original's least is one, whether that crosses or not; otherwise the crossing one comes on top.
    crosses_at_once = logits.softmax(-1).amax(-1) > p
    assert torch.equal(found, torch.where(crosses_at_once, original, original + 1))


def test_whole_probability_drops_nothing(golden: dict[str, Tensor]) -> None:
    for crossing in (True, False):
        assert torch.equal(rules.keep_top_p(golden["filter_logits"], 1.0, crossing=crossing), golden["filter_logits"])


@given(
    st.lists(st.integers(-64, 64).map(lambda eighths: eighths / 8), min_size=1, max_size=30),
    st.floats(0, 0.999),
    st.booleans(),
)
def test_top_p_by_its_definition(values: list[float], p: float, crossing: bool) -> None:
    """Going through the tokens from the likeliest, with a running sum in Python."""
    scores = torch.tensor([values])
    shares = scores.double().softmax(-1)[0].tolist()
    order = sorted(range(len(values)), key=lambda i: -shares[i])
    total, least, close = 0.0, shares[order[0]], False
    for place, token in enumerate(order):
        before, total = total, total + shares[token]
        close |= abs(before - p) < 1e-5 or abs(total - p) < 1e-5
        if place and (before < p if crossing else total <= p):
            least = shares[token]
    kept = (rules.keep_top_p(scores, p, crossing=crossing) > -torch.inf)[0].tolist()
    if not close:  # where rounding decides, either is right
        assert kept == [share >= least * (1 - 1e-6) for share in shares]


@pytest.mark.parametrize("p", [0.05, 0.5, 0.999])
@pytest.mark.parametrize("crossing", [True, False])
def test_top_p_of_a_large_vocabulary(p: float, crossing: bool) -> None:
    """The same row by row, from flat to peaked."""
    torch.manual_seed(0)
    scores = torch.randn(3, 5000) * torch.tensor([[0.1], [2.0], [6.0]])
    together = rules.keep_top_p(scores, p, crossing=crossing)
    for row in range(3):
        shares = scores[row].softmax(-1)
        highest, order = shares.sort(descending=True)
        before = highest.cumsum(0) - highest
        count = max(1, int((before < p if crossing else before + highest <= p).sum()))
        assert set((together[row] > -torch.inf).nonzero()[:, 0].tolist()) == set(order[:count].tolist())
        assert torch.equal(rules.keep_top_p(scores[row : row + 1], p, crossing=crossing)[0], together[row])


def test_top_k_keeps_what_is_equal() -> None:
    kept = rules.keep_top_k(torch.tensor([[1.0, 3.0, 2.0, 2.0, 0.0]]), 2)
    assert kept.tolist() == [[-torch.inf, 3.0, 2.0, 2.0, -torch.inf]]
    scores = torch.randn(2, 4)
    assert torch.equal(rules.keep_top_k(scores, 9), scores)


def test_fault_e3_repetition_penalty() -> None:
    """HF#666: divides what is positive, multiplies what is negative."""
    seen = torch.tensor([[True, True, False]])
    assert rules.penalise_repetition(torch.tensor([[2.0, -2.0, 1.0]]), seen, 2.0).tolist() == [[1.0, -4.0, 1.0]]


def test_ban_takes_out_each_rows_own() -> None:
    scores = torch.zeros(3, 4)
    found = rules.ban(scores, [{1, 3}, (), [0]])
    assert (found == -torch.inf).nonzero().tolist() == [[0, 1], [0, 3], [2, 0]]
    assert torch.equal(scores, torch.zeros(3, 4))
    assert rules.ban(scores, [(), (), ()]) is scores


def test_keep_first() -> None:
    assert rules.keep_first(torch.ones(2, 3), 2).tolist() == [[1.0, 1.0, -torch.inf]] * 2
    assert rules.keep_first(torch.ones(2, 3), 5).tolist() == [[1.0] * 3] * 2


def test_likeliest_is_the_first_of_equal_ones() -> None:
    assert rules.likeliest(torch.tensor([[1.0, 5.0, 5.0], [0.0, -1.0, -2.0]])).tolist() == [1, 0]


def test_draws_have_the_probabilities_of_the_softmax() -> None:
    """Chi-square over 20,000 draws of 12 tokens; 31.3 is exceeded by chance once in 1,000 seeds."""
    torch.manual_seed(0)
    scores = torch.randn(1, 12) * 1.5
    scores[0, 4] = -torch.inf
    draws, random = 20_000, Random(0)
    uniform = torch.tensor([random_number(random) for _ in range(draws)], dtype=torch.float64)
    counts = rules.draw(scores.expand(draws, -1), uniform).bincount(minlength=12).double()
    expected = scores[0].double().softmax(-1) * draws
    assert counts[4] == 0
    possible = expected > 0
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    assert statistic < 29.6  # 10 degrees of freedom, 0.1 %


def test_draw_never_takes_what_is_impossible() -> None:
    """At both ends of the interval, and where the first and last tokens have no probability."""
    scores = torch.tensor([[-torch.inf, 0.0, -torch.inf, 1.0, -torch.inf]])
    for uniform, token in ((0.0, 1), (1 - 2.0**-52, 3)):
        assert rules.draw(scores, torch.tensor([uniform], dtype=torch.float64)).tolist() == [token]


def test_random_numbers_stay_below_one() -> None:
    random = Random(1)
    numbers = [random_number(random) for _ in range(1000)]
    assert min(numbers) >= 0
    assert max(numbers) < 1
    assert all(number * 2.0**52 == int(number * 2.0**52) for number in numbers)


@pytest.mark.parametrize("temperature", [0.5, 2.0, 1e-20, 1e-38, 1e-40, 5e-324])
def test_no_temperature_makes_scores_infinite(temperature: float) -> None:
    scores = torch.tensor([[1.0, 3.0, -2.0, -torch.inf], [-5.0, -7.0, -5.5, -6.0]])
    found = rules.divide(scores, scores.amax(-1, keepdim=True), temperature)
    assert found.amax(-1).isfinite().all()
    assert found.argmax(-1).tolist() == [1, 0]
    if temperature > 1e-10:
        torch.testing.assert_close(found, scores / temperature)
