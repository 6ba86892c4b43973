"""The classic GPT and GPT-2 models: the numbers, results, gradients and state dicts of 0.6.2, and its parts."""

import copy
import io
import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pytorch_transformers
from published import published
from pytorch_pretrained_bert import modeling_gpt2, modeling_openai
from pytorch_transformers.models import warn
from pytorch_transformers.models.original import save_original

from .bert_pairs import ATOL, assert_equal

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:dropout2d")  # of code from 2019

WORDS, BATCH, CHOICES, LENGTH, POSITIONS = 31, 2, 3, 7, 11
SIZES: dict[str, Any] = {"n_positions": POSITIONS, "n_ctx": POSITIONS, "n_embd": 20, "n_layer": 3, "n_head": 4}
#: Of states, which are about 3, and so is their rounding.
STATES = 3e-6


class Family(NamedTuple):
    """A family: our module, how its classes begin, and what else the configuration says."""

    module: types.ModuleType
    prefix: str
    sizes: dict[str, Any]

    @property
    def original(self) -> Any:
        """The module of 0.6.2."""
        return published("pytorch_pretrained_bert", self.module.__name__.rpartition(".")[2])

    def config(self, module: Any = None, **changes: Any) -> Any:
        kind = getattr(module or self.module, f"{self.prefix}Config")
        return kind(WORDS, **{**SIZES, **self.sizes, **changes})

    def ours(self, name: str, **changes: Any) -> Any:
        """One of our models, in evaluation mode, with every weight drawn."""
        torch.manual_seed(0)
        return drawn(getattr(self.module, self.prefix + name)(self.config(**changes))).eval()

    def pair(self, name: str, **changes: Any) -> tuple[Any, Any]:
        """Ours and theirs with the same weights, in evaluation mode."""
        mine = self.ours(name, **changes)
        theirs = getattr(self.original, self.prefix + name)(self.config(self.original, **changes)).eval()
        theirs.load_state_dict(mine.state_dict())
        return mine, theirs


GPT2 = Family(modeling_gpt2, "GPT2", {})
GPT = Family(modeling_openai, "OpenAIGPT", {"n_special": 2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0})
families = pytest.mark.parametrize("family", [GPT2, GPT], ids=["gpt2", "openai-gpt"])
KINDS = ("Model", "LMHeadModel", "DoubleHeadsModel")


def drawn(module: Any) -> Any:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.2 * torch.randn_like(parameter) + (1.0 if parameter.ndim == 1 else 0.0))
    return module


def draw(*shape: int, limit: int = WORDS, seed: int = 0) -> Tensor:
    return torch.randint(0, limit, shape, generator=torch.Generator().manual_seed(seed))


def inputs(kind: str) -> dict[str, Tensor]:
    shape = (BATCH, CHOICES, LENGTH) if kind == "DoubleHeadsModel" else (BATCH, LENGTH)
    more = {"mc_token_ids": draw(BATCH, CHOICES, limit=LENGTH)} if kind == "DoubleHeadsModel" else {}
    return {
        "input_ids": draw(*shape),
        "token_type_ids": draw(*shape, seed=1),
        "position_ids": draw(*shape, limit=POSITIONS, seed=2),
        **more,
    }


def word_labels(*shape: int) -> Tensor:
    labels = draw(*shape, seed=3)
    labels[..., 2] = -1
    return labels


def classic_gradients(model: nn.Module) -> dict[str, Tensor | None]:
    """Of each weight, under the name of 0.6.2."""
    gradients = {id(parameter): parameter.grad for parameter in model.parameters()}
    named = model.state_dict(keep_vars=True)
    return {name: gradients[id(value)] for name, value in named.items() if id(value) in gradients}


def assert_same_gradients(mine: nn.Module, theirs: nn.Module) -> None:
    found, expected = classic_gradients(mine), classic_gradients(theirs)
    assert found.keys() == expected.keys()
    assert any(gradient is not None for gradient in expected.values())
    for name, gradient in expected.items():
        assert (found[name] is None) == (gradient is None), name
        if gradient is not None:
            torch.testing.assert_close(found[name], gradient, rtol=1e-5, atol=ATOL)


def by_core_name(mine: nn.Module) -> dict[str, Tensor]:
    return {name.replace("head.linear", "head.summary"): value for name, value in mine.named_parameters()}


# --- numbers ----------------------------------------------------------------------------------------------------------


@families
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_outputs(family: Family, kind: str) -> None:
    mine, theirs = family.pair(kind)
    given = inputs(kind)
    assert_equal(mine(**given), theirs(**given), atol=STATES)
    plain = {key: value for key, value in given.items() if key in ("input_ids", "mc_token_ids")}
    assert_equal(mine(**plain), theirs(**plain), atol=STATES)


@families
@torch.no_grad()
def test_order_of_arguments(family: Family) -> None:
    """Positions come second, where `pytorch_transformers` has what came before, or the mask."""
    given = inputs("LMHeadModel")
    by_position = given["input_ids"], given["position_ids"], given["token_type_ids"]
    for kind in ("Model", "LMHeadModel"):
        mine, theirs = family.pair(kind)
        assert_equal(mine(*by_position), mine(**given), atol=0.0)
        assert_equal(mine(*by_position), theirs(*by_position), atol=STATES)
    mine, theirs = family.pair("DoubleHeadsModel")
    given = inputs("DoubleHeadsModel")
    order = (given["input_ids"], given["mc_token_ids"], None, None, given["token_type_ids"], given["position_ids"])
    assert_equal(mine(*order), theirs(*order), atol=STATES)
    labels = draw(BATCH, limit=CHOICES)
    assert_equal(mine(*order[:2], None, labels), theirs(*order[:2], None, labels))


