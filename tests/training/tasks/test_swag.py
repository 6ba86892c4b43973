"""SWAG as a whole: it is learned, saved, evaluated alone and predicted; and what the files must have."""

import csv
import random
from pathlib import Path
from typing import Any

import pytest

from pytorch_transformers import BertForMultipleChoice
from pytorch_transformers.training.tasks.swag import SwagTask

from .runs import learn, parts_make_no_difference, refused, rows_of, run

HEADER = ["video-id", "sent1", "sent2", *(f"ending{number}" for number in range(4)), "label"]
OPTIONS: dict[str, Any] = {"num_train_epochs": 8, "learning_rate": 3e-3}


def write_swag(path: Path, count: int, seed: int, *, labels: bool = True) -> list[int]:
    """Questions whose right ending has the word `golden`; gives the answers."""
    draw = random.Random(seed)
    wrong = ["the rain", "a cloud , a cloud", "baking in the oven", "two cups of flour"]
    answers = []
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER[: 8 if labels else 7])
        for number in range(count):
            answer = draw.randrange(4)
            endings = [f"golden {draw.choice(wrong)}" if n == answer else draw.choice(wrong) for n in range(4)]
            writer.writerow([number, "the cook", "the onion", *endings, *([answer] if labels else [])])
            answers.append(answer)
    return answers


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    write_swag(folder / "train.csv", 64, seed=1)
    write_swag(folder / "val.csv", 24, seed=2)
    write_swag(folder / "test.csv", 9, seed=3, labels=False)
    return folder


def test_is_learned_and_predicted(bert: Path, data: Path, tmp_path: Path) -> None:
    record = learn(lambda: SwagTask(data_dir=data), bert, tmp_path / "out", **OPTIONS)
    assert record["metrics"]["accuracy"] > 0.9  # chance is 0.25
    assert record["task"] == f"swag {data}"
    answers = write_swag(tmp_path / "again.csv", 24, seed=2)
    header, *rows = rows_of(tmp_path / "out" / "dev_predictions.tsv")
    assert header == ["index", "prediction", "label"]
    assert [row[2] for row in rows] == [str(answer) for answer in answers]
    right = sum(row[1] == row[2] for row in rows) / len(rows)
    assert right == pytest.approx(record["metrics"]["accuracy"])
    run(SwagTask(test_file=data / "test.csv"), bert, tmp_path / "out", do_predict=True)
    header, *rows = rows_of(tmp_path / "out" / "predictions.tsv")
    wanted = write_swag(tmp_path / "again.csv", 9, seed=3)
    assert header == ["index", "prediction"]
    assert [row[0] for row in rows] == [str(number) for number in range(9)]
    assert sum(row[1] == str(answer) for row, answer in zip(rows, wanted, strict=True)) >= 8
    model = BertForMultipleChoice.from_pretrained(tmp_path / "out")
    assert isinstance(model, BertForMultipleChoice)


def test_parts_of_a_batch_do_not_change_the_result(bert: Path, data: Path, tmp_path: Path) -> None:
    parts_make_no_difference(lambda: SwagTask(data_dir=data), bert, tmp_path)


def test_evaluation_alone_refuses_a_new_head(bert: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no head for this task"):
        run(SwagTask(data_dir=data), bert, tmp_path / "out", do_eval=True)


def test_what_cannot_be_used(bert: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no data: give data_dir \(--data_dir\), a folder with train.csv, val.csv"):
        SwagTask()
    with pytest.raises(ValueError, match=r"train_file: missing \(--train_file\)"):
        run(SwagTask(dev_file=data / "val.csv"), bert, tmp_path / "out", do_train=True)
    (data / "val.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"val\.csv: there is no such file; data_dir has train\.csv, val\.csv"):
        refused(SwagTask(data_dir=data), bert, tmp_path / "out2", do_eval=True)
    with pytest.raises(ValueError, match="train data do not tell the right choices"):
        run(SwagTask(train_file=data / "test.csv"), bert, tmp_path / "out3", do_train=True)
