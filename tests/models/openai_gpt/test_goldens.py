"""Recorded outputs of the original program, openai/finetune-transformer-lm on TensorFlow 1 operations, float32.

The weights are read from NumPy files of the original's own form. They hold no special tokens and no head; those that
the program drew at random are recorded and put in.

What is not alike, by design: the original's output layer runs over every row of its matrix, positions included, so its
softmax has 12 scores more than ours. They are put beside our logits here where its loss is computed; its loss weighs
texts, ours tokens, which is the same where all texts have the same number of tokens.
"""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from pytorch_transformers import (
    OpenAIGPTConfig,
    OpenAIGPTDoubleHeadsModel,
    OpenAIGPTLMHeadModel,
    OpenAIGPTModel,
)
from shared_data import shared

from ..compare import MAX_ABS, assert_same, difference
from ..gpt2.reference import NumpyDecoder

Golden = dict[str, NDArray[Any]]

WORDS, SPECIAL, USED = 90, 3, 12  # rows of the original's matrix: words, special tokens, positions that are used
CLASSIFY = 92
INPUTS = ("special", "plain")


@pytest.fixture(scope="module")
def golden() -> Golden:
    with np.load(shared("goldens", "openai_gpt", "reference.npz")) as stored:
        return dict(stored)


def load(model_class: type[Any], golden: Golden, afn: str = "gelu") -> Any:
    """A model whose every parameter comes from the recorded run."""
    config = OpenAIGPTConfig(vocab_size=WORDS, n_positions=20, n_embd=24, n_head=3, n_layer=3, afn=afn)
    folder = shared("goldens", "openai_gpt", "model")
    model, info = model_class.from_pretrained(
        folder, config=config, num_special_tokens=SPECIAL, output_loading_info=True
    )
    heads = [name for name in info["missing_keys"] if not name.startswith("multiple_choice_head.")]
    assert heads == info["unexpected_keys"] == info["mismatched_keys"] == []
    with torch.no_grad():
        model.get_input_embeddings().weight[WORDS:] = torch.from_numpy(golden["special_embeddings"])
        if model_class is OpenAIGPTDoubleHeadsModel:
            model.multiple_choice_head.summary.weight.copy_(torch.from_numpy(golden["clf_w"].T))
            model.multiple_choice_head.summary.bias.copy_(torch.from_numpy(golden["clf_b"]))
    return model.eval()


def tokens(golden: Golden, name: str) -> Tensor:
    """[B, C, T] ids; the positions beside them are those that are counted by default."""
    x = golden[f"{name}/X"]
    assert (x[..., 1] == WORDS + SPECIAL + np.arange(USED)).all()
    return torch.from_numpy(x[..., 0]).long()


def classify_places(ids: Tensor) -> Tensor:
    """The first _classify_ of each text; 0 where there is none."""
    return (ids == CLASSIFY).long().argmax(-1)


def original_scores(logits: Tensor, hidden: Tensor, model: Any) -> Tensor:
    """[..., T, V + 12]: our logits, and those of the position rows that the original's output layer has as well."""
    return torch.cat([logits, hidden @ model.transformer.positions_embed.weight[:USED].T], -1)


