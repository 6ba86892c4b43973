"""The battery that every family passes, on both Transformer-XL models, and the family's form of some of its checks.

Other than elsewhere, the loss has a value for each token and comes without scores, words are in several tables, there
is no mask, and heads stay.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pytorch_transformers import TransfoXLLMHeadModel, TransfoXLModel, TransfoXLPreTrainedModel

from ..battery import (
    EVERY_MODEL,
    ONCE,
    Check,
    assert_equal_outputs,
    build,
    check_compile,
    check_initialisation,
    check_initialisation_of_subclasses,
    check_onnx,
    check_padding_invariance,
    check_pruning,
    check_resize,
    check_shapes,
    fields,
    run,
)
from ..compare import assert_same
from .tiny import CASE, CUTOFFS, EMBED, HEADS, HIDDEN, KINDS, LAYERS, MEMORY, MODELS, VOCAB, segment_labels, words

#: There is no mask, no pruning, and the family has its own form of the others, below.
LEFT_OUT = {
    check_padding_invariance,
    check_pruning,
    check_resize,
    check_initialisation,
    check_shapes,
}
OWN_FORM = {check_initialisation_of_subclasses}
WITHOUT_LABELS = replace(CASE, labels=lambda *_: {})


def _name(value: Any) -> str:
    return str(value.__name__).removeprefix("check_")


def _runs() -> Iterator[Any]:
    """Each check on each class; compiling takes seconds, so by default only one class is compiled."""
    for check in EVERY_MODEL:
        for model_class in CASE.models:
            if check in LEFT_OUT:
                continue
            slow = check is check_compile and model_class is not TransfoXLLMHeadModel
            marks = [pytest.mark.slow] if slow else []
            yield pytest.param(check, model_class, marks=marks, id=f"{_name(check)}-{_name(model_class)}")


@pytest.mark.parametrize(("check", "model_class"), list(_runs()))
def test_every_model(check: Check, model_class: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(check, CASE, model_class, tmp_path, monkeypatch)


@pytest.mark.parametrize("check", [check for check in ONCE if check not in OWN_FORM], ids=_name)
def test_family(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(check, CASE, None, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "model_class", [TransfoXLLMHeadModel, pytest.param(TransfoXLModel, marks=pytest.mark.slow)], ids=_name
)
def test_onnx(model_class: type[Any], tmp_path: Path) -> None:
    check_onnx(CASE, model_class, tmp_path)


@pytest.mark.parametrize("model_class", MODELS)
def test_shapes(model_class: type[Any]) -> None:
    """Fields in their order; the loss has a value for each token, and is there without scores."""
    check_shapes(WITHOUT_LABELS, model_class)
    model, ids = build(CASE, model_class), words(3, 7)
    output = model(ids, output_hidden_states=True, output_attentions=True)
    first = "prediction_scores" if model_class is TransfoXLLMHeadModel else "last_hidden_state"
    assert fields(output) == [first, "mems", "hidden_states", "attentions"]
    assert [tuple(x.shape) for x in output.mems] == [(MEMORY, 3, HIDDEN)] * LAYERS
    assert [tuple(x.shape) for x in output.hidden_states] == [(3, 7, HIDDEN)] * (LAYERS + 1)
    assert [tuple(x.shape) for x in output.attentions] == [(3, HEADS, 7, MEMORY + 7)] * LAYERS
    if model_class is TransfoXLLMHeadModel:
        labels = segment_labels(model_class, {"input_ids": ids})["labels"]
        output = model(ids, labels=labels)
        assert fields(output) == ["loss", "mems"]
        assert output.prediction_scores is None
        assert output.loss.shape == (3, 7)
        assert torch.equal(output.loss > 0, labels >= 0)


def test_battery_is_complete() -> None:
    """What is left out of the battery's checks is what this file replaces, or what speaks of masks and positions."""
    assert set(EVERY_MODEL) >= LEFT_OUT
    assert set(ONCE) >= OWN_FORM


# --- new models -------------------------------------------------------------------------------------------------------


def assert_drawn(model: nn.Module, config: Any) -> None:
    """Each parameter by its kind: matrices, tables and attention's biases; projections of clusters; 0 and 1."""
    kinds: dict[str, list[Tensor]] = {"ordinary": [], "projections": []}
    modules = dict(model.named_modules())
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owner = modules[name.rpartition(".")[0]]
        value = parameter.detach()
        if "norm" in type(owner).__name__.lower() and name.endswith("weight"):
            assert torch.equal(value, torch.ones_like(value)), name
        elif re.search(r"(?<!r_w_)(?<!r_r_)bias$", name):
            assert not value.any(), name
        else:
            kinds["projections" if "_projs." in name else "ordinary"].append(value.flatten())
            spread = config.proj_init_std if "_projs." in name else config.init_std
            if config.init == "uniform" and "_projs." not in name:
                spread = config.init_range / 3**0.5
                assert float(value.abs().max()) <= config.init_range, name
            assert abs(float(value.mean())) <= 5 * spread / value.numel() ** 0.5, name
            assert abs(float(value.std()) - spread) <= 5 * spread / (2 * value.numel()) ** 0.5, name
    for kind, values in kinds.items():
        assert values, kind
        together = torch.cat(values)
        if kind == "ordinary":
            expected = config.init_range / 3**0.5 if config.init == "uniform" else config.init_std
        else:
            expected = config.proj_init_std
        assert abs(float(together.std()) / expected - 1) < 0.05, kind


