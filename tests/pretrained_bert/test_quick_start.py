"""What the early README shows first for each family, with small weights of ours put under the published names.

The vocabularies are the real ones; only the sizes of the models are not.
"""

from pathlib import Path
from typing import Any

import pytest
import torch

from pytorch_pretrained_bert import (
    BertForMaskedLM,
    BertModel,
    BertTokenizer,
    GPT2LMHeadModel,
    GPT2Model,
    GPT2Tokenizer,
    OpenAIGPTLMHeadModel,
    OpenAIGPTModel,
    OpenAIGPTTokenizer,
    TransfoXLLMHeadModel,
    TransfoXLModel,
    TransfoXLTokenizer,
)
from shared_data import shared

from .downloads import download, download_bert, download_gpt2, download_openai_gpt, download_transfo_xl

WHO, WHAT = "Who was Jim Henson ?", "Jim Henson was a puppeteer"


def vocabulary(folder: Path, name: str) -> None:
    """A real vocabulary, as if it had been downloaded."""
    download(folder, name, shared("data", "vocab", name).read_bytes())


@pytest.fixture(autouse=True)
def no_gradients() -> Any:
    """The examples predict."""
    with torch.no_grad():
        yield


def test_bert(classic_folder: Path) -> None:
    vocabulary(classic_folder, "bert-base-uncased-vocab.txt")
    download_bert(classic_folder, vocab_size=30522, num_hidden_layers=12, type_vocab_size=2)
    tokenizer = BertTokenizer.from_pretrained("bert-base-uncased")
    tokens = tokenizer.tokenize(f"{WHO} {WHAT}")
    masked = 6
    tokens[masked] = "[MASK]"
    ids = tokenizer.convert_tokens_to_ids(tokens)
    assert tokenizer.convert_ids_to_tokens(ids) == [
        *("who", "was", "jim", "henson", "?"),
        *("jim", "[MASK]", "was", "a", "puppet", "##eer"),
    ]
    inputs, segments = torch.tensor([ids]), torch.tensor([[0] * 5 + [1] * 6])

    model = BertModel.from_pretrained("bert-base-uncased")
    model.eval()
    layers, pooled = model(inputs, segments)
    assert len(layers) == 12
    assert {tuple(layer.shape) for layer in layers} == {(1, 11, model.config.hidden_size)}
    assert pooled.shape == (1, model.config.hidden_size)

    head = BertForMaskedLM.from_pretrained("bert-base-uncased")
    head.eval()
    predictions = head(inputs, segments)
    assert predictions.shape == (1, 11, 30522)
    best = int(torch.argmax(predictions[0, masked]))
    assert tokenizer.convert_ids_to_tokens([best])[0] in tokenizer.vocab


def test_openai_gpt(classic_folder: Path) -> None:
    for end in ("vocab.json", "merges.txt"):
        vocabulary(classic_folder, f"openai-gpt-{end}")
    download_openai_gpt(classic_folder, vocab_size=40478)
    tokenizer = OpenAIGPTTokenizer.from_pretrained("openai-gpt")
    ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(f"{WHO} {WHAT}"))
    assert tokenizer.decode(ids) == "who was jim henson? jim henson was a puppeteer"
    inputs = torch.tensor([ids])

    model = OpenAIGPTModel.from_pretrained("openai-gpt")
    model.eval()
    states = model(inputs)
    assert states.shape == (1, len(ids), model.config.n_embd)

    head = OpenAIGPTLMHeadModel.from_pretrained("openai-gpt")
    head.eval()
    predictions = head(inputs)
    assert predictions.shape == (1, len(ids), 40478)
    best = int(torch.argmax(predictions[0, -1]))
    assert tokenizer.convert_ids_to_tokens([best])[0] in tokenizer.encoder


def test_gpt2(classic_folder: Path) -> None:
    for end in ("vocab.json", "merges.txt"):
        vocabulary(classic_folder, f"gpt2-{end}")
    download_gpt2(classic_folder, vocab_size=50257)
    tokenizer = GPT2Tokenizer.from_pretrained("gpt2")
    first, second = (torch.tensor([tokenizer.encode(text)]) for text in (WHO, WHAT))
    assert tokenizer.decode(second[0]) == WHAT

    model = GPT2Model.from_pretrained("gpt2")
    model.eval()
    _, past = model(first)
    states, _ = model(second, past=past)
    assert states.shape == (1, second.shape[1], model.config.n_embd)

    head = GPT2LMHeadModel.from_pretrained("gpt2")
    head.eval()
    _, past = head(first)
    predictions, _ = head(second, past=past)
    assert predictions.shape == (1, second.shape[1], 50257)
    whole, _ = head(torch.cat([first, second], dim=1))
    assert torch.allclose(predictions[0, -1], whole[0, -1], atol=1e-5)
    assert tokenizer.decode([int(torch.argmax(predictions[0, -1]))])


def test_transfo_xl(classic_folder: Path) -> None:
    words = TransfoXLTokenizer(special=["<eos>", "<unk>"])
    words.count_sents([f"{WHO} {WHAT} Ernie".split(), [f"word{n}" for n in range(50)]])
    words.build_vocab()
    file = Path(words.save_vocabulary(classic_folder.parent / "vocab.bin"))
    download(classic_folder, "transfo-xl-wt103-vocab.bin", file.read_bytes())
    download_transfo_xl(classic_folder, vocab_size=len(words))
    tokenizer = TransfoXLTokenizer.from_pretrained("transfo-xl-wt103")
    first, second = (torch.tensor([tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))]) for text in (WHO, WHAT))
    assert tokenizer.decode(first[0]) == WHO

    model = TransfoXLModel.from_pretrained("transfo-xl-wt103")
    model.eval()
    states, mems = model(first)
    states, mems = model(second, mems)
    assert states.shape == (1, second.shape[1], model.config.d_model)
    assert len(mems) > 1

    head = TransfoXLLMHeadModel.from_pretrained("transfo-xl-wt103")
    head.eval()
    _, mems = head(first)
    predictions, mems = head(second, mems=mems)
    assert predictions.shape == (1, second.shape[1], len(words))
    assert torch.allclose(predictions.exp().sum(-1), torch.ones(1, second.shape[1]), atol=1e-5)
    best = int(torch.argmax(predictions[0, -1]))
    assert tokenizer.convert_ids_to_tokens([best])[0] in tokenizer.sym2idx
