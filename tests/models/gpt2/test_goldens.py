"""Recorded outputs of the original program, openai/gpt-2 on TensorFlow 1 operations, float32.

The model is read from the TensorFlow checkpoint itself, whose `hparams.json` is its configuration. A recorded `present`
is [B, L, 2, A, T, D] and holds the new tokens only; `past` here is L times [2, B, A, T, D] with the tokens before.
"""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from pytorch_transformers import AutoModel, GPT2Config, GPT2DoubleHeadsModel, GPT2LMHeadModel, GPT2Model
from shared_data import shared

from ..compare import MAX_ABS, assert_same, difference
from .reference import NumpyDecoder, next_token_loss

Golden = dict[str, NDArray[Any]]


@pytest.fixture(scope="module")
def golden() -> Golden:
    with np.load(shared("goldens", "gpt2", "reference.npz")) as stored:
        return dict(stored)


@pytest.fixture(scope="module")
def model() -> Any:
    loaded, info = GPT2LMHeadModel.from_pretrained(shared("goldens", "gpt2", "model"), output_loading_info=True)
    assert info["missing_keys"] == info["unexpected_keys"] == []
    return loaded


def ids(golden: Golden, name: str = "input_ids") -> Tensor:
    return torch.from_numpy(golden[name]).long()


def recorded(present: NDArray[Any]) -> list[Tensor]:
    """[B, L, 2, A, T, D] -> L times [2, B, A, T, D]."""
    return [torch.from_numpy(layer) for layer in present.transpose(1, 2, 0, 3, 4, 5)]


def assert_presents(past: Any, present: NDArray[Any], before: int, what: str) -> None:
    """The part of the new tokens is what was recorded."""
    expected = recorded(present)
    assert len(past) == len(expected)
    for layer, (one, other) in enumerate(zip(past, expected, strict=True)):
        assert_same(one[:, :, :, before:], other, f"{what}: present of layer {layer}")


def test_configuration(model: Any) -> None:
    config = GPT2Config.from_pretrained(shared("goldens", "gpt2", "model"))
    sizes = (config.vocab_size, config.n_positions, config.n_ctx, config.n_embd, config.n_head, config.n_layer)
    assert sizes == (101, 48, 48, 24, 3, 3)
    assert config.layer_norm_epsilon == 1e-5
    assert model.config == config
    assert model.lm_head.weight is model.transformer.wte.weight
    assert not model.training


def test_every_value_is_that_of_the_checkpoint(model: Any) -> None:
    """Named by the original's own rule, written here a second time on purpose."""
    own = dict(model.named_parameters())
    with np.load(shared("goldens", "gpt2", "variables.npz")) as variables:
        for name, value in variables.items():
            words = name.removeprefix("model/").split("/")
            ours = ".".join(["h", words[0][1:], *words[1:]] if words[0][0] == "h" else words)
            kind = {"w": "weight", "g": "weight", "b": "bias"}
            head, _, last = ours.rpartition(".")
            ours = f"{head}.{kind[last]}" if last in kind and head else f"{ours}.weight"
            parameter = own.pop(f"transformer.{ours}")
            expected = value[0] if value.ndim == 3 else value
            assert np.array_equal(parameter.detach().numpy(), expected), name
    assert own == {}


@pytest.mark.parametrize("path", ["fused", "explicit"])
def test_forward(path: str, model: Any, golden: Golden) -> None:
    with torch.no_grad():
        output = model(ids(golden), output_hidden_states=True, output_attentions=path == "explicit")
        checked = {"embedding": 0, "block_0": 1, "block_1": 2}
        for name, index in checked.items():
            assert_same(output.hidden_states[index], golden[name], name)
        assert_same(output.hidden_states[3], golden["ln_f"], "ln_f")
        assert_same(output.logits, golden["logits"], "logits")
        assert_presents(output.past, golden["present"], 0, path)
        last = model.transformer.ln_f(torch.from_numpy(golden["block_2"]))
    assert_same(last, golden["ln_f"], "ln_f of the recorded last block")


def test_last_block(model: Any, golden: Golden) -> None:
    """What goes into the last normalisation is no hidden state of the output, so it is caught on its way."""
    caught: list[Tensor] = []
    handle = model.transformer.ln_f.register_forward_pre_hook(lambda _, arguments: caught.append(arguments[0]))
    with torch.no_grad():
        model(ids(golden))
    handle.remove()
    assert_same(caught[0], golden["block_2"], "block 2")


def test_base_and_double_heads_share_the_decoder(golden: Golden) -> None:
    folder = shared("goldens", "gpt2", "model")
    base, info = GPT2Model.from_pretrained(folder, output_loading_info=True)
    assert info["missing_keys"] == info["unexpected_keys"] == []
    assert type(AutoModel.from_pretrained(folder)) is GPT2Model
    double, info = GPT2DoubleHeadsModel.from_pretrained(folder, output_loading_info=True)
    assert sorted(info["missing_keys"]) == [
        "multiple_choice_head.summary.bias",
        "multiple_choice_head.summary.weight",
    ]
    with torch.no_grad():
        assert_same(base(ids(golden)).last_hidden_state, golden["ln_f"], "base")
        assert_same(double(ids(golden)[:, None]).lm_logits[:, 0], golden["logits"], "double heads")


