"""BERT as 0.6.2 had it, on the models of `pytorch_transformers`."""

import copy
import logging
from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pytorch_transformers.models.bert import heads as core_heads
from pytorch_transformers.models.bert import model as core
from pytorch_transformers.models.bert.config import BertConfig as CoreConfig
from pytorch_transformers.models.config import PretrainedConfig
from pytorch_transformers.nn import activations
from pytorch_transformers.nn.layouts import Packed, Padded
from pytorch_transformers.nn.losses import classification_loss
from pytorch_transformers.nn.masks import additive_key_mask

from .archives import BERT_MODELS as PRETRAINED_MODEL_ARCHIVE_MAP
from .classic import ClassicConfig, ClassicModel, real_rows, with_face
from .file_utils import CONFIG_NAME, WEIGHTS_NAME, cached_path

__all__ = [
    "ACT2FN",
    "BERT_CONFIG_NAME",
    "CONFIG_NAME",
    "PRETRAINED_MODEL_ARCHIVE_MAP",
    "TF_WEIGHTS_NAME",
    "WEIGHTS_NAME",
    "BertAttention",
    "BertConfig",
    "BertEmbeddings",
    "BertEncoder",
    "BertForMaskedLM",
    "BertForMultipleChoice",
    "BertForNextSentencePrediction",
    "BertForPreTraining",
    "BertForQuestionAnswering",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertIntermediate",
    "BertLMPredictionHead",
    "BertLayer",
    "BertLayerNorm",
    "BertModel",
    "BertOnlyMLMHead",
    "BertOnlyNSPHead",
    "BertOutput",
    "BertPooler",
    "BertPreTrainedModel",
    "BertPreTrainingHeads",
    "BertPredictionHeadTransform",
    "BertSelfAttention",
    "BertSelfOutput",
    "PreTrainedBertModel",
    "cached_path",
    "gelu",
    "load_tf_weights_in_bert",
    "swish",
]

logger = logging.getLogger(__name__)

BERT_CONFIG_NAME: Final = "bert_config.json"
TF_WEIGHTS_NAME: Final = "model.ckpt"


def gelu(x: Tensor) -> Tensor:
    """GELU by its exact formula."""
    return activations.gelu(x)


def swish(x: Tensor) -> Tensor:
    """X times its sigmoid."""
    return activations.swish(x)


#: Activations by name.
ACT2FN: Final = {"gelu": gelu, "relu": F.relu, "swish": swish}


def load_tf_weights_in_bert(model: Any, tf_checkpoint_path: str | PathLike[str]) -> Any:
    """Read a TensorFlow checkpoint into a model, in place; returns it.

    Raises:
        OSError: There is no checkpoint of that prefix, or it is damaged.
        ValueError: Names or shapes don't fit; the message lists all of them.
    """
    return ClassicModel.load_tf_weights(model, tf_checkpoint_path)


