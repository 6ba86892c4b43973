"""What can be chosen about a training, whatever its task. Needs no torch, so command lines use it too."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from ..nn.values import real_number, whole_number

#: Learning rate schedules: how the rate goes on after its warm-up.
SCHEDULES: Final = ("constant", "warmup_constant", "warmup_linear", "warmup_cosine", "warmup_cosine_hard_restarts")
#: Precision of the computation; weights and averages of the optimizer are float32 in all.
PRECISIONS: Final = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How a model is trained.

    Attributes:
        output_dir: Folder for the model, the checkpoints and the record of the run.
        train_batch_size: Examples of one update, those of all processes and accumulation steps together.
        num_train_epochs: How often the data is gone through; may be a fraction.
        max_steps: Most updates, whatever `num_train_epochs` says; None has no limit.
        gradient_accumulation_steps: In how many parts each process computes its share of an update, one after the
            other: more parts need less memory. The result does not depend on it.
        eval_batch_tokens: Most tokens of a batch in evaluation.
        learning_rate: Rate after the warm-up.
        warmup_proportion: Share of all updates in which the rate rises from 0, from 0 to 1.
        schedule: How it goes on after that; one of `SCHEDULES`.
        weight_decay: Of matrices and embeddings; biases and normalisations have none.
        layer_decay: Each layer learns at this share of the rate of the layer above; 1.0: all at the same.
        max_grad_norm: The gradient of the whole model is scaled to this length if it is longer; 0.0: never.
        adam_epsilon: See `optim.adam.AdamW`.
        correct_bias: Whether Adam corrects its averages for having begun at 0; the original BERT program does not.
        precision: One of `PRECISIONS`.
        loss_scale: With float16, the loss is multiplied by this so that small gradients survive; halved whenever
            something overflows. 0.0: begins at 65536 and also grows again.
        optimize_on_cpu: Keep the averages of the optimizer in main memory and update there, where a GPU has too little.
        gradient_checkpointing: Compute layers again in the backward pass instead of keeping what they need.
        group_by_length: Make batches of examples of similar length.
        seed: Of the order of the examples, of new weights and of dropout.
        evaluate_every: Updates between evaluations; None evaluates after each epoch, 0 only at the end.
        save_every: Updates between checkpoints; None saves after each evaluation, 0 never.
        keep_checkpoints: How many of the newest checkpoints stay, besides that of the best evaluation.
        patience: Stop after so many evaluations in a row that are no better than the best; None never stops early.
        load_best: Whether the model of the best evaluation, and not the last, is the result.
        log_every: Updates between two points of the loss curve; None makes about 200 points.
        tensorboard: Also write the curves for TensorBoard, to `output_dir/tensorboard`.
        overwrite_output_dir: Begin anew, and replace what an earlier run left in `output_dir`.
        no_cuda: Use the CPU though there is a GPU.
        num_workers: Processes that put batches together beside the training, 0: the training does it itself.

    Raises:
        ValueError: A value is out of its limits, or two contradict each other.
    """

    output_dir: Path
    train_batch_size: int = 32
    num_train_epochs: float = 3.0
    max_steps: int | None = None
    gradient_accumulation_steps: int = 1
    eval_batch_tokens: int = 4096
    learning_rate: float = 5e-5
    warmup_proportion: float = 0.1
    schedule: str = "warmup_linear"
    weight_decay: float = 0.01
    layer_decay: float = 1.0
    max_grad_norm: float = 1.0
    adam_epsilon: float = 1e-8
    correct_bias: bool = True
    precision: str = "float32"
    loss_scale: float = 0.0
    optimize_on_cpu: bool = False
    gradient_checkpointing: bool = False
    group_by_length: bool = False
    seed: int = 42
    evaluate_every: int | None = None
    save_every: int | None = None
    keep_checkpoints: int = 2
    patience: int | None = None
    load_best: bool = False
    log_every: int | None = None
    tensorboard: bool = False
    overwrite_output_dir: bool = False
    no_cuda: bool = False
    num_workers: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "output_dir", Path(self.output_dir))
        for name, least in _WHOLE.items():
            value = getattr(self, name)
            if value is not None or name not in _MAY_BE_NONE:
                whole_number(name, value, least)
        for name, (low, high) in _REAL.items():
            real_number(name, getattr(self, name), low, high)
        if self.num_train_epochs == 0:
            raise ValueError("num_train_epochs: 0, must be more; to evaluate a model leave the training out")
        if self.train_batch_size < self.gradient_accumulation_steps:
            raise ValueError(
                f"gradient_accumulation_steps: {self.gradient_accumulation_steps}, is more than the "
                f"{self.train_batch_size} examples of a batch (train_batch_size), which it divides"
            )
        for name, known in (("schedule", SCHEDULES), ("precision", PRECISIONS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}: {getattr(self, name)!r}, must be one of {', '.join(known)}")
        if self.load_best and self.save_every is not None and self.save_every != self.evaluate_every:
            raise ValueError(
                f"load_best: needs a checkpoint after each evaluation, and save_every is {self.save_every}, "
                f"evaluate_every {self.evaluate_every}; leave save_every out"
            )
        if self.loss_scale and self.precision != "float16":
            raise ValueError(f"loss_scale: {self.loss_scale}, is for float16; the precision here is {self.precision}")

    def as_dict(self) -> dict[str, Any]:
        """The values as JSON has them."""
        return {**asdict(self), "output_dir": str(self.output_dir)}

    def decisive(self) -> dict[str, Any]:
        """Those values that the trained weights depend on: a run is only resumed with the same."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _OF_NO_EFFECT}


#: Options that are whole numbers -> the least.
_WHOLE: Final = {
    "train_batch_size": 1,
    "max_steps": 1,
    "gradient_accumulation_steps": 1,
    "eval_batch_tokens": 1,
    "seed": 0,
    "evaluate_every": 0,
    "save_every": 0,
    "keep_checkpoints": 1,
    "patience": 1,
    "log_every": 1,
    "num_workers": 0,
}
_MAY_BE_NONE: Final = ("max_steps", "evaluate_every", "save_every", "patience", "log_every")
_REAL: Final = {
    "num_train_epochs": (0.0, 1e9),
    "learning_rate": (0.0, 1e3),
    "warmup_proportion": (0.0, 1.0),
    "weight_decay": (0.0, 1e3),
    "layer_decay": (1e-6, 1.0),
    "max_grad_norm": (0.0, 1e9),
    "adam_epsilon": (0.0, 1.0),
    "loss_scale": (0.0, 2.0**32),
}
_OF_NO_EFFECT: Final = (
    "output_dir",
    "eval_batch_tokens",
    "save_every",
    "keep_checkpoints",
    "log_every",
    "tensorboard",
    "overwrite_output_dir",
    "num_workers",
)
