"""Properties of GPT-2 that OpenAI GPT lacks: keys and values that go in and out (`past`), and what a new model is like.

Those of both are in the battery.
"""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from pytorch_transformers import GPT2DoubleHeadsModel, GPT2LMHeadModel, GPT2Model
from pytorch_transformers.nn.cache import KeyValueCache

from ..battery import Inputs, assert_equal_outputs, build, fields, gradients, left_padded, per_token, scalar, tensors
from ..compare import assert_same
from .tiny import CASE, CHOICES, HEADS, LAYERS, MODELS, POSITIONS, VOCAB, decoder_inputs, has_choices

FEW = settings(max_examples=12, derandomize=True, database=None)

MODEL = {model_class: build(CASE, model_class) for model_class in MODELS}
"""Built once: no property changes its model."""


def split(inputs: Inputs, start: int, end: int) -> Inputs:
    """The tokens from `start` to `end`; the mask covers those before, too."""
    return {name: x[..., (0 if name == "attention_mask" else start) : end] for name, x in inputs.items()}


def in_pieces(model: Any, inputs: Inputs, sizes: list[int], past: Any = None, **switches: Any) -> list[Any]:
    """One output for each piece, each continuing from the one before."""
    outputs, start = [], 0
    with torch.no_grad():
        for size in sizes:
            outputs.append(model(**split(inputs, start, start + size), past=past, **switches))
            past, start = outputs[-1].past, start + size
    return outputs


