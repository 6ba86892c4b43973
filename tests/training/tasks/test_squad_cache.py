"""`--token_cache` from end to end: a later run, with rows of another length, takes the tokens of the first."""

from pathlib import Path

import pytest

from pytorch_transformers import BertTokenizer
from pytorch_transformers.cli.main import main
from pytorch_transformers.training.task import Source
from pytorch_transformers.training.tasks.squad import SquadTask
from saved_bert import save_tiny_bert
from squad_files import save_squad


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A BERT with the head, as if it were trained."""
    return save_tiny_bert(tmp_path / "base", "BertForQuestionAnswering")


def test_a_later_run_takes_the_tokens_of_the_first(base: Path, tmp_path: Path) -> None:
    data, cache = save_squad(tmp_path / "train.json", 10), tmp_path / "cache"

    def answers(name: str, *flags: object) -> str:
        given = ("--predict_file", data, "--output_dir", tmp_path / name, "--doc_stride", 8, *flags)
        assert main(["train", "squad", "--model", str(base), "--do_predict", "--no_cuda", *map(str, given)]) == 0
        return (tmp_path / name / "nbest_predictions.json").read_text("utf-8")

    answers("first", "--max_seq_length", 32, "--token_cache", cache)
    (path,) = cache.iterdir()
    before = path.stat().st_mtime_ns
    expected = answers("without", "--max_seq_length", 24)
    assert answers("later", "--max_seq_length", 24, "--token_cache", cache) == expected
    rows = []
    for place in (cache, None):
        task = SquadTask(train_file=data, doc_stride=8, token_cache=place)
        task.prepare(BertTokenizer.from_pretrained(base), Source(model="", max_seq_length=24), training=True)
        rows.append(task.training_rows())
    assert rows[0] == rows[1]
    assert [*cache.iterdir()] == [path]
    assert path.stat().st_mtime_ns == before
