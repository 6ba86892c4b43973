"""`GPT2Config`: the sizes of a GPT-2 model and what they mean."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from ...files import CONFIG_NAME
from ...nn.values import check_activation, real_number, whole_number
from ..decoder_config import DecoderConfig
from .pretrained import MAX_POSITIONS, REPOSITORIES, SIZES

_VOCAB_SIZE: Final = 50257  # 256 bytes, 50,000 merges, one end-of-text token


class GPT2Config(DecoderConfig):
    """Sizes of a GPT-2 model (Radford et al. 2019, section 2.3); the defaults are those of the smallest, gpt2.

    Args:
        vocab_size: Entries of the vocabulary, V (n_vocab in hparams.json). Or the path of a configuration file, as
            published code has it.
        n_positions: Longest input, in tokens; `n_ctx` when not given.
        n_ctx: The original's name of the same; `n_positions` when not given.
        n_embd: Width of the hidden states, H. Must be a multiple of `n_head`.
        n_layer: Layers, L.
        n_head: Heads of each layer, A.
        n_inner: Width inside the feed-forward part, F; 4 H when not given.
        activation_function: Activation there; gelu_new is the original's tanh form.
        resid_pdrop: Dropout after attention and feed-forward parts.
        embd_pdrop: Dropout after the embeddings.
        attn_pdrop: Dropout of the attention probabilities.
        layer_norm_epsilon: Added to the variance in layer normalisation (1e-5 in model.py, norm).
        initializer_range: Standard deviation of new weights; those that write into the residual stream get it divided
            by the root of 2 L.
        summary_first_dropout: Dropout before the multiple-choice head.
        use_cache: Whether forward returns keys and values, unless the call says otherwise.
        bos_token_id: The id that starts a text; likewise `eos_token_id` ends one. 50256 in published models.
        pad_token_id: The id that stands for padding, if there is one.
        **others: Fields of every family, see `PretrainedConfig`, and keys of other programs.

    Raises:
        ValueError: A value is impossible, or a key looks like a typing error.
        OSError: `vocab_size` is a path that can't be read.
    """

    model_type: ClassVar[str] = "gpt2"
    aliases: ClassVar[Mapping[str, str]] = {"vocab_size_or_config_json_file": "vocab_size", "n_vocab": "vocab_size"}
    repositories: ClassVar[Mapping[str, str]] = REPOSITORIES
    plain: ClassVar[Mapping[str, Any]] = {
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
    }
    filenames: ClassVar[tuple[str, ...]] = (CONFIG_NAME, "hparams.json")

    def __init__(
        self,
        vocab_size: int | str | Path = _VOCAB_SIZE,
        n_positions: int | None = None,
        n_ctx: int | None = None,
        n_embd: int = 768,
        n_layer: int = 12,
        n_head: int = 12,
        resid_pdrop: float = 0.1,
        embd_pdrop: float = 0.1,
        attn_pdrop: float = 0.1,
        layer_norm_epsilon: float = 1e-5,
        initializer_range: float = 0.02,
        *,
        n_inner: int | None = None,
        activation_function: str | Callable[..., Any] = "gelu_new",
        summary_first_dropout: float = 0.1,
        use_cache: bool = True,
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
        self.n_positions = whole_number("n_positions", positions, 1)
        self.n_ctx = whole_number("n_ctx", self.n_positions if n_ctx is None else n_ctx, 1)
        self.n_embd = whole_number("n_embd", n_embd, 1)
        self.n_layer = whole_number("n_layer", n_layer, 0)
        self.n_head = whole_number("n_head", n_head, 1)
        self.n_inner = None if n_inner is None else whole_number("n_inner", n_inner, 1)
        self.activation_function = activation_function
        self.resid_pdrop = real_number("resid_pdrop", resid_pdrop, 0.0, 1.0)
        self.embd_pdrop = real_number("embd_pdrop", embd_pdrop, 0.0, 1.0)
        self.attn_pdrop = real_number("attn_pdrop", attn_pdrop, 0.0, 1.0)
        self.layer_norm_epsilon = real_number("layer_norm_epsilon", layer_norm_epsilon, 0.0)
        self.initializer_range = real_number("initializer_range", initializer_range, 0.0)
        self.summary_first_dropout = real_number("summary_first_dropout", summary_first_dropout, 0.0, 1.0)
        self.use_cache = use_cache
        for name, token in (("bos", bos_token_id), ("eos", eos_token_id), ("pad", pad_token_id)):
            field = f"{name}_token_id"
            setattr(self, field, None if token is None else whole_number(field, token, 0))
        super().__init__(**others)
        check_activation(activation_function, "activation_function")
        self._check_together()

    @classmethod
    def named(cls, name: str, **overrides: Any) -> "GPT2Config":
        """The sizes of a published model (gpt2, gpt2-medium, gpt2-large, gpt2-xl), without reading any file.

        Raises:
            ValueError: There is no such name.
        """
        if name not in SIZES:
            raise ValueError(f"{name!r} is no published GPT-2; there are {', '.join(SIZES)}")
        return cls(**{**SIZES[name], **overrides})
