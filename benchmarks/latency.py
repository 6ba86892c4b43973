"""One short sentence at a time: what a service that answers single requests sees."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from .features import TOLERANCE, extractor
from .harness import Plan, Result, alternate, check_close
from .inputs import sentences
from .rivals import OnnxRuntime, Transformers, sentence_transformers_model

TOKENS: Final = 16
ROUNDS: Final = 15
#: Calls in a turn.
REPEATS: Final = 20
#: At most 1.5 times the latency of ONNX Runtime.
AIM: Final = 1 / 1.5


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure with and without tokenisation and pooling."""
    ours, hf, onnx = extractor(), Transformers(), OnnxRuntime(folder)
    library = sentence_transformers_model()
    text = _sentence(ours.tokenizer)
    ids = torch.tensor([ours.tokenizer(text)["input_ids"]])
    mask = torch.ones_like(ids)

    @torch.inference_mode()
    def ours_states() -> Tensor:
        states: Tensor = ours.model(ids, mask).last_hidden_state
        return states

    @torch.inference_mode()
    def hf_states() -> Tensor:
        states: Tensor = hf.model(input_ids=ids, attention_mask=mask).last_hidden_state
        return states

    def ours_vector() -> Tensor:
        return ours.encode([text], pooling="mean", normalize=True)

    def library_vector() -> Tensor:
        vector: Tensor = library.encode([text], convert_to_tensor=True, show_progress_bar=False)
        return vector

    whole = f"latency, sentence of {TOKENS} tokens to vector"
    inner = f"latency, {TOKENS} ids to hidden states"
    sides: list[tuple[str, str, Callable[[], Tensor], Callable[[], Tensor], float | None]] = [
        (whole, "ONNX Runtime", ours_vector, lambda: onnx.encode_one(text), AIM),
        (whole, "transformers", ours_vector, lambda: hf.encode([text]), None),
        (whole, "sentence-transformers", ours_vector, library_vector, None),
        (inner, "ONNX Runtime", ours_states, lambda: onnx.run(ids, mask), AIM),
        (inner, "transformers", ours_states, hf_states, None),
    ]
    for subject, name, mine, theirs, aim in sides:
        check = check_close(f"{subject} against {name}", mine(), theirs(), TOLERANCE)
        times = alternate(mine, theirs, plan.rounds(ROUNDS), repeats=REPEATS)
        note = f"{REPEATS} calls in a turn" + (", aim: 1.5 times the latency" if aim else "")
        yield Result(subject, name, "times as fast", times.speedups, check, aim, note=note)


def _sentence(tokenizer: Callable[..., dict[str, list[int]]]) -> str:
    """The first sentence of the right length; words of others where there is none."""
    candidates = sentences(4000)
    fitting = (text for text in candidates if len(tokenizer(text)["input_ids"]) == TOKENS)
    return next(fitting, "word " * (TOKENS - 2))
