"""`OpenAIGPTConfig`: the sizes of an OpenAI GPT model and what they mean."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from ...nn.values import check_activation, real_number, whole_number
from ..decoder_config import DecoderConfig
from .pretrained import MAX_POSITIONS, REPOSITORIES

_VOCAB_SIZE: Final = 40478  # of the published model, without special tokens


class OpenAIGPTConfig(DecoderConfig):
    """Sizes of an OpenAI GPT model (Radford et al. 2018, section 4.1); the defaults are those of openai-gpt.

    Args:
        vocab_size: Entries of the vocabulary, without special tokens. Or the path of a configuration file, as published
            code has it.
        n_special: Special tokens, whose vectors stand behind those of the vocabulary.
        n_positions: Longest input, in tokens; `n_ctx` when not given.
        n_ctx: The original's name of the same; `n_positions` when not given.
        n_embd: Width of the hidden states, H. Must be a multiple of `n_head`.
        n_layer: Layers, L.
        n_head: Heads of each layer, A.
        afn: Activation of the feed-forward part (train.py, act_fns): gelu, which here is the tanh form, relu, swish.
        resid_pdrop: Dropout after attention and feed-forward parts.
        embd_pdrop: Dropout after the embeddings.
        attn_pdrop: Dropout of the attention probabilities.
        layer_norm_epsilon: Added to the variance in layer normalisation (1e-5 in train.py, norm).
        initializer_range: Standard deviation of new weights.
        predict_special_tokens: Whether the language model scores special tokens too.
        summary_first_dropout: Dropout before the multiple-choice head.
        bos_token_id: The id that starts a text, if there is one; likewise `eos_token_id` and `pad_token_id`.
        **others: Fields of every family, see `PretrainedConfig`, and keys of other programs.

    Raises:
        ValueError: A value is impossible, or a key looks like a typing error.
        OSError: `vocab_size` is a path that can't be read.
    """

    model_type: ClassVar[str] = "openai-gpt"
    aliases: ClassVar[Mapping[str, str]] = {"vocab_size_or_config_json_file": "vocab_size", "n_vocab": "vocab_size"}
    repositories: ClassVar[Mapping[str, str]] = REPOSITORIES

    def __init__(
        self,
        vocab_size: int | str | Path = _VOCAB_SIZE,
        n_positions: int | None = None,
        n_ctx: int | None = None,
        n_embd: int = 768,
        n_layer: int = 12,
        n_head: int = 12,
        afn: str | Callable[..., Any] = "gelu",
        resid_pdrop: float = 0.1,
        embd_pdrop: float = 0.1,
        attn_pdrop: float = 0.1,
        layer_norm_epsilon: float = 1e-5,
        initializer_range: float = 0.02,
        predict_special_tokens: bool = True,
        *,
        n_special: int = 0,
        summary_first_dropout: float = 0.1,
        bos_token_id: int | None = None,
        eos_token_id: int | None = None,
        pad_token_id: int | None = None,
        **others: Any,
    ) -> None:
        words = self._size_or_file(vocab_size, _VOCAB_SIZE, others)
        if words is None:
            return
        positions = n_positions if n_positions is not None else n_ctx if n_ctx is not None else MAX_POSITIONS
        self.vocab_size = words
        self.n_special = whole_number("n_special", n_special, 0)
        self.n_positions = whole_number("n_positions", positions, 1)
        self.n_ctx = whole_number("n_ctx", self.n_positions if n_ctx is None else n_ctx, 1)
        self.n_embd = whole_number("n_embd", n_embd, 1)
        self.n_layer = whole_number("n_layer", n_layer, 0)
        self.n_head = whole_number("n_head", n_head, 1)
        self.afn = afn
        self.resid_pdrop = real_number("resid_pdrop", resid_pdrop, 0.0, 1.0)
        self.embd_pdrop = real_number("embd_pdrop", embd_pdrop, 0.0, 1.0)
        self.attn_pdrop = real_number("attn_pdrop", attn_pdrop, 0.0, 1.0)
        self.layer_norm_epsilon = real_number("layer_norm_epsilon", layer_norm_epsilon, 0.0)
        self.initializer_range = real_number("initializer_range", initializer_range, 0.0)
        self.predict_special_tokens = predict_special_tokens
        self.summary_first_dropout = real_number("summary_first_dropout", summary_first_dropout, 0.0, 1.0)
        for name, token in (("bos", bos_token_id), ("eos", eos_token_id), ("pad", pad_token_id)):
            field = f"{name}_token_id"
            setattr(self, field, None if token is None else whole_number(field, token, 0))
        super().__init__(**others)
        check_activation(afn, "afn")
        self._check_together()

    @property
    def total_tokens_embeddings(self) -> int:
        """Rows of the table of tokens: vocabulary and special tokens."""
        return self.vocab_size + self.n_special
