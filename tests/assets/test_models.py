"""The small models of `assets/`: what they hold, the numbers of an independent program, and that they learned."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

from models.compare import assert_same
from models.gpt2.reference import NumpyDecoder
from models.reference import NumpyBert
from models.transfo_xl.reference import NumpyTransfoXL
from pytorch_transformers import (
    BertForPreTraining,
    BertTokenizer,
    GPT2LMHeadModel,
    GPT2Tokenizer,
    TransfoXLLMHeadModel,
    TransfoXLTokenizer,
)
from pytorch_transformers.cli.main import main
from pytorch_transformers.generation.perplexity import perplexity
from pytorch_transformers.hub.shipped import SHIPPED
from pytorch_transformers.models.transfo_xl.evaluation import evaluate
from shared_data import shared

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "assets"
TEXT = "He opened the door and went into the room, where his sister was waiting for him."
#: Between float32 and float64 on trained weights, whose scores reach 20: a float32 has 24 bits.
LIMITS = {"max_abs": 1e-4, "max_std": 1e-5}


@pytest.fixture(autouse=True)
def in_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def arrays(model: torch.nn.Module) -> dict[str, Any]:
    return {name: value.numpy() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("name", SHIPPED)
def test_files(name: str) -> None:
    """Half precision, small enough for a repository, with the record of their training and its curves."""
    weights = ASSETS / name / "model.safetensors"
    assert weights.stat().st_size <= 12_000_000
    with safe_open(weights, "pt") as held:
        assert {held.get_slice(key).get_dtype() for key in held.keys()} == {"F16"}  # noqa: SIM118 - it is no dict
    record = json.loads((ASSETS / name / "training.json").read_text(encoding="utf-8"))
    assert record["training"]["tokens"] > 1_000_000
    assert record["metrics"]["loss"] > 0
    assert (ASSETS / name / "curves.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert name in (ASSETS / "README.md").read_text(encoding="utf-8")


def test_bert_gives_the_numbers_of_an_independent_program() -> None:
    """By its bare name and by its path, layer by layer."""
    for place in ("bert-mini-books", "assets/bert-mini-books"):
        model = BertForPreTraining.from_pretrained(place).eval()
        batch = BertTokenizer.from_pretrained(place)(TEXT, "Nobody spoke.", return_tensors="pt")
        with torch.no_grad():
            output = model(**batch, output_hidden_states=True)
        reference = NumpyBert(arrays(model), heads=model.config.num_attention_heads)
        encoded = reference.encode(batch["input_ids"].numpy(), None, batch["token_type_ids"].numpy())
        for number, (ours, theirs) in enumerate(zip(output.hidden_states, encoded.hidden_states, strict=True)):
            assert_same(ours, theirs, f"layer {number}", **LIMITS)
        assert_same(output.prediction_logits, reference.masked_lm(encoded.last), "words", **LIMITS)
        assert_same(output.seq_relationship_logits, reference.next_sentence(encoded.pooled), "pairs", **LIMITS)


def test_gpt2_gives_the_numbers_of_an_independent_program() -> None:
    model = GPT2LMHeadModel.from_pretrained("gpt2-mini-books").eval()
    ids = GPT2Tokenizer.from_pretrained("gpt2-mini-books")(TEXT, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        output = model(ids)
    reference = NumpyDecoder(arrays(model), heads=model.config.n_head, norm_first=True)
    assert_same(output.logits, reference.scores(reference.decode(ids.numpy()).last), "scores", **LIMITS)


def test_transfo_xl_gives_the_numbers_of_an_independent_program() -> None:
    """Two segments, the second with the memory of the first."""
    model = TransfoXLLMHeadModel.from_pretrained("transfo-xl-mini-books").eval()
    tokenizer = TransfoXLTokenizer.from_pretrained("transfo-xl-mini-books")
    ids = torch.tensor([tokenizer.encode(f"{TEXT} {TEXT}", add_special_tokens=False)])
    reference, mems, expected_mems = NumpyTransfoXL(arrays(model), model.config), None, None
    for piece in ids.split(-(-ids.shape[1] // 2), dim=1):
        with torch.no_grad():
            output = model(piece, mems)
        decoded = reference.decode(piece.numpy(), expected_mems)
        assert_same(output.prediction_scores, reference.log_probs(decoded.last), "log-probabilities", **LIMITS)
        mems, expected_mems = output.mems, decoded.mems


# They learned: a text that none of them has seen, from a book that was held out where the shared data are at hand.


def held_out() -> str:
    text = shared("data", "books", "pg120.txt").read_text(encoding="utf-8")
    start = text.index("PART ONE")
    chapter = text[text.index("I", start + 200) :]
    return " ".join(chapter[:20_000].split())


def test_bert_fills_in_words() -> None:
    """Every seventh word of a chapter: far above the 7 % of always saying the commonest token."""
    model = BertForPreTraining.from_pretrained("bert-mini-books").eval()
    tokenizer = BertTokenizer.from_pretrained("bert-mini-books")
    ids = tokenizer.encode(held_out(), add_special_tokens=False)[:3000]
    rows = torch.tensor(ids).view(-1, 60)
    wanted = rows[:, 3::7]
    masked = rows.clone()
    masked[:, 3::7] = tokenizer.mask_token_id or 0
    ends = torch.tensor([[tokenizer.cls_token_id, tokenizer.sep_token_id]]).expand(len(rows), 2)
    with torch.no_grad():
        scores = model(torch.cat([ends[:, :1], masked, ends[:, 1:]], dim=1)).prediction_logits[:, 1:-1]
    hits = (scores[:, 3::7].argmax(-1) == wanted).float().mean().item()
    assert hits > 0.22


def test_gpt2_predicts_words() -> None:
    """The unigram model has a perplexity of about 800 on the same tokens, the best 5-gram one of 156."""
    model = GPT2LMHeadModel.from_pretrained("gpt2-mini-books")
    ids = GPT2Tokenizer.from_pretrained("gpt2-mini-books").encode(held_out())
    assert perplexity(model, ids).value < 140


def test_transfo_xl_predicts_words() -> None:
    """And better with the memory than without; the unigram model has 403, the best 5-gram one 133."""
    model = TransfoXLLMHeadModel.from_pretrained("transfo-xl-mini-books").eval()
    tokenizer = TransfoXLTokenizer.from_pretrained("transfo-xl-mini-books")
    ids = torch.tensor(tokenizer.encode(held_out(), add_special_tokens=False))
    remembered, forgotten = (evaluate(model, ids, tgt_len=32, mem_len=length).value for length in (128, 0))
    assert remembered < 125
    assert remembered < forgotten


# Commands that take them where no model is named.


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    return run


def test_fill_mask(printed: Callable[..., str]) -> None:
    found = json.loads(printed("fill-mask", "--json", "--top_k", "10", "He opened the [MASK] and went in."))
    words = [word["token"] for word in found["masks"][0]]
    assert "door" in words


def test_generate(printed: Callable[..., str]) -> None:
    text = printed("generate", "--max_new_tokens", "20", "--seed", "1", "The next morning")
    assert text.startswith("The next morning")
    assert text.count(" ") > 10


def test_evaluate(printed: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT + "\n", encoding="utf-8")
    found = json.loads(printed("evaluate", "--json", "--input_file", str(tmp_path / "text.txt"), "--mem_len", "128"))
    assert 1 < found["perplexity"] < 403
    assert math.isclose(found["perplexity"], np.exp(found["loss"]), rel_tol=1e-6)
