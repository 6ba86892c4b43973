"""Answer extraction from end to end on a small made-up data set: what is learned, scored, written and refused."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from pytorch_transformers import BertConfig, BertForQuestionAnswering, BertTokenizer
from pytorch_transformers.cli.main import main
from pytorch_transformers.data.batches import collate
from pytorch_transformers.data.squad import read_squad
from pytorch_transformers.data.squad_metrics import squad_metrics
from pytorch_transformers.training.task import Source
from pytorch_transformers.training.tasks.squad import SquadTask
from saved_bert import SIZES, save_tiny_bert
from squad_files import save_squad
from training.small import NO_DROPOUT

NAMES = ("predictions.json", "nbest_predictions.json", "null_odds.json")


def squad(*arguments: object) -> int:
    """`train squad` with rows of 40 tokens, on the CPU."""
    common = ("--max_seq_length", "40", "--doc_stride", "10", "--no_cuda", "--seed", "1")
    return main(["train", "squad", *common, *map(str, arguments)])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT without the head."""
    return save_tiny_bert(tmp_path_factory.mktemp("base"), "BertModel", **NO_DROPOUT)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with files of version 2.0."""
    folder = tmp_path_factory.mktemp("squad")
    save_squad(folder / "train.json", 120, 0, version_2=True)
    save_squad(folder / "dev.json", 15, 1, version_2=True)
    return folder


@pytest.fixture(scope="module")
def trained(base: Path, files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a training with evaluation in the end. Nothing says that the data are of version 2.0."""
    folder = tmp_path_factory.mktemp("trained")
    data = ("--train_file", files / "train.json", "--predict_file", files / "dev.json")
    how = ("--num_train_epochs", 5, "--learning_rate", 5e-3, "--evaluate_every", 0)
    assert squad("--model", base, *data, "--output_dir", folder, "--do_train", "--do_eval", *how) == 0
    return folder


def metrics_of(folder: Path) -> dict[str, float]:
    metrics: dict[str, float] = json.loads((folder / "run.json").read_text("utf-8"))["metrics"]
    return metrics


def predictions_of(folder: Path) -> dict[str, str]:
    predictions: dict[str, str] = json.loads((folder / "predictions.json").read_text("utf-8"))
    return predictions


def printed_metrics(printed: str) -> dict[str, float]:
    return {name: float(value) for name, value in (line.split(" = ") for line in printed.splitlines())}


def test_learns_answers_and_where_there_is_none(trained: Path) -> None:
    metrics = metrics_of(trained)
    assert metrics["total"] == 30
    assert metrics["exact_match"] > 80  # one of some ten words, or none: chance is below 10
    assert metrics["f1"] >= metrics["exact_match"]
    assert BertForQuestionAnswering.from_pretrained(trained).config.num_hidden_layers == SIZES["num_hidden_layers"]


def test_fault_h4_questions_without_an_answer_need_no_option(trained: Path, files: Path) -> None:
    """HF#2176, HF#2672: half of the questions scored 0 because the flag for version 2 was not given."""
    metrics = metrics_of(trained)
    assert metrics["NoAns_total"] == 5
    assert metrics["NoAns_exact"] > 50
    assert metrics["HasAns_exact"] > 80
    assert "" in predictions_of(trained).values()


def test_files_hold_what_was_scored(trained: Path, files: Path) -> None:
    assert {path.name for path in trained.iterdir()} >= {*NAMES, "config.json", "vocab.txt", "report.html"}
    odds = json.loads((trained / "null_odds.json").read_text("utf-8"))
    found = squad_metrics(read_squad(files / "dev.json"), predictions_of(trained), odds, null_threshold=float("inf"))
    assert found == metrics_of(trained)
    nbest = json.loads((trained / "nbest_predictions.json").read_text("utf-8"))
    assert nbest.keys() == predictions_of(trained).keys() == odds.keys()
    for candidates in nbest.values():
        assert 1 <= len(candidates) <= 21  # the empty answer, if it is not among the best 20, is listed last
        assert sum(candidate["probability"] for candidate in candidates) == pytest.approx(1)


def test_fault_h1_evaluation_alone_takes_the_trained_model(base: Path, files: Path, trained: Path) -> None:
    """HF#771, HF#115, HF#159: the original weights and a random head were scored."""
    before, weights = metrics_of(trained), (trained / "model.safetensors").read_bytes()
    status = squad("--model", base, "--predict_file", files / "dev.json", "--output_dir", trained, "--do_eval")
    assert status == 0
    assert metrics_of(trained) == before
    assert (trained / "model.safetensors").read_bytes() == weights


