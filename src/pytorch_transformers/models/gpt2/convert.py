"""Names of OpenAI's GPT-2 checkpoints and of ours, in rows, and what else a conversion must know of the original.

Source: openai/gpt-2, src/model.py. The original's linear layers are convolutions of width 1 with matrices [1, in, out];
ours are [in, out], so nothing is transposed. The output layer is the table of tokens, and has no row.
"""

from os import PathLike
from typing import Any, Final

from ...checkpoint.bookkeeping import TENSORFLOW_BOOKKEEPING
from ...checkpoint.keymap import KeyMap, Row
from ..config import PretrainedConfig

_LAYER: Final = "model/h{n}/"
_OUR_LAYER: Final = "transformer.h.{n}."

#: Linear layers of each layer: each has a matrix and a bias.
_LINEAR: Final = ("attn/c_attn", "attn/c_proj", "mlp/c_fc", "mlp/c_proj")
#: Normalisations: scope of the original -> module here. Each has a gain and a bias.
_NORMS: Final[tuple[tuple[str, str], ...]] = (
    (f"{_LAYER}ln_1", f"{_OUR_LAYER}ln_1"),
    (f"{_LAYER}ln_2", f"{_OUR_LAYER}ln_2"),
    ("model/ln_f", "transformer.ln_f"),
)

#: The table of the family. The multiple-choice head is not the original's.
KEY_MAP: Final = KeyMap(
    rows=(
        Row("model/wte", "transformer.wte.weight"),
        Row("model/wpe", "transformer.wpe.weight"),
        *(Row(f"{_LAYER}{name}/w", f"{_OUR_LAYER}{name.replace('/', '.')}.weight", "drop_first") for name in _LINEAR),
        *(Row(f"{_LAYER}{name}/b", f"{_OUR_LAYER}{name.replace('/', '.')}.bias") for name in _LINEAR),
        *(Row(f"{theirs}/g", f"{ours}.weight") for theirs, ours in _NORMS),
        *(Row(f"{theirs}/b", f"{ours}.bias") for theirs, ours in _NORMS),
    ),
    heads=(("language_model", ()),),
    ignored=TENSORFLOW_BOOKKEEPING,
)


def original_config(config: PretrainedConfig) -> tuple[str, dict[str, Any]]:
    """The configuration file of the original program: its name and content.

    Raises:
        ValueError: The original has no such activation, inner width or normalisation.
    """
    values = config.to_dict()
    fixed: dict[str, tuple[Any, ...]] = {
        "activation_function": ("gelu_new", "gelu_tanh"),
        "n_inner": (None, 4 * values["n_embd"]),
        "layer_norm_epsilon": (1e-5,),
    }
    for key, allowed in fixed.items():
        if values[key] not in allowed:
            raise ValueError(f"{key}: the original GPT-2 computes with {allowed[0]!r}, not {values[key]!r}")
    return "hparams.json", {
        "n_vocab": values["vocab_size"],
        "n_ctx": values["n_positions"],
        **{key: values[key] for key in ("n_embd", "n_head", "n_layer")},
    }


def convert_gpt2_checkpoint_to_pytorch(
    gpt2_checkpoint_path: str | PathLike[str],
    gpt2_config_file: str | PathLike[str],
    pytorch_dump_folder_path: str | PathLike[str],
) -> None:
    """Convert a checkpoint under the name and with the arguments of the published packages.

    Args:
        gpt2_checkpoint_path: The TensorFlow checkpoint of GPT-2.
        gpt2_config_file: Its configuration; "" for that beside it, or for the published sizes.
        pytorch_dump_folder_path: Folder that gets `pytorch_model.bin` and `config.json`.

    Raises:
        OSError: A file is missing or damaged, or the disk refused one.
        ValueError: Names or shapes don't fit; the message lists all of them.
    """
    from ..conversion import convert_classic
    from . import FAMILY

    convert_classic(FAMILY, gpt2_checkpoint_path, gpt2_config_file, pytorch_dump_folder_path)
