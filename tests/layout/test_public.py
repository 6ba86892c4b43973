"""The public names: each resolves, is documented, and costs nothing until it is used."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pytorch_transformers

STUB = Path(pytorch_transformers.__file__).with_suffix(".pyi")
TREE = ast.parse(STUB.read_text(encoding="utf-8"))
NAMES = sorted(
    alias.asname or alias.name for node in TREE.body if isinstance(node, ast.ImportFrom) for alias in node.names
)
VERBS = ("features", "fill-mask", "info", "download", "inspect", "convert", "convert_tf_checkpoint_to_pytorch")
#: Packages that `import pytorch_transformers` and `--help` leave alone.
HEAVY = {"torch", "tokenizers", "huggingface_hub", "transformers", "safetensors", "numpy", "regex", "tqdm"}

MODELS = (
    "BertModel",
    "BertForPreTraining",
    "BertForMaskedLM",
    "BertForNextSentencePrediction",
    "BertForSequenceClassification",
    "BertForMultipleChoice",
    "BertForTokenClassification",
    "BertForQuestionAnswering",
)
ARCHIVE_MAPS = ("BERT_PRETRAINED_MODEL_ARCHIVE_MAP", "BERT_PRETRAINED_CONFIG_ARCHIVE_MAP")
#: Module of the published package -> names that code written for it imports from there.
PUBLISHED = {
    "": (
        *("PretrainedConfig", "PreTrainedModel", "PreTrainedTokenizer", "BertConfig", "BertPreTrainedModel", *MODELS),
        *("BertTokenizer", "BasicTokenizer", "WordpieceTokenizer", *ARCHIVE_MAPS),
        *("WEIGHTS_NAME", "CONFIG_NAME", "cached_path", "load_tf_weights_in_bert"),
    ),
    ".modeling_bert": (
        *("BertConfig", "BertPreTrainedModel", *MODELS, *ARCHIVE_MAPS),
        *("BertEmbeddings", "BertEncoder", "BertLayer", "BertAttention", "BertSelfAttention", "BertSelfOutput"),
        *("BertIntermediate", "BertOutput", "BertPooler", "BertPreTrainingHeads", "BertLMPredictionHead"),
        *("BertOnlyMLMHead", "BertOnlyNSPHead", "BertPredictionHeadTransform", "ACT2FN", "gelu", "swish"),
        "load_tf_weights_in_bert",
    ),
    ".modeling_utils": ("PretrainedConfig", "PreTrainedModel", "WEIGHTS_NAME", "CONFIG_NAME", "prune_linear_layer"),
    ".tokenization_bert": (
        "BertTokenizer",
        "BasicTokenizer",
        "WordpieceTokenizer",
        "load_vocab",
        "whitespace_tokenize",
    ),
    ".tokenization_utils": ("PreTrainedTokenizer",),
    ".file_utils": ("cached_path",),
    ".convert_tf_checkpoint_to_pytorch": ("convert_tf_checkpoint_to_pytorch",),
    ".convert_pytorch_checkpoint_to_tf": ("convert_pytorch_checkpoint_to_tf",),
}


def loaded_by(*arguments: str) -> tuple[set[str], str]:
    """Top-level packages that `python *arguments` imports, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    trace = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    rest = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert done.returncode == 0, "\n".join(rest) or done.stdout
    return {name.split(".")[0] for name in trace}, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_each_public_name_resolves_and_is_documented(name: str) -> None:
    value = getattr(pytorch_transformers, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        text = (vars(value) if inspect.isclass(value) else {"__doc__": value.__doc__}).get("__doc__") or ""
        assert text.strip(), f"{name} has no docstring of its own"
        assert not text.startswith(f"{name}("), f"{name} has only the docstring that dataclass writes"


def test_all_is_what_the_stub_imports() -> None:
    assert NAMES
    assert sorted(set(vars(pytorch_transformers)["__all__"]) - {"__version__"}) == NAMES
    assert set(NAMES) <= set(dir(pytorch_transformers))


def test_stub_exports_what_it_imports() -> None:
    """A type checker takes `X as X` for an export, and a bare `X` for a detail of the stub."""
    stated = [
        node.value for node in TREE.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    bare = [
        alias.name
        for node in TREE.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is None
    ]
    assert sorted(ast.literal_eval(stated[0])) == NAMES if stated else not bare


@pytest.mark.parametrize("module", PUBLISHED, ids=lambda module: module or "top")
def test_published_names_are_where_they_were(module: str) -> None:
    found = importlib.import_module(f"pytorch_transformers{module}")
    missing = [name for name in PUBLISHED[module] if not hasattr(found, name)]
    assert not missing


def test_archive_maps_hold_the_seven_published_names() -> None:
    expected = {f"bert-{size}-{case}" for size in ("base", "large") for case in ("cased", "uncased")}
    expected |= {"bert-base-multilingual-cased", "bert-base-multilingual-uncased", "bert-base-chinese"}
    for name in ARCHIVE_MAPS:
        assert set(getattr(pytorch_transformers, name)) == expected


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="BertForEverything"):
        getattr(pytorch_transformers, "Bert" + "ForEverything")


def test_import_loads_nothing_heavy() -> None:
    packages, _ = loaded_by("-c", "import pytorch_transformers")
    assert "pytorch_transformers" in packages  # the trace was read
    assert not packages & HEAVY


@pytest.mark.parametrize("verb", [(), *((verb,) for verb in VERBS)], ids=lambda verb: verb[0] if verb else "main")
def test_help_is_instant_and_shows_an_example(verb: tuple[str, ...]) -> None:
    packages, text = loaded_by("-m", "pytorch_transformers", *verb, "--help")
    assert "argparse" in packages  # the trace was read
    assert not packages & {"torch", "tokenizers", "transformers", "numpy"}
    assert re.search(rf"example(.|\n)*pytorch_transformers {verb[0] if verb else ''}", text), text


def test_main_help_lists_every_verb() -> None:
    _, text = loaded_by("-m", "pytorch_transformers", "--help")
    assert [verb for verb in VERBS if verb not in text] == []


def test_version_option_prints_the_version() -> None:
    packages, text = loaded_by("-m", "pytorch_transformers", "--version")
    assert pytorch_transformers.__version__ in text
    assert "torch" not in packages
