"""Files of your own for `train classify`, small enough for tests."""

import random
from dataclasses import dataclass
from pathlib import Path

TRAIN, DEV = 40, 13
_WORDS = ("the", "a", "on", "rain", "cloud", "oven")


@dataclass(frozen=True)
class Written:
    """A file and how many examples it has."""

    path: Path
    examples: int


def _write(path: Path, examples: int, seed: int) -> Written:
    draw = random.Random(seed)
    lines = ["text\tlabel"]
    for _ in range(examples):
        word, label = draw.choice([("golden", "good"), ("onions", "bad")])
        lines.append(f"{' '.join(draw.choices(_WORDS, k=draw.randint(1, 6)))} {word}\t{label}")
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return Written(path, examples)


def train_file(folder: Path) -> Written:
    """40 examples; the last word tells the label."""
    return _write(folder / "train.tsv", TRAIN, 0)


def dev_file(folder: Path) -> Written:
    """13 others."""
    return _write(folder / "dev.tsv", DEV, 1)


def arguments(model: Path, folder: Path, *more: str) -> list[str]:
    """`train classify` of these files, with its output in `folder/out`."""
    return [
        *("train", "classify", "--model", str(model), "--output_dir", str(folder / "out")),
        *("--train_file", str(train_file(folder).path), "--dev_file", str(dev_file(folder).path)),
        *("--num_train_epochs", "2", "--train_batch_size", "16", "--learning_rate", "1e-3", "--no_cuda", *more),
    ]
