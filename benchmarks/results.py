"""Fine-tunes one encoder on real tasks, several seeds each, here and under the Trainer of `transformers`.

    python -m benchmarks.results --data DATA --model all-MiniLM-L6-v2 --output_dir OUT --trainer_seeds 1

trains what is not in OUT yet, one task after the other, and prints a Markdown table: mean and standard deviation of the
metrics on the development sets, and the median time of a training. DATA has the folders `mrpc`, `glue/SST-2` and so
on, `wnut17` and `squad`. Hours of work on two cores: `--threads 1` twice, with other `--tasks`, uses both.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

#: Rows of SST-2 that are trained on, from the top of the file.
_SST2_ROWS: Final = 10_000


class Task(NamedTuple):
    """One row of the table."""

    title: str
    #: `{data}` is the folder of all data, `{out}` that of the results.
    arguments: str
    #: Names in `run.json`.
    metrics: tuple[str, ...]
    #: Whether they are so there; the table is in percent.
    in_percent: bool = False


TASKS: Final = {
    "mrpc": Task(
        "MRPC",
        "classify --task_name MRPC --data_dir {data}/mrpc --learning_rate 5e-5 --num_train_epochs 4",
        ("f1", "accuracy"),
    ),
    "sst2": Task(
        f"SST-2, {_SST2_ROWS:,} rows",
        "classify --task_name SST-2 --data_dir {out}/sst2 --train_batch_size 16 --learning_rate 1e-4 "
        "--num_train_epochs 2",
        ("accuracy",),
    ),
    "cola": Task(
        "CoLA",
        "classify --task_name CoLA --data_dir {data}/glue/CoLA --train_batch_size 16 --learning_rate 1e-4",
        ("matthews",),
    ),
    "rte": Task(
        "RTE",
        "classify --task_name RTE --data_dir {data}/glue/RTE --max_seq_length 256 --train_batch_size 16 "
        "--num_train_epochs 6",
        ("accuracy",),
    ),
    "stsb": Task(
        "STS-B",
        "classify --task_name STS-B --data_dir {data}/glue/STS-B --train_batch_size 16 --learning_rate 1e-4",
        ("pearson", "spearman"),
    ),
    "wnut": Task(
        "WNUT-17",
        "tokens --data_dir {data}/wnut17 --train_batch_size 16 --learning_rate 1e-4",
        ("f1",),
    ),
    "squad": Task(
        "SQuAD, 1,721 questions",
        "squad --train_file {data}/squad/train-v1.1.json --predict_file {data}/squad/dev-v1.1.json "
        "--train_batch_size 16 --learning_rate 1e-4",
        ("f1", "exact_match"),
        in_percent=True,
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing and print the table."""
    parser = argparse.ArgumentParser(description="Fine-tune one encoder on real tasks and print a table.")
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--model", required=True, metavar="MODEL")
    parser.add_argument("--output_dir", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--trainer_seeds", nargs="*", type=int, default=[])
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(argv)
    out: Path = options.output_dir
    _few_rows(options.data / "glue" / "SST-2", out / "sst2")
    for side, seeds in (("ours", options.seeds), ("trainer", options.trainer_seeds)):
        for seed, name in itertools.product(seeds, options.tasks):
            _train(side, name, seed, options)
    print(table(out, options.tasks))
    return 0


def table(out: Path, tasks: Sequence[str]) -> str:
    """The table of what is in the folder `out`, as Markdown."""
    lines = ["| task | metric | here | Trainer | minutes here | Trainer |", "|---|---|---|---|---|---|"]
    for name in tasks:
        ours, theirs = (_records(out, side, name) for side in ("ours", "trainer"))
        minutes = [_minutes(records) for records in (ours, theirs)]
        for metric in TASKS[name].metrics:
            scale = 1.0 if TASKS[name].in_percent else 100.0
            values = [_spread([scale * record["metrics"][metric] for record in records]) for records in (ours, theirs)]
            lines.append(f"| {TASKS[name].title} | {metric} | {' | '.join(values)} | {' | '.join(minutes)} |")
    return "\n".join(lines)


def _train(side: str, name: str, seed: int, options: Any) -> None:
    folder: Path = options.output_dir / side / f"{name}-{seed}"
    if (folder / "run.json").exists():
        return
    program = ["pytorch_transformers", "train"] if side == "ours" else ["benchmarks.trainer"]
    task = TASKS[name].arguments.format(data=options.data, out=options.output_dir).split()
    more = ["--model", options.model, "--bf16", "--seed", str(seed), "--output_dir", str(folder)]
    if side == "ours":
        more += ["--do_train", "--do_eval", "--save_every", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
    print(f"{side}: {name}, seed {seed}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", *program, *task, *more], check=True, env=environment)


def _few_rows(source: Path, target: Path) -> None:
    """SST-2 with the first rows of its training set alone."""
    target.mkdir(parents=True, exist_ok=True)
    with (source / "train.tsv").open(encoding="utf-8") as lines:
        head = list(itertools.islice(lines, _SST2_ROWS + 1))  # and the line of titles
    (target / "train.tsv").write_text("".join(head), encoding="utf-8")
    (target / "dev.tsv").write_bytes((source / "dev.tsv").read_bytes())


def _records(out: Path, side: str, name: str) -> list[Any]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(out.glob(f"{side}/{name}-*/run.json"))]


def _spread(values: Sequence[float]) -> str:
    """Mean, standard deviation and count."""
    if not values:
        return ""
    mean = f"{statistics.mean(values):.1f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.1f} ({len(values)})"


def _minutes(records: Sequence[Any]) -> str:
    seconds = [record["training"]["seconds"] if "training" in record else record["seconds"] for record in records]
    return f"{statistics.median(seconds) / 60:.1f}" if seconds else ""


if __name__ == "__main__":
    sys.exit(main())
