"""Transformer-XL as 0.6.2 had it, on the models of `pytorch_transformers`.

Parts take and give tokens first, [T, B, H]; models take ids [B, T]. K is the number of keys, memory and segment.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pytorch_transformers.checkpoint.keymap import plan_to_original
from pytorch_transformers.models.transfo_xl import adaptive_softmax as core_softmax
from pytorch_transformers.models.transfo_xl import heads as core_heads
from pytorch_transformers.models.transfo_xl import model as core
from pytorch_transformers.models.transfo_xl import relative_attention as core_attention
from pytorch_transformers.models.transfo_xl.config import TransfoXLConfig as CoreConfig
from pytorch_transformers.models.transfo_xl.convert import key_map
from pytorch_transformers.models.transfo_xl.memory import LayerMemory
from pytorch_transformers.models.transfo_xl.relative_attention import Context, LayerOutput, relative_shift

from .archives import TRANSFO_XL_CONFIGS as PRETRAINED_CONFIG_ARCHIVE_MAP
from .archives import TRANSFO_XL_MODELS as PRETRAINED_MODEL_ARCHIVE_MAP
from .classic import ClassicConfig, ClassicModel, ClassicNames, WithDecoder, called_as_in_062, with_face
from .file_utils import CONFIG_NAME, WEIGHTS_NAME, cached_path
from .modeling import BertLayerNorm as LayerNorm
from .modeling_transfo_xl_utilities import ProjectedAdaptiveLogSoftmax, sample_logits

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "CONFIG_NAME",
    "PRETRAINED_CONFIG_ARCHIVE_MAP",
    "PRETRAINED_MODEL_ARCHIVE_MAP",
    "TF_WEIGHTS_NAME",
    "WEIGHTS_NAME",
    "AdaptiveEmbedding",
    "DecoderLayer",
    "LayerNorm",
    "MultiHeadAttn",
    "PositionalEmbedding",
    "PositionwiseFF",
    "ProjectedAdaptiveLogSoftmax",
    "RelLearnableDecoderLayer",
    "RelLearnableMultiHeadAttn",
    "RelMultiHeadAttn",
    "RelPartialLearnableDecoderLayer",
    "RelPartialLearnableMultiHeadAttn",
    "TransfoXLConfig",
    "TransfoXLLMHeadModel",
    "TransfoXLModel",
    "TransfoXLPreTrainedModel",
    "build_tf_to_pytorch_map",
    "cached_path",
    "load_tf_weights_in_transfo_xl",
    "sample_logits",
]

logger = logging.getLogger(__name__)

TF_WEIGHTS_NAME: Final = "model.ckpt"
_CUTOFFS: Final = [20000, 40000, 200000]
#: Score of a key that isn't seen, as in 0.6.2; finite, so that a row without any other stays a number.
_UNSEEN: Final = -1e30
#: Attention that is published, and has no model.
_OTHER_ATTENTION: Final = (
    "only attn_type=0 is supported, relative attention with a matrix for distances, which all published checkpoints "
    "have: use RelPartialLearnableMultiHeadAttn and RelPartialLearnableDecoderLayer"
)


def build_tf_to_pytorch_map(model: Any, config: CoreConfig) -> dict[str, Any]:
    """The original's names of the weights of a model -> its parameters, or pieces of them.

    The biases of attention, which are one array there, come as lists, a parameter for each layer.

    Args:
        model: A `TransfoXLModel` or `TransfoXLLMHeadModel`.
        config: Its configuration.

    Raises:
        ValueError: The original has no such weights.
    """
    prefix = "" if hasattr(model, "transformer") else "transformer."
    parameters = {prefix + name: parameter for name, parameter in model.named_parameters()}
    found: dict[str, Any] = {}
    shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    for step in plan_to_original(key_map(config), shapes):
        parameter = parameters[step.source]
        if step.target.endswith(("/r_w_bias", "/r_r_bias")):
            found.setdefault(step.target, []).append(parameter)
        else:
            found[step.target] = parameter if step.source_rows is None else parameter[slice(*step.source_rows)]
    return found


def load_tf_weights_in_transfo_xl(model: Any, config: CoreConfig, tf_path: str | PathLike[str]) -> Any:
    """Read the original's checkpoint into a model, in place; returns it.

    Raises:
        OSError: There is no checkpoint, or it is damaged.
        ValueError: Names or shapes don't fit; the message lists all of them.
    """
    return ClassicModel.load_tf_weights(model, config, tf_path)


class TransfoXLConfig(ClassicConfig, CoreConfig):
    """See `pytorch_transformers.TransfoXLConfig`; the arguments are those of 0.6.2.

    With `same_length` a token sees `mem_len` - 1 tokens before it, as in 0.6.2: one fewer than in the original.
    """

    def __init__(
        self,
        vocab_size_or_config_json_file: Any = 267735,
        cutoffs: Sequence[int] = _CUTOFFS,
        d_model: int = 1024,
        d_embed: int = 1024,
        n_head: int = 16,
        d_head: int = 64,
        d_inner: int = 4096,
        div_val: int = 4,
        pre_lnorm: bool = False,
        n_layer: int = 18,
        tgt_len: int = 128,
        ext_len: int = 0,
        mem_len: int = 1600,
        clamp_len: int = 1000,
        same_length: bool = True,
        proj_share_all_but_first: bool = True,
        attn_type: int = 0,
        sample_softmax: int = -1,
        adaptive: bool = True,
        tie_weight: bool = True,
        dropout: float = 0.1,
        dropatt: float = 0.0,
        untie_r: bool = True,
        init: str = "normal",
        init_range: float = 0.01,
        proj_init_std: float = 0.01,
        init_std: float = 0.02,
        *,
        same_length_one_fewer: bool = True,
        **others: Any,
    ) -> None:
        super().__init__(
            vocab_size_or_config_json_file,
            cutoffs,
            d_model,
            d_embed,
            n_head,
            d_head,
            d_inner,
            div_val,
            pre_lnorm,
            n_layer,
            tgt_len,
            ext_len,
            mem_len,
            clamp_len,
            same_length,
            proj_share_all_but_first,
            attn_type,
            sample_softmax,
            adaptive,
            tie_weight,
            dropout,
            dropatt,
            untie_r,
            init,
            init_range,
            proj_init_std,
            init_std,
            same_length_one_fewer=same_length_one_fewer,
            **others,
        )


def _wave_numbers(embedding: "PositionalEmbedding") -> Tensor:
    """The wave numbers [H / 2] that 0.6.2 keeps as a buffer."""
    steps = torch.arange(0.0, embedding.demb, 2.0) / embedding.demb
    numbers: Tensor = 1.0 / core_attention._WAVES**steps
    return numbers


class PositionalEmbedding(ClassicNames, core_attention.PositionalEmbedding):
    """Sinusoids of distances: all sines first, then all cosines.

    Args:
        demb: Width, H.
    """

    constants: ClassVar[Mapping[str, Callable[[Any], Tensor]]] = {"inv_freq": _wave_numbers}

    @property
    def inv_freq(self) -> Tensor:
        """The wave numbers [H / 2]; made when asked for."""
        return _wave_numbers(self)

    def forward(self, pos_seq: Tensor, bsz: int | None = None) -> Tensor:
        """Distances [K] -> [K, 1, H], or [K, B, H] for a batch."""
        table = super().forward(pos_seq)[:, None]
        return table if bsz is None else table.expand(-1, bsz, -1)


class AdaptiveEmbedding(core_softmax.AdaptiveEmbedding):
    """Embeddings of a vocabulary in clusters; see `pytorch_transformers` for the arguments."""

    @property
    def n_token(self) -> int:
        """Number of words, V."""
        return self.num_embeddings

    @property
    def d_embed(self) -> int:
        """Width of the head's embeddings."""
        return self._parts[0].width

    @property
    def cutoffs(self) -> list[int]:
        """Where the clusters end."""
        return [*self._cutoffs, self.n_token]

    @property
    def cutoff_ends(self) -> list[int]:
        """The same with 0 in front."""
        return [0, *self.cutoffs]


