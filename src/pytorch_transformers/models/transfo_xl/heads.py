"""The Transformer-XL language model: scores of the word that follows each word.

Source: kimiyoung/transformer-xl, tf/model.py, transformer, for the loss.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...nn.checks import check_classes, check_tensor, recording
from ..causal import ContinuesText
from ..outputs import TransfoXLLMHeadModelOutput
from .adaptive_softmax import ProjectedAdaptiveLogSoftmax
from .config import TransfoXLConfig
from .memory import TransfoXLCache
from .model import Memories, TransfoXLPreTrainedModel


def _of_decoder(name: str) -> Any:
    """An attribute of the decoder that can be read and set on a model with a head."""

    def read(model: Any) -> Any:
        return getattr(model.transformer, name)

    def write(model: Any, value: Any) -> None:
        setattr(model.transformer, name, value)

    return property(read, write, doc=f"`TransfoXLModel.{name}`; may be set.")


class TransfoXLLMHeadModel(TransfoXLPreTrainedModel, ContinuesText):
    """The language model, whose softmax shares its tables with the embeddings.

    Args:
        config: The sizes.
    """

    def __init__(self, config: TransfoXLConfig) -> None:
        super().__init__(config)
        self.transformer = self._make_decoder(config)
        self.crit = ProjectedAdaptiveLogSoftmax(
            config.vocab_size,
            config.d_embed,
            config.d_model,
            config.cutoffs,
            config.div_val,
            proj_same_dim=config.proj_same_dim,
        )

    def own_tied_weights(self) -> Mapping[str, str]:
        """What the decoder shares, and what embeddings and softmax do (`tie_weight`, `tie_projs`)."""
        config = self.config
        shared = {
            f"transformer.{name}": f"transformer.{own}" for name, own in self.transformer.own_tied_weights().items()
        }
        tables = len(self.crit.out_layers)
        if config.tie_weight:
            for number in range(tables):
                name = f"crit.out_layers.{number}.weight"
                shared[name] = f"transformer.word_emb.emb_layers.{number}.weight"
        for number, (tied, projection) in enumerate(zip(config.tie_projs, self.crit.out_projs, strict=True)):
            if tied and projection is not None:
                source = min(number, tables - 1)  # with one width there is one matrix
                shared[f"crit.out_projs.{number}"] = f"transformer.word_emb.emb_projs.{source}"
        return shared

    def forward(
        self,
        input_ids: Tensor | None = None,
        mems: Memories = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        *,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """Score what follows each word; see `TransfoXLModel.forward` for the inputs and switches.

        Args:
            labels: [B, T'], the words that follow: they are **not** shifted here, unlike those of the GPT models, so
                pass `ids[:, :-1]` as inputs and `ids[:, 1:]` as labels. Below 0 is ignored. With fewer places than the
                input they are for its last T'.

        Returns:
            `TransfoXLLMHeadModelOutput`: with labels the loss of each word, [B, T'] in float32 at least, and 0 where
            the label is ignored; without labels prediction_scores, the log-probabilities [B, T, V]. Then mems and the
            rest as `TransfoXLModel.forward`.

        Raises:
            ValueError: An argument has a wrong shape, type or value; the message names it.
        """
        if labels is not None:
            given = input_ids if input_ids is not None else inputs_embeds
            check_tensor("labels", labels)
            if given is not None and not recording():
                self._check_labels(labels, given)
        decoded = self.transformer.outputs(
            input_ids, mems, head_mask, inputs_embeds, output_hidden_states, output_attentions
        )
        loss, scores = self._loss_or_scores(decoded.last_hidden_state, labels)
        output = TransfoXLLMHeadModelOutput.of(
            loss=loss,
            prediction_scores=scores,
            mems=decoded.mems,
            hidden_states=decoded.hidden_states,
            attentions=decoded.attentions,
        )
        return self.packaged(output, return_dict)

    def _loss_or_scores(self, hidden: Tensor, labels: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """From states [B, T, H] the loss of each word, [B, T'], or without labels log-probabilities [B, T, V]."""
        if labels is None:
            return None, self.crit(hidden.flatten(0, 1)).unflatten(0, hidden.shape[:2])
        last = hidden[:, -labels.shape[1] :]
        return self.crit(last.flatten(0, 1), labels.reshape(-1)).view(labels.shape), None

    def _check_labels(self, labels: Tensor, given: Tensor) -> None:
        """Raise `ValueError` unless the labels are words, for the last places of the input or for all."""
        fits = labels.ndim == 2 and labels.shape[0] == given.shape[0] and 0 < labels.shape[1] <= given.shape[1]
        if not fits:
            raise ValueError(
                f"labels: expected shape {list(given.shape[:2])} (batch, tokens), or fewer tokens for the last ones, "
                f"found {list(labels.shape)}"
            )
        check_classes("labels", labels, labels.shape, self.crit.n_token)

    # Lengths and memory, those of the decoder.

    def reset_length(self, tgt_len: int, ext_len: int, mem_len: int) -> None:
        """See `TransfoXLModel.reset_length`."""
        self.transformer.reset_length(tgt_len, ext_len, mem_len)

    def init_mems(self, data: Tensor | int) -> tuple[Tensor, ...] | None:
        """See `TransfoXLModel.init_mems`."""
        return self.transformer.init_mems(data)

    tgt_len = _of_decoder("tgt_len")
    ext_len = _of_decoder("ext_len")
    mem_len = _of_decoder("mem_len")
    clamp_len = _of_decoder("clamp_len")
    same_length = _of_decoder("same_length")

    # Text generation.

    def context_length(self) -> int | None:
        """None: a text may have any length, of which the memory holds the end."""
        return None

    def new_cache(self, batch: int, length: int, *, zeros_seen: bool = True) -> TransfoXLCache:
        """See `TransfoXLModel.new_cache`."""
        return self.transformer.new_cache(batch, length, zeros_seen=zeros_seen)

    def next_token_logits(self, input_ids: Tensor, cache: TransfoXLCache, attention_mask: Tensor | None) -> Tensor:
        """Log-probabilities [B, V] of what follows the last token; the step of text generation, without checks."""
        padding = None if attention_mask is None else (attention_mask == 0).sum(1)
        decoded = self.transformer.decode(input_ids, cache, padding=padding, ext_len=0)  # no token comes twice
        return self.crit.log_prob(decoded.hidden[:, -1])

    # Vocabulary.

    def get_output_embeddings(self) -> nn.Module:
        """The softmax."""
        return self.crit

    def _resize_output(self, new_num_tokens: int) -> None:
        """Fit the last part of the softmax to the vocabulary; the words that it has keep their biases."""
        old = self.crit.out_layers[-1]
        assert isinstance(old, nn.Linear)
        words = old.out_features + new_num_tokens - self.crit.n_token
        new = nn.Linear(old.in_features, words, device=old.weight.device, dtype=old.weight.dtype)
        kept = min(words, old.out_features)
        with torch.no_grad():
            self._init_weights(new)
            new.weight[:kept] = old.weight[:kept]
            new.bias[:kept] = old.bias[:kept]
        for ours, theirs in zip(new.parameters(), old.parameters(), strict=True):
            ours.requires_grad_(theirs.requires_grad)
        self.crit.replace_last(new.train(old.training))
