"""The functions that models are made of, alone: formulas, layouts, losses, packed linear layers."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call
from torch.profiler import ProfilerActivity, profile

from models.compare import assert_same
from models.reference import ACTIVATIONS as FORMULAS
from models.reference import cross_entropy, softmax
from pytorch_transformers.nn.activations import ACTIVATIONS, get_activation
from pytorch_transformers.nn.attention import attend, merge_heads
from pytorch_transformers.nn.fused import FusedLinear, can_fuse
from pytorch_transformers.nn.layouts import Packed, Padded, rows_to_add
from pytorch_transformers.nn.losses import classification_loss, regression_loss, span_loss
from pytorch_transformers.nn.masks import additive_key_mask
from pytorch_transformers.nn.pruning import kept_columns, prune_linear_layer
from pytorch_transformers.nn.tied import TiedLinear

FEW = settings(max_examples=25, derandomize=True, database=None)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activation_is_its_formula(name: str) -> None:
    x = torch.linspace(-6.0, 6.0, 2001, dtype=torch.float64)
    assert_same(get_activation(name)(x), FORMULAS[name](x.numpy()), name, max_abs=1e-14, max_std=1e-15)  # float64


def test_the_two_gelus_differ() -> None:
    x = torch.linspace(-4.0, 4.0, 101)
    assert 1e-4 < float((get_activation("gelu")(x) - get_activation("gelu_tanh")(x)).abs().max()) < 1e-3


def test_unknown_activation_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"gellu.*gelu_tanh"):
        get_activation("gellu")
    assert get_activation(torch.sin) is torch.sin


def test_heads_are_merged() -> None:
    heads = noise(2, 5, 7, 3)
    merged = merge_heads(heads)
    assert merged.shape == (2, 7, 15)
    assert torch.equal(merged[1, 4, 6:9], heads[1, 2, 4])


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_the_papers_formula(masked: bool) -> None:
    query, key, value = noise(3, 5, 4, 8, seed=1), noise(3, 5, 7, 8, seed=2), noise(3, 5, 7, 8, seed=3)
    marks = torch.ones(3, 7)
    marks[1, 5:] = marks[2, 1:] = 0.0
    mask = additive_key_mask(marks, torch.float32) if masked else None
    q, k, v = (x.double().numpy() for x in (query, key, value))
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(8)
    if masked:
        scores = np.where(marks.numpy()[:, None, None, :] == 0, -np.inf, scores)
    probabilities = softmax(scores)
    for need_probs in (False, True):
        context, probs = attend(query, key, value, mask=mask, need_probs=need_probs)
        assert_same(context, probabilities @ v, "context")
        assert (probs is not None) == need_probs
        if probs is not None:
            assert_same(probs, probabilities, "probabilities")
    head_mask = torch.tensor([1.0, 0.0, 0.5, 1.0, 2.0])
    context, _ = attend(query, key, value, mask=mask, head_mask=head_mask)
    assert_same(context, (probabilities * head_mask.numpy()[:, None, None]) @ v, "head mask")


def test_attention_dropout_keeps_the_mean() -> None:
    """Probabilities are dropped (results differ from 1) and the others scaled up (their mean does not)."""
    query, key, value = noise(500, 1, 4, 8, seed=1), noise(500, 1, 20, 8, seed=2), torch.ones(500, 1, 20, 8)
    torch.manual_seed(0)
    for need_probs in (False, True):
        context, _ = attend(query, key, value, dropout=0.3, need_probs=need_probs)
        assert float(context.mean()) == pytest.approx(1.0, abs=0.03)
        assert float(context.std()) > 0.1


@st.composite
def marks(draw: st.DrawFn) -> Tensor:
    """[B, T] of 0 and 1, at least a 1 in each row."""
    length = draw(st.integers(1, 8))
    row = st.lists(st.integers(0, 1), min_size=length, max_size=length).filter(any)
    return torch.tensor(draw(st.lists(row, min_size=1, max_size=6)))


@FEW
@given(mask=marks())
def test_packing_can_be_undone(mask: Tensor) -> None:
    layout = Packed.from_mask(mask)
    x = noise(*mask.shape, 6)
    packed = layout.pack(x)
    assert packed.shape == (int(mask.sum()), 6)
    assert torch.equal(layout.restore(packed), x * mask[..., None])
    firsts = layout.first_in_batch_order(layout.first(packed))
    places = mask.argmax(dim=1)
    assert torch.equal(firsts, x[torch.arange(len(x)), places])


@FEW
@given(mask=marks())
def test_packed_attention_is_padded_attention(mask: Tensor) -> None:
    query, key, value = (noise(*mask.shape, 5, 3, seed=seed) for seed in (1, 2, 3))
    layout = Packed.from_mask(mask)
    head_mask = torch.tensor([1.0, 0.0, 0.5, 1.0, 2.0])
    padded = Padded(additive_key_mask(mask, torch.float32))
    q, k, v = layout.pack(query), layout.pack(key), layout.pack(value)
    real = mask.bool()
    for silenced in (None, head_mask):
        expected, _ = padded.attend(query, key, value, head_mask=silenced)
        context, _ = layout.attend(q, k, v, head_mask=silenced)
        assert_same(layout.restore(context)[real], expected[real], "all queries")
        one_call = layout._attend_padded(q, k, v, 0.0, silenced)
        assert_same(layout.restore(one_call)[real], expected[real], "as on an accelerator")
        firsts, _ = layout.attend(layout.first(q), k, v, head_mask=silenced)
        first_places = mask.argmax(dim=1)
        wanted = expected[torch.arange(len(mask)), first_places]
        assert_same(layout.first_in_batch_order(firsts), wanted, "first queries")
        one_call = layout._attend_padded(layout.first(q), k, v, 0.0, silenced)
        assert_same(layout.first_in_batch_order(one_call), wanted, "first queries, as on an accelerator")


@FEW
@given(lengths=st.lists(st.integers(1, 90), min_size=1, max_size=8), grad=st.booleans(), joined=st.booleans())
def test_packed_attention_of_any_lengths(lengths: list[int], grad: bool, joined: bool) -> None:
    """Also without gradients, where a sequence reads past its end into the next one and must not see it."""
    longest = max(lengths)
    mask = (torch.arange(longest)[None] < torch.tensor(lengths)[:, None]).long()
    layout = Packed.from_mask(mask)
    whole = layout.pack(noise(len(lengths), longest, 36))
    # As a joined projection gives them, columns of one matrix; or three of their own.
    views = whole.unflatten(-1, (3, 3, 4)).unbind(-3)  # [N, A, D] each
    q, k, v = views if joined else (x.contiguous() for x in views)
    with torch.set_grad_enabled(grad):
        context, _ = layout.attend(q, k, v)
        firsts, _ = layout.attend(layout.first(q), k, v)
    alone = []
    sizes = [length for count, length in layout.runs for _ in range(count)]
    for a, b, c in zip(*(x[: sum(sizes)].split(sizes) for x in (q, k, v)), strict=True):
        one, _ = Padded(None).attend(a[None], b[None], c[None])
        alone.append(one[0])
    assert_same(context[: sum(sizes)], torch.cat(alone), "each sequence for itself")
    assert not context[sum(sizes) :].any()
    assert_same(firsts, torch.stack([one[0] for one in alone]), "its first token")


@FEW
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8), silence=st.booleans())
def test_packed_causal_attention(lengths: list[int], silence: bool) -> None:
    """Each sequence for itself, and each token up to itself; in one call too, as on an accelerator."""
    mask = (torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]).long()
    layout = Packed.from_mask(mask)
    query, key, value = (noise(*mask.shape, 3, 5, seed=seed) for seed in (1, 2, 3))
    head_mask = torch.tensor([1.0, 0.0, 0.5]) if silence else None
    q, k, v = layout.pack(query), layout.pack(key), layout.pack(value)
    several, _ = layout.attend(q, k, v, causal=True, head_mask=head_mask)
    found = layout.restore(several)
    one_call = layout.restore(layout._attend_padded(q, k, v, 0.0, head_mask, causal=True))
    for row, length in enumerate(lengths):
        a, b, c = (x[row : row + 1, :length].transpose(1, 2) for x in (query, key, value))
        expected, _ = attend(a, b, c, causal=True, head_mask=head_mask)
        assert_same(found[row, :length], expected[0].transpose(0, 1).flatten(1), "a sequence alone")
        assert_same(one_call[row, :length], found[row, :length], "in one call")


@FEW
@given(rows=st.integers(0, 100_000))
def test_few_rows_are_added_and_few_numbers_are_left(rows: int) -> None:
    like = torch.zeros(())
    added = rows_to_add(rows, like)
    assert 0 <= added <= rows / 32
    assert added == 0 or rows_to_add(rows + added, like) == 0
    with torch.no_grad():
        assert rows_to_add(rows, like) == 0
    assert len({n + rows_to_add(n, like) for n in range(1024, 2048)}) == 33


def test_added_rows_are_no_tokens() -> None:
    """They carry no label and take no attention, and no gradient comes from them."""
    lengths = torch.tensor([37, 30, 20, 18])
    mask = (torch.arange(37) < lengths[:, None]).long()
    layout = Packed.from_mask(mask)
    assert len(layout.rows) - layout.real == 1
    x = noise(4, 37, 6).requires_grad_()
    packed = layout.pack(x)
    assert len(packed) == 106
    assert torch.equal(layout.restore(packed), x * mask[..., None])
    labels = torch.arange(4 * 37).view(4, 37)
    assert layout.pack_labels(labels).sort().values.tolist() == labels[mask.bool()].tolist()
    layout.restore(packed).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, mask[..., None].expand(4, 37, 6).float())
    with torch.no_grad():
        assert Packed.from_mask(mask).real == len(Packed.from_mask(mask).rows)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("cast", [False, True])
def test_attention_learns_in_half_precision(dtype: torch.dtype, cast: bool) -> None:
    """Its gradients are those of float32, but for the rounding of what goes in and comes out."""
    exact = [noise(2, 3, 20, 8, seed=seed).to(dtype).float().requires_grad_() for seed in (1, 2, 3)]
    half = [x.detach().to(dtype).requires_grad_() for x in exact]
    mask = torch.zeros(2, 1, 1, 20)
    mask[1, ..., 15:] = -10000.0
    expected, _ = attend(*exact, mask=mask)
    with torch.autocast("cpu", dtype, enabled=cast):
        found, _ = attend(*half, mask=mask.to(dtype))
    assert found.dtype == dtype
    limit = torch.finfo(dtype).eps
    assert (found.float() - expected).abs().max() < limit * expected.abs().max()
    expected.sum().backward()
    found.sum().backward()
    for ours, theirs in zip(half, exact, strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        assert (ours.grad.float() - theirs.grad).abs().max() < 4 * limit * theirs.grad.abs().max()


def test_mask_blocks_in_every_type() -> None:
    """exp() of what is added is exactly 0, without overflow, also in half precision."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        scores = additive_key_mask(torch.tensor([[1, 0]]), dtype)
        assert scores.shape == (1, 1, 1, 2)
        assert scores.dtype == dtype
        assert scores.isfinite().all()
        assert torch.softmax(scores, -1).flatten().tolist() == [1.0, 0.0]


