"""The engine of conversion on names and shapes alone: every name has one partner, and whatever has none is said."""

import itertools
import re
from collections.abc import Mapping
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from models.bert.tiny import MODELS, tiny_config
from original_bert import own_weights
from pytorch_transformers.checkpoint.bookkeeping import TENSORFLOW_BOOKKEEPING, TENSORFLOW_SLOTS
from pytorch_transformers.checkpoint.keymap import (
    Converted,
    KeyMap,
    Operation,
    Plan,
    Row,
    Shape,
    Step,
    plan_from_original,
    plan_to_original,
)
from pytorch_transformers.models.bert.convert import KEY_MAP

OPERATIONS: tuple[Operation, ...] = get_args(Operation)

#: Our names and shapes, by class: {"BertModel": {"bert.embeddings.…": (99, 40), …}, …}.
TARGETS: dict[str, dict[str, Shape]] = {
    model_class.__name__: {
        name: tuple(value.shape) for name, value in own_weights(model_class(tiny_config(num_hidden_layers=2))).items()
    }
    for model_class in MODELS
}
EVERYTHING: dict[str, Shape] = dict(itertools.chain.from_iterable(targets.items() for targets in TARGETS.values()))


def original(targets: Mapping[str, Shape]) -> dict[str, Shape]:
    """The variables of a checkpoint for these parameters: their original names and shapes."""
    variables = {}
    for name, shape in targets.items():
        found = KEY_MAP.to_original(name)
        assert found is not None, name
        variables[found[1]] = shape[::-1] if found[0].operation == "transpose" else shape
    return variables


def accounted(plan: Plan) -> tuple[list[str], list[str]]:
    """All original names, and all of ours, that a plan speaks of."""
    theirs = [*(step.source for step in plan.steps), *plan.ignored, *plan.left_out]
    return sorted(theirs), sorted([*(step.target for step in plan.steps), *plan.fresh])


# --- the table of BERT ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", TARGETS)
def test_every_weight_of_every_model_has_exactly_one_row(model: str) -> None:
    assert TARGETS[model]
    for name in TARGETS[model]:
        rows = [row for row in KEY_MAP.rows if row.source(name) is not None]
        assert len(rows) == 1, name
        theirs = rows[0].source(name)
        assert theirs is not None
        assert [row for row in KEY_MAP.rows if row.target(theirs) is not None] == rows
        assert KEY_MAP.to_original(name) == (rows[0], theirs)
        assert KEY_MAP.to_ours(theirs) == (rows[0], name)


def test_every_row_has_a_weight_in_some_model() -> None:
    unused = [row for row in KEY_MAP.rows if not any(row.source(name) for name in EVERYTHING)]
    assert unused == []


def test_only_kernels_are_transposed() -> None:
    """Embeddings and `output_weights` are [out, in] already (modeling.py, run_classifier.py)."""
    for row in KEY_MAP.rows:
        assert (row.operation == "transpose") == row.original.endswith("/kernel"), row


@settings(max_examples=100, derandomize=True)
@given(row=st.sampled_from(KEY_MAP.rows), number=st.integers(0, 10**9))
def test_any_number_of_a_layer_survives_there_and_back(row: Row, number: int) -> None:
    theirs, ours = row.original.replace("{n}", str(number)), row.ours.replace("{n}", str(number))
    assert KEY_MAP.to_ours(theirs) == (row, ours)
    assert KEY_MAP.to_original(ours) == (row, theirs)


PIECES = sorted({piece for row in KEY_MAP.rows for piece in row.original.replace("{n}", "7").split("/")})
ODD = st.sampled_from(["", "layer_", "layer_07", "layer_-1", "layer_{n}", "model", "{n}", "adam_m", "\n", "layer_7\n"])


@settings(max_examples=300, derandomize=True)
@given(parts=st.lists(st.one_of(st.sampled_from(PIECES), ODD, st.text(max_size=3)), max_size=7))
def test_a_name_is_known_as_a_whole_or_not_at_all(parts: list[str]) -> None:
    """Whatever a row takes for its own comes back as it was: nothing of a name is overlooked."""
    name = "/".join(parts)
    found = KEY_MAP.to_ours(name)
    if found is not None:
        assert KEY_MAP.to_original(found[1]) == (found[0], name)


