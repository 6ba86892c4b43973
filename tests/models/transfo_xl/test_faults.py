"""Faults that a reader of the code or a user found, one test each."""

import json
from pathlib import Path

import pytest
import torch

from pytorch_transformers import TransfoXLConfig, TransfoXLLMHeadModel, evaluate
from pytorch_transformers.models.transfo_xl.adaptive_softmax import AdaptiveEmbedding, ProjectedAdaptiveLogSoftmax

from ..battery import build
from .tiny import CASE, CUTOFFS, VOCAB, words


def model() -> TransfoXLLMHeadModel:
    made: TransfoXLLMHeadModel = build(CASE, TransfoXLLMHeadModel)
    return made.eval()


@pytest.mark.parametrize("div_val", [1, 2])
def test_parts_alone_are_initialised(div_val: int) -> None:
    softmax = ProjectedAdaptiveLogSoftmax(100, 32, 64, [10, 20, 80], div_val)
    probabilities = softmax.log_prob(torch.randn(15, 64)).exp()
    torch.testing.assert_close(probabilities.sum(1), torch.ones(15), atol=1e-5, rtol=0)
    vectors = AdaptiveEmbedding(100, 32, 64, [10, 20, 80], div_val)(torch.arange(100))
    assert vectors.isfinite().all()
    assert vectors.abs().max() < 100


@pytest.mark.parametrize("cutoffs", [[20, 100], [20, 120], [50, 20], [20, 20]])
def test_parts_alone_refuse_cutoffs(cutoffs: list[int]) -> None:
    for part in (AdaptiveEmbedding, ProjectedAdaptiveLogSoftmax):
        with pytest.raises(ValueError, match="cutoffs"):
            part(100, 32, 64, cutoffs)


@pytest.mark.parametrize("word", [VOCAB, VOCAB + 400])
def test_no_silent_word_beyond_the_vocabulary(word: int) -> None:
    """Where values are not looked at, as on a GPU, the kernels must fail rather than give numbers."""
    crit, hidden = model().crit, torch.randn(2, 40)
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        model().transformer.word_emb(torch.tensor([5, word]))
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        crit(hidden, torch.tensor([5, word]))
    with pytest.raises(IndexError, match="out of"):
        model().transformer.word_emb(torch.tensor([5, -3]))


def test_a_cache_is_refused_where_gradients_are_asked_for() -> None:
    made, ids = model(), words(2, 5)
    with pytest.raises(ValueError, match=r"mems: a cache.*no_grad"):
        made(ids, made.new_cache(2, 5))
    frozen = model().requires_grad_(False)
    assert frozen(ids, frozen.new_cache(2, 5)).logits.shape == (2, 5, VOCAB)


def test_a_gradient_of_one_tail_alone() -> None:
    made = model().requires_grad_(False)
    bias = made.crit.get_parameter("out_layers.3.bias").requires_grad_(True)
    made(words(2, 5)).prediction_scores.sum().backward()
    assert bias.grad is not None
    assert bias.grad.abs().sum() > 0


@pytest.mark.parametrize("tokens", [2, 5, 9])
def test_segments_shorter_than_ext_len_in_a_graph(tokens: int) -> None:
    made = model()
    made.reset_length(7, 5, 9)
    with torch.no_grad():
        mems = made(words(2, 9)).mems
        compiled = torch.compile(made, backend="eager", dynamic=True)
        for ours, theirs in zip(made(words(2, tokens), mems).mems, compiled(words(2, tokens), mems).mems, strict=True):
            torch.testing.assert_close(ours, theirs)


def test_torch_func() -> None:
    made, ids = model(), words(2, 5)
    parameters: dict[str, torch.Tensor] = dict(made.named_parameters())

    def loss(values: dict[str, torch.Tensor]) -> torch.Tensor:
        mean: torch.Tensor = torch.func.functional_call(made, values, (ids,), {"labels": ids}).loss.mean()
        return mean

    found = torch.func.grad(loss)(parameters)
    made(ids, labels=ids).loss.mean().backward()
    for name, parameter in parameters.items():
        assert parameter.grad is not None
        torch.testing.assert_close(found[name], parameter.grad, atol=1e-6, rtol=1e-4)


def test_constants_of_published_files_are_passed_over() -> None:
    made = model()
    made.load_state_dict({**made.state_dict(), "transformer.pos_emb.inv_freq": torch.ones(20)})


def test_the_published_package_reads_the_number_of_words(tmp_path: Path) -> None:
    config = TransfoXLConfig(VOCAB, cutoffs=CUTOFFS)
    written = json.loads(config.save_pretrained(tmp_path).read_text(encoding="utf-8"))
    assert written["n_token"] == written["vocab_size"] == VOCAB
    config.n_token = 100
    assert config.vocab_size == 100
    assert TransfoXLConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cutoffs": None}, r"cutoffs.*\[\]"),
        ({"cutoffs": 20}, "cutoffs"),
        ({"same_length": "false"}, "same_length.*'false'"),
        ({"tie_projs": "abcd"}, "tie_projs"),
        ({"eos_token_id": VOCAB}, "eos_token_id"),
    ],
)
def test_values_of_another_kind(change: dict[str, object], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        TransfoXLConfig(**{"vocab_size": VOCAB, "cutoffs": CUTOFFS, **change})  # type: ignore[arg-type]


def test_shapes_for_the_softmax_alone() -> None:
    crit = model().crit
    with pytest.raises(ValueError, match=r"hidden, labels.*\[N, H\]"):
        crit(torch.randn(2, 3, 40), words(2, 3))
    with pytest.raises(ValueError, match=r"hidden, labels"):
        crit(torch.randn(3, 40), words(2, 2).flatten())
    with pytest.raises(ValueError, match="hidden"):
        crit.log_prob(torch.randn(2, 3, 40))


def test_a_text_is_no_ids() -> None:
    with pytest.raises(TypeError, match="encode"):
        evaluate(model(), "abc")  # type: ignore[arg-type]
