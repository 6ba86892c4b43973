"""The architecture, asserted on the source text: nothing of the package is imported here.

Arrows point one way. A file that breaks a rule is named together with what it imports.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "pytorch_transformers"
SOURCE = ROOT / "src" / PACKAGE
PLUMBING = {"files", "hub", "checkpoint"}

#: Layer -> the other layers it may import. A layer is a folder of the package or a module beside them.
ARROWS = {
    "files": set[str](),
    "nn": set[str](),
    "optim": {"nn"},
    "hub": {"files"},
    "checkpoint": {"files", "hub"},
    "tokenizers": {"files", "hub"},
    "generation": {"nn", "files"},
    "models": {"nn", "generation", "tokenizers", *PLUMBING},
    "data": {"nn", "models", "tokenizers", *PLUMBING},
    "training": {"nn", "models", "tokenizers", "data", "optim", *PLUMBING},
    "cli": {"nn", "generation", "models", "tokenizers", "data", "optim", "training", *PLUMBING},
    "__main__": {"cli"},
}
#: Modules under the names of the published package. They only pass names on, and nothing inside imports them.
FLAT_NAMES = ("modeling_*.py", "tokenization_*.py", "optimization.py", "file_utils.py", "convert_*.py")
FLAT = sorted(path for pattern in FLAT_NAMES for path in SOURCE.glob(pattern))
#: Seven questions, one file each, in every family.
FAMILY_FILES = {"__init__", "config", "model", "heads", "tokenizer", "convert", "pretrained"}
FAMILIES = sorted(path.parent for path in SOURCE.glob("models/*/__init__.py"))
#: What `--help`, tokenisation and downloads must not wait for.
HEAVY = {"torch", "transformers", "accelerate"}


def modules() -> list[Path]:
    """Files of the package that belong to a layer."""
    outside = {SOURCE / "__init__.py", *FLAT}
    return sorted(path for path in SOURCE.rglob("*.py") if path not in outside)


def layer(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(path: Path, tree: ast.AST | None = None) -> Iterator[str]:
    """Dotted names that a file imports, relative ones made absolute, `from a import b` as `a.b`."""
    package = (PACKAGE, *path.relative_to(SOURCE).parent.parts)
    for node in ast.walk(tree or parse(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join((*base, *(node.module or "").split("."))).rstrip(".")
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def own_imports(path: Path) -> Iterator[tuple[str, ...]]:
    """Parts below the package of each import from the package itself: `("nn", "masks", "attention_bias")`."""
    for name in imports(path):
        top, *parts = name.split(".")
        if top == PACKAGE:
            yield tuple(parts)


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def at_import(tree: ast.Module) -> ast.Module:
    """The statements that run when a module is imported and may import others: no functions, no type checking."""

    class Strip(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
            del node

        def visit_If(self, node: ast.If) -> ast.AST:
            return ast.Pass() if "TYPE_CHECKING" in ast.unparse(node.test) else self.generic_visit(node)

    stripped = Strip().visit(tree)
    assert isinstance(stripped, ast.Module)
    return stripped


def test_every_module_belongs_to_a_known_layer() -> None:
    unknown = {layer(path) for path in modules()} - ARROWS.keys()
    assert not unknown, f"add {sorted(unknown)} to ARROWS, with what they may import"


def test_imports_follow_the_arrows() -> None:
    faults = []
    for path in modules():
        allowed = ARROWS[layer(path)] | {layer(path), "__version__"}
        faults += [
            f"{path.relative_to(ROOT)} imports {'.'.join(parts) or PACKAGE}"
            for parts in own_imports(path)
            if not parts or parts[0] not in allowed
        ]
    assert not faults, "\n".join(faults)


def test_arrows_have_no_cycle() -> None:
    """The table itself: each layer can be reached only downwards."""
    placed: set[str] = set()
    while len(placed) < len(ARROWS):
        ready = {name for name, below in ARROWS.items() if below <= placed} - placed
        assert ready, f"a cycle among {sorted(ARROWS.keys() - placed)}"
        placed |= ready


def test_families_do_not_import_each_other() -> None:
    names = {folder.name for folder in FAMILIES}
    faults = [
        f"{path.relative_to(ROOT)} imports {'.'.join(parts)}"
        for folder in FAMILIES
        for path in folder.rglob("*.py")
        for parts in own_imports(path)
        if parts[:1] == ("models",) and len(parts) > 1 and parts[1] in names - {folder.name}
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("folder", ["tokenizers", "hub", "cli"])
def test_light_layers_import_nothing_heavy_at_module_level(folder: str) -> None:
    paths = sorted((SOURCE / folder).rglob("*.py"))
    assert paths, f"src/{PACKAGE}/{folder} holds no module"
    faults = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in paths
        for name in imports(path, at_import(parse(path)))
        if name.split(".")[0] in HEAVY
    ]
    assert not faults, "\n".join(faults)


def test_only_known_packages_are_imported_at_module_level() -> None:
    """Reference libraries of the tests and benchmarks never become a dependency."""
    references = {"transformers", "sentence_transformers", "onnx", "onnxruntime", "sklearn", "scipy", "pytest"}
    faults = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for name in imports(path)
        if name.split(".")[0] in references
    ]
    assert not faults, "\n".join(faults)


def test_there_is_a_family() -> None:
    assert [folder.name for folder in FAMILIES], f"no folder with an __init__.py under src/{PACKAGE}/models"


@pytest.mark.parametrize("folder", FAMILIES, ids=lambda folder: folder.name)
def test_each_family_answers_the_same_seven_questions(folder: Path) -> None:
    missing = FAMILY_FILES - {path.stem for path in folder.glob("*.py")}
    assert not missing, f"{folder.relative_to(ROOT)} lacks {sorted(name + '.py' for name in missing)}"


@pytest.mark.parametrize("folder", FAMILIES, ids=lambda folder: folder.name)
def test_each_family_has_its_record_in_the_registry(folder: Path) -> None:
    assigned = {
        target.id
        for node in parse(folder / "__init__.py").body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    assert "FAMILY" in assigned, f"{folder.relative_to(ROOT)}/__init__.py defines no FAMILY"
    registry = SOURCE / "models" / "family.py"
    listed = {parts[1] for parts in own_imports(registry) if parts[:1] == ("models",) and len(parts) > 1}
    by_name = {node.value for node in ast.walk(parse(registry)) if isinstance(node, ast.Constant)}
    assert folder.name in listed | by_name, f"models/family.py does not list {folder.name} in FAMILIES"


@pytest.mark.parametrize(
    "name", ["modeling_bert", "modeling_utils", "tokenization_bert", "tokenization_utils", "file_utils"]
)
def test_published_module_exists(name: str) -> None:
    assert SOURCE / f"{name}.py" in FLAT


@pytest.mark.parametrize("path", FLAT, ids=lambda path: path.stem)
def test_published_modules_only_pass_names_on(path: Path) -> None:
    tree = parse(path)
    assert ast.get_docstring(tree), "no docstring"
    names: list[str] = []
    stated: list[str] = []
    for node in tree.body[1:]:
        if isinstance(node, ast.ImportFrom):
            names += [alias.asname or alias.name for alias in node.names]
        else:
            assert isinstance(node, ast.Assign), f"line {node.lineno}: only imports and __all__ belong here"
            assert ast.unparse(node.targets[0]) == "__all__", (
                f"line {node.lineno}: only imports and __all__ belong here"
            )
            stated += ast.literal_eval(node.value)
    assert sorted(stated) == sorted(names), "__all__ is not what is imported"


def test_each_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in sorted(SOURCE.rglob("*.py"))
        if len((ast.get_docstring(parse(path)) or "").split()) < 4
    ]
    assert not silent, f"no docstring that says something: {silent}"


def test_folders_of_tests_hide_no_installed_package() -> None:
    """`tests` is on the path: an `__init__.py` in tests/tokenizers would hide the library `tokenizers`."""
    libraries = {name.split(".")[0] for path in SOURCE.rglob("*.py") for name in imports(path)} - {PACKAGE}
    hidden = [path for path in (ROOT / "tests").glob("*/__init__.py") if path.parent.name in libraries]
    assert not hidden, f"remove {hidden}"


# The classic package, `pytorch_pretrained_bert`: adapters on the other one, which knows nothing of it.

CLASSIC = ROOT / "src" / "pytorch_pretrained_bert"
CLASSIC_MODULES = sorted(CLASSIC.rglob("*.py"))
#: What computes something of a model: products, normalisations, activations, losses. Activations are passed on by
#: name; slices, shapes, masks, sums of two losses and parts under other names are what adapters are for.
MATHEMATICS = frozenset(
    {
        *("matmul", "bmm", "mm", "addmm", "baddbmm", "einsum", "tensordot", "linear", "conv1d", "embedding"),
        *(
            "softmax",
            "log_softmax",
            "sigmoid",
            "logsigmoid",
            "gelu",
            "tanh",
            "erf",
            "exp",
            "log",
            "sqrt",
            "rsqrt",
            "pow",
        ),
        *("layer_norm", "scaled_dot_product_attention", "cross_entropy", "nll_loss", "mse_loss"),
        *("CrossEntropyLoss", "MSELoss", "NLLLoss"),
    }
)


#: What 0.6.2 has as a method of its own, which programs call.
MATHEMATICS_BY_NAME = {"modeling_transfo_xl_utilities": {"linear"}}  # ProjectedAdaptiveLogSoftmax._compute_logit


def called(tree: ast.Module) -> Iterator[str]:
    """Last part of the name of each function called that is not the other package's, and `@` for products."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    passed_on = {
        alias.asname or alias.name
        for node in names
        if (node.module or "").split(".")[0] == PACKAGE
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name.partition(".")[0] not in passed_on:
                yield name.rpartition(".")[2]
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield "@"


