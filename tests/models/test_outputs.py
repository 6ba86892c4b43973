"""What models return, apart from any model: fields that may be absent, and those that may not."""

import pickle

import pytest
import torch
from torch import Tensor

from pytorch_transformers import MaskedLMOutput, ModelOutput, SequenceClassifierOutput


class WithSpread(ModelOutput):
    """As a user would write it; the base class that declares `spread` anew comes below."""

    loss: Tensor | None
    mean: Tensor
    spread: Tensor | None


class AlwaysWithSpread(WithSpread):
    """The same; `spread` keeps its place."""

    spread: Tensor
    more: int


def test_optional_fields_may_be_absent() -> None:
    output = WithSpread.of(mean=torch.ones(()))
    assert (output.keys(), output.loss, output.spread) == (("mean",), None, None)
    (mean,) = output
    assert mean is output.mean
    assert WithSpread.of(loss=mean, mean=mean, spread=mean).keys() == WithSpread.possible_fields


def test_fields_that_are_always_present_are_required() -> None:
    with pytest.raises(TypeError, match=r"WithSpread.*mean"):
        WithSpread.of(loss=torch.ones(()))
    with pytest.raises(TypeError, match=r"SequenceClassifierOutput.*logits"):
        SequenceClassifierOutput.of(loss=torch.ones(()))
    assert MaskedLMOutput.of(loss=torch.ones(())).logits is None


def test_a_subclass_may_declare_a_field_anew() -> None:
    assert AlwaysWithSpread.possible_fields == ("loss", "mean", "spread", "more")
    one = torch.ones(())
    with pytest.raises(TypeError, match="spread"):
        AlwaysWithSpread.of(mean=one)
    output = AlwaysWithSpread.of(spread=one + 1, mean=one)
    assert (output[0], output[1], output.more) == (1, 2, None)
    assert pickle.loads(pickle.dumps(output)).spread == 2
