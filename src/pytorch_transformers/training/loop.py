"""The loop of every training: batches in, weights out, and nothing lost when it is stopped in between.

An update takes one batch. Its parts are weighed so that the gradient is that of the mean over the whole batch, however
many processes and parts it was divided into. Where the loop stands after an update is a function of the options, the
data and the number of updates, and a checkpoint holds the rest: so a training that was killed goes on to the same
weights, bit for bit on a CPU in float32.
"""

import hashlib
import json
import logging
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader
from tqdm import tqdm

from ..data.batches import InputRow, number_of_tokens
from ..optim import schedules
from ..optim.adam import AdamW
from ..optim.groups import parameter_groups
from .checkpoints import (
    Progress,
    checkpoint_folder,
    checkpoint_folders,
    read_progress,
    remove_checkpoints,
    remove_unfinished,
    restore,
    write_checkpoint,
)
from .cpu_optimizer import CpuOptimizer
from .evaluation import Collate
from .objective import Batch, Objective
from .options import TrainingOptions
from .plan import BatchPlan, Part
from .precision import autocast, loss_scaler
from .throughput import count_operations

if TYPE_CHECKING:
    from accelerate import Accelerator

logger = logging.getLogger(__name__)

_POINTS: Final = 200  # of the loss curve, unless `log_every` says otherwise
_SHOWN: Final = 1000  # rows, of all, that tell data from other data
_SAMPLE: Final = 64  # values of each weight in a fingerprint; training changes them all
_GOING_ON: Final = "%s: going on after %d of %d updates"
#: With float16 an update that overflows is passed over and halves the scale; below this, it was no overflow.
_LEAST_SCALE: Final = 2.0**-16