def test_the_classic_package_is_there() -> None:
    assert {"__init__", "__main__", "modeling", "tokenization", "optimization", "file_utils"} <= {
        path.stem for path in CLASSIC_MODULES
    }
    assert (CLASSIC / "py.typed").is_file()


def test_nothing_imports_the_classic_package() -> None:
    faults = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for name in imports(path)
        if name.split(".")[0] == CLASSIC.name
    ]
    assert not faults, "\n".join(faults)


def test_the_classic_package_stands_on_the_other_alone() -> None:
    """Whatever library it needs, it needs through `pytorch_transformers`."""
    allowed = {PACKAGE, "torch", "lazy_loader", "typing_extensions", "huggingface_hub", *sys.stdlib_module_names}
    faults = [
        f"{path.relative_to(ROOT)} imports {node_name}"
        for path in CLASSIC_MODULES
        for node in ast.walk(parse(path))
        for node_name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
        if node_name.split(".")[0] not in allowed
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("path", CLASSIC_MODULES, ids=lambda path: path.stem)
def test_classic_modules_say_what_they_are_for_and_hold_no_mathematics(path: Path) -> None:
    tree = parse(path)
    assert len((ast.get_docstring(tree) or "").split()) >= 4, "no docstring that says something"
    found = MATHEMATICS.union("@").intersection(called(tree)) - MATHEMATICS_BY_NAME.get(path.stem, set())
    assert not found, f"computes {sorted(found)}; that belongs into {PACKAGE}"
