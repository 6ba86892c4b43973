"""The task models of BERT: the encoder with a head for each kind of task (Devlin et al. 2018, sections 3 and 4).

Each forward is the same three steps: encode, score, and the loss when labels are given. Labels below 0 are ignored.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...nn.activations import get_activation
from ...nn.checks import check_classes, check_label_shape, check_shape, check_tensor, recording
from ...nn.dropout import Dropout
from ...nn.layouts import Packed, Padded, rows_to_add
from ...nn.losses import classification_loss, regression_loss, span_loss
from ...nn.tied import TiedLinear
from ..outputs import (
    BertForPreTrainingOutput,
    MaskedLMOutput,
    MultipleChoiceModelOutput,
    NextSentencePredictorOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from .config import BertConfig
from .model import BertModel, BertPreTrainedModel, Encoded, Inputs


class BertPredictionHeadTransform(nn.Module):
    """Dense layer, activation and normalisation before the projection onto the vocabulary."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = get_activation(config.hidden_act)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., H]."""
        transformed: Tensor = self.LayerNorm(self.activation(self.dense(hidden)))
        return transformed


class BertLMPredictionHead(nn.Module):
    """Scores for every vocabulary entry; the matrix is that of the word embeddings, the bias its own."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.transform = BertPredictionHeadTransform(config)
        self.decoder = TiedLinear(config.hidden_size, config.vocab_size)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., V]."""
        scores: Tensor = self.decoder(self.transform(hidden))
        return scores.add_(self.bias)  # in place: the scores are large, and nothing else needs them


class BertOnlyMLMHead(nn.Module):
    """The masked-language head alone."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.predictions = BertLMPredictionHead(config)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., V]."""
        return self.predictions(hidden)


class BertOnlyNSPHead(nn.Module):
    """The next-sentence head alone."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.seq_relationship = nn.Linear(config.hidden_size, 2)

    def forward(self, pooled: Tensor) -> Tensor:
        """[B, H] -> [B, 2]."""
        return self.seq_relationship(pooled)


class BertPreTrainingHeads(nn.Module):
    """Both heads of pre-training."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.predictions = BertLMPredictionHead(config)
        self.seq_relationship = nn.Linear(config.hidden_size, 2)

    def forward(self, hidden: Tensor, pooled: Tensor) -> tuple[Tensor, Tensor]:
        """[..., H] and [B, H] -> [..., V] and [B, 2]."""
        return self.predictions(hidden), self.seq_relationship(pooled)


def _none_at_padding(labels: Tensor, attention_mask: Tensor | None) -> bool:
    """Whether no label stands at padding, so that leaving the padding out changes no loss."""
    if not isinstance(labels, Tensor) or not isinstance(attention_mask, Tensor):  # no mask, or no tensor: refused later
        return False
    if labels.shape != attention_mask.shape or recording():
        return False
    return not bool(((labels >= 0) & (attention_mask == 0)).any())


