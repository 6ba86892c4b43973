"""Tags of words as a whole: learned, saved with their names, evaluated alone, written in columns."""

import itertools
import random
from pathlib import Path

import pytest

from pytorch_transformers import BertForTokenClassification
from pytorch_transformers.data.columns import read_sentences
from pytorch_transformers.data.entities import entity_metrics
from pytorch_transformers.training.tasks.tokens import TokensTask

from .runs import learn, parts_make_no_difference, refused, rows_of, run

Words = list[tuple[str, str]]
#: A phrase is an entity, or is not.
PHRASES: list[Words] = [
    [("golden", "B-FOOD"), ("onions", "I-FOOD")],
    [("flour", "B-FOOD")],
    [("oven", "B-TOOL")],
    [("baking", "O")],
    [("the", "O"), ("rain", "O")],
    [("a", "O"), ("cloud", "O")],
]
LONG = 30


def write_columns(path: Path, count: int, seed: int, *, tags: bool = True, extra: Words | None = None) -> Path:
    """Sentences of phrases; the first is too long for a row."""
    draw = random.Random(seed)
    lengths = [LONG, *(draw.randint(1, 5) for _ in range(count - 1))]
    sentences = [list(itertools.chain(*draw.choices(PHRASES, k=length))) for length in lengths]
    if extra:
        sentences.append(extra)
    lines = ["".join(f"{word}\t{tag}\n" if tags else f"{word}\n" for word, tag in words) for words in sentences]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    write_columns(folder / "train.txt", 50, seed=1)
    write_columns(folder / "dev.txt", 20, seed=2)
    write_columns(folder / "test.txt", 7, seed=3, tags=False)
    return folder


def test_is_learned_and_predicted(bert: Path, data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "out"
    record = learn(lambda: TokensTask(data_dir=data), bert, folder, num_train_epochs=8, max_seq_length=24)
    assert record["metrics"]["f1"] > 0.9
    assert "train: sentences of more than max_seq_length, 24 tokens, are divided: 50 sentences are" in caplog.text
    gold = read_sentences(data / "dev.txt")
    found = read_sentences(folder / "dev_predictions.txt")
    assert [sentence.words for sentence in found] == [sentence.words for sentence in gold]
    scores = entity_metrics([s.tags or () for s in gold], [s.tags or () for s in found])
    assert scores == {name: record["metrics"][name] for name in scores}
    header, *rows = rows_of(folder / "entities.tsv")
    assert header == ["type", "precision", "recall", "f1", "support"]
    assert [row[0] for row in rows] == ["FOOD", "TOOL"]
    tags = [tag for sentence in gold for tag in sentence.tags or ()]
    assert [row[4] for row in rows] == [str(tags.count("B-FOOD")), str(tags.count("B-TOOL"))]
    run(TokensTask(test_file=data / "test.txt"), bert, folder, do_predict=True, max_seq_length=24)
    wanted = read_sentences(write_columns(tmp_path / "again.txt", 7, seed=3))
    predicted = read_sentences(folder / "predictions.txt")
    assert [sentence.words for sentence in predicted] == [sentence.words for sentence in wanted]
    assert entity_metrics([s.tags or () for s in wanted], [s.tags or () for s in predicted])["f1"] > 0.9
    model = BertForTokenClassification.from_pretrained(folder)
    assert model.config.id2label == dict(enumerate(["O", "B-FOOD", "B-TOOL", "I-FOOD"]))


def test_parts_of_a_batch_do_not_change_the_result(bert: Path, data: Path, tmp_path: Path) -> None:
    """Parts have different numbers of words."""
    parts_make_no_difference(lambda: TokensTask(data_dir=data), bert, tmp_path)


def test_tags_of_development_data(bert: Path, data: Path, tmp_path: Path) -> None:
    """Those given with the training become labels; those that come later were not found."""
    seen = write_columns(tmp_path / "seen.txt", 3, seed=4, extra=[("cup", "B-SEEN")])
    task = TokensTask(train_file=data / "train.txt", dev_file=seen)
    record = run(task, bert, tmp_path / "out", do_train=True, do_eval=True, num_train_epochs=6)
    labels = BertForTokenClassification.from_pretrained(tmp_path / "out").config.id2label.values()
    assert list(labels) == ["O", "B-FOOD", "B-SEEN", "B-TOOL", "I-FOOD"]
    assert 0 < record["metrics"]["recall"] < 1
    later = write_columns(tmp_path / "later.txt", 3, seed=4, extra=[("cup", "B-LATER")])
    alone = run(TokensTask(dev_file=later), bert, tmp_path / "out", do_eval=True)
    assert alone["metrics"]["recall"] == record["metrics"]["recall"]
    assert alone["metrics"]["loss"] < record["metrics"]["loss"]  # the unknown tag does not count there


def test_iob1_can_become_iob2(bert: Path, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("onions\tI-FOOD\nin\tO\nflour\tI-FOOD\nflour\tB-FOOD\n", encoding="utf-8")
    for iob2, wanted in ((False, ["O", "B-FOOD", "I-FOOD"]), (True, ["O", "B-FOOD"])):
        folder = tmp_path / str(iob2)
        run(TokensTask(train_file=path, iob2=iob2), bert, folder, do_train=True, max_steps=1)
        assert list(BertForTokenClassification.from_pretrained(folder).config.id2label.values()) == wanted


def test_what_cannot_be_used(bert: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no data: give data_dir"):
        TokensTask()
    with pytest.raises(ValueError, match="no head for this task"):
        run(TokensTask(data_dir=data), bert, tmp_path / "out", do_eval=True)
    with pytest.raises(ValueError, match=r"train_file: missing"):
        run(TokensTask(dev_file=data / "dev.txt"), bert, tmp_path / "out", do_train=True)
    with pytest.raises(FileNotFoundError, match=r"nowhere.train\.txt"):
        run(TokensTask(data_dir=tmp_path / "nowhere"), bert, tmp_path / "out", do_train=True)
    with pytest.raises(ValueError, match=r"dev_file: missing \(--dev_file\)"):
        refused(TokensTask(train_file=data / "train.txt"), bert, tmp_path / "out", do_eval=True)