def original_lm_losses(scores: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
    """[B * C]: -log p of the next token, weighed by the mask one place later (train.py, model)."""
    losses = -scores[..., :-1, :].log_softmax(-1).gather(-1, ids[..., 1:, None])[..., 0]
    return ((losses * weights[..., 1:]).sum(-1) / weights[..., 1:].sum(-1)).flatten()


@pytest.mark.parametrize("path", ["fused", "explicit"])
@pytest.mark.parametrize("name", INPUTS)
def test_hidden_states(name: str, path: str, golden: Golden) -> None:
    model = load(OpenAIGPTModel, golden)
    with torch.no_grad():
        output = model(tokens(golden, name), output_hidden_states=True, output_attentions=path == "explicit")
    for index, state in enumerate(("embedding", "h0", "h1", "h2")):
        assert_same(output.hidden_states[index].flatten(0, 1), golden[f"{name}/hidden_{state}"], state)
    assert torch.equal(output.last_hidden_state, output.hidden_states[-1]), "nothing is done after the last layer"


@pytest.mark.parametrize("afn", ["relu", "swish"])
def test_other_activations(afn: str, golden: Golden) -> None:
    model = load(OpenAIGPTDoubleHeadsModel, golden, afn)
    ids = tokens(golden, "plain")
    with torch.no_grad():
        output = model(ids, mc_token_ids=classify_places(ids), output_hidden_states=True)
    assert_same(output.hidden_states[-1].flatten(0, 1), golden[f"plain_{afn}/hidden_h2"], "last state")
    assert_same(output.mc_logits, golden[f"plain_{afn}/clf_logits"], "choices")


@pytest.mark.parametrize("name", INPUTS)
def test_scores_and_losses(name: str, golden: Golden) -> None:
    model = load(OpenAIGPTDoubleHeadsModel, golden)
    ids = tokens(golden, name)
    labels = torch.from_numpy(golden["Y"]).long()
    weights = torch.from_numpy(golden[f"{name}/M"])
    with torch.no_grad():
        output = model(
            ids,
            mc_token_ids=classify_places(ids),
            mc_labels=labels,
            lm_labels=ids.masked_fill(weights == 0, -1),
            output_hidden_states=True,
        )
        scores = original_scores(output.lm_logits, output.hidden_states[-1], model)
    assert output.lm_logits.shape == (3, 2, USED, WORDS + SPECIAL)
    assert_same(scores[:, :, :-1].flatten(0, 1), golden[f"{name}/lm_logits"], "words, special tokens, positions")
    assert_same(
        output.lm_logits[:, :, :-1].flatten(0, 1), golden[f"{name}/lm_logits"][..., : WORDS + SPECIAL], "our logits"
    )
    assert_same(output.mc_logits, golden[f"{name}/clf_logits"], "choices")
    assert_same(output.mc_loss, golden[f"{name}/clf_losses"].mean(dtype=np.float64), "loss of the choices")
    losses = original_lm_losses(scores, ids, weights)
    assert_same(losses, golden[f"{name}/lm_losses"], "loss of the texts, with the original's softmax")
    train_loss = output.mc_loss + 0.5 * losses.mean()
    assert_same(train_loss, golden[f"{name}/train_loss"], "loss of training")
    # Ours is the recorded logits' own cross-entropy when the position rows are left out, averaged over all tokens.
    logits = torch.from_numpy(golden[f"{name}/lm_logits"]).double()[..., : WORDS + SPECIAL]
    nll = -logits.log_softmax(-1).gather(-1, ids.flatten(0, 1)[:, 1:, None])[..., 0]
    kept = weights.flatten(0, 1)[:, 1:].double()
    assert_same(output.lm_loss, (nll * kept).sum() / kept.sum(), "our loss, from the recorded logits")


def test_language_model_alone(golden: Golden) -> None:
    model = load(OpenAIGPTLMHeadModel, golden)
    ids = tokens(golden, "plain").flatten(0, 1)
    with torch.no_grad():
        full = model(ids, labels=ids)
        lean = model(ids, labels=ids, output_logits=False)
    assert_same(full.logits[:, :-1], golden["plain/lm_logits"][..., : WORDS + SPECIAL], "logits")
    assert_same(lean.loss, full.loss, "loss")


def test_gradients(golden: Golden) -> None:
    """Every recorded gradient, of the original's own training loss; its matrix `we` is our two tables, one below."""
    model = load(OpenAIGPTDoubleHeadsModel, golden)
    ids = tokens(golden, "special")
    weights = torch.from_numpy(golden["special/M"])
    output = model(
        ids,
        mc_token_ids=classify_places(ids),
        mc_labels=torch.from_numpy(golden["Y"]).long(),
        output_hidden_states=True,
    )
    scores = original_scores(output.lm_logits, output.hidden_states[-1], model)
    loss = output.mc_loss + 0.5 * original_lm_losses(scores, ids, weights).mean()
    loss.backward()
    own = {name: p.grad for name, p in model.named_parameters()}
    squares = 0.0
    with np.load(shared("goldens", "openai_gpt", "gradients_special.npz")) as recorded:
        for name, expected in recorded.items():
            squares += float((expected.astype(np.float64) ** 2).sum())
            words = name.removeprefix("model/").split("/")
            if words == ["we"]:
                table, places = (
                    own.pop("transformer.tokens_embed.weight"),
                    own.pop("transformer.positions_embed.weight"),
                )
                assert table is not None
                assert places is not None
                assert not places[USED:].any(), "positions that were not used"
                found = torch.cat([table, places[:USED]])
            else:
                kind = "bias" if words[-1] == "b" else "weight"
                if words[0] == "clf":
                    ours = f"multiple_choice_head.summary.{kind}"
                else:
                    ours = ".".join(["transformer.h", words[0][1:], *words[1:-1], kind])
                gradient = own.pop(ours)
                assert gradient is not None
                found = gradient.T if words[0] == "clf" and kind == "weight" else gradient
            assert_same(found, expected.reshape(found.shape), name)
    assert own == {}
    assert_same(squares**0.5, golden["special/gradient_global_norm"], "global norm")


def test_numpy_reference(golden: Golden) -> None:
    """The NumPy forward that the other tests lean on is itself held to the original, heads included."""
    for afn in ("gelu", "relu", "swish"):
        model = load(OpenAIGPTDoubleHeadsModel, golden, afn)
        parameters = {name: value.numpy() for name, value in model.state_dict().items()}
        activation = {"gelu": "gelu_tanh"}.get(afn, afn)
        reference = NumpyDecoder(parameters, heads=3, norm_first=False, activation=activation)
        for name in INPUTS if afn == "gelu" else (f"plain_{afn}",):
            ids = tokens(golden, name.split("_", maxsplit=1)[0])
            decoded = reference.decode(ids.flatten(0, 1).numpy())
            for index, state in enumerate(("embedding", "h0", "h1", "h2")):
                if f"{name}/hidden_{state}" in golden:
                    assert_same(decoded.hidden_states[index], golden[f"{name}/hidden_{state}"], f"{name} {state}")
            choices = reference.choice(decoded.last, classify_places(ids).flatten().numpy())
            assert_same(choices.reshape(3, 2), golden[f"{name}/clf_logits"], f"{name}: choices")
            if afn == "gelu":
                scores = reference.scores(decoded.last)[:, :-1]
                assert_same(scores, golden[f"{name}/lm_logits"][..., : WORDS + SPECIAL], f"{name}: logits")


def test_formulas_can_be_told_apart(golden: Golden) -> None:
    """Another activation or epsilon is off by more than the bounds, so these goldens do check them."""
    ids = tokens(golden, "plain")
    for change in ({"afn": "gelu_exact"}, {"layer_norm_epsilon": 1e-3}):
        model = load(OpenAIGPTModel, golden)
        for block in model.h:
            if "afn" in change:
                block.mlp.act = torch.nn.functional.gelu
            else:
                block.ln_1.eps = block.ln_2.eps = 1e-3
        with torch.no_grad():
            largest, _ = difference(model(ids).last_hidden_state.flatten(0, 1), golden["plain/hidden_h2"])
        assert largest > 3 * MAX_ABS, change