@FEW
@given(labels=st.lists(st.integers(-3, 4), min_size=1, max_size=9))
def test_classification_loss_is_the_mean_over_labels(labels: list[int]) -> None:
    logits = noise(len(labels), 5)
    loss = classification_loss(logits, torch.tensor(labels))
    assert_same(loss, cross_entropy(logits.double().numpy(), labels), "loss")


def test_losses_with_nothing_to_learn_are_zero_in_the_graph() -> None:
    logits = noise(3, 5).requires_grad_()
    nothing = torch.tensor([-1, -100, -7])
    for loss in (
        classification_loss(logits, nothing),
        span_loss(logits, logits, nothing, torch.tensor([5, 6, 900])),
    ):
        (gradient,) = torch.autograd.grad(loss, logits)
        assert loss.item() == 0.0
        assert not gradient.any()


def test_losses_refuse_what_does_not_fit() -> None:
    logits = noise(3, 5)
    with pytest.raises(ValueError, match=r"my_labels.*5.*4"):
        classification_loss(logits, torch.tensor([0, 5, 1]), "my_labels")
    with pytest.raises(ValueError, match=r"my_labels.*float"):
        classification_loss(logits, torch.tensor([0.0, 1.0, 1.0]), "my_labels")
    with pytest.raises(ValueError, match=r"my_labels.*\[2\]"):
        classification_loss(logits, torch.tensor([0, 1]), "my_labels")
    with pytest.raises(ValueError, match=r"labels.*2.*3"):
        regression_loss(noise(3, 1), torch.zeros(2))


