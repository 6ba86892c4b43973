"""The other side of fine-tuning: models of `transformers` under its Trainer, on the same rows as ours.

    python -m benchmarks.trainer classify --task_name MRPC --data_dir glue/MRPC --model MODEL --seed 1 --output_dir OUT

trains a task of `pytorch_transformers train` with the same settings and prints the same metrics: what results of ours
are compared with. The rows, the metrics and the new head's initialisation rule are the same; model, loop, optimizer,
order of the examples and padding are theirs.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
import transformers

from pytorch_transformers.cli.train.arguments import add_all
from pytorch_transformers.cli.train.verb import COMMANDS
from pytorch_transformers.data.batches import InputRow, collate
from pytorch_transformers.models.family import FAMILIES
from pytorch_transformers.training.evaluation import predict
from pytorch_transformers.training.task import Source

#: Kind of head -> class of transformers; all for BERT.
HEADS: Final = {
    "sequence_classification": "BertForSequenceClassification",
    "token_classification": "BertForTokenClassification",
    "question_answering": "BertForQuestionAnswering",
    "multiple_choice": "BertForMultipleChoice",
}


class Rows(torch.utils.data.Dataset[Any]):
    """Rows of ours as a data set of theirs, with the lengths that grouping asks for."""

    def __init__(self, rows: Sequence[InputRow]) -> None:
        self.rows = rows
        self.column_names = ["length"]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        if place == "length":
            return [len(row["input_ids"]) for row in self.rows]
        return {**self.rows[place], "length": len(self.rows[place]["input_ids"])}


def padded_batch(rows: Sequence[dict[str, Any]], length: int | None) -> dict[str, torch.Tensor]:
    """A batch; with `length` padded to it whatever the rows are, as the example script does by default."""
    rows = [{name: value for name, value in row.items() if name != "length"} for row in rows]
    batch = collate(rows)
    if length is not None:
        missing = length - batch["input_ids"].shape[-1]
        for name in ("input_ids", "token_type_ids", "attention_mask"):
            batch[name] = torch.nn.functional.pad(batch[name], (0, missing))
    return batch


class InOrder(transformers.Trainer):  # type: ignore[misc]  # no types there
    """The Trainer, with the examples in the order of the data: to compare losses one by one."""

    def _get_train_sampler(self, *arguments: Any) -> Any:
        return torch.utils.data.SequentialSampler(self.train_dataset)


def make_trainer(
    model: Any,
    rows: Sequence[InputRow],
    folder: str,
    *,
    in_order: bool = False,
    pad_to: int | None = None,
    group_by_length: bool = False,
    **settings: Any,
) -> Any:
    """A Trainer with the optimizer settings of ours: AdamW, a linear schedule with warm-up, gradients of at most 1.

    Args:
        model: A model of transformers.
        rows: What it learns.
        folder: For its files.
        in_order: Whether the examples come in the order of the data.
        pad_to: Length to which all rows are padded; None pads to the longest of a batch.
        group_by_length: Whether batches are made of rows of similar length.
        **settings: Further `TrainingArguments`.
    """
    arguments = transformers.TrainingArguments(
        output_dir=folder,
        weight_decay=0.01,
        max_grad_norm=1.0,
        lr_scheduler_type="linear",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
        train_sampling_strategy="group_by_length" if group_by_length else "random",
        **settings,
    )
    kind = InOrder if in_order else transformers.Trainer
    return kind(
        model=model,
        args=arguments,
        train_dataset=Rows(rows),
        data_collator=partial(padded_batch, length=pad_to),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Train one task with one seed and print its metrics as JSON."""
    parser = argparse.ArgumentParser(description="Train a task with the Trainer of transformers.")
    tasks = parser.add_subparsers(dest="task", required=True)
    for command in COMMANDS:
        sub = tasks.add_parser(command.name)
        add_all(command, sub)
        sub.set_defaults(command=command)
    options = parser.parse_args(argv)
    task = options.command.make(options)
    source = Source(model=options.model, max_seq_length=options.max_seq_length)
    tokenizer = next(f for f in FAMILIES if f.name == task.family).load("tokenizer").from_pretrained(options.model)
    task.prepare(tokenizer, source, training=True)
    rows = task.training_rows()
    transformers.set_seed(options.seed)
    model = getattr(transformers, HEADS[task.head]).from_pretrained(options.model, **task.config())
    steps = -(-len(rows) // options.train_batch_size) * options.num_train_epochs
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(
            model,
            rows,
            folder,
            per_device_train_batch_size=options.train_batch_size,
            learning_rate=options.learning_rate,
            num_train_epochs=options.num_train_epochs,
            warmup_steps=round(options.warmup_proportion * steps),
            seed=options.seed,
            bf16=options.bf16,
            adam_epsilon=options.adam_epsilon,
            logging_strategy="no",
        )
        started = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - started
    keep = task.keep
    metrics = task.evaluate(lambda rows: predict(model, rows, keep, collate))
    result = {"seed": options.seed, "metrics": metrics, "seconds": round(seconds, 1)}
    Path(options.output_dir).mkdir(parents=True, exist_ok=True)
    Path(options.output_dir, "run.json").write_text(json.dumps(result, indent=2))
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
