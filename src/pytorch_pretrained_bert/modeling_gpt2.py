"""GPT-2 as 0.6.2 had it, on the models of `pytorch_transformers`."""

import logging
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Final

from torch import Tensor, nn

from pytorch_transformers.models.causal import double_heads_output, language_model_output
from pytorch_transformers.models.decoder import Attention as CoreAttention
from pytorch_transformers.models.decoder import Decoded, DecoderInputs, Pasts, past_length
from pytorch_transformers.models.gpt2 import heads as core_heads
from pytorch_transformers.models.gpt2 import model as core
from pytorch_transformers.models.gpt2.config import GPT2Config as CoreConfig
from pytorch_transformers.models.outputs import BaseModelOutputWithPast
from pytorch_transformers.models.warn import warn_once
from pytorch_transformers.nn.activations import gelu_tanh
from pytorch_transformers.nn.block import DecoderBlock
from pytorch_transformers.nn.fused import VocabularyHead
from pytorch_transformers.nn.layers import Conv1D
from pytorch_transformers.nn.masks import CausalMask, decoder_mask

from .archives import GPT2_CONFIGS as PRETRAINED_CONFIG_ARCHIVE_MAP
from .archives import GPT2_MODELS as PRETRAINED_MODEL_ARCHIVE_MAP
from .classic import ClassicConfig, ClassicModel, called_as_in_062, with_face
from .classic_decoder import (
    ClassicAttention,
    ClassicLMHead,
    ClassicMultipleChoiceHead,
    WithVocabulary,
    layers_called_as_in_062,
    needs_scores,
    run_as_in_062,
    token_inputs,
)
from .file_utils import CONFIG_NAME, WEIGHTS_NAME, cached_path
from .modeling import BertLayerNorm as LayerNorm

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "CONFIG_NAME",
    "MLP",
    "PRETRAINED_CONFIG_ARCHIVE_MAP",
    "PRETRAINED_MODEL_ARCHIVE_MAP",
    "WEIGHTS_NAME",
    "Attention",
    "Block",
    "Conv1D",
    "GPT2Config",
    "GPT2DoubleHeadsModel",
    "GPT2LMHead",
    "GPT2LMHeadModel",
    "GPT2Model",
    "GPT2MultipleChoiceHead",
    "GPT2PreTrainedModel",
    "LayerNorm",
    "cached_path",
    "gelu",
    "load_tf_weights_in_gpt2",
]

logger = logging.getLogger(__name__)

_DROPOUTS: Final = ("resid_pdrop", "embd_pdrop", "attn_pdrop", "summary_first_dropout")


def gelu(x: Tensor) -> Tensor:
    """The tanh form of GELU."""
    return gelu_tanh(x)


def load_tf_weights_in_gpt2(model: Any, gpt2_checkpoint_path: str | PathLike[str]) -> Any:
    """Read the original's checkpoint into a model, in place; returns it.

    Raises:
        OSError: There is no checkpoint, or it is damaged.
        ValueError: Names or shapes don't fit; the message lists all of them.
    """
    return ClassicModel.load_tf_weights(model, gpt2_checkpoint_path)


class GPT2Config(ClassicConfig, CoreConfig):
    """See `pytorch_transformers.GPT2Config`; the arguments are those of 0.6.2.

    Its GPT-2 has no dropout, nor has this one, whatever a file says: `pytorch_transformers` has models with dropout.
    """

    def __init__(
        self,
        vocab_size_or_config_json_file: Any = 50257,
        n_positions: int = 1024,
        n_ctx: int = 1024,
        n_embd: int = 768,
        n_layer: int = 12,
        n_head: int = 12,
        layer_norm_epsilon: float = 1e-5,
        initializer_range: float = 0.02,
        **others: Any,
    ) -> None:
        if asked := [name for name in _DROPOUTS if others.pop(name, None)]:
            warn_once(
                f"GPT2Config: {', '.join(asked)} stay 0, as GPT-2 has no dropout in pytorch_pretrained_bert; use "
                "pytorch_transformers.GPT2Config and its models for dropout"
            )
        super().__init__(
            vocab_size_or_config_json_file,
            n_positions=n_positions,
            n_ctx=n_ctx,
            n_embd=n_embd,
            n_layer=n_layer,
            n_head=n_head,
            layer_norm_epsilon=layer_norm_epsilon,
            initializer_range=initializer_range,
            **{**others, **dict.fromkeys(_DROPOUTS, 0.0)},
        )


