"""The parts that decoders are made of, alone: masks, caches, blocks, and the loss of a language model."""

import gc
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from models.compare import assert_same
from models.reference import cross_entropy
from pytorch_transformers.nn import lm_loss
from pytorch_transformers.nn.activations import gelu_tanh
from pytorch_transformers.nn.attention import attend
from pytorch_transformers.nn.block import CausalAttention, DecoderBlock, FeedForward, prune_blocks
from pytorch_transformers.nn.cache import KeyValueCache, extended
from pytorch_transformers.nn.layers import Conv1D, prune_conv1d_layer
from pytorch_transformers.nn.lm_loss import next_token_loss, projected_loss
from pytorch_transformers.nn.masks import CausalMask, causal_mask, decoder_mask

FEW = settings(max_examples=25, derandomize=True, database=None)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# --- masks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (4, 4), (1, 6), (3, 7), (6, 6)])
def test_causal_mask(queries: int, keys: int) -> None:
    """The last query sees every key, each one before it one less."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        mask = causal_mask(queries, keys, torch.empty(0, dtype=dtype))
        assert mask.dtype == dtype
        for query in range(queries):
            seen = keys - queries + query + 1
            assert not mask[query, :seen].any()
            assert torch.equal(mask[query, seen:], torch.full((keys - seen,), -10000.0, dtype=dtype))


def test_decoder_mask_is_made_only_where_it_is_needed() -> None:
    """A whole text needs no tensor; one new token sees all there are; else the two masks add up."""
    like, marks = torch.empty(0), torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])
    assert decoder_mask(None, 5, 0, like) == CausalMask(None, causal=True)
    assert decoder_mask(None, 1, 4, like) == CausalMask(None, causal=False)
    some = decoder_mask(None, 2, 3, like)
    assert not some.causal
    assert some.added is not None
    assert torch.equal(some.added, causal_mask(2, 5, like))
    one = decoder_mask(marks, 1, 4, like)
    assert one.added is not None
    assert one.added.shape == (2, 1, 1, 5)
    assert torch.equal(one.added[:, 0, 0] == 0, marks.bool())
    both = decoder_mask(marks, 3, 2, like)
    assert both.added is not None
    assert both.added.shape == (2, 1, 3, 5)
    for row, query, key in np.ndindex(2, 3, 5):
        seen = bool(marks[row, key]) and key <= query + 2
        assert (both.added[row, 0, query, key] == 0) == seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_hidden_keys_have_no_weight_at_all(dtype: torch.dtype) -> None:
    """The exponential of the added score is exactly 0 in every type, so what stands there cannot matter."""
    query, key, value = (noise(1, 2, 4, 8, seed=n).to(dtype) for n in range(3))
    _, probs = attend(query, key, value, causal=True, need_probs=True)
    assert probs is not None
    assert not probs.triu(1).any()
    value[:, :, 3] = 6e4
    for causal, mask in ((True, None), (False, causal_mask(4, 4, query))):
        mixed, _ = attend(query, key, value, causal=causal, mask=mask)
        assert mixed[:, :, :3].abs().max() < 10


@pytest.mark.parametrize("length", [1, 3, 17])
def test_paths_of_causal_attention_agree(length: int) -> None:
    """The fused kernel with its flag, the fused kernel with a mask, and the formula."""
    query, key, value = (noise(2, 3, length, 8, seed=n) for n in range(3))
    fused, _ = attend(query, key, value, causal=True)
    masked, _ = attend(query, key, value, mask=causal_mask(length, length, query))
    explicit, probs = attend(query, key, value, causal=True, need_probs=True)
    assert probs is not None
    assert_same(masked, fused, "mask")
    assert_same(explicit, fused, "formula")
    assert_same(probs @ value, fused, "probabilities")


# --- caches -----------------------------------------------------------------------------------------------------------


def new_cache(heads: tuple[int, ...] = (3, 2), batch: int = 2, length: int = 7) -> KeyValueCache:
    return KeyValueCache(list(heads), batch, length, 4, torch.float32, torch.device("cpu"))


def fill(cache: KeyValueCache, tokens: int, seed: int = 0) -> list[Tensor]:
    """All layers write that many tokens; what each holds then."""
    held = [cache.layer(n).extend(noise(2, 2, heads, tokens, 4, seed=seed + n)) for n, heads in enumerate((3, 2))]
    cache.advance(tokens)
    return [layer.clone() for layer in held]


def test_cache_keeps_what_is_written() -> None:
    cache = new_cache()
    first = fill(cache, 3, seed=10)
    second = fill(cache, 1, seed=20)
    assert cache.length == 4
    assert cache.room == 7
    for number, (one, two) in enumerate(zip(first, second, strict=True)):
        assert torch.equal(two[:, :, :, :3], one)
        assert torch.equal(two, extended(noise(2, 2, (3, 2)[number], 1, 4, seed=20 + number), one)), "as joined tensors"


def test_cache_is_written_in_place() -> None:
    """The same memory at every step: nothing is copied, however long it gets."""
    cache = new_cache()
    addresses = {cache.layer(0).extend(noise(2, 2, 3, 1, 4)).data_ptr()}
    for _ in range(4):
        cache.advance(1)
        addresses.add(cache.layer(0).extend(noise(2, 2, 3, 1, 4)).data_ptr())
    assert len(addresses) == 1


def test_rows_of_a_cache_are_chosen() -> None:
    cache = new_cache()
    held = fill(cache, 3)
    cache.select(torch.tensor([1, 1, 0]))
    assert cache.length == 3
    for number, layer in enumerate(held):
        new = noise(2, 3, (3, 2)[number], 1, 4)
        found = cache.layer(number).extend(new)
        assert torch.equal(found, torch.cat([layer[:, [1, 1, 0]], new], 3))


@pytest.mark.parametrize("dropped", [1, 2, 4, 5])
def test_oldest_tokens_are_forgotten(dropped: int) -> None:
    cache = new_cache()
    held = fill(cache, 5)
    cache.drop_first(dropped)
    assert cache.length == 5 - dropped
    more = fill(cache, 2, seed=30)
    for number, layer in enumerate(held):
        assert torch.equal(more[number][:, :, :, : 5 - dropped], layer[:, :, :, dropped:])


def test_what_a_layer_continues_from() -> None:
    present = noise(2, 1, 3, 2, 4)
    assert extended(present, None) is present
    joined = extended(present, noise(2, 1, 3, 5, 4, seed=1))
    assert joined.shape == (2, 1, 3, 7, 4)
    assert torch.equal(joined[:, :, :, 5:], present)


# --- layers -----------------------------------------------------------------------------------------------------------


def test_linear_layer_keeps_its_matrix_as_the_originals() -> None:
    layer = Conv1D(5, 3)
    assert layer.weight.shape == (3, 5)
    assert layer.nf == 5
    assert not layer.bias.any()
    nn.init.normal_(layer.bias)
    for shape in ((3,), (2, 3), (2, 4, 3), (0, 3)):
        x = noise(*shape)
        assert_same(layer(x), x @ layer.weight + layer.bias, f"shape {shape}")
    assert repr(layer) == "Conv1D(nf=5, nx=3)"
    with pytest.raises(RuntimeError):
        layer(noise(2, 4))


def test_linear_layer_takes_what_is_not_contiguous() -> None:
    layer, x = Conv1D(5, 3), noise(3, 4, 2)
    assert_same(layer(x.permute(2, 1, 0)), x.permute(2, 1, 0) @ layer.weight, "turned")


def test_pruning_a_linear_layer() -> None:
    layer = Conv1D(5, 3)
    nn.init.normal_(layer.bias)
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    layer.weight.requires_grad = False
    index = torch.tensor([3, 0])
    assert prune_conv1d_layer(layer, index) is layer
    assert torch.equal(layer.weight, weight[:, index])
    assert torch.equal(layer.bias, bias[index])
    assert (layer.weight.requires_grad, layer.bias.requires_grad) == (False, True)
    prune_conv1d_layer(layer, torch.tensor([2]), dim=0)
    assert torch.equal(layer.weight, weight[:, index][[2]])
    assert torch.equal(layer.bias, bias[index])


def block(*, norm_first: bool, scaled: bool = True, dropout: float = 0.0) -> DecoderBlock:
    torch.manual_seed(3)
    built = DecoderBlock(
        CausalAttention(12, 3, dropout=dropout, residual_dropout=dropout, scaled=scaled),
        FeedForward(12, 20, gelu_tanh, dropout),
        width=12,
        eps=1e-5,
        norm_first=norm_first,
    )
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return built


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_block_is_its_formula(norm_first: bool, scaled: bool) -> None:
    """Written out: x + attn(ln_1 x), then + mlp(ln_2 ...); or ln_1(x + attn x), then ln_2(... + mlp ...)."""
    layer, x = block(norm_first=norm_first, scaled=scaled), noise(2, 5, 12)
    source = layer.ln_1(x) if norm_first else x
    query, key, value = (part.view(2, 5, 3, 4).transpose(1, 2) for part in layer.attn.c_attn(source).split(12, -1))
    scores = query @ key.transpose(2, 3) / (2.0 if scaled else 1.0)  # the root of the head size, 4
    seen = torch.ones(5, 5).tril().bool()
    probs = scores.masked_fill(~seen, -math.inf).softmax(-1)
    attended = layer.attn.c_proj((probs @ value).transpose(1, 2).reshape(2, 5, 12))
    if norm_first:
        inner = x + attended
        expected = inner + layer.mlp(layer.ln_2(inner))
    else:
        inner = layer.ln_1(x + attended)
        expected = layer.ln_2(inner + layer.mlp(inner))
    for need_probs in (False, True):
        output = layer(x, CausalMask(None, causal=True), need_probs=need_probs)
        assert_same(output.hidden, expected, "states")
        assert_same(output.present, torch.stack([key, value]), "keys and values")
        assert (output.probs is None) != need_probs
    assert_same(output.probs, probs, "probabilities")


def test_dropout_is_for_training() -> None:
    layer, x, mask = block(norm_first=True, dropout=0.5), noise(1, 5, 12), CausalMask(None, causal=True)
    for need_probs in (False, True):
        layer.train()
        torch.manual_seed(0)
        first = layer(x, mask, need_probs=need_probs).hidden
        assert not torch.equal(layer(x, mask, need_probs=need_probs).hidden, first)
        layer.eval()
        assert torch.equal(layer(x, mask).hidden, layer(x, mask).hidden)


def attention(layer: nn.Module) -> CausalAttention:
    assert isinstance(layer, DecoderBlock)
    assert isinstance(layer.attn, CausalAttention)
    return layer.attn


def test_pruned_blocks() -> None:
    """Heads go one by one or together, in any order, and their numbers stay; the message says what cannot be."""
    x, mask, head_mask = noise(2, 5, 12), CausalMask(None, causal=True), torch.tensor([0.0, 1.0, 0.0])
    expected = block(norm_first=True)(x, mask, head_mask=head_mask).hidden
    for order in ([{0, 2}], [{0}, {2}], [{2}, {0}], [{2}, {2, 0}]):
        layers = nn.ModuleList([block(norm_first=True)])
        for heads in order:
            prune_blocks(layers, {0: heads}, 3)
        assert attention(layers[0]).kept_heads == [1]
        assert_same(layers[0](x, mask).hidden, expected, f"order {order}")
        half = block(norm_first=True)(x, mask, head_mask=torch.tensor([0.0, 0.5, 0.0])).hidden
        masked = layers[0](x, mask, head_mask=torch.tensor([1.0, 0.5, 1.0])).hidden
        assert_same(masked, half, "a mask has the original numbering")
    for bad, words in (
        ({1: {0}}, "no layer 1, only 0 to 0"),
        ({0: {3}}, "no head 3, only 0 to 2"),
        ({0: {1}}, "no head"),
    ):
        with pytest.raises(ValueError, match=words):
            prune_blocks(layers, bad, 3)
    two = nn.ModuleList([block(norm_first=True), block(norm_first=False)])
    with pytest.raises(ValueError, match="layer 1"):
        prune_blocks(two, {0: {1}, 1: {7}}, 3)
    assert attention(two[0]).n_head == 3, "all or nothing"


# --- loss -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows of scores at a time for a vocabulary of 11."""
    monkeypatch.setattr(lm_loss, "_SCORES", 33)