def test_losses_of_half_precision_are_computed_in_float() -> None:
    logits = noise(64, 50).bfloat16()
    labels = torch.arange(64) % 50
    loss = classification_loss(logits, labels)
    assert loss.dtype == torch.float32
    assert_same(loss, cross_entropy(logits.double().numpy(), labels.numpy()), "loss")


def test_pruned_linear_layers() -> None:
    assert kept_columns(4, 2, {1, 3}).tolist() == [0, 1, 4, 5]
    layer = nn.Linear(6, 8)
    weight, bias, x = layer.weight.detach().clone(), layer.bias.detach().clone(), noise(3, 6)
    assert prune_linear_layer(layer, torch.tensor([0, 1, 4, 5])) is layer
    rows = [0, 1, 4, 5]
    assert_same(layer(x), x @ weight[rows].T + bias[rows], "fewer outputs")
    prune_linear_layer(layer, torch.tensor([2, 3]), dim=1)
    assert (layer.in_features, layer.out_features) == (2, 4)
    assert torch.equal(layer.weight, weight[rows][:, [2, 3]])


@pytest.mark.parametrize("shape", [(2, 5, 8), (5, 8), (8,), (0, 8)])
def test_tied_linear_has_the_gradients_of_linear(shape: tuple[int, ...]) -> None:
    layer, x = TiedLinear(8, 30), noise(*shape).requires_grad_()
    own, plain = layer(x), F.linear(x, layer.weight)
    assert torch.equal(own, plain)
    slope = noise(*plain.shape, seed=1)
    pairs = zip(*(torch.autograd.grad(y, (x, layer.weight), slope) for y in (own, plain)), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # torch's own forward mode
def test_tied_linear_has_second_derivatives_and_works_in_forward_mode() -> None:
    layer = TiedLinear(4, 6).double()
    x = noise(3, 4).double().requires_grad_()

    def scores(x: Tensor, weight: Tensor) -> Tensor:
        found: Tensor = functional_call(layer, {"weight": weight}, (x,))
        return found

    weight = layer.weight.detach().requires_grad_()
    assert torch.autograd.gradgradcheck(scores, (x, weight))
    assert torch.autograd.gradcheck(scores, (x, weight), check_forward_ad=True)


def test_tied_linear_under_autocast_is_linear() -> None:
    layer, x = TiedLinear(8, 30), noise(5, 8)
    with torch.autocast("cpu", torch.bfloat16):
        scores = layer(x)
        assert scores.dtype == torch.bfloat16
        assert torch.equal(scores, F.linear(x, layer.weight))


def test_frozen_tied_linear_makes_no_gradient_of_its_table() -> None:
    layer, x = TiedLinear(8, 30).requires_grad_(False), noise(5, 8).requires_grad_()
    layer(x).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None


@pytest.mark.parametrize("tied", [True, False])
def test_gradient_of_a_tied_table_is_added_up_in_place(tied: bool) -> None:
    """With `F.linear` a third tensor as large as the table is made; if that ends, `TiedLinear` has no use any more."""
    layer = TiedLinear(8, 20_000)
    hidden = F.embedding(torch.arange(50), layer.weight).tanh()
    total = (layer(hidden) if tied else F.linear(hidden, layer.weight)).square().sum()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        total.backward()
    made = sum(e.self_cpu_memory_usage for e in profiled.key_averages() if e.key == "aten::add")
    assert (made < layer.weight.nbytes) == tied


needs_onednn = pytest.mark.skipif(not can_fuse(nn.Linear(1, 1)), reason="oneDNN is not part of this build of torch")


@needs_onednn
@pytest.mark.parametrize("name", [None, *sorted(ACTIVATIONS)])
def test_fused_linear_is_the_same(name: str | None) -> None:
    layer = nn.Linear(37, 19)
    x, residual = noise(5, 4, 37), noise(5, 4, 19)
    activation = None if name is None else get_activation(name)
    with torch.no_grad():
        plain = layer(x)
        assert_same(
            FusedLinear(layer, activation=activation)(x), activation(plain) if activation else plain, "activation"
        )
        assert_same(FusedLinear(layer).plus(x, residual), plain + residual, "residual")


@needs_onednn
def test_fused_linear_joins_layers_and_takes_any_activation() -> None:
    layers = [nn.Linear(37, size) for size in (5, 19, 8)]
    x = noise(7, 37)
    with torch.no_grad():
        joined = FusedLinear(*layers, activation=torch.sin)(x)
        assert_same(joined, torch.cat([layer(x) for layer in layers], dim=-1).sin(), "joined")
