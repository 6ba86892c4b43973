"""Pre-training of every family: it learns, is measured rightly, goes on exactly, and does not depend on its parts."""

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from pytorch_transformers import (
    BertForMaskedLM,
    BertForPreTraining,
    GPT2LMHeadModel,
    OpenAIGPTLMHeadModel,
    TransfoXLLMHeadModel,
)
from pytorch_transformers.data.pretraining import TokenStream, open_pretraining_data
from pytorch_transformers.training.objective import Batch
from pytorch_transformers.training.task import Task
from saved_bert import environment
from training.corpora import KINDS, LENGTH, WORDS, Corpora, entropy, stream_ids
from training.pretrain_processes import DATA, KILLED, TWO
from training.test_processes import TESTS, launched

from .runs import parts_make_no_difference

MODELS: dict[str, Any] = {
    "bert": BertForPreTraining,
    "bert without next sentence": BertForMaskedLM,
    "bert from records": BertForPreTraining,
    "gpt2": GPT2LMHeadModel,
    "openai_gpt": OpenAIGPTLMHeadModel,
    "transfo_xl": TransfoXLLMHeadModel,
}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Corpora:
    return Corpora(tmp_path_factory.mktemp("corpora"))


def weights(folder: Path) -> dict[str, Tensor]:
    found: dict[str, Tensor] = load_file(folder / "model.safetensors")
    return found


def assert_same(one: Path, other: Path) -> None:
    """To the last bit."""
    ours, theirs = weights(one), weights(other)
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []


# It learns, and the metrics are what they say.


def log_probabilities(logits: Tensor) -> npt.NDArray[np.float64]:
    values = logits.double().numpy()
    shifted = values - values.max(axis=-1, keepdims=True)
    found: npt.NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found


def scored(logits: Tensor, labels: list[int]) -> tuple[list[float], list[bool]]:
    """Losses and hits of the labels that count, one after the other."""
    scores = log_probabilities(logits)
    at = [place for place, label in enumerate(labels) if label >= 0]
    losses = [-float(scores[place, labels[place]]) for place in at]
    return losses, [int(scores[place].argmax()) == labels[place] for place in at]


def of_bert(model: Any, place: Path) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    data = open_pretraining_data(place)
    for number in range(len(data)):
        row = data[number]
        inputs = {name: torch.tensor([row[name]]) for name in ("input_ids", "token_type_ids")}
        output = model(**inputs)
        heads = {"masked_lm": (output[0][0], row["masked_lm_labels"])}
        if "next_sentence_label" in row:
            heads["next_sentence"] = (output.seq_relationship_logits, [row["next_sentence_label"]])
        for name, (logits, labels) in heads.items():
            losses, hits = scored(logits, labels)
            found.setdefault(f"{name}_loss", []).extend(losses)
            found.setdefault(f"{name}_accuracy", []).extend(hits)
    metrics = {name: float(np.mean(values)) for name, values in found.items()}
    return {"loss": sum(value for name, value in metrics.items() if name.endswith("loss")), **metrics}


def of_blocks(model: Any, place: Path) -> dict[str, float]:
    """Each block of the text begins with the last token of the one before it."""
    ids = stream_ids(place)
    losses: list[float] = []
    hits: list[bool] = []
    for start in range(0, len(ids) - 1, LENGTH - 1):
        block = ids[start : start + LENGTH]
        more = scored(model(torch.tensor([block[:-1]])).logits[0], block[1:])
        losses, hits = losses + more[0], hits + more[1]
    assert len(losses) == len(ids) - 1
    return {"loss": np.mean(losses).item(), "perplexity": math.exp(np.mean(losses)), "accuracy": np.mean(hits).item()}


def of_text(model: Any, place: Path) -> dict[str, float]:
    """The memory holds the whole text: it may as well be read at once."""
    ids = stream_ids(place)
    assert len(ids) <= model.config.mem_len
    losses, _ = scored(model(torch.tensor([ids[:-1]])).prediction_scores[0], ids[1:])
    return {"loss": np.mean(losses).item(), "perplexity": math.exp(np.mean(losses))}


