"""`download` from a hub on this machine: then everything works without one."""

from pathlib import Path

import pytest

from generation.saved_transfo_xl import (
    save_published_corpus,
    save_published_transfo_xl,
    save_tiny_corpus,
    save_tiny_transfo_xl,
)
from hub.conftest import cache, hub_server  # noqa: F401  # fixtures
from hub.server import HubServer
from pytorch_transformers import BertForPreTraining, BertModel, BertTokenizer, FeatureExtractor
from pytorch_transformers.models import transfo_xl
from pytorch_transformers.models.transfo_xl import corpus as corpus_module

from .conftest import Run

REPOSITORY = "somebody/tiny-bert"
pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def server(hub_server: HubServer, tiny: Path) -> HubServer:  # noqa: F811
    """A hub with the tiny model, and files of it that nobody asked for."""
    for path in tiny.iterdir():
        hub_server.add(REPOSITORY, path.name, path.read_bytes(), linked=path.suffix == ".safetensors")
    for name in ("README.md", "tf_model.h5", "pytorch_model.bin"):
        hub_server.add(REPOSITORY, name, b"not needed")
    return hub_server


def offline(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.stop()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_into_a_folder(
    run: Run, server: HubServer, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new" / "folder"
    status, printed, _ = run("download", REPOSITORY, "--output_dir", folder)
    assert status == 0
    wanted = {"config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"}
    assert {path.name for path in folder.iterdir()} == wanted
    assert {Path(line) for line in printed.splitlines()} == {folder / name for name in wanted}
    offline(server, monkeypatch)
    ours = FeatureExtractor.from_pretrained(folder).encode(["cook onions"])
    assert ours.tolist() == FeatureExtractor.from_pretrained(tiny).encode(["cook onions"]).tolist()


def test_into_the_cache(run: Run, server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "kept"
    status, printed, _ = run("download", REPOSITORY, "--cache_dir", place)
    assert status == 0
    assert all(Path(line).is_relative_to(place) for line in printed.splitlines())
    offline(server, monkeypatch)
    BertModel.from_pretrained(REPOSITORY, cache_dir=place)
    BertTokenizer.from_pretrained(REPOSITORY, cache_dir=place)
    text = tmp_path / "in.txt"
    text.write_text("cook onions\n", encoding="utf-8")
    flags = ("--model", REPOSITORY, "--cache_dir", place, "--local_files_only")
    assert run("features", "--input_file", text, *flags)[0] == 0


def test_sharded_repository(
    run: Run,
    hub_server: HubServer,  # noqa: F811
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = BertForPreTraining.from_pretrained(tiny)
    model.save_pretrained(tmp_path / "shards", max_shard_size=12_000)
    (tmp_path / "shards" / "vocab.txt").write_bytes((tiny / "vocab.txt").read_bytes())
    for path in (tmp_path / "shards").iterdir():
        hub_server.add(REPOSITORY, path.name, path.read_bytes(), linked=path.suffix == ".safetensors")
    folder = tmp_path / "folder"
    status, printed, _ = run("download", REPOSITORY, "--output_dir", folder)
    assert status == 0
    assert {path.name for path in folder.iterdir()} == {path.name for path in (tmp_path / "shards").iterdir()}
    assert len(printed.splitlines()) == len(list(folder.iterdir())) > 4
    offline(hub_server, monkeypatch)
    state = BertForPreTraining.from_pretrained(folder).state_dict()
    assert all((state[name] == value).all() for name, value in model.state_dict().items())


def test_revision(run: Run, hub_server: HubServer, tiny: Path, tmp_path: Path) -> None:  # noqa: F811
    for path in tiny.iterdir():
        commit = hub_server.add(REPOSITORY, path.name, path.read_bytes())
    hub_server.add(REPOSITORY, "vocab.txt", b"of a later commit")
    folder = tmp_path / "folder"
    assert run("download", REPOSITORY, "--revision", commit, "--output_dir", folder)[0] == 0
    assert (folder / "vocab.txt").read_bytes() == (tiny / "vocab.txt").read_bytes()


XL = "somebody/tiny-xl"


@pytest.mark.parametrize("published", [False, True], ids=["ours", "published"])
def test_corpus(
    run: Run,
    hub_server: HubServer,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    published: bool,
) -> None:
    """With the corpus, `evaluate --corpus` needs no network; without, it is not fetched."""
    source = tmp_path / "source"
    source.mkdir()
    if published:
        save_published_corpus(save_published_transfo_xl(source))
    else:
        save_tiny_corpus(save_tiny_transfo_xl(source))
    for path in source.iterdir():
        hub_server.add(XL, path.name, path.read_bytes())
    corpus = {"corpus.bin"} if published else {"corpus.json", "corpus.safetensors"}
    assert run("download", XL, "--output_dir", tmp_path / "without")[0] == 0
    assert {path.name for path in source.iterdir()} - {path.name for path in (tmp_path / "without").iterdir()} == corpus
    status, printed, errors = run("download", XL, "--corpus", "--output_dir", tmp_path / "with")
    assert (status, errors) == (0, "")
    names = {path.name for path in source.iterdir()}
    assert {path.name for path in (tmp_path / "with").iterdir()} == names
    assert {Path(line).name for line in printed.splitlines()} == names
    short = ("--tgt_len", 8, "--mem_len", 12)
    wanted = run("evaluate", "--model", source, "--corpus", source, *short)
    assert wanted[0] == 0
    offline(hub_server, monkeypatch)
    for place in (XL, tmp_path / "with"):
        assert run("evaluate", "--model", place, "--corpus", place, *short, "--local_files_only") == wanted
    assert "no corpus in" in run("evaluate", "--model", XL, "--corpus", tmp_path / "without", *short)[2]


def test_corpus_that_is_not_there(run: Run, server: HubServer, tmp_path: Path) -> None:
    """It is said before the weights are fetched."""
    status, printed, errors = run("download", REPOSITORY, "--corpus", "--output_dir", tmp_path / "folder")
    assert (status, printed) == (1, "")
    assert "--corpus: there are no corpora of bert" in errors
    folder = save_tiny_transfo_xl(tmp_path / "xl")
    for path in folder.iterdir():
        server.add(XL, path.name, path.read_bytes())
    status, printed, errors = run("download", XL, "--corpus")
    assert (status, printed) == (1, "")
    assert "looked for corpus.json, corpus.bin, cache.pkl; leave --corpus out" in errors
    server.add(XL, "corpus.json", b"{}")
    status, printed, errors = run("download", XL, "--corpus")
    assert (status, printed) == (1, "")
    assert "has corpus.json, but no corpus.safetensors" in errors
    assert not any("safetensors" in request.path for request in server.requests if "model" in request.path)


def test_files_of_a_corpus_are_those_that_are_read() -> None:
    assert transfo_xl.FAMILY.corpus_files == (
        (corpus_module.DESCRIPTION_NAME, corpus_module.IDS_NAME),
        (corpus_module.CORPUS_NAME,),
        (corpus_module.ORIGINAL_CACHE_NAME,),
    )


@pytest.mark.parametrize("name", ["somebody/else", "./nowhere", "somebody/tiny-bert --revision gone"])
def test_what_is_not_there(run: Run, server: HubServer, tmp_path: Path, name: str) -> None:
    status, printed, errors = run("download", *name.split(), "--output_dir", tmp_path / "folder")
    assert (status, printed) == (1, "")
    assert errors.startswith("pytorch_transformers download: ")
    assert not (tmp_path / "folder").exists()


def test_copying_a_folder_onto_itself_changes_nothing(run: Run, tiny: Path) -> None:
    before = {path.name: path.read_bytes() for path in tiny.iterdir()}
    assert run("download", tiny, "--output_dir", tiny)[0] == 0
    assert {path.name: path.read_bytes() for path in tiny.iterdir()} == before
