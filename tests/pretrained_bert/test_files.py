"""Files: the cache of 0.6.2, from which all families load without a network; addresses; what is not supported."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import pytorch_pretrained_bert as classic
from hub.conftest import cache, hub_server  # noqa: F401  # fixtures
from hub.server import HubServer
from hub.test_repository import forbid_sockets
from pytorch_pretrained_bert import file_utils
from pytorch_pretrained_bert.archives import BERT_MODELS, GPT2_MODELS
from pytorch_pretrained_bert.classic_cache import classic_file, classic_place

from .downloads import (
    ADDRESS,
    archive,
    download,
    download_bert,
    download_gpt2,
    download_openai_gpt,
    download_transfo_xl,
    saved,
)

LETTERS = [*"abcdefgh", *(f"{letter}</w>" for letter in "abcdefgh"), "ab", "ab</w>"]


def same_weights(ours: Any, theirs: Any) -> None:
    """The parameters that both have are equal, and they are not few."""
    own, other = dict(ours.named_parameters()), dict(theirs.named_parameters())
    both = own.keys() & other.keys()
    assert len(both) > 10
    for name in both:
        assert torch.equal(own[name], other[name]), name


# Models.


@pytest.mark.parametrize("given", [True, False], ids=["cache_dir", "the folder of 0.6.2"])
def test_bert_loads_from_its_archive(
    classic_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: bool,
    cache: Path,  # noqa: F811
) -> None:
    forbid_sockets(monkeypatch)
    folder = tmp_path / "mine" if given else classic_folder
    model = download_bert(folder)
    options = {"cache_dir": str(folder)} if given else {}
    same_weights(classic.BertForPreTraining.from_pretrained("bert-base-uncased", **options), model)
    loaded = classic.BertForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=7, **options)
    assert loaded.classifier.weight.shape[0] == 7
    same_weights(loaded.bert, model.bert)


@pytest.mark.parametrize(
    ("fill", "name", "model_class"),
    [
        (download_openai_gpt, "openai-gpt", "OpenAIGPTModel"),
        (download_gpt2, "gpt2", "GPT2Model"),
        (download_transfo_xl, "transfo-xl-wt103", "TransfoXLLMHeadModel"),
    ],
)
def test_the_other_families_load_from_two_files(
    classic_folder: Path, monkeypatch: pytest.MonkeyPatch, fill: Any, name: str, model_class: str
) -> None:
    forbid_sockets(monkeypatch)
    model = fill(classic_folder)
    same_weights(getattr(classic, model_class).from_pretrained(name), model)


def test_a_folder_that_has_no_copy_is_followed_by_that_of_0_6_2(
    classic_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cache: Path,  # noqa: F811
) -> None:
    """Published scripts give each process a folder of its own, with nothing in it, inside that of 0.6.2."""
    forbid_sockets(monkeypatch)
    bert, gpt2 = download_bert(classic_folder), download_gpt2(classic_folder)
    download(classic_folder, "bert-base-uncased-vocab.txt", b"[UNK]\na\n")
    vocabulary = json.dumps({token: number for number, token in enumerate(LETTERS)}).encode()
    download(classic_folder, "gpt2-vocab.json", vocabulary)
    download(classic_folder, "gpt2-merges.txt", b"#version: 0.2\na b\n")
    own = classic_folder / "distributed_-1"
    same_weights(classic.BertForPreTraining.from_pretrained("bert-base-uncased", cache_dir=str(own)), bert)
    same_weights(classic.GPT2Model.from_pretrained("gpt2", cache_dir=str(own)), gpt2)
    assert classic.BertTokenizer.from_pretrained("bert-base-uncased", cache_dir=own).tokenize("A") == ["a"]
    assert classic.GPT2Tokenizer.from_pretrained("gpt2", cache_dir=own).tokenize("ab") == ["ab"]
    assert not own.exists()  # nothing is copied
    # What the folder has comes first.
    download(own, "bert-base-uncased-vocab.txt", b"[UNK]\nb\n", age=1000)
    download(own, "gpt2-config.json", b"{}", age=1000)
    assert classic.BertTokenizer.from_pretrained("bert-base-uncased", cache_dir=own).tokenize("a b") == ["[UNK]", "b"]
    assert Path(classic_place("gpt2", GPT2_MODELS, {"cache_dir": own}), "config.json").read_bytes() == b"{}"


def test_the_newest_whole_file_is_taken(classic_folder: Path) -> None:
    old = download(classic_folder, "gpt2-vocab.json", b"old", etag='"1"', age=100)
    new = download(classic_folder, "gpt2-vocab.json", b"new", etag='"2"', age=10)
    url = ADDRESS + "gpt2-vocab.json"
    assert classic_file(url) == new
    new.with_name(new.name + ".json").unlink()  # 0.6.2 was stopped before it was done
    assert classic_file(url) == old
    old.with_name(old.name + ".json").write_text("{", encoding="utf-8")
    assert classic_file(url) is None
    untagged = download(classic_folder, "gpt2-vocab.json", b"no tag", etag=None, age=200)
    assert classic_file(url) == untagged
    assert classic_file(url + "x") is None


def test_a_name_of_the_first_releases(classic_folder: Path, cache: Path) -> None:  # noqa: F811
    assert classic_place("bert-base-multilingual", BERT_MODELS, {}) == "bert-base-multilingual-uncased"
    download_bert(classic_folder, "bert-base-multilingual-uncased", hidden_size=16, num_attention_heads=2)
    assert classic.BertModel.from_pretrained("bert-base-multilingual").config.hidden_size == 16
    download_bert(classic_folder, "bert-base-multilingual", hidden_size=24, num_attention_heads=2)
    assert classic.BertModel.from_pretrained("bert-base-multilingual").config.hidden_size == 24


def test_without_the_cache_a_name_is_the_hub_s(classic_folder: Path) -> None:
    assert not classic_folder.exists()
    assert classic_place("bert-base-cased", BERT_MODELS, {}) == "bert-base-cased"
    assert classic_place("some/where", BERT_MODELS, {"cache_dir": None}) == "some/where"
    assert not classic_folder.exists()


def test_weights_without_their_configuration_are_not_enough(classic_folder: Path) -> None:
    download(classic_folder, "gpt2-pytorch_model.bin", b"weights")
    assert classic_place("gpt2", {"gpt2": ADDRESS + "gpt2-pytorch_model.bin"}, {}) == "gpt2"


def test_a_damaged_archive_is_named(classic_folder: Path, cache: Path) -> None:  # noqa: F811
    path = download(classic_folder, "bert-base-uncased.tar.gz", archive({"bert_config.json": b"{}"})[:40])
    with pytest.raises(OSError, match=path.name):
        classic.BertModel.from_pretrained("bert-base-uncased")


@pytest.mark.parametrize("named", [True, False])
def test_the_folder_of_0_6_2(named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTORCH_PRETRAINED_BERT_CACHE", str(tmp_path / "named") if named else "")
    code = "from pytorch_pretrained_bert import PYTORCH_PRETRAINED_BERT_CACHE as folder; print(folder)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == str(tmp_path / ("named" if named else ".pytorch_pretrained_bert"))


# Tokenizers.


def test_tokenizers_load_from_the_cache(classic_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_sockets(monkeypatch)
    download(classic_folder, "bert-base-cased-vocab.txt", b"[UNK]\nHello\nhello\n##s\n")
    bert = classic.BertTokenizer.from_pretrained("bert-base-cased", do_lower_case=False)
    assert (bert.tokenize("Hellos x"), bert.max_len) == (["Hello", "##s", "[UNK]"], 512)
    vocabulary = json.dumps({token: number for number, token in enumerate(LETTERS)}).encode()
    for name in ("openai-gpt", "gpt2"):
        download(classic_folder, f"{name}-vocab.json", vocabulary)
        download(classic_folder, f"{name}-merges.txt", b"#version: 0.2\na b\na b</w>\n")
    gpt = classic.OpenAIGPTTokenizer.from_pretrained("openai-gpt", special_tokens=["_s_"])
    assert (gpt.tokenize("AB abc"), gpt.max_len, len(gpt)) == (["ab</w>", "ab", "c</w>"], 512, len(LETTERS) + 1)
    gpt2 = classic.GPT2Tokenizer.from_pretrained("gpt2", max_len=9)
    assert (gpt2.tokenize("abc"), gpt2.max_len) == (["ab", "c"], 9)
    words = classic.TransfoXLTokenizer(special=["<eos>", "<unk>"])
    words.count_sents([["b", "a", "b"]])
    words.build_vocab()
    saved_to = Path(words.save_vocabulary(classic_folder / "words.bin"))
    download(classic_folder, "transfo-xl-wt103-vocab.bin", saved_to.read_bytes())
    content = {"dataset": "wt103", "train": [2, 3], "valid": None, "test": None}
    download(classic_folder, "transfo-xl-wt103-corpus.bin", saved({**content, "train": torch.tensor([2, 3])}))
    loaded = classic.TransfoXLTokenizer.from_pretrained("transfo-xl-wt103")
    assert loaded.idx2sym == ["<eos>", "<unk>", "b", "a"]
    corpus = classic.TransfoXLCorpus.from_pretrained("transfo-xl-wt103")
    assert isinstance(corpus, classic.TransfoXLCorpus)
    assert isinstance(corpus.vocab, classic.TransfoXLTokenizer)
    assert corpus.vocab.idx2sym == loaded.idx2sym
    assert isinstance(corpus.train, torch.Tensor)
    assert corpus.train.tolist() == [2, 3]


# The functions.


def test_a_download_lies_where_0_6_2_puts_it(
    hub_server: HubServer,  # noqa: F811
    classic_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = b"a\nb\n"
    url = hub_server.add_plain("vocab.txt", content)
    etag = f'"{hashlib.sha256(content).hexdigest()}"'
    path = Path(file_utils.cached_path(url))
    assert path == classic_folder / file_utils.url_to_filename(url, etag)
    assert path.read_bytes() == content
    assert file_utils.filename_to_url(path.name) == (url, etag)
    assert file_utils.cached_path(url) == str(path)
    assert len(hub_server.gets()) == 1  # the second time only the version was asked for
    hub_server.add_plain("vocab.txt", b"newer")
    newer = Path(file_utils.cached_path(url))
    assert newer != path
    assert newer.read_bytes() == b"newer"
    hub_server.stop()
    monkeypatch.setenv("PYTORCH_TRANSFORMERS_OFFLINE", "1")
    assert file_utils.get_from_cache(url) in (str(path), str(newer))


def test_a_dead_address_is_its_cached_file(hub_server: HubServer, classic_folder: Path, tmp_path: Path) -> None:  # noqa: F811
    url = f"{hub_server.url}/files/gone.bin"
    with pytest.raises(OSError, match="404"):
        file_utils.cached_path(url)
    assert not list(classic_folder.glob("*"))
    kept = download(tmp_path / "mine", url, b"kept")
    assert file_utils.cached_path(url, cache_dir=tmp_path / "mine") == str(kept)


def test_http_get_writes_to_an_open_file(hub_server: HubServer, tmp_path: Path) -> None:  # noqa: F811
    url = hub_server.add_plain("a.bin", bytes(range(256)) * 50)
    with (tmp_path / "a").open("wb") as stream:
        file_utils.http_get(url, stream)
    assert (tmp_path / "a").read_bytes() == bytes(range(256)) * 50


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("x", encoding="utf-8")
    assert file_utils.cached_path(tmp_path / "vocab.txt") == str(tmp_path / "vocab.txt")
    with pytest.raises(FileNotFoundError, match=r"nothing\.txt"):
        file_utils.cached_path(str(tmp_path / "nothing.txt"))
    with pytest.raises(ValueError, match="'ftp'"):
        file_utils.cached_path("ftp://somewhere/a")
    with pytest.raises(OSError, match="nothing: no such file"):
        file_utils.filename_to_url("nothing", cache_dir=tmp_path)
    with pytest.raises(OSError, match=r"vocab\.txt\.json"):
        file_utils.filename_to_url("vocab.txt", cache_dir=tmp_path)


def test_s3_is_refused_with_a_way_out(classic_folder: Path) -> None:
    assert file_utils.split_s3_path("s3://bucket/a/b.txt") == ("bucket", "a/b.txt")
    with pytest.raises(ValueError, match="s3://BUCKET/PATH"):
        file_utils.split_s3_path("s3://bucket")
    for fetch in (file_utils.cached_path, file_utils.s3_etag, lambda url: file_utils.s3_get(url, None)):
        with pytest.raises(OSError, match=r"https://bucket\.s3\.amazonaws\.com/a/b\.txt"):
            fetch("s3://bucket/a/b.txt")
    kept = download(classic_folder, "s3://bucket/a/b.txt", b"kept", etag="1")
    assert file_utils.cached_path("s3://bucket/a/b.txt") == str(kept)


def test_small_functions(tmp_path: Path) -> None:
    assert file_utils.url_to_filename("http://a/b") == hashlib.sha256(b"http://a/b").hexdigest()
    assert file_utils.get_file_extension("a/b.TXT") == ".txt"
    assert file_utils.get_file_extension("a/b.TXT", dot=False, lower=False) == "TXT"
    (tmp_path / "set").write_text("a\nb \na\n", encoding="utf-8")
    assert file_utils.read_set_from_file(tmp_path / "set") == {"a", "b"}
    assert (file_utils.CONFIG_NAME, file_utils.WEIGHTS_NAME) == ("config.json", "pytorch_model.bin")