def test_steps(model: Any, golden: Golden) -> None:
    """A part of the tokens, then one with that past, then the rest with the joined past."""
    split = int(golden["split_k"])
    tokens = ids(golden)
    with torch.no_grad():
        first = model(tokens[:, :split])
        assert_presents(first.past, golden["past_k_present"], 0, "first")
        second = model(tokens[:, split : split + 1], past=first.past)
        assert_same(second.logits, golden["step1_logits"], "one more token")
        assert_presents(second.past, golden["step1_present"], split, "one more token")
        for one, other in zip(second.past, recorded(golden["step2_past"]), strict=True):
            assert_same(one, other, "joined past")
        third = model(tokens[:, split + 1 :], past=second.past)
        assert_same(third.logits, golden["step2_logits"], "the rest")
        assert_presents(third.past, golden["step2_present"], split + 1, "the rest")
        again = model(tokens[:, split + 1 :], past=recorded(golden["step2_past"]))
        assert_same(again.logits, golden["step2_logits"], "the rest after the recorded past")


def test_steps_in_a_cache(model: Any, golden: Golden) -> None:
    """The same steps without any joining."""
    split, tokens = int(golden["split_k"]), ids(golden)
    cache = model.new_cache(3, 11)
    with torch.no_grad():
        model(tokens[:, :split], past=cache)
        assert_same(model(tokens[:, split : split + 1], past=cache).logits, golden["step1_logits"], "one more token")
        output = model(tokens[:, split + 1 :], past=cache)
    assert output.past is cache
    assert cache.length == 11
    assert_same(output.logits, golden["step2_logits"], "the rest")


def test_one_token_and_the_whole_context(model: Any, golden: Golden) -> None:
    with torch.no_grad():
        one = model(ids(golden, "one_input_ids"))
        full = model(ids(golden, "full_context_input_ids"))
    assert_same(one.logits, golden["one_logits"], "one token")
    assert_presents(one.past, golden["one_present"], 0, "one token")
    assert full.logits.shape == (1, 48, 101)
    assert_same(full.logits, golden["full_context_logits"], "full context")


@pytest.mark.parametrize("output_logits", [True, False])
def test_loss(output_logits: bool, model: Any, golden: Golden) -> None:
    tokens = ids(golden)
    with torch.no_grad():
        loss = model(tokens, labels=tokens, output_logits=output_logits).loss
    assert_same(loss, golden["next_token_nll"].mean(dtype=np.float64), "mean over all tokens")


def test_greedy_continuation(model: Any, golden: Golden) -> None:
    """Twenty tokens, all rows at once; the original took one row at a time."""
    context, expected = ids(golden, "greedy_context"), ids(golden, "greedy_output")
    cache, tokens = model.new_cache(3, 26), context
    with torch.no_grad():
        for _ in range(20):
            fresh = tokens[:, cache.length :]
            tokens = torch.cat([tokens, model.next_token_logits(fresh, cache, None).argmax(-1, keepdim=True)], 1)
    assert torch.equal(tokens, expected)


def test_numpy_reference(model: Any, golden: Golden) -> None:
    """The NumPy forward that the other tests lean on is itself held to the original."""
    parameters = {name: value.numpy() for name, value in model.state_dict().items()}
    decoded = (reference := NumpyDecoder(parameters, heads=3, norm_first=True)).decode(golden["input_ids"])
    for index, name in enumerate(("embedding", "block_0", "block_1", "block_2")):
        assert_same(decoded.hidden_states[index], golden[name], name)
    assert_same(decoded.last, golden["ln_f"], "ln_f")
    assert_same(reference.scores(decoded.last), golden["logits"], "logits")
    for layer, present in enumerate(decoded.presents):
        assert_same(present, golden["present"].transpose(1, 2, 0, 3, 4, 5)[layer], f"present {layer}")
    split = int(golden["split_k"])
    past = list(golden["past_k_present"].transpose(1, 2, 0, 3, 4, 5))
    step = reference.decode(golden["input_ids"][:, split : split + 1], past=past)
    assert_same(reference.scores(step.last), golden["step1_logits"], "one more token")
    loss = next_token_loss(golden["logits"].astype(np.float64), golden["input_ids"])
    assert_same(loss, golden["next_token_nll"].mean(dtype=np.float64), "loss")


def test_formulas_can_be_told_apart(golden: Golden) -> None:
    """The exact gelu, or the epsilon of BERT, is off by more than the bounds, so these goldens do check them."""
    folder = shared("goldens", "gpt2", "model")
    for wrong in ({"activation_function": "gelu"}, {"layer_norm_epsilon": 1e-3}):
        other = GPT2LMHeadModel.from_pretrained(folder, **wrong)
        with torch.no_grad():
            largest, _ = difference(other(ids(golden)).logits, golden["logits"])
        assert largest > 3 * MAX_ABS, wrong
