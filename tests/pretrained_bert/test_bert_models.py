"""The classic BERT models: the numbers, results and gradients of 0.6.2, and the ways in which its users used them."""

import copy
import io
import json
import pickle
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pytorch_transformers
from pytorch_pretrained_bert import modeling
from pytorch_pretrained_bert.modeling import BertConfig, BertModel, BertPreTrainedModel

from .bert_pairs import (
    BATCH,
    CHOICES,
    CLASSES,
    HEADS,
    KINDS,
    LENGTH,
    POSITIONS,
    SIZES,
    STATES,
    VOCAB,
    assert_equal,
    assert_same_gradients,
    config,
    flat,
    inputs,
    labels,
    original,
    ours,
    pair,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of code from 2019


def tolerance(name: str) -> float:
    return STATES if name == "BertModel" else 2e-6


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("given", [1, 2, 3])
@torch.no_grad()
def test_outputs(name: str, given: int) -> None:
    """By position: ids, segments, mask."""
    mine, theirs = pair(name)
    assert_equal(mine(*inputs(name)[:given]), theirs(*inputs(name)[:given]), atol=tolerance(name))


@torch.no_grad()
def test_all_layers_or_the_last() -> None:
    mine, theirs = pair("BertModel")
    states, pooled = mine(*inputs())
    assert type(states) is list
    assert len(states) == SIZES["num_hidden_layers"]
    last, same = mine(*inputs(), output_all_encoded_layers=False)
    assert torch.equal(last, states[-1])
    assert torch.equal(pooled, same)
    assert_equal(mine(*inputs(), False), theirs(*inputs(), False), atol=STATES)


@torch.no_grad()
def test_second_argument_is_the_segments() -> None:
    """In `pytorch_transformers` it is the mask."""
    mine = ours("BertModel")
    ids, segments, mask = inputs()
    expected = mine(input_ids=ids, token_type_ids=segments, attention_mask=mask)
    assert_equal(mine(ids, segments, mask), expected, atol=0.0)
    core = pytorch_transformers.BertModel(mine.config).eval()
    core.load_state_dict(mine.state_dict())
    assert torch.equal(core(ids, mask, segments).pooler_output, expected[1])


@pytest.mark.parametrize("kind", [torch.long, torch.float, torch.uint8, torch.bool])
@torch.no_grad()
def test_masks_of_any_type(kind: torch.dtype) -> None:
    mine, theirs = pair("BertModel")
    ids, segments, mask = inputs()
    assert_equal(mine(ids, segments, mask.to(kind)), theirs(ids, segments, mask), atol=STATES)


@pytest.mark.parametrize("name", KINDS)
def test_masks_are_0_or_1(name: str) -> None:
    """0.6.2 computes something with others."""
    ids, segments, mask = inputs(name)
    with pytest.raises(ValueError, match="attention_mask"):
        ours(name)(ids, segments, 0.5 * mask)


@pytest.mark.parametrize("name", KINDS)
@torch.no_grad()
def test_rows_of_padding_alone(name: str) -> None:
    """Such a row sees all its tokens. 0.6.2 loses digits there, as it adds -10,000 to scores: that is a thousandth."""
    mine, theirs = pair(name)
    ids, segments, mask = inputs(name)
    mask[1] = 0
    found, expected = mine(ids, segments, mask), theirs(ids, segments, mask)
    assert_equal(found, expected, atol=2e-2)
    others = torch.arange(BATCH) != 1
    for one, other in zip(flat(found), flat(expected), strict=True):
        torch.testing.assert_close(one[others], other[others], rtol=1e-6, atol=tolerance(name))
    full = mask.clone()
    full[1] = 1
    for one, other in zip(flat(found), flat(mine(ids, segments, full)), strict=True):
        torch.testing.assert_close(one[1], other[1], rtol=1e-6, atol=tolerance(name))


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("masked", [False, True])
def test_losses_and_gradients(name: str, masked: bool) -> None:
    """With labels comes the loss alone, in training mode as in a training loop; -1 is ignored."""
    mine, theirs = pair(name)
    mine.train(), theirs.train()
    given = inputs(name)[: 3 if masked else 2]
    wanted = labels(name)
    before = {key: value.clone() for key, value in wanted.items()}
    loss = mine(*given, **wanted)
    assert all(torch.equal(wanted[key], value) for key, value in before.items())  # 0.6.2 clamps spans in place
    expected = theirs(*given, **wanted)
    assert isinstance(loss, Tensor)
    assert_equal(loss, expected)
    loss.backward(), expected.backward()
    assert_same_gradients(mine, theirs)


@pytest.mark.parametrize("name", HEADS)
def test_labels_by_position(name: str) -> None:
    mine, theirs = pair(name)
    given = (*inputs(name), *labels(name).values())
    assert_equal(mine(*given), theirs(*given))


@pytest.mark.parametrize("given", ["masked_lm_labels", "next_sentence_label"])
@torch.no_grad()
def test_pre_training_with_one_of_two_labels_gives_scores(given: str) -> None:
    mine, theirs = pair("BertForPreTraining")
    some = {given: labels("BertForPreTraining")[given]}
    assert_equal(mine(*inputs(), **some), theirs(*inputs(), **some), atol=2e-6)


@pytest.mark.parametrize("starts", [[0, -3, 2, LENGTH - 1], [LENGTH, 2, LENGTH + 5, 1]])
def test_spans_outside_the_text(starts: list[int]) -> None:
    """Below 0 they count as 0, behind the end they are ignored; a second axis of size 1 may be there."""
    mine, theirs = pair("BertForQuestionAnswering")
    for view in ((BATCH,), (BATCH, 1)):
        spans = [torch.tensor(starts).view(view), torch.tensor([1, 5, -1, 3]).view(view)]
        mine.zero_grad(), theirs.zero_grad()
        loss, expected = mine(*inputs(), *map(torch.clone, spans)), theirs(*inputs(), *map(torch.clone, spans))
        assert_equal(loss, expected)
        loss.backward(), expected.backward()
        assert_same_gradients(mine, theirs)


@torch.no_grad()
def test_one_span_label_gives_scores() -> None:
    mine = ours("BertForQuestionAnswering")
    start = torch.zeros(BATCH, dtype=torch.long)
    assert_equal(mine(*inputs(), start), mine(*inputs()), atol=0.0)


@pytest.mark.parametrize("name", ["BertForMaskedLM", "BertForTokenClassification"])
def test_no_loss_where_all_labels_are_ignored(name: str) -> None:
    """Mended: 0.6.2 gives NaN, which ruins the weights."""
    mine = ours(name)
    nothing = {key: torch.full_like(value, -1) for key, value in labels(name).items()}
    loss = mine(*inputs(name), **nothing)
    assert loss.item() == 0.0
    loss.backward()
    assert all(weight.grad is None or not weight.grad.any() for weight in mine.parameters())


@torch.no_grad()
def test_labels_of_tokens_may_be_ignored() -> None:
    """As -1 is in the other models; in 0.6.2 it is an error of the kernel here."""
    mine, theirs = pair("BertForTokenClassification")
    ids, segments, mask = inputs()
    wanted = labels("BertForTokenClassification")["labels"]
    some = torch.where(torch.arange(LENGTH) % 2 == 0, wanted, -1)
    counted = (some >= 0) & mask.bool()
    expected = nn.functional.cross_entropy(theirs(ids, segments, mask)[counted], some[counted])
    assert_equal(mine(ids, segments, mask, some), expected)


@torch.no_grad()
def test_padding_has_no_part_in_the_loss_of_tokens() -> None:
    mine, theirs = pair("BertForTokenClassification")
    ids, segments, mask = inputs()
    wanted = labels("BertForTokenClassification")["labels"]
    changed = torch.where(mask.bool(), wanted, (wanted + 1) % CLASSES)
    assert_equal(mine(ids, segments, mask, wanted), theirs(ids, segments, mask, changed))


@torch.no_grad()
def test_inputs_decide_the_number_of_choices() -> None:
    mine = ours("BertForMultipleChoice")
    more = [torch.cat([part, part[:, :1]], dim=1) for part in inputs("BertForMultipleChoice")]
    assert mine.num_choices == CHOICES
    assert mine(*more).shape == (BATCH, CHOICES + 1)
    with pytest.raises(ValueError, match="choices"):
        mine(inputs()[0])


@pytest.mark.parametrize("name", ["BertForSequenceClassification", "BertForTokenClassification"])
def test_number_of_labels_is_an_argument(name: str) -> None:
    sizes = config()
    model = getattr(modeling, name)(sizes, 7)
    assert model.num_labels == model.classifier.out_features == 7
    assert sizes.num_labels == config().num_labels  # the one given is as it was
    assert getattr(modeling, name)(sizes, num_labels=4).classifier.out_features == 4
    with pytest.raises(TypeError, match="num_labels"):
        getattr(modeling, name)(sizes)


# --- models of one's own ----------------------------------------------------------------------------------------------


class Tagger(BertPreTrainedModel):
    """As research code writes it."""

    def __init__(self, config: Any, num_tags: int, dropout: float = 0.0) -> None:
        super().__init__(config)
        self.bert = BertModel(config)
        self.dropout = nn.Dropout(dropout)
        self.tags = nn.Linear(config.hidden_size, num_tags)
        self.apply(self.init_bert_weights)

    def forward(self, input_ids: Tensor, token_type_ids: Any = None, attention_mask: Any = None) -> Any:
        states, _ = self.bert(input_ids, token_type_ids, attention_mask, output_all_encoded_layers=False)
        return self.tags(self.dropout(states))


class ByHand(BertPreTrainedModel):
    """A subclass that goes through the parts itself."""

    def __init__(self, config: Any, num_tags: int) -> None:
        super(ByHand, self).__init__(config)  # noqa: UP008
        self.bert = BertModel(config)
        self.tags = nn.Linear(config.hidden_size, num_tags)
        self.apply(self.init_bert_weights)

    def forward(self, input_ids: Tensor, token_type_ids: Any = None, attention_mask: Any = None) -> Any:
        mask = (1.0 - attention_mask.unsqueeze(1).unsqueeze(2).to(dtype=self.tags.weight.dtype)) * -10000.0
        states = self.bert.embeddings(input_ids, token_type_ids)
        layer: Any
        for layer in self.bert.encoder.layer:
            attended = layer.attention.self(states, mask)
            attended = layer.attention.output(attended, states)
            states = layer.output(layer.intermediate(attended), attended)
        return self.tags(states)


@pytest.mark.parametrize("kind", [Tagger, ByHand])
def test_own_subclasses(kind: type[Any], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = kind(config(), 4)
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            assert not weight.any(), name
        elif weight.ndim == 1:
            assert weight.eq(1).all(), name
        else:
            assert 0.7 < weight.std() / SIZES["initializer_range"] < 1.3, name
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    model.config.to_json_file(tmp_path / "config.json")
    loaded = kind.from_pretrained(str(tmp_path), 4)
    assert loaded.training
    theirs = original().BertModel(config(original())).eval()
    weights = {key: value for key, value in model.state_dict().items() if key.startswith("bert.")}
    theirs.load_state_dict({key.removeprefix("bert."): value for key, value in weights.items()})
    with torch.no_grad():
        states, _ = theirs(*inputs(), output_all_encoded_layers=False)
        assert_equal(loaded.eval()(*inputs()), model.tags(states), atol=STATES)
    model(*inputs()).sum().backward()
    unused = {name for name, weight in model.named_parameters() if weight.grad is None}
    assert unused == {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}


def test_values_set_by_hand_after_the_call_stay() -> None:
    class Biased(Tagger):
        def __init__(self, config: Any) -> None:
            super().__init__(config, 3)
            nn.init.constant_(self.tags.bias, -2.0)

    assert Biased(config()).tags.bias.eq(-2).all()


def test_own_subclass_reads_a_pre_trained_model(tmp_path: Path) -> None:
    """The names below `bert.` are those of the file, its heads are left out, the new layer is drawn."""
    source = saved(ours("BertForPreTraining"), tmp_path)
    model = Tagger.from_pretrained(str(source), num_tags=4, dropout=0.5)
    assert model.dropout.p == 0.5
    for key, value in ours("BertForPreTraining").bert.state_dict().items():
        assert torch.equal(model.bert.state_dict()[key], value)


def extended(mask: Tensor) -> Tensor:
    """As code of that time makes what is added to scores."""
    return (1.0 - mask[:, None, None, :].float()) * -10000.0


@torch.no_grad()
def test_parts_of_a_model() -> None:
    mine, theirs = pair("BertModel")
    ids, segments, mask = inputs()
    bias = extended(mask)
    states = theirs.embeddings(ids, segments)
    assert_equal(mine.embeddings(ids, segments), states)
    assert_equal(mine.embeddings(ids), theirs.embeddings(ids))
    for layers in (True, False):
        assert_equal(mine.encoder(states, bias, layers), theirs.encoder(states, bias, layers), atol=STATES)
    assert_equal(mine.encoder(states, bias), theirs.encoder(states, bias), atol=STATES)
    assert_equal(mine.pooler(states), theirs.pooler(states))
    for layer, other in zip(mine.encoder.layer, theirs.encoder.layer, strict=True):
        attended = other.attention(states, bias)
        assert_equal(layer.attention.self(states, bias), other.attention.self(states, bias), atol=STATES)
        assert_equal(layer.attention(states, bias), attended, atol=STATES)
        assert_equal(layer.intermediate(attended), other.intermediate(attended), atol=STATES)
        wide = other.intermediate(attended)
        assert_equal(layer.output(wide, attended), other.output(wide, attended), atol=STATES)
        assert_equal(layer(states, bias), other(states, bias), atol=STATES)
        heads = layer.attention.self.transpose_for_scores(states)
        assert_equal(heads, other.attention.self.transpose_for_scores(states), atol=0.0)
        states = other(states, bias)


def alone(module: Any, name: str) -> Any:
    """A part built by itself."""
    sizes = config(module)
    if name == "BertLayerNorm":
        return module.BertLayerNorm(40)
    if name in ("BertLMPredictionHead", "BertOnlyMLMHead", "BertPreTrainingHeads"):
        torch.manual_seed(1)
        return getattr(module, name)(sizes, nn.Parameter(torch.randn(VOCAB, 40)))
    return getattr(module, name)(sizes)


PARTS: dict[str, str] = {
    "BertEmbeddings": "ids",
    "BertSelfAttention": "states bias",
    "BertSelfOutput": "states states",
    "BertAttention": "states bias",
    "BertIntermediate": "states",
    "BertOutput": "wide states",
    "BertLayer": "states bias",
    "BertEncoder": "states bias",
    "BertPooler": "states",
    "BertLayerNorm": "states",
    "BertPredictionHeadTransform": "states",
    "BertLMPredictionHead": "states",
    "BertOnlyMLMHead": "states",
    "BertOnlyNSPHead": "pooled",
    "BertPreTrainingHeads": "states pooled",
}


@pytest.mark.parametrize("part", PARTS)
def test_parts_built_alone(part: str) -> None:
    ids, _, mask = inputs()
    draw = torch.Generator().manual_seed(2)
    values: dict[str, Tensor] = {
        "ids": ids,
        "bias": extended(mask),
        "states": torch.randn(BATCH, LENGTH, 40, generator=draw),
        "wide": torch.randn(BATCH, LENGTH, 37, generator=draw),
        "pooled": torch.randn(BATCH, 40, generator=draw),
    }
    mine, theirs = alone(modeling, part).eval(), alone(original(), part).eval()
    mine.load_state_dict(theirs.state_dict())
    given = [values[name] for name in PARTS[part].split()]
    assert_equal(mine(*given), theirs(*given), atol=STATES)
    # Gradients in float64, where nothing but the formula can differ.
    given = [value.double() if value.is_floating_point() else value for value in given]
    found, expected = mine.double()(*given), theirs.double()(*given)
    torch.stack([result.square().sum() for result in flat(found)]).sum().backward()
    torch.stack([result.square().sum() for result in flat(expected)]).sum().backward()
    assert_same_gradients(mine, theirs, atol=1e-9)


def test_parts_of_parts_built_alone() -> None:
    """A layer of one's own is called as one of a model, and so is what it consists of."""
    mine: Any = modeling.BertEncoder(config())
    theirs = original().BertEncoder(config(original()))
    mine.load_state_dict(theirs.state_dict())
    bias, states = extended(inputs()[2]), torch.randn(BATCH, LENGTH, 40, generator=torch.Generator().manual_seed(2))
    for layer, other in (
        (mine.layer[1], theirs.layer[1]),
        (mine.layer[1].attention, theirs.layer[1].attention),
        (mine.layer[1].attention.self, theirs.layer[1].attention.self),
    ):
        assert_equal(layer(states, bias), other(states, bias), atol=STATES)
    assert isinstance(modeling.BertLayer(config()).attention, modeling.BertAttention)
    assert isinstance(modeling.BertLayer(config()).attention.self, modeling.BertSelfAttention)


def test_heads_built_alone_share_the_table() -> None:
    for name in ("BertLMPredictionHead", "BertOnlyMLMHead", "BertPreTrainingHeads"):
        table = nn.Parameter(torch.randn(VOCAB, 40))
        head = getattr(modeling, name)(config(), table)
        assert getattr(head, "predictions", head).decoder.weight is table


@torch.no_grad()
def test_fewer_layers_by_cutting_the_list() -> None:
    """As bert-score does."""
    mine, theirs = pair("BertModel")
    for model in (mine, theirs):
        model.encoder.layer = nn.ModuleList(list(model.encoder.layer)[:2])
    assert_equal(mine(*inputs()), theirs(*inputs()), atol=STATES)
    assert_equal(mine(*inputs(), False), theirs(*inputs(), False), atol=STATES)


@torch.no_grad()
def test_wider_tables_by_exchanging_them() -> None:
    """As code for more words or segments did, since 0.6.2 can't resize."""
    mine, theirs = pair("BertModel")
    words, kinds = torch.randn(VOCAB + 4, 40), torch.randn(5, 40)
    for model in (mine, theirs):
        model.embeddings.word_embeddings = nn.Embedding.from_pretrained(words.clone())
        model.embeddings.token_type_embeddings = nn.Embedding.from_pretrained(kinds.clone())
    ids, segments, mask = inputs()
    ids[0, 0], segments[0, 0] = VOCAB + 3, 4
    assert_equal(mine(ids, segments, mask), theirs(ids, segments, mask), atol=STATES)


# --- files ------------------------------------------------------------------------------------------------------------


def saved(model: Any, folder: Path, config_name: str = "config.json") -> Path:
    """Written as the examples of 0.6.2 do."""
    folder.mkdir(exist_ok=True)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / config_name).write_text(model.config.to_json_string(), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("form", ["config.json", "bert_config.json", "tar.gz", "state_dict"])
def test_from_pretrained(name: str, form: str, tmp_path: Path) -> None:
    """From a folder, an archive, or weights in memory; as 0.6.2 left it, in training mode."""
    model = ours(name)
    folder = saved(model, tmp_path / "model", form if form.endswith("json") else "config.json")
    place, options = str(folder), {}
    if form == "tar.gz":
        place = str(tmp_path / "model.tar.gz")
        with tarfile.open(place, "w:gz") as archive:
            for path in folder.iterdir():
                archive.add(path, path.name)
    if form == "state_dict":
        (folder / "pytorch_model.bin").unlink()
        options = {"state_dict": model.state_dict()}
    found = getattr(modeling, name).from_pretrained(place, *KINDS[name].arguments, cache_dir=str(tmp_path), **options)
    assert type(found) is type(model)
    assert found.training
    assert found.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(found.state_dict()[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", ["BertForSequenceClassification", "BertForTokenClassification"])
def test_from_pretrained_with_a_number_of_labels(name: str, tmp_path: Path) -> None:
    saved(ours("BertForPreTraining"), tmp_path)
    for model in (
        getattr(modeling, name).from_pretrained(str(tmp_path), num_labels=6),
        getattr(modeling, name).from_pretrained(str(tmp_path), 6),
    ):
        assert model.classifier.weight.shape == (6, 40)
        assert torch.equal(model.bert.pooler.dense.weight, ours("BertForPreTraining").bert.pooler.dense.weight)


def test_choices_from_pretrained(tmp_path: Path) -> None:
    saved(ours("BertForPreTraining"), tmp_path)
    assert modeling.BertForMultipleChoice.from_pretrained(str(tmp_path), num_choices=4).num_choices == 4


def test_what_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mended: 0.6.2 returned None, and the fault showed at the first use of it."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert original().BertModel.from_pretrained(str(tmp_path / "nothing")) is None
    with pytest.raises(OSError, match="nothing"):
        BertModel.from_pretrained(str(tmp_path / "nothing"))


@pytest.mark.parametrize("name", KINDS)
def test_each_package_opens_the_files_of_the_other(name: str, tmp_path: Path) -> None:
    mine, theirs = pair(name)
    read = getattr(original(), name).from_pretrained(str(saved(mine, tmp_path / "ours")), *KINDS[name].arguments)
    with torch.no_grad():
        assert_equal(mine(*inputs(name)), read.eval()(*inputs(name)), atol=tolerance(name))
        read = getattr(modeling, name).from_pretrained(str(saved(theirs, tmp_path / "theirs")), *KINDS[name].arguments)
        assert_equal(read.eval()(*inputs(name)), theirs(*inputs(name)), atol=tolerance(name))


@pytest.mark.parametrize("name", KINDS)
def test_state_dicts_fit_both_ways(name: str) -> None:
    mine, theirs = pair(name)  # ours into theirs, strictly
    assert list(mine.state_dict()) == list(theirs.state_dict())
    assert list(dict(mine.named_parameters())) == list(dict(theirs.named_parameters()))
    fresh = getattr(modeling, name)(config(), *KINDS[name].arguments)
    assert str(fresh.load_state_dict(theirs.state_dict())) == "<All keys matched successfully>"


def test_names_of_the_first_files(tmp_path: Path) -> None:
    """Files of 2018 say gamma and beta."""
    model = ours("BertForMaskedLM")
    old = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for key, value in model.state_dict().items()
    }
    saved(model, tmp_path)
    torch.save(old, tmp_path / "pytorch_model.bin")
    found = modeling.BertForMaskedLM.from_pretrained(str(tmp_path))
    assert all(torch.equal(found.state_dict()[key], value) for key, value in model.state_dict().items())


def test_from_tensorflow(tmp_path: Path) -> None:
    """`from_tf` reads `model.ckpt` of a folder, and the function fills a model."""
    from pytorch_transformers.models.original import save_original

    model = ours("BertForPreTraining")
    save_original(model, tmp_path / "model.ckpt")
    model.config.to_json_file(tmp_path / "bert_config.json")
    found = modeling.BertForPreTraining.from_pretrained(str(tmp_path), from_tf=True)
    assert all(torch.equal(found.state_dict()[key], value) for key, value in model.state_dict().items())
    fresh = modeling.BertForPreTraining(config())
    assert modeling.load_tf_weights_in_bert(fresh, str(tmp_path / "model.ckpt")) is fresh
    assert all(torch.equal(fresh.state_dict()[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", [*KINDS, "Tagger"])
def test_a_whole_model_saved_and_copied(name: str) -> None:
    """`torch.save(model)`, pickle and deepcopy; what comes back computes and is called the same."""
    model: Any = Tagger(config(), 4).eval() if name == "Tagger" else ours(name)
    given = inputs("BertModel" if name == "Tagger" else name)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    with torch.no_grad():
        expected = model(*given)
        for found in (
            torch.load(file, weights_only=False),
            pickle.loads(pickle.dumps(model)),
            copy.deepcopy(model),
        ):
            assert type(found) is type(model)
            assert_equal(found(*given), expected, atol=0.0)
    if name not in ("Tagger", "BertModel"):
        loss = found(*given, **labels(name))
        loss.backward()
        assert loss.ndim == 0
    if name == "BertForPreTraining":
        assert found.cls.predictions.decoder.weight is found.bert.embeddings.word_embeddings.weight


# --- configuration ----------------------------------------------------------------------------------------------------


def test_configurations_of_both(tmp_path: Path) -> None:
    mine, theirs = config(hidden_act="relu"), config(original(), hidden_act="relu")
    assert {key: getattr(mine, key) for key in theirs.to_dict()} == theirs.to_dict()
    mine.to_json_file(tmp_path / "ours.json")
    theirs.to_json_file(tmp_path / "theirs.json")
    read = original().BertConfig.from_json_file(str(tmp_path / "ours.json"))
    assert {key: getattr(read, key) for key in theirs.to_dict()} == theirs.to_dict()
    for path in (tmp_path / "ours.json", tmp_path / "theirs.json"):
        for found in (BertConfig.from_json_file(str(path)), BertConfig(str(path))):
            assert type(found) is BertConfig
            assert {key: getattr(found, key) for key in theirs.to_dict()} == theirs.to_dict()
    assert BertConfig.from_dict(theirs.to_dict()).to_dict() == mine.to_dict()
    assert BertConfig.from_dict(json.loads(mine.to_json_string())).to_dict() == mine.to_dict()


def test_defaults_are_those_of_bert_base() -> None:
    expected = original().BertConfig(30522).to_dict()
    assert {key: getattr(BertConfig(30522), key) for key in expected} == expected
    with pytest.raises(TypeError):
        BertConfig()  # type: ignore[call-arg]
    with pytest.raises((TypeError, ValueError), match="vocab_size"):
        BertConfig(3.5)


@pytest.mark.parametrize("act", ["gelu", "relu", "swish", torch.tanh])
@torch.no_grad()
def test_activations(act: Any) -> None:
    """A name, or a function."""
    mine, theirs = pair("BertForMaskedLM", hidden_act=act)
    assert_equal(mine(*inputs()), theirs(*inputs()), atol=5e-6)
    values = torch.linspace(-5, 5, 101)
    if isinstance(act, str):
        assert_equal(dict[str, Any](modeling.ACT2FN)[act](values), original().ACT2FN[act](values))
        if act != "relu":
            assert_equal(getattr(modeling, act)(values), getattr(original(), act)(values))


# --- what came with the last sources of 0.6.2 -------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
@torch.no_grad()
def test_output_attentions(name: str) -> None:
    """They come first. Each row sums to 1 over real tokens; what follows is as without them."""
    torch.manual_seed(0)
    model = getattr(modeling, name)(config(), *KINDS[name].arguments, output_attentions=True).eval()
    plain = getattr(modeling, name)(config(), *KINDS[name].arguments).eval()
    plain.load_state_dict(model.state_dict())
    ids, segments, mask = inputs(name)
    probs, *found = model(ids, segments, mask)
    rest = plain(ids, segments, mask)
    assert type(probs) is list
    assert len(probs) == 3
    rows = ids.flatten(0, -2)
    for layer in probs:
        assert layer.shape == (len(rows), 5, LENGTH, LENGTH)
        real = mask.flatten(0, -2)[:, None, None, :].expand_as(layer)
        assert layer[real == 0].abs().max() == 0
        torch.testing.assert_close(layer.sum(-1), torch.ones(len(rows), 5, LENGTH))
    for one, other in zip(flat(found), flat(rest), strict=True):
        # probabilities and kernel round differently, each up to 6e-6 from float64 where scores are about 5
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-5)
    if name in HEADS:
        wanted = labels(name)
        probs, loss = model(ids, segments, mask, **wanted)
        torch.testing.assert_close(loss, plain(ids, segments, mask, **wanted))


@torch.no_grad()
def test_attentions_are_those_of_the_scores() -> None:
    """Against queries and keys of the first layer, by hand."""
    torch.manual_seed(0)
    model: Any = BertModel(config(), output_attentions=True).eval()
    ids, segments, mask = inputs()
    first = model(ids, segments, mask)[0][0]
    part, states = model.encoder.layer[0].attention.self, model.embeddings(ids, segments)
    query, key = (part.transpose_for_scores(linear(states)) for linear in (part.query, part.key))
    scores = query @ key.transpose(-1, -2) / 8**0.5 + extended(mask)
    torch.testing.assert_close(first, scores.softmax(-1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["BertModel", "BertForSequenceClassification", "BertForMaskedLM"])
def test_multihead_outputs(name: str) -> None:
    """What each head gave, and its gradient: their product is the gradient of the head's mask (Michel et al. 2019)."""
    arguments = (config(), *KINDS[name].arguments)
    model = getattr(modeling, name)(*arguments, keep_multihead_output=True).eval()
    encoder = getattr(model, "bert", model)
    given = inputs(name)
    assert encoder.get_multihead_outputs() == [None] * 3
    mask = torch.ones(3, 5, requires_grad=True)
    output = model(*given, head_mask=mask, **labels(name))
    kept = encoder.get_multihead_outputs()
    assert [tuple(each.shape) for each in kept] == [(BATCH, 5, LENGTH, 8)] * 3
    (output if name in HEADS else output[1].square().sum()).backward()
    of_mask: Any = mask.grad
    for layer, each in enumerate(kept):
        torch.testing.assert_close((each * each.grad).sum((0, 2, 3)), of_mask[layer], rtol=1e-4, atol=1e-6)
    plain = getattr(modeling, name)(*arguments).eval()
    plain.load_state_dict(model.state_dict())
    with torch.no_grad():
        assert_equal(model(*given), plain(*given), atol=STATES)  # scores, weighted by hand and in the fused kernel
    assert getattr(plain, "bert", plain).get_multihead_outputs() == [None] * 3


@pytest.mark.parametrize("name", ["BertModel", "BertForTokenClassification"])
@torch.no_grad()
def test_pruned_heads_are_masked_heads(name: str) -> None:
    model = ours(name)
    encoder = getattr(model, "bert", model)
    mask = torch.ones(3, 5)
    mask[0, 1] = mask[0, 3] = mask[2, 0] = 0
    expected = model(*inputs(), head_mask=mask)
    encoder.prune_heads({0: [1, 3], 2: [0]})
    assert encoder.encoder.layer[0].attention.self.query.out_features == 24
    assert_equal(model(*inputs()), expected, atol=STATES)
    encoder.prune_heads({0: [1]})  # those are gone
    assert_equal(model(*inputs()), expected, atol=STATES)


@pytest.mark.parametrize("mask", [torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0]), torch.rand(3, 5)])
@torch.no_grad()
def test_head_mask_by_position_is_last(mask: Tensor) -> None:
    model = ours("BertForSequenceClassification")
    found = model(*inputs(), None, mask)
    assert_equal(found, model(*inputs(), head_mask=mask), atol=0.0)
    assert not torch.allclose(found, model(*inputs()))


# --- devices and precision --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", KINDS)
def test_precisions(name: str, dtype: torch.dtype) -> None:
    """`model.half()`, as the options `--fp16` of that time."""
    model = ours(name)
    given, wanted = inputs(name), labels(name)
    with torch.no_grad():
        expected, loss = model(*given), model(*given, **wanted) if wanted else torch.zeros(())
    model = model.to(dtype)
    limit = {torch.float16: 5e-2, torch.bfloat16: 0.5, torch.float64: 2e-5}[dtype]
    with torch.no_grad():
        for one, other in zip(flat(model(*given)), flat(expected), strict=True):
            assert one.dtype == dtype
            torch.testing.assert_close(one.float(), other, rtol=limit, atol=limit)
    if wanted:
        found = model(*given, **wanted)
        torch.testing.assert_close(found.float(), loss, rtol=limit, atol=limit)
        found.backward()
        for key, weight in model.named_parameters():
            assert weight.grad is None or weight.grad.isfinite().all(), key


def test_data_parallel_replicas() -> None:
    """A replica has no parameters that it could ask for their type; a loss is one value for each."""
    model = ours("BertForPreTraining")
    wrapped = nn.DataParallel(model)
    given, wanted = inputs(), labels("BertForPreTraining")
    loss = wrapped(*given, **wanted)
    assert_equal(loss, model(*given, **wanted), atol=0.0)
    replica = replicated(model)
    assert list(replica.parameters()) == []
    replica(*given, **wanted).backward()
    gradient = model.bert.embeddings.word_embeddings.weight.grad
    assert gradient is not None
    assert gradient.any()
    assert_equal(replica(*given), model(*given), atol=0.0)


def replicated(module: nn.Module) -> Any:
    """What `torch.nn.parallel.replicate` makes, which needs several devices."""
    copy_of: Any = module._replicate_for_data_parallel()
    for name, child in module._modules.items():
        if child is not None:
            setattr(copy_of, name, replicated(child))
    for name, weight in module._parameters.items():
        # a tensor of the graph, no parameter
        setattr(copy_of, name, None if weight is None else weight.view_as(weight))
    return copy_of


def test_too_long_text_is_an_error_with_its_limit() -> None:
    ids = torch.zeros(1, POSITIONS + 1, dtype=torch.long)
    with pytest.raises(ValueError, match=rf"{POSITIONS}"):
        ours("BertModel")(ids)


def test_segments_outside_the_table_are_named() -> None:
    ids, segments, _ = inputs()
    segments[0, 0] = 3
    with pytest.raises(ValueError, match="token_type_ids"):
        ours("BertModel")(ids, segments)
