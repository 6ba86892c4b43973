"""A step of BERT's pre-training, masked words and next sentences, against transformers' `BertForPreTraining`.

Forward, both losses and backward on the same batch with the same weights. Theirs computes the scores of all words at
all tokens before it looks which labels count; ours computes those that a label asks for (`output_logits=False`, as
`train pretrain` does). Times of both sides are taken in turns in one process; memory, in fresh processes.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from pytorch_transformers import BertConfig, BertForPreTraining
from pytorch_transformers.training.precision import autocast
from pytorch_transformers.training.throughput import matrix_product_rate

from .environment import has_bfloat16
from .harness import RETURNING, Plan, Result, alternate, alternate_processes, check_close, left_out, ratios, timed

ROUNDS: Final = 7
MEMORY_ROUNDS: Final = 3
#: Sequences and tokens of each, and those of a short run; labels at 15 % of the tokens (Devlin et al. 2018).
BATCH: Final = (8, 128)
QUICK_BATCH: Final = (2, 64)
SHARE: Final = 0.15
WORDS: Final = 30_522
#: Name -> sizes; those of the published BERT-base and BERT-mini.
SHAPES: Final[Mapping[str, Mapping[str, int]]] = {
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "mini": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024},
}
#: Shape and precision -> how many times as fast ours should be.
AIMS: Final = {
    ("base", "float32"): 1.15,
    ("base", "bfloat16"): 1.3,
    ("mini", "float32"): 2.0,
    ("mini", "bfloat16"): 2.0,
}
#: Of loss and length of gradient, absolute; bfloat16 has 8 bits.
TOLERANCE: Final = {"float32": 1e-4, "bfloat16": 3e-2}
#: Dropout is random and would make the losses differ.
_NO_DROPOUT: Final = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_MEMORY: Final = """
import json, sys
from benchmarks import pretraining
from benchmarks.memory import Peak
shape, batch, length = sys.argv[1], *map(int, sys.argv[2:])
model = pretraining.model_of("{side}", shape)
step = pretraining.step_of("{side}", model, pretraining.batch_of(batch, length), "float32")
beyond = Peak()
step()
step()
peak = beyond.bytes()
weights = 4 * sum(weight.numel() for weight in model.parameters())
print(json.dumps({{"peak": peak, "activations": peak - weights}}))
"""
Step = Callable[[], Tensor]


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure the step of both shapes in both precisions, and its memory.

    Raises:
        MismatchError: Losses or gradients differ.
    """
    del folder
    batch, length = QUICK_BATCH if plan.quick else BATCH
    inputs = batch_of(batch, length)
    for shape in SHAPES:
        models = {side: model_of(side, shape) for side in ("ours", "theirs")}
        models["theirs"].load_state_dict(_as_theirs(models))
        for precision in ("float32", "bfloat16"):
            if precision == "bfloat16" and not has_bfloat16():
                left_out(f"pre-training in bfloat16, {shape}", "the processor does not multiply bfloat16 matrices")
                continue
            ours, theirs = (step_of(side, model, inputs, precision) for side, model in models.items())
            subject = f"pre-training step, BERT-{shape}, {batch} x {length} tokens, {precision}"
            limit = TOLERANCE[precision]
            check = f"losses and gradient: {check_close(subject, ours(), theirs(), limit)}"
            times = alternate(ours, theirs, plan.rounds(ROUNDS))
            aim = AIMS[shape, precision]
            yield Result(subject, "transformers", "times as fast", times.speedups, check, aim)
            yield _share(plan, subject, ours, operations(shape, inputs), getattr(torch, precision))
        if not (plan.quick and shape == "base"):
            yield from _memory(plan, shape, batch, length)


def model_of(side: str, shape: str) -> Any:
    """The model of one side, in training mode, with random weights."""
    sizes: dict[str, Any] = {"vocab_size": WORDS, **SHAPES[shape], **_NO_DROPOUT}
    torch.manual_seed(0)
    if side == "ours":
        return BertForPreTraining(BertConfig(**sizes)).train()
    import transformers

    return transformers.BertForPreTraining(transformers.BertConfig(**sizes)).train()