class _WithVocabulary(BertPreTrainedModel):
    """What the models with a masked-language head share: the tied matrix, and scores only where they are read."""

    tied_weights: ClassVar[Mapping[str, str]] = {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight"
    }
    bert: BertModel
    cls: BertOnlyMLMHead | BertPreTrainingHeads

    def get_output_embeddings(self) -> nn.Linear:
        """The projection onto the vocabulary [V, H], which shares its matrix with the word embeddings."""
        return self.cls.predictions.decoder

    def _resize_output(self, new_num_tokens: int) -> None:
        head = self.cls.predictions
        bias = head.bias.new_zeros(new_num_tokens)
        kept = min(new_num_tokens, len(head.bias))
        bias[:kept] = head.bias.detach()[:kept]
        head.bias = nn.Parameter(bias, head.bias.requires_grad)
        head.decoder.out_features = new_num_tokens

    def _encode_for(self, inputs: Inputs, labels: Tensor | None, output_logits: bool, **switches: Any) -> Encoded:
        """Encode, without padding where only labelled tokens will be scored."""
        pack = not output_logits and labels is not None and _none_at_padding(labels, inputs.attention_mask)
        return self.bert.encode(inputs, pack=pack, **switches)

    def _tokens_to_score(
        self, encoded: Encoded, labels: Tensor | None, output_logits: bool, name: str
    ) -> tuple[Tensor, Tensor | None]:
        """States to score, [B, T, H] or those of labelled tokens alone, and the labels that belong to them."""
        hidden, layout = encoded.hidden, encoded.layout
        if labels is None or output_logits or recording():  # a graph can't depend on how many labels there are
            return layout.restore(hidden), labels
        if isinstance(layout, Packed):
            check_classes(name, labels, layout.shape, self.config.vocab_size)
            labels = layout.pack_labels(labels)
        else:
            check_classes(name, labels, hidden.shape[:2], self.config.vocab_size)
            hidden, labels = hidden.flatten(0, 1), labels.flatten()
        # At 15 % masked tokens the projection onto the vocabulary is a seventh of the work this way.
        labelled = (labels >= 0).nonzero()[:, 0]
        labels = labels[labelled]
        if added := rows_to_add(len(labelled), labelled):
            labelled = torch.cat([labelled, labelled[:1].expand(added)])
            labels = F.pad(labels, (0, added), value=-1)
        return hidden.index_select(0, labelled), labels


