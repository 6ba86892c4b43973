"""RocStories as a whole: two losses with their weights, new tokens, held-out stories, and the saved model again."""

import csv
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from pytorch_transformers import OpenAIGPTDoubleHeadsModel, OpenAIGPTTokenizer
from pytorch_transformers.data.batches import collate
from pytorch_transformers.data.cloze import TASK_TOKENS
from pytorch_transformers.training.task import Source
from pytorch_transformers.training.tasks.cloze import ClozeTask

from .runs import learn, parts_make_no_difference, rows_of, run

HEADER = ["InputStoryid", *(f"InputSentence{number}" for number in range(1, 5))]
HEADER += ["RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2", "AnswerRightEnding"]
#: Numbers of tokens differ, so that a mean over tokens is none over stories.
ENDINGS = ("rain.", "a day in bed.", "no.", "the sun came out in time.")


def write_stories(path: Path, count: int, seed: int, *, answers: bool = True) -> list[int]:
    """Stories whose right ending begins with `z`; gives the answers."""
    draw = random.Random(seed)
    right = []
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER if answers else HEADER[:-1])
        for number in range(count):
            answer = draw.randint(1, 2)
            endings = [f"{'z' if n == answer else 'y'} {draw.choice(ENDINGS)}" for n in (1, 2)]
            story = ["he", draw.choice(("ran.", "was in.")), "it", "is."]
            writer.writerow([f"id{number}", *story, *endings, *([answer] if answers else [])])
            right.append(answer)
    return right


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    paths = {f"{split}_file": tmp_path / f"{split}.csv" for split in ("train", "dev", "test")}
    write_stories(paths["train_file"], 64, seed=1)
    write_stories(paths["dev_file"], 24, seed=2)
    write_stories(paths["test_file"], 9, seed=3, answers=False)
    return paths


