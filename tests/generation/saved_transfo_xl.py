"""A tiny random Transformer-XL in a folder, as a downloaded model would lie there; its words are few."""

from pathlib import Path
from typing import Any, Final

#: As WikiText has them: spaces around signs, lines with nothing on them, `<unk>` for rare words.
TEXT: Final = """
 = The Mat =

 The cat sat on the mat , and the dog sat by the door .
 It was a well @-@ made mat of 1 @,@ 000 <unk> threads .

 = The Door =

 The dog said : " The cat sat on the mat . " The door was shut .
"""
SIZES: Final[dict[str, Any]] = {
    "cutoffs": [9, 17],
    "d_model": 24,
    "d_embed": 24,
    "n_head": 3,
    "d_head": 8,
    "d_inner": 30,
    "div_val": 2,
    "n_layer": 2,
    "tgt_len": 8,
    "mem_len": 12,
    "clamp_len": 10,
    "init_std": 1.0,
    "proj_init_std": 0.3,
}


def tiny_tokenizer(**options: Any) -> Any:
    """Counted from the text; `<eos>` has the id 0, as in the published vocabularies."""
    from pytorch_transformers import TransfoXLTokenizer

    tokenizer = TransfoXLTokenizer(**{"special": ["<eos>"], **options})
    tokenizer.count_sents([line.split() for line in TEXT.splitlines()])
    tokenizer.build_vocab()
    return tokenizer


def tiny_model(words: int, **config: Any) -> Any:
    """A model whose words differ in probability, ready to predict."""
    import torch

    from pytorch_transformers import TransfoXLConfig, TransfoXLLMHeadModel

    torch.manual_seed(7)  # one whose likeliest word changes
    return TransfoXLLMHeadModel(TransfoXLConfig(**{"vocab_size": words, **SIZES, **config})).eval()


def save_tiny_transfo_xl(folder: Path, **config: Any) -> Path:
    """Write configuration, weights and vocabulary into `folder` and return it."""
    tokenizer = tiny_tokenizer()
    tiny_model(len(tokenizer), **config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_published_transfo_xl(folder: Path) -> Path:
    """Write a tiny model as pytorch-transformers 1.2.0 saves one: pickles, and no `model_type`; return the folder."""
    import json

    import torch

    tokenizer = tiny_tokenizer()
    model = tiny_model(len(tokenizer))
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    values = model.config.to_dict()
    ours = {"model_type", "vocab_size", "layer_norm_epsilon", "same_length_one_fewer", "proj_same_dim", "eos_token_id"}
    published = {name: value for name, value in values.items() if name not in ours}
    (folder / "config.json").write_text(json.dumps(published), encoding="utf-8")
    names = ("counter", "special", "min_freq", "max_size", "lower_case", "delimiter", "idx2sym", "sym2idx")
    torch.save({name: getattr(tokenizer, name) for name in names}, folder / "vocab.bin")
    return folder


def save_published_corpus(folder: Path) -> Path:
    """Write the splits of `save_tiny_corpus` into `folder` as `corpus.bin`, without their vocabulary; return it."""
    import torch

    from pytorch_transformers.cli.evaluate import encoded

    test = encoded(iter(TEXT.splitlines()), tiny_tokenizer())[0]
    splits = {"train": test[:20], "valid": test[:40], "test": test}
    torch.save(
        {"dataset": "wt103", **{name: ids.numpy() for name, ids in splits.items()}},
        folder / "corpus.bin",
        _use_new_zipfile_serialization=False,
    )
    return folder


def save_tiny_corpus(folder: Path) -> Path:
    """Write the text into `folder` as the test part of a corpus, its first 40 words as the valid part; return it."""
    from pytorch_transformers import TransfoXLCorpus
    from pytorch_transformers.cli.evaluate import encoded

    corpus = TransfoXLCorpus()
    corpus.vocab = tiny_tokenizer()
    corpus.test, _ = encoded(iter(TEXT.splitlines()), corpus.vocab)
    corpus.valid = corpus.test[:40]
    corpus.save_pretrained(folder)
    return folder