class BertConfig(ClassicConfig, CoreConfig):
    """See `pytorch_transformers.BertConfig`; the arguments are those of 0.6.2."""

    def __init__(
        self,
        vocab_size_or_config_json_file: Any,
        hidden_size: int = 768,
        num_hidden_layers: int = 12,
        num_attention_heads: int = 12,
        intermediate_size: int = 3072,
        hidden_act: Any = "gelu",
        hidden_dropout_prob: float = 0.1,
        attention_probs_dropout_prob: float = 0.1,
        max_position_embeddings: int = 512,
        type_vocab_size: int = 2,
        initializer_range: float = 0.02,
        **others: Any,
    ) -> None:
        super().__init__(
            vocab_size_or_config_json_file,
            hidden_size=hidden_size,
            num_hidden_layers=num_hidden_layers,
            num_attention_heads=num_attention_heads,
            intermediate_size=intermediate_size,
            hidden_act=hidden_act,
            hidden_dropout_prob=hidden_dropout_prob,
            attention_probs_dropout_prob=attention_probs_dropout_prob,
            max_position_embeddings=max_position_embeddings,
            type_vocab_size=type_vocab_size,
            initializer_range=initializer_range,
            **others,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the values of a pickle, that of a configuration of 0.6.2 too, which has fewer of them."""
        if "_foreign" not in state:
            state = vars(type(self).from_dict(state))
        vars(self).update(state)


class BertLayerNorm(nn.LayerNorm):
    """Layer normalisation with the epsilon of BERT.

    Args:
        hidden_size: Width, H; or a configuration that says it, as in the first releases.
        eps: Added to the variance.
        variance_epsilon: Its name in the first releases.
    """

    def __init__(self, hidden_size: Any, eps: float = 1e-12, variance_epsilon: float | None = None) -> None:
        width = getattr(hidden_size, "hidden_size", hidden_size)
        super().__init__(width, eps=eps if variance_epsilon is None else variance_epsilon)

    @property
    def variance_epsilon(self) -> float:
        """What is added to the variance."""
        return self.eps

    def forward(self, x: Tensor) -> Tensor:
        """[..., H] -> [..., H]."""
        return super().forward(x)


class BertEmbeddings(core.BertEmbeddings):
    """The embeddings; the word with id 0 learns nothing as an input."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.leave_padding()

    def leave_padding(self) -> None:
        """Give id 0, which is [PAD] in published vocabularies, no gradient where it is looked up."""
        self.word_embeddings.padding_idx = 0

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None = None, *of_core: Any) -> Tensor:
        """Ids and segments [B, T] -> [B, T, H]."""
        if of_core:
            return super().forward(input_ids, token_type_ids, *of_core)  # type: ignore[arg-type]
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        return super().forward(self.word_embeddings(input_ids), places, token_type_ids)


class BertSelfAttention(core.BertSelfAttention):
    """Self-attention without the projection after it."""

    #: Whether to keep the result of each head, with its gradient: [B, A, T, D] in `multihead_output`.
    keep_multihead_output = False
    multihead_output: Tensor | None = None

    def forward(self, hidden_states: Tensor, attention_mask: Any, *of_core: Any) -> Any:
        """[B, T, H] and a mask to add [B, 1, 1, T] -> [B, T, H]."""
        classic = not isinstance(attention_mask, Padded | Packed)
        arguments = (Padded(attention_mask), None, False, False) if classic else (attention_mask, *of_core)
        context, probs = super().forward(hidden_states, *arguments)
        if self.keep_multihead_output and context.ndim == 3:
            by_head = context.unflatten(-1, (self.num_attention_heads, -1)).transpose(1, 2)
            if by_head.requires_grad:
                by_head.retain_grad()
            self.multihead_output = by_head
            context = by_head.transpose(1, 2).flatten(2)
        return context if classic else (context, probs)

    @property
    def attention_head_size(self) -> int:
        """Size of a head, D."""
        return self.head_size

    @property
    def all_head_size(self) -> int:
        """Width of all heads together, A D."""
        return self.num_attention_heads * self.head_size

    def transpose_for_scores(self, x: Tensor) -> Tensor:
        """[B, T, A * D] -> [B, A, T, D]."""
        return x.unflatten(-1, (self.num_attention_heads, -1)).transpose(1, 2)


class BertSelfOutput(core.BertSelfOutput):
    """Projection of the attended values, residual and normalisation."""

    def forward(self, hidden_states: Tensor, input_tensor: Tensor) -> Tensor:
        """[B, T, H] twice -> [B, T, H]."""
        return super().forward(hidden_states, input_tensor)


class BertAttention(core.BertAttention):
    """Self-attention with its output part."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        with_face(self, BertPreTrainedModel.faces)

    def forward(self, input_tensor: Tensor, attention_mask: Tensor) -> Tensor:
        """[B, T, H] and a mask to add [B, 1, 1, T] -> [B, T, H]."""
        context = self.self(input_tensor, attention_mask)
        attended: Tensor = self.output(context, input_tensor)
        return attended


def _renamed(name: str) -> Any:
    """The activation of a part under the name that 0.6.2 has for it; it may be set."""

    def read(part: Any) -> Any:
        return part.activation

    def write(part: Any, function: Any) -> None:
        part.activation = function

    return property(read, write, doc=f"`{name}`: the activation.")


class _WithActivation(nn.Module):
    """Lets a module be given as the activation under its classic name, too; a module's own rule would hide it."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__("activation" if name in ("intermediate_act_fn", "transform_act_fn") else name, value)


