"""The model that a training begins with: a checkpoint, or new weights for a tokenizer and sizes that fit."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.utils import set_seed

from pytorch_transformers import BertForMaskedLM, BertForPreTraining, GPT2LMHeadModel, TransfoXLLMHeadModel
from pytorch_transformers.training.load import load_for
from pytorch_transformers.training.task import Source

from .corpora import KINDS, Corpora


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Corpora:
    return Corpora(tmp_path_factory.mktemp("corpora"))


def new(corpora: Corpora, family: str, **changes: Any) -> Source:
    folder = corpora.model(family)
    given = {"model": None, "tokenizer": str(folder), "config": str(folder / "config.json"), "max_seq_length": 24}
    return Source(**{**given, **changes})


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        ("bert", BertForPreTraining),
        ("bert without next sentence", BertForMaskedLM),
        ("gpt2", GPT2LMHeadModel),
        ("transfo_xl", TransfoXLLMHeadModel),
    ],
)
def test_from_a_checkpoint_and_from_nothing(corpora: Corpora, kind: str, head: type[Any]) -> None:
    family = KINDS[kind]
    saved = head.from_pretrained(corpora.model(family)).state_dict()
    source = Source(model=str(corpora.model(family)), max_seq_length=24)
    model, tokenizer = load_for(corpora.task(kind), source, source.model, training=True)
    assert type(model) is head
    assert all(torch.equal(tensor, saved[name]) for name, tensor in model.state_dict().items())
    states = []
    for seed in (3, 3, 4):
        set_seed(seed)
        made, _ = load_for(corpora.task(kind), new(corpora, family), None, training=True)
        assert type(made) is head
        assert {name: tensor.shape for name, tensor in made.state_dict().items()} == {
            name: tensor.shape for name, tensor in saved.items()
        }
        states.append(made.state_dict())
    matrices = [name for name, tensor in saved.items() if tensor.ndim > 1]
    assert all(torch.equal(states[0][name], states[1][name]) for name in saved)
    assert not any(torch.equal(states[0][name], states[2][name]) for name in matrices)
    assert not any(torch.equal(states[0][name], saved[name]) for name in matrices)
    assert len(tokenizer) == model.config.vocab_size


def test_a_vocabulary_file_is_a_tokenizer(corpora: Corpora) -> None:
    source = new(corpora, "bert", tokenizer=str(corpora.model("bert") / "vocab.txt"), do_lower_case=True)
    _, tokenizer = load_for(corpora.task("bert"), source, None, training=True)
    assert tokenizer.tokenize("BA ce") == ["ba", "ce"]


def other_vocabulary(corpora: Corpora, folder: Path) -> Path:
    """The same number of other words."""
    shutil.copytree(corpora.model("bert"), folder)
    words = (folder / "vocab.txt").read_text(encoding="utf-8").replace("ba\n", "xx\n")
    (folder / "vocab.txt").write_text(words, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("changes", "training", "message"),
    [
        ({"config": None}, True, r"config: missing \(--config\); without a model \(--model\)"),
        ({"tokenizer": None}, True, r"tokenizer: missing \(--tokenizer\); without a model"),
        ({"tokenizer": None, "config": None}, False, r"model: missing \(--model\); there is nothing to evaluate"),
    ],
)
def test_what_a_new_model_needs(corpora: Corpora, changes: dict[str, Any], training: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_for(corpora.task("bert"), new(corpora, "bert", **changes), None, training=training)


def changed_config(corpora: Corpora, folder: Path, **values: Any) -> str:
    path = folder / "config.json"
    content = json.loads((corpora.model("bert") / "config.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **values}), encoding="utf-8")
    return str(path)


def test_sizes_that_do_not_fit(corpora: Corpora, tmp_path: Path) -> None:
    make: Callable[..., str] = partial(changed_config, corpora, tmp_path)
    with pytest.raises(ValueError, match=r"config.json: vocab_size is 21 and the tokenizer has 20 tokens"):
        load_for(corpora.task("bert"), new(corpora, "bert", config=make(vocab_size=21)), None, training=True)
    source = new(corpora, "bert", config=make(max_position_embeddings=16))
    with pytest.raises(ValueError, match=r"inputs of 24 tokens are too long: the model has 16 positions"):
        load_for(corpora.task("bert"), source, None, training=True)
    for family in ("gpt2", "openai_gpt"):
        with pytest.raises(ValueError, match=r"max_seq_length: blocks of 65 tokens are too long: the model has \d\d"):
            load_for(corpora.task(family), new(corpora, family, max_seq_length=65), None, training=True)


def test_another_family(corpora: Corpora) -> None:
    with pytest.raises(ValueError, match=r"config.json: is of gpt2; this task is for bert"):
        load_for(corpora.task("bert"), new(corpora, "gpt2"), None, training=True)


def test_another_vocabulary(corpora: Corpora, tmp_path: Path) -> None:
    source = new(corpora, "bert", tokenizer=str(other_vocabulary(corpora, tmp_path / "other")))
    with pytest.raises(
        ValueError, match=r"made with another vocabulary, of 20 tokens; this tokenizer has 20\. Use the"
    ):
        load_for(corpora.task("bert"), source, None, training=True)
    task = corpora.task("gpt2", dev=False)
    task._data = corpora.data("openai_gpt")  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"made with another vocabulary, of \d+ tokens; this tokenizer has \d+"):
        load_for(task, new(corpora, "gpt2"), None, training=True)


def test_a_head_of_another_task(corpora: Corpora, tmp_path: Path) -> None:
    """A head of the same names and shapes was scored as if it had learned the task."""
    model = BertForPreTraining.from_pretrained(corpora.model("bert"))
    model.save_pretrained(tmp_path)
    shutil.copy(corpora.model("bert") / "vocab.txt", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["BertForMultipleChoice"]}))
    source = Source(model=str(tmp_path))
    with pytest.raises(ValueError, match="is a BertForMultipleChoice, and this task is for a BertForPreTraining"):
        load_for(corpora.task("bert"), source, str(tmp_path), training=False)
    load_for(corpora.task("bert"), source, str(tmp_path), training=True)
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["BertForPreTraining"]}))
    load_for(corpora.task("bert without next sentence"), source, str(tmp_path), training=False)  # it has that head too


def test_a_head_that_is_not_trained(corpora: Corpora, tmp_path: Path) -> None:
    BertForMaskedLM.from_pretrained(corpora.model("bert")).save_pretrained(tmp_path)
    shutil.copy(corpora.model("bert") / "vocab.txt", tmp_path)
    source = Source(model=str(tmp_path))
    with pytest.raises(ValueError, match="has no head for this task"):
        load_for(corpora.task("bert"), source, str(tmp_path), training=False)
    load_for(corpora.task("bert"), source, str(tmp_path), training=True)