class PositionwiseFF(core_attention.PositionwiseFF):
    """The feed-forward part of a layer.

    Args:
        d_model: Width of the hidden states, H.
        d_inner: Width inside, F.
        dropout: Dropout inside and of the result.
        pre_lnorm: Whether to normalise before it rather than after it.
    """

    def forward(self, inp: Tensor) -> Tensor:
        """[..., H] -> [..., H]."""
        return super().forward(inp)


class MultiHeadAttn(nn.Module):
    """Attention without distances (attn_type 2 and 3).

    Raises:
        NotImplementedError: Always.
    """

    def __init__(
        self,
        n_head: int,
        d_model: int,
        d_head: int,
        dropout: float,
        dropatt: float = 0,
        pre_lnorm: bool = False,
        r_r_bias: Any = None,
        r_w_bias: Any = None,
    ) -> None:
        raise NotImplementedError(f"MultiHeadAttn: {_OTHER_ATTENTION}")

    def forward(self, h: Tensor, attn_mask: Tensor | None = None, mems: Tensor | None = None) -> Tensor:
        """Not supported."""
        raise NotImplementedError(f"MultiHeadAttn: {_OTHER_ATTENTION}")


class RelMultiHeadAttn(nn.Module):
    """What the relative attentions share; `RelPartialLearnableMultiHeadAttn` is the one to use.

    Args:
        n_head: Heads, A.
        d_model: Width of the hidden states, H.
        d_head: Size of a head, D.
        dropout: Dropout of the result.
        dropatt: Dropout of the probabilities.
        tgt_len: Not used, as in 0.6.2; likewise `ext_len` and `mem_len`.
        ext_len: See there.
        mem_len: See there.
        pre_lnorm: Whether to normalise before attention rather than after it.
        r_r_bias: [A, D] shared with other layers; the layer's own where it isn't given.
        r_w_bias: The same.

    Raises:
        NotImplementedError: It is constructed itself.
    """

    _supported = False
    qkv_net: nn.Linear
    d_head: int

    @property
    def d_model(self) -> int:
        """Width of the hidden states, H."""
        return self.qkv_net.in_features

    @property
    def scale(self) -> float:
        """What scores are multiplied by."""
        return self.d_head**-0.5

    def __init__(
        self,
        n_head: int,
        d_model: int,
        d_head: int,
        dropout: float,
        dropatt: float = 0,
        tgt_len: int | None = None,
        ext_len: int | None = None,
        mem_len: int | None = None,
        pre_lnorm: bool = False,
        r_r_bias: nn.Parameter | None = None,
        r_w_bias: nn.Parameter | None = None,
    ) -> None:
        if not self._supported:
            raise NotImplementedError(f"{type(self).__name__}: {_OTHER_ATTENTION}")
        del tgt_len, ext_len, mem_len
        super().__init__(
            n_head,
            d_model,
            d_head,
            dropout,
            dropatt,
            pre_lnorm=pre_lnorm,
            r_r_bias=r_r_bias,
            r_w_bias=r_w_bias,
        )

    def _rel_shift(self, x: Tensor, zero_triu: bool = False) -> Tensor:
        """Line up scores by distance with keys: [T, K, B, A], of distances K - 1 to 0, in the same shape."""
        shifted = relative_shift(F.pad(x.permute(2, 3, 0, 1), (1, 0)))
        if zero_triu:
            shifted = shifted.tril(x.shape[1] - x.shape[0])
        return shifted.permute(2, 3, 0, 1)

    def _parallelogram_mask(self, h: int, w: int, left: bool = False) -> Tensor:
        """Not supported; 0.6.2 doesn't use it."""
        raise NotImplementedError(f"{type(self).__name__}._parallelogram_mask: use _rel_shift, as 0.6.2 does")

    def _shift(self, x: Tensor, qlen: int, klen: int, mask: Tensor, left: bool = False) -> Tensor:
        """Not supported; 0.6.2 doesn't use it."""
        raise NotImplementedError(f"{type(self).__name__}._shift: use _rel_shift, as 0.6.2 does")

    def forward(self, w: Tensor, r: Tensor, attn_mask: Tensor | None = None, mems: Tensor | None = None) -> Tensor:
        """For subclasses."""
        raise NotImplementedError(f"{type(self).__name__}: {_OTHER_ATTENTION}")