class Attention(ClassicAttention):
    """Causal self-attention; see `ClassicAttention` for the arguments."""

    def forward(self, x: Tensor, layer_past: Any = None, *of_core: Any) -> Any:
        """States [B, T, H], keys and values [2, B, A, past, D] -> states, and keys and values [2, B, A, past + T, D].

        Args:
            x: The states.
            layer_past: Keys and values of earlier tokens, if there are any.
            *of_core: What the models pass.
        """
        if isinstance(layer_past, CausalMask):
            return super().forward(x, layer_past, *of_core)
        if self.has_own_steps():
            return self.by_steps(x, layer_past)
        return super().forward(x, _mask(x, layer_past), layer_past)[:2]


def _mask(x: Tensor, layer_past: Tensor | None) -> CausalMask:
    return decoder_mask(None, x.shape[1], past_length(None if layer_past is None else [layer_past]), x)


class MLP(core.MLP):
    """The feed-forward part.

    Args:
        n_state: Width inside, F.
        config: The sizes.
    """

    def forward(self, x: Tensor) -> Tensor:
        """[..., H] -> [..., H]."""
        return super().forward(x)


class Block(core.Block):
    """One layer, which normalises before each part.

    Args:
        n_ctx: Longest input of the mask in the state dict.
        config: The sizes.
        scale: Whether attention scores are divided by the root of the head size.
    """

    def __init__(self, n_ctx: int, config: Any, scale: bool = False) -> None:
        super().__init__(n_ctx, config, scale)
        with_face(self, _FACES)
        self.attn.n_ctx = n_ctx  # type: ignore[assignment]

    def forward(self, x: Tensor, layer_past: Any = None, *of_core: Any) -> Any:
        """As `Attention.forward`."""
        if isinstance(layer_past, CausalMask):
            return super().forward(x, layer_past, *of_core)
        if called_as_in_062([(self.attn, Attention)], {}):
            mixed, present = self.attn(self.ln_1(x), layer_past=layer_past)
            x = x + mixed
            return x + self.mlp(self.ln_2(x)), present
        return super().forward(x, _mask(x, layer_past), layer_past)[:2]


class GPT2LMHead(ClassicLMHead):
    """Scores of all tokens; see `ClassicLMHead` for the arguments."""


class GPT2MultipleChoiceHead(ClassicMultipleChoiceHead):
    """One score for each text.

    Args:
        config: The sizes.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config.n_embd, 0.0)


_FACES: Final[Mapping[type[nn.Module], type[nn.Module]]] = {
    CoreAttention: Attention,
    core.MLP: MLP,
    core.Block: Block,
    VocabularyHead: GPT2LMHead,
}


class GPT2PreTrainedModel(ClassicModel, core.GPT2PreTrainedModel):
    """Base of the classic GPT-2 models, and of your own.

    Args:
        config: The sizes.
        *inputs: Not used; for subclasses.
        **kwargs: Not used; for subclasses.
    """

    config_class: ClassVar[type[GPT2Config]] = GPT2Config
    pretrained_model_archive_map: ClassVar[Mapping[str, str]] = PRETRAINED_MODEL_ARCHIVE_MAP
    faces: ClassVar[Mapping[type[nn.Module], type[nn.Module]]] = _FACES

    def set_tied(self) -> None:
        """Make output layer and table of tokens one again."""
        self.tie_weights()

    def put_on_faces(self) -> None:
        """See `ClassicModel.put_on_faces`."""
        super().put_on_faces()
        for module in self.modules():
            if isinstance(module, Attention):
                module.n_ctx = self.config.n_ctx

    def _init_weights(self, module: nn.Module) -> None:
        """As in 0.6.2, where what writes into the residual stream is drawn like the rest."""
        if not isinstance(module, DecoderBlock):
            super()._init_weights(module)

    def _make_decoder(self, config: Any) -> "GPT2Model":
        return GPT2Model(config)

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls,
        pretrained_model_name_or_path: str,
        state_dict: Mapping[str, Tensor] | None = None,
        cache_dir: str | PathLike[str] | None = None,
        from_tf: bool = False,
        *inputs: Any,
        **kwargs: Any,
    ) -> "Self":
        """Load a model, in training mode, which makes no difference: there is no dropout.

        Args:
            pretrained_model_name_or_path: A shortcut name, a folder, an archive, a file, or an address.
            state_dict: Weights to use in place of the file's.
            cache_dir: Folder for downloads.
            from_tf: Whether to read a TensorFlow checkpoint.
            *inputs: Passed on to the constructor after the configuration.
            **kwargs: The same by name.

        Raises:
            OSError: There is no such model, or a file is damaged. (0.6.2 returned None.)
            TypeError: An option is unknown.
        """
        model = super().from_pretrained(
            pretrained_model_name_or_path,
            *inputs,
            state_dict=state_dict,
            cache_dir=cache_dir,
            from_tf=from_tf,
            **kwargs,
        )
        model.set_tied()
        return model


class GPT2Model(GPT2PreTrainedModel, core.GPT2Model):
    """The decoder.

    Args:
        config: The sizes.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.put_on_faces()

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        position_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        past: Pasts = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Compute the states of new tokens.

        Args:
            input_ids: [..., T].
            position_ids: [..., T] or [T]; counted from what is in `past` by default.
            token_type_ids: [..., T], ids of tokens whose vectors are added.
            past: The second result of an earlier call.

        Returns:
            The states [..., T, H]; for each layer keys and values [2, B, A, past + T, D].
        """
        output = core.GPT2Model.forward(
            self,
            **token_inputs(input_ids, position_ids, token_type_ids),
            past=past,
            use_cache=True,
            return_dict=True,
        )
        return output.last_hidden_state, list(output.past or ())

    def _run_layers(self, hidden: Tensor, inputs: DecoderInputs, need_states: bool, need_probs: bool) -> Decoded:
        """Run the layers; those of a user's own are called as in 0.6.2."""
        if not layers_called_as_in_062(self.h, Block, Attention, inputs, need_probs):
            return super()._run_layers(hidden, inputs, need_states, need_probs)
        past: Any = [None] * len(self.h) if inputs.past is None else inputs.past

        def run(number: int, block: Any, states: Tensor) -> tuple[Tensor, list[Tensor]]:
            states, present = block(states, past[number])
            return states, [present]

        return run_as_in_062(self.h, hidden, need_states, run)


