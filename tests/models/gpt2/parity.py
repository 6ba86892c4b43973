"""What the parity tests of both GPT families share: the model in `transformers` and in NumPy, and the comparison."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
import torch
from torch import Tensor

from ..battery import Case, Inputs, build, fields, gradients
from ..compare import assert_same
from .reference import NumpyDecoder, next_token_loss
from .tiny import decoder_inputs, decoder_labels, has_choices, real

transformers = pytest.importorskip("transformers", reason="parity is measured against the transformers package")

#: Our name of an activation of GPT-2 -> its name in transformers.
ACTIVATIONS: Final = {
    "gelu": "gelu",
    "gelu_new": "gelu_new",
    "gelu_tanh": "gelu_new",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
#: OpenAI GPT's "gelu" is the tanh form in both libraries; transformers has four names only.
AFNS: Final = {"gelu": "gelu", "gelu_new": "gelu", "relu": "relu", "silu": "silu", "swish": "swish"}
SIZES: Final = (
    *("n_positions", "n_embd", "n_layer", "n_head", "layer_norm_epsilon"),
    *("resid_pdrop", "embd_pdrop", "attn_pdrop", "summary_first_dropout"),
)
MASKS: Final = ("none", "right", "left")
PATHS: Final[Mapping[str, Mapping[str, bool]]] = {
    "default": {},
    "explicit": {"output_attentions": True},
    "states": {"output_hidden_states": True},
}
#: Our name of an output -> its name in transformers.
FIELDS: Final = {
    "last_hidden_state": "last_hidden_state",
    "logits": "logits",
    "lm_logits": "logits",
    "mc_logits": "mc_logits",
}


def is_gpt2(model: Any) -> bool:
    return type(model).__name__.startswith("GPT2")


def other_config(model: Any, implementation: str = "eager") -> Any:
    """The configuration of the same sizes in transformers."""
    config = model.config
    sizes = {name: getattr(config, name) for name in SIZES}
    tokens = {"bos_token_id": None, "eos_token_id": None}
    if is_gpt2(model):
        other = transformers.GPT2Config(
            vocab_size=config.vocab_size,
            n_inner=config.n_inner,
            activation_function=ACTIVATIONS[config.activation_function],
            **sizes,
            **tokens,
        )
    else:
        other = transformers.OpenAIGPTConfig(
            vocab_size=config.total_tokens_embeddings, afn=AFNS[config.afn], **sizes, **tokens
        )
    other.num_labels = 1  # scores of a choice
    other._attn_implementation = implementation
    return other


def other_model(model: Any) -> Any:
    """The class of the same name in transformers, with the weights of `model`; each of its parameters is set."""
    other = getattr(transformers, type(model).__name__)(other_config(model))
    result = other.load_state_dict(model.state_dict(), strict=True)
    assert not result.missing_keys
    assert not result.unexpected_keys
    return other.eval()


def numpy_model(model: Any) -> NumpyDecoder:
    name = model.config.activation_function if is_gpt2(model) else model.config.afn
    activation = "gelu_tanh" if not is_gpt2(model) and name == "gelu" else name
    return NumpyDecoder(
        {name: value.detach().numpy() for name, value in model.state_dict().items()},
        heads=model.config.n_head,
        norm_first=is_gpt2(model),
        activation=activation,
        eps=model.config.layer_norm_epsilon,
    )


def masked_inputs(model_class: type[Any], mask: str, seed: int = 0, batch: int = 5) -> Inputs:
    """Inputs without padding, or with it on one side; the chosen tokens of choices are real."""
    inputs = decoder_inputs(model_class, batch=batch, seed=seed, mask=mask != "none")
    if mask == "left":
        inputs["attention_mask"] = inputs["attention_mask"].flip(-1)
        inputs["attention_mask"][..., 2:] = 1  # the first piece of a text that comes in pieces has a real token, too
        if "mc_token_ids" in inputs:
            inputs["mc_token_ids"] = torch.full_like(inputs["mc_token_ids"], inputs["input_ids"].shape[-1] - 1)
    return inputs


def with_positions(inputs: Inputs) -> Inputs:
    """The positions that ours counts, said aloud: transformers does not look at the mask for them."""
    if "attention_mask" not in inputs:
        return inputs
    return {**inputs, "position_ids": (inputs["attention_mask"].cumsum(-1) - 1).clamp(min=0)}


def other_arguments(model: Any, inputs: Inputs, labels: Inputs | None = None) -> Inputs:
    """Inputs and labels as transformers reads them: it ignores -100 only, and flattens only some of the arguments."""
    renamed = {"lm_labels": "labels"}
    found = {
        renamed.get(name, name): torch.where(value < 0, torch.full_like(value, -100), value)
        for name, value in (labels or {}).items()
    }
    arguments = {**with_positions(inputs), **found}
    if has_choices(type(model)):
        for name in {"attention_mask", "position_ids"} & arguments.keys():
            arguments[name] = arguments[name].flatten(0, 1)
    return arguments


def at_real_places(value: Any, kept: Tensor) -> Any:
    """What is said of each token, for real ones; anything else as it is. Works for tensors and arrays."""
    return (
        value[kept if isinstance(value, Tensor) else kept.numpy()] if value.shape[: kept.dim()] == kept.shape else value
    )


def masked_labels(model_class: type[Any], inputs: Inputs) -> Inputs:
    """Labels, none for a first real token: it would be predicted from what stands before it, which is padding."""
    labels = decoder_labels(model_class, inputs)
    kept = real(inputs)
    first = kept & ~torch.cat([torch.zeros_like(kept[..., :1]), kept[..., :-1]], -1)
    return {name: x.masked_fill(first, -1) if x.shape == first.shape else x for name, x in labels.items()}


def check_against_transformers(case: Case, model_class: type[Any], mask: str, **overrides: Any) -> None:
    """All outputs and losses, on each path."""
    model = build(case, model_class, **overrides)
    other = other_model(model)
    inputs = masked_inputs(model_class, mask)
    labels = masked_labels(model_class, inputs)
    kept = real(inputs)
    with torch.no_grad():
        theirs = other(**other_arguments(model, inputs, labels), output_hidden_states=True, output_attentions=True)
        for path, switches in PATHS.items():
            ours = model(**inputs, **labels, **switches)
            compared = [name for name in FIELDS if name in fields(ours)]
            assert compared
            for name in compared:
                expected = getattr(theirs, FIELDS[name])
                assert_same(
                    at_real_places(ours[name], kept),
                    at_real_places(expected.reshape(ours[name].shape), kept),
                    f"{path}: {name}",
                )
            for name, expected in _other_losses(theirs, labels).items():
                assert_same(ours[name], expected, f"{path}: {name}")
        explicit = model(**inputs, output_hidden_states=True, output_attentions=True)
    flat = kept.reshape(-1, kept.shape[-1])
    assert len(explicit.hidden_states) == len(theirs.hidden_states) == case.layer_count + 1
    for index, state in enumerate(explicit.hidden_states):
        expected = theirs.hidden_states[index].reshape(state.shape)
        assert_same(state[kept], expected[kept], f"hidden state {index}")
    for index, probabilities in enumerate(explicit.attentions):
        one, two = (x.transpose(1, 2)[flat] for x in (probabilities, theirs.attentions[index]))  # rows of real queries
        assert_same(one, two, f"attention {index}")


def _other_losses(theirs: Any, labels: Inputs) -> dict[str, Tensor]:
    if "mc_labels" in labels:
        return {"lm_loss": theirs.loss, "mc_loss": theirs.mc_loss}
    return {"loss": theirs.loss} if labels else {}


def check_gradients_against_transformers(case: Case, model_class: type[Any], mask: str, lean: bool = False) -> None:
    """Of every parameter, from the sum of the losses (the base: from a weighted sum of the states)."""
    model = build(case, model_class).train()
    other = other_model(model).train()
    inputs = masked_inputs(model_class, mask, seed=3)
    labels = masked_labels(model_class, inputs)
    kept = real(inputs)

    def loss(output: Any, expected: bool) -> Tensor:
        if not labels:
            weights = torch.linspace(-1.0, 1.0, output.last_hidden_state.shape[-1]) * kept[..., None] / 40
            total: Tensor = (output.last_hidden_state * weights).sum()
            return total
        parts = _other_losses(output, labels) if expected else {n: output[n] for n in case.losses(model_class)}
        return torch.stack(list(parts.values())).sum()

    ours = loss(model(**inputs, **labels, **({"output_logits": False} if lean else {})), expected=False)
    theirs = loss(other(**other_arguments(model, inputs, labels)), expected=True)
    assert_same(ours, theirs, "loss")
    found, wanted = gradients(model, ours), gradients(other, theirs)
    assert found.keys() == wanted.keys()
    assert len(found) > 35
    for name, gradient in found.items():
        assert_same(gradient, wanted[name], f"gradient of {name}")


def check_against_numpy(case: Case, model_class: type[Any], mask: str, **overrides: Any) -> None:
    """The same by the forward of the papers, with a head mask as well, which transformers no longer has."""
    model = build(case, model_class, **overrides)
    inputs = masked_inputs(model_class, mask, seed=5)
    labels = masked_labels(model_class, inputs)
    length = inputs["input_ids"].shape[-1]
    rows: dict[str, Any] = {name: x.reshape(-1, length).numpy() for name, x in inputs.items() if name != "mc_token_ids"}
    kept = real(inputs)
    flat = kept.reshape(-1, length)
    reference = numpy_model(model)
    generator = torch.Generator().manual_seed(3)
    for head_mask in (None, torch.rand(case.layer_count, case.head_count, generator=generator)):
        decoded = reference.decode(**rows, head_mask=None if head_mask is None else head_mask.numpy())
        with torch.no_grad():
            ours = model(**inputs, **labels, head_mask=head_mask, output_hidden_states=True, output_attentions=True)
        states = [*decoded.hidden_states[:-1], decoded.last]
        for index, state in enumerate(states):
            found = ours.hidden_states[index].flatten(0, -3)
            assert_same(found[flat], state[flat.numpy()], f"hidden state {index}")
        for index, probabilities in enumerate(decoded.attentions):
            queries = ours.attentions[index].transpose(1, 2)[flat]
            assert_same(queries, probabilities.transpose(0, 2, 1, 3)[flat.numpy()], f"attention {index}")
        if not labels:
            assert_same(ours.last_hidden_state[kept], decoded.last[flat.numpy()], "last")
            continue
        scores = reference.scores(decoded.last)
        logits = ours.lm_logits if has_choices(model_class) else ours.logits
        assert_same(logits.flatten(0, -3)[flat], scores[flat.numpy()], "scores")
        given = labels["lm_labels" if has_choices(model_class) else "labels"].reshape(-1, length).numpy()
        assert_same(ours[case.losses(model_class)[0]], next_token_loss(scores, given), "loss")
        if has_choices(model_class):
            choices = reference.choice(decoded.last, inputs["mc_token_ids"].flatten().numpy())
            assert_same(ours.mc_logits, choices.reshape(ours.mc_logits.shape), "choices")


def check_state_dicts_interchange(case: Case, model_class: type[Any], folder: Any) -> None:
    """Each library loads what the other saved, from its files, and computes the same."""
    model = build(case, model_class)
    inputs = masked_inputs(model_class, "right")
    theirs = other_model(model)
    assert theirs.state_dict().keys() == model.state_dict().keys()
    theirs.save_pretrained(folder / "theirs")
    model.save_pretrained(folder / "ours")
    ours, info = model_class.from_pretrained(folder / "theirs", output_loading_info=True)
    assert info["missing_keys"] == info["unexpected_keys"] == []
    other, info = type(theirs).from_pretrained(folder / "ours", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    for name, value in model.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value), name
        assert torch.equal(other.state_dict()[name], value), name
    with torch.no_grad():
        expected = model(**inputs)
        again = ours(**inputs)
        back = other.eval()(**other_arguments(model, inputs))
    for name in (name for name in FIELDS if name in fields(expected)):
        assert torch.equal(again[name], expected[name])
        kept = real(inputs)
        found = getattr(back, FIELDS[name]).reshape(expected[name].shape)
        assert_same(at_real_places(found, kept), at_real_places(expected[name], kept), name)
