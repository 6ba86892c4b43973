"""OpenAI GPT as 0.6.2 had it, on the models of `pytorch_transformers`."""

import logging
from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Final

import torch.nn.functional as F
from torch import Tensor, nn

from pytorch_transformers.models.causal import double_heads_output, language_model_output
from pytorch_transformers.models.decoder import Attention as CoreAttention
from pytorch_transformers.models.decoder import Decoded, DecoderInputs
from pytorch_transformers.models.openai_gpt import heads as core_heads
from pytorch_transformers.models.openai_gpt import model as core
from pytorch_transformers.models.openai_gpt.config import OpenAIGPTConfig as CoreConfig
from pytorch_transformers.models.outputs import BaseModelOutputWithPast
from pytorch_transformers.nn import activations
from pytorch_transformers.nn.dropout import Dropout
from pytorch_transformers.nn.fused import VocabularyHead
from pytorch_transformers.nn.layers import Conv1D as CoreConv1D
from pytorch_transformers.nn.masks import CausalMask, decoder_mask

from .archives import OPENAI_GPT_CONFIGS as PRETRAINED_CONFIG_ARCHIVE_MAP
from .archives import OPENAI_GPT_MODELS as PRETRAINED_MODEL_ARCHIVE_MAP
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
    "ACT_FNS",
    "CONFIG_NAME",
    "MLP",
    "PRETRAINED_CONFIG_ARCHIVE_MAP",
    "PRETRAINED_MODEL_ARCHIVE_MAP",
    "WEIGHTS_NAME",
    "Attention",
    "Block",
    "Conv1D",
    "LayerNorm",
    "OpenAIGPTConfig",
    "OpenAIGPTDoubleHeadsModel",
    "OpenAIGPTLMHead",
    "OpenAIGPTLMHeadModel",
    "OpenAIGPTModel",
    "OpenAIGPTMultipleChoiceHead",
    "OpenAIGPTPreTrainedModel",
    "cached_path",
    "gelu",
    "load_tf_weights_in_openai_gpt",
    "swish",
]

logger = logging.getLogger(__name__)


def gelu(x: Tensor) -> Tensor:
    """The tanh form of GELU."""
    return activations.gelu_tanh(x)


def swish(x: Tensor) -> Tensor:
    """X times its sigmoid."""
    return activations.swish(x)


#: Activations by the names of the original. (0.6.2 has a class as "relu", and no model with it worked.)
ACT_FNS: Final[Mapping[str, Callable[[Tensor], Tensor]]] = {"relu": F.relu, "swish": swish, "gelu": gelu}


def load_tf_weights_in_openai_gpt(model: Any, openai_checkpoint_folder_path: str | PathLike[str]) -> Any:
    """Read the original's NumPy files into a model, in place; returns it.

    Raises:
        OSError: There are no such files, or one is damaged.
        ValueError: Names or shapes don't fit; the message lists all of them.
    """
    return ClassicModel.load_tf_weights(model, openai_checkpoint_folder_path)


class OpenAIGPTConfig(ClassicConfig, CoreConfig):
    """See `pytorch_transformers.OpenAIGPTConfig`; the arguments are those of 0.6.2."""

    def __init__(
        self,
        vocab_size_or_config_json_file: Any = 40478,
        n_special: int = 0,
        n_positions: int = 512,
        n_ctx: int = 512,
        n_embd: int = 768,
        n_layer: int = 12,
        n_head: int = 12,
        afn: Any = "gelu",
        resid_pdrop: float = 0.1,
        embd_pdrop: float = 0.1,
        attn_pdrop: float = 0.1,
        layer_norm_epsilon: float = 1e-5,
        initializer_range: float = 0.02,
        **others: Any,
    ) -> None:
        super().__init__(
            vocab_size_or_config_json_file,
            n_special=n_special,
            n_positions=n_positions,
            n_ctx=n_ctx,
            n_embd=n_embd,
            n_layer=n_layer,
            n_head=n_head,
            afn=afn,
            resid_pdrop=resid_pdrop,
            embd_pdrop=embd_pdrop,
            attn_pdrop=attn_pdrop,
            layer_norm_epsilon=layer_norm_epsilon,
            initializer_range=initializer_range,
            **others,
        )


class Conv1D(CoreConv1D):
    """A linear layer with the matrix [in, out].

    Args:
        nf: Size of the output.
        rf: Width of the convolution, which must be 1.
        nx: Size of the input.

    Raises:
        NotImplementedError: `rf` is another number.
    """

    rf = 1

    def __init__(self, nf: int, rf: int, nx: int) -> None:
        if rf != 1:
            raise NotImplementedError(f"rf: {rf}; only 1, a linear layer, is supported, which all of GPT has")
        super().__init__(nf, nx)

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        return super().forward(x)


