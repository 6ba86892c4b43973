"""`BertModel.from_pretrained`, in fresh processes: seconds, and the most memory beyond what the imports took.

Each process loads and then adds up every weight, so that a file that is only mapped is read too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import torch

from pytorch_transformers import BertConfig, BertModel

from .harness import MismatchError, Plan, Result, alternate_processes, ratios
from .inputs import model_folder

ROUNDS: Final = 5
#: Float32 sums of the same values differ in their last digits with the place of the values in memory.
SUMS: Final = 1e-6
_LOAD: Final = """
import json, sys, time
import torch
from {library} import BertModel
from benchmarks.memory import Peak

memory = Peak()
started = time.perf_counter()
model = BertModel.from_pretrained(sys.argv[1], **json.loads(sys.argv[2]))
loaded = time.perf_counter() - started
with torch.inference_mode():
    total = sum(float(weight.sum()) for weight in model.parameters())
    scale = sum(max(float(weight.amax()), -float(weight.amin())) for weight in model.parameters())  # no copies
seconds = time.perf_counter() - started
peak = memory.bytes()
weights = sum(weight.numel() * weight.element_size() for weight in model.parameters())
print(json.dumps({{
    "seconds": seconds, "loaded": loaded, "peak": peak / weights, "total": total, "scale": scale,
    "count": sum(1 for _ in model.parameters()), "weights": weights,
}}))
"""


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure a small real model and a random one of the size of BERT-base."""
    yield from _compare(plan, "all-MiniLM-L6-v2", model_folder())
    base = folder / "bert-base-sized"
    if not base.exists():
        torch.manual_seed(0)
        BertModel(BertConfig()).save_pretrained(base)
    yield from _compare(plan, "BERT-base-sized", base)


def _compare(plan: Plan, name: str, path: Path) -> Iterator[Result]:
    sides = (_LOAD.format(library="pytorch_transformers"), _LOAD.format(library="transformers"))
    ours, theirs = alternate_processes(*sides, plan.rounds(ROUNDS), str(path), '{"dtype": "float32"}')
    subject = f"from_pretrained, {name}"
    our, their = ours[0], theirs[0]
    if our["count"] != their["count"] or abs(our["total"] - their["total"]) > SUMS * max(1.0, abs(our["total"])):
        raise MismatchError(f"{subject}: {our} and {their} are not the same weights")
    check = f"sums of {our['count']} weights equal"
    size = f"{our['weights'] / 1e6:.0f} MB of weights"
    speedups = ratios(ours, theirs, "seconds")
    yield Result(subject, "transformers", "times as fast", speedups, check, 2.0, note=f"{size}, each one read")
    unread = ratios(ours, theirs, "loaded")
    yield Result(subject, "transformers", "times as fast", unread, check, note="until the call returns")
    peaks = tuple(found["peak"] for found in ours)
    yield Result(subject, "size of the weights", "times at the peak", peaks, "", 1.2, at_most=True, note=size)
    more = ratios(ours, theirs, "peak")
    yield Result(subject, "transformers' peak memory", "times as small", more, "")