@pytest.mark.parametrize("do", ["--do_eval", "--do_predict"])
def test_a_new_head_is_not_scored(
    base: Path, files: Path, tmp_path: Path, do: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert squad("--model", base, "--predict_file", files / "dev.json", "--output_dir", tmp_path / "out", do) == 1
    assert "has no head for this task (qa_outputs" in capsys.readouterr().err
    assert not (tmp_path / "out" / "predictions.json").exists()


def test_prediction_prints_the_metrics_where_there_are_answers(
    files: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--model", trained, "--predict_file", files / "dev.json", "--output_dir", tmp_path, "--do_predict")
    assert squad(*flags) == 0
    printed = printed_metrics(capsys.readouterr().out)
    assert printed == pytest.approx(metrics_of(trained), rel=1e-5)
    assert metrics_of(tmp_path) == metrics_of(trained)  # in the record too
    assert predictions_of(tmp_path) == predictions_of(trained)
    assert squad(*flags, "--do_eval") == 0  # printed once, by the evaluation
    assert printed_metrics(capsys.readouterr().out) == printed
    assert predictions_of(tmp_path) == predictions_of(trained)


def test_prediction_without_answers_is_silent(
    files: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads((files / "dev.json").read_text("utf-8"))
    for paragraph in content["data"][0]["paragraphs"]:
        for question in paragraph["qas"]:
            del question["answers"], question["is_impossible"]
    asked = tmp_path / "asked.json"
    asked.write_text(json.dumps(content), encoding="utf-8")
    out = tmp_path / "out"
    assert squad("--model", trained, "--predict_file", asked, "--output_dir", out, "--do_predict") == 0
    assert capsys.readouterr().out == ""
    assert "" not in predictions_of(out).values()  # nothing says that one may be without an answer
    assert not (out / "null_odds.json").exists()
    flags = ("--do_predict", "--version_2_with_negative")
    assert squad("--model", trained, "--predict_file", asked, "--output_dir", out, *flags) == 0
    assert predictions_of(out) == predictions_of(trained)
    assert squad("--model", trained, "--predict_file", asked, "--output_dir", out, "--do_eval") == 1
    assert "has no answer to score against" in capsys.readouterr().err
    given = ("--model", trained, "--train_file", files / "train.json", "--predict_file", asked)
    assert squad(*given, "--output_dir", tmp_path / "new") == 1
    assert "asked.json: no answer to compare with in 30 questions" in capsys.readouterr().err
    assert not list((tmp_path / "new").glob("*"))


@pytest.mark.parametrize(
    ("flags", "empty"),
    [
        (["--no_version_2_with_negative"], 0),
        (["--null_score_diff_threshold", "1000"], 0),
        (["--null_score_diff_threshold", "-1000"], 30),
    ],
)
def test_options_for_the_empty_answer(files: Path, trained: Path, tmp_path: Path, flags: list[str], empty: int) -> None:
    common = ("--model", trained, "--predict_file", files / "dev.json", "--output_dir", tmp_path, "--do_eval")
    assert squad(*common, *flags) == 0
    assert list(predictions_of(tmp_path).values()).count("") == empty
    assert metrics_of(tmp_path)["NoAns_exact"] == (100 if empty else 0)
    assert (tmp_path / "null_odds.json").exists() == ("--no_version_2_with_negative" not in flags)


def task_for(files: Path, length: int = 40, **options: Any) -> SquadTask:
    """A task that is ready to give rows."""
    task = SquadTask(train_file=files / "train.json", predict_file=files / "dev.json", **options)
    tokenizer = BertTokenizer.from_pretrained(files.parent / "tokenizer")
    task.prepare(tokenizer, Source(model="", max_seq_length=length), training=True)
    return task


@pytest.fixture
def tokenizer_beside(base: Path, files: Path) -> None:
    link = files.parent / "tokenizer"
    if not link.exists():
        link.symlink_to(base)


@pytest.mark.usefixtures("tokenizer_beside")
def test_each_row_counts_once(files: Path) -> None:
    """Rows without the answer point to their class token; padding, which differs between the parts, changes nothing."""
    rows = task_for(files, length=18, doc_stride=4).training_rows()
    assert len(rows) > 240  # paragraphs of more than one window
    pointing: Sequence[bool] = [row["start_positions"] == row["end_positions"] == 0 for row in rows]
    assert 40 < sum(pointing) < len(rows)
    objective = task_for(files).objective()
    torch.manual_seed(0)
    model = BertForQuestionAnswering(BertConfig(**{**SIZES, **NO_DROPOUT}))
    whole, parts = collate(rows[:9]), [collate(rows[i : i + 3]) for i in (0, 3, 6)]
    assert objective.counts(whole) == {"loss": 9}
    mean = torch.stack([objective.terms(model, part)["loss"] for part in parts]).mean()
    assert len({part["input_ids"].shape[1] for part in parts}) > 1
    torch.testing.assert_close(objective.terms(model, whole)["loss"], mean, rtol=1e-6, atol=1e-6)
    alone = collate(rows[:1])
    torch.testing.assert_close(
        objective.terms(model, alone)["loss"], model(**alone).loss
    )  # without padding, the model's


@pytest.mark.usefixtures("tokenizer_beside")
@pytest.mark.parametrize("options", [{"doc_stride": 0}, {"max_query_length": 0}, {"processes": 0}])
def test_impossible_numbers_are_refused_at_once(files: Path, options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        task_for(files, **options)


def test_no_data() -> None:
    with pytest.raises(ValueError, match=r"--train_file.*--predict_file"):
        SquadTask()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--do_train", "--predict_file", "dev.json"], "train_file: missing (--train_file)"),
        (["--do_train", "--do_eval", "--train_file", "train.json"], "predict_file: missing (--predict_file)"),
        (["--train_file", "train.json"], "predict_file: missing (--predict_file)"),
        (["--do_predict", "--predict_file", "nowhere.json"], "nowhere.json: no such file"),
        (["--train_file", "train.json", "--predict_file", "broken.json"], "broken.json:1: not JSON"),
        (["--train_file", "train.json", "--predict_file", "empty.json"], "empty.json: has no questions"),
        (["--train_file", "train.json", "--predict_file", "dev.json", "--max_seq_length", "49"], "must be at most 48"),
        (["--train_file", "train.json", "--predict_file", "dev.json", "--n_best_size", "0"], "n_best_size"),
    ],
)
def test_mistakes_are_named_before_anything_is_trained(
    base: Path,
    files: Path,
    tmp_path: Path,
    flags: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (files / "broken.json").write_text("{", encoding="utf-8")
    (files / "empty.json").write_text('{"data": []}', encoding="utf-8")
    monkeypatch.chdir(files)
    assert squad("--model", base, "--output_dir", tmp_path / "out", *flags) == 1
    printed = capsys.readouterr()
    assert message in printed.err.splitlines()[-1]
    assert printed.out == ""
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True
