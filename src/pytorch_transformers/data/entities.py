"""How well entities were found: precision, recall and F1 of whole ones, by seqeval. Needs no torch to be imported."""

from collections.abc import Sequence
from typing import Any


def entity_metrics(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, float]:
    """How many entities were found, with their words and type right, by seqeval: all types together.

    Args:
        gold: The tags of each sentence. An `I-` that follows no word of its type begins an entity, so IOB1 and IOB2
            give the same.
        predicted: The predicted tags.

    Returns:
        `precision`, `recall` and `f1` of entities, and `accuracy` of words, from 0 to 1; 0 where there is no entity to
        divide by.

    Raises:
        ImportError: seqeval is not installed.
        ValueError: There are no words, or not as many tags as predicted ones.
    """
    pair = _same_sentences(gold, predicted)
    metrics = _seqeval()
    precision, recall, f1, _ = metrics.sequence_labeling.precision_recall_fscore_support(
        *pair, average="micro", zero_division=0
    )
    accuracy = metrics.accuracy_score(*pair)
    return {"precision": float(precision), "recall": float(recall), "f1": float(f1), "accuracy": float(accuracy)}


def entity_report(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, dict[str, float]]:
    """The metrics of each type of entity.

    Args:
        gold: See `entity_metrics`.
        predicted: See `entity_metrics`.

    Returns:
        For each type `precision`, `recall`, `f1`, and `support`, the number of entities in `gold`.

    Raises:
        ImportError: seqeval is not installed.
        ValueError: See `entity_metrics`.
    """
    sequence_labeling = _seqeval().sequence_labeling
    pair = _same_sentences(gold, predicted)
    types = sorted({entity[0] for tags in pair for entity in sequence_labeling.get_entities(tags)})
    scores = sequence_labeling.precision_recall_fscore_support(*pair, average=None, zero_division=0)
    names = ("precision", "recall", "f1", "support")
    return {
        kind: {name: float(value) for name, value in zip(names, values, strict=True)}
        for kind, *values in zip(types, *scores, strict=True)
    }


def _same_sentences(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> tuple[list[list[str]], list[list[str]]]:
    if [len(row) for row in gold] != [len(row) for row in predicted] or not any(map(len, gold)):
        raise ValueError(
            f"{sum(map(len, gold))} tags in {len(gold)} sentences and {sum(map(len, predicted))} predicted ones in "
            f"{len(predicted)}; each word needs both, and there must be one"
        )
    return [list(row) for row in gold], [list(row) for row in predicted]


def _seqeval() -> Any:
    try:
        import seqeval.metrics
    except ImportError as error:
        raise ImportError("entities are scored by seqeval; pip install 'pytorch-transformers[train]'") from error
    return seqeval.metrics
