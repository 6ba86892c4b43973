"""What research code does with the parts of a model: replaces them, overrides them, hooks them, reads their attributes.

Each is done to the published classes and to ours with the same weights, and must have the same effect.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pytorch_pretrained_bert.modeling as ours
from published import published

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
}
BATCH, LENGTH = 3, 11


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Ids with zeros among them, segments and a mask that says nothing of those zeros."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 99, (BATCH, LENGTH), generator=generator)
    ids[:, 2] = 0
    mask = torch.ones(BATCH, LENGTH).long()
    mask[1, 7:] = 0
    return ids, torch.randint(0, 2, (BATCH, LENGTH), generator=generator), mask


def both(name: str, *arguments: Any) -> tuple[Any, Any, Any]:
    """The published module, and a model of either side with the same weights."""
    theirs = published("pytorch_pretrained_bert", "modeling")
    torch.manual_seed(1)
    reference = getattr(theirs, name)(theirs.BertConfig(99, **SIZES), *arguments).eval()
    model = getattr(ours, name)(ours.BertConfig(99, **SIZES), *arguments).eval()
    model.load_state_dict(reference.state_dict())
    return theirs, reference, model


def assert_like(model: Any, reference: Any, *more: Any) -> None:
    torch.testing.assert_close(model(*inputs(), *more), reference(*inputs(), *more), atol=2e-6, rtol=0)


def test_the_word_with_id_0_learns_nothing_as_an_input() -> None:
    _, reference, model = both("BertForMaskedLM")
    ids, segments, _ = inputs()
    labels = torch.full_like(ids, -1)
    labels[:, 4] = 7
    for each in (reference, model):
        each(ids, segments, None, labels).backward()
    expected = dict(reference.named_parameters())
    for name, parameter in model.named_parameters():
        if expected[name].grad is not None:
            torch.testing.assert_close(parameter.grad, expected[name].grad, atol=1e-6, rtol=1e-4)


def test_an_encoder_with_a_forward_of_its_own() -> None:
    theirs, reference, model = both("BertForSequenceClassification", 2)

    def doubled(base: Any) -> Any:
        class Doubled(base):  # type: ignore[misc]
            def forward(
                self,
                input_ids: Tensor,
                token_type_ids: Tensor | None = None,
                attention_mask: Tensor | None = None,
                output_all_encoded_layers: bool = True,
            ) -> Any:
                states, pooled = super().forward(input_ids, token_type_ids, attention_mask, output_all_encoded_layers)
                more = [state * 2 for state in states] if output_all_encoded_layers else states * 2
                return more, pooled * 2

        return Doubled

    for each, module in ((reference, theirs), (model, ours)):
        inner = doubled(module.BertModel)(module.BertConfig(99, **SIZES)).eval()
        inner.load_state_dict(each.bert.state_dict())
        each.bert = inner
    assert_like(model, reference)
    assert_like(model, reference, torch.tensor([0, 1, 1]))


def attention(module: Any) -> Any:
    class Halved(module.BertSelfAttention):  # type: ignore[misc]
        def forward(self, hidden_states: Tensor, attention_mask: Tensor) -> Tensor:
            found: Tensor = super().forward(hidden_states, attention_mask) * 0.5
            return found

    return Halved


def whole_attention(module: Any) -> Any:
    class Negative(module.BertAttention):  # type: ignore[misc]
        def forward(self, input_tensor: Tensor, attention_mask: Tensor) -> Tensor:
            found: Tensor = -super().forward(input_tensor, attention_mask)
            return found

    return Negative


def layer(module: Any) -> Any:
    class Twice(module.BertLayer):  # type: ignore[misc]
        def forward(self, hidden_states: Tensor, attention_mask: Tensor) -> Tensor:
            once = super().forward(hidden_states, attention_mask)
            found: Tensor = super().forward(once, attention_mask)
            return found

    return Twice


def encoder(module: Any) -> Any:
    class Reversed(module.BertEncoder):  # type: ignore[misc]
        def forward(self, hidden_states: Tensor, attention_mask: Tensor, output_all_encoded_layers: bool = True) -> Any:
            for each in reversed(list(self.layer)):
                hidden_states = each(hidden_states, attention_mask)
            return [hidden_states] * (3 if output_all_encoded_layers else 1)

    return Reversed


def pooler(module: Any) -> Any:
    class Mean(module.BertPooler):  # type: ignore[misc]
        def forward(self, hidden_states: Tensor) -> Tensor:
            return torch.tanh(self.dense(hidden_states.mean(1)))

    return Mean


PLACES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "self-attention": (attention, "encoder.layer.1.attention.self"),
    "attention": (whole_attention, "encoder.layer.1.attention"),
    "layer": (layer, "encoder.layer.0"),
    "encoder": (encoder, "encoder"),
    "pooler": (pooler, "pooler"),
}


@pytest.mark.parametrize("head", [("BertForSequenceClassification", 2), ("BertForMaskedLM",)], ids=lambda head: head[0])
@pytest.mark.parametrize("place", PLACES)
def test_parts_of_a_users_own(place: str, head: tuple[Any, ...]) -> None:
    theirs, reference, model = both(*head)
    make, path = PLACES[place]
    for each, module in ((reference, theirs), (model, ours)):
        own = make(module)(module.BertConfig(99, **SIZES)).eval()
        own.load_state_dict(each.bert.get_submodule(path).state_dict())
        owner, _, name = path.rpartition(".")
        setattr(each.bert.get_submodule(owner), name, own)
    assert_like(model, reference)


def test_activations_by_their_classic_names() -> None:
    _, reference, model = both("BertForMaskedLM")
    for function in (torch.relu, nn.Tanh()):
        for each in (reference, model):
            for each_layer in each.bert.encoder.layer:
                each_layer.intermediate.intermediate_act_fn = function
            each.cls.predictions.transform.transform_act_fn = function
        assert_like(model, reference)
    assert isinstance(model.bert.encoder.layer[0].intermediate.intermediate_act_fn, nn.Tanh)


def test_hooks_see_what_they_saw() -> None:
    theirs, reference, model = both("BertModel")
    del theirs
    seen: list[list[Any]] = [[], []]
    for each, found in ((reference, seen[0]), (model, seen[1])):
        for part in (each.encoder.layer[1], each.encoder.layer[1].attention.self):
            part.register_forward_hook(lambda module, given, made, found=found: found.append((len(given), made)))
        each(*inputs())
    assert [count for count, _ in seen[1]] == [count for count, _ in seen[0]] == [2, 2]
    for (_, made), (_, expected) in zip(seen[1], seen[0], strict=True):
        torch.testing.assert_close(made, expected, atol=2e-6, rtol=0)


def test_dropouts_can_be_switched_by_their_class() -> None:
    _, _, model = both("BertModel")
    model.train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    first, again = (model(*inputs())[1] for _ in range(2))
    assert torch.equal(first, again)
    model.eval()
    for each_layer in model.encoder.layer:
        each_layer.attention.self.dropout.train()
        each_layer.attention.self.dropout.p = 0.5
    assert not torch.equal(model(*inputs())[1], model(*inputs())[1])


def test_names_that_copied_code_reads() -> None:
    _, reference, model = both("BertModel")
    for each in (reference, model):
        part = each.encoder.layer[0].attention.self
        assert (part.num_attention_heads, part.attention_head_size, part.all_head_size) == (4, 8, 32)
    assert ours.PreTrainedBertModel is ours.BertPreTrainedModel
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    assert norms
    assert all(isinstance(norm, ours.BertLayerNorm) and norm.variance_epsilon == 1e-12 for norm in norms)
    assert ours.BertLayerNorm(model.config, variance_epsilon=1e-5).eps == 1e-5
    assert float(model.pooler.activation(torch.tensor(100.0))) == 1.0


def test_one_label_is_a_cross_entropy() -> None:
    _, reference, model = both("BertForSequenceClassification", 1)
    labels = torch.zeros(BATCH).long()
    assert model(*inputs(), labels).item() == reference(*inputs(), labels).item() == 0.0


def test_choices_that_are_flattened_already() -> None:
    _, reference, model = both("BertForMultipleChoice", 3)
    assert_like(model, reference)
    assert model(*inputs()).shape == (1, 3)


def test_the_pickle_of_a_configuration_of_0_6_2() -> None:
    theirs = published("pytorch_pretrained_bert", "modeling")
    config = ours.BertConfig.__new__(ours.BertConfig)
    config.__setstate__(dict(vars(theirs.BertConfig(99, **SIZES))))
    assert config == ours.BertConfig(99, **SIZES)
    assert config.layer_norm_eps == 1e-12
