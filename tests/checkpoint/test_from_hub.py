"""From a repository to tensors: what a load asks the server for, and what it says when something is missing."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from hub.conftest import cache, hub_server
from hub.server import HubServer
from pytorch_transformers.checkpoint.read import find_weights, read_weights
from pytorch_transformers.hub import Location, locate

__all__ = ["cache", "hub_server"]

REPO = "someone/model"


def place(cache: Path) -> Location:
    return locate(REPO, shortcuts={}, cache_dir=cache)


def add_shards(server: HubServer, *names: str) -> None:
    weight_map = {}
    for number, name in enumerate(names):
        weight_map[f"w{number}"] = name
        server.add(REPO, name, save({f"w{number}": torch.full((3,), float(number))}), linked=True)
    server.add(REPO, "model.safetensors.index.json", json.dumps({"weight_map": weight_map}).encode())


def test_all_shards_are_fetched(hub_server: HubServer, cache: Path) -> None:
    add_shards(hub_server, "model-1.safetensors", "model-2.safetensors")
    state = read_weights(find_weights(place(cache)))
    assert {name: tensor[0].item() for name, tensor in state.items()} == {"w0": 0.0, "w1": 1.0}


def test_only_the_preferred_file_is_fetched(hub_server: HubServer, cache: Path) -> None:
    hub_server.add(REPO, "model.safetensors", save({"w": torch.ones(2)}))
    hub_server.add(REPO, "pytorch_model.bin", b"not asked for")
    assert list(read_weights(find_weights(place(cache)))) == ["w"]
    assert len(hub_server.gets()) == 1


def test_a_missing_shard_is_named(hub_server: HubServer, cache: Path) -> None:
    hub_server.add(REPO, "model.safetensors.index.json", b'{"weight_map": {"w": "model-7.safetensors"}}')
    with pytest.raises(OSError, match=r"lists model-7.safetensors, which the repository .*someone/model"):
        find_weights(place(cache))


def test_weights_of_another_framework_are_not_fetched(hub_server: HubServer, cache: Path) -> None:
    hub_server.add(REPO, "tf_model.h5", b"large")
    with pytest.raises(OSError, match=r"No weights in the repository .*someone/model.*pytorch_model.bin"):
        find_weights(place(cache))
    assert hub_server.gets() == []


def test_b6_weights_that_are_not_cached_name_the_reason(hub_server: HubServer, cache: Path) -> None:
    hub_server.add(REPO, "config.json", b"{}")
    hub_server.add(REPO, "model.safetensors", save({"w": torch.ones(2)}))
    place(cache).file("config.json")
    hub_server.stop()
    with pytest.raises(OSError, match="only the cache was looked at, because the server cannot be reached") as caught:
        find_weights(place(cache))
    assert str(cache) in str(caught.value)
    assert f"{hub_server.url}/{REPO}" in str(caught.value)
