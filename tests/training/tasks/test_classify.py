"""Classes and scores as a whole: GLUE's files and your own, learned, saved with their labels, evaluated alone."""

import csv
import random
from pathlib import Path
from typing import Any

import pytest

from pytorch_transformers import BertForSequenceClassification
from pytorch_transformers.data.glue import glue_task
from pytorch_transformers.training.tasks.classify import ClassifyTask

from .runs import learn, parts_make_no_difference, rows_of, run

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
        run(ClassifyTask(**files), bert, tmp_path / "out2", do_train=True, do_eval=True, max_steps=1)