@pytest.mark.parametrize("init", ["normal", "uniform"])
@pytest.mark.parametrize("untie", [False, True])
@pytest.mark.parametrize("model_class", MODELS)
def test_initialisation(model_class: type[Any], untie: bool, init: str) -> None:
    torch.manual_seed(11)
    config = CASE.config(init=init, init_std=0.05, init_range=0.3, proj_init_std=0.4, untie_r=untie)
    assert_drawn(model_class(config), config)


def test_initialisation_of_subclasses() -> None:
    """A user's class that only calls `super().__init__` and adds modules, at any depth, is initialised too."""

    class Custom(TransfoXLPreTrainedModel):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.decoder = TransfoXLModel(config)
            self.head = nn.Sequential(nn.Linear(HIDDEN, 60), nn.LayerNorm(60), nn.ModuleList([nn.Linear(60, 9)]))

        def forward(self, x: Tensor) -> Tensor:
            return x

    class Derived(Custom):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.more = nn.Linear(30, 40)

    for custom in (Custom, Derived):
        torch.manual_seed(12)
        config = CASE.config(init_std=0.05, proj_init_std=0.4)
        assert_drawn(custom(config), config)


# --- surgery ----------------------------------------------------------------------------------------------------------


def shared(model: nn.Module) -> list[list[str]]:
    """Groups of names of one parameter."""
    groups: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        groups.setdefault(id(parameter), []).append(name)
    return sorted(group for group in groups.values() if len(group) > 1)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_shared(kind: str) -> None:
    """Tables, the projections that `tie_projs` says, and the r biases where one serves all layers."""
    config = CASE.config(**KINDS[kind])
    model = TransfoXLLMHeadModel(config)
    tables = range(1 if config.div_val == 1 else len(config.cutoffs) + 1)
    expected = [[f"crit.out_layers.{i}.weight", f"transformer.word_emb.emb_layers.{i}.weight"] for i in tables]
    sources: dict[str, list[str]] = {}
    for place, tied in enumerate(config.tie_projs):
        source = f"transformer.word_emb.emb_projs.{0 if config.div_val == 1 else place}"
        if tied and source in dict(model.named_parameters()):
            sources.setdefault(source, []).append(f"crit.out_projs.{place}")
    expected += [[*names, source] for source, names in sources.items()]
    if not config.untie_r:
        for name in ("r_r_bias", "r_w_bias"):
            layers = [f"transformer.layers.{i}.dec_attn.{name}" for i in range(LAYERS)]
            expected.append([*layers, f"transformer.{name}"])
    assert sorted(sorted(group) for group in shared(model)) == sorted(sorted(group) for group in expected)


@pytest.mark.parametrize("tied", [True, False])
def test_tables_may_be_apart(tied: bool) -> None:
    model: Any = TransfoXLLMHeadModel(CASE.config(tie_weight=tied))
    assert (model.crit.out_layers[1].weight is model.transformer.word_emb.emb_layers[1].weight) == tied


