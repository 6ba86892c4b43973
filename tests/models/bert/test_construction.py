"""How users' own models come to their weights: constructed, loaded, tied, given plain tensors, initialised by hand."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pytorch_transformers import BertForMaskedLM, BertModel, BertPreTrainedModel

from .tiny import HIDDEN, VOCAB, tiny_config

WIDE = 500  # enough values for a spread to be told from torch's own, 1 / sqrt(3 * HIDDEN) = 0.09


class Head(BertPreTrainedModel):
    """The plain case: an encoder and a wide layer."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.bert = BertModel(config)
        self.wide = nn.Linear(HIDDEN, WIDE)


class Tied(BertPreTrainedModel):
    """Shares the word embeddings by itself, without a word to the library."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.out = nn.Linear(HIDDEN, VOCAB, bias=False)
        self.bert = BertModel(config)
        self.out.weight = self.bert.embeddings.word_embeddings.weight


class Own(BertPreTrainedModel):
    """Values that only its constructor knows: a parameter, a constant, and a plain tensor."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.bert = BertModel(config)
        self.scale = nn.Parameter(torch.full((3,), 7.0))
        self.register_buffer("steps", torch.arange(5), persistent=False)
        self.class_weights = torch.tensor([1.0, 2.0])


class Computes(Head):
    """Looks at a value in its constructor, which a model without values can't."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        assert torch.ones(3).sum().item() == 3


class Sets(Head):
    """Initialises at a moment of its own choice, and sets values after it."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.init_weights()
        nn.init.constant_(self.wide.bias, 5.0)


class Applies(Head):
    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.apply(self.init_weights)
        nn.init.constant_(self.wide.bias, 5.0)


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    BertModel(tiny_config()).save_pretrained(tmp_path / "encoder")
    return tmp_path / "encoder"


def is_ours(layer: nn.Linear) -> bool:
    """Initialised by BERT's rule: spread 0.02 (five standard errors of 20,000 values are 0.0005), bias 0."""
    return abs(layer.weight.float().std().item() - 0.02) < 5e-4


@pytest.mark.parametrize("model_class", [Head, Computes, Sets, Applies])
def test_new_layers_follow_the_rule_constructed_or_loaded(model_class: type[Any], encoder: Path) -> None:
    bias = 5.0 if model_class in (Sets, Applies) else 0.0
    constructed = model_class(tiny_config())
    loaded = model_class.from_pretrained(encoder, dtype=torch.bfloat16)
    assert is_ours(constructed.wide)
    assert is_ours(loaded.wide)
    assert (constructed.wide.bias == bias).all()
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.bfloat16}
    expected = BertModel.from_pretrained(encoder, dtype=torch.bfloat16)
    for name, value in expected.state_dict().items():
        assert torch.equal(value, loaded.bert.state_dict()[name]), name


@pytest.mark.parametrize("safe", [True, False])
def test_weights_tied_by_a_constructor_stay_tied(encoder: Path, tmp_path: Path, safe: bool) -> None:
    def tied(model: Any) -> bool:
        return model.out.weight is model.bert.embeddings.word_embeddings.weight

    model, info = Tied.from_pretrained(encoder, output_loading_info=True)
    assert tied(model)
    assert info["missing_keys"] == []
    model.save_pretrained(tmp_path / "saved", safe_serialization=safe)
    again = Tied.from_pretrained(tmp_path / "saved")
    assert tied(again)
    assert torch.equal(again.out.weight, model.out.weight)
    BertModel.from_pretrained(tmp_path / "saved")
    again.resize_token_embeddings(VOCAB + 5)
    assert tied(again)
    assert again.out.weight.shape == (VOCAB + 5, HIDDEN)
    assert tied(copy.deepcopy(again))


def test_values_that_only_the_constructor_knows(encoder: Path) -> None:
    model = Own.from_pretrained(encoder)
    assert model.scale.tolist() == [7.0] * 3
    assert isinstance(model.scale, nn.Parameter)
    steps: Any = model.steps
    assert steps.tolist() == list(range(5))
    assert model.class_weights.tolist() == [1.0, 2.0]
    assert not any(value.is_meta for value in (model.scale, steps, model.class_weights))


def test_a_callers_weights_stay_the_callers(encoder: Path) -> None:
    first = BertModel.from_pretrained(encoder)
    before = first.embeddings.word_embeddings.weight.clone()
    second = BertModel.from_pretrained(encoder, state_dict=first.state_dict())
    with torch.no_grad():
        second.embeddings.word_embeddings.weight.fill_(1.0)
    assert torch.equal(first.embeddings.word_embeddings.weight, before)


@pytest.mark.parametrize("state", ["weights.bin", {"pooler.dense.bias": [1.0]}])
def test_a_state_dict_of_something_else_is_refused(encoder: Path, state: Any) -> None:
    with pytest.raises(TypeError, match=r"state_dict: .*(str|list)"):
        BertModel.from_pretrained(encoder, state_dict=state)


def test_whole_numbers_as_weights_are_refused(encoder: Path) -> None:
    state: dict[str, Tensor] = BertModel.from_pretrained(encoder).state_dict()
    state["pooler.dense.bias"] = torch.ones(HIDDEN, dtype=torch.long)
    with pytest.raises(ValueError, match=r"pooler\.dense\.bias is torch\.int64"):
        BertModel.from_pretrained(encoder, state_dict=state)


def test_only_the_alias_of_a_tied_weight(tmp_path: Path) -> None:
    model = BertForMaskedLM(tiny_config())
    model.save_pretrained(tmp_path, safe_serialization=False)
    state = model.state_dict()
    words = state.pop("bert.embeddings.word_embeddings.weight")
    loaded, info = BertForMaskedLM.from_pretrained(tmp_path, state_dict=state, output_loading_info=True)
    assert info["missing_keys"] == []
    assert torch.equal(loaded.bert.embeddings.word_embeddings.weight, words)


def test_torch_dtype_is_dtype(encoder: Path) -> None:
    assert BertModel.from_pretrained(encoder, torch_dtype=torch.bfloat16).dtype == torch.bfloat16
    with pytest.raises(TypeError, match="two names of one option"):
        BertModel.from_pretrained(encoder, dtype="float32", torch_dtype="bfloat16")


def test_a_configuration_that_cannot_be_written_saves_nothing(tmp_path: Path) -> None:
    model = BertModel(tiny_config(hidden_act=torch.tanh))
    with pytest.raises(ValueError, match="hidden_act"):
        model.save_pretrained(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_loading_imports_no_compiler(encoder: Path) -> None:
    """Drawing random values without a place to put them would pull in 800 modules of torch."""
    import subprocess
    import sys

    program = (
        "import sys, torch\n"
        "from pytorch_transformers import BertForMaskedLM\n"
        "BertForMaskedLM.from_pretrained(sys.argv[1])\n"
        "sys.exit('torch._dynamo' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(encoder)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
