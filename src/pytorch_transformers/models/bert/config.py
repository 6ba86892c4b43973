"""`BertConfig`: the sizes of a BERT model and what they mean."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from ...files import CONFIG_NAME
from ...nn.values import check_activation, real_number, whole_number
from ..config import PretrainedConfig
from ..warn import warn_once
from .pretrained import REPOSITORIES

_VOCAB_SIZE: Final = 30522  # of bert-base-uncased


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
    filenames: ClassVar[tuple[str, ...]] = (CONFIG_NAME, "bert_config.json")

    def __init__(
        self,
        vocab_size: int | str | Path = _VOCAB_SIZE,
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
        words = self._size_or_file(vocab_size, _VOCAB_SIZE, others)
        if words is None:
            return
        self.vocab_size = words
        self.hidden_size = whole_number("hidden_size", hidden_size, 1)
        self.num_hidden_layers = whole_number("num_hidden_layers", num_hidden_layers, 0)
        self.num_attention_heads = whole_number("num_attention_heads", num_attention_heads, 1)
        self.intermediate_size = whole_number("intermediate_size", intermediate_size, 1)
        self.hidden_act = hidden_act
        self.hidden_dropout_prob = real_number("hidden_dropout_prob", hidden_dropout_prob, 0.0, 1.0)
        self.attention_probs_dropout_prob = real_number(
            "attention_probs_dropout_prob", attention_probs_dropout_prob, 0.0, 1.0
        )
        self.max_position_embeddings = whole_number("max_position_embeddings", max_position_embeddings, 1)
        self.type_vocab_size = whole_number("type_vocab_size", type_vocab_size, 1)
        self.initializer_range = real_number("initializer_range", initializer_range, 0.0)
        self.layer_norm_eps = real_number("layer_norm_eps", layer_norm_eps, 0.0)
        self.pad_token_id = None if pad_token_id is None else whole_number("pad_token_id", pad_token_id)
        super().__init__(**others)
        check_activation(hidden_act)
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size: {self.hidden_size} is not a multiple of num_attention_heads, {self.num_attention_heads}"
            )
        self._refuse_variants()

    def _refuse_variants(self) -> None:
        """Switches of later programs that change the model: computing without them would give wrong numbers."""
        plain: dict[str, Any] = {
            "position_embedding_type": "absolute",
            "is_decoder": False,
            "add_cross_attention": False,
            "is_encoder_decoder": False,
            "tie_word_embeddings": True,
            "problem_type": "regression" if self.num_labels == 1 else "single_label_classification",
        }
        # What alone depends on some of them; the rest of the model may be used all the same.
        concerns = {"tie_word_embeddings": "the masked-language head", "problem_type": "the loss of the classifier"}
        for key, value in plain.items():
            found = getattr(self, key, value)
            if found not in (value, None):
                message = f"{key}: {found!r} is not the original BERT; only {value!r} is supported"
                if key in concerns:
                    remedy = f"config={type(self).__name__}.from_pretrained(..., {key}=None)"
                    message += f". Only {concerns[key]} depends on it: to use the rest, pass {remedy}"
                raise ValueError(message)
        dropout = getattr(self, "classifier_dropout", None)
        if dropout not in (None, self.hidden_dropout_prob):
            warn_once(
                f"classifier_dropout: {dropout} is not used; in training, classifiers drop hidden_dropout_prob, "
                f"{self.hidden_dropout_prob}"
            )
