"""Fine-tuning on MRPC: ours against the Trainer of transformers, with its example script's padding and at its best.

Each turn trains the same pre-trained encoder for one epoch of the same rows, from batches to the last update. Without
the corpus, pairs of the same lengths with labels at random take its place: speed does not depend on what is learned.

That both do the same is checked first: without dropout, and with the examples in the same order, their losses must be
equal update by update.
"""

import logging
import random
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
import transformers

from pytorch_transformers import BertForSequenceClassification, BertTokenizer
from pytorch_transformers.data.batches import InputRow, collate
from pytorch_transformers.data.classification import TextExample, encode_texts
from pytorch_transformers.training.loop import Training
from pytorch_transformers.training.objective import RowLoss
from pytorch_transformers.training.options import TrainingOptions
from pytorch_transformers.training.plan import BatchPlan
from pytorch_transformers.training.processes import make_accelerator
from pytorch_transformers.training.segments import SegmentPlan

from .harness import Plan, Result, alternate, check_close
from .inputs import model_folder, pairs, source
from .trainer import make_trainer

ROUNDS: Final = 5
EXAMPLES: Final = 320
BATCH: Final = 32
RATE: Final = 1e-4
#: Of losses in ten updates: the Trainer gives four places, and rounding grows with each update.
TOLERANCE: Final = 2e-4
CHECKED: Final = 10
#: Our AdamW adds it before the averages are corrected, torch's after; this small, both are one rule.
EPSILON: Final = 1e-9
PADDED: Final = 128  # `max_seq_length` of their run_glue.py, which pads to it by default


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure both.

    Raises:
        MismatchError: Losses differ.
    """
    logging.getLogger("pytorch_transformers").setLevel(logging.ERROR)
    rows = _rows(plan.size(EXAMPLES))
    check = _check(rows[: CHECKED * BATCH], folder)
    ways = (
        ("padded to 128, as its example script", PADDED, False, 2.0),
        ("at its best: grouped by length", None, True, 1.3),
    )
    for name, pad_to, grouped, aim in ways:
        times = alternate(
            lambda: _ours(rows, folder),
            partial(_theirs, rows, folder, pad_to=pad_to, group_by_length=grouped),
            plan.rounds(ROUNDS),
        )
        yield Result(
            subject="fine-tuning on MRPC, float32",
            against=f"transformers Trainer, {name}",
            unit="times as fast",
            values=times.speedups,
            check=check,
            aim=aim,
            note=f"{len(rows)} pairs, {source()}; both with a fused optimizer",
        )


def _rows(count: int) -> list[InputRow]:
    draw = random.Random(1)
    examples = [
        TextExample(str(number), first, second, str(draw.randrange(2)))
        for number, (first, second) in enumerate(pairs(count))
    ]
    tokenizer = BertTokenizer.from_pretrained(model_folder())
    return encode_texts(examples, tokenizer, PADDED, labels=("0", "1")).rows


def _ours(rows: Sequence[InputRow], folder: Path, *, in_order: bool = False, dropout: float = 0.1) -> list[float]:
    """Train for one epoch; the loss of each update."""
    torch.manual_seed(0)
    changed: dict[str, Any] = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    model = BertForSequenceClassification.from_pretrained(model_folder(), num_labels=2, **changed)
    options = TrainingOptions(
        output_dir=folder / "ours",
        train_batch_size=BATCH,
        num_train_epochs=1,
        learning_rate=RATE,
        warmup_proportion=0.0,
        adam_epsilon=EPSILON,
        save_every=0,
        log_every=1 if in_order else None,
    )
    order: BatchPlan = SegmentPlan(len(rows), BATCH) if in_order else BatchPlan(len(rows), BATCH, options.seed)
    accelerator = make_accelerator(no_cuda=True)
    training = Training(model, rows, RowLoss(), options, accelerator, collate=collate, plan=order)
    history = training.run().history
    accelerator.free_memory()
    return [point["loss"] for point in history]


def _theirs(
    rows: Sequence[InputRow], folder: Path, *, in_order: bool = False, dropout: float = 0.1, **padding: Any
) -> list[float]:
    """The same under the Trainer."""
    torch.manual_seed(0)
    changed: dict[str, Any] = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    model = transformers.BertForSequenceClassification.from_pretrained(model_folder(), num_labels=2, **changed)
    if in_order:  # the new head of ours
        torch.manual_seed(0)
        ours = BertForSequenceClassification.from_pretrained(model_folder(), num_labels=2)
        model.load_state_dict(ours.state_dict())
    trainer = make_trainer(
        model,
        rows,
        str(folder / "theirs"),
        in_order=in_order,
        per_device_train_batch_size=BATCH,
        num_train_epochs=1,
        learning_rate=RATE,
        adam_epsilon=EPSILON,
        optim="adamw_torch_fused",
        logging_strategy="steps" if in_order else "no",
        logging_steps=1,
        **padding,
    )
    trainer.train()
    return [point["loss"] for point in trainer.state.log_history if "loss" in point]


def _check(rows: Sequence[InputRow], folder: Path) -> str:
    losses = [torch.tensor(side(rows, folder, in_order=True, dropout=0.0)) for side in (_ours, _theirs)]
    return f"losses of {len(losses[0])} updates: {check_close('loss', losses[0], losses[1], TOLERANCE)}"
