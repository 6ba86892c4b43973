"""`assets/baselines.py`: n-grams against nltk's own and by hand, sums of probabilities, and both ways to run it."""

import importlib.util
import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pytorch_transformers.data.pretraining import PretrainingDataset, TokenStream
from training.corpora import Corpora, entropy

lm = pytest.importorskip("nltk.lm", reason="needs nltk, whose n-gram models the baselines are made with")

PROGRAM = Path(__file__).parents[2] / "assets" / "baselines.py"
WORDS = "abcdefghij"
#: With two that no text has.
VOCABULARY = [*WORDS, "x", "y"]
ORDER = 5


def load_program() -> ModuleType:
    """`assets/baselines.py`, which is no module of the package."""
    spec = importlib.util.spec_from_file_location("baselines", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BASELINES = load_program()


def make_text(size: int, seed: int = 0) -> list[str]:
    """Words of which each is followed by few others, the first ones again at the end.

    So whatever begins the text also follows something: elsewhere nltk's own probabilities don't sum to 1.
    """
    draw = random.Random(seed)
    text = ["a"]
    for _ in range(size):
        text.append(WORDS[(WORDS.index(text[-1]) + draw.choice((1, 1, 1, 2, 3, 7))) % len(WORDS)])
    return [*text, *text[: ORDER + 1]]


def contexts_of(text: Sequence[str], seed: int = 1) -> list[tuple[str, ...]]:
    """Of all lengths up to two more than count, met in the text and not; also those that begin and end it."""
    draw = random.Random(seed)
    met = [tuple(text[at - length : at]) for length in range(ORDER + 2) for at in draw.sample(range(8, len(text)), 4)]
    new = [tuple(draw.choices(VOCABULARY, k=length)) for length in range(1, ORDER + 2) for _ in range(2)]
    return [*met, *new, tuple(text[: ORDER - 1]), tuple(text[1 - ORDER :])]


def model_of(text: Sequence[str], order: int, discount: float) -> Any:
    """The program's."""
    model = BASELINES.NgramModel(order, lm.Vocabulary(VOCABULARY), BASELINES.count_ngrams(text, order))
    model.estimator.discount = discount
    return model


def nltk_model(text: Sequence[str], order: int, discount: float) -> Any:
    """nltk's, trained as its own documentation does."""
    model = lm.KneserNeyInterpolated(order, discount=discount)
    grams = [tuple(text[at : at + length]) for length in range(1, order + 1) for at in range(len(text) - length + 1)]
    model.fit([grams], VOCABULARY)
    return model


@pytest.mark.parametrize(("order", "discount"), [(2, 0.5), (3, 0.75), (5, 0.1), (5, 0.9)])
def test_gathered_counts_score_as_nltk_itself(order: int, discount: float) -> None:
    text = make_text(300)
    theirs, ours = nltk_model(text, order, discount), nltk_model(text, order, discount)
    ours.estimator = BASELINES.GatheredKneserNey(ours.vocab, ours.counts, order, discount)
    for context in contexts_of(text):
        expected = [theirs.score(word, context) for word in VOCABULARY]
        assert [ours.score(word, context) for word in VOCABULARY] == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize(("order", "discount"), [(2, 0.5), (5, 0.9)])
def test_the_whole_model_is_nltk_itself_above_other_unigrams(order: int, discount: float) -> None:
    text = make_text(300)
    theirs, ours = nltk_model(text, order, discount), model_of(text, order, discount)
    before = {word: len({first for first, second in pairwise(text) if second == word}) for word in WORDS}
    total = sum(before.values())
    unigrams = {
        word: max(before.get(word, 0) - discount, 0) / total + discount * len(before) / total / len(VOCABULARY)
        for word in VOCABULARY
    }
    theirs.estimator.unigram_score = unigrams.__getitem__
    for context in contexts_of(text):
        expected = [theirs.score(word, context) for word in VOCABULARY]
        assert [ours.score(word, context) for word in VOCABULARY] == pytest.approx(expected, rel=0, abs=1e-12)


def test_bigrams_by_hand() -> None:
    model = BASELINES.NgramModel(2, lm.Vocabulary("abcd"), BASELINES.count_ngrams("abacab", 2))
    model.estimator.discount = 0.5
    # Different tokens before a: 2, b: 1, c: 1, d: 0; so 1.5 of 4 is freed and shared out among four.
    unigrams = {"a": 1.5 / 4 + 1.5 / 16, "b": 0.5 / 4 + 1.5 / 16, "c": 0.5 / 4 + 1.5 / 16, "d": 1.5 / 16}
    assert {word: model.score(word) for word in "abcd"} == pytest.approx(unigrams)
    # After a: b twice and c once.
    assert model.score("b", ["a"]) == pytest.approx(1.5 / 3 + 1 / 3 * unigrams["b"])
    assert model.score("d", ["a"]) == pytest.approx(1 / 3 * unigrams["d"])
    assert model.score("b", ["d"]) == pytest.approx(unigrams["b"])


def test_unigrams_have_their_own_counts() -> None:
    model = BASELINES.NgramModel(1, lm.Vocabulary("abcd"), BASELINES.count_ngrams("abacab", 1))
    model.estimator.discount = 0.5
    shared = 1.5 / 6 / 4
    expected = [2.5 / 6 + shared, 1.5 / 6 + shared, 0.5 / 6 + shared, shared]
    assert [model.score(word, ["a"]) for word in "abcd"] == pytest.approx(expected)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("text", [make_text(300), list("jihgfabcab"), list("ab"), list("a")], ids=len)
def test_probabilities_sum_to_one(text: list[str], order: int) -> None:
    """Also where a text begins with what does not come again, and for what is in no text."""
    model = model_of(text, order, 0.8)
    contexts = contexts_of(text) if len(text) > 20 else [(), *(tuple(text[:end]) for end in range(1, 8)), ("x", "a")]
    for context in contexts:
        scores = [model.score(word, context) for word in VOCABULARY]
        assert min(scores) > 0
        assert math.fsum(scores) == pytest.approx(1, rel=0, abs=1e-12)


def test_each_token_but_the_first_is_predicted_from_those_before_it() -> None:
    text, unseen = make_text(300), list("abcxhij")
    model = model_of(text, 3, 0.5)
    scores = [model.score(word, unseen[:at]) for at, word in enumerate(unseen) if at]
    expected = -sum(map(math.log, scores)) / 6
    assert model.loss(unseen, 0.5) == pytest.approx(expected)
    assert model.loss(unseen, 0.95) != pytest.approx(expected)


def test_the_discount_is_the_best_for_the_held_out_text() -> None:
    text, unseen = make_text(300), make_text(60, seed=2)
    model = model_of(text, ORDER, 0.5)
    best = model.best(unseen)
    tried = {discount: math.exp(model.loss(unseen, discount)) for discount in BASELINES.DISCOUNTS}
    assert best["tried"] == pytest.approx({str(discount): value for discount, value in tried.items()})
    assert best["perplexity"] == pytest.approx(min(tried.values()))
    assert tried[best["discount"]] == pytest.approx(math.exp(best["loss"])) == pytest.approx(best["perplexity"])


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Corpora:
    return Corpora(tmp_path_factory.mktemp("baselines"))


def count_stored(data: PretrainingDataset) -> Counter[int]:
    """The tokens of data that are masked when read, as they are stored, without [CLS] and [SEP]."""
    counted = Counter(token for number in range(len(data)) for token in data._stored(number).input_ids)
    for mark in ("cls_id", "sep_id"):
        assert counted.pop(getattr(data.vocabulary, mark)) >= len(data)
    return counted


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What the program prints."""
    assert BASELINES.main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_streams(corpora: Corpora, capsys: pytest.CaptureFixture[str]) -> None:
    train, held_out = corpora.data("gpt2"), corpora.data("gpt2", held_out=True)
    given = ("--train", train, "--held_out", held_out)
    found = json.loads(run(capsys, *given, "--json"))
    streams = [TokenStream(place) for place in (train, held_out)]
    ids = [stream.ids.tolist() for stream in streams]
    assert found["order"] == 5
    assert found["vocab_size"] == streams[0].index.vocab_size
    assert (found["train_tokens"], found["predicted"]) == (len(ids[0]), len(ids[1]) - 1)
    shares = Counter(ids[0])
    # Little is freed of counts as large as these.
    plain = -np.mean([math.log(shares[token] / len(ids[0])) for token in ids[1][1:]])
    assert found["unigram"]["loss"] == pytest.approx(plain, abs=0.05)
    assert found["unigram"]["loss"] > 0.9 * entropy(ids[1])
    # Words follow each other in a circle, and only the ends of lines can't be told.
    assert found["ngram"]["perplexity"] < found["unigram"]["perplexity"] / 3
    lines = run(capsys, *given).splitlines()
    assert f"unigrams: perplexity {found['unigram']['perplexity']:.2f}" in lines[1]
    assert f"5-grams, interpolated Kneser-Ney: perplexity {found['ngram']['perplexity']:.2f}" in lines[2]
    bigrams = json.loads(run(capsys, *given, "--json", "--order", 2))
    assert bigrams["unigram"] == found["unigram"]
    assert bigrams["ngram"]["perplexity"] > found["ngram"]["perplexity"]
    single = json.loads(run(capsys, *given, "--json", "--order", 1))
    assert single["ngram"] == single["unigram"] == found["unigram"]


def test_masked_words(corpora: Corpora, capsys: pytest.CaptureFixture[str]) -> None:
    train, held_out = corpora.data("bert"), corpora.data("bert", held_out=True)
    given = ("--masked", "--train", train, "--held_out", held_out)
    found = json.loads(run(capsys, *given, "--json"))
    rows = PretrainingDataset(held_out)
    labels = [label for row in map(rows.__getitem__, range(len(rows))) for label in row["masked_lm_labels"]]
    counted = Counter(label for label in labels if label >= 0)
    assert found["masked"] == sum(counted.values())
    assert found["best_constant"]["accuracy"] == max(counted.values()) / sum(counted.values())
    assert counted[found["best_constant"]["id"]] == max(counted.values())
    frequent = found["most_frequent"]
    tokens = count_stored(PretrainingDataset(corpora.data("bert", dynamic_masking=True)))
    assert tokens[frequent["id"]] == max(tokens.values())
    assert frequent["id"] != found["best_constant"]["id"], "the two guesses are the same, and the test can't tell them"
    assert frequent["accuracy"] == counted[frequent["id"]] / sum(counted.values())
    lines = run(capsys, *given).splitlines()
    assert f"accuracy {frequent['accuracy']:.4f} (id {frequent['id']})" in lines[1]
    assert f"accuracy {found['best_constant']['accuracy']:.4f}" in lines[2]


def test_masks_are_undone_and_marks_left_out(corpora: Corpora) -> None:
    """Data that are masked when read have the texts as they are."""
    masked, plain = (
        PretrainingDataset(corpora.data("bert")),
        PretrainingDataset(corpora.data("bert", dynamic_masking=True)),
    )
    tokens, labels = BASELINES.count_tokens(masked)
    assert {token: count for token, count in enumerate(tokens.tolist()) if count} == count_stored(plain)
    assert labels.sum() == masked.index.shards[0].masked
    assert (labels <= tokens).all()


def test_what_cannot_be_compared_is_refused(corpora: Corpora, tmp_path: Path) -> None:
    gpt2, other = corpora.data("gpt2"), corpora.data("transfo_xl")
    with pytest.raises(ValueError, match=r"vocabularies of \d+ and \d+ tokens; make both with one"):
        BASELINES.stream_baselines(gpt2, other, 2)
    short = tmp_path / "short"
    short.mkdir()
    index = json.loads((gpt2 / "index.json").read_text())
    (short / "index.json").write_text(json.dumps({**index, "tokens": 1, "documents": 1}))
    np.save(short / "ids.npy", np.zeros(1, np.uint16))
    np.save(short / "documents.npy", np.array([0, 1]))
    with pytest.raises(ValueError, match="short has a single token"):
        BASELINES.stream_baselines(gpt2, short, 2)
    bert = corpora.data("bert")
    index = json.loads((bert / "index.json").read_text())
    changed = tmp_path / "changed"
    changed.mkdir()
    for path in bert.glob("*.safetensors"):
        (changed / path.name).write_bytes(path.read_bytes())
    vocabulary = {**index["vocabulary"], "sha256": "0"}
    (changed / "index.json").write_text(json.dumps({**index, "vocabulary": vocabulary}))
    with pytest.raises(ValueError, match="different vocabularies"):
        BASELINES.masked_baselines(bert, changed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--order", "0"], "--order is 0; it should be at least 1"), (["--masked", "--order", "5"], "leave it out")],
)
def test_arguments_that_make_no_sense(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        BASELINES.main(["--train", "a", "--held_out", "b", *arguments])
    assert message in capsys.readouterr().err
