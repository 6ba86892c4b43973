"""Small random models, and the loops over them that generation is compared with."""

from collections.abc import Sequence
from typing import Any

import torch

from pytorch_transformers.models.gpt2 import heads as gpt2
from pytorch_transformers.models.gpt2.config import GPT2Config
from pytorch_transformers.models.openai_gpt import heads as openai_gpt
from pytorch_transformers.models.openai_gpt.config import OpenAIGPTConfig

WORDS, POSITIONS = 61, 40
SIZES: dict[str, Any] = {
    "vocab_size": WORDS,
    "n_positions": POSITIONS,
    "n_embd": 24,
    "n_layer": 2,
    "n_head": 3,
    "initializer_range": 0.3,
}
CLASSES: dict[str, Any] = {
    "gpt2": (gpt2.GPT2LMHeadModel, GPT2Config),
    "gpt2-double": (gpt2.GPT2DoubleHeadsModel, GPT2Config),
    "openai-gpt": (openai_gpt.OpenAIGPTLMHeadModel, OpenAIGPTConfig),
    "openai-gpt-double": (openai_gpt.OpenAIGPTDoubleHeadsModel, OpenAIGPTConfig),
}


def make(kind: str, seed: int = 0, **config: Any) -> Any:
    """A random model, ready to predict."""
    torch.manual_seed(seed)
    model_class, config_class = CLASSES[kind]
    return model_class(config_class(**{**SIZES, **config})).eval()


def next_logits(model: Any, ids: Sequence[int]) -> torch.Tensor:
    """Scores [V] after the ids, from a whole forward."""
    rows = torch.tensor([list(ids)])
    with torch.no_grad():
        output = model(rows[:, None] if "Double" in type(model).__name__ else rows)
    logits = output.lm_logits[0] if "Double" in type(model).__name__ else output.logits
    return logits[0, -1]


def greedy(model: Any, prompt: Sequence[int], count: int) -> list[int]:
    """The likeliest continuation, with a whole forward for each token."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(next_logits(model, ids).argmax()))
    return ids[len(prompt) :]
