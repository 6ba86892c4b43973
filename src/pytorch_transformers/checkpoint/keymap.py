"""The engine behind every family's `convert.py`: names and values of the original program <-> ours.

A family says in rows how its original named each weight and how it stored it. This module pairs a whole checkpoint
with a whole model by those rows, in either direction, on names and shapes alone; nothing is read before everything
fits. A name matches as a whole or not at all: an entry the rows don't know is an error, never a guess
(in published converters an unknown scope was skipped, and `ema/bert/pooler/dense/bias` wrote over the real one).

Where one side keeps in one array what the other keeps in several, each row is about a piece: a range along the first
axis of either. All pieces of an array are needed, each once.
"""

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import torch
from torch import Tensor

from .storage import TENSORFLOW, Storage

Shape = tuple[int, ...]
#: A piece of an array: first row, and the one after the last, along the first axis.
Rows = tuple[int, int]
Operation = Literal["as_is", "transpose", "drop_first", "add_first"]

#: What is done to the values, on the way to our side or back.
_OPERATIONS: Final[Mapping[Operation, Callable[[Tensor], Tensor]]] = {
    "as_is": lambda tensor: tensor,
    "transpose": lambda tensor: tensor.mT.contiguous(),
    "drop_first": lambda tensor: tensor.squeeze(0),  # a first axis of size 1
    "add_first": lambda tensor: tensor.unsqueeze(0),
}
#: What is done to the shape then; None where the operation can't be.
_SHAPES: Final[Mapping[Operation, Callable[[Shape], Shape | None]]] = {
    "as_is": lambda shape: shape,
    "transpose": lambda shape: shape[::-1],
    "drop_first": lambda shape: shape[1:] if shape[:1] == (1,) else None,
    "add_first": lambda shape: (1, *shape),
}
_INVERSE: Final[Mapping[Operation, Operation]] = {
    "as_is": "as_is",
    "transpose": "transpose",
    "drop_first": "add_first",
    "add_first": "drop_first",
}

_NUMBER: Final = r"(0|[1-9][0-9]*)"  # "01" is another name than "1"


@dataclass(frozen=True)
class Row:
    """One weight, or one weight of every layer: `{n}` in both patterns stands for the same number.

    Attributes:
        original: Name in the checkpoint of the original program.
        ours: Name in the state dict of a model with a head.
        operation: What turns the original's values into ours.
        source_rows: Which part of the original's array they are; None for the whole.
        target_rows: Which part of our array they become; None for the whole.
    """

    original: str
    ours: str
    operation: Operation = "as_is"
    source_rows: Rows | None = None
    target_rows: Rows | None = None

    def target(self, name: str) -> str | None:
        """Our name for one of the original's, or None if the row is about another."""
        return _translated(name, self._original_pattern, self.ours)

    def source(self, name: str) -> str | None:
        """The original's name for one of ours, or None if the row is about another."""
        return _translated(name, self._our_pattern, self.original)

    @cached_property
    def _original_pattern(self) -> re.Pattern[str]:
        return _pattern(self.original)

    @cached_property
    def _our_pattern(self) -> re.Pattern[str]:
        return _pattern(self.ours)


@dataclass(frozen=True)
class KeyMap:
    """The table of a family.

    Attributes:
        rows: All weights of the original, those of every head included.
        heads: Kind of model -> the names that only its checkpoints have; the first that fits is what a checkpoint is.
        ignored: Patterns (whole names) of what isn't part of the model: optimizer slots, counters of training.
        optional: Beginnings of our names, one for each part that a model may lack; a checkpoint's is then left out.
        fresh: Those of them that a checkpoint may lack, each as a whole: a new head.
        labels: Original names whose first axis is the number of labels.
        storage: How the original program keeps its weights.
        inferred_config: Reads what names and shapes say of the configuration, for an original that keeps none beside
            its checkpoints; a ValueError where they don't say it.
    """

    rows: tuple[Row, ...]
    heads: tuple[tuple[str, tuple[str, ...]], ...] = ()
    ignored: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    storage: Storage = TENSORFLOW
    inferred_config: Callable[[Mapping[str, Shape]], dict[str, Any]] | None = None

    def to_ours(self, name: str) -> tuple[Row, str] | None:
        """The first row that knows one of the original's names, and our name for it; None if no row does."""
        return next(self.all_to_ours(name), None)

    def to_original(self, name: str) -> tuple[Row, str] | None:
        """The first row that knows one of our names, and the original's name for it; None if no row does."""
        return next(self.all_to_original(name), None)

    def all_to_ours(self, name: str) -> Iterator[tuple[Row, str]]:
        """Every row that knows one of the original's names, and our name in it: one for each piece."""
        return ((row, ours) for row in self.rows if (ours := row.target(name)) is not None)

    def all_to_original(self, name: str) -> Iterator[tuple[Row, str]]:
        """Every row that knows one of our names, and the original's name in it: one for each piece."""
        return ((row, theirs) for row in self.rows if (theirs := row.source(name)) is not None)

    def head(self, names: Iterable[str]) -> str:
        """The kind of model that a checkpoint with these original names is of."""
        there = set(names)
        return next(kind for kind, needed in self.heads if there.issuperset(needed))