def batch_of(batch: int, length: int) -> dict[str, Tensor]:
    """Ids, segments, and labels of some of the tokens; `words` [B, T] and `pairs` [B]."""
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, WORDS, (batch, length), generator=draw)
    chosen = torch.rand(ids.shape, generator=draw) < SHARE
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": (torch.arange(length) >= length // 2).long().repeat(batch, 1),
        "words": ids.where(chosen, -100),
        "pairs": torch.randint(2, (batch,), generator=draw),
    }


def step_of(side: str, model: nn.Module, inputs: Mapping[str, Tensor], precision: str) -> Step:
    """A training step without the optimizer; gives the loss, and the length of the word embeddings' gradient."""
    given = {name: value for name, value in inputs.items() if name not in ("words", "pairs")}
    labels = {"masked_lm_labels" if side == "ours" else "labels": inputs["words"]}
    more = {"output_logits": False} if side == "ours" else {}
    computed: Callable[[], AbstractContextManager[object]] = partial(autocast, precision, torch.device("cpu"))

    def step() -> Tensor:
        model.zero_grad(set_to_none=True)
        with computed():
            loss: Tensor = model(**given, **labels, next_sentence_label=inputs["pairs"], **more).loss
        loss.backward()
        gradient = model.get_parameter("bert.embeddings.word_embeddings.weight").grad
        assert gradient is not None
        return torch.stack([loss.detach().float(), gradient.norm().float()])

    return step


def operations(shape: str, inputs: Mapping[str, Tensor]) -> float:
    """Floating-point operations of the matrix products that a step of ours needs: backward is twice forward."""
    sizes = SHAPES[shape]
    width, inner, layers = sizes["hidden_size"], sizes["intermediate_size"], sizes["num_hidden_layers"]
    batch, length = inputs["input_ids"].shape
    of_token = layers * (4 * width * width + 2 * width * inner + 2 * length * width)
    masked = int((inputs["words"] >= 0).sum())
    head = masked * (width * width + width * WORDS) + batch * width * width
    return 3.0 * 2.0 * (batch * length * of_token + head)


def _share(plan: Plan, subject: str, step: Step, needed: float, dtype: torch.dtype) -> Result:
    """What the step makes of the rate of plain matrix products, which is measured beside each turn."""
    values = []
    for _ in range(plan.rounds(ROUNDS)):
        rate = matrix_product_rate(dtype)
        values.append(needed / timed(step) / rate)
    note = f"{needed / 1e9:.0f} GFLOP of matrix products"
    return Result(subject, "the measured rate of matrix products", "of the peak", tuple(values), note=note)


def _memory(plan: Plan, shape: str, batch: int, length: int) -> Iterator[Result]:
    our_code, their_code = (_MEMORY.format(side=side) for side in ("ours", "theirs"))
    subject = f"pre-training step, BERT-{shape}, {batch} x {length} tokens, float32"
    for of, environment, aimed in (("in use", RETURNING, True), ("held by the process", {}, False)):
        rounds, arguments = plan.rounds(MEMORY_ROUNDS), (shape, str(batch), str(length))
        ours, theirs = alternate_processes(our_code, their_code, rounds, *arguments, environment=environment)
        for what, key in (("weights and gradients", "activations"), ("the weights", "peak")):
            note = f"{ours[0][key] / 1e6:.0f} and {theirs[0][key] / 1e6:.0f} MB"
            against = f"transformers, highest memory {of}, beyond {what}"
            aim = 2.0 if aimed and key == "activations" else None
            yield Result(subject, against, "times as small", ratios(ours, theirs, key), aim=aim, note=note)


def _as_theirs(models: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """Our weights under their names; they list some values twice."""
    state, wanted = models["ours"].state_dict(), models["theirs"].state_dict()
    twice = {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }
    return {
        name: value if name.endswith("position_ids") else state[name if name in state else twice[name]]
        for name, value in wanted.items()
    }
