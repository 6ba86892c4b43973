"""Options are checked when they are made."""

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from pytorch_transformers.generation import GenerationOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_p": 1.5}, "top_p: 1.5, must be a number from 0.0 to 1.0"),
        ({"top_p": -0.1}, "top_p"),
        ({"top_p": float("nan")}, "top_p"),
        ({"temperature": 0}, "above 0; for the likeliest token give do_sample=False"),
        ({"temperature": -1.0}, "temperature"),
        ({"repetition_penalty": 0.0}, "repetition_penalty: 0, must be above 0"),
        ({"top_k": -1}, "top_k: -1"),
        ({"top_k": 2.5}, "top_k: 2.5"),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size"),
        ({"max_new_tokens": 0}, "max_new_tokens: 0"),
        ({"max_new_tokens": 5, "max_length": 6}, "give one of them"),
        ({"max_new_tokens": 5, "min_new_tokens": 6}, "min_new_tokens: 6, but max_new_tokens is 5"),
        ({"max_length": 5, "min_length": 6}, "min_length: 6, but max_length is 5"),
        ({"num_samples": 0}, "num_samples"),
        ({"seed": 1.5}, "seed"),
        ({"window": 0}, "window"),
        ({"prefill_chunk": 0}, "prefill_chunk"),
        ({"stop_strings": ["a", ""]}, "stop_strings: ''"),
        ({"eos_token_id": -1}, "eos_token_id"),
        ({"eos_token_id": "x"}, "eos_token_id"),
        ({"do_sample": "no"}, "do_sample: 'no', must be True or False"),
        ({"output_scores": "no"}, "output_scores: 'no', must be True or False"),
        ({"output_scores": None}, "output_scores"),
        ({"top_p_crossing": 1}, "top_p_crossing"),
        ({"do_sample": False, "top_p": 0.5}, "top_p is for draws"),
        ({"do_sample": False, "temperature": 0.5}, "temperature is for draws"),
        ({"do_sample": False, "num_samples": 2}, "num_samples is for draws"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GenerationOptions(**options)


@pytest.mark.parametrize(
    ("options", "sampling"),
    [
        ({}, False),
        ({"seed": 1}, False),
        ({"top_k": 0}, False),
        ({"do_sample": True}, True),
        ({"top_k": 5}, True),
        ({"top_p": 1.0}, True),
        ({"temperature": 0.7}, True),
        ({"num_samples": 2}, True),
    ],
)
def test_what_asks_for_draws(options: dict[str, Any], sampling: bool) -> None:
    assert GenerationOptions(**options).sampling is sampling


def test_lengths() -> None:
    assert GenerationOptions().new_tokens(5, 1000) == 128
    assert GenerationOptions().new_tokens(5, 20) == 16
    assert GenerationOptions(max_length=9).new_tokens(5, 20) == 4
    assert GenerationOptions(max_new_tokens=30, window=4).new_tokens(5, 20) == 30
    assert GenerationOptions(max_new_tokens=30).new_tokens(5, None) == 30
    assert GenerationOptions(min_length=9, min_new_tokens=2).least_new_tokens(5) == 4
    assert GenerationOptions(stop_strings="ab").stop_strings == ("ab",)
    assert GenerationOptions(eos_token_id=iter([1, 2])).stop_tokens == {1, 2}


@pytest.mark.parametrize("value", [torch.tensor(5), np.array(5), np.int64(5), torch.tensor([5]), [torch.tensor(5)]])
def test_stop_token_of_any_kind(value: Any) -> None:
    assert GenerationOptions(eos_token_id=value).stop_tokens == {5}


def test_unknown_option_and_those_there_are() -> None:
    wrong: dict[str, Any] = {"max_tokens": 5, "top_k": 3}
    with pytest.raises(
        TypeError, match=r"max_tokens: no such option of generation; there are do_sample, .*output_scor"
    ):
        GenerationOptions(**wrong)
    options = GenerationOptions(top_k=3)
    assert copy.deepcopy(options) == pickle.loads(pickle.dumps(options)) == options
    assert dataclasses.replace(options, seed=1).top_k == 3