class RelPartialLearnableMultiHeadAttn(RelMultiHeadAttn, core_attention.RelPartialLearnableMultiHeadAttn):
    """Relative attention with a learned matrix for distances; see `RelMultiHeadAttn` for the arguments."""

    _supported = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def forward(self, w: Tensor, r: Any, attn_mask: Any = None, mems: Any = None, *of_core: Any) -> Any:
        """Mix each token with what it sees.

        Args:
            w: [T, B, H], what goes into the layer.
            r: [K, 1, H], sinusoids of the distances K - 1 to 0.
            attn_mask: [T, K, B] or [T, K, 1], or [K, B] for all tokens alike; 1 or True hides a key.
            mems: [M, B, H], what went into this layer for earlier tokens.
            *of_core: What the models pass.

        Returns:
            [T, B, H].
        """
        core_forward = core_attention.RelPartialLearnableMultiHeadAttn.forward
        if isinstance(r, Context):
            return core_forward(self, w, r, attn_mask, mems, *of_core)
        memory = None if mems is None else mems.transpose(0, 1)
        context = Context(F.pad(r.flatten(1), (0, 0, 1, 0)), _added(attn_mask, w), None)
        mixed, _ = core_forward(self, w.transpose(0, 1), context, memory)
        return mixed.transpose(0, 1)


