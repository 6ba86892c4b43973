"""What the heads of causal models share.

Of all of them: text generation. Of both GPT models: losses and scores from the states of their decoder.
"""

from typing import Any

from torch import Tensor, nn

from ..generation.engine import Cancel, Generation, collected
from ..generation.options import GenerationOptions
from ..generation.prompts import Prompts
from ..generation.protocol import CausalModel
from ..generation.results import GenerationOutput
from ..nn.checks import check_indices, check_label_shape, recording
from ..nn.dropout import Dropout
from ..nn.lm_loss import next_token_loss, projected_loss
from ..nn.losses import classification_loss
from .base import PreTrainedModel
from .decoder import DecoderInputs
from .outputs import BaseModelOutputWithPast, CausalLMOutput, DoubleHeadsModelOutput


class MultipleChoiceHead(nn.Module):
    """One score for each text, from the state of one of its tokens (Radford et al. 2018, section 3.3).

    Args:
        width: Size of the hidden states, H.
        dropout: Of that state.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.summary = nn.Linear(width, 1)
        self.first_dropout = Dropout(dropout)

    def forward(self, hidden: Tensor, places: Tensor | None) -> Tensor:
        """States [B, C, T, H] and places [B, C] of tokens (None: the last) -> [B, C]."""
        if places is None:
            chosen = hidden[..., -1, :]
        else:
            index = places.reshape(*hidden.shape[:-2], 1, 1).long().expand(*hidden.shape[:-2], 1, hidden.shape[-1])
            chosen = hidden.gather(-2, index).squeeze(-2)  # [B, C, H]
        scores: Tensor = self.summary(self.first_dropout(chosen))
        return scores.squeeze(-1)


class ContinuesText(PreTrainedModel):
    """Text generation with a model that has `new_cache` and `next_token_logits`; the work is in `generation`."""

    def vocabulary_size(self) -> int:
        """Number of ids that it reads, V."""
        return self.get_input_embeddings().num_embeddings

    def context_length(self) -> int | None:
        """Most tokens that one can follow from; None without a limit."""
        positions: int | None = getattr(self.config, "max_position_embeddings", None)
        return positions

    def generate(
        self: CausalModel,
        input_ids: Prompts,
        attention_mask: Prompts | None = None,
        *,
        cancel: Cancel = None,
        **options: Any,
    ) -> GenerationOutput:
        """Continue prompts.

        Args:
            input_ids: Ids [B, T] of the prompts, [T] of one, or a list of lists, which may differ in length. Tensors,
                arrays and lists are taken.
            attention_mask: [B, T], 1 for tokens and 0 for padding, which may stand on the left or on the right.
            cancel: Asked before each step; a function, or an event that is set, ends all rows where they are.
            **options: See `GenerationOptions`; `eos_token_id` and `pad_token_id` are those of the configuration if it
                has any.

        Raises:
            ValueError: Something given can't be used, or is too long for the model; nothing was computed.
            TypeError: There is no such option, or an argument is of another type.
        """
        return collected(_generation(self, input_ids, attention_mask, cancel, options))

    def stream(
        self: CausalModel,
        input_ids: Prompts,
        attention_mask: Prompts | None = None,
        *,
        cancel: Cancel = None,
        **options: Any,
    ) -> Generation:
        """Continue prompts token by token: an iterator over `NewToken`, whose `close` ends the work.

        Args:
            input_ids: See `generate`.
            attention_mask: See `generate`.
            cancel: See `generate`.
            **options: See `generate`.

        Raises:
            ValueError: See `generate`.
            TypeError: See `generate`.
        """
        return _generation(self, input_ids, attention_mask, cancel, options)


def _generation(
    model: CausalModel, input_ids: Prompts, attention_mask: Prompts | None, cancel: Cancel, options: dict[str, Any]
) -> Generation:
    config = getattr(model, "config", None)
    defaults = {name: getattr(config, name, None) for name in ("eos_token_id", "pad_token_id")}
    checked = GenerationOptions(**{**defaults, **options})
    if checked.stop_strings:
        raise ValueError("stop_strings: a model knows ids only; use generation.TextGenerator(model, tokenizer)")
    return Generation(model, input_ids, attention_mask, checked, cancel)


def one_of(name: str, value: Tensor | None, older_name: str, older: Tensor | None) -> Tensor | None:
    """The value of an argument with two names.

    Raises:
        ValueError: Both were given.
    """
    if value is not None and older is not None:
        raise ValueError(f"{name} and {older_name} are two names of one argument; give one of them")
    return value if older is None else older


def language_model_output(
    lm_head: nn.Linear,
    decoded: BaseModelOutputWithPast,
    labels: Tensor | None,
    lm_labels: Tensor | None,
    output_logits: bool,
    words: int | None = None,
) -> Any:
    """Scores and loss of a language model, of the first `words` tokens; see the `forward` of the models."""
    labels = one_of("labels", labels, "lm_labels", lm_labels)
    hidden = decoded[0]
    loss = logits = None
    if output_logits or labels is None or recording():
        logits = _first(lm_head(hidden), words, -1)
        loss = None if labels is None else next_token_loss(logits, labels)
    else:
        loss = projected_loss(hidden, _first(lm_head.weight, words, 0), labels)
    return CausalLMOutput.of(loss=loss, logits=logits, **_rest(decoded))


def double_heads_output(
    lm_head: nn.Linear,
    choice_head: MultipleChoiceHead,
    decoded: BaseModelOutputWithPast,
    *,
    places: tuple[Tensor | None, Tensor | None],
    choices: tuple[Tensor | None, Tensor | None],
    lm_labels: Tensor | None,
    words: int | None = None,
) -> Any:
    """Scores and losses of both heads; `places` and `choices` come under their two names each."""
    hidden = decoded[0]  # [B, C, T, H]
    place = one_of("mc_token_ids", places[0], "multiple_choice_token_ids", places[1])
    choice = one_of("mc_labels", choices[0], "multiple_choice_labels", choices[1])
    if place is not None:
        check_label_shape("mc_token_ids", place, hidden.shape[:-2])
        check_indices("mc_token_ids", place, hidden.shape[-2], "it is a place in the text, counted from 0")
    lm_logits: Tensor = _first(lm_head(hidden), words, -1)
    mc_logits: Tensor = choice_head(hidden, place)
    return DoubleHeadsModelOutput.of(
        lm_loss=None if lm_labels is None else next_token_loss(lm_logits, lm_labels, "lm_labels"),
        mc_loss=None if choice is None else classification_loss(mc_logits, choice, "mc_labels"),
        lm_logits=lm_logits,
        mc_logits=mc_logits,
        **_rest(decoded),
    )


def decode_last(decoder: Any, lm_head: nn.Linear, inputs: DecoderInputs, words: int | None = None) -> Tensor:
    """Scores [B, V] of what follows the last token; no other is projected."""
    hidden: Tensor = decoder.decode(inputs).hidden
    logits: Tensor = _first(lm_head(hidden[:, -1]), words, -1)
    return logits


def _first(x: Tensor, words: int | None, dim: int) -> Tensor:
    """The first `words` entries of an axis; all of them as they are, since the gradient of a slice is a copy of all."""
    return x if words is None or words == x.shape[dim] else x.narrow(dim, 0, words)


def _rest(decoded: BaseModelOutputWithPast) -> dict[str, Any]:
    return {name: getattr(decoded, name, None) for name in ("past", "hidden_states", "attentions")}