@pytest.mark.parametrize("safe", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_save_and_load(kind: str, safe: bool, tmp_path: Path) -> None:
    """Of each kind, in both formats, with everything shared as before; the base model reads what the head wrote."""
    model, ids = build(CASE, TransfoXLLMHeadModel, **KINDS[kind]), words(2, 5)
    model.save_pretrained(tmp_path, safe_serialization=safe)
    loaded, info = TransfoXLLMHeadModel.from_pretrained(tmp_path, output_loading_info=True)
    assert info["missing_keys"] == info["unexpected_keys"] == info["mismatched_keys"] == []
    assert shared(loaded) == shared(model)
    with torch.no_grad():
        assert_equal_outputs(loaded(ids), model(ids), "loaded", exact=True)
        base, info = TransfoXLModel.from_pretrained(tmp_path, output_loading_info=True)
        assert info["missing_keys"] == []
        assert torch.equal(base(ids).last_hidden_state, model.transformer(ids).last_hidden_state)


def test_a_head_on_a_base_checkpoint(tmp_path: Path) -> None:
    """B2: what is new is said: the softmax's own parameters; its tables and tied projections come with the decoder."""
    build(CASE, TransfoXLModel).save_pretrained(tmp_path)
    model, info = TransfoXLLMHeadModel.from_pretrained(tmp_path, output_loading_info=True)
    expected = ["crit.cluster_bias", "crit.cluster_weight", "crit.out_projs.0"]
    expected += [f"crit.out_layers.{i}.bias" for i in range(4)]
    assert sorted(info["missing_keys"]) == sorted(expected)
    assert info["unexpected_keys"] == []
    assert shared(model) == shared(TransfoXLLMHeadModel(CASE.config()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model_class", MODELS)
def test_resize(model_class: type[Any], kind: str, tmp_path: Path) -> None:
    """The last cluster grows and shrinks; other words keep embedding and score, and the new size is the limit."""
    model = build(CASE, model_class, **KINDS[kind])
    ties = shared(model)
    for size in (VOCAB + 7, VOCAB - 5):
        common = min(size, model.config.vocab_size)
        ids, every = words(2, 6).clamp(max=VOCAB - 6), torch.arange(common)[None]
        with torch.no_grad():
            embedded, states = model.get_input_embeddings()(every), model(ids)
        tables = model.resize_token_embeddings(size)
        assert tables is model.get_input_embeddings()
        assert model.config.vocab_size == model.config.n_token == size
        assert tables.num_embeddings == size
        assert shared(model) == ties
        with torch.no_grad():
            assert torch.equal(tables(every), embedded)
            output = model(ids)
        if model_class is TransfoXLLMHeadModel:
            assert output.prediction_scores.shape == (2, 6, size)
            assert_same(output.prediction_scores.double().exp().sum(-1), torch.ones(2, 6), "add up to 1")
            before, after = states.prediction_scores, output.prediction_scores
            head = model.config.cutoffs[0] if model.config.cutoffs else common
            for some in (slice(0, head), slice(model.config.cutoffs[-1] if model.config.cutoffs else 0, common)):
                one = torch.log_softmax(before[..., some], -1)  # among themselves the words compare as before
                assert_same(torch.log_softmax(after[..., some], -1), one, f"words {some} of {size}")
            last = torch.tensor([[size - 1]])
            loss = model(last, labels=last).loss
            assert_same(loss[0, 0], -model(last).prediction_scores[0, 0, size - 1], "the last word")
            with pytest.raises(ValueError, match=rf"labels.*{size}.*{size - 1}"):
                model(last, labels=last + 1)
        else:
            assert torch.equal(output.last_hidden_state, states.last_hidden_state)
        with pytest.raises(ValueError, match=rf"input_ids.*{size}.*{size - 1}"):
            model(torch.tensor([[size]]))
        model.save_pretrained(tmp_path / str(size))
        loaded = model_class.from_pretrained(tmp_path / str(size))
        with torch.no_grad():
            assert_equal_outputs(loaded(ids), output, "loaded", exact=True)
    assert model.resize_token_embeddings(None) is tables
    assert model.resize_token_embeddings(size) is tables


def test_new_words_are_drawn_as_the_others() -> None:
    torch.manual_seed(7)
    model: Any = TransfoXLLMHeadModel(CASE.config(init_std=0.3))
    old = model.crit.out_layers[3].bias.detach().normal_().clone()
    model.resize_token_embeddings(VOCAB + 500)
    table, bias = model.transformer.word_emb.emb_layers[3].weight, model.crit.out_layers[3].bias
    assert table.shape == (14 + 500, EMBED // 8)
    assert abs(float(table[14:].detach().std()) / 0.3 - 1) < 0.1
    assert torch.equal(bias[:14], old)
    assert not bias[14:].any()
    assert table.requires_grad
    assert bias.requires_grad


@pytest.mark.parametrize("model_class", MODELS)
@pytest.mark.parametrize(("size", "said"), [(CUTOFFS[-1], "47"), (5, "47"), (0, "0"), (-3, "-3"), (2.5, "2.5")])
def test_impossible_sizes(size: Any, said: str, model_class: type[Any]) -> None:
    """The last cluster keeps a word at least; nothing is changed otherwise."""
    model = build(CASE, model_class)
    with pytest.raises((TypeError, ValueError), match=rf"new_num_tokens.*{re.escape(said)}"):
        model.resize_token_embeddings(size)
    assert model.config.vocab_size == VOCAB
    with torch.no_grad():
        assert model(torch.tensor([[VOCAB - 1]]))[0].isfinite().all()


@pytest.mark.parametrize("model_class", MODELS)
def test_heads_stay(model_class: type[Any]) -> None:
    """Heads can't be pruned; the call says so and changes nothing (the published package ignored it in silence)."""
    model, ids = build(CASE, model_class), words(2, 5)
    with torch.no_grad():
        before = model(ids)
        with pytest.raises(NotImplementedError, match="prune"):
            model.prune_heads({0: [1]})
        assert_equal_outputs(model(ids), before, "unchanged", exact=True)


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_dropout_of_training(rate: float) -> None:
    """On in training only; that of the states and that of the probabilities each do something alone."""
    ids = words(2, 6)
    each: tuple[dict[str, Any], ...] = ({"dropout": rate}, {"dropatt": rate})
    for changes in each:
        model = build(CASE, TransfoXLModel, **changes)
        with torch.no_grad():
            expected = model(ids).last_hidden_state
            assert torch.equal(model(ids).last_hidden_state, expected)
            model.train()
            torch.manual_seed(1)
            dropped = model(ids).last_hidden_state
        assert torch.allclose(dropped, expected, atol=1e-5) == (rate == 0.0)