def _added(attn_mask: Tensor | None, like: Tensor) -> Tensor | None:
    """What is added to the scores [B, A, T, K] for a mask of 0.6.2."""
    if attn_mask is None:
        return None
    hidden = attn_mask.bool()
    hidden = hidden.permute(2, 0, 1)[:, None] if hidden.ndim == 3 else hidden.t()[:, None, None]
    score = _UNSEEN if torch.finfo(like.dtype).max > -_UNSEEN else -torch.inf
    return torch.zeros_like(hidden, dtype=like.dtype).masked_fill(hidden, score)


class RelLearnableMultiHeadAttn(RelMultiHeadAttn):
    """Relative attention with a learned vector for each distance (attn_type 1).

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"RelLearnableMultiHeadAttn: {_OTHER_ATTENTION}")

    def forward(  # type: ignore[override]
        self,
        w: Tensor,
        r_emb: Tensor,
        r_w_bias: Tensor,
        r_bias: Tensor,
        attn_mask: Tensor | None = None,
        mems: Tensor | None = None,
    ) -> Tensor:
        """Not supported."""
        raise NotImplementedError(f"RelLearnableMultiHeadAttn: {_OTHER_ATTENTION}")


class DecoderLayer(nn.Module):
    """A layer with attention without distances (attn_type 2 and 3).

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, n_head: int, d_model: int, d_head: int, d_inner: int, dropout: float, **kwargs: Any) -> None:
        raise NotImplementedError(f"DecoderLayer: {_OTHER_ATTENTION}")

    def forward(self, dec_inp: Tensor, dec_attn_mask: Tensor | None = None, mems: Tensor | None = None) -> Tensor:
        """Not supported."""
        raise NotImplementedError(f"DecoderLayer: {_OTHER_ATTENTION}")


