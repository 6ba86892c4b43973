"""GLUE: the real files as far as they are there, small ones of the same layout, and submissions."""

import logging
from collections import Counter
from pathlib import Path

import pytest

from pytorch_transformers import BertTokenizer
from pytorch_transformers.data.classification import TextExample, encode_texts, targets_of
from pytorch_transformers.data.glue import GLUE_TASKS, GlueTask, glue_metrics, glue_task
from pytorch_transformers.data.metrics import METRICS
from shared_data import shared

#: Folder under the shared data -> rows of each split, as the READMEs there count them.
ROWS = {
    ("mrpc",): {"train": 3668, "dev": 408, "test": 1725},
    ("glue", "CoLA"): {"train": 8551, "dev": 1043, "test": 1063},
    ("glue", "SST-2"): {"train": 67349, "dev": 872, "test": 1821},
    ("glue", "STS-B"): {"train": 5749, "dev": 1500, "test": 1379},
    ("glue", "RTE"): {"train": 2490, "dev": 277},
    ("glue", "WNLI"): {"train": 635, "dev": 71},
}
_PARSES = "sentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
_MNLI = f"index\tpromptID\tpairID\tgenre\t{_PARSES}\tsentence1\tsentence2"
#: Task -> header of its labelled files, a row, header of its test files, a row; as the benchmark distributes them.
SAMPLES = {
    "CoLA": ("", "gj04\t0\t*\tHe go.", "index\tsentence", "0\tHe go."),
    "SST-2": ("sentence\tlabel", "fine \t1", "index\tsentence", "0\tfine"),
    "MRPC": (
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        '1\t70\t71\t"Yes," he said.\tHe said "yes.',
        "\ufeffindex\t#1 ID\t#2 ID\t#1 String\t#2 String",
        '0\t70\t71\t"Yes," he said.\tHe said "yes.',
    ),
    "STS-B": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        "0\tg\tf\t2012\t0001\tnone\tnone\tA plane.\tAn air plane.\t3.800",
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2",
        "0\tg\tf\t2012\t0001\tnone\tnone\tA plane.\tAn air plane.",
    ),
    "QQP": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
        "133273\t213\t214\tHow?\tHow so?\t1",
        "id\tquestion1\tquestion2",
        "0\tHow?\tHow so?",
    ),
    "MNLI": (
        f"{_MNLI}\tlabel1\tgold_label",
        "0\t3\t3n\tg\t( a )\t( b )\t(R a)\t(R b)\tRain.\tNo rain.\tneutral\tcontradiction",
        _MNLI,
        "0\t3\t3n\tg\t( a )\t( b )\t(R a)\t(R b)\tRain.\tNo rain.",
    ),
    "QNLI": ("index\tquestion\tsentence\tlabel", "0\tWho?\tShe.\tnot_entailment", "index\tquestion\tsentence", ""),
    "RTE": ("index\tsentence1\tsentence2\tlabel", "0\tA.\tB.\tentailment", "index\tsentence1\tsentence2", "0\tA.\tB."),
    "WNLI": ("index\tsentence1\tsentence2\tlabel", "0\tA.\tB.\t0", "index\tsentence1\tsentence2", "0\tA.\tB."),
}
EXPECTED = {
    "CoLA": ("He go.", None, "0"),
    "SST-2": ("fine", None, "1"),
    "MRPC": ('"Yes," he said.', 'He said "yes.', "1"),
    "STS-B": ("A plane.", "An air plane.", "3.800"),
    "QQP": ("How?", "How so?", "1"),
    "MNLI": ("Rain.", "No rain.", "contradiction"),
    "QNLI": ("Who?", "She.", "not_entailment"),
    "RTE": ("A.", "B.", "entailment"),
    "WNLI": ("A.", "B.", "0"),
}
TASKS = pytest.mark.parametrize("task", GLUE_TASKS.values(), ids=lambda task: task.name)


def lines(path: Path, *found: str) -> Path:
    path.write_bytes("".join(f"{line}\r\n" for line in found if line).encode())
    return path


def fields(examples: list[TextExample]) -> list[tuple[str | None, ...]]:
    return [(example.text_a, example.text_b, example.label) for example in examples]


def test_the_tasks() -> None:
    assert [task.name for task in GLUE_TASKS.values()] == list(SAMPLES)
    for name in ("sts-b", "STSB", "stsb", "STS-B", "Sts_B"):
        assert glue_task(name) is GLUE_TASKS["sts-b"]
    assert glue_task("sst2") is glue_task("SST-2") is GLUE_TASKS["sst-2"]
    with pytest.raises(ValueError, match=r"GLUE has no task 'SNLI'; it has CoLA, SST-2, .*WNLI"):
        glue_task("SNLI")


@TASKS
def test_records_are_consistent(task: GlueTask) -> None:
    assert set(task.metric_names) <= METRICS.keys()
    assert task.best_metric in task.metric_names
    assert (task.labels is None) == (task.name == "STS-B")
    mismatched = ["dev_mismatched", "test_mismatched"] if task.name == "MNLI" else []
    assert sorted(task.files) == sorted(["train", "dev", "test", *mismatched])
    assert task.dev_splits == ("dev", *mismatched[:1])
    assert task.test_splits == ("test", *mismatched[1:])