KNOWN = "bert/encoder/layer_1/output/dense/kernel"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "bert",
        KNOWN.replace("layer_1", "layer_01"),
        KNOWN.replace("layer_1", "layer_+1"),
        KNOWN.replace("layer_1", "layer_1.0"),
        KNOWN.replace("layer_1", "layer_{n}"),
        KNOWN.replace("layer_1", "layer_"),
        KNOWN.replace("layer_1", "layer_1\N{ARABIC-INDIC DIGIT THREE}"),  # a digit to `\d`, and to no program
        f"{KNOWN}\n",
        f"{KNOWN}:0",
        f"{KNOWN}/kernel",
        f"/{KNOWN}",
        f"model/{KNOWN}",
        KNOWN.upper(),
        KNOWN.replace("/", "."),
        KNOWN.replace("kernel", "gamma"),
        "bert/encoder/layer_1/output_dense/kernel",
    ],
)
def test_what_nearly_is_a_name_is_none(name: str) -> None:
    assert KEY_MAP.to_ours(KNOWN) is not None
    assert KEY_MAP.to_ours(name) is None
    with pytest.raises(ValueError, match="no row of the table knows"):
        plan_from_original(KEY_MAP, {**original(EVERYTHING), name: (1,)}, EVERYTHING)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("BertModel", "model"),
        ("BertForPreTraining", "pre_training"),
        ("BertForMaskedLM", "masked_lm"),
        ("BertForNextSentencePrediction", "next_sentence"),
        ("BertForSequenceClassification", "sequence_classification"),
        ("BertForMultipleChoice", "sequence_classification"),  # the same names: asked for by name
        ("BertForTokenClassification", "sequence_classification"),
        ("BertForQuestionAnswering", "question_answering"),
    ],
)
def test_names_say_which_head_a_checkpoint_has(model: str, kind: str) -> None:
    assert KEY_MAP.head(original(TARGETS[model])) == kind
    assert KEY_MAP.head([*original(TARGETS[model]), "global_step"]) == kind


# --- operations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", OPERATIONS)
@settings(max_examples=40, derandomize=True)
@given(rows=st.integers(0, 5), columns=st.integers(0, 5))
def test_every_operation_has_an_inverse(operation: Operation, rows: int, columns: int) -> None:
    """From the original to us and back: the same values; and the plans of both ways agree about the shapes."""
    key_map = KeyMap((Row("theirs", "ours", operation),))
    rows = 1 if operation == "drop_first" else rows
    tensor = torch.arange(float(rows * columns)).reshape(rows, columns)
    (back,) = plan_to_original(key_map, {"ours": ()})
    there = Step("theirs", "ours", operation)
    assert (back.source, back.target) == ("ours", "theirs")
    ours = there.apply(tensor)
    assert ours.is_contiguous()
    assert torch.equal(back.apply(ours), tensor)
    assert sorted(ours.reshape(-1).tolist()) == tensor.reshape(-1).tolist()
    plan = plan_from_original(key_map, {"theirs": tuple(tensor.shape)}, {"ours": tuple(ours.shape)})
    assert plan.steps == [there]
    with pytest.raises(ValueError, match=r"theirs \[.*\] for ours"):
        plan_from_original(key_map, {"theirs": tuple(tensor.shape)}, {"ours": (*ours.shape, 2)})


def test_transposing_swaps_the_axes() -> None:
    step = Step("theirs", "ours", "transpose")
    assert step.apply(torch.tensor([[1, 2, 3], [4, 5, 6]])).tolist() == [[1, 4], [2, 5], [3, 6]]


@pytest.mark.parametrize("shape", [(), (0,), (2,), (2, 1)])
def test_only_an_axis_of_one_can_be_dropped(shape: Shape) -> None:
    for ours in ((), (1,), shape, shape[1:]):
        with pytest.raises(ValueError, match="shapes differ"):
            plan_from_original(KeyMap((Row("theirs", "ours", "drop_first"),)), {"theirs": shape}, {"ours": ours})


def test_what_needs_no_change_is_not_copied() -> None:
    tensor = torch.ones(2, 3)
    assert Step("theirs", "ours", "as_is").apply(tensor) is tensor


