"""A small model learns English from nothing, and the command says the same of it as a plain loop does."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pytorch_transformers import TransfoXLConfig, TransfoXLLMHeadModel, TransfoXLTokenizer
from pytorch_transformers.cli.main import main
from pytorch_transformers.tokenization_transfo_xl import LMOrderedIterator
from shared_data import shared

SEGMENT = MEMORY = 32
LAYERS = 2


def split() -> tuple[list[str], list[str]]:
    """The lines to learn from, nine of ten, and those to be judged by."""
    text = shared("data", "lm", "wikitext-2", "valid.txt").read_text(encoding="utf-8")
    lines = text.removesuffix("\n").split("\n")
    cut = len(lines) * 9 // 10
    return lines[:cut], lines[cut:]


def batches(ids: Tensor, steps: int) -> Iterator[tuple[bool, Tensor, Tensor]]:
    """So many batches of 16 rows, over and over, and whether one is at the beginning of the rows."""
    while steps > 0:
        for number, (data, target, _) in enumerate(LMOrderedIterator(ids, bsz=16, bptt=SEGMENT)):
            if steps > 0:
                yield number == 0, data, target
            steps -= 1


def trained(words: int, cutoffs: list[int], ids: Tensor, steps: int) -> Any:
    """A model after so many steps. With so narrow layers the weights have to begin larger than the published ones."""
    torch.manual_seed(0)
    config = TransfoXLConfig(
        words,
        cutoffs=cutoffs,
        d_model=64,
        d_embed=64,
        n_head=4,
        d_head=16,
        d_inner=128,
        div_val=2,
        n_layer=LAYERS,
        tgt_len=SEGMENT,
        mem_len=MEMORY,
        clamp_len=-1,
        same_length=True,
        dropout=0.0,
        init_std=0.1,
        proj_init_std=0.1,
    )
    model = TransfoXLLMHeadModel(config).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)
    mems = None
    for begins, data, target in batches(ids, steps):
        output = model(data, None if begins else mems, labels=target)
        mems = output.mems
        output.loss.mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    return model.eval()


def perplexity(model: Any, text: Tensor) -> float:
    """One stream through `forward`, with the published memories."""
    mems, total = None, 0.0
    with torch.no_grad():
        for start in range(0, len(text) - 1, 100):
            target = text[start + 1 : start + 101]
            output = model(text[None, start : start + len(target)], mems, labels=target[None])
            mems, total = output.mems, total + float(output.loss.double().sum())
    return math.exp(total / (len(text) - 1))


def unigram_perplexity(text: Tensor, learned: Tensor, words: int) -> float:
    """That of the share of each word in the text to learn from, one added to each count."""
    counts = torch.bincount(learned, minlength=words).double() + 1
    return math.exp(-float((counts / counts.sum()).log()[text[1:]].mean()))


def check_learning(
    folder: Path, most: int | None, cutoffs: list[int], steps: int, share: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Learn, save, and ask the command; the perplexity is below that share of the unigram distribution's."""
    known, judged = split()
    tokenizer = TransfoXLTokenizer(special=["<eos>", "<unk>"], max_size=most)
    tokenizer.count_sents([tokenizer.tokenize(line, add_eos=True) for line in known])
    tokenizer.build_vocab()
    learned, text = (
        tokenizer.encode_sents([tokenizer.tokenize(line, add_eos=True) for line in lines], ordered=True)
        for lines in (known, judged)
    )
    assert isinstance(learned, Tensor)
    assert isinstance(text, Tensor)
    model = trained(len(tokenizer), cutoffs, learned, steps)
    found, unigram = perplexity(model, text), unigram_perplexity(text, learned, len(tokenizer))
    assert found < share * unigram, f"{found:.1f}, and words by their frequency {unigram:.1f}"

    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "judged.txt").write_text("".join(f"{line}\n" for line in judged), encoding="utf-8")
    lengths = ["--mem_len", MEMORY, "--clamp_len", -1, "--batch_size", 4, "--warm_up", LAYERS * MEMORY]
    flags = [
        "evaluate",
        "--model",
        folder,
        "--input_file",
        folder / "judged.txt",
        "--json",
        "--device",
        "cpu",
        *lengths,
    ]
    capsys.readouterr()
    assert main([str(flag) for flag in flags]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["perplexity"] == pytest.approx(found, rel=1e-5)
    assert said["tokens"] == len(text) - 1
    words = {word for line in known for word in line.split()} if most is None else set(tokenizer.idx2sym)
    assert said["unknown"] == sum(word not in words for line in judged for word in line.split())


def test_learns_frequent_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_learning(tmp_path, 2000, [500], 120, 0.75, capsys)


@pytest.mark.slow
def test_learns_all_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """13,000 words in three clusters."""
    check_learning(tmp_path, None, [1000, 4000], 300, 0.65, capsys)