class BertIntermediate(_WithActivation, core.BertIntermediate):
    """First half of the feed-forward part."""

    intermediate_act_fn = _renamed("intermediate_act_fn")

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[B, T, H] -> [B, T, F]."""
        return super().forward(hidden_states)


class BertOutput(core.BertOutput):
    """Second half of the feed-forward part."""

    def forward(self, hidden_states: Tensor, input_tensor: Tensor) -> Tensor:
        """[B, T, F] and [B, T, H] -> [B, T, H]."""
        return super().forward(hidden_states, input_tensor)


class BertLayer(core.BertLayer):
    """One layer."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        with_face(self, BertPreTrainedModel.faces)

    def forward(self, hidden_states: Tensor, attention_mask: Any, *of_core: Any) -> Any:
        """[B, T, H] and a mask to add [B, 1, 1, T] -> [B, T, H]."""
        if isinstance(attention_mask, Padded | Packed):
            return super().forward(hidden_states, attention_mask, *of_core)
        attended = self.attention(hidden_states, attention_mask)
        return self.output(self.intermediate(attended), attended)


class BertEncoder(core.BertEncoder):
    """The stack of layers."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        with_face(self, BertPreTrainedModel.faces)

    def forward(
        self, hidden_states: Tensor, attention_mask: Any, output_all_encoded_layers: Any = True, *of_core: Any
    ) -> Any:
        """[B, T, H] and a mask to add [B, 1, 1, T] -> the states after each layer, or a list of the last alone."""
        if isinstance(attention_mask, Padded | Packed):
            return super().forward(hidden_states, attention_mask, output_all_encoded_layers, *of_core)
        states = []
        for layer in self.layer:
            hidden_states = layer(hidden_states, attention_mask)
            states.append(hidden_states)
        return states if output_all_encoded_layers else [hidden_states]


class BertPooler(core.BertPooler):
    """A dense layer with tanh over the first token."""

    @property
    def activation(self) -> Any:
        """Its activation."""
        return torch.tanh

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[B, T, H] -> [B, H]."""
        return super().forward(hidden_states)


class BertPredictionHeadTransform(_WithActivation, core_heads.BertPredictionHeadTransform):
    """What comes before the projection onto the vocabulary."""

    transform_act_fn = _renamed("transform_act_fn")

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[B, T, H] -> [B, T, H]."""
        return super().forward(hidden_states)


def _tied(head: Any, weights: nn.Parameter) -> None:
    """Give a head the table of words [V, H] as its projection."""
    head.decoder.weight = weights
    head.decoder.out_features = weights.shape[0]
    head.bias = nn.Parameter(torch.zeros(weights.shape[0]))


class BertLMPredictionHead(core_heads.BertLMPredictionHead):
    """Scores of all words.

    Args:
        config: The sizes.
        bert_model_embedding_weights: The table of words [V, H].
    """

    def __init__(self, config: Any, bert_model_embedding_weights: nn.Parameter) -> None:
        super().__init__(config)
        self.transform = BertPredictionHeadTransform(config)
        _tied(self, bert_model_embedding_weights)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[B, T, H] -> [B, T, V]."""
        return super().forward(hidden_states)


class BertOnlyMLMHead(core_heads.BertOnlyMLMHead):
    """The masked-language head alone.

    Args:
        config: The sizes.
        bert_model_embedding_weights: The table of words [V, H].
    """

    def __init__(self, config: Any, bert_model_embedding_weights: nn.Parameter) -> None:
        super().__init__(config)
        self.predictions = BertLMPredictionHead(config, bert_model_embedding_weights)

    def forward(self, sequence_output: Tensor) -> Tensor:
        """[B, T, H] -> [B, T, V]."""
        return super().forward(sequence_output)


