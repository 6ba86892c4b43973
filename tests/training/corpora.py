"""A text that can be learned by heart, data made of it, and tiny models of every family to learn it.

A document has words of its own, which follow each other in a circle: so what stands behind a mask, what follows, and
whether two sentences belong together, can be told.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from generation.saved_gpt2 import save_tiny_gpt2
from pytorch_transformers import (
    BertConfig,
    BertForPreTraining,
    BertTokenizer,
    TransfoXLConfig,
    TransfoXLLMHeadModel,
    TransfoXLTokenizer,
)
from pytorch_transformers.data.pretraining import (
    InstanceOptions,
    TokenStream,
    create_pretraining_data,
    create_tfrecords,
    write_stream,
)
from pytorch_transformers.models.auto import AutoTokenizer
from pytorch_transformers.training.finetune import run_task
from pytorch_transformers.training.options import TrainingOptions
from pytorch_transformers.training.task import Source, Task
from pytorch_transformers.training.tasks.pretrain import MaskedWords, NextTokens, NextWords
from saved_gpt import save_tiny_gpt

WORDS = (("ba", "ce", "di", "fo", "gu"), ("ha", "je", "ki", "lo", "mu"), ("na", "pe", "qi", "ro", "su"))
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
#: Kind of a training -> family. The first three differ in their data.
KINDS = {
    "bert": "bert",
    "bert without next sentence": "bert",
    "bert from records": "bert",
    "gpt2": "gpt2",
    "openai_gpt": "openai_gpt",
    "transfo_xl": "transfo_xl",
}
NO_DROPOUT: dict[str, dict[str, float]] = {
    "bert": {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    "gpt2": {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "openai_gpt": {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "transfo_xl": {"dropout": 0.0, "dropatt": 0.0},
}
LENGTH = 24
STREAMS = 8


def write_text(path: Path, sentences: int, seed: int = 0) -> Path:
    """Three documents of so many sentences of 2 to 6 words."""
    draw = random.Random(seed)
    documents = []
    for words in WORDS:
        at = draw.randrange(len(words))
        lines = []
        for _ in range(sentences):
            count = draw.randint(2, 6)
            lines.append(" ".join(words[(at + i) % len(words)] for i in range(count)))
            at += count
        documents.append("\n".join(lines))
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return path


@dataclass
class Corpora:
    """Text and models in a folder; data are made when they are asked for, once.

    Attributes:
        folder: Where they are.
        text: To train with.
        held_out: To evaluate on.
    """

    folder: Path
    text: Path = field(init=False)
    held_out: Path = field(init=False)

    def __post_init__(self) -> None:
        self.text = write_text(self.folder / "text.txt", 40)
        self.held_out = write_text(self.folder / "held_out.txt", 8, seed=1)

    def model(self, family: str, *, dropout: bool = False) -> Path:
        """Folder of a random model of the family with its tokenizer."""
        folder = self.folder / f"{family} {dropout}"
        if not folder.exists():
            folder.mkdir()
            _SAVERS[family](folder, {} if dropout else NO_DROPOUT[family])
        return folder

    def data(self, kind: str, *, held_out: bool = False, **options: Any) -> Path:
        """What a kind of training reads."""
        text = self.held_out if held_out else self.text
        name = f"{kind} {text.stem} {sorted(options.items())}"
        output = self.folder / (f"{name}.tfrecord" if kind == "bert from records" else name)
        if output.exists():
            return output
        family = KINDS[kind]
        tokenizer = AutoTokenizer.from_pretrained(self.model(family))
        if family == "bert":
            dynamic = options.pop("dynamic_masking", False)
            next_sentence = kind != "bert without next sentence"
            made = InstanceOptions(
                **{"max_seq_length": LENGTH, "dupe_factor": 4, "next_sentence": next_sentence, **options}
            )
            if kind == "bert from records":
                create_tfrecords(text, tokenizer, [output], made)
            else:
                create_pretraining_data(text, tokenizer, output, made, dynamic_masking=dynamic)
        else:
            end = None if family == "openai_gpt" else "default"
            write_stream(text, tokenizer, output, layout="blank_line", end_token=end)
        return output

    def task(self, kind: str, *, dev: bool = True, **options: Any) -> Task:
        """A new task; `options` are those of the data."""
        given: dict[str, Any] = {name: options.pop(name) for name in ("whole_documents", "streams") if name in options}
        given["data"] = self.data(kind, **options)
        given["dev_data"] = self.data(kind, held_out=True, **options) if dev else None
        family = KINDS[kind]
        if family == "bert":
            return MaskedWords(**given)
        if family == "transfo_xl":
            return NextWords(**{"streams": STREAMS, **given})
        return NextTokens(family, **given)

    def run(self, kind: str, output: Path, task: Task | None = None, **what: Any) -> dict[str, Any]:
        """The record of a run; `new` begins without weights."""
        folder = what.pop("model", None) or self.model(KINDS[kind], dropout=what.pop("dropout", False))
        new, length = what.pop("new", False), what.pop("max_seq_length", LENGTH)
        source = Source(
            model=None if new else str(folder),
            config=str(folder / "config.json") if new else None,
            tokenizer=str(folder) if new else None,
            max_seq_length=length,
        )
        do = {name: what.pop(name) for name in ("do_train", "do_eval") if name in what}
        given: dict[str, Any] = {"train_batch_size": 8, "learning_rate": 3e-3, "no_cuda": True, "log_every": 1}
        options = TrainingOptions(output_dir=output, **{**given, "save_every": 0, "evaluate_every": 0, **what})
        return run_task(task or self.task(kind), source, options, **(do or {"do_train": True}))


def _save_bert(folder: Path, dropout: dict[str, Any]) -> None:
    words = [word for document in WORDS for word in document]
    BertTokenizer([*SPECIAL, *words]).save_pretrained(folder)
    BertForPreTraining(
        BertConfig(
            vocab_size=len(SPECIAL) + len(words),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=32,
            initializer_range=0.1,
            **dropout,
        )
    ).save_pretrained(folder)


def _save_transfo_xl(folder: Path, dropout: dict[str, Any]) -> None:
    tokenizer = TransfoXLTokenizer(special=["<eos>"])
    tokenizer.count_sents([list(words) for words in WORDS])
    tokenizer.build_vocab()
    tokenizer.save_pretrained(folder)
    sizes = {"d_model": 32, "d_embed": 32, "n_head": 2, "d_head": 16, "d_inner": 64, "n_layer": 2, "div_val": 1}
    lengths = {"tgt_len": LENGTH, "mem_len": 160, "clamp_len": 100, "init_std": 0.1, "proj_init_std": 0.05}
    config = TransfoXLConfig(vocab_size=len(tokenizer), cutoffs=[8], **{**sizes, **lengths, **dropout})
    TransfoXLLMHeadModel(config).save_pretrained(folder)


_SAVERS: dict[str, Callable[[Path, dict[str, Any]], Any]] = {
    "bert": _save_bert,
    "gpt2": lambda folder, dropout: save_tiny_gpt2(folder, n_layer=2, initializer_range=0.1, **dropout),
    "openai_gpt": lambda folder, dropout: save_tiny_gpt(folder, initializer_range=0.1, **dropout),
    "transfo_xl": _save_transfo_xl,
}


def entropy(ids: Sequence[int]) -> float:
    """Of a token drawn from these."""
    shares = np.array(list(Counter(ids).values())) / len(ids)
    return -sum(share * math.log(share) for share in shares.tolist())


def stream_ids(place: Path) -> list[int]:
    """All ids of a stream."""
    ids: list[int] = TokenStream(place).ids.tolist()
    return ids