@families
def test_loss_of_the_language_model(family: Family) -> None:
    """Labels are shifted here, -1 is ignored, and the loss comes alone; in training mode."""
    mine, theirs = family.pair("LMHeadModel")
    mine.train(), theirs.train()
    given = {**inputs("LMHeadModel"), "lm_labels": word_labels(BATCH, LENGTH)}
    loss, expected = mine(**given), theirs(**given)
    assert_equal(loss, expected)
    loss.backward(), expected.backward()
    assert_same_gradients(mine, theirs)


@pytest.mark.parametrize("labels", [("lm",), ("mc",), ("lm", "mc")], ids="+".join)
def test_losses_of_both_heads(labels: tuple[str, ...]) -> None:
    mine, theirs = GPT.pair("DoubleHeadsModel")
    mine.train(), theirs.train()
    wanted = {"lm": word_labels(BATCH, CHOICES, LENGTH), "mc": draw(BATCH, limit=CHOICES)}
    given = {**inputs("DoubleHeadsModel"), **{f"{name}_labels": wanted[name] for name in labels}}
    losses, expected = mine(**given), theirs(**given)
    assert_equal(losses, expected)
    sum(losses).backward(), sum(expected).backward()
    assert_same_gradients(mine, theirs)


def test_gpt2_shifts_labels_along_the_tokens() -> None:
    """0.6.2 shifts them along the choices, so that the loss of one choice alone is no number."""
    mine, theirs = GPT2.pair("DoubleHeadsModel")
    given = inputs("DoubleHeadsModel")
    labels, choice = word_labels(BATCH, CHOICES, LENGTH), draw(BATCH, limit=CHOICES)
    logits, mc_logits, _ = theirs(**given)
    mended = F.cross_entropy(logits[..., :-1, :].reshape(-1, WORDS), labels[..., 1:].reshape(-1), ignore_index=-1)
    losses = mine(**given, lm_labels=labels, mc_labels=choice)
    assert_equal(losses, [mended, F.cross_entropy(mc_logits, choice)])
    sum(losses).backward(), (mended + F.cross_entropy(mc_logits, choice)).backward()
    assert_same_gradients(mine, theirs)
    with torch.no_grad():
        assert not torch.isclose(theirs(**given, lm_labels=labels)[0], mended)
        one = {name: value[:, :1] for name, value in given.items()}
        assert theirs(**one, lm_labels=labels[:, :1])[0].isnan()
        assert mine(**one, lm_labels=labels[:, :1])[0].isfinite()
        assert_equal(mine(**one, mc_labels=0 * choice), theirs(**one, mc_labels=0 * choice))


@families
@torch.no_grad()
def test_inputs_with_more_axes(family: Family) -> None:
    """All before the last are a batch; the other inputs may be flattened, or one row for all."""
    ids, positions, types = (draw(2, 3, LENGTH, limit=limit, seed=limit) for limit in (WORDS, POSITIONS, 9))
    for kind in ("Model", "LMHeadModel"):
        mine, theirs = family.pair(kind)
        assert_equal(mine(ids, positions, types), theirs(ids, positions, types), atol=STATES)
        assert_equal(mine(ids, positions.view(6, -1)), theirs(ids, positions.view(6, -1)), atol=STATES)
        for one in (positions[0, 0], positions[:1, 0], positions[:1, :1]):
            assert_equal(mine(ids, one, one), theirs(ids, one, one), atol=STATES)
    lm = family.ours("LMHeadModel")
    assert_equal(lm(ids, lm_labels=ids), lm(ids.flatten(0, 1), lm_labels=ids.flatten(0, 1)))


@families
@torch.no_grad()
def test_positions_that_do_not_fit(family: Family) -> None:
    with pytest.raises(ValueError, match="position_ids: expected"):
        family.ours("Model")(draw(BATCH, LENGTH), draw(BATCH, LENGTH - 1, limit=POSITIONS))


@torch.no_grad()
def test_past() -> None:
    ids, types = draw(BATCH, LENGTH), draw(BATCH, LENGTH, seed=4)
    for kind in ("Model", "LMHeadModel"):
        mine, theirs = GPT2.pair(kind)
        whole, presents = mine(ids, token_type_ids=types)
        assert type(presents) is list
        past = their_past = None
        for start, stop in ((0, 3), (3, 4), (4, LENGTH)):
            piece = slice(start, stop)
            out, past = mine(ids[:, piece], token_type_ids=types[:, piece], past=past)
            expected, their_past = theirs(ids[:, piece], None, types[:, piece], past=their_past)
            assert_equal((out, past), (expected, their_past), atol=STATES)
            torch.testing.assert_close(out, whole[:, piece], rtol=ATOL, atol=STATES)
        assert_equal(past, presents, atol=STATES)
        assert_equal(mine(ids, past=[None] * 3), mine(ids), atol=0.0)


@torch.no_grad()
def test_past_of_choices() -> None:
    mine, theirs = GPT2.pair("DoubleHeadsModel")
    ids, places = draw(BATCH, CHOICES, LENGTH), draw(BATCH, CHOICES, limit=3)
    outputs = []
    for model in (mine, theirs):
        *_, past = model(ids[..., :4], places)
        outputs.append(model(ids[..., 4:], places, past=past))
    assert_equal(*outputs, atol=STATES)


