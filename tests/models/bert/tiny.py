"""A tiny BERT of odd sizes, its inputs and labels: what all tests of the family build on.

Sizes are odd and different from each other, so that a transposed or misread axis cannot go unnoticed (the original's
tests do the same): batch 13, length 7, hidden 40 = 5 heads of 8, inner width 37, vocabulary 99, 3 segment types.
"""

from typing import Any

import torch
from torch import Tensor

from pytorch_transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    BertPreTrainedModel,
)

from ..battery import Case, Inputs

VOCAB, HIDDEN, HEADS, LAYERS, INNER, POSITIONS, SEGMENTS = 99, 40, 5, 3, 37, 20, 3
BATCH, LENGTH, CHOICES, LABELS = 13, 7, 4, 3

HEAD_MODELS: tuple[type[Any], ...] = (
    BertForPreTraining,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForSequenceClassification,
    BertForMultipleChoice,
    BertForTokenClassification,
    BertForQuestionAnswering,
)
MODELS: tuple[type[Any], ...] = (BertModel, *HEAD_MODELS)


def tiny_config(**overrides: Any) -> BertConfig:
    """No dropout, so that training and evaluation agree."""
    fields: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": SEGMENTS,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "num_labels": LABELS,
    }
    return BertConfig(**{**fields, **overrides})


def random_mask(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Real tokens first, at least one a row; the first row is full and, if there is a second, it is not."""
    length = shape[-1]
    lengths = torch.randint(1, length + 1, shape[:-1], generator=generator)
    lengths.view(-1)[0] = length
    if lengths.numel() > 1 and length > 1:
        lengths.view(-1)[1] = length - 1
    return (torch.arange(length) < lengths.unsqueeze(-1)).long()


def tiny_inputs(
    model_class: type[Any], batch: int = BATCH, length: int = LENGTH, seed: int = 0, *, mask: str = "right"
) -> Inputs:
    """Random ids and segments.

    `mask` is "none", "right" (padding at the end), "left" (in front) or "holes" (anywhere but the first place).
    """
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, CHOICES, length) if model_class is BertForMultipleChoice else (batch, length)
    inputs = {"input_ids": torch.randint(1, VOCAB, shape, generator=generator)}
    if mask == "right":
        inputs["attention_mask"] = random_mask(shape, generator)
    elif mask == "left":
        inputs["attention_mask"] = random_mask(shape, generator).flip(-1)
    elif mask == "holes":
        inputs["attention_mask"] = (torch.rand(shape, generator=generator) < 0.7).long()
        inputs["attention_mask"][..., 0] = 1
    inputs["token_type_ids"] = torch.randint(0, SEGMENTS, shape, generator=generator)
    return inputs


def real(inputs: Inputs) -> Tensor:
    """The mask as booleans, all true if there is none."""
    return inputs.get("attention_mask", torch.ones_like(inputs["input_ids"])).bool()


def tiny_labels(model_class: type[Any], inputs: Inputs, seed: int = 0, ignored: int = -1) -> Inputs:
    """Labels of the head; token labels are `ignored` at padding and at about half of the other places."""
    generator = torch.Generator().manual_seed(1000 + seed)
    ids = inputs["input_ids"]
    batch, length = ids.shape[0], ids.shape[-1]

    def draw(limit: int, shape: tuple[int, ...] = (batch,)) -> Tensor:
        return torch.randint(0, limit, shape, generator=generator)

    def per_token(limit: int) -> Tensor:
        kept = real(inputs) & (torch.rand(ids.shape, generator=generator) < 0.5)
        kept[0, 0] = True
        return torch.where(kept, draw(limit, tuple(ids.shape)), torch.full_like(ids, ignored))

    if model_class is BertForPreTraining:
        return {"masked_lm_labels": per_token(VOCAB), "next_sentence_label": draw(2)}
    if model_class is BertForMaskedLM:
        return {"labels": per_token(VOCAB)}
    if model_class is BertForNextSentencePrediction:
        return {"next_sentence_label": draw(2)}
    if model_class is BertForSequenceClassification:
        return {"labels": draw(LABELS)}
    if model_class is BertForMultipleChoice:
        return {"labels": draw(CHOICES)}
    if model_class is BertForTokenClassification:
        return {"labels": per_token(LABELS)}
    if model_class is BertForQuestionAnswering:
        return {"start_positions": draw(length), "end_positions": draw(length)}
    return {}


def output_shapes(model_class: type[Any], batch: int, length: int) -> dict[str, tuple[int, ...]]:
    """Fields without labels."""
    shapes: dict[type[Any], dict[str, tuple[int, ...]]] = {
        BertModel: {"last_hidden_state": (batch, length, HIDDEN), "pooler_output": (batch, HIDDEN)},
        BertForPreTraining: {
            "prediction_logits": (batch, length, VOCAB),
            "seq_relationship_logits": (batch, 2),
        },
        BertForMaskedLM: {"logits": (batch, length, VOCAB)},
        BertForNextSentencePrediction: {"logits": (batch, 2)},
        BertForSequenceClassification: {"logits": (batch, LABELS)},
        BertForMultipleChoice: {"logits": (batch, CHOICES)},
        BertForTokenClassification: {"logits": (batch, length, LABELS)},
        BertForQuestionAnswering: {"start_logits": (batch, length), "end_logits": (batch, length)},
    }
    return shapes[model_class]


def unused(model_class: type[Any]) -> str:
    """Heads over single tokens do not read the pooled vector."""
    heads = (BertForMaskedLM, BertForTokenClassification, BertForQuestionAnswering)
    return r"^bert\.pooler\." if model_class in heads else r"(?!)"


CASE = Case(
    config=tiny_config,
    base=BertModel,
    pretrained=BertPreTrainedModel,
    heads=HEAD_MODELS,
    inputs=tiny_inputs,
    labels=tiny_labels,
    outputs=output_shapes,
    max_length=POSITIONS,
    unused=unused,
    # q . (k + b) moves all scores of a query alike, and softmax does not see that.
    flat=r"attention\.self\.key\.bias$",
    modules=("pytorch_transformers.models.bert.model", "pytorch_transformers.models.bert.heads"),
    head_count=HEADS,
    layer_count=LAYERS,
    options={"hidden_dropout_prob": 0.3, "hidden_act": "gelu_tanh", "initializer_range": 0.07, "layer_norm_eps": 1e-5},
)