def problem(dtype: torch.dtype = torch.float32, *, rows: int = 4, length: int = 6, vocab: int = 11) -> Any:
    """States [B, T, H], projection [V, H] and labels [B, T], some of them ignored."""
    hidden, weight = noise(rows, length, 5, seed=1).to(dtype), noise(vocab, 5, seed=2).to(dtype)
    labels = torch.randint(-2, vocab, (rows, length), generator=torch.Generator().manual_seed(3))
    return hidden.requires_grad_(), weight.requires_grad_(), labels


def both(hidden: Tensor, weight: Tensor, labels: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Loss, gradient of the states and of the projection: without scores, and with."""
    results = []
    for loss in (projected_loss(hidden, weight, labels), next_token_loss(hidden @ weight.t(), labels)):
        inputs = [x for x in (hidden, weight) if x.requires_grad]
        results.append([loss.detach(), *torch.autograd.grad(loss * 3.0, inputs)])
    return results[0], results[1]


def test_loss_is_the_formula() -> None:
    hidden, weight, labels = problem(torch.float64)
    logits = (hidden @ weight.t()).detach()
    expected = cross_entropy(logits[:, :-1].numpy(), labels[:, 1:].numpy())
    assert_same(next_token_loss(logits, labels), expected, "plain", max_abs=1e-14, max_std=1e-14)
    assert_same(projected_loss(hidden, weight, labels), expected, "projected", max_abs=1e-14, max_std=1e-14)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_loss_takes_any_leading_axes(shape: tuple[int, ...], small_pieces: None) -> None:
    hidden, weight = noise(*shape, 6, 5).requires_grad_(), noise(11, 5, seed=1).requires_grad_()
    labels = torch.randint(0, 11, (*shape, 6), generator=torch.Generator().manual_seed(4))
    for one, other in zip(*both(hidden, weight, labels), strict=True):
        assert_same(one, other, f"axes {shape}")
    flat = projected_loss(hidden, weight, labels.flatten())
    assert torch.equal(flat, projected_loss(hidden, weight, labels)), "flat labels"


@FEW
@given(
    rows=st.integers(1, 4),
    length=st.integers(1, 7),
    vocab=st.integers(1, 9),
    pieces=st.sampled_from([1, 2, 7, 20, 10_000]),
    ignored=st.floats(0, 1),
    seed=st.integers(0, 999),
)
def test_pieces_of_any_size(rows: int, length: int, vocab: int, pieces: int, ignored: float, seed: int) -> None:
    """Value and gradients are those of the plain loss, wherever a piece ends, whatever is ignored."""
    generator = torch.Generator().manual_seed(seed)
    hidden, weight = noise(rows, length, 5, seed=seed).requires_grad_(), noise(vocab, 5, seed=1).requires_grad_()
    labels = torch.randint(0, vocab, (rows, length), generator=generator)
    labels[torch.rand(labels.shape, generator=generator) < ignored] = -100
    before, lm_loss._SCORES = lm_loss._SCORES, pieces  # type: ignore[misc]  # a constant, but for this test
    try:
        found, expected = both(hidden, weight, labels)
    finally:
        lm_loss._SCORES = before  # type: ignore[misc]
    for name, one, other in zip(("loss", "states", "projection"), found, expected, strict=True):
        assert_same(one, other, name)


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.int16, torch.int8])
def test_labels_of_any_integer_type(kind: torch.dtype, small_pieces: None) -> None:
    hidden, weight, labels = problem()
    expected = projected_loss(hidden, weight, labels)
    assert torch.equal(projected_loss(hidden, weight, labels.to(kind)), expected)
    assert_same(next_token_loss(hidden @ weight.t(), labels.to(kind)), expected, "plain")


@pytest.mark.parametrize("frozen", ["states", "projection", "both"])
def test_what_is_frozen_gets_no_gradient(frozen: str, small_pieces: None) -> None:
    hidden, weight, labels = problem()
    hidden.requires_grad_(frozen == "projection")
    weight.requires_grad_(frozen == "states")
    if frozen == "both":
        loss = projected_loss(hidden, weight, labels)
        assert not loss.requires_grad
        assert_same(loss, next_token_loss(hidden @ weight.t(), labels), "loss")
        return
    for one, other in zip(*both(hidden, weight, labels), strict=True):
        assert_same(one, other, frozen)
    with torch.no_grad():
        assert not projected_loss(hidden, weight, labels).requires_grad


@pytest.mark.parametrize(
    "labels", [torch.full((2, 6), -1), torch.full((2, 6), -100), torch.tensor([[5] + [-1] * 5] * 2)]
)
def test_nothing_to_learn_from(labels: Tensor) -> None:
    """C3: 0, finite, attached to the graph; also where only the first token, which nothing predicts, has a label."""
    hidden, weight = noise(2, 6, 5).requires_grad_(), noise(11, 5).requires_grad_()
    for loss in (projected_loss(hidden, weight, labels), next_token_loss(hidden @ weight.t(), labels)):
        assert loss.item() == 0.0
        for gradient in torch.autograd.grad(loss, (hidden, weight)):
            assert torch.equal(gradient, torch.zeros_like(gradient))


@pytest.mark.parametrize("length", [1, 2])
def test_shortest_texts(length: int) -> None:
    hidden, weight = noise(3, length, 5).requires_grad_(), noise(11, 5).requires_grad_()
    for one, other in zip(*both(hidden, weight, torch.zeros(3, length).long()), strict=True):
        assert_same(one, other, f"{length} tokens")


def test_extreme_scores_stay_finite() -> None:
    """A sure and wrong model: the loss is large, and neither it nor a gradient overflows."""
    hidden, weight = torch.full((1, 3, 5), 300.0).requires_grad_(), (noise(11, 5) * 100).requires_grad_()
    for one, other in zip(*both(hidden, weight, torch.tensor([[0, 3, 7]])), strict=True):
        assert one.isfinite().all()
        assert_same(one / 1e5, other / 1e5, "scaled")


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_types(dtype: torch.dtype, small_pieces: None) -> None:
    """The loss is summed in at least float32; gradients have the type of what they belong to."""
    hidden, weight, labels = problem(dtype)
    loss = projected_loss(hidden, weight, labels)
    assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    exact, exact_weight = (x.detach().double().requires_grad_() for x in (hidden, weight))
    _, expected = both(exact, exact_weight, labels)
    found, plain = both(hidden, weight, labels)
    step = torch.finfo(dtype).eps
    for one, two, three in zip(found, plain, expected, strict=True):
        assert one.dtype == two.dtype
        scale = float(three.abs().max())
        assert float((one.double() - three).abs().max()) <= 4 * step * scale + 1e-7


def test_projection_gradient_in_bfloat16_is_as_exact_as_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pieces add up in float32: in bfloat16 each sum would keep 8 bits, and the error grow with their number."""
    monkeypatch.setattr(lm_loss, "_SCORES", 8 * 64)
    hidden, weight = noise(1, 2049, 16, seed=1).bfloat16().requires_grad_(), noise(64, 16).bfloat16().requires_grad_()
    labels = torch.randint(0, 64, (1, 2049), generator=torch.Generator().manual_seed(3))
    labels[:, ::2] = 7
    exact, exact_weight = (x.detach().double().requires_grad_() for x in (hidden, weight))
    _, expected = both(exact, exact_weight, labels)
    found, plain = both(hidden, weight, labels)

    def error(gradient: Tensor) -> float:
        return float((gradient.double() - expected[2]).norm() / expected[2].norm())

    assert error(found[2]) <= 1.5 * error(plain[2]), (error(found[2]), error(plain[2]))


def test_mixed_precision() -> None:
    """Under autocast the loss and gradients are those of the plain path, which projects in bfloat16 too."""
    hidden, weight, labels = problem()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, expected = both(hidden, weight, labels)
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other, "autocast", max_abs=2e-2, max_std=1e-2)


