"""A tiny BERT, a few rows, and trainings of it that take less than a second."""

import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from pytorch_transformers import BertConfig, BertForSequenceClassification, BertForTokenClassification
from pytorch_transformers.data.batches import InputRow, collate
from pytorch_transformers.training.evaluation import logits_of_rows, predict
from pytorch_transformers.training.loop import Training
from pytorch_transformers.training.objective import LabelLoss, Objective, RowLoss
from pytorch_transformers.training.options import TrainingOptions

Row = dict[str, Any]
SIZES: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 16,
    "initializer_range": 0.1,
}
NO_DROPOUT: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def recorded_training(
    model: nn.Module,
    batch: dict[str, Tensor],
    objective: Objective,
    folder: Path,
    accelerator: Accelerator,
    parts: int = 1,
    places: Sequence[int] = (0, 1, 2, 3),
) -> Training:
    """The five updates that TensorFlow recorded, each on the rows at `places` of the recorded batch."""
    training = Training(
        model,
        [{"input_ids": [0], "place": place} for place in places],
        objective,
        TrainingOptions(
            output_dir=folder,
            train_batch_size=4,
            gradient_accumulation_steps=parts,
            num_train_epochs=5,
            learning_rate=0.001,
            weight_decay=0.01,
            max_grad_norm=1.0,
            adam_epsilon=1e-6,
            correct_bias=False,
            no_cuda=True,
            save_every=0,
        ),
        accelerator,
        collate=lambda rows: {name: tensor[[row["place"] for row in rows]] for name, tensor in batch.items()},
    )
    # The options have no schedule like the original's, whose line begins at step 0 and not at the end of the warm-up.
    training.schedule = LambdaLR(training.optimizer.optimizer, lambda step: step / 2 if step < 2 else 1.0 - step / 10)
    return training


def some_rows(count: int, seed: int = 0) -> list[Row]:
    """Rows of 3 to 12 tokens; the label is whether the first token is of the upper half, so it can be learned."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        ids = [draw.randrange(4, 40) for _ in range(draw.randint(3, 12))]
        rows.append({"input_ids": ids, "token_type_ids": [0] * len(ids), "labels": int(ids[0] >= 22)})
    return rows


def some_tags(count: int, seed: int = 0) -> list[Row]:
    """Rows with a label for some of the tokens: few in some rows, many in others, and none at all in the first."""
    draw = random.Random(seed)
    rows: list[Row] = []
    for number, row in enumerate(some_rows(count, seed)):
        share = 0.0 if number == 0 else draw.random()
        tags = [int(i >= 22) if draw.random() < share else -100 for i in row["input_ids"]]
        rows.append({**row, "labels": tags})
    return rows


def tiny_model(kind: type[Any] = BertForSequenceClassification, **config: Any) -> Any:
    """The same weights at each call. With dropout, unless `NO_DROPOUT` is given."""
    torch.manual_seed(0)
    return kind(BertConfig(**{**SIZES, "num_labels": 2, **config}))


def rows_or_tags(kind: type[Any], count: int) -> tuple[list[Row], Objective]:
    """Data and objective for a kind of model."""
    if kind is BertForTokenClassification:
        return some_tags(count), LabelLoss({"labels": "loss"})
    return some_rows(count), RowLoss()


def training(
    folder: Path,
    *,
    kind: type[Any] = BertForSequenceClassification,
    rows: int = 22,
    model: nn.Module | None = None,
    data: Sequence[InputRow] | None = None,
    dropout: bool = False,
    accelerator: Accelerator | None = None,
    evaluate: Callable[[nn.Module], dict[str, float]] | None = None,
    metric: str = "",
    lower_is_better: bool = False,
    **options: Any,
) -> Training:
    """A training, ready to run: 22 rows in batches of 8, so 3 updates an epoch and a smaller last batch."""
    given = {"train_batch_size": 8, "num_train_epochs": 2, "learning_rate": 0.01, "no_cuda": True, "log_every": 1}
    made = model if model is not None else tiny_model(kind, **({} if dropout else NO_DROPOUT))
    found, objective = rows_or_tags(kind, rows)
    set_seed(7)
    return Training(
        made,
        found if data is None else data,
        objective,
        TrainingOptions(output_dir=folder, **{**given, **options}),
        accelerator or Accelerator(cpu=True),
        collate=collate,
        evaluate=evaluate,
        metric=metric,
        lower_is_better=lower_is_better,
    )


def losses(trained: Training) -> list[float]:
    """The recorded loss of each update."""
    return [point["loss"] for point in trained.progress.history if "loss" in point]


def rates(trained: Training) -> list[float]:
    """The recorded rates."""
    return [point["learning_rate"] for point in trained.progress.history if "loss" in point]


def weights(model: nn.Module) -> dict[str, Tensor]:
    """A copy of all weights."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether they are equal to the last bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def difference(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """The largest difference of any weight."""
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


def predictions(model: nn.Module, rows: Sequence[InputRow], **options: Any) -> list[Any]:
    """Logits of each row."""
    return predict(model, rows, logits_of_rows, partial(collate), **options)


def accuracy(rows: Sequence[InputRow]) -> Callable[[nn.Module], dict[str, float]]:
    """An evaluation."""

    def evaluate(model: nn.Module) -> dict[str, float]:
        answers = [logits.argmax() for logits in predictions(model, rows)]
        right = [bool(a == row["labels"]) for a, row in zip(answers, rows, strict=True)]
        return {"accuracy": sum(right) / len(rows)}

    return evaluate
