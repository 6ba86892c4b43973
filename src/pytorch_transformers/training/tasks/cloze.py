"""RocStories cloze: which of two sentences ends a story, by OpenAI GPT with two heads.

Source: Radford et al. 2018, sections 3.2 and 4.2: the language model goes on learning beside the choice.
"""

import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ...data.batches import InputRow
from ...data.cloze import ClozeExample, add_task_tokens, encode_cloze, read_cloze
from ...nn.values import real_number, whole_number
from ..evaluation import choice_logits
from ..objective import LabelLoss, Objective
from ..task import Source
from .choices import ChoiceTask
from .splits import Splits

logger = logging.getLogger(__name__)

#: Draws the stories that are held out: the same in every run, or a model would be evaluated on what it learned.
_SEED: Final = 0


class ClozeTask(ChoiceTask[ClozeExample]):
    """Learn which sentence ends a story. What is minimised is the loss of the choice + `lm_coef` x that of the words.

    Args:
        train_file: Stories to train with, with their answers.
        dev_file: Stories to evaluate on.
        test_file: Stories to predict, without answers.
        n_valid: Without `dev_file`, so many stories of `train_file`, always the same, are held out to evaluate on.
        lm_coef: Weight of the language model's loss.

    Raises:
        ValueError: No file is given, or a number is out of its limits.
    """

    head = "double_heads"
    family = "openai_gpt"
    keep = staticmethod(choice_logits)

    def __init__(
        self,
        *,
        train_file: Path | None = None,
        dev_file: Path | None = None,
        test_file: Path | None = None,
        n_valid: int = 374,
        lm_coef: float = 0.9,
    ) -> None:
        splits = Splits({"train": train_file, "dev": dev_file, "test": test_file})
        super().__init__(splits, first=1)
        self.name = f"cloze {splits}"
        self._n_valid = whole_number("n_valid", n_valid, 0)
        self._lm_coef = real_number("lm_coef", lm_coef, 0.0)
        self._special = 0
        self._training = False

    def prepare(self, tokenizer: Any, source: Source, *, training: bool) -> None:
        """Give the tokenizer the task's own tokens."""
        super().prepare(tokenizer, source, training=training)
        self._training = training
        self._special = add_task_tokens(tokenizer)

    def config(self) -> dict[str, Any]:
        """The language model also learns where the story ends, so it scores the task's tokens too."""
        return {"predict_special_tokens": True}

    def adjust(self, model: Any) -> None:
        """Add vectors for the task's tokens, and take no more tokens than the model does.

        Raises:
            ValueError: Tokenizer and model do not belong together, or an untrained vector would be scored.
        """
        config, words = model.config, self._tokenizer.vocab_size
        if config.vocab_size != words:
            raise ValueError(f"the tokenizer has {words} tokens and the model {config.vocab_size}; they differ")
        if config.n_special < self._special and not self._training:
            raise ValueError(
                "the model has no vectors for the task's own tokens, and new ones would be random; train it first "
                "(do_train), or give the folder of a trained model"
            )
        model.set_num_special_tokens(self._special)
        super().adjust(model)

    def objective(self) -> Objective:
        """Cross-entropy of the choice, a mean over stories, and of the next token, a mean over tokens."""
        return LabelLoss(
            {"mc_labels": "mc_loss", "lm_labels": "lm_loss"}, {"lm_loss": self._lm_coef}, shifted=("lm_labels",)
        )

    def _read(self, split: str) -> list[ClozeExample]:
        holds_out = self._n_valid > 0 and not self._splits.given("dev") and self._splits.given("train")
        if split == "test" or not holds_out:
            return read_cloze(self._splits.path(split))
        path = self._splits.path("train")
        stories = read_cloze(path)
        if len(stories) <= self._n_valid:
            raise ValueError(
                f"n_valid: {self._n_valid} of the {len(stories)} stories in {path} can't be held out to evaluate on; "
                "give fewer (--n_valid), or a file of its own (--eval_dataset)"
            )
        if split == "train":
            logger.warning(
                "%s: %d of %d stories are held out to evaluate on (n_valid)", path, self._n_valid, len(stories)
            )
        held_out = set(random.Random(_SEED).sample(range(len(stories)), self._n_valid))
        return [story for number, story in enumerate(stories) if (number in held_out) == (split == "dev")]

    def _encode(self, examples: Sequence[ClozeExample]) -> list[InputRow]:
        return encode_cloze(examples, self._tokenizer, self._length)