class BertOnlyNSPHead(core_heads.BertOnlyNSPHead):
    """The next-sentence head alone."""

    def forward(self, pooled_output: Tensor) -> Tensor:
        """[B, H] -> [B, 2]."""
        return super().forward(pooled_output)


class BertPreTrainingHeads(core_heads.BertPreTrainingHeads):
    """Both heads of pre-training.

    Args:
        config: The sizes.
        bert_model_embedding_weights: The table of words [V, H].
    """

    def __init__(self, config: Any, bert_model_embedding_weights: nn.Parameter) -> None:
        super().__init__(config)
        self.predictions = BertLMPredictionHead(config, bert_model_embedding_weights)

    def forward(self, sequence_output: Tensor, pooled_output: Tensor) -> tuple[Tensor, Tensor]:
        """[B, T, H] and [B, H] -> [B, T, V] and [B, 2]."""
        return super().forward(sequence_output, pooled_output)


class BertPreTrainedModel(ClassicModel, core.BertPreTrainedModel):
    """Base of the classic BERT models, and of your own.

    Args:
        config: The sizes.
        *inputs: Not used; for subclasses.
        **kwargs: Not used; for subclasses.
    """

    config_class: ClassVar[type[PretrainedConfig]] = BertConfig
    pretrained_model_archive_map: ClassVar[Mapping[str, str]] = PRETRAINED_MODEL_ARCHIVE_MAP
    faces: ClassVar[Mapping[type[nn.Module], type[nn.Module]]] = {
        nn.LayerNorm: BertLayerNorm,
        core.BertEmbeddings: BertEmbeddings,
        core.BertSelfAttention: BertSelfAttention,
        core.BertSelfOutput: BertSelfOutput,
        core.BertAttention: BertAttention,
        core.BertIntermediate: BertIntermediate,
        core.BertOutput: BertOutput,
        core.BertLayer: BertLayer,
        core.BertEncoder: BertEncoder,
        core.BertPooler: BertPooler,
        core_heads.BertPredictionHeadTransform: BertPredictionHeadTransform,
        core_heads.BertLMPredictionHead: BertLMPredictionHead,
        core_heads.BertOnlyMLMHead: BertOnlyMLMHead,
        core_heads.BertOnlyNSPHead: BertOnlyNSPHead,
        core_heads.BertPreTrainingHeads: BertPreTrainingHeads,
    }

    def put_on_faces(self) -> None:
        """See `ClassicModel.put_on_faces`."""
        super().put_on_faces()
        for module in self.modules():
            if isinstance(module, BertEmbeddings):
                module.leave_padding()

    def init_bert_weights(self, module: nn.Module) -> None:
        """Draw the weights of one module anew, for `self.apply(self.init_bert_weights)`."""
        self.init_weights(module)

    def _make_encoder(self, config: Any, *, pooling: bool = True) -> "BertModel":
        del pooling  # 0.6.2 has a pooler in every model
        return BertModel(config)


class _Told(core.Encoded):
    """What a user's own encoder returned, with its second result."""

    pooled: Tensor


#: The name of the base class in the first releases.
PreTrainedBertModel = BertPreTrainedModel


