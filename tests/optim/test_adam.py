"""The optimizers as objects: options, groups, states, and what they refuse."""

import copy
import io
import logging
import pickle
from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from published import published
from pytorch_transformers import AdamW, WarmupLinearSchedule, optimization
from pytorch_transformers.optim import classic_schedules as classic
from pytorch_transformers.optim.adam import BertAdam, OpenAIAdam

from .runs import advance, flat, give_gradients, trained, weights

CLASSES = [AdamW, BertAdam, OpenAIAdam]
CLASSIC = [BertAdam, OpenAIAdam]
#: Options of a training that goes on for 20 steps.
OPTIONS: dict[type[Any], dict[str, Any]] = {
    AdamW: {"lr": 0.01, "weight_decay": 0.1},
    BertAdam: {"lr": 0.01, "warmup": 0.2, "t_total": 20},
    OpenAIAdam: {"lr": 0.01, "warmup": 0.2, "t_total": 20, "weight_decay": 0.1, "max_grad_norm": 1.0},
}


def make(kind: type[Any], parameters: Any, **more: Any) -> Any:
    return kind(parameters, **{**OPTIONS[kind], **more})


def test_flat_module_has_the_published_names() -> None:
    names = "AdamW ConstantLRSchedule WarmupConstantSchedule WarmupCosineSchedule WarmupCosineWithHardRestartsSchedule"
    assert set(optimization.__all__) == {*names.split(), "WarmupLinearSchedule"}


@pytest.mark.parametrize("kind", CLASSES)
def test_states_have_the_published_layout(kind: type[Any]) -> None:
    optimizer, _ = trained(lambda parameters: make(kind, parameters), 3)
    saved = optimizer.state_dict()
    averages = {"next_m", "next_v"} if kind is BertAdam else {"exp_avg", "exp_avg_sq"}
    assert set(saved["state"][0]) == {"step", *averages}
    assert saved["state"][0]["step"] == 3
    assert type(saved["state"][0]["step"]) is int
    options = {
        AdamW: "lr betas eps weight_decay correct_bias",
        BertAdam: "lr schedule b1 b2 e weight_decay max_grad_norm",
        OpenAIAdam: "lr schedule b1 b2 e weight_decay vector_l2 max_grad_norm",
    }
    assert set(saved["param_groups"][0]) == {"params", *options[kind].split()}


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("how", ["state", "file", "pickle", "deepcopy"])
def test_a_training_goes_on_where_it_was(kind: type[Any], how: str) -> None:
    _, expected = trained(lambda parameters: make(kind, parameters), 20)
    parameters = weights()
    optimizer = make(kind, parameters)
    advance(optimizer, parameters, range(8))
    if how in ("state", "file"):
        state = optimizer.state_dict()
        if how == "file":
            file = io.BytesIO()
            torch.save(state, file)
            file.seek(0)
            known = torch.serialization.get_safe_globals()
            with torch.serialization.safe_globals(list(classic.SCHEDULES.values())):
                state = torch.load(file, weights_only=True)
            torch.serialization.add_safe_globals(known)  # leaving takes away what was allowed before, too
        fresh = [nn.Parameter(parameter.detach().clone()) for parameter in parameters]
        other = make(kind, fresh, lr=1.0)
        other.load_state_dict(state)
    elif how == "pickle":
        fresh, other = pickle.loads(pickle.dumps((parameters, optimizer)))
        fresh = other.param_groups[0]["params"]
    else:
        fresh, other = copy.deepcopy((parameters, optimizer))
    assert fresh[0] is not parameters[0]
    advance(other, fresh, range(8, 20))
    assert torch.equal(flat(fresh), expected)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_copy_takes_the_same_kernel(kind: type[Any]) -> None:
    _, expected = trained(lambda parameters: make(kind, parameters, fused=True), 20)
    _, plain = trained(lambda parameters: make(kind, parameters), 20)
    assert not torch.equal(expected, plain), "the two cannot be told apart"
    parameters = weights()
    optimizer = pickle.loads(pickle.dumps(make(kind, parameters, fused=True)))
    parameters = optimizer.param_groups[0]["params"]
    advance(optimizer, parameters, range(20))
    assert torch.equal(flat(parameters), expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CLASSES)
def test_a_state_of_the_published_package_goes_on(kind: type[Any]) -> None:
    package = "pytorch_transformers" if kind is AdamW else "pytorch_pretrained_bert"
    module = "optimization_openai" if kind is OpenAIAdam else "optimization"
    theirs = getattr(published(package, module), kind.__name__)
    _, expected = trained(lambda parameters: make(theirs_like(theirs, kind), parameters), 20)
    parameters = weights()
    optimizer = theirs(parameters, **OPTIONS[kind])
    advance(optimizer, parameters, range(8))
    ours = kind(parameters, lr=1.0)
    ours.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
    advance(ours, parameters, range(8, 20))
    assert torch.equal(flat(parameters), expected)


