"""Classes and scores as a whole: GLUE's files and your own, learned, saved with their labels, evaluated alone."""

import csv
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytorch_transformers import BertForSequenceClassification
from pytorch_transformers.data.glue import glue_task
from pytorch_transformers.training.tasks.classify import ClassifyTask

from .runs import learn, parts_make_no_difference, refused, rows_of, run

WORDS = ("the cook", "baking", "rain", "a cloud", "in the oven", "two cups")


def some_texts(count: int, seed: int) -> list[tuple[str, bool]]:
    """Texts, and whether they have the word `golden`."""
    draw = random.Random(seed)
    texts = []
    for _ in range(count):
        found = draw.random() < 0.5
        words = [*draw.choices(WORDS, k=draw.randint(1, 6)), "golden" if found else "flour"]
        draw.shuffle(words)
        texts.append((" ".join(words), found))
    return texts


def write_texts(path: Path, count: int, seed: int, answers: tuple[str, str] | None = ("no", "yes")) -> list[bool]:
    """CSV with the columns `text` and, with answers, `label`."""
    texts = some_texts(count, seed)
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = [[text, *([answers[found]] if answers else [])] for text, found in texts]
        csv.writer(stream).writerows([["text", "label"] if answers else ["text"], *rows])
    return [found for _, found in texts]


def write_mnli(folder: Path) -> Path:
    """A folder of MNLI; its test files have no labels."""
    folder.mkdir()
    for number, name in enumerate(name for names in glue_task("MNLI").files.values() for name in names):
        labels = not name.startswith("test")
        lines = ["\t".join(["index", "sentence1", "sentence2", *(["gold_label"] if labels else [])])]
        for index, (text, found) in enumerate(some_texts(64 if name == "train.tsv" else 10 + number, seed=number)):
            label = "entailment" if found else "contradiction"
            lines.append("\t".join([str(index), text, "the onion", *([label] if labels else [])]))
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def own_files(folder: Path, answers: tuple[str, str] = ("no", "yes")) -> dict[str, Any]:
    files = {f"{split}_file": folder / f"{split}.csv" for split in ("train", "dev", "test")}
    write_texts(files["train_file"], 64, 1, answers)
    write_texts(files["dev_file"], 24, 2, answers)
    write_texts(files["test_file"], 9, 3, None)
    return files


def test_own_labels_are_learned_and_predicted(bert: Path, tmp_path: Path) -> None:
    files, folder = own_files(tmp_path), tmp_path / "out"
    record = learn(lambda: ClassifyTask(**files), bert, folder, num_train_epochs=6)
    assert record["metrics"]["accuracy"] > 0.9  # chance is about 0.5
    assert BertForSequenceClassification.from_pretrained(folder).config.id2label == {0: "no", 1: "yes"}
    header, *rows = rows_of(folder / "dev_predictions.tsv")
    assert header == ["index", "prediction", "label"]
    assert {row[2] for row in rows} == {"no", "yes"}
    assert sum(row[1] == row[2] for row in rows) / 24 == pytest.approx(record["metrics"]["accuracy"])
    run(ClassifyTask(test_file=files["test_file"]), bert, folder, do_predict=True)  # the labels are the model's
    _, *rows = rows_of(folder / "predictions.tsv")
    wanted = [found for _, found in some_texts(9, seed=3)]
    assert sum((row[1] == "yes") == found for row, found in zip(rows, wanted, strict=True)) >= 8


def test_scores_are_learned(bert: Path, tmp_path: Path) -> None:
    files = own_files(tmp_path, ("-1", "1.5"))
    folder = tmp_path / "out"
    record = learn(lambda: ClassifyTask(**files, regression=True), bert, folder, num_train_epochs=8)
    assert record["metrics"]["pearson"] > 0.9
    assert set(record["metrics"]) == {"pearson", "spearman", "pearson_and_spearman", "loss"}
    assert BertForSequenceClassification.from_pretrained(folder).config.num_labels == 1
    _, *rows = rows_of(folder / "dev_predictions.tsv")
    errors = [(float(row[1]) - float(row[2])) ** 2 for row in rows]
    assert sum(errors) / len(errors) == pytest.approx(record["metrics"]["loss"], rel=1e-3)
    alone = run(ClassifyTask(dev_file=files["dev_file"]), bert, folder, do_eval=True)  # the model says what it learned
    assert alone["metrics"] == record["metrics"]


def test_mnli_has_two_of_each(bert: Path, tmp_path: Path) -> None:
    data, folder = write_mnli(tmp_path / "MNLI"), tmp_path / "out"

    def make() -> ClassifyTask:
        return ClassifyTask(glue=glue_task("MNLI"), data_dir=data)

    record = learn(make, bert, folder, num_train_epochs=6)
    metrics = record["metrics"]
    assert set(metrics) == {"accuracy", "loss", "accuracy_mismatched", "loss_mismatched"}
    assert metrics["accuracy"] > 0.8
    assert metrics["accuracy_mismatched"] > 0.8
    config = BertForSequenceClassification.from_pretrained(folder).config
    assert list(config.id2label.values()) == ["contradiction", "entailment", "neutral"]
    run(make(), bert, folder, do_predict=True)
    for name, count in (("MNLI-m.tsv", 13), ("MNLI-mm.tsv", 14)):
        header, *rows = rows_of(folder / name)
        assert header == ["index", "prediction"]
        assert len(rows) == count
        assert {row[1] for row in rows} <= {"contradiction", "entailment", "neutral"}


