"""`PretrainedConfig`: the sizes and switches of a model, read from and written to `config.json`. Needs no torch."""

import copy
import difflib
import json
import logging
from collections.abc import Collection, Iterable, Mapping
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from ..files import CONFIG_NAME, write_text
from ..hub import locate
from ..nn.values import whole_number

logger = logging.getLogger(__name__)

Config = TypeVar("Config", bound="PretrainedConfig")

#: How alike an unknown key and a known one must be to count as a typing error (difflib's ratio, 1.0 is equal).
_TYPO_LIKENESS: Final = 0.85
#: Keys that say how many classes there are; `_num_labels` is what transformers 2 and 3 wrote.
_LABEL_KEYS: Final = frozenset({"num_labels", "_num_labels", "id2label", "label2id"})
#: Keys of the file that `from_dict` is building from: unknown ones among them are other programs' and no mistake.
_keys_of_file: ContextVar[Collection[str]] = ContextVar("keys_of_file", default=())


class PretrainedConfig:
    """Base of the configurations: fields that every family has, and reading, checking and writing.

    A key that the family doesn't know is kept and written back, because checkpoints carry keys of other programs; it
    is readable as an attribute where the class has none of that name. One that a caller gives is mentioned in a
    warning. A key that nearly equals a known one is an error: a typing error would change nothing in silence.

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
    filenames: ClassVar[tuple[str, ...]] = (CONFIG_NAME,)

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
        published = others.pop("_num_labels", None)
        if num_labels is None and id2label is None:
            num_labels = published
        self._set_labels(num_labels, id2label, label2id)
        self._refuse_other_family(others.pop("model_type", None))
        self.refuse_typos(others)
        self._foreign = others
        read = _keys_of_file.get()
        if unknown := [key for key in others if key not in read]:
            logger.warning("%s: unknown keys, which change nothing: %s", type(self).__name__, ", ".join(unknown))

    if not TYPE_CHECKING:  # a type checker shall go on to find misspelt fields

        def __getattr__(self, name: str) -> Any:
            foreign = vars(self).get("_foreign", {})
            if name in foreign and not name.startswith("__"):  # protocols such as __deepcopy__ are no keys
                return foreign[name]
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")

    def _size_or_file(self, vocab_size: Any, default: int, others: dict[str, Any]) -> int | None:
        """The size of the vocabulary; None if its place held the path of a configuration, which was read instead.

        Args:
            vocab_size: What the first argument was.
            default: Its default.
            others: The remaining arguments; the published alias of the first is taken out.

        Raises:
            ValueError: The size was given twice, or is no whole number of at least 1.
            OSError: The file can't be read.
        """
        words = vocab_size
        for alias in [name for name, field in self.aliases.items() if field == "vocab_size" and name in others]:
            same, words = words, others.pop(alias)
            if same not in (words, default):
                raise ValueError(f"vocab_size is given twice, also by an alias: {same!r} and {words!r}")
        if not isinstance(words, str | Path):
            return whole_number("vocab_size", words, 1)
        vars(self).update(vars(self.from_json_file(words, **others)))
        return None

    def _refuse_other_family(self, found: str | None) -> None:
        """Weights of another family may fit by name and shape, and give wrong numbers."""
        known = [base.model_type for base in type(self).__mro__ if issubclass(base, PretrainedConfig)]
        if self.model_type and found not in (None, "", *known):
            raise ValueError(
                f"model_type: {found!r}, but {type(self).__name__} is for {self.model_type!r}; use the classes of that "
                f"family, or, if the model is {self.model_type!r} all the same, "
                f"config={type(self).__name__}.from_pretrained(..., model_type={self.model_type!r})"
            )

    def _set_labels(
        self,
        num_labels: int | None,
        id2label: Mapping[int | str, str] | None,
        label2id: Mapping[str, int] | None,
    ) -> None:
        count = None if num_labels is None else whole_number("num_labels", num_labels, 1)
        names = None if id2label is None else _class_names("id2label", id2label)
        inverse = _class_names("label2id", label2id) if label2id else None
        # Programs that set one of the two leave the other with its default names, which say nothing then.
        if names and inverse and names != inverse:
            if _default_names(len(inverse)) == inverse:
                inverse = None
            elif _default_names(len(inverse)) == names:
                names = None
            else:
                raise ValueError(f"id2label and label2id contradict each other: {id2label} and {label2id}")
        found = names or inverse or _default_names(count or 2)
        if count not in (None, len(found)):
            table = "id2label" if names else "label2id"
            raise ValueError(f"num_labels: {count}, but {table} names {len(found)} classes")
        self.id2label = found
        self.label2id = {label: index for index, label in found.items()}

    def refuse_typos(self, others: Iterable[str]) -> None:
        """Raise `ValueError` for a key that nearly equals a known one, and say which."""
        known = [name for name in vars(self) if not name.startswith("_")] + ["num_labels", *self.aliases]
        for key in others:
            if key.startswith("_"):  # some program's own note, such as _name_or_path
                continue
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
        values, overrides = cls._by_field(values), cls._by_field(overrides)
        replaced = {key for key in _LABEL_KEYS if overrides.get(key) is not None}
        same_number = len(values.get("id2label") or ()) == overrides.get("num_labels")
        if replaced and not (replaced == {"num_labels"} and same_number):
            # What the file says of other classes doesn't apply.
            values = {key: value for key, value in values.items() if key not in _LABEL_KEYS}
        token = _keys_of_file.set(values.keys())
        try:
            return cls(**{**values, **overrides})
        finally:
            _keys_of_file.reset(token)

    @classmethod
    def _by_field(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values with the fields' names in place of their aliases."""
        named: dict[str, Any] = {}
        for key, value in values.items():
            field = cls.aliases.get(key, key)
            if field in named and named[field] != value:
                raise ValueError(f"{field} is given twice, also by an alias: {named[field]!r} and {value!r}")
            named[field] = value
        return named

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
        own = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        values = copy.deepcopy({**self._foreign, **own})
        return {**values, "model_type": self.model_type, "num_labels": self.num_labels}

    def to_json_string(self) -> str:
        """The values as JSON text, keys in alphabetical order.

        Raises:
            ValueError: A value has no JSON form, such as a function given as `hidden_act`.
        """
        values = self.to_dict()
        for key, value in values.items():
            if not _has_json_form(value):
                raise ValueError(
                    f"{key}: {value!r} of type {type(value).__name__} can't be saved as JSON; set it to a name, a "
                    "number or None first"
                )
        return json.dumps(values, indent=2, sort_keys=True) + "\n"

    def to_json_file(self, json_file_path: str | Path) -> Path:
        """Write the values to that file, in one step; returns the path."""
        path = Path(json_file_path)
        write_text(path, self.to_json_string())
        return path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PretrainedConfig) and type(self) is type(other) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # configurations can change

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in sorted(self.to_dict().items()))
        return f"{type(self).__name__}({values})"


def _has_json_form(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _default_names(count: int) -> dict[int, str]:
    return {index: f"LABEL_{index}" for index in range(count)}


def _class_names(field: str, table: Any) -> dict[int, str]:
    """`id2label`, or `label2id` turned round, as number -> name, with the numbers 0, 1, 2, …."""
    if not isinstance(table, Mapping):
        form = "number -> name" if field == "id2label" else "name -> number"
        raise ValueError(f"{field}: expected {form}, found {table!r:.100}")  # noqa: TRY004  # as of any bad value
    names: dict[int, str] = {}
    for key, value in table.items():
        number, name = (key, value) if field == "id2label" else (value, key)
        if isinstance(number, str) and number.isdecimal():  # JSON has text keys only
            number = int(number)
        names[whole_number(f"{field}: number of a class", number, 0)] = str(name)
    if not names:
        raise ValueError(f"{field}: names no class; leave it out, or name at least one")
    if len(names) < len(table) or sorted(names) != list(range(len(names))):
        raise ValueError(f"{field}: the numbers must be 0 to {len(table) - 1}, each once, found {table}")
    if len(set(names.values())) < len(names):
        raise ValueError(f"{field}: each class needs a name of its own, found {table}")
    return dict(sorted(names.items()))
