"""Random numbers by place: each is a function of a key, a row and a column, whatever else is computed with it.

So the numbers of an instance do not depend on the batch or the process that asks for them, nor on the release of a
library. The function is the output step of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
Generators, 2014) on counters.
"""

import random
from typing import Final

import numpy as np
import numpy.typing as npt

_STEP: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    values = values ^ (values >> np.uint64(30))
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


def key_of(*parts: int) -> int:
    """One key of 64 bits for several numbers from 0 on, in this order.

    Args:
        *parts: Numbers such as a seed and an epoch.
    """
    key = np.zeros(1, np.uint64)
    for part in parts:
        key = _mix(key + np.array([(part + 1) * _STEP & _MASK], np.uint64))
    return int(key[0])


def uniform(key: int, rows: npt.NDArray[np.uint64], columns: int) -> npt.NDArray[np.float64]:
    """Numbers from 0 to 1, 1 excluded, [N, columns].

    Args:
        key: See `key_of`.
        rows: [N] numbers of the rows.
        columns: How many numbers each row has.
    """
    return uniform_at(key, rows[:, None], np.arange(columns, dtype=np.uint64))


def uniform_at(key: int, rows: npt.NDArray[np.uint64], columns: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """The same numbers at some places alone.

    Args:
        key: See `key_of`.
        rows: The row of each place.
        columns: The column of each place; the shapes of both go together.
    """
    starts = _mix((rows + np.uint64(1)) * np.uint64(_STEP) ^ np.uint64(key))
    return (_mix(starts + (columns + np.uint64(1)) * np.uint64(_STEP)) >> np.uint64(11)) * 2.0**-53


def generator_of(*parts: int) -> random.Random:
    """A generator of its own for several numbers. Of it `random` and `getrandbits` are used, which never change.

    Args:
        *parts: See `key_of`.
    """
    return random.Random(key_of(*parts))