class Attention(ClassicAttention):
    """Causal self-attention; see `ClassicAttention` for the arguments."""

    def __init__(self, nx: int, n_ctx: int, config: Any, scale: bool = False) -> None:
        super().__init__(nx, n_ctx, config, scale)
        with_face(self, _FACES)

    def forward(self, x: Tensor, *of_core: Any) -> Any:
        """[B, T, H] -> [B, T, H]."""
        if of_core:
            return super().forward(x, *of_core)
        if self.has_own_steps():
            return self.by_steps(x)[0]
        return super().forward(x, _mask(x)).hidden


def _mask(x: Tensor) -> CausalMask:
    return decoder_mask(None, x.shape[1], 0, x)


class MLP(core.MLP):
    """The feed-forward part.

    Args:
        n_state: Width inside, F.
        config: The sizes.
    """

    def __init__(self, n_state: int, config: Any) -> None:
        super().__init__(n_state, config)
        with_face(self, _FACES)

    def forward(self, x: Tensor) -> Tensor:
        """[..., H] -> [..., H]."""
        return super().forward(x)


class Block(core.Block):
    """One layer, which normalises after each residual.

    Args:
        n_ctx: Longest input of the mask in the state dict.
        config: The sizes.
        scale: Whether attention scores are divided by the root of the head size.
    """

    def __init__(self, n_ctx: int, config: Any, scale: bool = False) -> None:
        super().__init__(n_ctx, config, scale)
        with_face(self, _FACES)
        self.attn.n_ctx = n_ctx  # type: ignore[assignment]
        self.put_in_order()

    def put_in_order(self) -> None:
        """Put the parts in the order of 0.6.2, as the state of an optimizer goes by the order of parameters."""
        for name in ("attn", "ln_1", "mlp", "ln_2"):
            self._modules[name] = self._modules.pop(name)

    def forward(self, x: Tensor, *of_core: Any) -> Any:
        """[B, T, H] -> [B, T, H]."""
        if of_core:
            return super().forward(x, *of_core)
        if called_as_in_062([(self.attn, Attention)], {}):
            x = self.ln_1(x + self.attn(x))
            return self.ln_2(x + self.mlp(x))
        return super().forward(x, _mask(x)).hidden


class OpenAIGPTLMHead(ClassicLMHead):
    """Scores of all tokens; see `ClassicLMHead` for the arguments."""


class OpenAIGPTMultipleChoiceHead(ClassicMultipleChoiceHead):
    """One score for each text.

    Args:
        config: The sizes; `resid_pdrop` is dropped of the states, the same numbers of all choices as in the original.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config.n_embd, config.resid_pdrop)
        self.first_dropout = _DropoutOfAllChoices(config.resid_pdrop)


class _DropoutOfAllChoices(Dropout):
    """Drops the same numbers of all choices."""

    def forward(self, input: Tensor) -> Tensor:  # the name there
        """[B, C, H] -> [B, C, H]."""
        return F.dropout1d(input.transpose(1, 2), self.p, self.training).transpose(1, 2)


_FACES: Final[Mapping[type[nn.Module], type[nn.Module]]] = {
    CoreConv1D: Conv1D,
    CoreAttention: Attention,
    core.MLP: MLP,
    core.Block: Block,
    VocabularyHead: OpenAIGPTLMHead,
}


class OpenAIGPTPreTrainedModel(ClassicModel, core.OpenAIGPTPreTrainedModel):
    """Base of the classic OpenAI GPT models, and of your own.

    Args:
        config: The sizes.
        *inputs: Not used; for subclasses.
        **kwargs: Not used; for subclasses.
    """

    config_class: ClassVar[type[OpenAIGPTConfig]] = OpenAIGPTConfig
    pretrained_model_archive_map: ClassVar[Mapping[str, str]] = PRETRAINED_MODEL_ARCHIVE_MAP
    faces: ClassVar[Mapping[type[nn.Module], type[nn.Module]]] = _FACES

    def put_on_faces(self) -> None:
        """See `ClassicModel.put_on_faces`."""
        super().put_on_faces()
        for module in self.modules():
            if isinstance(module, Attention):
                module.n_ctx = self.config.n_ctx
            elif isinstance(module, Block):
                module.put_in_order()

    def _make_decoder(self, config: Any) -> "OpenAIGPTModel":
        return OpenAIGPTModel(config)

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls,
        pretrained_model_name_or_path: str,
        num_special_tokens: int | None = None,
        state_dict: Mapping[str, Tensor] | None = None,
        cache_dir: str | PathLike[str] | None = None,
        from_tf: bool = False,
        *inputs: Any,
        **kwargs: Any,
    ) -> "Self":
        """Load a model, in training mode as 0.6.2 left it: call `eval()` before using it.

        Args:
            pretrained_model_name_or_path: A shortcut name, a folder, an archive, a file, or an address.
            num_special_tokens: Special tokens that it shall have, see `set_num_special_tokens`; as many as the
                configuration says by default.
            state_dict: Weights to use in place of the file's.
            cache_dir: Folder for downloads.
            from_tf: Whether to read the original's NumPy files.
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
        model.set_num_special_tokens(model.config.n_special if num_special_tokens is None else num_special_tokens)
        return model


