"""Transformer-XL against the published package 1.2.0: evaluation, a training step, and the memory that the loss takes.

Its predecessor 0.6.2 fails on every current PyTorch.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from pytorch_transformers import TransfoXLConfig, TransfoXLLMHeadModel
from pytorch_transformers.models.transfo_xl.evaluation import evaluate

from . import published
from .harness import MismatchError, Plan, Result, alternate, check_close, fresh_process, left_out

ROUNDS: Final = 7
#: Relative differences: the loss is a sum in another order, and so is each gradient. Where what goes into a rectifier
#: is within rounding of 0, one side lets a slope through that the other doesn't. With 20 million of them that happens a
#: few times, and all layers below see it: hence one limit for the middle one of the gradients, and one for all.
LOSS: Final = 1e-6
GRADIENT: Final = 1e-4
FLIPPED: Final = 1e-2
#: Segments of each stream in a turn of evaluation.
SEGMENTS: Final = 5
#: Shapes: a small one, and the base model for WikiText-103 (Dai et al. 2019; tf/scripts/wt103_base_gpu.sh).
SHAPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "4 layers x 256": {
        "vocab_size": 10_000,
        "cutoffs": [2000, 4000],
        "d_model": 256,
        "d_embed": 256,
        "n_head": 4,
        "d_head": 64,
        "d_inner": 1024,
        "n_layer": 4,
    },
    "WikiText-103 base": {
        "vocab_size": 267_735,
        "cutoffs": [20_000, 40_000, 200_000],
        "d_model": 410,
        "d_embed": 410,
        "n_head": 10,
        "d_head": 41,
        "d_inner": 2100,
        "n_layer": 16,
    },
}
#: With which WikiText-103 was trained, kimiyoung/transformer-xl, run_wt103_base.sh; attention's is 0 there.
DROPOUT: Final = 0.1
#: What both shapes share. The published package sees one key fewer with same_length, and adds 1e-5 to variances.
_COMMON: Final = {"div_val": 1, "untie_r": True, "dropout": 0.0, "dropatt": 0.0}
_LIKE_PUBLISHED: Final = {"same_length_one_fewer": True, "layer_norm_epsilon": 1e-5}
#: Lengths of both, from the same script, and rows of a batch.
_EVALUATION: Final = {"tgt_len": 64, "mem_len": 640, "clamp_len": 400, "same_length": True}
_TRAINING: Final = {"tgt_len": 150, "mem_len": 150, "clamp_len": -1, "same_length": False}
_ROWS: Final = {"evaluation": 10, "training": 4}
#: Tokens of the loss whose memory is measured.
_TOKENS: Final = 600
_LOSS_MEMORY: Final = """
import json, sys
import torch
from benchmarks.memory import Peak
from benchmarks.transfo_xl import words
from pytorch_transformers.models.transfo_xl.adaptive_softmax import ProjectedAdaptiveLogSoftmax

tokens, vocabulary, backward = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "backward"
torch.manual_seed(0)
softmax = ProjectedAdaptiveLogSoftmax(vocabulary, 410, 410, [20000, 40000, 200000])
for weight in softmax.parameters():
    torch.nn.init.normal_(weight, 0.0, 0.02)
    weight.grad = torch.zeros_like(weight)  # gradients of weights are there in any training loop
    weight.requires_grad_(False)
hidden, labels = torch.randn(tokens, 410, requires_grad=backward), words(tokens, vocabulary)
softmax(hidden[:8], labels[:8]).mean()
peak = Peak()
loss = softmax(hidden, labels).mean()
if backward:
    loss.backward()
print(json.dumps({"peak": peak.bytes(), "loss": loss.item()}))
"""


def words(count: int, vocabulary: int, seed: int = 1) -> Tensor:
    """Words [count] of a vocabulary that is ordered by frequency, the n-th drawn as often as 1 / n (Zipf)."""
    weights = 1.0 / torch.arange(1, vocabulary + 1, dtype=torch.float64)
    sums = weights.cumsum(0)
    draws = torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * sums[-1]
    return torch.searchsorted(sums, draws).clamp(max=vocabulary - 1)


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure both shapes.

    Raises:
        MismatchError: Losses or gradients differ.
    """
    del folder
    yield from _loss_memory(plan)
    original = published.load("pytorch_transformers", "modeling_transfo_xl")
    if original is None:
        left_out("Transformer-XL against 1.2.0", published.HOW)
        return
    for name, shape in list(SHAPES.items())[: 1 if plan.quick else None]:
        yield _evaluation(plan, original, name, shape)
        yield from _training(plan, original, name, shape)


def _both(original: Any, shape: Mapping[str, Any], lengths: Mapping[str, Any]) -> tuple[TransfoXLLMHeadModel, Any]:
    """The same model on both sides."""
    torch.manual_seed(0)
    values: dict[str, Any] = {**shape, **lengths, **_COMMON}
    ours = TransfoXLLMHeadModel(TransfoXLConfig(**{**values, **_LIKE_PUBLISHED}))
    theirs = original.TransfoXLLMHeadModel(
        original.TransfoXLConfig(
            **{"vocab_size_or_config_json_file" if k == "vocab_size" else k: v for k, v in values.items()}
        )
    )
    theirs.load_state_dict(ours.state_dict(), strict=False)
    theirs.tie_weights()
    return ours, theirs


