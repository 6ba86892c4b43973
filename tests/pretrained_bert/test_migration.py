"""docs/migration.md: each row of its tables on the classic package names a test that there is. And tests of some."""

import io
import pickle
import re
from pathlib import Path

import pytest
import torch

from published import published
from pytorch_pretrained_bert import modeling

ROOT = Path(__file__).parents[2]
TESTS = [*(ROOT / "tests" / "pretrained_bert").glob("test_*.py"), *(ROOT / "tests" / "optim").glob("test_*.py")]


def test_each_row_names_its_test() -> None:
    text = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
    rows = 0
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        table = [line for line in section.splitlines() if line.startswith("|")]
        if not table or "| test |" not in table[0]:
            continue
        files = [path for path in TESTS if path.name in section] or TESTS
        there = set(re.findall(r"^def (test_\w+)", "\n".join(path.read_text("utf-8") for path in files), re.MULTILINE))
        for row in table[2:]:
            named = re.fullmatch(r".* \| `(test_\w+)` \|", row)
            assert named, f"no test is named: {row}"
            assert named[1] in there, f"{named[1]} is in none of {', '.join(path.name for path in files)}"
            rows += 1
    assert rows > 80


SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}


def test_the_same_seed_gives_other_weights_of_the_same_spread() -> None:
    """The layers are built in another order than in 0.6.2."""
    theirs = published("pytorch_pretrained_bert", "modeling")
    drawn = []
    for module in (modeling, theirs):
        torch.manual_seed(0)
        drawn.append(dict(module.BertModel(module.BertConfig(500, **SIZES)).named_parameters()))
    ours, other = drawn
    assert ours.keys() == other.keys()
    assert not torch.equal(ours["encoder.layer.1.output.dense.weight"], other["encoder.layer.1.output.dense.weight"])
    for name, weight in ours.items():
        if weight.ndim == 2 and weight.numel() > 4000:
            assert weight.std().item() == pytest.approx(other[name].std().item(), rel=0.05), name
        elif weight.ndim == 1:
            assert torch.equal(weight, other[name]), name


def test_whole_models_need_weights_only_false() -> None:
    model = modeling.BertModel(modeling.BertConfig(50, **SIZES))
    whole, state = io.BytesIO(), io.BytesIO()
    torch.save(model, whole)
    torch.save(model.state_dict(), state)
    whole.seek(0)
    state.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="weights_only"):
        torch.load(whole)
    whole.seek(0)
    found = torch.load(whole, weights_only=False)
    model.load_state_dict(torch.load(state))
    assert all(torch.equal(value, found.state_dict()[name]) for name, value in model.state_dict().items())