@torch.no_grad()
def test_gpt2_never_drops_anything() -> None:
    """A model comes in training mode, as in 0.6.2, whose GPT-2 has no dropout."""
    mine = GPT2.ours("DoubleHeadsModel").train()
    given = inputs("DoubleHeadsModel")
    assert_equal(mine(**given), mine.eval()(**given), atol=0.0)


def test_choice_head_drops_the_same_of_all_choices() -> None:
    """As the original does; `pytorch_transformers` drops of each by itself."""
    config = GPT.config(resid_pdrop=0.5)
    mine = drawn(modeling_openai.OpenAIGPTMultipleChoiceHead(config)).train()
    theirs = GPT.original.OpenAIGPTMultipleChoiceHead(config).train()
    theirs.load_state_dict(mine.state_dict())
    hidden, places = torch.randn(BATCH, CHOICES, LENGTH, 20), draw(BATCH, CHOICES, limit=LENGTH)
    torch.manual_seed(5)
    found = mine(hidden, places)
    torch.manual_seed(5)
    assert_equal(found, theirs(hidden, places))
    same = hidden[:, :1].expand_as(hidden)
    scores = mine(same, places[:, :1].expand_as(places))
    torch.testing.assert_close(scores, scores[:, :1].expand_as(scores))
    model = GPT.ours("DoubleHeadsModel", resid_pdrop=0.5)
    assert isinstance(model.multiple_choice_head, modeling_openai.OpenAIGPTMultipleChoiceHead)
    assert model.multiple_choice_head.first_dropout.p == 0.5


@torch.no_grad()
def test_activations() -> None:
    x = torch.randn(50)
    for name in ("gelu", "swish"):
        torch.testing.assert_close(modeling_openai.ACT_FNS[name](x), GPT.original.ACT_FNS[name](x), rtol=0, atol=ATOL)
        mine, theirs = GPT.pair("Model", afn=name)
        assert_equal(mine(draw(BATCH, LENGTH)), theirs(draw(BATCH, LENGTH)), atol=STATES)
    torch.testing.assert_close(modeling_gpt2.gelu(x), GPT2.original.gelu(x), rtol=0, atol=ATOL)
    assert torch.equal(modeling_openai.swish(x), F.silu(x))
    assert torch.equal(modeling_openai.ACT_FNS["relu"](x), F.relu(x))
    assert GPT.ours("Model", afn="relu")(draw(BATCH, LENGTH)).isfinite().all()  # in 0.6.2 it fails


# --- state dicts ------------------------------------------------------------------------------------------------------


@families
@pytest.mark.parametrize("kind", KINDS)
def test_state_dicts_both_ways(family: Family, kind: str) -> None:
    mine, theirs = family.pair(kind)
    state, expected = mine.state_dict(), theirs.state_dict()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], value) for name, value in expected.items())
    other = getattr(family.module, family.prefix + kind)(family.config())
    other.load_state_dict(expected)
    assert all(torch.equal(other.state_dict()[name], value) for name, value in expected.items())
    del expected["transformer.h.1.attn.bias" if kind != "Model" else "h.1.attn.bias"]
    other.load_state_dict(expected)  # constants may be missing
    with pytest.raises(RuntimeError, match="Unexpected key"):
        other.load_state_dict({**expected, "h.1.attn.bias2": torch.zeros(1)})