def test_converted_tensors_are_made_when_they_are_asked_for() -> None:
    asked: list[str] = []

    def read(name: str) -> Tensor:
        asked.append(name)
        return torch.arange(6.0).reshape(2, 3)

    tensors = Converted(read, [Step("a", "x", "as_is"), Step("b", "y", "transpose")])
    assert list(tensors) == ["x", "y"]
    assert len(tensors) == 2
    assert asked == []
    assert tensors["y"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert asked == ["b"]
    with pytest.raises(KeyError):
        tensors["a"]


# --- plans ------------------------------------------------------------------------------------------------------------

SLOTS = [f"{KNOWN}/adam_m", f"{KNOWN}/adam_v", "output_bias/Adam_1", "global_step", "model/beta1_power"]


@pytest.mark.parametrize("model", TARGETS)
def test_a_plan_pairs_a_checkpoint_with_its_model(model: str) -> None:
    variables = original(TARGETS[model])
    plan = plan_from_original(KEY_MAP, variables, TARGETS[model])
    assert accounted(plan) == (sorted(variables), sorted(TARGETS[model]))
    assert (plan.ignored, plan.left_out, plan.fresh) == ([], [], [])
    back = plan_to_original(KEY_MAP, TARGETS[model])
    forth = {(step.target, step.source, step.operation) for step in plan.steps}
    assert {(step.source, step.target, step.operation) for step in back} == forth


@settings(max_examples=80, derandomize=True)
@given(
    source=st.sampled_from(sorted(TARGETS)),
    target=st.sampled_from(sorted(TARGETS)),
    slots=st.lists(st.sampled_from(SLOTS), unique=True),
    unknown=st.lists(st.sampled_from(["ema/output_bias", "bert/pooler/dense", "cls/x", "é"]), unique=True, max_size=2),
    removed=st.lists(st.sampled_from(sorted(original(EVERYTHING))), max_size=2),
    own=st.lists(st.sampled_from(["bert.extra.weight", "extra.bias"]), unique=True),
)
def test_a_plan_has_each_name_in_exactly_one_of_its_lists(
    source: str, target: str, slots: list[str], unknown: list[str], removed: list[str], own: list[str]
) -> None:
    """Any checkpoint into any model: all names are accounted for, or the error lists every one that is not."""
    variables = {name: shape for name, shape in original(TARGETS[source]).items() if name not in removed}
    variables |= dict.fromkeys([*slots, *unknown], (1,))
    parameters = {**TARGETS[target], **dict.fromkeys(own, (2,))}
    try:
        plan = plan_from_original(KEY_MAP, variables, parameters)
    except ValueError as error:
        message = str(error)
        filled = {found[1] for name in variables if (found := KEY_MAP.to_ours(name)) is not None}
        encoder = [name for name in parameters if name.startswith("bert.") and name not in own]
        assert [name for name in unknown if f"{name} [1]" not in message] == []
        assert [name for name in encoder if name not in filled and name not in message] == []
        assert [name for name in slots if name in message] == []
        assert [name for name in own if name in message] == []
    else:
        assert not unknown
        assert accounted(plan) == (sorted(variables), sorted(parameters))
        assert sorted(plan.ignored) == sorted(slots)
        assert set(own) <= set(plan.fresh)


def test_one_error_lists_everything_at_once() -> None:
    variables = original(EVERYTHING)
    del variables["bert/pooler/dense/bias"], variables["bert/encoder/layer_0/output/dense/kernel"]
    variables |= {"a/unknown": (3,), "b/unknown": (4, 5)}
    variables["bert/embeddings/LayerNorm/gamma"] = (41,)
    variables["bert/pooler/dense/kernel"] = (40, 39)
    with pytest.raises(ValueError, match="unknown") as caught:
        plan_from_original(KEY_MAP, variables, EVERYTHING)
    message = str(caught.value)
    for part in (
        "no row of the table knows a/unknown [3], b/unknown [4, 5]",
        "bert.pooler.dense.bias",
        "bert.encoder.layer.0.output.dense.weight",
        "bert/embeddings/LayerNorm/gamma [41] for bert.embeddings.LayerNorm.weight [40]",
        "bert/pooler/dense/kernel [40, 39] for bert.pooler.dense.weight [40, 40]",
    ):
        assert part in message


def test_shapes_are_compared_after_the_operation() -> None:
    """A kernel of [in, out] is not one of [out, in], also where the numbers of values agree."""
    variables = original(EVERYTHING)
    wrong = "bert/encoder/layer_0/intermediate/dense/kernel"
    assert variables[wrong] == (40, 37)
    with pytest.raises(ValueError, match=r"intermediate/dense/kernel \[37, 40\] for .*weight \[37, 40\]"):
        plan_from_original(KEY_MAP, {**variables, wrong: (37, 40)}, EVERYTHING)


def test_any_shape_leaves_shapes_to_the_caller() -> None:
    variables = {**original(EVERYTHING), "output_bias": (9,)}
    plan = plan_from_original(KEY_MAP, variables, EVERYTHING, any_shape=True)
    assert Step("output_bias", "classifier.bias", "as_is") in plan.steps
    with pytest.raises(ValueError, match="unknown"):
        plan_from_original(KEY_MAP, {**variables, "unknown": (1,)}, EVERYTHING, any_shape=True)


def test_names_outside_the_scope_are_not_the_model() -> None:
    """A scope that holds a part of the weights is not filled up from outside: that would mix two models."""
    variables = {**original(EVERYTHING), "ema/bert/pooler/dense/bias": (40,)}
    with pytest.raises(ValueError, match=r"no row of the table knows bert/embeddings/word_embeddings") as caught:
        plan_from_original(KEY_MAP, variables, EVERYTHING, scope="ema")
    assert "no variable has the values of bert.embeddings.word_embeddings.weight" in str(caught.value)
    plan = plan_from_original(KEY_MAP, variables, EVERYTHING, ignore=["ema/.*"])
    assert plan.ignored == ["ema/bert/pooler/dense/bias"]


def test_half_a_head_is_an_error_and_a_whole_one_may_be_new() -> None:
    targets = TARGETS["BertForPreTraining"]
    head = [name for name in original(targets) if name.startswith("cls/predictions/")]
    whole = {name: shape for name, shape in original(targets).items() if name not in head}
    plan = plan_from_original(KEY_MAP, whole, targets)
    assert sorted(plan.fresh) == sorted(name for name in targets if name.startswith("cls.predictions."))
    for name in head:
        half = {other: shape for other, shape in original(targets).items() if other != name}
        found = KEY_MAP.to_ours(name)
        assert found is not None
        with pytest.raises(ValueError, match=rf"no variable has the values of {found[1]}$"):
            plan_from_original(KEY_MAP, half, targets)


@pytest.mark.parametrize("part", ["bert/pooler/", "bert/encoder/layer_1/", "bert/embeddings/"])
def test_a_part_of_the_encoder_is_never_new(part: str) -> None:
    variables = {name: shape for name, shape in original(EVERYTHING).items() if not name.startswith(part)}
    with pytest.raises(ValueError, match="no variable has the values of") as caught:
        plan_from_original(KEY_MAP, variables, EVERYTHING)
    missing = [name for name in EVERYTHING if name.startswith(part.replace("/", ".").replace("_", "."))]
    assert missing
    assert [name for name in missing if name not in str(caught.value)] == []


def test_modules_that_a_user_added_are_new() -> None:
    targets = {**TARGETS["BertModel"], "bert.adapter.weight": (3, 3), "crf": (5,), "bert.encoder.layer.0.gate": (1,)}
    plan = plan_from_original(KEY_MAP, original(TARGETS["BertModel"]), targets)
    assert plan.fresh == ["bert.adapter.weight", "crf", "bert.encoder.layer.0.gate"]


def test_nothing_that_fits_is_an_error() -> None:
    with pytest.raises(ValueError, match="not one variable fits the model"):
        plan_from_original(KEY_MAP, original(TARGETS["BertModel"]), {"encoder.weight": (3,)})


@pytest.mark.parametrize("layers", [0, 1])
def test_layers_that_the_model_lacks_are_an_error(layers: int) -> None:
    """A configuration of fewer layers is a wrong one: the model would give wrong numbers."""
    targets = {
        name: shape
        for name, shape in EVERYTHING.items()
        if not name.startswith(tuple(f"bert.encoder.layer.{number}." for number in range(layers, 2)))
    }
    surplus = [name for name in original(EVERYTHING) if name.startswith("bert/encoder/layer_1/")]
    with pytest.raises(ValueError, match="bert/encoder/layer_1/") as caught:
        plan_from_original(KEY_MAP, original(EVERYTHING), targets)
    assert [name for name in surplus if name not in str(caught.value)] == []


def test_heads_that_the_model_lacks_are_left_out() -> None:
    plan = plan_from_original(KEY_MAP, original(EVERYTHING), TARGETS["BertForQuestionAnswering"])
    assert {name.rpartition("/")[0] for name in plan.left_out} == {
        *("", "bert/pooler/dense", "cls/predictions", "cls/predictions/transform/dense"),
        *("cls/predictions/transform/LayerNorm", "cls/seq_relationship"),
    }


# --- ignoring ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["ema/.*", ".*", "ema/bert/pooler/dense/bias", "(ema|old)/.+"])
def test_patterns_name_what_is_no_part_of_the_model(pattern: str) -> None:
    variables = {"ema/bert/pooler/dense/bias": (40,)}
    key_map = KeyMap((Row("a", "b"),))
    if pattern == ".*":
        with pytest.raises(ValueError, match="no variable has the values of b"):
            plan_from_original(key_map, {**variables, "a": (1,)}, {"b": (1,)}, ignore=[pattern])
        return
    plan = plan_from_original(key_map, {**variables, "a": (1,)}, {"b": (1,)}, ignore=["zz", pattern])
    assert plan.ignored == list(variables)


@pytest.mark.parametrize("pattern", ["ema", "ema/", "bert/pooler/dense/bias", "ma/.*", "EMA/.*"])
def test_patterns_are_about_whole_names(pattern: str) -> None:
    variables = {**original(EVERYTHING), "ema/bert/pooler/dense/bias": (40,)}
    del variables["bert/pooler/dense/kernel"]
    with pytest.raises(ValueError, match=r"no row of the table knows ema/bert/pooler/dense/bias \[40\]"):
        plan_from_original(KEY_MAP, variables, EVERYTHING, ignore=[pattern])


def test_patterns_see_names_with_their_scope() -> None:
    variables = {f"model/{name}": shape for name, shape in original(EVERYTHING).items()}
    with pytest.raises(ValueError, match=r"values of bert\.pooler\.dense\.bias$"):
        plan_from_original(KEY_MAP, variables, EVERYTHING, scope="model", ignore=["model/bert/pooler/dense/bias"])
    plan = plan_from_original(KEY_MAP, variables, EVERYTHING, scope="model", ignore=["bert/pooler/dense/bias"])
    assert plan.ignored == []


@pytest.mark.parametrize("pattern", ["(", "*", "[a", "(?P<x"])
def test_a_wrong_pattern_is_named(pattern: str) -> None:
    with pytest.raises(ValueError, match="is no regular expression") as caught:
        plan_from_original(KEY_MAP, {}, {}, ignore=[pattern])
    assert f"ignore: {pattern!r}" in str(caught.value)


@pytest.mark.parametrize("slot", ["adam_m", "adam_v", "Adam", "Adam_1", "Momentum", "LAMB", "LAMB_1", "LAMBOptimizer"])
def test_a_slot_belongs_to_a_variable(slot: str) -> None:
    """The pattern takes the last part of a name, whole, with something before it."""
    key_map = KeyMap((Row("a", "b"),), ignored=TENSORFLOW_SLOTS)
    plan = plan_from_original(key_map, {"a": (1,), f"a/{slot}": (1,), f"x/y/{slot}": (1,)}, {"b": (1,)})
    assert plan.ignored == [f"a/{slot}", f"x/y/{slot}"]
    longer = [] if slot.startswith("LAMB") else [f"a/{slot}x"]
    for name in (slot, f"/{slot}", f"a/x{slot}", f"{slot}/a", f"a/{slot}/b", f"a_{slot}", *longer):
        with pytest.raises(ValueError, match="no row of the table knows"):
            plan_from_original(key_map, {"a": (1,), name: (1,)}, {"b": (1,)})


def test_no_weight_is_taken_for_bookkeeping() -> None:
    key_map = KeyMap(KEY_MAP.rows, ignored=TENSORFLOW_BOOKKEEPING)
    assert plan_from_original(key_map, original(EVERYTHING), EVERYTHING).ignored == []


# --- scopes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["model", "model/", "/model/", "a/b.c"])
def test_a_common_scope_is_stripped_on_demand(scope: str) -> None:
    prefix = scope.strip("/")
    variables: dict[str, Any] = {f"{prefix}/{name}": shape for name, shape in original(EVERYTHING).items()}
    variables["global_step"] = ()
    plan = plan_from_original(KEY_MAP, variables, EVERYTHING, scope=scope)
    assert accounted(plan) == (sorted(variables), sorted(EVERYTHING))
    assert all(step.source.startswith(f"{prefix}/") for step in plan.steps)
    with pytest.raises(ValueError, match="no row of the table knows") as caught:
        plan_from_original(KEY_MAP, variables, EVERYTHING)
    message = str(caught.value)
    assert f"scope={prefix!r}" in message
    assert f"--scope {prefix}" in message
    assert "global_step" not in message


def test_names_of_several_scopes_suggest_none() -> None:
    variables = {**original(EVERYTHING), "x/output_bias": (3,), "y/output_bias": (3,)}
    with pytest.raises(ValueError, match="if they are not part of the model, ignore them") as caught:
        plan_from_original(KEY_MAP, variables, EVERYTHING)
    assert "scope=" not in str(caught.value)


def test_a_scope_is_no_part_of_a_word() -> None:
    with pytest.raises(ValueError, match="models/output_bias"):
        plan_from_original(KEY_MAP, {**original(EVERYTHING), "models/output_bias": (3,)}, EVERYTHING, scope="model")


# --- pieces -----------------------------------------------------------------------------------------------------------

#: One array of theirs for three of ours, and three of theirs for one of ours.
PIECES_OF_THEIRS = tuple(Row("stack", f"layers.{n}.bias", "drop_first", source_rows=(n, n + 1)) for n in range(3))
PIECES_OF_OURS = tuple(Row(f"part_{n}", "bias", target_rows=rows) for n, rows in enumerate([(0, 2), (2, 3), (3, 7)]))
PIECED = KeyMap((*PIECES_OF_OURS[::-1], *PIECES_OF_THEIRS, Row("table", "table")), ignored=TENSORFLOW_SLOTS)
THEIRS: dict[str, Tensor] = {
    "part_0": torch.tensor([0.0, 1.0]),
    "part_1": torch.tensor([2.0]),
    "part_2": torch.tensor([3.0, 4.0, 5.0, 6.0]),
    "stack": torch.arange(24.0).reshape(3, 2, 4),
    "table": torch.arange(10.0).reshape(5, 2),
}
OURS: dict[str, Tensor] = {
    "bias": torch.arange(7.0),
    "table": THEIRS["table"],
    **{f"layers.{n}.bias": THEIRS["stack"][n] for n in range(3)},
}


def shapes(tensors: Mapping[str, Tensor]) -> dict[str, Shape]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def values(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return {name: tensor.tolist() for name, tensor in tensors.items()}


def test_pieces_become_wholes_and_wholes_pieces() -> None:
    """Whatever the order of rows and names."""
    for names in (list(THEIRS), sorted(THEIRS, reverse=True)):
        plan = plan_from_original(PIECED, shapes({name: THEIRS[name] for name in names}), shapes(OURS))
        assert (plan.fresh, plan.left_out) == ([], [])
        assert values(Converted(THEIRS.__getitem__, plan.steps)) == values(OURS)
    back = plan_to_original(PIECED, shapes(OURS))
    assert values(Converted(OURS.__getitem__, back)) == values(THEIRS)
    turned = {(step.target, step.source, step.target_rows, step.source_rows) for step in back}
    assert {(step.source, step.target, step.source_rows, step.target_rows) for step in plan.steps} == turned


def test_a_piece_is_not_copied_where_it_is_alone() -> None:
    plan = plan_from_original(PIECED, shapes(THEIRS), shapes(OURS))
    tensors = Converted(THEIRS.__getitem__, plan.steps)
    assert tensors["table"] is THEIRS["table"]
    assert tensors["layers.1.bias"].data_ptr() == THEIRS["stack"][1].data_ptr()
    whole = KeyMap((Row("a", "b", source_rows=(0, 3), target_rows=(0, 3)),))
    (step,) = plan_from_original(whole, {"a": (3,)}, {"b": (3,)}).steps
    tensor = torch.ones(3)
    assert Converted({"a": tensor}.__getitem__, [step])["b"].data_ptr() == tensor.data_ptr()


@settings(max_examples=100, derandomize=True)
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5), width=st.integers(0, 3), theirs=st.booleans())
def test_any_division_survives_there_and_back(sizes: list[int], width: int, theirs: bool) -> None:
    ends = list(itertools.accumulate(sizes, initial=0))
    whole = torch.arange(float(ends[-1] * width)).reshape(ends[-1], width)
    parts = {f"p{n}": whole[start:stop] for n, (start, stop) in enumerate(itertools.pairwise(ends))}
    rows = [
        Row("x", f"p{n}", source_rows=piece) if theirs else Row(f"p{n}", "x", target_rows=piece)
        for n, piece in enumerate(itertools.pairwise(ends))
    ]
    left, right = ({"x": whole}, parts) if theirs else (parts, {"x": whole})
    plan = plan_from_original(KeyMap(tuple(rows)), shapes(left), shapes(right))
    assert values(Converted(left.__getitem__, plan.steps)) == values(right)
    back = plan_to_original(KeyMap(tuple(rows)), shapes(right))
    assert values(Converted(right.__getitem__, back)) == values(left)


