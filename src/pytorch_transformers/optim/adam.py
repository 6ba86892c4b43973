"""Adam as three programs have it: `AdamW` of 1.2.0, and `BertAdam` and `OpenAIAdam` of `pytorch_pretrained_bert` 0.6.2.

| | AdamW | BertAdam | OpenAIAdam |
|---|---|---|---|
| correction of the bias | yes, or `correct_bias=False` | no | yes |
| decay | of the weight after the step | of the weight before the step | after; vectors only with `vector_l2` |
| schedule | none: one of `schedules` | its own, by updates done before | its own, this update included |
| clipping | none | each gradient by itself | each gradient by itself |
| epsilon | 1e-6 | 1e-6 | 1e-8 |

All take their step from `step.take_step`. States hold `step` (an int) and two averages under the published names, so
that files of the published packages open; such a step cannot be captured in a CUDA graph, so there is no `capturable`.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, TypeAlias

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import required

from ..nn.values import real_number
from .classic_schedules import Schedule, schedule_from
from .step import Row, Update, take_step

#: Parameters, named parameters, or groups as dictionaries with their own options.
Params: TypeAlias = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]]
Closure: TypeAlias = Callable[[], Any]

#: Options of the published package 0.6.2 that code gives to `AdamW`, which has none of them.
_SCHEDULE_OPTIONS: Final = ("warmup", "warmup_steps", "t_total", "schedule")


class _Adam(Optimizer):
    """What the three share: the walk over the groups, the states, and their checks.

    A subclass names the two averages in the state and gives the scalars of a step.
    """

    first_name: ClassVar[str]
    second_name: ClassVar[str]
    #: Names of options in early releases -> theirs now.
    early_names: ClassVar[Mapping[str, str]] = {}

    def __init__(self, params: Params, defaults: dict[str, Any], fused: bool) -> None:
        # No option of a group: groups are saved with a state, and this changes no number beyond rounding.
        self._fused = fused
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own; what is not given is as in the constructor.

        Raises:
            ValueError: An option is out of its limits, or `lr` is given nowhere.
            TypeError: What is given is no group.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group: expected a dictionary with params and options, found {param_group!r:.100}")
        group = self._modernised(param_group)
        self._check_options({**self.defaults, **group})
        super().add_param_group(group)

    @torch.no_grad()
    def step(self, closure: Closure | None = None) -> Any:
        """Update every parameter that has a gradient.

        Args:
            closure: Computes the loss again, with gradients, before the update.

        Returns:
            What the closure gives, None without one.

        Raises:
            RuntimeError: A gradient is sparse, or numbers are complex; no parameter is changed then.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            _refuse_odd_gradients(group["params"], type(self).__name__)
        for group in self.param_groups:
            for (steps, decays), rows in self._by_steps(group).items():
                update = self._update(group, steps, group["weight_decay"] if decays else 0.0)
                take_step(rows, update, self._fused)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a saved state, one of the published packages too.

        Raises:
            ValueError: It is that of another kind of optimizer, or its groups differ from those here.
        """
        names = {"step", self.first_name, self.second_name}
        for number, state in state_dict["state"].items():
            if state and not names <= set(state):
                raise self._other_state(f"parameter {number} has {sorted(state)}, expected {sorted(names)}")
        for number, group in enumerate(state_dict["param_groups"]):
            missing = self._needed() - {self.early_names.get(name, name) for name in group}
            if missing:
                raise self._other_state(f"group {number} has no {sorted(missing)}")
        super().load_state_dict(state_dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_fused": self._fused}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.param_groups = [self._modernised(group) for group in self.param_groups]
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)
        for values in self.state.values():
            if isinstance(values.get("step"), Tensor):  # as the optimizers of torch keep it
                values["step"] = int(values["step"].item())

    def _by_steps(self, group: dict[str, Any]) -> dict[tuple[int, bool], list[Row]]:
        """The rows of a group by the number of their updates before this one, which is counted here, and by decay."""
        rows: dict[tuple[int, bool], list[Row]] = {}
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            state = self.state[parameter]
            if not state:
                state["step"] = 0
                state[self.first_name] = torch.zeros_like(parameter)
                state[self.second_name] = torch.zeros_like(parameter)
            row = Row(parameter, parameter.grad, state[self.first_name], state[self.second_name])
            rows.setdefault((state["step"], self._decays(group, parameter)), []).append(row)
            state["step"] += 1
        return rows

    def _update(self, group: dict[str, Any], steps: int, weight_decay: float) -> Update:
        """The scalars for parameters that were updated `steps` times before."""
        raise NotImplementedError

    def _decays(self, group: dict[str, Any], parameter: Tensor) -> bool:
        """Whether the group's decay is for this parameter."""
        del group, parameter
        return True

    def _modernised(self, group: dict[str, Any]) -> dict[str, Any]:
        """A copy of the group with the names of today."""
        return _renamed(group, self.early_names)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """Raise `ValueError` when an option is out of its limits."""
        if type(options["lr"]) is type(required):  # a copy, after unpickling
            raise ValueError(f"lr: missing; give {type(self).__name__}(params, lr=…) or an lr in every group")
        real_number("lr", options["lr"], 0.0)
        real_number("weight_decay", options["weight_decay"], 0.0)

    def _needed(self) -> set[str]:
        """Options without which a saved group is not one of ours."""
        return set(self.defaults) - {"differentiable"}

    def _other_state(self, what: str) -> ValueError:
        return ValueError(f"the state is not that of {type(self).__name__}: {what}; was it saved by another optimizer?")