class BertModel(BertPreTrainedModel, core.BertModel):
    """The encoder.

    Args:
        config: The sizes.
        output_attentions: Whether `forward` returns attention probabilities first.
        keep_multihead_output: Whether to keep what each head gives, with its gradient; see `get_multihead_outputs`.
    """

    def __init__(self, config: Any, output_attentions: bool = False, keep_multihead_output: bool = False) -> None:
        super().__init__(config)
        self.output_attentions = output_attentions
        self.put_on_faces()
        for layer in self.encoder.layer:
            layer.attention.self.keep_multihead_output = keep_multihead_output  # type: ignore[union-attr]

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        output_all_encoded_layers: bool = True,
        head_mask: Tensor | None = None,
    ) -> Any:
        """Encode a batch.

        Args:
            input_ids: [B, T].
            token_type_ids: [B, T], segments; **second**, where `pytorch_transformers` has the mask.
            attention_mask: [B, T], 1 for tokens, 0 for padding.
            output_all_encoded_layers: Whether the first result is a list of the states after each layer [B, T, H], or
                those after the last.
            head_mask: [A] or [L, A], 1 keeps a head.

        Returns:
            The states and the pooled first token [B, H]; before them the attention probabilities if asked for.
        """
        inputs = core.Inputs(input_ids, real_rows(attention_mask), token_type_ids, head_mask=head_mask)
        encoded = self._encode_parts(
            inputs, output_hidden_states=output_all_encoded_layers, output_attentions=self.output_attentions
        )
        hidden = encoded.layout.restore(encoded.hidden)
        found = (list(encoded.states[1:]) if output_all_encoded_layers else hidden, self.pool(encoded))
        return (list(encoded.probs), *found) if self.output_attentions else found

    def encode(self, inputs: core.Inputs, **switches: Any) -> core.Encoded:
        """What models with a head call; where a subclass has a `forward` of its own, that is called."""
        if type(self).forward is BertModel.forward and "forward" not in vars(self):
            return self._encode_parts(inputs, **switches)
        needed = bool(switches.get("output_hidden_states"))
        *_, states, pooled = self(
            inputs.input_ids, inputs.token_type_ids, inputs.attention_mask, output_all_encoded_layers=needed
        )
        all_states = tuple(states) if needed else ()
        encoded = _Told(all_states[-1] if needed else states, Padded(None), all_states, (), False)
        encoded.pooled = pooled
        return encoded

    def _encode_parts(self, inputs: core.Inputs, **switches: Any) -> core.Encoded:
        """Encode part by part as 0.6.2 did where one of them is a user's own, or has hooks; otherwise the fast way."""
        if self._as_made():
            return super().encode(inputs, **switches)
        if inputs.head_mask is not None or switches.get("output_attentions"):
            raise NotImplementedError("head_mask and output_attentions need the parts of the model as they were made")
        self._check(inputs)
        ids = inputs.input_ids
        assert ids is not None
        marks = torch.ones_like(ids) if inputs.attention_mask is None else inputs.attention_mask
        mask = additive_key_mask(marks, self.dtype)
        embedded = self.embeddings(ids, inputs.token_type_ids)
        states = self.encoder(embedded, mask, output_all_encoded_layers=bool(switches.get("output_hidden_states")))
        return core.Encoded(states[-1], Padded(mask), (embedded, *states), (), False)

    def _as_made(self) -> bool:
        """Whether all parts whose calls differ from those of 0.6.2 are those of this module, without hooks."""
        parts: list[tuple[Any, type[nn.Module]]] = [
            (self.embeddings, BertEmbeddings),
            (self.encoder, BertEncoder),
            (self.pooler, BertPooler),
        ]
        for layer in getattr(self.encoder, "layer", ()):
            attention = getattr(layer, "attention", None)
            parts += [(layer, BertLayer), (attention, BertAttention)]
            parts.append((getattr(attention, "self", None), BertSelfAttention))
        return all(
            type(part) is face and "forward" not in vars(part) and not (part._forward_hooks or part._forward_pre_hooks)
            for part, face in parts
        )

    def pool(self, encoded: core.Encoded) -> Tensor:
        """The pooled first token [B, H]."""
        if isinstance(encoded, _Told):
            return encoded.pooled
        if encoded.first_only or isinstance(encoded.layout, Packed):
            return super().pool(encoded)
        pooled: Tensor = self.pooler(encoded.hidden)  # type: ignore[misc]
        return pooled

    def get_multihead_outputs(self) -> list[Tensor | None]:
        """What each head gave in the last forward, [B, A, T, D] a layer, with `.grad` after a backward pass."""
        return [layer.attention.self.multihead_output for layer in self.encoder.layer]  # type: ignore[union-attr,misc]