@dataclass(frozen=True)
class Step:
    """One tensor, or a piece of one, from one name to another.

    Attributes:
        source: The name it has.
        target: The name it gets.
        operation: What is done to the values.
        source_rows: Which part of the source it is; None for the whole.
        target_rows: Which part of the target it becomes; None for the whole.
    """

    source: str
    target: str
    operation: Operation
    source_rows: Rows | None = None
    target_rows: Rows | None = None

    def apply(self, tensor: Tensor) -> Tensor:
        """The values for `target`, of the whole source; the same tensor where nothing is to be done."""
        return _OPERATIONS[self.operation](tensor if self.source_rows is None else tensor[slice(*self.source_rows)])

    def as_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON; rows only where it is about a piece."""
        rows = {"source_rows": self.source_rows, "target_rows": self.target_rows}
        given = {side: list(piece) for side, piece in rows.items() if piece is not None}
        return {"source": self.source, "target": self.target, "operation": self.operation, **given}


@dataclass
class Plan:
    """How a checkpoint becomes a model, and what of either is not part of that.

    Attributes:
        steps: What is copied.
        ignored: Original names that belong to training, or that the caller asked to ignore.
        left_out: Original names of weights that this kind of model doesn't have; `name[first:end]` for a piece.
        fresh: Our names that the checkpoint has no values for.
    """

    steps: list[Step] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)


class Selection(NamedTuple):
    """The names of a checkpoint, sorted out: inner name -> whole name of what may be weights, and the rest."""

    weights: dict[str, str]
    ignored: list[str]
    outside: list[str]


def select(key_map: KeyMap, names: Iterable[str], *, scope: str = "", ignore: Sequence[str] = ()) -> Selection:
    """Sort out the names of an original checkpoint.

    Args:
        key_map: The table of the family.
        names: Original names.
        scope: Leading part to strip; names without it are no weights of the model then.
        ignore: Patterns (whole names, scope included) of names that aren't part of the model.

    Raises:
        ValueError: A pattern is no regular expression.
    """
    patterns = [_compiled(pattern) for pattern in (*key_map.ignored, *ignore)]
    prefix = scope_prefix(scope)
    selected = Selection({}, [], [])
    for name in names:
        if any(pattern.fullmatch(name) for pattern in patterns):
            selected.ignored.append(name)
        elif name.startswith(prefix):
            selected.weights[name.removeprefix(prefix)] = name
        else:
            selected.outside.append(name)
    return selected


def plan_from_original(
    key_map: KeyMap,
    sources: Mapping[str, Shape],
    targets: Mapping[str, Shape],
    *,
    scope: str = "",
    ignore: Sequence[str] = (),
    any_shape: bool = False,
) -> Plan:
    """Pair the variables of an original checkpoint with the parameters of a model.

    Args:
        key_map: The table of the family.
        sources: Original names and shapes.
        targets: Our full names and shapes; without those that share the values of another.
        scope: Leading part of the original names to strip, as "model" for `model/bert/…`.
        ignore: Patterns (whole names, scope included) of further names that aren't part of the model.
        any_shape: Whether shapes may differ; the caller then looks after them.

    Raises:
        ValueError: The message lists every variable that no row knows, every parameter that gets no value or more than
            one, every pair of shapes that differ, and pieces as `name[first:end]`; or a pattern is no regular
            expression.
    """
    selected = select(key_map, sources, scope=scope, ignore=ignore)
    plan = Plan(ignored=selected.ignored)
    unknown = list(selected.outside)
    homeless: list[str] = []
    faults: list[str] = []
    for inner, name in selected.weights.items():
        pieces: list[Rows | None] = []
        for row, ours in key_map.all_to_ours(inner):
            pieces.append(row.source_rows)
            if ours in targets:
                plan.steps.append(Step(name, ours, row.operation, row.source_rows, row.target_rows))
            else:
                lacking = _lacks_part(targets, ours, key_map.optional)
                (plan.left_out if lacking else homeless).append(_part(name, row.source_rows))
        if not pieces:
            unknown.append(name)
        else:
            homeless += _gaps(name, pieces, sources[name])
    used = {_part(step.source, step.source_rows) for step in plan.steps}  # a value may have a second place
    plan.left_out = [part for part in plan.left_out if part not in used]
    if unknown:
        faults.append(_unknown(unknown, sources, key_map, scope_prefix(scope)))
    if homeless:
        faults.append(f"the model, as it is configured, has no place for {', '.join(homeless)}")
    filled = _pieces(plan.steps)
    unfilled = [name for name in targets if name not in filled]
    plan.fresh = [name for name in unfilled if _may_be_fresh(name, key_map, filled)]
    empty = [name for name in unfilled if name not in set(plan.fresh)]
    for name, pieces in filled.items():
        asked = [row.target_rows for row, _ in key_map.all_to_original(name)]
        empty += _gaps(name, pieces, _extent(asked) if any_shape else targets[name])
    if empty:
        faults.append(f"no variable has the values of {', '.join(empty)}")
    elif not plan.steps:
        faults.append("not one variable fits the model")
    if twice := _twice(filled):
        faults.append(f"more than one variable has the values of {', '.join(twice)}")
    if not any_shape:
        faults += _misshapen(plan.steps, sources, targets)
    if faults:
        raise ValueError("; ".join(faults))
    return plan


def plan_to_original(key_map: KeyMap, sources: Mapping[str, Shape]) -> list[Step]:
    """Give our weights the names of the original.

    Args:
        key_map: The table of the family.
        sources: Our full names and shapes; without those that share the values of another.

    Raises:
        ValueError: The original has no name for some, or one of its arrays would get only some of its pieces, or one
            twice; the message lists them all.
    """
    steps: list[Step] = []
    unknown: list[str] = []
    for name, shape in sources.items():
        pieces: list[Rows | None] = []
        for row, theirs in key_map.all_to_original(name):
            pieces.append(row.target_rows)
            steps.append(Step(name, theirs, _INVERSE[row.operation], row.target_rows, row.source_rows))
        unknown += _gaps(name, pieces, shape) if pieces else [name]
    faults = [f"the original program has no such weights: {', '.join(unknown)}"] if unknown else []
    filled = _pieces(steps)
    empty: list[str] = []
    for name, found in filled.items():
        empty += _gaps(name, found, _extent([row.source_rows for row, _ in key_map.all_to_ours(name)]))
    if empty:
        faults.append(f"no weight has the values of {', '.join(empty)}")
    if twice := _twice(filled):
        faults.append(f"more than one weight has the values of {', '.join(twice)}")
    short = [
        _part(step.source, step.source_rows)
        for step in steps
        if step.source_rows is not None and sources[step.source][:1] < step.source_rows[1:]
    ]
    if short:
        faults.append(f"the model has fewer rows than its configuration asks for: {', '.join(short)}")
    if faults:
        raise ValueError("; ".join(faults))
    return steps


def found_scopes(key_map: KeyMap, names: Iterable[str]) -> list[str]:
    """Scopes without which some of these original names would be known."""
    return sorted({scope for name in names for scope in _scopes(name, key_map)})


def scope_prefix(scope: str) -> str:
    """What names in a scope begin with, however its slashes are given."""
    return f"{scope.strip('/')}/" if scope.strip("/") else ""


class Converted(Mapping[str, Tensor]):
    """Tensors under the names that a plan gives them, each made when it is asked for, of all its pieces.

    Args:
        read: Gives the whole tensor of a source name.
        steps: The plan.
    """

    def __init__(self, read: Callable[[str], Tensor], steps: Iterable[Step]) -> None:
        self._read = read
        self._steps: dict[str, list[Step]] = {}
        for step in sorted(steps, key=lambda step: step.target_rows or (0, 0)):
            self._steps.setdefault(step.target, []).append(step)

    def __getitem__(self, name: str) -> Tensor:
        pieces = [step.apply(self._read(step.source)) for step in self._steps[name]]
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces)

    def __iter__(self) -> Iterator[str]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(re.escape(template).replace(r"\{n\}", _NUMBER))


def _translated(name: str, pattern: re.Pattern[str], template: str) -> str | None:
    match = pattern.fullmatch(name)
    if match is None:
        return None
    return template.replace("{n}", match[1]) if match.lastindex else template


def _may_be_fresh(name: str, key_map: KeyMap, filled: Collection[str]) -> bool:
    """Whether a checkpoint may have no values for a parameter.

    It may if the table doesn't know the parameter (a module that a user added), or if it belongs to a head of which
    the checkpoint has nothing: half a head is a broken checkpoint.
    """
    if key_map.to_original(name) is None:
        return True
    return _lacks_part(filled, name, key_map.fresh)


def _lacks_part(names: Iterable[str], name: str, parts: Iterable[str]) -> bool:
    """Whether a name belongs to one of those parts, of which `names` have nothing."""
    return any(name.startswith(part) and not any(other.startswith(part) for other in names) for part in parts)


def _part(name: str, rows: Rows | None) -> str:
    """A name, with the rows of a piece."""
    return name if rows is None else f"{name}[{rows[0]}:{rows[1]}]"


def _pieces(steps: Iterable[Step]) -> dict[str, list[Rows | None]]:
    """Which rows of each target the steps fill."""
    pieces: dict[str, list[Rows | None]] = {}
    for step in steps:
        pieces.setdefault(step.target, []).append(step.target_rows)
    return pieces


def _extent(pieces: Iterable[Rows | None]) -> Shape:
    """The shape that all pieces together have, as far as they say."""
    return (max((rows[1] for rows in pieces if rows is not None), default=0),)


def _gaps(name: str, pieces: Sequence[Rows | None], shape: Shape) -> list[str]:
    """The rows of an array that are in none of the pieces."""
    if None in pieces:
        return []
    gaps, end = [], 0
    size = shape[0] if shape else 0
    for start, stop in [*sorted(filter(None, pieces)), (size, size)]:
        if start > end:
            gaps.append(_part(name, (end, start)))
        end = max(end, stop)
    return gaps


def _twice(filled: Mapping[str, Sequence[Rows | None]]) -> list[str]:
    """The targets that get some of their values more than once."""
    return [
        name
        for name, pieces in filled.items()
        if len(pieces) > 1
        and (None in pieces or any(a[1] > b[0] for a, b in itertools.pairwise(sorted(filter(None, pieces)))))
    ]


def _piece(shape: Shape, rows: Rows | None) -> Shape:
    """The shape of a piece; it has fewer rows where the array has."""
    return shape if rows is None or not shape else (len(range(shape[0])[slice(*rows)]), *shape[1:])


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"ignore: {pattern!r} is no regular expression: {error}") from error


def _unknown(names: Sequence[str], sources: Mapping[str, Shape], key_map: KeyMap, prefix: str) -> str:
    """All names that no row knows, with what may help."""
    listed = ", ".join(f"{name} {list(sources[name])}" for name in names)
    scopes = found_scopes(key_map, (name.removeprefix(prefix) for name in names))
    remedy = "if they are not part of the model, ignore them: ignore=['PATTERN'], --ignore PATTERN"
    if len(scopes) == 1:
        remedy += f"; they are known without {scopes[0]!r} before them: scope={scopes[0]!r}, --scope {scopes[0]}"
    return f"no row of the table knows {listed} ({remedy}; options of load_tf_weights and of the command convert)"


def _scopes(name: str, key_map: KeyMap) -> Iterator[str]:
    """What stands before a name that would be known without it."""
    parts = name.split("/")
    for start in range(1, len(parts)):
        if key_map.to_ours("/".join(parts[start:])) is not None:
            yield "/".join(parts[:start])
            return


def _misshapen(steps: Iterable[Step], sources: Mapping[str, Shape], targets: Mapping[str, Shape]) -> list[str]:
    wrong = []
    for step in steps:
        source = _piece(sources[step.source], step.source_rows)
        target = _piece(targets[step.target], step.target_rows)
        if _SHAPES[step.operation](source) != target:
            theirs, ours = _part(step.source, step.source_rows), _part(step.target, step.target_rows)
            wrong.append(f"{theirs} {list(source)} for {ours} {list(target)}")
    return [f"shapes differ from what the configuration asks for: {', '.join(wrong)}"] if wrong else []