METRICS: dict[str, Callable[[Any, Path], dict[str, float]]] = {
    "bert": of_bert,
    "gpt2": of_blocks,
    "openai_gpt": of_blocks,
    "transfo_xl": of_text,
}


@pytest.mark.parametrize("kind", KINDS)
def test_is_learned_and_measured(corpora: Corpora, kind: str, tmp_path: Path) -> None:
    """From nothing; and the saved model alone gives the same metrics."""
    masked = KINDS[kind] == "bert"
    options: dict[str, Any] = {"learning_rate": 1e-2, "num_train_epochs": 99, "max_steps": 80 if masked else 40}
    record = corpora.run(kind, tmp_path, new=True, do_train=True, do_eval=True, **options)
    metrics, held_out = record["metrics"], corpora.data(kind, held_out=True)
    words = entropy([i for i, document in enumerate(WORDS) for _ in document])  # which document
    unigram = math.log(sum(map(len, WORDS))) if masked else entropy(stream_ids(held_out))
    loss = metrics["masked_lm_loss" if masked else "loss"]
    assert loss < (unigram - 0.5 * words if masked else 0.5 * unigram)
    losses = [point["loss"] for point in record["history"] if "learning_rate" in point]
    assert losses[0] > 0.9 * unigram
    assert sum(losses[-5:]) / 5 < 0.7 * losses[0]
    model = MODELS[kind].from_pretrained(tmp_path).eval()
    with torch.inference_mode():
        wanted = METRICS[KINDS[kind]](model, held_out)
    assert metrics == pytest.approx(wanted, abs=1e-5)
    alone = corpora.run(kind, tmp_path, model=tmp_path, do_eval=True)
    assert alone["metrics"] == metrics
    assert record["training"]["tokens_per_second"] > 0


def test_first_rows_alone_are_evaluated(corpora: Corpora, tmp_path: Path) -> None:
    model = MODELS["bert"].from_pretrained(corpora.model("bert")).eval()
    found = {}
    for most in (3, 100_000):
        task: Any = corpora.task("bert")
        task._most = most
        found[most] = corpora.run("bert", tmp_path, task, do_eval=True)["metrics"]["masked_lm_loss"]
    data = open_pretraining_data(corpora.data("bert", held_out=True))
    losses: list[float] = []
    for number in range(3):
        row = data[number]
        output = model(torch.tensor([row["input_ids"]]), token_type_ids=torch.tensor([row["token_type_ids"]]))
        losses += scored(output.prediction_logits[0].detach(), row["masked_lm_labels"])[0]
    assert found[3] == pytest.approx(np.mean(losses), abs=1e-5)
    assert found[100_000] != found[3]


def test_bfloat16(corpora: Corpora, tmp_path: Path) -> None:
    """The memory of Transformer-XL too."""
    for kind in ("bert", "transfo_xl"):
        record = corpora.run(kind, tmp_path / kind, precision="bfloat16", max_steps=4)
        exact = corpora.run(kind, tmp_path / f"{kind} exact", max_steps=4)
        for ours, theirs in zip(record["history"], exact["history"], strict=True):
            assert ours["loss"] == pytest.approx(theirs["loss"], rel=0.05)
            assert ours["loss"] != theirs["loss"]


# It goes on as if nothing had happened.


@pytest.mark.parametrize("kind", KINDS)
def test_goes_on_in_the_middle_of_an_epoch(corpora: Corpora, kind: str, tmp_path: Path) -> None:
    """With dropout, to the last bit."""
    options: dict[str, Any] = {"dropout": True, "max_steps": 4, "save_every": 2, "log_every": 1}
    whole = corpora.run(kind, tmp_path / "whole", **options)
    assert 0 < whole["history"][1]["epoch"] % 1 < 1
    shutil.copytree(tmp_path / "whole" / "checkpoints" / "step-2", tmp_path / "again" / "checkpoints" / "step-2")
    again = corpora.run(kind, tmp_path / "again", **options)
    assert_same(tmp_path / "whole", tmp_path / "again")
    assert again["history"] == whole["history"]


