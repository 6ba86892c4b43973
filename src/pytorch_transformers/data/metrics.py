"""Scores of predictions: fractions from 0 to 1, correlations from -1 to 1. Needs no torch to be imported.

They are computed with NumPy in float64. torchmetrics would take seconds to be imported, computes ranks in float32, and
gives nan where one side is constant; no score here is ever nan, for a record with nan in it is no JSON and cannot be
compared. A score that is not defined is 0.0: F1 where no positive is predicted and none is there, a correlation where
one side is constant or there is one row only. (scikit-learn gives 0.0 for F1 and Matthews too; SciPy gives nan.)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

#: One number a row: a list, or an array of shape [rows].
Numbers: TypeAlias = Sequence[float] | npt.NDArray[Any]
_Array: TypeAlias = npt.NDArray[np.float64]


def accuracy(predictions: Numbers, references: Numbers) -> float:
    """Share of rows whose prediction is right.

    Raises:
        ValueError: The two are not lists of numbers of one length, or are empty.
    """
    predicted, wanted = _checked(predictions, references)
    return float((predicted == wanted).mean())


def f1(predictions: Numbers, references: Numbers) -> float:
    """F1 of the class 1 among 0 and 1: the harmonic mean of precision and recall; 0.0 where there is no 1 at all.

    Raises:
        ValueError: As for `accuracy`; a number is neither 0 nor 1.
    """
    predicted, wanted = _binary("f1", predictions, references)
    ones = predicted.sum() + wanted.sum()
    return float(2 * (predicted * wanted).sum() / ones) if ones else 0.0


def matthews(predictions: Numbers, references: Numbers) -> float:
    """Matthews correlation coefficient of 0 and 1; 0.0 where either side is constant.

    For two classes it equals Pearson's coefficient.

    Raises:
        ValueError: As for `f1`.
    """
    return _correlation(*_binary("matthews", predictions, references))


def pearson(predictions: Numbers, references: Numbers) -> float:
    """Pearson's correlation coefficient; 0.0 where either side is constant.

    Raises:
        ValueError: As for `accuracy`.
    """
    return _correlation(*_checked(predictions, references))


def spearman(predictions: Numbers, references: Numbers) -> float:
    """Spearman's rank correlation; equal numbers share the mean of their ranks; 0.0 where either side is constant.

    Raises:
        ValueError: As for `accuracy`.
    """
    predicted, wanted = _checked(predictions, references)
    return _correlation(_ranks(predicted), _ranks(wanted))


def accuracy_and_f1(predictions: Numbers, references: Numbers) -> float:
    """The mean of `accuracy` and `f1`, GLUE's score of MRPC and QQP.

    Raises:
        ValueError: As for `f1`.
    """
    return (accuracy(predictions, references) + f1(predictions, references)) / 2


def pearson_and_spearman(predictions: Numbers, references: Numbers) -> float:
    """The mean of `pearson` and `spearman`, GLUE's score of STS-B.

    Raises:
        ValueError: As for `accuracy`.
    """
    return (pearson(predictions, references) + spearman(predictions, references)) / 2


#: Name of a score -> function of predictions and references.
METRICS: Final[Mapping[str, Callable[[Numbers, Numbers], float]]] = {
    metric.__name__: metric
    for metric in (accuracy, f1, accuracy_and_f1, matthews, pearson, spearman, pearson_and_spearman)
}


def compute_metrics(names: Iterable[str], predictions: Numbers, references: Numbers) -> dict[str, float]:
    """Several scores by name.

    Args:
        names: Names in `METRICS`.
        predictions: What was predicted, one number a row.
        references: What is right, likewise.

    Raises:
        ValueError: There is no score of that name, or it does not apply to the numbers.
    """
    names = list(names)
    for name in names:
        if name not in METRICS:
            raise ValueError(f"no metric {name!r}; there are {', '.join(METRICS)}")
    return {name: METRICS[name](predictions, references) for name in names}


def _checked(predictions: Numbers, references: Numbers) -> tuple[_Array, _Array]:
    predicted, wanted = (np.asarray(numbers, np.float64) for numbers in (predictions, references))
    for name, numbers in (("predictions", predicted), ("references", wanted)):
        if numbers.ndim != 1 or not numbers.size:
            raise ValueError(f"{name} must be one number for each row, at least one; the shape is {numbers.shape}")
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if wrong.size:
            raise ValueError(f"{name}[{wrong[0]}] is {numbers[wrong[0]]}; every number must be finite")
    if len(predicted) != len(wanted):
        raise ValueError(f"{len(predicted)} predictions for {len(wanted)} references; there must be one for each")
    return predicted, wanted


def _binary(name: str, predictions: Numbers, references: Numbers) -> tuple[_Array, _Array]:
    predicted, wanted = _checked(predictions, references)
    for side, numbers in (("predictions", predicted), ("references", wanted)):
        wrong = np.flatnonzero((numbers != 0) & (numbers != 1))
        if wrong.size:
            found = f"{side}[{wrong[0]}] is {numbers[wrong[0]]:g}"
            raise ValueError(f"{name} is for the two classes 0 and 1, and {found}; use accuracy for more classes")
    return predicted, wanted


def _correlation(first: _Array, second: _Array) -> float:
    # Asked of the numbers themselves: the rounded mean of a constant may differ from it.
    if first.min() == first.max() or second.min() == second.max():
        return 0.0
    # Scaled, so that no square is too large or too small for float64; the coefficient stays the same.
    scaled = (numbers / np.abs(numbers).max() for numbers in (first, second))
    return float(np.corrcoef(*scaled)[0, 1])


def _ranks(numbers: _Array) -> _Array:
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]
