"""`pytorch_transformers train-tokenizer`: a vocabulary of one's own, in the published file formats."""

import argparse
import sys
from pathlib import Path
from typing import Any

from .common import Switch, Verb, positive

_DESCRIPTION = """\
Learn a vocabulary from text files and save it as a tokenizer that from_pretrained loads.

  wordpiece  for BERT: vocab.txt, one token a line, [PAD] [UNK] [CLS] [SEP] [MASK] first
  byte-bpe   for GPT-2: vocab.json and merges.txt, <|endoftext|> last

The same text and options give the same files, in whatever order its files are named."""

#: Kind -> most tokens where nobody says how many: those of the published vocabularies.
_SIZES = {"wordpiece": 30522, "byte-bpe": 50257}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument("--kind", default="wordpiece", choices=tuple(_SIZES), help="see above (%(default)s)")
    parser.add_argument(
        "--input_file",
        required=True,
        nargs="+",
        metavar="FILE",
        help="text, UTF-8; several files, also divided by commas, and patterns such as 'texts/*.txt'",
    )
    parser.add_argument("--output_dir", required=True, metavar="FOLDER", help="gets the files; made if it is not there")
    parser.add_argument(
        "--vocab_size", type=positive, metavar="N", help="most tokens (wordpiece: 30522, byte-bpe: 50257)"
    )
    parser.add_argument(
        "--min_frequency",
        type=positive,
        default=2,
        metavar="N",
        help="how often two pieces must stand together to become one (%(default)s)",
    )
    parser.add_argument(
        "--do_lower_case",
        action=Switch,
        default=True,
        help="wordpiece: lower-case the text and drop its accents, or don't (default: yes)",
    )
    parser.add_argument(
        "--limit_alphabet",
        type=positive,
        metavar="N",
        help="wordpiece: most different characters with tokens (default: a quarter of --vocab_size)",
    )


def run(options: argparse.Namespace) -> int:
    """Learn the vocabulary and save it."""
    size = options.vocab_size or _SIZES[options.kind]
    tokenizer = (_wordpiece if options.kind == "wordpiece" else _byte_bpe)(options, size)
    folder = Path(options.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    fewer = " (the text has no more)" if len(tokenizer) < size else ""
    sys.stderr.write(f"{folder}: {len(tokenizer)} tokens{fewer}\n")
    return 0


def _wordpiece(options: argparse.Namespace, size: int) -> Any:
    from ..models.bert.tokenizer import BertTokenizer
    from ..tokenizers.train import train_wordpiece

    tokens = train_wordpiece(
        options.input_file,
        size,
        do_lower_case=options.do_lower_case,
        min_frequency=options.min_frequency,
        limit_alphabet=options.limit_alphabet,
    )
    return BertTokenizer(tokens, do_lower_case=options.do_lower_case)


def _byte_bpe(options: argparse.Namespace, size: int) -> Any:
    from ..models.gpt2.tokenizer import GPT2Tokenizer
    from ..tokenizers.train import train_byte_bpe

    if options.limit_alphabet is not None:
        raise ValueError("--limit_alphabet is for --kind wordpiece: byte-bpe has the 256 bytes as its alphabet")
    tokens, merges = train_byte_bpe(options.input_file, size, min_frequency=options.min_frequency)
    return GPT2Tokenizer({token: number for number, token in enumerate(tokens)}, merges.pairs)


VERB = Verb(
    name="train-tokenizer",
    summary="a vocabulary from text files",
    description=_DESCRIPTION,
    example="pytorch_transformers train-tokenizer --input_file 'texts/*.txt' --vocab_size 8000 --output_dir my-bert",
    add_arguments=add_arguments,
    run=run,
)