def test_steps_of_pieces_have_a_form_for_json() -> None:
    assert Step("a", "b", "as_is").as_dict() == {"source": "a", "target": "b", "operation": "as_is"}
    assert Step("a", "b", "drop_first", (0, 1), (2, 3)).as_dict() == {
        "source": "a",
        "target": "b",
        "operation": "drop_first",
        "source_rows": [0, 1],
        "target_rows": [2, 3],
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"part_1": None}, "no variable has the values of bias[2:3]"),
        ({"part_0": None, "part_2": None}, "no variable has the values of bias[0:2], bias[3:7]"),
        ({"part_0": None, "part_1": None, "part_2": None}, "no variable has the values of bias"),
        ({"stack": None}, "no variable has the values of layers.0.bias, layers.1.bias, layers.2.bias"),
        ({"stack": (4, 2, 4)}, "the model, as it is configured, has no place for stack[3:4]"),
        (
            {"stack": (2, 2, 4)},
            "shapes differ from what the configuration asks for: stack[2:3] [0, 2, 4] for layers.2.bias [2, 4]",
        ),
        ({"stack": (3, 4, 2)}, "stack[0:1] [1, 4, 2] for layers.0.bias [2, 4], stack[1:2] [1, 4, 2] for"),
        ({"stack": ()}, "stack[0:1] [] for layers.0.bias [2, 4]"),
        ({"part_1": (2,)}, "asks for: part_1 [2] for bias[2:3] [1]"),
        ({"part_1": ()}, "asks for: part_1 [] for bias[2:3] [1]"),
        ({"part_1": (1, 1)}, "asks for: part_1 [1, 1] for bias[2:3] [1]"),
        ({"part_3": (1,)}, "no row of the table knows part_3 [1]"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[:50],
)
def test_pieces_that_do_not_fit(change: dict[str, Shape | None], words: str) -> None:
    sources = {name: shape for name, shape in {**shapes(THEIRS), **change}.items() if shape is not None}
    with pytest.raises(ValueError, match=re.escape(words) + "($|,| )"):
        plan_from_original(PIECED, sources, shapes(OURS))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bias": (9,)}, "no variable has the values of bias[7:9]"),
        ({"bias": (6,)}, "part_2 [4] for bias[3:7] [3]"),
        ({"bias": ()}, "part_1 [1] for bias[2:3] [], part_2 [4] for bias[3:7] []"),
        ({"layers.1.bias": None}, "the model, as it is configured, has no place for stack[1:2]"),
        ({"bias": None}, "has no place for part_0, part_1, part_2"),
        ({"layers.3.bias": (2, 4), "table": None}, "has no place for table"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[:50],
)
def test_models_that_pieces_do_not_fit(change: dict[str, Shape | None], words: str) -> None:
    targets = {name: shape for name, shape in {**shapes(OURS), **change}.items() if shape is not None}
    with pytest.raises(ValueError, match=re.escape(words) + "$"):
        plan_from_original(PIECED, shapes(THEIRS), targets)


