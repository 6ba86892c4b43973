"""Vectors of many sentences: text in, one vector for each out, tokenisation and pooling included."""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor

from pytorch_transformers import FeatureExtractor
from pytorch_transformers.training.throughput import matrix_product_rate

from .environment import has_bfloat16
from .harness import MismatchError, Plan, Result, alternate, check_close, timed
from .inputs import model_folder, sentences
from .rivals import MAX_LENGTH, OnnxRuntime, Transformers, sentence_transformers_model

SENTENCES: Final = 1024
ROUNDS: Final = 4
#: What float32 vectors may differ by: they are added up in another order.
TOLERANCE: Final = 1e-5
#: What cosines to the float32 vectors may lack to 1 in bfloat16.
BFLOAT16_LOSS: Final = 1e-2
_AS_FAST: Final = "times as fast"


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure in float32 and, where the processor has it, in bfloat16."""
    texts = sentences(plan.size(SENTENCES))
    exact = yield from _float32(plan, folder, texts)
    if has_bfloat16():
        yield from _bfloat16(plan, texts, exact)


def extractor(dtype: torch.dtype = torch.float32) -> FeatureExtractor:
    """Our side."""
    return FeatureExtractor.from_pretrained(model_folder(), dtype=dtype, max_length=MAX_LENGTH)


def _float32(plan: Plan, folder: Path, texts: list[str]) -> Generator[Result, None, Tensor]:
    """Gives the results, and in the end the vectors."""
    subject = "features, float32"
    ours = extractor()
    hf = Transformers()
    library = sentence_transformers_model()
    onnx = OnnxRuntime(folder)
    rivals: list[tuple[str, Callable[[], Tensor], float | None, str]] = [
        (
            "sentence-transformers",
            lambda: library.encode(texts, convert_to_tensor=True, show_progress_bar=False),
            1.4,
            "its default call, batches of 32",
        ),
        ("transformers, batches of 32", lambda: hf.encode(texts), None, "in the order of the texts"),
        ("transformers, sorted batches", lambda: hf.encode_sorted(texts), None, ""),
        ("ONNX Runtime, sorted batches", lambda: onnx.encode_sorted(texts), 1.0, ""),
    ]

    def mine() -> Tensor:
        return ours.encode(texts, pooling="mean", normalize=True)

    vectors = mine()
    for name, theirs, aim, note in rivals:
        check = check_close(f"{subject} against {name}", vectors, theirs(), TOLERANCE)
        times = alternate(mine, theirs, plan.rounds(ROUNDS))
        yield Result(subject, name, _AS_FAST, times.speedups, check, aim, note=note)
    yield _share_of_peak(subject, mine, operations(ours, texts), torch.float32, plan.rounds(ROUNDS), 0.85)
    return vectors


def _bfloat16(plan: Plan, texts: list[str], exact: Tensor) -> Iterator[Result]:
    subject = "features, bfloat16"
    ours = extractor(torch.bfloat16)
    same: Any = sentence_transformers_model(torch.bfloat16)
    full: Any = sentence_transformers_model()

    def mine() -> Tensor:
        return ours.encode(texts, pooling="mean", normalize=True)

    def theirs(model: Any) -> Callable[[], Tensor]:
        return lambda: model.encode(texts, convert_to_tensor=True, show_progress_bar=False).float()

    check = f"{_cosines(subject, mine(), exact)}; theirs {_cosines(subject, theirs(same)(), exact)}"
    for name, model, aim in (("bfloat16", same, None), ("float32", full, 3.0)):
        times = alternate(mine, theirs(model), plan.rounds(ROUNDS))
        yield Result(subject, f"sentence-transformers, {name}", _AS_FAST, times.speedups, check, aim)
    yield _share_of_peak(subject, mine, operations(ours, texts), torch.bfloat16, plan.rounds(ROUNDS), None)


def _cosines(name: str, vectors: Tensor, exact: Tensor) -> str:
    cosines = F.cosine_similarity(vectors, exact)
    if not cosines.min().item() >= 1 - BFLOAT16_LOSS:
        raise MismatchError(f"{name}: a cosine to the float32 vector is only {cosines.min().item():.4f}")
    return f"cosine to float32: mean {cosines.mean().item():.5f}, least {cosines.min().item():.5f}"


def operations(ours: FeatureExtractor, texts: list[str]) -> float:
    """Floating-point operations of the matrix products for the real tokens of the texts, padding not counted."""
    config = ours.model.config
    H, F_, L = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    rows = ours.tokenizer(texts, truncation=True, max_length=MAX_LENGTH)["input_ids"]
    lengths = [len(row) for row in rows]
    linear = 2.0 * (4 * H * H + 2 * H * F_) * sum(lengths)
    attention = 4.0 * H * sum(length * length for length in lengths)
    return L * (linear + attention)


def _share_of_peak(
    subject: str, side: Callable[[], object], work: float, dtype: torch.dtype, rounds: int, aim: float | None
) -> Result:
    """The rate of one side over that of bare matrix products, measured right before and right after it."""
    shares = []
    before = matrix_product_rate(dtype)
    for _ in range(rounds):
        seconds = timed(side)
        after = matrix_product_rate(dtype)
        shares.append(work / seconds / max(before, after))
        before = after
    note = f"{work / 1e9:,.0f} * 10^9 operations on real tokens; the rest is tokenisation, softmax, pooling, …"
    return Result(subject, "matrix products alone", "of their rate", tuple(shares), "", aim, note=note)