class AdamW(_Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2017), as the published 1.2.0 has it.

    Without `correct_bias` it is the rule of the original BERT program, but that the decay there is of the weight before
    the step, here of that after it: a difference of `lr * weight_decay` times the step, 1e-6 of it or less at usual
    values. The original clips the gradient of the whole model to 1.0 first: `torch.nn.utils.clip_grad_norm_`.

    The schedule is a separate object: `WarmupLinearSchedule(optimizer, warmup_steps, t_total)` and its siblings.

    Args:
        params: Parameters, or groups with options of their own; `parameter_groups` makes them.
        lr: Learning rate.
        betas: Shares of the averages of the gradient and of its square that stay at each step.
        eps: Added to the root of the second average, before the correction of its bias.
        weight_decay: Each step takes `lr * weight_decay` of a weight.
        correct_bias: Whether the averages are corrected for having begun at 0.
        fused: Use the fused kernel of torch where it fits: fewer passes over memory, other rounding. Without it the
            numbers are those of the published package to the last bit (float32, CPU).

    Raises:
        ValueError: An option is out of its limits.
        TypeError: An option of `BertAdam`, whose schedule is an object of its own here.
    """

    first_name = "exp_avg"
    second_name = "exp_avg_sq"

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        correct_bias: bool = True,
        *,
        fused: bool = False,
        **unknown: Any,
    ) -> None:
        _refuse_unknown("AdamW", unknown)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "correct_bias": correct_bias}
        super().__init__(params, defaults, fused)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        super()._check_options(options)
        betas = options["betas"]
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise ValueError(f"betas: {betas!r:.100}, must be two numbers from 0.0 to below 1.0")
        for number, beta in enumerate(betas):
            _check_share(f"betas[{number}]", beta)
        real_number("eps", options["eps"], 0.0)

    def _needed(self) -> set[str]:
        return super()._needed() - {"correct_bias"}  # the state of torch.optim.AdamW opens too

    def _update(self, group: dict[str, Any], steps: int, weight_decay: float) -> Update:
        beta1, beta2 = group["betas"]
        correction = _correction(beta1, beta2, steps + 1) if group["correct_bias"] else 1.0
        return Update(
            rate=group["lr"],
            step_size=group["lr"] * correction,
            weight_decay=weight_decay,
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            decay_after=True,
        )


class _ClassicAdam(_Adam):
    """What the two optimizers of 0.6.2 share: a schedule inside, and gradients that are clipped one by one."""

    def __init__(
        self,
        params: Params,
        options: dict[str, Any],
        warmup: float,
        t_total: float,
        fused: bool,
        unknown: dict[str, Any],
    ) -> None:
        early = {name: unknown.pop(name) for name in list(unknown) if name in self.early_names}
        _refuse_unknown(type(self).__name__, unknown)
        defaults = {**options, **_renamed(early, self.early_names)}
        defaults["schedule"] = schedule_from(defaults["schedule"], warmup, t_total)
        super().__init__(params, defaults, fused)

    def get_lr(self) -> list[float]:
        """Scheduled learning rate of each parameter, in order.

        `[0]` as long as a parameter has had no update, so before the first step, and for good when one never gets a
        gradient (0.6.2 has it so). `group["lr"] * group["schedule"].get_lr(step)` asks no parameter.
        """
        rates = []
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state.get(parameter)
                if not state:
                    return [0]
                rates.append(self._rate(group, state["step"]))
        return rates

    @staticmethod
    def _rate(group: Mapping[str, Any], step: int) -> float:
        rate: float = group["lr"] * group["schedule"].get_lr(step)
        return rate

    def _modernised(self, group: dict[str, Any]) -> dict[str, Any]:
        """Besides: a schedule by name, and the warm-up and length of a group, become an object."""
        group = super()._modernised(group)
        # Before 0.6.0 they lay beside each other in the group; 0.6.2 overlooks them when they are given to a group.
        own: dict[str, float] = {name: group.pop(name) for name in ("warmup", "t_total") if name in group}
        if "schedule" in group:
            if own or not hasattr(group["schedule"], "get_lr"):
                group["schedule"] = schedule_from(group["schedule"], **own)
        elif own:
            group["schedule"] = _changed(self.defaults["schedule"], own)
        return group

    def _check_options(self, options: Mapping[str, Any]) -> None:
        super()._check_options(options)
        _check_share("b1", options["b1"])
        _check_share("b2", options["b2"])
        real_number("e", options["e"], 0.0)
        real_number("max_grad_norm", options["max_grad_norm"], -1.0)


class BertAdam(_ClassicAdam):
    """The optimizer of the original BERT program, with the options of `pytorch_pretrained_bert` 0.6.2.

    No correction of the bias; the decay is part of the step, `lr * (m / (sqrt(v) + e) + weight_decay * weight)`. The
    schedule counts the updates done before, so with a warm-up the first one changes nothing. `max_grad_norm` clips the
    gradient of each parameter by itself, as in 0.6.2, where the original program clips that of the whole model: for its
    numbers give -1, and call `torch.nn.utils.clip_grad_norm_(parameters, 1.0)` before each step. And its straight line
    begins at step 0, not at the end of the warm-up, so its rate falls a little when the warm-up ends.

    Args:
        params: Parameters, or groups with options of their own, `schedule`, `warmup` and `t_total` among them.
        lr: Learning rate after the warm-up; required, here or in every group.
        warmup: Share of `t_total` in which the rate rises, from 0 to below 1; -1: none.
        t_total: Length of the training in steps (updates); -1: the rate is constant, whatever `warmup` says.
        schedule: `"warmup_linear"`, `"warmup_constant"`, `"warmup_cosine"`, `"none"`, None, or a schedule object.
        b1: Share of the average of the gradient that stays at each step.
        b2: Share of the average of its square.
        e: Added to the root of that average.
        weight_decay: Each step takes `lr * weight_decay` of a weight; `weight_decay_rate` in early releases.
        max_grad_norm: Longer gradients are scaled to this length, in place, each parameter by itself; -1: none are.
        fused: As for `AdamW`.
        **kwargs: `weight_decay_rate`; others are an error, where 0.6.2 overlooked them.

    Raises:
        ValueError: An option is out of its limits, or a schedule is unknown.
        TypeError: An option is unknown.
    """

    first_name = "next_m"
    second_name = "next_v"
    early_names: ClassVar[Mapping[str, str]] = {"weight_decay_rate": "weight_decay"}

    def __init__(
        self,
        params: Params,
        lr: float = required,  # type: ignore[assignment]
        warmup: float = -1,
        t_total: float = -1,
        schedule: str | Schedule | None = "warmup_linear",
        b1: float = 0.9,
        b2: float = 0.999,
        e: float = 1e-6,
        weight_decay: float = 0.01,
        max_grad_norm: float = 1.0,
        *,
        fused: bool = False,
        **kwargs: Any,
    ) -> None:
        options = {"lr": lr, "schedule": schedule, "b1": b1, "b2": b2, "e": e}
        options |= {"weight_decay": weight_decay, "max_grad_norm": max_grad_norm}
        super().__init__(params, options, warmup, t_total, fused, kwargs)

    def _update(self, group: dict[str, Any], steps: int, weight_decay: float) -> Update:
        rate = self._rate(group, steps)
        return _classic_update(group, rate, 1.0, weight_decay, decay_after=False)


class OpenAIAdam(_ClassicAdam):
    """The optimizer of the original OpenAI GPT program, with the options of `pytorch_pretrained_bert` 0.6.2.

    The bias is corrected; the weight decays after the step, vectors only with `vector_l2`. The factor of an update is
    that of the updates up to and with it, so the first one has a part of the rate and the last one, at `t_total`, none.

    Args:
        params: Parameters, or groups with options of their own, `schedule`, `warmup` and `t_total` among them.
        lr: Learning rate after the warm-up; required, here or in every group.
        schedule: `"warmup_linear"`, `"warmup_constant"`, `"warmup_cosine"`, `"none"`, None, or a schedule object.
        warmup: Share of `t_total` in which the rate rises, from 0 to below 1; -1: none.
        t_total: Length of the training in steps (updates); -1: the rate is constant, whatever `warmup` says.
        b1: Share of the average of the gradient that stays at each step.
        b2: Share of the average of its square.
        e: Added to the root of that average, before the correction of its bias.
        weight_decay: Each step takes `lr * weight_decay` of a weight; `l2` in early releases.
        vector_l2: Whether parameters of one dimension decay too.
        max_grad_norm: Longer gradients are scaled to this length, in place, each parameter by itself; -1: none are.
        fused: As for `AdamW`.
        **kwargs: `l2` or `weight_decay_rate`; others are an error, where 0.6.2 overlooked them.

    Raises:
        ValueError: An option is out of its limits, or a schedule is unknown.
        TypeError: An option is unknown.
    """

    first_name = "exp_avg"
    second_name = "exp_avg_sq"
    early_names: ClassVar[Mapping[str, str]] = {"l2": "weight_decay", "weight_decay_rate": "weight_decay"}

    def __init__(
        self,
        params: Params,
        lr: float = required,  # type: ignore[assignment]
        schedule: str | Schedule | None = "warmup_linear",
        warmup: float = -1,
        t_total: float = -1,
        b1: float = 0.9,
        b2: float = 0.999,
        e: float = 1e-8,
        weight_decay: float = 0,
        vector_l2: bool = False,
        max_grad_norm: float = -1,
        *,
        fused: bool = False,
        **kwargs: Any,
    ) -> None:
        options = {"lr": lr, "schedule": schedule, "b1": b1, "b2": b2, "e": e}
        options |= {"weight_decay": weight_decay, "vector_l2": vector_l2, "max_grad_norm": max_grad_norm}
        super().__init__(params, options, warmup, t_total, fused, kwargs)

    def _decays(self, group: dict[str, Any], parameter: Tensor) -> bool:
        return parameter.dim() > 1 or bool(group["vector_l2"])

    def _update(self, group: dict[str, Any], steps: int, weight_decay: float) -> Update:
        rate = self._rate(group, steps + 1)
        correction = _correction(group["b1"], group["b2"], steps + 1)
        return _classic_update(group, rate, correction, weight_decay, decay_after=True)


def _classic_update(
    group: Mapping[str, Any], rate: float, correction: float, weight_decay: float, decay_after: bool
) -> Update:
    return Update(
        rate=rate,
        step_size=rate * correction,
        weight_decay=weight_decay,
        beta1=group["b1"],
        beta2=group["b2"],
        eps=group["e"],
        decay_after=decay_after,
        max_grad_norm=group["max_grad_norm"],
    )


def _correction(beta1: float, beta2: float, steps: int) -> float:
    """What the two averages, which began at 0, lack after `steps` updates."""
    return math.sqrt(1.0 - beta2**steps) / (1.0 - beta1**steps)


def _changed(schedule: Any, own: Mapping[str, float]) -> Any:
    """The optimizer's schedule with the warm-up or length of a group."""
    if not hasattr(schedule, "changed"):
        raise ValueError(
            f"{' and '.join(own)} of a group: the schedule is {schedule!r:.100}; give the group its own one"
        )
    return schedule.changed(own.get("warmup", schedule.given_warmup), own.get("t_total", schedule.t_total))


