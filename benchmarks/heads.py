"""Training steps, forward and backward: sentence pairs of mixed length, padded as example scripts pad them."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from pytorch_transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertTokenizer

from .harness import Plan, Result, alternate, check_close
from .inputs import model_folder, pairs

BATCH: Final = 32
ROUNDS: Final = 7
PADDED_TO: Final = 128
MASKED: Final = 0.15  # share of tokens to be guessed (Devlin et al. 2018, section 3.1)
#: Losses are sums in another order; gradients are compared by their length.
TOLERANCE: Final = 1e-4
Step = Callable[[], tuple[Tensor, Tensor]]
#: Dropout is random and would make the losses differ.
_NO_DROPOUT: Final[Mapping[str, Any]] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure the classifier padded to the longest pair and to 128, and the masked language model."""
    del folder
    torch.manual_seed(0)
    tokenizer = BertTokenizer.from_pretrained(model_folder())
    firsts, seconds = zip(*pairs(BATCH), strict=True)
    longest, fixed = (
        tokenizer(
            list(firsts),
            list(seconds),
            padding=padding,
            truncation=True,
            max_length=PADDED_TO,
            return_tensors="pt",
        )
        for padding in ("longest", "max_length")
    )
    labels = torch.arange(BATCH) % 2
    classifier = _Pair(BertForSequenceClassification, "BertForSequenceClassification")
    for name, batch in (("the longest", longest), (str(PADDED_TO), fixed)):
        subject = f"training step, pair classification, padded to {name}"
        yield _compare(plan, subject, *classifier.steps(dict(batch), {"labels": labels}))
    language = _Pair(BertForMaskedLM, "BertForMaskedLM")
    words = _labels(longest["input_ids"], longest["attention_mask"])
    yield _compare(
        plan,
        "training step, masked language model, padded to the longest",
        *language.steps(dict(longest), {"labels": words}, output_logits=False),
        note="ours computes no scores that no label asks for (output_logits=False)",
    )


class _Pair:
    """One model of ours and its counterpart in transformers, with the same weights, in training mode."""

    def __init__(self, ours: Any, theirs: str) -> None:
        import transformers

        config = BertConfig.from_pretrained(model_folder(), num_labels=2, **_NO_DROPOUT)
        self._ours: nn.Module = ours(config).train()
        counterpart = transformers.AutoConfig.from_pretrained(model_folder(), num_labels=2, **_NO_DROPOUT)
        self._theirs: nn.Module = getattr(transformers, theirs)(counterpart).train()
        state = self._ours.state_dict()
        wanted = self._theirs.state_dict()
        # The counterpart lists some values under a second name.
        missing = self._theirs.load_state_dict({name: state[name] for name in wanted if name in state}, strict=False)
        lost = [name for name in missing.missing_keys if not name.endswith(("decoder.bias", "decoder.weight"))]
        if lost or set(state) - set(wanted):
            raise RuntimeError(f"weights without a counterpart: {lost}, {sorted(set(state) - set(wanted))}")

    def steps(self, batch: dict[str, Tensor], labels: dict[str, Tensor], **options: Any) -> tuple[Step, Step]:
        """One training step of each side; gives the loss and the length of the gradient of the word embeddings."""

        def step(model: nn.Module, **more: Any) -> tuple[Tensor, Tensor]:
            model.zero_grad(set_to_none=True)
            loss: Tensor = model(**batch, **labels, **more).loss
            loss.backward()
            gradient = model.get_parameter("bert.embeddings.word_embeddings.weight").grad
            assert gradient is not None
            return loss.detach(), gradient.norm()

        return lambda: step(self._ours, **options), lambda: step(self._theirs)


def _compare(plan: Plan, subject: str, ours: Step, theirs: Step, note: str = "") -> Result:
    check = check_close(subject, torch.stack(ours()), torch.stack(theirs()), TOLERANCE)
    speedups = alternate(ours, theirs, plan.rounds(ROUNDS)).speedups
    return Result(subject, "transformers", "times as fast", speedups, f"loss and gradient: {check}", note=note)


def _labels(ids: Tensor, mask: Tensor) -> Tensor:
    """The ids themselves at 15 % of the real tokens, drawn at random, and -100 elsewhere."""
    drawn = (torch.rand(ids.shape) < MASKED) & mask.bool()
    return ids.where(drawn, -100)