def test_is_learned_and_predicted(gpt: Path, files: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    options: dict[str, Any] = {"num_train_epochs": 10, "learning_rate": 1e-2, "log_every": 1}
    record = learn(lambda: ClozeTask(**files), gpt, folder, **options)
    assert record["metrics"]["accuracy"] > 0.9  # chance is 0.5
    for point in record["history"]:
        if "learning_rate" in point:  # the parts of the loss, with their weights
            assert point["loss"] == pytest.approx(point["mc_loss"] + point["lm_loss"], rel=1e-5)
    header, *rows = rows_of(folder / "dev_predictions.tsv")
    assert header == ["index", "prediction", "label"]
    assert {row[2] for row in rows} == {"1", "2"}  # as the file has them
    assert sum(row[1] == row[2] for row in rows) / len(rows) == pytest.approx(record["metrics"]["accuracy"])
    run(ClozeTask(test_file=files["test_file"]), gpt, folder, do_predict=True)
    wanted = write_stories(tmp_path / "again.csv", 9, seed=3)
    _, *rows = rows_of(folder / "predictions.tsv")
    assert sum(row[1] == str(answer) for row, answer in zip(rows, wanted, strict=True)) >= 8
    model = OpenAIGPTDoubleHeadsModel.from_pretrained(folder)
    tokenizer = OpenAIGPTTokenizer.from_pretrained(folder)
    assert model.config.n_special == len(TASK_TOKENS)
    assert model.get_input_embeddings().num_embeddings == len(tokenizer)
    assert tokenizer.convert_tokens_to_ids(list(TASK_TOKENS)) == [len(tokenizer) - n for n in (3, 2, 1)]


def made(task: ClozeTask, model: Path, max_seq_length: int = 512) -> tuple[Any, Any]:
    """Model and tokenizer as a run makes them, for training."""
    tokenizer = OpenAIGPTTokenizer.from_pretrained(model)
    task.prepare(tokenizer, Source(model=str(model), max_seq_length=max_seq_length), training=True)
    torch.manual_seed(3)
    loaded = OpenAIGPTDoubleHeadsModel.from_pretrained(model, **task.config())
    task.adjust(loaded)
    return loaded, tokenizer


def test_terms_are_means_over_what_is_counted(gpt: Path, files: dict[str, Any]) -> None:
    """The published loss, lm_coef * lm_loss + mc_loss, put together again from single stories."""
    task = ClozeTask(**files, lm_coef=0.7)
    model, _ = made(task, gpt)
    rows = task.training_rows()[:5]
    assert len({len(choice) for row in rows for choice in row["input_ids"]}) > 2
    objective = task.objective()
    batch = collate(rows)
    output = model(**batch)
    terms = objective.terms(model, batch)
    assert terms["mc_loss"].item() == output.mc_loss.item()
    assert terms["lm_loss"].item() == pytest.approx(0.7 * output.lm_loss.item(), rel=1e-6)
    assert objective.counts(batch) == {
        "mc_loss": 5,
        "lm_loss": sum(len(choice) - 1 for row in rows for choice in row["input_ids"]),
    }
    sums = {"mc_loss": 0.0, "lm_loss": 0.0}
    for row in rows:
        single = collate([row])
        counts = objective.counts(single)
        for name, term in objective.terms(model, single).items():
            sums[name] += term.item() * counts[name]
    for name, count in objective.counts(batch).items():
        assert sums[name] / count == pytest.approx(terms[name].item(), abs=1e-6)


def test_parts_of_a_batch_do_not_change_the_result(gpt: Path, files: dict[str, Any], tmp_path: Path) -> None:
    """Parts have different numbers of words."""
    parts_make_no_difference(lambda: ClozeTask(**files), gpt, tmp_path)


def test_goes_on_from_a_checkpoint_to_the_same_weights(gpt: Path, files: dict[str, Any], tmp_path: Path) -> None:
    """The matrix that two layers share is in a checkpoint once."""
    folder = tmp_path / "out"
    options: dict[str, Any] = {"do_train": True, "max_steps": 6, "save_every": 3}
    run(ClozeTask(**files), gpt, folder, **options)
    first = OpenAIGPTDoubleHeadsModel.from_pretrained(folder).state_dict()
    shutil.copytree(folder / "checkpoints", tmp_path / "stopped" / "checkpoints")
    run(ClozeTask(**files), gpt, tmp_path / "stopped", **options)
    second = OpenAIGPTDoubleHeadsModel.from_pretrained(tmp_path / "stopped").state_dict()
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def test_another_weight_is_another_training(gpt: Path, files: dict[str, Any], tmp_path: Path) -> None:
    options: dict[str, Any] = {"do_train": True, "max_steps": 2, "save_every": 1}
    run(ClozeTask(**files), gpt, tmp_path / "out", **options)
    shutil.copytree(tmp_path / "out" / "checkpoints", tmp_path / "stopped" / "checkpoints")
    with pytest.raises(ValueError, match=r"with coefficients \{'lm_loss': 0\.9\} \(now \{'lm_loss': 0\.5\}\)"):
        run(ClozeTask(**files, lm_coef=0.5), gpt, tmp_path / "stopped", **options)


def test_holds_the_same_stories_out(gpt: Path, files: dict[str, Any], tmp_path: Path) -> None:
    task = ClozeTask(train_file=files["train_file"], n_valid=20)
    made(task, gpt)
    learned, held_out = task._split("train"), task._split("dev")
    assert (len(learned), len(held_out)) == (44, 20)
    assert {story.guid for story in learned} | {story.guid for story in held_out} == {f"id{n}" for n in range(64)}
    again = ClozeTask(train_file=files["train_file"], n_valid=20)
    assert again._split("dev") == held_out
    assert [story.guid for story in held_out] != [f"id{n}" for n in range(44, 64)]  # drawn
    whole = ClozeTask(**files, n_valid=20)  # there is a file of its own
    assert (len(whole._split("train")), len(whole._split("dev"))) == (64, 24)


def test_no_more_tokens_than_the_model_takes(gpt: Path, files: dict[str, Any]) -> None:
    for given, most in ((512, 64), (20, 20)):
        task = ClozeTask(**files)
        made(task, gpt, max_seq_length=given)
        lengths = [len(choice) for row in task.training_rows() for choice in row["input_ids"]]
        assert max(lengths) <= most
    assert max(lengths) == 2 * (20 // 2 - 2) + len(TASK_TOKENS)


def test_what_cannot_be_used(gpt: Path, bert: Path, files: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no data: give files \(--train_file, --dev_file, --test_file\)"):
        ClozeTask()
    with pytest.raises(ValueError, match="lm_coef: -1"):
        ClozeTask(**files, lm_coef=-1)
    with pytest.raises(ValueError, match="n_valid: 64 of the 64 stories"):
        run(ClozeTask(train_file=files["train_file"], n_valid=64), gpt, tmp_path / "a", do_train=True)
    with pytest.raises(ValueError, match="no head for this task"):
        run(ClozeTask(**files), gpt, tmp_path / "a", do_eval=True)
    with pytest.raises(ValueError, match="is of bert; this task is for openai_gpt"):
        run(ClozeTask(**files), bert, tmp_path / "a", do_train=True)


def test_new_vectors_are_not_scored(gpt: Path, files: dict[str, Any], tmp_path: Path) -> None:
    """A model with both heads that does not know the task's tokens (H1)."""
    model = OpenAIGPTDoubleHeadsModel.from_pretrained(gpt)
    shutil.copytree(gpt, tmp_path / "heads")
    model.save_pretrained(tmp_path / "heads")
    with pytest.raises(ValueError, match="no vectors for the task's own tokens"):
        run(ClozeTask(**files), tmp_path / "heads", tmp_path / "out", do_eval=True)


def test_tokenizer_of_another_model(gpt: Path, files: dict[str, Any], tmp_path: Path) -> None:
    shutil.copytree(gpt, tmp_path / "other")
    vocabulary = json.loads((gpt / "vocab.json").read_text(encoding="utf-8"))
    more = {**vocabulary, "zz": len(vocabulary)}
    (tmp_path / "other" / "vocab.json").write_text(json.dumps(more), encoding="utf-8")
    with pytest.raises(ValueError, match=f"the tokenizer has {len(more)} tokens and the model {len(vocabulary)}"):
        run(ClozeTask(**files), tmp_path / "other", tmp_path / "out", do_train=True)