class BertForPreTraining(_WithVocabulary):
    """BERT with both heads of its pre-training: masked language model and next-sentence prediction."""

    cls: BertPreTrainingHeads

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = self._make_encoder(config)
        self.cls = BertPreTrainingHeads(config)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        masked_lm_labels: Tensor | None = None,
        next_sentence_label: Tensor | None = None,
        *,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
        output_logits: bool = True,
    ) -> Any:
        """Score masked words and sentence pairs; see `BertModel.forward` for the inputs and switches.

        Args:
            masked_lm_labels: [B, T] ids of the words that were masked; below 0 elsewhere.
            next_sentence_label: [B], 0 where the second text follows the first, 1 where it is a random one.
            output_logits: False, with `masked_lm_labels`, computes scores of labelled tokens only and returns none.

        Returns:
            `BertForPreTrainingOutput`: loss [] (the sum of the parts whose labels were given),
            prediction_logits [B, T, V], seq_relationship_logits [B, 2].
        """
        encoded = self._encode_for(
            Inputs(input_ids, attention_mask, token_type_ids, position_ids, head_mask, inputs_embeds),
            masked_lm_labels,
            output_logits,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        name = "masked_lm_labels"
        tokens, words = self._tokens_to_score(encoded, masked_lm_labels, output_logits, name)
        logits, pair_logits = self.cls(tokens, self.bert.pool(encoded))
        word_loss = None if words is None else classification_loss(logits, words, name)
        pair_loss = None
        if next_sentence_label is not None:
            pair_loss = classification_loss(pair_logits, next_sentence_label, "next_sentence_label")
        losses = [loss for loss in (word_loss, pair_loss) if loss is not None]
        output = BertForPreTrainingOutput.of(
            loss=sum(losses[1:], losses[0]) if losses else None,
            prediction_logits=logits if output_logits or words is None else None,
            seq_relationship_logits=pair_logits,
            **encoded.extras(),
        )
        output.masked_lm_loss, output.next_sentence_loss = word_loss, pair_loss
        return self.bert.packaged(output, return_dict)


class BertForMaskedLM(_WithVocabulary):
    """BERT with its masked-language head: which words may stand at [MASK]."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = self._make_encoder(config, pooling=False)
        self.cls = BertOnlyMLMHead(config)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        *,
        masked_lm_labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
        output_logits: bool = True,
    ) -> Any:
        """Score the words at each position; see `BertModel.forward` for the inputs and switches.

        Args:
            labels: [B, T] ids of the words that were masked; below 0 elsewhere.
            masked_lm_labels: The published name of `labels`.
            output_logits: False, with labels, computes scores of labelled tokens only and returns none.

        Returns:
            `MaskedLMOutput`: loss [], logits [B, T, V].
        """
        if labels is not None and masked_lm_labels is not None:
            raise ValueError("labels and masked_lm_labels are two names of one argument; give one of them")
        labels = masked_lm_labels if labels is None else labels
        encoded = self._encode_for(
            Inputs(input_ids, attention_mask, token_type_ids, position_ids, head_mask, inputs_embeds),
            labels,
            output_logits,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        tokens, words = self._tokens_to_score(encoded, labels, output_logits, "labels")
        logits = self.cls(tokens)
        loss = None if words is None else classification_loss(logits, words)
        output = MaskedLMOutput.of(
            loss=loss, logits=logits if output_logits or words is None else None, **encoded.extras()
        )
        return self.bert.packaged(output, return_dict)


class BertForNextSentencePrediction(BertPreTrainedModel):
    """BERT with its next-sentence head: does the second text follow the first?"""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = self._make_encoder(config)
        self.cls = BertOnlyNSPHead(config)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        next_sentence_label: Tensor | None = None,
        *,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """Score sentence pairs; see `BertModel.forward` for the inputs and switches.

        Args:
            next_sentence_label: [B], 0 where the second text follows the first, 1 where it is a random one.

        Returns:
            `NextSentencePredictorOutput`: loss [], logits [B, 2].
        """
        encoded = self.bert.encode(
            Inputs(input_ids, attention_mask, token_type_ids, position_ids, head_mask, inputs_embeds),
            pack=True,
            first_only=True,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        logits = self.cls(self.bert.pool(encoded))
        loss = None
        if next_sentence_label is not None:
            loss = classification_loss(logits, next_sentence_label, "next_sentence_label")
        output = NextSentencePredictorOutput.of(loss=loss, logits=logits, **encoded.extras())
        return self.bert.packaged(output, return_dict)


class BertForSequenceClassification(BertPreTrainedModel):
    """BERT with a classifier of whole inputs, or a regression when `config.num_labels` is 1."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = self._make_encoder(config)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        *,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """Score the classes of each input; see `BertModel.forward` for the inputs and switches.

        Args:
            labels: [B] classes, below 0 is ignored; or [B] values when `num_labels` is 1.

        Returns:
            `SequenceClassifierOutput`: loss [] (cross-entropy, or mean squared error), logits [B, C].
        """
        encoded = self.bert.encode(
            Inputs(input_ids, attention_mask, token_type_ids, position_ids, head_mask, inputs_embeds),
            pack=True,
            first_only=True,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        logits = self.classifier(self.dropout(self.bert.pool(encoded)))
        loss = None
        if labels is not None:
            loss = (regression_loss if self.config.num_labels == 1 else classification_loss)(logits, labels)
        output = SequenceClassifierOutput.of(loss=loss, logits=logits, **encoded.extras())
        return self.bert.packaged(output, return_dict)


class BertForMultipleChoice(BertPreTrainedModel):
    """BERT with one score for each choice, as for SWAG: each choice is an input of its own."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = self._make_encoder(config)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, 1)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        *,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """Score the choices; the inputs are those of `BertModel.forward` with an axis of choices, [B, C, T].

        Args:
            labels: [B] number of the right choice; below 0 is ignored.

        Returns:
            `MultipleChoiceModelOutput`: loss [], logits [B, C]; states and attentions have B * C rows.

        Raises:
            ValueError: The inputs aren't [batch, choices, tokens].
        """
        for name, x in (
            ("input_ids", input_ids),
            ("inputs_embeds", inputs_embeds),
            ("attention_mask", attention_mask),
            ("token_type_ids", token_type_ids),
            ("position_ids", position_ids),
        ):
            if x is not None:
                check_tensor(name, x)
        given, axes = (input_ids, 3) if inputs_embeds is None else (inputs_embeds, 4)
        if given is not None and given.ndim != axes:
            name, found = ("input_ids" if inputs_embeds is None else "inputs_embeds"), list(given.shape)
            raise ValueError(f"{name}: expected [batch, choices, tokens{', hidden' * (axes - 3)}], found shape {found}")
        for name, x in (
            ("attention_mask", attention_mask),
            ("token_type_ids", token_type_ids),
            ("position_ids", position_ids),
        ):
            if x is not None and given is not None:
                check_shape(name, x, tuple(given.shape[:3]), "batch, choices, tokens")
        ids, mask, types, positions, embeds = (
            None if x is None else x.flatten(0, 1)
            for x in (input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds)
        )
        encoded = self.bert.encode(
            Inputs(ids, mask, types, positions, head_mask, embeds),
            pack=True,
            first_only=True,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        assert given is not None
        scores = self.classifier(self.dropout(self.bert.pool(encoded)))  # [B * C, 1]
        logits = scores.view(given.shape[0], given.shape[1])
        loss = None if labels is None else classification_loss(logits, labels)
        output = MultipleChoiceModelOutput.of(loss=loss, logits=logits, **encoded.extras())
        return self.bert.packaged(output, return_dict)


class BertForTokenClassification(BertPreTrainedModel):
    """BERT with a classifier of every token, as for named entities."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = self._make_encoder(config, pooling=False)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        *,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
        unpad: bool = True,
    ) -> Any:
        """Score the classes of each token; see `BertModel.forward` for the inputs and switches.

        Args:
            labels: [B, T] classes; below 0 is ignored.
            unpad: Whether to compute real tokens only; False gives what the original computes at padded positions.

        Returns:
            `TokenClassifierOutput`: loss [], logits [B, T, C], 0 at padded positions unless `unpad` is False.
        """
        encoded = self.bert.encode(
            Inputs(input_ids, attention_mask, token_type_ids, position_ids, head_mask, inputs_embeds),
            pack=unpad,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        layout = encoded.layout
        logits = layout.restore(self.classifier(self.dropout(encoded.hidden)))
        if labels is not None and attention_mask is not None:
            check_label_shape("labels", labels, logits.shape[:2])
            # Padding carries no label, whatever stands there.
            labels = labels.reshape(attention_mask.shape).where(attention_mask.bool(), -1)
        loss = None if labels is None else classification_loss(logits, labels)
        if unpad and isinstance(layout, Padded) and layout.mask is not None and attention_mask is not None:
            logits = logits * attention_mask[..., None].to(logits.dtype)  # the same at padding as when it is left out
        output = TokenClassifierOutput.of(loss=loss, logits=logits, **encoded.extras())
        return self.bert.packaged(output, return_dict)


class BertForQuestionAnswering(BertPreTrainedModel):
    """BERT with two scores for every token: does the answer start, or end, here? As for SQuAD."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = self._make_encoder(config, pooling=False)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        *,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """Score starts and ends; see `BertModel.forward` for the inputs and switches.

        Args:
            start_positions: [B] token where the answer starts; below 0 or beyond the input is ignored.
            end_positions: [B] token where it ends.

        Returns:
            `QuestionAnsweringModelOutput`: loss [] (mean of the two), start_logits [B, T], end_logits [B, T].

        Raises:
            ValueError: One of the positions was given without the other.
        """
        if (start_positions is None) != (end_positions is None):
            raise ValueError("start_positions and end_positions: give both, or neither")
        encoded = self.bert.encode(
            Inputs(input_ids, attention_mask, token_type_ids, position_ids, head_mask, inputs_embeds),
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        start_logits, end_logits = self.qa_outputs(encoded.hidden).unbind(-1)  # [B, T] each
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = span_loss(start_logits, end_logits, start_positions, end_positions)
        output = QuestionAnsweringModelOutput.of(
            loss=loss, start_logits=start_logits, end_logits=end_logits, **encoded.extras()
        )
        return self.bert.packaged(output, return_dict)