class Training:
    """One training of one model.

    Args:
        model: Trained in place.
        data: Rows, by place; it may have a `fingerprint` that tells it from other data, and `set_epoch`.
        objective: What is minimised.
        options: How.
        accelerator: The processes.
        collate: Makes a batch of rows.
        evaluate: Gives the metrics of the model, which every process calls at the same time; None: no evaluation.
        metric: Name of the one that tells which evaluation is best; "" takes none.
        lower_is_better: Whether a smaller value of it is better.
        save_files: Writes what belongs to the model beside its weights - configuration, tokenizer - into a folder.
        plan: The order of the examples; by default a new one at random in each epoch.

    Attributes:
        progress: Where the training is.
        updates: How many it will have.
        for_inference: The model for forward passes that learn nothing.
        metrics: Those of the weights that `run` left; empty where it did not evaluate them.
        operations: Floating-point operations for each token, in matrix products, counted in the first update of
            `run`; None where it had none.

    Raises:
        ValueError: There are no rows, or an option needs an evaluation and there is none.
    """

    def __init__(
        self,
        model: nn.Module,
        data: Sequence[InputRow],
        objective: Objective,
        options: TrainingOptions,
        accelerator: "Accelerator",
        *,
        collate: Collate,
        evaluate: Callable[[nn.Module], dict[str, float]] | None = None,
        metric: str = "",
        lower_is_better: bool = False,
        save_files: Callable[[Path], None] = lambda folder: None,
        plan: BatchPlan | None = None,
    ) -> None:
        for name in ("patience", "load_best"):
            if getattr(options, name) and (evaluate is None or not metric):
                raise ValueError(f"{name}: needs an evaluation (do_eval) that tells which weights are best")
        self.options = options
        self.accelerator = accelerator
        self.objective = objective
        of_objective = objective.decisive() if hasattr(objective, "decisive") else {}
        self.progress = Progress(decisive={**options.decisive(), **of_objective, **_facts(data, accelerator, model)})
        self._data = data
        self._collate = collate
        self._evaluate = evaluate
        self._metric = metric
        self._sign = -1.0 if lower_is_better else 1.0
        self._save_files = save_files
        lengths = [number_of_tokens(row) for row in data] if options.group_by_length else None
        self._plan = plan or BatchPlan(len(data), options.train_batch_size, options.seed, lengths)
        self.updates = self._plan.total_updates(options.num_train_epochs, options.max_steps)
        self._log_every = options.log_every or max(1, self.updates // _POINTS)
        if options.gradient_checkpointing:
            model.gradient_checkpointing_enable()  # type: ignore[operator]  # of a model of this library
        is_sharded = accelerator.distributed_type == "FSDP"
        accelerator.scaler = loss_scaler(
            options.precision,
            options.loss_scale,
            accelerator.device,
            sharded=is_sharded and not accelerator.is_fsdp2,  # version 2 needs no scaler of its own
        )
        self.model = model.to(accelerator.device)
        optimizer = _optimizer(self.model, options)
        self.schedule = _schedule(optimizer, options, self.updates)
        self._wrapped, self.optimizer = accelerator.prepare(self.model, optimizer)
        accelerator.register_for_checkpointing(self.schedule)
        # Processes that evaluate different rows must not wait for each other; with sharded weights they have to.
        self.for_inference = self._wrapped if is_sharded else self.model
        self.metrics: dict[str, float] = {}
        self.operations: float | None = None
        self._sums: dict[str, Tensor] = {}
        self._summed = 0

    def run(self) -> Progress:
        """Train from the beginning, or from the newest checkpoint of the same training in the output folder.

        Raises:
            ValueError: The checkpoint there is of another training; the message says what differs.
            OSError: A checkpoint can't be read, or written.
            ArithmeticError: The loss is no finite number.
        """
        self._resume()
        progress, options = self.progress, self.options
        started = time.perf_counter() - progress.seconds
        self._wrapped.train()
        with tqdm(
            total=self.updates,
            initial=progress.update,
            desc="training",
            unit="update",
            disable=None if self.accelerator.is_main_process else True,
        ) as bar:
            for parts in () if self._stops_early() else self._batches():
                self._update(parts)
                progress.update += 1
                at_end = progress.update == self.updates
                due = at_end or self._due(options.evaluate_every)
                evaluates = due and self._evaluate is not None
                saves = not at_end and (due if options.save_every is None else self._due(options.save_every))
                if evaluates or saves or at_end or progress.update % self._log_every == 0:
                    # Before a checkpoint too: it holds no sums begun, and no weights of a loss that is no number.
                    progress.seconds = time.perf_counter() - started
                    self._log(bar)
                bar.update()
                if evaluates and at_end:
                    self.save_model(options.output_dir)  # an evaluation that fails shall not cost the training
                if evaluates:
                    self._evaluation()
                if saves:
                    self._save()
                if evaluates or saves:
                    started = time.perf_counter() - progress.seconds
                if self._stops_early():
                    break
        self._finish()
        return progress

    def _due(self, every: int | None) -> bool:
        """Whether something that happens every so many updates comes now; None is the end of each epoch."""
        every = self._plan.updates_per_epoch if every is None else every
        return bool(every) and self.progress.update % every == 0

    def _resume(self) -> None:
        output_dir = self.options.output_dir
        if self.options.overwrite_output_dir and self.accelerator.is_main_process:
            remove_checkpoints(output_dir)
        if self.accelerator.is_main_process:
            remove_unfinished(output_dir)
        self.accelerator.wait_for_everyone()
        folders = checkpoint_folders(output_dir)
        if not folders:
            return
        progress = read_progress(folders[-1])
        now, then = _plain(self.progress.decisive), progress.decisive
        if changed := [name for name in {**now, **then} if now.get(name) != then.get(name)]:
            listed = ", ".join(f"{name} {then.get(name)!r} (now {now.get(name)!r})" for name in changed)
            raise ValueError(
                f"{folders[-1]}: a checkpoint of another training, with {listed}. Give the same values to go on, "
                "another output_dir, or overwrite_output_dir to begin anew"
            )
        carried = restore(self.accelerator, folders[-1])
        if carried is not None:
            self.objective.load_state(carried)  # type: ignore[attr-defined]  # it had one to save
        self.progress = progress
        if self.accelerator.is_main_process:
            logger.warning(_GOING_ON, folders[-1], progress.update, self.updates)

    def _batches(self) -> Iterator[list[tuple[Part, Batch]]]:
        """The parts of each update that this process computes, from where the training stands."""
        while self.progress.update < self.updates:
            epoch, done = divmod(self.progress.update, self._plan.updates_per_epoch)
            if hasattr(self._data, "set_epoch"):
                self._data.set_epoch(epoch)
            last = min(self.updates, self.progress.update - done + self._plan.updates_per_epoch)
            yield from self._batches_of_epoch(last)

    def _batches_of_epoch(self, last: int) -> Iterator[list[tuple[Part, Batch]]]:
        """Those up to, and without, the update `last`; workers that make them are told of an epoch by their start."""
        process, processes = self.accelerator.process_index, self.accelerator.num_processes
        parts = self.options.gradient_accumulation_steps
        planned = self._plan.updates(self.progress.update, last, process, processes, parts)
        waiting: list[Part] = []

        def places() -> Iterator[list[Any]]:
            for update in planned:
                for part in update:
                    waiting.append(part)
                    yield part.places

        loader: DataLoader[Any] = DataLoader(
            self._data,  # type: ignore[arg-type]  # what is asked of it is __getitem__ and __len__
            batch_sampler=places(),
            collate_fn=self._collate,
            num_workers=self.options.num_workers,
            generator=torch.Generator(),  # the global one is for dropout: a resumed run must draw the same from it
        )
        batches: list[tuple[Part, Batch]] = []
        for batch in loader:
            batches.append((waiting.pop(0), batch))
            if len(batches) == parts:
                yield batches
                batches = []

    def _update(self, parts: list[tuple[Part, Batch]]) -> None:
        """One step of the optimizer."""
        counts = [
            {name: count * part.counts for name, count in self.objective.counts(batch).items()} for part, batch in parts
        ]
        totals = self._over_processes(counts, sum(_tokens(batch) for part, batch in parts if part.counts))
        if self.operations is None:
            needed = count_operations(lambda: self._gradients(parts, counts, totals))
            self.operations = needed / sum(_tokens(batch) for _, batch in parts)
        else:
            self._gradients(parts, counts, totals)
        raw = self.optimizer.optimizer
        scaler = self.accelerator.scaler
        if self.options.max_grad_norm:
            if scaler is not None:
                scaler.unscale_(raw)
            self.accelerator.clip_grad_norm_(self._wrapped.parameters(), self.options.max_grad_norm)
        self.optimizer.step()
        if scaler is not None and self.optimizer.step_was_skipped:
            self.progress.skipped += 1
        else:
            self.schedule.step()
        self.optimizer.zero_grad()

    def _gradients(self, parts: list[tuple[Part, Batch]], counts: list[dict[str, int]], totals: dict[str, int]) -> None:
        """Those of all parts, added up; processes exchange them with the last."""
        for number, ((_, batch), count) in enumerate(zip(parts, counts, strict=True)):
            on_device = {name: tensor.to(self.accelerator.device, non_blocking=True) for name, tensor in batch.items()}
            if number + 1 < len(parts):
                with self.accelerator.no_sync(self._wrapped):
                    self._backward(on_device, count, totals)
            else:
                self._backward(on_device, count, totals)

    def _backward(self, batch: Batch, count: dict[str, int], totals: dict[str, int]) -> None:
        """Add the gradients of one part, each term weighed by its share of the batch."""
        with autocast(self.options.precision, self.accelerator.device):
            terms = self.objective.terms(self._wrapped, batch)
        shares = {name: term * (count[name] / max(totals[name], 1)) for name, term in terms.items()}
        loss = sum(shares.values(), torch.zeros((), device=self.accelerator.device))
        # Gradients are averaged over processes, and these are shares of one sum.
        self.accelerator.backward(loss * self.accelerator.num_processes)
        for name, share in shares.items():
            self._sums[name] = self._sums.get(name, 0.0) + share.detach()

    def _over_processes(self, counts: list[dict[str, int]], tokens: int) -> dict[str, int]:
        """What each term of the whole batch counts, and the tokens of the batch noted."""
        names = list(counts[0])
        values = [*(sum(count[name] for count in counts) for name in names), tokens]
        if self.accelerator.num_processes > 1:
            here = torch.tensor(values, device=self.accelerator.device)
            values = self.accelerator.reduce(here, "sum").tolist()
        self.progress.tokens += values.pop()
        self._summed += 1
        return dict(zip(names, values, strict=True))

    def _log(self, bar: Any) -> None:
        """A point of the curves: means since the last one."""
        names = list(self._sums)
        sums = torch.stack([self._sums[name].float() for name in names])
        means = (self.accelerator.reduce(sums, "sum") / self._summed).tolist()
        self._sums, self._summed = {}, 0
        loss = sum(means)
        if not math.isfinite(loss) and self._scale() < _LEAST_SCALE:
            raise ArithmeticError(
                f"the loss is {loss} after update {self.progress.update}: the learning rate "
                f"{self.options.learning_rate} may be too high, or the data hold something odd"
            )
        terms = dict(zip(names, means, strict=True)) if len(names) > 1 else {}
        rate = self.schedule.get_last_lr()[-1]
        point = {"step": self.progress.update, "epoch": self._epoch(), "loss": loss, **terms, "learning_rate": rate}
        self._note(point)
        speed = self.progress.tokens / max(self.progress.seconds, 1e-9)
        bar.set_postfix_str(f"loss {loss:.4f}, rate {rate:.2e}, {speed:,.0f} tokens/s", refresh=False)

    def _scale(self) -> float:
        scaler = self.accelerator.scaler
        return 0.0 if scaler is None else scaler.get_scale()

    def _stops_early(self) -> bool:
        """Whether there were too many evaluations that are no better; a run that ended so does not go on either."""
        return self.options.patience is not None and self.progress.worse >= self.options.patience

    def _evaluation(self) -> None:
        """Evaluate, and note whether it is the best."""
        assert self._evaluate is not None
        metrics = self._evaluate(self.for_inference)
        self._wrapped.train()
        self.metrics = metrics
        self._note({"step": self.progress.update, "epoch": self._epoch(), **metrics})
        if self.accelerator.is_main_process:
            values = ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
            tqdm.write(f"epoch {self._epoch():.2f}: {values}", file=sys.stderr)
        if not self._metric:
            return
        value, best = metrics[self._metric], self.progress.best
        if not math.isnan(value) and (best is None or self._sign * value > self._sign * best):
            self.progress.best, self.progress.best_step, self.progress.worse = value, self.progress.update, 0
        else:
            self.progress.worse += 1

    def _note(self, point: dict[str, Any]) -> None:
        # JSON has no infinity, which the loss of an update that overflowed may be.
        point = {name: value if math.isfinite(value) else None for name, value in point.items()}
        self.progress.history.append(point)
        self.accelerator.log({k: v for k, v in point.items() if k not in ("step", "epoch")}, step=point["step"])

    def _epoch(self) -> float:
        return round(self.progress.update / self._plan.updates_per_epoch, 4)

    def _save(self) -> None:
        state = getattr(self.objective, "state", None)

        def save_files(folder: Path) -> None:
            self.model.config.save_pretrained(folder)  # type: ignore[union-attr, operator]
            self._save_files(folder)

        write_checkpoint(
            self.accelerator,
            self.options.output_dir,
            self.progress,
            self.options.keep_checkpoints,
            save_files,
            None if state is None else state(),
        )

    def save_model(self, folder: Path) -> None:
        """Write weights, configuration and what belongs to them; every process calls this, the first one writes."""
        model = self.model
        if self.accelerator.distributed_type == "FSDP":
            state = self.accelerator.get_state_dict(self._wrapped)  # gathers what the processes share
            if self.accelerator.is_main_process:
                model = type(model)(model.config)
                model.load_state_dict(state)
        if self.accelerator.is_main_process:
            model.save_pretrained(folder)  # type: ignore[operator]  # of a model of this library
            self._save_files(folder)
        self.accelerator.wait_for_everyone()

    def _finish(self) -> None:
        """Take the best weights where they are asked for."""
        self.model.eval()
        best = self.progress.best_step
        if self.options.load_best and best is not None and best != self.progress.update:
            restore(self.accelerator, checkpoint_folder(self.options.output_dir, best))
            self.metrics = {}


def _optimizer(model: nn.Module, options: TrainingOptions) -> Optimizer:
    groups = parameter_groups(model, options.weight_decay, lr=options.learning_rate, layer_decay=options.layer_decay)

    def make(groups: list[dict[str, Any]]) -> Optimizer:
        return AdamW(
            groups,
            lr=options.learning_rate,
            eps=options.adam_epsilon,
            correct_bias=options.correct_bias,
            fused=True,
        )

    return CpuOptimizer(groups, make) if options.optimize_on_cpu else make(groups)


def _schedule(optimizer: Optimizer, options: TrainingOptions, updates: int) -> LambdaLR:
    warmup = round(options.warmup_proportion * updates)
    if options.schedule == "constant":
        return schedules.ConstantLRSchedule(optimizer)
    if options.schedule == "warmup_constant":
        return schedules.WarmupConstantSchedule(optimizer, warmup)
    if options.schedule == "warmup_linear":
        return schedules.WarmupLinearSchedule(optimizer, warmup, updates)
    if options.schedule == "warmup_cosine":
        return schedules.WarmupCosineSchedule(optimizer, warmup, updates)
    return schedules.WarmupCosineWithHardRestartsSchedule(optimizer, warmup, updates)


def _facts(data: Sequence[InputRow], accelerator: "Accelerator", model: nn.Module) -> dict[str, Any]:
    """What the weights depend on besides the options."""
    fingerprint = getattr(data, "fingerprint", None)
    if fingerprint is None:
        shown = [dict(data[i]) for i in range(0, len(data), max(1, len(data) // _SHOWN))]
        fingerprint = hashlib.sha256(repr(shown).encode()).hexdigest()[:16]
    return {
        "examples": len(data),
        "data": fingerprint,
        "processes": accelerator.num_processes,
        "weights": _fingerprint(model),
    }


def _fingerprint(model: nn.Module) -> str:
    """A short name of the weights that a training begins with, from some values of each."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        digest.update(f"{name} {list(parameter.shape)}".encode())
        digest.update(parameter.detach().flatten()[:_SAMPLE].float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """As JSON gives them back."""
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain


def _tokens(batch: Batch) -> int:
    mask = batch.get("attention_mask")
    return int(mask.sum()) if mask is not None else batch["input_ids"].numel()