def test_pieces_of_any_shape_are_all_there() -> None:
    """Sizes are the caller's then; a piece that is missing is not, nor rows that no piece has."""
    plan = plan_from_original(PIECED, shapes(THEIRS), {**shapes(OURS), "bias": (99,)}, any_shape=True)
    assert values(Converted(THEIRS.__getitem__, plan.steps)) == values(OURS)
    fewer = {name: shape for name, shape in shapes(THEIRS).items() if name != "part_1"}
    with pytest.raises(ValueError, match=r"no variable has the values of bias\[2:3\]$"):
        plan_from_original(PIECED, fewer, shapes(OURS), any_shape=True)
    with pytest.raises(ValueError, match=r"has no place for stack\[3:5\]$"):
        plan_from_original(PIECED, {**shapes(THEIRS), "stack": (5, 2, 4)}, shapes(OURS), any_shape=True)


@pytest.mark.parametrize(
    "rows",
    [
        (Row("a", "x"), Row("b", "x")),
        (Row("a", "x"), Row("b", "x", target_rows=(0, 2))),
        (Row("a", "x", target_rows=(0, 2)), Row("b", "x", target_rows=(1, 3))),
        (Row("a", "x", target_rows=(1, 2)), Row("b", "x", target_rows=(0, 3))),
    ],
)
def test_no_value_comes_from_two_places(rows: tuple[Row, ...]) -> None:
    with pytest.raises(ValueError, match=r"^more than one variable has the values of x$"):
        plan_from_original(KeyMap(rows), {"a": (2,), "b": (2,)}, {"x": (3,)}, any_shape=True)
    turned = tuple(Row(row.ours, row.original, row.operation, row.target_rows, row.source_rows) for row in rows)
    with pytest.raises(ValueError, match=r"^more than one weight has the values of x$"):
        plan_to_original(KeyMap(turned), {"a": (3,), "b": (3,)})


