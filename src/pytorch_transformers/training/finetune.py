"""A whole run of a task: load, train, evaluate, predict, and write down what was done."""

import logging
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from ..data.batches import InputRow, collate
from ..files import CONFIG_NAME
from .checkpoints import checkpoint_folders
from .evaluation import predict
from .load import load_for
from .loop import Training
from .options import TrainingOptions
from .processes import first_alone, make_accelerator
from .record import RECORD, now, surroundings, write_record
from .report import write_report
from .task import ChecksData, HasPlan, ScoresPredictions, Source, Task
from .throughput import matrix_product_rate

logger = logging.getLogger(__name__)


def run_task(
    task: Task,
    source: Source,
    options: TrainingOptions,
    *,
    do_train: bool = False,
    do_eval: bool = False,
    do_predict: bool = False,
    arguments: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Do what is asked of a task, and give the record that is written into `output_dir`; see `record`.

    Training begins with the model of `source`. Without it, evaluation and prediction take the model in `output_dir`
    if there is one, else that of `source`, which then needs the head of the task.

    Args:
        task: What is learned.
        source: The model to begin with.
        options: How it is trained, and where the results go.
        do_train: Whether to train.
        do_eval: Whether to evaluate: after each epoch of the training, and in the end.
        do_predict: Whether to write predictions.
        arguments: What the user gave, for the record.

    Raises:
        ValueError: Nothing is asked for, `output_dir` holds a finished run, or an untrained head would be scored.
        OSError: Something can't be read or written.
    """
    if not (do_train or do_eval or do_predict):
        raise ValueError("nothing to do: give at least one of do_train, do_eval and do_predict")
    if do_train:
        _check_output(options)
    accelerator = make_accelerator(
        no_cuda=options.no_cuda, tensorboard=options.output_dir / "tensorboard" if options.tensorboard else None
    )
    from accelerate.utils import set_seed  # after the line that says how to install it

    started = now()
    set_seed(options.seed)
    trained = (options.output_dir / CONFIG_NAME).exists() and not do_train
    with first_alone(accelerator):  # it downloads
        place = str(options.output_dir) if trained else source.model
        if trained and place != source.model:
            logger.warning("%s: this is the model that is used, and not %s", place, source.model)
        model, tokenizer = load_for(task, source, place, training=do_train)
    if do_train and isinstance(task, ChecksData):
        task.check(evaluating=do_eval, predicting=do_predict)
    set_seed(options.seed, device_specific=True)
    collator = partial(collate, pad_token_id=tokenizer.pad_token_id or 0)
    record: dict[str, Any] = {
        "task": task.name,
        "started": started,
        "arguments": dict(arguments or {**vars(source), **options.as_dict()}),
        "seed": options.seed,
        **surroundings(accelerator),
    }
    history: list[dict[str, Any]] = []

    def run(model: nn.Module, rows: Sequence[InputRow], description: str = "evaluation") -> list[Any]:
        return predict(
            model,
            rows,
            task.keep,
            collator,
            tokens_per_batch=options.eval_batch_tokens,
            precision=options.precision,
            accelerator=accelerator,
            description=description,
        )

    ready: nn.Module = model.to(accelerator.device)
    metrics: dict[str, float] = {}
    if do_train:
        training = Training(
            model,
            task.training_rows(),
            task.objective(),
            options,
            accelerator,
            collate=collator,
            evaluate=(lambda model: task.evaluate(partial(run, model))) if do_eval else None,
            metric=task.metric if do_eval else "",
            lower_is_better=task.lower_is_better,
            save_files=tokenizer.save_pretrained,
            plan=task.plan(options) if isinstance(task, HasPlan) else None,
        )
        if accelerator.is_main_process:
            (options.output_dir / RECORD).unlink(missing_ok=True)  # it says that a run is finished
        progress = training.run()
        training.save_model(options.output_dir)
        ready, history = training.for_inference, progress.history
        record["training"] = _summary(training)
        metrics = training.metrics
    if do_eval and not metrics:
        metrics = task.evaluate(partial(run, ready))
    predictions = task.predict(partial(run, ready, description="prediction")) if do_predict else None
    if predictions is not None and not metrics and isinstance(task, ScoresPredictions):
        metrics = task.scores(predictions)
    if accelerator.is_main_process:
        options.output_dir.mkdir(parents=True, exist_ok=True)
        if do_eval:
            task.write_evaluation(options.output_dir)
        if predictions is not None:
            task.write_predictions(predictions, options.output_dir)
        record = {**record, "metrics": metrics, "finished": now(), "history": history}
        write_record(options.output_dir, record)
        if do_train:
            write_report(options.output_dir, record)
    accelerator.end_training()
    return record


def _check_output(options: TrainingOptions) -> None:
    """Refuse to write over a finished model. A run that was stopped has checkpoints, and no record yet.

    Raises:
        ValueError: There is one, and `overwrite_output_dir` was not given.
    """
    folder = options.output_dir
    finished = (folder / RECORD).exists() or ((folder / CONFIG_NAME).exists() and not checkpoint_folders(folder))
    if finished and not options.overwrite_output_dir:
        raise ValueError(
            f"output_dir: {folder} holds a model of an earlier run; give another folder, or overwrite_output_dir "
            "(--overwrite_output_dir) to replace it"
        )
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"output_dir: {folder} is a file; give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"output_dir: {folder} can't be written to")


def _summary(training: Training) -> dict[str, Any]:
    """What the training was, in a few numbers."""
    progress = training.progress
    seconds = max(progress.seconds, 1e-9)
    return {
        "updates": progress.update,
        "skipped_updates": progress.skipped,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 2),
        "tokens_per_second": round(progress.tokens / seconds, 1),
        **_use_of_the_machine(training, progress.tokens / seconds),
        "best_step": progress.best_step,
        "best": progress.best,
    }


def _use_of_the_machine(training: Training, tokens_per_second: float) -> dict[str, Any]:
    """What the training made of the rate of plain matrix products, as this process measures it for a moment now."""
    if training.operations is None:  # it was finished already
        return {}
    accelerator = training.accelerator
    dtype = getattr(torch, training.options.precision)
    accelerator.wait_for_everyone()
    rate = matrix_product_rate(dtype, seconds=0.05, device=accelerator.device) * accelerator.num_processes
    return {
        "operations_per_token": round(training.operations),
        "matrix_products_per_second": round(rate),
        "share_of_peak": round(training.operations * tokens_per_second / rate, 4),
    }
