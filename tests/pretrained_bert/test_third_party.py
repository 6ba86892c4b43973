"""A program that others wrote for 0.6.2, from the package index and unchanged: bert-score 0.1.2.

`make test` installs it beside the published packages. docs/migration.md names others that ran, with what they need.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from published import folder, published
from pytorch_pretrained_bert import BertTokenizer
from shared_data import shared

from .downloads import download, download_bert

#: Behind everything else on the path: the folder has the published packages, too.
PROGRAM = """
import sys
sys.path.append(sys.argv.pop(1))
import matplotlib
matplotlib.use("Agg")
import pytorch_pretrained_bert
print(pytorch_pretrained_bert.__file__)
from cli.score import main
if __name__ == "__main__":
    main()
"""
CANDIDATES = ["the cat sat on the mat .", "people eat onions .", "a dog runs"]
REFERENCES = ["a cat sat on a mat .", "people cook onions until they are golden .", "dogs are running fast"]
LAYERS = 2


@pytest.mark.parametrize("weighted", [False, True])
def test_bert_score(weighted: bool, classic_folder: Path, tmp_path: Path) -> None:
    """Its command on files; the scores against the formula of its paper on the published model."""
    place = folder()
    if not (place / "bert_score").is_dir():
        pytest.skip("needs bert-score 0.1.2: see tests/published.py")
    words = shared("data", "vocab", "bert-base-uncased-vocab.txt")
    download(classic_folder, "bert-base-uncased-vocab.txt", words.read_bytes())
    core = download_bert(classic_folder, vocab_size=30522, type_vocab_size=2)
    options = ["--bert", "bert-base-uncased", "--num_layers", str(LAYERS), "--seg_level"]
    options += [] if weighted else ["--no_idf"]
    for option, texts in (("--cand", CANDIDATES), ("--ref", REFERENCES)):
        file = tmp_path / option
        file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        options += [option, os.fspath(file)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, os.fspath(place), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    origin, summary, *rows = done.stdout.splitlines()
    assert not origin.startswith(os.fspath(place))
    assert summary.startswith("bert-base-uncased_L2")
    expected = torch.tensor([scores(core, *pair, weighted) for pair in zip(CANDIDATES, REFERENCES, strict=True)])
    found = torch.tensor([[float(number) for number in row.split("\t")] for row in rows])
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-6)


def scores(core: Any, candidate: str, reference: str, weighted: bool) -> list[float]:
    """Precision, recall and F of greedy matching by cosine (Zhang et al. 2019, section 3)."""
    tokenizer = BertTokenizer.from_pretrained("bert-base-uncased")
    original = published("pytorch_pretrained_bert", "modeling")
    sizes = original.BertConfig(30522)
    sizes.__dict__.update({key: value for key, value in core.config.to_dict().items() if key in sizes.__dict__})
    model = original.BertModel(sizes).eval()
    model.load_state_dict(core.bert.state_dict())

    def ids(text: str) -> list[int]:
        return tokenizer.convert_tokens_to_ids(["[CLS]", *tokenizer.tokenize(text), "[SEP]"])

    seen = [set(ids(text)) for text in REFERENCES]

    def weight(token: int) -> float:
        if not weighted:
            return float(token not in (101, 102))
        return float(torch.tensor((len(seen) + 1) / (sum(token in each for each in seen) + 1)).log())

    def states(text: str) -> Any:
        with torch.no_grad():
            found = model(torch.tensor([ids(text)]))[0][LAYERS - 1][0]
        return found / found.norm(dim=-1, keepdim=True), torch.tensor([weight(token) for token in ids(text)])

    (left, left_weights), (right, right_weights) = states(candidate), states(reference)
    cosines = left @ right.T
    precision = (cosines.max(1).values * left_weights).sum() / left_weights.sum()
    recall = (cosines.max(0).values * right_weights).sum() / right_weights.sum()
    return [float(each) for each in (precision, recall, 2 * precision * recall / (precision + recall))]
