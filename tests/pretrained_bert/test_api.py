"""Each name of the published 0.6.2 is where it was: its kind, its signature, its bases, its value.

Walks the recorded facts. Parameters of 0.6.2 come first, in order and with their defaults; ours may have more behind
them, all optional.
"""

import importlib
import inspect
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import torch.nn.functional as F

from shared_data import SHARED, shared

FILE = ("api", "pytorch_pretrained_bert-0.6.2.json")
TOP = "pytorch_pretrained_bert"
MODULES = (
    *("convert_gpt2_checkpoint_to_pytorch", "convert_openai_checkpoint_to_pytorch"),
    *("convert_transfo_xl_checkpoint_to_pytorch", "file_utils", "modeling", "modeling_gpt2", "modeling_openai"),
    *("modeling_transfo_xl", "modeling_transfo_xl_utilities", "optimization", "optimization_openai", "tokenization"),
    *("tokenization_gpt2", "tokenization_openai", "tokenization_transfo_xl"),
)
#: In the package, but not in the record of it.
UNRECORDED = {
    TOP: ("TransfoXLModel", "load_tf_weights_in_transfo_xl"),
    f"{TOP}.modeling_transfo_xl": ("TransfoXLModel",),
    f"{TOP}.file_utils": ("PYTORCH_PRETRAINED_BERT_CACHE",),
    f"{TOP}.convert_tf_checkpoint_to_pytorch": ("convert_tf_checkpoint_to_pytorch",),
    f"{TOP}.__main__": ("main",),
}
#: How a parameter without a default is written.
EMPTY = repr(inspect.Parameter.empty)


@cache
def record() -> dict[str, dict[str, Any]]:
    """Module -> name -> facts."""
    return dict(json.loads(shared(*FILE).read_text(encoding="utf-8")))


def recorded(kind: str) -> Iterator[tuple[str, str]]:
    """Module and name of all of a kind, for parametrization; a single dummy where the record is absent."""
    if SHARED is None:
        yield "", ""
        return
    for module, names in record().items():
        yield from ((module, name) for name, facts in names.items() if facts["kind"] == kind)


def names_of(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("module", "name"), list(recorded(kind)), ids=lambda part: part.removeprefix(TOP).removeprefix(".")
    )


def base_class(name: str) -> Any:
    """A private base that has another name here; the only one of 0.6.2 is that of the schedules."""
    return getattr(importlib.import_module(f"{TOP}.optimization"), name, ())


def facts_and_value(module: str, name: str) -> tuple[dict[str, Any], Any]:
    return record()[module][name], getattr(importlib.import_module(module), name)


def parameters(signature: str) -> list[tuple[str, str]]:
    """Name and default, as it is written, of each parameter of a signature, without `self` and `cls`."""
    text = signature.replace("<required parameter>", "'required'")
    return written(inspect.signature(eval(f"lambda {text[1:-1]}: None")))


def written(signature: inspect.Signature) -> list[tuple[str, str]]:
    return [
        (str(each).partition("=")[0].partition(":")[0].strip(), repr(each.default))
        for each in signature.parameters.values()
        if each.name not in ("self", "cls")
    ]


def assert_signature(what: str, recorded_signature: str, value: Any) -> None:
    """The recorded parameters come first; what follows is optional."""
    expected = parameters(recorded_signature)
    found = written(inspect.signature(value))
    for place, (name, default) in enumerate(expected):
        if name.startswith("*"):  # what is taken by name or position beyond these may be spelled out
            continue
        assert place < len(found), f"{what}: {name} is missing"
        assert found[place][0] == name, f"{what}: parameter {place + 1} is {found[place][0]}, not {name}"
        if default not in ("'required'", EMPTY):
            assert found[place][1] == default, f"{what}: {name}={found[place][1]}, not {default}"
    for name, default in found[len(expected) :]:
        assert name.startswith("*") or default != EMPTY, f"{what}: {name} is required here, and unknown in 0.6.2"


