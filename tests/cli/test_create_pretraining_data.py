"""`create-pretraining-data` and the script with the original's flags."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from data.pretraining.corpus import SPECIAL, document_words, make_documents, write_documents
from pytorch_transformers.data.pretraining import PretrainingDataset, TFRecordDataset
from shared_data import shared

from .conftest import Run

SCRIPT = Path(__file__).parents[2] / "examples" / "create_pretraining_data.py"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Documents in a folder of their own, and a vocabulary beside it."""
    folder = tmp_path / "text"
    folder.mkdir()
    for number in range(2):
        write_documents(folder / f"{number}.txt", make_documents(4, 10, seed=number))
    words = [word for number in range(4) for word in document_words(number)]
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, *words, "##x0", "##x1", "##x2"]) + "\n")
    return folder


def flags(text: Path, output: object, *more: object) -> list[str]:
    parts = ("--input_file", text / "*.txt", "--output_file", output, "--vocab_file", text.parent / "vocab.txt", *more)
    return [str(part) for part in parts]


def test_folder_of_shards(run: Run, text: Path) -> None:
    out = text.parent / "data"
    settings = ("--max_seq_length", 32, "--max_predictions_per_seq", 5, "--dupe_factor", 2, "--do_whole_word_mask")
    status, printed, errors = run("create-pretraining-data", *flags(text, out, *settings, "--processes", 2))
    assert (status, printed) == (0, "")
    data = PretrainingDataset(out, verify=True)
    assert f"{out}: {len(data)} instances of 8 documents in 1 shards" in errors
    assert data.index.mode == "streaming"
    assert data.index.options.do_whole_word_mask
    assert max(len(data[number]["input_ids"]) for number in range(len(data))) == 32
    status, _, errors = run("create-pretraining-data", *flags(text, out))
    assert status == 1
    assert "holds other training data already" in errors
    assert run("create-pretraining-data", *flags(text, out, "--overwrite", "--dynamic_masking"))[0] == 0
    assert PretrainingDataset(out).index.dynamic_masking


def test_records_in_both_modes(run: Run, text: Path) -> None:
    one, two = text.parent / "1.tfrecord", text.parent / "2.tfrecord"
    status, _, errors = run("create-pretraining-data", *flags(text, f"{one},{two}", "--max_seq_length", 32))
    assert status == 0
    count = len(TFRecordDataset([one, two]))
    assert f"{one}, {two}: {count} instances" in errors
    assert run("create-pretraining-data", *flags(text, one, "--mode", "streaming"))[0] == 0
    assert len(TFRecordDataset([one])) > 0


@pytest.mark.parametrize(
    ("output", "more", "message"),
    [
        ("a.tfrecord,b", (), "name one folder, or files that all end in .tfrecord"),
        ("a,b", (), "name one folder"),
        ("a.tfrecord", ("--dynamic_masking",), "--dynamic_masking needs a folder"),
        ("a.tfrecord", ("--no_next_sentence",), "needs a folder as output"),
        ("out", ("--max_seq_length", 3), "max_seq_length is 3"),
        ("text/0.txt", (), "is a file, and shards need a folder"),
    ],
)
def test_what_does_not_fit(
    run: Run, text: Path, monkeypatch: pytest.MonkeyPatch, output: str, more: tuple[object, ...], message: str
) -> None:
    monkeypatch.chdir(text.parent)
    status, _, errors = run("create-pretraining-data", *flags(text, output, *more))
    assert status == 1
    assert message in errors
    assert sorted(path.name for path in text.parent.iterdir()) == ["text", "vocab.txt"]


@pytest.fixture
def script() -> Callable[[list[str]], int]:
    spec = importlib.util.spec_from_file_location("create_pretraining_data", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main: Callable[[list[str]], int] = module.main
    return main


@pytest.mark.parametrize("boolean", ["--do_lower_case", "--do_lower_case=True"])
def test_script_makes_the_original_records(script: Callable[[list[str]], int], tmp_path: Path, boolean: str) -> None:
    golden = shared("goldens", "pretraining_data", "default.tfrecord")
    out = tmp_path / "out.tfrecord"
    vocab = shared("goldens", "tokenizers", "bert", "vocab.txt")
    arguments = [
        *(f"--input_file={golden.with_name('sample_text.txt')}", f"--output_file={out}", f"--vocab_file={vocab}"),
        *(boolean, "--max_seq_length=128", "--max_predictions_per_seq=20", "--masked_lm_prob=0.15"),
        *("--random_seed=12345", "--dupe_factor=5"),
    ]
    assert script(arguments) == 0
    assert out.read_bytes() == golden.read_bytes()


@pytest.mark.parametrize("boolean", ["--do_lower_case=False", "--nodo_lower_case", "--no_do_lower_case"])
def test_script_understands_false(script: Callable[[list[str]], int], text: Path, boolean: str) -> None:
    """In capitals no word of the vocabulary is left when nothing is lower-cased."""
    for path in text.iterdir():
        path.write_text(path.read_text().upper())
    out = text.parent / "out.tfrecord"
    assert script(flags(text, out, boolean, "--max_predictions_per_seq", 1)) == 0
    data = TFRecordDataset([out])
    known = {*range(5)}
    assert sum(set(data[number]["input_ids"]) <= known for number in range(len(data))) > 0.8 * len(data)


def test_one_document_is_refused_with_a_way_out(run: Run, text: Path) -> None:
    write_documents(text / "0.txt", make_documents(1, 10))
    (text / "1.txt").unlink()
    status, _, errors = run("create-pretraining-data", *flags(text, text.parent / "out"))
    assert status == 1
    assert "--no_next_sentence" in errors
    assert run("create-pretraining-data", *flags(text, text.parent / "out", "--no_next_sentence"))[0] == 0