class GPT2LMHeadModel(WithVocabulary, GPT2PreTrainedModel, core_heads.GPT2LMHeadModel):
    """The language model.

    Args:
        config: The sizes.
    """

    decoder_class: ClassVar[type[nn.Module]] = GPT2Model

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.put_on_faces()

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        position_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        lm_labels: Tensor | None = None,
        past: Pasts = None,
    ) -> Any:
        """The loss alone where labels are given; otherwise scores [..., T, V] and `past` for the next call.

        Args:
            input_ids: See `GPT2Model.forward`; likewise `position_ids`, `token_type_ids` and `past`.
            position_ids: See there.
            token_type_ids: See there.
            lm_labels: [..., T], usually the ids: they are shifted here, along the tokens (0.6.2 shifts along axis 1,
                which in more than two axes are the choices). Below 0 is ignored.
            past: See there.
        """
        hidden, presents = self.transformer(input_ids, position_ids, token_type_ids, past)
        output = language_model_output(
            self.lm_head,
            BaseModelOutputWithPast.of(last_hidden_state=hidden),
            labels=None,
            lm_labels=lm_labels,
            output_logits=lm_labels is None or needs_scores(self.lm_head),
        )
        return (output.logits, presents) if lm_labels is None else output.loss


class GPT2DoubleHeadsModel(WithVocabulary, GPT2PreTrainedModel, core_heads.GPT2DoubleHeadsModel):
    """The language model with a second head that chooses between texts.

    Args:
        config: The sizes.
    """

    decoder_class: ClassVar[type[nn.Module]] = GPT2Model

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.multiple_choice_head = GPT2MultipleChoiceHead(config)
        self.put_on_faces()

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        mc_token_ids: Tensor,
        lm_labels: Tensor | None = None,
        mc_labels: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        past: Pasts = None,
    ) -> Any:
        """The list of losses where labels are given; otherwise [B, C, T, V], [B, C] and `past` for the next call.

        Args:
            input_ids: [B, C, T]; see `GPT2Model.forward`, also for `token_type_ids`, `position_ids` and `past`.
            mc_token_ids: [B, C], place of the token in each text whose state is scored.
            lm_labels: [B, C, T], see `GPT2LMHeadModel.forward`.
            mc_labels: [B], number of the right choice.
            token_type_ids: See there.
            position_ids: See there.
            past: See there.
        """
        hidden, presents = self.transformer(input_ids, position_ids, token_type_ids, past)
        output = double_heads_output(
            self.lm_head,
            self.multiple_choice_head,
            BaseModelOutputWithPast.of(last_hidden_state=hidden),
            places=(mc_token_ids, None),
            choices=(mc_labels, None),
            lm_labels=lm_labels,
        )
        losses = [loss for loss in (output.lm_loss, output.mc_loss) if loss is not None]
        return losses or (output.lm_logits, output.mc_logits, presents)
