"""`Family`: what the rest of the library needs to know of a model family. Needs no torch."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..hub import Location, locate
from .config import PretrainedConfig

if TYPE_CHECKING:
    from ..checkpoint.keymap import KeyMap


@dataclass(frozen=True)
class Family:
    """One family of models; its classes are named by module and imported at first use.

    Attributes:
        name: Folder under `models/`, also what `--family` takes.
        config_class: Its configuration.
        repositories: Shortcut name -> repository on the hub.
        classes: Kind of class ("model", "tokenizer", "masked_lm", …) -> "module:Class" below the folder.
        tokenizer_files: Names of the files that the tokenizer reads, those that may be missing included; the first
            tells the family where nothing else does.
        original_files: Those of them that the original program has -> what it calls them.
        config_only: Names of configuration files that only this family has.
        config_fields: Which fields the configurations of this family have, and no other's have (False: which not), for
            those that were saved without a `model_type`; {} where another family has the same.
        corpus_files: What a corpus may consist of beside the vocabulary, the files of one form together.
        published_sizes: Whether an original checkpoint without a configuration is one of the published size.
    """

    name: str
    config_class: type[PretrainedConfig]
    repositories: Mapping[str, str]
    classes: Mapping[str, str]
    tokenizer_files: tuple[str, ...]
    original_files: Mapping[str, str]
    config_only: tuple[str, ...] = ()
    config_fields: Mapping[str, bool] = field(default_factory=dict)
    corpus_files: tuple[tuple[str, ...], ...] = ()
    published_sizes: bool = False

    def load(self, kind: str) -> Any:
        """The class of that kind.

        Raises:
            ValueError: The family has none.
        """
        if kind not in self.classes:
            raise ValueError(f"{self.name} has no {kind.replace('_', ' ')}; it has {', '.join(self.classes)}")
        module, _, name = self.classes[kind].partition(":")
        return getattr(importlib.import_module(f"{__package__}.{self.name}.{module}"), name)

    @property
    def heads(self) -> tuple[str, ...]:
        """Kinds of model, from the encoder alone to every head."""
        return tuple(kind for kind in self.classes if kind != "tokenizer")

    @property
    def conversion(self) -> ModuleType:
        """The module `convert` of the family."""
        return importlib.import_module(f"{__package__}.{self.name}.convert")

    @property
    def key_map(self) -> "KeyMap":
        """The names of the original's checkpoints and ours, in rows."""
        rows: KeyMap = self.conversion.KEY_MAP
        return rows

    def locate(self, name_or_path: str, **place: Any) -> Location:
        """See `hub.locate`, with the shortcut names of the family."""
        return locate(name_or_path, shortcuts=self.repositories, **place)