@pytest.mark.parametrize("module", MODULES)
def test_modules(module: str) -> None:
    shared(*FILE)
    assert f"{TOP}.{module}" in record()
    found = importlib.import_module(f"{TOP}.{module}")
    assert [name for name in record()[f"{TOP}.{module}"] if not hasattr(found, name)] == []


def test_top_names() -> None:
    found = importlib.import_module(TOP)
    assert [name for name in record()[TOP] if not hasattr(found, name)] == []
    assert found.__version__


@pytest.mark.parametrize("module", UNRECORDED)
def test_names_that_the_record_lacks(module: str) -> None:
    found = importlib.import_module(module)
    assert [name for name in UNRECORDED[module] if not hasattr(found, name)] == []


@names_of("class")
def test_classes(module: str, name: str) -> None:
    facts, value = facts_and_value(module, name)
    assert inspect.isclass(value)
    above = {base.__name__ for base in value.__mro__}
    missing = [base for base in facts.get("bases", []) if base not in above and not issubclass(value, base_class(base))]
    assert not missing, f"bases of {name}"
    faults = []
    for method, signature in facts.get("methods", {}).items():
        found = inspect.getattr_static(value, method, None)
        if found is None:
            faults.append(f"{name}.{method} is missing")
            continue
        if signature == "property":
            assert not inspect.isroutine(found), f"{name}.{method} is called here"
            continue
        assert isinstance(found, classmethod) == signature.startswith("(cls"), f"{name}.{method}"
        try:
            assert_signature(f"{name}.{method}", signature, getattr(value, method))
        except AssertionError as fault:
            faults.append(str(fault).splitlines()[0])
    assert not faults, "\n".join(faults)


@names_of("function")
def test_functions(module: str, name: str) -> None:
    facts, value = facts_and_value(module, name)
    assert callable(value)
    assert not inspect.isclass(value)
    if "signature" in facts:
        assert_signature(name, facts["signature"], value)


@names_of("constant")
def test_constants(module: str, name: str) -> None:
    """Values, and the keys of tables whose values are functions and classes."""
    facts, value = facts_and_value(module, name)
    expected = facts.get("value")
    assert type(value).__name__ == facts["type"] or facts["type"] == "dict"
    if isinstance(expected, dict):
        assert {"null" if key is None else key for key in value} == set(expected)  # as JSON writes keys
        for key, each in expected.items():
            if key in value and not str(each).startswith("<"):
                assert value[key] == each
    else:
        assert value == expected


def test_tables_hold_what_they_name() -> None:
    """The functions and classes of the tables, which the record has by address only."""
    modeling, openai, optimization, of_openai = (
        importlib.import_module(f"{TOP}.{name}")
        for name in ("modeling", "modeling_openai", "optimization", "optimization_openai")
    )
    assert dict(modeling.ACT2FN) == {"gelu": modeling.gelu, "relu": F.relu, "swish": modeling.swish}
    assert openai.ACT_FNS["gelu"] is openai.gelu
    assert openai.ACT_FNS["swish"] is openai.swish
    for module in (optimization, of_openai):
        assert module.SCHEDULES["warmup_linear"] is module.WarmupLinearSchedule
        assert module.SCHEDULES["warmup_cosine"] is module.WarmupCosineSchedule
        assert module.SCHEDULES["warmup_constant"] is module.WarmupConstantSchedule
        assert module.SCHEDULES[None] is module.SCHEDULES["none"] is optimization.ConstantLR


@pytest.mark.parametrize("module", [TOP, *(f"{TOP}.{name}" for name in MODULES if not name.startswith("convert_"))])
def test_star_imports_give_the_published_names_alone(module: str) -> None:
    """Not what a module imports for itself, which 0.6.2 gave too."""
    names: dict[str, Any] = {}
    exec(f"from {module} import *", names)
    del names["__builtins__"]
    public = {name for name in record()[module] if not name.startswith("_")}
    assert public <= names.keys()
    assert not names.keys() & {"torch", "nn", "os", "json", "math", "copy", "logging", "logger", "unicodedata"}