def _evaluation(plan: Plan, original: Any, name: str, shape: Mapping[str, Any]) -> Result:
    ours, theirs = _both(original, shape, _EVALUATION)
    ours.eval(), theirs.eval()
    rows, length = _ROWS["evaluation"], _EVALUATION["tgt_len"] * (2 if plan.quick else SEGMENTS)
    text = words(rows * length + 1, shape["vocab_size"])
    inputs, labels = text[:-1].view(rows, length), text[1:].view(rows, length)

    def our_loss() -> float:
        return evaluate(ours, text, batch_size=rows, warm_up=0).loss

    @torch.no_grad()
    def their_loss() -> float:
        total, memory = 0.0, None
        for start in range(0, length, _EVALUATION["tgt_len"]):
            span = slice(start, start + _EVALUATION["tgt_len"])
            output = theirs(inputs[:, span], labels=labels[:, span].contiguous(), mems=memory)
            memory = output[-1]
            total += output[0].double().sum().item()
        return total

    subject = f"evaluation of Transformer-XL, {name}, {rows} x {length} tokens"
    check = _check_loss(subject, our_loss(), their_loss())
    times = alternate(our_loss, their_loss, plan.rounds(ROUNDS))
    return Result(subject, "pytorch-transformers 1.2.0", "times as fast", times.speedups, check, 1.5)


def _training(plan: Plan, original: Any, name: str, shape: Mapping[str, Any]) -> Iterator[Result]:
    """The step without dropout, where both sides must give the same, and with the dropout of the paper's runs."""
    ours, theirs = _both(original, shape, _TRAINING)
    rows, length = _ROWS["training"], _TRAINING["tgt_len"]
    text = words(rows * length + 1, shape["vocab_size"])
    inputs, labels = text[:-1].view(rows, length).contiguous(), text[1:].view(rows, length).contiguous()
    with torch.no_grad():
        memory = ours.eval()(inputs).mems
    ours.train(), theirs.train()

    def step(model: Any, mems: Any) -> float:
        model.zero_grad(set_to_none=True)
        loss = model(inputs, labels=labels, mems=mems)[0].mean()
        loss.backward()
        return float(loss.detach())

    copies = [layer.clone() for layer in memory]
    subject = f"training step of Transformer-XL, {name}, {rows} x {length} tokens"
    check = _check_loss(subject, step(ours, memory), step(theirs, copies))
    own = dict(ours.named_parameters())
    off = sorted(
        ((own[key].grad - weight.grad).norm() / weight.grad.norm()).item()
        for key, weight in theirs.named_parameters()
        if key in own
    )
    if not (off[len(off) // 2] <= GRADIENT and off[-1] <= FLIPPED):
        raise MismatchError(f"{subject}: gradients differ by {off[-1]:.1e} of their length")
    check = f"{check}, gradients within {off[len(off) // 2]:.1e} of their length, at most {off[-1]:.1e}"
    for rate in (0.0, DROPOUT):
        for model in (ours, theirs):
            _set_dropout(model, rate)
        times = alternate(lambda: step(ours, memory), lambda: step(theirs, copies), plan.rounds(ROUNDS))
        named = f"{subject}, dropout {rate:g}"
        yield Result(named, "pytorch-transformers 1.2.0", "times as fast", times.speedups, check, 1.5)


def _set_dropout(model: nn.Module, rate: float) -> None:
    """Of all but attention's probabilities, which are not dropped in the paper's runs."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Dropout) and not name.endswith("dropatt"):
            module.p = rate


def _check_loss(subject: str, ours: float, theirs: float) -> str:
    off = abs(ours - theirs) / abs(theirs)
    if not off <= LOSS:
        raise MismatchError(f"{subject}: losses {ours} and {theirs}")
    return f"loss within {off:.1e}"


def _loss_memory(plan: Plan) -> Iterator[Result]:
    """Peak memory of the loss over 267,735 words, as a share of the matrix of all scores."""
    words_of = SHAPES["WikiText-103 base"]["vocab_size"]
    whole = 4 * _TOKENS * words_of
    for way in ("forward", "backward"):
        found = [fresh_process(_LOSS_MEMORY, str(_TOKENS), str(words_of), way) for _ in range(plan.rounds(3))]
        yield Result(
            f"peak memory of the adaptive loss, {_TOKENS} tokens, {words_of:,} words, {way}",
            "the matrix of all scores",
            "of its size",
            tuple(each["peak"] / whole for each in found),
            check_close("loss", torch.tensor(found[0]["loss"]), torch.tensor(found[-1]["loss"]), 0.0),
            0.25,
            at_most=True,
            note=f"{found[0]['peak'] / 1e6:.0f} of {whole / 1e6:.0f} MB",
        )
