"""What the configurations of the two GPT families share: the names that all families have, and what is refused."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from .config import PretrainedConfig

#: Switches of later programs, and the values with which they change nothing.
_PLAIN: Final[Mapping[str, Any]] = {
    "tie_word_embeddings": True,
    "summary_type": "cls_index",
    "summary_use_proj": True,
    "summary_proj_to_labels": True,
    "summary_activation": None,
}


class DecoderConfig(PretrainedConfig):
    """Base of `OpenAIGPTConfig` and `GPT2Config`, which set its fields and say what they mean."""

    #: More of `_PLAIN`, for one family.
    plain: ClassVar[Mapping[str, Any]] = {}

    n_positions: int
    n_embd: int
    n_layer: int
    n_head: int
    attn_pdrop: float
    resid_pdrop: float

    @property
    def hidden_size(self) -> int:
        """H, under the name that all families share."""
        return self.n_embd

    @property
    def num_hidden_layers(self) -> int:
        """L, under the name that all families share."""
        return self.n_layer

    @property
    def num_attention_heads(self) -> int:
        """A, under the name that all families share."""
        return self.n_head

    @property
    def max_position_embeddings(self) -> int:
        """Longest input, under the name that all families share."""
        return self.n_positions

    def _check_together(self) -> None:
        """Raise `ValueError` for sizes that don't go together, and switches that would give other numbers."""
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd: {self.n_embd} is not a multiple of n_head, {self.n_head}")
        for key, value in {**_PLAIN, **self.plain}.items():
            found = getattr(self, key, value)
            if found not in (value, None):
                raise ValueError(f"{key}: {found!r} is not the original {self.model_type}; only {value!r} is supported")