#: Ids and labels of each row of a batch, without padding.
Rows: TypeAlias = list[tuple[list[int], list[int]]]


class Recorder:
    """An objective that notes what it is given."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.seen: list[Rows] = []

    def __call__(self) -> "Recorder":
        self.inner = self.make()
        return self

    def counts(self, batch: Batch) -> dict[str, int]:
        lengths = batch["attention_mask"].sum(dim=1).tolist()  # a random word may be the one that pads
        rows = zip(batch["input_ids"].tolist(), batch["masked_lm_labels"].tolist(), lengths, strict=True)
        self.seen.append([(ids[:length], labels[:length]) for ids, labels, length in rows])
        found: dict[str, int] = self.inner.counts(batch)
        return found

    def terms(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.inner.terms(model, batch)
        return found


def recorded(corpora: Corpora, output: Path, **options: Any) -> list[Rows]:
    """The batches of a run with masks made anew in each epoch."""
    task: Any = corpora.task("bert", dev=False, dynamic_masking=True, dupe_factor=1)
    task.objective = recorder = Recorder(task.objective)
    corpora.run("bert", output, task, **{"num_train_epochs": 3, **options})
    return recorder.seen


def originals(batches: list[Rows]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The ids of each row before they were masked -> where they were."""
    return {
        tuple(label if label >= 0 else i for i, label in zip(ids, labels, strict=True)): tuple(
            place for place, label in enumerate(labels) if label >= 0
        )
        for rows in batches
        for ids, labels in rows
    }


def test_masks_change_from_epoch_to_epoch(corpora: Corpora, tmp_path: Path) -> None:
    """And are the same again with workers, and after a stop in the middle of an epoch."""
    batches = recorded(corpora, tmp_path / "whole", save_every=1, keep_checkpoints=99)
    per_epoch = len(batches) // 3
    assert len(batches) == 3 * per_epoch > 6
    epochs = [originals(batches[epoch * per_epoch : (epoch + 1) * per_epoch]) for epoch in range(3)]
    assert epochs[0].keys() == epochs[1].keys() == epochs[2].keys()
    for one, other in ((0, 1), (1, 2), (0, 2)):
        same = sum(epochs[one][row] == epochs[other][row] for row in epochs[one])
        assert same < 0.3 * len(epochs[one])
    assert recorded(corpora, tmp_path / "workers", num_workers=2) == batches
    assert_same(tmp_path / "whole", tmp_path / "workers")
    stop = per_epoch + 1
    name = f"checkpoints/step-{stop}"
    shutil.copytree(tmp_path / "whole" / name, tmp_path / "again" / name)
    assert recorded(corpora, tmp_path / "again", num_workers=2, save_every=0) == batches[stop:]
    assert_same(tmp_path / "whole", tmp_path / "again")


def test_killed_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    """By signal 9, with dropout, a worker and new masks in each epoch."""
    done = subprocess.run(
        [sys.executable, str(TESTS / "training" / "pretrain_processes.py"), "killed", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(PYTHONPATH=str(TESTS)),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "killed.json").read_text())
    assert (told["killed"], told["status"]) == (-9, 0)
    assert told["left"]
    assert "step-23" not in told["left"]
    corpora = Corpora(tmp_path)
    corpora.run("bert", tmp_path / "whole", corpora.task("bert", dev=False, **DATA), **{**KILLED, "save_every": 0})
    assert_same(tmp_path / "whole", tmp_path / "killed")


# It does not depend on what computes it.


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_a_batch_do_not_change_the_result(corpora: Corpora, kind: str, tmp_path: Path) -> None:
    """Parts have different numbers of words to guess; and each part of Transformer-XL has a memory."""
    parts_make_no_difference(lambda: corpora.task(kind, dev=False), corpora.model(KINDS[kind]), tmp_path)