def theirs_like(theirs: type[Any], kind: type[Any]) -> type[Any]:
    OPTIONS[theirs] = OPTIONS[kind]
    return theirs


def test_a_state_with_options_of_early_releases_goes_on() -> None:
    """They kept the name and the lengths of the schedule in the group, and called the decay otherwise."""
    _, expected = trained(lambda parameters: make(BertAdam, parameters), 20)
    parameters = weights()
    optimizer = make(BertAdam, parameters)
    advance(optimizer, parameters, range(8))
    state = optimizer.state_dict()
    group = state["param_groups"][0]
    del group["schedule"]
    group |= {"schedule": "warmup_linear", "warmup": 0.2, "t_total": 20, "weight_decay_rate": group.pop("weight_decay")}
    other = BertAdam(parameters, lr=1.0)
    other.load_state_dict(state)
    advance(other, parameters, range(8, 20))
    assert torch.equal(flat(parameters), expected)
    assert "weight_decay_rate" not in other.param_groups[0]


def test_a_state_of_torch_opens_and_one_of_another_optimizer_does_not() -> None:
    parameters = weights()
    theirs = torch.optim.AdamW(parameters, lr=0.01)
    advance(theirs, parameters, range(3))
    ours = AdamW(parameters)
    ours.load_state_dict(theirs.state_dict())
    advance(ours, parameters, range(3, 5))
    assert ours.state[parameters[0]]["step"] == 5
    with pytest.raises(ValueError, match=r"not that of BertAdam.*exp_avg"):
        BertAdam(parameters, lr=0.1).load_state_dict(theirs.state_dict())
    with pytest.raises(ValueError, match=r"not that of OpenAIAdam.*group 0 has no .*'b1'"):
        OpenAIAdam(parameters, lr=0.1).load_state_dict(theirs.state_dict())


@pytest.mark.parametrize("kind", CLASSES)
def test_parameters_without_a_gradient_stay_and_have_no_state(kind: type[Any]) -> None:
    used, unused = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    optimizer = kind([used, unused], lr=0.1)
    optimizer.step()
    used.grad = torch.ones(3)
    optimizer.step()
    assert unused.tolist() == [1, 1, 1]
    assert used[0] < 1
    assert set(optimizer.state) == {used}
    unused.grad = torch.ones(3)  # now they are two and one steps old
    optimizer.step()
    assert [optimizer.state[parameter]["step"] for parameter in (used, unused)] == [2, 1]


@pytest.mark.parametrize("kind", CLASSES)
def test_sparse_gradients_and_complex_numbers_are_refused_before_anything_changes(kind: type[Any]) -> None:
    dense, table = nn.Linear(2, 2), nn.Embedding(5, 2, sparse=True)
    optimizer = kind([{"params": dense.parameters()}, {"params": table.parameters()}], lr=0.1)
    before = dense.weight.clone()
    dense(table(torch.tensor([1]))).sum().backward()
    with pytest.raises(RuntimeError, match=rf"{kind.__name__} does not support sparse.*\[5, 2\].*SparseAdam"):
        optimizer.step()
    assert torch.equal(dense.weight, before)
    number = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    number.grad = torch.ones(2, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="complex"):
        kind([number], lr=0.1).step()


@pytest.mark.parametrize("kind", CLASSES)
def test_closure_is_called_with_gradients_and_its_loss_comes_back(kind: type[Any]) -> None:
    weight = nn.Parameter(torch.tensor([2.0]))
    optimizer = kind([weight], lr=0.1)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4.0
    assert weight.item() < 2.0
    assert optimizer.step() is None


@pytest.mark.parametrize("kind", CLASSES)
def test_groups_have_their_own_rate_and_decay(kind: type[Any]) -> None:
    first, second, third = (nn.Parameter(torch.ones(2, 2)) for _ in range(3))
    named = {"params": [first], "weight_decay": 0.5, "name": "first"}
    groups = [named, {"params": [second], "lr": 0.0}, {"params": [third]}]
    optimizer = kind(groups, lr=0.1, weight_decay=0.0)
    for parameter in (first, second, third):
        parameter.grad = torch.full((2, 2), 0.01)
    optimizer.step()
    assert second.tolist() == [[1, 1], [1, 1]]
    assert first[0, 0] < third[0, 0] < 1
    assert optimizer.param_groups[0]["name"] == "first"
    assert "lr" not in named, "the caller's dictionary was changed"


