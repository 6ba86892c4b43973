"""`AutoConfig`, `AutoTokenizer`, `AutoModel…`: the class that a checkpoint asks for, found through `FAMILIES`."""

from os import PathLike
from typing import Any, ClassVar

from .config import PretrainedConfig
from .family import family_of, family_of_config

_PLACE = ("cache_dir", "revision", "local_files_only")


def _place(options: dict[str, Any]) -> dict[str, Any]:
    return {key: options[key] for key in _PLACE if key in options}


class AutoConfig:
    """Reads the configuration of any family."""

    @classmethod
    def from_pretrained(cls, name_or_path: str | PathLike[str], **options: Any) -> PretrainedConfig:
        """See `PretrainedConfig.from_pretrained`; the result is of the family's class."""
        return family_of(name_or_path, **_place(options)).config_class.from_pretrained(name_or_path, **options)


class _Auto:
    #: Kinds of class, the first that the family has.
    kinds: ClassVar[tuple[str, ...]]

    @classmethod
    def from_pretrained(cls, name_or_path: str | PathLike[str], *args: Any, **options: Any) -> Any:
        """See `from_pretrained` of the family's class, which is what it returns; a `config` decides the family too."""
        config = options.get("config")
        if isinstance(config, PretrainedConfig):
            family = family_of_config(config)
        else:
            family = family_of(name_or_path if config is None else config, **_place(options))
        kind = next((kind for kind in cls.kinds if kind in family.classes), cls.kinds[0])
        return family.load(kind).from_pretrained(name_or_path, *args, **options)


class AutoTokenizer(_Auto):
    """Loads the tokenizer of any family."""

    kinds = ("tokenizer",)


class AutoModel(_Auto):
    """Loads the model without a head of any family."""

    kinds = ("model",)


class AutoModelWithLMHead(_Auto):
    """Loads the language model of any family; for BERT that is the masked one."""

    kinds = ("language_model", "masked_lm")


class AutoModelForSequenceClassification(_Auto):
    """Loads a classifier of whole inputs, for families that have one."""

    kinds = ("sequence_classification",)


class AutoModelForQuestionAnswering(_Auto):
    """Loads a span model, for families that have one."""

    kinds = ("question_answering",)