class _WithHead(BertPreTrainedModel):
    """What the models with a head share."""

    bert: Any

    def __init__(
        self, config: Any, output_attentions: bool = False, keep_multihead_output: bool = False, **more: Any
    ) -> None:
        super().__init__(config, **more)
        self.output_attentions = output_attentions
        self.bert.output_attentions = output_attentions
        self.keep_multihead_output = keep_multihead_output
        self.put_on_faces()
        for layer in self.bert.encoder.layer:
            layer.attention.self.keep_multihead_output = keep_multihead_output

    def _called(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None,
        attention_mask: Tensor | None,
        head_mask: Tensor | None,
        **labels: Any,
    ) -> Any:
        """The output of the model there, by name."""
        mask = attention_mask
        if mask is not None and mask.ndim == 2:
            mask = real_rows(mask)
        return super().forward(
            input_ids,
            attention_mask=mask,
            token_type_ids=token_type_ids,
            head_mask=head_mask,
            # with probabilities no token is left out, of which the heads' results are asked for
            output_attentions=self.output_attentions or self.keep_multihead_output,
            return_dict=True,
            **labels,
        )

    def _packed(self, output: Any, loss: Tensor | None, scores: Any) -> Any:
        """The loss alone, or the scores, as 0.6.2 returned them; with attentions before them if asked for."""
        found = scores if loss is None else loss
        if not self.output_attentions:
            return found
        more = found if isinstance(found, tuple) else (found,)
        return (list(output.attentions), *more)


class BertForPreTraining(_WithHead, core_heads.BertForPreTraining):
    """BERT with both heads of its pre-training.

    Args:
        config: The sizes.
        output_attentions: Whether `forward` returns attention probabilities first.
        keep_multihead_output: See `BertModel`.
    """

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        masked_lm_labels: Tensor | None = None,
        next_sentence_label: Tensor | None = None,
        head_mask: Tensor | None = None,
    ) -> Any:
        """The sum of both losses where both labels are given; otherwise [B, T, V] and [B, 2]."""
        labelled = masked_lm_labels is not None and next_sentence_label is not None
        labels = {"masked_lm_labels": masked_lm_labels, "next_sentence_label": next_sentence_label}
        output = self._called(
            input_ids,
            token_type_ids,
            attention_mask,
            head_mask,
            output_logits=not labelled,
            **(labels if labelled else {}),
        )
        return self._packed(output, output.loss, (output.prediction_logits, output.seq_relationship_logits))


class BertForMaskedLM(_WithHead, core_heads.BertForMaskedLM):
    """BERT with its masked-language head.

    Args:
        config: The sizes.
        output_attentions: Whether `forward` returns attention probabilities first.
        keep_multihead_output: See `BertModel`.
    """

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        masked_lm_labels: Tensor | None = None,
        head_mask: Tensor | None = None,
    ) -> Any:
        """The loss where labels are given; otherwise [B, T, V]."""
        output = self._called(
            input_ids,
            token_type_ids,
            attention_mask,
            head_mask,
            labels=masked_lm_labels,
            output_logits=masked_lm_labels is None,
        )
        return self._packed(output, output.loss, output.logits)


class BertForNextSentencePrediction(_WithHead, core_heads.BertForNextSentencePrediction):
    """BERT with its next-sentence head.

    Args:
        config: The sizes.
        output_attentions: Whether `forward` returns attention probabilities first.
        keep_multihead_output: See `BertModel`.
    """

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        next_sentence_label: Tensor | None = None,
        head_mask: Tensor | None = None,
    ) -> Any:
        """The loss where labels are given; otherwise [B, 2]."""
        output = self._called(
            input_ids, token_type_ids, attention_mask, head_mask, next_sentence_label=next_sentence_label
        )
        return self._packed(output, output.loss, output.logits)


