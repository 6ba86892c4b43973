"""Make a model of this folder from what a training left: weights in float16, the record, the curves.

Usage: python assets/finish.py OUT RUN [EARLIER_RUN]
"""

import json
import shutil
import sys
from pathlib import Path

from pytorch_transformers import AutoTokenizer
from pytorch_transformers.models.family import family_of

#: What is kept of `run.json`: nothing that only the machine it ran on knows.
RECORD = ("task", "arguments", "seed", "versions", "threads", "training", "metrics", "history")
#: As large as a file may be.
LIMIT = 12_000_000


def main(out: Path, run: Path, earlier: Path | None = None) -> None:
    """Write OUT.

    Raises:
        ValueError: The weights are larger than a repository should hold.
    """
    family = family_of(run)
    head = "pre_training" if family.name == "bert" else "language_model"
    family.load(head).from_pretrained(run).half().save_pretrained(out)
    AutoTokenizer.from_pretrained(run).save_pretrained(out)
    for place, suffix in ((run, ""), (earlier, "-first")):
        if place is not None:
            record = json.loads((place / "run.json").read_text(encoding="utf-8"))
            kept = json.dumps({name: record[name] for name in RECORD}, indent=1)
            (out / f"training{suffix}.json").write_text(kept + "\n", encoding="utf-8")
            shutil.copy(place / "report.png", out / f"curves{suffix}.png")
    size = (out / "model.safetensors").stat().st_size
    if size > LIMIT:
        raise ValueError(f"{out}: {size:,} bytes of weights; at most {LIMIT:,} are kept here")
    print(f"{out}: {size:,} bytes")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
