"""Rows that pair the names of the original checkpoint with ours. Data only.

Source: google-research/bert, modeling.py (variable scopes). A row is the original's pattern, our pattern, and what is
done to the values; `{n}` is the number of a layer. The original keeps matrices as [in, out], `nn.Linear` as [out, in].
"""

from typing import Final, Literal

Operation = Literal["as_is", "transpose"]

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
_SINGLE: Final[tuple[tuple[str, str, Operation], ...]] = (
    ("bert/embeddings/word_embeddings", "bert.embeddings.word_embeddings.weight", "as_is"),
    ("bert/embeddings/position_embeddings", "bert.embeddings.position_embeddings.weight", "as_is"),
    ("bert/embeddings/token_type_embeddings", "bert.embeddings.token_type_embeddings.weight", "as_is"),
    ("cls/predictions/output_bias", "cls.predictions.bias", "as_is"),
    ("cls/seq_relationship/output_weights", "cls.seq_relationship.weight", "as_is"),
    ("cls/seq_relationship/output_bias", "cls.seq_relationship.bias", "as_is"),
)

#: (original name, our name, operation) of a pre-training checkpoint.
ROWS: Final[tuple[tuple[str, str, Operation], ...]] = (
    *_SINGLE,
    *((f"{theirs}/kernel", f"{ours}.weight", "transpose") for theirs, ours in _DENSE),
    *((f"{theirs}/bias", f"{ours}.bias", "as_is") for theirs, ours in _DENSE),
    *((f"{theirs}/gamma", f"{ours}.weight", "as_is") for theirs, ours in _NORMS),
    *((f"{theirs}/beta", f"{ours}.bias", "as_is") for theirs, ours in _NORMS),
)
