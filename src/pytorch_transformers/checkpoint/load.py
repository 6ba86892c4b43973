"""From a state dict to a model: fit the names, compare the shapes, put the tensors in, and say what was done.

Pure steps over names and tensors; files are `read.py`'s subject, and nothing here knows a family.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor, nn

#: Names inside a checkpoint that were spelled otherwise once: the published TensorFlow conversions kept the original's
#: words for the two parameters of layer normalisation, and some programs saved the MLM bias under its decoder.
_OLD_SPELLINGS: Final[Sequence[tuple[re.Pattern[str], str]]] = (
    (re.compile(r"(^|\.)gamma$"), r"\1weight"),
    (re.compile(r"(^|\.)beta$"), r"\1bias"),
    (re.compile(r"(^|\.)lm_head\.decoder\.weight$"), r"\1lm_head.weight"),
    (re.compile(r"(^|\.)multiple_choice_head\.linear\.(weight|bias)$"), r"\1multiple_choice_head.summary.\2"),
    (re.compile(r"(^|\.)cls\.predictions\.decoder\.bias$"), r"\1cls.predictions.bias"),
)
_PARALLEL_PREFIX: Final = "module."


@dataclass
class LoadReport:
    """What loading did: each list is empty when everything fitted."""

    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    mismatched: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The form that `output_loading_info=True` returns."""
        return {
            "missing_keys": self.missing,
            "unexpected_keys": self.unexpected,
            "mismatched_keys": self.mismatched,
            "error_msgs": [],
        }

    def summary(self, model: str, source: str) -> str:
        """The lists in words, empty when there is nothing to say."""
        lines = [*self.notes]
        if self.missing:
            lines.append(f"newly initialised, train before use: {', '.join(self.missing)}")
        if self.mismatched:
            lines.append("newly initialised, as the shape differs: " + ", ".join(map(_shapes, self.mismatched)))
        if self.unexpected:
            lines.append(f"in the checkpoint, but not in the model: {', '.join(self.unexpected)}")
        return "".join([f"{model} from {source}: ", "; ".join(lines)]) if lines else ""


def _shapes(entry: tuple[str, tuple[int, ...], tuple[int, ...]]) -> str:
    name, found, expected = entry
    return f"{name} (checkpoint {list(found)}, model {list(expected)})"


def fit_names(
    state: Mapping[str, Tensor], expected: Iterable[str], base_prefix: str, report: LoadReport
) -> dict[str, Tensor]:
    """Give the entries of a checkpoint the names that the model uses.

    A `module.` before all names is removed, old spellings are replaced, and `base_prefix` (as in "bert.") is added or
    removed where that gives a name of the model: encoders load into models with heads and the reverse.

    Raises:
        ValueError: Two entries get the same name, or not one entry fits.
    """
    wanted = set(expected)
    parallel = bool(state) and all(name.startswith(_PARALLEL_PREFIX) for name in state)
    if parallel:
        report.notes.append("removed the prefix 'module.' of a data-parallel wrapper from all names")
    fitted: dict[str, Tensor] = {}
    origin: dict[str, str] = {}
    for original, tensor in state.items():
        name = original.removeprefix(_PARALLEL_PREFIX) if parallel else original
        name = _fit(name, wanted, f"{base_prefix}.")
        if name in fitted:
            if original.endswith("decoder.bias") or origin[name].endswith("decoder.bias"):
                continue  # both spellings of the one MLM bias, saved by programs that tie them
            raise ValueError(f"checkpoint entries {origin[name]!r} and {original!r} are both {name!r} in the model")
        fitted[name], origin[name] = tensor, original
    if state and wanted.isdisjoint(fitted):
        raise ValueError(
            f"not one of the {len(state)} checkpoint entries fits the model; "
            f"the checkpoint has {_few(state)}; the model has {_few(sorted(wanted))}"
        )
    return fitted


def _fit(name: str, wanted: set[str], prefix: str) -> str:
    if name in wanted:
        return name
    for pattern, new in _OLD_SPELLINGS:
        name = pattern.sub(new, name)
    for candidate in (name, prefix + name, name.removeprefix(prefix)):
        if candidate in wanted:
            return candidate
    return name


def _few(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def load_state(
    model: nn.Module,
    state: Mapping[str, Tensor],
    report: LoadReport,
    *,
    base_prefix: str,
    ignored: Sequence[str] = (),
    tied: Mapping[str, str] | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    copy: bool = False,
    ignore_mismatched_sizes: bool = False,
) -> None:
    """Put the tensors of a checkpoint into `model` in place of its own; where nothing changes they aren't copied.

    Args:
        model: Usually on the meta device, so that nothing is computed or allocated for what is replaced.
        state: Names and tensors of the checkpoint.
        report: Gets the lists of what was missing, unexpected or misshapen.
        base_prefix: Name of the encoder inside models with heads, as "bert".
        ignored: Patterns of names that the code can rebuild (constant buffers); they are never listed.
        tied: Parameter -> the parameter that it shares its values with; it needn't be in the checkpoint.
        dtype: Floating-point tensors get this type; None keeps that of the checkpoint.
        device: Where the tensors go.
        copy: Whether to copy tensors even where nothing changes: those of a caller, who goes on using them.
        ignore_mismatched_sizes: Whether entries of another shape are left out rather than an error.

    Raises:
        ValueError: Shapes differ, or nothing fits; the message lists all of them.
    """
    own = model.state_dict()
    tied = tied or {}
    fitted = fit_names(state, own, base_prefix, report)
    _note_untied(fitted, tied, report)
    for name, source in tied.items():
        if source not in fitted and name in fitted:
            fitted[source] = fitted[name]
    usable: dict[str, Tensor] = {}
    for name, tensor in fitted.items():
        if name not in own:
            if not any(re.search(pattern, name) for pattern in ignored):
                report.unexpected.append(name)
        elif tensor.shape != own[name].shape:
            report.mismatched.append((name, tuple(tensor.shape), tuple(own[name].shape)))
        elif name not in tied:
            _check_kind(name, tensor, own[name])
            usable[name] = tensor.to(device, dtype if tensor.is_floating_point() else None, copy=copy)
    if report.mismatched and not ignore_mismatched_sizes:
        raise ValueError(
            f"shapes differ: {', '.join(map(_shapes, report.mismatched))}; "
            "change the configuration, or pass ignore_mismatched_sizes=True to initialise these anew"
        )
    misshapen = {name for name, _, _ in report.mismatched}
    report.missing += [name for name in own if name not in usable and name not in misshapen and name not in tied]
    model.load_state_dict(usable, strict=False, assign=True)


def _check_kind(name: str, found: Tensor, expected: Tensor) -> None:
    if found.is_floating_point() != expected.is_floating_point():
        raise ValueError(f"{name} is {found.dtype} in the checkpoint and {expected.dtype} in the model")


def _note_untied(state: Mapping[str, Tensor], tied: Mapping[str, str], report: LoadReport) -> None:
    """Say it when a checkpoint holds other values for a parameter that this model shares."""
    for name, source in tied.items():
        copy, original = state.get(name), state.get(source)
        if copy is None or original is None or copy.data_ptr() == original.data_ptr():
            continue
        if copy.shape == original.shape and not torch.equal(copy, original):
            report.notes.append(
                f"{name} differs from {source} in the checkpoint; the model ties them and uses {source}"
            )