@st.composite
def texts(draw: st.DrawFn) -> tuple[int, list[int], int]:
    """Seed, sizes of the pieces, and how many of the places before the last of the first piece are padding."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    return draw(st.integers(0, 2**16)), sizes, draw(st.integers(0, sizes[0] - 1))


@pytest.mark.parametrize("kind", ["tensors", "stacked", "cache"])
@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("model_class", MODELS)
@FEW
@given(text=texts())
def test_pieces_are_the_whole(
    model_class: type[Any], explicit: bool, kind: str, text: tuple[int, list[int], int]
) -> None:
    """E2: texts in pieces of any sizes, padded on the left or not, give what they give at once."""
    seed, sizes, padding = text
    model, length = MODEL[model_class], sum(sizes)
    inputs = decoder_inputs(model_class, batch=3, length=length, seed=seed)
    inputs.pop("mc_token_ids", None)
    lengths = torch.full(inputs["input_ids"].shape[:-1], length)
    lengths.view(-1)[1:] -= padding
    inputs = left_padded(inputs, lengths, seed, VOCAB)
    if not padding:
        del inputs["attention_mask"]
    with torch.no_grad():
        whole = model(**inputs, output_attentions=explicit)
    rows = inputs["input_ids"].reshape(-1, length).shape[0]
    if kind == "cache":
        outputs = in_pieces(model, inputs, sizes, model.new_cache(rows, length), output_attentions=explicit)
        assert all(isinstance(output.past, KeyValueCache) and output.past.length == length for output in outputs)
    elif kind == "tensors":
        outputs = in_pieces(model, inputs, sizes, output_attentions=explicit)
    else:  # one tensor [L, 2, B, A, T, D] is a sequence of layers as well
        outputs, past, start = [], None, 0
        for size in sizes:
            with torch.no_grad():
                outputs.append(model(**split(inputs, start, start + size), past=past, output_attentions=explicit))
            past, start = torch.stack(outputs[-1].past), start + size
    real = inputs.get("attention_mask", torch.ones_like(inputs["input_ids"])).bool()
    joined = torch.cat([per_token(output)[0] for output in outputs], -2)
    assert_same(joined[real], per_token(whole)[0][real], f"pieces {sizes}, {padding} places of padding")
    if kind == "tensors":
        for layer, (one, other) in enumerate(zip(outputs[-1].past, whole.past, strict=True)):
            assert one.shape == (2, rows, HEADS, length, 8)
            seen = real.reshape(rows, length)
            assert_same(one.permute(1, 3, 0, 2, 4)[seen], other.permute(1, 3, 0, 2, 4)[seen], f"present {layer}")


@pytest.mark.parametrize("model_class", MODELS)
def test_one_by_one_to_the_last_position(model_class: type[Any]) -> None:
    """Every position there is; one more token is refused, with and without a mask, and with a cache that has room."""
    model = MODEL[model_class]
    inputs = decoder_inputs(model_class, batch=2, length=POSITIONS, mask=False)
    inputs.pop("mc_token_ids", None)
    with torch.no_grad():
        whole = model(**inputs)
    rows = inputs["input_ids"].reshape(-1, POSITIONS).shape[0]
    for past in (None, model.new_cache(rows, POSITIONS + 5)):
        outputs = in_pieces(model, inputs, [1] * POSITIONS, past)
        joined = torch.cat([per_token(output)[0] for output in outputs], -2)
        assert_same(joined, per_token(whole)[0], "one by one")
        one = inputs["input_ids"][..., :1]
        with pytest.raises(ValueError, match=rf"{POSITIONS} tokens in the cache and 1 new.*{POSITIONS} positions"):
            model(one, past=outputs[-1].past)
        mask = one.new_ones(*one.shape[:-1], POSITIONS + 1)
        with pytest.raises(ValueError, match=rf"attention_mask: {POSITIONS + 1} real tokens.*{POSITIONS} positions"):
            model(one, past=outputs[-1].past, attention_mask=mask)
        mask[..., 0] = 0  # the first was padding after all
        assert per_token(model(one, past=outputs[-1].past, attention_mask=mask))[0].isfinite().all()


def test_positions_go_on_after_the_past() -> None:
    """Those that are given are used instead."""
    model = MODEL[GPT2LMHeadModel]
    ids = decoder_inputs(GPT2LMHeadModel, batch=2, length=6)["input_ids"]
    with torch.no_grad():
        past = model(ids[:, :4]).past
        plain = model(ids[:, 4:], past=past)
        said = model(ids[:, 4:], past=past, position_ids=torch.tensor([[4, 5]]))
        other = model(ids[:, 4:], past=past, position_ids=torch.tensor([[0, 1]]))
    assert_equal_outputs(said, plain, "positions said aloud", exact=True)
    assert not torch.allclose(other.logits, plain.logits)


def test_past_is_not_changed() -> None:
    """Several continuations of one past: tensors are only read."""
    model = MODEL[GPT2LMHeadModel]
    ids = decoder_inputs(GPT2LMHeadModel, batch=2, length=6)["input_ids"]
    with torch.no_grad():
        past = model(ids[:, :4]).past
        copies = [layer.clone() for layer in past]
        first = model(ids[:, 4:], past=past)
        model(ids[:, :2], past=past)
        again = model(ids[:, 4:], past=past)
    assert all(torch.equal(one, other) for one, other in zip(past, copies, strict=True))
    assert_equal_outputs(again, first, "again", exact=True)


@pytest.mark.parametrize("model_class", MODELS)
def test_use_cache(model_class: type[Any]) -> None:
    """The keyword, or the configuration where it says nothing."""
    inputs = decoder_inputs(model_class, batch=2)
    asking, silent = MODEL[model_class], build(CASE, model_class, use_cache=False)
    assert "past" in fields(asking(**inputs))
    assert "past" not in fields(asking(**inputs, use_cache=False))
    assert asking(**inputs, use_cache=False).past is None
    assert "past" not in fields(silent(**inputs))
    assert_equal_outputs(silent(**inputs, use_cache=True), asking(**inputs), "asked", exact=True)


def test_gradients_flow_through_the_past() -> None:
    """A loss on later tokens teaches earlier ones, as in one piece."""
    model = build(CASE, GPT2LMHeadModel).train()
    ids = decoder_inputs(GPT2LMHeadModel, batch=2, length=7)["input_ids"]
    whole = gradients(model, scalar([model(ids).logits[:, 4:].contiguous()]))
    past = model(ids[:, :4]).past
    pieces = gradients(model, scalar([model(ids[:, 4:], past=past).logits]))
    for name, gradient in whole.items():
        assert_same(pieces[name], gradient, name)


def test_pruned_layers_have_fewer_keys() -> None:
    model = build(CASE, GPT2LMHeadModel)
    model.prune_heads({0: [1, 3], 2: [0]})
    ids = decoder_inputs(GPT2LMHeadModel, batch=2, length=6)["input_ids"]
    with torch.no_grad():
        whole = model(ids)
    assert [layer.shape for layer in whole.past] == [(2, 2, heads, 6, 8) for heads in (3, 5, 4)]
    for past in (None, model.new_cache(2, 6)):
        outputs = in_pieces(model, {"input_ids": ids}, [2, 1, 3], past)
        assert_same(torch.cat([output.logits for output in outputs], 1), whole.logits, "pieces")
    mask = torch.rand(LAYERS, HEADS)
    with torch.no_grad():
        expected = model(ids, head_mask=mask).logits
        past = model(ids[:, :4], head_mask=mask).past
        assert_same(model(ids[:, 4:], past=past, head_mask=mask).logits, expected[:, 4:], "masked heads")


def test_a_new_model_is_scaled_where_it_writes() -> None:
    """c_proj of attention and feed-forward part, by the root of 2 L, and nothing else (Radford et al. 2019, 2.3)."""
    torch.manual_seed(3)
    model = GPT2LMHeadModel(CASE.config(n_embd=80, n_layer=8, n_inner=320, vocab_size=500, initializer_range=0.04))
    spreads = {name: float(p.detach().std()) for name, p in model.named_parameters() if p.dim() == 2}
    for name, spread in spreads.items():
        expected = 0.01 if name.endswith("c_proj.weight") else 0.04  # 0.04 / sqrt(16)
        assert abs(spread - expected) < 0.06 * expected, name
    assert sum(name.endswith("c_proj.weight") for name in spreads) == 16


def test_checkpoint_of_a_smaller_model_fills_a_larger(tmp_path: Path) -> None:
    """Layers that a checkpoint lacks are drawn by the rule, the smaller spread included."""
    torch.manual_seed(4)
    GPT2LMHeadModel(CASE.config(n_layer=1)).save_pretrained(tmp_path)
    larger, info = GPT2LMHeadModel.from_pretrained(tmp_path, n_layer=8, output_loading_info=True)
    assert len(info["missing_keys"]) == 7 * 12
    blocks: Any = larger.transformer.h[1:]
    written = torch.cat([block.attn.c_proj.weight.detach().flatten() for block in blocks])
    read = torch.cat([block.attn.c_attn.weight.detach().flatten() for block in blocks])
    assert abs(float(written.std()) - 0.02 / 4) < 0.0002
    assert abs(float(read.std()) - 0.02) < 0.0004
    assert all(not block.attn.c_attn.bias.any() for block in blocks)


def test_loss_of_one_token_is_zero() -> None:
    """C3: there is nothing to predict; finite, part of the graph, and teaches nothing."""
    for lean in (False, True):
        for ids, labels in ((torch.tensor([[5]]),) * 2, (torch.tensor([[5, 6]]), torch.tensor([[5, -100]]))):
            model = build(CASE, GPT2LMHeadModel).train()
            loss = model(ids, labels=labels, output_logits=not lean).loss
            assert loss.item() == 0.0
            assert all(not gradient.any() for gradient in gradients(model, loss).values())


def test_choices_default_to_the_last_token() -> None:
    model = MODEL[GPT2DoubleHeadsModel]
    inputs = decoder_inputs(GPT2DoubleHeadsModel, batch=3, mask=False)
    last = inputs.pop("mc_token_ids")
    with torch.no_grad():
        default = model(**inputs)
        for said in (last, last.int()):
            for name in ("mc_token_ids", "multiple_choice_token_ids"):
                assert_equal_outputs(model(**inputs, **{name: said}), default, "said aloud", exact=True)
        other = model(**inputs, mc_token_ids=last - 2)
        shorter = model(**{name: x[..., :-2] for name, x in inputs.items()})
    assert_same(other.mc_logits, shorter.mc_logits, "an earlier place is the end of a shorter text")


def test_older_names_of_labels() -> None:
    inputs = decoder_inputs(GPT2DoubleHeadsModel, batch=3)
    model, right = MODEL[GPT2DoubleHeadsModel], torch.tensor([1, 0, 3])
    expected = model(**inputs, mc_labels=right)
    assert_equal_outputs(model(**inputs, multiple_choice_labels=right), expected, "older name", exact=True)
    lm, ids = MODEL[GPT2LMHeadModel], decoder_inputs(GPT2LMHeadModel)["input_ids"]
    assert_equal_outputs(lm(ids, lm_labels=ids), lm(ids, labels=ids), "older name", exact=True)


def test_export_with_past() -> None:
    """J1: one graph for any batch, and any number of tokens before and now."""
    model = build(CASE, GPT2LMHeadModel)
    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=1, max=8)
    before = torch.export.Dim("before", min=1, max=12)

    def arguments(rows: int, earlier: int, tokens: int) -> dict[str, Any]:
        ids = decoder_inputs(GPT2LMHeadModel, batch=rows, length=earlier + tokens, seed=rows)["input_ids"]
        with torch.no_grad():
            return {"input_ids": ids[:, earlier:], "past": model(ids[:, :earlier]).past}

    shapes = {"input_ids": {0: batch, 1: length}, "past": tuple({1: batch, 3: before} for _ in range(LAYERS))}
    with torch.no_grad():
        program = torch.export.export(model, (), arguments(3, 5, 4), dynamic_shapes=shapes)
        for sizes in ((2, 4, 3), (3, 6, 2), (5, 3, 1)):
            given = arguments(*sizes)
            found, expected = tensors(program.module()(**given)), tensors(model(**given))
            for one, other in zip(found, expected, strict=True):
                assert_same(one, other, f"exported, at {sizes}")


def test_trace_with_past() -> None:
    """J1: the same for a trace of one step; texts grow while it runs."""
    model = build(CASE, GPT2Model, torchscript=True)
    ids = decoder_inputs(GPT2Model, batch=3, length=9)["input_ids"]

    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, new: Tensor, past: list[Tensor]) -> Any:
            return self.model(new, past=past)

    with torch.no_grad():
        past = model(ids[:, :3])[1]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r".*torch\.jit\.\w+.*deprecated", category=DeprecationWarning)
            traced: Any = torch.jit.trace(Step(), (ids[:, 3:5], list(past)))
        for piece in (ids[:, 3:6], ids[:, 6:8], ids[:, 8:9]):
            found, expected = traced(piece, list(past)), model(piece, past=past)
            assert_equal_outputs(found, expected, "traced")
            past = expected[1]


def test_config_switch_returns_all_that_the_call_asks_for() -> None:
    """A plain tuple has the same elements as a named output, states and attentions of the decoder inside included."""
    for model_class in MODELS:
        inputs = decoder_inputs(model_class, batch=2)
        expected = MODEL[model_class](**inputs, output_hidden_states=True, output_attentions=True)
        for change in ({"torchscript": True}, {"return_dict": False}):
            model = build(CASE, model_class, **change)
            found = model(**inputs, output_hidden_states=True, output_attentions=True)
            assert type(found) is tuple
            assert len(found) == len(expected), f"{model_class.__name__} with {change}"
            assert_equal_outputs(found, expected, str(change), exact=True)


def test_choices_have_a_past() -> None:
    """[B, C, T] with tokens before: the past has B C rows."""
    model = MODEL[GPT2DoubleHeadsModel]
    assert has_choices(GPT2DoubleHeadsModel)
    inputs = decoder_inputs(GPT2DoubleHeadsModel, batch=2, mask=False)
    inputs.pop("mc_token_ids")
    with torch.no_grad():
        whole = model(**inputs)
    first, second = in_pieces(model, inputs, [3, 4])
    assert first.past[0].shape == (2, 2 * CHOICES, HEADS, 3, 8)
    assert_same(second.lm_logits, whole.lm_logits[:, :, 3:], "scores")
    assert_same(second.mc_logits, whole.mc_logits, "choices")


@pytest.mark.parametrize("nothing", [(), [None] * 3])
def test_no_past_in_the_older_ways(nothing: Any) -> None:
    """0.6.2 passes a list of None."""
    model = build(CASE, GPT2LMHeadModel)
    ids = torch.tensor([[5, 6, 7]])
    assert torch.equal(model(ids, past=nothing).logits, model(ids).logits)


def test_other_embeddings_are_the_output_layer_too(tmp_path: Path) -> None:
    model = build(CASE, GPT2LMHeadModel)
    model.set_input_embeddings(nn.Embedding(33, model.config.n_embd))
    assert model.lm_head.weight is model.transformer.wte.weight
    assert model.config.vocab_size == 33
    ids = torch.tensor([[5, 6, 32]])
    model.save_pretrained(tmp_path)
    assert torch.equal(GPT2LMHeadModel.from_pretrained(tmp_path)(ids).logits, model(ids).logits)


def test_an_output_layer_of_its_own_is_mentioned_when_it_is_saved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = build(CASE, GPT2LMHeadModel)
    model.lm_head.weight = nn.Parameter(torch.randn_like(model.lm_head.weight))
    model.save_pretrained(tmp_path)
    assert "lm_head.weight and transformer.wte.weight: not one weight any more" in caplog.text


def test_packed_weights_do_not_outlive_a_change_of_type() -> None:
    model = build(CASE, GPT2LMHeadModel).fuse_for_inference()
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        model.bfloat16().float()
        rounded = build(CASE, GPT2LMHeadModel).bfloat16().float()
        assert torch.equal(model(ids).logits, rounded(ids).logits)
