"""The loop and the loss of spans beside a recorded training of google-research/bert, run_squad.py.

Two things are otherwise there, and each has its own place here:

* The original counts scores at padding in its loss, and `SpanLoss` leaves them out. Two rows of the recorded batch have
  padding, and one of them has its answer there, which no real row has. So the recorded training is followed with the
  model's own loss, and with `SpanLoss` told that nothing is padding; what it does with padding is compared with the
  recorded scores of the other rows.
* The original clips by a longer gradient: TensorFlow has that of the word embeddings as a row for each token, and
  squares the rows before those of the same word are added up. The norm is computed so here, from the gradients of the
  run itself, and the loop is given the usual limit in the same proportion. Both norms are compared with the recorded.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from scipy.special import logsumexp
from torch import Tensor, nn

from pytorch_transformers import BertConfig, BertForQuestionAnswering
from pytorch_transformers.models.bert.convert import KEY_MAP
from pytorch_transformers.training.loop import Training
from pytorch_transformers.training.objective import Batch, Objective, RowLoss
from pytorch_transformers.training.tasks.squad import SpanLoss
from shared_data import shared
from training import small

NOISE = 5e-5
"""For the bias of the scores: added to all of them it changes no loss, so its gradient is the rounding of a zero."""


def golden(name: str) -> dict[str, NDArray[Any]]:
    with np.load(shared("goldens", "bert", f"{name}.npz")) as stored:
        return dict(stored)


@pytest.fixture
def model() -> Any:
    config = BertConfig.from_json_file(shared("goldens", "bert", "bert_config.json"))
    config.hidden_act = "gelu_tanh"  # the original program's formula
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    return BertForQuestionAnswering.from_pretrained(shared("goldens", "bert", "squad") / "model.ckpt-4", config=config)


@pytest.fixture
def batch() -> dict[str, Tensor]:
    arrays = golden("squad_reference")
    names = {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    given = ("input_ids", "input_mask", "segment_ids", "start_positions", "end_positions")
    return {names.get(name, name): torch.from_numpy(arrays[name].astype(np.int64)) for name in given}


class PaddingCounts(SpanLoss):
    """`SpanLoss` where nothing is padding; the model gets its mask as ever."""

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        mask = batch["attention_mask"]

        class Masked(nn.Module):
            def forward(self, **given: Tensor) -> Any:
                return model(**{**given, "attention_mask": mask})

        return super().terms(Masked(), {**batch, "attention_mask": torch.ones_like(mask)})


class ClipsAsTensorFlow(Accelerator):  # type: ignore[misc]  # accelerate has no types
    """Clips by the norm in which each token has a gradient of its own."""

    def watch(self, table: nn.Embedding) -> None:
        """Note the gradient of each token, beside that of each word which the table gets."""
        self.usual: list[float] = []
        self.used: list[float] = []
        self._table = table
        self._squares = 0.0
        table.register_forward_hook(self._watch)

    def _watch(self, table: nn.Module, given: Any, rows: Tensor) -> None:
        rows.register_hook(self._add)

    def _add(self, gradient: Tensor) -> None:
        self._squares += gradient.square().sum().item()

    def clip_grad_norm_(self, parameters: Iterable[Tensor], max_norm: float, norm_type: float = 2.0) -> Tensor | None:
        parameters = list(parameters)
        assert self._table.weight.grad is not None
        usual = sum(p.grad.square().sum().item() for p in parameters if p.grad is not None) ** 0.5
        used = (usual**2 - self._table.weight.grad.square().sum().item() + self._squares) ** 0.5
        self._squares = 0.0
        self.usual.append(usual)
        self.used.append(used)
        return super().clip_grad_norm_(parameters, max_norm * usual / used, norm_type)


def training(
    folder: Path,
    model: Any,
    batch: dict[str, Tensor],
    objective: Objective,
    parts: int = 1,
    places: tuple[int, ...] = (0, 1, 2, 3),
) -> tuple[Training, ClipsAsTensorFlow]:
    """Five updates, each with all rows of the recorded batch, or with those at `places`."""
    accelerator = ClipsAsTensorFlow(cpu=True)
    made = small.recorded_training(model, batch, objective, folder, accelerator, parts, places)
    accelerator.watch(model.bert.embeddings.word_embeddings)
    return made, accelerator


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("objective", [RowLoss, PaddingCounts])
def test_the_recorded_training_of_the_original(
    tmp_path: Path, model: Any, batch: dict[str, Tensor], objective: type[Objective], parts: int
) -> None:
    """Five updates: the same losses, rates and norms, and the same weights in the end, all of them.

    The original also has a pooler, which gets no gradient and stays as it was; the model here has none.
    """
    recorded = golden("squad_train5_from_rest")
    run, accelerator = training(tmp_path, model, batch, objective(), parts)
    run.run()
    np.testing.assert_allclose(small.losses(run), recorded["rec/loss"], rtol=0, atol=1e-5)
    assert small.rates(run)[:-1] == pytest.approx(recorded["rec/learning_rate"][1:])
    np.testing.assert_allclose(accelerator.usual, recorded["rec/global_norm_dense"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(accelerator.used, recorded["rec/global_norm"], rtol=0, atol=1e-5)
    compared = {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}
    for name, weight in small.weights(model).items():
        row, original = KEY_MAP.to_original(name) or pytest.fail(name)
        expected = recorded[f"after/{original}"]
        expected = expected.T if row.operation == "transpose" else expected
        limit = NOISE if name == "qa_outputs.bias" else 1e-5
        np.testing.assert_allclose(weight.numpy(), expected, rtol=0, atol=limit, err_msg=name)
        compared.add(original)
    assert compared == {name.removeprefix("after/") for name in recorded if name.startswith("after/")}


def test_scores_at_padding_are_left_out(tmp_path: Path, model: Any, batch: dict[str, Tensor]) -> None:
    """The first update learns nothing yet, and its loss is what the recorded scores give without those at padding."""
    recorded, places = golden("squad_reference"), [0, 1, 3]
    expected = []
    for kind in ("start", "end"):
        scores = np.where(recorded["input_mask"] == 1, recorded[f"{kind}_logits"], -np.inf)[places]
        right = np.take_along_axis(scores, recorded[f"{kind}_positions"][places, None], 1)[:, 0]
        expected.append((logsumexp(scores, axis=1) - right).mean())
    run, _ = training(tmp_path, model, batch, SpanLoss(), places=tuple(places))
    run.run()
    losses = small.losses(run)
    assert losses[:2] == pytest.approx([np.mean(expected)] * 2, abs=1e-5)
    assert losses[-1] < losses[0] - 0.5
