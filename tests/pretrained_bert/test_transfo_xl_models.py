"""The classic Transformer-XL: the numbers, results, gradients and state dicts of 0.6.2, its parts, and what it mends.

The 0.6.2 of the comparisons computes with masks of type bool: with its own, of bytes, a current torch refuses.
"""

import copy
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pytorch_transformers
from published import published
from pytorch_pretrained_bert import modeling_transfo_xl, modeling_transfo_xl_utilities
from pytorch_pretrained_bert.modeling_transfo_xl import TransfoXLConfig, TransfoXLLMHeadModel, TransfoXLModel
from pytorch_transformers.models.original import save_original

from .bert_pairs import ATOL, assert_equal

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of code from 2019

WORDS, BATCH, LENGTH = 41, 3, 6
SIZES: dict[str, Any] = {
    "cutoffs": [9, 20],
    "d_model": 16,
    "d_embed": 14,
    "n_head": 3,
    "d_head": 5,
    "d_inner": 19,
    "div_val": 2,
    "n_layer": 3,
    "tgt_len": LENGTH,
    "mem_len": 8,
    "clamp_len": 9,
    "dropout": 0.0,
}
#: What else a configuration can say.
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "one width": {"div_val": 1},
    "one width, not projected": {"div_val": 1, "d_embed": 16},
    "one width, no shared projection": {"div_val": 1, "proj_share_all_but_first": False},
    "no clusters": {"cutoffs": [], "div_val": 1},
    "own projections": {"proj_share_all_but_first": False},
    "own tables": {"tie_weight": False},
    "shared biases": {"untie_r": False},
    "normalised first": {"pre_lnorm": True},
    "all there are": {"same_length": False},
    "no clamp": {"clamp_len": -1},
    "extended": {"ext_len": 2},
    "no memory": {"mem_len": 0, "same_length": False},
    "short memory": {"mem_len": 3},
}
#: Of log-probabilities and states, which are about 4, and so is their rounding.
STATES = 3e-6
variants = pytest.mark.parametrize("variant", VARIANTS)
#: The softmax of 0.6.2 without clusters fails.
with_clusters = pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "no clusters"])


