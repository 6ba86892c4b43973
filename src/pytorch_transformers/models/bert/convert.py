"""Names of the original BERT checkpoints and of ours, in rows, and what else a conversion must know of the original.

Source: google-research/bert - variable scopes of modeling.py, run_pretraining.py (`cls/predictions`,
`cls/seq_relationship`), run_classifier.py (`output_weights`, `output_bias`) and run_squad.py (`cls/squad`). The
original keeps matrices as [in, out] and `nn.Linear` as [out, in], so kernels are transposed; its embeddings and
`output_weights` are [out, in] already. The decoder of the MLM head is the table of word embeddings, and has no row.
"""

import logging
from os import PathLike
from pathlib import Path
from typing import Any, Final

from ...checkpoint.bookkeeping import TENSORFLOW_BOOKKEEPING
from ...checkpoint.keymap import KeyMap, Row
from ..config import PretrainedConfig

logger = logging.getLogger(__name__)

_LAYER: Final = "bert/encoder/layer_{n}/"
_OUR_LAYER: Final = "bert.encoder.layer.{n}."

#: Dense layers: scope of the original -> module here. Each has a kernel, which is transposed, and a bias.
_DENSE: Final[tuple[tuple[str, str], ...]] = (
    (_LAYER + "attention/self/query", _OUR_LAYER + "attention.self.query"),
    (_LAYER + "attention/self/key", _OUR_LAYER + "attention.self.key"),
    (_LAYER + "attention/self/value", _OUR_LAYER + "attention.self.value"),
    (_LAYER + "attention/output/dense", _OUR_LAYER + "attention.output.dense"),
    (_LAYER + "intermediate/dense", _OUR_LAYER + "intermediate.dense"),
    (_LAYER + "output/dense", _OUR_LAYER + "output.dense"),
    ("bert/pooler/dense", "bert.pooler.dense"),
    ("cls/predictions/transform/dense", "cls.predictions.transform.dense"),
)
#: Normalisations: each has a gamma and a beta.
_NORMS: Final[tuple[tuple[str, str], ...]] = (
    ("bert/embeddings/LayerNorm", "bert.embeddings.LayerNorm"),
    (_LAYER + "attention/output/LayerNorm", _OUR_LAYER + "attention.output.LayerNorm"),
    (_LAYER + "output/LayerNorm", _OUR_LAYER + "output.LayerNorm"),
    ("cls/predictions/transform/LayerNorm", "cls.predictions.transform.LayerNorm"),
)
_SINGLE: Final[tuple[Row, ...]] = (
    Row("bert/embeddings/word_embeddings", "bert.embeddings.word_embeddings.weight"),
    Row("bert/embeddings/position_embeddings", "bert.embeddings.position_embeddings.weight"),
    Row("bert/embeddings/token_type_embeddings", "bert.embeddings.token_type_embeddings.weight"),
    Row("cls/predictions/output_bias", "cls.predictions.bias"),
    Row("cls/seq_relationship/output_weights", "cls.seq_relationship.weight"),
    Row("cls/seq_relationship/output_bias", "cls.seq_relationship.bias"),
    Row("cls/squad/output_weights", "qa_outputs.weight"),
    Row("cls/squad/output_bias", "qa_outputs.bias"),
    Row("output_weights", "classifier.weight"),
    Row("output_bias", "classifier.bias"),
)

#: Kinds of model by what only their checkpoints have. Programs made after run_classifier.py keep its two names for
#: token classification and multiple choice too; those kinds can't be told from the names, and are asked for by name.
_HEADS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("question_answering", ("cls/squad/output_weights",)),
    ("sequence_classification", ("output_weights",)),
    ("pre_training", ("cls/predictions/output_bias", "cls/seq_relationship/output_weights")),
    ("masked_lm", ("cls/predictions/output_bias",)),
    ("next_sentence", ("cls/seq_relationship/output_weights",)),
    ("model", ()),
)

