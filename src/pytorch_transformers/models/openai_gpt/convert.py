"""Names of OpenAI's GPT checkpoint and of ours, in rows, and what else a conversion must know of the original.

Source: openai/finetune-transformer-lm, train.py. The checkpoint is ten NumPy files without names: all weights flattened
and joined, and their shapes in the order of `variables`. What is surprising: positions come first and tokens second,
though the program keeps them the other way round. Linear layers are [1, in, out]; ours keep [in, out].
"""

from os import PathLike
from typing import Any, Final

from ...checkpoint.keymap import KeyMap, Operation, Row
from ...checkpoint.storage import flat_arrays
from ...files import CONFIG_NAME
from ..config import PretrainedConfig

_LAYER: Final = "model/h{n}/"
_OUR_LAYER: Final = "transformer.h.{n}."

#: Weights of each layer in the order of the files: name of the original, and operation.
_OF_LAYER: Final[tuple[tuple[str, str, Operation], ...]] = (
    ("attn/c_attn/w", "attn.c_attn.weight", "drop_first"),
    ("attn/c_attn/b", "attn.c_attn.bias", "as_is"),
    ("attn/c_proj/w", "attn.c_proj.weight", "drop_first"),
    ("attn/c_proj/b", "attn.c_proj.bias", "as_is"),
    ("ln_1/g", "ln_1.weight", "as_is"),
    ("ln_1/b", "ln_1.bias", "as_is"),
    ("mlp/c_fc/w", "mlp.c_fc.weight", "drop_first"),
    ("mlp/c_fc/b", "mlp.c_fc.bias", "as_is"),
    ("mlp/c_proj/w", "mlp.c_proj.weight", "drop_first"),
    ("mlp/c_proj/b", "mlp.c_proj.bias", "as_is"),
    ("ln_2/g", "ln_2.weight", "as_is"),
    ("ln_2/b", "ln_2.bias", "as_is"),
)
_TABLES: Final = (
    Row("model/positions", "transformer.positions_embed.weight"),
    Row("model/tokens", "transformer.tokens_embed.weight"),
)


def _names(count: int) -> list[str]:
    """Names of that many weights, in the order of the files.

    Raises:
        ValueError: No number of layers has that many.
    """
    layers, rest = divmod(count - len(_TABLES), len(_OF_LAYER))
    if layers < 0 or rest:
        raise ValueError(
            f"{count} weights are no OpenAI GPT: expected {len(_TABLES)} tables and {len(_OF_LAYER)} for each layer"
        )
    of_layers = [f"model/h{n}/{name}" for n in range(layers) for name, _, _ in _OF_LAYER]
    return [*(row.original for row in _TABLES), *of_layers]


#: The table of the family. The files hold neither special tokens nor heads: the program draws them when a task begins.
KEY_MAP: Final = KeyMap(
    storage=flat_arrays(_names),
    rows=(*_TABLES, *(Row(_LAYER + theirs, _OUR_LAYER + ours, operation) for theirs, ours, operation in _OF_LAYER)),
    heads=(("language_model", ()),),
)


def original_config(config: PretrainedConfig) -> tuple[str, dict[str, Any]]:
    """A configuration to go with the files; the original program has it among its arguments.

    Raises:
        ValueError: The files can't hold such a model.
    """
    values = config.to_dict()
    if values["n_special"]:
        raise ValueError(
            f"n_special: {values['n_special']}, but the original's files hold the vocabulary alone; leave the special "
            "tokens out with set_num_special_tokens(0)"
        )
    return CONFIG_NAME, values


def convert_openai_checkpoint_to_pytorch(
    openai_checkpoint_folder_path: str | PathLike[str],
    openai_config_file: str | PathLike[str],
    pytorch_dump_folder_path: str | PathLike[str],
) -> None:
    """Convert a checkpoint under the name and with the arguments of the published packages.

    Args:
        openai_checkpoint_folder_path: The checkpoint of OpenAI GPT in NumPy files.
        openai_config_file: Its configuration; "" for that beside it, or for the published sizes.
        pytorch_dump_folder_path: Folder that gets `pytorch_model.bin` and `config.json`.

    Raises:
        OSError: A file is missing or damaged, or the disk refused one.
        ValueError: Names or shapes don't fit; the message lists all of them.
    """
    from ..conversion import convert_classic
    from . import FAMILY

    convert_classic(FAMILY, openai_checkpoint_folder_path, openai_config_file, pytorch_dump_folder_path)
