"""Seconds that importing BERT's model and tokenizer adds to `import torch`, in fresh processes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .harness import Plan, Result, alternate_processes, ratios

ROUNDS: Final = 5
#: Imports torch first, then times the rest: the difference to `import torch` alone without a second process's noise.
_TIMED: Final = """
import json, time
import torch
started = time.perf_counter()
{imports}
print(json.dumps({{"seconds": time.perf_counter() - started}}))
"""
OURS: Final = _TIMED.format(
    imports="import pytorch_transformers\nfrom pytorch_transformers import BertModel, BertTokenizer"
)
THEIRS: Final = _TIMED.format(imports="import transformers\nfrom transformers import BertModel, BertTokenizer")


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure both libraries in turns."""
    del folder
    ours, theirs = alternate_processes(OURS, THEIRS, plan.rounds(ROUNDS))
    subject = "import of BertModel and BertTokenizer"
    added = tuple(round(found["seconds"], 4) for found in ours)
    yield Result(subject, "import torch alone", "s more", added, "", 0.1, at_most=True)
    yield Result(subject, "transformers", "times as fast", ratios(ours, theirs, "seconds"), note="beyond import torch")
