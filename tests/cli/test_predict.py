"""`predict` from end to end, with models that `train` saved: labels, scores, tags and answers."""

import io
import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from pytorch_transformers import BertTokenizer
from pytorch_transformers.cli.main import main
from pytorch_transformers.cli.predict import _windows
from pytorch_transformers.data.squad import read_squad
from saved_bert import COMMAND, POSITIONS, environment, save_tiny_bert, some_texts
from squad_files import save_squad

from .conftest import Run

TEXTS = [*some_texts(20), "cook onions ||| two cups", "a ||| b ||| c"]
PAIRS = [*TEXTS[:-2], ("cook onions", "two cups"), ("a ||| b", "c")]
LABELS = ("rain", "food")
#: Words -> their tag; all others have O.
TAGS = {"onions": "B-FOOD", "flour": "B-FOOD", "rain": "B-SKY", "cloud": "B-SKY"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT without a head."""
    return save_tiny_bert(tmp_path_factory.mktemp("base"), "BertModel", hidden_dropout_prob=0.0)


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Folders of models that were trained on files beside them, by task."""
    folder = tmp_path_factory.mktemp("trained")
    draw = random.Random(0)
    lines = ["text\tlabel"]
    for _ in range(120):
        label = draw.randrange(2)
        words = draw.choices(("the", "a", "on", "until", "."), k=5)
        words.insert(draw.randint(0, 5), ("cloud", "flour")[label])
        lines.append(f"{' '.join(words)}\t{LABELS[label]}")
    (folder / "texts.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sentences = [draw.choices((*TAGS, "the", "a", "on", "until"), k=draw.randint(2, 9)) for _ in range(80)]
    columns = "\n".join("".join(f"{word} {TAGS.get(word, 'O')}\n" for word in words) for words in sentences)
    (folder / "train.txt").write_text(columns, encoding="utf-8")
    (folder / "test.txt").write_text(columns[: columns.index("\n\n", 600)] + "\n", encoding="utf-8")
    save_squad(folder / "train.json", 30)
    save_squad(folder / "dev.json", 8, 1, version_2=True)
    flags: dict[str, tuple[object, ...]] = {
        "classify": ("--train_file", folder / "texts.tsv", "--do_train"),
        "tokens": (
            *("--train_file", folder / "train.txt", "--test_file", folder / "test.txt"),
            *("--do_train", "--do_predict"),
        ),
        "squad": (
            *("--train_file", folder / "train.json", "--predict_file", folder / "dev.json"),
            *("--do_train", "--do_predict", "--doc_stride", "10"),
        ),
    }
    common: tuple[object, ...] = (
        *("--model", base, "--no_cuda", "--max_seq_length", POSITIONS, "--save_every", 0),
        *("--learning_rate", 5e-3, "--train_batch_size", 8, "--num_train_epochs", 6),
    )
    for task, given in flags.items():
        command = ["train", task, *map(str, (*given, *common)), "--output_dir", str(folder / task)]
        assert main(command) == 0
    yield {task: folder / task for task in flags}
    from accelerate.state import AcceleratorState, GradientState

    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


def rows(printed: str) -> list[Any]:
    return [json.loads(line) for line in printed.splitlines()]


def reference(folder: Path, texts: list[Any]) -> list[list[float]]:
    """The logits of `transformers`."""
    import transformers

    tokenizer = BertTokenizer.from_pretrained(folder)
    model = transformers.BertForSequenceClassification.from_pretrained(folder).eval()
    logits = []
    with torch.no_grad():
        for text in texts:
            pair = (text,) if isinstance(text, str) else text
            batch = tokenizer(*pair, truncation=True, max_length=POSITIONS, return_tensors="pt")
            logits.append(model(**batch).logits[0].tolist())
    return logits


def test_labels_with_their_probabilities(run: Run, trained: dict[str, Path], tmp_path: Path) -> None:
    text, out = tmp_path / "in.txt", tmp_path / "new" / "out.jsonl"
    text.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    status, printed, errors = run(
        "predict", "--model", trained["classify"], "--input_file", text, "--output_file", out, "--batch_tokens", 64
    )
    assert (status, printed) == (0, "")
    assert f"inputs were longer than {POSITIONS} tokens and cut" in errors
    found = rows(out.read_text("utf-8"))
    assert len(found) == len(TEXTS)
    for row, logits in zip(found, reference(trained["classify"], PAIRS), strict=True):
        shares = torch.tensor(logits).softmax(-1).tolist()
        assert list(row["probabilities"]) == sorted(LABELS)
        assert list(row["probabilities"].values()) == pytest.approx(shares, abs=1e-5)
        assert row["probability"] == max(row["probabilities"].values())
        assert row["probabilities"][row["label"]] == row["probability"]


def test_what_was_learned_is_told(run: Run, trained: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfa the flour .\r\non a cloud until the\n"))
    )
    status, printed, _ = run("predict", "--model", trained["classify"])
    assert status == 0
    assert [row["label"] for row in rows(printed)] == ["food", "rain"]
    assert all(row["probability"] > 0.9 for row in rows(printed))


def test_scores(run: Run, tmp_path: Path) -> None:
    folder = save_tiny_bert(tmp_path, "BertForSequenceClassification", num_labels=1)
    text = tmp_path / "in.txt"
    text.write_text("\n".join(TEXTS), encoding="utf-8")
    status, printed, _ = run("predict", "--model", folder, "--input_file", text)
    assert status == 0
    assert [row.keys() for row in rows(printed)] == [{"score"}] * len(TEXTS)
    wanted = [logits[0] for logits in reference(folder, PAIRS)]
    assert [row["score"] for row in rows(printed)] == pytest.approx(wanted, abs=1e-5)


def test_tags_of_columns_and_of_lines(run: Run, trained: dict[str, Path], tmp_path: Path) -> None:
    columns = trained["tokens"].parent / "test.txt"
    status, printed, _ = run("predict", "--model", trained["tokens"], "--input_file", columns, "--format", "conll")
    assert status == 0
    assert printed == (trained["tokens"] / "predictions.txt").read_text("utf-8")
    pairs = [line.split("\t") for line in printed.splitlines() if line]
    assert sum(tag == TAGS.get(word, "O") for word, tag in pairs) > 0.95 * len(pairs)
    sentences = [[line.split("\t")[0] for line in part.splitlines()] for part in printed.split("\n\n") if part]
    assert len(sentences) > 10
    lines = tmp_path / "in.txt"
    lines.write_text("\n".join(map(" ".join, sentences)) + "\n", encoding="utf-8")
    assert run("predict", "--model", trained["tokens"], "--input_file", lines)[:2] == (0, printed)


def test_no_word_is_lost(run: Run, trained: dict[str, Path], tmp_path: Path) -> None:
    """Long sentences, words of many pieces, unknown ones, ' ||| ' and empty lines."""
    lines = ["onions " * 100, "", "the ||| cloud ||| rain", "qqqqqqqqqqqqqqqqqqqqqq\u00a0\u4e2d\u6587  \u200b flour"]
    text = tmp_path / "in.txt"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    status, printed, _ = run("predict", "--model", trained["tokens"], "--input_file", text, "--window", 2)
    assert status == 0
    sentences = printed.split("\n\n")
    assert [[pair.split("\t")[0] for pair in sentences[0].split("\n")]] == [["onions"] * 100]
    words = [line.partition("\t")[0] for line in printed.splitlines()]
    assert words == [word for line in lines for word in (*line.split(), "")]
    assert all("\t" in line for line in printed.splitlines() if line)


def test_answers_to_a_squad_file_are_those_of_the_training(run: Run, trained: dict[str, Path], tmp_path: Path) -> None:
    dev = trained["squad"].parent / "dev.json"
    flags = ("--max_seq_length", POSITIONS, "--doc_stride", 10)
    status, printed, _ = run("predict", "--model", trained["squad"], "--input_file", dev, *flags)
    assert status == 0
    wanted = json.loads((trained["squad"] / "predictions.json").read_text("utf-8"))
    nbest = json.loads((trained["squad"] / "nbest_predictions.json").read_text("utf-8"))
    assert {row["id"]: row["answer"] for row in rows(printed)} == wanted
    contexts = {question.id: question.context for question in read_squad(dev)}
    for row in rows(printed):
        assert [each["text"] for each in row["nbest"]] == [each["text"] for each in nbest[row["id"]]]
        shares = [each["probability"] for each in nbest[row["id"]]]
        assert [each["probability"] for each in row["nbest"]] == pytest.approx(shares, abs=1e-4)
        for each in ({**row, "text": row["answer"]}, *row["nbest"]):
            if each["text"]:
                assert contexts[row["id"]][each["start"] : each["end"]] == each["text"]
            else:
                assert each["start"] is each["end"] is None


def test_questions_on_lines(run: Run, trained: dict[str, Path], tmp_path: Path) -> None:
    questions = read_squad(trained["squad"].parent / "dev.json")
    asked: list[dict[str, Any]] = [{"question": each.text, "context": each.context} for each in questions]
    asked[0]["id"], asked[1]["id"] = "same", "same"
    asked.append({"question": "oven ?", "context": "flour ||| ONIONS", "id": 7, "more": None})
    lines = tmp_path / "in.jsonl"
    lines.write_text("\n\n".join(map(json.dumps, asked)) + "\n", encoding="utf-8")
    command = ("predict", "--model", trained["squad"], "--input_file", lines)
    status, printed, _ = run(*command)
    assert status == 0
    found = rows(printed)
    assert [row.get("id") for row in found] == ["same", "same", *[None] * (len(asked) - 3), 7]
    for row, given in zip(found, asked, strict=True):
        assert row["answer"] == given["context"][row["start"] : row["end"]] != ""
        assert row["answer"] == row["nbest"][0]["text"]
    status, printed, _ = run(*command, "--window", 3, "--batch_tokens", 50)
    assert [(row["start"], row["end"]) for row in rows(printed)] == [(row["start"], row["end"]) for row in found]
    status, printed, _ = run(*command, "--n_best_size", 1)
    assert [row["nbest"][0]["text"] for row in rows(printed)] == [row["answer"] for row in rows(printed)]
    assert all(len(row["nbest"]) == 1 for row in rows(printed))
    status, printed, _ = run(*command, "--version_2_with_negative", "--null_score_diff_threshold=-1000")
    assert {(row["answer"], row["start"], row["end"]) for row in rows(printed)} == {("", None, None)}


@pytest.mark.parametrize("flags", [("--dtype", "bfloat16"), ("--window", 3), ("--batch_tokens", 1)])
def test_labels_do_not_depend_on_batches(run: Run, trained: dict[str, Path], tmp_path: Path, flags: Any) -> None:
    text = tmp_path / "in.txt"
    text.write_text("\n".join(TEXTS), encoding="utf-8")
    command = ("predict", "--model", trained["classify"], "--input_file", text)
    wanted, found = rows(run(*command)[1]), rows(run(*command, *flags)[1])
    tolerance = 0.2 if "--dtype" in flags else 2e-6
    for one, other in zip(wanted, found, strict=True):
        assert list(one["probabilities"].values()) == pytest.approx(
            list(other["probabilities"].values()), abs=tolerance
        )


@pytest.mark.parametrize(
    ("task", "flags", "asked", "answer"),
    [
        ("squad", [], '{"question": "oven ?", "context": "the flour"}\n', '{"answer": "flour", "start": 4, "end": 9, '),
        ("tokens", ["--format", "conll"], "flour\n\n", "flour\tB-FOOD"),
    ],
)
def test_a_pipe_is_answered_as_it_comes(
    trained: dict[str, Path], task: str, flags: list[str], asked: str, answer: str
) -> None:
    command = [*COMMAND, "predict", "--model", str(trained[task]), *flags]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment(), text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(2):
            process.stdin.write(asked)
            process.stdin.flush()
            assert answer in process.stdout.readline()  # while the input is still open
            if task == "tokens":
                assert process.stdout.readline() == "\n"
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait() == 0
        assert process.stderr.read() == ""  # and no bar


def test_no_more_than_a_window_is_read_ahead() -> None:
    read = []

    def texts() -> Iterator[str | None]:
        for text in ("a", "b", "c", None, "d" * (1 << 22), "e", None, None, "f"):
            read.append(text)
            yield text

    windows = _windows(texts(), len, 2)
    assert next(windows) == read == ["a", "b"]
    assert next(windows) == ["c"]  # somebody waits for it
    assert read == ["a", "b", "c", None]
    assert [[text[0] for text in window] for window in windows] == [["d"], ["e"], ["f"]]


def test_lines_before_a_bad_one_are_answered(run: Run, trained: dict[str, Path], tmp_path: Path) -> None:
    text, out = tmp_path / "in.txt", tmp_path / "out.jsonl"
    text.write_bytes(b"flour\nrain\n\xff\nrain\n")
    command = ("predict", "--model", trained["classify"], "--input_file", text)
    status, printed, errors = run(*command)
    assert status == 1
    assert len(rows(printed)) == 2
    assert f"{text}, line 3: not UTF-8" in errors
    assert run(*command, "--output_file", out)[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]  # a file is whole or not there
    status, printed, errors = run(*command, "--on_bad_line", "replace")
    assert (status, len(rows(printed))) == (0, 4)
    assert "1 lines were not UTF-8" in errors


BAD_QUESTIONS = [
    ("{", "in.jsonl:2: not JSON"),
    ('{"question": "oven ?"}', "in.jsonl:2: "),
    ('["oven ?", "the flour"]', 'expected {"question": "...", "context": "..."}'),
    ('{"question": "oven ?", "context": 3}', "in.jsonl:2: "),
    ('{"question": "%s", "context": "the flour"}' % ("oven " * 60), "in.jsonl:2' of"),
]


@pytest.mark.parametrize(("line", "message"), BAD_QUESTIONS)
def test_bad_questions_are_named(
    run: Run, trained: dict[str, Path], tmp_path: Path, line: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text(f'{{"question": "oven ?", "context": "flour"}}\n{line}\n', encoding="utf-8")
    flags = ("--window", 1, "--max_seq_length", 40)
    status, printed, errors = run("predict", "--model", trained["squad"], "--input_file", "in.jsonl", *flags)
    assert status == 1
    assert len(rows(printed)) == 1
    assert message in errors.splitlines()[-1]


def test_bad_columns_are_named(
    run: Run, trained: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("flour O\n\non O\ncloud\n", encoding="utf-8")
    command = ("predict", "--model", trained["tokens"], "--input_file", "in.txt", "--format", "conll")
    status, printed, errors = run(*command)
    assert (status, printed) == (1, "flour\tB-FOOD\n\n")
    assert "in.txt:4: 1 columns" in errors


def test_task_of_a_model_that_does_not_say_it(run: Run, trained: dict[str, Path], tmp_path: Path) -> None:
    for name in ("model.safetensors", "vocab.txt", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((trained["classify"] / name).read_bytes())
    config = json.loads((trained["classify"] / "config.json").read_text("utf-8"))
    del config["architectures"]  # the published packages wrote none
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    text = tmp_path / "in.txt"
    text.write_text("flour\n", encoding="utf-8")
    status, printed, errors = run("predict", "--model", tmp_path, "--input_file", text)
    assert (status, printed) == (1, "")
    assert "names no class as its architecture" in errors
    assert "--task classify, tokens, squad" in errors
    status, printed, _ = run("predict", "--model", tmp_path, "--input_file", text, "--task", "classify")
    assert status == 0
    assert printed == run("predict", "--model", trained["classify"], "--input_file", text)[1]
    status, _, errors = run("predict", "--model", tmp_path, "--input_file", text, "--task", "squad")
    assert status == 1
    assert "has no trained head for the task squad (qa_outputs.weight" in errors


REFUSED: list[tuple[list[object], str]] = [
    (["--input_file", "missing.txt"], "missing.txt"),
    (["--input_file", "."], "directory"),
    (["--output_file", "."], "no file"),
    (["--output_file", "in.txt"], "is the input file"),
    (["--max_seq_length", "1000"], f"max_seq_length: 1000, must be at most {POSITIONS}"),
    (["--device", "cuda:99"], "--device cuda:99: no such device"),
    (["--format", "conll"], "--format conll: is for models that tag words"),
    (["--n_best_size", "0"], "n_best_size"),
    (["--model", "./nowhere"], "nowhere"),
]


@pytest.mark.parametrize(("flags", "message"), REFUSED, ids=lambda each: each[-1] if isinstance(each, list) else "")
def test_mistakes_are_named(
    run: Run,
    trained: dict[str, Path],
    tmp_path: Path,
    flags: list[object],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("flour\n", encoding="utf-8")
    status, printed, errors = run("predict", "--model", trained["classify"], "--input_file", "in.txt", *flags)
    assert (status, printed) == (1, "")
    assert message in errors.splitlines()[-1]
    assert errors.splitlines()[-1].startswith("pytorch_transformers predict: ")
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_a_model_without_such_a_head(run: Run, base: Path, tmp_path: Path) -> None:
    text = tmp_path / "in.txt"
    text.write_text("flour\n", encoding="utf-8")
    status, _, errors = run("predict", "--model", base, "--input_file", text)
    assert status == 1
    assert "BertModel as its architecture, and predictions need BertForSequenceClassification" in errors


def test_help_has_an_example_and_waits_for_nothing() -> None:
    script = (
        "import sys; from pytorch_transformers.cli.main import main\n"
        "try: main(['predict', '--help'])\n"
        "except SystemExit: print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([COMMAND[0], "-c", script], capture_output=True, text=True, env=environment(), check=True)
    assert "example:\n  pytorch_transformers predict --model" in done.stdout
    assert done.stdout.splitlines()[-1] == "False False"