def _renamed(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A copy with old names replaced.

    Raises:
        ValueError: An option is given under both names, with different values.
    """
    renamed: dict[str, Any] = {name: value for name, value in options.items() if name not in names}
    for name in options.keys() & names.keys():
        if renamed.setdefault(names[name], options[name]) != options[name]:
            raise ValueError(
                f"{name} and {names[name]} are the same option: {options[name]!r}, {renamed[names[name]]!r}"
            )
    return renamed


def _check_share(name: str, value: Any) -> None:
    real_number(name, value, 0.0, 1.0)
    if value == 1.0:
        raise ValueError(f"{name}: {value!r}, must be below 1.0: an average that keeps all never learns")


def _refuse_unknown(optimizer: str, unknown: Iterable[str]) -> None:
    """Raise `TypeError` for options that the optimizer does not have."""
    names = sorted(unknown)
    if not names:
        return
    what = f"{optimizer} has no option {', '.join(names)}"
    if set(names) & set(_SCHEDULE_OPTIONS):
        raise TypeError(
            f"{what}: the schedule is an object of its own, counted in steps: "
            "scheduler = WarmupLinearSchedule(optimizer, warmup_steps, t_total), "
            "or another one of pytorch_transformers.optimization, and scheduler.step() after each optimizer.step()"
        )
    raise TypeError(f"{what}; help({optimizer}) lists the options")


def _refuse_odd_gradients(parameters: Iterable[Tensor], optimizer: str) -> None:
    """Raise `RuntimeError` for what Adam cannot use."""
    for parameter in parameters:
        if parameter.grad is None:
            continue
        shape = list(parameter.shape)
        if parameter.grad.layout != torch.strided:
            raise RuntimeError(
                f"{optimizer} does not support sparse gradients, which the parameter {shape} has: "
                "build its embedding with sparse=False, or use torch.optim.SparseAdam for it"
            )
        if parameter.is_complex():
            raise RuntimeError(f"{optimizer} does not support complex numbers, which the parameter {shape} has")