#: The heads by what our names for their weights begin with.
_HEAD_PARTS: Final = ("cls.predictions.", "cls.seq_relationship.", "qa_outputs.", "classifier.")

#: The table of the family.
KEY_MAP: Final = KeyMap(
    rows=(
        *_SINGLE,
        *(Row(f"{theirs}/kernel", f"{ours}.weight", "transpose") for theirs, ours in _DENSE),
        *(Row(f"{theirs}/bias", f"{ours}.bias") for theirs, ours in _DENSE),
        *(Row(f"{theirs}/gamma", f"{ours}.weight") for theirs, ours in _NORMS),
        *(Row(f"{theirs}/beta", f"{ours}.bias") for theirs, ours in _NORMS),
    ),
    heads=_HEADS,
    ignored=TENSORFLOW_BOOKKEEPING,
    optional=(*_HEAD_PARTS, "bert.pooler."),
    fresh=_HEAD_PARTS,
    labels=("output_weights",),
)

#: Our activations -> what the original program calls them (modeling.py, get_activation). Its "gelu" was the exact
#: formula until the end of 2018, and is the tanh form since.
_ACTIVATIONS: Final = {"gelu": "gelu", "gelu_tanh": "gelu", "gelu_new": "gelu", "relu": "relu", "tanh": "tanh"}
_EPS: Final = 1e-12  # the original's layer normalisation has no other (tf.contrib.layers.layer_norm)


def original_config(config: PretrainedConfig) -> tuple[str, dict[str, Any]]:
    """The configuration file of the original program: its name and content.

    Raises:
        ValueError: The original has no such activation or normalisation.
    """
    values = config.to_dict()
    activation = values["hidden_act"]
    if activation not in _ACTIVATIONS:
        raise ValueError(f"hidden_act: the original BERT has no {activation!r}; it has gelu, relu, tanh")
    if values["layer_norm_eps"] != _EPS:
        raise ValueError(f"layer_norm_eps: the original BERT computes with {_EPS}, not {values['layer_norm_eps']}")
    if activation != "gelu" and _ACTIVATIONS[activation] == "gelu":
        logger.warning(
            "hidden_act is %r; the original has the one name gelu, for the tanh form since 2019. To read the "
            "checkpoint back, ask for hidden_act=%r.",
            activation,
            activation,
        )
    return "bert_config.json", {**values, "hidden_act": _ACTIVATIONS[activation]}


def convert_tf_checkpoint_to_pytorch(
    tf_checkpoint_path: str | PathLike[str],
    bert_config_file: str | PathLike[str],
    pytorch_dump_path: str | PathLike[str],
) -> None:
    """Convert a checkpoint under the name and with the arguments of the published packages.

    The class of model is what the names in the checkpoint say: `BertForPreTraining` for Google's own.

    Args:
        tf_checkpoint_path: Prefix of the TensorFlow checkpoint.
        bert_config_file: Its `bert_config.json`.
        pytorch_dump_path: The file to write, usually `pytorch_model.bin`; or a folder that exists.

    Raises:
        OSError: A file is missing or damaged, or the disk refused one.
        ValueError: Names or shapes don't fit; the message lists all of them.
    """
    from ..conversion import convert
    from . import FAMILY

    out = Path(pytorch_dump_path)
    convert(FAMILY, tf_checkpoint_path, out, config=bert_config_file, one_file=not out.is_dir())


def convert_pytorch_checkpoint_to_tf(model: Any, ckpt_dir: str | PathLike[str], model_name: str) -> None:
    """Write a model as a TensorFlow checkpoint `ckpt_dir/model_name.ckpt`, as the published package does.

    Args:
        model: Any BERT model.
        ckpt_dir: Folder; it is made when missing.
        model_name: Name of the checkpoint; a `-` in it becomes `_`.

    Raises:
        ValueError: The original program can't have such a model.
        OSError: The disk refused a file.
    """
    from ..original import save_original

    save_original(model, Path(ckpt_dir) / f"{model_name.replace('-', '_')}.ckpt")