@families
@pytest.mark.parametrize("kind", KINDS)
def test_names_and_order_of_parameters(family: Family, kind: str) -> None:
    """The state of an optimizer goes by it."""
    mine, theirs = family.pair(kind)
    assert [name for name, _ in mine.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    torch.testing.assert_close(list(mine.parameters()), list(theirs.parameters()), rtol=0, atol=0)


@families
def test_state_dict_inside_another_module(family: Family) -> None:
    mine, theirs = family.pair("DoubleHeadsModel")
    outer, other = nn.ModuleDict({"model": mine}), nn.ModuleDict({"model": theirs})
    assert outer.state_dict().keys() == other.state_dict().keys()
    other.load_state_dict(outer.state_dict())
    outer.load_state_dict(other.state_dict())
    assert list(mine.state_dict(prefix="x.")) == [f"x.{name}" for name in mine.state_dict()]


@families
def test_names_of_pytorch_transformers_load_too(
    family: Family, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    core = drawn(getattr(pytorch_transformers, f"{family.prefix}DoubleHeadsModel")(family.config()))
    mine = family.ours("DoubleHeadsModel")
    mine.load_state_dict(core.state_dict())
    torch.testing.assert_close(by_core_name(mine), dict(core.named_parameters()), rtol=0, atol=0)
    core.save_pretrained(tmp_path)
    loaded = type(mine).from_pretrained(str(tmp_path))
    torch.testing.assert_close(by_core_name(loaded), dict(core.named_parameters()), rtol=0, atol=0)
    assert not caplog.records


@families
def test_constants_are_in_a_file_once(family: Family) -> None:
    """The masks of all layers are one tensor, of the type of the model."""
    sizes = []
    for layers in (1, 4):
        mine = family.ours("Model", n_layer=layers, n_ctx=200, n_embd=4)
        file = io.BytesIO()
        torch.save(mine.state_dict(), file)
        sizes.append(file.tell())
    assert 160_000 < sizes[0] < sizes[1] < 200_000
    assert mine.half().state_dict()["h.2.attn.bias"].dtype == torch.float16
    assert mine.h[0].attn.bias.shape == (1, 1, 200, 200)


@families
@pytest.mark.parametrize("kind", KINDS)
def test_files_both_ways(family: Family, kind: str, tmp_path: Path) -> None:
    mine, theirs = family.pair(kind)
    for name, model, reader in (("of 0.6.2", theirs, mine), ("ours", mine, theirs)):
        folder = tmp_path / name
        folder.mkdir()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        (folder / "config.json").write_text(json.dumps(model.config.to_dict()))
        loaded = type(reader).from_pretrained(str(folder))
        assert loaded.training
        assert loaded.state_dict().keys() == model.state_dict().keys()
        torch.testing.assert_close(list(loaded.parameters()), list(model.parameters()), rtol=0, atol=0)


@families
def test_from_pretrained_with_a_state_dict(family: Family, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By position after the name, for GPT after the number of special tokens."""
    mine, theirs = family.pair("DoubleHeadsModel")
    torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text(theirs.config.to_json_string())
    state = {name: value + 1 for name, value in theirs.state_dict().items()}
    before = (2,) if family is GPT else ()
    loaded = type(mine).from_pretrained(str(tmp_path), *before, state)
    torch.testing.assert_close([value + 1 for value in mine.parameters()], list(loaded.parameters()), rtol=0, atol=0)
    assert loaded.lm_head.decoder.weight is next(loaded.transformer.parameters())
    assert not caplog.records


@families
def test_encoder_files_load_into_heads(family: Family, tmp_path: Path) -> None:
    """The published checkpoints are those of the decoder alone."""
    _, theirs = family.pair("Model")
    torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text(theirs.config.to_json_string())
    loaded = getattr(family.module, f"{family.prefix}LMHeadModel").from_pretrained(str(tmp_path)).eval()
    expected = getattr(family.original, f"{family.prefix}LMHeadModel").from_pretrained(str(tmp_path)).eval()
    with torch.no_grad():
        assert_equal(loaded(draw(BATCH, LENGTH)), expected(draw(BATCH, LENGTH)), atol=STATES)


@families
def test_saved_files_open_in_pytorch_transformers(family: Family, tmp_path: Path) -> None:
    mine = family.ours("DoubleHeadsModel")
    mine.save_pretrained(tmp_path)
    core = getattr(pytorch_transformers, f"{family.prefix}DoubleHeadsModel").from_pretrained(tmp_path)
    again = type(mine).from_pretrained(str(tmp_path))
    torch.testing.assert_close(dict(core.named_parameters()), by_core_name(mine), rtol=0, atol=0)
    torch.testing.assert_close(dict(again.named_parameters()), dict(mine.named_parameters()), rtol=0, atol=0)


@families
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: _saved(model)], ids=["deepcopy", "torch.save"])
def test_a_whole_model(family: Family, copied: Callable[[Any], Any]) -> None:
    mine = family.ours("DoubleHeadsModel")
    again = copied(mine)
    assert type(again) is type(mine)
    given = inputs("DoubleHeadsModel")
    with torch.no_grad():
        assert_equal(again(**given), mine(**given), atol=0.0)
    assert again.state_dict().keys() == mine.state_dict().keys()


def _saved(model: Any) -> Any:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("family", [GPT2, GPT], ids=["gpt2", "openai-gpt"])
@pytest.mark.parametrize("kind", ["Model", "LMHeadModel"])
def test_original_checkpoints(family: Family, kind: str, tmp_path: Path) -> None:
    core = drawn(getattr(pytorch_transformers, f"{family.prefix}Model")(family.config(**_NO_SPECIAL[family.prefix])))
    place = tmp_path / "model.ckpt" if family is GPT2 else tmp_path
    save_original(core, place)
    mine = family.ours(kind, **_NO_SPECIAL[family.prefix])
    load = modeling_gpt2.load_tf_weights_in_gpt2 if family is GPT2 else modeling_openai.load_tf_weights_in_openai_gpt
    assert load(mine, str(place)) is mine
    found = mine if kind == "Model" else mine.transformer
    torch.testing.assert_close(dict(found.named_parameters()), dict(core.named_parameters()), rtol=0, atol=0)


_NO_SPECIAL: dict[str, dict[str, Any]] = {"GPT2": {}, "OpenAIGPT": {"n_special": 0}}


@families
@torch.no_grad()
def test_text_generation(family: Family) -> None:
    """That of `pytorch_transformers`, with the same tokens."""
    mine = family.ours("LMHeadModel")
    core = getattr(pytorch_transformers, f"{family.prefix}LMHeadModel")(family.config()).eval()
    core.load_state_dict(dict(mine.named_parameters()), strict=False)
    core.tie_weights()
    found = mine.generate(draw(BATCH, 3), max_new_tokens=5)
    assert torch.equal(found.sequences, core.generate(draw(BATCH, 3), max_new_tokens=5).sequences)


# --- parts ------------------------------------------------------------------------------------------------------------


def part_pair(family: Family, name: str, *arguments: Any) -> tuple[Any, Any]:
    """A part of ours and theirs, with the same weights both ways."""
    config = family.config()
    mine = drawn(getattr(family.module, name)(*arguments, *(() if name == "Conv1D" else (config,))))
    theirs = getattr(family.original, name)(*arguments, *(() if name == "Conv1D" else (config,)))
    assert mine.state_dict().keys() == theirs.state_dict().keys()
    theirs.load_state_dict(mine.state_dict())
    mine.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(list(mine.parameters()), list(theirs.parameters()), rtol=0, atol=0)
    return mine.eval(), theirs.eval()


@families
@torch.no_grad()
def test_parts(family: Family) -> None:
    x = torch.randn(BATCH, LENGTH, 20)
    mine, theirs = part_pair(family, "Conv1D", 12, *([1] if family is GPT else []), 20)
    assert_equal(mine(x), theirs(x), atol=STATES)
    mine, theirs = part_pair(family, "MLP", 24)
    assert_equal(mine(x), theirs(x), atol=STATES)
    for scale in (False, True):
        for name, before in (("Attention", (20, POSITIONS)), ("Block", (POSITIONS,))):
            config = family.config()
            mine = drawn(getattr(family.module, name)(*before, config, scale))
            theirs = getattr(family.original, name)(*before, config, scale)
            theirs.load_state_dict(mine.state_dict())
            mine.load_state_dict(theirs.state_dict())
            torch.testing.assert_close(list(mine.parameters()), list(theirs.parameters()), rtol=0, atol=0)
            assert_equal(mine.eval()(x), theirs.eval()(x), atol=STATES)
            if family is GPT2:
                past = torch.randn(2, BATCH, 4, 3, 5)
                assert_equal(mine(x, past), theirs(x, layer_past=past), atol=STATES)
                assert_equal(mine(x[:, :1], layer_past=past), theirs(x[:, :1], past), atol=STATES)


@families
@torch.no_grad()
def test_steps_of_attention(family: Family) -> None:
    mine, theirs = family.pair("Model")
    mine, theirs = mine.h[1].attn, theirs.h[1].attn
    q, v = torch.randn(BATCH, 4, LENGTH, 5), torch.randn(BATCH, 4, LENGTH, 5)
    k = torch.randn(BATCH, 4, 5, LENGTH)
    assert_equal(mine._attn(q, k, v), theirs._attn(q, k, v), atol=STATES)
    if family is GPT2:  # where some come before
        assert_equal(mine._attn(q[:, :, 4:], k, v), theirs._attn(q[:, :, 4:], k, v), atol=STATES)
    plain, expected = (module.Attention(20, POSITIONS, family.config()) for module in (family.module, family.original))
    assert_equal(plain._attn(q, k, v), expected._attn(q, k, v), atol=STATES)
    assert torch.equal(mine.merge_heads(q), theirs.merge_heads(q))
    x = torch.randn(BATCH, LENGTH, 20)
    for turned in (False, True):
        assert torch.equal(mine.split_heads(x, turned), theirs.split_heads(x, k=turned))
    assert torch.equal(mine.bias, theirs.bias)


@families
@torch.no_grad()
def test_heads(family: Family) -> None:
    head, choice_head = f"{family.prefix}LMHead", f"{family.prefix}MultipleChoiceHead"
    table = nn.Parameter(torch.randn(WORDS, 20))
    mine = getattr(family.module, head)(table, family.config())
    theirs = getattr(family.original, head)(table, family.config())
    assert mine.state_dict().keys() == theirs.state_dict().keys()
    x = torch.randn(BATCH, CHOICES, LENGTH, 20)
    assert_equal(mine(x), theirs(x), atol=STATES)
    other = nn.Parameter(torch.randn(WORDS + 2, 20))
    mine.set_embeddings_weights(other)
    assert mine.decoder.weight is other
    assert mine(x).shape[-1] == mine.decoder.out_features == WORDS + 2
    mine, theirs = part_pair(family, choice_head)
    places = draw(BATCH, CHOICES, limit=LENGTH)
    assert_equal(mine(x, places), theirs(x, places), atol=STATES)


@families
def test_attributes_of_heads(family: Family) -> None:
    mine = family.ours("DoubleHeadsModel")
    table = mine.transformer.wte if family is GPT2 else mine.transformer.tokens_embed
    assert mine.lm_head.decoder.weight is table.weight
    assert mine.multiple_choice_head.linear.weight.shape == (1, 20)
    for part, name in ((mine.lm_head, "LMHead"), (mine.multiple_choice_head, "MultipleChoiceHead")):
        assert type(part) is getattr(family.module, family.prefix + name)
    for name in ("Attention", "Block", "MLP", "Conv1D"):
        assert any(isinstance(part, getattr(family.module, name)) for part in mine.modules())


def test_conv1d_of_gpt_is_linear_only() -> None:
    with pytest.raises(NotImplementedError, match="rf: 3"):
        modeling_openai.Conv1D(4, 3, 5)


# --- parts of a user's own --------------------------------------------------------------------------------------------


def replace_classes(model: Any, kind: type, make: Callable[[type], type]) -> Any:
    """Make each part that is of one class an instance of the subclass that `make` gives."""
    own = make(kind)
    found = [part for part in model.modules() if type(part) is kind]
    assert found
    for part in found:
        part.__class__ = own
    return model


def both_ways(family: Family, kind: str, change: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Ours and theirs after the same change, given model and module."""
    mine, theirs = family.pair(kind)
    change(mine, family.module), change(theirs, family.original)
    return mine, theirs


def assert_agree(mine: Any, theirs: Any, kind: str, plain: Any) -> None:
    """Numbers of ours, theirs, and of a model without the change, which has others; losses, too."""
    given = inputs(kind)
    with torch.no_grad():
        found = mine(**given)
        assert_equal(found, theirs(**given), atol=STATES)
        first, before = (x[0] if isinstance(x, tuple) else x for x in (found, plain(**given)))
        assert not torch.allclose(first, before)
        if kind == "LMHeadModel":
            labels = word_labels(BATCH, LENGTH)
            assert_equal(mine(**given, lm_labels=labels), theirs(**given, lm_labels=labels))


def changed_decoder(kind: type) -> type:
    class Twice(kind):  # type: ignore[misc]
        def forward(self, *args: Any) -> Any:
            """As 0.6.2 calls it: by position."""
            found = super().forward(*args)
            return (2 * found[0], found[1]) if isinstance(found, tuple) else 2 * found

    return Twice


@families
@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("how", ["subclass", "instance", "hook", "another module"])
def test_heads_call_the_decoder(family: Family, kind: str, how: str) -> None:
    """Whatever stands there, with the arguments of 0.6.2."""

    class Wrapped(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, *args: Any) -> Any:
            return doubled(self.inner(*args))

    def doubled(found: Any) -> Any:
        return (2 * found[0], found[1]) if isinstance(found, tuple) else 2 * found

    def change(model: Any, module: Any) -> None:
        inner = model.transformer
        if how == "subclass":
            replace_classes(model, type(inner), changed_decoder)
        elif how == "instance":
            plain = inner.forward
            inner.forward = lambda *args: doubled(plain(*args))
        elif how == "hook":
            inner.register_forward_hook(lambda _, args, found: doubled(found))
        else:
            model.transformer = Wrapped(inner)

    mine, theirs = both_ways(family, kind, change)
    assert_agree(mine, theirs, kind, family.ours(kind))


@families
def test_generation_refuses_a_decoder_of_your_own(family: Family) -> None:
    mine = replace_classes(family.ours("LMHeadModel"), getattr(family.module, f"{family.prefix}Model"), changed_decoder)
    with pytest.raises(NotImplementedError, match="a Twice, has a forward of its own"):
        mine.generate(draw(BATCH, 3), max_new_tokens=2)


@families
@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("bias", [False, True])
def test_another_output_layer(
    family: Family, kind: str, bias: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    torch.manual_seed(3)
    words = WORDS + 2 * (family is GPT)
    layer = nn.Linear(20, words, bias=bias)

    def change(model: Any, module: Any) -> None:
        model.lm_head.decoder = copy.deepcopy(layer)

    mine, theirs = both_ways(family, kind, change)
    assert type(mine.lm_head.decoder) is nn.Linear
    assert mine.lm_head.weight is mine.lm_head.decoder.weight
    assert_agree(mine, theirs, kind, family.ours(kind))
    state = mine.state_dict()
    assert state.keys() == theirs.state_dict().keys()
    assert {name for name, _ in mine.named_parameters()} == {name for name, _ in theirs.named_parameters()}
    again = copy.deepcopy(mine)
    drawn(again).load_state_dict(theirs.state_dict())
    assert torch.equal(again.lm_head.decoder.weight, layer.weight)
    theirs.load_state_dict(state)
    mine.save_pretrained(tmp_path / "untied")
    tied = type(mine).from_pretrained(str(tmp_path / "untied"))  # as in 0.6.2, whose loading ties
    assert tied.lm_head.decoder.weight is tied.get_input_embeddings().weight
    mine.tie_weights()
    assert mine.lm_head.decoder.weight is mine.get_input_embeddings().weight
    caplog.clear()
    mine.save_pretrained(tmp_path)
    assert not caplog.records
    loaded = type(mine).from_pretrained(str(tmp_path)).eval()
    if not bias:
        with torch.no_grad():
            assert_equal(loaded(**inputs(kind)), mine(**inputs(kind)), atol=STATES)


@families
def test_output_layer_of_another_model(family: Family) -> None:
    """The decoder of a head here is the head: its table is taken."""
    mine, other = family.ours("LMHeadModel"), drawn(family.ours("LMHeadModel"))
    names = mine.state_dict().keys()
    mine.lm_head.decoder = other.lm_head.decoder
    assert mine.lm_head.decoder.weight is other.lm_head.decoder.weight
    mine.lm_head.decoder = mine.lm_head.decoder
    assert mine.lm_head.decoder is mine.lm_head
    assert mine.state_dict().keys() == names


@families
@pytest.mark.parametrize("how", ["subclass", "hook", "linear"])
def test_head_with_its_own_forward(family: Family, how: str) -> None:
    """With labels, too."""

    def scaled(kind: type) -> type:
        class Scaled(kind):  # type: ignore[misc]
            def forward(self, hidden_state: Tensor) -> Any:
                return 3 * super().forward(hidden_state)

        return Scaled

    torch.manual_seed(3)
    linear = nn.Linear(20, WORDS + 2 * (family is GPT))

    def change(model: Any, module: Any) -> None:
        if how == "subclass":
            replace_classes(model, type(model.lm_head), scaled)
        elif how == "hook":
            model.lm_head.register_forward_hook(lambda _, args, scores: 3 * scores)
        else:
            model.lm_head = linear

    mine, theirs = both_ways(family, "LMHeadModel", change)
    assert_agree(mine, theirs, "LMHeadModel", family.ours("LMHeadModel"))


def own_part(family: Family, kind: type) -> type:
    """A layer or attention that doubles its states, with the signature of 0.6.2."""
    if family is GPT2:

        class WithPast(kind):  # type: ignore[misc]
            def forward(self, x: Tensor, layer_past: Any = None) -> Any:
                states, present = super().forward(x, layer_past)
                return 2 * states, present

        return WithPast

    class Plain(kind):  # type: ignore[misc]
        def forward(self, x: Tensor) -> Any:
            return 2 * super().forward(x)

    return Plain


@families
@pytest.mark.parametrize("part", ["Attention", "Block", "MLP"])
@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_your_own(family: Family, part: str, kind: str) -> None:
    def make(base: type) -> type:
        return own_part(GPT if part == "MLP" else family, base)

    def change(model: Any, module: Any) -> None:
        replace_classes(model, getattr(module, part), make)

    mine, theirs = both_ways(family, kind, change)
    assert_agree(mine, theirs, kind, family.ours(kind))
    ids = draw(BATCH, CHOICES, LENGTH) if kind == "DoubleHeadsModel" else draw(BATCH, LENGTH)
    arguments = (inputs(kind)["mc_token_ids"],) if kind == "DoubleHeadsModel" else ()
    results = []
    for model in (mine, theirs):
        model.zero_grad()
        found = model(ids, *arguments)
        (found[0] if isinstance(found, tuple) else found).sin().sum().backward()
        results.append(classic_gradients(model))
    for name, gradient in results[1].items():
        if gradient is not None:
            torch.testing.assert_close(results[0][name], gradient, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("part", ["Attention", "Block"])
@torch.no_grad()
def test_past_with_layers_of_your_own(part: str) -> None:
    def change(model: Any, module: Any) -> None:
        replace_classes(model, getattr(module, part), lambda base: own_part(GPT2, base))

    mine, theirs = both_ways(GPT2, "LMHeadModel", change)
    ids = draw(BATCH, LENGTH)
    found, expected = (model(ids[:, :4]) for model in (mine, theirs))
    assert_equal(found, expected, atol=STATES)
    assert_equal(mine(ids[:, 4:], past=found[1]), theirs(ids[:, 4:], past=expected[1]), atol=STATES)


@torch.no_grad()
def test_a_layer_that_is_no_block() -> None:
    class Halved(nn.Module):
        def forward(self, x: Tensor, layer_past: Any = None) -> tuple[Tensor, Tensor]:
            return x / 2, torch.zeros(2, BATCH, 4, x.shape[1], 5)

    def change(model: Any, module: Any) -> None:
        model.h[1] = Halved()

    mine, theirs = both_ways(GPT2, "Model", change)
    ids = draw(BATCH, LENGTH)
    (found, past), (expected, their_past) = mine(ids[:, :3]), theirs(ids[:, :3])
    assert_equal(found, expected, atol=STATES)
    assert_equal(mine(ids[:, 3:], past=past), theirs(ids[:, 3:], past=their_past), atol=STATES)


@families
@pytest.mark.parametrize("step", ["_attn", "merge_heads", "split_heads"])
@torch.no_grad()
def test_steps_of_your_own(family: Family, step: str) -> None:
    """A subclass may change a step of attention alone."""

    def make(base: type) -> type:
        def changed(self: Any, *args: Any, **named: Any) -> Any:
            return 1.5 * getattr(base, step)(self, *args, **named)

        return type("Changed", (base,), {step: changed})

    def change(model: Any, module: Any) -> None:
        replace_classes(model, module.Attention, make)

    mine, theirs = both_ways(family, "LMHeadModel", change)
    assert_agree(mine, theirs, "LMHeadModel", family.ours("LMHeadModel"))
    if family is GPT2:
        past = mine(draw(BATCH, 4))[1]
        assert_equal(mine(draw(BATCH, 2), past=past), theirs(draw(BATCH, 2), past=past), atol=STATES)


@families
@pytest.mark.parametrize("part", ["Attention", "Block"])
@torch.no_grad()
def test_hooks_see_the_arguments_of_the_classic_layers(family: Family, part: str) -> None:
    seen: dict[Any, list[Any]] = {}

    def change(model: Any, module: Any) -> None:
        layers = [layer for layer in model.modules() if type(layer) is getattr(module, part)]
        for layer in layers[1:]:
            layer.register_forward_hook(lambda _, args, found: seen.setdefault(module, []).append((args[0], found)))

    mine, theirs = both_ways(family, "Model", change)
    assert_equal(mine(draw(BATCH, LENGTH)), theirs(draw(BATCH, LENGTH)), atol=STATES)
    assert len(seen[family.module]) == 2
    assert_equal(seen[family.module], seen[family.original], atol=STATES)
    lm = family.ours("LMHeadModel")
    expected = lm.generate(draw(BATCH, 3), max_new_tokens=3).sequences
    change(lm, family.module)  # who only looks on keeps nothing from working
    assert torch.equal(lm.generate(draw(BATCH, 3), max_new_tokens=3).sequences, expected)


@families
def test_generation_refuses_layers_of_your_own(family: Family) -> None:
    mine = replace_classes(family.ours("LMHeadModel"), family.module.Block, lambda base: own_part(family, base))
    with pytest.raises(NotImplementedError, match="text generation: this model has a "):
        mine.generate(draw(BATCH, 3), max_new_tokens=2)


@families
def test_attributes_that_code_reads(family: Family) -> None:
    mine, theirs = family.pair("DoubleHeadsModel")
    for name in ("scale", "split_size", "n_head"):
        assert getattr(mine.transformer.h[0].attn, name) == getattr(theirs.transformer.h[0].attn, name)
    assert not family.module.Attention(20, POSITIONS, family.config()).scale
    for head in ("lm_head", "multiple_choice_head"):
        assert getattr(mine, head).n_embd == getattr(theirs, head).n_embd == 20
    assert family.module.logger.name == family.module.__name__


# --- special tokens, tying, initialisation ----------------------------------------------------------------------------


@torch.no_grad()
def test_special_tokens(tmp_path: Path) -> None:
    mine, theirs = GPT.pair("LMHeadModel")
    before = mine.transformer.tokens_embed.weight.clone()
    for model in (mine, theirs):
        model.set_num_special_tokens(5)
        assert model.config.n_special == 5
        assert model.config.total_tokens_embeddings == WORDS + 5
        assert model(draw(BATCH, LENGTH, limit=WORDS + 5)).shape[-1] == WORDS + 5
    table = mine.transformer.tokens_embed.weight
    assert mine.lm_head.decoder.weight is table
    assert torch.equal(table[: WORDS + 2], before)  # 0.6.2 keeps the words, and draws all special tokens anew
    torch.save(mine.state_dict(), tmp_path / "pytorch_model.bin")
    mine.config.to_json_file(tmp_path / "config.json")
    loaded = modeling_openai.OpenAIGPTDoubleHeadsModel.from_pretrained(str(tmp_path), num_special_tokens=1)
    assert loaded.config.n_special == 1
    assert torch.equal(loaded.transformer.tokens_embed.weight, table[: WORDS + 1])
    assert modeling_openai.OpenAIGPTModel.from_pretrained(str(tmp_path)).config.n_special == 5


def test_set_tied() -> None:
    mine = GPT2.ours("LMHeadModel")
    mine.transformer.wte.weight = nn.Parameter(torch.randn(WORDS, 20))
    assert mine.lm_head.decoder.weight is not mine.transformer.wte.weight
    mine.set_tied()
    assert mine.lm_head.decoder.weight is mine.transformer.wte.weight
    GPT2.ours("Model").set_tied()


@families
def test_new_weights(family: Family) -> None:
    """All matrices have the same spread; `pytorch_transformers` draws some of GPT-2's smaller, as the original does."""
    torch.manual_seed(0)
    model = getattr(family.module, f"{family.prefix}DoubleHeadsModel")(
        family.config(n_embd=120, n_layer=8, initializer_range=0.03)
    )
    for name, value in model.state_dict().items():
        if value.ndim == 2 and value.numel() > 1000:
            assert value.std().item() == pytest.approx(0.03, rel=0.1), name
    module = nn.Linear(300, 200)
    model.init_weights(module)
    assert module.weight.std().item() == pytest.approx(0.03, rel=0.05)
    assert not module.bias.any()


@families
def test_a_model_of_your_own(family: Family, tmp_path: Path) -> None:
    """As research code has it: parts of the package, `self.apply(self.init_weights)`, loading by name."""
    base, prefix = getattr(family.module, f"{family.prefix}PreTrainedModel"), family.prefix

    class Tagger(base):  # type: ignore[misc,valid-type]
        def __init__(self, config: Any, tags: int) -> None:
            super().__init__(config)
            self.transformer = getattr(family.module, f"{prefix}Model")(config)
            table = next(self.transformer.parameters())
            self.lm_head = getattr(family.module, f"{prefix}LMHead")(table, config)
            self.tags = nn.Linear(config.n_embd, tags)
            self.apply(self.init_weights)

        def set_tied(self) -> None:
            self.was_tied = True

        def forward(self, ids: Tensor) -> Any:
            states = self.transformer(ids)
            states = states[0] if isinstance(states, tuple) else states
            return self.lm_head(states), self.tags(states)

    _, theirs = family.pair("LMHeadModel")
    torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text(theirs.config.to_json_string())
    mine = Tagger.from_pretrained(str(tmp_path), tags=3).eval()
    ids = draw(BATCH, LENGTH)
    with torch.no_grad():
        scores, tags = mine(ids)
        expected = theirs(ids)
    assert_equal(scores, expected[0] if family is GPT2 else expected, atol=STATES)
    assert tags.shape == (BATCH, LENGTH, 3)
    assert hasattr(mine, "was_tied") == (family is GPT2)  # GPT has set_num_special_tokens in its place
    assert mine.lm_head.decoder.weight is next(mine.transformer.parameters())


# --- configurations ---------------------------------------------------------------------------------------------------


@families
def test_configurations(family: Family, tmp_path: Path) -> None:
    kind, theirs = (getattr(module, f"{family.prefix}Config") for module in (family.module, family.original))
    assert kind().to_dict().items() >= theirs().to_dict().items()
    mine = family.config()
    path = tmp_path / "config.json"
    mine.to_json_file(str(path))
    again = theirs.from_json_file(str(path))
    assert {key: getattr(again, key) for key in SIZES} == SIZES
    again.to_json_file(str(path))
    assert kind.from_json_file(str(path)) == kind(str(path)) == mine
    assert kind(vocab_size_or_config_json_file=str(path)) == mine
    assert kind.from_dict(json_object=again.to_dict()) == mine
    assert kind.from_dict(again.to_dict(), num_labels=5).num_labels == 5
    assert kind(vocab_size_or_config_json_file=WORDS).vocab_size == WORDS
    with pytest.raises(TypeError, match=f"{family.prefix}Model.from_pretrained"):
        getattr(family.module, f"{family.prefix}Model")(str(path))


def test_dropout_in_a_file_of_gpt2(caplog: pytest.LogCaptureFixture) -> None:
    """Files of later programs have some; a GPT-2 of 0.6.2 has none, and ours says so."""
    warn.warn_once.cache_clear()
    config = modeling_gpt2.GPT2Config.from_dict({"vocab_size": WORDS, "attn_pdrop": 0.1, "embd_pdrop": 0.0})
    assert config.attn_pdrop == 0.0
    assert "attn_pdrop stay 0" in caplog.text
    caplog.clear()
    modeling_gpt2.GPT2Config.from_dict(config.to_dict())
    assert not caplog.records
