"""One model, loaded from every kind of place a user may name; each must give the same outputs."""

import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from hub.conftest import cache, hub_server
from hub.server import HubServer
from pytorch_transformers import BertForPreTraining, BertModel, BertTokenizer
from saved_bert import save_tiny_bert

__all__ = ["cache", "hub_server"]

IDS = torch.tensor([[2, 9, 10, 3], [2, 11, 3, 5]])
Place = Callable[[BertForPreTraining, Path, HubServer], str]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return save_tiny_bert(tmp_path / "saved")


def logits(model: BertForPreTraining) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(IDS).prediction_logits
    return found


def folder(model: BertForPreTraining, saved: Path, server: HubServer) -> str:
    return str(saved)


def weights_file(model: BertForPreTraining, saved: Path, server: HubServer) -> str:
    return str(saved / "model.safetensors")


def bin_folder(model: BertForPreTraining, saved: Path, server: HubServer) -> str:
    model.save_pretrained(saved, safe_serialization=False)
    assert not (saved / "model.safetensors").exists()
    return str(saved)


def shards(model: BertForPreTraining, saved: Path, server: HubServer) -> str:
    paths = model.save_pretrained(saved, max_shard_size="10KB")
    assert len(paths) > 3
    return str(saved)


def classic_archive(model: BertForPreTraining, saved: Path, server: HubServer) -> str:
    """As 0.6.x had them: bert_config.json and pytorch_model.bin, compressed."""
    bin_folder(model, saved, server)
    archive = saved.parent / "bert-tiny.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(saved / "config.json", "./bert_config.json")
        tar.add(saved / "pytorch_model.bin", "./pytorch_model.bin")
        tar.add(saved / "vocab.txt", "./vocab.txt")
    return str(archive)


def archive_address(model: BertForPreTraining, saved: Path, server: HubServer) -> str:
    archive = Path(classic_archive(model, saved, server))
    return server.add_plain("models/bert-tiny.tar.gz", archive.read_bytes())


def repository(model: BertForPreTraining, saved: Path, server: HubServer) -> str:
    for path in saved.iterdir():
        server.add("someone/tiny", path.name, path.read_bytes(), linked=path.suffix == ".safetensors")
    return "someone/tiny"


def sharded_repository(model: BertForPreTraining, saved: Path, server: HubServer) -> str:
    shards(model, saved, server)
    return repository(model, saved, server)


def shortcut(model: BertForPreTraining, saved: Path, server: HubServer) -> str:
    for path in saved.iterdir():
        server.add("google-bert/bert-base-cased", path.name, path.read_bytes())
    return "bert-base-cased"


@pytest.mark.parametrize(
    "place",
    [
        folder,
        weights_file,
        bin_folder,
        shards,
        classic_archive,
        archive_address,
        repository,
        sharded_repository,
        shortcut,
    ],
)
def test_every_place_gives_the_same_model(place: Place, saved: Path, hub_server: HubServer, cache: Path) -> None:
    original = BertForPreTraining.from_pretrained(saved)
    name = place(original, saved, hub_server)
    model, info = BertForPreTraining.from_pretrained(name, cache_dir=cache, output_loading_info=True)
    assert not any(info.values())
    assert not model.training
    assert torch.equal(logits(model), logits(original))
    tokenizer = BertTokenizer.from_pretrained(name, cache_dir=cache, do_lower_case=True)
    assert tokenizer.tokenize("Cook onions") == ["cook", "onion", "##s"]


def test_b6_loads_again_without_the_server(saved: Path, hub_server: HubServer, cache: Path) -> None:
    name = repository(BertForPreTraining.from_pretrained(saved), saved, hub_server)
    first = BertForPreTraining.from_pretrained(name, cache_dir=cache)
    hub_server.stop()
    again = BertForPreTraining.from_pretrained(name, cache_dir=cache, local_files_only=True)
    assert torch.equal(logits(first), logits(again))


def test_a_full_disk_leaves_the_earlier_save(saved: Path) -> None:
    """The second save is refused by the system in the middle of the weights; the first one still loads."""
    before = logits(BertForPreTraining.from_pretrained(saved))
    files = {path.name: path.read_bytes() for path in saved.iterdir()}
    program = (
        "import resource, signal, sys\n"
        "from pytorch_transformers import BertForPreTraining\n"
        "model = BertForPreTraining.from_pretrained(sys.argv[1])\n"
        "model.bert.pooler.dense.weight.data.fill_(1.0)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try:\n"
        "    model.save_pretrained(sys.argv[1])\n"
        "except OSError as error:\n"
        "    sys.exit(3 if 'model.safetensors' in str(error) else 4)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(saved)], check=False, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == files
    assert torch.equal(logits(BertForPreTraining.from_pretrained(saved)), before)


def test_from_tf_says_what_was_looked_for(saved: Path) -> None:
    """What is read from TensorFlow checkpoints, where there are some, is in `test_original.py`."""
    with pytest.raises(OSError, match=r"No TensorFlow checkpoint in .*looked for PREFIX\.index"):
        BertModel.from_pretrained(saved, from_tf=True)
