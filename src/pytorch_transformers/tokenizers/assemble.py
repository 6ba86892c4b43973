"""From the tokens of texts to the rows of an encoding: special tokens, truncation, windows."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from .engine import Piece
from .options import Call
from .padding import Rows
from .special import Layout
from .truncation import Window, cut, windows

#: Fields that tell where tokens came from; they go into `Origins`, not to the model.
ORIGIN_FIELDS: Final = ("tokens", "words", "sequences")


class Recipe(NamedTuple):
    """How to make rows: the special tokens and the options of the call."""

    layout: Layout
    call: Call

    def room(self, *, pair: bool) -> int | None:
        """Computes how many tokens of text a row has room for; None when nothing is to be cut.

        Args:
            pair: whether there are two texts.

        Raises:
            ValueError: not even the special tokens have room.
        """
        if not self.call.truncates or self.call.max_length is None:
            return None
        special = self.layout.special_count(pair=pair)
        if self.call.max_length < special:
            raise ValueError(
                f"max_length={self.call.max_length} has no room for the {special} special tokens; use a larger one or "
                "add_special_tokens=False"
            )
        return self.call.max_length - special


def id_rows(firsts: Rows, seconds: Rows | None, recipe: Recipe) -> dict[str, Rows]:
    """Makes the rows of ids and segments, one for each text or pair. The short way, when nobody asks for more.

    Args:
        firsts: ids of the first texts.
        seconds: ids of the second texts, or None.
        recipe: how to make the rows.

    Raises:
        ValueError: the texts cannot be cut as asked.
    """
    layout, call = recipe
    room = recipe.room(pair=seconds is not None)
    if seconds is None:
        if room is not None:
            firsts = [ids if len(ids) <= room else ids[cut(len(ids), None, room, call).first] for ids in firsts]
        before, after = layout.before, layout.after
        rows = [[*before, *ids, *after] for ids in firsts] if before or after else firsts
        return {"input_ids": rows, "token_type_ids": [[0] * len(row) for row in rows]}
    joined: Rows = []
    segments: Rows = []
    for first, second in zip(firsts, seconds, strict=True):
        window = cut(len(first), len(second), room, call)
        first, second = first[window.first], second[window.second]
        joined.append(layout.join(first, second))
        segments.append(layout.segments(len(first), len(second)))
    return {"input_ids": joined, "token_type_ids": segments}


def full_rows(
    firsts: Sequence[list[Piece]],
    seconds: Sequence[list[Piece]] | None,
    recipe: Recipe,
    token_of: Callable[[int], str],
) -> tuple[dict[str, Rows], list[int]]:
    """Makes the rows of every field, with windows if asked.

    Args:
        firsts: tokens of the first texts.
        seconds: tokens of the second texts, or None.
        recipe: how to make the rows.
        token_of: id -> token, for the special tokens.

    Returns:
        The rows of each field, and for each row the number of its text.

    Raises:
        ValueError: the texts cannot be cut as asked.
    """
    room = recipe.room(pair=seconds is not None)
    names = ("input_ids", "token_type_ids", "special_tokens_mask", "offset_mapping", *ORIGIN_FIELDS)
    columns: dict[str, Rows] = {name: [] for name in names}
    samples: list[int] = []
    for number, first in enumerate(firsts):
        second = None if seconds is None else seconds[number]
        for window in _windows(len(first), None if second is None else len(second), room, recipe):
            shown = None if second is None else second[window.second]
            for name, row in _row(first[window.first], shown, recipe.layout, token_of).items():
                columns[name].append(row)
            samples.append(number)
    return columns, samples


def _windows(first: int, second: int | None, room: int | None, recipe: Recipe) -> list[Window]:
    if recipe.call.return_overflowing_tokens:
        return windows(first, second, room, recipe.call)
    return [cut(first, second, room, recipe.call)]


def _row(
    first: list[Piece], second: list[Piece] | None, layout: Layout, token_of: Callable[[int], str]
) -> dict[str, list[object]]:
    """Makes the row of each field for one text or pair."""
    length = None if second is None else len(second)
    ids = layout.join([piece.id for piece in first], None if second is None else [piece.id for piece in second])
    special = layout.special_mask(len(first), length)
    pieces = iter([(0, piece) for piece in first] + [(1, piece) for piece in second or ()])
    # From here on special tokens are None: they come from no text.
    origins = [None if mask else next(pieces) for mask in special]
    return {
        "input_ids": list(ids),
        "token_type_ids": list(layout.segments(len(first), length)),
        "special_tokens_mask": list(special),
        "offset_mapping": [None if item is None else (item[1].start, item[1].end) for item in origins],
        "tokens": [
            token_of(number) if item is None else item[1].token for number, item in zip(ids, origins, strict=True)
        ],
        "words": [None if item is None else item[1].word for item in origins],
        "sequences": [None if item is None else item[0] for item in origins],
    }
