"""Names of the original Transformer-XL checkpoints and of ours, in rows, and what else a conversion must know.

Source: kimiyoung/transformer-xl, folder tf - variable scopes of model.py. The original keeps matrices as [in, out] and
`nn.Linear` as [out, in], so kernels and projections are transposed. Which variables there are depends on the
configuration, and so do the rows:

* `untie_r`: the biases of the queries are one array [L, A, D], of which each layer here has a piece; otherwise [A, D].
* `div_val` 1: one table of embeddings. The biases of the output are one array here, and a piece for each cluster there.
* no `cutoffs`: one bias, and the output projects with the matrix of the embeddings.

The tables of the output are those of the embeddings, and have no row unless `tie_weight` is False: then they begin as
copies, and there is no way back. Projections that are shared have none, either.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...checkpoint.bookkeeping import TENSORFLOW_BOOKKEEPING
from ...checkpoint.keymap import KeyMap, Row, Shape
from ...files import CONFIG_NAME
from ..config import PretrainedConfig

if TYPE_CHECKING:
    from .config import TransfoXLConfig

_LAYER: Final = "transformer/layer_{n}/"
_OUR_LAYER: Final = "transformer.layers.{n}."
_EMBED: Final = "transformer/adaptive_embed/"
_SOFTMAX: Final = "transformer/adaptive_softmax/"

#: Linear layers of each layer without a bias: scope of the original -> module here.
_LINEAR: Final = (("qkv", "qkv_net"), ("r", "r_net"), ("o", "o_net"))
#: Those with one.
_DENSE: Final = (("layer_1", "CoreNet.0"), ("layer_2", "CoreNet.3"))
_NORMS: Final = (("rel_attn", "dec_attn"), ("ff", "pos_ff"))

#: The rows of every model.
_ALWAYS: Final = (
    *(
        Row(f"{_LAYER}rel_attn/{theirs}/kernel", f"{_OUR_LAYER}dec_attn.{ours}.weight", "transpose")
        for theirs, ours in _LINEAR
    ),
    *(Row(f"{_LAYER}ff/{theirs}/kernel", f"{_OUR_LAYER}pos_ff.{ours}.weight", "transpose") for theirs, ours in _DENSE),
    *(Row(f"{_LAYER}ff/{theirs}/bias", f"{_OUR_LAYER}pos_ff.{ours}.bias") for theirs, ours in _DENSE),
    *(Row(f"{_LAYER}{theirs}/LayerNorm/gamma", f"{_OUR_LAYER}{ours}.layer_norm.weight") for theirs, ours in _NORMS),
    *(Row(f"{_LAYER}{theirs}/LayerNorm/beta", f"{_OUR_LAYER}{ours}.layer_norm.bias") for theirs, ours in _NORMS),
)
#: The rows of a vocabulary in clusters.
_CLUSTERS: Final = (
    Row(f"{_SOFTMAX}cutoff_0/cluster_W", "crit.cluster_weight"),
    Row(f"{_SOFTMAX}cutoff_0/cluster_b", "crit.cluster_bias"),
    Row(f"{_SOFTMAX}cutoff_{{n}}/proj", "crit.out_projs.{n}", "transpose"),
)
_CLUSTER: Final = re.compile(r"transformer/adaptive_(?:embed|softmax)/cutoff_(0|[1-9][0-9]*)/.+")
_NUMBERED_LAYER: Final = re.compile(r"transformer/layer_(0|[1-9][0-9]*)/.+")


def key_map(config: "TransfoXLConfig") -> KeyMap:
    """The table of the models with that configuration."""
    return replace(KEY_MAP, rows=(*_ALWAYS, *_attention_rows(config), *_embedding_rows(config), *_output_rows(config)))


def _attention_rows(config: "TransfoXLConfig") -> tuple[Row, ...]:
    """The biases of the queries."""
    names = ("r_w_bias", "r_r_bias")
    if not config.untie_r:
        return tuple(Row(f"transformer/{name}", f"transformer.{name}") for name in names)
    return tuple(
        Row(f"transformer/{name}", f"transformer.layers.{n}.dec_attn.{name}", "drop_first", source_rows=(n, n + 1))
        for name in names
        for n in range(config.n_layer)
    )


def _embedding_rows(config: "TransfoXLConfig") -> tuple[Row, ...]:
    """The tables of embeddings and their projections; also where the output has copies of what the original shares."""
    scope, number = ("", "0") if config.div_val == 1 else ("cutoff_{n}/", "{n}")
    table, projection = f"{_EMBED}{scope}lookup_table", f"{_EMBED}{scope}proj_W"
    rows = [
        Row(table, f"transformer.word_emb.emb_layers.{number}.weight"),
        Row(projection, f"transformer.word_emb.emb_projs.{number}", "transpose"),
    ]
    if not config.tie_weight:
        rows.append(Row(table, f"crit.out_layers.{number}.weight"))
    if not config.cutoffs and not config.tie_projs[0]:
        rows.append(Row(projection, f"crit.out_projs.{number}", "transpose"))
    return tuple(rows)


def _output_rows(config: "TransfoXLConfig") -> tuple[Row, ...]:
    """What the output has of its own."""
    if not config.cutoffs:
        return (Row(f"{_SOFTMAX}bias", "crit.out_layers.0.bias"),)
    if config.div_val > 1:
        return (*_CLUSTERS, Row(f"{_SOFTMAX}cutoff_{{n}}/b", "crit.out_layers.{n}.bias"))
    clusters = pairwise([0, *config.cutoffs, config.vocab_size])
    pieces = (
        Row(f"{_SOFTMAX}cutoff_{number}/b", "crit.out_layers.0.bias", target_rows=words)
        for number, words in enumerate(clusters)
    )
    return (*_CLUSTERS, *pieces)


def inferred_config(shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """The fields of the configuration that the names and shapes of a checkpoint tell.

    The original has no file for them. Lengths (`tgt_len`, `mem_len`, `clamp_len`, `same_length`) leave no trace in it,
    nor does dropout.

    Args:
        shapes: Original names and shapes.

    Raises:
        ValueError: A variable is missing, or has not the shape that tells a size; the message lists all of them.
    """
    clusters = range(len({match[1] for name in shapes if (match := _CLUSTER.fullmatch(name))}))
    one_table = f"{_EMBED}lookup_table" in shapes or not clusters
    tables = [f"{_EMBED}lookup_table"] if one_table else [f"{_EMBED}cutoff_{i}/lookup_table" for i in clusters]
    biases = [f"{_SOFTMAX}cutoff_{i}/b" for i in clusters] if one_table else []
    inner = _LAYER.format(n=0) + "ff/layer_1/kernel"
    axes = {"transformer/r_w_bias": (2, 3), inner: (2,), **dict.fromkeys(tables, (2,)), **dict.fromkeys(biases, (1,))}
    if faults := [fault for name, allowed in axes.items() if (fault := _fault(name, shapes, allowed))]:
        raise ValueError(", ".join(faults))
    heads, (d_model, d_inner) = shapes["transformer/r_w_bias"], shapes[inner]
    widths = [shapes[name][1] for name in tables]
    ends = list(accumulate(shapes[name][0] for name in biases or tables))
    return {
        "vocab_size": sum(shapes[name][0] for name in tables),
        "cutoffs": ends[:-1],
        "d_model": d_model,
        "d_embed": widths[0],
        "n_head": heads[-2],
        "d_head": heads[-1],
        "d_inner": d_inner,
        "div_val": 1 if one_table else _divisor(widths),
        "n_layer": len({match[1] for name in shapes if (match := _NUMBERED_LAYER.fullmatch(name))}),
        "untie_r": len(heads) == 3,
        **_inferred_projections(shapes, len(ends), one_table),
    }


def _inferred_projections(shapes: Mapping[str, Shape], clusters: int, one_table: bool) -> dict[str, Any]:
    """What the matrices between the widths of the embeddings and that of the model tell.

    A cluster whose output has none projects with that of the embeddings, if there is one. Tables of their own lack one
    only where the widths are equal and `proj_same_dim` is False.
    """
    projected = [f"{_EMBED}{'' if one_table else f'cutoff_{i}/'}proj_W" in shapes for i in range(clusters)]
    tied = [there and f"{_SOFTMAX}cutoff_{i}/proj" not in shapes for i, there in enumerate(projected)]
    return {
        "tie_projs": tied,
        "proj_share_all_but_first": len(tied) > 1 and all(tied[1:]),
        "proj_same_dim": one_table or all(projected),
    }


def _fault(name: str, shapes: Mapping[str, Shape], allowed: Collection[int]) -> str:
    """What is wrong with the variable that tells a size, or ""."""
    if name not in shapes:
        return f"there is no {name}"
    if len(shapes[name]) in allowed and 0 not in shapes[name]:
        return ""
    return f"{name} {list(shapes[name])} should have {' or '.join(map(str, allowed))} axes, none of them empty"


def _divisor(widths: list[int]) -> int:
    """The smallest `div_val` that gives the widths of the tables; there can be several, as widths are rounded down.

    Raises:
        ValueError: None does.
    """
    for divisor in range(2, widths[0] + 2):
        if all(widths[0] // divisor**cluster == width for cluster, width in enumerate(widths)):
            return divisor
    raise ValueError(f"the widths of the tables, {widths}, are not divided by one number from cluster to cluster")


#: The general table, with the rows that every model has; `key_map` is that of a configuration.
KEY_MAP: Final = KeyMap(
    rows=_ALWAYS,
    heads=(("language_model", ()),),
    ignored=TENSORFLOW_BOOKKEEPING,
    optional=("crit.",),
    inferred_config=inferred_config,
)


def original_config(config: PretrainedConfig) -> tuple[str, dict[str, Any]]:
    """A configuration to go with the files; the original program has it among its arguments.

    It is our own file: sizes could be told from the shapes, but lengths and dropout would be lost on the way back.

    Raises:
        ValueError: The original can't compute such a model.
    """
    values = config.to_dict()
    for key, allowed in {"pre_lnorm": False, "tie_weight": True, "layer_norm_epsilon": 1e-12}.items():
        if values[key] != allowed:
            raise ValueError(f"{key}: the original Transformer-XL computes with {allowed!r}, not {values[key]!r}")
    if values["div_val"] > 1 and not values["cutoffs"]:
        raise ValueError(
            f"div_val: {values['div_val']}, but there are no cutoffs; the original Transformer-XL divides the width of "
            "the embeddings from cluster to cluster only, so use 1"
        )
    if values["same_length"] and values["same_length_one_fewer"]:
        raise ValueError(
            "same_length_one_fewer: in the original Transformer-XL every token sees itself and mem_len before it, as "
            "with False, not True"
        )
    return CONFIG_NAME, values


def is_corpus(source: str | PathLike[str]) -> bool:
    """Whether a path is a file that is no checkpoint, as the original's `cache.pkl` is, or the published `corpus.bin`.

    Published code looks for "ckpt" in the name; but a corpus may lie in a folder of that name, and a checkpoint have
    another. Only `corpus.bin` goes by its name (`transfo-xl-wt103-corpus.bin` is its address): weights are `.bin` too,
    and to look inside takes as long as reading.
    """
    from ...checkpoint.tensorflow.find import find_prefix, is_v1
    from .corpus import CORPUS_NAME

    path = Path(source).expanduser()
    weights = (".json", ".safetensors", ".bin", ".pt", ".pth")
    may_be = path.name.endswith(CORPUS_NAME) or path.suffix not in weights
    return path.is_file() and may_be and find_prefix(path) is None and not is_v1(path)


def convert_corpus(source: str | PathLike[str], folder: str | PathLike[str]) -> list[Path]:
    """Convert a corpus in ids to files of ours: the original's `cache.pkl`, or the published `corpus.bin`.

    Args:
        source: The file; beside `corpus.bin` must be its vocabulary, which `cache.pkl` has inside.
        folder: Where the files go; it is made when missing.

    Returns:
        The files written.

    Raises:
        OSError: The file is missing or no corpus, or the disk refused one.
        ValueError: Ids and vocabulary do not fit each other.
    """
    from .corpus import TransfoXLCorpus

    return [Path(name) for name in TransfoXLCorpus.from_pretrained(source).save_pretrained(folder)]


def convert_transfo_xl_checkpoint_to_pytorch(
    tf_checkpoint_path: str | PathLike[str],
    transfo_xl_config_file: str | PathLike[str],
    pytorch_dump_folder_path: str | PathLike[str],
    transfo_xl_dataset_file: str | PathLike[str],
) -> None:
    """Convert a checkpoint, a corpus, or both, under the name and with the arguments of the published packages.

    Args:
        tf_checkpoint_path: The TensorFlow checkpoint of Transformer-XL; "" for none.
        transfo_xl_config_file: Its configuration; "" for that beside it, or for the sizes that the checkpoint tells.
        pytorch_dump_folder_path: Folder that gets `pytorch_model.bin` and `config.json` of the language model, and the
            vocabulary and corpus.
        transfo_xl_dataset_file: The original's `cache.pkl`, or a published `corpus.bin`; "" for none.

    Raises:
        OSError: A file is missing or damaged, or the disk refused one.
        ValueError: Names or shapes don't fit; the message lists all of them.
    """
    from ..conversion import convert_classic
    from . import FAMILY

    if transfo_xl_dataset_file:
        convert_corpus(transfo_xl_dataset_file, pytorch_dump_folder_path)
    if tf_checkpoint_path:
        convert_classic(
            FAMILY, tf_checkpoint_path, transfo_xl_config_file, pytorch_dump_folder_path, head="language_model"
        )
