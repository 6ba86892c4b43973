"""The files around the code: what is shipped, documented and linked, and what must not be said."""

import re
import shutil
import subprocess
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest

import pytorch_transformers

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")])
#: Places of one machine. A lookbehind keeps web addresses and longer paths out.
MACHINE_PATH = re.compile(r"(?<![\w.:/])/(?:work|root|mnt|tmp/w)/[\w.]")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def repository_files() -> list[Path]:
    """Tracked and new files; in an unpacked source distribution, everything but caches."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, text=True, check=False)
        if listed.returncode == 0:
            return [ROOT / name for name in sorted(set(listed.stdout.split("\0")) - {""}) if (ROOT / name).is_file()]
    skipped = {".venv", "venv", ".git", "__pycache__", "build", "dist", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    return [path for path in sorted(ROOT.rglob("*")) if path.is_file() and not skipped & set(path.parts)]


def text_of(path: Path) -> str:
    """The file's text; nothing for one that is not text."""
    content = path.read_bytes()
    return "" if b"\0" in content[:8192] else content.decode("utf-8", errors="replace")


def test_no_file_names_a_place_of_one_machine() -> None:
    files = repository_files()
    assert ROOT / "pyproject.toml" in files
    faults = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in files
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert not faults, "\n".join(faults)


def needed() -> set[str]:
    """Normal names of what the package and its extras ask for."""
    return {normal(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in requires("pytorch-transformers") or []}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_each_dependency_has_its_reason() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    explained = {normal(name) for name in re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)}
    assert {"torch", "pytest"} <= needed()
    assert not needed() - explained, "docs/dependencies.md has no line for these"
    assert not explained - needed() - {"hatchling"}, "docs/dependencies.md explains what is not a dependency"


def test_each_dependency_is_pinned() -> None:
    text = (ROOT / "requirements" / "constraints.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    loose = [line for line in lines if not re.fullmatch(r'[\w.-]+==[\w.!+-]+( ; python_version >= "3\.\d+")?', line)]
    assert not loose
    assert not needed() - {normal(line.split("==")[0]) for line in lines}, "requirements/constraints.txt lacks these"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_point_at_files(document: Path) -> None:
    targets = [link for link in LINK.findall(text_of(document)) if "://" not in link and not link.startswith("#")]
    broken = [link for link in targets if not (document.parent / link.partition("#")[0]).exists()]
    assert not broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_headings_point_at_headings(document: Path) -> None:
    broken = []
    for link in LINK.findall(text_of(document)):
        target, _, heading = link.partition("#")
        if heading and "://" not in link:
            titles = re.findall(r"^#+ (.+)$", text_of(document.parent / target if target else document), re.MULTILINE)
            if heading not in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}:
                broken.append(link)
    assert not broken


@pytest.mark.parametrize(
    "name",
    [
        *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE", "Makefile", ".ci/run"),
        *(".pre-commit-config.yaml", "docs/bert.md", "docs/migration.md", "docs/public_api.md"),
    ],
)
def test_expected_file_is_there_and_not_empty(name: str) -> None:
    assert (ROOT / name).stat().st_size > 0


def test_readme_names_the_targets_that_make_has() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for document in DOCUMENTS:
        named = set(re.findall(r"`make ([a-z]+)", text_of(document)))
        assert named <= targets, f"{document.name} names {sorted(named - targets)}"


def test_typed_package_is_installed_with_its_licence() -> None:
    package = Path(pytorch_transformers.__file__).parent
    assert (package / "py.typed").exists()
    assert (package / "__init__.pyi").exists()
    metadata = distribution("pytorch-transformers").metadata
    assert set(metadata.get_all("License-File") or []) == {"LICENSE", "NOTICE"}
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Version"] == pytorch_transformers.__version__


def test_changelog_names_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"[{pytorch_transformers.__version__.partition('.dev')[0]}]" in text
