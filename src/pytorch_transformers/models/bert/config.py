"""`BertConfig`: the sizes of a BERT model and what they mean."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from ..config import PretrainedConfig, at_least, share
from .pretrained import REPOSITORIES


class BertConfig(PretrainedConfig):
    """Sizes of a BERT model (Devlin et al. 2018, section 3); the defaults are those of bert-base-uncased.

    Args:
        vocab_size: Entries of the vocabulary, V. Or the path of a configuration file, as published code has it.
        hidden_size: Width of the hidden states, H. Must be a multiple of `num_attention_heads`.
        num_hidden_layers: Transformer layers, L.
        num_attention_heads: Heads of each layer, A.
        intermediate_size: Width inside the feed-forward part, F.
        hidden_act: Activation there and in the MLM head: gelu (exact), gelu_tanh, relu, silu (swish), tanh, or a
            callable. Published checkpoints mean the exact form by "gelu".
        hidden_dropout_prob: Dropout after embeddings, attention and feed-forward parts, and before classifiers.
        attention_probs_dropout_prob: Dropout of the attention probabilities.
        max_position_embeddings: Longest input, in tokens.
        type_vocab_size: Segment types; published models have 2, for the first and the second text.
        initializer_range: Standard deviation of new weights.
        layer_norm_eps: Added to the variance in layer normalisation (1e-12 in the original's contrib layer).
        pad_token_id: The id that stands for padding; used for a warning only.
        **others: Fields of every family, see `PretrainedConfig`, and keys of other programs.

    Raises:
        ValueError: A value is impossible, or a key looks like a typing error.
        OSError: `vocab_size` is a path that can't be read.
    """

    model_type: ClassVar[str] = "bert"
    aliases: ClassVar[Mapping[str, str]] = {"vocab_size_or_config_json_file": "vocab_size"}
    repositories: ClassVar[Mapping[str, str]] = REPOSITORIES

    def __init__(
        self,
        vocab_size: int | str | Path = 30522,
        hidden_size: int = 768,
        num_hidden_layers: int = 12,
        num_attention_heads: int = 12,
        intermediate_size: int = 3072,
        hidden_act: str | Callable[..., Any] = "gelu",
        hidden_dropout_prob: float = 0.1,
        attention_probs_dropout_prob: float = 0.1,
        max_position_embeddings: int = 512,
        type_vocab_size: int = 2,
        initializer_range: float = 0.02,
        layer_norm_eps: float = 1e-12,
        pad_token_id: int | None = 0,
        **others: Any,
    ) -> None:
        vocab_size = others.pop("vocab_size_or_config_json_file", vocab_size)
        if isinstance(vocab_size, str | Path):
            vars(self).update(vars(self.from_json_file(vocab_size, **others)))
            return
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.intermediate_size = intermediate_size
        self.hidden_act = hidden_act
        self.hidden_dropout_prob = hidden_dropout_prob
        self.attention_probs_dropout_prob = attention_probs_dropout_prob
        self.max_position_embeddings = max_position_embeddings
        self.type_vocab_size = type_vocab_size
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        self.pad_token_id = pad_token_id
        super().__init__(**others)
        self._check()

    def _check(self) -> None:
        at_least(
            1,
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            num_attention_heads=self.num_attention_heads,
            intermediate_size=self.intermediate_size,
            max_position_embeddings=self.max_position_embeddings,
            type_vocab_size=self.type_vocab_size,
        )
        at_least(
            0,
            num_hidden_layers=self.num_hidden_layers,
            initializer_range=self.initializer_range,
            layer_norm_eps=self.layer_norm_eps,
        )
        share(
            hidden_dropout_prob=self.hidden_dropout_prob,
            attention_probs_dropout_prob=self.attention_probs_dropout_prob,
        )
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size: {self.hidden_size} is not a multiple of num_attention_heads, {self.num_attention_heads}"
            )
        self._refuse_variants()

    def _refuse_variants(self) -> None:
        """Switches of later programs that change the model: computing without them would give wrong numbers."""
        plain = {
            "position_embedding_type": "absolute",
            "is_decoder": False,
            "add_cross_attention": False,
            "is_encoder_decoder": False,
        }
        for key, value in plain.items():
            if getattr(self, key, value) != value:
                raise ValueError(f"{key}: {getattr(self, key)!r} is not the original BERT; only {value!r} is supported")
