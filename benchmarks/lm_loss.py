"""A training step of a language model with GPT-2's vocabulary, in fresh processes: seconds, and the most memory.

With 50,257 words the scores of a batch are its largest tensor, and their gradients once more. Ours computes the loss
without keeping them (`output_logits=False`); transformers has no such option.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch

from pytorch_transformers import GPT2Config, GPT2LMHeadModel

from .harness import MismatchError, Plan, Result, alternate_processes, ratios
from .rivals import NO_DROPOUT_GPT2

ROUNDS: Final = 5
#: Timed steps in a turn.
STEPS: Final = 3
LAYERS: Final = (2, 4)
#: Sequences and tokens of each; and those of a short run.
BATCH: Final = (4, 256)
QUICK_BATCH: Final = (2, 128)
#: Relative differences: the loss is a sum in another order, and so is each gradient.
LOSS: Final = 1e-6
GRADIENT: Final = 1e-4
#: A first step, untimed, makes the gradients; each step frees and makes them again, as training loops do. Of each
#: gradient come two numbers: its length, and that of its part along a fixed vector, which sees exchanged places.
_STEPS: Final = """
import json, sys, time
import torch
from {library} import GPT2Config, GPT2LMHeadModel
from benchmarks.memory import Peak

path, batch, length, steps = sys.argv[1], *map(int, sys.argv[2:])
whole = Peak()
state = torch.load(path, weights_only=True, mmap=True)
model = GPT2LMHeadModel(GPT2Config(**state["config"])).train()
weights = state["weights"]
model.load_state_dict({{**weights, "lm_head.weight": weights["transformer.wte.weight"]}})  # tied in both
del state, weights
ids = torch.randint(model.config.vocab_size, (batch, length), generator=torch.Generator().manual_seed(0))
beyond = Peak()

def step():
    model.zero_grad(set_to_none=True)
    loss = model(ids, labels=ids, use_cache=False{options}).loss
    loss.backward()
    return loss.item()

loss = step()
times = []
for _ in range(steps):
    started = time.perf_counter()
    step()
    times.append(time.perf_counter() - started)
peak = beyond.bytes()
gradients = {{}}
for name, weight in model.named_parameters():
    gradient = weight.grad.double().flatten()
    ramp = torch.linspace(-1, 1, len(gradient), dtype=torch.float64)
    gradients[name] = gradient.norm().item(), (gradient @ ramp / ramp.norm()).item()
print(json.dumps({{
    "seconds": sorted(times)[len(times) // 2], "peak": peak, "whole": peak + beyond.before - whole.before,
    "loss": loss, "gradients": gradients,
}}))
"""


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure a few layers of GPT-2's smallest size; the more layers, the less the vocabulary matters.

    Raises:
        MismatchError: Losses or gradients differ.
    """
    for layers in LAYERS[:1] if plan.quick else LAYERS:
        yield from _compare(plan, folder / f"gpt2-{layers}-layers.pt", layers)


def _compare(plan: Plan, path: Path, layers: int) -> Iterator[Result]:
    batch = QUICK_BATCH if plan.quick else BATCH
    if not path.exists():
        torch.manual_seed(0)
        sizes = {"n_layer": layers, **NO_DROPOUT_GPT2}
        torch.save({"config": sizes, "weights": GPT2LMHeadModel(GPT2Config(**sizes)).state_dict()}, path)
    ours, theirs = alternate_processes(
        _STEPS.format(library="pytorch_transformers", options=", output_logits=False"),
        _STEPS.format(library="transformers", options=""),
        plan.rounds(ROUNDS),
        *map(str, (path, *batch, 1 if plan.quick else STEPS)),
    )
    subject = f"training step, GPT-2 with {layers} layers, {batch[0]} x {batch[1]} tokens"
    check = _check(subject, ours[0], theirs[0])
    yield Result(subject, "transformers", "times as fast", ratios(ours, theirs, "seconds"), check)
    for against, key, aim in (
        ("transformers' peak memory beyond the weights", "peak", 2.0),
        ("transformers' peak memory, weights included", "whole", None),
    ):
        note = f"{ours[0][key] / 1e6:.0f} and {theirs[0][key] / 1e6:.0f} MB"
        yield Result(subject, against, "times as small", ratios(ours, theirs, key), check, aim, note=note)


def _check(subject: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    off = abs(ours["loss"] - theirs["loss"]) / abs(theirs["loss"])
    if not off <= LOSS:
        raise MismatchError(f"{subject}: losses {ours['loss']} and {theirs['loss']}")
    our, their = ours["gradients"], theirs["gradients"]
    if set(our) != set(their):
        raise MismatchError(f"{subject}: gradients of other weights: {sorted(set(our) ^ set(their))}")
    differences = {
        name: max(abs(a - b) for a, b in zip(our[name], their[name], strict=True)) / their[name][0] for name in our
    }
    worst = max(differences, key=differences.__getitem__)
    if not differences[worst] <= GRADIENT:
        raise MismatchError(f"{subject}: gradients of {worst} differ by {differences[worst]:.1e} of their length")
    return f"loss within {off:.1e}, {len(our)} gradients within {differences[worst]:.1e} of their length"