def test_two_processes_are_one(tmp_path: Path) -> None:
    """Numbers of words to guess differ from process to process."""
    corpora = Corpora(tmp_path)
    for kind in TWO:
        corpora.data(kind), corpora.data(kind, held_out=True)
    done = launched(TESTS / "training" / "pretrain_processes.py", "two", tmp_path)
    assert done.returncode == 0, done.stderr
    curves = json.loads((tmp_path / "curves.json").read_text())
    for kind, options in TWO.items():
        one = corpora.run(kind, tmp_path / f"one {kind}", do_train=True, do_eval=True, **options)
        assert (curves[kind]["processes"], one["processes"]) == (2, 1)
        for ours, theirs in zip(curves[kind]["history"], one["history"], strict=True):
            assert ours == pytest.approx(theirs, abs=1e-5)
        assert curves[kind]["metrics"] == pytest.approx(one["metrics"], abs=1e-5)


# Documents, and what cannot be used.


@pytest.mark.parametrize("family", ["gpt2", "openai_gpt"])
def test_whole_documents(corpora: Corpora, family: str, tmp_path: Path) -> None:
    """The loss is that of each document alone."""
    task = corpora.task(family, whole_documents=True)
    options: dict[str, Any] = {"max_seq_length": 48, "group_by_length": True}
    found = corpora.run(family, tmp_path, task, do_eval=True, **options)["metrics"]
    model = MODELS[family].from_pretrained(corpora.model(family)).eval()
    stream = TokenStream(corpora.data(family, held_out=True))
    assert stream.index.documents == 3
    losses: list[float] = []
    for number in range(3):
        ids = stream.document(number).tolist()
        for start in range(0, len(ids) - 1, 47):
            part = ids[start : start + 48]
            losses += scored(model(torch.tensor([part[:-1]])).logits[0].detach(), part[1:])[0]
    assert len(losses) == len(stream) - 3
    assert found["loss"] == pytest.approx(np.mean(losses), abs=1e-5)
    record = corpora.run(family, tmp_path / "trained", task, max_steps=30, learning_rate=1e-2, **options)
    assert record["history"][-1]["loss"] < 0.7 * record["history"][0]["loss"]
    parts_make_no_difference(
        lambda: corpora.task(family, dev=False, whole_documents=True), corpora.model(family), tmp_path / "parts"
    )


def test_what_is_missing_is_said_at_once(corpora: Corpora, tmp_path: Path) -> None:
    task: Any
    for kind in ("bert", "gpt2", "transfo_xl"):
        task = corpora.task(kind)
        task._data = None
        with pytest.raises(ValueError, match=r"data: missing \(--data\); there is nothing to train with"):
            corpora.run(kind, tmp_path / "a", task)
        with pytest.raises(ValueError, match=r"dev_data: missing \(--dev_data\); there is nothing to evaluate on"):
            corpora.run(kind, tmp_path / "a", corpora.task(kind, dev=False), do_eval=True)
        task = corpora.task(kind)
        task._data = tmp_path
        with pytest.raises(OSError, match=r"index.json is missing: the folder holds no complete"):
            corpora.run(kind, tmp_path / "a", task)


def test_data_that_do_not_fit(corpora: Corpora, tmp_path: Path) -> None:
    task: Any = corpora.task("bert")
    task._dev_data = corpora.data("bert without next sentence", held_out=True)
    with pytest.raises(ValueError, match="one of them has next sentences"):
        corpora.run("bert", tmp_path / "a", task)
    with pytest.raises(ValueError, match=r"tokens are too few for 5000 streams of two; give more text"):
        corpora.run("transfo_xl", tmp_path / "a", corpora.task("transfo_xl", streams=5000), train_batch_size=5000)
    with pytest.raises(ValueError, match=r"do_predict: pre-training predicts nothing"):
        corpora.task("bert").predict(lambda rows: [])


def test_tasks_are_tasks(corpora: Corpora) -> None:
    names = []
    for kind in KINDS:
        task: Task = corpora.task(kind)
        names.append(task.name)
        assert (task.metric, task.lower_is_better) == ("loss", True)
    assert sorted(set(names)) == [f"pretrain {family}" for family in sorted(set(KINDS.values()))]