class OpenAIGPTModel(OpenAIGPTPreTrainedModel, core.OpenAIGPTModel):
    """The decoder.

    Args:
        config: The sizes.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.put_on_faces()

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, position_ids: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Compute the states of tokens.

        Args:
            input_ids: [..., T].
            position_ids: [..., T] or [T]; counted from 0 by default.
            token_type_ids: [..., T], ids of tokens whose vectors are added.

        Returns:
            [..., T, H].
        """
        inputs = token_inputs(input_ids, position_ids, token_type_ids)
        states: Tensor = core.OpenAIGPTModel.forward(self, **inputs, return_dict=True).last_hidden_state
        return states

    def _run_layers(self, hidden: Tensor, inputs: DecoderInputs, need_states: bool, need_probs: bool) -> Decoded:
        """Run the layers; those of a user's own are called as in 0.6.2."""
        if not layers_called_as_in_062(self.h, Block, Attention, inputs, need_probs):
            return super()._run_layers(hidden, inputs, need_states, need_probs)
        return run_as_in_062(self.h, hidden, need_states, lambda _, block, states: (block(states), ()))


class OpenAIGPTLMHeadModel(WithVocabulary, OpenAIGPTPreTrainedModel, core_heads.OpenAIGPTLMHeadModel):
    """The language model.

    Args:
        config: The sizes.
    """

    decoder_class: ClassVar[type[nn.Module]] = OpenAIGPTModel

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.put_on_faces()

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        position_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        lm_labels: Tensor | None = None,
    ) -> Any:
        """The loss alone where labels are given; otherwise scores [..., T, V].

        Args:
            input_ids: See `OpenAIGPTModel.forward`; likewise `position_ids` and `token_type_ids`.
            position_ids: See there.
            token_type_ids: See there.
            lm_labels: [..., T], usually the ids: they are shifted here. Below 0 is ignored.
        """
        hidden = self.transformer(input_ids, position_ids, token_type_ids)
        output = language_model_output(
            self.lm_head,
            BaseModelOutputWithPast.of(last_hidden_state=hidden),
            labels=None,
            lm_labels=lm_labels,
            output_logits=lm_labels is None or needs_scores(self.lm_head),
            words=self._words,
        )
        return output.logits if lm_labels is None else output.loss


class OpenAIGPTDoubleHeadsModel(WithVocabulary, OpenAIGPTPreTrainedModel, core_heads.OpenAIGPTDoubleHeadsModel):
    """The language model with a second head that chooses between texts.

    Args:
        config: The sizes.
    """

    decoder_class: ClassVar[type[nn.Module]] = OpenAIGPTModel

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.multiple_choice_head = OpenAIGPTMultipleChoiceHead(config)
        self.put_on_faces()

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        mc_token_ids: Tensor,
        lm_labels: Tensor | None = None,
        mc_labels: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Any:
        """The list of losses where labels are given; otherwise [B, C, T, V] and [B, C].

        Args:
            input_ids: [B, C, T]; see `OpenAIGPTModel.forward`, also for `token_type_ids` and `position_ids`.
            mc_token_ids: [B, C], place of the token in each text whose state is scored.
            lm_labels: [B, C, T], see `OpenAIGPTLMHeadModel.forward`.
            mc_labels: [B], number of the right choice.
            token_type_ids: See there.
            position_ids: See there.
        """
        hidden = self.transformer(input_ids, position_ids, token_type_ids)
        output = double_heads_output(
            self.lm_head,
            self.multiple_choice_head,
            BaseModelOutputWithPast.of(last_hidden_state=hidden),
            places=(mc_token_ids, None),
            choices=(mc_labels, None),
            lm_labels=lm_labels,
            words=self._words,
        )
        losses = [loss for loss in (output.lm_loss, output.mc_loss) if loss is not None]
        return losses or (output.lm_logits, output.mc_logits)
