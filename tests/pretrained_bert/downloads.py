"""A cache as 0.6.2 fills it: a file for each address, and beside it a record of where it came from."""

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import torch

from models.bert.tiny import tiny_config as tiny_bert
from models.gpt2.tiny import tiny_config as tiny_gpt2
from models.openai_gpt.tiny import tiny_config as tiny_openai_gpt
from models.transfo_xl.tiny import tiny_config as tiny_transfo_xl
from pytorch_transformers import BertForPreTraining, GPT2Model, OpenAIGPTModel, TransfoXLLMHeadModel

#: Where 0.6.2 looked.
ADDRESS = "https://s3.amazonaws.com/models.huggingface.co/bert/"


def download(folder: Path, name: str, data: bytes, *, etag: str | None = '"1"', age: int = 0) -> Path:
    """Put a file there.

    Args:
        folder: The cache.
        name: The end of its address, or a whole one.
        data: What is in it.
        etag: What the server called it.
        age: Seconds ago.
    """
    url = name if "://" in name else ADDRESS + name
    stored = hashlib.sha256(url.encode()).hexdigest()
    if etag:
        stored += "." + hashlib.sha256(etag.encode()).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / stored
    path.write_bytes(data)
    os.utime(path, ns=(10**18 - age * 10**9,) * 2)
    path.with_name(stored + ".json").write_text(json.dumps({"url": url, "etag": etag}), encoding="utf-8")
    return path


def saved(content: Any) -> bytes:
    """What `torch.save` writes."""
    stream = io.BytesIO()
    torch.save(content, stream)
    return stream.getvalue()


def config_of(model: Any) -> bytes:
    """The configuration of a model as a file."""
    return json.dumps(model.config.to_dict()).encode()


def archive(files: dict[str, bytes]) -> bytes:
    """A `.tar.gz` with a folder at its top, as `./NAME`."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def random_weights(model_class: type[Any], config: Any, seed: int = 0) -> Any:
    """A model whose values are random and whose other state is as it was built."""
    generator = torch.Generator().manual_seed(seed)
    model = model_class(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).mul(0.2))
    return model


def download_bert(folder: Path, name: str = "bert-base-uncased", **config: Any) -> Any:
    """The archive of a tiny BERT with both heads of pre-training; returns the model."""
    model = random_weights(BertForPreTraining, tiny_bert(**config))
    files = {"bert_config.json": config_of(model), "pytorch_model.bin": saved(model.state_dict())}
    download(folder, f"{name}.tar.gz", archive(files))
    return model


def _beside(folder: Path, name: str, model: Any) -> Any:
    download(folder, f"{name}-pytorch_model.bin", saved(model.state_dict()))
    download(folder, f"{name}-config.json", config_of(model))
    return model


def download_openai_gpt(folder: Path, **config: Any) -> Any:
    """Weights and configuration of a tiny OpenAI GPT; returns the model."""
    return _beside(folder, "openai-gpt", random_weights(OpenAIGPTModel, tiny_openai_gpt(**config)))


def download_gpt2(folder: Path, **config: Any) -> Any:
    """Weights and configuration of a tiny GPT-2; returns the model."""
    return _beside(folder, "gpt2", random_weights(GPT2Model, tiny_gpt2(n_inner=None, **config)))


def download_transfo_xl(folder: Path, **config: Any) -> Any:
    """Weights and configuration of a tiny Transformer-XL; returns the model."""
    return _beside(folder, "transfo-xl-wt103", random_weights(TransfoXLLMHeadModel, tiny_transfo_xl(**config)))
