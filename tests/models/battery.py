"""What every family must do, written once.

A family describes itself with a `Case`; its `test_battery.py` runs `EVERY_MODEL` on each of its classes, `CAUSAL` too
if they are decoders, and `ONCE` on the family. A check is a function of the case (and a class) that asserts; it builds
what it needs from a fixed seed.

Letters: B batch, T tokens.
"""

import copy
import importlib
import inspect
import itertools
import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from .compare import assert_same

Inputs = dict[str, Tensor]


@dataclass(frozen=True)
class Case:
    """One family, as far as the battery needs to know it."""

    config: Callable[..., Any]
    """A tiny configuration without dropout; keyword arguments override its fields."""
    base: type[Any]
    """The encoder or decoder without a head."""
    pretrained: type[Any]
    """The class that users derive their own models from."""
    heads: tuple[type[Any], ...]
    """The models with a head."""
    inputs: Callable[..., Inputs]
    """(model class, batch, length, seed) -> forward arguments without labels, with padding if the family has a mask."""
    labels: Callable[[type[Any], Inputs], Inputs]
    """(model class, inputs) -> the labels of the head; empty for the base."""
    outputs: Callable[[type[Any], int, int], dict[str, tuple[int, ...]]]
    """(model class, batch, length) -> shapes of the output fields without labels, in order."""
    losses: Callable[[type[Any]], tuple[str, ...]] = lambda _: ("loss",)
    """(model class) -> fields that come first when labels are given."""
    max_length: int = 0
    """Number of positions; 0 if there is no limit."""
    unused: Callable[[type[Any]], str] = lambda _: r"(?!)"
    """(model class) -> pattern of the parameters that its result does not depend on."""
    flat: str = r"(?!)"
    """Pattern of parameters whose gradient is zero by the mathematics, so only rounding can show."""
    modules: tuple[str, ...] = ()
    """Names of the modules with the family's forwards."""
    head_count: int = 0
    layer_count: int = 0
    prune: bool = True
    layers: str = "num_hidden_layers"
    """The family's name of the number of layers."""
    dropout: str = "hidden_dropout_prob"
    """The family's name of a dropout that every model has."""
    spread: Callable[[str, Any], float] = lambda _, config: float(config.initializer_range)
    """(parameter, configuration) -> standard deviation of a new matrix."""
    uncached: dict[str, Any] = field(default_factory=dict)
    """Configuration fields without which a decoder returns keys and values, [2, B, …]: two rows, whatever the batch."""
    options: dict[str, Any] = field(default_factory=dict)
    """Configuration fields that a round trip must keep, with values that are not the defaults."""

    @property
    def models(self) -> tuple[type[Any], ...]:
        return (self.base, *self.heads)


def build(case: Case, model_class: type[Any], *, seed: int = 0, noise: float = 0.1, **overrides: Any) -> Any:
    """A model in `eval()` whose parameters, biases and norms included, are all moved away from 0 and 1."""
    torch.manual_seed(seed)
    model = model_class(case.config(**overrides))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * noise)
    return model.eval()


def tensors(output: Any) -> list[Tensor]:
    """The tensors of an output (named, tuple or nested tuple), in order."""
    if isinstance(output, Tensor):
        return [output]
    return [tensor for value in output for tensor in tensors(value)]


def fields(output: Any) -> list[str]:
    """Names of the fields that are present, in order."""
    return list(output.keys())


def assert_equal_outputs(ours: Any, reference: Any, what: str, *, exact: bool = False) -> None:
    """The same tensors in the same order: to the last bit, or within the bounds of `compare`."""
    left, right = tensors(ours), tensors(reference)
    assert len(left) == len(right) > 0, f"{what}: {len(left)} tensors, expected {len(right)}"
    for index, (one, other) in enumerate(zip(left, right, strict=True)):
        if exact:
            assert torch.equal(one, other), f"{what}: tensor {index} differs"
        else:
            assert_same(one, other, f"{what}: tensor {index}")


def scalar(output: Any) -> Tensor:
    """One number that depends on every element of an output, unevenly, so that no gradient cancels."""
    total = torch.zeros(())
    for tensor in tensors(output):
        weights = torch.linspace(-1.0, 2.0, tensor.numel(), dtype=tensor.dtype).reshape(tensor.shape)
        total = total + (tensor * weights).sum() / tensor.numel()
    return total


