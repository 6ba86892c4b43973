"""One step over the parameters of BERT-base: against 0.6.2's BertAdam, and against torch's AdamW, each way it has.

0.6.2 has the name of a package of ours. It is unpacked into the folder that PUBLISHED_PACKAGES names, as 1.2.0 is for
Transformer-XL, and its module is imported from there under another name.
"""

import importlib
import os
import sys
import types
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from pytorch_transformers import AdamW, BertConfig, BertModel
from pytorch_transformers.optim.adam import BertAdam

from .harness import MismatchError, Plan, Result, alternate, check_close, left_out

ROUNDS: Final = 7
#: Weights after the steps that are compared: each step rounds them, in sums of another order.
TOLERANCE: Final = 1e-6
#: The rate of fine-tuning (Devlin et al. 2018, appendix A.3), constant: the schedule costs nothing.
RATE: Final = 5e-5
#: The typical size of a gradient: its clipping then takes some parameters and leaves others.
GRADIENT: Final = 1e-3
#: Steps before the weights are compared.
COMPARED: Final = 3


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure both.

    Raises:
        MismatchError: Weights differ.
    """
    del folder
    theirs = _published()
    if theirs is None:
        left_out(
            "optimizer against 0.6.2",
            "pip install --no-deps --target FOLDER pytorch-pretrained-bert==0.6.2, and set PUBLISHED_PACKAGES=FOLDER",
        )
    else:
        for fused in (False, True):
            subject = f"BertAdam step{', fused' * fused}"
            constant = {"lr": RATE, "schedule": None}
            yield _compare(plan, subject, "0.6.2", BertAdam, theirs, constant, {"fused": fused}, {})
    # Without decay, and with an epsilon that only spares a gradient of 0 from 0 / 0, the two rules are one.
    options = {"lr": RATE, "eps": 1e-30, "weight_decay": 0.0}
    ways: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("torch.optim.AdamW, as it is by default", {}, {}),
        ("torch.optim.AdamW(foreach=True)", {}, {"foreach": True}),
        ("torch.optim.AdamW(fused=True)", {"fused": True}, {"fused": True}),
    ]
    for name, ours, rival in ways:
        subject = f"AdamW step{', fused' * bool(ours)}"
        yield _compare(plan, subject, name, AdamW, torch.optim.AdamW, options, ours, rival)


def _compare(
    plan: Plan,
    subject: str,
    against: str,
    ours: Any,
    theirs: Any,
    options: dict[str, Any],
    our_options: dict[str, Any],
    their_options: dict[str, Any],
) -> Result:
    """The same steps on both sides; the weights are compared before they are timed."""
    layers = 2 if plan.quick else 12
    sides = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of calls from 2019 that torch calls deprecated
        for kind, more in ((ours, our_options), (theirs, their_options)):
            parameters = _parameters(layers)
            sides.append((parameters, kind(parameters, **options, **more)))
        for _, optimizer in sides:
            for _ in range(COMPARED):
                optimizer.step()
        values, expected = (_flat(parameters) for parameters, _ in sides)
        if torch.equal(values, _flat(_parameters(layers))):
            raise MismatchError(f"{subject}: the steps changed nothing")
        check = "equal to the last bit" if torch.equal(values, expected) else None
        check = check or check_close(subject, values, expected, TOLERANCE)
        speedups = alternate(sides[0][1].step, sides[1][1].step, plan.rounds(ROUNDS)).speedups
    return Result(f"{subject}, {len(values) / 1e6:.0f} million weights", against, "times as fast", speedups, check)


def _parameters(layers: int) -> list[nn.Parameter]:
    """Weights of BERT-base with gradients, the same at each call."""
    torch.manual_seed(0)
    with torch.device("meta"):
        shapes = [weight.shape for weight in BertModel(BertConfig(num_hidden_layers=layers)).parameters()]
    parameters = [nn.Parameter(torch.randn(shape) * 0.02) for shape in shapes]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter) * GRADIENT
    return parameters


def _flat(parameters: Sequence[nn.Parameter]) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in parameters])


def _published() -> Any:
    """BertAdam of 0.6.2, None if it isn't there."""
    place = Path(os.environ.get("PUBLISHED_PACKAGES", ".published")) / "pytorch_pretrained_bert"
    if not place.is_dir():
        return None
    package = types.ModuleType("published_0_6_2")
    package.__path__ = [str(place)]
    sys.modules[package.__name__] = package
    return importlib.import_module(f"{package.__name__}.optimization").BertAdam
