"""How much of one or two sequences is kept, and the windows over what does not fit."""

from collections.abc import Iterator
from typing import NamedTuple

from .options import Call, Side


class Window(NamedTuple):
    """Which tokens of the first and of the second sequence go into one row."""

    first: slice
    second: slice


def lengths_kept(first: int, second: int | None, room: int, strategy: str) -> tuple[int, int]:
    """Computes how many tokens of each sequence are kept.

    "longest_first" takes one token at a time from the longer sequence, from the second when both are equally long
    (google-research/bert, create_pretraining_data.py, `truncate_seq_pair`, and run_classifier.py).

    Args:
        first: tokens of the first sequence.
        second: tokens of the second sequence, None when there is none.
        room: how many tokens may be kept together.
        strategy: "longest_first", "only_first" or "only_second".

    Raises:
        ValueError: the sequence that may be cut is too short for that, or there is none.
    """
    other = second or 0
    surplus = first + other - room
    if surplus <= 0:
        return first, other
    if strategy == "only_second":
        if second is None:
            raise ValueError("truncation='only_second' needs a second text; there is one text only")
        return first, _rest(second, surplus, "second", room)
    if strategy == "only_first" or second is None:
        return _rest(first, surplus, "first", room), other
    level = min(surplus, abs(first - other))
    first, other = (first - level, other) if first > other else (first, other - level)
    both = surplus - level
    return first - both // 2, other - (both + 1) // 2


def _rest(length: int, surplus: int, name: str, room: int) -> int:
    if surplus > length:
        raise ValueError(
            f"truncation='only_{name}' cannot make the pair fit: {surplus} tokens are too many for the {room} there is "
            f"room for, and the {name} text has {length}; use 'longest_first' or a larger max_length"
        )
    return length - surplus


def kept(length: int, total: int, side: Side) -> slice:
    """Gives the slice that keeps some tokens.

    Args:
        length: how many to keep.
        total: how many there are.
        side: which side is cut.
    """
    return slice(0, length) if side == "right" else slice(total - length, total)


def cut(first: int, second: int | None, room: int | None, call: Call) -> Window:
    """Gives the one window that is kept when the rest is thrown away.

    Args:
        first: tokens of the first sequence.
        second: tokens of the second sequence, None when there is none.
        room: how many tokens may be kept together; None keeps all.
        call: the options of the call; truncation and its side are read.

    Raises:
        ValueError: see `lengths_kept`.
    """
    if room is None:
        return Window(slice(0, first), slice(0, second or 0))
    keep_first, keep_second = lengths_kept(first, second, room, call.truncation)
    side = call.truncation_side
    return Window(kept(keep_first, first, side), kept(keep_second, second or 0, side))


def windows(first: int, second: int | None, room: int | None, call: Call) -> list[Window]:
    """Gives windows that hold every token at least once, each overlapping the one before by `call.stride` tokens.

    Args:
        first: tokens of the first sequence.
        second: tokens of the second sequence, None when there is none.
        room: how many tokens a window can hold, of both sequences together; None when there is no limit.
        call: the options of the call; truncation, its side and stride are read. "right" begins at the start of the
            text, "left" at its end, going backwards.

    Raises:
        ValueError: the strategy is "longest_first" with a pair, or the stride leaves no room to move on.
    """
    if room is None or first + (second or 0) <= room:
        return [cut(first, second, None, call)]
    if second is not None and call.truncation == "longest_first":
        raise ValueError(
            "return_overflowing_tokens over a pair needs truncation='only_first' or 'only_second': with "
            "'longest_first' there is no one text to move a window over"
        )
    keep_first, keep_second = lengths_kept(first, second, room, call.truncation)
    if second is not None and call.truncation == "only_second":
        return [Window(slice(0, first), part) for part in _steps(second, keep_second, call)]
    return [Window(part, slice(0, second or 0)) for part in _steps(first, keep_first, call)]


def _steps(total: int, size: int, call: Call) -> Iterator[slice]:
    stride, side = call.stride, call.truncation_side
    if stride >= size:
        raise ValueError(f"stride={stride} must be less than the {size} tokens of text a window has room for")
    start = 0
    while True:
        end = min(start + size, total)
        yield slice(start, end) if side == "right" else slice(total - end, total - start)
        if end == total:
            return
        start += size - stride
