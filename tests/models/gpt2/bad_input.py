"""Wrong input that both GPT families must refuse, beside what the battery of all families tries."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ..battery import Case, build
from .tiny import CHOICES, VOCAB, decoder_inputs, decoder_labels, has_choices


def check_wrong_kinds(case: Case, model_class: type[Any]) -> None:
    """A `TypeError` that names the argument, for each that is no tensor."""
    model, inputs = build(case, model_class), decoder_inputs(model_class, batch=2)
    inputs["position_ids"] = torch.zeros_like(inputs["input_ids"])
    inputs["head_mask"] = torch.ones(case.layer_count, case.head_count)
    for name, value in inputs.items():
        for wrong, kind in ((value.tolist(), "list"), (value.numpy(), "ndarray")):
            with pytest.raises(TypeError, match=f"{name}: expected a torch.Tensor, found {kind}"):
                model(**{**inputs, name: wrong})
    with pytest.raises(TypeError, match=r"inputs_embeds: expected a torch\.Tensor"):
        model(inputs_embeds=np.zeros((2, 3, 40), dtype=np.float32))
    for name, labels in decoder_labels(model_class, inputs).items():
        for switches in ({}, {"output_logits": False}) if name == "labels" else ({},):
            with pytest.raises(TypeError, match=f"{name}: expected a torch.Tensor, found list"):
                model(**inputs, **{name: labels.tolist()}, **switches)


def check_wrong_inputs(case: Case, model_class: type[Any]) -> None:
    """A `ValueError` with the argument, what was found, and what is allowed."""
    model, good = build(case, model_class), decoder_inputs(model_class, batch=2)
    ids = good["input_ids"]
    shape = list(ids.shape)
    hidden, positions = case.config().n_embd, case.max_length
    vectors = torch.zeros(*shape, hidden)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"input_ids": ids[..., 0].flatten()}, r"input_ids: expected a shape \[batch, \.\.\., tokens\]"),
        ({"input_ids": ids[..., :0]}, r"input_ids: expected a shape .* without empty axes, found"),
        ({"inputs_embeds": vectors[..., :-1]}, rf"inputs_embeds: expected shape \[\d+, 7, {hidden}\].*found"),
        ({"inputs_embeds": vectors[..., 0, :].reshape(-1, hidden)}, r"inputs_embeds: expected a shape|inputs_embeds"),
        ({"inputs_embeds": vectors.double()}, r"inputs_embeds: found torch\.float64.*torch\.float32.*\.to"),
        ({"input_ids": ids, "token_type_ids": ids[..., :-1]}, r"token_type_ids: expected shape .*as the tokens.*found"),
        ({"input_ids": ids, "token_type_ids": ids[:1]}, r"token_type_ids: expected shape"),
        ({"input_ids": ids, "token_type_ids": ids + VOCAB}, rf"token_type_ids: found \d+, allowed is 0 to {VOCAB - 1}"),
        ({"input_ids": ids, "token_type_ids": ids - VOCAB}, r"token_type_ids: found -\d+"),
        ({"input_ids": ids, "token_type_ids": ids.float()}, r"token_type_ids: expected integers.*float32"),
        ({"input_ids": ids, "position_ids": torch.arange(6)[None]}, r"position_ids: expected shape"),
        ({"input_ids": ids, "position_ids": torch.arange(7)}, r"position_ids: expected shape"),
        (
            {"input_ids": ids, "position_ids": torch.arange(7)[None] + positions - 6},
            rf"position_ids: found {positions}, allowed is 0 to {positions - 1}; the model has no more positions",
        ),
        ({"input_ids": ids, "position_ids": torch.arange(7)[None] - 1}, "position_ids: found -1"),
        ({"input_ids": ids, "position_ids": torch.arange(7.0)[None]}, "position_ids: expected integers"),
        ({"input_ids": ids, "attention_mask": torch.ones(*shape[:-1], 8)}, r"attention_mask: expected shape .*found"),
        ({"input_ids": ids, "attention_mask": torch.ones(7)}, "attention_mask: expected shape"),
        ({"input_ids": ids, "attention_mask": torch.full(tuple(shape), 0.5)}, "attention_mask: found 0.5, allowed is"),
        (
            {
                "input_ids": torch.ones(*shape[:-1], positions + 2).long(),
                "attention_mask": torch.ones(*shape[:-1], positions + 2),
            },
            rf"attention_mask: {positions + 2} real tokens in a row, but this model has {positions} positions",
        ),
        (
            {"input_ids": torch.ones(*shape[:-1], positions + 1).long()},
            rf"{positions + 1} tokens.*{positions} positions",
        ),
        ({"input_ids": ids, "head_mask": torch.ones(case.head_count - 1)}, "head_mask: expected shape"),
        ({"input_ids": ids, "head_mask": torch.ones(case.layer_count + 1, case.head_count)}, "head_mask: expected"),
        ({"input_ids": ids, "head_mask": torch.tensor(1.0)}, "head_mask: expected shape"),
    ]
    for arguments, words in cases:
        with pytest.raises(ValueError, match=words):
            model(**arguments)
    for name in ("attention_mask", "token_type_ids"):
        with pytest.raises(ValueError, match=f"{name} is on meta, input_ids on cpu"):
            model(**{**good, name: good[name].to("meta")})
    assert model(**good)[0].isfinite().all(), "and the model still works"


def check_wrong_labels(case: Case, model_class: type[Any]) -> None:
    """Labels beyond the vocabulary, of another shape, type or under two names."""
    model, inputs = build(case, model_class), decoder_inputs(model_class, batch=2)
    labels = decoder_labels(model_class, inputs)
    for name, good in labels.items():
        limit = CHOICES if name == "mc_labels" else VOCAB
        beyond = good.clone()
        beyond.view(-1)[-1] = limit
        cases = [
            (beyond, rf"{name}: found {limit}, allowed is 0 to {limit - 1}, or below 0 to ignore"),
            (good.float(), rf"{name}: expected class indices \(torch\.long\), found torch\.float32"),
            (good[:1], f"{name}: found shape"),
        ]
        if name != "mc_labels":
            cases.append((good[..., :-1], f"{name}: found shape"))
        for wrong, words in cases:
            for switches in ({}, {"output_logits": False}) if name == "labels" else ({},):
                with pytest.raises(ValueError, match=words):
                    model(**inputs, **{name: wrong}, **switches)
    twice = {"labels": "lm_labels", "mc_labels": "multiple_choice_labels"}
    for name in twice.keys() & labels.keys():
        with pytest.raises(ValueError, match=f"{name} and {twice[name]} are two names of one argument"):
            model(**inputs, **{name: labels[name], twice[name]: labels[name]})
    if not has_choices(model_class):
        return
    places = inputs.pop("mc_token_ids")
    wrong_places: list[tuple[Any, str]] = [
        (places.clamp(min=7), "mc_token_ids: found 7, allowed is 0 to 6; it is a place in the text"),
        (places - 7, "mc_token_ids: found -"),
        (places.float(), "mc_token_ids: expected integers"),
        (places[:, :-1], r"mc_token_ids: found shape \[2, 3\], expected \[2, 4\]"),
        (places.tolist(), "mc_token_ids: expected a torch.Tensor"),
    ]
    for wrong, words in wrong_places:
        with pytest.raises((TypeError, ValueError), match=words):
            model(**inputs, mc_token_ids=wrong)
    with pytest.raises(ValueError, match="two names of one argument"):
        model(**inputs, mc_token_ids=places, multiple_choice_token_ids=places)


CHECKS: tuple[Callable[[Case, type[Any]], None], ...] = (check_wrong_kinds, check_wrong_inputs, check_wrong_labels)