def test_a_value_may_have_two_places() -> None:
    """A model may hold twice what the original holds once; it is left out only where it has no place at all."""
    key_map = KeyMap((Row("a", "encoder.x"), Row("a", "head.x"), Row("b", "head.y")), optional=("head.",))
    plan = plan_from_original(key_map, {"a": (2,), "b": (3,)}, {"encoder.x": (2,), "head.x": (2,), "head.y": (3,)})
    assert [step.target for step in plan.steps] == ["encoder.x", "head.x", "head.y"]
    plan = plan_from_original(key_map, {"a": (2,), "b": (3,)}, {"encoder.x": (2,)})
    assert [step.target for step in plan.steps] == ["encoder.x"]
    assert plan.left_out == ["b"]


def test_pieces_of_a_part_that_the_model_lacks_are_left_out() -> None:
    rows = (Row("a", "x", source_rows=(0, 2)), Row("a", "head.y", source_rows=(2, 3)))
    plan = plan_from_original(KeyMap(rows, optional=("head.",)), {"a": (3,)}, {"x": (2,)})
    assert plan.left_out == ["a[2:3]"]
    assert Converted({"a": torch.arange(3)}.__getitem__, plan.steps)["x"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bias": (9,)}, "the original program has no such weights: bias[7:9]"),
        ({"bias": (6,)}, "the model has fewer rows than its configuration asks for: bias[3:7]"),
        ({"bias": ()}, "asks for: bias[3:7], bias[2:3], bias[0:2]"),
        ({"layers.1.bias": None}, "no weight has the values of stack[1:2]"),
        ({"layers.2.bias": None, "layers.0.bias": None}, "no weight has the values of stack[0:1], stack[2:3]"),
        ({"layers.3.bias": (2, 4)}, "the original program has no such weights: layers.3.bias"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[:50],
)
def test_pieces_that_cannot_be_written(change: dict[str, Shape | None], words: str) -> None:
    sources = {name: shape for name, shape in {**shapes(OURS), **change}.items() if shape is not None}
    with pytest.raises(ValueError, match=re.escape(words) + "$"):
        plan_to_original(PIECED, sources)


# --- the way back -----------------------------------------------------------------------------------------------------


def test_weights_without_an_original_name_are_all_listed() -> None:
    names = {**EVERYTHING, "bert.adapter.weight": (3, 3), "crf": (5,)}
    with pytest.raises(ValueError, match=r"the original program has no such weights: bert\.adapter\.weight, crf$"):
        plan_to_original(KEY_MAP, names)
