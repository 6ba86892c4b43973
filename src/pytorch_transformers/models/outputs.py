"""What models return: a tuple of what there is, whose elements also have names.

A field that is absent (a loss without labels, attentions that were not asked for) is None by name and no element:
`loss, logits = model(ids, labels=labels)` and `logits, = model(ids)` both unpack. Each set of present fields has a
class of its own below the public one, made when the public one is, so an output is an ordinary named tuple to
`DataParallel`, `torch.compile`, `torch.export` and `pickle`. There are hundreds of them, and imports make them all: a
field that is always present is declared as such, which halves their number.
"""

import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations
from typing import Any, ClassVar

from torch import Tensor

States = tuple[Tensor, ...]


class ModelOutput(tuple[Any, ...]):
    """Base of all outputs; a subclass lists its possible fields in order as annotations.

    A field of type `Tensor` is always present, others may be absent. A subclass may declare an inherited field anew.

    Values are reached by name (`out.logits`, `out["logits"]`), index, slice, and iteration over those present.
    """

    #: All fields in order, whether present or not.
    possible_fields: ClassVar[tuple[str, ...]] = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    _optional: ClassVar[tuple[str, ...]] = ()
    _variants: ClassVar[dict[tuple[str, ...], type["ModelOutput"]]] = {}

    def __init_subclass__(cls) -> None:
        if "_fields" in cls.__dict__:  # a variant made below
            return
        kinds = {name: kind for name, kind in inspect.get_annotations(cls).items() if "ClassVar" not in str(kind)}
        inherited = [name for name in cls._optional if name not in kinds]
        cls._optional = (*inherited, *[name for name, kind in kinds.items() if kind is not Tensor])
        cls.possible_fields = tuple(dict.fromkeys((*cls.possible_fields, *kinds)))
        cls._variants = {}
        for size in range(len(cls._optional) + 1):
            for absent in combinations(cls._optional, size):
                present = tuple([name for name in cls.possible_fields if name not in absent])
                cls._variants[present] = _variant(cls, present)

    def __new__(cls, *values: Any) -> "ModelOutput":
        """One value for each field of the variant; `of` builds an output from names."""
        return tuple.__new__(cls, values)

    @classmethod
    def of(cls, **fields: Any) -> Any:
        """Build the output that has those of `fields` which are not None.

        Raises:
            TypeError: One that is always present is missing.
        """
        present = tuple([name for name in cls.possible_fields if fields.get(name) is not None])
        if present not in cls._variants:
            missing = [name for name in cls.possible_fields if name not in (*present, *cls._optional)]
            raise TypeError(f"{cls.__name__}: {missing[0]} must not be None")
        return cls._variants[present](*[fields[name] for name in present])

    @classmethod
    def _make(cls, values: Iterable[Any]) -> "ModelOutput":
        return cls(*values)

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.possible_fields:
                raise KeyError(f"{type(self).__name__} has no field {key!r}; it has {', '.join(self._fields)}")
            if key not in self._fields:
                raise KeyError(f"{key!r} is absent from this {type(self).__name__}; present: {', '.join(self._fields)}")
            return tuple.__getitem__(self, self._fields.index(key))
        return tuple.__getitem__(self, key)

    def __contains__(self, key: object) -> bool:
        return key in self._fields if isinstance(key, str) else tuple.__contains__(self, key)

    def keys(self) -> tuple[str, ...]:
        """Names of the fields that are present."""
        return self._fields

    def values(self) -> tuple[Any, ...]:
        """The values that are present, the same as iterating."""
        return tuple(self)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Pairs of name and value of what is present."""
        return iter(zip(self._fields, self, strict=True))

    def to_tuple(self) -> tuple[Any, ...]:
        """A plain tuple of what is present."""
        return tuple(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self).__mro__[1], self._fields, tuple(self), self.__dict__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


def _variant(cls: type[ModelOutput], present: tuple[str, ...]) -> type[ModelOutput]:
    """The class of outputs of kind `cls` that have exactly the fields `present`."""
    body: dict[str, Any] = {"_fields": present, "__doc__": cls.__doc__, "__module__": cls.__module__}
    for name in cls.possible_fields:
        body[name] = _item(present.index(name)) if name in present else None
    return type(cls.__name__, (cls,), body)


@cache
def _item(index: int) -> property:
    """What reads the value at a place; one for all variants, for there are hundreds of those."""
    return property(lambda output: tuple.__getitem__(output, index))


def _rebuild(
    cls: type[ModelOutput], present: tuple[str, ...], values: tuple[Any, ...], extra: dict[str, Any]
) -> ModelOutput:
    output = cls._variants[present](*values)
    output.__dict__.update(extra)
    return output


class BaseModelOutputWithPooling(ModelOutput):
    """Output of an encoder: [B, T, H] and [B, H]."""

    last_hidden_state: Tensor
    pooler_output: Tensor | None
    hidden_states: States | None
    attentions: States | None


class BertForPreTrainingOutput(ModelOutput):
    """Output of masked-language and next-sentence heads: loss [], [B, T, V] and [B, 2].

    `masked_lm_loss` and `next_sentence_loss` are the parts of `loss` whose labels were given.
    """

    loss: Tensor | None
    prediction_logits: Tensor | None
    seq_relationship_logits: Tensor
    hidden_states: States | None
    attentions: States | None
    masked_lm_loss: "ClassVar[Tensor | None]" = None
    next_sentence_loss: "ClassVar[Tensor | None]" = None


class LossAndLogits(ModelOutput):
    """Output of a head with one kind of logits."""

    loss: Tensor | None
    logits: Tensor | None
    hidden_states: States | None
    attentions: States | None


class MaskedLMOutput(LossAndLogits):
    """Output of a masked-language head: loss [] and logits [B, T, V]."""

    @property
    def prediction_scores(self) -> Tensor | None:
        """The published name of `logits`."""
        return self.logits


class NextSentencePredictorOutput(LossAndLogits):
    """Output of a next-sentence head: loss [] and logits [B, 2], 0 for "is next", 1 for "is random"."""

    logits: Tensor

    @property
    def seq_relationship_logits(self) -> Tensor:
        """The published name of `logits`."""
        return self.logits


class SequenceClassifierOutput(LossAndLogits):
    """Output of a classifier of whole inputs: loss [] and logits [B, C]."""

    logits: Tensor


class TokenClassifierOutput(LossAndLogits):
    """Output of a classifier of tokens: loss [] and logits [B, T, C]."""

    logits: Tensor


class MultipleChoiceModelOutput(LossAndLogits):
    """Output of a multiple-choice head: loss [] and logits [B, C], one score a choice."""

    logits: Tensor


class QuestionAnsweringModelOutput(ModelOutput):
    """Output of a span head: loss [], start_logits [B, T], end_logits [B, T]."""

    loss: Tensor | None
    start_logits: Tensor
    end_logits: Tensor
    hidden_states: States | None
    attentions: States | None


class BaseModelOutputWithPast(ModelOutput):
    """Output of a decoder: [B, T, H], and keys and values of each layer, [2, B, A, T, D], or a cache."""

    last_hidden_state: Tensor
    past: Any
    hidden_states: States | None
    attentions: States | None


class CausalLMOutput(ModelOutput):
    """Output of a language model: loss [] and logits [B, T, V]; `past` as in `BaseModelOutputWithPast`."""

    loss: Tensor | None
    logits: Tensor | None
    past: Any
    hidden_states: States | None
    attentions: States | None


class DoubleHeadsModelOutput(ModelOutput):
    """Output of a language model with a multiple-choice head: losses [], logits [B, C, T, V] and [B, C]."""

    lm_loss: Tensor | None
    mc_loss: Tensor | None
    lm_logits: Tensor
    mc_logits: Tensor
    past: Any
    hidden_states: States | None
    attentions: States | None


class TransfoXLModelOutput(ModelOutput):
    """Output of the Transformer-XL decoder: [B, T, H]; what to remember, [M, B, H] for each layer, or a cache."""

    last_hidden_state: Tensor
    mems: Any
    hidden_states: States | None
    attentions: States | None


class TransfoXLLMHeadModelOutput(ModelOutput):
    """Output of the Transformer-XL language model: loss of each token [B, T], or log-probabilities [B, T, V]."""

    loss: Tensor | None
    prediction_scores: Tensor | None
    mems: Any
    hidden_states: States | None
    attentions: States | None

    @property
    def logits(self) -> Tensor | None:
        """The name of `prediction_scores` in other families."""
        return self.prediction_scores