def test_labels_are_in_the_published_order() -> None:
    assert glue_task("MNLI").labels == ("contradiction", "entailment", "neutral")
    assert glue_task("RTE").labels == glue_task("QNLI").labels == ("entailment", "not_entailment")
    assert all(glue_task(name).labels == ("0", "1") for name in ("CoLA", "SST-2", "MRPC", "QQP", "WNLI"))


@TASKS
def test_layout_of_labelled_files(tmp_path: Path, task: GlueTask) -> None:
    header, row, _, _ = SAMPLES[task.name]
    for split in ("train", *task.dev_splits):
        path = lines(tmp_path / task.files[split][0], header, row, row)
        assert task.file(tmp_path, split) == path
        examples = task.examples(tmp_path, split)
        assert fields(examples) == [EXPECTED[task.name]] * 2
        assert examples[1].place == f"{path}:{2 + bool(header)}"


@TASKS
def test_layout_of_test_files(tmp_path: Path, task: GlueTask) -> None:
    _, _, header, row = SAMPLES[task.name]
    for split in task.test_splits:
        lines(tmp_path / task.files[split][0], header, row or "0\tWho?\tShe.")
        (example,) = task.examples(tmp_path, split)
        assert (example.text_a, example.text_b, example.label) == (*EXPECTED[task.name][:2], None)
        assert example.guid == "0"


def test_original_distribution_of_mrpc(tmp_path: Path) -> None:
    """Its test file has labels, and no numbers."""
    header, row, _, _ = SAMPLES["MRPC"]
    task = glue_task("MRPC")
    lines(tmp_path / "msr_paraphrase_train.txt", header, row)
    lines(tmp_path / "msr_paraphrase_test.txt", header, row, row)
    assert fields(task.examples(tmp_path, "train")) == [EXPECTED["MRPC"]]
    assert [(example.guid, example.label) for example in task.examples(tmp_path, "test")] == [("0", "1"), ("1", "1")]


def test_matched_is_another_name(tmp_path: Path) -> None:
    task = glue_task("mnli")
    lines(tmp_path / "dev_matched.tsv", *SAMPLES["MNLI"][:2])
    assert task.examples(tmp_path, "dev_matched") == task.examples(tmp_path, "dev")
    with pytest.raises(ValueError, match="RTE has no split 'dev_matched'; there are train, dev, test"):
        glue_task("RTE").examples(tmp_path, "dev_matched")


def test_broken_rows_of_qqp_are_left_out_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    header, row, _, _ = SAMPLES["QQP"]
    path = lines(tmp_path / "train.tsv", header, row, "a question in\ttwo lines", row, "?")
    with caplog.at_level(logging.WARNING):
        examples = glue_task("QQP").examples(tmp_path, "train")
    assert fields(examples) == [EXPECTED["QQP"]] * 2
    assert caplog.messages == [f"{path}: 2 rows are left out, for they do not have 6 columns; the first is line 3"]


@pytest.mark.parametrize(
    ("name", "found", "said"),
    [
        ("RTE", [SAMPLES["RTE"][0], SAMPLES["RTE"][1], "1\tA.\tB."], r"train\.tsv:3: 3 columns, 4 columns expected"),
        ("RTE", ["index\tsentence1\tlabel", "0\tA\tB"], r"train\.tsv:1: .* needs the column 'sentence2'"),
        ("RTE", [SAMPLES["RTE"][0], "0\tA.\tB.\tneutral"], r":2: unknown label 'neutral'; the labels are 'entailment'"),
        ("CoLA", ["gj04\t1\tHe goes."], r"train\.tsv:1: 3 columns, 4 columns expected: source, label, mark, sentence"),
        ("CoLA", ["gj04\t1\t\tHe goes.", "gj04\t2\t\tHe go."], r":2: unknown label '2'; the labels are '0', '1'"),
        ("STS-B", [SAMPLES["STS-B"][0], SAMPLES["STS-B"][1] + "x"], r":2: the score is '3.800x'; expected a number"),
        ("SST-2", [SAMPLES["SST-2"][0]], r"train\.tsv:1: the file has no rows"),
    ],
)
def test_malformed_rows_are_named_with_file_and_line(tmp_path: Path, name: str, found: list[str], said: str) -> None:
    lines(tmp_path / "train.tsv", *found)
    with pytest.raises(ValueError, match=said):
        glue_task(name).examples(tmp_path, "train")


def test_missing_file_says_what_the_folder_should_hold(tmp_path: Path) -> None:
    said = "no train.tsv or msr_paraphrase_train.txt in .*; the folder of MRPC should hold .*, dev.tsv, test.tsv or"
    with pytest.raises(FileNotFoundError, match=said):
        glue_task("MRPC").examples(tmp_path, "train")


