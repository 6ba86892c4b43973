"""Each head learns a tiny task: from the loss of guessing to a fraction of it, in seconds, from a fixed seed.

A head that is wired to the wrong place, a gradient that is cut off, or a label that is shifted by one passes every test
of shapes and fails here. Each task needs the encoder: the answer depends on a token that the head does not see.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from pytorch_transformers import (
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)

from ..battery import Inputs
from .tiny import tiny_config

Batch = tuple[Inputs, Inputs]
BATCH, LENGTH, CLS, MASK = 32, 6, 1, 2
FIRST, LAST = 10, 14  # ids of ordinary tokens


def _tokens(generator: torch.Generator, shape: tuple[int, ...]) -> Tensor:
    ids = torch.randint(FIRST, LAST, shape, generator=generator)
    ids[..., 0] = CLS
    return ids


def _mask(generator: torch.Generator) -> Tensor:
    """Rows of 3 to `LENGTH` tokens."""
    lengths = torch.randint(3, LENGTH + 1, (BATCH,), generator=generator)
    return (torch.arange(LENGTH) < lengths[:, None]).long()


def sequence(generator: torch.Generator) -> Batch:
    """Which of three tokens stands in the second place?"""
    ids = _tokens(generator, (BATCH, LENGTH))
    labels = torch.randint(0, 3, (BATCH,), generator=generator)
    ids[:, 1] = FIRST + labels
    return {"input_ids": ids, "attention_mask": _mask(generator)}, {"labels": labels}


def regression(generator: torch.Generator) -> Batch:
    """A number that depends on the second token."""
    inputs, labels = sequence(generator)
    return inputs, {"labels": labels["labels"].float() - 1.0}


def next_sentence(generator: torch.Generator) -> Batch:
    """Does the second segment hold the odd token?"""
    inputs, _ = sequence(generator)
    labels = torch.randint(0, 2, (BATCH,), generator=generator)
    inputs["token_type_ids"] = (torch.arange(LENGTH) >= 2).long().expand(BATCH, LENGTH).contiguous()
    inputs["input_ids"][:, 2] = 20 + labels
    return inputs, {"next_sentence_label": labels}


def choice(generator: torch.Generator) -> Batch:
    """The one choice of four with the odd token is right."""
    ids = _tokens(generator, (BATCH, 4, LENGTH))
    labels = torch.randint(0, 4, (BATCH,), generator=generator)
    ids[torch.arange(BATCH), labels, 2] = 20
    return {"input_ids": ids}, {"labels": labels}


def tokens(generator: torch.Generator) -> Batch:
    """The class of a token is that of the token before it."""
    ids = _tokens(generator, (BATCH, LENGTH)).clamp(max=FIRST + 2)
    labels = torch.full_like(ids, -100)
    labels[:, 2:] = ids[:, 1:-1] - FIRST
    mask = _mask(generator)
    return {"input_ids": ids, "attention_mask": mask}, {"labels": torch.where(mask.bool(), labels, -100)}


def span(generator: torch.Generator) -> Batch:
    """The span lies between two marks."""
    ids = _tokens(generator, (BATCH, LENGTH))
    start = torch.randint(1, 3, (BATCH,), generator=generator)
    end = start + torch.randint(1, 3, (BATCH,), generator=generator)
    ids[torch.arange(BATCH), start], ids[torch.arange(BATCH), end] = 20, 21
    return {"input_ids": ids}, {"start_positions": start, "end_positions": end}


def masked(generator: torch.Generator) -> Batch:
    """A masked token equals the other tokens of its row."""
    word = torch.randint(FIRST, LAST, (BATCH, 1), generator=generator)
    ids = word.expand(BATCH, LENGTH).clone()
    ids[:, 0] = CLS
    labels = torch.full_like(ids, -1)
    place = torch.randint(1, 3, (BATCH, 1), generator=generator)
    labels.scatter_(1, place, word)
    ids.scatter_(1, place, MASK)
    return {"input_ids": ids, "attention_mask": _mask(generator)}, {"labels": labels}


def pretraining(generator: torch.Generator) -> Batch:
    """Both at once: masked tokens, and a pair that is random if its last token is odd."""
    inputs, labels = masked(generator)
    pair = torch.randint(0, 2, (BATCH,), generator=generator)
    inputs["input_ids"][:, 3] = torch.where(pair == 1, 20, inputs["input_ids"][:, 3])
    inputs["attention_mask"][:, 3] = 1
    return inputs, {"masked_lm_labels": labels["labels"], "next_sentence_label": pair}


TASKS: list[Any] = [
    pytest.param(BertForSequenceClassification, sequence, {}, id="sequence"),
    pytest.param(BertForSequenceClassification, regression, {"num_labels": 1}, id="regression"),
    pytest.param(BertForNextSentencePrediction, next_sentence, {}, id="next-sentence"),
    pytest.param(BertForMultipleChoice, choice, {}, id="choice"),
    pytest.param(BertForTokenClassification, tokens, {}, id="tokens"),
    pytest.param(BertForQuestionAnswering, span, {}, id="span"),
    pytest.param(BertForMaskedLM, masked, {}, id="masked"),
    pytest.param(BertForPreTraining, pretraining, {}, id="pretraining"),
]


@pytest.mark.parametrize(("model_class", "task", "fields"), TASKS)
def test_head_learns(model_class: type[Any], task: Callable[[torch.Generator], Batch], fields: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = model_class(tiny_config(num_hidden_layers=2, hidden_dropout_prob=0.05, **fields)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(1)
    held_out = task(torch.Generator().manual_seed(2))

    def evaluate() -> float:
        model.eval()
        with torch.no_grad():
            loss = model(**held_out[0], **held_out[1]).loss
        model.train()
        return float(loss)

    before = evaluate()
    for _ in range(130):
        inputs, labels = task(generator)
        optimizer.zero_grad()
        model(**inputs, **labels).loss.backward()
        optimizer.step()
    after = evaluate()
    assert after < 0.15 * before, f"held-out loss {before:.3f} -> {after:.3f}"


def test_overfits_with_only_labelled_places() -> None:
    """Training without the full logits follows the same path as training with them, step for step."""
    losses: list[list[float]] = []
    for switches in ({}, {"output_logits": False}):
        torch.manual_seed(0)
        model = BertForMaskedLM(tiny_config(num_hidden_layers=1)).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        inputs, labels = masked(torch.Generator().manual_seed(1))
        losses.append([])
        for _ in range(10):
            optimizer.zero_grad()
            loss = model(**inputs, **labels, **switches).loss
            loss.backward()
            optimizer.step()
            losses[-1].append(float(loss.detach()))
    full, lean = losses
    assert full[-1] < 0.8 * full[0]
    assert lean == pytest.approx(full, abs=1e-4)  # rounding (1e-7) grows over ten large steps
