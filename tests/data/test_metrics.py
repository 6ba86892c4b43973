"""Scores equal those of scikit-learn and SciPy, and are numbers where those are not."""

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as reference

from pytorch_transformers.data.metrics import (
    METRICS,
    Numbers,
    accuracy,
    accuracy_and_f1,
    compute_metrics,
    f1,
    matthews,
    pearson,
    pearson_and_spearman,
    spearman,
)

Pairs = list[tuple[float, float]]
BITS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=30)
CLASSES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)
#: Few values, so that there are many ties.
TIED = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 2.5, 5.0]), st.sampled_from([-1.0, 0.3, 4.2])), min_size=2)
REAL = st.floats(-10, 10).map(lambda number: round(number, 3))
SCORES = st.lists(st.tuples(REAL, REAL), min_size=2, max_size=30)


def sides(pairs: Pairs) -> tuple[list[float], list[float]]:
    return [first for first, _ in pairs], [second for _, second in pairs]


@given(pairs=CLASSES)
def test_accuracy(pairs: Pairs) -> None:
    predictions, references = sides(pairs)
    assert accuracy(predictions, references) == pytest.approx(reference.accuracy_score(references, predictions))


@given(pairs=BITS)
def test_f1_and_matthews(pairs: Pairs) -> None:
    """Constant sides included: scikit-learn's values for these are 0 too."""
    predictions, references = sides(pairs)
    wanted = reference.f1_score(references, predictions, zero_division=0.0)
    assert f1(predictions, references) == pytest.approx(wanted, abs=1e-12)
    assert accuracy_and_f1(predictions, references) == pytest.approx(
        (wanted + reference.accuracy_score(references, predictions)) / 2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a single class is warned of
        correlation = reference.matthews_corrcoef(references, predictions)
    assert matthews(predictions, references) == pytest.approx(correlation, abs=1e-12)


@given(pairs=st.one_of(SCORES, TIED))
def test_correlations(pairs: Pairs) -> None:
    predictions, references = sides(pairs)
    assume(len(set(predictions)) > 1 and len(set(references)) > 1)
    wanted = stats.pearsonr(predictions, references).statistic, stats.spearmanr(predictions, references).statistic
    assert pearson(predictions, references) == pytest.approx(wanted[0], abs=1e-9)
    assert spearman(predictions, references) == pytest.approx(wanted[1], abs=1e-12)
    assert pearson_and_spearman(predictions, references) == pytest.approx(sum(wanted) / 2, abs=1e-9)


def test_known_values() -> None:
    predictions, references = [1, 1, 0, 0, 1], [1, 0, 0, 1, 1]  # two true, one false of each kind, one true negative
    assert accuracy(predictions, references) == pytest.approx(3 / 5)
    assert f1(predictions, references) == pytest.approx(2 / 3)
    assert matthews(predictions, references) == pytest.approx((2 * 1 - 1 * 1) / math.sqrt(3 * 3 * 2 * 2))
    assert spearman([1, 2, 2, 4], [1, 2, 3, 4]) == pytest.approx(4.5 / math.sqrt(4.5 * 5))  # ranks 1, 2.5, 2.5, 4


def test_f1_is_that_of_the_class_one() -> None:
    assert f1([1, 0, 0, 0], [0, 0, 0, 0]) == 0.0
    assert f1([0, 1, 1, 1], [1, 1, 1, 1]) == pytest.approx(6 / 7)


@pytest.mark.parametrize("metric", [matthews, pearson, spearman])
@pytest.mark.parametrize(
    ("predictions", "references"),
    [([1, 1, 1], [0, 1, 1]), ([0, 1, 1], [0, 0, 0]), ([1, 1], [1, 1]), ([1], [1]), ([0], [1])],
)
def test_correlation_with_a_constant_is_zero(
    metric: Callable[[Numbers, Numbers], float], predictions: list[int], references: list[int]
) -> None:
    assert metric(predictions, references) == 0.0


def test_constant_whose_mean_is_rounded() -> None:
    """The mean of these differs from them, so that something like a spread is left over."""
    constant = [0.1] * 7
    assert float(np.mean(constant)) != 0.1
    assert pearson(constant, [1, 2, 3, 4, 5, 6, 7]) == 0.0
    assert spearman(constant, [1, 2, 3, 4, 5, 6, 7]) == 0.0


@given(
    first=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=5, max_size=5),
    second=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=5, max_size=5),
)
def test_correlations_are_always_numbers(first: list[float], second: list[float]) -> None:
    for metric in (pearson, spearman):
        assert -1 - 1e-12 <= metric(first, second) <= 1 + 1e-12


@given(pairs=SCORES, factor=st.sampled_from([1e-30, 0.5, 1e30]))
def test_pearson_does_not_depend_on_the_scale(pairs: Pairs, factor: float) -> None:
    predictions, references = sides(pairs)
    scaled = [factor * number for number in predictions]
    assert pearson(scaled, references) == pytest.approx(pearson(predictions, references), abs=1e-9)


def test_arrays_are_taken_as_well() -> None:
    predictions = np.array([0.5, 1.5, 1.0], np.float32)
    assert pearson(predictions, [1.0, 3.0, 2.0]) == pytest.approx(1.0)
    assert accuracy(np.array([1, 0]), np.array([1, 1])) == 0.5


def test_several_by_name() -> None:
    found = compute_metrics(["f1", "accuracy"], [1, 0], [1, 1])
    assert list(found.items()) == [("f1", pytest.approx(2 / 3)), ("accuracy", 0.5)]
    assert all(type(value) is float for value in found.values())
    with pytest.raises(ValueError, match="no metric 'F2'; there are accuracy, f1"):
        compute_metrics(["accuracy", "F2"], [1], [1])


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize(
    ("predictions", "references", "said"),
    [
        ([], [], r"predictions must be one number for each row, at least one; the shape is \(0,\)"),
        ([[1.0], [0.0]], [1.0, 0.0], r"predictions must be one number .* \(2, 1\)"),
        ([1.0, 0.0], [1.0], "2 predictions for 1 references"),
        ([1.0, math.nan], [1.0, 0.0], r"predictions\[1\] is nan"),
        ([1.0, 0.0], [math.inf, 0.0], r"references\[0\] is inf"),
    ],
)
def test_what_cannot_be_scored_is_named(
    metric: Callable[[Numbers, Numbers], float], predictions: Numbers, references: Numbers, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        metric(predictions, references)


@pytest.mark.parametrize("metric", [f1, matthews, accuracy_and_f1])
def test_scores_of_two_classes_refuse_more(metric: Callable[[Numbers, Numbers], float]) -> None:
    with pytest.raises(ValueError, match=r"two classes 0 and 1, and predictions\[2\] is 2"):
        metric([0, 1, 2], [0, 1, 1])
    with pytest.raises(ValueError, match=r"references\[0\] is -1"):
        metric([0, 1, 1], [-1, 1, 1])