def gradients(model: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """Gradient of each parameter that has one."""
    model.zero_grad(set_to_none=True)
    loss.backward()
    return {name: p.grad.detach().clone() for name, p in model.named_parameters() if p.grad is not None}


# --- outputs ----------------------------------------------------------------------------------------------------------


def check_shapes(case: Case, model_class: type[Any]) -> None:
    """Fields, their order and shapes, with and without labels and switches."""
    model = build(case, model_class)
    batch, length = 3, 7
    inputs = case.inputs(model_class, batch, length, 1)
    expected = case.outputs(model_class, batch, length)
    output = model(**inputs)
    assert {name: tuple(output[name].shape) for name in expected} == expected
    assert fields(output)[: len(expected)] == list(expected)
    for extra in ("hidden_states", "attentions"):
        assert extra not in fields(output)
        assert getattr(output, extra) is None
    labels = case.labels(model_class, inputs)
    losses = case.losses(model_class)
    if labels:
        with_loss = model(**inputs, **labels)
        assert fields(with_loss)[: len(losses) + len(expected)] == [*losses, *expected]
        for name in losses:
            assert with_loss[name].shape == ()
            assert with_loss[name].item() > 0.0


def check_switches(case: Case, model_class: type[Any]) -> None:
    """The keyword switches and the configuration ask for the same things; the keyword wins."""
    inputs = case.inputs(model_class, 2, 6, 2)
    model = build(case, model_class)
    plain = model(**inputs)
    both = model(**inputs, output_hidden_states=True, output_attentions=True)
    assert fields(both) == [*fields(plain), "hidden_states", "attentions"]
    assert len(both.hidden_states) == case.layer_count + 1
    assert len(both.attentions) == case.layer_count
    for probabilities in both.attentions:
        assert probabilities.shape[1] == case.head_count
        assert_same(probabilities.sum(-1), torch.ones_like(probabilities.sum(-1)), "attention rows add up to 1")
    configured = build(case, model_class, output_hidden_states=True, output_attentions=True)
    assert_equal_outputs(configured(**inputs), both, "configured switches", exact=True)
    assert fields(configured(**inputs, output_hidden_states=False, output_attentions=False)) == fields(plain)
    as_tuple = model(**inputs, return_dict=False)
    assert type(as_tuple) is tuple
    assert_equal_outputs(as_tuple, plain, "return_dict=False", exact=True)
    script = build(case, model_class, torchscript=True)
    assert type(script(**inputs)) is tuple
    assert_equal_outputs(script(**inputs), plain, "torchscript=True", exact=True)


def check_output_contract(case: Case, model_class: type[Any]) -> None:
    """Index, slice, name, iteration, length, tuple, absent fields, pickle, copy."""
    model = build(case, model_class)
    inputs = case.inputs(model_class, 2, 5, 3)
    for labels in ({}, case.labels(model_class, inputs)):
        output = model(**inputs, **labels, output_hidden_states=True)
        names, values = fields(output), output.to_tuple()
        assert type(values) is tuple
        assert len(output) == len(names) == len(values)
        assert all(one is other for one, other in zip(output, values, strict=True))
        assert all(output[name] is value for name, value in zip(names, values, strict=True))
        assert all(getattr(output, name) is value for name, value in zip(names, values, strict=True))
        assert all(output[index] is value for index, value in enumerate(values))
        assert all(name in output for name in names)
        assert "attentions" not in output
        assert output[-1] is values[-1] is output.hidden_states
        assert output[:2] == values[:2]
        assert output[1:] == values[1:]
        first, *rest = output
        assert first is values[0]
        assert len(rest) == len(values) - 1
        with pytest.raises(IndexError):
            output[len(values)]
        with pytest.raises(KeyError):
            output["no_such_field"]
        with pytest.raises(AttributeError):
            _ = output.no_such_field
        assert output.attentions is None
        assert "attentions" not in names
        with pytest.raises(KeyError):
            output["attentions"]
        detached = model_output_detached(model, inputs, labels)
        for clone in (pickle.loads(pickle.dumps(detached)), copy.deepcopy(detached)):
            assert type(clone) is type(output)
            assert fields(clone) == names
            assert_equal_outputs(clone, detached, "copy", exact=True)
            assert clone.attentions is None


def model_output_detached(model: Any, inputs: Inputs, labels: Inputs) -> Any:
    """The output without a graph, since a tensor inside one can be neither pickled nor deep-copied."""
    with torch.no_grad():
        return model(**inputs, **labels, output_hidden_states=True)


def check_gather(case: Case, model_class: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """`DataParallel` puts the outputs of its replicas together; here on the CPU, with only the copy itself replaced."""
    from torch.nn.parallel import scatter_gather

    class Joined:
        @staticmethod
        def apply(_target: Any, dim: int, *parts: Tensor) -> Tensor:
            return torch.cat([part.unsqueeze(0) if part.dim() == 0 else part for part in parts], dim)

    monkeypatch.setattr(scatter_gather, "Gather", Joined)
    model = build(case, model_class, **case.uncached)
    halves = [case.inputs(model_class, batch, 5, seed) for batch, seed in ((2, 1), (3, 2))]
    for labelled, hidden in itertools.product((False, True), (False, True)):
        parts = [
            model(**half, **(case.labels(model_class, half) if labelled else {}), output_hidden_states=hidden)
            for half in halves
        ]
        joined = scatter_gather.gather(parts, torch.device("cpu"))
        assert type(joined) is type(parts[0])
        assert fields(joined) == fields(parts[0])
        for name in fields(parts[0]):
            pieces = [tensors([part[name]]) for part in parts]
            for together, *single in zip(tensors([joined[name]]), *pieces, strict=True):
                assert torch.equal(together, torch.cat([s.reshape(1) if s.dim() == 0 else s for s in single]))


# --- saving, loading, initialisation ----------------------------------------------------------------------------------


def check_save_and_load(case: Case, model_class: type[Any], folder: Path) -> None:
    """What is loaded is what was saved, in both file formats, and loading says nothing when nothing is odd."""
    model = build(case, model_class)
    inputs = case.inputs(model_class, 2, 5, 4)
    for safe in (True, False):
        place = folder / f"safe-{safe}"
        model.train().save_pretrained(place, safe_serialization=safe)
        assert (place / ("model.safetensors" if safe else "pytorch_model.bin")).is_file()
        loaded, info = model_class.from_pretrained(place, output_loading_info=True)
        assert {name: list(found) for name, found in info.items()} == {
            "missing_keys": [],
            "unexpected_keys": [],
            "mismatched_keys": [],
            "error_msgs": [],
        }
        assert not any(module.training for module in loaded.modules())
        saved, found = model.state_dict(), loaded.state_dict()
        assert list(saved) == list(found)
        assert all(torch.equal(saved[name], found[name]) for name in saved)
        assert {p.requires_grad for p in loaded.parameters()} == {True}
        assert_equal_outputs(loaded(**inputs), model.eval()(**inputs), "loaded", exact=True)
        assert loaded.config.to_dict() == model.config.to_dict()


def check_config_round_trip(case: Case, folder: Path) -> None:
    """A saved configuration is the configuration: options, labels and keys of other programs included."""
    config = case.config(**case.options, num_labels=3, task_name="ours")
    config.save_pretrained(folder)
    again = type(config).from_pretrained(folder)
    for name, value in {**case.options, "num_labels": 3, "task_name": "ours"}.items():
        assert getattr(again, name) == value, name
    assert again.to_dict() == config.to_dict()
    assert type(config).from_dict(config.to_dict()).to_json_string() == config.to_json_string()
    changed = type(config).from_pretrained(
        folder, **{name: value for name, value in case.config().to_dict().items() if name in case.options}
    )
    assert changed.to_dict() != config.to_dict()


def _spread(values: Tensor, sigma: float, what: str) -> None:
    """Mean 0 and standard deviation `sigma`, each within five standard errors of n normal draws."""
    count = values.numel()
    mean, std = float(values.mean()), float(values.std())
    assert abs(mean) <= 5 * sigma / count**0.5, f"{what}: mean {mean:.4f}"
    assert abs(std - sigma) <= 5 * sigma / (2 * count) ** 0.5, f"{what}: std {std:.4f}, expected {sigma}"


def assert_initialised(model: Any, spread: Callable[[str, Any], float]) -> None:
    """Weights of maps and tables are normal, biases 0, normalisations 1 and 0; each parameter is looked at."""
    seen: set[str] = set()
    pooled: list[Tensor] = []
    for module_name, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            full = f"{module_name}.{name}".lstrip(".")
            seen.add(full)
            if name.endswith("bias"):
                assert torch.equal(parameter, torch.zeros_like(parameter)), full
            elif "norm" in type(module).__name__.lower():
                assert torch.equal(parameter, torch.ones_like(parameter)), full
            elif parameter.dim() >= 2:
                sigma = spread(full, model.config)
                _spread(parameter.detach(), sigma, full)
                pooled.append(parameter.detach().reshape(-1) / sigma)
    assert seen == {name for name, _ in model.named_parameters(remove_duplicate=False)}
    _spread(torch.cat(pooled), 1.0, "all weights together")


def check_initialisation(case: Case, model_class: type[Any]) -> None:
    """The family's rule, for a range that is not the default of torch nor of the family."""
    torch.manual_seed(11)
    assert_initialised(model_class(case.config(initializer_range=0.05)), case.spread)


def check_initialisation_of_subclasses(case: Case) -> None:
    """A user's class that only calls `super().__init__` and adds modules, at any depth, is initialised too."""

    class Custom(case.pretrained):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.encoder = case.base(config)
            self.table = nn.Embedding(50, 30)
            self.head = nn.Sequential(nn.Linear(30, 60), nn.LayerNorm(60), nn.ModuleList([nn.Linear(60, 2)]))

        def forward(self, x: Tensor) -> Tensor:
            return x

    class Derived(Custom):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.more = nn.Linear(30, 40)

    for custom in (Custom, Derived):
        torch.manual_seed(12)
        assert_initialised(custom(case.config(initializer_range=0.05)), case.spread)


def check_determinism(case: Case, model_class: type[Any]) -> None:
    """One seed, one model; another seed, another; and `eval()` gives the same answer twice."""

    def fresh(seed: int) -> dict[str, Tensor]:
        torch.manual_seed(seed)
        state: dict[str, Tensor] = model_class(case.config()).state_dict()
        return state

    one, same, other = fresh(5), fresh(5), fresh(6)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)
    drops = case.dropout in case.options
    changes: dict[str, Any] = {case.dropout: 0.5} if drops else {}
    model = build(case, model_class, **changes)
    inputs = case.inputs(model_class, 2, 5, 5)
    assert_equal_outputs(model(**inputs), model(**inputs), "twice", exact=True)
    if drops:
        model.train()
        torch.manual_seed(1)
        first = tensors(model(**inputs))[0]
        torch.manual_seed(1)
        assert torch.equal(first, tensors(model(**inputs))[0])
        assert not torch.equal(first, tensors(model(**inputs))[0]), "dropout is on in training"


# --- gradients --------------------------------------------------------------------------------------------------------


def _training_loss(case: Case, model: Any, batch: int = 3, length: int = 6) -> Tensor:
    """The head's own losses together; the weighted sum of all outputs where there is none."""
    inputs = case.inputs(type(model), batch, length, 7)
    labels = case.labels(type(model), inputs)
    output = model(**inputs, **labels)
    own: list[Tensor] = [output[name] for name in case.losses(type(model)) if name in fields(output)]
    return torch.stack(own).sum() if own else scalar(output)


def check_gradient_flow(case: Case, model_class: type[Any]) -> None:
    """Each parameter that the result depends on gets a gradient that is not zero."""
    model = build(case, model_class).train()
    found = gradients(model, _training_loss(case, model))
    unused = re.compile(case.unused(model_class))
    for name, _ in model.named_parameters():
        if unused.search(name):
            assert name not in found or not found[name].any(), f"{name} has a gradient"
            continue
        assert name in found, f"{name} has no gradient"
        assert torch.isfinite(found[name]).all(), name
        if not re.search(case.flat, name):
            assert found[name].any(), f"the gradient of {name} is zero"


def check_gradient_checkpointing(case: Case, model_class: type[Any]) -> None:
    """Computing layers again in the backward pass changes nothing: same loss, same gradients; both ways to ask."""
    model = build(case, model_class).train()
    loss = _training_loss(case, model)
    expected = gradients(model, loss)
    enabled = build(case, model_class).train()
    enabled.gradient_checkpointing_enable()
    for other in (build(case, model_class, gradient_checkpointing=True).train(), enabled):
        runs = 0

        def count(*_: Any) -> None:
            nonlocal runs
            runs += 1

        handles = [m.register_forward_hook(count) for m in other.modules() if isinstance(m, nn.LayerNorm)]
        again = _training_loss(case, other)
        once = runs
        found = gradients(other, again)
        for handle in handles:
            handle.remove()
        assert runs > once > 0, "nothing was computed again"
        assert torch.equal(again, loss)
        assert found.keys() == expected.keys()
        for name, gradient in found.items():
            assert_same(gradient, expected[name], name)


def check_head_mask(case: Case, model_class: type[Any]) -> None:
    """Ones change nothing, zeros remove a head, one row serves all layers, and the mask itself has a gradient."""
    model = build(case, model_class)
    inputs = case.inputs(model_class, 2, 6, 8)
    plain = model(**inputs)
    ones = torch.ones(case.layer_count, case.head_count)
    assert_equal_outputs(model(**inputs, head_mask=ones), plain, "all heads kept")
    one_row = torch.ones(case.head_count)
    one_row[1] = 0.0
    removed = model(**inputs, head_mask=one_row)
    assert_equal_outputs(
        model(**inputs, head_mask=one_row.expand(case.layer_count, -1)), removed, "one row", exact=True
    )
    assert any(not torch.allclose(a, b) for a, b in zip(tensors(removed), tensors(plain), strict=True))
    mask = torch.full((case.layer_count, case.head_count), 0.5, requires_grad=True)
    (gradient,) = torch.autograd.grad(scalar(model(**inputs, head_mask=mask)), mask)
    assert (gradient != 0).all(), "every head of every layer matters"
    with pytest.raises(ValueError, match="head_mask"):
        model(**inputs, head_mask=torch.ones(case.head_count + 1))


# --- padding ----------------------------------------------------------------------------------------------------------


def padded(inputs: Inputs, extra: int, seed: int, vocab: int) -> Inputs:
    """The same rows, `extra` places longer, with random ids wherever the mask is 0."""
    generator = torch.Generator().manual_seed(seed)
    longer: Inputs = {}
    for name, value in inputs.items():
        if name == "mc_token_ids":  # places in the text
            longer[name] = value
            continue
        assert name in {"input_ids", "attention_mask", "token_type_ids"}, f"how to pad {name}?"
        longer[name] = torch.cat([value, value.new_zeros(*value.shape[:-1], extra)], -1)
    hidden = longer["attention_mask"] == 0
    noise = torch.randint(0, vocab, hidden.shape, generator=generator)
    longer["input_ids"] = torch.where(hidden, noise, longer["input_ids"])
    if "token_type_ids" in longer:
        longer["token_type_ids"] = torch.where(hidden, noise % 2, longer["token_type_ids"])
    return longer


def check_padding_invariance(case: Case, model_class: type[Any]) -> None:
    """C2: neither the ids at padded places nor their number changes a real position."""
    model = build(case, model_class, **case.uncached)
    inputs = case.inputs(model_class, 4, 6, 9)
    mask = inputs["attention_mask"].bool()
    assert not mask.all()
    reference = model(**inputs)
    for extra, seed in ((0, 1), (3, 2), (9, 3)):
        other = model(**padded(inputs, extra, seed, case.config().vocab_size))
        for index, (one, two) in enumerate(zip(tensors(other), tensors(reference), strict=True)):
            left, right = one, two
            if right.shape[: mask.dim()] == mask.shape:  # one vector or number for each token
                left, right = (
                    one[..., : mask.shape[-1], :] if one.dim() > mask.dim() else one[..., : mask.shape[-1]],
                    two,
                )
                left, right = left[mask], right[mask]
            assert_same(left, right, f"output {index} with {extra} more places")


# --- surgery ----------------------------------------------------------------------------------------------------------


def check_resize(case: Case, model_class: type[Any]) -> None:
    """The table grows and shrinks, old rows stay, ties stay, and the new size is the limit for ids."""
    model = build(case, model_class)
    vocab = model.config.vocab_size
    before = model.get_input_embeddings().weight.detach().clone()
    for size in (vocab + 7, vocab - 5):
        table = model.resize_token_embeddings(size)
        assert table is model.get_input_embeddings()
        assert model.config.vocab_size == size
        assert table.weight.shape == (size, before.shape[1])
        kept = min(size, vocab - 5 if size < vocab else vocab)
        assert torch.equal(table.weight[:kept], before[:kept])
        if size > vocab:
            assert 0 < float(table.weight[vocab:].detach().std()) < 0.1, "new rows follow the family's rule"
        inputs = case.inputs(model_class, 2, 5, 10)
        for name in ("input_ids", "token_type_ids"):  # the types of some families are ids too
            inputs[name] = inputs[name].clamp(max=size - 1)
        inputs["input_ids"].view(-1)[0] = size - 1
        output = model(**inputs)
        for name, shape in case.outputs(model_class, 2, 5).items():
            assert tuple(output[name].shape) == tuple(size if n == vocab else n for n in shape)
        inputs["input_ids"].view(-1)[0] = size
        with pytest.raises(ValueError, match=rf"input_ids.*{size}"):
            model(**inputs)
    assert model.resize_token_embeddings(size).weight.shape[0] == size


def check_ties(case: Case, model_class: type[Any]) -> None:
    """What shares a parameter after construction shares it after `tie_weights`, resizing and a change of type."""
    model = build(case, model_class)

    def shared() -> list[list[str]]:
        groups: dict[int, list[str]] = {}
        for name, parameter in model.named_parameters(remove_duplicate=False):
            groups.setdefault(id(parameter), []).append(name)
        return sorted(group for group in groups.values() if len(group) > 1)

    ties = shared()
    for change in (
        model.tie_weights,
        lambda: model.resize_token_embeddings(model.config.vocab_size + 3),
        model.double,
        lambda: model.load_state_dict(model.state_dict()),
    ):
        change()
        assert shared() == ties


def check_pruning(case: Case, model_class: type[Any], folder: Path) -> None:
    """K2: pruning = masking with zeros; a second call changes nothing; saving keeps it; all other heads stay."""
    if not case.prune:
        pytest.skip("the family has no heads that can be removed")
    inputs = case.inputs(model_class, 2, 6, 11)
    masked = build(case, model_class, **case.uncached)
    mask = torch.ones(case.layer_count, case.head_count)
    mask[0, 1] = mask[0, 3] = mask[-1, 0] = 0.0
    expected = masked(**inputs, head_mask=mask)
    model = build(case, model_class, **case.uncached)
    size = sum(p.numel() for p in model.parameters())
    model.prune_heads({0: [1], case.layer_count - 1: [0]})
    model.prune_heads({0: [3]})
    smaller = sum(p.numel() for p in model.parameters())
    assert smaller < size
    assert_equal_outputs(model(**inputs), expected, "pruned")
    model.prune_heads({0: [1, 3]})
    assert sum(p.numel() for p in model.parameters()) == smaller
    model.save_pretrained(folder)
    loaded = model_class.from_pretrained(folder)
    assert sum(p.numel() for p in loaded.parameters()) == smaller
    assert_equal_outputs(loaded(**inputs), model(**inputs), "loaded", exact=True)
    loaded.prune_heads({0: [0]})
    mask[0, 0] = 0.0
    assert_equal_outputs(loaded(**inputs), masked(**inputs, head_mask=mask), "pruned after loading")
    fresh = model_class(model.config)
    assert sum(p.numel() for p in fresh.parameters()) == smaller, "the configuration remembers what was pruned"
    with pytest.raises(ValueError, match=str(case.head_count)):
        model.prune_heads({0: [case.head_count]})
    with pytest.raises(ValueError, match=str(case.layer_count)):
        model.prune_heads({case.layer_count: [0]})


def check_source(case: Case) -> None:
    """No forward asks its first parameter for a device or type: a replica of `DataParallel` has no parameters."""
    assert case.modules
    for name in case.modules:
        source = inspect.getsource(importlib.import_module(name))
        for pattern in (r"next\(\s*self\.parameters", r"\.numpy\(", r"\.cuda\(", r"device\s*=\s*[\"']"):
            assert not re.search(pattern, source), f"{name} contains {pattern}"


def check_other_types(case: Case, model_class: type[Any]) -> None:
    """float64 and bfloat16 models compute in their own type, near the float32 result."""
    inputs = case.inputs(model_class, 2, 5, 12)
    with torch.no_grad():
        reference = build(case, model_class)(**inputs)
    for dtype, bound in ((torch.float64, 1e-5), (torch.bfloat16, 0.3)):  # bfloat16 keeps 8 bits: 0.4 % of each value
        with torch.no_grad():
            output = build(case, model_class).to(dtype)(**inputs)
        for one, other in zip(tensors(output), tensors(reference), strict=True):
            assert one.dtype == dtype
            assert float((one.double() - other.double()).abs().max()) <= bound


# --- decoders ---------------------------------------------------------------------------------------------------------


def per_token(output: Any) -> list[Tensor]:
    """What is said of each token: [..., T, N], from an output of known fields."""
    names = ("last_hidden_state", "logits", "lm_logits", "hidden_states")
    return [x for name in names if (found := getattr(output, name, None)) is not None for x in tensors(found)]


def check_causality(case: Case, model_class: type[Any]) -> None:
    """A later token, whatever it is, changes no bit of what is said of an earlier one; nor does its absence."""
    model = build(case, model_class)
    inputs = case.inputs(model_class, 2, 8, 21)
    ids, types = inputs["input_ids"], inputs["token_type_ids"]
    vocab = case.config().vocab_size
    for switches in ({}, {"output_attentions": True, "output_hidden_states": True}):
        with torch.no_grad():
            whole = per_token(model(input_ids=ids, token_type_ids=types, **switches))
            for place in range(1, 8):
                later = torch.arange(8) >= place
                changed = torch.where(later, (ids * 7 + place) % vocab, ids)
                other = per_token(model(input_ids=changed, token_type_ids=types.masked_fill(later, 3), **switches))
                shorter = per_token(model(input_ids=ids[..., :place], token_type_ids=types[..., :place], **switches))
                assert len(whole) == len(other) == len(shorter) > 0
                for one, two, three in zip(whole, other, shorter, strict=True):
                    assert torch.equal(one[..., :place, :], two[..., :place, :]), f"place {place} is seen before it"
                    assert not torch.equal(one[..., place:, :], two[..., place:, :])
                    assert_same(three, one[..., :place, :], f"the first {place} alone")


def left_padded(inputs: Inputs, lengths: Tensor, seed: int, vocab: int) -> Inputs:
    """The first `lengths` tokens of each row, at the end of it, random ids before them, and the mask that says so."""
    ids, types = inputs["input_ids"].clone(), inputs["token_type_ids"].clone()
    mask = torch.zeros_like(ids)
    generator = torch.Generator().manual_seed(seed)
    for place in itertools.product(*map(range, ids.shape[:-1])):
        length = int(lengths[place])
        for x in (ids, types):
            noise = torch.randint(0, vocab, (x.shape[-1] - length,), generator=generator)
            x[place] = torch.cat([noise, x[place][:length]])
        mask[place][-length:] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def check_left_padding(case: Case, model_class: type[Any]) -> None:
    """E1: rows of unequal length, padded on the left, give in a batch what each gives alone, whatever the padding is.

    Also with a batch longer than the positions there are, as long as no row is.
    """
    model = build(case, model_class)
    for length in (8, case.max_length + 3):
        inputs = case.inputs(model_class, 3, length, 22)
        inputs = {name: inputs[name] for name in ("input_ids", "token_type_ids")}
        limit = min(length, case.max_length)
        lengths = torch.randint(
            1, limit + 1, inputs["input_ids"].shape[:-1], generator=torch.Generator().manual_seed(1)
        )
        lengths.view(-1)[0], lengths.view(-1)[-1] = limit, 1
        for switches in ({}, {"output_attentions": True, "output_hidden_states": True}):
            batch = left_padded(inputs, lengths, 5, case.config().vocab_size)
            with torch.no_grad():
                together = model(**batch, **switches)
                other = model(**left_padded(inputs, lengths, 6, case.config().vocab_size), **switches)
            mask = batch["attention_mask"].bool()
            for one, two in zip(per_token(together), per_token(other), strict=True):
                assert_same(one[mask], two[mask], "other ids at padding")
            for place in itertools.product(*map(range, lengths.shape)):
                count = int(lengths[place])
                row = {name: value[place][:count].expand(*[1] * len(place), -1) for name, value in inputs.items()}
                with torch.no_grad():
                    alone = model(**row, **switches)
                for one, two in zip(per_token(together), per_token(alone), strict=True):
                    assert_same(one[place][-count:], two[(0,) * len(place)], f"row {place} of {count} tokens")
                if "mc_logits" in fields(alone):
                    assert_same(together.mc_logits[place], alone.mc_logits.reshape(()), f"choice {place}")


def check_positions(case: Case, model_class: type[Any]) -> None:
    """They count from the first real token; one row of them serves all; given ones are used as they are."""
    model = build(case, model_class)
    inputs = case.inputs(model_class, 3, 7, 23)
    ids = inputs["input_ids"]
    places = torch.arange(7)
    with torch.no_grad():
        plain = model(input_ids=ids)
        for given in (places[None], places.expand(ids.shape), places.expand(ids.shape).int()):
            assert_equal_outputs(model(input_ids=ids, position_ids=given), plain, "the default", exact=True)
        mask = torch.ones_like(ids)
        assert_equal_outputs(model(input_ids=ids, attention_mask=mask), plain, "a mask without padding", exact=True)
        mask[..., :3] = 0
        counted = (places - 3).clamp(min=0).expand(ids.shape)
        assert_equal_outputs(
            model(input_ids=ids, attention_mask=mask),
            model(input_ids=ids, attention_mask=mask, position_ids=counted),
            "counted",
            exact=True,
        )
        turned = model(input_ids=ids, position_ids=places.flip(0)[None])
    assert not torch.allclose(per_token(turned)[0], per_token(plain)[0])


def check_leading_axes(case: Case, model_class: type[Any]) -> None:
    """Choices are rows: any axes before that of the tokens can be flattened, and come back in what is said of each."""
    model = build(case, model_class, **case.uncached)
    inputs = case.inputs(model_class, 6, 5, 24)
    flat = {name: value.reshape(-1, 5) for name, value in inputs.items() if value.shape == inputs["input_ids"].shape}
    rows = len(flat["input_ids"])
    with torch.no_grad():
        expected = model(**flat, output_hidden_states=True)
        for shape in ((1, rows), (2, rows // 2), (rows // 6, 3, 2)):
            output = model(**{name: x.reshape(*shape, 5) for name, x in flat.items()}, output_hidden_states=True)
            assert fields(output) == fields(expected)
            for one, other in zip(tensors(output), tensors(expected), strict=True):
                assert one.shape == (*shape, *other.shape[1:])
                assert torch.equal(one.reshape(other.shape), other)


def check_token_types(case: Case, model_class: type[Any]) -> None:
    """They are looked up in the table of tokens and added: the same as vectors that were added before."""
    model = build(case, model_class)
    inputs = case.inputs(model_class, 2, 6, 25)
    ids, types = inputs["input_ids"], (inputs["input_ids"] * 3 + 1) % case.config().vocab_size
    table = model.get_input_embeddings()
    with torch.no_grad():
        output = model(input_ids=ids, token_type_ids=types)
        assert_equal_outputs(model(inputs_embeds=table(ids) + table(types)), output, "vectors")
        assert_equal_outputs(model(inputs_embeds=table(ids), token_type_ids=types), output, "vectors and types")
        assert not torch.allclose(per_token(model(input_ids=ids))[0], per_token(output)[0])


def check_cached_steps(case: Case, model_class: type[Any]) -> None:
    """Cache = no cache: pieces of any size, written into `KeyValueCache`, with rows padded on the left or none."""
    if not hasattr(model_class, "next_token_logits"):
        pytest.skip("text is generated by models with a vocabulary")
    model = build(case, model_class)
    inputs = {name: x.reshape(-1, 9) for name, x in case.inputs(model_class, 3, 9, 26).items() if x.shape[-1] == 9}
    rows = len(inputs["input_ids"])
    lengths = torch.arange(rows) % 9 + 1
    padded_rows = left_padded(inputs, lengths, 4, case.config().vocab_size)
    full = {"input_ids": inputs["input_ids"]}
    padding = {name: padded_rows[name] for name in ("input_ids", "attention_mask")}
    for batch, pieces in itertools.product((full, padding), ((9,), (1,) * 9, (4, 1, 3, 1), (2, 7), (8, 1))):
        ids, mask = batch["input_ids"], batch.get("attention_mask")
        cache, end = model.new_cache(rows, 11), 0
        with torch.no_grad():
            whole = per_token(model(**batch))[0]
            for piece in pieces:
                start, end = end, end + piece
                seen = None if mask is None else mask[:, :end]
                logits = model.next_token_logits(ids[:, start:end], cache, seen)
                assert cache.length == end
                real = torch.ones(rows, dtype=torch.bool) if mask is None else mask[:, end - 1].bool()
                assert_same(logits[real], whole[real, end - 1], f"pieces {pieces}, up to {end}")


def check_lean_loss(case: Case, model_class: type[Any]) -> None:
    """`output_logits=False`: no logits, the same loss, and the same gradient of every parameter."""
    if "output_logits" not in inspect.signature(model_class.forward).parameters:
        pytest.skip("the model always returns its scores")
    for frozen in (False, True):
        model = build(case, model_class).train()
        model.get_input_embeddings().weight.requires_grad_(not frozen)
        inputs = case.inputs(model_class, 3, 7, 27)
        labels = case.labels(model_class, inputs)
        plain = model(**inputs, **labels)
        expected = gradients(model, plain.loss)
        lean = model(**inputs, **labels, output_logits=False)
        assert fields(lean) == [name for name in fields(plain) if name != "logits"]
        assert_same(lean.loss, plain.loss, "loss")
        found = gradients(model, lean.loss)
        assert found.keys() == expected.keys()
        for name, gradient in found.items():
            assert_same(gradient, expected[name], name)
        assert "logits" in fields(model(**inputs, output_logits=False)), "nothing else to return without labels"


def check_loss_without_padding(case: Case, model_class: type[Any]) -> None:
    """`output_logits=False` leaves padding out where no label stands on it, and nothing else changes."""
    signature = inspect.signature(model_class.forward).parameters
    if "output_logits" not in signature or "attention_mask" not in signature:
        pytest.skip("the model always returns its scores, or takes no mask")
    model = build(case, model_class).train()
    lengths = torch.tensor([5, 2, 7, 1, 5])
    ids = case.inputs(model_class, 5, 7, 28)["input_ids"]
    mask = (torch.arange(7) < lengths[:, None]).long()
    no_cache = {"use_cache": False} if "use_cache" in signature else {}
    head_mask = torch.linspace(0.5, 1.0, model.config.num_attention_heads)
    seen: list[int] = []
    first_layer = model.base_model.h[0].mlp
    first_layer.register_forward_hook(lambda _, given, __: seen.append(given[0].shape[:-1].numel()))
    on_padding = ids.clone()
    unlabelled = ids.masked_fill(mask == 0, -100)
    cases: tuple[tuple[Tensor, Tensor, dict[str, Any], int], ...] = (
        (mask, unlabelled, no_cache, int(lengths.sum())),
        (mask, unlabelled, {**no_cache, "head_mask": head_mask}, int(lengths.sum())),
        (mask, unlabelled, {**no_cache, "token_type_ids": ids.flip(0)}, int(lengths.sum())),
        (mask, on_padding, no_cache, ids.numel()),  # then their loss counts, as in the original
        (mask.flip(1), unlabelled.flip(1), no_cache, ids.numel()),  # padding on the left
        (mask, unlabelled, {**no_cache, "output_hidden_states": True}, ids.numel()),
    )
    for marks, labels, more, computed in cases:
        given = {"input_ids": ids, "attention_mask": marks, "labels": labels, **more}
        expected = gradients(model, model(**given).loss)
        loss = model(**given).loss
        seen.clear()
        lean = model(**given, output_logits=False)
        assert seen == [computed]
        assert_same(lean.loss, loss, "loss")
        for name, gradient in gradients(model, lean.loss).items():
            assert_same(gradient, expected[name], name)


# --- compilers and exporters ------------------------------------------------------------------------------------------

# Batch, length: one size to compile or trace at, two others to run at.
SIZES = ((2, 6), (3, 9), (5, 4))


def real_places(tensor: Tensor, inputs: Inputs) -> Tensor:
    """What is said about each token, for real tokens only; anything else as it is."""
    mask = inputs.get("attention_mask")
    return tensor if mask is None or tensor.shape[: mask.dim()] != mask.shape else tensor[mask.bool()]


def check_compile(case: Case, model_class: type[Any]) -> None:
    """One graph without breaks for all sizes, loss included, equal to eager."""
    torch._dynamo.reset()
    model = build(case, model_class, **{case.layers: 1})
    compiled: Any = torch.compile(model, backend="aot_eager", fullgraph=True, dynamic=True)
    for batch, length in SIZES[:2]:
        inputs = case.inputs(model_class, batch, length, 13)
        labels = case.labels(model_class, inputs)
        ours, expected = compiled(**inputs, **labels), model(**inputs, **labels)
        assert type(ours) is type(expected)
        for one, other in zip(tensors(ours), tensors(expected), strict=True):
            assert_same(real_places(one, inputs), real_places(other, inputs), f"compiled, at {batch, length}")
    torch._dynamo.reset()


def _dynamic(case: Case, inputs: Inputs) -> dict[str, dict[int, Any]]:
    batch = torch.export.Dim("batch", min=1, max=64)
    length = torch.export.Dim("length", min=1, max=case.max_length or 64)
    ids = inputs["input_ids"]
    return {
        name: {0: batch, value.dim() - 1: length} if value.shape == ids.shape else {0: batch}
        for name, value in inputs.items()
    }


def _assert_accepts_other_sizes(case: Case, model: Any, run: Callable[[Inputs], Any], what: str) -> None:
    for batch, length in SIZES:
        inputs = case.inputs(type(model), batch, length, 15)
        with torch.no_grad():
            expected = tensors(model(**inputs))
        for one, other in zip(tensors(run(inputs)), expected, strict=True):
            assert_same(real_places(one, inputs), real_places(other, inputs), f"{what}, at {batch, length}")


def check_export(case: Case, model_class: type[Any]) -> None:
    """J1: `torch.export` with any batch and length, compared at two other sizes."""
    model = build(case, model_class)
    inputs = case.inputs(model_class, *SIZES[0], 14)
    with torch.no_grad():
        program = torch.export.export(model, (), inputs, dynamic_shapes=_dynamic(case, inputs))
    _assert_accepts_other_sizes(case, model, lambda other: program.module()(**other), "exported")


def check_trace(case: Case, model_class: type[Any]) -> None:
    """J1: a TorchScript trace holds no number of its example, and the tracer has nothing to warn about."""
    model = build(case, model_class, torchscript=True)
    inputs = case.inputs(model_class, *SIZES[0], 14)
    parameters = list(inspect.signature(model.forward).parameters)
    in_order = list(inputs) == parameters[: len(inputs)]  # or else the trace passes its inputs by name
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*torch\.jit\.\w+.*deprecated", category=DeprecationWarning)
        if in_order:
            traced = torch.jit.trace(model, tuple(inputs.values()))
            _assert_accepts_other_sizes(case, model, lambda other: traced(*other.values()), "traced")
        else:
            traced = torch.jit.trace(model, example_kwarg_inputs=inputs)
            _assert_accepts_other_sizes(case, model, lambda other: traced(**other), "traced")


def check_onnx(case: Case, model_class: type[Any], folder: Path) -> None:
    """J1: an ONNX file, run by ONNX Runtime at other sizes."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason=f"ONNX export is tested where {package} is installed")
    import onnxruntime

    model = build(case, model_class, return_dict=False)
    inputs = case.inputs(model_class, *SIZES[0], 14)
    path = folder / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter and its libraries warn about each other, not about the model
        torch.onnx.export(
            model, (), path, kwargs=inputs, dynamo=True, dynamic_shapes=_dynamic(case, inputs), verbose=False
        )
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    wanted = {argument.name for argument in session.get_inputs()}
    assert wanted == set(inputs)

    def run(other: Inputs) -> list[Tensor]:
        return [torch.from_numpy(x) for x in session.run(None, {name: value.numpy() for name, value in other.items()})]

    _assert_accepts_other_sizes(case, model, run, "ONNX")


# --- bad input --------------------------------------------------------------------------------------------------------


def bad_inputs(case: Case, model_class: type[Any]) -> Iterator[tuple[str, Inputs, tuple[str, ...]]]:
    """What is wrong, the arguments, and what the message must contain: the argument, the value, the limit."""
    good = case.inputs(model_class, 2, 5, 16)
    ids, vocab = good["input_ids"], case.config().vocab_size
    lead = ids.shape[:-1]

    def put(value: int) -> Inputs:
        changed = ids.clone()
        changed.view(-1)[0] = value
        return {**good, "input_ids": changed}

    yield "id beyond the vocabulary", put(vocab), ("input_ids", str(vocab), str(vocab - 1))
    yield "id far beyond the vocabulary", put(vocab + 1234), ("input_ids", str(vocab + 1234), str(vocab - 1))
    yield "negative id", put(-3), ("input_ids", "-3")
    yield "float ids", {**good, "input_ids": ids.float()}, ("input_ids", "float32")
    yield "empty batch", {"input_ids": ids[:0]}, ("input_ids", "0")
    yield "empty length", {"input_ids": ids[..., :0]}, ("input_ids", "0")
    yield "neither ids nor vectors", {}, ("input_ids", "inputs_embeds")
    hidden = case.config().hidden_size
    both = {**good, "inputs_embeds": torch.zeros(*ids.shape, hidden)}
    yield "ids and vectors", both, ("input_ids", "inputs_embeds")
    if case.max_length:
        long = torch.ones(*lead, case.max_length + 1, dtype=torch.long)
        yield "too long", {"input_ids": long}, (str(case.max_length + 1), str(case.max_length))
    if "attention_mask" in good:
        mask = good["attention_mask"]
        yield "mask of another length", {**good, "attention_mask": mask[..., :-1]}, ("attention_mask", "4", "5")
        yield "mask of another batch", {**good, "attention_mask": mask[:1]}, ("attention_mask", "shape")
        yield "mask with a 2", {**good, "attention_mask": mask * 2}, ("attention_mask", "2")
        additive = (1 - mask.float()) * -10000.0
        additive.view(-1)[-1] = -10000.0
        yield "additive mask", {**good, "attention_mask": additive}, ("attention_mask", "-10000")
        blank = mask.clone()
        blank[1] = 0
        yield "row without a token", {**good, "attention_mask": blank}, ("attention_mask", "row")


def _fault(model: Any, arguments: Inputs, words: tuple[str, ...]) -> str | None:
    """What is wrong with the answer to bad input: anything but a `ValueError` that contains the words."""
    try:
        model(**arguments)
    except ValueError as error:
        missing = [word for word in words if word not in str(error)]
        return f"the message lacks {missing}: {error}" if missing else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


def check_bad_input(case: Case, model_class: type[Any]) -> None:
    """A `ValueError` for each fault, naming argument, value and limit; then the model still works."""
    model = build(case, model_class)
    answers = {what: _fault(model, arguments, words) for what, arguments, words in bad_inputs(case, model_class)}
    assert {what: fault for what, fault in answers.items() if fault} == {}
    assert torch.isfinite(tensors(model(**case.inputs(model_class, 2, 5, 16)))[0]).all()


Check = Callable[..., None]

EVERY_MODEL: tuple[Check, ...] = (
    check_shapes,
    check_switches,
    check_output_contract,
    check_gather,
    check_save_and_load,
    check_initialisation,
    check_determinism,
    check_gradient_flow,
    check_gradient_checkpointing,
    check_head_mask,
    check_padding_invariance,
    check_resize,
    check_ties,
    check_pruning,
    check_other_types,
    check_compile,
    check_export,
    check_trace,
    check_bad_input,
)
"""Run on each class of the family; `check_onnx`, which takes seconds, on those the family chooses."""

CAUSAL: tuple[Check, ...] = (
    check_causality,
    check_left_padding,
    check_positions,
    check_leading_axes,
    check_token_types,
    check_cached_steps,
    check_lean_loss,
    check_loss_without_padding,
)
"""Run on each class of a family of decoders."""

ONCE: tuple[Check, ...] = (check_config_round_trip, check_initialisation_of_subclasses, check_source)
"""Run once for the family."""


def run(check: Check, case: Case, model_class: type[Any] | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call a check with those of the arguments that it names."""
    known = {"case": case, "model_class": model_class, "folder": folder, "monkeypatch": monkeypatch}
    check(**{name: known[name] for name in inspect.signature(check).parameters})
