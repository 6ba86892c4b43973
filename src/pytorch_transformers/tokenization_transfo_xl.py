"""The Transformer-XL tokenizer, corpus and iterators under the module name of the published package."""

from .models.transfo_xl.corpus import CORPUS_NAME, Corpus, TransfoXLCorpus, get_lm_corpus
from .models.transfo_xl.iterators import LMMultiFileIterator, LMOrderedIterator, LMShuffledIterator
from .models.transfo_xl.pretrained import PRETRAINED_CORPUS_ARCHIVE_MAP
from .models.transfo_xl.tokenizer import (
    PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES,
    PRETRAINED_VOCAB_FILES_MAP,
    TransfoXLTokenizer,
    Vocab,
)
from .models.transfo_xl.vocabulary_files import VOCAB_FILES_NAMES

__all__ = [
    "CORPUS_NAME",
    "PRETRAINED_CORPUS_ARCHIVE_MAP",
    "PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES",
    "PRETRAINED_VOCAB_FILES_MAP",
    "VOCAB_FILES_NAMES",
    "Corpus",
    "LMMultiFileIterator",
    "LMOrderedIterator",
    "LMShuffledIterator",
    "TransfoXLCorpus",
    "TransfoXLTokenizer",
    "Vocab",
    "get_lm_corpus",
]
