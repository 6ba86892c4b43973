"""The mean over a batch, however the batch is divided."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pytorch_transformers import BertForSequenceClassification, BertForTokenClassification
from pytorch_transformers.data.batches import collate
from pytorch_transformers.training.objective import LabelLoss, RowLoss
from training import small

KINDS = (BertForSequenceClassification, BertForTokenClassification)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "batch", "parts"), [(32, 32, 4), (41, 32, 4), (41, 32, 7), (33, 32, 32)])
def test_parts_are_one_batch(tmp_path: Path, kind: type[Any], rows: int, batch: int, parts: int) -> None:
    """4 x 8 is 32, also where the last batch is smaller and rows have few labels or many."""
    options: dict[str, Any] = {"kind": kind, "rows": rows, "train_batch_size": batch, "save_every": 0}
    options["adam_epsilon"] = 1e-6  # a smaller one makes more of the rounding in gradients that are almost 0
    whole = small.training(tmp_path / "whole", **options)
    whole.run()
    divided = small.training(tmp_path / "divided", gradient_accumulation_steps=parts, **options)
    divided.run()
    assert small.losses(divided) == pytest.approx(small.losses(whole), abs=1e-6)
    assert small.difference(small.weights(divided.model), small.weights(whole.model)) < 2e-6
    assert divided.progress.tokens == whole.progress.tokens


def loss_by_hand(kind: type[Any], model: nn.Module, rows: list[small.Row]) -> torch.Tensor:
    """Each row by itself, and each label counted once."""
    losses = []
    for row in rows:
        inputs = {name: torch.tensor([row[name]]) for name in ("input_ids", "token_type_ids")}
        logits = model(**inputs, return_dict=True).logits[0]
        labels = torch.tensor(row["labels"]).reshape(-1)
        logits = logits.reshape(len(labels), -1)
        losses += [-logits[i].log_softmax(-1)[label] for i, label in enumerate(labels.tolist()) if label >= 0]
    return torch.stack(losses).mean()


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_of_the_last_batch(tmp_path: Path, kind: type[Any]) -> None:
    """Five rows in parts of two, two and one: the step is that of the gradient computed by hand."""
    options: dict[str, Any] = {
        "kind": kind,
        "rows": 5,
        "gradient_accumulation_steps": 3,
        "num_train_epochs": 1,
        "save_every": 0,
    }
    # With so large an epsilon Adam's first step is the gradient times rate / epsilon, and a comparison sees its size.
    plain: dict[str, Any] = {"schedule": "constant", "weight_decay": 0.0, "adam_epsilon": 1.0, "max_grad_norm": 0.0}
    training = small.training(tmp_path, **options, **plain, correct_bias=False, learning_rate=1.0)
    model = small.tiny_model(kind, **small.NO_DROPOUT)
    loss = loss_by_hand(kind, model, small.rows_or_tags(kind, 5)[0])
    loss.backward()
    training.run()
    assert small.losses(training) == pytest.approx([loss.item()], abs=1e-6)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        first, second = 0.1 * parameter.grad, 0.001 * parameter.grad**2  # the averages of Adam after one step
        expected = parameter.detach() - first / (second.sqrt() + 1.0)
        torch.testing.assert_close(training.model.get_parameter(name).detach(), expected, atol=1e-6, rtol=0)


def test_what_is_counted() -> None:
    batch = collate([{"input_ids": [1, 2, 3], "labels": [-100, 0, 5]}, {"input_ids": [1], "labels": [2]}])
    assert RowLoss().counts(batch) == {"loss": 2}
    assert LabelLoss({"labels": "loss"}).counts(batch) == {"loss": 3}
    assert LabelLoss({"labels": "lm_loss"}, shifted=("labels",)).counts(batch) == {"lm_loss": 2}
    pair = {"input_ids": [[1, 2], [3]], "lm_labels": [[-1, 2], [3]], "mc_labels": 1}
    both = LabelLoss({"lm_labels": "lm_loss", "mc_labels": "mc_loss"}, shifted=("lm_labels",))
    assert both.counts(collate([pair, pair])) == {"lm_loss": 2, "mc_loss": 2}


def test_coefficients_and_switches() -> None:
    """Two terms, one of which counts half; `return_dict` is passed on."""

    class TwoLosses(nn.Module):
        def forward(self, **given: Any) -> Any:
            assert given["scale"] == 3.0
            return type("Output", (), {"a": given["x"].sum(), "b": given["x"].max()})

    objective = LabelLoss({"y": "a", "z": "b"}, {"b": 0.5}, scale=3.0)
    terms = objective.terms(TwoLosses(), {"x": torch.tensor([1.0, 5.0])})
    assert {name: term.item() for name, term in terms.items()} == {"a": 6.0, "b": 2.5}


def test_no_labels_at_all(tmp_path: Path) -> None:
    """Nothing to learn from is no reason for weights that are no numbers."""
    rows = [{**row, "labels": [-100] * len(row["input_ids"])} for row in small.some_rows(4)]
    options: dict[str, Any] = {"kind": BertForTokenClassification, "weight_decay": 0.0, "save_every": 0}
    training = small.training(tmp_path, data=rows, gradient_accumulation_steps=2, **options)
    before = small.weights(training.model)
    training.run()
    assert small.losses(training) == [0.0, 0.0]
    assert small.same(small.weights(training.model), before)
