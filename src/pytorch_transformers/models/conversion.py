"""The job of `convert`: a checkpoint of the original program to files of ours, or the reverse.

The direction follows from the two ends: an original checkpoint becomes PyTorch files. PyTorch weights become a
TensorFlow checkpoint, whose name ends in `.ckpt` as the original programs' own, or NumPy files where a family has them.
"""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

from ..checkpoint.keymap import Plan, select
from ..checkpoint.read import chosen_weights
from ..checkpoint.save import save_bin, write_safetensors
from ..files import CONFIG_NAME, SAFE_WEIGHTS_NAME, WEIGHTS_NAME, atomic_write
from ..hub import Location
from .base import PreTrainedModel
from .config import PretrainedConfig
from .construction import shared_parameters
from .original import (
    find_original,
    fitting_config,
    inferred_config,
    original_state,
    refuse_unlike_original,
    save_original,
)
from .record import Family

_TENSORFLOW: Final = re.compile(r".*\.ckpt(-\d+)?")  # with the number of the step, as TensorFlow names its own
_HOLDS_PYTORCH: Final = "holds PyTorch weights already; an OUT that ends in .ckpt makes a TensorFlow checkpoint of them"
_SINGLE_FILE: Final = (".bin", ".pt", ".pth")


@dataclass(frozen=True)
class Conversion:
    """What was done.

    Attributes:
        source: The checkpoint that was read.
        written: The files that were written.
        model_class: The class that the result is for.
        plan: Which weights were used, and which of either side were not.
        parameters: Number of values converted.
        config: The configuration of the result.
    """

    source: Path
    written: tuple[Path, ...]
    model_class: str
    plan: Plan
    parameters: int
    config: PretrainedConfig

    def as_dict(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {
            "source": str(self.source),
            "written": [str(path) for path in self.written],
            "model_class": self.model_class,
            "parameters": self.parameters,
            "used": [step.as_dict() for step in self.plan.steps],
            "ignored": self.plan.ignored,
            "left_out": self.plan.left_out,
            "fresh": self.plan.fresh,
        }


def convert(
    family: Family,
    source: str | PathLike[str],
    out: str | PathLike[str],
    *,
    config: str | PathLike[str] | None = None,
    head: str | None = None,
    scope: str = "",
    ignore: Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
    one_file: bool | None = None,
    progress: bool = False,
    **place: Any,
) -> Conversion:
    """Convert a checkpoint, in the direction that its two ends say.

    Args:
        family: The family of the model.
        source: A TensorFlow checkpoint (its prefix, one of its files, its folder), a folder of NumPy files, or PyTorch
            weights by name or path.
        out: A folder, or a single file of `torch.save` (`….bin`), for PyTorch; a name in `.ckpt` for TensorFlow; a
            folder for NumPy files.
        config: Configuration file, where it isn't beside the checkpoint under its usual name. Without one, sizes are
            those that the checkpoint tells, or the published ones, where the family has it so.
        head: Kind of model, one of `family.heads`; by default what the names in the checkpoint say.
        scope: Leading part of all original names to strip, as "model" for `model/bert/…`.
        ignore: Patterns of original names that aren't part of the model.
        overrides: Fields of the configuration to change.
        one_file: Whether `out` is a file of `torch.save`; by default its ending says so.
        progress: Whether to show a bar, on a terminal.
        **place: `cache_dir`, `revision`, `local_files_only`, as for `from_pretrained`.

    Raises:
        OSError: There is no such checkpoint or configuration, a file is damaged, or the disk refused one.
        ValueError: Names or shapes don't fit (the message lists all), there is no such head, or `out` doesn't go with
            `source`.
    """
    location = family.locate(fspath(source), **place)
    if head is not None and head not in family.heads:
        raise ValueError(f"head: {family.name} has no {head!r}; use one of {', '.join(family.heads)}")
    if not fspath(out):
        raise ValueError("out: the name is empty")
    target = Path(out).expanduser()
    to_original = not one_file and _is_to_original(family, location, target)
    one_file = target.suffix in _SINGLE_FILE if one_file is None else one_file
    if target.suffix == ".safetensors" and not one_file:
        raise ValueError(f"{out}: name the folder; {SAFE_WEIGHTS_NAME} is written into it, beside {CONFIG_NAME}")
    if target.is_dir() if one_file else target.is_file():
        raise ValueError(f"{out} is there, and is {'a folder' if one_file else 'a file'}; choose another name")
    if to_original and not family.key_map.storage.named and target.suffix in (".ckpt", *_SINGLE_FILE):
        raise ValueError(f"{out}: an original checkpoint of {family.name} is a folder of files; leave the ending out")
    if to_original and (scope or ignore):
        raise ValueError(f"scope and ignore are about names in an original checkpoint, and {out} will be one")
    options = _Options(family, location, target, config, head, scope, ignore, overrides or {}, one_file, progress)
    return _to_original(options, fspath(source), place) if to_original else _from_original(options)


def _is_to_original(family: Family, location: Location, out: Path) -> bool:
    """Whether PyTorch weights shall become an original checkpoint, rather than the reverse."""
    storage = family.key_map.storage
    if storage.named:
        return bool(_TENSORFLOW.fullmatch(out.name))
    return storage.find(location) is None and chosen_weights(location) is not None


@dataclass(frozen=True)
class _Options:
    family: Family
    location: Location
    out: Path
    config: str | PathLike[str] | None
    head: str | None
    scope: str
    ignore: Sequence[str]
    overrides: Mapping[str, Any]
    one_file: bool
    progress: bool

    def config_path(self) -> Path | None:
        """The configuration file that was given, or that beside the checkpoint."""
        if self.config:
            return Path(self.config).expanduser()
        return self.location.first(self.family.config_class.filenames)

    def read_config(self) -> PretrainedConfig:
        """The configuration that was given, or that beside the checkpoint; or the published one."""
        kind, path = self.family.config_class, self.config_path()
        if path is None and self.family.published_sizes:
            return kind()
        if path is None:
            raise OSError(
                f"{self.location.description}: no configuration; looked for {' and '.join(kind.filenames)}. "
                "Name it: config=FILE (--config FILE)."
            )
        return kind.from_json_file(path)


def _from_original(options: _Options) -> Conversion:
    """An original checkpoint to PyTorch. The model is never built: its names and shapes are enough."""
    family, out = options.family, options.out
    if options.location.chosen is not None and chosen_weights(options.location) is not None:
        raise ValueError(f"{options.location.chosen} {_HOLDS_PYTORCH}")
    original = family.key_map.storage.find(options.location)
    if original is None and chosen_weights(options.location) is not None:
        raise ValueError(f"{options.location.description} {_HOLDS_PYTORCH}")
    original = original or find_original(options.location, family.key_map, asked=True)
    assert original is not None
    key_map = family.key_map
    selected = select(key_map, original, scope=options.scope, ignore=options.ignore)
    kind = options.head or key_map.head(selected.weights)
    model_class: type[PreTrainedModel] = family.load(kind)
    told = None
    if options.config_path() is None:
        told = inferred_config(family.config_class, original, key_map, selected)
    config = model_class.overridden(told or options.read_config(), options.overrides)
    said = bool({"num_labels", "id2label", "label2id"} & options.overrides.keys())
    model = model_class.without_values(fitting_config(config, original, key_map, selected, labels=not said))
    try:
        state, plan = original_state(
            model, original, scope=options.scope, ignore=options.ignore, progress=options.progress
        )
    except ValueError as error:
        if told is not None or options.config_path() is not None:
            raise
        raise ValueError(
            f"{original.prefix}: no configuration is beside it, so the sizes of the published {config.model_type} were "
            "taken, and they don't fit. Name it: config=FILE (--config FILE)."
        ) from error
    parameters = sum(tensor.numel() for tensor in state.values())
    if options.one_file:
        shared = shared_parameters(model, model.base_model_prefix)
        save_bin({**state, **{name: state[source] for name, source in shared.items() if source in state}}, out)
        written = [out]
    else:
        vars(model.config)["architectures"] = [model_class.__name__]
        with ExitStack() as stack:  # all files are complete before the first gets its name
            settings = stack.enter_context(atomic_write(out / CONFIG_NAME))
            settings.write_text(model.config.to_json_string(), encoding="utf-8")
            copies = _copy_vocabulary(options, stack, out, to_original=False)
            # The last to come is the first to get its name: the others follow the large file at once.
            weights = stack.enter_context(atomic_write(out / SAFE_WEIGHTS_NAME))
            write_safetensors(state, weights, out / SAFE_WEIGHTS_NAME)
        written = [out / SAFE_WEIGHTS_NAME, out / CONFIG_NAME, *copies]
    return Conversion(original.prefix, tuple(written), model_class.__name__, plan, parameters, model.config)


def _to_original(options: _Options, source: str, place: Mapping[str, Any]) -> Conversion:
    """PyTorch to an original checkpoint, with configuration and vocabulary under the names the original knows."""
    family, out = options.family, options.out
    weights = chosen_weights(options.location)
    if weights is None:
        raise ValueError(
            f"{options.location.description}: no PyTorch weights; an OUT that ends in .ckpt is made of them"
        )
    config = options.read_config()
    model_class: type[PreTrainedModel] = family.load(options.head or _head_of(config, family))
    model, report = model_class.from_pretrained(
        source, config=config, dtype="auto", output_loading_info=True, **options.overrides, **place
    )
    if missing := report["missing_keys"]:
        raise ValueError(
            f"{weights} has no values for {', '.join(missing)} of {model_class.__name__}; choose another head"
        )
    refuse_unlike_original(model)
    name, values = family.conversion.original_config(model.config)  # refuses what the original can't compute
    folder = out.parent if family.key_map.storage.named else out
    text = json.dumps(values, indent=2, sort_keys=True) + "\n"
    _refuse_company(out, folder / name, text)
    with ExitStack() as stack:
        settings = stack.enter_context(atomic_write(folder / name))
        settings.write_text(text, encoding="utf-8")
        beside = [folder / name]
        if family.key_map.storage.named:  # where TensorFlow looks for the latest checkpoint of a folder
            state = stack.enter_context(atomic_write(folder / "checkpoint"))
            state.write_text(f'model_checkpoint_path: "{out.name}"\n', encoding="utf-8")
            beside.append(folder / "checkpoint")
        beside += [*_copy_vocabulary(options, stack, folder, to_original=True)]
        steps, written = save_original(model, out)
    written += beside
    plan = Plan(steps=steps, left_out=report["unexpected_keys"])
    return Conversion(weights, tuple(written), model_class.__name__, plan, model.num_parameters(), model.config)


def _head_of(config: PretrainedConfig, family: Family) -> str:
    """The kind of model that was saved with a configuration."""
    saved = getattr(config, "architectures", None) or []
    for kind in family.heads:
        if family.classes[kind].rpartition(":")[2] in saved:
            return kind
    raise ValueError(f"the configuration doesn't say what was saved; name the head, one of {', '.join(family.heads)}")


def _refuse_company(out: Path, config: Path, text: str) -> None:
    """Refuse to give a checkpoint a folder whose configuration is that of another checkpoint.

    Raises:
        ValueError: The configuration there says something else, and another checkpoint lies beside it.
    """
    others = [path for path in config.parent.glob("*.index") if path.name != f"{out.name}.index"]
    if others and config.is_file() and config.read_text(encoding="utf-8") != text:
        raise ValueError(f"{config} belongs to {others[0]}, and would be replaced; give {out.name} a folder of its own")


def _copy_vocabulary(options: _Options, stack: ExitStack, folder: Path, *, to_original: bool) -> list[Path]:
    """Copy the files of the tokenizer that lie beside the checkpoint; they get their names when `stack` ends.

    The vocabulary gets the names of the side that it comes to. Settings, which the original doesn't know, go along:
    they would be missing on the way back.
    """
    theirs = options.family.original_files
    ours = [name for name in options.family.tokenizer_files if name in theirs or name not in theirs.values()]
    wanted = {**dict(zip(ours, ours, strict=True)), **(theirs if to_original else {})}
    copies = []
    for name, target in wanted.items():
        path = options.location.first([name, *([theirs[name]] if name in theirs else [])])
        if path is not None:
            if not (folder / target).exists() or not path.samefile(folder / target):
                shutil.copyfile(path, stack.enter_context(atomic_write(folder / target)))
            copies.append(folder / target)
    return copies


def convert_classic(
    family: Family,
    source: str | PathLike[str],
    config_file: str | PathLike[str],
    folder: str | PathLike[str],
    *,
    head: str = "model",
) -> Conversion:
    """Convert as the published functions for the decoders do: `pytorch_model.bin` and `config.json` in a folder.

    Args:
        family: The family.
        source: The original checkpoint.
        config_file: Its configuration; "" for that beside it, or where there is none, for the sizes that the checkpoint
            tells, or the published ones.
        folder: Where the two files go.
        head: Kind of model.

    Raises:
        OSError: As `convert`.
        ValueError: As `convert`.
    """
    out = Path(folder)
    done = convert(family, source, out / WEIGHTS_NAME, config=config_file or None, head=head, one_file=True)
    return replace(done, written=(*done.written, done.config.save_pretrained(out)))
