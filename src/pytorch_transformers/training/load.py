"""The model that a training, or an evaluation, begins with."""

from typing import Any

from ..models.family import family_of
from ..models.record import Family
from .task import Source, Task


def load_for(task: Task, source: Source, place: str | None, *, training: bool) -> tuple[Any, Any]:
    """The model with the head of the task, and the tokenizer, with the data prepared.

    Args:
        task: What is done with it.
        source: What the user named.
        place: Where the model is: that of `source`, or the folder of a run. None makes a new one.
        training: Whether it is going to be trained.

    Raises:
        ValueError: The family has no such head; or weights would be new, and are not going to be trained.
        OSError: Something is not there, or can't be read.
    """
    if place is None:
        _check_new(source, training)
    family = _family(task, source, place)
    casing = {} if source.do_lower_case is None else {"do_lower_case": source.do_lower_case}
    at_source = place == source.model
    where = (source.tokenizer if at_source else None) or place
    tokenizer = family.load("tokenizer").from_pretrained(where, **source.place, **casing)
    task.prepare(tokenizer, source, training=training)
    kind = family.load(task.head)
    config = source.config if at_source else None
    if place is None:
        model = _new(kind, tokenizer, task, source)
    else:
        model, info = kind.from_pretrained(
            place,
            config=config,
            output_loading_info=True,
            ignore_mismatched_sizes=training,
            **source.place,
            **task.config(),
        )
        _check_shapes(place, model, info["mismatched_keys"])
        if info["missing_keys"] and not training:
            raise ValueError(
                f"{place}: has no head for this task ({', '.join(info['missing_keys'][:3])} would be new and random); "
                "train it first (do_train), or give the folder of a trained model"
            )
        if not training:
            _check_head(place, model, task)
    task.adjust(model)
    return model, tokenizer


def _check_head(place: str, model: Any, task: Task) -> None:
    """Raise `ValueError` where the weights are those of another head that only has the same names and shapes."""
    saved = model.config.architectures
    pretrained = task.head == "masked_lm" and saved == ["BertForPreTraining"]
    if saved and type(model).__name__ not in saved and not pretrained:
        raise ValueError(
            f"{place}: is a {', '.join(saved)}, and this task is for a {type(model).__name__}; train it first "
            "(do_train), or give the folder of a model that was trained for this task"
        )


def _check_shapes(place: str, model: Any, mismatched: list[tuple[str, tuple[int, ...], tuple[int, ...]]]) -> None:
    """Let a head be new that was made for another number of classes, and nothing else.

    Raises:
        ValueError: The encoder has other sizes than the weights.
    """
    for name, saved, wanted in mismatched:
        if name.startswith(f"{model.base_model_prefix}."):
            raise ValueError(
                f"{place}: {name} is {list(saved)} and the configuration wants {list(wanted)}; give the configuration "
                "of these weights (--config)"
            )


def _family(task: Task, source: Source, place: str | None) -> Family:
    """The family of the task, after a look whether the model, or the configuration of a new one, is of it."""
    where = source.config or place
    assert where is not None
    family = family_of(where, **source.place)
    if family.name != task.family:
        raise ValueError(f"{where}: is of {family.name}; this task is for {task.family}, which has its head")
    return family


def _check_new(source: Source, training: bool) -> None:
    """Raise `ValueError` unless there is all that a new model needs."""
    if not training:
        raise ValueError("model: missing (--model); there is nothing to evaluate without one")
    for name, value, why in (
        ("config", source.config, "its sizes, as config.json has them"),
        ("tokenizer", source.tokenizer, "a tokenizer"),
    ):
        if value is None:
            raise ValueError(
                f"{name}: missing (--{name}); without a model (--model) to begin with, a new one needs {why}"
            )


def _new(kind: Any, tokenizer: Any, task: Task, source: Source) -> Any:
    """A model with new weights, and as many words as the tokenizer has."""
    sizes = kind.config_class.from_pretrained(source.config, **source.place)
    if sizes.vocab_size != len(tokenizer):
        raise ValueError(
            f"{source.config}: vocab_size is {sizes.vocab_size} and the tokenizer has {len(tokenizer)} tokens; make "
            "them equal"
        )
    return kind(kind.overridden(sizes, dict(task.config())))
