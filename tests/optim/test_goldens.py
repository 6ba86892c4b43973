"""The numbers of google-research/bert's AdamWeightDecayOptimizer, recorded: shared/goldens/bert/README.md."""

import json
import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

from pytorch_transformers import AdamW
from pytorch_transformers.optim.adam import BertAdam
from shared_data import shared

#: The original is float32 too. A weight of about 1 has bits of 1.2e-7, and 8 steps each round once or twice.
TOLERANCE = 5e-7
#: AdamW decays the weight after the step: times lr^2, the decay of a step, which is at most 0.1 / sqrt(0.001) long.
DECAY_AFTER = 0.01 * 3.2
#: Averages are at most 1 because gradients are clipped to that length.
SLOT_TOLERANCE = 1e-7


class OriginalSchedule:
    """The original's: a straight line from step 0 to the end, replaced by the rise as long as that lasts."""

    def __init__(self, warmup: int, total: int) -> None:
        self.warmup, self.total = warmup, total

    def get_lr(self, step: int, nowarn: bool = False) -> float:
        del nowarn
        return step / self.warmup if step < self.warmup else max(0.0, 1 - step / self.total)


def facts() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(shared("goldens", "bert", "optimizer_reference.json").read_text())
    return loaded


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("case", ["warmup", "nowarmup", "big"])
@pytest.mark.parametrize("optimizer", ["BertAdam", "AdamW"])
def test_the_original_program(optimizer: str, case: str, fused: bool) -> None:
    about, arrays = facts(), np.load(shared("goldens", "bert", "optimizer_reference.npz"))
    numbers = about["cases"][case]
    schedule = OriginalSchedule(numbers["num_warmup_steps"], numbers["num_train_steps"])
    named = {name: nn.Parameter(torch.from_numpy(arrays[f"init/{name}"].copy())) for name in about["variables"]}
    exempt = {name for name in named if any(re.search(word, name) for word in about["no_decay"])}
    assert exempt < set(named)
    groups: list[dict[str, Any]] = [
        {"params": [named[name] for name in named if name not in exempt], "weight_decay": about["weight_decay_rate"]},
        {"params": [named[name] for name in exempt], "weight_decay": 0.0},
    ]
    made: BertAdam | AdamW
    if optimizer == "BertAdam":
        made = BertAdam(groups, lr=numbers["init_lr"], schedule=schedule, max_grad_norm=-1, fused=fused)
    else:
        made = AdamW(groups, correct_bias=False, eps=about["epsilon"], fused=fused)
    for step in range(about["num_steps"]):
        rate = numbers["init_lr"] * schedule.get_lr(step)
        assert rate == pytest.approx(arrays[f"{case}/learning_rate"][step], rel=1e-6)
        if isinstance(made, AdamW):
            for group in made.param_groups:
                group["lr"] = rate
        for name, parameter in named.items():
            parameter.grad = torch.from_numpy(arrays[f"grad/step_{step + 1}/{name}"].copy())
        norm = clip_grad_norm_(named.values(), about["clip_norm"])
        assert norm.item() == pytest.approx(arrays[f"{case}/global_norm"][step], rel=1e-6)
        made.step()
        allowed = TOLERANCE + (step + 1) * DECAY_AFTER * numbers["init_lr"] ** 2 * isinstance(made, AdamW)
        for name, parameter in named.items():
            expected = arrays[f"{case}/after_step_{step + 1}/{name}"]
            np.testing.assert_allclose(parameter.detach().numpy(), expected, rtol=0, atol=allowed, err_msg=name)
    for name, parameter in named.items():
        state = made.state[parameter]
        for ours, theirs in ((made.first_name, "adam_m"), (made.second_name, "adam_v")):
            slot = arrays[f"{case}/slots/{name}/{theirs}"]
            np.testing.assert_allclose(state[ours].numpy(), slot, rtol=0, atol=SLOT_TOLERANCE, err_msg=f"{name} {ours}")
