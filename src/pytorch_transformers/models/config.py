"""`PretrainedConfig`: the sizes and switches of a model, read from and written to `config.json`. Needs no torch."""

import copy
import difflib
import json
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from ..files import CONFIG_NAME, write_text
from ..hub import locate

Config = TypeVar("Config", bound="PretrainedConfig")

#: How alike an unknown key and a known one must be to count as a typing error (difflib's ratio, 1.0 is equal).
_TYPO_LIKENESS: Final = 0.85


class PretrainedConfig:
    """Base of the configurations: fields that every family has, and reading, checking and writing.

    A key that the family doesn't know is kept and written back, because checkpoints carry keys of other programs;
    a key that nearly equals a known one is an error, because it is a typing error that would change nothing in silence.

    Args:
        num_labels: Classes of a classification head; 1 makes it a regression. Default 2.
        id2label: Names of the classes; sets `num_labels`. Default LABEL_0, LABEL_1, ….
        label2id: The inverse of `id2label`; made from it when not given.
        output_hidden_states: Whether forward returns the states of all layers, unless the call says otherwise.
        output_attentions: Whether forward returns attention probabilities, unless the call says otherwise.
        return_dict: False makes forward return plain tuples, unless the call says otherwise.
        torchscript: True makes forward return plain tuples always, for `torch.jit.trace`.
        gradient_checkpointing: Whether training computes layers again in backward instead of keeping activations.
        pruned_heads: Layer -> heads that were removed (see `PreTrainedModel.prune_heads`).
        finetuning_task: Name of the task, a note for people.
        **others: Keys of the checkpoint that the family doesn't know.

    Raises:
        ValueError: A value is impossible, or a key looks like a typing error.
    """

    #: Name of the family in `config.json`.
    model_type: ClassVar[str] = ""
    #: Names that published code uses for a field -> the field.
    aliases: ClassVar[Mapping[str, str]] = {}
    #: Shortcut name -> repository, for `from_pretrained`.
    repositories: ClassVar[Mapping[str, str]] = {}
    #: What the file may be called, the first that exists is read.
    filenames: ClassVar[tuple[str, ...]] = (CONFIG_NAME, "bert_config.json")

    def __init__(
        self,
        *,
        num_labels: int | None = None,
        id2label: Mapping[int | str, str] | None = None,
        label2id: Mapping[str, int] | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        return_dict: bool = True,
        torchscript: bool = False,
        gradient_checkpointing: bool = False,
        pruned_heads: Mapping[int | str, Iterable[int]] | None = None,
        finetuning_task: str | None = None,
        **others: Any,
    ) -> None:
        self.output_hidden_states = output_hidden_states
        self.output_attentions = output_attentions
        self.return_dict = return_dict
        self.torchscript = torchscript
        self.gradient_checkpointing = gradient_checkpointing
        # JSON has text keys only; layers are numbers here.
        self.pruned_heads = {int(layer): sorted(heads) for layer, heads in (pruned_heads or {}).items()}
        self.finetuning_task = finetuning_task
        self._set_labels(num_labels, id2label, label2id)
        self.refuse_typos(others)
        others.pop("model_type", None)
        vars(self).update(others)

    def _set_labels(
        self,
        num_labels: int | None,
        id2label: Mapping[int | str, str] | None,
        label2id: Mapping[str, int] | None,
    ) -> None:
        if id2label is not None:
            self.id2label = {int(index): label for index, label in id2label.items()}
            if num_labels not in (None, len(self.id2label)):
                raise ValueError(f"num_labels: {num_labels}, but id2label names {len(self.id2label)} classes")
        else:
            count = 2 if num_labels is None else num_labels
            if count < 1:
                raise ValueError(f"num_labels: {count}, must be at least 1")
            self.id2label = {index: f"LABEL_{index}" for index in range(count)}
            if label2id is not None:
                self.id2label = {index: label for label, index in label2id.items()}
        self.label2id = dict(label2id) if label2id else {label: index for index, label in self.id2label.items()}

    def refuse_typos(self, others: Iterable[str]) -> None:
        """Raise `ValueError` for a key that nearly equals a known one, and say which."""
        known = [name for name in vars(self) if not name.startswith("_")] + ["num_labels", *self.aliases]
        for key in others:
            close = difflib.get_close_matches(key, known, n=1, cutoff=_TYPO_LIKENESS)
            if close and key not in known:
                raise ValueError(f"{type(self).__name__}: unknown key {key!r}; did you mean {close[0]!r}?")

    @property
    def num_labels(self) -> int:
        """Number of classes, the length of `id2label`."""
        return len(self.id2label)

    @num_labels.setter
    def num_labels(self, count: int) -> None:
        if count != len(self.id2label):
            self._set_labels(count, None, None)

    @classmethod
    def from_dict(cls: type[Config], values: Mapping[str, Any], **overrides: Any) -> Config:
        """Build from the content of a `config.json`; `overrides` replace its values.

        Raises:
            ValueError: A value is impossible, or a key looks like a typing error.
        """
        merged = {**values, **overrides}
        named = len(merged.get("id2label") or {})
        if "num_labels" in overrides and "id2label" not in overrides and named != overrides["num_labels"]:
            merged.pop("id2label", None)  # the names of other classes don't apply
            merged.pop("label2id", None)
        return cls(**merged)

    @classmethod
    def from_json_file(cls: type[Config], json_file: str | Path, **overrides: Any) -> Config:
        """Read a `config.json`.

        Raises:
            OSError: The file can't be read or is no JSON object.
            ValueError: A value in it is impossible; the message names the file.
        """
        path = Path(json_file)
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise OSError(f"{path}: not a valid configuration file ({error})") from error
        if not isinstance(values, dict):
            raise OSError(f"{path}: expected a JSON object, found {type(values).__name__}")
        try:
            return cls.from_dict(values, **overrides)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def from_pretrained(
        cls: type[Config],
        name_or_path: str | PathLike[str],
        *,
        cache_dir: str | PathLike[str] | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        **overrides: Any,
    ) -> Config:
        """Read the configuration of a published name, a repository, a folder, or a single file.

        Raises:
            OSError: There is no such place, or it holds no configuration.
            ValueError: A value is impossible, or a key looks like a typing error.
        """
        location = locate(
            name_or_path,
            shortcuts=cls.repositories,
            cache_dir=cache_dir,
            revision=revision,
            local_files_only=local_files_only,
        )
        chosen = location.chosen
        named = chosen is not None and chosen.suffix == ".json" and not chosen.name.endswith(".index.json")
        path = chosen if named else location.first(cls.filenames)
        if path is None:
            raise OSError(f"{location.description}: no configuration; looked for {' and '.join(cls.filenames)}")
        return cls.from_json_file(path, **overrides)

    def save_pretrained(self, save_directory: str | Path) -> Path:
        """Write `config.json` into the folder, which is made when missing; returns the path."""
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        return self.to_json_file(folder / CONFIG_NAME)

    def to_dict(self) -> dict[str, Any]:
        """All values, as `config.json` holds them; `from_dict` is the inverse."""
        values = copy.deepcopy({name: value for name, value in vars(self).items() if not name.startswith("_")})
        return {"model_type": self.model_type, "num_labels": self.num_labels, **values}

    def to_json_string(self) -> str:
        """The values as JSON text, keys in alphabetical order.

        Raises:
            ValueError: A value has no JSON form, such as a function given as `hidden_act`.
        """
        values = self.to_dict()
        if functions := [key for key, value in values.items() if callable(value)]:
            raise ValueError(f"{functions[0]}: a function can't be saved; set it to a name first")
        return json.dumps(values, indent=2, sort_keys=True) + "\n"

    def to_json_file(self, json_file_path: str | Path) -> Path:
        """Write the values to that file, in one step; returns the path."""
        path = Path(json_file_path)
        write_text(path, self.to_json_string())
        return path

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # configurations can change

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in sorted(self.to_dict().items()))
        return f"{type(self).__name__}({values})"


def at_least(minimum: float, **values: float) -> None:
    """Raise `ValueError`, naming the field, unless each value is a number of at least `minimum`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value < minimum:
            raise ValueError(f"{name}: {value!r}, must be a number of at least {minimum}")


def share(**values: float) -> None:
    """Raise `ValueError`, naming the field, unless each value is a share from 0.0 to 1.0."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
            raise ValueError(f"{name}: {value!r}, must be from 0.0 to 1.0")
