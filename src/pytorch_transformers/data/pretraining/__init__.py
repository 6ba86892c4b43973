"""Data for pre-training: from text files to the rows of BERT, and to the token streams of causal models.

The algorithm for BERT is that of google-research/bert, create_pretraining_data.py.

| file | answers |
|---|---|
| `documents.py` | what a document is, and a sentence |
| `options.py`, `vocabulary.py` | what is to be made, and what of the tokenizer it needs |
| `instances.py` | the original program's instances, draw for draw |
| `tokens.py`, `pairs.py`, `masking.py`, `draws.py`, `rows.py` | the same rules for a corpus larger than memory |
| `create.py`, `processes.py` | the way from files to a folder of shards, and going on after a stop |
| `shards.py`, `arrays.py` | the folder, and the dataset that reads it |
| `tfrecord.py` | the original's record files, both ways |
| `streams.py` | one long row of ids for GPT, GPT-2 and Transformer-XL |
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from .create import create_pretraining_data, create_tfrecords
from .options import InstanceOptions
from .shards import DataIndex, PretrainingDataset
from .streams import StreamBlocks, TokenStream, write_stream
from .tfrecord import TFRecordDataset

if TYPE_CHECKING:
    from ...tokenizers.text_files import Files

__all__ = [
    "DataIndex",
    "InstanceOptions",
    "PretrainingDataset",
    "StreamBlocks",
    "TFRecordDataset",
    "TokenStream",
    "create_pretraining_data",
    "create_tfrecords",
    "open_pretraining_data",
    "write_stream",
]


def open_pretraining_data(place: "Files", *, verify: bool = False) -> PretrainingDataset | TFRecordDataset:
    """Opens training data for masked words and next sentences, whatever their format.

    Args:
        place: A folder of shards, or TFRecord files: paths and patterns, see `find_text_files`.
        verify: Whether to compare shards with their checksums now. Records are compared as they are read.

    Raises:
        OSError: Nothing is there, or it is not complete or damaged.
    """
    from ...tokenizers.text_files import find_text_files

    if isinstance(place, str | os.PathLike) and Path(place).is_dir():
        return PretrainingDataset(place, verify=verify)
    return TFRecordDataset(find_text_files(place))