def test_no_second_derivative() -> None:
    """Refused, rather than a number that lacks a part: also where the gradient is one term among others."""
    hidden, weight, labels = problem()

    def penalised() -> None:
        loss = projected_loss(hidden, weight, labels)
        (first,) = torch.autograd.grad(loss, hidden, create_graph=True)
        (loss + first.square().sum()).backward()

    with pytest.raises(RuntimeError, match=r"second derivative|once_differentiable"):
        penalised()


@pytest.mark.parametrize("loss", ["plain", "projected"])
def test_wrong_labels(loss: str) -> None:
    hidden, weight, labels = problem()

    def call(wrong: Any) -> Tensor:
        if loss == "plain":
            return next_token_loss(hidden @ weight.t(), wrong, "lm_labels")
        return projected_loss(hidden, weight, wrong, "lm_labels")

    beyond = labels.clone()
    beyond[2, 0] = 11  # the first token has a label as well, though nothing predicts it
    for wrong, words in (
        (beyond, "lm_labels: found 11, allowed is 0 to 10, or below 0 to ignore"),
        (labels.float(), "lm_labels: expected class indices"),
        (labels[:, :-1], r"lm_labels: found shape \[4, 5\], expected \[4, 6\]"),
        (labels.t(), r"lm_labels: found shape \[6, 4\], expected \[4, 6\]"),
    ):
        with pytest.raises(ValueError, match=words):
            call(wrong)
    with pytest.raises(TypeError, match=r"lm_labels: expected a torch\.Tensor, found list"):
        call(labels.tolist())


