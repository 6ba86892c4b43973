"""`fill-mask` against the logits of `transformers`."""

import dataclasses
import io
import json
from pathlib import Path

import pytest
import torch

from pytorch_transformers import BertTokenizer
from pytorch_transformers.cli.main import main
from pytorch_transformers.models import family
from pytorch_transformers.models.bert import FAMILY
from saved_bert import VOCABULARY, save_tiny_bert

from .conftest import Run


def expected(folder: Path, text: str, top_k: int) -> list[list[tuple[str, float]]]:
    """For each mask the likeliest words with their probabilities."""
    import transformers

    batch = BertTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    model = transformers.BertForMaskedLM.from_pretrained(folder).eval()
    with torch.no_grad():
        shares = model(**batch).logits[0].softmax(-1)
    rows = [shares[i] for i, token in enumerate(batch["input_ids"][0]) if token == VOCABULARY.index("[MASK]")]
    best = [sorted(enumerate(row.tolist()), key=lambda pair: -pair[1])[:top_k] for row in rows]
    return [[(VOCABULARY[token], share) for token, share in row] for row in best]


def test_several_texts_and_masks_as_json(run: Run, tiny: Path) -> None:
    texts = ["cook [MASK] until golden", "[MASK] rain [MASK]"]
    status, printed, _ = run("fill-mask", *texts, "--model", tiny, "--top_k", 3, "--json")
    assert status == 0
    found = [json.loads(line) for line in printed.splitlines()]
    assert [each["text"] for each in found] == texts
    for text, each in zip(texts, found, strict=True):
        wanted = expected(tiny, text, 3)
        assert [[word["token"] for word in mask] for mask in each["masks"]] == [[word for word, _ in m] for m in wanted]
        for mask, row in zip(each["masks"], wanted, strict=True):
            assert [word["probability"] for word in mask] == pytest.approx([share for _, share in row], abs=1e-6)


def test_table(run: Run, tiny: Path) -> None:
    status, printed, _ = run("fill-mask", "--model", tiny, "--top_k", 2, "[MASK] rain [MASK]")
    assert status == 0
    wanted = ""
    for number, row in enumerate(expected(tiny, "[MASK] rain [MASK]", 2), 1):
        wanted += f"[MASK] rain [MASK]  (mask {number})\n"
        wanted += "".join(f"  {share:7.4f}  {word}\n" for word, share in row)
    assert printed == wanted


def test_more_words_than_the_vocabulary_has(run: Run, tiny: Path) -> None:
    status, printed, _ = run("fill-mask", "[MASK]", "--model", tiny, "--top_k", 10_000)
    assert status == 0
    assert len(printed.splitlines()) == 1 + len(VOCABULARY)


@pytest.mark.parametrize(
    ("text", "message"),
    [("no mask", "no [MASK] in 'no mask'"), ("[MASK] " + "rain " * 99, "48 positions"), ("[mask]", "no [MASK] in")],
)
def test_text_that_cannot_be_filled(run: Run, tiny: Path, text: str, message: str) -> None:
    status, printed, errors = run("fill-mask", text, "--model", tiny)
    assert (status, printed) == (1, "")
    assert message in errors


def test_model_without_a_trained_head(run: Run, tmp_path: Path) -> None:
    save_tiny_bert(tmp_path, "BertModel")
    status, printed, errors = run("fill-mask", "[MASK]", "--model", tmp_path)
    assert (status, printed) == (1, "")
    assert "has no trained masked-language head" in errors


def test_family_without_masked_words(run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = {kind: name for kind, name in FAMILY.classes.items() if kind != "masked_lm"}
    monkeypatch.setattr(family, "FAMILIES", (dataclasses.replace(FAMILY, classes=classes),))
    status, printed, errors = run("fill-mask", "[MASK]", "--model", tiny)
    assert (status, printed) == (1, "")
    assert "bert has no masked lm; it has model, " in errors


def test_checkpoint_of_another_family(run: Run, tmp_path: Path) -> None:
    """Its weights fit BERT by name and shape, and the words would be wrong."""
    config = save_tiny_bert(tmp_path) / "config.json"
    config.write_text(config.read_text("utf-8").replace('"model_type": "bert"', '"model_type": "roberta"'), "utf-8")
    for arguments in (("fill-mask", "[MASK]", "--model"), ("features", "--model")):
        status, printed, errors = run(*arguments, tmp_path)
        assert (status, printed) == (1, "")
        assert "model_type is 'roberta'; this library has bert" in errors


def test_vocabulary_without_a_mask(run: Run, tmp_path: Path) -> None:
    save_tiny_bert(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"mask_token": null}', encoding="utf-8")
    status, printed, errors = run("fill-mask", "[MASK]", "--model", tmp_path)
    assert (status, printed) == (1, "")
    assert "has no mask token" in errors


def test_terminal_of_another_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that the terminal has no letters for is written with escapes."""
    save_tiny_bert(tmp_path)
    words = [*VOCABULARY[:-1], "größe"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", terminal)
    assert main(["fill-mask", "[MASK]", "--model", str(tmp_path), "--top_k", str(len(words))]) == 0
    assert b"gr\\xf6\\xdfe" in terminal.buffer.getvalue()