class RelLearnableDecoderLayer(nn.Module):
    """A layer with a learned vector for each distance (attn_type 1).

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, n_head: int, d_model: int, d_head: int, d_inner: int, dropout: float, **kwargs: Any) -> None:
        raise NotImplementedError(f"RelLearnableDecoderLayer: {_OTHER_ATTENTION}")

    def forward(
        self,
        dec_inp: Tensor,
        r_emb: Tensor,
        r_w_bias: Tensor,
        r_bias: Tensor,
        dec_attn_mask: Tensor | None = None,
        mems: Tensor | None = None,
    ) -> Tensor:
        """Not supported."""
        raise NotImplementedError(f"RelLearnableDecoderLayer: {_OTHER_ATTENTION}")


class RelPartialLearnableDecoderLayer(core_attention.RelPartialLearnableDecoderLayer):
    """One layer.

    Args:
        n_head: Heads, A.
        d_model: Width of the hidden states, H.
        d_head: Size of a head, D.
        d_inner: Width inside the feed-forward part, F.
        dropout: Dropout of both parts.
        **kwargs: See `RelMultiHeadAttn`.
    """

    def __init__(self, n_head: int, d_model: int, d_head: int, d_inner: int, dropout: float, **kwargs: Any) -> None:
        for name in ("tgt_len", "ext_len", "mem_len"):
            kwargs.pop(name, None)
        super().__init__(n_head, d_model, d_head, d_inner, dropout, **kwargs)
        with_face(self, _FACES)

    def forward(self, dec_inp: Tensor, r: Any, dec_attn_mask: Any = None, mems: Any = None, *of_core: Any) -> Any:
        """See `RelPartialLearnableMultiHeadAttn.forward`."""
        if isinstance(r, Context):
            return super().forward(dec_inp, r, dec_attn_mask, mems, *of_core)
        return self.pos_ff(self.dec_attn(dec_inp, r, attn_mask=dec_attn_mask, mems=mems))


_FACES: Final[Mapping[type[nn.Module], type[nn.Module]]] = {
    core_attention.PositionalEmbedding: PositionalEmbedding,
    core_attention.PositionwiseFF: PositionwiseFF,
    core_softmax.AdaptiveEmbedding: AdaptiveEmbedding,
    core_attention.RelPartialLearnableMultiHeadAttn: RelPartialLearnableMultiHeadAttn,
    core_attention.RelPartialLearnableDecoderLayer: RelPartialLearnableDecoderLayer,
    core_softmax.ProjectedAdaptiveLogSoftmax: ProjectedAdaptiveLogSoftmax,
}


class TransfoXLPreTrainedModel(ClassicModel, core.TransfoXLPreTrainedModel):
    """Base of the classic Transformer-XL models, and of your own.

    Args:
        config: The sizes.
        *inputs: Not used; for subclasses.
        **kwargs: Not used; for subclasses.
    """

    config_class: ClassVar[type[TransfoXLConfig]] = TransfoXLConfig
    pretrained_model_archive_map: ClassVar[Mapping[str, str]] = PRETRAINED_MODEL_ARCHIVE_MAP
    faces: ClassVar[Mapping[type[nn.Module], type[nn.Module]]] = _FACES

    def _init_weights(self, module: nn.Module) -> None:
        """As in 0.6.2, where the weights of normalisation are drawn around 1."""
        super()._init_weights(module)
        if isinstance(module, nn.LayerNorm):
            module.weight.normal_(1.0, self.config.init_std)

    def init_weights(self, m: nn.Module | None = None) -> None:
        """Draw the weights of one module anew, for `self.apply(self.init_weights)`; or of all."""
        super().init_weights(m)

    @torch.no_grad()
    def init_weight(self, weight: Tensor) -> None:
        """Draw one matrix anew, as the configuration says."""
        if self.config.init == "uniform":
            weight.uniform_(-self.config.init_range, self.config.init_range)
        else:
            weight.normal_(0.0, self.config.init_std)

    @torch.no_grad()
    def init_bias(self, bias: Tensor) -> None:
        """Set one bias to 0."""
        bias.zero_()

    def set_num_special_tokens(self, num_special_tokens: int) -> None:
        """Do nothing, as in 0.6.2: special tokens are in the vocabulary."""

    def _make_decoder(self, config: Any) -> "TransfoXLModel":
        return TransfoXLModel(config)

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
        """Load a model, in training mode as 0.6.2 left it: call `eval()` before using it.

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
        return super().from_pretrained(
            pretrained_model_name_or_path,
            *inputs,
            state_dict=state_dict,
            cache_dir=cache_dir,
            from_tf=from_tf,
            **kwargs,
        )


def _of_config(name: str) -> Any:
    """A value of the configuration as an attribute of the model, to be read."""
    return property(lambda model: getattr(model.config, name), doc=f"`{name}` of the configuration.")