@pytest.mark.parametrize("folder", ROWS, ids=lambda folder: folder[-1])
def test_real_files_have_as_many_rows_as_their_readme_says(folder: tuple[str, ...]) -> None:
    task = glue_task(folder[-1])
    for split, rows in ROWS[folder].items():
        examples = task.examples(shared("data", *folder), split)
        assert len(examples) == rows
        assert all((example.label is None) == (split == "test") for example in examples)
        if split != "train" or task.name not in ("CoLA", "MRPC", "SST-2"):
            continue
        assert [example.guid for example in examples[-2:]] == [str(rows - 2), str(rows - 1)]


def test_labels_of_the_real_mrpc() -> None:
    task = glue_task("MRPC")
    for split, positive in (("train", 2474), ("dev", 279)):
        examples = task.examples(shared("data", "mrpc"), split)
        assert Counter(targets_of(examples, task.labels))[1] == positive
    assert examples[0].text_b == '"The foodservice pie business does not fit our long-term growth strategy.'


@pytest.mark.parametrize("folder", ROWS, ids=lambda folder: folder[-1])
def test_real_rows_are_encoded_as_one_would_by_hand(folder: tuple[str, ...]) -> None:
    """The columns are cut out of the lines here once more, and each text is encoded alone."""
    task = glue_task(folder[-1])
    path = shared("data", *folder, "dev.tsv")
    tokenizer = BertTokenizer(shared("data", "vocab", "bert-base-uncased-vocab.txt"))
    places = {"MRPC": (3, 4), "CoLA": (3,), "SST-2": (0,), "STS-B": (7, 8), "RTE": (1, 2), "WNLI": (1, 2)}[task.name]
    raw = path.read_text(encoding="utf-8-sig").split("\n")[task.name != "CoLA" :][:20]
    found = encode_texts(task.examples(path.parent, "dev")[:20], tokenizer, 512, labels=task.labels)
    assert found.truncated == 0
    for row, line in zip(found.rows, raw, strict=True):
        ids, types = [tokenizer.cls_token_id], [0]
        for segment, place in enumerate(places):
            part = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(line.split("\t")[place]))
            ids += [*part, tokenizer.sep_token_id]
            types += [segment] * (len(part) + 1)
        assert row["input_ids"] == ids
        assert row["token_type_ids"] == types


def test_scores_of_a_task() -> None:
    found = glue_task("MRPC").metrics([1, 1, 0, 0], [1, 0, 0, 0])
    assert found == pytest.approx({"accuracy": 3 / 4, "f1": 2 / 3, "accuracy_and_f1": 17 / 24})
    assert glue_metrics("mnli", [2, 1], [2, 0]) == {"accuracy": 0.5}
    assert glue_metrics("cola", [1, 0, 0], [1, 0, 1]) == pytest.approx({"matthews": 0.5, "accuracy": 2 / 3})
    assert list(glue_metrics("stsb", [0.5, 1.5], [1, 5])) == ["pearson", "spearman", "pearson_and_spearman"]


def numbered(count: int) -> list[TextExample]:
    return [TextExample(str(number), "text") for number in range(count)]


@pytest.mark.parametrize(
    ("name", "split", "predictions", "file", "answers"),
    [
        ("MNLI", "test", [2, 0, 1], "MNLI-m.tsv", ["neutral", "contradiction", "entailment"]),
        ("MNLI", "test_mismatched", [0], "MNLI-mm.tsv", ["contradiction"]),
        ("MNLI", "test_matched", [0], "MNLI-m.tsv", ["contradiction"]),
        ("QNLI", "test", [1], "QNLI.tsv", ["not_entailment"]),
        ("CoLA", "test", [1, 0], "CoLA.tsv", ["1", "0"]),
        ("STS-B", "test", [2.34567, -0.2, 5.01], "STS-B.tsv", ["2.346", "0.000", "5.000"]),
    ],
)
def test_submission(
    tmp_path: Path, name: str, split: str, predictions: list[float], file: str, answers: list[str]
) -> None:
    path = glue_task(name).write_predictions(tmp_path / "out", numbered(len(answers)), predictions, split)
    assert path == tmp_path / "out" / file
    rows = "".join(f"{number}\t{answer}\n" for number, answer in enumerate(answers))
    assert path.read_bytes() == f"index\tprediction\n{rows}".encode()


def test_submission_has_the_numbers_of_the_file(tmp_path: Path) -> None:
    lines(tmp_path / "test.tsv", "id\tquestion1\tquestion2", "3\tA?\tB?", "9\tA?\tB?")
    task = glue_task("QQP")
    path = task.write_predictions(tmp_path, task.examples(tmp_path, "test"), [1, 0])
    assert path.read_text() == "index\tprediction\n3\t1\n9\t0\n"


def test_what_is_no_submission_is_refused(tmp_path: Path) -> None:
    task = glue_task("RTE")
    with pytest.raises(ValueError, match="1 predictions for 2 examples"):
        task.write_predictions(tmp_path, numbered(2), [0])
    with pytest.raises(ValueError, match="the prediction 2 is the number of none of the 2 labels"):
        task.write_predictions(tmp_path, numbered(1), [2])
    with pytest.raises(ValueError, match="GLUE takes predictions of test, not of dev"):
        task.write_predictions(tmp_path, numbered(1), [0], "dev")
    assert not list(tmp_path.iterdir())