class Largest(TorchDispatchMode):
    """Notes the number of values of the largest tensor that any operation makes, and of all that live at a time."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.largest = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else (result,):
            if isinstance(value, Tensor):
                self.largest = max(self.largest, value.numel())
        return result


class Living(TorchDispatchMode):
    """Adds up the bytes of the storages that are made inside and still alive, and notes the most there were."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.alive: dict[int, tuple[Any, int]] = {}
        self.peak = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else (result,):
            if isinstance(value, Tensor):
                storage = value.untyped_storage()
                self.alive[storage._cdata] = (
                    torch.multiprocessing.reductions.StorageWeakRef(storage),
                    storage.nbytes(),
                )
        self.alive = {key: entry for key, entry in self.alive.items() if not entry[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self.alive.values()))
        return result


def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tensor has the size of all scores, and what lives at a time is a part of what the plain loss needs."""
    monkeypatch.setattr(lm_loss, "_SCORES", 16 * 512)
    hidden, weight = noise(1, 257, 16).requires_grad_(), noise(512, 16).requires_grad_()
    labels = torch.randint(0, 512, (1, 257), generator=torch.Generator().manual_seed(0))
    peaks, sizes = [], []
    losses: list[Callable[[], Tensor]] = [
        lambda: projected_loss(hidden, weight, labels),
        lambda: next_token_loss(hidden @ weight.t(), labels),
    ]
    for loss in losses:
        gc.collect()
        hidden.grad = weight.grad = None
        with Living() as living:
            loss().backward()
        hidden.grad = weight.grad = None
        with Largest() as largest:
            loss().backward()
        peaks.append(living.peak)
        sizes.append(largest.largest)
    assert sizes[0] <= 16 * 512, "a piece of the scores"
    assert sizes[1] >= 256 * 512, "all of them"
    assert peaks[0] < peaks[1] / 8, peaks
