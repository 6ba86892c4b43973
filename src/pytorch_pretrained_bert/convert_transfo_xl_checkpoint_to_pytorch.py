"""Conversion of a TensorFlow checkpoint or a corpus of Transformer-XL, as 0.6.2 had it; TensorFlow is not needed."""

from pathlib import Path

import torch

from pytorch_transformers.files import atomic_write
from pytorch_transformers.models.transfo_xl import convert as core

from .classic_cache import Folder
from .commands import run_script
from .modeling_transfo_xl import (
    CONFIG_NAME,
    WEIGHTS_NAME,
    TransfoXLConfig,
    TransfoXLLMHeadModel,
    load_tf_weights_in_transfo_xl,
)
from .tokenization_transfo_xl import CORPUS_NAME, VOCAB_NAME, TransfoXLCorpus

__all__ = [
    "CONFIG_NAME",
    "CORPUS_NAME",
    "VOCAB_NAME",
    "WEIGHTS_NAME",
    "TransfoXLConfig",
    "TransfoXLLMHeadModel",
    "convert_transfo_xl_checkpoint_to_pytorch",
    "load_tf_weights_in_transfo_xl",
]


def convert_transfo_xl_checkpoint_to_pytorch(
    tf_checkpoint_path: Folder,
    transfo_xl_config_file: Folder,
    pytorch_dump_folder_path: Folder,
    transfo_xl_dataset_file: Folder,
) -> None:
    """Convert a checkpoint, a corpus, or both.

    Args:
        tf_checkpoint_path: The TensorFlow checkpoint of Transformer-XL; "" for none.
        transfo_xl_config_file: Its configuration; "" for that beside it, or for the sizes that the checkpoint tells.
        pytorch_dump_folder_path: Folder that gets `pytorch_model.bin` and `config.json` of the language model, and
            `vocab.bin` and `corpus.bin`.
        transfo_xl_dataset_file: The original's `cache.pkl`; "" for none.

    Raises:
        OSError: A file is missing or damaged, or the disk refused one.
        ValueError: Names or shapes don't fit; the message lists all of them.
    """
    if transfo_xl_dataset_file:
        corpus = TransfoXLCorpus.from_pretrained(transfo_xl_dataset_file)
        folder = Path(pytorch_dump_folder_path)
        folder.mkdir(parents=True, exist_ok=True)
        corpus.vocab.save_vocabulary(folder)
        with atomic_write(folder / CORPUS_NAME) as temporary:
            torch.save({name: getattr(corpus, name) for name in ("dataset", "train", "valid", "test")}, temporary)
    if tf_checkpoint_path:
        core.convert_transfo_xl_checkpoint_to_pytorch(
            tf_checkpoint_path, transfo_xl_config_file, pytorch_dump_folder_path, ""
        )


if __name__ == "__main__":
    optional = ("tf_checkpoint_path", "transfo_xl_config_file", "transfo_xl_dataset_file")
    raise SystemExit(run_script(convert_transfo_xl_checkpoint_to_pytorch, optional=optional))
