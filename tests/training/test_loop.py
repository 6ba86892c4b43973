"""The loop: what it notes, when it stops, and what its options change or must not change."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from torch import nn

from pytorch_transformers import BertConfig, BertForPreTraining, BertForSequenceClassification
from pytorch_transformers.training.checkpoints import checkpoint_folders
from pytorch_transformers.training.objective import LabelLoss
from shared_data import shared
from training import small


def trained(folder: Path, **options: Any) -> Any:
    training = small.training(folder, **{"save_every": 0, **options})
    training.run()
    return training


def test_it_learns(tmp_path: Path) -> None:
    rows = small.some_rows(64)
    training = trained(tmp_path, data=rows, dropout=True, num_train_epochs=8, train_batch_size=16)
    assert small.accuracy(rows)(training.model)["accuracy"] > 0.9
    assert not training.model.training


def test_the_curve(tmp_path: Path) -> None:
    values = iter([0.5, 0.25])
    training = trained(tmp_path, log_every=2, evaluate=lambda model: {"f1": next(values)})
    history = training.progress.history
    assert [point["step"] for point in history] == [2, 3, 3, 4, 6, 6]  # and before each evaluation
    assert [point["epoch"] for point in history] == [0.6667, 1.0, 1.0, 1.3333, 2.0, 2.0]
    assert [point["f1"] for point in history if "f1" in point] == [0.5, 0.25]
    assert training.metrics == {"f1": 0.25}
    each = small.losses(trained(tmp_path, log_every=1))
    means = [np.mean(each[:2]), each[2], each[3], np.mean(each[4:])]
    assert small.losses(training) == pytest.approx(means)
    assert training.progress.tokens == 2 * sum(len(row["input_ids"]) for row in small.some_rows(22))


def test_about_two_hundred_points(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rows": 1, "train_batch_size": 1, "log_every": None, "evaluate_every": 0}
    training = trained(tmp_path, model=small.tiny_model(num_hidden_layers=1), num_train_epochs=405, **options)
    assert len(small.losses(training)) == 203


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [1.0] * 10),
        ("warmup_constant", [0.5, *[1.0] * 9]),
        ("warmup_linear", [0.5, *(1.0 - i / 8 for i in range(9))]),
        ("warmup_cosine", [0.5, *((1.0 + math.cos(math.pi * i / 8)) / 2 for i in range(9))]),
        ("warmup_cosine_hard_restarts", [0.5, *((1.0 + math.cos(math.pi * i / 8)) / 2 for i in range(8)), 0.0]),
    ],
)
def test_schedules(tmp_path: Path, schedule: str, expected: list[float]) -> None:
    """The rate after each of ten updates, two of them of warm-up: what the next one would have."""
    training = trained(tmp_path, rows=80, num_train_epochs=1, schedule=schedule, warmup_proportion=0.2)
    assert [rate / 0.01 for rate in small.rates(training)] == pytest.approx(expected)


def test_most_updates(tmp_path: Path) -> None:
    training = trained(tmp_path, max_steps=4)
    assert training.progress.update == 4
    assert small.rates(training)[-1] == 0.0


def test_evaluations_and_checkpoints_by_updates(tmp_path: Path) -> None:
    training = small.training(
        tmp_path,
        num_train_epochs=3,
        evaluate=lambda model: {"x": float(len(checkpoint_folders(tmp_path)))},
        evaluate_every=4,
        save_every=2,
        keep_checkpoints=9,
    )
    training.run()
    seen = [point["step"] for point in training.progress.history if "x" in point]
    assert seen == [4, 8, 9]
    assert [folder.name for folder in checkpoint_folders(tmp_path)] == ["step-2", "step-4", "step-6", "step-8"]


def test_only_at_the_end(tmp_path: Path) -> None:
    training = small.training(tmp_path, evaluate=lambda model: {"x": 1.0}, evaluate_every=0)
    training.run()
    assert [point["step"] for point in training.progress.history if "x" in point] == [6]
    assert checkpoint_folders(tmp_path) == []


def test_evaluation_is_in_evaluation_mode_and_training_goes_on(tmp_path: Path) -> None:
    rows = small.some_rows(9)

    def evaluate(model: nn.Module) -> dict[str, float]:
        one, other = small.predictions(model, rows), small.predictions(model, rows)
        return {"difference": float(max(np.abs(a - b).max() for a, b in zip(one, other, strict=True)))}

    with_evaluation = trained(tmp_path, dropout=True, evaluate=evaluate, evaluate_every=1)
    assert all(point.get("difference", 0.0) == 0.0 for point in with_evaluation.progress.history)
    without = trained(tmp_path, dropout=True)
    assert small.same(small.weights(with_evaluation.model), small.weights(without.model))
    no_dropout = trained(tmp_path, dropout=False)
    assert small.losses(no_dropout) != small.losses(without)


def test_an_evaluation_that_fails_in_the_end_costs_no_training(tmp_path: Path) -> None:
    def fails(model: Any) -> dict[str, float]:
        del model
        raise MemoryError

    with pytest.raises(MemoryError):
        trained(tmp_path, evaluate=fails, evaluate_every=0)
    assert (tmp_path / "model.safetensors").exists()


def test_no_infinity_in_a_record(tmp_path: Path) -> None:
    """JSON has none."""
    values = iter([1.0, float("inf")])
    training = trained(tmp_path, evaluate=lambda model: {"loss": next(values)}, num_train_epochs=2)
    assert [point["loss"] for point in training.progress.history if "learning_rate" not in point] == [1.0, None]


def best(folder: Path, values: list[float], **options: Any) -> Any:
    given = iter(values)
    training = small.training(
        folder, evaluate=lambda model: {"f1": next(given)}, metric="f1", evaluate_every=1, **options
    )
    training.run()
    return training


def test_the_best_model_is_taken(tmp_path: Path) -> None:
    training = best(tmp_path / "best", [0.1, 0.9, 0.2, 0.3, 0.4, 0.5], load_best=True, keep_checkpoints=1)
    assert (training.progress.best, training.progress.best_step) == (0.9, 2)
    assert training.metrics == {}  # they are those of the last one, and these are other weights
    last = best(tmp_path / "last", [0.1, 0.9, 0.2, 0.3, 0.4, 0.5], keep_checkpoints=9)
    after_two = BertForSequenceClassification.from_pretrained(tmp_path / "last" / "checkpoints" / "step-2")
    assert small.same(small.weights(training.model), small.weights(after_two))
    assert not small.same(small.weights(training.model), small.weights(last.model))


def test_the_last_is_the_best(tmp_path: Path) -> None:
    training = best(tmp_path, [0.1, 0.2, 0.3, 0.3, 0.3, 0.4], load_best=True)
    assert training.progress.best_step == 6
    assert training.metrics == {"f1": 0.4}


@pytest.mark.parametrize(("lower", "best_step"), [(False, 2), (True, 3)])
def test_what_is_better(tmp_path: Path, lower: bool, best_step: int) -> None:
    """No number is better than none, and never better than a number."""
    values = [math.nan, 0.9, 0.1, math.nan, 0.9, 0.1]
    training = best(tmp_path, values, lower_is_better=lower)
    assert training.progress.best_step == best_step
    assert training.progress.worse == 6 - best_step


def test_patience(tmp_path: Path) -> None:
    training = best(tmp_path, [0.1, 0.9, 0.2, 0.3], patience=2, load_best=True)
    assert training.progress.update == 4
    assert training.progress.best_step == 2
    # The same again, as after a kill at the very end: it does not train on, or ask for more evaluations.
    again = best(tmp_path, [], patience=2, load_best=True)
    assert again.progress.update == 4
    assert small.same(small.weights(again.model), small.weights(training.model))


@pytest.mark.parametrize("options", [{"patience": 2}, {"load_best": True}])
def test_the_best_needs_an_evaluation(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"{next(iter(options))}: .*evaluation"):
        small.training(tmp_path, **options)


class Spoiled(nn.Module):
    """A model whose loss is no number from some call on."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self.inner = small.tiny_model(**small.NO_DROPOUT)
        self.config = self.inner.config
        self.calls, self.first = 0, first

    def forward(self, **batch: Any) -> Any:
        output = self.inner(**batch, return_dict=True)
        self.calls += 1
        return type("Output", (), {"loss": output.loss * (math.inf if self.calls >= self.first else 1.0)})


