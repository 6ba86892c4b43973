"""The notebooks: they run, what is stored in them is what they show, and their assertions can fail.

Kernels run once for each notebook. The many ways to fail run the same cells inside this process, which is quicker and
turns warnings into errors.
"""

import copy
import importlib.util
import logging
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient.exceptions import CellExecutionError

from shared_data import shared

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
#: Notebook -> start of the names of its recordings, prefix of its checkpoint.
NAMES = {
    "Comparing-TF-and-PT-models": ("pretraining", "pretraining/bert_model.ckpt"),
    "Comparing-TF-and-PT-models-SQuAD": ("squad", "squad/model.ckpt-4"),
    "Comparing-TF-and-PT-models-MLM-NSP": ("pretraining", "pretraining/bert_model.ckpt"),
}
#: Notebook -> recorded arrays that it compares.
COMPARED = {
    "Comparing-TF-and-PT-models": (
        *("embedding_output", "encoder_layer_0", "encoder_layer_1", "encoder_layer_2", "pooled_output"),
    ),
    "Comparing-TF-and-PT-models-SQuAD": ("start_logits", "end_logits", "loss"),
    "Comparing-TF-and-PT-models-MLM-NSP": (
        *("masked_lm_log_probs", "masked_lm_example_loss", "masked_lm_loss"),
        *("next_sentence_log_probs", "next_sentence_example_loss", "next_sentence_loss"),
    ),
}
VARIABLES = ("BERT_CHECKPOINT", "BERT_CONFIG", "BERT_RECORDED", "BERT_RECORDED_ERF")
RECORDED = sorted(path for path in FOLDER.glob("recorded/**/*") if path.is_file() and path.name != "README.md")
FIGURE = re.compile(r"\d\.\de[+-]\d\d")
#: Folders of one machine; a lookbehind keeps web addresses, longer paths and closing tags out.
MACHINE_PATH = re.compile(r"(?<![\w.:/<])/(?:work|root|home|Users|tmp|mnt|var|opt|usr)/|[A-Z]:\\\\")


