"""What data sets of multiple choice share: reading the right choice, and how often it is the best one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .metrics import accuracy
from .tables import Table, TableRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def choice_in(table: Table, row: TableRow, column: str, first: int, count: int) -> int | None:
    """Number of the right choice, from 0; None where the table has no such column, as files for a test.

    Args:
        table: Where the row is from.
        row: The row.
        column: Where the number is.
        first: What the file calls the first choice.
        count: How many choices there are.

    Raises:
        ValueError: The number is none of them.
    """
    if column not in table.columns:
        return None
    allowed = [str(first + number) for number in range(count)]
    value = table.value(row, column).strip()
    if value not in allowed:
        raise table.error(row.line, f"{column} is {value!r:.60}; expected one of {', '.join(allowed)}")
    return allowed.index(value)


def best_choices(scores: "Sequence[NDArray[np.float32]]") -> list[int]:
    """Number of the best choice of each example, the first of equal ones, from its scores [choices]."""
    return [int(row.argmax()) for row in scores]


def choice_metrics(scores: "Sequence[NDArray[np.float32]]", labels: Sequence[int]) -> dict[str, float]:
    """How often the best choice is the right one.

    Args:
        scores: Of each example, [choices].
        labels: The number of the right choice of each example.

    Returns:
        `accuracy`, from 0 to 1.

    Raises:
        ValueError: There are no examples, or not as many scores as labels.
    """
    return {"accuracy": accuracy(best_choices(scores), labels)}