@pytest.mark.parametrize("log_every", [1, 100])
def test_a_loss_that_is_no_number(tmp_path: Path, log_every: int) -> None:
    """It stops before it is saved, however rarely the curve has a point."""
    training = small.training(tmp_path, model=Spoiled(first=3), save_every=1, log_every=log_every)
    with pytest.raises(
        ArithmeticError, match=r"the loss is inf after update 3: the learning rate 0.01 may be too high"
    ):
        training.run()
    assert [folder.name for folder in checkpoint_folders(tmp_path)] == ["step-1", "step-2"]


def test_float16_gives_up_in_the_end(tmp_path: Path) -> None:
    """Each overflow halves the scale; one that never ends is no overflow."""
    training = small.training(
        tmp_path, model=Spoiled(first=1), precision="float16", loss_scale=1.0, num_train_epochs=20, save_every=0
    )
    with pytest.raises(ArithmeticError, match="the loss is inf after update 17"):
        training.run()


def test_no_examples(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are no training examples"):
        small.training(tmp_path, data=[])


def test_one_example(tmp_path: Path) -> None:
    training = trained(tmp_path, rows=1, gradient_accumulation_steps=4, num_train_epochs=3)
    assert len(small.losses(training)) == 3
    plain = trained(tmp_path, rows=1, num_train_epochs=3)
    assert small.losses(training) == pytest.approx(small.losses(plain), abs=1e-6)


@pytest.mark.parametrize(
    "options",
    [{"gradient_checkpointing": True}, {"num_workers": 2}, {"optimize_on_cpu": True}, {"eval_batch_tokens": 8}],
)
def test_options_that_change_no_number(tmp_path: Path, options: dict[str, Any]) -> None:
    """With dropout: what is computed again, elsewhere or ahead draws the same numbers."""
    plain, other = trained(tmp_path, dropout=True), trained(tmp_path, dropout=True, **options)
    assert small.losses(other) == small.losses(plain)
    assert small.same(small.weights(other.model), small.weights(plain.model))


def test_workers_and_a_checkpoint(tmp_path: Path) -> None:
    """Batches that workers made ahead of time are made again."""
    options: dict[str, Any] = {"num_workers": 2, "dropout": True}
    whole = small.training(tmp_path, save_every=4, **options)
    whole.run()
    again = small.training(tmp_path, save_every=4, **options)
    again.run()
    assert small.same(small.weights(again.model), small.weights(whole.model))


def test_groups_by_length(tmp_path: Path) -> None:
    plain, grouped = trained(tmp_path, rows=60), trained(tmp_path, rows=60, group_by_length=True)
    assert grouped.updates == plain.updates
    assert grouped.progress.tokens == plain.progress.tokens
    assert small.losses(grouped) != small.losses(plain)


def test_layers_learn_at_their_own_rate(tmp_path: Path) -> None:
    training = small.training(tmp_path, layer_decay=0.5, schedule="constant")
    rates = {group["lr"] for group in training.optimizer.param_groups}
    assert rates == {0.01, 0.005, 0.0025, 0.00125}
    training.run()
    assert small.rates(training) == [0.01] * 6  # of what is above the layers


def test_weight_decay_and_clipping_are_used(tmp_path: Path) -> None:
    plain = trained(tmp_path)
    others: list[dict[str, Any]] = [
        {"weight_decay": 1.0},
        {"max_grad_norm": 1e-4},
        {"correct_bias": False},
        {"adam_epsilon": 0.1},
    ]
    for options in others:
        assert small.losses(trained(tmp_path, **options))[-1] != small.losses(plain)[-1]
    assert small.losses(trained(tmp_path, max_grad_norm=0.0)) != small.losses(trained(tmp_path, max_grad_norm=1e-4))


def test_seeds(tmp_path: Path) -> None:
    assert small.losses(trained(tmp_path, seed=1)) != small.losses(trained(tmp_path, seed=2))
    assert small.losses(trained(tmp_path, seed=1)) == small.losses(trained(tmp_path, seed=1))


def pretraining_model() -> Any:
    config = BertConfig.from_json_file(shared("goldens", "bert", "bert_config.json"))
    config.hidden_act = "gelu_tanh"  # the original program's formula
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    return BertForPreTraining.from_pretrained(
        shared("goldens", "bert", "pretraining") / "bert_model.ckpt", config=config
    )


def pretraining_batch() -> dict[str, torch.Tensor]:
    arrays = np.load(shared("goldens", "bert", "pretraining_reference.npz"))
    given = {name: torch.from_numpy(arrays[name].astype(np.int64)) for name in arrays.files if "ids" in name}
    positions = torch.from_numpy(arrays["masked_lm_positions"].astype(np.int64))
    weights = torch.from_numpy(arrays["masked_lm_weights"])
    labels = torch.full_like(given["input_ids"], -100)
    rows = torch.arange(len(labels))[:, None].expand_as(positions)[weights > 0]
    labels[rows, positions[weights > 0]] = given["masked_lm_ids"][weights > 0]
    return {
        "input_ids": given["input_ids"],
        "token_type_ids": given["segment_ids"],
        "attention_mask": torch.from_numpy(arrays["input_mask"].astype(np.int64)),
        "masked_lm_labels": labels,
        "next_sentence_label": torch.from_numpy(arrays["next_sentence_labels"].astype(np.int64)).reshape(-1),
    }


@pytest.mark.parametrize("parts", [1, 2])
def test_the_recorded_training_of_the_original(tmp_path: Path, parts: int) -> None:
    """Five updates of google-research/bert, recorded: the same losses, and the same weights in the end.

    The options have no schedule like the original's, whose line begins at step 0 and not at the end of the warm-up; so
    the training gets one of its own.
    """
    recorded = np.load(shared("goldens", "bert", "pretraining_train5_from_rest.npz"))
    batch = pretraining_batch()
    losses = {"masked_lm_labels": "masked_lm_loss", "next_sentence_label": "next_sentence_loss"}
    training = small.recorded_training(
        pretraining_model(), batch, LabelLoss(losses), tmp_path, Accelerator(cpu=True), parts
    )
    training.run()
    np.testing.assert_allclose(small.losses(training), recorded["rec/loss"], rtol=0, atol=1e-5)
    assert small.rates(training)[:-1] == pytest.approx(recorded["rec/learning_rate"][1:])
    weights = small.weights(training.model)
    for ours, theirs in {
        "bert.embeddings.word_embeddings.weight": recorded["after/bert/embeddings/word_embeddings"],
        "bert.encoder.layer.0.attention.self.query.weight": recorded[
            "after/bert/encoder/layer_0/attention/self/query/kernel"
        ].T,
        "cls.predictions.bias": recorded["after/cls/predictions/output_bias"],
    }.items():
        np.testing.assert_allclose(weights[ours].numpy(), theirs, rtol=0, atol=2e-5)
