"""Runs the measurements: `make bench`, or `python -m benchmarks --only latency --quick`."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

# Set before any library reads them: nothing is fetched, and no progress bar is drawn between the figures.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

import torch

from . import (
    classic,
    conversion,
    data_creation,
    environment,
    features,
    finetuning,
    generation,
    heads,
    imports,
    inputs,
    latency,
    lm_loss,
    loading,
    optimizer,
    pretraining,
    report,
    tokenisation,
    transfo_xl,
)
from .harness import MismatchError, Plan, Result

HERE: Final = Path(__file__).parent
#: Name on the command line -> what measures it.
SUBJECTS: Final[dict[str, Callable[[Plan, Path], Iterator[Result]]]] = {
    "features": features.run,
    "latency": latency.run,
    "import": imports.run,
    "loading": loading.run,
    "conversion": conversion.run,
    "tokenisation": tokenisation.run,
    "heads": heads.run,
    "lm_loss": lm_loss.run,
    "generation": generation.run,
    "transfo_xl": transfo_xl.run,
    "classic": classic.run,
    "optimizer": optimizer.run,
    "finetuning": finetuning.run,
    "pretraining": pretraining.run,
    "data_creation": data_creation.run,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print each result as it comes, write the report; 1 when an answer was wrong, 0 otherwise."""
    options = _parse(argv)
    names = options.only or list(SUBJECTS)
    plan = Plan(quick=options.quick)
    facts = {**environment.record(), "text": inputs.source(), "quick": plan.quick}
    print(f"{facts['threads']} threads, {facts['matrix_product_gflops']} GFLOP/s, text: {facts['text']}", flush=True)
    results: list[Result] = []
    failures: dict[str, str] = {}
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            found, fault = _measure(SUBJECTS[name], plan, Path(folder))
            results += found
            if fault:
                failures[name] = fault
                print(f"{name}: FAILED: {fault}", file=sys.stderr, flush=True)
    # A part of the measurements, or a short one, is no reason to replace the whole in the repository.
    whole = not options.quick and not options.only and options.output == HERE
    paths = report.write(options.output, results, facts, failures, HERE / "README.md" if whole else None)
    print(f"{time.perf_counter() - started:.0f} s; wrote {', '.join(path.name for path in paths)}")
    return 1 if failures else 0


def _measure(subject: Callable[[Plan, Path], Iterator[Result]], plan: Plan, folder: Path) -> tuple[list[Result], str]:
    """The results of one subject, and what was wrong with its answers, if anything was."""
    results: list[Result] = []
    try:
        for result in subject(plan, folder):
            results.append(result)
            _show(result)
    except MismatchError as error:
        return results, str(error)
    return results, ""


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(SUBJECTS), help="this subject alone; may be repeated")
    parser.add_argument("--quick", action="store_true", help="few repetitions on little text: to see that all works")
    parser.add_argument("--output", type=Path, help="folder for the report; benchmarks, or build/bench for parts")
    parser.add_argument("--threads", type=int, help="threads of torch and ONNX Runtime (default: as torch chooses)")
    options = parser.parse_args(argv)
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.output is None:
        options.output = Path("build/bench") if options.quick or options.only else HERE
    return options


def _show(result: Result) -> None:
    aim = "" if result.aim is None else f"  aim {result.aim:.3g}: {'met' if result.met else 'MISSED'}"
    print(
        f"{result.subject} / {result.against}: {result.median:.3g} {result.unit} "
        f"({result.worst:.3g} to {result.best:.3g}){aim}  {result.check}  {result.note}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
