"""`pytorch_pretrained_bert` here against the published 0.6.2: import, and a training step of BERT's pre-training.

Both in fresh processes. The published package computes the scores of all words at all tokens before it looks which
labels count; ours computes those that a label asks for.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch

from pytorch_pretrained_bert import BertConfig, BertForPreTraining

from . import published
from .harness import MismatchError, Plan, Result, alternate_processes, fresh_process, left_out, ratios

ROUNDS: Final = 5
#: Timed steps in a turn.
STEPS: Final = 3
#: Sequences and tokens of each, and those of a short run; labels at 15 % of the tokens, as in Devlin et al. (2018).
BATCH: Final = (8, 128)
QUICK_BATCH: Final = (2, 64)
SHARE: Final = 0.15
#: A third of BERT-base: its layers and its vocabulary as they are, so that the head weighs as it does in training.
LAYERS: Final = 4
#: Relative differences: the loss is a sum in another order, and so is each gradient.
LOSS: Final = 1e-6
GRADIENT: Final = 1e-4
_IMPORT: Final = """
import json, time
import torch
started = time.perf_counter()
import pytorch_pretrained_bert
from pytorch_pretrained_bert import BertModel, BertTokenizer
print(json.dumps({"seconds": time.perf_counter() - started}))
"""
#: A first step, untimed, makes the gradients; each step frees and makes them again, as training loops do.
_STEP: Final = """
import json, sys, time
import torch
from benchmarks import published
from benchmarks.memory import Peak
{imports}
path, batch, length, layers, steps, share = sys.argv[1], *map(int, sys.argv[2:6]), float(sys.argv[6])
whole = Peak()
model = modeling.BertForPreTraining(modeling.BertConfig(
    30522, num_hidden_layers=layers, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
)).train()
model.load_state_dict(torch.load(path, weights_only=True, mmap=True))
draw = torch.Generator().manual_seed(0)
ids = torch.randint(1000, 30522, (batch, length), generator=draw)
segments = (torch.arange(length) >= length // 2).long().expand(batch, length)
mask = torch.ones_like(ids)
labels = torch.where(torch.rand(ids.shape, generator=draw) < share, ids, -1)
follows = torch.randint(2, (batch,), generator=draw)
beyond = Peak()

def step():
    model.zero_grad(set_to_none=True)
    loss = model(ids, segments, mask, labels, follows)
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
weights = 4 * sum(weight.numel() for weight in model.parameters())
print(json.dumps({{
    "seconds": sorted(times)[len(times) // 2], "peak": peak, "activations": peak - weights,
    "whole": peak + beyond.before - whole.before, "loss": loss, "gradients": gradients,
}}))
"""
OURS: Final = _STEP.format(imports="from pytorch_pretrained_bert import modeling")
THEIRS: Final = _STEP.format(imports='modeling = published.load("pytorch_pretrained_bert", "modeling")')


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure import and training step.

    Raises:
        MismatchError: Losses or gradients differ.
    """
    fresh_process(_IMPORT)
    seconds = tuple(round(fresh_process(_IMPORT)["seconds"], 4) for _ in range(plan.rounds(ROUNDS)))
    subject = "import of pytorch_pretrained_bert with BertModel and BertTokenizer"
    yield Result(subject, "import torch alone", "s more", seconds, "", 0.1, at_most=True)
    if published.load("pytorch_pretrained_bert", "modeling") is None:
        left_out("the training step against 0.6.2", published.HOW)
        return
    yield from _steps(plan, folder / "classic-bert.pt")


def _steps(plan: Plan, path: Path) -> Iterator[Result]:
    batch, length = QUICK_BATCH if plan.quick else BATCH
    if not path.exists():
        torch.manual_seed(0)
        torch.save(BertForPreTraining(BertConfig(30522, num_hidden_layers=LAYERS)).state_dict(), path)
    sizes = (batch, length, LAYERS, 1 if plan.quick else STEPS, SHARE)
    ours, theirs = alternate_processes(OURS, THEIRS, plan.rounds(ROUNDS), str(path), *map(str, sizes))
    subject = f"training step, BertForPreTraining with {LAYERS} layers, {batch} x {length} tokens"
    check = _check(subject, ours[0], theirs[0])
    name = "pytorch-pretrained-bert 0.6.2"
    yield Result(subject, name, "times as fast", ratios(ours, theirs, "seconds"), check, 1.3)
    for against, key, aim in (
        (f"{name}, peak memory beyond weights and gradients", "activations", 2.0),
        (f"{name}, peak memory beyond the weights", "peak", None),
        (f"{name}, peak memory, weights included", "whole", None),
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
        # keys have no gradient but rounding: what is added to all scores of a row changes nothing
        name: max(abs(a - b) for a, b in zip(our[name], their[name], strict=True)) / their[name][0]
        for name in our
        if not name.endswith("attention.self.key.bias")
    }
    worst = max(differences, key=differences.__getitem__)
    if not differences[worst] <= GRADIENT:
        raise MismatchError(f"{subject}: gradients of {worst} differ by {differences[worst]:.1e} of their length")
    return f"loss within {off:.1e}, {len(differences)} gradients within {differences[worst]:.1e} of their length"