def test_parts_of_a_batch_do_not_change_the_result(bert: Path, tmp_path: Path) -> None:
    files = own_files(tmp_path)
    parts_make_no_difference(lambda: ClassifyTask(**files), bert, tmp_path)


def test_texts_that_are_cut_are_told(bert: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = own_files(tmp_path)
    run(ClassifyTask(**files), bert, tmp_path / "out", do_train=True, max_steps=1, max_seq_length=6)
    assert "train: " in caplog.text
    assert "of 64 inputs are longer than max_seq_length, 6 tokens, and are cut" in caplog.text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give either a task of GLUE"),
        ({"glue": glue_task("RTE")}, "RTE needs data_dir"),
        ({"glue": glue_task("RTE"), "train_file": Path("train.csv")}, "give either a task of GLUE"),
    ],
)
def test_what_is_given(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ClassifyTask(**given)


def test_what_cannot_be_used(bert: Path, tmp_path: Path) -> None:
    files = own_files(tmp_path)
    with pytest.raises(ValueError, match="no head for this task"):
        run(ClassifyTask(**files), bert, tmp_path / "out", do_eval=True)
    with pytest.raises(ValueError, match=r"train_file: missing \(--train_file\)"):
        run(ClassifyTask(dev_file=files["dev_file"]), bert, tmp_path / "out", do_train=True)
    write_texts(files["dev_file"], 5, 2, ("no", "maybe"))
    with pytest.raises(ValueError, match=r"dev\.csv:\d+: unknown label 'maybe'; the labels are 'no', 'yes'"):
        refused(ClassifyTask(**files), bert, tmp_path / "out2", do_eval=True)
    with pytest.raises(ValueError, match=r"test_file: missing \(--test_file\)"):
        refused(ClassifyTask(**{**files, "test_file": None}), bert, tmp_path / "out2", do_predict=True)


def test_a_failed_start_leaves_the_finished_run(bert: Path, tmp_path: Path) -> None:
    files, folder = own_files(tmp_path), tmp_path / "out"
    record = run(ClassifyTask(**files), bert, folder, do_train=True, max_steps=2, save_every=1)
    files["dev_file"].unlink()
    with pytest.raises(FileNotFoundError, match=r"dev\.csv"):
        run(ClassifyTask(**files), bert, folder, do_train=True, do_eval=True, overwrite_output_dir=True)
    assert json.loads((folder / "run.json").read_text(encoding="utf-8"))["finished"] == record["finished"]
    assert (folder / "checkpoints" / "step-1").is_dir()


def test_a_head_for_other_labels_is_new(bert: Path, tmp_path: Path) -> None:
    files, first = own_files(tmp_path), tmp_path / "first"
    run(ClassifyTask(**files), bert, first, do_train=True, max_steps=1)
    lines = ["text,label", *(f"the cook,{label}" for label in ("good", "bad", "neither"))]
    files["train_file"].write_text("\n".join(lines), encoding="utf-8")
    run(ClassifyTask(**files), first, tmp_path / "second", do_train=True, max_steps=1)
    assert BertForSequenceClassification.from_pretrained(tmp_path / "second").config.num_labels == 3
    config = {**json.loads((first / "config.json").read_text(encoding="utf-8")), "intermediate_size": 8}
    (first / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match=r"first: bert\.encoder.* and the configuration wants .* \(--config\)"):
        run(ClassifyTask(**files), first, tmp_path / "third", do_train=True, max_steps=1)


def test_labels_of_a_model_in_another_order(bert: Path, tmp_path: Path) -> None:
    """One that was trained elsewhere gives the same predictions and metrics, whatever the order of its outputs."""
    data, folder = write_mnli(tmp_path / "MNLI"), tmp_path / "out"
    task = partial(ClassifyTask, glue=glue_task("MNLI"), data_dir=data)
    trained = run(task(), bert, folder, do_train=True, do_eval=True, do_predict=True, max_steps=20)
    written = {name: (folder / name).read_text() for name in ("dev_predictions.tsv", "MNLI-m.tsv")}
    assert len({row[1] for row in rows_of(folder / "dev_predictions.tsv")[1:]}) > 1
    model = BertForSequenceClassification.from_pretrained(folder)
    order = [2, 0, 1]
    model.config.id2label = {place: model.config.id2label[number].upper() for place, number in enumerate(order)}
    model.config.label2id = {label: place for place, label in model.config.id2label.items()}
    model.classifier.weight.data, model.classifier.bias.data = (
        tensor.data[order] for tensor in (model.classifier.weight, model.classifier.bias)
    )
    model.save_pretrained(folder)
    again = run(task(), bert, folder, do_eval=True, do_predict=True)
    assert again["metrics"] == pytest.approx(trained["metrics"])
    assert {name: (folder / name).read_text() for name in written} == written


def test_no_more_tokens_than_the_model_takes(bert: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = own_files(tmp_path)
    files["train_file"].write_text("text,label\n" + "rain " * 100 + ",yes\nrain,no\n", encoding="utf-8")
    run(ClassifyTask(**files), bert, tmp_path / "out", do_train=True, max_steps=1, max_seq_length=4000)
    assert "max_seq_length: 4000 is more than the 48 tokens that the model takes" in caplog.text