@pytest.mark.parametrize("kind", CLASSIC)
def test_groups_have_their_own_schedule(kind: type[Any]) -> None:
    parameters = weights(shapes=((2,),) * 5)
    groups = [
        {"params": [parameters[0]]},
        {"params": [parameters[1]], "t_total": 20},
        {"params": [parameters[2]], "warmup": 0.5},
        {"params": [parameters[3]], "schedule": "none"},
        {"params": [parameters[4]], "schedule": classic.WarmupCosineSchedule(0.0, 10)},
    ]
    optimizer = kind(groups, lr=1.0, t_total=10, warmup=0.0)
    advance(optimizer, parameters, range(4))
    assert optimizer.get_lr() == pytest.approx([0.6, 0.8, 0.8, 1.0, 0.6545085])
    assert len({id(group["schedule"]) for group in optimizer.param_groups}) == 5


@pytest.mark.parametrize("kind", CLASSIC)
def test_rate_is_0_before_the_first_step_and_as_long_as_a_parameter_has_none(kind: type[Any]) -> None:
    used, unused = weights(shapes=((2,), (2,)))
    optimizer = kind([used, unused], lr=1.0, t_total=10)
    assert optimizer.get_lr() == [0]
    give_gradients([used], 0)
    optimizer.step()
    assert optimizer.get_lr() == [0]
    assert unused not in optimizer.state, "asking made a state"
    give_gradients([used, unused], 1)
    optimizer.step()
    assert optimizer.get_lr() == pytest.approx([0.8, 0.9])


def test_when_an_update_is_counted() -> None:
    """With a warm-up BERT's first update does nothing, and OpenAI's last one."""
    for kind, moved in ((BertAdam, [False, True, True]), (OpenAIAdam, [True, True, False])):
        parameter = nn.Parameter(torch.ones(2))
        optimizer = kind([parameter], lr=0.1, warmup=0.34, t_total=3)
        found = []
        for _ in range(3):
            before = parameter.detach().clone()
            parameter.grad = torch.ones(2)
            optimizer.step()
            found.append(not torch.equal(parameter, before))
        assert found == moved, kind.__name__


@pytest.mark.parametrize("kind", CLASSIC)
def test_past_the_end_the_weights_rest_and_one_warning_says_so(kind: type[Any], caplog: Any) -> None:
    parameters = weights()
    optimizer = kind(parameters, lr=0.1, warmup=0.1, t_total=10)
    advance(optimizer, parameters, range(10))
    before = flat(parameters)
    with caplog.at_level(logging.WARNING):
        advance(optimizer, parameters, range(10, 30))
    assert torch.equal(flat(parameters), before)
    messages = [record.message for record in caplog.records]
    assert Counter("past t_total" in message for message in messages) == {True: 1}


@pytest.mark.parametrize("kind", CLASSIC)
def test_a_schedule_object_wins_and_says_so(kind: type[Any], caplog: Any) -> None:
    optimizer = kind(weights(), lr=0.1, schedule=classic.ConstantLR(), warmup=0.1, t_total=10)
    assert "no effect beside a schedule object" in caplog.text
    assert isinstance(optimizer.param_groups[0]["schedule"], classic.ConstantLR)


def test_options_of_early_releases() -> None:
    group = {"params": weights(), "weight_decay_rate": 0.25}
    assert BertAdam(weights(), lr=0.1, weight_decay_rate=0.5).param_groups[0]["weight_decay"] == 0.5
    assert BertAdam([group], lr=0.1).param_groups[0]["weight_decay"] == 0.25
    assert OpenAIAdam(weights(), lr=0.1, l2=0.5).param_groups[0]["weight_decay"] == 0.5
    both = {"params": weights(), "weight_decay_rate": 0.25, "weight_decay": 0.5}
    with pytest.raises(ValueError, match=r"weight_decay_rate and weight_decay are the same option: 0.25, 0.5"):
        BertAdam([both], lr=0.1)


BAD: list[tuple[type[Any], dict[str, Any], str]] = [
    (AdamW, {"lr": -1.0}, r"lr: -1\.0.*at least 0"),
    (AdamW, {"betas": (0.9, 1.0)}, r"betas\[1\]: 1\.0.*below 1"),
    (AdamW, {"betas": (-0.1, 0.9)}, r"betas\[0\]: -0\.1"),
    (AdamW, {"betas": 0.9}, r"betas: 0\.9.*two numbers"),
    (AdamW, {"eps": -1e-9}, r"eps: -1e-09"),
    (AdamW, {"weight_decay": -0.1}, r"weight_decay: -0\.1"),
    (AdamW, {"lr": "fast"}, r"lr: 'fast'"),
    *(
        (kind, {"lr": 0.1, **options}, message)
        for kind in CLASSIC
        for options, message in (
            ({"lr": -1.0}, r"lr: -1\.0"),
            ({"b1": 1.0}, r"b1: 1\.0"),
            ({"b2": -0.5}, r"b2: -0\.5"),
            ({"e": -1.0}, r"e: -1\.0"),
            ({"weight_decay": -1}, r"weight_decay: -1"),
            ({"max_grad_norm": float("nan")}, r"max_grad_norm: nan"),
            (
                {"schedule": "linear"},
                r"schedule: 'linear' is unknown.*None, 'none', 'warmup_cosine', .*'warmup_linear'",
            ),
            ({"schedule": 3}, r"schedule: 3 is unknown"),
            ({"schedule": ["none"]}, r"schedule: \['none'\] is unknown"),
            ({"schedule": classic.ConstantLR}, r"schedule: <class.*is unknown"),
            ({"warmup": 1.0, "t_total": 10}, r"warmup: 1\.0.*share.*divide it by t_total"),
            ({"warmup": -0.5, "t_total": 10}, r"warmup: -0\.5"),
            ({"t_total": 0}, r"t_total: 0.*rounding up"),
            ({"t_total": -0.5}, r"t_total: -0\.5"),
        )
    ),
]


