"""A tiny OpenAI GPT of odd sizes; its inputs and labels are those of the tiny GPT-2."""

from typing import Any

from pytorch_transformers import (
    OpenAIGPTConfig,
    OpenAIGPTDoubleHeadsModel,
    OpenAIGPTLMHeadModel,
    OpenAIGPTModel,
    OpenAIGPTPreTrainedModel,
)

from ..battery import Case
from ..gpt2.tiny import (
    HEADS,
    HIDDEN,
    LAYERS,
    POSITIONS,
    VOCAB,
    decoder_inputs,
    decoder_labels,
    decoder_losses,
    decoder_outputs,
)

MODELS: tuple[type[Any], ...] = (OpenAIGPTModel, OpenAIGPTLMHeadModel, OpenAIGPTDoubleHeadsModel)


def tiny_config(**overrides: Any) -> OpenAIGPTConfig:
    """No dropout, so that training and evaluation agree."""
    fields: dict[str, Any] = {
        "vocab_size": VOCAB,
        "n_positions": POSITIONS,
        "n_embd": HIDDEN,
        "n_layer": LAYERS,
        "n_head": HEADS,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "summary_first_dropout": 0.0,
    }
    return OpenAIGPTConfig(**{**fields, **overrides})


CASE = Case(
    config=tiny_config,
    base=OpenAIGPTModel,
    pretrained=OpenAIGPTPreTrainedModel,
    heads=MODELS[1:],
    inputs=decoder_inputs,
    labels=decoder_labels,
    outputs=decoder_outputs,
    losses=decoder_losses,
    max_length=POSITIONS,
    modules=("pytorch_transformers.models.openai_gpt.model", "pytorch_transformers.models.openai_gpt.heads"),
    head_count=HEADS,
    layer_count=LAYERS,
    layers="n_layer",
    dropout="resid_pdrop",
    options={
        "resid_pdrop": 0.3,
        "afn": "swish",
        "initializer_range": 0.07,
        "layer_norm_epsilon": 1e-3,
        "n_special": 5,
        "predict_special_tokens": False,
        "eos_token_id": 7,
    },
)
