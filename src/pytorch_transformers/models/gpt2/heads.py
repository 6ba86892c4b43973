"""The task models of GPT-2: the language model, and the language model with a multiple-choice head.

Source: openai/gpt-2, src/model.py, for the first. The second is that of OpenAI GPT (Radford et al. 2018, section 3.3),
which the published PyTorch packages carried over.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from ...nn.cache import KeyValueCache
from ...nn.fused import VocabularyHead
from ..causal import ContinuesText, MultipleChoiceHead, decode_last, double_heads_output, language_model_output
from ..decoder import DecoderInputs, Pasts, packable
from .config import GPT2Config
from .model import GPT2PreTrainedModel


class _WithVocabulary(GPT2PreTrainedModel, ContinuesText):
    """What both models share: the output layer, which is the table of tokens."""

    tied_weights: ClassVar[Mapping[str, str]] = {"lm_head.weight": "transformer.wte.weight"}

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.transformer = self._make_decoder(config)
        self.lm_head = VocabularyHead(config.n_embd, config.vocab_size)

    def get_output_embeddings(self) -> nn.Linear:
        """The projection onto the vocabulary [V, H], which shares its matrix with the table of tokens."""
        return self.lm_head

    def _resize_output(self, new_num_tokens: int) -> None:
        self.lm_head.out_features = new_num_tokens

    def new_cache(self, batch: int, length: int) -> KeyValueCache:
        """See `GPT2Model.new_cache`."""
        return self.transformer.new_cache(batch, length)

    def next_token_logits(self, input_ids: Tensor, cache: KeyValueCache, attention_mask: Tensor | None) -> Tensor:
        """Scores [B, V] of what follows the last token; the step of text generation, without checks."""
        return decode_last(self.transformer, self.lm_head, DecoderInputs(input_ids, cache, attention_mask))


class GPT2LMHeadModel(_WithVocabulary):
    """The language model: scores of the token that follows each token."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        past: Pasts = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        *,
        lm_labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
        output_logits: bool = True,
    ) -> Any:
        """Score what follows each token; see `GPT2Model.forward` for the inputs and switches.

        Args:
            labels: [B, T], usually `input_ids` themselves: they are shifted here. Below 0 is ignored.
            lm_labels: The published name of `labels`.
            output_logits: False, with labels, returns the loss without the scores, which then need little memory, and
                computes nothing on padding that has no labels unless `use_cache` asks for it.

        Returns:
            `CausalLMOutput`: loss [], logits [B, T, V], past and the rest as `GPT2Model.forward`.
        """
        inputs = DecoderInputs(input_ids, past, attention_mask, token_type_ids, position_ids, head_mask, inputs_embeds)
        unpad = not output_logits and packable(inputs, labels if lm_labels is None else lm_labels)
        decoded = self.transformer.outputs(inputs, use_cache, output_hidden_states, output_attentions, unpad)
        output = language_model_output(self.lm_head, decoded, labels, lm_labels, output_logits)
        return self.packaged(output, return_dict)


class GPT2DoubleHeadsModel(_WithVocabulary):
    """The language model with a second head that chooses between texts, as for ROCStories or SWAG."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.multiple_choice_head = MultipleChoiceHead(config.n_embd, config.summary_first_dropout)

    def forward(
        self,
        input_ids: Tensor | None = None,
        past: Pasts = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        mc_token_ids: Tensor | None = None,
        lm_labels: Tensor | None = None,
        mc_labels: Tensor | None = None,
        *,
        multiple_choice_token_ids: Tensor | None = None,
        multiple_choice_labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """Score the tokens, and the choices; see `GPT2Model.forward` for the inputs [B, C, T] and switches.

        Args:
            mc_token_ids: [B, C] place of the token in each text whose state is scored; the last by default.
            lm_labels: [B, C, T], usually the ids; they are shifted here. Below 0 is ignored.
            mc_labels: [B] number of the right choice; below 0 is ignored.
            multiple_choice_token_ids: The older name of `mc_token_ids`.
            multiple_choice_labels: The older name of `mc_labels`.

        Returns:
            `DoubleHeadsModelOutput`: lm_loss [], mc_loss [], lm_logits [B, C, T, V], mc_logits [B, C], past and the
            rest as `GPT2Model.forward`.
        """
        inputs = DecoderInputs(input_ids, past, attention_mask, token_type_ids, position_ids, head_mask, inputs_embeds)
        decoded = self.transformer.outputs(inputs, use_cache, output_hidden_states, output_attentions)
        output = double_heads_output(
            self.lm_head,
            self.multiple_choice_head,
            decoded,
            places=(mc_token_ids, multiple_choice_token_ids),
            choices=(mc_labels, multiple_choice_labels),
            lm_labels=lm_labels,
        )
        return self.packaged(output, return_dict)