@pytest.mark.parametrize(("kind", "options", "message"), BAD)
def test_wrong_options_are_named(kind: type[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(weights(), **options)


@pytest.mark.parametrize("kind", CLASSIC)
def test_a_rate_is_required_here_or_in_every_group(kind: type[Any]) -> None:
    with pytest.raises(ValueError, match=rf"lr: missing; give {kind.__name__}"):
        kind(weights())
    optimizer = kind([{"params": weights(), "lr": 0.1}])
    for other in (optimizer, pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        with pytest.raises(ValueError, match="lr: missing"):
            other.add_param_group({"params": [nn.Parameter(torch.ones(1))]})


@pytest.mark.parametrize("kind", CLASSES)
def test_wrong_groups(kind: type[Any]) -> None:
    with pytest.raises(ValueError, match=r"lr: -2"):
        kind([{"params": weights(), "lr": -2}], lr=0.1)
    with pytest.raises(TypeError, match="expected a dictionary"):
        kind(weights(), lr=0.1).add_param_group(weights())
    with pytest.raises(TypeError, match="no option momentum"):
        kind(weights(), lr=0.1, momentum=0.9)


def test_a_group_cannot_shorten_a_schedule_that_is_not_ours() -> None:
    class Half:
        def get_lr(self, step: int, nowarn: bool = False) -> float:
            return 0.5

    parameters = weights()
    with pytest.raises(ValueError, match=r"t_total of a group.*give the group its own one"):
        BertAdam([{"params": parameters, "t_total": 5}], lr=0.1, schedule=Half())
    optimizer = BertAdam(parameters, lr=0.1, schedule=Half())
    advance(optimizer, parameters, range(1))
    assert optimizer.get_lr() == [0.05] * 4


@pytest.mark.parametrize("option", ["warmup", "t_total", "schedule", "warmup_steps"])
def test_adamw_says_where_the_options_of_the_schedule_went(option: str) -> None:
    options: dict[str, Any] = {option: 0.1}
    with pytest.raises(TypeError, match=rf"no option {option}: the schedule is an object.*WarmupLinearSchedule"):
        AdamW(weights(), lr=1e-3, **options)


def test_capturable_is_not_offered() -> None:
    with pytest.raises(TypeError, match="no option capturable"):
        AdamW(weights(), capturable=True)


def test_steps_have_hooks_and_schedulers_of_torch() -> None:
    parameters = weights()
    optimizer = AdamW(parameters, lr=1.0)
    calls: list[Optimizer] = []
    optimizer.register_step_post_hook(lambda made, *_: calls.append(made))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    advance(optimizer, parameters, range(1))
    scheduler.step()
    assert calls == [optimizer]
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_rates_are_the_same_in_every_precision() -> None:
    """One place computes them: a tiny model in float32, under autocast, and in bfloat16."""

    def rates(kind: str, dtype: torch.dtype, autocast: bool) -> list[float]:
        torch.manual_seed(0)
        model = nn.Linear(3, 2).to(dtype)
        made: Any = (BertAdam if kind == "BertAdam" else AdamW)(model.parameters(), lr=0.1)
        scheduler = None
        if isinstance(made, BertAdam):
            made = BertAdam(model.parameters(), lr=0.1, warmup=0.1, t_total=10)
        else:
            scheduler = WarmupLinearSchedule(made, warmup_steps=1, t_total=10)
        found = []
        for _ in range(10):
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = model(torch.ones(4, 3, dtype=dtype)).float().square().mean()
            made.zero_grad()
            loss.backward()
            if scheduler:
                found.append(made.param_groups[0]["lr"])
            made.step()
            if scheduler:
                scheduler.step()
            else:
                found.append(made.get_lr()[0])
        return found

    for kind in ("BertAdam", "AdamW"):
        expected = rates(kind, torch.float32, False)
        assert len(set(expected)) >= 9
        assert rates(kind, torch.float32, True) == expected
        assert rates(kind, torch.bfloat16, False) == expected
