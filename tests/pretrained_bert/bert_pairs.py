"""A BERT of the published 0.6.2 and one of ours with the same weights, and what to ask both of them.

Sizes are odd and different from each other, so that a transposed or misread axis can't go unnoticed.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from published import published
from pytorch_pretrained_bert import modeling

VOCAB, BATCH, LENGTH, CHOICES, CLASSES, POSITIONS = 99, 4, 7, 3, 5, 20
SIZES: dict[str, Any] = {
    "hidden_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 37,
    "max_position_embeddings": POSITIONS,
    "type_vocab_size": 3,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.2,
}
#: Largest difference of numbers about 1 that float32 went through some 30 operations for, in another order.
ATOL = 1e-6
#: The same for the states: they are about 3, and so is their rounding.
STATES = 1e-5


class Kind(NamedTuple):
    """A class of models.

    Attributes:
        arguments: What its constructor takes after the configuration.
        labels: Name of each label argument of `forward` -> shape and number of classes; negative ones are drawn too.
        choices: Whether inputs are [B, C, T].
    """

    arguments: tuple[int, ...] = ()
    labels: dict[str, tuple[tuple[int, ...], int]] = {}  # noqa: RUF012
    choices: bool = False


_WORDS = ((BATCH, LENGTH), VOCAB)
KINDS: dict[str, Kind] = {
    "BertModel": Kind(),
    "BertForPreTraining": Kind((), {"masked_lm_labels": _WORDS, "next_sentence_label": ((BATCH,), 2)}),
    "BertForMaskedLM": Kind((), {"masked_lm_labels": _WORDS}),
    "BertForNextSentencePrediction": Kind((), {"next_sentence_label": ((BATCH,), 2)}),
    "BertForSequenceClassification": Kind((CLASSES,), {"labels": ((BATCH,), CLASSES)}),
    "BertForMultipleChoice": Kind((CHOICES,), {"labels": ((BATCH,), CHOICES)}, choices=True),
    "BertForTokenClassification": Kind((CLASSES,), {"labels": ((BATCH, LENGTH), CLASSES)}),
    "BertForQuestionAnswering": Kind((), {"start_positions": ((BATCH,), LENGTH), "end_positions": ((BATCH,), LENGTH)}),
}
HEADS = [name for name, kind in KINDS.items() if kind.labels]


def original() -> Any:
    """The module `modeling` of 0.6.2."""
    return published("pytorch_pretrained_bert", "modeling")


def config(module: Any = modeling, **changes: Any) -> Any:
    """The configuration of both."""
    return module.BertConfig(VOCAB, **{**SIZES, **changes})


def ours(name: str, **changes: Any) -> Any:
    """One of our models alone, in evaluation mode. Every weight is drawn: among zeros no swapped pair could be seen."""
    torch.manual_seed(0)
    model = getattr(modeling, name)(config(**changes), *KINDS[name].arguments).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.2 * torch.randn_like(parameter) + (1.0 if parameter.ndim == 1 else 0.0))
    return model


def pair(name: str, **changes: Any) -> tuple[Any, Any]:
    """Ours and theirs with the same weights, in evaluation mode; the names of all weights are equal."""
    theirs = getattr(original(), name)(config(original(), **changes), *KINDS[name].arguments).eval()
    mine = ours(name, **changes)
    theirs.load_state_dict(mine.state_dict())
    return mine, theirs


def inputs(name: str = "BertModel", seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, segments and a mask with padding, in the order of 0.6.2."""
    draw = torch.Generator().manual_seed(seed)
    shape = (BATCH, CHOICES, LENGTH) if KINDS[name].choices else (BATCH, LENGTH)
    ids, segments = (torch.randint(0, limit, shape, generator=draw) for limit in (VOCAB, SIZES["type_vocab_size"]))
    real = torch.randint(1, LENGTH + 1, shape[:-1], generator=draw)
    real.view(-1)[0] = LENGTH
    return ids, segments, (torch.arange(LENGTH) < real[..., None]).long()


def labels(name: str, seed: int = 1) -> dict[str, Tensor]:
    """Labels of each kind. Words to guess are -1 at some tokens; 0.6.2 has no such labels elsewhere."""
    draw = torch.Generator().manual_seed(seed)
    found = {}
    for label, (shape, classes) in KINDS[name].labels.items():
        found[label] = torch.randint(0, classes, shape, generator=draw)
        if classes == VOCAB:
            found[label][torch.rand(shape, generator=draw) < 0.3] = -1
    return found


def flat(output: Any) -> Iterator[Tensor]:
    """The tensors of a result, in order."""
    if isinstance(output, Tensor):
        yield output
    else:
        assert type(output) in (list, tuple), type(output)
        for part in output:
            yield from flat(part)


def shape_of(output: Any) -> Any:
    """How a result is nested, and the shapes in it."""
    if isinstance(output, Tensor):
        return tuple(output.shape)
    return type(output), [shape_of(part) for part in output]


def assert_equal(mine: Any, theirs: Any, *, atol: float = ATOL) -> None:
    """The same nesting, shapes and numbers."""
    assert shape_of(mine) == shape_of(theirs)
    for one, other in zip(flat(mine), flat(theirs), strict=True):
        torch.testing.assert_close(one, other, rtol=ATOL, atol=atol)


def gradients(model: nn.Module) -> dict[str, Tensor | None]:
    """The gradient of each weight, None where the loss doesn't depend on it."""
    return {name: weight.grad for name, weight in model.named_parameters()}


def assert_same_gradients(mine: nn.Module, theirs: nn.Module, *, atol: float = ATOL) -> None:
    """Of every weight; none is without one on one side only."""
    found, expected = gradients(mine), gradients(theirs)
    assert found.keys() == expected.keys()
    assert any(gradient is not None for gradient in expected.values())
    for name, gradient in expected.items():
        if gradient is None:
            assert found[name] is None, name
        else:
            torch.testing.assert_close(found[name], gradient, rtol=1e-5, atol=atol, msg=f"gradients of {name} differ")