class _WithLabels(_WithHead):
    """What the classifiers share: their own number of labels, which 0.6.2 takes as an argument.

    Args:
        config: The sizes; it stays as it is.
        num_labels: Number of classes, C.
        output_attentions: Whether `forward` returns attention probabilities first.
        keep_multihead_output: See `BertModel`.
    """

    def __init__(
        self, config: Any, num_labels: int, output_attentions: bool = False, keep_multihead_output: bool = False
    ) -> None:
        if config.num_labels != num_labels:
            config = copy.deepcopy(config)
            config.num_labels = num_labels
        super().__init__(config, output_attentions, keep_multihead_output)
        self.num_labels = num_labels


class BertForSequenceClassification(_WithLabels, core_heads.BertForSequenceClassification):
    """BERT with a classifier of whole inputs; see `_WithLabels` for the arguments."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        head_mask: Tensor | None = None,
    ) -> Any:
        """The loss where labels are given; otherwise [B, C]."""
        single = (
            labels is not None and self.num_labels == 1
        )  # a cross-entropy all the same, where core has a regression
        output = self._called(input_ids, token_type_ids, attention_mask, head_mask, labels=None if single else labels)
        loss = classification_loss(output.logits, labels) if single and labels is not None else output.loss
        return self._packed(output, loss, output.logits)


class BertForMultipleChoice(_WithHead, core_heads.BertForMultipleChoice):
    """BERT with a score for each choice.

    Args:
        config: The sizes.
        num_choices: Number of choices, C; what the inputs have decides.
        output_attentions: Whether `forward` returns attention probabilities first.
        keep_multihead_output: See `BertModel`.
    """

    def __init__(
        self, config: Any, num_choices: int, output_attentions: bool = False, keep_multihead_output: bool = False
    ) -> None:
        super().__init__(config, output_attentions, keep_multihead_output)
        self.num_choices = num_choices

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        head_mask: Tensor | None = None,
    ) -> Any:
        """[B, C, T], or [B C, T] -> the loss where labels are given; otherwise [B, C]."""
        if input_ids.ndim == 2 and self.num_choices > 1 and input_ids.shape[0] % self.num_choices == 0:
            rows = (-1, self.num_choices, input_ids.shape[1])  # flattened already
            input_ids = input_ids.view(rows)
            token_type_ids = None if token_type_ids is None else token_type_ids.view(rows)
            attention_mask = None if attention_mask is None else attention_mask.view(rows)
        if attention_mask is not None and attention_mask.ndim == 3:
            attention_mask = real_rows(attention_mask.flatten(0, 1)).view(attention_mask.shape)  # type: ignore[union-attr]
        output = self._called(input_ids, token_type_ids, attention_mask, head_mask, labels=labels)
        return self._packed(output, output.loss, output.logits)


class BertForTokenClassification(_WithLabels, core_heads.BertForTokenClassification):
    """BERT with a classifier of tokens; see `_WithLabels` for the arguments."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        head_mask: Tensor | None = None,
    ) -> Any:
        """The loss where labels are given, without that at padding; otherwise [B, T, C]."""
        output = self._called(
            input_ids, token_type_ids, attention_mask, head_mask, labels=labels, unpad=labels is not None
        )
        return self._packed(output, output.loss, output.logits)


class BertForQuestionAnswering(_WithHead, core_heads.BertForQuestionAnswering):
    """BERT with a head for spans.

    Args:
        config: The sizes.
        output_attentions: Whether `forward` returns attention probabilities first.
        keep_multihead_output: See `BertModel`.
    """

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        head_mask: Tensor | None = None,
    ) -> Any:
        """The loss where both places are given, one below 0 counting as 0; otherwise two times [B, T]."""
        places = {}
        if start_positions is not None and end_positions is not None:
            places = {
                "start_positions": start_positions.clamp(min=0),
                "end_positions": end_positions.clamp(min=0),
            }
        output = self._called(input_ids, token_type_ids, attention_mask, head_mask, **places)
        return self._packed(output, output.loss, (output.start_logits, output.end_logits))