class TransfoXLModel(TransfoXLPreTrainedModel, core.TransfoXLModel):
    """The decoder.

    Args:
        config: The sizes.
    """

    n_token = _of_config("n_token")
    d_embed = _of_config("d_embed")
    d_model = _of_config("d_model")
    n_head = _of_config("n_head")
    d_head = _of_config("d_head")
    n_layer = _of_config("n_layer")
    attn_type = _of_config("attn_type")

    @property
    def max_klen(self) -> int:
        """Most keys that a token sees, with the lengths of the configuration."""
        return int(self.config.tgt_len + self.config.ext_len + self.config.mem_len)

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.put_on_faces()

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, mems: Sequence[Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor] | None]:
        """Compute the states of a segment.

        Args:
            input_ids: [B, T].
            mems: The second result for the segment before; at the start None, for zeros, which are attended to.

        Returns:
            The states [B, T, H]; for each layer what to remember, [M, B, H], batch second. None if `mem_len` is 0.
        """
        output = core.TransfoXLModel.forward(self, input_ids, mems, return_dict=True)
        return output.last_hidden_state, _listed(output.mems)

    def _run_layer(
        self,
        layer: nn.Module,
        hidden: Tensor,
        context: Context,
        memory: Tensor | LayerMemory | None,
        head_mask: Tensor | None,
        need_probs: bool,
    ) -> LayerOutput:
        """Run one layer; one of a user's own is called as in 0.6.2, with a mask of type bool."""
        parts: list[tuple[Any, type[nn.Module]]] = [(layer, RelPartialLearnableDecoderLayer)]
        if hasattr(layer, "dec_attn"):
            parts.append((layer.dec_attn, RelPartialLearnableMultiHeadAttn))
        asked = {
            "text generation": isinstance(memory, LayerMemory),
            "head_mask": head_mask is not None,
            "output_attentions": need_probs,
        }
        if not called_as_in_062(parts, asked):
            return super()._run_layer(layer, hidden, context, memory, head_mask, need_probs)
        distances = context.distances[1:, None]  # [K, 1, H]
        if context.mask is None:
            unseen = torch.zeros(hidden.shape[1], len(distances), 1, dtype=torch.bool, device=hidden.device)
        else:
            unseen = (context.mask != 0)[:, :, None]
        mems = memory.transpose(0, 1) if isinstance(memory, Tensor) else None
        mixed: Tensor = layer(hidden.transpose(0, 1), distances, dec_attn_mask=unseen, mems=mems)
        return LayerOutput(mixed.transpose(0, 1).contiguous(), None)

    def sinusoids(self, longest: int) -> Tensor:
        """See `pytorch_transformers`: [longest + 1, H]."""
        return super().sinusoids(longest).squeeze(1)

    def init_mems(self, data: Tensor | int) -> Any:
        """The memory at the start of a text: a list of zeros [mem_len, B, H]; None if `mem_len` is 0.

        Args:
            data: Ids [T, B], **tokens first**; or the batch size B, or states [B, T, H].
        """
        ids = isinstance(data, Tensor) and data.ndim == 2
        return _listed(super().init_mems(data.shape[1] if isinstance(data, Tensor) and ids else data))


def _listed(mems: Sequence[Tensor] | None) -> list[Tensor] | None:
    return None if mems is None else list(mems)


class TransfoXLLMHeadModel(WithDecoder, TransfoXLPreTrainedModel, core_heads.TransfoXLLMHeadModel):
    """The language model.

    Args:
        config: The sizes.
    """

    decoder_class: ClassVar[type[nn.Module]] = TransfoXLModel
    sample_softmax = _of_config("sample_softmax")

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.put_on_faces()

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, target: Tensor | None = None, mems: Sequence[Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor] | None]:
        """Score what follows each word.

        Args:
            input_ids: See `TransfoXLModel.forward`; likewise `mems`.
            target: [B, T], the words that follow; they are **not** shifted here.
            mems: See there.

        Returns:
            The loss of each word [B, T], each at its place (0.6.2 grouped them by cluster); without a target the
            log-probabilities [B, T, V]. Then what to remember, see `TransfoXLModel.forward`.
        """
        labels = target if target is None or target.numel() != input_ids.numel() else target.reshape(input_ids.shape)
        if labels is not None:
            self._check_labels(labels, input_ids)
        hidden, new_mems = self.transformer(input_ids, mems)
        losses, scores = self._loss_or_scores(hidden, labels)
        found: Any = scores if losses is None else losses
        return found, new_mems