def load_tool() -> ModuleType:
    """`tools/refresh_notebooks.py`, which is no module of the package."""
    spec = importlib.util.spec_from_file_location("refresh_notebooks", ROOT / "tools" / "refresh_notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load_tool()


def stored(name: str) -> Any:
    """The notebook in the repository."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]


def shown(notebook: Any) -> list[tuple[str, str, str]]:
    """All that a notebook shows: cell, kind, text or picture."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                found.append((cell.id, output.name, output.text))
            else:
                found += [(cell.id, kind, data) for kind, data in sorted(output.get("data", {}).items())]
    return found


@pytest.fixture(autouse=True)
def no_own_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of the person who runs the tests don't count."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A copy of the folder, with nothing beside it."""
    return Path(shutil.copytree(FOLDER, tmp_path / "notebooks", ignore=shutil.ignore_patterns("__pycache__")))


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets `run` find `comparison`, and leaves no trace of it."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.chdir(FOLDER)
    logger = logging.getLogger("pytorch_transformers")
    level = logger.level
    yield
    logger.setLevel(level)
    sys.modules.pop("comparison", None)


def run(name: str) -> dict[str, Any]:
    """Run the cells of a notebook in this process; returns its variables."""
    variables: dict[str, Any] = {}
    for cell in stored(name).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{name}: {cell.id}", "exec"), variables)
    return variables


def perturbed(recorded: Path, into: Path, array: str) -> str:
    """A recording in which one value of one array is off by twice the bound."""
    with np.load(recorded) as arrays:
        changed = {key: value.copy() for key, value in arrays.items()}
    changed[array].reshape(-1)[-1:] += 2e-5
    np.savez(into / "perturbed.npz", allow_pickle=False, **changed)
    return str(into / "perturbed.npz")


@pytest.mark.parametrize("name", NAMES)
def test_runs_and_shows_what_is_stored(name: str, elsewhere: Path) -> None:
    """Figures of differences may vary by rounding: other processors add in another order."""
    now = TOOL.execute(elsewhere / f"{name}.ipynb", elsewhere)
    before, after = shown(stored(name)), shown(now)
    refresh = "run python tools/refresh_notebooks.py"
    assert [entry[:2] for entry in before] == [entry[:2] for entry in after], refresh
    for (cell, kind, old), (_, _, new) in zip(before, after, strict=True):
        if kind == "image/png":
            continue  # its figures are those of the tables
        assert FIGURE.sub("#", old) == FIGURE.sub("#", new), f"{cell}: {refresh}"
        then, today = (list(map(float, FIGURE.findall(text))) for text in (old, new))
        assert np.allclose(then, today, rtol=0.2, atol=1e-6), f"{cell}: {refresh}"
    kinds = {kind for _, kind, _ in after}
    assert kinds == {"stdout", "text/plain", "text/html", "image/png"}


def test_failure_of_the_assertion_is_seen_in_a_kernel(elsewhere: Path, tmp_path: Path) -> None:
    name = "Comparing-TF-and-PT-models"
    path = perturbed(elsewhere / "recorded" / "pretraining_reference.npz", tmp_path, "encoder_layer_1")
    with pytest.raises(CellExecutionError) as raised:
        TOOL.execute(elsewhere / f"{name}.ipynb", elsewhere, BERT_RECORDED=path)
    assert raised.value.ename == "AssertionError"
    assert "encoder_layer_1: largest difference 2" in raised.value.evalue


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("name", "array"), [(name, array) for name, arrays in COMPARED.items() for array in arrays])
def test_each_quantity_is_checked(name: str, array: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One wrong value among thousands hardly moves a standard deviation; the other bound finds it."""
    recorded = FOLDER / "recorded" / f"{NAMES[name][0]}_reference.npz"
    monkeypatch.setenv("BERT_RECORDED", perturbed(recorded, tmp_path, array))
    with pytest.raises(AssertionError, match=rf"{array}: largest difference (1\.9|2\.\d)e-05 > 1e-05"):
        run(name)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", NAMES)
def test_erf_recording_is_checked(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = FOLDER / "recorded" / f"{NAMES[name][0]}_reference_erf.npz"
    monkeypatch.setenv("BERT_RECORDED_ERF", perturbed(recorded, tmp_path, COMPARED[name][0]))
    with pytest.raises(AssertionError, match=rf"ours with erf gelu: {COMPARED[name][0]}: largest difference"):
        run(name)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", NAMES)
def test_recording_of_the_other_formula_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERT_RECORDED", f"recorded/{NAMES[name][0]}_reference_erf.npz")
    with pytest.raises(AssertionError, match=r"std of difference [1-9]\.\de-05 > 1e-06"):
        run(name)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", NAMES)
def test_own_checkpoint(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files elsewhere, and none of ours: one run is enough."""
    kind, checkpoint = NAMES[name]
    recorded = FOLDER / "recorded"
    for path in (recorded / checkpoint).parent.glob("*.ckpt*"):
        shutil.copy(path, tmp_path / path.name.replace(Path(checkpoint).name, "mine"))
    shutil.copy(recorded / "bert_config.json", tmp_path / "sizes.json")
    shutil.copy(recorded / f"{kind}_reference.npz", tmp_path / "run.npz")
    monkeypatch.setenv("BERT_CHECKPOINT", str(tmp_path / "mine"))
    monkeypatch.setenv("BERT_CONFIG", str(tmp_path / "sizes.json"))
    monkeypatch.setenv("BERT_RECORDED", str(tmp_path / "run.npz"))
    monkeypatch.chdir(tmp_path)
    tables = run(name)["tables"]
    assert [table.title for table in tables] == ["TensorFlow with tanh gelu, ours with tanh gelu"]


@pytest.mark.parametrize("name", NAMES)
def test_stored_notebook_holds_nothing_of_the_machine_or_the_moment(name: str) -> None:
    notebook = stored(name)
    nbformat.validate(notebook)
    assert TOOL.stripped(copy.deepcopy(notebook)) == notebook
    texts = [cell.source for cell in notebook.cells]
    texts += [data for _, kind, data in shown(notebook) if kind != "image/png"]
    assert not [text for text in texts if MACHINE_PATH.search(text) or str(ROOT) in text]
    kinds = {output.output_type for cell in notebook.cells for output in cell.get("outputs", ())}
    assert kinds == {"stream", "display_data", "execute_result"}
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 200_000


def test_readme_has_the_figures_of_the_notebooks() -> None:
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    for name in NAMES:
        (line,) = [line for line in lines if f"({name}.ipynb)" in line]
        printed = next(
            text for cell, kind, text in reversed(shown(stored(name))) if (cell, kind) == ("result", "stdout")
        )
        stds, largest = zip(*re.findall(r"up to (\S+), largest difference (\S+)", printed), strict=True)
        assert FIGURE.findall(line) == [max(stds, key=float), max(largest, key=float)]


def test_every_notebook_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == NAMES.keys()


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_file_is_the_golden(path: Path) -> None:
    golden = shared("goldens", "bert", *path.relative_to(FOLDER / "recorded").parts)
    assert path.read_bytes() == golden.read_bytes()


def test_recorded_files_are_small_and_all_there() -> None:
    assert len(RECORDED) == 9
    assert sum(path.stat().st_size for path in RECORDED) < 1_000_000
