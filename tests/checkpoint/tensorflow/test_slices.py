"""The keys of parts, against those that TensorFlow 2.21 wrote (tf.raw_ops.SaveV2); and whether parts fill a whole."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers.checkpoint.tensorflow.messages import Extent
from pytorch_transformers.checkpoint.tensorflow.slices import Box, check_tiling, slice_key

#: Name, extents, key in hexadecimal digits.
RECORDED: list[tuple[str, list[Extent], str]] = [
    ("w", [(0, 1), (0, None)], "00 77 00 01 01 02 80 81 80 7f"),
    ("w", [(1, 63), (0, None)], "00 77 00 01 01 02 81 bf 80 7f"),
    ("w", [(64, 8192), (0, None)], "00 77 00 01 01 02 c0 40 e0 20 00 80 7f"),
    ("w", [(8256, 8128), (0, None)], "00 77 00 01 01 02 e0 20 40 df c0 80 7f"),
    ("é/w", [(1, 63), (0, None)], "00 c3 a9 2f 77 00 01 01 02 81 bf 80 7f"),
    ("a\0b", [(2, 2)], "00 61 00 ff 62 00 01 01 01 82 82"),
]


@pytest.mark.parametrize(("name", "extents", "key"), RECORDED)
def test_keys_are_those_of_tensorflow(name: str, extents: list[Extent], key: str) -> None:
    assert slice_key(name.encode(), extents) == bytes.fromhex(key)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=20, unique=True))
def test_keys_sort_as_their_numbers_do(numbers: list[int]) -> None:
    keys = [slice_key(b"w", [(number, 1)]) for number in sorted(numbers)]
    assert keys == sorted(set(keys))


GRID = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(st.lists(GRID, max_size=3), st.data())
def test_a_grid_fills_and_anything_less_or_more_does_not(axes: list[list[int]], draw: st.DataObject) -> None:
    """Each axis cut into lengths; all combinations are the parts, in any order."""
    ends = [list(itertools.accumulate(lengths)) for lengths in axes]
    cut = [
        [(end - length, length) for end, length in zip(stops, lengths, strict=True)]
        for stops, lengths in zip(ends, axes, strict=True)
    ]
    boxes: list[Box] = draw.draw(st.permutations(list(itertools.product(*cut))))
    shape = tuple(stops[-1] for stops in ends)
    check_tiling(boxes, shape)
    with pytest.raises(ValueError, match=r"its slices hold \d+ of"):
        check_tiling(boxes[1:], shape)
    with pytest.raises(ValueError, match=r"the slices \[.*\] and \[.*\] overlap"):
        check_tiling([*boxes, boxes[0]], shape)