@pytest.fixture
def original(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of 0.6.2, with masks that torch takes today."""
    module = published("pytorch_pretrained_bert", "modeling_transfo_xl")
    plain = Tensor.masked_fill
    monkeypatch.setattr(Tensor, "masked_fill", lambda x, mask, value: plain(x, mask.bool(), value))
    return module


def drawn(module: Any, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.2 * torch.randn_like(parameter) + (1.0 if parameter.ndim == 1 else 0.0))
    return module


def ours(name: str = "TransfoXLLMHeadModel", **changes: Any) -> Any:
    config = TransfoXLConfig(WORDS, **{**SIZES, **changes})
    return drawn(getattr(modeling_transfo_xl, name)(config)).eval()


def pair(original: Any, name: str = "TransfoXLLMHeadModel", **changes: Any) -> tuple[Any, Any]:
    """Ours and theirs with the same weights, in evaluation mode; losses of theirs in the order of the tokens."""
    mine = ours(name, **changes)
    theirs = getattr(original, name)(original.TransfoXLConfig(WORDS, **{**SIZES, **changes})).eval()
    theirs.load_state_dict(mine.state_dict())
    if hasattr(theirs, "crit"):
        theirs.tie_weights()
        theirs.crit.keep_order = True
    return mine, theirs


def ids(seed: int = 0, tokens: int = LENGTH) -> Tensor:
    return torch.randint(0, WORDS, (BATCH, tokens), generator=torch.Generator().manual_seed(seed))


# --- numbers ----------------------------------------------------------------------------------------------------------


@variants
@torch.no_grad()
def test_segments_of_a_text(original: Any, variant: str) -> None:
    """Each continues from the memory of the one before; they differ in length."""
    mine, theirs = pair(original, "TransfoXLModel", **VARIANTS[variant])
    memory = their_memory = None
    for number, tokens in enumerate((LENGTH, LENGTH, 3, LENGTH + 2)):
        segment = ids(number, tokens)
        found, expected = mine(segment, memory), theirs(segment, their_memory)
        assert type(found) is tuple
        assert_equal(found[0], expected[0], atol=STATES)
        memory, their_memory = found[1], expected[1]
        if SIZES["mem_len"] and variant != "no memory":
            assert type(memory) is list
            assert_equal(memory, their_memory, atol=STATES)
        else:
            assert memory is their_memory is None


@with_clusters
@torch.no_grad()
def test_log_probabilities(original: Any, variant: str) -> None:
    mine, theirs = pair(original, **VARIANTS[variant])
    found, expected = mine(ids()), theirs(ids())
    assert_equal(found[0], expected[0], atol=STATES)
    torch.testing.assert_close(found[0].exp().sum(-1), torch.ones(BATCH, LENGTH))
    again, expected_again = mine(ids(1), mems=found[1]), theirs(ids(1), mems=expected[1])
    assert_equal(again[0], expected_again[0], atol=STATES)


@with_clusters
def test_losses_and_gradients(original: Any, variant: str) -> None:
    """One number for each token, without a mean; over two segments, in training mode."""
    mine, theirs = pair(original, **VARIANTS[variant])
    mine.train(), theirs.train()
    memory = their_memory = None
    for number in (1, 2):
        found, memory = mine(ids(number), ids(number + 1), memory)
        expected, their_memory = theirs(ids(number), ids(number + 1), their_memory)
        assert found.shape == (BATCH, LENGTH)
        assert_equal(found, expected, atol=STATES)
        found.mean().backward(), expected.mean().backward()
    assert [name for name, _ in mine.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    assert any(parameter.grad is not None for parameter in theirs.parameters())
    for (name, parameter), other in zip(mine.named_parameters(), theirs.parameters(), strict=True):
        if other.grad is None or not other.grad.any():
            assert parameter.grad is None or parameter.grad.abs().max() < ATOL, name
        else:
            torch.testing.assert_close(parameter.grad, other.grad, rtol=1e-4, atol=2 * ATOL, msg=name)


def test_without_clusters(original: Any) -> None:
    """0.6.2 builds such a model, and fails in `forward`; its `log_prob` works then."""
    mine, theirs = pair(original, **VARIANTS["no clusters"])
    with pytest.raises(UnboundLocalError):
        theirs(ids())
    hidden = theirs.transformer(ids())[0].flatten(0, 1)
    scores, losses = mine(ids())[0], mine(ids(), ids(1))[0]
    assert_equal(scores.flatten(0, 1), theirs.crit.log_prob(hidden), atol=STATES)
    torch.testing.assert_close(losses, -scores.gather(-1, ids(1)[..., None]).squeeze(-1), rtol=ATOL, atol=STATES)


@torch.no_grad()
def test_losses_are_those_of_the_tokens(original: Any) -> None:
    """Those of 0.6.2 are grouped by the cluster of the target."""
    mine, theirs = pair(original)
    theirs.crit.keep_order = False
    found, expected = mine(ids(), ids(1))[0], theirs(ids(), ids(1))[0]
    scores = mine(ids())[0]
    torch.testing.assert_close(found, -scores.gather(-1, ids(1)[..., None]).squeeze(-1), rtol=ATOL, atol=STATES)
    cluster = torch.bucketize(ids(1).flatten(), torch.tensor(SIZES["cutoffs"]), right=True)
    assert_equal(found.flatten()[cluster.argsort(stable=True)], expected.flatten(), atol=STATES)
    assert not torch.allclose(found, expected)


@torch.no_grad()
def test_targets_of_any_form() -> None:
    mine = ours()
    assert_equal(mine(ids(), ids(1).flatten()), mine(ids(), target=ids(1)), atol=0.0)
    target = ids(1)
    target[:, 2] = -1
    losses, _ = mine(ids(), target)
    assert not losses[:, 2].any()
    with pytest.raises(ValueError, match="labels: expected"):
        mine(ids(), torch.zeros(BATCH + 1, LENGTH, dtype=torch.long))


@torch.no_grad()
def test_without_a_memory_a_token_sees_itself(original: Any) -> None:
    """In 0.6.2, with `same_length`, it sees all tokens alike then, those that follow included."""
    mine, theirs = pair(original, mem_len=0, same_length=True)
    other = ids()
    other[:, -1] = (other[:, -1] + 1) % WORDS
    assert torch.allclose(mine(ids())[0][:, :-1], mine(other)[0][:, :-1])
    assert not torch.allclose(theirs(ids())[0][:, :-1], theirs(other)[0][:, :-1])


@torch.no_grad()
def test_the_extended_context_stays_out_of_the_memory(original: Any) -> None:
    """In 0.6.2 not where the memory is shorter than it."""
    mine, theirs = pair(original, "TransfoXLModel", ext_len=2)
    empty = [torch.zeros(0, BATCH, 16)] * 3
    found, expected = mine(ids(), empty)[1], theirs(ids(), empty)[1]
    assert [layer.shape[0] for layer in found] == [LENGTH - 2] * 3
    assert [layer.shape[0] for layer in expected] == [LENGTH] * 3
    assert_equal(found, [layer[:-2] for layer in expected], atol=STATES)


@torch.no_grad()
def test_one_token_fewer_than_the_original_program() -> None:
    """`same_length` lets a token see `mem_len` - 1 tokens before it; `pytorch_transformers` makes it `mem_len`."""
    mine = ours("TransfoXLModel", n_layer=1)
    core = pytorch_transformers.TransfoXLModel(pytorch_transformers.TransfoXLConfig(WORDS, **{**SIZES, "n_layer": 1}))
    core.load_state_dict({name: value for name, value in mine.state_dict().items() if "inv_freq" not in name})
    assert mine.config.same_length_one_fewer
    assert not core.config.same_length_one_fewer
    memory = [torch.randn(8, BATCH, 16)]
    changed = [memory[0].clone()]
    changed[0][0] += 1
    assert torch.equal(mine(ids(), memory)[0], mine(ids(), changed)[0])
    first, second = (core.eval()(ids(), mems=m).last_hidden_state for m in (memory, changed))
    assert not torch.allclose(first[:, 0], second[:, 0])


@torch.no_grad()
def test_memory_at_the_start(original: Any) -> None:
    """Ids come with tokens first here, as 0.6.2 has it."""
    for name in ("TransfoXLModel", "TransfoXLLMHeadModel"):
        mine, theirs = pair(original, name)
        data = torch.zeros(7, 2, dtype=torch.long)
        found = mine.init_mems(data)
        assert_equal(found, theirs.init_mems(data), atol=0.0)
        assert type(found) is list
        assert found[0].shape == (8, 2, 16)
        assert_equal(mine.init_mems(2), found, atol=0.0)
        assert_equal(mine(ids(), mems=mine.init_mems(ids().t())), mine(ids()), atol=0.0)
        mine.reset_length(4, 1, 0)
        assert mine.init_mems(data) is None
        mine.reset_length(tgt_len=4, ext_len=0, mem_len=5)
        assert mine.init_mems(data)[0].shape[0] == 5
        theirs.reset_length(4, 0, 5)
        assert_equal(mine(ids())[1], theirs(ids())[1], atol=STATES)


# --- state dicts ------------------------------------------------------------------------------------------------------


@variants
@pytest.mark.parametrize("name", ["TransfoXLModel", "TransfoXLLMHeadModel"])
def test_state_dicts_both_ways(original: Any, variant: str, name: str) -> None:
    mine, theirs = pair(original, name, **VARIANTS[variant])
    state, expected = mine.state_dict(), theirs.state_dict()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[key], value) for key, value in expected.items())
    other = getattr(modeling_transfo_xl, name)(mine.config)
    other.load_state_dict(expected)
    torch.testing.assert_close(list(other.parameters()), list(theirs.parameters()), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["TransfoXLModel", "TransfoXLLMHeadModel"])
def test_files_both_ways(original: Any, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mine, theirs = pair(original, name)
    for label, model, reader in (("of 0.6.2", theirs, mine), ("ours", mine, theirs)):
        folder = tmp_path / label
        folder.mkdir()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        model.config.to_json_file(str(folder / "config.json"))
        loaded = type(reader).from_pretrained(str(folder))
        assert loaded.training
        torch.testing.assert_close(dict(loaded.named_parameters()), dict(model.named_parameters()), rtol=0, atol=0)
    state = {key: value + 1 for key, value in theirs.state_dict().items()}
    loaded = type(mine).from_pretrained(str(tmp_path / "of 0.6.2"), state)
    torch.testing.assert_close([x + 1 for x in mine.parameters()], list(loaded.parameters()), rtol=0, atol=0)
    assert not caplog.records


def test_saved_files_open_in_pytorch_transformers(tmp_path: Path) -> None:
    """With the numbers of the classic model, as the file says how much a token sees."""
    mine = ours()
    mine.save_pretrained(tmp_path)
    core = pytorch_transformers.TransfoXLLMHeadModel.from_pretrained(tmp_path)
    with torch.no_grad():
        first = mine(ids())
        second = core(ids(1), mems=first[1], labels=ids(2))
        assert_equal(mine(ids(1), ids(2), first[1]), (second.loss, list(second.mems)), atol=0.0)


@torch.no_grad()
def test_text_generation(tmp_path: Path) -> None:
    """That of `pytorch_transformers`, with the same tokens."""
    mine = ours()
    mine.save_pretrained(tmp_path)
    core = pytorch_transformers.TransfoXLLMHeadModel.from_pretrained(tmp_path)
    found, expected = (model.generate(ids(), max_new_tokens=12).sequences for model in (mine, core))
    assert torch.equal(found, expected)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: _saved(model)], ids=["deepcopy", "torch.save"])
def test_a_whole_model(copied: Callable[[Any], Any]) -> None:
    mine = ours()
    again = copied(mine)
    assert type(again) is TransfoXLLMHeadModel
    with torch.no_grad():
        assert_equal(again(ids(), ids(1)), mine(ids(), ids(1)), atol=0.0)
    assert again.state_dict().keys() == mine.state_dict().keys()
    assert again.crit.out_layers[1].weight is again.transformer.word_emb.emb_layers[1].weight


def _saved(model: Any) -> Any:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


# --- checkpoints of the original --------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["plain", "one width", "own projections", "shared biases"])
@pytest.mark.parametrize("name", ["TransfoXLModel", "TransfoXLLMHeadModel"])
def test_original_checkpoints(variant: str, name: str, tmp_path: Path) -> None:
    core = drawn(pytorch_transformers.TransfoXLLMHeadModel(TransfoXLConfig(WORDS, **{**SIZES, **VARIANTS[variant]})))
    save_original(core, tmp_path / "model.ckpt")
    mine = ours(name, **VARIANTS[variant])
    with torch.no_grad():
        for parameter in mine.parameters():
            parameter.zero_()
    load = modeling_transfo_xl.load_tf_weights_in_transfo_xl
    assert load(mine, mine.config, str(tmp_path / "model.ckpt")) is mine
    expected = core.transformer if name == "TransfoXLModel" else core
    torch.testing.assert_close(dict(mine.named_parameters()), dict(expected.named_parameters()), rtol=0, atol=0)


@pytest.mark.parametrize("variant", ["plain", "own projections", "shared biases"])
@pytest.mark.parametrize("name", ["TransfoXLModel", "TransfoXLLMHeadModel"])
def test_names_of_the_original(original: Any, variant: str, name: str) -> None:
    mine, theirs = pair(original, name, **VARIANTS[variant])
    found = modeling_transfo_xl.build_tf_to_pytorch_map(mine, mine.config)
    expected = original.build_tf_to_pytorch_map(theirs, theirs.config)
    assert found.keys() == expected.keys()
    own = {id(parameter) for parameter in mine.parameters()}
    for key, value in expected.items():
        assert type(found[key]) is type(value), key
        torch.testing.assert_close(found[key], value, rtol=0, atol=0)
        assert {id(x) for x in (found[key] if isinstance(value, list) else [found[key]])} <= own


def test_pieces_of_the_original() -> None:
    """With one width the biases of the output are one array here, of which the original has a piece a cluster."""
    mine = ours(div_val=1)
    found = modeling_transfo_xl.build_tf_to_pytorch_map(mine, mine.config)
    assert found["transformer/adaptive_embed/lookup_table"] is mine.transformer.word_emb.emb_layers[0].weight
    assert torch.equal(found["transformer/adaptive_softmax/cutoff_1/b"], mine.crit.out_layers[0].bias[9:20])


# --- parts ------------------------------------------------------------------------------------------------------------


def part_pair(original: Any, name: str, *arguments: Any, **named: Any) -> tuple[Any, Any]:
    mine = drawn(getattr(modeling_transfo_xl, name)(*arguments, **named))
    theirs = getattr(original, name)(*arguments, **named)
    assert mine.state_dict().keys() == theirs.state_dict().keys()
    theirs.load_state_dict(mine.state_dict())
    mine.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(list(mine.parameters()), list(theirs.parameters()), rtol=0, atol=0)
    return mine.eval(), theirs.eval()


@pytest.mark.parametrize("pre_lnorm", [False, True])
def test_layers(original: Any, pre_lnorm: bool) -> None:
    """Tokens first; masks of both forms, and the gradients."""
    position, _ = part_pair(original, "PositionalEmbedding", 16)
    hidden, memory = torch.randn(LENGTH, BATCH, 16), torch.randn(4, BATCH, 16)
    keys = LENGTH + 4
    sinusoids = position(torch.arange(keys - 1, -1, -1.0))
    causal = torch.ones(LENGTH, keys).triu(5).byte()[:, :, None]
    padded = (torch.rand(keys, BATCH) < 0.3).byte()
    for name, inner in (("RelPartialLearnableMultiHeadAttn", ()), ("RelPartialLearnableDecoderLayer", (19,))):
        arguments = (3, 16, 5, *inner, 0.0)
        lengths = {"tgt_len": 6, "ext_len": 0, "mem_len": 4}
        mine, theirs = part_pair(original, name, *arguments, dropatt=0.0, pre_lnorm=pre_lnorm, **lengths)
        for mask in (None, causal, padded):
            given = (hidden, sinusoids, mask, memory)
            found, expected = mine(*given), theirs(*given)
            assert_equal(found, expected, atol=STATES)
            for model, output in ((mine, found), (theirs, expected)):
                model.zero_grad()
                (output * output.detach().sin()).sum().backward()
            for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
                torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-4)
        mask_name = "attn_mask" if not inner else "dec_attn_mask"
        alone = {mask_name: causal[:, 4:]}
        assert_equal(mine(hidden, sinusoids[4:], **alone), theirs(hidden, sinusoids[4:], **alone), atol=STATES)


@torch.no_grad()
def test_masks_in_half_precision() -> None:
    """The number for keys that aren't seen is beyond its range."""
    layer = modeling_transfo_xl.RelPartialLearnableDecoderLayer(3, 16, 5, 19, 0.0)
    layer = drawn(layer).eval().to(torch.float16)
    hidden, sinusoids = torch.randn(LENGTH, BATCH, 16).half(), torch.randn(LENGTH, 1, 16).half()
    mask = torch.ones(LENGTH, LENGTH).triu(1)[:, :, None]
    found = layer(hidden, sinusoids, mask)
    hidden[-1] += 1
    assert torch.equal(layer(hidden, sinusoids, mask)[:-1], found[:-1])
    assert found.isfinite().all()


@torch.no_grad()
def test_other_parts(original: Any) -> None:
    mine, theirs = part_pair(original, "PositionalEmbedding", 16)
    places = torch.arange(9, -1, -1.0)
    for batch in ((), (3,)):
        assert_equal(mine(places, *batch), theirs(places, *batch), atol=2 * ATOL)
    assert_equal(mine.inv_freq, theirs.inv_freq)
    for pre_lnorm in (False, True):
        mine, theirs = part_pair(original, "PositionwiseFF", 16, 19, 0.0, pre_lnorm)
        assert_equal(mine(torch.ones(2, 3, 16)), theirs(torch.ones(2, 3, 16)), atol=STATES)
    for div_val, width in ((1, 16), (1, 14), (2, 14)):
        mine, theirs = part_pair(original, "AdaptiveEmbedding", WORDS, width, 16, [9, 20], div_val)
        assert_equal(mine(ids()), theirs(ids()), atol=STATES)


@pytest.mark.parametrize(("cutoffs", "div_val"), [([9, 20], 2), ([9, 20], 1), ([], 1)])
@torch.no_grad()
def test_softmax(original: Any, cutoffs: list[int], div_val: int) -> None:
    mine, theirs = part_pair(original, "ProjectedAdaptiveLogSoftmax", WORDS, 14, 16, cutoffs, div_val)
    assert modeling_transfo_xl.ProjectedAdaptiveLogSoftmax is modeling_transfo_xl_utilities.ProjectedAdaptiveLogSoftmax
    hidden, target = torch.randn(18, 16), ids().flatten()
    expected = theirs(hidden) if cutoffs else theirs.log_prob(hidden)  # each fails in the other case
    assert_equal(mine(hidden), expected, atol=STATES)
    assert_equal(mine.log_prob(hidden), expected, atol=STATES)
    ordered = -expected.gather(1, target[:, None]).squeeze(1)
    if cutoffs:
        assert_equal(theirs(hidden, target, keep_order=True), ordered, atol=STATES)
    for found in (mine(hidden, target), mine(hidden, target=ids(), keep_order=True)):
        assert_equal(found, ordered, atol=STATES)
    projection = torch.randn(16, 14)
    for proj, states in ((None, hidden[:, :14]), (projection, hidden)):
        weight, bias = torch.randn(5, 14), torch.randn(5)
        assert_equal(
            mine._compute_logit(states, weight, bias, proj),
            theirs._compute_logit(states, weight, bias, proj),
            atol=STATES,
        )
    with pytest.raises(ValueError, match="target: 17 words"):
        mine(hidden, target[:-1])


@torch.no_grad()
def test_shift(original: Any) -> None:
    mine, theirs = part_pair(original, "RelPartialLearnableMultiHeadAttn", 3, 16, 5, 0.0)
    x = torch.randn(4, 6, 2, 3)
    for zeros in (False, True):
        assert_equal(mine._rel_shift(x, zeros), theirs._rel_shift(x, zero_triu=zeros))
    assert issubclass(modeling_transfo_xl.RelPartialLearnableMultiHeadAttn, modeling_transfo_xl.RelMultiHeadAttn)


def test_parts_are_classic() -> None:
    mine = ours()
    assert type(mine.crit) is modeling_transfo_xl.ProjectedAdaptiveLogSoftmax
    for layer in mine.transformer.layers:
        assert type(layer) is modeling_transfo_xl.RelPartialLearnableDecoderLayer
        assert type(layer.dec_attn) is modeling_transfo_xl.RelPartialLearnableMultiHeadAttn
        assert type(layer.pos_ff) is modeling_transfo_xl.PositionwiseFF


@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [
        (modeling_transfo_xl, "MultiHeadAttn", (2, 8, 4, 0.0)),
        (modeling_transfo_xl, "RelMultiHeadAttn", (2, 8, 4, 0.0)),
        (modeling_transfo_xl, "RelLearnableMultiHeadAttn", (2, 8, 4, 0.0)),
        (modeling_transfo_xl, "DecoderLayer", (2, 8, 4, 9, 0.0)),
        (modeling_transfo_xl, "RelLearnableDecoderLayer", (2, 8, 4, 9, 0.0)),
        (modeling_transfo_xl, "sample_logits", (None,) * 5),
        (modeling_transfo_xl_utilities, "sample_logits", (None,) * 5),
        (modeling_transfo_xl_utilities, "LogUniformSampler", (100, 5)),
    ],
)
def test_what_is_not_supported(module: Any, name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(NotImplementedError, match=f"{name}: .*use "):
        getattr(module, name)(*arguments)


@pytest.mark.parametrize("option", [{"attn_type": 1}, {"attn_type": 2}, {"sample_softmax": 5}])
def test_options_that_are_not_supported(option: dict[str, int]) -> None:
    with pytest.raises(NotImplementedError, match=next(iter(option))):
        TransfoXLConfig(WORDS, **{**SIZES, **option})


# --- parts of a user's own --------------------------------------------------------------------------------------------


def replace_class(part: Any, make: Callable[[type], type]) -> None:
    part.__class__ = make(type(part))


@pytest.mark.parametrize("how", ["subclass", "instance", "hook", "another module"])
def test_the_head_calls_the_decoder(original: Any, how: str) -> None:
    def doubled(found: Any) -> Any:
        return 2 * found[0], found[1]

    def subclass(kind: type) -> type:
        class Twice(kind):  # type: ignore[misc]
            def forward(self, input_ids: Tensor, mems: Any = None) -> Any:
                return doubled(super().forward(input_ids, mems))

        return Twice

    class Wrapped(nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, input_ids: Tensor, mems: Any = None) -> Any:
            return doubled(self.inner(input_ids, mems))

    mine, theirs = pair(original)
    plain = ours()
    for model in (mine, theirs):
        inner = model.transformer
        if how == "subclass":
            replace_class(inner, subclass)
        elif how == "instance":
            model.transformer.forward = lambda *args, before=inner.forward: doubled(before(*args))
        elif how == "hook":
            inner.register_forward_hook(lambda _, args, found: doubled(found))
        else:
            model.transformer = Wrapped(inner)
    with torch.no_grad():
        if how == "another module":  # 0.6.2 looks for `sample_softmax` alone, which is the head's
            theirs.transformer.init_mems = theirs.transformer.inner.init_mems
        found, expected, before = (model(ids()) for model in (mine, theirs, plain))
        assert_equal(found, expected, atol=STATES)
        assert not torch.allclose(found[0], before[0])
        assert_equal(mine(ids(1), ids(2), found[1]), theirs(ids(1), ids(2), expected[1]), atol=STATES)
    if how in ("subclass", "instance"):
        with pytest.raises(NotImplementedError, match="has a forward of its own"):
            mine.generate(ids(), max_new_tokens=2)


def own_layer(kind: type) -> type:
    """A layer with the signature of 0.6.2, by name where it passes names."""

    class Layer(kind):  # type: ignore[misc]
        def forward(self, dec_inp: Tensor, r: Tensor, dec_attn_mask: Any = None, mems: Any = None) -> Tensor:
            assert dec_attn_mask.ndim == 3
            result: Tensor = super().forward(dec_inp, r, dec_attn_mask=dec_attn_mask, mems=mems)
            return 1.5 * result

    return Layer


def own_attention(kind: type) -> type:
    class Attention(kind):  # type: ignore[misc]
        def forward(self, w: Tensor, r: Tensor, attn_mask: Any = None, mems: Any = None) -> Tensor:
            result: Tensor = super().forward(w, r, attn_mask=attn_mask, mems=mems)
            return 1.5 * result

    return Attention


@pytest.mark.parametrize("variant", ["plain", "all there are", "no memory", "normalised first", "short memory"])
@pytest.mark.parametrize("part", ["layer", "attention"])
def test_layers_of_your_own(original: Any, variant: str, part: str) -> None:
    mine, theirs = pair(original, **VARIANTS[variant])
    plain = ours(**VARIANTS[variant])
    for model in (mine, theirs):
        layer = model.transformer.layers[1]
        replace_class(layer if part == "layer" else layer.dec_attn, own_layer if part == "layer" else own_attention)
    found_mems = expected_mems = None
    for seed, tokens in enumerate((LENGTH, 1, 4)):
        text, target = ids(seed, tokens), ids(seed + 9, tokens)
        with torch.no_grad():
            assert_equal(mine(text, mems=found_mems)[0], theirs(text, mems=expected_mems)[0], atol=STATES)
            # A token that sees itself alone is only scaled, and the next layer normalises.
            alone = tokens == 1 and variant == "no memory"
            assert alone or not torch.allclose(mine(text, target, found_mems)[0], plain(text, target, found_mems)[0])
        found, found_mems = mine(text, target, found_mems)
        expected, expected_mems = theirs(text, target, expected_mems)
        assert_equal(found, expected, atol=STATES)
        assert_equal(found_mems or [], expected_mems or [], atol=STATES)
        for model, loss in ((mine, found), (theirs, expected)):
            model.zero_grad()
            loss.mean().backward()
        theirs_by_name = dict(theirs.named_parameters())
        for name, parameter in mine.named_parameters():
            torch.testing.assert_close(parameter.grad, theirs_by_name[name].grad, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_what_layers_of_your_own_cannot_do() -> None:
    mine = ours()
    replace_class(mine.transformer.layers[2], own_layer)
    with pytest.raises(NotImplementedError, match="text generation: this model has a Layer of your own"):
        mine.generate(ids(), max_new_tokens=2)


@pytest.mark.parametrize("part", ["layer", "attention"])
@torch.no_grad()
def test_hooks_see_the_arguments_of_the_classic_layers(original: Any, part: str) -> None:
    seen: list[list[Any]] = []
    for model in pair(original, "TransfoXLModel"):
        layer = model.layers[1]
        watched = layer if part == "layer" else layer.dec_attn
        watched.register_forward_hook(lambda _, args, found: seen.append([*args[:2], found]))
        mems = model(ids())[1]
        model(ids(1), mems)
    half = len(seen) // 2
    assert half == 2
    assert_equal(seen[:half], seen[half:], atol=STATES)


def test_attributes_that_code_reads(original: Any) -> None:
    for variant in ("plain", "one width"):
        mine, theirs = pair(original, **VARIANTS[variant])
        names = {
            "transformer": ["n_token", "d_embed", "d_model", "n_head", "d_head", "n_layer", "max_klen", "attn_type"],
            "crit": ["n_token", "d_embed", "d_proj", "cutoffs", "cutoff_ends", "n_clusters", "shortlist_size"],
            "transformer.word_emb": ["n_token", "d_embed", "d_proj", "cutoffs", "cutoff_ends", "div_val", "emb_scale"],
            "transformer.layers.0.dec_attn": ["n_head", "d_head", "d_model", "scale"],
        }
        names["crit"] += ["head_size", "div_val"]
        assert mine.sample_softmax == theirs.sample_softmax == -1
        for path, attributes in names.items():
            for name in attributes:
                found, expected = (getattr(model.get_submodule(path), name) for model in (mine, theirs))
                assert found == expected, (path, name)
        assert type(mine.transformer.word_emb) is modeling_transfo_xl.AdaptiveEmbedding
    assert modeling_transfo_xl.logger.name == modeling_transfo_xl.__name__


def test_cutoffs_follow_the_vocabulary() -> None:
    mine = ours()
    mine.resize_token_embeddings(WORDS + 3)
    for part in (mine.crit, mine.transformer.word_emb):
        assert part.cutoffs == [9, 20, WORDS + 3]
    assert mine.transformer.n_token == WORDS + 3


@torch.no_grad()
def test_dropout_of_attention_is_a_module() -> None:
    """Code that switches all modules of that kind off, or on, reaches it."""
    mine = ours("TransfoXLModel", dropatt=0.5).train()
    rates = [layer.dec_attn.dropatt for layer in mine.layers]
    assert all(isinstance(rate, nn.Dropout) and rate.p == 0.5 for rate in rates)
    steady = ours("TransfoXLModel").train()
    expected = steady(ids())[0]
    assert not torch.allclose(mine(ids())[0], expected)
    for module in mine.modules():
        if isinstance(module, nn.Dropout):
            module.eval()
    assert_equal(mine(ids())[0], expected, atol=STATES)
    mine.eval()
    for rate in rates:
        rate.train()
    assert not torch.allclose(mine(ids())[0], expected)
    for rate in rates:
        rate.p = 0.0
    assert_equal(mine(ids())[0], expected, atol=STATES)
    assert mine.state_dict().keys() == steady.state_dict().keys()


# --- configurations, initialisation -----------------------------------------------------------------------------------


def test_configurations(original: Any, tmp_path: Path) -> None:
    assert TransfoXLConfig().to_dict().items() >= original.TransfoXLConfig().to_dict().items()
    mine = TransfoXLConfig(WORDS, **SIZES)
    path = tmp_path / "config.json"
    mine.to_json_file(str(path))
    theirs = original.TransfoXLConfig.from_json_file(str(path))
    assert theirs.n_token == mine.n_token == mine.vocab_size == WORDS
    path.write_text(json.dumps(original.TransfoXLConfig(WORDS, **SIZES).to_dict()))
    assert TransfoXLConfig.from_json_file(str(path)) == TransfoXLConfig(str(path)) == mine
    assert TransfoXLConfig.from_dict(json_object=mine.to_dict()) == mine
    assert TransfoXLConfig(vocab_size_or_config_json_file=WORDS, **SIZES) == mine
    assert TransfoXLConfig.from_dict(mine.to_dict(), mem_len=3).mem_len == 3
    with pytest.raises(TypeError, match=r"TransfoXLModel\.from_pretrained"):
        TransfoXLModel(str(path))


def test_new_weights() -> None:
    torch.manual_seed(0)
    sizes = {**SIZES, "d_model": 80, "d_embed": 78, "d_inner": 90, "n_head": 8, "d_head": 10, "init_std": 0.03}
    model = TransfoXLLMHeadModel(TransfoXLConfig(WORDS, **sizes))
    for name, value in model.named_parameters():
        if "layer_norm.weight" in name:
            assert value.std().item() == pytest.approx(0.03, rel=0.4), name
            assert value.mean().item() == pytest.approx(1, abs=0.02), name
        elif "_projs." in name:
            assert value.std().item() == pytest.approx(0.01, rel=0.1), name
        elif name.endswith("bias") and "r_" not in name:
            assert not value.any(), name
        elif value.numel() > 500:
            assert value.std().item() == pytest.approx(0.03, rel=0.1), name
    layer = nn.Linear(100, 100)
    model.init_weights(layer)
    assert layer.weight.std().item() == pytest.approx(0.03, rel=0.1)
    model.init_weight(layer.weight.detach().fill_(0))
    assert layer.weight.std().item() == pytest.approx(0.03, rel=0.1)
    model.init_bias(layer.bias.detach().fill_(3))
    assert not layer.bias.any()
    model.config.init = "uniform"
    model.init_weight(layer.weight)
    assert 0.0099 < layer.weight.abs().max() <= 0.01
    model.set_num_special_tokens(3)
    assert model.config.n_token == WORDS
    before = layer.weight.clone()
    model.apply(model.init_weights)
    assert torch.equal(layer.weight, before)
